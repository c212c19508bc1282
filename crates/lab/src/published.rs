//! Published figures: what others measured in the same cells, their reliability, and the accuracy
//! that the model claims.

mod reader;

use crate::catalogue::{self, Kind, LoadError};
use crate::document::Document;
use crate::files::Files;
use raidlab_store::{Measurement, MemberUse, Operation, PublishedFigure, Role};
use serde::Deserialize;

/// Figures for the cells of a suite, and the classes of its jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The name, which is that of the file: `mirror-2015`.
    pub name: String,
    /// The title, for people.
    pub title: String,
    /// The source of the figures.
    pub source: String,
    /// The disks that the figures were measured on, one preset per member: figures for other disks
    /// say nothing of these. For an article's figures, the suite's disks.
    pub disks: Vec<String>,
    /// The classes of jobs, in the order of the report.
    pub classes: Vec<Class>,
    /// The figures, one entry for each subject, job and operation.
    pub cells: Vec<Cell>,
}

/// A class of similar jobs, with the model's claims for them.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// The class's name in suites and rows: `random-read`.
    pub id: String,
    /// The title of the class, for people.
    pub title: String,
    /// The names of the jobs that belong to the class.
    pub jobs: Vec<String>,
    /// The facts and cells that the model was fitted on for these jobs.
    pub fitted_on: String,
    /// The accuracies that the model claims, per subject.
    pub accuracy: Vec<Accuracy>,
}

/// A bound on the model's error in some cells of a class, as claimed.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// The subjects that it is for; empty for all others.
    #[serde(default)]
    pub subjects: Vec<String>,
    /// The jobs that it is for; empty for all of the class.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// The bound on the error of a single cell, percent.
    pub percent: f64,
    /// A note for the reader; may be empty.
    #[serde(default)]
    pub note: String,
}

/// The figures of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The subject's name.
    pub subject: String,
    /// The file system of the measurement; empty for that of the row, whatever it is.
    pub filesystem: String,
    /// The job's name.
    pub job: String,
    /// The operation: reads or writes.
    pub op: Operation,
    /// The part of the tool's output; empty for any part.
    pub part: String,
    /// The counts in the raw log, which are exact.
    pub log: Option<Log>,
    /// The figure as printed, truncated to whole operations per second.
    pub article_iops: Option<f64>,
    /// The reliability of the printed figure: `rounded`, `disputed`.
    pub article_reliability: String,
    /// The figures of an article's own file, in rates; they come first in comparisons.
    pub printed: Vec<PublishedFigure>,
    /// The progress of the sync at the job's start, percent, in the log and as printed.
    pub sync_percent: Synced,
    /// The use of each member, where the log has it.
    pub members: Vec<MemberUse>,
    /// The fits that used this very cell.
    pub fitted: Vec<String>,
    /// A note for the reader; may be empty.
    pub note: String,
}

/// The counts of a raw log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// The number of I/Os issued, by the log.
    pub ios: u64,
    /// fio's `runt`, milliseconds.
    pub runtime_ms: u64,
}

/// The progress of a sync at a job's start, percent.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Synced {
    /// The figure in the raw log.
    pub log: Option<f64>,
    /// The figure in the article.
    pub article: Option<f64>,
}

impl Published {
    /// Loads built-in figures by name, or a file by path.
    ///
    /// # Errors
    /// When there are no such figures or their file is wrong.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        Self::load_from(&Files::default(), name_or_path)
    }

    /// Loads figures from these files.
    ///
    /// # Errors
    /// As [`Published::load`].
    pub fn load_from(files: &Files, name_or_path: &str) -> Result<Self, LoadError> {
        Self::of(&catalogue::find(files, Kind::Published, name_or_path)?)
    }

    /// Reads the figures of a file in either of the two forms.
    ///
    /// # Errors
    /// When the file is wrong.
    pub(crate) fn of(document: &Document) -> Result<Self, LoadError> {
        match raidlab_import::is_figures(&document.text) {
            true => Self::of_article(document),
            false => Ok(Self::read(document)?),
        }
    }

    /// Reads the figures of an article (`kind = "figures"`), which classify no jobs, claim no
    /// accuracy, and are for the disks of whatever suite names them.
    fn of_article(document: &Document) -> Result<Self, LoadError> {
        let figures = raidlab_import::read_figures(&document.file, &document.text)?;
        let cells = figures.printed.into_iter().map(|printed| Cell {
            subject: printed.row.subject,
            filesystem: printed.row.filesystem,
            job: printed.row.job,
            op: printed.row.op,
            part: printed.row.part,
            log: None,
            article_iops: None,
            article_reliability: String::new(),
            printed: printed.row.published,
            sync_percent: Synced::default(),
            members: Vec::new(),
            fitted: printed.fitted,
            note: String::new(),
        });
        Ok(Self {
            name: figures.name,
            title: figures.title,
            source: figures.source,
            disks: Vec::new(),
            classes: Vec::new(),
            cells: cells.collect(),
        })
    }

    /// The class of a job.
    #[must_use]
    pub fn class_of(&self, job: &str) -> Option<&Class> {
        self.classes
            .iter()
            .find(|class| class.jobs.iter().any(|own| own == job))
    }

    /// Attaches the figures of a measurement's cell to it, the raw log first, and marks it
    /// as fitted where the cell was used for its fit. Does nothing to a measurement of
    /// another suite's cell.
    pub fn attach(&self, measurement: &mut Measurement) {
        let row = &*measurement;
        let is_same = |cell: &&Cell| {
            (&cell.subject, &cell.job, cell.op) == (&row.subject, &row.job, row.op)
                && (cell.part.is_empty() || cell.part == row.part)
                && cell.is_on(&row.filesystem)
        };
        let Some(cell) = self.cells.iter().find(is_same) else {
            return;
        };
        measurement
            .published
            .extend(cell.figures(measurement.block_size_bytes));
        if measurement.role == Role::Predicted && cell.fitted.contains(&measurement.fit) {
            measurement.role = Role::Fitted;
        }
    }
}

impl Cell {
    /// Whether the cell is for rows on this file system: rows of an array that is itself a file
    /// system have none.
    fn is_on(&self, filesystem: &str) -> bool {
        let own = self.filesystem.as_str();
        let of_array = filesystem.is_empty() && matches!(own, "zfs" | "btrfs");
        own.is_empty() || own == filesystem || of_array
    }

    /// The figures in the form of a measurement, the raw log first.
    fn figures(&self, block_size_bytes: u64) -> Vec<PublishedFigure> {
        let figure = |source: &str, iops: f64, reliability: &str, sync_percent| PublishedFigure {
            source: source.to_owned(),
            iops,
            bytes_per_second: Some(iops * block_size_bytes as f64),
            reliability: reliability.to_owned(),
            sync_percent,
            note: self.note.clone(),
        };
        let log = self
            .log
            .map(|log| figure("log", log.iops(), "exact", self.sync_percent.log));
        let article = self.article_iops.map(|iops| {
            figure(
                "article",
                iops,
                &self.article_reliability,
                self.sync_percent.article,
            )
        });
        let printed = self.printed.iter().cloned();
        log.into_iter().chain(article).chain(printed).collect()
    }
}

impl Log {
    /// The operations per second over the whole run, computed as in fio.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.ios as f64 * 1000.0 / self.runtime_ms as f64
    }
}

#[cfg(test)]
mod tests;
