//! What holds for every disk under every mix of commands, at any timing and
//! without any of its features.

use proptest::prelude::*;
use raidlab_disk::{Command, CommandKind, Completion, Disk, DiskParameters, Feature, Preset};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};

const PHASE: Nanos = Nanos(1_234_567);

fn preset(set: &str) -> DiskParameters {
    let text = include_str!("../../../../data/disks/wd4000fyyz.toml");
    Preset::parse("wd4000fyyz.toml", text)
        .expect("the shipped preset is valid")
        .parameters(set)
        .expect("a shipped set")
        .clone()
}

/// A command and the pause before it.
#[derive(Debug, Clone)]
struct Order {
    pause: Nanos,
    kind: CommandKind,
    start: u64,
    count: u64,
}

/// When a command came and when it was done.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Life {
    submitted: Nanos,
    completed: Nanos,
}

/// Moves the disk to its next event and checks that time goes on.
fn step(disk: &mut Disk, now: &mut Nanos, completions: &mut Vec<Completion>) {
    let next = disk.next_event().expect("commands in flight need an event");
    assert!(next >= *now, "an event at {next} in the past of {now}");
    *now = next;
    disk.advance(*now, completions);
    assert!(disk.next_event().is_none_or(|later| later > *now));
}

/// Runs the script to the end; the tag is the place in it. Panics where a
/// command completes twice or never.
fn run(disk: Disk, script: &[Order]) -> Vec<Life> {
    run_beside(disk, script, u64::MAX)
}

/// The same beside a command with the tag `other`, which does not count.
fn run_beside(mut disk: Disk, script: &[Order], other: u64) -> Vec<Life> {
    let mut lives: Vec<Option<Life>> = vec![None; script.len()];
    let mut submitted = Vec::new();
    let mut now = Nanos::ZERO;
    let mut completions = Vec::new();
    let mut due = Nanos::ZERO;
    let mut left = script.len();
    while left > 0 {
        let arrival = script.get(submitted.len()).map(|order| due + order.pause);
        match arrival {
            Some(at) if disk.next_event().is_none_or(|event| at < event) => {
                now = at;
                due = at;
                let order = &script[submitted.len()];
                disk.submit(
                    now,
                    Command {
                        tag: submitted.len() as u64,
                        kind: order.kind,
                        start: Sectors(order.start),
                        count: Sectors(order.count),
                    },
                );
                submitted.push(now);
            }
            _ => step(&mut disk, &mut now, &mut completions),
        }
        completions.retain(|completion| completion.tag != other);
        for Completion { tag } in completions.drain(..) {
            let tag = usize::try_from(tag).expect("a tag of the script");
            let life = Life {
                submitted: submitted[tag],
                completed: now,
            };
            assert_eq!(lives[tag].replace(life), None, "{tag} completed twice");
            left -= 1;
        }
    }
    // What is still dirty is written; then nothing is left to do.
    while !disk.is_quiet() {
        step(&mut disk, &mut now, &mut completions);
    }
    assert_eq!(completions, [], "completed after its completion");
    lives.into_iter().flatten().collect()
}

/// Mostly in few places, so that commands meet each other in the cache.
fn orders(kinds: Vec<CommandKind>, length: usize) -> impl Strategy<Value = Vec<Order>> {
    let start = prop_oneof![
        0_u64..2_000,
        (0_u64..40).prop_map(|block| 1_000_000 + block * 256),
        0_u64..7_814_000_000,
    ];
    let pause = prop_oneof![Just(0), 0_u64..100_000, 0_u64..30_000_000];
    let order = (pause, prop::sample::select(kinds), start, 1_u64..2_048);
    let order = order.prop_map(|(pause, kind, start, count)| Order {
        pause: Nanos(pause),
        kind,
        start,
        count,
    });
    prop::collection::vec(order, 1..length)
}

fn every_kind() -> Vec<CommandKind> {
    use CommandKind::{Flush, Read, Write, WriteThrough};
    vec![Read, Read, Read, Write, Write, WriteThrough, Flush]
}

/// Either set, without any of its features, with any window.
fn disks() -> impl Strategy<Value = Disk> {
    let set = prop::sample::select(vec!["strict", "joint"]);
    let features: Vec<Feature> = Feature::ALL.iter().map(|entry| entry.0).collect();
    let without = prop::sample::subsequence(features, 0..=3);
    (set, without, 1_usize..40, any::<u64>()).prop_map(|(set, without, window, seed)| {
        let mut parameters = preset(set);
        parameters.write_window = window;
        let parameters = without
            .into_iter()
            .fold(parameters, DiskParameters::without);
        Disk::new(parameters, PHASE, Stream::new(seed))
    })
}

/// From the cache, where the first read has left it, or from a dirty write.
#[test]
fn a_cached_read_takes_overhead_and_interface() {
    for (kind, pause) in [(CommandKind::Read, 100_000_000), (CommandKind::Write, 1)] {
        let script = [(kind, 0), (CommandKind::Read, pause)].map(|(kind, pause)| Order {
            pause: Nanos(pause),
            kind,
            start: 4_096,
            count: 600,
        });
        let mut disk = Disk::new(preset("strict"), PHASE, Stream::new(1));
        // The write stays dirty behind another one.
        disk.submit(
            Nanos::ZERO,
            Command {
                tag: 2,
                kind: CommandKind::Write,
                start: Sectors(9_000_000),
                count: Sectors(8),
            },
        );
        let lives = run_beside(disk, &script, 2);
        // 600 sectors at 600 MB/s are 512 us; the bus may still be busy with
        // the write itself.
        let took = lives[1].completed - lives[1].submitted;
        let least = Nanos::from_micros(50 + 512);
        assert!(took >= least && took < least * 2, "{kind:?}: {took}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 400,
        // Nothing is written beside the sources.
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// The longest move (15 ms), a revolution, jitter, overhead and a
    /// mebibyte at the inner rim (11 ms) are below 40 ms: however the
    /// commands are ordered, all are done after that much for each.
    #[test]
    fn everything_completes_once_and_in_time(
        disk in disks(),
        script in orders(every_kind(), 120),
    ) {
        let lives = run(disk, &script);
        prop_assert_eq!(lives.len(), script.len());
        let last = lives.iter().map(|life| life.submitted).max().expect("one at least");
        let limit = last + Nanos::from_millis(40) * (script.len() as u64 + 1);
        for life in &lives {
            prop_assert!(life.completed >= life.submitted && life.completed < limit);
        }
    }

    #[test]
    fn equal_runs_are_equal(disk in disks(), script in orders(every_kind(), 80)) {
        prop_assert_eq!(run(disk.clone(), &script), run(disk, &script));
    }

    /// A write-through completes at the moment when its last sector has
    /// passed under the head, and not before the interface has brought it.
    #[test]
    fn a_write_through_ends_under_the_head(
        disk in disks(),
        script in orders(every_kind(), 60),
    ) {
        let revolution = disk.parameters().medium.platters().unwrap().revolution.0;
        let surface = disk.surface().clone();
        for (order, life) in script.iter().zip(run(disk, &script)) {
            if order.kind != CommandKind::WriteThrough {
                continue;
            }
            let [start, end] = [order.start, order.start + order.count]
                .map(|sector| surface.position(sector));
            prop_assert_eq!((life.completed.0 + PHASE.0) % revolution, end % revolution);
            prop_assert!((life.completed - life.submitted).0 >= end - start);
        }
    }

    /// Reads too far apart for any read-ahead come from the platters: each
    /// takes at least the time in which its sectors pass under the head, and
    /// ends when the last one has passed.
    #[test]
    fn a_read_from_the_platters_takes_their_time(
        disk in disks(),
        places in prop::sample::subsequence((0_u64..3_000).collect::<Vec<_>>(), 1..60).prop_shuffle(),
        count in 1_u64..2_048,
        pause in 0_u64..20_000_000,
    ) {
        let script: Vec<Order> = places
            .iter()
            .map(|place| Order {
                pause: Nanos(pause),
                kind: CommandKind::Read,
                start: place * 2_000_000,
                count,
            })
            .collect();
        let revolution = disk.parameters().medium.platters().unwrap().revolution.0;
        let surface = disk.surface().clone();
        for (order, life) in script.iter().zip(run(disk, &script)) {
            let [start, end] = [order.start, order.start + order.count]
                .map(|sector| surface.position(sector));
            prop_assert_eq!((life.completed.0 + PHASE.0) % revolution, end % revolution);
            prop_assert!((life.completed - life.submitted).0 >= end - start);
        }
    }

    /// With every write acknowledged before the flush, nothing is dirty when
    /// the flush is done; and an idle, clean disk flushes at once.
    #[test]
    fn a_flush_leaves_nothing_dirty(
        mut disk in disks(),
        script in orders(vec![CommandKind::Write, CommandKind::WriteThrough], 60),
    ) {
        let mut now = Nanos::ZERO;
        let mut completions = Vec::new();
        for (tag, order) in (0..).zip(&script) {
            let at = now + order.pause;
            while disk.next_event().is_some_and(|event| event <= at) {
                step(&mut disk, &mut now, &mut completions);
            }
            now = at;
            disk.submit(now, Command {
                tag,
                kind: order.kind,
                start: Sectors(order.start),
                count: Sectors(order.count),
            });
        }
        while completions.len() < script.len() {
            step(&mut disk, &mut now, &mut completions);
        }
        for clean in [false, true] {
            completions.clear();
            let submitted = now;
            disk.submit(now, Command {
                tag: 1_000,
                kind: CommandKind::Flush,
                start: Sectors::ZERO,
                count: Sectors::ZERO,
            });
            while completions.is_empty() {
                step(&mut disk, &mut now, &mut completions);
            }
            prop_assert!(disk.is_quiet());
            if clean {
                prop_assert_eq!(now - submitted, disk.parameters().overhead_cached);
            }
        }
    }
}
