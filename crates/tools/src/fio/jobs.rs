//! Look-ups by name for each of fio's jobs: its options, and the facts in their place.

use crate::result::ToolResult;
use raidlab_units::parse_bytes;

/// The numbers of a result's jobs, rising.
pub(super) fn jobs(result: &ToolResult) -> Vec<u32> {
    let of_facts = result.facts.iter().filter_map(|fact| fact.job);
    let mut jobs: Vec<u32> = of_facts
        .chain(result.parts.iter().map(|part| part.job))
        .collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

/// The value of an option, a job's own or that of all jobs, else the job's fact of this name.
pub(super) fn text(result: &ToolResult, job: u32, name: &str) -> Option<String> {
    let of = |job| {
        let mut options = result.options.iter();
        options.find(|option| option.name == name && option.job == job)
    };
    let option = of(Some(job)).or_else(|| of(None));
    option
        .map(|option| option.value.clone())
        .or_else(|| Some(result.fact(Some(job), name)?.value.to_string()))
}

/// The name of the fact that text for people reports a job for several.
pub(super) const SEVERAL_JOBS: &str = "several-jobs";

/// The number of clones that a job's report stands for, at least one.
pub(super) fn clones(result: &ToolResult, job: u32) -> u32 {
    number(result, job, "jobs").unwrap_or(1).max(1)
}

pub(super) fn number(result: &ToolResult, job: u32, name: &str) -> Option<u32> {
    text(result, job, name)?.parse().ok()
}

/// The value for reads, writes or trims of an option such as `rate=10m,,5m`: missing ones have the
/// last value, empty ones none (fio(1), `bs`).
pub(super) fn of_three(value: &str, place: usize) -> Option<f64> {
    let values: Vec<&str> = value.split(',').map(str::trim).collect();
    let own = values.get(place).or(values.last())?;
    let number = parse_bytes(own).ok()?.0;
    (number > 0).then_some(number as f64)
}
