//! Small disks with a volatile cache, a naive executor of the compute steps,
//! and a driver that holds every command until a test lets it land.

use super::disk::Disk;
use super::field::{multiply, parity, power, recover};
use crate::config::{Initial, MemberConfig};
use crate::engine::Engine;
use crate::recovery::{RecoveryConfig, Throttle};
use crate::request::{
    BufferId, ComputeStep, Event, MemberCommand, MemberError, Operation, Outputs, Request,
    RequestError, RequestId, Slot, StepResult,
};
use crate::stripes::{LogConfig, StripeArray, StripeConfig};
use raidlab_geometry::{Level, ParityLayout, StripeMap};
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES, Sectors, Span};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const SECTOR: usize = SECTOR_BYTES as usize;
/// Where the data begins on every disk; the log lies before it.
pub(super) const OFFSET: u64 = 1024;
pub(super) const LOG_START: u64 = 16;
pub(super) const SESSION: u64 = 0x5e55;

pub(super) fn index(sectors: u64) -> usize {
    usize::try_from(sectors).expect("small") * SECTOR
}

#[derive(Debug, Clone)]
pub(super) struct Flight {
    pub(super) command: MemberCommand,
    /// The disk in the slot when it was sent.
    pub(super) disk: usize,
    pub(super) payload: Vec<u8>,
    /// Sectors landed on the disk when it was sent: what a flush covers.
    pub(super) landed: u64,
}

pub(super) struct Bench {
    pub(super) array: StripeArray,
    pub(super) now: Nanos,
    pub(super) disks: Vec<Disk>,
    pub(super) slots: Vec<usize>,
    pub(super) flights: Vec<Flight>,
    pub(super) payloads: BTreeMap<RequestId, Vec<u8>>,
    scratch: BTreeMap<u32, Vec<u8>>,
    pub(super) finished: Vec<(RequestId, Result<(), RequestError>)>,
    pub(super) events: Vec<Event>,
    /// All commands so far.
    pub(super) sent: Vec<MemberCommand>,
    pub(super) next_id: u64,
    pub(super) records_failures: bool,
    pub(super) out: Outputs,
}

pub(super) fn member(size: u64) -> MemberConfig {
    MemberConfig {
        size: Sectors(OFFSET + size),
        data_offset: Sectors(OFFSET),
        rotational: true,
        write_mostly: false,
        bad_blocks: None,
    }
}

pub(super) fn config(
    level: Level,
    layout: ParityLayout,
    members: usize,
    chunk: u64,
    rows: u64,
) -> StripeConfig {
    let size = Sectors(chunk * rows);
    StripeConfig {
        members: vec![Initial::InSync(member(size.0)); members],
        sync: RecoveryConfig {
            block: Bytes(16 << 10),
            depth: 3,
            throttle: Throttle::None,
            ..RecoveryConfig::md_6()
        },
        ..StripeConfig::new(level, layout, Sectors(chunk), size)
    }
}

pub(super) fn with_log(config: StripeConfig, sectors: u64) -> StripeConfig {
    StripeConfig {
        log: Some(LogConfig {
            session: SESSION,
            ring: Span::new(LOG_START, LOG_START + sectors),
        }),
        ..config
    }
}

impl Bench {
    /// What the last sync has found to differ: where, and how many sectors.
    pub(super) fn mismatches(&self) -> Vec<(u64, u64)> {
        let begins = |event: &Event| matches!(event, Event::SyncStarted(_));
        let of_last = self.events.rsplit(begins).next().unwrap_or_default();
        let found = of_last.iter().filter_map(|event| match event {
            Event::Mismatch { start, count } => Some((start.0, count.0)),
            _ => None,
        });
        found.collect()
    }

    /// Disks full of zeros: parity fits.
    pub(super) fn new(config: StripeConfig) -> Self {
        let size = OFFSET + config.member_size.0;
        let disk = Disk {
            bytes: vec![0; index(size)],
            volatile: Vec::new(),
            landed: 0,
            bad: BTreeSet::new(),
            gone: false,
        };
        let disks = vec![disk; config.members.len()];
        Self::over(config, disks)
    }

    pub(super) fn over(config: StripeConfig, disks: Vec<Disk>) -> Self {
        let slots = (0..config.members.len()).collect();
        let mut array = StripeArray::new(config).expect("a sound configuration");
        if let Some(log) = &mut array.log {
            log.is_held = false;
        }
        Self {
            records_failures: true,
            array,
            now: Nanos::ZERO,
            disks,
            slots,
            flights: Vec::new(),
            payloads: BTreeMap::new(),
            scratch: BTreeMap::new(),
            finished: Vec::new(),
            events: Vec::new(),
            sent: Vec::new(),
            next_id: 0,
            out: Outputs::default(),
        }
    }

    pub(super) fn map(&self) -> StripeMap {
        *self.array.map()
    }

    fn get(&self, buffer: BufferId, count: Sectors) -> Vec<u8> {
        let length = index(count.0);
        match buffer {
            BufferId::None => vec![0; length],
            BufferId::Request { request, skip } => {
                self.payloads[&request][index(skip.0)..][..length].to_vec()
            }
            BufferId::Scratch { scratch, skip } => {
                self.scratch[&scratch.0][index(skip.0)..][..length].to_vec()
            }
        }
    }

    fn put(&mut self, buffer: BufferId, bytes: &[u8]) {
        let (place, skip) = match buffer {
            BufferId::None => return,
            BufferId::Request { request, skip } => {
                // A request that is over may not be touched.
                (
                    self.payloads.get_mut(&request).expect("a live request"),
                    skip,
                )
            }
            BufferId::Scratch { scratch, skip } => (
                self.scratch.get_mut(&scratch.0).expect("live scratch"),
                skip,
            ),
        };
        place[index(skip.0)..][..bytes.len()].copy_from_slice(bytes);
    }

    fn blocks(&self, data: &[BufferId], count: Sectors) -> Vec<Vec<u8>> {
        data.iter().map(|buffer| self.get(*buffer, count)).collect()
    }

    fn execute(&mut self, step: &ComputeStep, results: &mut Vec<(crate::StepId, StepResult)>) {
        match step {
            ComputeStep::Allocate { scratch, count } => {
                let old = self.scratch.insert(scratch.0, vec![0xa5; index(count.0)]);
                assert!(old.is_none(), "scratch {} is allocated twice", scratch.0);
            }
            ComputeStep::Release { scratch } => {
                let uses = |flight: &Flight| matches!(flight.command.buffer, BufferId::Scratch { scratch: it, .. } if it == *scratch);
                assert!(!self.flights.iter().any(uses), "released in use");
                assert!(self.scratch.remove(&scratch.0).is_some());
            }
            ComputeStep::Fill { to, bytes } => self.put(*to, bytes),
            ComputeStep::Fetch { id, from, count } => {
                results.push((*id, StepResult::Bytes(self.get(*from, *count))));
            }
            ComputeStep::Zero { to, count } => self.put(*to, &vec![0; index(count.0)]),
            ComputeStep::Copy { from, to, count } => {
                let bytes = self.get(*from, *count);
                self.put(*to, &bytes);
            }
            ComputeStep::Generate { count, data, p, q } => {
                let (new_p, new_q) = parity(&self.blocks(data, *count));
                self.put(*p, &new_p);
                self.put(*q, &new_q);
            }
            ComputeStep::Update {
                count,
                index,
                old,
                new,
                p,
                q,
            } => {
                let (old, new) = (self.get(*old, *count), self.get(*new, *count));
                let delta: Vec<u8> = old.iter().zip(&new).map(|(a, b)| a ^ b).collect();
                let factor = power(usize::from(*index));
                for (buffer, factor) in [(*p, 1), (*q, factor)] {
                    let mut bytes = self.get(buffer, *count);
                    for (byte, change) in bytes.iter_mut().zip(&delta) {
                        *byte ^= multiply(factor, *change);
                    }
                    self.put(buffer, &bytes);
                }
            }
            ComputeStep::Recover {
                count,
                data,
                p,
                q,
                lost,
            } => {
                let mut blocks = self.blocks(data, *count);
                let known =
                    |buffer: BufferId| (buffer != BufferId::None).then(|| self.get(buffer, *count));
                let lost: Vec<usize> = lost.iter().map(|it| usize::from(*it)).collect();
                recover(
                    &mut blocks,
                    known(*p).as_deref(),
                    known(*q).as_deref(),
                    &lost,
                );
                for number in lost {
                    self.put(data[number], &blocks[number]);
                }
            }
            ComputeStep::Check {
                id,
                count,
                data,
                p,
                q,
            } => {
                let (new_p, new_q) = parity(&self.blocks(data, *count));
                let different = |buffer: BufferId, expected: &[u8]| {
                    let bytes = self.get(buffer, *count);
                    let sectors = bytes.chunks(SECTOR).zip(expected.chunks(SECTOR));
                    let count = sectors.filter(|(a, b)| a != b).count();
                    Sectors(if buffer == BufferId::None {
                        0
                    } else {
                        count as u64
                    })
                };
                let result = StepResult::Parity {
                    p_different: different(*p, &new_p),
                    q_different: different(*q, &new_q),
                };
                results.push((*id, result));
            }
            ComputeStep::Compare {
                id,
                left,
                right,
                count,
            } => {
                let (left, right) = (self.get(*left, *count), self.get(*right, *count));
                let pairs = left.chunks(SECTOR).zip(right.chunks(SECTOR));
                let different = Sectors(pairs.filter(|(a, b)| a != b).count() as u64);
                results.push((*id, StepResult::Compared { different }));
            }
            ComputeStep::Seal {
                header,
                header_bytes,
                at,
                seal_at,
                blocks,
            } => {
                let sectors = Sectors(u64::from(*header_bytes).div_ceil(SECTOR_BYTES));
                let mut bytes = self.get(*header, sectors);
                for (number, (block, count)) in blocks.iter().enumerate() {
                    let sum = crc32c::crc32c(&self.get(*block, *count));
                    bytes[*at as usize + 4 * number..][..4].copy_from_slice(&sum.to_le_bytes());
                }
                let place = *seal_at as usize;
                bytes[place..place + 4].fill(0);
                let seal = crc32c::crc32c(&bytes[..*header_bytes as usize]);
                bytes[place..place + 4].copy_from_slice(&seal.to_le_bytes());
                self.put(*header, &bytes);
            }
        }
    }

    /// Executes what came out; commands stay in flight.
    pub(super) fn take_outputs(&mut self) {
        loop {
            let out = std::mem::take(&mut self.out);
            let mut results = Vec::new();
            for step in &out.steps {
                self.execute(step, &mut results);
            }
            for command in out.commands {
                let disk = self.slots[usize::from(command.slot.0)];
                let payload = match command.operation {
                    Operation::Write => self.get(command.buffer, command.count),
                    _ => Vec::new(),
                };
                let landed = self.disks[disk].landed;
                self.sent.push(command);
                self.flights.push(Flight {
                    command,
                    disk,
                    payload,
                    landed,
                });
            }
            for finished in out.finished {
                self.finished.push((finished.id, finished.result));
            }
            for event in out.events {
                if let Event::MemberFailed(slot) = event
                    && self.records_failures
                {
                    self.array.failure_recorded(self.now, slot, &mut self.out);
                }
                if matches!(event, Event::BadBlocksFound { .. }) && self.records_failures {
                    self.array.log_may_go_on(self.now, &mut self.out);
                }
                self.events.push(event);
            }
            if results.is_empty()
                && self.out.steps.is_empty()
                && self.out.commands.is_empty()
                && self.out.finished.is_empty()
                && self.out.events.is_empty()
            {
                return;
            }
            for (id, result) in results {
                self.array.computed(self.now, id, result, &mut self.out);
            }
        }
    }

    /// A command takes effect and completes.
    pub(super) fn land(&mut self, number: usize) {
        let flight = self.flights.remove(number);
        let command = flight.command;
        let result = self.perform(&flight);
        self.array
            .complete(self.now, command.id, result, &mut self.out);
        self.take_outputs();
    }

    fn perform(&mut self, flight: &Flight) -> Result<(), MemberError> {
        let command = flight.command;
        let disk = &mut self.disks[flight.disk];
        if disk.gone {
            return Err(MemberError::Gone);
        }
        let end = command.start.0 + command.count.0;
        assert!(
            index(end) <= disk.bytes.len(),
            "beyond the disk: {command:?}"
        );
        match command.operation {
            Operation::Read => {
                if disk.bad.range(command.start.0..end).next().is_some() {
                    return Err(MemberError::Medium);
                }
                let bytes = disk.read(command.start.0, command.count.0);
                self.put(command.buffer, &bytes);
            }
            Operation::Write => {
                disk.write(command.start.0, &flight.payload, command.force_unit_access);
            }
            Operation::Flush => {
                // A sector written again since is in order: the older one first.
                disk.settle(|it| it.number < flight.landed);
            }
            Operation::Discard => {}
        }
        Ok(())
    }

    /// Lets everything land, oldest first.
    pub(super) fn run(&mut self) {
        self.take_outputs();
        for _ in 0..200_000 {
            if !self.flights.is_empty() {
                self.land(0);
            } else if let Some(time) = self.array.next_tick() {
                self.now = self.now.max(time);
                self.array.tick(self.now, &mut self.out);
                self.take_outputs();
            } else {
                return;
            }
        }
        panic!("it does not come to rest: {:?}", self.array);
    }

    pub(super) fn submit(
        &mut self,
        operation: Operation,
        start: u64,
        payload: Vec<u8>,
        force_unit_access: bool,
    ) -> RequestId {
        let id = RequestId(self.next_id);
        self.next_id += 1;
        let count = Sectors((payload.len() / SECTOR) as u64);
        self.payloads.insert(id, payload);
        let request = Request {
            id,
            operation,
            start: Sectors(start),
            count,
            force_unit_access,
            process: 0,
        };
        self.array.submit(self.now, request, &mut self.out);
        self.take_outputs();
        id
    }

    pub(super) fn result(&self, id: RequestId) -> Option<Result<(), RequestError>> {
        let mut all = self.finished.iter().filter(|(it, _)| *it == id);
        let result = all.next().map(|(_, result)| *result);
        assert!(all.next().is_none(), "finished twice");
        result
    }

    pub(super) fn write(&mut self, start: u64, bytes: Vec<u8>) -> Result<(), RequestError> {
        let id = self.submit(Operation::Write, start, bytes, false);
        self.run();
        self.result(id).expect("it came to rest")
    }

    pub(super) fn read(&mut self, start: u64, count: u64) -> Result<Vec<u8>, RequestError> {
        let id = self.submit(Operation::Read, start, vec![0xee; index(count)], false);
        self.run();
        let result = self.result(id).expect("it came to rest");
        result.map(|()| self.payloads[&id].clone())
    }

    pub(super) fn fail(&mut self, slot: u16) {
        self.array
            .fail(self.now, Slot(slot), &mut self.out)
            .expect("it can be spared");
        self.take_outputs();
    }

    /// Every row's parity fits, members in sync only; gives the array's bytes.
    pub(super) fn check_parity(&self) -> Vec<u8> {
        let map = self.map();
        let mut content = vec![0; index(map.size().0)];
        let chunk = map.chunk().0;
        for number in 0..map.rows() {
            let row = map.row(number);
            let block = |slot: Slot| {
                let start = OFFSET + number * chunk;
                self.disks[self.slots[slot.index()]].read(start, chunk)
            };
            let mut data = vec![vec![0; index(chunk)]; usize::from(row.exponents())];
            for at in 0..row.data_count() {
                let bytes = block(row.data_slot(at));
                let first = map.array_sector(raidlab_geometry::Place {
                    row: number,
                    index: at,
                    offset: Sectors::ZERO,
                });
                content[index(first.0)..][..bytes.len()].copy_from_slice(&bytes);
                data[usize::from(row.exponent(at))] = bytes;
            }
            let (p, q) = parity(&data);
            assert_eq!(block(row.p()), p, "P of row {number}");
            if let Some(slot) = row.q() {
                assert_eq!(block(slot), q, "Q of row {number}");
            }
        }
        content
    }
}
