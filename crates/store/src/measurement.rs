//! The measurement: one row per job, subject and operation, on any bench.

use serde::{Deserialize, Serialize};

/// Reads and writes are measured apart, also where one job mixes them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Bytes from the subject.
    Read,
    /// Bytes into the subject.
    Write,
}

/// How a figure stands to the facts that the bench was calibrated on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Measured on something real.
    Measured,
    /// Modelled, and nothing of this cell was used to fit the model.
    Predicted,
    /// Modelled, and this very cell was among the facts fitted.
    Fitted,
}

/// A run: one suite on one bench, started once.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Unique in a store; sorts by start: `20261121T021000Z-mirror-2015`.
    pub name: String,
    /// Start, RFC 3339 in UTC.
    pub started: String,
    /// End, RFC 3339 in UTC; `None` while running or after an interruption.
    pub finished: Option<String>,
    /// `model`, `kernel`, `host` or `import`.
    pub bench: String,
    /// The suite's name.
    pub suite: String,
    /// The suite's title for people.
    pub suite_title: String,
    /// The one seed of everything.
    pub seed: u64,
    /// Version of raidlab that ran.
    pub raidlab_version: String,
    /// The command line, for repeating the run.
    pub command_line: String,
}

/// One setting in force, as read back from whatever it was given to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Setting {
    /// What it belongs to: `subject md`, `disk wd4000fyyz strict`, `host linux-3.16`.
    pub scope: String,
    /// The setting's name.
    pub name: String,
    /// Its value with its unit.
    pub value: String,
    /// Where the value is from; empty where it is the user's choice.
    pub source: String,
}

/// Latencies of one operation of one job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Latency {
    /// Mean, nanoseconds.
    pub mean_ns: f64,
    /// Median, nanoseconds.
    pub p50_ns: u64,
    /// 90 % were faster, nanoseconds.
    pub p90_ns: u64,
    /// 99 % were faster, nanoseconds.
    pub p99_ns: u64,
    /// 99.9 % were faster, nanoseconds.
    pub p999_ns: u64,
    /// The slowest, nanoseconds.
    pub max_ns: u64,
    /// The whole histogram, `HdrHistogram` V2 with deflate; empty if unknown.
    #[serde(skip)]
    pub histogram: Vec<u8>,
}

/// What one member did during one job.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct MemberUse {
    /// The member's name in the array: `0`, `1`, ...
    pub member: String,
    /// Its model or preset.
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
    /// Time with at least one command in flight, nanoseconds.
    pub busy_ns: u64,
    /// The part of `read_bytes` and `write_bytes` that was resync or recovery.
    pub sync_bytes: u64,
}

/// A figure for the same cell from somewhere else.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PublishedFigure {
    /// Short name of the source: `log`, `article`.
    pub source: String,
    /// Operations per second.
    pub iops: f64,
    /// Bytes per second, where given or implied by the block size.
    pub bytes_per_second: Option<f64>,
    /// `exact`, `rounded`, `disputed`: how far the figure can be trusted.
    pub reliability: String,
    /// Sync percent at the start of the job, where given.
    pub sync_percent: Option<f64>,
    /// What the reader must know; may be empty.
    pub note: String,
}

/// One row: a job's reads or writes on one subject.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// `model`, `kernel`, `host` or `import`.
    pub bench: String,
    /// The suite's name.
    pub suite: String,
    /// The subject's name: `md`, `gflash`, ...
    pub subject: String,
    /// Parameter set of the disk models (`strict`, `joint`); empty on real disks.
    pub fit: String,
    /// Position of the job in the suite, from 0: the order of rows.
    pub sequence: u32,
    /// The job's short name in the suite: `9`.
    pub job: String,
    /// The job in words: `random read 4 KiB, queue depth 4`.
    pub job_title: String,
    /// Class for accuracy statements and graphs: `random-read`.
    pub class: String,
    /// Reads or writes.
    pub op: Direction,
    /// Bytes of one I/O.
    pub block_size_bytes: u64,
    /// Effective queue depth: jobs times depth of each.
    pub queue_depth: u32,
    /// Streams (fio jobs or threads) that ran together.
    pub streams: u32,
    /// I/Os completed.
    pub total_ios: u64,
    /// Bytes moved.
    pub total_bytes: u64,
    /// From the first submission to the last completion, nanoseconds; fio's `runt`.
    pub runtime_ns: u64,
    /// `total_ios` over `runtime_ns`. More is better.
    pub iops: f64,
    /// `total_bytes` over `runtime_ns`. More is better.
    pub bytes_per_second: f64,
    /// Less is better.
    pub latency: Latency,
    /// The array in mdstat's letters at the job's start: `[UU]`, `[U_]`.
    pub array_state_start: String,
    /// The same at its end.
    pub array_state_end: String,
    /// Resync or recovery progress at the job's start, percent; `None` when none runs.
    pub sync_percent_start: Option<f64>,
    /// The same at its end.
    pub sync_percent_end: Option<f64>,
    /// Requests that found the drive's queue full and waited in the host.
    pub tag_overflows: u64,
    /// Share of the job that was skipped analytically, percent.
    pub leaped_percent: f64,
    /// Fitted, predicted or measured.
    pub role: Role,
    /// Per member, in slot order.
    pub members: Vec<MemberUse>,
    /// The same cell elsewhere; the first is the one to compare with.
    pub published: Vec<PublishedFigure>,
}
