//! Reading a file of figures: what is written, checked and put together.

use super::{Accuracy, Cell, Class, Log, Published, Synced};
use crate::document::{Document, FileError};
use crate::settings;
use raidlab_store::{MemberUse, Operation};
use serde::Deserialize;
use toml::Spanned;

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
    better: Spanned<Better>,
    accuracy: Spanned<Vec<Spanned<Accuracy>>>,
}

/// The direction in which a figure is better. All figures are rates.
#[derive(Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Better {
    More,
    Less,
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
    article: Option<Spanned<f64>>,
    reliability: Option<Spanned<String>>,
    sync_percent: Option<Spanned<Synced>>,
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
    /// Reads and checks a file of figures.
    ///
    /// # Errors
    /// With file, line, field and remedy.
    pub(super) fn read(document: &Document) -> Result<Self, FileError> {
        let raw: RawPublished = document.decode(&[])?;
        settings::check_schema(document, &raw.schema)?;
        let classes = read_classes(document, raw.class)?;
        let mut cells: Vec<Cell> = Vec::new();
        for figures in raw.figures {
            for cell in figures.cell {
                let (span, job) = (cell.span(), cell.get_ref().job.span());
                let cell = read_cell(document, &figures.subject, cell)?;
                if !classes.iter().any(|class| class.jobs.contains(&cell.job)) {
                    let known = classes.into_iter().flat_map(|class| class.jobs);
                    return Err(document.unknown(job, "job", &cell.job, known));
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

/// Checks the classes: ids unique, each job in one class, accuracies sane.
fn read_classes(document: &Document, raw: Vec<RawClass>) -> Result<Vec<Class>, FileError> {
    let mut classes: Vec<Class> = Vec::new();
    for class in raw {
        let id = class.id.get_ref();
        if classes.iter().any(|known| known.id == *id) {
            let what = format!("class `{id}` is described twice");
            return Err(document.invalid(class.id.span(), what, "give each class its own id"));
        }
        if *class.better.get_ref() == Better::Less {
            let what = "figures are operations per second, of which more is better";
            return Err(document.invalid(class.better.span(), what, "write \"more\""));
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
        let jobs: Vec<String> = class.jobs.into_iter().map(Spanned::into_inner).collect();
        check_accuracy(document, &class.accuracy, &jobs)?;
        let accuracy = class.accuracy.into_inner().into_iter();
        classes.push(Class {
            id: class.id.into_inner(),
            title: class.title,
            jobs,
            fitted_on: class.fitted_on,
            accuracy: accuracy.map(Spanned::into_inner).collect(),
        });
    }
    Ok(classes)
}

/// Checks the claimed accuracies of a class with these jobs.
fn check_accuracy(
    document: &Document,
    all: &Spanned<Vec<Spanned<Accuracy>>>,
    jobs: &[String],
) -> Result<(), FileError> {
    let sane = |accuracy: &Accuracy| accuracy.percent > 0.0 && accuracy.percent.is_finite();
    let mut each = all.get_ref().iter();
    if all.get_ref().is_empty() || !each.all(|one| sane(one.get_ref())) {
        let what = "no number without its confidence";
        let remedy = "give each accuracy as a percentage above 0";
        return Err(document.invalid(all.span(), what, remedy));
    }
    for accuracy in all.get_ref() {
        let mut named = accuracy.get_ref().jobs.iter();
        if let Some(name) = named.find(|name| !jobs.contains(name)) {
            let what = "the class's job";
            return Err(document.unknown(accuracy.span(), what, name, jobs));
        }
    }
    Ok(())
}

/// The reliabilities of a printed figure.
const RELIABILITIES: [&str; 2] = ["rounded", "disputed"];

/// Checks that a cell's figures can be compared with others, and that what is said about them
/// has a figure.
fn check_figures(document: &Document, raw: &RawCell) -> Result<(), FileError> {
    let (log, article) = (raw.log.as_ref(), raw.article.as_ref());
    let nothing = "nothing can be compared with a rate of 0 or less";
    if let Some(article) = article.filter(|article| *article.get_ref() <= 0.0) {
        return Err(document.invalid(article.span(), nothing, "leave the cell out"));
    }
    if let Some(log) = log.filter(|log| log.get_ref().ios == 0) {
        return Err(document.invalid(log.span(), nothing, "leave the cell out"));
    }
    if let (Some(reliability), None) = (&raw.reliability, article) {
        let what = "there is no printed figure to be trusted or not";
        return Err(document.invalid(reliability.span(), what, "give `article`, or leave it out"));
    }
    let Some(synced) = &raw.sync_percent else {
        return Ok(());
    };
    let both = synced.get_ref();
    for (percent, is_there) in [(both.log, log.is_some()), (both.article, article.is_some())] {
        let is_sane = percent.is_none_or(|percent| (0.0..=100.0).contains(&percent));
        if !is_sane || (percent.is_some() && !is_there) {
            let what = "this is no progress of a sync when the figure was measured";
            let remedy = "give 0 to 100, each beside its figure: `log`, `article`";
            return Err(document.invalid(synced.span(), what, remedy));
        }
    }
    Ok(())
}

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
    check_figures(document, &raw)?;
    if let Some(given) = &raw.reliability
        && !RELIABILITIES.contains(&given.get_ref().as_str())
    {
        let what = "reliability";
        return Err(document.unknown(given.span(), what, given.get_ref(), RELIABILITIES));
    }
    let members = raw.members.into_iter().enumerate().map(|(slot, member)| {
        let nanoseconds = |ticks_ms: u64| ticks_ms.saturating_mul(1_000_000);
        MemberUse {
            member: slot.to_string(),
            read_ios: member.reads,
            write_ios: member.writes,
            read_ticks_ns: nanoseconds(member.read_ticks_ms),
            write_ticks_ns: nanoseconds(member.write_ticks_ms),
            ..MemberUse::default()
        }
    });
    Ok(Cell {
        subject: subject.to_owned(),
        filesystem: String::new(),
        job: raw.job.into_inner(),
        op: raw.op,
        part: String::new(),
        log: raw.log.map(Spanned::into_inner),
        article_iops: raw.article.map(Spanned::into_inner),
        article_reliability: raw
            .reliability
            .map_or_else(|| "rounded".to_owned(), Spanned::into_inner),
        printed: Vec::new(),
        sync_percent: raw
            .sync_percent
            .map_or_else(Synced::default, Spanned::into_inner),
        members: members.collect(),
        fitted: raw.fitted,
        note: raw.note,
    })
}
