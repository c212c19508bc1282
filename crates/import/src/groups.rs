//! The groups of a tool's output: what was measured at one time.

use raidlab_tools::{Operation, Part, ToolResult};
use std::collections::BTreeMap;

/// Whether a job of the output has no row.
pub(crate) fn did_nothing(result: &ToolResult, job: u32) -> bool {
    let mut parts = result.parts.iter();
    !parts.any(|part| part.job == job && result.tool.is_row(part))
}

/// Splits the output into what was measured at one time.
pub(crate) fn groups(result: &ToolResult) -> Vec<ToolResult> {
    let mut groups: BTreeMap<u64, ToolResult> = BTreeMap::new();
    for part in &result.parts {
        let group = groups
            .entry(result.tool.group(result, part))
            .or_insert_with(|| ToolResult {
                parts: Vec::new(),
                facts: Vec::new(),
                options: Vec::new(),
                ..result.clone()
            });
        group.parts.push(part.clone());
    }
    let single = groups.len() == 1;
    for (&number, group) in &mut groups {
        let jobs: Vec<u32> = group.parts.iter().map(|part| part.job).collect();
        let in_group = |job| {
            let idle = Part::new(job, "", Operation::Read);
            jobs.contains(&job)
                || (did_nothing(result, job) && result.tool.group(result, &idle) == number)
        };
        let is_ours = |job: Option<u32>| job.is_none_or(in_group);
        let facts = result.facts.iter().filter(|fact| is_ours(fact.job));
        group.facts = facts.cloned().collect();
        let options = result.options.iter().filter(|option| is_ours(option.job));
        group.options = options.cloned().collect();
        if !single {
            // fio counts disks over all groups together.
            group.disks.clear();
        }
    }
    groups.into_values().collect()
}
