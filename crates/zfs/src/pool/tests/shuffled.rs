//! Whatever the order in which commands complete: every request finishes
//! exactly once, a resilvering member is never read, what was written and
//! synced has a place, and what was to be durable was flushed.

use super::rules::config;
use crate::{ChildSelection, DataReads, IntentLog, Pool, PrefetchConfig, QueueConfig, ScanOrder};
use proptest::prelude::*;
use raidlab_array::{MemberCommand, Operation, Outputs, Request, RequestId, Slot};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use std::collections::{BTreeMap, BTreeSet};

#[derive(Debug, Clone, Copy)]
enum Step {
    Submit(u8, u64, u64),
    Complete(u64),
    Fail(u64),
    Tick,
    Swap,
    Freeze,
    Thaw,
}

/// Sectors in use: small, so that requests collide.
const SPAN: u64 = 1 << 14;

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        6 => (0_u8..6, 0..SPAN, 1_u64..300).prop_map(|(kind, start, count)| {
            Step::Submit(kind, start, count)
        }),
        8 => any::<u64>().prop_map(Step::Complete),
        1 => any::<u64>().prop_map(Step::Fail),
        6 => Just(Step::Tick),
        1 => Just(Step::Swap),
        1 => Just(Step::Freeze),
        1 => Just(Step::Thaw),
    ]
}

struct Driver {
    pool: Pool,
    now: Nanos,
    out: Outputs,
    flying: Vec<MemberCommand>,
    open: BTreeSet<u64>,
    next_id: u64,
    written: BTreeMap<u64, (u64, u64)>,
    resilvering: bool,
    /// Flushes that the first disk has ended.
    flushes: u64,
    /// How many it had ended when each write under way was submitted.
    writes: BTreeMap<u64, u64>,
    /// With so many of them all writes that have ended are durable.
    flushed_with: u64,
    /// The same for each flush, and each durable write, that is under way.
    commits: BTreeMap<u64, u64>,
}

impl Driver {
    fn take(&mut self) {
        for command in self.out.commands.drain(..) {
            let new_disk = command.slot == Slot(1) && self.resilvering;
            assert!(
                !(new_disk && command.operation == Operation::Read),
                "{command:?} reads the new disk"
            );
            assert!(command.start.0 + command.count.0 <= 1 << 27);
            self.flying.push(command);
        }
        for finished in self.out.finished.drain(..) {
            assert!(self.open.remove(&finished.id.0), "{finished:?} twice");
            if let Some(since) = self.writes.remove(&finished.id.0) {
                self.flushed_with = self.flushed_with.max(since + 1);
            }
            if let Some(flushes) = self.commits.remove(&finished.id.0) {
                let is_durable = finished.result.is_err() || self.flushes >= flushes;
                assert!(is_durable, "{finished:?} is not durable");
            }
            if finished.result.is_err() {
                self.written.remove(&finished.id.0);
            }
        }
        for event in self.out.events.drain(..) {
            if event == raidlab_array::Event::SyncFinished {
                self.resilvering = false;
            }
        }
    }

    fn step(&mut self, step: Step) {
        self.now += Nanos(1000);
        match step {
            Step::Submit(kind, start, count) => self.submit(kind, start, count),
            Step::Complete(which) => self.complete(which, Ok(())),
            Step::Fail(which) => self.complete(which, Err(raidlab_array::MemberError::Medium)),
            Step::Tick => {
                if let Some(at) = self.pool.next_tick() {
                    self.now = self.now.max(at);
                    self.pool.tick(self.now, &mut self.out);
                }
            }
            Step::Swap => {
                if self.pool.remove(self.now, Slot(1), &mut self.out).is_ok() {
                    self.take();
                    let added = self.pool.add(self.now, Slot(1), &mut self.out);
                    assert_eq!(added, Ok(()));
                    self.resilvering = true;
                }
            }
            Step::Freeze => self.pool.freeze_sync(),
            Step::Thaw => self.pool.thaw_sync(self.now, &mut self.out),
        }
        self.take();
    }

    fn submit(&mut self, kind: u8, start: u64, count: u64) {
        self.next_id += 1;
        let (operation, count) = match kind {
            0 => (Operation::Flush, 0),
            1 | 2 => (Operation::Read, count),
            _ => (Operation::Write, count),
        };
        let request = Request {
            id: RequestId(self.next_id),
            operation,
            start: Sectors(start),
            count: Sectors(count),
            force_unit_access: kind == 3,
            process: 0,
        };
        match kind {
            0 => self.commits.insert(self.next_id, self.flushed_with),
            3 => self.commits.insert(self.next_id, self.flushes + 1),
            _ => None,
        };
        if operation == Operation::Write {
            self.written.insert(self.next_id, (start, count));
            self.writes.insert(self.next_id, self.flushes);
        }
        self.open.insert(self.next_id);
        self.pool.submit(self.now, request, &mut self.out);
    }

    fn complete(&mut self, which: u64, result: Result<(), raidlab_array::MemberError>) {
        if !self.flying.is_empty() {
            let index = which % self.flying.len() as u64;
            let command = self
                .flying
                .swap_remove(usize::try_from(index).expect("small"));
            let is_flush = command.operation == Operation::Flush;
            self.flushes += u64::from(is_flush && command.slot == Slot(0));
            self.pool
                .complete(self.now, command.id, result, &mut self.out);
        }
    }

    /// Completes everything.
    fn settle(&mut self) {
        self.pool.thaw_sync(self.now, &mut self.out);
        self.take();
        for round in 0..2_000_000_u64 {
            if self.pool.is_idle() {
                return;
            }
            let step = if self.flying.is_empty() {
                Step::Tick
            } else {
                Step::Complete(round)
            };
            self.step(step);
        }
        panic!("never idle: {} open", self.open.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn every_request_finishes_once_in_any_order(
        steps in prop::collection::vec(step(), 1..300),
        release in 0..3,
    ) {
        let mut config = config();
        if release == 1 {
            config.selection = ChildSelection::Zol06;
        } else if release == 2 {
            config.selection = ChildSelection::OpenZfs2;
            config.data_reads = DataReads::Blocks;
            config.queue = QueueConfig::of_2_3();
            config.intent_log = IntentLog::Pipeline { metaslab: Sectors(512) };
            config.prefetch = PrefetchConfig::of_2_3();
            // So few and so little that all of it runs out now and then.
            config.allocations = Some((2, 4));
            config.indirect_dirty = Bytes(16 << 10);
            config.sync_prepare_time = Nanos(2048);
            config.resilver.order = ScanOrder::Sorted {
                in_flight: Bytes(64 << 10),
                memory: Bytes(20_000),
                gap: Sectors(64),
            };
        }
        // So small that the cache turns over and writers are delayed.
        config.dirty_data_max = Bytes(1 << 20);
        config.cache = Bytes(4 << 20);
        config.indirect_pointers = 8;
        config.metadata_limit = Bytes(256 << 10);
        let mut driver = Driver {
            pool: Pool::new(config, Stream::new(1)).expect("a good configuration"),
            now: Nanos::ZERO,
            out: Outputs::default(),
            flying: Vec::new(),
            open: BTreeSet::new(),
            next_id: 0,
            written: BTreeMap::new(),
            resilvering: false,
            flushes: 0,
            writes: BTreeMap::new(),
            flushed_with: 0,
            commits: BTreeMap::new(),
        };
        for step in steps {
            driver.step(step);
        }
        driver.settle();
        prop_assert!(driver.open.is_empty(), "{:?} never finished", driver.open);
        prop_assert!(driver.flying.is_empty());
        prop_assert_eq!(driver.pool.dirty(), Bytes(0));
        prop_assert_eq!(driver.pool.health(), "UU");
        for &(start, count) in driver.written.values() {
            for block in start / 16..(start + count).div_ceil(16) {
                prop_assert!(driver.pool.map.place_of(block).is_some(), "block {block}");
            }
        }
    }
}
