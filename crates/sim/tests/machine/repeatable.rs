//! A run depends on its description and its seed, and on nothing else.

use crate::bench::{Bench, group, timed};
use raidlab_sim::{JobResult, Machine};
use raidlab_units::Nanos;
use raidlab_workload::{JobSpec, Pattern};
use std::time::Duration;

fn mixed() -> JobSpec {
    JobSpec {
        read_mix_percent: 67,
        fsync_every: 50,
        ..timed(Pattern::RandRw, 16, 10)
    }
}

fn with_seed(seed: u64) -> Machine {
    Bench {
        seed,
        ..Bench::default()
    }
    .machine()
}

fn run(machine: &mut Machine) -> JobResult {
    machine.run(&group([mixed()])).expect("runs")
}

#[track_caller]
fn assert_equal(one: &JobResult, other: &JobResult) {
    assert_eq!(one.runtime, other.runtime);
    assert_eq!(one.members, other.members);
    for (one, other) in [(one.reads(), other.reads()), (one.writes(), other.writes())] {
        assert_eq!((one.ios, one.bytes), (other.ios, other.bytes));
        assert_eq!(one.latency, other.latency);
    }
}

#[test]
fn the_same_seed_gives_the_same_result_and_another_does_not() {
    let first = run(&mut with_seed(7));
    assert_equal(&first, &run(&mut with_seed(7)));
    let other = run(&mut with_seed(8));
    assert_ne!(first.members, other.members);
}

#[test]
fn neither_the_wall_clock_nor_the_order_of_construction_counts() {
    let reference = run(&mut with_seed(7));
    // Made in another order, run in turns, with real time passing between.
    let mut last = with_seed(9);
    let mut machine = with_seed(7);
    run(&mut last);
    std::thread::sleep(Duration::from_millis(20));
    assert_equal(&reference, &run(&mut machine));
    let in_a_thread = std::thread::spawn(|| run(&mut with_seed(7)));
    assert_equal(&reference, &in_a_thread.join().expect("ran"));
}

/// fio's randrepeat: a job draws the same offsets whatever ran before. With
/// the caches written back and forgotten the totals differ only by the
/// platter's angle.
#[test]
fn a_job_repeats_its_offsets() {
    let mut machine = with_seed(7);
    let bounded = JobSpec {
        request_limit: Some(500),
        runtime: None,
        ..mixed()
    };
    let split = |machine: &mut Machine| {
        let result = machine.run(&group([bounded.clone()])).expect("runs");
        machine
            .wait(Nanos::from_secs(5), &mut |_| true)
            .expect("waits");
        (result.reads().ios, result.writes().ios)
    };
    let first = split(&mut machine);
    assert_eq!(first.0 + first.1, 500);
    assert_eq!(first, split(&mut machine));
}
