//! Parsers of the lines of fio's text, one function for each kind.

use crate::Operation;
use crate::number::{Measured, measured, percent, whole};
use crate::result::{DiskCounters, DiskUse, LatencyKind, ReportedLatency};
use raidlab_units::bytes_in;

/// A line that defines a job: `name: (g=0): rw=read, bs=4K-4K/4K-4K, ...`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Definition {
    pub(super) name: String,
    /// The number of the job's group.
    pub(super) group: Option<u64>,
    /// `rw`, `ioengine` and `iodepth`, as printed.
    pub(super) options: Vec<(String, String)>,
    /// The sizes of reads, writes and trims; `None` where requests differ in size.
    block_sizes: Vec<Option<u64>>,
}

impl Definition {
    /// The size of all requests of an operation, if they have one.
    pub(super) fn block_size(&self, operation: Operation) -> Option<u64> {
        let place = match operation {
            Operation::Read => 0,
            Operation::Write => 1,
            Operation::Trim => 2,
            _ => {
                let all = self
                    .block_sizes
                    .iter()
                    .all(|size| *size == self.block_sizes[0]);
                return all.then(|| self.block_sizes.first().copied().flatten())?;
            }
        };
        self.block_sizes.get(place).copied().flatten()
    }
}

/// A line that begins a part of a job.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Direction {
    pub(super) operation: Operation,
    /// The bytes as printed, and one step of their last digit.
    pub(super) bytes: Option<(f64, f64)>,
    pub(super) runtime_ns: Option<u64>,
    pub(super) iops: Option<f64>,
    /// The bytes per second as printed.
    pub(super) rate: Option<f64>,
}

/// Reads the version in a line that has nothing else.
pub(super) fn version(line: &str) -> Option<String> {
    let rest = line.trim_end().strip_prefix("fio")?;
    let number = rest.strip_prefix(['-', ' '])?;
    let is_version = number.starts_with(|first: char| first.is_ascii_digit())
        && number.contains('.')
        && !number.contains(char::is_whitespace);
    is_version.then(|| number.to_owned())
}

/// Reads a definition of a job.
pub(super) fn definition(line: &str) -> Option<Definition> {
    const GROUP: &str = ": (g=";
    let at = line.rfind(GROUP)?;
    let rest = &line[at..];
    let group = rest[GROUP.len()..].split_once(')');
    let rest = &rest[rest.find("rw=")?..];
    let between = |from: &str, to: &str| -> Option<&str> {
        let start = rest.find(from)? + from.len();
        let text = &rest[start..];
        Some(&text[..text.find(to).unwrap_or(text.len())])
    };
    let sizes = between("bs=", ", ioengine")?;
    let block_sizes = sizes.split(['/', ',']).map(one_size).collect();
    let option = |name: &str| {
        let value = between(&format!("{name}="), ",")?;
        Some((name.to_owned(), value.trim().to_owned()))
    };
    Some(Definition {
        name: line[..at].trim().to_owned(),
        group: group.and_then(|(number, _)| number.parse().ok()),
        options: ["rw", "ioengine", "iodepth"]
            .into_iter()
            .filter_map(option)
            .collect(),
        block_sizes,
    })
}

/// Reads `4K-4K` or `(R) 4096B-4096B`: the size if both ends are the same.
fn one_size(range: &str) -> Option<u64> {
    let range = range.trim();
    // Only fio 3 says whose size it is; `kB` is 1024 bytes before, and 1000 there.
    let told = range.split_once(')');
    let (range, kilo) = told.map_or((range, 1024.0), |(_, range)| (range, 1000.0));
    let (least, most) = range.split_once('-')?;
    if least.trim() != most.trim() {
        return None;
    }
    let size = measured(least)?;
    let unit = bytes_in(size.unit, kilo)?;
    let bytes = size.value * unit;
    // Four digits are printed: of 64 KiB `65.5kB`, of 100000 bytes `97.7KiB`.
    let powers = (9..=40).map(|power| f64::powi(2.0, power));
    let mut near = powers.filter(|power| (power - bytes).abs() <= size.step * unit / 2.0);
    let bytes = near.next().unwrap_or(bytes);
    whole(bytes).filter(|_| (bytes - bytes.round()).abs() < 1e-6)
}

/// A line that begins a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) struct JobHeader<'line> {
    /// The job's name.
    pub(super) label: &'line str,
    /// The number of the job's group.
    pub(super) group: Option<u64>,
    /// The number of clones that are reported as one.
    pub(super) jobs: Option<u64>,
    /// The job's error number, 0 for none.
    pub(super) error: Option<u64>,
}

/// Reads a line that begins a job: `name: (groupid=0, jobs=1): err= 0: pid=1: ...`.
pub(in super::super) fn job_header(line: &str) -> Option<JobHeader<'_>> {
    let at = line.rfind(": (groupid=")?;
    let (numbers, rest) = line[at + ": (".len()..].split_once("):")?;
    let number = |name: &str| {
        let (_, value) = pairs(numbers).into_iter().find(|(key, _)| *key == name)?;
        value.parse().ok()
    };
    let error = rest.trim_start().strip_prefix("err=")?.trim_start();
    let digits = error
        .find(|letter: char| !letter.is_ascii_digit())
        .unwrap_or(error.len());
    Some(JobHeader {
        label: line[..at].trim(),
        group: number("groupid"),
        jobs: number("jobs"),
        error: error[..digits].parse().ok(),
    })
}

/// Reads a line of one direction, of fio 2 or fio 3.
pub(super) fn direction(text: &str) -> Result<Option<Direction>, &'static str> {
    let Some((name, rest)) = text.split_once(':') else {
        return Ok(None);
    };
    let operation = match name.trim_end() {
        "read" => Operation::Read,
        "write" => Operation::Write,
        "trim" => Operation::Trim,
        "mixed" => Operation::Mixed,
        _ => return Ok(None),
    };
    let mut direction = Direction {
        operation,
        bytes: None,
        runtime_ns: None,
        iops: None,
        rate: None,
    };
    if let Some((rates, amount)) = rest.split_once(")(") {
        let (bytes, time) = amount
            .split_once(')')
            .and_then(|(amount, _)| amount.split_once('/'))
            .ok_or("an amount such as `(456MiB/60001msec)`")?;
        // Here `KiB` are 1024 bytes, and `kB` 1000 (`kb_base=1000`).
        direction.bytes = Some(size(bytes, 1000.0)?);
        direction.runtime_ns = Some(milliseconds(time)?);
        rates_of(rates, 1000.0, &mut direction);
        return Ok(Some(direction));
    }
    for (key, value) in pairs(rest) {
        match key {
            "io" => direction.bytes = Some(size(value, 1024.0)?),
            "runt" => direction.runtime_ns = Some(milliseconds(value)?),
            _ => {}
        }
    }
    rates_of(rest, 1024.0, &mut direction);
    if direction.bytes.is_none() && direction.rate.is_none() && direction.iops.is_none() {
        return Err("an amount such as `io=64KB` or a rate such as `IOPS=100`");
    }
    Ok(Some(direction))
}

fn rates_of(text: &str, kilo: f64, direction: &mut Direction) {
    for (key, value) in pairs(text) {
        match key.to_ascii_lowercase().as_str() {
            "iops" => direction.iops = scaled(value),
            "bw" => {
                let value = value.split('(').next().unwrap_or(value);
                direction.rate = size(value, kilo).ok().map(|(rate, _)| rate);
            }
            _ => {}
        }
    }
}

/// Reads a size and one step of its last digit; `kilo` is what units without an `i` mean.
fn size(text: &str, kilo: f64) -> Result<(f64, f64), &'static str> {
    const EXPECTED: &str = "a size such as `64.0KiB`";
    let size = measured(text).ok_or(EXPECTED)?;
    let unit = bytes_in(size.unit, kilo).ok_or(EXPECTED)?;
    Ok((size.value * unit, size.step * unit))
}

fn milliseconds(text: &str) -> Result<u64, &'static str> {
    let time = measured(text).filter(|time| time.unit == "msec");
    time.and_then(|time| whole(time.value * 1e6))
        .ok_or("a time such as `60001msec`")
}

/// Reads `clat (usec): min=3, max= 5, avg=4.00, stdev= 0.50`.
pub(super) fn latency(text: &str) -> Result<Option<ReportedLatency>, &'static str> {
    let Some((head, rest)) = text.split_once(':') else {
        return Ok(None);
    };
    let Some((kind, factor)) = kind_and_unit(head.trim()) else {
        return Ok(None);
    };
    let pairs = pairs(rest);
    if !pairs.iter().any(|(key, _)| *key == "avg") {
        return Ok(None);
    }
    let mut latency = ReportedLatency::new(kind);
    for (key, value) in pairs {
        let time = scaled(value).ok_or("times such as `min=3, max=5k`")? * factor;
        match key {
            "min" => latency.min_ns = whole(time),
            "max" => latency.max_ns = whole(time),
            "avg" => latency.mean_ns = Some(time),
            "stdev" => latency.deviation_ns = Some(time),
            _ => {}
        }
    }
    Ok(Some(latency))
}

/// Reads the heading `clat percentiles (usec):`.
pub(super) fn percentile_head(text: &str) -> Option<(LatencyKind, f64)> {
    let head = text.strip_suffix(':')?;
    let (name, unit) = head.split_once(" percentiles ")?;
    kind_and_unit(&format!("{name} {unit}"))
}

fn kind_and_unit(head: &str) -> Option<(LatencyKind, f64)> {
    let (name, unit) = head.split_once('(')?;
    let kind = match name.trim() {
        "slat" => LatencyKind::Submission,
        "clat" => LatencyKind::Completion,
        "lat" | "sync" => LatencyKind::Total,
        _ => return None,
    };
    let factor = match unit.trim_end_matches(')') {
        "nsec" => 1.0,
        "usec" => 1e3,
        "msec" => 1e6,
        "sec" => 1e9,
        _ => return None,
    };
    Some((kind, factor))
}

/// Reads a percentile and its time, `99.00th=[ 4123]`.
pub(super) fn percentile(item: &str) -> Option<(f64, f64)> {
    let (percent, time) = item.split_once("th=[")?;
    // Without the bracket at its end the number may have been cut.
    let time = time.trim().strip_suffix(']')?.trim();
    let time = time.strip_prefix(">=").unwrap_or(time);
    Some((crate::number::finite(percent)?, scaled(time)?))
}

/// The counts of `total=r=1/w=2/d=0` or `total=1,2,0,0`.
pub(super) fn issued(rest: &str) -> Option<Vec<u64>> {
    let (_, total) = rest.split_once("total=")?;
    let end = [" short=", ", short="]
        .into_iter()
        .filter_map(|next| total.find(next))
        .min()
        .unwrap_or(total.len());
    total[..end]
        .split(['/', ','])
        .map(|item| {
            let number = item.rsplit('=').next().unwrap_or(item);
            number.trim().parse().ok()
        })
        .collect()
}

/// Reads `bw ( KiB/s): min=1, ...` and `iops : min=1, ...`: the name of the facts, their unit
/// and the list.
pub(super) fn samples(text: &str) -> Option<(&'static str, &str, &str)> {
    if let Some(rest) = after_name(text, "iops") {
        return Some(("iops", "", rest));
    }
    let (unit, rest) = text.strip_prefix("bw (")?.split_once("):")?;
    // fio 2 prints `KB /s`, which means KiB/s.
    Some(("bw", unit.trim(), rest))
}

/// Reads a disk's line under `Disk stats`.
pub(super) fn disk(line: &str) -> Option<DiskUse> {
    let (name, rest) = line.trim().split_once(": ios=")?;
    let rest = format!("ios={rest}");
    let (own, members) = match rest.split_once(", aggrios=") {
        Some((own, members)) => (own.to_owned(), Some(format!("ios={members}"))),
        None => (rest, None),
    };
    Some(DiskUse {
        name: name.to_owned(),
        own: counters(&own)?,
        members: match members {
            Some(members) => Some(counters(&members.replace("aggr", ""))?),
            None => None,
        },
    })
}

fn counters(text: &str) -> Option<DiskCounters> {
    let mut counters = DiskCounters::default();
    for (key, value) in pairs(text) {
        let two = || -> Option<(Option<u64>, Option<u64>)> {
            let (reads, writes) = value.split_once('/')?;
            Some((
                Some(reads.trim().parse().ok()?),
                Some(writes.trim().parse().ok()?),
            ))
        };
        match key {
            "ios" => (counters.read_ios, counters.write_ios) = two()?,
            "sectors" => (counters.read_sectors, counters.write_sectors) = two()?,
            "merge" => (counters.read_merges, counters.write_merges) = two()?,
            "ticks" => (counters.read_ticks_ms, counters.write_ticks_ms) = two()?,
            "in_queue" => counters.in_queue_ms = Some(value.parse().ok()?),
            "util" => counters.util_percent = Some(percent(value)?),
            _ => {}
        }
    }
    Some(counters)
}

/// The text after `name :`.
pub(super) fn after_name<'text>(text: &'text str, name: &str) -> Option<&'text str> {
    text.strip_prefix(name)?.trim_start().strip_prefix(':')
}

/// Splits `a=1, b= 2` into names and values.
pub(super) fn pairs(text: &str) -> Vec<(&str, &str)> {
    text.split(',')
        .filter_map(|item| item.split_once('='))
        .map(|(key, value)| (key.trim(), value.trim()))
        .collect()
}

/// Splits `1=0.1%, >=64=99.9%` into bounds and shares above 0.
pub(super) fn shares(text: &str) -> Vec<(&str, f64)> {
    text.split(',')
        .filter_map(|item| item.rsplit_once('='))
        .filter_map(|(key, value)| Some((key.trim(), percent(value)?)))
        .filter(|&(_, share)| share > 0.0)
        .collect()
}

/// Reads a number with fio's suffix for thousands: `23.6k`, `1.2M`, `100.00%`.
pub(super) fn scaled(text: &str) -> Option<f64> {
    let Measured { value, unit, .. } = measured(text)?;
    let unit = unit.trim_end_matches('%');
    Some(value * bytes_in(unit, 1000.0).filter(|_| !unit.contains('B'))?)
}

/// The number of the group whose status follows a line.
pub(super) fn status_head(text: &str) -> Option<u64> {
    let rest = text.strip_prefix("Run status group ")?;
    rest.split_whitespace().next()?.parse().ok()
}

/// Splits `READ: io=..., aggrb=...` and the like into the direction and the rest. FreeBSD's
/// `gflash list` has lines that begin alike, but without names.
pub(super) fn group_status(text: &str) -> Option<(&str, &str)> {
    let (name, rest) = text.split_once(':')?;
    let is_direction = matches!(name, "READ" | "WRITE" | "TRIM" | "MIXED");
    (is_direction && rest.contains("io=")).then(|| (name, rest.trim()))
}

/// Whether a line looks like one of fio's results.
pub(super) fn is_fios(line: &str) -> bool {
    const BEGINNINGS: &[&str] = &[
        "slat (",
        "clat (",
        "lat (",
        "sync (",
        "slat percentiles",
        "clat percentiles",
        "lat percentiles",
        "sync percentiles",
        "| ",
        "bw (",
        "IO depths ",
        "submit  ",
        "complete  ",
        "issued ",
        "latency  ",
        "errors  ",
        "Run status group ",
        "Disk stats (read/write):",
        "fsync/fdatasync/sync_file_range:",
    ];
    let text = line.trim_start();
    BEGINNINGS
        .iter()
        .any(|beginning| text.starts_with(beginning))
        || (text.starts_with("cpu ") && text.contains(": usr="))
        || (text.starts_with("iops ") && text.contains(": min="))
        || matches!(direction(text), Ok(Some(_)))
        || group_status(text).is_some()
        || job_header(line).is_some()
        || disk(line).is_some()
}

/// Whether the last line of a text without a final line end is an incomplete result line. Pasted
/// text may be whole all the same: results end in a unit, a bracket or one of few names.
pub(super) fn is_cut(line: &str) -> bool {
    const ENDS: [&str; 8] = ["%", "msec", "msec)", "]", "],", "):", "_range:", "resets"];
    // A lost digit after these changes no row.
    const LAST: [&str; 4] = [" short=", "samples=", "minf=", "depth="];
    let text = line.trim();
    let has_deviation = || {
        let (_, deviation) = text.rsplit_once("stdev=")?;
        let (_, decimals) = deviation.split_once('.')?;
        Some(decimals.len() == 2)
    };
    let is_whole = ENDS.iter().any(|end| text.ends_with(end))
        || LAST.iter().any(|name| text.contains(name))
        || has_deviation() == Some(true)
        || job_header(line).is_some();
    let is_broken = direction(text).is_err() || latency(text).is_err();
    is_broken || (is_fios(line) && !is_whole)
}

/// Whether a line that is no result is a message: not blank, not progress, no heading.
pub(in super::super) fn is_message(line: &str) -> bool {
    let text = line.trim();
    let is_progress = ["Jobs: ", "Starting ", "..."]
        .iter()
        .any(|beginning| text.starts_with(beginning));
    let is_head = definition(line).is_some() || version(line).is_some();
    !(text.is_empty() || is_progress || is_head || is_fios(line))
}
