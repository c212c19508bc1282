//! Titles and classes for jobs that have none: from what a tool says it did.

use raidlab_tools::{FactValue, Operation, Tool, ToolResult};
use std::fmt::Write as _;

/// A job's words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) title: String,
    pub(crate) class: String,
    /// I/Os in flight.
    pub(crate) queue_depth: u32,
    /// Jobs that ran together.
    pub(crate) streams: u32,
}

/// Describes one group of fio's jobs, or one run of another tool.
pub(crate) fn describe(result: &ToolResult) -> Words {
    match result.tool {
        Tool::Fio => fio(result),
        Tool::Bonnie => words(
            &format!("bonnie++{}", sized(result, " of a file of ")),
            "bonnie",
        ),
        Tool::Iozone => words(
            &format!("iozone{}", sized(result, " up to files of ")),
            "iozone",
        ),
        Tool::Dd => {
            let block = result.parts.iter().find_map(|part| part.block_size_bytes);
            let block = block.map_or_else(String::new, |block| {
                format!(" in blocks of {}", size(block))
            });
            words(&format!("dd{block}"), "sequential")
        }
    }
}

fn words(title: &str, class: &str) -> Words {
    Words {
        title: title.to_owned(),
        class: class.to_owned(),
        queue_depth: 1,
        streams: 1,
    }
}

fn sized(result: &ToolResult, words: &str) -> String {
    let largest = result
        .parts
        .iter()
        .filter_map(|part| part.file_size_bytes)
        .max();
    largest.map_or_else(String::new, |bytes| format!("{words}{}", size(bytes)))
}

fn fio(result: &ToolResult) -> Words {
    let pattern = text(result, "rw").unwrap_or_default();
    let (name, class) = match pattern.split([':', ',']).next().unwrap_or_default() {
        "read" => ("sequential read", "sequential-read"),
        "write" => ("sequential write", "sequential-write"),
        "randread" => ("random read", "random-read"),
        "randwrite" => ("random write", "random-write"),
        "rw" | "readwrite" => ("sequential reads and writes", "mixed"),
        "randrw" => ("random reads and writes", "mixed"),
        "trim" | "randtrim" => ("trim", "trim"),
        _ => by_operations(result),
    };
    let mut depth = 0_u32;
    let mut clones = 0_u32;
    for job in jobs(result) {
        let count = |name: &str| number(result, Some(job), name).unwrap_or(1).max(1);
        clones = clones.saturating_add(count("jobs"));
        depth = depth.saturating_add(count("jobs").saturating_mul(count("iodepth")));
    }
    let (depth, clones) = (depth.max(1), clones.max(1));
    let mut title = name.to_owned();
    if let Some(block) = result.parts.iter().find_map(|part| part.block_size_bytes) {
        let _ = write!(title, " {}", size(block));
    }
    let _ = write!(title, ", queue depth {depth}");
    if clones > 1 {
        let _ = write!(title, " of {clones} jobs");
    }
    Words {
        title,
        class: class.to_owned(),
        queue_depth: depth,
        streams: clones,
    }
}

fn by_operations(result: &ToolResult) -> (&'static str, &'static str) {
    let did = |operation| {
        let mut parts = result.parts.iter();
        parts.any(|part| part.operation == operation && part.total_bytes.is_some_and(|b| b > 0))
    };
    match (did(Operation::Read), did(Operation::Write)) {
        (true, false) => ("read", "read"),
        (false, true) => ("write", "write"),
        _ => ("reads and writes", "mixed"),
    }
}

/// The numbers of a result's jobs, rising.
pub(crate) fn jobs(result: &ToolResult) -> Vec<u32> {
    let of_facts = result.facts.iter().filter_map(|fact| fact.job);
    let mut jobs: Vec<u32> = of_facts
        .chain(result.parts.iter().map(|part| part.job))
        .collect();
    jobs.sort_unstable();
    jobs.dedup();
    jobs
}

/// An option's or fact's value: of any job, else of all.
fn text(result: &ToolResult, name: &str) -> Option<String> {
    let option = result.options.iter().find(|option| option.name == name);
    let fact = result.facts.iter().find(|fact| fact.name == name);
    option
        .map(|option| option.value.clone())
        .or_else(|| fact.map(|fact| fact.value.to_string()))
}

fn number(result: &ToolResult, job: Option<u32>, name: &str) -> Option<u32> {
    let mut options = result.options.iter();
    let own = options.find(|option| option.name == name && option.job == job);
    let shared = result
        .options
        .iter()
        .find(|option| option.name == name && option.job.is_none());
    if let Some(option) = own.or(shared) {
        return option.value.parse().ok();
    }
    let value = match &result.fact(job, name)?.value {
        FactValue::Count(count) => return u32::try_from(*count).ok(),
        value => value.to_string(),
    };
    value.parse().ok()
}

/// `4 KiB`: whole numbers of the largest unit that fits.
pub(crate) fn size(bytes: u64) -> String {
    let units = [
        (1_u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    let fits = units
        .iter()
        .find(|(unit, _)| bytes >= *unit && bytes.is_multiple_of(*unit));
    fits.map_or_else(
        || format!("{bytes} B"),
        |(unit, name)| format!("{} {name}", bytes / unit),
    )
}
