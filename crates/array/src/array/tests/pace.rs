//! The pace of md's recovery in virtual time, over disks that answer after a
//! fixed time: what the throttle makes of it, not what disks do.

use super::{ALL, config, member, request};
use crate::array::Array;
use crate::engine::Engine;
use crate::recovery::RecoveryConfig;
use crate::request::{CommandId, Operation, Outputs, Purpose, Slot};
use raidlab_units::{Nanos, Sectors};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const SIZE: u64 = 1 << 31;
/// Every command takes this long: four blocks of 512 KiB read and written in
/// 20 ms are 105 MB/s.
const SERVICE: Nanos = Nanos::from_millis(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Happening {
    Done(CommandId),
    Read(u64),
}

struct Clock {
    array: Array,
    out: Outputs,
    now: Nanos,
    calendar: BinaryHeap<Reverse<(Nanos, Happening)>>,
    /// Time between two foreground reads.
    load: Option<Nanos>,
    copied: Sectors,
}

impl Clock {
    fn new(recovery: RecoveryConfig) -> Self {
        let mut array = Array::new(config(2, SIZE, recovery)).expect("sound");
        let mut out = Outputs::default();
        array
            .remove(Nanos::ZERO, Slot(1), &mut out)
            .expect("not the last");
        array
            .add(Nanos::ZERO, Slot(1), member(SIZE, 0), ALL, &mut out)
            .expect("the slot is empty");
        Self {
            array,
            out,
            now: Nanos::ZERO,
            calendar: BinaryHeap::new(),
            load: None,
            copied: Sectors::ZERO,
        }
    }

    fn load_every(&mut self, time: Nanos) {
        self.load = Some(time);
        self.calendar.push(Reverse((self.now, Happening::Read(0))));
    }

    /// Megabytes per second copied in the next `seconds`.
    fn run(&mut self, seconds: u64) -> f64 {
        let (end, before) = (self.now + Nanos::from_secs(seconds), self.copied);
        loop {
            for command in self.out.commands.drain(..) {
                if command.purpose == Purpose::Sync && command.operation == Operation::Write {
                    self.copied += command.count;
                }
                let done = Happening::Done(command.id);
                self.calendar.push(Reverse((self.now + SERVICE, done)));
            }
            self.out.clear();
            let tick = self.array.next_tick().unwrap_or(Nanos::MAX);
            let next = self
                .calendar
                .peek()
                .map_or(Nanos::MAX, |Reverse((time, _))| *time);
            if tick.min(next) >= end {
                break;
            }
            self.now = tick.min(next);
            if tick <= next {
                self.array.tick(self.now, &mut self.out);
            } else if let Some(Reverse((_, happening))) = self.calendar.pop() {
                self.happen(happening);
            }
        }
        self.now = end;
        let copied = Sectors(self.copied.0 - before.0).to_bytes();
        raidlab_units::BytesPerSecond::mean(copied, Nanos::from_secs(seconds)).0 / 1e6
    }

    fn happen(&mut self, happening: Happening) {
        match happening {
            Happening::Done(command) => {
                self.array
                    .complete(self.now, command, Ok(()), &mut self.out);
            }
            Happening::Read(number) => {
                let start = SIZE - 8 - number % 1000 * 8;
                let read = request(number, Operation::Read, start, 8);
                self.array.submit(self.now, read, &mut self.out);
                let next = self.now + self.load.unwrap_or(Nanos::SECOND);
                self.calendar
                    .push(Reverse((next, Happening::Read(number + 1))));
            }
        }
    }
}

#[test]
fn alone_it_runs_at_the_disks_pace() {
    for recovery in [RecoveryConfig::md_3_16(), RecoveryConfig::md_6()] {
        let pace = Clock::new(recovery).run(60);
        assert!((103.0..106.0).contains(&pace), "{pace} MB/s");
    }
}

#[test]
fn under_load_3_16_falls_to_its_floor() {
    let mut clock = Clock::new(RecoveryConfig::md_3_16());
    clock.load_every(Nanos::from_millis(1));
    // Before the idle test sees the load it must grow beyond the sync I/O in
    // flight; what is copied until then is made up for in the first seconds.
    let start = clock.run(300);
    let pace = clock.run(300);
    assert!((1.02..1.2).contains(&pace), "{start} then {pace} MB/s");
}

#[test]
fn under_load_6_waits_for_its_own_blocks_instead() {
    let mut clock = Clock::new(RecoveryConfig::md_6());
    clock.load_every(Nanos::from_millis(1));
    // One block at a time is 512 KiB in 20 ms, 26 MB/s.
    let pace = clock.run(60);
    assert!((26.0..30.0).contains(&pace), "{pace} MB/s");
}

#[test]
fn load_after_a_fast_run_first_stops_it() {
    let mut run = Clock::new(RecoveryConfig::md_3_16());
    run.run(100);
    let mut leapt = Clock::new(RecoveryConfig::md_3_16());
    leapt.run(40);
    leapt.array.freeze_sync();
    leapt.run(1);
    for _ in 0..2 {
        let position = leapt.array.sync_status().expect("not done").position;
        leapt.now += Nanos::from_secs(100);
        let there = Sectors(position.0 + 100 * 102_400 * 2);
        leapt.array.leap_sync(leapt.now, there, &mut leapt.out);
    }
    leapt.array.thaw_sync(leapt.now, &mut leapt.out);
    for mut clock in [run, leapt] {
        clock.load_every(Nanos::from_millis(5));
        let paces = [0; 6].map(|_| clock.run(10));
        // The average of half a minute is far above the minimum at first.
        assert!(paces[1] + paces[2] < 0.01, "{paces:?}");
        // When it has left the marks, half a minute's minimum is due at once:
        // 31 MB.
        assert!((3.0..3.8).contains(&paces[3]), "{paces:?}");
        assert!(paces[4] + paces[5] < 0.01, "{paces:?}");
    }
}
