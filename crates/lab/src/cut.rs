//! Cutting a run into shards of like cost, for many machines.
//!
//! Experiments are never split, as their jobs build on each other. The cost of one is estimated
//! from its steps: the virtual time of its jobs and waits, weighed by the bench's effort. The
//! costliest goes to a shard first, and each further one to the shard that has the least so far (R.
//! L. Graham, *Bounds on Multiprocessing Timing Anomalies*, 1969): no shard then costs more than
//! the average and one experiment. All costs are whole numbers, and equal ones are ordered by their
//! keys, so that the same plan is cut in the same way on every machine.

use crate::experiment::{Experiment, PlannedJob, PlannedStep, by_steps};
use crate::plan::Listed;
use crate::subject::SubjectKind;
use crate::suite::Wait;
use raidlab_units::Nanos;
use raidlab_workload::JobSpec;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::num::NonZero;

/// The assumed rate of a job that ends by size: a disk's, 100 MB/s.
const BYTES_PER_SECOND: u64 = 100_000_000;
/// The assumed length of a job or a wait about which nothing is known.
const UNKNOWN: Nanos = Nanos::from_secs(60);
/// The time for building up an experiment, and for a guest's boot: some seconds.
const BEGINNING: Nanos = Nanos::from_secs(5);
/// The factor by which a modelled pool takes longer than a mirror: `mirror-2015 --quick` on one
/// thread, 2.8 s and 0.5 s.
const POOL: u64 = 5;

/// The shard of each experiment, by position, where the run is cut into `count`. `listed`: the
/// experiments in the plan's form, whose labels and digests are the keys.
#[must_use]
pub fn cut(experiments: &[Experiment], listed: &[Listed], count: NonZero<u32>) -> Vec<u32> {
    let costs = by_steps(experiments, expected_time, weighed);
    let mut order: Vec<_> = costs.into_iter().zip(listed).enumerate().collect();
    order.sort_by_key(|(_, (cost, listed))| (Reverse(*cost), &listed.sha256, &listed.label));
    // Further shards stay empty.
    let used = u32::try_from(experiments.len()).map_or(count.get(), |all| all.min(count.get()));
    let mut loads: BinaryHeap<_> = (0..used).map(|shard| Reverse((0_u64, shard))).collect();
    let mut shards = vec![0; experiments.len()];
    for (position, (cost, _)) in order {
        if let Some(Reverse((load, shard))) = loads.pop() {
            shards[position] = shard;
            loads.push(Reverse((load.saturating_add(cost), shard)));
        }
    }
    shards
}

/// The virtual time that steps are expected to take, nanoseconds, the beginning included.
fn expected_time(steps: &[PlannedStep]) -> u64 {
    let times = steps.iter().map(|step| match step {
        PlannedStep::Job(job) => job_time(job),
        PlannedStep::Rounds(rounds) => {
            let round = sum(rounds.jobs.iter().map(job_time));
            round.saturating_mul(u64::from(rounds.at_most))
        }
        // Idle time is skipped, or is short.
        PlannedStep::Wait(Wait::Time(time)) => time.0.min(UNKNOWN.0),
        PlannedStep::Wait(Wait::Until { at_most, .. }) => at_most.0.min(UNKNOWN.0),
        PlannedStep::Event(_) | PlannedStep::Check => 0,
    });
    sum(times).saturating_add(BEGINNING.0)
}

/// The expected cost of an experiment by the time of its steps, to be compared with others of
/// the same run.
fn weighed(experiment: &Experiment, time: &u64) -> u64 {
    match experiment.subject.kind {
        SubjectKind::ZfsMirror => time.saturating_mul(POOL),
        _ => *time,
    }
}

fn sum(times: impl Iterator<Item = u64>) -> u64 {
    times.fold(0, u64::saturating_add)
}

/// The time that a job is expected to run: one part after the other where it has walls, else its
/// parts at the same time.
fn job_time(job: &PlannedJob) -> u64 {
    let Ok(group) = job.work.group() else {
        return UNKNOWN.0;
    };
    let mut stages: BTreeMap<usize, u64> = BTreeMap::new();
    let mut stage = 0;
    for spec in &group.jobs {
        stage += usize::from(spec.stonewall);
        let longest = stages.entry(stage).or_default();
        *longest = (*longest).max(spec_time(spec));
    }
    sum(stages.into_values())
}

fn spec_time(spec: &JobSpec) -> u64 {
    let by_count = spec.request_limit.map(|requests| {
        let bytes = requests.saturating_mul(spec.block_size.0);
        at_rate(bytes)
    });
    let amount = spec.io_size.or(spec.size).or(spec.file_size);
    let by_size = amount.map(|bytes| {
        let clones = u64::from(spec.num_jobs).saturating_mul(u64::from(spec.loops));
        at_rate(bytes.0.saturating_mul(clones))
    });
    let by_time = spec.runtime.map(|time| time.0);
    let ends = match spec.time_based {
        true => by_time,
        false => [by_count, by_size, by_time].into_iter().flatten().min(),
    };
    let own = ends.unwrap_or(UNKNOWN.0);
    sum([own, spec.ramp_time.0, spec.start_delay.0].into_iter())
}

/// The assumed time for so many bytes, nanoseconds.
fn at_rate(bytes: u64) -> u64 {
    bytes.saturating_mul(1_000_000_000 / BYTES_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::{cut, expected_time, weighed};
    use crate::plan::Listed;
    use crate::{Choices, Experiment, Suite, by_steps};
    use std::num::NonZero;

    fn experiments() -> (Vec<Experiment>, Vec<Listed>) {
        let mut suite = Suite::load("mirror-2015").expect("built in");
        suite.repetitions = 25;
        let fits = ["strict", "joint"].map(str::to_owned).to_vec();
        let choices = Choices {
            fits,
            ..Choices::default()
        };
        let all = suite.experiments(&suite.subjects, &choices);
        let listed = Listed::all(&all, 25);
        (all, listed)
    }

    #[test]
    fn every_cell_is_in_one_shard_and_shards_are_of_like_cost() {
        let (all, listed) = experiments();
        assert_eq!(all.len(), 200);
        let costs = by_steps(&all, expected_time, weighed);
        let (total, longest) = (costs.iter().sum::<u64>(), costs.iter().max().copied());
        for count in [1, 2, 3, 7, 64, 199, 200, 1000] {
            let count = NonZero::new(count).expect("not 0");
            let shards = cut(&all, &listed, count);
            let mut loads = vec![0; count.get() as usize];
            for (shard, cost) in shards.iter().zip(&costs) {
                loads[*shard as usize] += cost;
            }
            let bound = total / u64::from(count.get()) + longest.unwrap_or(0);
            assert!(loads.iter().all(|load| *load <= bound), "{count}");
            // Where there are as many cells as shards, none of these is idle.
            let idle = loads.iter().filter(|load| **load == 0).count();
            assert_eq!(idle, loads.len().saturating_sub(all.len()), "{count}");
        }
    }

    #[test]
    fn the_cut_is_by_the_cells_keys_and_not_by_their_order() {
        let (all, listed) = experiments();
        let count = NonZero::new(7).expect("not 0");
        let shards = cut(&all, &listed, count);
        let (mut backwards, mut keys) = (all.clone(), listed.clone());
        backwards.reverse();
        keys.reverse();
        let mut again = cut(&backwards, &keys, count);
        again.reverse();
        assert_eq!(again, shards);
    }

    #[test]
    fn the_costly_are_told_from_the_cheap() {
        let cost = |suite: &str, subject: &str| {
            let suite = Suite::load(suite).expect("built in");
            let subject = suite.subject(subject).expect("its own");
            let choices = Choices::default();
            by_steps(
                &suite.experiments(&[subject], &choices),
                expected_time,
                weighed,
            )[0]
        };
        let mirror = cost("mirror-2015", "md");
        assert!(cost("mirror-2015", "zfs") > 3 * mirror);
        assert!(cost("quick", "md") < mirror);
    }
}
