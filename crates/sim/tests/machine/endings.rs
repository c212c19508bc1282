//! Jobs that follow their own latency or rate.

use crate::bench::{Bench, group, random, timed};
use raidlab_sim::JobResult;
use raidlab_units::Nanos;
use raidlab_workload::{JobSpec, LatencyTarget, Pattern, SteadyMeasure, SteadyState};

fn run(job: JobSpec) -> JobResult {
    Bench::default().machine().run(&group([job])).expect("runs")
}

/// Random reads of a mirror of two disks: the deeper the queue, the longer they wait.
#[test]
fn a_depth_is_found_that_keeps_the_latency_and_measured_alone() {
    let target = LatencyTarget {
        target: Nanos::from_millis(60),
        window: Nanos::from_secs(5),
        share_millionths: 950_000,
        goes_on: false,
    };
    let job = JobSpec {
        latency_target: Some(target),
        request_limit: None,
        ..random(Pattern::RandRead, 64, 1)
    };
    let result = run(job.clone());
    let [found] = result.depths.as_slice() else {
        panic!("one clone");
    };
    assert!(found.settled);
    assert!((2..32).contains(&found.depth), "{}", found.depth);
    let seconds = result.runtime.as_secs_f64();
    assert!((5.0..5.2).contains(&seconds), "the last window: {seconds}");
    // The members' counters are of that window too: a disk was busy for seven times of it.
    assert_eq!(result.elapsed, result.runtime);
    let busy = result.members.iter().map(|member| member.busy);
    assert!(
        busy.clone().all(|busy| busy <= result.runtime),
        "{:?}",
        busy.max()
    );
    let reads = result.reads();
    let seen: u64 = result.members.iter().map(|member| member.read_ios).sum();
    assert!(
        seen.abs_diff(reads.ios) <= u64::from(found.depth),
        "{seen} and {}",
        reads.ios
    );
    let late = reads.latency.len() - reads.latency.count_between(0, target.target.0);
    assert!(late * 20 <= reads.ios, "{late} of {} are late", reads.ios);
    // At twice the depth the latency is not kept.
    let deeper = run(JobSpec {
        latency_target: None,
        ..timed(Pattern::RandRead, found.depth * 2, 20)
    });
    assert!(deeper.reads().latency.value_at_quantile(0.95) > target.target.0);
    let again = run(job);
    assert_eq!(again.reads().latency, reads.latency, "it repeats itself");
}

#[test]
fn a_job_that_runs_evenly_ends_and_one_that_does_not_runs_on() {
    let steady = |limit_millionths| SteadyState {
        measure: SteadyMeasure::Iops,
        slope: false,
        limit_millionths,
        in_percent: true,
        duration: Nanos::from_secs(10),
        ramp_time: Nanos::from_secs(5),
        interval: Nanos::SECOND,
    };
    let job = |limit| JobSpec {
        steady_state: Some(steady(limit)),
        num_jobs: 2,
        ..timed(Pattern::RandRead, 8, 120)
    };
    let result = run(job(10_000_000));
    let [found] = result.steady.as_slice() else {
        panic!("the clones of one job together");
    };
    assert!(found.attained && found.clone.is_none());
    assert!(found.criterion.is_some_and(|criterion| criterion < 10.0));
    let seconds = result.runtime.as_secs_f64();
    assert!((15.0..60.0).contains(&seconds), "{seconds}");
    // Seconds before it begins are no even ones.
    let late = run(JobSpec {
        start_delay: Nanos::from_secs(20),
        ..job(10_000_000)
    });
    assert!(late.reads().ios > 0 && late.steady[0].attained);
    let ended = late.runtime.as_secs_f64();
    assert!((15.0..60.0).contains(&ended), "{ended}");
    // A thousandth of a percent is never kept by a disk.
    let result = run(job(1_000));
    assert!(!result.steady[0].attained);
    assert!(result.runtime >= Nanos::from_secs(120));
    // Among several jobs each clone is looked at by itself.
    let several = group([job(10_000_000), timed(Pattern::RandRead, 1, 120)]);
    let result = Bench::default().machine().run(&several).expect("runs");
    let clones: Vec<Option<u32>> = result.steady.iter().map(|one| one.clone).collect();
    assert_eq!(clones, [Some(0), Some(1)]);
}
