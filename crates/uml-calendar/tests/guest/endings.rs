//! How a run ends.

use crate::peer::{FOREVER, Gone, Guest, UPDATE, WAIT};
use crate::ring::Transfer;
use crate::stage::{PROTOCOLS, options, run, run_raw, simple};
use raidlab_uml_calendar::{Calendar, CalendarError, ClockError, Options, Outcome, Protocol};
use raidlab_units::{Bytes, Nanos};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

#[test]
fn a_guest_without_plans_is_idle_for_ever() {
    for protocol in PROTOCOLS {
        let run = run(vec![simple()], options(protocol), |guest| {
            guest.sleep_until(5_000_000).unwrap();
            guest.sleep_until(FOREVER)
        });
        assert_eq!(run.guest, Err(Gone));
        let unanswered = Vec::new();
        assert_eq!(run.ending.unwrap(), Outcome::IdleForEver { unanswered });
        assert_eq!(run.calendar.now(), Nanos(5_000_000));
    }
}

#[test]
fn a_guest_that_says_nothing_is_stuck() {
    let mut options = options(Protocol::SharedMemory);
    options.patience = Duration::from_millis(150);
    let run = run_raw(vec![simple()], options, |sockets| {
        let guest = Guest::boot(sockets);
        // What a program does that computes without end.
        while !is_closed(&guest) {
            std::thread::yield_now();
        }
    });
    assert_eq!(run.ending.unwrap(), Outcome::GuestStuck);
}

/// The calendar has closed the clock's socket.
fn is_closed(guest: &Guest) -> bool {
    let mut byte = [0];
    let flags = rustix::net::RecvFlags::DONTWAIT | rustix::net::RecvFlags::PEEK;
    let received = rustix::net::recv(&guest.clock.socket, &mut byte[..], flags);
    received.is_ok_and(|(count, _)| count == 0)
}

#[test]
fn nobody_comes() {
    let mut options = options(Protocol::Messages);
    options.patience = Duration::from_millis(50);
    let run = run_raw(vec![simple()], options, |_| ());
    assert_eq!(run.ending.unwrap(), Outcome::NoGuest);
}

#[test]
fn the_stop_flag_ends_a_run() {
    let stop = Arc::new(AtomicBool::new(false));
    let mut options = options(Protocol::Messages);
    options.stop = Some(Arc::clone(&stop));
    let run = run(vec![simple()], options, |guest| {
        guest.sleep_until(1_000).unwrap();
        stop.store(true, Ordering::Relaxed);
        while !is_closed(guest) {
            std::thread::yield_now();
        }
    });
    assert_eq!(run.ending.unwrap(), Outcome::Stopped);
}

#[test]
fn the_virtual_time_is_limited() {
    for protocol in PROTOCOLS {
        let mut options = options(protocol);
        options.time_limit = Some(Nanos::from_secs(10));
        let run = run(vec![simple()], options, |guest| {
            let mut second = 0;
            while guest.sleep_until(second * 1_500_000_000).is_ok() {
                second += 1;
            }
            guest.clock.now
        });
        assert_eq!(run.ending.unwrap(), Outcome::TimeLimit);
        assert_eq!(run.guest, 9_000_000_000);
        assert_eq!(run.calendar.now(), Nanos::from_secs(10));
        assert_eq!(run.samples.len(), 10);
    }
}

#[test]
fn a_guest_killed_with_work_under_way_has_ended() {
    for protocol in PROTOCOLS {
        let run = run(vec![simple(), simple()], options(protocol), |guest| {
            guest.submit(0, &Transfer::read(99, 512)).unwrap();
            guest.submit(1, &Transfer::read(99, 512)).unwrap();
        });
        assert_eq!(run.ending.unwrap(), Outcome::GuestEnded);
        assert_eq!(run.calendar.counters()[1].in_flight, 1);
    }
}

#[test]
fn a_clock_that_runs_ahead_is_an_error() {
    let run = run(vec![simple()], options(Protocol::Messages), |guest| {
        guest.sleep_until(5_000).unwrap();
        guest.clock.send(UPDATE, 1_000_006_000);
        while !is_closed(guest) {}
    });
    let Err(CalendarError::Clock(ClockError::RanAhead { shown, allowed })) = run.ending else {
        panic!("{:?}", run.ending);
    };
    assert_eq!(
        (shown, allowed),
        (Nanos(1_000_006_000), Nanos(1_000_004_999))
    );
}

#[test]
fn a_request_in_the_past_is_an_error() {
    let run = run(vec![simple()], options(Protocol::Messages), |guest| {
        guest.sleep_until(5_000).unwrap();
        guest.clock.send(crate::peer::REQUEST, 4_999);
        guest.clock.send(WAIT, 0);
        while !is_closed(guest) {}
    });
    let past = matches!(
        run.ending,
        Err(CalendarError::Clock(ClockError::InThePast { .. }))
    );
    assert!(past, "{:?}", run.ending);
}

#[test]
fn disks_that_cannot_be_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |change: fn(&mut raidlab_uml_calendar::DeviceConfig)| {
        let mut config = simple();
        change(&mut config);
        let bound = Calendar::bind(dir.path(), vec![simple(), config], Options::default());
        let Err(error) = bound else {
            panic!("it was not refused");
        };
        error.to_string()
    };
    assert_eq!(
        refused(|one| one.tags = 0),
        "disk 1: a disk needs at least one tag"
    );
    assert!(refused(|one| one.serial = "x".repeat(21)).contains("20 bytes"));
    assert!(refused(|one| one.logical_block = Bytes(1024)).contains("512 or 4096"));
    assert!(refused(|one| one.physical_block = Bytes(256)).contains("physical"));
    assert!(refused(|one| one.size = Some(raidlab_units::Sectors(1))).contains("8 KiB"));
}

#[test]
fn sockets_are_there_and_go_away() {
    let dir = tempfile::tempdir().unwrap();
    let calendar = Calendar::bind(dir.path(), vec![simple(); 3], Options::default()).unwrap();
    let count = || std::fs::read_dir(dir.path()).unwrap().count();
    assert_eq!(count(), 4);
    assert!(calendar.device_path(3).is_none());
    drop(calendar);
    assert_eq!(count(), 0);
    let long = dir.path().join("x".repeat(100));
    std::fs::create_dir(&long).unwrap();
    let bound = Calendar::bind(&long, vec![simple()], Options::default());
    assert!(matches!(bound, Err(CalendarError::PathTooLong { .. })));
}

#[test]
fn a_calendar_runs_once() {
    let mut run = run(vec![simple()], options(Protocol::Messages), |_| ());
    let again = run.calendar.run(&mut ());
    assert!(matches!(again, Err(CalendarError::UsedUp)));
}
