//! Disks that fail by schedule.

use crate::peer::Guest;
use crate::ring::Transfer;
use crate::stage::{options, run, simple};
use raidlab_uml_calendar::{CalendarError, DeviceConfig, Fault, Outcome, Protocol, ScheduledFault};
use raidlab_units::{Nanos, Sectors};

fn failing(faults: &[(u64, Fault)]) -> DeviceConfig {
    let mut config = simple();
    config.faults = faults
        .iter()
        .map(|&(at, fault)| ScheduledFault {
            at: Nanos(at),
            fault,
        })
        .collect();
    config
}

fn read(guest: &mut Guest, disk: usize, sector: u64) -> u8 {
    guest
        .perform(disk, &Transfer::read(sector, 4096))
        .unwrap()
        .0
}

fn write(guest: &mut Guest, disk: usize, sector: u64) -> u8 {
    let write = Transfer::write(sector, vec![6; 4096]);
    guest.perform(disk, &write).unwrap().0
}

#[test]
fn bad_sectors_fail_from_their_time_on_until_they_are_rewritten() {
    let range = |repaired_by_writing| Fault::Unreadable {
        start: Sectors(1000),
        count: Sectors(16),
        repaired_by_writing,
    };
    let unwritable = Fault::Unwritable {
        start: Sectors(5000),
        count: Sectors(1),
    };
    let disks = vec![
        failing(&[(50_000_000, range(true)), (0, unwritable)]),
        failing(&[(50_000_000, range(false))]),
    ];
    let run = run(disks, options(Protocol::Messages), |guest| {
        for disk in 0..2 {
            assert_eq!(read(guest, disk, 1000), 0, "before its time");
        }
        guest.sleep_until(50_000_000).unwrap();
        for disk in 0..2 {
            assert_eq!(read(guest, disk, 1015), 1);
            assert_eq!(read(guest, disk, 1016), 0);
            assert_eq!(write(guest, disk, 1000), 0);
        }
        assert_eq!(read(guest, 0, 1000), 0, "rewritten");
        assert_eq!(read(guest, 0, 1001), 1, "rewritten in part");
        assert_eq!(read(guest, 1, 1000), 1, "not to be repaired");
        assert_eq!(write(guest, 0, 4993), 1);
        assert_eq!(write(guest, 0, 4992), 0);
        assert_eq!(read(guest, 0, 4993), 0);
    });
    run.assert_guest_ended();
    let errors: Vec<u64> = run
        .calendar
        .counters()
        .iter()
        .map(|one| one.errors)
        .collect();
    assert_eq!(errors, [3, 2]);
    assert_eq!(run.trace.iter().filter(|record| !record.good).count(), 5);
}

#[test]
fn a_disk_dies_in_the_middle_of_a_command_and_returns() {
    let disk = failing(&[(10_000_000, Fault::Dies), (90_000_000, Fault::Returns)]);
    let run = run(vec![disk], options(Protocol::SharedMemory), |guest| {
        assert_eq!(write(guest, 0, 1000), 0);
        assert_eq!(guest.clock.now, 8_008_000);
        // This one begins before the disk dies and would end after it.
        assert_eq!(write(guest, 0, 2000), 1);
        assert_eq!(guest.clock.now, 16_016_000);
        assert_eq!(read(guest, 0, 1000), 1);
        assert_eq!(guest.clock.now, 16_026_000, "a dead disk is quick");
        guest.sleep_until(90_000_000).unwrap();
        let (status, bytes) = guest.perform(0, &Transfer::read(1000, 4096)).unwrap();
        assert_eq!((status, bytes[0]), (0, 6));
        let (status, bytes) = guest.perform(0, &Transfer::read(2000, 4096)).unwrap();
        assert_eq!((status, bytes[0]), (0, 0), "the failed write left nothing");
    });
    run.assert_guest_ended();
}

#[test]
fn a_disk_that_hangs_leaves_an_idle_guest_for_ever() {
    let disk = failing(&[(10_000_000, Fault::Hangs)]);
    let run = run(vec![simple(), disk], options(Protocol::Messages), |guest| {
        guest.submit(1, &Transfer::read(1000, 4096)).unwrap();
        guest.submit(1, &Transfer::read(2000, 4096)).unwrap();
        guest.wait().unwrap();
        guest.sleep_until(30_000_000).unwrap();
        guest.submit(1, &Transfer::read(3000, 4096)).unwrap();
        guest.wait()
    });
    assert_eq!(run.guest, Err(crate::peer::Gone));
    let expected = Outcome::IdleForEver {
        unanswered: vec![(1, 2)],
    };
    assert_eq!(run.ending.unwrap(), expected);
    assert_eq!(run.trace.len(), 1);
}

/// Reads from a disk beside one that hangs, every ten seconds for five minutes; how
/// often that went well.
fn beside_a_hung_disk(faults: &[(u64, Fault)]) -> (Result<Outcome, CalendarError>, Nanos, u64) {
    let disks = vec![simple(), failing(faults)];
    let run = run(disks, options(Protocol::SharedMemory), |guest| {
        guest.submit(1, &Transfer::read(1000, 4096)).unwrap();
        for tens in 1..=30 {
            let at = tens * 10_000_000_000 - 5_000_000_000;
            while guest.clock.now < at {
                if guest.sleep_until(at).is_err() {
                    return tens - 1;
                }
            }
            if guest.perform(0, &Transfer::read(0, 512)).is_err() {
                return tens - 1;
            }
        }
        30
    });
    (run.ending, run.calendar.now(), run.guest)
}

#[test]
fn a_disk_that_hangs_for_good_ends_the_run_whatever_else_goes_on() {
    let (ending, now, done) = beside_a_hung_disk(&[(1_000_000, Fault::Hangs)]);
    let unanswered = vec![(1, 1)];
    assert_eq!(ending.unwrap(), Outcome::Hung { unanswered });
    assert_eq!((now, done), (Nanos(30_001_000_000), 3));
}

#[test]
fn a_disk_that_hangs_and_comes_back_is_waited_for() {
    let returns = [(1_000_000, Fault::Hangs), (250_000_000_000, Fault::Returns)];
    for faults in [&returns[..], &[]] {
        let (ending, _, done) = beside_a_hung_disk(faults);
        assert_eq!(ending.unwrap(), Outcome::GuestEnded);
        assert_eq!(done, 30);
    }
}

#[test]
fn a_hung_disk_that_returns_answers_what_it_owes_at_that_moment() {
    let disk = failing(&[(10_000_000, Fault::Hangs), (100_000_000, Fault::Returns)]);
    let run = run(vec![disk], options(Protocol::SharedMemory), |guest| {
        let first = guest
            .submit(0, &Transfer::write(1000, vec![3; 512]))
            .unwrap();
        let second = guest
            .submit(0, &Transfer::write(2000, vec![4; 512]))
            .unwrap();
        assert_eq!(guest.wait().unwrap(), [(0, first)]);
        guest.sleep_until(30_000_000).unwrap();
        let third = guest.submit(0, &Transfer::read(2000, 512)).unwrap();
        assert_eq!(guest.wait().unwrap(), [(0, second)]);
        assert_eq!(guest.clock.now, 100_000_000);
        assert_eq!(guest.wait().unwrap(), [(0, third)]);
        assert_eq!(guest.clock.now, 108_001_000, "it began at the return");
        assert_eq!(guest.drivers[0].ring.result(third), (0, vec![4; 512]));
    });
    run.assert_guest_ended();
}

#[test]
fn a_hung_disk_that_dies_fails_what_it_owes() {
    let disk = failing(&[(1_000_000, Fault::Hangs), (60_000_000, Fault::Dies)]);
    let run = run(vec![disk], options(Protocol::Messages), |guest| {
        let first = guest.submit(0, &Transfer::read(1000, 512)).unwrap();
        guest.sleep_until(2_000_000).unwrap();
        let second = guest.submit(0, &Transfer::read(2000, 512)).unwrap();
        assert_eq!(guest.wait().unwrap(), [(0, first), (0, second)]);
        assert_eq!(guest.clock.now, 60_000_000);
        assert_eq!(guest.drivers[0].ring.result(first).0, 1);
        assert_eq!(guest.drivers[0].ring.result(second).0, 1);
    });
    run.assert_guest_ended();
}
