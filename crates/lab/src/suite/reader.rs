//! Reading a suite's file: what is written, checked and put together.

use super::checker::Checker;
use super::{Event, EventKind, FioText, Job, QueueRule, Step, Suite, Wait, Work};
use crate::catalogue::{self, LoadError};
use crate::document::{Document, Problem, Reserved};
use crate::fio::read_fio;
use crate::published::Published;
use crate::settings::{self, Time};
use crate::subject::Subject;
use serde::Deserialize;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSuite {
    schema: Spanned<u32>,
    name: String,
    title: String,
    description: String,
    source: String,
    disks: Spanned<Vec<String>>,
    subjects: Spanned<Vec<Spanned<String>>>,
    published: Option<Spanned<String>>,
    step: Spanned<Vec<Spanned<RawStep>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStep {
    job: Option<Spanned<String>>,
    event: Option<Spanned<EventKind>>,
    wait: Option<Spanned<Time>>,
    title: Option<Spanned<String>>,
    class: Option<Spanned<String>>,
    queue: Option<Spanned<QueueRule>>,
    fio: Option<Spanned<OneOrMany>>,
    fio_file: Option<Spanned<String>>,
    fio_job: Option<Spanned<String>>,
    note: Option<Spanned<String>>,
    member: Option<Spanned<u16>>,
}

#[derive(Deserialize)]
#[serde(
    untagged,
    expecting = "expected fio options as a string, or an array of such strings"
)]
enum OneOrMany {
    One(String),
    Many(Vec<String>),
}

/// Fields of a suite that later versions will read.
const RESERVED: [Reserved; 9] = [
    ("wait_sync_percent", "use `wait` with a time"),
    ("matrix", "write one step for each job"),
    ("repeat", "write one step for each repetition"),
    ("tool", "every job is fio's"),
    ("bonnie", "every job is fio's: use `fio`"),
    ("iozone", "every job is fio's: use `fio`"),
    ("dd", "every job is fio's: use `fio`"),
    ("filesystem", "jobs run on the raw array"),
    ("at", "an event is a step of its own, between two jobs"),
];

impl Suite {
    /// Reads and checks a suite's file; relative paths start from `folder`.
    ///
    /// # Errors
    /// With file, line, field and remedy.
    pub(super) fn read(document: &Document, folder: &Path) -> Result<Self, LoadError> {
        let raw: RawSuite = document.decode(&RESERVED)?;
        settings::check_schema(document, &raw.schema)?;
        let subjects = read_subjects(document, &raw.subjects, folder)?;
        let published = read_published(document, raw.published.as_ref(), folder)?;
        if raw.disks.get_ref().is_empty() {
            let remedy = "name one preset for each member";
            let error = document.invalid(raw.disks.span(), "no disks", remedy);
            return Err(error.into());
        }
        if raw.step.get_ref().is_empty() {
            let remedy = "add a [[step]] with a job";
            return Err(document.invalid(raw.step.span(), "no steps", remedy).into());
        }
        let disks = raw.disks.into_inner();
        let mut checker = Checker::new(document, disks.len(), published.as_ref());
        let mut steps = Vec::new();
        for step in raw.step.into_inner() {
            let span = step.span();
            let (step, named) = read_step(document, step.into_inner(), span, folder)?;
            checker.check(&step, named)?;
            steps.push(step);
        }
        Ok(Self {
            name: raw.name,
            title: raw.title,
            description: raw.description,
            source: raw.source,
            disks: disks
                .iter()
                .map(|disk| catalogue::resolve(disk, folder))
                .collect(),
            filesystems: vec![None],
            repetitions: 1,
            subjects,
            published,
            steps,
            remarks: Vec::new(),
        })
    }
}

/// Loads the subjects; each has a name of its own.
fn read_subjects(
    document: &Document,
    entries: &Spanned<Vec<Spanned<String>>>,
    folder: &Path,
) -> Result<Vec<Subject>, LoadError> {
    if entries.get_ref().is_empty() {
        let remedy = "name at least one subject";
        let error = document.invalid(entries.span(), "nothing is measured", remedy);
        return Err(error.into());
    }
    let mut subjects: Vec<Subject> = Vec::new();
    for entry in entries.get_ref() {
        let loaded = Subject::load(&catalogue::resolve(entry.get_ref(), folder));
        let subject = loaded.map_err(|error| named_at(document, entry.span(), error))?;
        if subjects.iter().any(|known| known.name == subject.name) {
            let what = format!("subject `{}` is named twice", subject.name);
            let error = document.invalid(entry.span(), what, "name each subject once");
            return Err(error.into());
        }
        subjects.push(subject);
    }
    Ok(subjects)
}

/// Loads the published figures.
fn read_published(
    document: &Document,
    entry: Option<&Spanned<String>>,
    folder: &Path,
) -> Result<Option<Published>, LoadError> {
    let Some(entry) = entry else {
        return Ok(None);
    };
    let loaded = Published::load(&catalogue::resolve(entry.get_ref(), folder));
    loaded
        .map(Some)
        .map_err(|error| named_at(document, entry.span(), error))
}

/// A name or path that leads nowhere is the suite's mistake, at its line.
fn named_at(document: &Document, span: Range<usize>, error: LoadError) -> LoadError {
    match error {
        LoadError::Unknown { what, name, known } => document
            .error(span, Problem::UnknownName { what, name, known })
            .into(),
        LoadError::Read { path, source } => {
            let what = format!("cannot read {}: {source}", path.display());
            let remedy = "paths start from the suite's folder";
            document.invalid(span, what, remedy).into()
        }
        file @ LoadError::File(_) | file @ LoadError::JobFile(_) => file,
    }
}

/// Turns a step as written into a step; also gives the place to blame.
fn read_step(
    document: &Document,
    raw: RawStep,
    span: Range<usize>,
    folder: &Path,
) -> Result<(Step, Range<usize>), LoadError> {
    let given = [
        raw.job.as_ref().map(Spanned::span),
        raw.event.as_ref().map(Spanned::span),
        raw.wait.as_ref().map(Spanned::span),
    ];
    let mut given = given.into_iter().flatten();
    let (Some(named), None) = (given.next(), given.next()) else {
        let what = "a step is exactly one of `job`, `event` and `wait`";
        let remedy = "split it, or say which it is";
        return Err(document.invalid(span, what, remedy).into());
    };
    let of_jobs = [
        raw.title.as_ref().map(Spanned::span),
        raw.class.as_ref().map(Spanned::span),
        raw.queue.as_ref().map(Spanned::span),
        raw.fio.as_ref().map(Spanned::span),
        raw.fio_file.as_ref().map(Spanned::span),
        raw.fio_job.as_ref().map(Spanned::span),
    ];
    let stray_job = of_jobs.into_iter().flatten().next();
    let stray_member = raw.member.as_ref().map(Spanned::span);
    let stray = |kind: &str| {
        let what = format!("{kind} has no such field");
        move |span| document.invalid(span, what.clone(), "move it to the step it belongs to")
    };
    let step = if let Some(event) = raw.event {
        if let Some(span) = stray_job {
            return Err(stray("an event")(span).into());
        }
        let Some(member) = raw.member else {
            let remedy = "members count from 0".to_owned();
            let field = "member".to_owned();
            return Err(document
                .error(named, Problem::Missing { field, remedy })
                .into());
        };
        let named = member.span();
        let event = Event {
            kind: event.into_inner(),
            member: member.into_inner(),
        };
        return Ok((Step::Event(event), named));
    } else if let Some(wait) = raw.wait {
        if let Some(span) = stray_job.or(stray_member) {
            return Err(stray("a wait")(span).into());
        }
        Step::Wait(Wait::Time(wait.into_inner().0))
    } else {
        if let Some(span) = stray_member {
            return Err(stray("a job")(span).into());
        }
        Step::Job(read_job(document, raw, named.clone(), folder)?)
    };
    Ok((step, named))
}

/// Turns a job as written into a job.
fn read_job(
    document: &Document,
    raw: RawStep,
    named: Range<usize>,
    folder: &Path,
) -> Result<Job, LoadError> {
    let missing = |field: &str, remedy: &str| {
        let (field, remedy) = (field.to_owned(), remedy.to_owned());
        document.error(named.clone(), Problem::Missing { field, remedy })
    };
    let name = raw.job.map(Spanned::into_inner).unwrap_or_default();
    let (text, span) = match (raw.fio, raw.fio_file, raw.fio_job) {
        (Some(options), None, None) => {
            let span = options.span();
            let text = match options.into_inner() {
                OneOrMany::One(options) => FioText::Options(vec![options]),
                OneOrMany::Many(options) => FioText::Options(options),
            };
            (text, span)
        }
        (None, Some(file), None) => {
            let path = folder.join(file.get_ref());
            let text = catalogue::read_text(&path)
                .map_err(|error| named_at(document, file.span(), error))?;
            let name = path.display().to_string();
            (FioText::JobFile { name, text }, file.span())
        }
        (None, None, Some(text)) => {
            let (span, text) = (text.span(), text.into_inner());
            let name = format!("job {name}");
            (FioText::JobFile { name, text }, span)
        }
        (None, None, None) => {
            let remedy = "write fio's options, or use `fio_file` or `fio_job`";
            return Err(missing("fio", remedy).into());
        }
        _ => {
            let what = "a job has one of `fio`, `fio_file` and `fio_job`";
            return Err(document.invalid(named, what, "keep one").into());
        }
    };
    let group = read_fio(document, span, &name, &text)?;
    Ok(Job {
        title: raw
            .title
            .map(Spanned::into_inner)
            .ok_or_else(|| missing("title", "say in words what the job does"))?,
        class: raw
            .class
            .map(Spanned::into_inner)
            .ok_or_else(|| missing("class", "say which jobs belong together: \"random-read\""))?,
        name,
        queue: raw.queue.map(Spanned::into_inner).unwrap_or_default(),
        work: Work::Fio {
            text,
            group: Ok(group),
        },
        prepares: false,
        events: Vec::new(),
        note: raw.note.map(Spanned::into_inner).unwrap_or_default(),
    })
}
