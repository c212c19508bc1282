//! The measurement: one row per job, subject and operation, on any bench.

use crate::{Operation, Shard};
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2DeflateSerializer};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The parameter set of disk models whose figures are shown: it knows least about what it predicts.
pub const MAIN_FIT: &str = "strict";

/// Those of a run's rows whose figures stand for their cells, in their order. Where a cell was
/// modelled with several parameter sets, these are the rows of [`MAIN_FIT`], or else of the
/// set that comes first; the others only widen its band.
pub fn shown<'a>(
    rows: impl Iterator<Item = &'a Measurement> + Clone,
) -> impl Iterator<Item = &'a Measurement> {
    let of_cell = |m: &'a Measurement| {
        let place = (m.host.as_str(), m.subject.as_str(), m.filesystem.as_str());
        (place, m.sequence, m.op, m.part.as_str())
    };
    let mut fits: BTreeMap<_, &str> = BTreeMap::new();
    for m in rows.clone() {
        let fit = fits.entry(of_cell(m)).or_insert(&m.fit);
        if m.fit == MAIN_FIT {
            *fit = MAIN_FIT;
        }
    }
    rows.filter(move |m| fits.get(&of_cell(m)) == Some(&m.fit.as_str()))
}

/// The relation of a figure to the facts that the bench was calibrated on.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// The figure was measured on real disks or a real kernel.
    #[default]
    Measured,
    /// The figure is modelled, and no fact of this cell was used to fit the model.
    Predicted,
    /// The figure is modelled, and this very cell was among the facts fitted.
    Fitted,
}

/// A run: one suite on one bench, started once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// The run's name, unique in a store; names sort by start: `20261121T021000Z-mirror-2015`.
    pub name: String,
    /// Start, RFC 3339 in UTC.
    #[serde(alias = "started_utc")]
    pub started: String,
    /// End, RFC 3339 in UTC; `None` while running or after an interruption.
    #[serde(alias = "finished_utc")]
    pub finished: Option<String>,
    /// The bench: `model`, `kernel`, `host` or `import`.
    pub bench: String,
    /// The suite's name.
    pub suite: String,
    /// The suite's title for people.
    pub suite_title: String,
    /// The seed of all random choices of the run.
    pub seed: u64,
    /// Version of raidlab that ran.
    pub raidlab_version: String,
    /// The command line, for repeating the run.
    pub command_line: String,
    /// The plan's SHA-256; empty where there is no plan.
    pub plan_hash: String,
}

/// A run's plan as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptPlan {
    /// The identity of the planning program, in hexadecimal digits: its build ID, or the SHA-256
    /// of its file.
    pub program: String,
    /// The plan itself as JSON, whose contents the store does not read.
    pub json: String,
    /// The part of the plan that the run is; `None` for all of it.
    pub shard: Option<Shard>,
}

/// A setting in force, as read back from what it was given to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setting {
    /// The scope that the setting belongs to: `subject md`, `disk wd4000fyyz
    /// strict`, `host linux-3.16`.
    pub scope: String,
    /// The name of the setting, as its file has it.
    pub name: String,
    /// Its value with its unit.
    pub value: String,
    /// The source of the value; empty where it is the user's choice.
    pub source: String,
}

impl Setting {
    /// Creates a setting of these parts.
    #[must_use]
    pub fn new(
        scope: impl Into<String>,
        name: impl Into<String>,
        value: impl Into<String>,
        source: impl Into<String>,
    ) -> Self {
        Self {
            scope: scope.into(),
            name: name.into(),
            value: value.into(),
            source: source.into(),
        }
    }
}

/// The latencies of one operation of one job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// The arithmetic mean of all requests, nanoseconds.
    pub mean_ns: f64,
    /// The median: half of the requests took longer, nanoseconds.
    pub p50_ns: u64,
    /// The 90th percentile, nanoseconds.
    pub p90_ns: u64,
    /// The 99th percentile, nanoseconds.
    pub p99_ns: u64,
    /// The 99.9th percentile, nanoseconds.
    pub p999_ns: u64,
    /// The longest latency, nanoseconds.
    pub max_ns: u64,
    /// The whole histogram, `HdrHistogram` V2 with deflate; empty if unknown.
    #[serde(skip)]
    pub histogram: Vec<u8>,
}

impl Latency {
    /// The latencies in a histogram of nanoseconds, with the histogram itself.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        let mut bytes = Vec::new();
        // Writing to memory cannot fail; an empty histogram means unknown.
        if V2DeflateSerializer::new()
            .serialize(histogram, &mut bytes)
            .is_err()
        {
            bytes.clear();
        }
        Self {
            mean_ns: histogram.mean(),
            p50_ns: histogram.value_at_quantile(0.5),
            p90_ns: histogram.value_at_quantile(0.9),
            p99_ns: histogram.value_at_quantile(0.99),
            p999_ns: histogram.value_at_quantile(0.999),
            max_ns: histogram.max(),
            histogram: bytes,
        }
    }

    /// Whether latencies were recorded at all: a tool with recording switched off leaves zeros.
    #[must_use]
    pub const fn is_recorded(&self) -> bool {
        self.max_ns > 0
    }
}

/// The counters of one member during one job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MemberUse {
    /// The member's name in the array: `0`, `1`, ...
    pub member: String,
    /// The member's model or preset.
    pub model: String,
    /// Read commands completed, resync included.
    pub read_ios: u64,
    /// Bytes read, resync included.
    pub read_bytes: u64,
    /// Sum of the reads' latencies, nanoseconds (diskstats calls it ticks).
    pub read_ticks_ns: u64,
    /// Write commands completed, resync included.
    pub write_ios: u64,
    /// Bytes written, resync included.
    pub write_bytes: u64,
    /// Sum of the writes' latencies, nanoseconds.
    pub write_ticks_ns: u64,
    /// The time with at least one command in flight, nanoseconds.
    pub busy_ns: u64,
    /// The part of `read_bytes` and `write_bytes` that was resync or recovery; `None` where some of
    /// it was and the amount is not counted, as on a real kernel.
    pub sync_bytes: Option<u64>,
}

/// A figure for the same cell from another source.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// The short name of the source: `log`, `article`.
    pub source: String,
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second, where given or implied by the block size.
    pub bytes_per_second: Option<f64>,
    /// The trust that the figure deserves: `exact`, `rounded`, `disputed`.
    pub reliability: String,
    /// The progress of the sync at the start of the job, percent, where given.
    pub sync_percent: Option<f64>,
    /// A note for the reader; may be empty.
    pub note: String,
}

/// The uncertainty of a figure of modelled disks that were not fitted: factors between its rates
/// and those of real disks. Latencies of a closed loop are off by the inverse.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct DiskBand {
    /// The lower factor: the real rate is at least so many times the modelled one; above 0,
    /// at most 1.
    pub low: f64,
    /// The upper factor: the real rate is at most so many times the modelled one; at least 1.
    pub high: f64,
    /// The factor by which the ratio to another figure on the same disks may be off, either way; at
    /// least 1. The common error of both cancels.
    pub ratio: f64,
}

/// One row of results: a job's reads or writes on one subject.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Measurement {
    /// The bench: `model`, `kernel`, `host` or `import`.
    pub bench: String,
    /// The suite's name.
    pub suite: String,
    /// The machine that the job ran on; empty for modelled ones.
    pub host: String,
    /// The subject's name: `md`, `gflash`, ...
    pub subject: String,
    /// The file system that the job ran on, with its options' label; empty on
    /// the raw array.
    pub filesystem: String,
    /// The parameter set of the disk models (`strict`, `joint`); empty on real disks.
    pub fit: String,
    /// The position of the job in the suite, from 0, which is the order of rows.
    pub sequence: u32,
    /// The job's short name in the suite: `9`.
    pub job: String,
    /// The job in words: `random read 4 KiB, queue depth 4`.
    pub job_title: String,
    /// The number of earlier measurements of the cell, from 0.
    pub repetition: u32,
    /// The tool with its version, `fio 3.33`; empty for the model's own
    /// workload.
    pub tool: String,
    /// The part of the tool's output: `16384k/64k` of iozone's table; empty
    /// where there is one row for each operation.
    pub part: String,
    /// The job's class for accuracy statements and graphs: `random-read`.
    pub class: String,
    /// The operation that was measured.
    pub op: Operation,
    /// The size of one I/O, bytes.
    pub block_size_bytes: u64,
    /// The effective queue depth: jobs times depth of each.
    pub queue_depth: u32,
    /// The number of streams (fio jobs or threads) that ran together.
    pub streams: u32,
    /// I/Os completed; 0 where the tool does not tell.
    pub total_ios: u64,
    /// Bytes moved; 0 where the tool does not tell.
    pub total_bytes: u64,
    /// The start of the job, nanoseconds since its experiment began.
    pub started_ns: u64,
    /// The time from the first submission to the last completion, nanoseconds; fio's `runt`. For
    /// background work of an array, the time from its begin to its end. Less is better.
    pub runtime_ns: u64,
    /// The uncertainty of `runtime_ns` either way, nanoseconds, where the array was only polled. 0
    /// for jobs, and where both ends are known.
    pub runtime_band_ns: u64,
    /// Operations per second, `total_ios` over `runtime_ns` where both are
    /// known; 0 where the tool does not tell. More is better.
    pub iops: f64,
    /// Bytes per second, `total_bytes` over `runtime_ns` where both are known;
    /// 0 for operations that move no bytes. More is better.
    pub bytes_per_second: f64,
    /// The share of its undisturbed rate that the job keeps beside background work, percent.
    /// More is better.
    pub kept_percent: Option<f64>,
    /// Processor time over the run time, percent of one processor, where the
    /// tool tells. Less is better.
    pub cpu_percent: Option<f64>,
    /// The latencies of the row's operations; less is better.
    pub latency: Latency,
    /// The array in mdstat's letters at the job's start: `[UU]`, `[U_]`.
    pub array_state_start: String,
    /// The array in mdstat's letters at the job's end.
    pub array_state_end: String,
    /// Resync or recovery progress at the job's start, percent; `None` when there is none.
    pub sync_percent_start: Option<f64>,
    /// Resync or recovery progress at the job's end, percent; `None` when there is none.
    pub sync_percent_end: Option<f64>,
    /// Requests that found the drive's queue full and waited in the host; `None` where they
    /// are not counted.
    #[serde(alias = "tag_overflows_count")]
    pub tag_overflows: Option<u64>,
    /// The share of the job that was skipped analytically, percent.
    pub leaped_percent: f64,
    /// The row's role: fitted, predicted or measured.
    pub role: Role,
    /// The uncertainty of the figure, where disks are modelled that were not fitted.
    pub disk_band: Option<DiskBand>,
    /// The use of each member, in slot order.
    #[serde(default)]
    pub members: Vec<MemberUse>,
    /// Figures for the same cell from other sources; the first is the one to compare with.
    #[serde(default)]
    pub published: Vec<PublishedFigure>,
}

/// The part of the recovery by which an array was made, and of the time degraded with it. A later
/// one has a number behind it.
pub const MAKING: &str = "first";

impl Measurement {
    /// Whether the row is of the recovery by which an array was made, and so of no rebuild.
    #[must_use]
    pub fn is_of_making(&self) -> bool {
        matches!(self.op, Operation::Recovery | Operation::Degraded)
            && self.part.starts_with(MAKING)
    }

    /// Creates an empty row of a bench.
    #[must_use]
    pub fn blank(bench: &str) -> Self {
        Self {
            bench: bench.to_owned(),
            queue_depth: 1,
            streams: 1,
            ..Self::default()
        }
    }

    /// The one figure that a table of this row's class shows: operations per second for small
    /// random blocks and for operations without bytes, bytes per second for all others; the time
    /// for an array's background work.
    #[must_use]
    pub fn metric(&self) -> Metric {
        let small = self.block_size_bytes > 0 && self.block_size_bytes < 64 * 1024;
        if self.op == Operation::Kept {
            Metric::KeptPercent
        } else if self.op.is_background() {
            Metric::Seconds
        } else if self.bytes_per_second <= 0.0 || (small && self.iops > 0.0) {
            Metric::OperationsPerSecond
        } else {
            Metric::BytesPerSecond
        }
    }

    /// All metrics of the row, [`Measurement::metric`] first: background copying has a rate beside
    /// its time, where the amount is known.
    pub fn metrics(&self) -> impl Iterator<Item = Metric> + use<> {
        let first = self.metric();
        let rate = first == Metric::Seconds && self.bytes_per_second > 0.0;
        let rate = rate.then_some(Metric::BytesPerSecond);
        std::iter::once(first).chain(rate)
    }

    /// The value of [`Measurement::metric`].
    #[must_use]
    pub fn value(&self) -> f64 {
        self.value_of(self.metric())
    }

    /// The figure that a metric counts; 0 where the row has none.
    #[must_use]
    // 2^53 ns are 104 days.
    pub fn value_of(&self, metric: Metric) -> f64 {
        match metric {
            Metric::OperationsPerSecond => self.iops,
            Metric::BytesPerSecond => self.bytes_per_second,
            Metric::Seconds => self.runtime_ns as f64 / 1e9,
            Metric::KeptPercent => self.kept_percent.unwrap_or(0.0),
        }
    }

    /// Whether the job had time but completed nothing, as one that starves: its rate is 0. Any
    /// other rate of 0 was not reported.
    #[must_use]
    pub const fn did_nothing(&self) -> bool {
        let nothing = self.total_ios == 0 && self.total_bytes == 0;
        nothing && self.runtime_ns > 0 && !self.op.is_background()
    }

    /// Whether the work was unfinished when the run ended: its time is at least that of the row.
    #[must_use]
    pub fn is_unfinished(&self) -> bool {
        match self.op {
            Operation::Degraded => self.array_state_end.contains('_'),
            Operation::Kept => false,
            op => op.is_background() && self.sync_percent_end != Some(100.0),
        }
    }
}

/// The kind of figure that a row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Metric {
    /// Operations per second: reads, writes, seeks, files.
    OperationsPerSecond,
    /// Bytes per second; for copying of an array, bytes of each member.
    BytesPerSecond,
    /// The duration in seconds.
    Seconds,
    /// The share of its undisturbed rate that a job keeps, percent.
    KeptPercent,
}

impl Metric {
    /// Every metric, in the order of tables.
    pub const ALL: &'static [Self] = &[
        Self::OperationsPerSecond,
        Self::BytesPerSecond,
        Self::Seconds,
        Self::KeptPercent,
    ];

    /// The metric's name in files: `duration`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::OperationsPerSecond => "operations",
            Self::BytesPerSecond => "rate",
            Self::Seconds => "duration",
            Self::KeptPercent => "kept",
        }
    }

    /// Whether the metric is one of jobs, and not of background work.
    #[must_use]
    pub const fn is_of_jobs(self) -> bool {
        matches!(self, Self::OperationsPerSecond | Self::BytesPerSecond)
    }
}
