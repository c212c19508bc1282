//! Random requests in random order over faults, against a flat oracle.
//!
//! Per sector the oracle keeps the versions that may be read: that of the last
//! write that finished, and those of writes in flight since. A sector's bytes
//! spell its version and its place, so that an invented or misplaced byte is
//! none of them.

use super::bench::{Bench, OFFSET, SECTOR, config, member, with_log};
use crate::admission::Admission;
use crate::engine::{Engine, SyncAction, SyncRequest};
use crate::member::MemberState;
use crate::request::{Event, Operation, RequestId, Slot};
use crate::stripes::{RmwLevel, WritePolicy};
use proptest::prelude::*;
use proptest::sample::select;
use raidlab_geometry::{Layout, Level, ParityLayout};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};
use std::collections::{BTreeMap, BTreeSet};

pub(super) fn content(sector: u64, version: u64) -> Vec<u8> {
    if version == 0 {
        return vec![0; SECTOR];
    }
    let word = (version << 20 | sector).to_le_bytes();
    word.iter().copied().cycle().take(SECTOR).collect()
}

#[derive(Debug)]
struct Pending {
    operation: Operation,
    start: u64,
    count: u64,
    version: u64,
    /// For reads: what each sector may hold.
    allowed: Vec<BTreeSet<u64>>,
}

#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) level: Level,
    pub(super) layout: ParityLayout,
    pub(super) members: usize,
    pub(super) chunk: u64,
    pub(super) policy: WritePolicy,
    pub(super) log: Option<u64>,
    pub(super) window: u64,
    pub(super) seed: u64,
}

pub(super) const ROWS: u64 = 6;

pub(super) fn plans() -> impl Strategy<Value = Plan> {
    // Those that md has a number for.
    let layouts = |level| {
        let layouts = (0..=20).filter_map(|word| match Layout::from_md(level, word) {
            Ok(Layout::Parity(layout)) => Some(layout),
            _ => None,
        });
        select(layouts.collect::<Vec<_>>())
    };
    let (five, six) = (layouts(Level::Raid5), layouts(Level::Raid6));
    let shape = prop_oneof![
        (Just(Level::Raid4), five.clone(), 2_usize..6),
        (Just(Level::Raid5), five, 2_usize..7),
        (Just(Level::Raid6), six, 4_usize..9),
    ];
    let policies = select(vec![
        WritePolicy::Md3_16,
        WritePolicy::Md4_1(RmwLevel::Disabled),
        WritePolicy::Md4_1(RmwLevel::Enabled),
        WritePolicy::Md4_1(RmwLevel::Preferred),
    ]);
    let rings = select(vec![None, Some(64), Some(136), Some(512)]);
    let numbers = (
        select(vec![8_u64, 16, 32]),
        select(vec![8_u64, 24, 1024]),
        any::<u64>(),
    );
    (shape, policies, rings, numbers).prop_map(
        |((level, layout, members), policy, log, (chunk, window, seed))| Plan {
            level,
            layout,
            members,
            chunk,
            policy,
            log,
            window,
            seed,
        },
    )
}

pub(super) fn bench(plan: &Plan) -> Bench {
    let mut config = config(plan.level, plan.layout, plan.members, plan.chunk, ROWS);
    config.write_policy = plan.policy;
    config.window = Sectors(plan.window);
    config.stripes = 8;
    if let Some(sectors) = plan.log {
        config = with_log(config, sectors);
    }
    Bench::new(config)
}

struct World {
    plan: Plan,
    bench: Bench,
    random: Stream,
    pending: BTreeMap<RequestId, Pending>,
    allowed: Vec<BTreeSet<u64>>,
    version: u64,
    seen: usize,
    events: usize,
    unrecorded: Vec<Slot>,
}

impl World {
    fn new(plan: Plan) -> Self {
        let mut bench = bench(&plan);
        bench.records_failures = false;
        let size = bench.map().size().0 as usize;
        Self {
            random: Stream::new(plan.seed),
            bench,
            pending: BTreeMap::new(),
            allowed: vec![BTreeSet::from([0]); size],
            version: 0,
            seen: 0,
            events: 0,
            unrecorded: Vec::new(),
            plan,
        }
    }

    fn submit(&mut self) {
        let size = self.allowed.len() as u64;
        let (operation, fua) = match self.random.below(10) {
            0..4 => (Operation::Read, false),
            4..8 => (Operation::Write, false),
            8 => (Operation::Write, true),
            _ => (Operation::Flush, false),
        };
        if operation == Operation::Flush {
            let id = self.bench.submit(operation, 0, Vec::new(), false);
            let allowed = Vec::new();
            self.pending.insert(
                id,
                Pending {
                    operation,
                    start: 0,
                    count: 0,
                    version: 0,
                    allowed,
                },
            );
            return self.observe();
        }
        let start = self.random.below(size);
        let longest = match self.random.below(4) {
            0 => 1,
            1 => 8,
            2 => 40,
            _ => size,
        };
        let mut count = 1 + self.random.below(longest.min(size - start));
        let mut start = start;
        if self.random.below(2) == 0 {
            start = start / 8 * 8;
            count = count.next_multiple_of(8).min(size - start);
        }
        let range = start as usize..(start + count) as usize;
        let mut version = 0;
        let mut allowed = Vec::new();
        let mut payload = vec![0xee; count as usize * SECTOR];
        if operation == Operation::Write {
            self.version += 1;
            version = self.version;
            payload = (start..start + count)
                .flat_map(|sector| content(sector, version))
                .collect();
            for sector in range.clone() {
                self.allowed[sector].insert(version);
            }
            for read in self.pending.values_mut() {
                for (sector, allowed) in (read.start..).zip(&mut read.allowed) {
                    if (start..start + count).contains(&sector) {
                        allowed.insert(version);
                    }
                }
            }
        } else {
            allowed = self.allowed[range].to_vec();
        }
        // Known before it is submitted: it may finish at once.
        let id = RequestId(self.bench.next_id);
        self.pending.insert(
            id,
            Pending {
                operation,
                start,
                count,
                version,
                allowed,
            },
        );
        self.bench.submit(operation, start, payload, fua);
        self.observe();
    }

    /// Looks at what finished and at events.
    fn observe(&mut self) {
        while self.seen < self.bench.finished.len() {
            let (id, result) = self.bench.finished[self.seen];
            self.seen += 1;
            let done = self.pending.remove(&id).expect("finished once");
            assert_eq!(result, Ok(()), "{:?} within the budget", done.operation);
            let sectors = done.start..done.start + done.count;
            match done.operation {
                Operation::Read => {
                    let bytes = &self.bench.payloads[&id];
                    for ((sector, allowed), got) in
                        sectors.zip(&done.allowed).zip(bytes.chunks(SECTOR))
                    {
                        let fits = allowed.iter().any(|it| content(sector, *it) == got);
                        assert!(fits, "sector {sector}: {:?}, not {allowed:?}", &got[..8]);
                    }
                }
                Operation::Write => {
                    // Older versions are gone, unless a write in flight may
                    // still bring one.
                    let others: Vec<(u64, u64, u64)> = self
                        .pending
                        .values()
                        .filter(|it| it.operation == Operation::Write)
                        .map(|it| (it.version, it.start, it.start + it.count))
                        .collect();
                    for sector in sectors {
                        let live = |version: &u64| {
                            *version >= done.version
                                || others.iter().any(|(it, from, to)| {
                                    it == version && (*from..*to).contains(&sector)
                                })
                        };
                        self.allowed[sector as usize].retain(live);
                    }
                }
                Operation::Flush | Operation::Discard => {}
            }
            self.bench.payloads.remove(&id);
        }
        while self.events < self.bench.events.len() {
            if let Event::MemberFailed(slot) = self.bench.events[self.events] {
                self.unrecorded.push(slot);
            }
            self.events += 1;
        }
    }

    fn lost(&self) -> usize {
        let states = self.bench.array.member_states();
        let gone = self
            .bench
            .slots
            .iter()
            .map(|disk| self.bench.disks[*disk].gone);
        let out = states.iter().zip(gone);
        out.filter(|(state, gone)| **state != MemberState::InSync || *gone)
            .count()
    }

    fn break_something(&mut self) {
        let spare = self.plan.level.parity_count();
        let slot = self.random.below(self.plan.members as u64) as u16;
        let disk = self.bench.slots[usize::from(slot)];
        let bad: usize = self.bench.disks.iter().map(|disk| disk.bad.len()).sum();
        match self.random.below(3) {
            0 if self.lost() < spare && bad == 0 => {
                // A refusal is no matter: it may have failed before.
                let _ = self
                    .bench
                    .array
                    .fail(self.bench.now, Slot(slot), &mut self.bench.out);
            }
            1 if self.lost() < spare && bad == 0 => self.bench.disks[disk].gone = true,
            2 if self.lost() == 0 && bad == 0 => {
                let sectors = self.plan.chunk * ROWS;
                for _ in 0..1 + self.random.below(3) {
                    let at = OFFSET + self.random.below(sectors);
                    self.bench.disks[disk].bad.insert(at);
                }
            }
            _ => {}
        }
        self.bench.take_outputs();
        self.observe();
    }

    /// Puts a fresh disk into a slot whose member failed.
    fn mend(&mut self) {
        for slot in 0..self.plan.members as u16 {
            let states = self.bench.array.member_states();
            let faulty = states[usize::from(slot)] == MemberState::Faulty;
            if !faulty || self.unrecorded.contains(&Slot(slot)) {
                continue;
            }
            let (now, out) = (self.bench.now, &mut self.bench.out);
            self.bench
                .array
                .remove(now, Slot(slot), out)
                .expect("it is faulty");
            let mut disk = self.bench.disks[0].clone();
            disk.gone = false;
            disk.bad.clear();
            disk.volatile.clear();
            disk.bytes.fill(0xdd);
            self.bench.disks.push(disk);
            self.bench.slots[usize::from(slot)] = self.bench.disks.len() - 1;
            let config = member(self.plan.chunk * ROWS);
            let admission = Admission::From(Sectors::ZERO);
            self.bench
                .array
                .add(now, Slot(slot), config, admission, out)
                .expect("the slot is empty");
            self.bench.take_outputs();
            return self.observe();
        }
    }

    fn step(&mut self) {
        self.bench.now += Nanos::from_millis(self.random.below(20));
        match self.random.below(100) {
            0..30 => self.submit(),
            30..94 => {
                let count = self.bench.flights.len() as u64;
                if count > 0 {
                    let number = self.random.below(count);
                    self.bench.land(number as usize);
                    self.observe();
                }
            }
            94 => self.break_something(),
            95 => self.mend(),
            96 => {
                let action = match self.random.below(3) {
                    0 => SyncAction::Check,
                    1 => SyncAction::Repair,
                    _ => SyncAction::Resync,
                };
                let request = SyncRequest {
                    action,
                    ranges: None,
                };
                // One that runs already is no matter. A resync would make
                // parity untrusted, which a healthy array does not need.
                if self.lost() == 0 && action != SyncAction::Resync {
                    let _ =
                        self.bench
                            .array
                            .start_sync(self.bench.now, request, &mut self.bench.out);
                    self.bench.take_outputs();
                    self.observe();
                }
            }
            _ => {
                if let Some(slot) = self.unrecorded.pop() {
                    let (now, out) = (self.bench.now, &mut self.bench.out);
                    self.bench.array.failure_recorded(now, slot, out);
                    self.bench.take_outputs();
                    self.observe();
                }
            }
        }
    }

    fn come_to_rest(&mut self) {
        self.bench.records_failures = true;
        for slot in std::mem::take(&mut self.unrecorded) {
            let (now, out) = (self.bench.now, &mut self.bench.out);
            self.bench.array.failure_recorded(now, slot, out);
        }
        self.bench.run();
        self.observe();
        // Disks that are gone and were not noticed.
        for slot in 0..self.plan.members as u16 {
            if self.bench.disks[self.bench.slots[usize::from(slot)]].gone {
                let _ = self
                    .bench
                    .array
                    .fail(self.bench.now, Slot(slot), &mut self.bench.out);
                self.bench.run();
            }
        }
        self.unrecorded.clear();
        self.events = self.bench.events.len();
        for _ in 0..self.plan.members {
            self.mend();
            self.bench.run();
        }
        self.observe();
        let request = SyncRequest {
            action: SyncAction::Check,
            ranges: None,
        };
        let (now, out) = (self.bench.now, &mut self.bench.out);
        self.bench
            .array
            .start_sync(now, request, out)
            .expect("all is quiet");
        self.bench.run();
        assert_eq!(self.bench.mismatches(), [], "{:?}", self.plan);
        assert!(self.bench.array.is_idle());
        assert!(self.pending.is_empty());
        let states = self.bench.array.member_states();
        assert!(
            states.iter().all(|it| *it == MemberState::InSync),
            "{states:?}"
        );
        let bytes = self.bench.check_parity();
        for ((sector, allowed), got) in (0..).zip(&self.allowed).zip(bytes.chunks(SECTOR)) {
            let fits = allowed.iter().any(|it| content(sector, *it) == got);
            assert!(fits, "sector {sector}: {:?}, not {allowed:?}", &got[..8]);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(250))]
    #[test]
    fn no_byte_is_lost_or_invented(plan in plans()) {
        let mut world = World::new(plan);
        for _ in 0..400 {
            world.step();
        }
        world.come_to_rest();
    }
}
