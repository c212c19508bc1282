//! The leap gives the numbers of the slow path.

use crate::bench::{Bench, group, random, sequential};
use raidlab_sim::{JobResult, MemberStatistics, SubjectState};
use raidlab_units::Nanos;
use raidlab_workload::{JobSpec, Pattern};

const GIB: u64 = 1 << 30;

#[track_caller]
#[expect(clippy::cast_precision_loss, reason = "compared within 0.2 %")]
fn assert_like(what: &str, leaped: u64, slow: u64) {
    let error = (leaped as f64 - slow as f64).abs() / slow.max(1) as f64;
    assert!(error <= 0.002, "{what}: {leaped} against {slow}");
}

#[track_caller]
fn assert_members_like(leaped: &[MemberStatistics], slow: &[MemberStatistics]) {
    assert_eq!(leaped.len(), slow.len());
    for (leaped, slow) in leaped.iter().zip(slow) {
        assert_like("reads", leaped.read_ios, slow.read_ios);
        assert_like("bytes read", leaped.read_bytes.0, slow.read_bytes.0);
        assert_like("read ticks", leaped.read_ticks.0, slow.read_ticks.0);
        assert_like("writes", leaped.write_ios, slow.write_ios);
        assert_like("bytes written", leaped.write_bytes.0, slow.write_bytes.0);
        assert_like("write ticks", leaped.write_ticks.0, slow.write_ticks.0);
        assert_like("sync bytes", leaped.sync_bytes.0, slow.sync_bytes.0);
        assert_like("busy", leaped.busy.0, slow.busy.0);
    }
}

/// The same job with and without leaps.
fn both(job: &JobSpec) -> [JobResult; 2] {
    [true, false].map(|leaps| {
        let bench = Bench {
            leaps,
            ..Bench::default()
        };
        bench.machine().run(&group([job.clone()])).expect("runs")
    })
}

#[track_caller]
fn assert_leap_like_slow(job: &JobSpec, bytes: u64) {
    let [leaped, slow] = both(job);
    assert_eq!(slow.leaped.0, 0);
    assert!(leaped.leaped.0 > bytes / 2, "{} leaped", leaped.leaped);
    assert_like("runtime", leaped.runtime.0, slow.runtime.0);
    for (leaped, slow) in [
        (leaped.reads(), slow.reads()),
        (leaped.writes(), slow.writes()),
    ] {
        // What was asked for is done to the last block, leaped or not.
        assert_eq!((leaped.ios, leaped.bytes), (slow.ios, slow.bytes));
        assert_like("latencies", leaped.latency.len(), slow.ios);
        if slow.ios > 0 {
            let ratio = leaped.latency.mean() / slow.latency.mean();
            assert!((0.998..1.002).contains(&ratio), "latency {ratio}");
        }
    }
    assert_members_like(&leaped.members, &slow.members);
}

#[test]
fn a_leap_over_a_sequential_write_changes_nothing() {
    assert_leap_like_slow(&sequential(Pattern::Write, 64 * GIB), 64 * GIB);
}

#[test]
fn a_leap_over_a_sequential_read_changes_nothing() {
    assert_leap_like_slow(&sequential(Pattern::Read, 16 * GIB), 16 * GIB);
}

#[test]
fn a_leap_over_an_hour_of_recovery_changes_nothing() {
    let [leaped, slow] = [true, false].map(|leaps| {
        let bench = Bench {
            leaps,
            ..Bench::default()
        };
        let mut machine = bench.machine();
        machine
            .remove(raidlab_array::Slot(1))
            .expect("the other stays");
        machine
            .insert(raidlab_array::Slot(1))
            .expect("the slot is empty");
        machine
            .wait(Nanos::from_secs(3600), &mut |_| true)
            .expect("recovers");
        assert_eq!(machine.now(), Nanos::from_secs(3600));
        machine.sync().expect("an hour is not enough")
    });
    assert_like("position", leaped.position.0, slow.position.0);
    assert_eq!(leaped.total, slow.total);
    // Of 4 TB; md did 15.5 % in the first hour of the comparison of 2015.
    assert!((15.0..16.0).contains(&slow.percent()), "{}", slow.percent());
}

/// A rebuild yields to a job, and for a moment still does when the job has ended: the second
/// behind a job is no sample of what follows.
#[test]
fn a_leap_behind_a_job_is_as_far_as_simulated() {
    let [leaped, slow] = [true, false].map(|leaps| {
        let bench = Bench {
            leaps,
            ..Bench::default()
        };
        let mut machine = bench.machine();
        let slot = raidlab_array::Slot(1);
        machine.remove(slot).expect("the other stays");
        machine.insert(slot).expect("the slot is empty");
        let job = random(Pattern::Read, 8, 2_000);
        machine.run(&group([job])).expect("runs");
        let before = machine.sync().expect("it goes on").position;
        let wait = machine.wait(Nanos::from_secs(1200), &mut |_| true);
        wait.expect("recovers");
        machine.sync().expect("it goes on").position - before
    });
    assert_like("sectors", leaped.0, slow.0);
}

/// md lets a rebuild have 200 MB/s, which a solid-state disk has everywhere.
#[test]
fn of_a_recovery_that_is_held_back_two_minutes_are_simulated() {
    let after = |leaps, seconds| {
        let mut machine = Bench {
            leaps,
            flash: true,
            ..Bench::default()
        }
        .machine();
        let slot = raidlab_array::Slot(1);
        machine.remove(slot).expect("the other stays");
        machine.insert(slot).expect("the slot is empty");
        let wait = machine.wait(Nanos::from_secs(seconds), &mut |_| true);
        wait.expect("recovers");
        machine.state()
    };
    let position = |state: &SubjectState| state.sync.expect("it goes on").position.0;
    let [leaped, slow] = [true, false].map(|leaps| after(leaps, 600));
    assert!(leaped.leaped > Nanos::from_secs(480), "{}", leaped.leaped);
    let ratio = position(&leaped) as f64 / position(&slow) as f64;
    assert!((ratio - 1.0).abs() <= 0.01, "{ratio}");
    let long = after(true, 9_000);
    assert!(long.leaped > Nanos::from_secs(8_880), "{}", long.leaped);
    let ratio = position(&long) as f64 / position(&slow) as f64;
    assert!((ratio / 15.0 - 1.0).abs() <= 0.01, "{ratio}");
}

/// A sync ended in the midst of a sample, and the wait for it a quarter of a minute later.
#[test]
fn a_wait_for_a_sync_ends_with_it() {
    let bench = Bench {
        leaps: true,
        flash: true,
        ..Bench::default()
    };
    let mut machine = bench.machine();
    let slot = raidlab_array::Slot(1);
    machine.remove(slot).expect("the other stays");
    machine.insert(slot).expect("the slot is empty");
    let wait = machine.wait_for_sync(Nanos::from_secs(1_000_000), &mut |_| true);
    wait.expect("recovers");
    let is_end = |event: &raidlab_array::Event| matches!(event, raidlab_array::Event::SyncFinished);
    let mut events = machine.events().iter();
    let ended = events.rfind(|(_, event)| is_end(event));
    let late = machine.now() - ended.expect("it has ended").0;
    assert!(late < Nanos::SECOND, "{late}");
}

/// A shingled disk takes the begin of a stream into its cache, at half the pace.
#[test]
fn leaps_over_shingled_disks_change_nothing() {
    let [leaped, slow] = [true, false].map(|leaps| {
        let bench = Bench {
            leaps,
            shingled: true,
            ..Bench::default()
        };
        let mut machine = bench.machine();
        let job = sequential(Pattern::Write, 32 * GIB);
        let written = machine.run(&group([job])).expect("runs");
        // What is in the caches is cleaned in the pause, band by band.
        machine
            .wait(Nanos::from_secs(600), &mut |_| true)
            .expect("waits");
        let job = sequential(Pattern::Read, 32 * GIB);
        let read = machine.run(&group([job])).expect("runs");
        [written, read]
    });
    for (leaped, slow) in leaped.iter().zip(&slow) {
        assert!(leaped.leaped.0 > 8 * GIB, "{} leaped", leaped.leaped);
        assert_like("runtime", leaped.runtime.0, slow.runtime.0);
        assert_members_like(&leaped.members, &slow.members);
    }
}

#[test]
fn what_is_short_or_ends_by_time_is_not_leaped() {
    let by_time = JobSpec {
        runtime: Some(Nanos::from_secs(60)),
        ..sequential(Pattern::Read, 64 * GIB)
    };
    let thinking = JobSpec {
        think_time: Nanos::from_micros(500),
        ..sequential(Pattern::Read, 3 * GIB)
    };
    for job in [by_time, thinking, sequential(Pattern::Read, GIB)] {
        let [leaped, slow] = both(&job);
        assert_eq!(leaped.leaped.0, 0);
        assert_eq!(leaped.runtime, slow.runtime);
        assert_eq!(leaped.members, slow.members);
    }
}
