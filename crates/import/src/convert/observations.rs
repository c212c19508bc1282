//! What a tool said beside its rates, in the store's vocabulary.

use super::tool_name;
use raidlab_store::{Observation, Scope, fact};
use raidlab_tools::{Fact, FactValue, Part, ReportedOption, Tool, ToolResult};
use raidlab_units::{parse_bytes, parse_duration};

/// What else a tool said, in the store's vocabulary; names that it does not
/// have are kept as `tool.NAME`. A name occurs once; of several values the
/// first is kept.
#[must_use]
pub fn observations(result: &ToolResult, scope: &Scope) -> Vec<Observation> {
    let mut all = Collector {
        scope,
        source: tool_name(result),
        all: Vec::new(),
    };
    if result.tool == Tool::Fio {
        fio_clones(result, &mut all);
        for option in fio_options(result) {
            let switch = if option.value.is_empty() {
                "1"
            } else {
                &option.value
            };
            let name = raidlab_tools::fio::canonical_name(&option.name);
            all.add(&fact::fio_option(&name), switch, "");
        }
        fio_job(result, &mut all);
    }
    let about_parts = result
        .parts
        .iter()
        .flat_map(|part| part.facts.iter().map(move |fact| (fact, Some(part))));
    for (said, part) in result
        .facts
        .iter()
        .map(|fact| (fact, None))
        .chain(about_parts)
    {
        one(result.tool, said, part, &mut all);
    }
    match result.tool {
        Tool::Bonnie => bonnie(result, &mut all),
        Tool::Iozone => iozone(result, &mut all),
        Tool::Dd => {
            let operand = |name: &str| {
                let mut given = result.options.iter().rev();
                let found = given.find(|option| option.name == name);
                found.map(|option| option.value.as_str())
            };
            for (name, value, unit) in dd_facts(operand) {
                all.add(&name, &value, unit);
            }
        }
        Tool::Fio => {}
    }
    let largest = result.parts.iter().filter_map(|part| part.file_size_bytes);
    if let Some(bytes) = largest.max() {
        all.add(fact::JOB_WORKING_SET_BYTES, &bytes.to_string(), "bytes");
    }
    all.all
}

struct Collector<'a> {
    scope: &'a Scope,
    source: String,
    all: Vec<Observation>,
}

impl Collector<'_> {
    fn add(&mut self, name: &str, value: &str, unit: &str) {
        if !self.all.iter().any(|known| known.name == name) {
            self.all.push(Observation {
                scope: self.scope.clone(),
                name: name.to_owned(),
                value: value.to_owned(),
                unit: unit.to_owned(),
                source: self.source.clone(),
            });
        }
    }
}

/// Clones of all jobs together: each job is told with its own.
fn fio_clones(result: &ToolResult, all: &mut Collector<'_>) {
    let clones = result.facts.iter().filter(|fact| fact.name == "jobs");
    let sum: u64 = clones
        .filter_map(|fact| match fact.value {
            FactValue::Count(count) => Some(count),
            FactValue::Number(_) | FactValue::Text(_) => None,
        })
        .fold(0, u64::saturating_add);
    if sum > 0 {
        all.add(fact::FIO_JOBS, &sum.to_string(), "");
    }
}

fn one(tool: Tool, said: &Fact, part: Option<&Part>, all: &mut Collector<'_>) {
    let name = said.name.as_str();
    let value = said.value.to_string();
    let known = match (tool, name) {
        (Tool::Fio, "error") => fact::FIO_ERROR,
        (Tool::Fio, "short_ios") => fact::FIO_SHORT_IOS,
        (Tool::Fio, "drop_ios") => fact::FIO_DROPPED_IOS,
        (Tool::Fio, "sys_cpu") => fact::FIO_SYSTEM_CPU_PERCENT,
        (Tool::Dd, "records-in-whole") => fact::DD_RECORDS_IN_WHOLE,
        (Tool::Dd, "records-in-partial") => fact::DD_RECORDS_IN_PARTIAL,
        (Tool::Dd, "records-out-whole") => fact::DD_RECORDS_OUT_WHOLE,
        (Tool::Dd, "records-out-partial") => fact::DD_RECORDS_OUT_PARTIAL,
        (Tool::Fio, "rw" | "ioengine" | "iodepth") => {
            return all.add(&fact::fio_option(name), &value, "");
        }
        // The number is fio's own, decoded; dd prints a unit with it.
        (Tool::Fio, "printed-rate") => fact::FIO_PRINTED_BYTES_PER_SECOND,
        (Tool::Dd, "printed-rate") => {
            return if let Some(rate) = decimal_rate(&value) {
                all.add(
                    fact::DD_PRINTED_BYTES_PER_SECOND,
                    &rate.to_string(),
                    "bytes/s",
                );
            };
        }
        _ => return other(tool, said, part, &value, all),
    };
    all.add(known, &value, &said.unit);
}

fn other(tool: Tool, said: &Fact, part: Option<&Part>, value: &str, all: &mut Collector<'_>) {
    let name = said.name.as_str();
    if let Some(key) = name.strip_prefix("iodepth_level ") {
        return all.add(&fact::fio_depth_level(key), value, "percent");
    }
    if tool == Tool::Fio && name.starts_with("run status ") {
        return fio_group(value, all);
    }
    let op = part.map(|part| part.operation);
    match (tool, name, op) {
        (Tool::Bonnie, "no-rate", Some(op)) => {
            all.add(&fact::bonnie_not_timed(op), fact::TRUE, "");
        }
        // What the clones are summed into.
        (Tool::Fio, "jobs", _) => {}
        _ => all.add(&format!("tool.{name}"), value, &said.unit),
    }
}

/// fio's options, a job's own before those of all jobs, which they overrule.
fn fio_options(result: &ToolResult) -> impl Iterator<Item = &ReportedOption> {
    let own = result.options.iter().filter(|option| option.job.is_some());
    own.chain(result.options.iter().filter(|option| option.job.is_none()))
}

/// What fio's reported options say of the job as a whole: they are reported together,
/// so what is not among them was left to fio's defaults.
fn fio_job(result: &ToolResult, all: &mut Collector<'_>) {
    if result.options.is_empty() {
        return;
    }
    let option = |name: &str| {
        fio_options(result)
            .find(|option| raidlab_tools::fio::canonical_name(&option.name) == name)
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

/// What dd's operands say of the job: name, value, unit.
pub fn dd_facts<'a>(
    operand: impl Fn(&str) -> Option<&'a str>,
) -> Vec<(String, String, &'static str)> {
    let mut facts = Vec::new();
    for name in ["if", "of", "bs", "count", "conv", "iflag", "oflag"] {
        if let Some(value) = operand(name) {
            facts.push((fact::dd_operand(name), value.to_owned(), ""));
        }
    }
    // POSIX: blocks of 512 bytes unless said.
    let block = operand("bs").map_or(Some(512), |text| parse_bytes(text).ok().map(|size| size.0));
    let count: Option<u64> = operand("count").and_then(|text| text.parse().ok());
    let size = block
        .zip(count)
        .and_then(|(block, count)| block.checked_mul(count));
    if let Some(size) = size {
        for name in [fact::JOB_ASKED_SIZE_BYTES, fact::JOB_WORKING_SET_BYTES] {
            facts.push((name.to_owned(), size.to_string(), "bytes"));
        }
    }
    let pattern = match operand("if") {
        Some("/dev/zero") => "zero",
        Some("/dev/random" | "/dev/urandom") => "random",
        _ => return facts,
    };
    facts.push((fact::JOB_DATA_PATTERN.to_owned(), pattern.to_owned(), ""));
    facts
}

/// The group's shortest and longest job out of `..., mint=1msec, maxt=2msec`
/// or, since fio 3, `run=1-2msec`.
fn fio_group(text: &str, all: &mut Collector<'_>) {
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

/// bonnie++ counts files in units of 1024: `-n 16` makes 16384.
fn bonnie(result: &ToolResult, all: &mut Collector<'_>) {
    let mut of_files = result
        .parts
        .iter()
        .filter(|part| part.operation.handles_files());
    let files = of_files.find_map(|part| part.total_ios);
    if let Some(files) = files {
        all.add(fact::BONNIE_FILES, &files.to_string(), "");
        all.add(fact::BONNIE_FILES_ASKED, &(files / 1024).to_string(), "");
    }
}

/// Flags that iozone's heading says are on; where there is a heading, what it
/// does not say is off.
fn iozone(result: &ToolResult, all: &mut Collector<'_>) {
    if result.version.is_empty() && result.options.is_empty() {
        return;
    }
    for (flag, name) in [
        ("-e", fact::IOZONE_INCLUDES_FSYNC),
        ("-c", fact::IOZONE_INCLUDES_CLOSE),
        ("-I", fact::IOZONE_DIRECT),
    ] {
        let on = result.options.iter().any(|option| option.name == flag);
        all.add(name, if on { fact::TRUE } else { fact::FALSE }, "");
    }
}

/// Bytes per second of `49.02 MB/s`, by the unit as printed.
fn decimal_rate(text: &str) -> Option<f64> {
    let (number, unit) = text.split_once(' ')?;
    let factor = match unit {
        "B/s" | "bytes/sec" => 1.0,
        "kB/s" | "KB/s" => 1e3,
        "KiB/s" => 1024.0,
        "MB/s" => 1e6,
        "MiB/s" => 1_048_576.0,
        "GB/s" => 1e9,
        "GiB/s" => 1_073_741_824.0,
        _ => return None,
    };
    let number: f64 = number.parse().ok()?;
    number.is_finite().then_some(number * factor)
}
