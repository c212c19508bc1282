//! What is written down beside the measurements: what was observed, run and
//! sampled, what happened, and what the audit found.

use crate::{Measurement, Operation, Setting};
use raidlab_results::Fact;
use serde::{Deserialize, Serialize};

/// A job of a suite on a subject, once: what is measured, or has been, as a
/// whole. It has one row for each operation and part.
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
    /// How often it was measured before, from 0.
    pub repetition: u32,
}

/// Which cells a record belongs to. An empty part means every one, so a record
/// of a machine covers all subjects on it.
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
    /// How often the cell had been measured before.
    pub repetition: Option<u32>,
}

impl Scope {
    /// A scope that is a whole machine, with all its subjects.
    #[must_use]
    pub fn host(host: &str) -> Self {
        Self {
            host: host.to_owned(),
            ..Self::default()
        }
    }

    /// The cell of one row.
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

    /// Whether a row is among those meant.
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
    /// What the observation is about.
    pub scope: Scope,
    /// A dotted name: `memory.total_bytes`, `fio.iodepth_level.1`.
    pub name: String,
    /// The value as text.
    pub value: String,
    /// Its unit: `bytes`, `percent`; empty for words and counts.
    pub unit: String,
    /// Where it was read: `/proc/meminfo`; may be empty.
    pub source: String,
}

impl Observation {
    /// Something that is known of what `scope` names.
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

    /// A fact about what `scope` names.
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

    /// The same without what it is about.
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
    /// What the command was run for.
    pub scope: Scope,
    /// When it began, nanoseconds since the experiment began.
    pub at_ns: u64,
    /// The command line, as one would type it.
    pub command: String,
    /// Its exit code; `None` when a signal ended it.
    #[serde(alias = "exit_code")]
    pub code: Option<i32>,
    /// How long it ran, nanoseconds.
    pub took_ns: u64,
    /// What it wrote to standard output.
    pub stdout: String,
    /// What it wrote to standard error.
    pub stderr: String,
}

/// Something that happened on the time line.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct EventRecord {
    /// What the event happened to.
    pub scope: Scope,
    /// When, nanoseconds since the experiment began.
    pub at_ns: u64,
    /// `job-start`, `job-end`, `fail`, `remove`, `insert`, `re-add`,
    /// `sync-start`, `sync-end`, `state`, `resumed`.
    pub kind: String,
    /// The member it happened to, from 0.
    pub member: Option<u32>,
    /// What happened, in words.
    pub text: String,
}

/// A quantity sampled again and again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// What was sampled.
    pub scope: Scope,
    /// `array.read_bytes_per_second`, `sync.percent`, `member.0.write_iops`.
    pub name: String,
    /// `bytes/s`, `percent`, `1/s`, `celsius`.
    pub unit: String,
    /// Times, nanoseconds since the experiment began, and values, in order.
    #[serde(default)]
    pub points: Vec<(u64, f64)>,
}

/// How bad a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something to know, which takes nothing from the figure.
    Note,
    /// The number may mislead.
    Warning,
    /// The number does not say what it seems to: it is struck out.
    Fatal,
}

/// What the audit found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The rule's identifier: `C12`.
    pub rule: String,
    /// In a few words: `setting not applied`.
    pub title: String,
    /// How much the numbers suffer from it.
    pub severity: Severity,
    /// The rows that it speaks of.
    pub scope: Scope,
    /// Which of the cells' operations; `None`: all.
    pub op: Option<Operation>,
    /// Which part of the cells' output; empty: all.
    pub part: String,
    /// The figures and texts that show it.
    pub evidence: String,
    /// What it does to the number.
    pub effect: String,
    /// What to do about it.
    pub remedy: String,
}

impl Finding {
    /// Whether a row is among those meant.
    #[must_use]
    pub fn covers(&self, row: &Measurement) -> bool {
        self.scope.covers(row)
            && self.op.is_none_or(|op| op == row.op)
            && (self.part.is_empty() || self.part == row.part)
    }
}

/// Everything written down at one time that is no measurement.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Records {
    /// Settings in force.
    pub settings: Vec<Setting>,
    /// Facts about the machine and the subject, each with its source.
    pub observations: Vec<Observation>,
    /// Commands that ran.
    pub commands: Vec<CommandRecord>,
    /// Members removed and added, syncs begun and ended.
    pub events: Vec<EventRecord>,
    /// What was sampled; points of a series that is there already are added to
    /// it.
    pub series: Vec<Series>,
}

/// A finished cell.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// The subject, parameter set and repetition that it belongs to.
    pub cell: Cell,
    /// Its rows; none for a job that only prepares.
    pub rows: Vec<Measurement>,
    /// What belongs to it.
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
