//! fio's terse output (`--minimal`): one line per job, fields separated by
//! semicolons, versions 3, 4 and 5 of the format.
//!
//! Version 3 has two directions of 41 fields, version 4 three, version 5 three of 47 (six more:
//! samples of the rate, and the rate of requests). With `unified_rw_reporting=mixed` there is one
//! direction, of all requests, and with `both` that one follows the others
//! (`show_thread_status_terse_all` of fio's stat.c). Then come processor time, depths, latencies,
//! then nine fields for each disk, and last the description. Sizes are in KiB, latencies in
//! microseconds. Counts of requests and their size are not given, but the rate is the whole part of
//! count by time: where a single power of two agrees with the figures, it is taken for the size.

use super::consistency::note_printed;
use super::version_text;
use crate::Operation;
use crate::error::ParseError;
use crate::number::{finite, percent, whole};
use crate::result::{
    DiskCounters, DiskUse, LatencyKind, Part, Reported, ReportedLatency, ToolResult,
};

/// The number of fields before the first direction.
const HEAD: usize = 5;
/// The number of fields of processor time, depths and latencies after the directions.
const TAIL: usize = 5 + 7 + 10 + 12;
/// The number of fields of one disk.
const DISK: usize = 9;

/// Whether a line can be terse output.
pub(crate) fn is_line(line: &str) -> bool {
    let mut fields = line.split(';');
    matches!(fields.next(), Some("3" | "4" | "5"))
        && fields.next().is_some_and(|field| field.starts_with("fio-"))
}

/// Reads terse output; other lines become messages.
///
/// # Errors
/// Where there is no line of terse output, or one has too few fields or a field that is no number.
pub fn parse(text: &str) -> Result<ToolResult, ParseError> {
    let mut result = ToolResult::new(crate::fio::TERSE);
    let mut job = 0;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim_end();
        if is_line(line) {
            read_line(line, job, &mut result)
                .map_err(|expected| ParseError::line(index, expected, line))?;
            job += 1;
        } else if !line.trim().is_empty() {
            result.messages.push(line.trim().to_owned());
        }
    }
    let expected = "a line that begins with `3;fio-`, `4;fio-` or `5;fio-`";
    result.if_found(job > 0, expected)
}

fn read_line(line: &str, job: u32, result: &mut ToolResult) -> Result<(), &'static str> {
    let fields: Vec<&str> = line.split(';').collect();
    let width = if fields[0] == "5" { 47 } else { 41 };
    let operations = operations(&fields, width);
    let tail = HEAD + operations.len() * width;
    if operations.is_empty() || fields.len() < tail + TAIL {
        return Err("as many fields as this version of the format has");
    }
    result.version = version_text(fields[1]);
    let label = fields[2];
    let facts = &mut result.facts;
    facts.push(Reported::new(Some(job), "jobname", label, ""));
    for (name, field) in [("groupid", fields[3]), ("error", fields[4])] {
        let value = finite(field).and_then(whole);
        let value = value.ok_or("a whole number in each of the first fields")?;
        facts.push(Reported::new(Some(job), name, value, ""));
    }
    let user = percent(fields[tail]).ok_or("processor time as a percentage")?;
    let system = percent(fields[tail + 1]).ok_or("processor time as a percentage")?;
    facts.push(Reported::new(Some(job), "usr_cpu", user, "%"));
    facts.push(Reported::new(Some(job), "sys_cpu", system, "%"));
    let levels = ["1", "2", "4", "8", "16", "32", ">=64"];
    for (level, field) in levels.iter().zip(&fields[tail + 5..]) {
        let share = percent(field).ok_or("a depth's share as a percentage")?;
        if share > 0.0 {
            let name = format!("iodepth_level {level}");
            facts.push(Reported::new(Some(job), &name, share, "%"));
        }
    }
    for (place, &operation) in operations.iter().enumerate() {
        let start = HEAD + place * width;
        let mut part = Part::new(job, label, operation);
        part.cpu_percent = Some(user + system);
        if read_direction(&fields[start..start + width], &mut part)? {
            result.parts.push(part);
        }
    }
    read_disks(&fields[tail + TAIL..], job, result)
}

/// The operations of a line's directions; empty where the line has no known form. After the last
/// direction comes processor time, the first field that ends in `%`.
fn operations(fields: &[&str], width: usize) -> &'static [Operation] {
    use Operation::{Mixed, Read, Trim, Write};
    let ends = |&directions: &usize| {
        let field = fields.get(HEAD + directions * width);
        field.is_some_and(|field| field.ends_with('%'))
    };
    match ((1..=4).find(ends), fields[0]) {
        (Some(1), _) => &[Mixed],
        (Some(2), "3") => &[Read, Write],
        (Some(3), "3") => &[Read, Write, Mixed],
        (Some(3), _) => &[Read, Write, Trim],
        (Some(4), "4" | "5") => &[Read, Write, Trim, Mixed],
        _ => &[],
    }
}

/// Fills a part; returns false where nothing was done.
fn read_direction(fields: &[&str], part: &mut Part) -> Result<bool, &'static str> {
    let number = |place: usize| -> Result<f64, &'static str> {
        let field = fields[place].trim();
        // Old versions print the results of divisions by zero.
        if field.contains("nan") || field.contains("inf") {
            return Ok(0.0);
        }
        percent(field).ok_or("a number in each field of a direction")
    };
    let kibibytes = number(0)?;
    if kibibytes == 0.0 && number(2)? == 0.0 {
        return Ok(false);
    }
    part.total_bytes = whole(kibibytes * 1024.0);
    part.runtime_ns = whole(number(3)? * 1e6).filter(|&time| time > 0);
    part.operations_per_second = Some(number(2)?).filter(|&rate| rate > 0.0);
    part.bytes_per_second = Some(number(1)? * 1024.0).filter(|&rate| rate > 0.0);
    settle_block_size(part);
    let printed = part.bytes_per_second.map(|rate| (rate, 1024.0));
    part.compute_rates();
    note_printed(part, printed, None);
    for (place, kind) in [
        (4, LatencyKind::Submission),
        (8, LatencyKind::Completion),
        (32, LatencyKind::Total),
    ] {
        let mut latency = ReportedLatency::new(kind);
        let [min, max, mean, spread] = [
            number(place)?,
            number(place + 1)?,
            number(place + 2)?,
            number(place + 3)?,
        ];
        if max == 0.0 && mean == 0.0 {
            continue;
        }
        latency.min_ns = whole(min * 1e3);
        latency.max_ns = whole(max * 1e3);
        latency.mean_ns = Some(mean * 1e3);
        latency.deviation_ns = Some(spread * 1e3);
        if kind == LatencyKind::Completion {
            latency.percentiles = percentiles(&fields[12..32])?;
        }
        part.latencies.push(latency);
    }
    for (place, name, unit) in [
        (36, "bw_min", "KiB/s"),
        (37, "bw_max", "KiB/s"),
        (38, "bw_agg", "%"),
        (39, "bw_mean", "KiB/s"),
        (40, "bw_dev", "KiB/s"),
    ] {
        let value = number(place)?;
        if number(37)? > 0.0 {
            part.note(name, value, unit);
        }
    }
    Ok(true)
}

/// The rate below which sizes cannot be derived, requests per second.
const LEAST_TELLING_RATE: f64 = 50.0;

/// Sets the size of all requests, and so their number, where bytes, rate and time agree with a
/// power of two.
fn settle_block_size(part: &mut Part) {
    let (Some(bytes), Some(time), Some(rate)) = (
        part.total_bytes,
        part.runtime_ns,
        part.operations_per_second,
    ) else {
        return;
    };
    if rate < LEAST_TELLING_RATE {
        return;
    }
    let seconds = time as f64 / 1e9;
    let agrees = |size: &u64| {
        let rate_of_size = (bytes / size) as f64 / seconds;
        bytes.is_multiple_of(*size) && (rate..rate + 1.0).contains(&rate_of_size)
    };
    part.block_size_bytes = (9..=30).map(|power| 1 << power).find(agrees);
    part.total_ios = part.block_size_bytes.map(|size| bytes / size);
}

fn percentiles(fields: &[&str]) -> Result<Vec<(f64, u64)>, &'static str> {
    let mut percentiles = Vec::new();
    for field in fields {
        let pair = field.split_once('=').and_then(|(percent_text, time)| {
            Some((percent(percent_text)?, whole(finite(time)? * 1e3)?))
        });
        let (percent, time) = pair.ok_or("percentiles such as `99.000000%=88`")?;
        // Unused entries are printed as 0%.
        if percent > 0.0 {
            percentiles.push((percent, time));
        }
    }
    percentiles.sort_by(|(one, _), (other, _)| one.total_cmp(other));
    Ok(percentiles)
}

/// The parts of a line that tell which run of fio it belongs to.
#[derive(Debug, PartialEq)]
pub(super) struct Whose<'line> {
    /// The job's name and the number of its group.
    pub(super) job: (&'line str, &'line str),
    /// The KiB and milliseconds of each direction.
    pub(super) counts: Vec<(f64, f64)>,
    /// Figures that never become less while a job runs: the context switches, the page faults
    /// and the longest latencies.
    pub(super) highest: Vec<f64>,
    /// The counters of disks, which all lines of one report repeat, and the description.
    pub(super) end: Vec<&'line str>,
}

impl<'line> Whose<'line> {
    /// Splits a line; `None` where it is no line of terse output, or a broken one.
    pub(super) fn of(line: &'line str) -> Option<Self> {
        let line = line.trim_end();
        let mut fields: Vec<&str> = is_line(line).then(|| line.split(';').collect())?;
        let width = if fields[0] == "5" { 47 } else { 41 };
        let directions = operations(&fields, width).len();
        let tail = HEAD + directions * width + TAIL;
        if directions == 0 || fields.len() < tail {
            return None;
        }
        let end = fields.split_off(tail);
        let starts = (0..directions).map(|place| HEAD + place * width);
        let counts = starts.clone();
        let counts = counts.map(|start| Some((finite(fields[start])?, finite(fields[start + 3])?)));
        let longest = starts.flat_map(|start| [start + 5, start + 9, start + 33]);
        let processor = tail - TAIL + 2..tail - TAIL + 5;
        let highest = processor.chain(longest).map(|place| finite(fields[place]));
        Some(Self {
            job: (fields[2], fields[3]),
            counts: counts.collect::<Option<_>>()?,
            highest: highest.map(|figure| figure.unwrap_or(0.0)).collect(),
            end,
        })
    }

    /// Whether the line has a counter of a disk that is not 0, as in every run with idle disks.
    pub(super) fn has_disks(&self) -> bool {
        let disks = self.end.chunks_exact(DISK);
        let mut disks = disks.take_while(|disk| disk[DISK - 1].ends_with('%'));
        disks.any(|disk| disk[1..DISK - 1].iter().any(|count| *count != "0"))
    }
}

/// Reads disks as long as there are nine fields for one; the rest is the description, which may
/// hold semicolons itself.
fn read_disks(fields: &[&str], job: u32, result: &mut ToolResult) -> Result<(), &'static str> {
    let mut rest = fields;
    while rest.len() >= DISK && rest[DISK - 1].ends_with('%') {
        let count = |place: usize| rest[place].trim().parse::<u64>().ok();
        let use_of = DiskUse {
            name: rest[0].to_owned(),
            own: DiskCounters {
                read_ios: count(1),
                write_ios: count(2),
                read_merges: count(3),
                write_merges: count(4),
                read_ticks_ms: count(5),
                write_ticks_ms: count(6),
                in_queue_ms: count(7),
                util_percent: Some(percent(rest[8]).ok_or("a disk's use as a percentage")?),
                ..DiskCounters::default()
            },
            members: None,
        };
        // Every line repeats all disks.
        if !result.disks.iter().any(|known| known.name == use_of.name) {
            result.disks.push(use_of);
        }
        rest = &rest[DISK..];
    }
    let description = rest.join(";");
    if !description.is_empty() {
        let fact = Reported::new(Some(job), "description", description, "");
        result.facts.push(fact);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::parse;
    use crate::{Operation, ParseError};

    const THREE: &str = include_str!("data/fio-3.33-v3.terse");
    const FOUR: &str = include_str!("data/fio-3.33-v4.terse");
    const FIVE: &str = include_str!("data/fio-3.33-v5.terse");

    #[test]
    fn all_versions_of_the_format_are_read() {
        for (text, rate, time) in [
            (THREE, 20666.0, 24),
            (FOUR, 16000.0, 31),
            (FIVE, 17103.0, 29),
        ] {
            let result = parse(text).expect("fio's own output");
            assert_eq!(result.version, "3.33");
            let operations: Vec<_> = result.parts.iter().map(|part| part.operation).collect();
            assert_eq!(operations, [Operation::Read, Operation::Write]);
            let [read, write] = &result.parts[..] else {
                panic!("two parts");
            };
            assert_eq!(
                (read.total_bytes, write.total_bytes),
                (Some(1984 << 10), Some(2112 << 10))
            );
            // Of 4 KiB each; the rate is printed without what is behind the point.
            assert_eq!(
                (read.block_size_bytes, read.total_ios),
                (Some(4096), Some(496))
            );
            assert_eq!(read.operations_per_second.map(f64::floor), Some(rate));
            assert_eq!(read.runtime_ns, Some(time * 1_000_000));
            let latency = read.latency().expect("timed");
            assert_eq!(latency.percentiles.len(), 17);
            assert_eq!(latency.percentiles[0].0, 1.0);
            assert_eq!(result.disks[0].name, "vda");
            assert_eq!(result.disks[0].own.read_ios, Some(0));
        }
        let described = parse(FIVE).expect("fio's own output");
        let fact = described
            .fact(Some(0), "description")
            .expect("a description");
        assert_eq!(fact.value.to_string(), "a;b");
    }

    /// fio 3.33 with `--rw=randrw --unified_rw_reporting=mixed` and `both`: as many fields as
    /// those directions have, and the processor's time behind them.
    #[test]
    fn directions_in_one_are_read() {
        let with = |from: usize, directions: &str| {
            let fields: Vec<&str> = THREE.trim_end().split(';').collect();
            let one = fields[5..46].join(";");
            let all = directions.replace("one", &one);
            parse(&format!(
                "{};{all};{}",
                fields[..5].join(";"),
                fields[from..].join(";")
            ))
        };
        let operations = |text| {
            let result: crate::ToolResult = with(87, text).expect("a line");
            let parts = result.parts.iter();
            let found: Vec<_> = parts
                .map(|part| (part.operation, part.total_bytes))
                .collect();
            assert_eq!(result.disks[0].name, "vda");
            found
        };
        let bytes = Some(1984 << 10);
        assert_eq!(operations("one"), [(Operation::Mixed, bytes)]);
        let both = [Operation::Read, Operation::Write, Operation::Mixed];
        assert_eq!(
            operations("one;one;one"),
            both.map(|operation| (operation, bytes))
        );
        assert!(with(87, "one;one;one;one").is_err(), "no form of version 3");
    }

    #[test]
    fn a_line_cut_off_is_named() {
        let text = format!("warning\n{}", &THREE[..200]);
        assert!(matches!(
            parse(&text),
            Err(ParseError::Line { line: 2, .. })
        ));
        let broken = THREE.replacen(";82666;", ";x;", 1);
        assert!(matches!(
            parse(&broken),
            Err(ParseError::Line { line: 1, .. })
        ));
        assert!(matches!(parse("1;2"), Err(ParseError::NoOutput { .. })));
    }
}
