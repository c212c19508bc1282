//! Orders by hand, on a disk that needs a millisecond for each command.

use super::{Order, QueueRules, Submitter};
use crate::medium::constant;
use crate::shared::{Attached, HostQueue, Region, Sharing, ports};
use crate::{Command, CommandKind, Completion, Disk, DiskParameters, MediumParameters, Preset};
use proptest::prelude::*;
use raidlab_random::Stream;
use raidlab_units::{BytesPerSecond, Nanos, Sectors};

fn disk() -> Disk {
    let access = Nanos(1_000_000);
    let medium = MediumParameters::Constant(constant::Parameters { access });
    let parameters = DiskParameters::uniform(Sectors(1 << 30), BytesPerSecond(1e11), medium);
    Disk::new(parameters, Nanos::ZERO, Stream::new(0))
}

fn rules(tags: usize, order: Order) -> QueueRules {
    QueueRules {
        tags,
        order,
        nvme_order: order,
        largest: Sectors(64),
        turn: Nanos::ZERO,
    }
}

fn queue(tags: usize, order: Order) -> HostQueue {
    HostQueue::new(disk().into(), rules(tags, order))
}

/// The queues before two parts of one disk, the second of which begins at sector 1000.
fn parts(tags: usize, order: Order) -> Vec<HostQueue> {
    let regions = [0, 1000].map(|start| Region {
        disk: 0,
        start: Sectors(start),
    });
    let ports = ports(vec![disk()], &regions, Sharing::Arm);
    let ports = ports.into_iter().map(Attached::Port);
    ports
        .map(|port| HostQueue::new(port, rules(tags, order)))
        .collect()
}

/// Linux gives a disk one set of tags and one scheduler, whatever its partitions are: who came
/// first is first, or lies first, in whichever part.
#[test]
fn parts_of_a_disk_share_its_tags_and_its_scheduler() {
    use CommandKind::Read;
    for (order, expected) in [
        (
            Order::None,
            [(0, 0), (1, 1), (0, 2), (1, 3), (0, 4), (1, 5)],
        ),
        // From sector 1008 on: 1500, then the oldest, 500, and of 100 and 1100 the latter.
        (
            Order::MqDeadline,
            [(0, 0), (1, 1), (1, 3), (0, 2), (1, 5), (0, 4)],
        ),
    ] {
        let mut parts = parts(2, order);
        for (tag, start) in (0..).zip([0, 0, 500, 500, 100, 100]) {
            let part = &mut parts[tag % 2];
            part.submit(Nanos::ZERO, command(tag as u64, Read, start));
        }
        let of = |parts: &[HostQueue]| [parts[0].queued(), parts[1].queued()];
        assert_eq!(of(&parts), [(1, 2), (1, 2)], "{order:?}");
        assert_eq!(parts[0].overflows() + parts[1].overflows(), 4);
        assert_eq!(parts[1].order(), order);
        let mut ended = Vec::new();
        while let Some(next) = parts.iter().filter_map(HostQueue::next_event).min() {
            for (number, part) in parts.iter_mut().enumerate() {
                let mut completions = Vec::new();
                part.advance(next, &mut completions);
                ended.extend(completions.iter().map(|one| (number, one.tag)));
            }
        }
        assert_eq!(of(&parts), [(0, 0), (0, 0)]);
        assert_eq!(ended, expected, "{order:?}");
    }
}

fn command(tag: u64, kind: CommandKind, start: u64) -> Command {
    Command {
        tag,
        kind,
        start: Sectors(start),
        count: Sectors(if kind == CommandKind::Flush { 0 } else { 8 }),
    }
}

/// The tags in the order of their completion, all submitted at once.
fn order(mut queue: HostQueue, commands: &[(CommandKind, u64)]) -> Vec<u64> {
    for (tag, &(kind, start)) in (0..).zip(commands) {
        queue.submit(Nanos::ZERO, command(tag, kind, start));
    }
    let mut completions = Vec::new();
    while let Some(next) = queue.next_event() {
        queue.advance(next, &mut completions);
    }
    assert_eq!(queue.queued(), (0, 0));
    completions.into_iter().map(|one| one.tag).collect()
}

#[test]
fn what_waits_goes_in_the_order_that_was_asked_for() {
    use CommandKind::Read;
    let commands = [500, 900, 100, 700, 600].map(|start| (Read, start));
    assert_eq!(order(queue(1, Order::None), &commands), [0, 1, 2, 3, 4]);
    let twice = [500, 900, 300, 700, 600, 400].map(|start| (Read, start));
    // A sweep through what waits, from the first sector on.
    assert_eq!(order(queue(1, Order::Sweep), &twice), [0, 2, 5, 4, 3, 1]);
    // The scheduler holds one request beside the disk's one.
    assert_eq!(
        order(queue(1, Order::MqDeadline), &commands),
        [0, 1, 2, 3, 4]
    );
    let commands = [500, 501, 502, 503, 900, 100, 700, 600].map(|start| (Read, start * 100));
    assert_eq!(
        order(queue(4, Order::MqDeadline), &commands),
        [0, 1, 2, 3, 7, 6, 4, 5]
    );
}

#[test]
fn a_flush_goes_first() {
    use CommandKind::{Flush, Read};
    let commands = [(Read, 500), (Read, 900), (Flush, 0), (Read, 100)];
    for (order_of, _) in Order::ALL {
        let tags = order(queue(1, order_of), &commands);
        assert_eq!(tags[..2], [0, 2], "{order_of:?}");
    }
}

/// What lies between two commands makes one of the three, in the place of the oldest; where eight
/// requests are held, there is room for one more then. Kyber merges with the first of them alone.
#[test]
fn what_comes_between_two_that_wait_joins_them() {
    use CommandKind::Read;
    let filled = [100, 200, 300, 400].map(|start| (Read, start * 1000));
    let touching = [(Read, 1000), (Read, 90_000), (Read, 1016), (Read, 1008)];
    let all = [&filled[..], &touching[..]].concat();
    for (order_of, waiting) in [(Order::MqDeadline, 2), (Order::Bfq, 2), (Order::Kyber, 3)] {
        let mut full = queue(4, order_of);
        for (tag, &(kind, start)) in (0..).zip(&all) {
            full.submit(Nanos::ZERO, command(tag, kind, start));
        }
        assert_eq!(full.queued().1, waiting, "{order_of:?}");
        let mut tags = order(queue(4, order_of), &all);
        let of_three = |tag: &u64| [4, 6, 7].contains(tag);
        let first = tags.iter().position(of_three).unwrap();
        if waiting == 2 {
            assert!(
                tags[first..first + 3].iter().all(of_three),
                "{order_of:?}: {tags:?}"
            );
        }
        tags.sort_unstable();
        assert_eq!(tags, [0, 1, 2, 3, 4, 5, 6, 7], "{order_of:?}");
    }
    // Eight requests are held, so the fifth that waits is blocked until two are one.
    let mut full = queue(4, Order::MqDeadline);
    let far = [(Read, 500_000), (Read, 600_000)];
    for (tag, &(kind, start)) in (0..).zip(filled.iter().chain(&touching[..3]).chain(&far)) {
        full.submit(Nanos::ZERO, command(tag, kind, start));
    }
    assert_eq!(full.waiting.len(), 4);
    assert_eq!(full.sleepers.waiting.len(), 1);
    full.submit(Nanos::ZERO, command(9, Read, 1008));
    assert_eq!((full.waiting.len(), full.sleepers.waiting.len()), (4, 0));
    assert_eq!(full.waiting[0].command.count, Sectors(24));
}

/// What a flush follows, and what goes through the cache, stays by itself.
#[test]
fn a_write_that_is_to_be_durable_is_merged_with_no_other_one() {
    use CommandKind::{Write, WriteThrough};
    for order_of in [Order::MqDeadline, Order::Kyber] {
        for (kind, alone, waiting) in [
            (Write, false, 1),
            (Write, true, 2),
            (WriteThrough, false, 3),
        ] {
            let mut queue = queue(4, order_of);
            for (tag, place) in (0..).zip([100, 200, 300, 400]) {
                queue.submit(Nanos::ZERO, command(tag, Write, place * 1000));
            }
            for (tag, place) in (4..).zip([1000, 1008, 1016]) {
                let from = Submitter {
                    alone: alone && place == 1016,
                    ..Submitter::default()
                };
                queue.submit_from(Nanos::ZERO, command(tag, kind, place), from);
            }
            assert_eq!(queue.queued().1, waiting, "{order_of:?} {kind:?} {alone}");
        }
    }
}

/// Kyber takes all that wait of a domain off the list where they came when it sends the first of
/// them; a new command is merged with the last eight that came after that.
#[test]
fn kyber_merges_with_the_last_eight_that_came_since() {
    use CommandKind::Read;
    let mut queue = queue(16, Order::Kyber);
    let mut tag = 0;
    let mut submit = |queue: &mut HostQueue, start| {
        queue.submit(Nanos::ZERO, command(tag, Read, start));
        tag += 1;
        queue.queued().1
    };
    let waiting = (0..26).map(|place| submit(&mut queue, place * 1000));
    assert_eq!(waiting.last(), Some(10));
    // Of those that wait, the eighth from the last takes in what continues it, and the ninth does not.
    assert_eq!(submit(&mut queue, 18_008), 10);
    assert_eq!(submit(&mut queue, 17_008), 11);
    // One has gone, so nothing is on the list.
    let mut completions = Vec::new();
    let next = queue.next_event().expect("commands are under way");
    queue.advance(next, &mut completions);
    assert_eq!(queue.queued().1, 10);
    assert_eq!(submit(&mut queue, 25_008), 11);
    assert_eq!(submit(&mut queue, 25_016), 11);
}

/// Batches of sixteen; writes wait for two batches of reads, and the rest of one.
#[test]
fn reads_go_before_writes_for_two_batches() {
    use CommandKind::{Read, Write};
    let mut commands: Vec<(CommandKind, u64)> = (0..84).map(|tag| (Read, tag * 100)).collect();
    commands.extend((0..20).map(|tag| (Write, 100_000 + tag * 100)));
    commands.extend((0..60).map(|tag| (Read, 10_000 + tag * 100)));
    let tags = order(queue(84, Order::MqDeadline), &commands);
    let writes: Vec<usize> = (0..tags.len())
        .filter(|&place| (84..104).contains(&tags[place]))
        .collect();
    // The disk had five batches and four commands of a sixth.
    let first = 84 + 12 + 2 * 16;
    let expected: Vec<usize> = (first..first + 16).chain(160..164).collect();
    assert_eq!(writes, expected);
}

/// By hand: of 64 reads with the disk four batches are over, so eight writes come first.
#[test]
fn kyber_goes_from_domain_to_domain_in_batches() {
    use CommandKind::{Read, Write};
    let mut commands: Vec<(CommandKind, u64)> = (0..64).map(|tag| (Read, tag * 100)).collect();
    commands.extend((64..94).map(|tag| (Write, tag * 100)));
    commands.extend((94..124).map(|tag| (Read, tag * 100)));
    let tags = order(queue(64, Order::Kyber), &commands);
    let expected = [0..64, 64..72, 94..110, 72..80, 110..124, 80..94];
    let expected: Vec<u64> = expected.into_iter().flatten().collect();
    assert_eq!(tags, expected);
}

#[test]
fn a_read_that_has_waited_for_half_a_second_begins_a_batch() {
    let mut queue = queue(1, Order::MqDeadline);
    queue.rules.tags = 40;
    let mut now = Nanos::ZERO;
    let submit = |queue: &mut HostQueue, now, tag, start| {
        queue.submit(now, command(tag, CommandKind::Read, start));
    };
    for tag in 0..41 {
        submit(&mut queue, now, tag, 1_000_000 + tag * 100);
    }
    // Behind the sweep, which always finds something ahead.
    submit(&mut queue, now, 1000, 0);
    let mut completions = Vec::new();
    let mut next = 41;
    while completions.iter().all(|one: &Completion| one.tag != 1000) {
        now = queue.next_event().expect("commands are under way");
        let before = completions.len();
        queue.advance(now, &mut completions);
        for _ in before..completions.len() {
            submit(&mut queue, now, next, 1_000_000 + next * 100);
            next += 1;
        }
    }
    // 500 ms, the rest of a batch, and the 40 commands that the disk has.
    assert!((500..=560).contains(&(now.0 / 1_000_000)), "{now}");
}

#[test]
fn neighbours_that_wait_become_one_command() {
    use CommandKind::{Read, Write};
    let mut queue = queue(2, Order::MqDeadline);
    let commands = [
        (Read, 1000),
        (Read, 2000),
        (Read, 508),
        (Read, 500),
        (Read, 516),
        (Write, 524),
    ];
    for (tag, (kind, start)) in (0..).zip(commands) {
        queue.submit(Nanos::ZERO, command(tag, kind, start));
    }
    assert_eq!(queue.queued(), (2, 2), "three reads as one, and a write");
    assert_eq!(queue.overflows(), 4);
    let mut completions = Vec::new();
    while let Some(next) = queue.next_event() {
        queue.advance(next, &mut completions);
    }
    let tags: Vec<u64> = completions.iter().map(|one| one.tag).collect();
    assert_eq!(tags, [0, 1, 2, 3, 4, 5]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Every command is completed once, in any order and with any number of tags.
    #[test]
    fn every_command_ends_once(
        tags in 1_usize..9,
        which in 0_usize..Order::ALL.len(),
        script in prop::collection::vec((0_u8..6, 0_u64..200, 0_u64..3_000_000), 1..200),
    ) {
        let mut queue = queue(tags, Order::ALL[which].0);
        let mut ended = vec![0; script.len()];
        let mut completions = Vec::new();
        let mut now = Nanos::ZERO;
        let finish = |queue: &mut HostQueue, until: Option<Nanos>, ended: &mut Vec<i32>,
                      completions: &mut Vec<Completion>| {
            while let Some(next) = queue.next_event().filter(|&next| until.is_none_or(|end| next <= end)) {
                queue.advance(next, completions);
                for one in completions.drain(..) {
                    ended[one.tag as usize] += 1;
                }
            }
        };
        for (tag, &(kind, start, pause)) in script.iter().enumerate() {
            now += Nanos(pause);
            finish(&mut queue, Some(now), &mut ended, &mut completions);
            let kind = match kind {
                0 => CommandKind::Flush,
                1 | 2 => CommandKind::Write,
                3 => CommandKind::Discard,
                _ => CommandKind::Read,
            };
            queue.submit(now, command(tag as u64, kind, start * 8));
        }
        finish(&mut queue, None, &mut ended, &mut completions);
        prop_assert!(ended.iter().all(|&times| times == 1), "{:?}", ended);
        prop_assert_eq!(queue.queued(), (0, 0));
    }
}

#[test]
fn an_nvme_drive_has_its_own_queue() {
    let most_of = |name: &str, rules: QueueRules, in_part: bool| {
        let path = format!(
            "{}/../../data/disks/{name}.toml",
            env!("CARGO_MANIFEST_DIR")
        );
        let text = std::fs::read_to_string(path).expect("a preset of the repository");
        let preset = Preset::parse(name, &text).expect("it is valid");
        let numbers = preset.parameters("rated").expect("its only set").clone();
        let disk = Disk::new(numbers, Nanos::ZERO, Stream::new(0));
        let disk = match in_part {
            false => disk.into(),
            true => {
                let (disk, start) = (vec![disk], Sectors(1 << 20));
                let ports = ports(disk, &[Region { disk: 0, start }], Sharing::Arm);
                Attached::Port(ports[0].clone())
            }
        };
        let mut queue = HostQueue::new(disk, rules);
        for tag in 0..1100 {
            queue.submit(Nanos::ZERO, command(tag, CommandKind::Read, tag * 8));
        }
        queue.queued()
    };
    let most = |name: &str, rules: QueueRules| {
        let found = most_of(name, rules, false);
        assert_eq!(most_of(name, rules, true), found, "a part of it");
        found
    };
    assert_eq!(most("pm9a3", QueueRules::SATA), (1023, 77));
    // A scheduler holds 256 requests for all of them, and kyber as many reads.
    for nvme_order in [Order::MqDeadline, Order::Kyber] {
        let rules = QueueRules {
            nvme_order,
            ..QueueRules::SATA
        };
        assert_eq!(most("pm9a3", rules).0, 256, "{nvme_order:?}");
    }
    // Neighbours that wait before a SATA disk are merged, and twice as many as it has tags
    // are held where they can be.
    assert_eq!(most("pm883", QueueRules::SATA).0, 32);
}
