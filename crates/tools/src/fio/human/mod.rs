//! fio's text for people, of versions 2.0 to 3.x, alone or in a log among
//! other things.
//!
//! A run is recognized by the line that has only fio's version. The lines that define its jobs come
//! right before it; it ends with the last line that looks like fio's before the next run begins.
//! Within it, a line with `(groupid=` begins a job, `read:` and the like begin a part, and further
//! lines belong to the part or the job until the next.
//!
//! Sizes are printed with few digits (`io=1024.0GB`, where KB is 1024 bytes; `8192MiB` since 2.21).
//! The counts of requests are exact: where all requests have one size and the product agrees with
//! the printed size, the product is taken.

pub(super) mod lines;
#[cfg(test)]
mod tests;

use super::consistency::note_printed;
use super::jobs::SEVERAL_JOBS;
use crate::Operation;
use crate::error::ParseError;
use crate::result::{LatencyKind, Part, Reported, ReportedLatency, ReportedValue, ToolResult};
use lines::{Definition, Direction, JobHeader};
use std::ops::Range;

/// Reads a text with one or more runs; the jobs of all of them are numbered
/// through.
///
/// # Errors
/// Where there is no run with a result, or a line of one cannot be read.
pub fn parse(text: &str) -> Result<ToolResult, ParseError> {
    let (lines, cut) = whole_lines(text);
    let mut all: Option<ToolResult> = None;
    for range in runs(&lines) {
        let run = read_run(&lines, &range)?;
        match &mut all {
            None => all = Some(run),
            Some(all) => all.append(run),
        }
    }
    if let Some(all) = &mut all {
        all.messages.extend(cut);
    }
    // A job with only a name and a group has no result.
    let is_told =
        |fact: &Reported| fact.job.is_some() && !matches!(&*fact.name, "jobname" | "groupid");
    all.filter(|result| result.facts.iter().any(is_told))
        .ok_or(ParseError::NoOutput {
            tool: crate::fio::TOOL,
            expected: "a line such as `name: (groupid=0, jobs=1): err= 0: pid=1`",
        })
}

/// Every run in a log, with the range of its lines, counted from 0, the end not included. A
/// run that ended without a result has no parts; one whose lines cannot be read has a message
/// that says so.
#[must_use]
pub fn find_all(text: &str) -> Vec<(Range<usize>, ToolResult)> {
    let (lines, cut) = whole_lines(text);
    let runs = runs(&lines).into_iter().map(|range| {
        let result = read_run(&lines, &range).unwrap_or_else(|error| {
            let mut result = ToolResult::new(crate::fio::HUMAN);
            result.messages.push(error.to_string());
            result
        });
        (range, result)
    });
    let mut runs: Vec<_> = runs.collect();
    if let Some((_, last)) = runs.last_mut() {
        last.messages.extend(cut);
    }
    runs
}

/// Whether a text has a run's result in it.
pub(crate) fn is_in(text: &str) -> bool {
    split_lines(text)
        .iter()
        .any(|line| lines::job_header(line).is_some())
}

/// The lines as a terminal shows them: fio overwrites its progress.
fn split_lines(text: &str) -> Vec<&str> {
    text.lines()
        .map(|line| {
            let line = line.trim_end_matches('\r');
            line.rsplit('\r').next().unwrap_or(line)
        })
        .collect()
}

/// The lines without the last one if it was cut off, and then a note on it: half a number
/// is another number.
fn whole_lines(text: &str) -> (Vec<&str>, Option<String>) {
    let mut lines = split_lines(text);
    let cut = lines.pop_if(|line| !text.ends_with('\n') && lines::is_cut(line));
    let why = |line: &str| format!("the last line is cut off and left out: `{}`", line.trim());
    let cut = cut.map(why);
    (lines, cut)
}

fn runs(lines: &[&str]) -> Vec<Range<usize>> {
    let is_head = |line: &str| lines::definition(line).is_some() || line.trim() == "...";
    let mut starts: Vec<usize> = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        if lines::version(line).is_some() {
            let head = lines[..index].iter().rev().take_while(|line| is_head(line));
            starts.push(index - head.count());
        }
    }
    if starts.is_empty() {
        // The text may be a result without its head, as people paste it.
        let first = lines
            .iter()
            .position(|line| lines::job_header(line).is_some());
        starts.extend(first);
    }
    let ends = starts.iter().skip(1).copied().chain([lines.len()]);
    starts
        .iter()
        .zip(ends)
        .map(|(&start, end)| {
            let last = lines[start..end]
                .iter()
                .rposition(|line| lines::is_fios(line));
            start..last.map_or(start + 1, |last| start + last + 1)
        })
        .collect()
}

/// The state while a run's lines are read.
#[derive(Debug)]
struct Reader {
    result: ToolResult,
    definitions: Vec<Definition>,
    /// The current job's number.
    job: Option<u32>,
    label: String,
    /// The first part of the current job.
    first_part: usize,
    /// The size that the printed bytes of each part stand for, and one step of the last digit.
    printed: Vec<Option<(f64, f64)>>,
    /// The latency that the next lines of percentiles belong to.
    percentiles: Option<(LatencyKind, f64)>,
    /// The first job of the group whose status is read.
    status_of: Option<u32>,
    /// Whether the lines are of the sum over all clients.
    is_sum: bool,
}

fn read_run(lines: &[&str], range: &Range<usize>) -> Result<ToolResult, ParseError> {
    let mut reader = Reader {
        result: ToolResult::new(crate::fio::HUMAN),
        definitions: Vec::new(),
        job: None,
        label: String::new(),
        first_part: 0,
        printed: Vec::new(),
        percentiles: None,
        status_of: None,
        is_sum: false,
    };
    let outdated = outdated(lines, range);
    for index in range.clone().filter(|index| !outdated.contains(index)) {
        reader
            .line(lines[index])
            .map_err(|expected| ParseError::line(index, expected, lines[index]))?;
    }
    reader.finish_job();
    reader.mark_several_jobs();
    reader.name_untold_jobs();
    reader.result.time_flushes();
    Ok(reader.result)
}

/// The lines of all reports but the last: with `status-interval` fio reports all jobs again
/// and again, each time since the start. Clones have the same name, but no two processes
/// the same number.
fn outdated(lines: &[&str], range: &Range<usize>) -> Range<usize> {
    let whose = |line: &str| {
        lines::job_header(line)?;
        let process = line.rfind("pid=")? + "pid=".len();
        let length = line[process..].find(|letter: char| !letter.is_ascii_digit())?;
        Some(line[..process + length].to_owned())
    };
    let mut reports = range
        .clone()
        .filter_map(|index| Some((index, whose(lines[index])?)));
    let Some((first, job)) = reports.next() else {
        return 0..0;
    };
    let again = reports.rfind(|(_, other)| *other == job);
    first..again.map_or(first, |(last, _)| last)
}

impl Reader {
    /// Reads one line; the error is what was expected.
    fn line(&mut self, line: &str) -> Result<(), &'static str> {
        if let Some(version) = lines::version(line) {
            self.result.version = version;
        } else if let Some(definition) = lines::definition(line) {
            self.definitions.push(definition);
        } else if let Some(header) = lines::job_header(line) {
            // The sum that a client of servers adds would count everything twice.
            self.is_sum = header.label == "All clients" && line.contains(": pid=0:");
            if self.is_sum {
                let left_out = "the sum over all clients is left out";
                self.result.messages.push(left_out.to_owned());
            } else {
                self.begin_job(&header);
            }
        } else if let Some(disk) = lines::disk(line) {
            self.result.disks.push(disk);
        } else if self.is_sum {
            // Its lines are left out.
        } else if self.job.is_some() {
            return self.job_line(line);
        } else if lines::is_message(line) {
            self.result.messages.push(line.trim().to_owned());
        }
        Ok(())
    }

    fn begin_job(&mut self, header: &JobHeader<'_>) {
        let label = header.label;
        self.finish_job();
        let job = self.job.map_or(0, |last| last + 1);
        self.job = Some(job);
        label.clone_into(&mut self.label);
        self.first_part = self.result.parts.len();
        let facts = &mut self.result.facts;
        facts.push(Reported::new(Some(job), "jobname", label, ""));
        let numbers = [
            ("groupid", header.group),
            ("jobs", header.jobs),
            ("error", header.error),
        ];
        for (name, number) in numbers {
            facts.extend(number.map(|number| Reported::new(Some(job), name, number, "")));
        }
        let definition = self.definitions.iter().find(|known| known.name == label);
        if let Some(definition) = definition {
            for (name, value) in &definition.options {
                facts.push(Reported::new(Some(job), name, value.as_str(), ""));
            }
        }
    }

    /// Marks jobs that are reported for others, too: their group has definitions of other names
    /// than those that have a result (`group_reporting`).
    fn mark_several_jobs(&mut self) {
        let facts = &self.result.facts;
        let with = |name: &str, value: ReportedValue| -> Vec<Option<u32>> {
            let own = facts
                .iter()
                .filter(|fact| fact.name == name && fact.value == value);
            own.map(|fact| fact.job).collect()
        };
        let hidden = self.definitions.iter().filter(|known| {
            let told = with("jobname", known.name.as_str().into());
            told.is_empty()
        });
        let groups = hidden.filter_map(|known| Some(ReportedValue::Count(known.group?)));
        let jobs: Vec<Option<u32>> = groups.flat_map(|group| with("groupid", group)).collect();
        // The first job's block size need not be that of all requests.
        for part in &mut self.result.parts {
            let product = part.block_size_bytes.zip(part.total_ios);
            let product = product.and_then(|(size, ios)| size.checked_mul(ios));
            if jobs.contains(&Some(part.job)) && product != part.total_bytes {
                part.block_size_bytes = None;
            }
        }
        for job in jobs {
            let fact = Reported::new(job, SEVERAL_JOBS, 1, "");
            self.result.facts.push(fact);
        }
    }

    /// Adds jobs that the text defines and whose group has no result, as where the end was cut off,
    /// with only a name and a group.
    fn name_untold_jobs(&mut self) {
        let facts = &mut self.result.facts;
        let is_told = |facts: &[Reported], group: u64| {
            let group = ReportedValue::Count(group);
            let mut groups = facts.iter().filter(|fact| fact.name == "groupid");
            groups.any(|fact| fact.value == group)
        };
        let untold: Vec<(&str, u64)> = self
            .definitions
            .iter()
            .filter_map(|known| Some((known.name.as_str(), known.group?)))
            .filter(|&(_, group)| !is_told(facts, group))
            .collect();
        let first = self.job.map_or(0, |last| last + 1);
        for (job, (name, group)) in (first..).zip(untold) {
            facts.push(Reported::new(Some(job), "jobname", name, ""));
            facts.push(Reported::new(Some(job), "groupid", group, ""));
        }
    }

    fn job_line(&mut self, line: &str) -> Result<(), &'static str> {
        let text = line.trim();
        if let Some(direction) = lines::direction(text)? {
            self.begin_part(&direction);
        } else if text.starts_with("fsync/fdatasync/sync_file_range:") {
            self.push_part(Part::new(
                self.job.unwrap_or(0),
                self.label.as_str(),
                Operation::Sync,
            ));
        } else if let Some((kind, factor)) = lines::percentile_head(text) {
            self.percentiles = Some((kind, factor));
        } else if let Some(row) = text.strip_prefix('|') {
            self.percentile_row(row)?;
        } else if let Some(latency) = lines::latency(text)? {
            if let Some(part) = self.result.parts.last_mut() {
                part.latencies.push(latency);
            }
        } else if let Some(rest) = text.strip_prefix("issued") {
            self.issued(rest)?;
        } else if let Some((name, unit, rest)) = lines::samples(text) {
            if let Some(part) = self.result.parts.last_mut() {
                for (key, value) in lines::pairs(rest) {
                    if let Some(number) = lines::scaled(value) {
                        let unit = if key == "samples" { "" } else { unit };
                        part.note(&format!("{name}_{key}"), number, unit);
                    }
                }
            }
        } else {
            self.job_fact(text);
        }
        Ok(())
    }

    fn begin_part(&mut self, direction: &Direction) {
        let job = self.job.unwrap_or(0);
        let mut part = Part::new(job, self.label.as_str(), direction.operation);
        let definition = self
            .definitions
            .iter()
            .find(|known| known.name == self.label);
        part.block_size_bytes = definition.and_then(|known| known.block_size(direction.operation));
        part.total_bytes = direction
            .bytes
            .and_then(|(bytes, _)| crate::number::whole(bytes));
        part.runtime_ns = direction.runtime_ns;
        part.operations_per_second = direction.iops;
        part.bytes_per_second = direction.rate;
        self.push_part(part);
        if let Some(printed) = self.printed.last_mut() {
            *printed = direction.bytes;
        }
    }

    fn push_part(&mut self, part: Part) {
        self.result.parts.push(part);
        self.printed.push(None);
        self.percentiles = None;
    }

    fn percentile_row(&mut self, row: &str) -> Result<(), &'static str> {
        let (Some((kind, factor)), Some(part)) = (self.percentiles, self.result.parts.last_mut())
        else {
            return Ok(());
        };
        let latencies = &mut part.latencies;
        let place = latencies
            .iter()
            .position(|latency| latency.kind == kind)
            .unwrap_or_else(|| {
                latencies.push(ReportedLatency::new(kind));
                latencies.len() - 1
            });
        for item in row.split(',').filter(|item| !item.trim().is_empty()) {
            let (percent, time) =
                lines::percentile(item).ok_or("percentiles such as `99.00th=[ 4]`")?;
            if let Some(time) = crate::number::whole(time * factor) {
                latencies[place].percentiles.push((percent, time));
            }
        }
        Ok(())
    }

    fn issued(&mut self, rest: &str) -> Result<(), &'static str> {
        let counts = lines::issued(rest).ok_or("counts such as `total=r=1/w=2/d=0`")?;
        for part in &mut self.result.parts[self.first_part..] {
            let count = match part.operation {
                Operation::Read => counts.first().copied(),
                Operation::Write => counts.get(1).copied(),
                Operation::Trim => counts.get(2).copied(),
                Operation::Sync => counts.get(3).copied(),
                _ => counts
                    .iter()
                    .take(3)
                    .try_fold(0_u64, |sum, &count| sum.checked_add(count)),
            };
            part.total_ios = count.filter(|&count| count > 0);
        }
        Ok(())
    }

    /// Reads the lines of a job that are lists of names and values.
    fn job_fact(&mut self, text: &str) {
        let job = self.job;
        let facts = &mut self.result.facts;
        if let Some(rest) = lines::after_name(text, "cpu") {
            let mut cpu = 0.0;
            for (key, value) in lines::pairs(rest) {
                let Some(number) = crate::number::percent(value) else {
                    continue;
                };
                let (name, unit) = match key {
                    "usr" => ("usr_cpu", "%"),
                    "sys" => ("sys_cpu", "%"),
                    other => (other, ""),
                };
                if unit == "%" {
                    cpu += number;
                }
                facts.push(Reported::new(job, name, number, unit));
            }
            for part in &mut self.result.parts[self.first_part..] {
                part.cpu_percent = Some(cpu);
            }
        } else if let Some(rest) = lines::after_name(text, "IO depths") {
            for (level, share) in lines::shares(rest) {
                let name = format!("iodepth_level {level}");
                facts.push(Reported::new(job, &name, share, "%"));
            }
        } else if let Some((name, rest)) = lines::group_status(text) {
            let name = format!("run status {}", name.to_lowercase());
            facts.push(Reported::new(self.status_of, &name, rest, ""));
        } else if let Some(group) = lines::status_head(text) {
            let mut jobs = facts.iter().filter(|fact| fact.name == "groupid");
            let own = jobs.find(|fact| fact.value == ReportedValue::Count(group));
            self.status_of = own.and_then(|fact| fact.job);
        } else if lines::is_message(text) {
            self.result.messages.push(text.to_owned());
        }
    }

    /// Computes a job's bytes and rates when all its lines have been read.
    fn finish_job(&mut self) {
        let first = self.first_part;
        for (part, printed) in self.result.parts[first..]
            .iter_mut()
            .zip(&self.printed[first..])
        {
            let rates = [part.bytes_per_second, part.operations_per_second];
            if let Some((bytes, step)) = *printed {
                settle_bytes(part, bytes, step);
            }
            part.compute_rates();
            note_printed_rates(part, rates, printed.map_or(0.0, |(_, step)| step));
        }
        self.first_part = self.result.parts.len();
    }
}

/// Keeps the printed rates. Rates of bytes are as coarse as the bytes that they are compared with,
/// and in text for people neither has more than three digits.
fn note_printed_rates(part: &mut Part, [bytes, requests]: [Option<f64>; 2], step: f64) {
    let seconds = part.runtime_ns.map_or(1.0, |time| time as f64 / 1e9);
    let rounded = |rate: f64, step: f64| (rate, step + 0.02 * rate);
    let bytes = bytes.map(|rate| rounded(rate, step / seconds));
    let requests = requests.map(|rate| rounded(rate, 1.0));
    note_printed(part, bytes, requests);
}

/// Replaces the printed bytes by the exact product of requests and block size where both agree to
/// the last printed digit; otherwise notes how coarse they are.
fn settle_bytes(part: &mut Part, bytes: f64, step: f64) {
    let product = part
        .block_size_bytes
        .zip(part.total_ios)
        .and_then(|(size, ios)| size.checked_mul(ios));
    match product {
        Some(product) if (product as f64 - bytes).abs() <= step => {
            part.total_bytes = Some(product);
        }
        _ if step > 1024.0 => part.note("total_bytes-step", step, "bytes"),
        _ => {}
    }
}
