//! BFQ by hand and against what it promises, before a disk that is a number of milliseconds.

use super::process_queue::{Next, ProcessQueue, nearer};
use super::{Bfq, Submitter};
use crate::command::{Command, CommandKind, Completion};
use crate::medium::constant;
use crate::queue::{Order, QueueRules};
use crate::shared::HostQueue;
use crate::{Disk, DiskParameters, MediumParameters};
use proptest::prelude::*;
use raidlab_random::Stream;
use raidlab_units::{BytesPerSecond, Nanos, Sectors};

const MS: Nanos = Nanos::from_millis(1);

/// A queue before a disk that takes one command at a time, a millisecond each. It does not turn,
/// and is no flash either: what turns is told to the scheduler by hand.
fn queue(tags: usize, rotational: bool) -> HostQueue {
    let medium = MediumParameters::Constant(constant::Parameters { access: MS });
    let parameters = DiskParameters::uniform(Sectors(1 << 30), BytesPerSecond(1e11), medium);
    let disk = Disk::new(parameters, Nanos::ZERO, Stream::new(0));
    let rules = QueueRules {
        tags,
        order: Order::Bfq,
        nvme_order: Order::Bfq,
        largest: Sectors(2560),
        turn: Nanos::ZERO,
    };
    let mut queue = HostQueue::new(disk.into(), rules);
    *queue.bfq() = Bfq::new(rotational);
    queue
}

/// A process that has so many requests at a time.
#[derive(Debug, Clone, Copy)]
struct Load {
    process: u32,
    kind: CommandKind,
    sync: bool,
    depth: usize,
    sectors: u64,
    /// Whether each of its requests lies a little behind the one before.
    streams: bool,
    /// When it begins, and how long it thinks after an answer.
    begins: Nanos,
    thinks: Nanos,
}

const READER: Load = Load {
    process: 0,
    kind: CommandKind::Read,
    sync: true,
    depth: 1,
    sectors: 8,
    streams: false,
    begins: Nanos::ZERO,
    thinks: Nanos(10_000),
};

/// What several loads on one disk got.
#[derive(Debug, Default)]
struct Outcome {
    /// Sectors that each got, from half of the time on.
    got: Vec<u64>,
    /// When each command ended, and whose it was, by place.
    ended: Vec<(Nanos, usize)>,
    /// The longest time for which something waited and the disk had nothing, from half of the time on.
    idle: Nanos,
}

/// Runs the loads beside each other until this time.
fn run(queue: &mut HostQueue, loads: &[Load], end: Nanos) -> Outcome {
    let mut outcome = Outcome {
        got: vec![0; loads.len()],
        ..Outcome::default()
    };
    let mut random = Stream::new(1);
    let mut places: Vec<u64> = (0..loads.len() as u64)
        .map(|load| (load + 1) << 24)
        .collect();
    // What is to be submitted: when, and by whom.
    let mut due: Vec<(Nanos, usize)> = Vec::new();
    for (index, load) in loads.iter().enumerate() {
        due.extend(std::iter::repeat_n((load.begins, index), load.depth));
    }
    let mut owners: Vec<usize> = Vec::new();
    let mut completions: Vec<Completion> = Vec::new();
    let mut idle_since = None;
    loop {
        let first = due.iter().map(|due| due.0).min();
        let Some(now) = first.into_iter().chain(queue.next_event()).min() else {
            return outcome;
        };
        if now > end {
            return outcome;
        }
        queue.advance(now, &mut completions);
        for one in completions.drain(..) {
            let index = owners[one.tag as usize];
            outcome.ended.push((now, index));
            if now > Nanos(end.0 / 2) {
                outcome.got[index] += loads[index].sectors;
            }
            due.push((now + loads[index].thinks, index));
        }
        while let Some(next) = due.iter().position(|due| due.0 <= now) {
            let (_, index) = due.remove(next);
            let load = loads[index];
            let start = match load.streams {
                true => places[index] + 100,
                false => random.below(1 << 20) * 1000,
            };
            places[index] = start + load.sectors;
            let command = Command {
                tag: owners.len() as u64,
                kind: load.kind,
                start: Sectors(start),
                count: Sectors(load.sectors),
            };
            owners.push(index);
            let from = Submitter {
                process: load.process,
                sync: load.sync,
                alone: false,
                first: false,
            };
            queue.submit_from(now, command, from);
        }
        let (with_disk, waiting) = queue.queued();
        let is_idle = with_disk == 0 && waiting > 0 && now > Nanos(end.0 / 2);
        let since = idle_since.filter(|_| is_idle).unwrap_or(now);
        idle_since = is_idle.then_some(since);
        outcome.idle = outcome.idle.max(now - since);
    }
}

#[test]
fn the_nearest_request_is_next_and_the_way_back_counts_twice() {
    let at = |tag, start| {
        Some(Next {
            tag,
            start,
            count: 8,
        })
    };
    let tag = |one, other, from| nearer(one, other, from).map(|next| next.tag);
    assert_eq!(tag(at(0, 1000), None, 0), Some(0));
    assert_eq!(tag(None, at(1, 1000), 0), Some(1));
    // 100 behind, 60 before, 40 before.
    assert_eq!(tag(at(0, 1100), at(1, 940), 1000), Some(0));
    assert_eq!(tag(at(0, 1100), at(1, 960), 1000), Some(1));
    // As far: the one behind.
    assert_eq!(tag(at(0, 950), at(1, 1100), 1000), Some(1));
    // More than 16 MiB back comes after all others, and then from the first sector on.
    let far = 1_000_000;
    assert_eq!(tag(at(0, 10), at(1, 2 * far), far), Some(1));
    assert_eq!(tag(at(0, 20), at(1, 10), far), Some(1));
}

/// Two that come together are one on flash from the start, and on a hard disk after 0.6 s if they
/// seek; who comes a second later is another. Told by whose requests the disk has at once: one
/// queue sends all that it has.
#[test]
fn who_comes_together_is_one_queue() {
    let second = Load {
        process: 1,
        ..READER
    };
    let late = Load {
        begins: MS * 1000,
        ..second
    };
    let queues = |rotational, loads: [Load; 2], end: Nanos| {
        let mut queue = queue(32, rotational);
        run(&mut queue, &loads, end);
        let bfq = queue.bfq();
        let used = bfq.queues.iter().filter(|queue| queue.processes > 0);
        used.count()
    };
    assert_eq!(queues(false, [READER, second], MS * 100), 1);
    assert_eq!(queues(false, [READER, late], MS * 1500), 2);
    assert_eq!(queues(true, [READER, second], MS * 500), 2);
    assert_eq!(queues(true, [READER, second], MS * 1500), 1);
    assert_eq!(queues(true, [READER, late], MS * 3000), 2);
}

/// Processes that come apart get equal parts of the sectors, however many requests they have at a
/// time; the shared queue, which pays three times and for its time where that is more, about a
/// third of that.
#[test]
fn streams_get_equal_parts_and_what_nobody_waits_for_gets_a_third() {
    let stream = |process: u32, depth| Load {
        process,
        sectors: 64,
        streams: true,
        depth,
        begins: MS * 1000 * u64::from(process),
        ..READER
    };
    let loads = [stream(0, 3), stream(1, 5), stream(2, 8)];
    let outcome = run(&mut queue(8, true), &loads, MS * 100_000);
    let all: u64 = outcome.got.iter().sum();
    for got in &outcome.got {
        let part = *got as f64 / all as f64;
        assert!((0.32..0.35).contains(&part), "{:?}", outcome.got);
    }
    let shared = Load {
        kind: CommandKind::Write,
        sync: false,
        ..stream(0, 7)
    };
    let outcome = run(&mut queue(8, true), &[shared, stream(1, 7)], MS * 100_000);
    let ratio = outcome.got[1] as f64 / outcome.got[0] as f64;
    assert!((2.6..3.4).contains(&ratio), "{:?}", outcome.got);
}

/// A stream with one request at a time has the disk kept idle for it beside one that seeks: turns
/// change now and then, and not with each request. Without idling each would change.
#[test]
fn the_disk_is_kept_idle_for_a_stream() {
    let stream = Load {
        streams: true,
        sectors: 256,
        ..READER
    };
    let seeker = Load {
        process: 1,
        depth: 4,
        begins: MS * 1000,
        ..READER
    };
    let outcome = run(&mut queue(4, true), &[stream, seeker], MS * 60_000);
    let changes = outcome.ended.windows(2).filter(|two| two[0].1 != two[1].1);
    let changes = changes.count() as f64 / outcome.ended.len() as f64;
    assert!(changes < 0.1, "{changes}");
}

/// A queue that begins beside one that has been at work for a minute is raised, and gets nearly
/// all of the disk; it is no longer when it has had 120000 sectors.
#[test]
fn who_begins_is_raised_for_a_while() {
    let old = Load {
        depth: 6,
        streams: true,
        sectors: 64,
        ..READER
    };
    let new = Load {
        process: 1,
        begins: MS * 60_000,
        ..old
    };
    let outcome = run(&mut queue(8, true), &[old, new], MS * 70_000);
    let of = |from: u64, to: u64| {
        let within = outcome
            .ended
            .iter()
            .filter(|ended| ended.0 > MS * from && ended.0 <= MS * to);
        let (new, all) = within.fold((0, 0), |(new, all), ended| (new + ended.1, all + 1));
        new as f64 / f64::from(all)
    };
    // 120000 sectors are 1875 requests, and so 1.9 s.
    assert!(of(60_000, 61_800) > 0.9, "{}", of(60_000, 61_800));
    let after = of(63_000, 70_000);
    assert!((0.4..0.6).contains(&after), "{after}");
}

/// By hand: 200000 sectors in a tenth of a second are too many for soft real-time until 28.57 s
/// have passed, and while it is that, they do not end it.
#[test]
fn a_raised_queue_that_runs_empty_becomes_soft_real_time() {
    let mut queue = ProcessQueue::new(true, Nanos::ZERO, 16384);
    let duration = MS * 3000;
    assert!(queue.raise_at_start(MS, true, duration));
    assert_eq!(queue.weight(), 40 * 30);
    assert!(
        !queue.raise_at_start(MS * 10, false, duration),
        "it is raised"
    );
    assert_eq!(queue.weight(), 40 * 3000);
    queue.got(200_000);
    queue.lower(MS * 200, duration);
    assert_eq!(queue.weight(), 40 * 3000);
    // After 300 ms it is interactive as before, and has had too much for that.
    queue.lower(MS * 400, duration);
    assert_eq!(queue.weight(), 40);
    queue.find_soft(MS * 500);
    assert!(!queue.raise_at_start(MS * 28_500, false, duration));
    queue.got(200_000);
    queue.find_soft(MS * 28_500);
    assert!(!queue.raise_at_start(MS * 57_000, false, duration));
    assert!(queue.raise_at_start(MS * 57_200, false, duration));
    assert_eq!(queue.weight(), 40 * 3000);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Whatever processes do: all of their requests end, a disk with requests before it is idle
    /// for no longer than the longest idling and a look after it, and what the scheduler counts comes out even.
    #[test]
    fn nothing_is_lost_and_the_disk_is_kept_idle_for_a_moment_at_most(
        rotational in any::<bool>(),
        tags in 1_usize..40,
        script in prop::collection::vec(
            (0_u8..4, 1_usize..20, 1_u64..300, any::<bool>(), 0_u64..3000, 0_u64..12),
            1..6,
        ),
    ) {
        let loads: Vec<Load> = (0..).zip(&script).map(|(process, it)| Load {
            process,
            kind: if it.0 < 2 { CommandKind::Read } else { CommandKind::Write },
            sync: it.0 < 3,
            depth: it.1,
            sectors: it.2,
            streams: it.3,
            begins: MS * it.4,
            thinks: MS * it.5,
        }).collect();
        let mut queue = queue(tags, rotational);
        let outcome = run(&mut queue, &loads, MS * 6000);
        prop_assert!(outcome.idle <= MS * 23, "{}", outcome.idle);
        // No more comes: all that was submitted ends.
        let now = MS * 6001;
        queue.exit(now, |_| true);
        let mut completions = Vec::new();
        let mut last = now;
        while queue.queued() != (0, 0) {
            let Some(next) = queue.next_event() else { break };
            queue.advance(next.max(last), &mut completions);
            last = next.max(last);
        }
        prop_assert_eq!(queue.queued(), (0, 0));
        let bfq = queue.bfq();
        prop_assert_eq!((bfq.queued, bfq.writes, bfq.with_disk.len()), (0, 0, 0));
        prop_assert!(bfq.queues.iter().all(|queue| queue.queued == 0 && queue.with_disk == 0));
    }
}
