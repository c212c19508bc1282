//! One disk under one closed loop: the shipped strict set must behave like the
//! real disk alone, and each feature must be worth what it is said to be.

use raidlab_disk::{Command, CommandKind, Disk, DiskParameters, Feature, Preset};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

const PRESET: &str = include_str!("../../../../data/disks/wd4000fyyz.toml");
const GIB: u64 = 1 << 30;
const LINUX: Nanos = Nanos::from_micros(59);
const FREEBSD: Nanos = Nanos::from_micros(11);

fn strict() -> DiskParameters {
    Preset::parse("wd4000fyyz.toml", PRESET)
        .expect("the shipped preset is valid")
        .parameters("strict")
        .expect("it has a strict set")
        .clone()
}

/// A closed loop: each of `places` keeps one request in flight, at random
/// within a span or as a sequential stream from a start.
struct Loop {
    places: Vec<Place>,
    block: u64,
    write_percent: u32,
    turnaround: Nanos,
}

#[derive(Clone, Copy)]
enum Place {
    /// Anywhere below so many bytes.
    Within(u64),
    /// One after the other from here on.
    From(u64),
}

impl Loop {
    fn random(depth: usize, span: u64, write_percent: u32) -> Self {
        Self {
            places: vec![Place::Within(span); depth],
            block: 4096,
            write_percent,
            turnaround: LINUX,
        }
    }

    fn streams(starts: &[u64], turnaround: Nanos) -> Self {
        Self {
            places: starts.iter().map(|&start| Place::From(start)).collect(),
            block: 128 << 10,
            write_percent: 0,
            turnaround,
        }
    }

    /// Two reads to one write of 8 KiB over 8 GiB at depth 32.
    fn mixed() -> Self {
        Self {
            block: 8192,
            ..Self::random(32, 8 * GIB, 33)
        }
    }

    /// Reads and writes per second over `seconds`.
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    fn run(&self, parameters: DiskParameters, seconds: u64) -> [f64; 2] {
        let mut random = Stream::new(11);
        let mut disk = Disk::new(parameters, Nanos(1_234_567), random.fork("disk", 0));
        let mut places = self.places.clone();
        let mut issue: BinaryHeap<Reverse<(Nanos, usize)>> = (0..places.len())
            .map(|tag| Reverse((Nanos::ZERO, tag)))
            .collect();
        let mut kinds = vec![CommandKind::Read; places.len()];
        let mut done = [0_u64; 2];
        let mut completions = Vec::new();
        loop {
            let host = issue.peek().map_or(Nanos::MAX, |entry| entry.0.0);
            let event = disk.next_event().unwrap_or(Nanos::MAX);
            let now = host.min(event);
            if now > Nanos::from_secs(seconds) {
                break;
            }
            if host <= event {
                let Reverse((_, tag)) = issue.pop().expect("peeked");
                let start = match &mut places[tag] {
                    Place::Within(span) => random.below(*span / self.block) * self.block,
                    Place::From(next) => {
                        *next += self.block;
                        *next - self.block
                    }
                };
                if random.percent(self.write_percent) {
                    kinds[tag] = CommandKind::Write;
                } else {
                    kinds[tag] = CommandKind::Read;
                }
                let command = Command {
                    tag: tag as u64,
                    kind: kinds[tag],
                    start: Bytes(start).to_sectors(),
                    count: Bytes(self.block).to_sectors(),
                };
                disk.submit(now, command);
            } else {
                completions.clear();
                disk.advance(now, &mut completions);
                for completion in &completions {
                    let tag = usize::try_from(completion.tag).expect("a place");
                    done[usize::from(kinds[tag] == CommandKind::Write)] += 1;
                    issue.push(Reverse((now + self.turnaround, tag)));
                }
            }
        }
        done.map(|count| count as f64 / seconds as f64)
    }
}

#[track_caller]
fn assert_near(name: &str, actual: f64, expected: f64, percent: f64) {
    let error = (actual / expected - 1.0) * 100.0;
    assert!(
        error.abs() <= percent,
        "{name}: {actual:.1} is {error:+.1} % off {expected}"
    );
}

#[test]
fn the_strict_set_is_the_disk_of_the_logs() {
    const READS: usize = 0;
    const WRITES: usize = 1;
    // Measured: facts/wd4000fyyz.toml, which names the logs.
    let facts = [
        (
            "read 8 GiB, depth 1",
            Loop::random(1, 8 * GIB, 0),
            READS,
            172.15,
        ),
        (
            "read 8 GiB, depth 32",
            Loop::random(32, 8 * GIB, 0),
            READS,
            463.38,
        ),
        (
            "read 3 TiB, depth 1",
            Loop::random(1, 3072 * GIB, 0),
            READS,
            87.25,
        ),
        (
            "write 8 GiB, depth 1",
            Loop::random(1, 8 * GIB, 100),
            WRITES,
            491.05,
        ),
        (
            "write 8 GiB, depth 32",
            Loop::random(32, 8 * GIB, 100),
            WRITES,
            489.43,
        ),
        ("mixed, reads", Loop::mixed(), READS, 309.30),
        ("mixed, writes", Loop::mixed(), WRITES, 152.09),
        // md's jobs 1 and 5: each member gets every write.
        (
            "write 3 TiB, depth 1",
            Loop::random(1, 3072 * GIB, 100),
            WRITES,
            180.2,
        ),
    ];
    for (name, load, operation, measured) in facts {
        let iops = load.run(strict(), 300)[operation];
        assert_near(name, iops, measured, 3.0);
    }
    let freebsd = Loop {
        turnaround: FREEBSD,
        ..Loop::random(1, 8 * GIB, 0)
    };
    assert_near(
        "read, FreeBSD",
        freebsd.run(strict(), 300)[READS],
        174.27,
        3.0,
    );
}

#[test]
fn a_stream_runs_at_the_rate_of_the_platters() {
    // KiB/s at places of the disk: the rate curve of the preset.
    for (start, rate) in [
        (0, 173_900.0),
        (1666 * GIB, 151_500.0),
        (3040 * GIB, 119_450.0),
    ] {
        for write_percent in [0, 100] {
            let stream = Loop {
                write_percent,
                ..Loop::streams(&[start], LINUX)
            };
            let [reads, writes] = stream.run(strict(), 20);
            assert_near("stream", (reads + writes) * 128.0, rate, 1.0);
        }
    }
}

/// What each feature is worth: the rate without it against the rate with it.
#[test]
fn each_feature_is_worth_what_is_said() {
    let deep = || Loop::random(32, 8 * GIB, 0);
    let wide = |depth| Loop::random(depth, 3072 * GIB, 0);
    let near_pair = |turnaround| Loop::streams(&[2 * GIB, 6 * GIB], turnaround);
    let cases = [
        // Served in order of arrival a deep queue is worth nothing.
        (Feature::Rpo, deep(), 0.33, 0.43),
        (Feature::Rpo, wide(32), 0.45, 0.6),
        // Rotation is half of the gain, more where seeks are short.
        (Feature::Rotation, deep(), 0.38, 0.5),
        (Feature::Rotation, wide(32), 0.75, 0.92),
        // Perfect prediction is far too good.
        (Feature::Margin, deep(), 1.3, 1.65),
        (Feature::Margin, wide(32), 1.04, 1.2),
        // Overhead matters little, and least where the queue is never empty.
        (Feature::Overlap, wide(4), 0.95, 0.995),
        // One revolution for each request.
        (Feature::ReadAhead, Loop::streams(&[0], LINUX), 0.07, 0.1),
        // Near pairs of streams live on the slack.
        (Feature::Slack, near_pair(LINUX), 0.1, 0.7),
        // The short turnaround of FreeBSD profits from the arm's patience.
        (Feature::FollowOnWait, near_pair(FREEBSD), 0.75, 0.95),
        // A write-through is as slow as a read.
        (
            Feature::WriteCache,
            Loop::random(1, 8 * GIB, 100),
            0.3,
            0.42,
        ),
        (Feature::SeparatePools, Loop::mixed(), 1.02, 1.15),
    ];
    for (feature, load, low, high) in cases {
        let [with, without] = [strict(), strict().without(feature)]
            .map(|parameters| load.run(parameters, 120).iter().sum::<f64>());
        let ratio = without / with;
        assert!(
            (low..=high).contains(&ratio),
            "without {}: {without:.1} of {with:.1}, ratio {ratio:.3}, expected {low} to {high}",
            feature.name()
        );
    }
}

#[test]
fn sectors_have_a_place() {
    let disk = Disk::new(strict(), Nanos::ZERO, Stream::new(1));
    assert_eq!(disk.surface().capacity(), Sectors(7_814_037_168));
}
