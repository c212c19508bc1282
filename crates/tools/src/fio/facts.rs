//! What fio says of its jobs beside their numbers, and words for them.

use super::canonical_name;
use crate::Operation;
use crate::facts::Facts;
use crate::result::{Reported, ReportedOption, ReportedValue, ToolResult};
use crate::title::{Title, size};
use raidlab_results::fact;
use raidlab_units::{parse_bytes, parse_duration};
use std::fmt::Write as _;

/// What fio's options and its count of jobs say.
pub(super) fn of_options(result: &ToolResult, all: &mut Facts) {
    clones(result, all);
    for option in options(result) {
        let switch = if option.value.is_empty() {
            "1"
        } else {
            &option.value
        };
        all.add(&fact::fio_option(&canonical_name(&option.name)), switch, "");
    }
    job(result, all);
}

/// Clones of all jobs together: each job is told with its own.
fn clones(result: &ToolResult, all: &mut Facts) {
    let clones = result.facts.iter().filter(|fact| fact.name == "jobs");
    let sum: u64 = clones
        .filter_map(|fact| match fact.value {
            ReportedValue::Count(count) => Some(count),
            ReportedValue::Number(_) | ReportedValue::Text(_) => None,
        })
        .fold(0, u64::saturating_add);
    if sum > 0 {
        all.add(fact::FIO_JOBS, &sum.to_string(), "");
    }
}

/// One fact by its name in the vocabulary; false: it does not have it.
pub(super) fn one(said: &Reported, all: &mut Facts) -> bool {
    let name = said.name.as_str();
    if let Some(key) = name.strip_prefix("iodepth_level ") {
        all.add(
            &fact::fio_depth_level(key),
            &said.value.to_string(),
            "percent",
        );
        return true;
    }
    if name.starts_with("run status ") {
        group(&said.value.to_string(), all);
        return true;
    }
    let known = match name {
        "error" => fact::FIO_ERROR,
        "short_ios" => fact::FIO_SHORT_IOS,
        "drop_ios" => fact::FIO_DROPPED_IOS,
        "sys_cpu" => fact::FIO_SYSTEM_CPU_PERCENT,
        // fio's own number, decoded.
        "printed-rate" => fact::FIO_PRINTED_BYTES_PER_SECOND,
        "rw" | "ioengine" | "iodepth" => {
            all.add(&fact::fio_option(name), &said.value.to_string(), "");
            return true;
        }
        // What the clones are summed into.
        "jobs" => return true,
        _ => return false,
    };
    all.say(known, said);
    true
}

/// fio's options, a job's own before those of all jobs, which they overrule.
fn options(result: &ToolResult) -> impl Iterator<Item = &ReportedOption> {
    let own = result.options.iter().filter(|option| option.job.is_some());
    own.chain(result.options.iter().filter(|option| option.job.is_none()))
}

/// What fio's reported options say of the job as a whole: they are reported together,
/// so what is not among them was left to fio's defaults.
fn job(result: &ToolResult, all: &mut Facts) {
    if result.options.is_empty() {
        return;
    }
    let option = |name: &str| {
        options(result)
            .find(|option| canonical_name(&option.name) == name)
            .map(|option| option.value.as_str())
    };
    let on = |name: &str| option(name).is_some_and(|value| value != "0");
    let time = option("runtime").and_then(seconds);
    if let Some(time) = time {
        all.add(fact::JOB_ASKED_RUNTIME_NS, &time.to_string(), "ns");
    }
    let offset = option("offset").map_or(Some(0), |text| parse_bytes(text).ok().map(|b| b.0));
    if let Some(offset) = offset {
        all.add(fact::JOB_OFFSET_BYTES, &offset.to_string(), "bytes");
    }
    // `buffer_pattern` fills a block with one pattern, `dedupe_percentage` repeats
    // whole blocks, the third makes a part of each block zeros.
    let repeats = [
        "buffer_pattern",
        "dedupe_percentage",
        "buffer_compress_percentage",
    ];
    let pattern = if on("zero_buffers") {
        "zero"
    } else if repeats.iter().any(|name| on(name)) {
        "repeated"
    } else {
        "random"
    };
    all.add(fact::JOB_DATA_PATTERN, pattern, "");
}

/// fio's times: a plain number is of seconds.
fn seconds(text: &str) -> Option<u64> {
    match text.parse::<u64>() {
        Ok(seconds) => seconds.checked_mul(1_000_000_000),
        Err(_) => parse_duration(text).ok().map(|time| time.0),
    }
}

/// The group's shortest and longest job out of `..., mint=1msec, maxt=2msec`
/// or, since fio 3, `run=1-2msec`.
fn group(text: &str, all: &mut Facts) {
    let time = |text: &str| {
        let text = text.trim().trim_end_matches("ec");
        parse_duration(text).ok().map(|time| time.0.to_string())
    };
    for (key, value) in text.split(',').filter_map(|pair| pair.split_once('=')) {
        let (shortest, longest) = match key.trim() {
            "mint" => (time(value), None),
            "maxt" => (None, time(value)),
            "run" => {
                let (from, to) = value.split_once('-').unwrap_or((value, value));
                let from = if from.ends_with(|last: char| last.is_ascii_digit()) {
                    format!("{from}msec")
                } else {
                    from.to_owned()
                };
                (time(&from), time(to))
            }
            _ => continue,
        };
        if let Some(time) = shortest {
            all.add(fact::FIO_SHORTEST_RUNTIME_NS, &time, "ns");
        }
        if let Some(time) = longest {
            all.add(fact::FIO_LONGEST_RUNTIME_NS, &time, "ns");
        }
    }
}

/// Describes one group of jobs.
pub(super) fn title(result: &ToolResult) -> Title {
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
    Title {
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
fn jobs(result: &ToolResult) -> Vec<u32> {
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
        ReportedValue::Count(count) => return u32::try_from(*count).ok(),
        value => value.to_string(),
    };
    value.parse().ok()
}
