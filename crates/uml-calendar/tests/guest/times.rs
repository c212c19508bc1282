//! To the nanosecond: the guest sees the times that the disk alone would give.

use crate::peer::{FOREVER, Guest};
use crate::ring::{FLUSH, Transfer};
use crate::stage::{PROTOCOLS, options, run, simple};
use raidlab_disk::{Command, CommandKind, Disk, DiskParameters, Preset};
use raidlab_random::Stream;
use raidlab_uml_calendar::{DeviceConfig, DiskOperation, Outcome, Protocol, TraceRecord};
use raidlab_units::{Nanos, Sectors};

fn preset() -> DiskParameters {
    let text = include_str!("../../../../data/disks/wd4000fyyz.toml");
    let preset = Preset::parse("wd4000fyyz.toml", text).unwrap();
    let set = preset.set_names()[0].to_owned();
    preset.parameters(&set).unwrap().clone()
}

fn modelled(tags: usize) -> DeviceConfig {
    let mut config = DeviceConfig::new(disk().into(), "modelled");
    config.tags = tags;
    config
}

fn disk() -> Disk {
    Disk::new(preset(), Nanos(1_234_567), Stream::new(5).fork("disk", 0))
}

/// A mixed load: request `number` of it.
fn request(number: u64) -> (DiskOperation, u64, u64) {
    let mut stream = Stream::new(99).fork("request", number);
    let start = stream.below(900_000_000) * 8;
    match stream.below(10) {
        0 => (DiskOperation::Flush, 0, 0),
        1..=3 => (DiskOperation::Write, start, 8),
        // Neighbours, for the read-ahead.
        4 => (DiskOperation::Read, number * 64, 64),
        _ => (DiskOperation::Read, start, 8),
    }
}

fn transfer(number: u64) -> Transfer {
    let (operation, start, count) = request(number);
    match operation {
        DiskOperation::Flush => Transfer::of_kind(FLUSH),
        DiskOperation::Write => Transfer::write(start, vec![1; count as usize * 512]),
        _ => Transfer::read(start, count as u32 * 512),
    }
}

/// A guest that keeps `depth` requests under way until `total` have been made.
fn closed_loop(guest: &mut Guest, depth: u64, total: u64) {
    let mut made = 0;
    let mut done = 0;
    guest.sleep_until(1_000_000).unwrap();
    while made < depth {
        guest.submit(0, &transfer(made)).unwrap();
        made += 1;
    }
    while done < total {
        let answered = guest.wait().unwrap();
        for &(disk, slot) in &answered {
            assert_eq!(guest.drivers[disk].ring.result(slot).0, 0);
        }
        for _ in answered {
            done += 1;
            if made < total {
                guest.submit(0, &transfer(made)).unwrap();
                made += 1;
            }
        }
    }
}

/// The same with the disk alone.
fn oracle(depth: u64, total: u64) -> Vec<TraceRecord> {
    let mut disk = disk();
    let mut arrivals = Vec::new();
    let mut records = Vec::new();
    let submit = |disk: &mut Disk, now: Nanos, arrivals: &mut Vec<Nanos>| {
        let number = arrivals.len() as u64;
        if number == total {
            return;
        }
        let (operation, start, count) = request(number);
        arrivals.push(now);
        let kind = match operation {
            DiskOperation::Flush => CommandKind::Flush,
            DiskOperation::Write => CommandKind::Write,
            _ => CommandKind::Read,
        };
        let command = Command {
            tag: number,
            kind,
            start: Sectors(start),
            count: Sectors(count),
        };
        disk.submit(now, command);
    };
    for _ in 0..depth {
        submit(&mut disk, Nanos(1_000_000), &mut arrivals);
    }
    while (records.len() as u64) < total {
        let now = disk.next_event().unwrap();
        let mut completions = Vec::new();
        disk.advance(now, &mut completions);
        for completion in completions {
            let (operation, start, count) = request(completion.tag);
            records.push(TraceRecord {
                arrived: arrivals[completion.tag as usize],
                completed: now,
                disk: 0,
                operation,
                start: Sectors(start),
                count: Sectors(count),
                good: true,
            });
            submit(&mut disk, now, &mut arrivals);
        }
    }
    records
}

#[test]
fn a_modelled_disk_answers_when_the_model_alone_would() {
    for depth in [1, 7, 32] {
        let expected = oracle(depth, 300);
        for protocol in PROTOCOLS {
            let run = run(vec![modelled(32)], options(protocol), |guest| {
                closed_loop(guest, depth, 300);
            });
            run.assert_guest_ended();
            assert_eq!(run.trace, expected, "{protocol:?} at depth {depth}");
        }
    }
}

#[test]
fn both_protocols_give_the_same_digest_and_another_load_another() {
    let digest = |protocol, total| {
        let run = run(vec![modelled(8)], options(protocol), |guest| {
            closed_loop(guest, 20, total);
        });
        assert_eq!(run.calendar.trace_digest().records(), total);
        run.calendar.trace_digest().value()
    };
    let by_messages = digest(Protocol::Messages, 200);
    assert_eq!(by_messages, digest(Protocol::SharedMemory, 200));
    assert_ne!(by_messages, digest(Protocol::SharedMemory, 199));
}

#[test]
fn kicks_and_interrupts_in_shared_memory_change_nothing_but_the_messages() {
    for depth in [1, 20, 60] {
        let digest = |protocol, shares_disks| {
            let run = run(vec![modelled(8)], options(protocol), |guest| {
                if shares_disks {
                    guest.clock.share_disks();
                }
                // More at once than have room there.
                for _ in 0..702 {
                    guest.kick(0).unwrap();
                }
                closed_loop(guest, depth, 400);
            });
            let ended = matches!(run.ending, Ok(Outcome::GuestEnded));
            assert!(ended, "{:?}", run.ending);
            let digest = run.calendar.trace_digest();
            assert_eq!(digest.records(), 400);
            (digest.value(), run.calendar.messages())
        };
        let (alone, many) = digest(Protocol::Messages, false);
        let (shared, fewer) = digest(Protocol::SharedMemory, false);
        let (disks_too, few) = digest(Protocol::SharedMemory, true);
        assert_eq!((alone, alone), (shared, disks_too), "at depth {depth}");
        assert!(
            few * 2 < fewer && fewer < many,
            "{few}, {fewer} and {many} messages at depth {depth}"
        );
    }
}

#[test]
fn disks_that_end_together_interrupt_together() {
    for shares_disks in [false, true] {
        let disks = vec![simple(), simple(), simple()];
        let run = run(disks, options(Protocol::SharedMemory), |guest| {
            if shares_disks {
                guest.clock.share_disks();
            }
            for disk in [2, 0, 1] {
                guest.submit(disk, &Transfer::read(800, 512)).unwrap();
            }
            let done = guest.wait().unwrap();
            (
                done.into_iter().map(|(disk, _)| disk).collect(),
                guest.clock.now,
            )
        });
        let expected: (Vec<usize>, u64) = (vec![0, 1, 2], 8_001_000);
        assert_eq!(run.guest, expected, "{shares_disks}");
    }
}

#[test]
fn suppressed_kicks_change_nothing_for_a_disk_in_order_of_arrival() {
    let trace = |suppress| {
        let mut options = options(Protocol::Messages);
        options.suppress_kicks = suppress;
        let run = run(vec![simple()], options, |guest| {
            for number in 0..8 {
                guest
                    .submit(0, &Transfer::read(number * 1000, 4096))
                    .unwrap();
            }
            let mut done = 0;
            while done < 40 {
                for _ in guest.wait().unwrap() {
                    done += 1;
                    if done <= 32 {
                        let read = Transfer::read(done * 77, 4096);
                        guest.submit(0, &read).unwrap();
                    }
                }
            }
        });
        let ends: Vec<(Nanos, Sectors)> = run
            .trace
            .iter()
            .map(|record| (record.completed, record.start))
            .collect();
        (ends, run.calendar.messages())
    };
    let (kicked, many) = trace(false);
    let (suppressed, few) = trace(true);
    assert_eq!(kicked, suppressed);
    assert!(few < many, "{few} messages instead of {many}");
}

#[test]
fn times_by_hand_and_an_hour_of_sleep() {
    for protocol in PROTOCOLS {
        let run = run(vec![simple(), simple()], options(protocol), |guest| {
            // A sector takes 1 us, an access elsewhere 8 ms.
            guest.submit(0, &Transfer::read(0, 4096)).unwrap();
            guest.sleep_until(3_000).unwrap();
            guest.submit(1, &Transfer::read(800, 512)).unwrap();
            assert_eq!(guest.clock.now, 3_000);
            assert_eq!(guest.wait().unwrap().len(), 1);
            assert_eq!(guest.clock.now, 8_000);
            assert_eq!(guest.wait().unwrap()[0].0, 1);
            assert_eq!(guest.clock.now, 8_004_000);
            let hour = 3_600_000_000_000;
            guest.sleep_until(hour).unwrap();
            assert_eq!(guest.clock.now, hour);
            guest.submit(0, &Transfer::read(8, 512)).unwrap();
            guest.wait().unwrap();
            assert_eq!(guest.clock.now, hour + 1_000);
        });
        run.assert_guest_ended();
        assert_eq!(run.calendar.now(), Nanos(3_600_000_001_000));
        let samples = &run.samples;
        assert_eq!(samples.len(), 3600);
        assert_eq!(samples[0].0, Nanos::SECOND);
        assert_eq!(samples[3599].0, Nanos::from_secs(3600));
        assert_eq!(samples[0].1[0].reads, 1);
        assert_eq!(samples[3599].1[0].reads, 1);
        assert_eq!(samples[0].1[1].busy, Nanos(8_001_000));
        assert_eq!(samples[0].1[1].read_time, Nanos(8_001_000));
    }
}

#[test]
fn a_command_that_takes_no_time_restricts_the_guest_to_its_present() {
    for protocol in PROTOCOLS {
        let run = run(vec![simple(), simple()], options(protocol), |guest| {
            guest.sleep_until(1_000).unwrap();
            // Freely, and not because it was run.
            guest.sleep_until(5_000).unwrap();
            guest.submit(0, &Transfer::of_kind(FLUSH)).unwrap();
            guest.submit(1, &Transfer::of_kind(FLUSH)).unwrap();
            assert_eq!(guest.wait().unwrap().len(), 2);
            guest.clock.now
        });
        run.assert_guest_ended();
        assert_eq!(run.guest, 5_000);
    }
}

#[test]
fn samples_are_taken_at_their_times_in_the_middle_of_work() {
    let mut options = options(Protocol::Messages);
    options.sample_every = Nanos(5_000_000);
    let run = run(vec![simple()], options, |guest| {
        guest.submit(0, &Transfer::read(1000, 4096)).unwrap();
        guest.submit(0, &Transfer::read(2000, 4096)).unwrap();
        while guest.wait().is_ok_and(|_| guest.clock.now < 16_000_000) {}
    });
    let busy: Vec<(u64, u64, u64)> = run
        .samples
        .iter()
        .map(|(at, disks)| (at.0, disks[0].busy.0, disks[0].in_flight))
        .collect();
    let expected = [
        (5_000_000, 5_000_000, 2),
        (10_000_000, 10_000_000, 1),
        (15_000_000, 15_000_000, 1),
    ];
    assert_eq!(busy, expected);
}

#[test]
fn a_free_run_is_cut_into_pieces_that_change_nothing() {
    let ends = |piece: u64| {
        let mut options = options(Protocol::Messages);
        options.longest_free_run = Nanos(piece);
        let run = run(vec![simple()], options, |guest| {
            for step in 1..200 {
                guest.sleep_until(step * 50_000).unwrap();
            }
            guest.submit(0, &Transfer::read(8, 512)).unwrap();
            guest.wait().unwrap();
            guest.clock.now
        });
        (run.guest, run.calendar.trace_digest())
    };
    let whole = ends(FOREVER);
    assert_eq!(whole, ends(70_000));
    assert_eq!(whole, ends(1));
    assert_eq!(whole.0, 199 * 50_000 + 8_001_000);
}
