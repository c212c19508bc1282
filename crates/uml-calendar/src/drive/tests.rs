use super::{Answer, DiskOperation, Drive, Io, PROMPT_ANSWER};
use crate::faults::{Fault, ScheduledFault};
use proptest::prelude::*;
use raidlab_disk::medium::constant;
use raidlab_disk::{Disk, DiskParameters, MediumParameters};
use raidlab_random::Stream;
use raidlab_units::{BytesPerSecond, Nanos, Sectors};

/// A sector takes 1 us, an access elsewhere 1 ms.
fn drive(tags: usize, faults: &[ScheduledFault]) -> Drive {
    let access = Nanos(1_000_000);
    let medium = MediumParameters::Constant(constant::Parameters { access });
    let parameters =
        DiskParameters::uniform(Sectors(10_000), BytesPerSecond(512_000_000.0), medium);
    let disk = Disk::new(parameters, Nanos::ZERO, Stream::new(0));
    Drive::new(disk.into(), tags, faults)
}

fn read(start: u64) -> Io {
    Io {
        operation: DiskOperation::Read,
        start,
        count: 8,
    }
}

/// All answers with their times.
fn finish(drive: &mut Drive) -> Vec<(Nanos, Answer)> {
    let mut all = Vec::new();
    while let Some(now) = drive.next_event() {
        let mut answers = Vec::new();
        drive.advance(now, &mut answers);
        all.extend(answers.into_iter().map(|answer| (now, answer)));
    }
    all
}

#[test]
fn with_one_tag_the_disk_sees_one_command_at_a_time() {
    // The simple disk serves in order in any case: tags change nothing for it.
    let times = |tags| {
        let mut drive = drive(tags, &[]);
        for start in [100, 200, 300] {
            drive.submit(Nanos(5), read(start), true);
        }
        assert_eq!(drive.in_flight(), 3);
        let answers = finish(&mut drive);
        let times: Vec<u64> = answers.iter().map(|(now, _)| now.0).collect();
        (times, drive.counters_at(Nanos(9_000_000)))
    };
    let (one, counters) = times(1);
    assert_eq!(one, [1_008_005, 2_016_005, 3_024_005]);
    assert_eq!((one, counters), times(32));
    assert_eq!(counters.reads, 3);
    assert_eq!(counters.read_bytes, 3 * 4096);
    assert_eq!(counters.busy, Nanos(3_024_000));
    assert_eq!(counters.read_time, Nanos(1_008_000 + 2_016_000 + 3_024_000));
}

#[test]
fn what_waits_before_a_disk_is_sent_in_sweeps_and_flushes_first() {
    let mut drive = drive(1, &[]);
    for start in [500, 900, 100, 700, 600] {
        drive.submit(Nanos(0), read(start), true);
    }
    let flush = Io {
        operation: DiskOperation::Flush,
        start: 0,
        count: 0,
    };
    drive.submit(Nanos(0), flush, true);
    let answers = finish(&mut drive);
    let order: Vec<u64> = answers.iter().map(|(_, answer)| answer.io.start).collect();
    assert_eq!(order, [500, 0, 100, 600, 700, 900]);
}

#[test]
fn an_answer_that_needs_no_disk_overtakes_one_that_does() {
    let mut drive = drive(1, &[]);
    drive.submit(Nanos(0), read(100), true);
    let prompt = drive.submit_other(Nanos(50), true);
    let answers = finish(&mut drive);
    assert_eq!(answers[0].0, Nanos(50) + PROMPT_ANSWER);
    assert_eq!(answers[0].1.slot, prompt);
    assert!(answers[0].1.good);
    assert_eq!(answers[1].0, Nanos(1_008_000));
    let counters = drive.counters_at(Nanos(1_008_000));
    assert_eq!((counters.reads, counters.errors), (1, 0));
}

/// What the rules of `faults.rs` say of one command to an idle disk.
fn expected(arrival: u64, health: &[(u64, Fault)]) -> Option<(u64, bool)> {
    let at = |time: u64| {
        let past = health.iter().rev().find(|(at, _)| *at <= time);
        past.map_or(Fault::Returns, |&(_, fault)| fault)
    };
    let next = |time: u64| health.iter().find(|(at, _)| *at > time).copied();
    let mut time = arrival;
    // Until the command begins, or is answered.
    loop {
        match at(time) {
            Fault::Dies if time == arrival => return Some((arrival + PROMPT_ANSWER.0, false)),
            Fault::Dies => return Some((time, false)),
            Fault::Hangs => time = next(time)?.0,
            _ => break,
        }
    }
    time += 1_008_000;
    loop {
        match at(time) {
            Fault::Dies => return Some((time, false)),
            Fault::Hangs => time = next(time)?.0,
            _ => return Some((time, true)),
        }
    }
}

proptest! {
    #[test]
    fn one_command_meets_the_disks_health_as_the_rules_say(
        arrival in 0_u64..3_000_000,
        changes in proptest::collection::btree_map(0_u64..5_000_000, 0_usize..3, 0..6),
    ) {
        let faults = [Fault::Dies, Fault::Hangs, Fault::Returns];
        let health: Vec<(u64, Fault)> =
            changes.into_iter().map(|(at, index)| (at, faults[index])).collect();
        let schedule: Vec<ScheduledFault> = health
            .iter()
            .map(|&(at, fault)| ScheduledFault { at: Nanos(at), fault })
            .collect();
        let mut drive = drive(4, &schedule);
        drive.submit(Nanos(arrival), read(100), true);
        let answers = finish(&mut drive);
        let got = answers.first().map(|(now, answer)| (now.0, answer.good));
        prop_assert_eq!(got, expected(arrival, &health));
        prop_assert_eq!(drive.in_flight(), usize::from(got.is_none()));
    }

    #[test]
    fn every_command_to_a_disk_that_does_not_hang_is_answered_once(
        commands in proptest::collection::vec((0_u64..100_000, 0_u64..1000, 0_u8..5), 1..60),
        tags in 1_usize..40,
        dies in proptest::option::of(0_u64..5_000_000),
    ) {
        let schedule: Vec<ScheduledFault> = dies
            .map(|at| ScheduledFault { at: Nanos(at), fault: Fault::Dies })
            .into_iter()
            .collect();
        let mut drive = drive(tags, &schedule);
        let mut now = 0;
        let mut pending = Vec::new();
        let mut answered = Vec::new();
        for (wait, start, kind) in commands {
            now += wait;
            // A calendar never lets a command come after an event.
            while let Some(event) = drive.next_event().filter(|event| event.0 <= now) {
                let mut answers = Vec::new();
                drive.advance(event, &mut answers);
                answered.extend(answers.iter().map(|answer| answer.slot));
                pending.retain(|slot| !answers.iter().any(|answer| answer.slot == *slot));
            }
            let operation = match kind {
                0 => DiskOperation::Flush,
                1 => DiskOperation::Write,
                2 => DiskOperation::Discard,
                _ => DiskOperation::Read,
            };
            let count = if kind == 0 { 0 } else { 8 };
            let slot = drive.submit(Nanos(now), Io { operation, start, count }, kind % 2 == 0);
            prop_assert!(!pending.contains(&slot), "the slot is in use");
            pending.push(slot);
        }
        let rest: Vec<usize> =
            finish(&mut drive).into_iter().map(|(_, answer)| answer.slot).collect();
        let mut sorted = rest.clone();
        sorted.sort_unstable();
        pending.sort_unstable();
        prop_assert_eq!(sorted, pending);
        prop_assert_eq!(drive.in_flight(), 0);
    }
}

/// What happens to a disk that hangs already does not begin its hanging anew: the patience
/// with it ends when it would have.
#[test]
fn a_disk_hangs_since_it_began_to() {
    let at = |at: u64, fault| ScheduledFault {
        at: Nanos(at),
        fault,
    };
    let unreadable = Fault::Unreadable {
        start: Sectors(0),
        count: Sectors(8),
        repaired_by_writing: true,
    };
    for later in [unreadable, Fault::Hangs] {
        let mut drive = drive(4, &[at(1000, Fault::Hangs), at(5000, later)]);
        drive.submit(Nanos(500), read(100), true);
        drive.submit(Nanos(6000), read(200), true);
        assert_eq!(drive.owes_for_ever_since(), Some(Nanos(1000)));
    }
}

/// A discard needs no arm and waits for nobody, unlike a flush.
#[test]
fn a_discard_is_no_flush() {
    let mut drive = drive(4, &[]);
    drive.submit(Nanos(0), read(800), true);
    for operation in [DiskOperation::Discard, DiskOperation::Flush] {
        let io = Io {
            operation,
            start: 0,
            count: 8,
        };
        drive.submit(Nanos(0), io, true);
    }
    let ends: Vec<(u64, DiskOperation)> = finish(&mut drive)
        .iter()
        .map(|(now, answer)| (now.0, answer.io.operation))
        .collect();
    assert_eq!(ends[0], (0, DiskOperation::Discard));
    assert_eq!(ends[1].0, 1_008_000);
    assert_eq!(ends[2], (1_008_000, DiskOperation::Flush));
}
