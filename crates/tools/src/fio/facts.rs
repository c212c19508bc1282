//! Facts about fio's jobs beside their numbers, and titles for them.

use super::jobs::{SEVERAL_JOBS, clones, jobs, number, text};
use super::several::{LEVEL, deepest_level, is_of_several};
use super::{canonical_name, consistency::contradictions, under_way};
use crate::Operation;
use crate::facts::Facts;
use crate::result::{Part, Reported, ReportedOption, ReportedValue, ToolResult};
use crate::title::{Title, size};
use raidlab_results::fact::{self, rate_of};
use raidlab_units::{parse_bytes, parse_duration};
use std::collections::BTreeMap;
use std::fmt::Write as _;

/// Adds the facts from fio's options and its count of jobs.
pub(super) fn of_options(result: &ToolResult, all: &mut Facts) {
    all_clones(result, all);
    errors(result, all);
    run_times(result, all);
    working_set(result, all);
    printed_rates(result, all);
    levels(result, all);
    under_way::add(result, all);
    for why in contradictions(result) {
        all.add(fact::CONTRADICTION, &why, "");
    }
    if result.options.is_empty() {
        all.add(fact::FIO_OPTIONS_UNTOLD, "true", "");
    }
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

/// Adds the number of clones of all jobs together: each job is reported with its own.
fn all_clones(result: &ToolResult, all: &mut Facts) {
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

/// Adds the errors of all jobs: the first error, and all short or dropped I/Os.
fn errors(result: &ToolResult, all: &mut Facts) {
    let errors = result.facts.iter().filter(|fact| fact.name == "error");
    let is_error = |fact: &&Reported| fact.value.number().is_some_and(|error| error != 0.0);
    if let Some(error) = errors.clone().find(is_error).or(errors.clone().next()) {
        all.say(fact::FIO_ERROR, error);
    }
    let of_parts = || result.parts.iter().flat_map(|part| &part.facts);
    for (name, known) in [
        ("short_ios", fact::FIO_SHORT_IOS),
        ("drop_ios", fact::FIO_DROPPED_IOS),
    ] {
        let counts = of_parts().filter(|fact| fact.name == name);
        let sum = counts
            .filter_map(|fact| fact.value.number())
            .reduce(|sum, count| sum + count);
        if let Some(sum) = sum {
            all.add(known, &sum.to_string(), "");
        }
    }
}

/// Adds the bytes that the jobs can touch together: each clone has files of its own, with the job's
/// name and the clone's number in their names, unless `filename` names one for all (fio(1)).
fn working_set(result: &ToolResult, all: &mut Facts) {
    let mut of_files: BTreeMap<String, u64> = BTreeMap::new();
    let mut own_files = 0_u64;
    for job in jobs(result) {
        let parts = result.parts.iter().filter(|part| part.job == job);
        let Some(bytes) = parts.filter_map(|part| part.file_size_bytes).max() else {
            continue;
        };
        let named = ["filename", "filename_format"];
        match named.iter().find_map(|name| text(result, job, name)) {
            Some(file) => {
                // The start of the last clone is that far behind that of the first.
                let apart = text(result, job, "offset_increment");
                let apart = apart.and_then(|step| Some(parse_bytes(&step).ok()?.0));
                let further = number(result, job, "numjobs").unwrap_or(1).max(1) - 1;
                let behind = apart.unwrap_or(0).saturating_mul(u64::from(further));
                let largest = of_files.entry(file).or_default();
                *largest = bytes.saturating_add(behind).max(*largest);
            }
            None => {
                let clones = u64::from(clones(result, job));
                own_files = own_files.saturating_add(bytes.saturating_mul(clones));
            }
        }
    }
    let bytes = of_files
        .values()
        .fold(own_files, |sum, bytes| sum.saturating_add(*bytes));
    if bytes > 0 {
        all.add(fact::JOB_WORKING_SET_BYTES, &bytes.to_string(), "bytes");
    }
}

/// Shares of I/Os by how many were in flight, of the first job that has them: what others say of
/// theirs would make more than 100 % with these.
fn levels(result: &ToolResult, all: &mut Facts) {
    let levels = || {
        let levels = result.facts.iter();
        levels.filter_map(|said| Some((said, said.name.strip_prefix(LEVEL)?)))
    };
    let first = levels().map(|(said, _)| said.job).next();
    for (said, key) in levels().filter(|(said, _)| Some(said.job) == first) {
        let share = said.value.to_string();
        all.add(&fact::fio_depth_level(key), &share, "percent");
    }
}

/// Adds the rates that fio printed for all parts of an operation together, where one of them is not
/// its counts over its time.
fn printed_rates(result: &ToolResult, all: &mut Facts) {
    type Own = fn(&Part) -> Option<f64>;
    let rates: [(&str, &str, Own); 2] = [
        ("printed-rate", rate_of::BYTES, |part| part.bytes_per_second),
        ("printed-iops", rate_of::REQUESTS, |part| {
            part.operations_per_second
        }),
    ];
    for &operation in Operation::ALL {
        let parts = || {
            result
                .parts
                .iter()
                .filter(|part| part.operation == operation)
        };
        for (name, what, own) in rates {
            if parts().all(|part| part.fact(name).is_none()) {
                continue;
            }
            let printed = |part: &Part| part.fact(name)?.value.number();
            let sum: f64 = parts()
                .filter_map(|part| printed(part).or_else(|| own(part)))
                .sum();
            all.add(&fact::fio_printed(operation, what), &sum.to_string(), "");
        }
    }
}

/// Adds the run times of the shortest and the longest of several jobs.
fn run_times(result: &ToolResult, all: &mut Facts) {
    let times = result
        .parts
        .iter()
        .filter_map(|part| Some((part.job, part.runtime_ns?)));
    let mut of_jobs: BTreeMap<u32, u64> = BTreeMap::new();
    for (job, time) in times {
        let longest = of_jobs.entry(job).or_default();
        *longest = time.max(*longest);
    }
    let ends = (of_jobs.values().min(), of_jobs.values().max());
    if let (2.., (Some(least), Some(most))) = (of_jobs.len(), ends) {
        all.add(fact::FIO_SHORTEST_RUNTIME_NS, &least.to_string(), "ns");
        all.add(fact::FIO_LONGEST_RUNTIME_NS, &most.to_string(), "ns");
    }
}

/// Adds one fact under its name in the vocabulary; returns false if it has none.
pub(super) fn one(said: &Reported, all: &mut Facts) -> bool {
    let name = said.name.as_str();
    if name.starts_with(LEVEL) {
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
        "rw" | "ioengine" | "iodepth" => {
            all.add(&fact::fio_option(name), &said.value.to_string(), "");
            return true;
        }
        // Facts that are summed over clones and parts elsewhere, or are about all groups.
        "jobs" | "printed-rate" | "printed-iops" | "disks" | SEVERAL_JOBS => return true,
        _ => return false,
    };
    all.say(known, said);
    true
}

/// fio's options, a job's own before those of all jobs, which they override.
fn options(result: &ToolResult) -> impl Iterator<Item = &ReportedOption> {
    let own = result.options.iter().filter(|option| option.job.is_some());
    own.chain(result.options.iter().filter(|option| option.job.is_none()))
}

/// Adds the facts that fio's reported options give about the job as a whole: they are reported
/// together, so an option that is missing had fio's default, but for switches without a value.
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
    if let Some(time) = common_runtime(result) {
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
    // fio does not repeat a switch without a value, so a `zero_buffers` that is missing may have
    // been given.
    let pattern = if on("zero_buffers") {
        Some("zero")
    } else if repeats.iter().any(|name| on(name)) {
        Some("repeated")
    } else {
        option("zero_buffers").map(|_| "random")
    };
    if let Some(pattern) = pattern {
        all.add(fact::JOB_DATA_PATTERN, pattern, "");
    }
}

/// The time that all jobs were to run, in nanoseconds; `None` where their times differ, or not
/// all have one.
fn common_runtime(result: &ToolResult) -> Option<u64> {
    let of = |job: Option<u32>| {
        let mut own = options(result).filter(|option| option.job.is_none() || option.job == job);
        seconds(
            &own.find(|option| canonical_name(&option.name) == "runtime")?
                .value,
        )
    };
    // Options of all jobs stand behind those of single ones, and name no job besides these.
    let is_of_one = options(result).next()?.job.is_some();
    let jobs = options(result).filter(|option| option.job.is_some() == is_of_one);
    let mut times = jobs.map(|option| of(option.job));
    let first = times.next().flatten()?;
    times.all(|time| time == Some(first)).then_some(first)
}

/// Parses one of fio's times: a plain number is in seconds.
fn seconds(text: &str) -> Option<u64> {
    match text.parse::<u64>() {
        Ok(seconds) => seconds.checked_mul(1_000_000_000),
        Err(_) => parse_duration(text).ok().map(|time| time.0),
    }
}

/// Adds the run times of the group's shortest and longest job from `..., mint=1msec, maxt=2msec`
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

/// The title of one group of jobs.
pub(super) fn title(result: &ToolResult) -> Title {
    let jobs = jobs(result);
    let mut kinds: Vec<(String, &str)> = Vec::new();
    let mut depth = 0_u32;
    let mut clones = 0_u32;
    let mut is_least = false;
    for &job in &jobs {
        let count = self::clones(result, job);
        clones = clones.saturating_add(count);
        // Options of one of several jobs say nothing about the others.
        let is_several = is_of_several(result, job);
        let asked = number(result, job, "iodepth").filter(|_| !is_several);
        let level = deepest_level(result, job);
        // Incomplete text has neither options nor depth levels.
        let untold = level.is_none() && text(result, job, "rw").is_none();
        let own = asked.or(level).unwrap_or(1);
        is_least |= asked.is_none() && (own > 1 || untold || is_several);
        depth = depth.saturating_add(count.saturating_mul(own.max(1)));
        let (mut words, class) = if is_several {
            let (name, class) = by_operations(result);
            (name.to_owned(), class)
        } else {
            pattern(result, job)
        };
        let own = |part: &&Part| jobs.len() == 1 || part.job == job;
        let parts = result.parts.iter().filter(own);
        let mut sizes = parts.map(|part| part.block_size_bytes);
        let block = if is_several {
            let first = sizes.next().flatten();
            first.filter(|_| sizes.all(|size| size == first))
        } else {
            sizes.flatten().next()
        };
        if let Some(block) = block {
            let _ = write!(words, " {}", size(block));
        }
        if !kinds.iter().any(|(known, _)| *known == words) {
            kinds.push((words, class));
        }
    }
    // Jobs that did nothing have no size.
    let longer = |words: &str| kinds.iter().any(|(other, _)| is_more(other, words));
    let told: Vec<&str> = kinds.iter().map(|(words, _)| words.as_str()).collect();
    let told: Vec<&str> = told.into_iter().filter(|words| !longer(words)).collect();
    let (depth, clones) = (depth.max(1), clones.max(1));
    let mut title = told.join(" beside ");
    let or_more = if is_least { " or more" } else { "" };
    let _ = write!(title, ", queue depth {depth}{or_more}");
    if clones > 1 {
        let _ = write!(title, " of {clones} jobs");
    }
    let mut classes = kinds.iter().map(|(_, class)| *class);
    let first = classes.next().unwrap_or("mixed");
    Title {
        title,
        class: if classes.all(|other| other == first) {
            first
        } else {
            "mixed"
        }
        .to_owned(),
        queue_depth: depth,
        streams: clones,
    }
}

/// Whether `other` is the same words followed by a size.
fn is_more(words: &str, other: &str) -> bool {
    words
        .strip_prefix(other)
        .is_some_and(|rest| rest.starts_with(' '))
}

/// A job's pattern in words, and its class.
fn pattern(result: &ToolResult, job: u32) -> (String, &'static str) {
    let pattern = text(result, job, "rw").unwrap_or_default();
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
    (name.to_owned(), class)
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

#[cfg(test)]
mod tests {
    use super::common_runtime;
    use crate::result::{ReportedOption, ToolResult};

    /// A job that was told less time than those beside it has not ended early.
    #[test]
    fn a_time_is_asked_for_where_all_jobs_have_it() {
        let of = |options: &[(Option<u32>, &str)]| {
            let mut result = ToolResult::new(crate::fio::JSON);
            let options = options.iter();
            let options = options.map(|(job, name)| match name.split_once('=') {
                Some((name, value)) => ReportedOption::new(*job, name, value),
                None => ReportedOption::new(*job, name, ""),
            });
            result.options = options.collect();
            common_runtime(&result).map(|time| time / 1_000_000_000)
        };
        let (a, b) = (Some(0), Some(1));
        assert_eq!(of(&[(None, "runtime=9")]), Some(9));
        assert_eq!(of(&[(None, "bs=4k"), (a, "runtime=2")]), Some(2));
        assert_eq!(of(&[(None, "runtime=9"), (a, "runtime=2")]), Some(2));
        assert_eq!(
            of(&[(None, "runtime=2"), (a, "name=x"), (b, "name=y")]),
            Some(2)
        );
        assert_eq!(of(&[(a, "runtime=1"), (b, "runtime=2")]), None);
        assert_eq!(
            of(&[(None, "runtime=2"), (a, "runtime=1"), (b, "name=y")]),
            None
        );
        assert_eq!(of(&[(a, "runtime=2"), (b, "size=1m")]), None);
        assert_eq!(of(&[]), None);
    }
}
