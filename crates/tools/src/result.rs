//! The common form of every tool's output.
//!
//! A number that a tool did not give is `None`, never 0 and never infinite; where it says why, the
//! reason is a [`Reported`]. Rates are computed from counts and time where both are there.

use crate::error::ParseError;
use crate::{Format, Operation, Tool};
use std::fmt;

/// The output of one run of a tool.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolResult {
    /// The tool that wrote the output.
    pub tool: Tool,
    /// The format of the output.
    pub format: Format,
    /// The tool's version as it prints it, without its name: `3.33`; empty
    /// where it prints none (dd).
    pub version: String,
    /// The numbers, in the order of the output.
    pub parts: Vec<Part>,
    /// The kernel's counters per disk while fio ran, for arrays and members.
    pub disks: Vec<DiskUse>,
    /// Options in force, as the tool reports them.
    pub options: Vec<ReportedOption>,
    /// Other reported facts, by name.
    pub facts: Vec<Reported>,
    /// Lines that belong to no field: warnings before the JSON, say.
    pub messages: Vec<String>,
}

impl ToolResult {
    /// Creates a result without numbers.
    #[must_use]
    pub fn new(format: Format) -> Self {
        Self {
            tool: format.tool,
            format,
            version: String::new(),
            parts: Vec::new(),
            disks: Vec::new(),
            options: Vec::new(),
            facts: Vec::new(),
            messages: Vec::new(),
        }
    }

    /// Returns the result if any output of the tool was found.
    pub(crate) fn if_found(self, found: bool, expected: &'static str) -> Result<Self, ParseError> {
        let tool = self.tool;
        match found {
            true => Ok(self),
            false => Err(ParseError::NoOutput { tool, expected }),
        }
    }

    /// Appends another result of the same tool; the numbers of its jobs and groups continue those
    /// of this one.
    pub(crate) fn append(&mut self, mut other: Self) {
        let shift = self
            .facts
            .iter()
            .filter_map(|fact| fact.job)
            .chain(self.parts.iter().map(|part| part.job))
            .max()
            .map_or(0, |last| last + 1);
        let shifted = |job: &mut Option<u32>| *job = job.map(|job| job + shift);
        let group = |fact: &Reported| match fact.value {
            ReportedValue::Count(group) if fact.name == "groupid" => Some(group),
            _ => None,
        };
        let groups = self.facts.iter().filter_map(group).max();
        for fact in &mut other.facts {
            shifted(&mut fact.job);
            if let (Some(own), Some(last)) = (group(fact), groups) {
                fact.value = ReportedValue::Count(own.saturating_add(last).saturating_add(1));
            }
        }
        for option in &mut other.options {
            shifted(&mut option.job);
        }
        for part in &mut other.parts {
            part.job += shift;
            part.facts
                .iter_mut()
                .for_each(|fact| shifted(&mut fact.job));
        }
        self.parts.append(&mut other.parts);
        self.disks.append(&mut other.disks);
        self.options.append(&mut other.options);
        self.facts.append(&mut other.facts);
        self.messages.append(&mut other.messages);
    }

    /// Sets the run time of flushes to that of their job: no tool reports one of their own, and
    /// their number over it is what can be compared.
    pub(crate) fn time_flushes(&mut self) {
        let times: Vec<_> = self
            .parts
            .iter()
            .filter_map(|part| Some((part.job, part.runtime_ns?)))
            .collect();
        let flushes = self.parts.iter_mut();
        for part in flushes.filter(|part| part.operation == Operation::Sync) {
            let own = times.iter().filter(|(job, _)| *job == part.job);
            part.runtime_ns = own.map(|(_, time)| *time).max();
            part.compute_rates();
        }
    }

    /// The first fact of this name about job `job`, or about the whole run with `None`.
    #[must_use]
    pub fn fact(&self, job: Option<u32>, name: &str) -> Option<&Reported> {
        self.facts
            .iter()
            .find(|fact| fact.job == job && fact.name == name)
    }

    /// The number of processes that did a part at the same time, where the tool reports it; fio's
    /// jobs are parts of their own.
    #[must_use]
    pub fn processes(&self, part: &Part) -> Option<u32> {
        let own = part.fact(PROCESSES);
        let said = own.or_else(|| self.fact(Some(part.job), PROCESSES))?;
        match said.value {
            ReportedValue::Count(count) => u32::try_from(count).ok(),
            _ => None,
        }
    }
}

/// The name of the fact with the number of processes of a part.
pub(crate) const PROCESSES: &str = "processes";

/// One part of the output with numbers: one operation of one job.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Part {
    /// The number of the part's job in the output, from 0; facts and options of the same job have
    /// the same number. Names need not be unique.
    pub job: u32,
    /// The job's name; iozone: `16384k/64k`, file and record size; dd: empty.
    pub label: String,
    /// The operation of this part's requests.
    pub operation: Operation,
    /// The size of one request or record, bytes.
    pub block_size_bytes: Option<u64>,
    /// The size of the file or region worked on, bytes.
    pub file_size_bytes: Option<u64>,
    /// The number of requests completed, files handled, or seeks made.
    pub total_ios: Option<u64>,
    /// The number of bytes moved in all.
    pub total_bytes: Option<u64>,
    /// The duration of the part, nanoseconds.
    pub runtime_ns: Option<u64>,
    /// `total_ios` per second; files or seeks per second.
    pub operations_per_second: Option<f64>,
    /// `total_bytes` per second, or the rate that the tool printed.
    pub bytes_per_second: Option<f64>,
    /// Processor time as a percentage of one processor, of this part or, with
    /// fio, of its job.
    pub cpu_percent: Option<f64>,
    /// The latencies of the part, each kind at most once.
    pub latencies: Vec<ReportedLatency>,
    /// Other facts about this part.
    pub facts: Vec<Reported>,
}

impl Part {
    /// Creates a part without numbers.
    #[must_use]
    pub fn new(job: u32, label: impl Into<String>, operation: Operation) -> Self {
        Self {
            job,
            label: label.into(),
            operation,
            ..Self::default()
        }
    }

    /// Whether the part has a rate.
    #[must_use]
    pub const fn has_rate(&self) -> bool {
        self.operations_per_second.is_some() || self.bytes_per_second.is_some()
    }

    /// The latency to report: the one with percentiles (fio gives them for one kind only, by
    /// default for completions), else the total, else any.
    #[must_use]
    pub fn latency(&self) -> Option<&ReportedLatency> {
        let of = |kind| self.latencies.iter().find(|latency| latency.kind == kind);
        let kinds = [LatencyKind::Total, LatencyKind::Completion];
        kinds
            .into_iter()
            .filter_map(of)
            .find(|latency| !latency.percentiles.is_empty())
            .or_else(|| kinds.into_iter().find_map(of))
            .or_else(|| self.latencies.first())
    }

    /// The first fact of this name.
    #[must_use]
    pub fn fact(&self, name: &str) -> Option<&Reported> {
        self.facts.iter().find(|fact| fact.name == name)
    }

    /// Adds a fact about this part.
    pub(crate) fn note(&mut self, name: &str, value: impl Into<ReportedValue>, unit: &str) {
        self.facts
            .push(Reported::new(Some(self.job), name, value, unit));
    }

    /// Computes the rates from counts and time, where both are there.
    pub(crate) fn compute_rates(&mut self) {
        let Some(seconds) = self
            .runtime_ns
            .filter(|&time| time > 0)
            .map(|time| time as f64 / 1e9)
        else {
            return;
        };
        if let Some(bytes) = self.total_bytes {
            self.bytes_per_second = Some(bytes as f64 / seconds);
        }
        if let Some(ios) = self.total_ios {
            self.operations_per_second = Some(ios as f64 / seconds);
        }
    }
}

/// The interval that a latency measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum LatencyKind {
    /// The time from the call to its return (fio `slat`).
    Submission,
    /// The time from the call's return to the request's completion (fio `clat`).
    Completion,
    /// The time from the call to the completion (fio `lat`; bonnie++; iozone `-N`).
    #[default]
    Total,
}

/// Latencies of one kind, in nanoseconds.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ReportedLatency {
    /// The interval that was timed.
    pub kind: LatencyKind,
    /// The number of requests that were timed.
    pub samples: Option<u64>,
    /// The mean latency, nanoseconds.
    pub mean_ns: Option<f64>,
    /// The standard deviation of the latencies, nanoseconds.
    pub deviation_ns: Option<f64>,
    /// The shortest latency, nanoseconds.
    pub min_ns: Option<u64>,
    /// The longest latency, nanoseconds.
    pub max_ns: Option<u64>,
    /// Pairs of a percentage and the time within which so many requests ended, rising.
    pub percentiles: Vec<(f64, u64)>,
    /// Pairs of a time and the number of requests that took it, rising: fio's `json+`.
    pub bins: Vec<(u64, u64)>,
}

impl ReportedLatency {
    /// Creates a latency of a kind without numbers.
    #[must_use]
    pub fn new(kind: LatencyKind) -> Self {
        Self {
            kind,
            ..Self::default()
        }
    }
}

/// The kernel's counters of one disk or array, from fio's `disk_util`.
#[derive(Debug, Clone, PartialEq)]
pub struct DiskUse {
    /// The kernel's name: `sdc`, `md1`.
    pub name: String,
    /// The counters of the disk or array itself.
    pub own: DiskCounters,
    /// The means of an array over its members (fio's `aggr_`), the highest for `util_percent`.
    pub members: Option<DiskCounters>,
}

/// Counters of a disk over a run, as in `/proc/diskstats`.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct DiskCounters {
    /// The number of reads that the disk completed.
    pub read_ios: Option<u64>,
    /// The number of writes that the disk completed.
    pub write_ios: Option<u64>,
    /// Sectors of 512 bytes read (fio 3.36 and later).
    pub read_sectors: Option<u64>,
    /// Sectors of 512 bytes written (fio 3.36 and later).
    pub write_sectors: Option<u64>,
    /// Reads merged into others.
    pub read_merges: Option<u64>,
    /// Writes merged into others.
    pub write_merges: Option<u64>,
    /// Sum of the time of all reads, milliseconds.
    pub read_ticks_ms: Option<u64>,
    /// Sum of the time of all writes, milliseconds.
    pub write_ticks_ms: Option<u64>,
    /// Sum of the time in the queue, milliseconds.
    pub in_queue_ms: Option<u64>,
    /// The percentage of time with at least one request in flight.
    pub util_percent: Option<f64>,
}

/// An option as the tool reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReportedOption {
    /// The job it belongs to, from 0; `None`: all jobs.
    pub job: Option<u32>,
    /// The option's name: `bs`.
    pub name: String,
    /// The value as written: `4k`; empty for a switch.
    pub value: String,
}

impl ReportedOption {
    /// Creates an option of a job, or of all jobs.
    pub(crate) fn new(job: Option<u32>, name: &str, value: &str) -> Self {
        let (name, value) = (name.to_owned(), value.to_owned());
        Self { job, name, value }
    }
}

/// A fact that a tool reported beside its main numbers.
#[derive(Debug, Clone, PartialEq)]
pub struct Reported {
    /// The job that it is about, from 0; `None` for the whole run.
    pub job: Option<u32>,
    /// The name of the fact: `usr_cpu`, `iodepth_level >=64`, `records-in-partial`.
    pub name: String,
    /// The value, in the fact's unit.
    pub value: ReportedValue,
    /// The unit of a number: `%`, `ms`, `bytes/s`; empty for counts and texts.
    pub unit: String,
}

impl Reported {
    /// Creates a fact about a job, or about the whole run.
    #[must_use]
    pub fn new(job: Option<u32>, name: &str, value: impl Into<ReportedValue>, unit: &str) -> Self {
        Self {
            job,
            name: name.to_owned(),
            value: value.into(),
            unit: unit.to_owned(),
        }
    }
}

impl fmt::Display for Reported {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}={}{}", self.name, self.value, self.unit)
    }
}

/// The value of a [`Reported`].
#[derive(Debug, Clone, PartialEq)]
pub enum ReportedValue {
    /// A whole number.
    Count(u64),
    /// Any other number; finite.
    Number(f64),
    /// Anything that is no number.
    Text(String),
}

impl ReportedValue {
    /// The value as a number, if it is one.
    #[must_use]
    // Counts here are far below 2^53.
    pub const fn number(&self) -> Option<f64> {
        match self {
            Self::Count(count) => Some(*count as f64),
            Self::Number(number) => Some(*number),
            Self::Text(_) => None,
        }
    }
}

impl fmt::Display for ReportedValue {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(count) => write!(formatter, "{count}"),
            Self::Number(number) => write!(formatter, "{number}"),
            Self::Text(text) => formatter.write_str(text),
        }
    }
}

impl From<u64> for ReportedValue {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<f64> for ReportedValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for ReportedValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for ReportedValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{LatencyKind, Part, ReportedLatency};
    use crate::Operation;

    #[test]
    fn rates_need_counts_and_time() {
        let mut part = Part::new(0, "a", Operation::Read);
        part.total_bytes = Some(4096);
        part.compute_rates();
        assert!(!part.has_rate());
        part.runtime_ns = Some(0);
        part.compute_rates();
        assert!(!part.has_rate());
        part.runtime_ns = Some(500_000_000);
        part.compute_rates();
        assert_eq!(
            (part.bytes_per_second, part.operations_per_second),
            (Some(8192.0), None)
        );
    }

    #[test]
    fn the_latency_with_percentiles_is_reported() {
        let mut part = Part::new(0, "a", Operation::Read);
        assert_eq!(part.latency(), None);
        for kind in [
            LatencyKind::Submission,
            LatencyKind::Completion,
            LatencyKind::Total,
        ] {
            part.latencies.push(ReportedLatency::new(kind));
        }
        let kind = |part: &Part| part.latency().map(|latency| latency.kind);
        assert_eq!(kind(&part), Some(LatencyKind::Total));
        part.latencies[1].percentiles.push((50.0, 7));
        assert_eq!(kind(&part), Some(LatencyKind::Completion));
    }
}
