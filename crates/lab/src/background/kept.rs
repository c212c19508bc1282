//! The share of their rates that jobs keep during a resync, recovery or check.
//!
//! A job during which a sync ran from start to end is compared with the same job without one: equal
//! in all but name, seed and run time. Of several the nearest before it is used, or without one the
//! first after it; one on a whole array is preferred to one on a degraded array, with which a job
//! beside a resync or check of a whole array is not compared.

use super::template;
use crate::experiment::{Experiment, PlannedJob};
use crate::suite::Work;
use raidlab_store::{Measurement, Operation};
use raidlab_workload::{JobGroup, JobSpec};

/// The class of these rows.
const CLASS: &str = "kept-during-rebuild";

/// A row for each row of a job that also ran without a sync.
pub(crate) fn kept(experiment: &Experiment, bench: &str, rows: &[Measurement]) -> Vec<Measurement> {
    let job_of = |row: &Measurement| {
        let mut jobs = experiment.jobs();
        jobs.find(|job| job.sequence == row.sequence)
    };
    let disturbed = rows.iter().filter(|row| {
        let through = row.sync_percent_start.is_some() && row.sync_percent_end.is_some();
        through && !row.op.is_background() && (row.value() > 0.0 || row.did_nothing())
    });
    disturbed
        .filter_map(|row| {
            let job = job_of(row)?;
            let alike = rows.iter().filter(|other| {
                let undisturbed =
                    other.sync_percent_start.is_none() && other.sync_percent_end.is_none();
                let is_like = is_degraded(row) || !is_degraded(other);
                undisturbed
                    && is_like
                    && (other.op, &other.part) == (row.op, &row.part)
                    && other.value() > 0.0
                    && job_of(other).is_some_and(|other| is_same(job, other))
            });
            let other = alike.min_by_key(|other| {
                let is_later = other.sequence > row.sequence;
                let distance = other.sequence.abs_diff(row.sequence);
                (is_degraded(other), is_later, distance)
            })?;
            Some(Measurement {
                op: Operation::Kept,
                part: [row.job.as_str(), row.op.name(), row.part.as_str()]
                    .join(" ")
                    .trim_end()
                    .to_owned(),
                job: row.job.clone(),
                job_title: format!("job {}, against job {} without a sync", row.job, other.job),
                class: CLASS.to_owned(),
                started_ns: row.started_ns,
                runtime_ns: row.runtime_ns,
                block_size_bytes: row.block_size_bytes,
                queue_depth: row.queue_depth,
                streams: row.streams,
                kept_percent: Some(100.0 * row.value() / other.value()),
                array_state_start: row.array_state_start.clone(),
                array_state_end: row.array_state_end.clone(),
                sync_percent_start: row.sync_percent_start,
                sync_percent_end: row.sync_percent_end,
                ..template(experiment, bench)
            })
        })
        .collect()
}

/// Whether a member was missing when the row's job began.
fn is_degraded(row: &Measurement) -> bool {
    row.array_state_start.contains('_')
}

/// Whether two jobs do the same work.
fn is_same(one: &PlannedJob, other: &PlannedJob) -> bool {
    match (one.work.group(), other.work.group()) {
        (Ok(one), Ok(other)) => shape(one) == shape(other),
        (Err(_), Err(_)) => match (&one.work, &other.work) {
            (Work::Fio { jobs, .. }, Work::Fio { jobs: others, .. }) => jobs == others,
            (one, other) => one == other,
        },
        _ => false,
    }
}

/// A group without the parts that do not change its rate.
fn shape(group: &JobGroup) -> JobGroup {
    let jobs = group.jobs.iter().map(|job| JobSpec {
        name: String::new(),
        random_seed: None,
        runtime: None,
        ..job.clone()
    });
    JobGroup {
        jobs: jobs.collect(),
        ..group.clone()
    }
}
