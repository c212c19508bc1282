//! Records kept beside the measurements: observations, commands, samples, events, and
//! the audit's findings.

use crate::{Measurement, Operation, Setting};
use raidlab_results::Fact;
use serde::{Deserialize, Serialize};

/// One measurement of a job of a suite on a subject, done as a whole. It has one row for each
/// operation and part.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Cell {
    /// The machine; empty for modelled ones.
    pub host: String,
    /// The subject's name: `md`, `gflash`.
    pub subject: String,
    /// The file system's label; empty on the raw array.
    pub filesystem: String,
    /// Parameter set of the disk models; empty on real disks.
    pub fit: String,
    /// Position of the job in the suite, from 0.
    pub sequence: u32,
    /// The number of earlier measurements of the cell, from 0.
    pub repetition: u32,
}

/// The set of cells that a record belongs to. An empty part stands for all values, so a record of a
/// machine covers all subjects on it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Scope {
    /// The machine, or empty.
    pub host: String,
    /// The subject, or empty.
    pub subject: String,
    /// The file system's label, or empty.
    pub filesystem: String,
    /// The job's position in the suite.
    pub sequence: Option<u32>,
    /// The number of earlier measurements of the cell.
    pub repetition: Option<u32>,
}

impl Scope {
    /// The scope of a whole machine, with all its subjects.
    #[must_use]
    pub fn host(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            ..Self::default()
        }
    }

    /// The scope that is the cell of one row.
    #[must_use]
    pub fn of(row: &Measurement) -> Self {
        Self {
            host: row.host.clone(),
            subject: row.subject.clone(),
            filesystem: row.filesystem.clone(),
            sequence: Some(row.sequence),
            repetition: Some(row.repetition),
        }
    }

    /// Whether the scope includes a row.
    #[must_use]
    pub fn covers(&self, row: &Measurement) -> bool {
        let word = |mine: &str, theirs: &str| mine.is_empty() || mine == theirs;
        let number = |mine: Option<u32>, theirs: u32| mine.is_none_or(|mine| mine == theirs);
        word(&self.host, &row.host)
            && word(&self.subject, &row.subject)
            && word(&self.filesystem, &row.filesystem)
            && number(self.sequence, row.sequence)
            && number(self.repetition, row.repetition)
    }
}

/// A fact about the machine, the array or a job, as read by a program.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Observation {
    /// The scope that the observation is about.
    pub scope: Scope,
    /// A dotted name: `memory.total_bytes`, `fio.iodepth_level.1`.
    pub name: String,
    /// The value as text.
    pub value: String,
    /// The value's unit: `bytes`, `percent`; empty for words and counts.
    pub unit: String,
    /// The file or command that it was read from: `/proc/meminfo`; may be empty.
    pub source: String,
}

impl Observation {
    /// Creates an observation about what `scope` names.
    #[must_use]
    pub fn new(
        scope: &Scope,
        name: impl Into<String>,
        value: impl ToString,
        unit: &str,
        source: impl Into<String>,
    ) -> Self {
        Self {
            scope: scope.clone(),
            name: name.into(),
            value: value.to_string(),
            unit: unit.to_owned(),
            source: source.into(),
        }
    }

    /// The observation of a fact about what `scope` names.
    #[must_use]
    pub fn of(scope: &Scope, fact: Fact) -> Self {
        Self {
            scope: scope.clone(),
            name: fact.name,
            value: fact.value,
            unit: fact.unit,
            source: fact.source,
        }
    }

    /// The observation without its scope.
    #[must_use]
    pub fn fact(&self) -> Fact {
        Fact {
            name: self.name.clone(),
            value: self.value.clone(),
            unit: self.unit.clone(),
            source: self.source.clone(),
        }
    }
}

/// A command that ran.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CommandRecord {
    /// The scope for which the command was run.
    pub scope: Scope,
    /// The start, nanoseconds since the experiment began.
    pub at_ns: u64,
    /// The command line, as one would type it.
    pub command: String,
    /// The exit code; `None` when a signal ended the command.
    #[serde(alias = "exit_code")]
    pub code: Option<i32>,
    /// The duration, nanoseconds.
    pub took_ns: u64,
    /// The standard output.
    pub stdout: String,
    /// The standard error.
    pub stderr: String,
}

/// An event on the time line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EventRecord {
    /// The scope to which the event happened.
    pub scope: Scope,
    /// The time of the event, nanoseconds since the experiment began.
    pub at_ns: u64,
    /// The kind of event: `job-start`, `job-end`, `fail`, `remove`, `insert`, `re-add`,
    /// `sync-start`, `sync-end`, `state`, `resumed`.
    pub kind: String,
    /// The member concerned, from 0.
    pub member: Option<u32>,
    /// The event in words.
    pub text: String,
}

/// A time series of samples of one quantity.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The scope of the samples.
    pub scope: Scope,
    /// The name of the series: `array.read_bytes_per_second`,
    /// `sync.percent`, `member.0.write_iops`.
    pub name: String,
    /// The unit of the values: `bytes/s`, `percent`, `1/s`, `celsius`.
    pub unit: String,
    /// The samples in order: times, nanoseconds since the experiment began, and values.
    #[serde(default)]
    pub points: Vec<(u64, f64)>,
}

/// The severity of a finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something to know that does not devalue the figure.
    Note,
    /// The number may mislead.
    Warning,
    /// The number does not mean what it seems to: it is struck out.
    Fatal,
}

impl Severity {
    /// The severity's name, as in stores and reports: `warning`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Fatal => "fatal",
        }
    }
}

/// A finding of the audit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's identifier: `C12`.
    pub rule: String,
    /// The rule's title in a few words: `setting not applied`.
    pub title: String,
    /// The extent to which the numbers suffer from the fault.
    pub severity: Severity,
    /// The rows that the finding is about.
    pub scope: Scope,
    /// The operation that the finding is about; `None` for all of the cells'.
    pub op: Option<Operation>,
    /// The part of the output that the finding is about; empty for all.
    pub part: String,
    /// The figures and texts that show the fault.
    pub evidence: String,
    /// The effect on the number.
    pub effect: String,
    /// The remedy for the fault.
    pub remedy: String,
}

impl Finding {
    /// Whether the finding is about a row.
    #[must_use]
    pub fn covers(&self, row: &Measurement) -> bool {
        self.scope.covers(row)
            && self.op.is_none_or(|op| op == row.op)
            && (self.part.is_empty() || self.part == row.part)
    }
}

/// Records of any kind, beside the measurements, that are added together.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Records {
    /// Settings in force.
    pub settings: Vec<Setting>,
    /// Facts about the machine and the subject, each with its source.
    pub observations: Vec<Observation>,
    /// Commands that ran.
    pub commands: Vec<CommandRecord>,
    /// Events: members removed and added, syncs begun and ended.
    pub events: Vec<EventRecord>,
    /// Samples; points of a series that exists already are appended to it.
    pub series: Vec<Series>,
}

/// A finished cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The subject, parameter set and repetition that it belongs to.
    pub cell: Cell,
    /// The cell's rows; none for a job that only prepares.
    pub rows: Vec<Measurement>,
    /// The records that belong to the cell.
    pub records: Records,
}

impl Measurement {
    /// The cell that this row belongs to.
    #[must_use]
    pub fn cell(&self) -> Cell {
        Cell {
            host: self.host.clone(),
            subject: self.subject.clone(),
            filesystem: self.filesystem.clone(),
            fit: self.fit.clone(),
            sequence: self.sequence,
            repetition: self.repetition,
        }
    }
}
