//! Published figures: what others measured in the same cells, how far each
//! figure can be trusted, and how accurate the model claims to be.

use crate::catalogue::{self, Kind, LoadError};
use crate::document::{Document, FileError, Problem};
use crate::files::Files;
use crate::settings;
use raidlab_store::{Measurement, MemberUse, Operation, PublishedFigure, Role};
use serde::Deserialize;
use toml::Spanned;

/// Figures for the cells of a suite, and the classes of its jobs.
#[derive(Debug, Clone, PartialEq)]
pub struct Published {
    /// The name, which is the file's: `mirror-2015`.
    pub name: String,
    /// What it is, for people.
    pub title: String,
    /// Where the figures are from.
    pub source: String,
    /// What they were measured on, one preset per member: figures for other
    /// disks say nothing of these. Of an article's figures: the suite's.
    pub disks: Vec<String>,
    /// The classes of jobs, in the order of the report.
    pub classes: Vec<Class>,
    /// One per subject, job and operation.
    pub cells: Vec<Cell>,
}

/// Jobs that are alike, with what the model claims for them.
#[derive(Debug, Clone, PartialEq)]
pub struct Class {
    /// The class's name in suites and rows: `random-read`.
    pub id: String,
    /// What it is, for people.
    pub title: String,
    /// The jobs' names.
    pub jobs: Vec<String>,
    /// Which facts and cells were used to fit the model for them.
    pub fitted_on: String,
    /// Whether more is better or less.
    pub better: Better,
    /// What the model claims, per subject.
    pub accuracy: Vec<Accuracy>,
}

/// Which way a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    /// More is better, as of iops.
    More,
    /// Less is better, as of a latency.
    Less,
}

/// A declared accuracy.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Accuracy {
    /// For these subjects; empty means every other one.
    #[serde(default)]
    pub subjects: Vec<String>,
    /// For these jobs; empty means every job of the class.
    #[serde(default)]
    pub jobs: Vec<String>,
    /// The error of a single cell stays below so many percent.
    pub percent: f64,
    /// What the reader must know; may be empty.
    #[serde(default)]
    pub note: String,
}

/// The figures of one cell.
#[derive(Debug, Clone, PartialEq)]
pub struct Cell {
    /// The subject's name.
    pub subject: String,
    /// The job's name.
    pub job: String,
    /// Reads or writes.
    pub op: Operation,
    /// The part of the tool's output; empty: of whatever part.
    pub part: String,
    /// From the raw log: counts, exact.
    pub log: Option<Log>,
    /// As printed, truncated to whole operations per second.
    pub article_iops: Option<f64>,
    /// How far the printed figure can be trusted: `rounded`, `disputed`.
    pub article_reliability: String,
    /// As an article's own file has them, in rates; the one to compare with first.
    pub printed: Vec<PublishedFigure>,
    /// Sync percent at the job's start, in the log and as printed.
    pub sync_percent: Synced,
    /// What each member did, where the log says it.
    pub members: Vec<MemberUse>,
    /// The fits that used this very cell.
    pub fitted: Vec<String>,
    /// What the reader must know; may be empty.
    pub note: String,
}

/// Counts out of a raw log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    /// How many I/Os the log says were issued.
    pub ios: u64,
    /// fio's `runt`, milliseconds.
    pub runtime_ms: u64,
}

/// Sync percent at a job's start.
#[derive(Debug, Clone, Copy, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Synced {
    /// The figure as the raw log has it.
    pub log: Option<f64>,
    /// The figure as the article prints it.
    pub article: Option<f64>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawPublished {
    schema: Spanned<u32>,
    name: String,
    title: String,
    source: String,
    disks: Vec<String>,
    class: Vec<RawClass>,
    figures: Vec<RawFigures>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawClass {
    id: Spanned<String>,
    title: String,
    jobs: Vec<Spanned<String>>,
    fitted_on: String,
    better: Better,
    accuracy: Spanned<Vec<Accuracy>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFigures {
    subject: String,
    cell: Vec<Spanned<RawCell>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCell {
    job: Spanned<String>,
    op: Operation,
    log: Option<Spanned<Log>>,
    article: Option<f64>,
    reliability: Option<Spanned<String>>,
    #[serde(default)]
    sync_percent: Synced,
    #[serde(default)]
    members: Vec<RawMember>,
    #[serde(default)]
    fitted: Vec<String>,
    #[serde(default)]
    note: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawMember {
    reads: u64,
    writes: u64,
    read_ticks_ms: u64,
    write_ticks_ms: u64,
}

impl Published {
    /// Built-in figures by name, or a file by path.
    ///
    /// # Errors
    /// When there are no such figures or their file is wrong.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        Self::load_from(&Files::default(), name_or_path)
    }

    /// The same, of these files.
    ///
    /// # Errors
    /// As [`Published::load`].
    pub fn load_from(files: &Files, name_or_path: &str) -> Result<Self, LoadError> {
        Self::of(&catalogue::find(files, Kind::Published, name_or_path)?)
    }

    /// The figures that a file has, whichever of the two forms it has.
    ///
    /// # Errors
    /// When the file is wrong.
    pub(crate) fn of(document: &Document) -> Result<Self, LoadError> {
        match raidlab_import::is_figures(&document.text) {
            true => Self::of_article(document),
            false => Ok(Self::read(document)?),
        }
    }

    /// The figures of an article (`kind = "figures"`), which classify no jobs, claim no
    /// accuracy, and are of the disks of whatever suite names them.
    fn of_article(document: &Document) -> Result<Self, LoadError> {
        let figures = raidlab_import::read_figures(&document.file, &document.text)?;
        let cells = figures.printed.into_iter().map(|printed| Cell {
            subject: printed.row.subject,
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

    /// The figures of a cell.
    #[must_use]
    pub fn cell(&self, subject: &str, job: &str, op: Operation) -> Option<&Cell> {
        self.cells
            .iter()
            .find(|cell| cell.subject == subject && cell.job == job && cell.op == op)
    }

    /// The class of a job.
    #[must_use]
    pub fn class_of(&self, job: &str) -> Option<&Class> {
        self.classes
            .iter()
            .find(|class| class.jobs.iter().any(|own| own == job))
    }

    /// What the model claims for a cell: the first accuracy of the job's
    /// class that names the subject and the job, or names neither.
    #[must_use]
    pub fn accuracy(&self, subject: &str, job: &str) -> Option<&Accuracy> {
        let names =
            |list: &[String], name: &str| list.is_empty() || list.iter().any(|own| own == name);
        self.class_of(job)?
            .accuracy
            .iter()
            .find(|accuracy| names(&accuracy.subjects, subject) && names(&accuracy.jobs, job))
    }

    /// Puts the figures of a measurement's cell beside it, the raw log first,
    /// and marks it as fitted where the cell was used for its fit. Does
    /// nothing to a measurement of another suite's cell.
    pub fn attach(&self, measurement: &mut Measurement) {
        let row = &*measurement;
        let is_same = |cell: &&Cell| {
            (&cell.subject, &cell.job, cell.op) == (&row.subject, &row.job, row.op)
                && (cell.part.is_empty() || cell.part == row.part)
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

    /// Reads and checks a file of figures.
    ///
    /// # Errors
    /// With file, line, field and remedy.
    fn read(document: &Document) -> Result<Self, FileError> {
        let raw: RawPublished = document.decode(&[])?;
        settings::check_schema(document, &raw.schema)?;
        let classes = read_classes(document, raw.class)?;
        let mut cells: Vec<Cell> = Vec::new();
        for figures in raw.figures {
            for cell in figures.cell {
                let (span, job) = (cell.span(), cell.get_ref().job.span());
                let cell = read_cell(document, &figures.subject, cell)?;
                if !classes.iter().any(|class| class.jobs.contains(&cell.job)) {
                    let problem = Problem::UnknownName {
                        what: "job",
                        name: cell.job,
                        known: classes.into_iter().flat_map(|class| class.jobs).collect(),
                    };
                    return Err(document.error(job, problem));
                }
                let twice = |other: &Cell| {
                    (&other.subject, &other.job, other.op) == (&cell.subject, &cell.job, cell.op)
                };
                if cells.iter().any(twice) {
                    let what = format!(
                        "the cell of {} and job {} is given twice",
                        cell.subject, cell.job
                    );
                    return Err(document.invalid(span, what, "keep one"));
                }
                cells.push(cell);
            }
        }
        Ok(Self {
            name: raw.name,
            title: raw.title,
            source: raw.source,
            disks: raw.disks,
            classes,
            cells,
        })
    }
}

impl Cell {
    /// The figures as a measurement carries them, the raw log first.
    #[expect(clippy::cast_precision_loss, reason = "rates are statistics")]
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
    /// Operations per second over the whole run, as fio divides.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate is a statistic")]
    pub fn iops(&self) -> f64 {
        self.ios as f64 * 1000.0 / self.runtime_ms as f64
    }
}

/// Checks the classes: ids unique, each job in one class, accuracies sane.
fn read_classes(document: &Document, raw: Vec<RawClass>) -> Result<Vec<Class>, FileError> {
    let mut classes: Vec<Class> = Vec::new();
    for class in raw {
        let id = class.id.get_ref();
        if classes.iter().any(|known| known.id == *id) {
            let what = format!("class `{id}` is described twice");
            return Err(document.invalid(class.id.span(), what, "give each class its own id"));
        }
        for job in &class.jobs {
            let owner = classes
                .iter()
                .find(|known| known.jobs.contains(job.get_ref()));
            if let Some(owner) = owner {
                let what = format!("job `{}` is also in class `{}`", job.get_ref(), owner.id);
                return Err(document.invalid(job.span(), what, "a job has one class"));
            }
        }
        let sane = |accuracy: &Accuracy| accuracy.percent > 0.0 && accuracy.percent.is_finite();
        if class.accuracy.get_ref().is_empty() || !class.accuracy.get_ref().iter().all(sane) {
            let what = "no number without its confidence";
            let remedy = "give each accuracy as a percentage above 0";
            return Err(document.invalid(class.accuracy.span(), what, remedy));
        }
        classes.push(Class {
            id: class.id.into_inner(),
            title: class.title,
            jobs: class.jobs.into_iter().map(Spanned::into_inner).collect(),
            fitted_on: class.fitted_on,
            better: class.better,
            accuracy: class.accuracy.into_inner(),
        });
    }
    Ok(classes)
}

/// How far a printed figure can be trusted.
const RELIABILITIES: [&str; 2] = ["rounded", "disputed"];

/// Checks a cell and names its members.
fn read_cell(document: &Document, subject: &str, raw: Spanned<RawCell>) -> Result<Cell, FileError> {
    let span = raw.span();
    let raw = raw.into_inner();
    if raw.log.is_none() && raw.article.is_none() {
        let remedy = "give `log`, `article` or both";
        return Err(document.invalid(span, "a cell without a figure", remedy));
    }
    if let Some(log) = raw.log.as_ref().filter(|log| log.get_ref().runtime_ms == 0) {
        let what = "a run without a runtime has no rate";
        return Err(document.invalid(log.span(), what, "runtime_ms must be at least 1"));
    }
    if let Some(given) = &raw.reliability
        && !RELIABILITIES.contains(&given.get_ref().as_str())
    {
        let problem = Problem::UnknownName {
            what: "reliability",
            name: given.get_ref().clone(),
            known: RELIABILITIES.map(str::to_owned).to_vec(),
        };
        return Err(document.error(given.span(), problem));
    }
    let members = raw
        .members
        .into_iter()
        .enumerate()
        .map(|(slot, member)| MemberUse {
            member: slot.to_string(),
            read_ios: member.reads,
            write_ios: member.writes,
            read_ticks_ns: member.read_ticks_ms * 1_000_000,
            write_ticks_ns: member.write_ticks_ms * 1_000_000,
            ..MemberUse::default()
        });
    Ok(Cell {
        subject: subject.to_owned(),
        job: raw.job.into_inner(),
        op: raw.op,
        part: String::new(),
        log: raw.log.map(Spanned::into_inner),
        article_iops: raw.article,
        article_reliability: raw
            .reliability
            .map_or_else(|| "rounded".to_owned(), Spanned::into_inner),
        printed: Vec::new(),
        sync_percent: raw.sync_percent,
        members: members.collect(),
        fitted: raw.fitted,
        note: raw.note,
    })
}

#[cfg(test)]
mod tests;
