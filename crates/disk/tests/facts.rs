//! One disk under one closed loop: the shipped preset must behave like the
//! real disk alone, and each feature must be worth what it is said to be.

use raidlab_disk::{Command, CommandKind, Disk, DiskParameters, Feature, Preset};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const PRESET: &str = include_str!("../../../disks/wd4000fyyz.toml");

fn strict() -> DiskParameters {
    Preset::parse("wd4000fyyz.toml", PRESET)
        .expect("the shipped preset is valid")
        .parameters("strict")
        .expect("it has a strict set")
        .clone()
}

/// A closed loop of `depth` requests of `block` bytes over `span` bytes.
struct Loop {
    depth: u64,
    block: u64,
    span: u64,
    write_percent: u32,
    sequential: bool,
    turnaround: Nanos,
    duration: Nanos,
}

impl Loop {
    fn random(depth: u64, span: u64) -> Self {
        Self {
            depth,
            block: 4096,
            span,
            write_percent: 0,
            sequential: false,
            turnaround: Nanos::from_micros(59),
            duration: Nanos::from_secs(120),
        }
    }

    /// Reads and writes per second.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    fn run(&self, parameters: DiskParameters) -> (f64, f64) {
        let mut random = Stream::new(11);
        let mut disk = Disk::new(parameters, Nanos(1_234_567), random.fork("disk", 0));
        let mut issue: BinaryHeap<Reverse<(u64, u64)>> =
            (0..self.depth).map(|tag| Reverse((0, tag))).collect();
        let mut writes = vec![false; usize::try_from(self.depth).expect("small")];
        let (mut done, mut next) = ([0_u64; 2], 0);
        let mut completions = Vec::new();
        loop {
            let host = issue.peek().map_or(u64::MAX, |entry| entry.0.0);
            let event = disk.next_event().map_or(u64::MAX, |time| time.0);
            let now = host.min(event);
            if now > self.duration.0 {
                break;
            }
            if host <= event {
                let Reverse((_, tag)) = issue.pop().expect("peeked");
                let block = if self.sequential {
                    next += 1;
                    next - 1
                } else {
                    random.below(self.span / self.block)
                };
                let write = random.percent(self.write_percent);
                writes[usize::try_from(tag).expect("small")] = write;
                disk.submit(
                    Nanos(now),
                    Command {
                        tag,
                        kind: if write {
                            CommandKind::Write
                        } else {
                            CommandKind::Read
                        },
                        start: Bytes(block * self.block).to_sectors(),
                        count: Bytes(self.block).to_sectors(),
                    },
                );
            } else {
                completions.clear();
                disk.advance(Nanos(now), &mut completions);
                for completion in &completions {
                    let write = writes[usize::try_from(completion.tag).expect("small")];
                    done[usize::from(write)] += 1;
                    issue.push(Reverse((now + self.turnaround.0, completion.tag)));
                }
            }
        }
        let seconds = self.duration.as_secs_f64();
        (done[0] as f64 / seconds, done[1] as f64 / seconds)
    }
}

#[track_caller]
fn assert_near(actual: f64, expected: f64, percent: f64) {
    let error = (actual / expected - 1.0) * 100.0;
    assert!(
        error.abs() <= percent,
        "{actual:.1} is {error:+.1} % off {expected}"
    );
}

const GIB: u64 = 1 << 30;

#[test]
fn random_reads_alone() {
    let (one, _) = Loop::random(1, 8 * GIB).run(strict());
    let (deep, _) = Loop::random(32, 8 * GIB).run(strict());
    let (wide, _) = Loop::random(1, 3072 * GIB).run(strict());
    eprintln!("8g qd1 {one} qd32 {deep} 3t qd1 {wide}");
    let (wide32, _) = Loop::random(32, 3072 * GIB).run(strict());
    let mut l = Loop::random(1, 8 * GIB);
    l.write_percent = 100;
    let w1 = l.run(strict());
    l.depth = 32;
    let w32 = l.run(strict());
    l.write_percent = 33;
    l.block = 8192;
    let m = l.run(strict());
    let mut l = Loop::random(1, 3072 * GIB);
    l.write_percent = 100;
    let w3 = l.run(strict());
    eprintln!("3t qd32 {wide32} w1 {w1:?} w32 {w32:?} mixed {m:?} w3t {w3:?}");
    assert_near(one, 172.2, 5.0);
    assert_near(deep, 463.4, 5.0);
    assert_near(wide, 87.25, 5.0);
}

#[test]
fn a_stream_runs_at_the_rate_of_the_platters() {
    for (write_percent, block, expected) in [(0, 131_072, 173_630.0), (100, 131_072, 173_297.0)] {
        let (reads, writes) = Loop {
            depth: 1,
            block,
            span: 0,
            write_percent,
            sequential: true,
            turnaround: Nanos::from_micros(59),
            duration: Nanos::from_secs(20),
        }
        .run(strict());
        assert_near((reads + writes) * 128.0, expected, 1.0);
    }
}

#[test]
fn each_feature_is_worth_something() {
    let deep = Loop::random(32, 8 * GIB);
    let (with, _) = deep.run(strict());
    let (fifo, _) = deep.run(strict().without(Feature::Rpo));
    let (seek_only, _) = deep.run(strict().without(Feature::Rotation));
    let (ideal, _) = deep.run(strict().without(Feature::Margin));
    assert!(fifo < with * 0.5 && seek_only < with * 0.6 && ideal > with * 1.2);
}

#[test]
fn sectors_have_a_place() {
    let disk = Disk::new(strict(), Nanos::ZERO, Stream::new(1));
    assert_eq!(disk.surface().capacity(), Sectors(7_814_037_168));
}
