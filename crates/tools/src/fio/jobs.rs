//! Look-ups by name for each of fio's jobs: its options, and the facts in their place.

use super::consistency::is_unlike_its_options;
use crate::result::ToolResult;

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

/// Whether several jobs are reported as one (`group_reporting`): under the name of the first, in
/// JSON with the options of the last. The name is among these only where a command line gave it:
/// for a job of a file, if it alone is reported of its group, the figures tell.
pub(super) fn is_of_several(result: &ToolResult, job: u32) -> bool {
    let name = result.fact(Some(job), "jobname");
    let mut own = result.options.iter();
    let own = own.find(|option| option.job == Some(job) && option.name == "name");
    let is_other = own
        .zip(name)
        .is_some_and(|(own, name)| name.value.to_string() != own.value);
    let is_of_file = own.is_none() && !result.options.is_empty();
    is_other
        || result.fact(Some(job), SEVERAL_JOBS).is_some()
        || (is_of_file && is_alone(result, job) && is_unlike_its_options(result, job))
}

/// Whether no other job of a job's group is reported.
fn is_alone(result: &ToolResult, job: u32) -> bool {
    let group = result.fact(Some(job), "groupid").map(|fact| &fact.value);
    let groups = result.facts.iter().filter(|fact| fact.name == "groupid");
    groups.filter(|fact| Some(&fact.value) == group).count() == 1
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
