//! fio's JSON, also `json+`, of versions 2.0 to 3.x.
//!
//! A document begins on the first line that begins with `{`; lines before and after it are kept as
//! messages. fio prints `nan` where it divides by zero, which no JSON reader takes: such words
//! become `null` first. With `status-interval` there are several documents, each with the counts
//! since the start: the last one counts.
//!
//! What changed over the versions (fio's stat.c, tag by tag): `io_bytes` is in
//! KiB up to 2.20 and in bytes from 2.21 on, when `io_kbytes` came beside it;
//! latencies are `clat` and so on in microseconds before 2.99 and `clat_ns` in
//! nanoseconds since; counts of requests exist since 2.1.14; the bins of `json+`
//! are named by number up to 2.19 and by time since. Directions of
//! which nothing was done are printed with zeros: they become no part.

use super::consistency::note_printed;
use super::human::lines;
use super::json_latency::read_latencies;
use super::json_node::Node;
use super::several::is_of_several;
use super::under_way::names_of_disks;
use super::{terse, version_numbers, version_text};
use crate::Operation;
use crate::error::ParseError;
use crate::number::whole;
use crate::result::{
    DiskCounters, DiskUse, Part, Reported, ReportedOption, ReportedValue, ToolResult,
};
use raidlab_units::{line_of, lists, parse_bytes};
use serde_json::Value;
use std::collections::BTreeSet;

/// Reads fio's JSON.
///
/// # Errors
/// Where there is no JSON document, it is cut off, it is not fio's, or a
/// member is not what its name demands.
pub fn parse(text: &str) -> Result<ToolResult, ParseError> {
    let mut result = ToolResult::new(crate::fio::JSON);
    let (document, line) = document(text, &mut result.messages)?;
    let root = Node::root(&document, line)?;
    let version = root.text("fio version")?.unwrap_or_default();
    result.version = version_text(version);
    for key in ["time", "timestamp", "timestamp_ms"] {
        result.facts.extend(fact(&root, None, key, key));
    }
    if let Some(options) = root.object("global options")? {
        read_options(&options, None, &mut result.options)?;
    }
    let clients = root.objects("client_stats")?;
    let jobs = root.objects("jobs")?;
    for job in jobs.iter().chain(&clients) {
        // The sum that a client of servers adds would count everything twice.
        if !clients.is_empty() && job.text("jobname")? == Some("All clients") {
            let left_out = "the sum over all clients is left out";
            result.messages.push(left_out.to_owned());
            continue;
        }
        read_job(job, &mut result)?;
    }
    for disk in root.objects("disk_util")? {
        result.disks.push(read_disk(&disk)?);
    }
    let disks = names_of_disks(&result);
    let disks = disks.map(|names| Reported::new(None, "disks", names, ""));
    result.facts.extend(disks);
    count_clones(&mut result);
    forget_means(&mut result);
    result.time_flushes();
    Ok(result)
}

/// Adds to each job with `numjobs` how many of its clones are reported as one, as in text for
/// people: with `group_reporting`, which JSON does not report, all of them.
fn count_clones(result: &mut ToolResult) {
    let of = |job, name| Some(result.fact(Some(job), name)?.value.to_string());
    let whose = |job| (of(job, "jobname"), of(job, "hostname"));
    let mut jobs: Vec<u32> = result.facts.iter().filter_map(|fact| fact.job).collect();
    jobs.dedup();
    let counted = jobs.iter().filter_map(|&job| {
        if is_of_several(result, job) {
            return None;
        }
        let asked: u64 = option(result, job, &["numjobs"])?.parse().ok()?;
        let apart = jobs.iter().filter(|&&other| whose(other) == whose(job));
        let together = (asked / apart.count() as u64).max(1);
        Some(Reported::new(Some(job), "jobs", together, ""))
    });
    let counted: Vec<Reported> = counted.collect();
    result.facts.extend(counted);
}

/// Removes processor time of several jobs reported as one: fio prints the mean of all clones, and
/// JSON does not tell how many there were.
fn forget_means(result: &mut ToolResult) {
    let of_several = |job: &u32| is_of_several(result, *job);
    let jobs: BTreeSet<u32> = result.parts.iter().map(|part| part.job).collect();
    let jobs: Vec<u32> = jobs.into_iter().filter(of_several).collect();
    for part in &mut result.parts {
        part.cpu_percent = part.cpu_percent.filter(|_| !jobs.contains(&part.job));
    }
}

/// The last document with jobs, and the line of the first one, from 1.
fn document(text: &str, messages: &mut Vec<String>) -> Result<(Value, usize), ParseError> {
    let nothing = || ParseError::NoOutput {
        tool: crate::fio::TOOL,
        expected: "a line that begins with `{`, and in it `jobs` or `client_stats`",
    };
    let start = next_document(text).ok_or_else(nothing)?;
    let line = line_of(text, start);
    let clean = without_nan(&text[start..]);
    keep_lines(&text[..start], messages);
    let mut rest = clean.as_str();
    let mut found = None;
    while let Some(start) = next_document(rest) {
        keep_lines(&rest[..start], messages);
        rest = &rest[start..];
        let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match stream.next() {
            Some(Ok(value)) => {
                if value.get("jobs").is_some() || value.get("client_stats").is_some() {
                    found = Some(value);
                }
                rest = &rest[stream.byte_offset()..];
            }
            // A document that is cut off after a whole one: fio was killed.
            Some(Err(source)) if found.is_some() => {
                messages.push(format!("a further JSON document is broken: {source}"));
                rest = "";
            }
            Some(Err(source)) => return Err(ParseError::Json { line, source }),
            None => break,
        }
    }
    keep_lines(rest, messages);
    Ok((found.ok_or_else(nothing)?, line))
}

/// The beginning of the next document: on a line of its own, or wherever fio's version follows. A
/// job's output before it may be cut off within a line, as each of fio's processes has a buffer
/// of its own.
pub(super) fn next_document(text: &str) -> Option<usize> {
    let named = text.find("\"fio version\"").and_then(|version| {
        let before = text[..version].trim_end();
        before.ends_with('{').then(|| before.len() - 1)
    });
    let of_lines = next_line_of_document(text);
    named.into_iter().chain(of_lines).min()
}

fn next_line_of_document(text: &str) -> Option<usize> {
    if text.trim_start_matches([' ', '\t']).starts_with('{') {
        return text.find('{');
    }
    text.match_indices('\n').find_map(|(newline, _)| {
        let line = &text[newline + 1..];
        line.trim_start_matches([' ', '\t'])
            .starts_with('{')
            .then(|| line.find('{').map(|at| newline + 1 + at))
            .flatten()
    })
}

/// Keeps the lines beside the documents as messages. They include fio's other formats of output,
/// where several were requested.
fn keep_lines(text: &str, messages: &mut Vec<String>) {
    const OTHER_FORMS: &str = "results in its other forms beside the JSON are left out";
    for line in text.lines().map(str::trim) {
        if terse::is_line(line) || lines::job_header(line).is_some() {
            if !messages.iter().any(|known| known == OTHER_FORMS) {
                messages.push(OTHER_FORMS.to_owned());
            }
        } else if lines::is_message(line) {
            messages.push(line.to_owned());
        }
    }
}

/// Replaces `nan` and `inf`, with or without a sign, by `null` outside strings.
pub(super) fn without_nan(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let (mut in_string, mut escaped) = (false, false);
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        if !in_string && let Some(length) = nan_at(rest) {
            clean.push_str("null");
            rest = &rest[length..];
            continue;
        }
        match letter {
            _ if escaped => escaped = false,
            '\\' if in_string => escaped = true,
            '"' => in_string = !in_string,
            _ => {}
        }
        clean.push(letter);
        rest = &rest[letter.len_utf8()..];
    }
    clean
}

fn nan_at(text: &str) -> Option<usize> {
    let word = text.trim_start_matches(['-', '+']);
    let sign = text.len() - word.len();
    let name = word.as_bytes().get(..3)?;
    (sign <= 1 && (name.eq_ignore_ascii_case(b"nan") || name.eq_ignore_ascii_case(b"inf")))
        .then_some(sign + 3)
}

fn read_options(
    options: &Node<'_>,
    job: Option<u32>,
    to: &mut Vec<ReportedOption>,
) -> Result<(), ParseError> {
    for name in options.keys() {
        to.push(ReportedOption::new(
            job,
            name,
            options.text(name)?.unwrap_or_default(),
        ));
    }
    Ok(())
}

fn read_job(job: &Node<'_>, result: &mut ToolResult) -> Result<(), ParseError> {
    let number = result
        .facts
        .iter()
        .filter_map(|fact| fact.job)
        .max()
        .map_or(0, |last| last + 1);
    let label = job.text("jobname")?.unwrap_or_default();
    result
        .facts
        .push(Reported::new(Some(number), "jobname", label, ""));
    if let Some(options) = job.object("job options")? {
        read_options(&options, Some(number), &mut result.options)?;
    }
    let cpu = match (job.number("usr_cpu")?, job.number("sys_cpu")?) {
        (Some(user), Some(system)) => Some(user + system),
        _ => None,
    };
    for (key, operation) in [
        ("read", Operation::Read),
        ("write", Operation::Write),
        ("trim", Operation::Trim),
        ("mixed", Operation::Mixed),
    ] {
        let Some(direction) = job.object(key)? else {
            continue;
        };
        let mut part = Part::new(number, label, operation);
        part.cpu_percent = cpu;
        if read_direction(&direction, &mut part, result)? {
            result.parts.push(part);
        }
    }
    if let Some(sync) = job.object("sync")? {
        let mut part = Part::new(number, label, Operation::Sync);
        part.total_ios = sync.count("total_ios")?;
        let asked = |option: &ReportedOption| {
            option.name == "fdatasync" && option.job.is_none_or(|job| job == number)
        };
        // fio up to 3.42 counts those of `fdatasync` in another place than it prints (`td_io_queue`
        // of ioengines.c). It times them all, or none, and then nobody knows how many there were.
        // Where none were requested, the timed one is the flush at the job's end.
        if result.options.iter().any(asked)
            && let Some(latency) = sync.object("lat_ns")?
        {
            part.total_ios = latency.count("N")?;
        }
        part.total_ios = part.total_ios.filter(|&count| count > 0);
        if part.total_ios.is_some() {
            read_latencies(&sync, &mut part)?;
            result.parts.push(part);
        }
    }
    read_job_facts(job, number, result)
}

/// Reads everything about a job beside its directions. Members of future versions are kept under
/// their own names.
fn read_job_facts(job: &Node<'_>, number: u32, result: &mut ToolResult) -> Result<(), ParseError> {
    for key in job.keys() {
        if key == "jobname" {
            continue;
        }
        result.facts.extend(fact(job, Some(number), key, key));
        let is_distribution = key.starts_with("iodepth_")
            || matches!(key, "latency_ns" | "latency_us" | "latency_ms");
        if is_distribution && let Some(shares) = job.object(key)? {
            for bound in shares.keys() {
                let share = shares.number(bound)?.filter(|&share| share > 0.0);
                let name = format!("{key} {bound}");
                result
                    .facts
                    .extend(share.map(|share| Reported::new(Some(number), &name, share, "%")));
            }
        }
    }
    if let Some(state) = job.object("steadystate")? {
        read_steady_state(&state, number, result)?;
    }
    Ok(())
}

fn read_steady_state(
    state: &Node<'_>,
    number: u32,
    result: &mut ToolResult,
) -> Result<(), ParseError> {
    let mut scalars = |node: &Node<'_>| {
        for key in node.keys() {
            let name = format!("steadystate {key}");
            result.facts.extend(fact(node, Some(number), key, &name));
        }
    };
    scalars(state);
    if let Some(data) = state.object("data")? {
        scalars(&data);
    }
    Ok(())
}

/// Fills a part; returns false where nothing was done.
fn read_direction(
    direction: &Node<'_>,
    part: &mut Part,
    result: &ToolResult,
) -> Result<bool, ParseError> {
    let in_bytes = direction.has("io_kbytes")
        || version_numbers(&result.version).is_some_and(|version| version >= (2, 21));
    let factor = if in_bytes { 1 } else { 1024 };
    part.total_bytes = direction
        .count("io_bytes")?
        .map(|bytes| bytes.saturating_mul(factor));
    part.total_ios = direction.count("total_ios")?;
    if part.total_bytes.unwrap_or(0) == 0 && part.total_ios.unwrap_or(0) == 0 {
        return Ok(false);
    }
    part.runtime_ns = direction
        .count("runtime")?
        .filter(|&milliseconds| milliseconds > 0)
        .map(|milliseconds| milliseconds.saturating_mul(1_000_000));
    let requests = direction.number("iops")?;
    part.operations_per_second = requests.filter(|&rate| rate > 0.0);
    part.compute_rates();
    let rate = printed_rate(direction)?;
    note_printed(
        part,
        rate.map(|rate| (rate, 1024.0)),
        requests.map(|rate| (rate, 1.0)),
    );
    part.file_size_bytes = file_bytes(result, part.job);
    part.block_size_bytes = block_size(result, part);
    read_latencies(direction, part)?;
    // Rates over windows are zero where no window was complete.
    let unsampled = |key: &str, prefix: &str| -> Result<bool, ParseError> {
        let highest = direction.number(&format!("{prefix}max"))?;
        Ok(key.starts_with(prefix) && highest.unwrap_or(0.0) == 0.0)
    };
    const TAKEN: &str = "io_bytes io_kbytes total_ios runtime iops bw bw_bytes N";
    for key in direction.keys() {
        if lists(TAKEN, key) || unsampled(key, "bw_")? || unsampled(key, "iops_")? {
            continue;
        }
        part.facts.extend(fact(direction, Some(part.job), key, key));
    }
    Ok(true)
}

/// The rate that fio printed: `bw` is rounded down to KiB/s, hence the step.
fn printed_rate(direction: &Node<'_>) -> Result<Option<f64>, ParseError> {
    Ok(match direction.number("bw_bytes")? {
        Some(rate) => Some(rate),
        None => direction.number("bw")?.map(|rate| rate * 1024.0),
    })
}

/// The value of a job's option, its own or that of all jobs.
fn option<'result>(result: &'result ToolResult, job: u32, names: &[&str]) -> Option<&'result str> {
    let of = |job: Option<u32>| {
        result
            .options
            .iter()
            .rfind(|option| option.job == job && names.contains(&option.name.as_str()))
    };
    of(Some(job))
        .or_else(|| of(None))
        .map(|option| option.value.as_str())
}

/// The bytes of all files of a job: `size` is that of all files together, `filesize` that of each,
/// which takes precedence. The files in `filename` are counted whatever `nrfiles` says (fio 3.33).
fn file_bytes(result: &ToolResult, job: u32) -> Option<u64> {
    let told = |names: &[&str]| option(result, job, names);
    let bytes = |size: &str| Some(parse_bytes(size).ok()?.0);
    let Some(each) = told(&["filesize"]) else {
        return bytes(told(&["size"])?);
    };
    let files = match told(&["filename"]) {
        Some(names) => names.replace("\\:", "").split(':').count() as u64,
        None => told(&["nrfiles", "nr_files"]).map_or(Some(1), |count| count.parse().ok())?,
    };
    bytes(each)?.checked_mul(files)
}

/// The block size that the options give, if the counts agree.
fn block_size(result: &ToolResult, part: &Part) -> Option<u64> {
    let named = option(result, part.job, &["bs", "blocksize"]);
    let mut sizes = named.unwrap_or("4k").split(',');
    let first = sizes.next()?;
    let position = match part.operation {
        Operation::Write => 0,
        Operation::Trim => 1,
        _ => usize::MAX,
    };
    let size = sizes.nth(position).unwrap_or(first);
    let size = parse_bytes(size).ok()?.0;
    match (part.total_ios, part.total_bytes) {
        // Short requests make the sum less than the product.
        (Some(ios), Some(bytes)) => {
            let product = ios.checked_mul(size)?;
            (bytes <= product && bytes > product.saturating_sub(size)).then_some(size)
        }
        _ => named.map(|_| size),
    }
}

fn read_disk(disk: &Node<'_>) -> Result<DiskUse, ParseError> {
    let counters = |prefix: &str| -> Result<DiskCounters, ParseError> {
        let count = |key: &str| disk.count(&format!("{prefix}{key}"));
        Ok(DiskCounters {
            read_ios: count("read_ios")?,
            write_ios: count("write_ios")?,
            read_sectors: count("read_sectors")?,
            write_sectors: count("write_sectors")?,
            read_merges: count("read_merges")?,
            // For an array fio prints `aggr_write_merge`, in the singular.
            write_merges: match count("write_merges")? {
                Some(merges) => Some(merges),
                None => count("write_merge")?,
            },
            read_ticks_ms: count("read_ticks")?,
            write_ticks_ms: count("write_ticks")?,
            in_queue_ms: count("in_queue")?,
            util_percent: disk.number(&format!("{prefix}util"))?,
        })
    };
    let members = counters("aggr_")?;
    Ok(DiskUse {
        name: disk.text("name")?.unwrap_or_default().to_owned(),
        own: counters("")?,
        members: (members != DiskCounters::default()).then_some(members),
    })
}

/// A scalar member as a fact called `name`.
fn fact(node: &Node<'_>, job: Option<u32>, key: &str, name: &str) -> Option<Reported> {
    let value = match node.scalar(key)? {
        Value::String(text) => ReportedValue::Text(text.clone()),
        Value::Number(number) => match number.as_u64() {
            Some(count) => ReportedValue::Count(count),
            None => ReportedValue::Number(number.as_f64().filter(|number| number.is_finite())?),
        },
        _ => return None,
    };
    let unit = match key {
        "usr_cpu" | "sys_cpu" | "bw_agg" | "latency_percentile" | "util" => "%",
        "bw_min" | "bw_max" | "bw_mean" | "bw_dev" => "KiB/s",
        "job_runtime" | "job_start" | "timestamp_ms" => "ms",
        "elapsed" => "s",
        "latency_target" | "latency_window" => "us",
        _ => "",
    };
    // A share such as 2.0 is printed as a float and stays one; counts that some versions print as
    // floats become whole numbers again.
    let value = match value {
        ReportedValue::Number(number) if unit.is_empty() && number.fract() == 0.0 => {
            whole(number).map_or(ReportedValue::Number(number), ReportedValue::Count)
        }
        value => value,
    };
    Some(Reported::new(job, name, value, unit))
}

#[cfg(test)]
mod tests;
