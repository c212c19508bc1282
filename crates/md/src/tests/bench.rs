//! An array without bytes, whose commands land when a test says so. It watches that no
//! write is called done before each member that should have it has it.

use crate::{BLOCK, Raid5d};
use raidlab_array::{
    Admission, CommandId, Engine, Event, Finished, Imitation, Initial, MemberCommand, MemberConfig,
    MemberError, Operation, Outputs, Request, RequestId, Slot, StripeConfig,
};
use raidlab_geometry::{Level, ParityLayout, StripeMap};
use raidlab_units::{Nanos, Sectors};
use std::collections::{BTreeMap, BTreeSet};

pub(super) const OFFSET: u64 = 2048;

pub(super) struct Bench {
    pub(super) array: Raid5d,
    pub(super) now: Nanos,
    pub(super) out: Outputs,
    pub(super) flights: Vec<MemberCommand>,
    pub(super) sent: Vec<MemberCommand>,
    pub(super) finished: Vec<Finished>,
    /// Ids of requests that have not finished.
    pub(super) open: BTreeSet<RequestId>,
    next: u64,
    member_size: u64,
    map: StripeMap,
    /// Counts what happens.
    moment: u64,
    /// Writes that have not finished: when they came, first sector, sectors.
    writes: BTreeMap<RequestId, (u64, u64, u64)>,
    /// When a write of a member's block last landed, by slot and stripe.
    landed: BTreeMap<(Slot, u64), u64>,
    /// When a slot last had a member lost or put in.
    changed: BTreeMap<Slot, u64>,
}

fn member(size: u64) -> MemberConfig {
    MemberConfig {
        size: Sectors(OFFSET + size),
        data_offset: Sectors(OFFSET),
        rotational: true,
        write_mostly: false,
        bad_blocks: None,
    }
}

/// Chunks of 4 stripes, `rows` of them, and a cache of so many stripes.
pub(super) fn config(level: Level, members: usize, rows: u64, stripes: usize) -> StripeConfig {
    let size = rows * 32;
    StripeConfig {
        members: vec![Initial::InSync(member(size)); members],
        stripes,
        ..StripeConfig::new(
            level,
            ParityLayout::LeftSymmetric,
            Sectors(32),
            Sectors(size),
        )
    }
}

impl Bench {
    pub(super) fn new(config: StripeConfig) -> Self {
        let (map, _) = config.check().expect("a sound array");
        Self {
            map,
            member_size: config.member_size.0,
            array: Raid5d::new(config, None).expect("a sound array"),
            now: Nanos::ZERO,
            out: Outputs::default(),
            flights: Vec::new(),
            sent: Vec::new(),
            finished: Vec::new(),
            open: BTreeSet::new(),
            next: 0,
            moment: 0,
            writes: BTreeMap::new(),
            landed: BTreeMap::new(),
            changed: BTreeMap::new(),
        }
    }

    /// That the blocks which a finished write touches, and their parity, have been
    /// written to all members that were there all the time.
    fn check_written(&self, (came, start, count): (u64, u64, u64)) {
        for block in (start / BLOCK..(start + count).div_ceil(BLOCK)).map(|it| it * BLOCK) {
            let place = self.map.locate(Sectors(block));
            let row = self.map.row(place.row);
            let number = self.map.member_sector(place.row, place.offset).0 / BLOCK;
            let slots = [Some(row.data_slot(place.index)), Some(row.p()), row.q()];
            for slot in slots.into_iter().flatten() {
                let stayed = self.changed.get(&slot).is_none_or(|at| *at < came);
                let is_there = self.array.members.in_service().contains(slot);
                let landed = self.landed.get(&(slot, number));
                assert!(
                    !stayed || !is_there || landed.is_some_and(|at| *at > came),
                    "sector {block}: member {} never got stripe {number}",
                    slot.0
                );
            }
        }
    }

    /// Takes the outputs, and lets the thread run as long as it has something to do.
    pub(super) fn settle(&mut self) {
        for turn in 0.. {
            assert!(
                turn < 10_000,
                "the thread spins: {:?}",
                self.array.cache.active()
            );
            for command in self.out.commands.drain(..) {
                if command.operation != Operation::Flush {
                    assert!(command.start.0 >= OFFSET, "{command:?}");
                    let end = command.start.0 + command.count.0;
                    assert!(end <= OFFSET + self.member_size, "{command:?}");
                }
                let meets = |other: &&MemberCommand| {
                    other.slot == command.slot
                        && other.start < command.start + command.count
                        && command.start < other.start + other.count
                };
                for other in self.flights.iter().filter(meets) {
                    let write = Operation::Write;
                    assert!(
                        command.operation != write || other.operation != write,
                        "{command:?} meets {other:?}"
                    );
                }
                self.sent.push(command);
                self.flights.push(command);
            }
            for finished in std::mem::take(&mut self.out.finished) {
                assert!(self.open.remove(&finished.id), "{finished:?} twice");
                let write = self.writes.remove(&finished.id);
                if let Some(write) = write.filter(|_| finished.result.is_ok()) {
                    self.check_written(write);
                }
                self.finished.push(finished);
            }
            let events = std::mem::take(&mut self.out.events);
            let on_their_way = std::mem::take(&mut self.out.on_their_way);
            self.out.clear();
            for event in events {
                if let Event::MemberFailed(slot) = event {
                    self.moment += 1;
                    self.changed.insert(slot, self.moment);
                    self.array.failure_recorded(self.now, slot, &mut self.out);
                }
            }
            for &process in &on_their_way {
                self.array.go_on(self.now, process, &mut self.out);
            }
            let is_quiet = self.out.finished.is_empty() && self.out.commands.is_empty();
            if !is_quiet || !on_their_way.is_empty() {
                continue;
            }
            if self.array.next_tick() != Some(self.now) {
                return;
            }
            self.array.tick(self.now, &mut self.out);
        }
    }

    pub(super) fn submit(&mut self, operation: Operation, start: u64, count: u64) -> RequestId {
        self.submit_as(operation, start, count, false)
    }

    pub(super) fn submit_as(
        &mut self,
        operation: Operation,
        start: u64,
        count: u64,
        force_unit_access: bool,
    ) -> RequestId {
        let id = RequestId(self.next);
        self.next += 1;
        self.open.insert(id);
        self.moment += 1;
        if operation == Operation::Write {
            self.writes.insert(id, (self.moment, start, count));
        }
        let request = Request {
            id,
            operation,
            start: Sectors(start),
            count: Sectors(count),
            force_unit_access,
            process: 0,
        };
        self.array.submit(self.now, request, &mut self.out);
        self.settle();
        id
    }

    pub(super) fn land(&mut self, index: usize, result: Result<(), MemberError>) {
        let command = self.flights.remove(index);
        self.moment += 1;
        if command.operation == Operation::Write && result.is_ok() {
            let first = command.start.0 - OFFSET;
            for number in first / BLOCK..(first + command.count.0) / BLOCK {
                self.landed.insert((command.slot, number), self.moment);
            }
        }
        self.answer(command.id, result);
    }

    fn answer(&mut self, id: CommandId, result: Result<(), MemberError>) {
        self.now += Nanos(1000);
        self.array.complete(self.now, id, result, &mut self.out);
        self.settle();
    }

    pub(super) fn fail(&mut self, slot: u16) -> bool {
        let slot = Slot(slot);
        let failed = self.array.fail(self.now, slot, &mut self.out).is_ok();
        self.settle();
        failed
    }

    /// Takes a failed member out and puts a new one in.
    pub(super) fn replace(&mut self, slot: u16) {
        let (slot, out) = (Slot(slot), &mut self.out);
        self.moment += 1;
        self.changed.insert(slot, self.moment);
        let removed = self.array.remove(self.now, slot, out);
        removed.expect("it has failed");
        let new = member(self.member_size);
        let everything = Admission::From(Sectors::ZERO);
        let added = self.array.add(self.now, slot, new, everything, out);
        added.expect("the slot is empty");
        self.settle();
    }

    /// Everything lands, and all sleeps pass.
    pub(super) fn run(&mut self) {
        loop {
            if !self.flights.is_empty() {
                self.land(0, Ok(()));
            } else if let Some(time) = self.array.next_tick() {
                self.now = time;
                self.array.tick(time, &mut self.out);
                self.settle();
            } else {
                return;
            }
        }
    }

    /// What was sent since, in the order of members: slot, operation, first sector of
    /// the data area, sectors.
    pub(super) fn take_sent(&mut self) -> Vec<(u16, Operation, u64, u64)> {
        let mut sent: Vec<_> = std::mem::take(&mut self.sent)
            .iter()
            .map(|it| (it.slot.0, it.operation, it.start.0 - OFFSET, it.count.0))
            .collect();
        sent.sort_by_key(|(slot, operation, start, _)| {
            (*operation == Operation::Write, *slot, *start)
        });
        sent
    }
}
