//! The logic with made-up clocks; one real disk, whose times are not judged.

use super::pace::{Done, Pace, Punctuality};
use super::{DiskConfig, DiskError, DiskExport, DiskStorage};
use crate::array::testing::Client;
use crate::export::{Export, Operation};
use crate::member::{MemberFile, OpenOptions};
use proptest::prelude::*;
use raidlab_disk::{Command, CommandKind, Disk, DiskParameters, HostQueue, Preset, QueueRules};
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};

fn parameters() -> DiskParameters {
    let text = include_str!("../../../../data/disks/wd4000fyyz.toml");
    let preset = Preset::parse("wd4000fyyz", text).expect("the preset is valid");
    let set = preset.set_names()[0].to_owned();
    preset.parameters(&set).expect("exists").clone()
}

fn disk() -> Disk {
    Disk::new(parameters(), Nanos(1_234_567), Stream::new(5))
}

#[derive(Debug, Clone)]
struct Arrival {
    at: u64,
    command: Command,
}

fn arrivals() -> impl Strategy<Value = Vec<Arrival>> {
    let kind = prop_oneof![
        4 => Just(CommandKind::Read),
        3 => Just(CommandKind::Write),
        1 => Just(CommandKind::WriteThrough),
        1 => Just(CommandKind::Flush),
    ];
    let arrival = (0..20_000_000_u64, kind, 0..7_000_000_000_u64, 1..256_u64);
    prop::collection::vec(arrival, 1..60).prop_map(|steps| {
        let mut at = 0;
        let mut arrivals = Vec::new();
        for (after, kind, start, count) in steps {
            at += after;
            let command = Command {
                tag: 0,
                kind,
                start: Sectors(start),
                count: Sectors(count),
            };
            arrivals.push(Arrival { at, command });
        }
        arrivals
    })
}

fn rules(tags: usize) -> QueueRules {
    QueueRules {
        tags,
        ..QueueRules::SATA
    }
}

/// When each request completes on a disk whose thread is never late.
fn simulated(arrivals: &[Arrival], tags: usize) -> Vec<(usize, Nanos)> {
    let mut queue = HostQueue::new(disk().into(), rules(tags));
    let mut done = Vec::new();
    let mut next = 0;
    loop {
        let arrival = arrivals.get(next).map(|arrival| Nanos(arrival.at));
        let event = queue.next_event();
        match (arrival, event) {
            (None, None) => return done,
            (Some(at), event) if event.is_none_or(|event| at < event) => {
                let command = Command {
                    tag: next as u64,
                    ..arrivals[next].command
                };
                next += 1;
                queue.submit(at, command);
            }
            (_, Some(at)) => {
                let mut completions = Vec::new();
                queue.advance(at, &mut completions);
                done.extend(completions.iter().map(|one| (one.tag as usize, at)));
            }
            (Some(_), None) => unreachable!("an arrival without an event goes first"),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// However late the thread looks, the modelled times are the simulation's.
    #[test]
    fn delays_of_the_thread_do_not_change_the_model(
        arrivals in arrivals(),
        delays in prop::collection::vec(1..30_000_000_u64, 1..20),
        tags in 1..33_usize,
    ) {
        let mut pace = Pace::new(disk(), rules(tags));
        let mut done = Vec::new();
        let mut delays = delays.iter().cycle();
        let (mut now, mut next) = (0, 0);
        while next < arrivals.len() || !pace.is_empty() {
            now += delays.next().expect("endless");
            while next < arrivals.len() && arrivals[next].at <= now {
                pace.arrive(Nanos(arrivals[next].at), arrivals[next].command, next);
                next += 1;
            }
            while let Some(Done { arrived, due, payload }) = pace.advance(Nanos(now)) {
                prop_assert!(due.0 <= now);
                prop_assert_eq!(arrived.0, arrivals[payload].at);
                done.push((payload, due));
            }
        }
        prop_assert_eq!(done, simulated(&arrivals, tags));
    }
}

#[test]
fn punctuality_counts_by_the_larger_of_both_limits() {
    let mut punctuality = Punctuality::default();
    let ms = 1_000_000;
    // Service 1 ms: 100 us count. Service 10 ms: 200 us count.
    punctuality.count(Nanos(0), Nanos(ms), Nanos(ms + 100_000));
    punctuality.count(Nanos(0), Nanos(ms), Nanos(ms + 100_001));
    punctuality.count(Nanos(0), Nanos(10 * ms), Nanos(10 * ms + 200_000));
    punctuality.count(Nanos(ms), Nanos(11 * ms), Nanos(11 * ms + 200_001));
    assert_eq!((punctuality.requests, punctuality.within), (4, 2));
    assert_eq!(punctuality.worst_lateness, Nanos(200_001));
    assert_eq!(punctuality.mean_lateness(), Nanos(150_000));
    assert!(
        punctuality
            .to_string()
            .starts_with("2 of 4 requests (50.00 %) within"),
        "{punctuality}"
    );
}

fn start(storage: DiskStorage) -> Result<DiskExport, DiskError> {
    DiskExport::start(DiskConfig {
        parameters: parameters(),
        phase: Nanos::ZERO,
        seed: 1,
        queue: QueueRules::SATA,
        storage,
    })
}

/// Bytes come back as they were written, in the modelled order or not.
fn keeps_bytes(export: &DiskExport) {
    let client = Client::new();
    let base = 65_536 - 1024;
    for (piece, byte) in (0..4_u64).zip([1, 2, 3, 4]) {
        let write = (Operation::Write, base + piece * 1024, 1024);
        client.send(export, piece, write, &[byte; 1024], piece == 2);
    }
    export.submitted();
    for _ in 0..4 {
        assert_eq!(client.next().2, Ok(()));
    }
    let trim = (Operation::Trim, base + 1024, 1024);
    assert_eq!(client.ask(export, trim, &[]).1, Ok(()));
    assert_eq!(client.ask(export, (Operation::Flush, 0, 0), &[]).1, Ok(()));
    let (bytes, result) = client.ask(export, (Operation::Read, base, 4096), &[]);
    assert_eq!(result, Ok(()));
    let kilobytes: Vec<u8> = bytes.chunks(1024).map(|bytes| bytes[1023]).collect();
    assert_eq!(kilobytes, [1, 0, 3, 4]);
    assert_eq!(export.punctuality().requests, 7);
}

#[test]
fn a_disk_in_memory_keeps_bytes() {
    keeps_bytes(&start(DiskStorage::Memory).expect("starts"));
}

#[test]
fn a_disk_in_a_file_keeps_bytes() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file().set_len(1 << 20).expect("room");
    let options = OpenOptions {
        buffered: true,
        ..OpenOptions::default()
    };
    let member = MemberFile::open(file.path(), options).expect("opens");
    let export = start(DiskStorage::File(member)).expect("starts");
    assert_eq!(export.size_bytes(), 1 << 20);
    keeps_bytes(&export);
}

#[test]
fn a_request_under_way_is_answered_when_the_disk_is_dropped() {
    let export = start(DiskStorage::Memory).expect("starts");
    let client = Client::new();
    client.send(&export, 9, (Operation::Read, 1 << 40, 4096), &[], false);
    drop(export);
    let (token, _, result) = client.next();
    assert_eq!((token, result), (9, Ok(())));
}
