//! Suites: an ordered list of jobs, events and waits on a set of disks.

use crate::catalogue::{self, Kind, LoadError};
use crate::document::{Document, FileError, Problem, Reserved};
use crate::fio::read_fio;
use crate::settings::{self, Time};
use crate::subject::Subject;
use raidlab_units::Nanos;
use raidlab_workload::JobGroup;
use serde::Deserialize;
use std::ops::Range;
use std::path::{Path, PathBuf};
use toml::Spanned;

/// An experiment's recipe, before a subject is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// `mirror-2015`.
    pub name: String,
    /// For people, in headings.
    pub title: String,
    /// A few sentences.
    pub description: String,
    /// Where the suite is from.
    pub source: String,
    /// One disk preset per member, by name or path.
    pub disks: Vec<String>,
    /// The subjects compared, by name or path, in the order of the tables.
    pub subjects: Vec<String>,
    /// Figures for the same cells from elsewhere, by name or path.
    pub published: Option<String>,
    /// What is done, in this order.
    pub steps: Vec<Step>,
    /// The folder that relative paths in the suite start from.
    pub base: PathBuf,
}

/// One thing that is done.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// fio runs.
    Job(Job),
    /// Something happens to a member.
    Event(Event),
    /// Time passes; a rebuild goes on.
    Wait(Nanos),
}

/// A run of fio: one job, or several together.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Short and unique in the suite: `9`.
    pub name: String,
    /// In words: `random read 4 KiB, queue depth 4`.
    pub title: String,
    /// For accuracy statements and graphs: `random-read`.
    pub class: String,
    /// How a queue depth above one is reached.
    pub queue: QueueRule,
    /// What fio is told.
    pub fio: FioText,
    /// The same, read: what runs together, before the host's way of queueing
    /// is applied.
    pub group: JobGroup,
    /// What the reader must know; may be empty.
    pub note: String,
}

/// How a job reaches a queue depth above one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueRule {
    /// As the subject's host does it.
    #[default]
    Host,
    /// By threads with one synchronous request each, on every host.
    Threads,
    /// Exactly as fio's options say.
    Fio,
}

/// What fio is told, in its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FioText {
    /// Command lines, one for each job that runs at the same time.
    Options(Vec<String>),
    /// A job file.
    JobFile {
        /// Its name in messages.
        name: String,
        /// Its text.
        text: String,
    },
}

/// Something that happens to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What happens.
    pub kind: EventKind,
    /// To which member, from 0.
    pub member: u16,
}

/// What can happen to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EventKind {
    /// It is taken out of the array (declared failed first, where the
    /// subject insists on that).
    Remove,
    /// It stops to take part but stays in its place.
    Fail,
    /// It is put back as if new, and rebuilt.
    Insert,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSuite {
    schema: Spanned<u32>,
    name: Spanned<String>,
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
    /// A built-in suite by name, or a file by path: anything with a `/` or
    /// ending in `.toml` is a path. Everything that can be checked without
    /// running is checked, the subjects and figures it names included.
    ///
    /// # Errors
    /// When there is no such suite or its file is wrong.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        let document = catalogue::find(Kind::Suite, name_or_path, Path::new(""))?;
        let base = if catalogue::is_path(name_or_path) {
            Path::new(name_or_path).parent().unwrap_or(Path::new(""))
        } else {
            Path::new("")
        };
        Self::read(&document, base)
    }

    /// Reads and checks a suite's file; relative paths start from `base`.
    ///
    /// # Errors
    /// With file, line, field and remedy.
    pub(crate) fn read(document: &Document, base: &Path) -> Result<Self, LoadError> {
        let raw: RawSuite = document.decode(&RESERVED)?;
        settings::check_schema(document, &raw.schema)?;
        check_subjects(document, &raw, base)?;
        if raw.disks.get_ref().is_empty() {
            let remedy = "name one preset for each member";
            return Err(document
                .invalid(raw.disks.span(), "no disks", remedy)
                .into());
        }
        if raw.step.get_ref().is_empty() {
            let remedy = "add a [[step]] with a job";
            return Err(document.invalid(raw.step.span(), "no steps", remedy).into());
        }
        let mut checker = Checker::new(document, raw.disks.get_ref().len());
        let mut steps = Vec::new();
        for step in raw.step.into_inner() {
            let span = step.span();
            let (step, named) = read_step(document, step.into_inner(), span, base)?;
            checker.check(&step, named)?;
            steps.push(step);
        }
        let suite = Self {
            name: raw.name.into_inner(),
            title: raw.title,
            description: raw.description,
            source: raw.source,
            disks: raw.disks.into_inner(),
            subjects: raw
                .subjects
                .into_inner()
                .into_iter()
                .map(Spanned::into_inner)
                .collect(),
            published: raw.published.map(Spanned::into_inner),
            steps,
            base: base.to_owned(),
        };
        Ok(suite)
    }

    /// The jobs in order; their position is a measurement's `sequence`.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.steps.iter().filter_map(|step| match step {
            Step::Job(job) => Some(job),
            Step::Event(_) | Step::Wait(_) => None,
        })
    }

    /// A subject named on the command line or by the suite itself; relative
    /// paths of the suite's own subjects start from the suite's folder.
    ///
    /// # Errors
    /// When there is no such subject or its file is wrong.
    pub fn subject(&self, name_or_path: &str) -> Result<Subject, LoadError> {
        if self.subjects.iter().any(|own| own == name_or_path) {
            Subject::load_from(name_or_path, &self.base)
        } else {
            Subject::load(name_or_path)
        }
    }
}

/// Every subject exists, is valid, and has a name of its own.
fn check_subjects(document: &Document, raw: &RawSuite, base: &Path) -> Result<(), LoadError> {
    if raw.subjects.get_ref().is_empty() {
        let remedy = "name at least one subject";
        let error = document.invalid(raw.subjects.span(), "nothing is measured", remedy);
        return Err(error.into());
    }
    let mut names: Vec<String> = Vec::new();
    for entry in raw.subjects.get_ref() {
        let subject = match Subject::load_from(entry.get_ref(), base) {
            Err(LoadError::Unknown { what, name, known }) => {
                let problem = Problem::UnknownName { what, name, known };
                return Err(document.error(entry.span(), problem).into());
            }
            other => other?,
        };
        if names.contains(&subject.name) {
            let what = format!("subject `{}` is named twice", subject.name);
            let error = document.invalid(entry.span(), what, "name each subject once");
            return Err(error.into());
        }
        names.push(subject.name);
    }
    Ok(())
}

/// Turns a step as written into a step; also gives the place to blame.
fn read_step(
    document: &Document,
    raw: RawStep,
    span: Range<usize>,
    base: &Path,
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
            let field = "member";
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
        Step::Wait(wait.into_inner().0)
    } else {
        if let Some(span) = stray_member {
            return Err(stray("a job")(span).into());
        }
        Step::Job(read_job(document, raw, named.clone(), base)?)
    };
    Ok((step, named))
}

/// Turns a job as written into a job.
fn read_job(
    document: &Document,
    raw: RawStep,
    named: Range<usize>,
    base: &Path,
) -> Result<Job, LoadError> {
    let missing = |field, remedy: &str| {
        let remedy = remedy.to_owned();
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
            let path = base.join(file.get_ref());
            let name = path.display().to_string();
            let text = std::fs::read_to_string(&path).map_err(|error| {
                let what = format!("the job file `{name}` cannot be read: {error}");
                let remedy = "paths start from the suite's folder";
                document.invalid(file.span(), what, remedy)
            })?;
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
        fio: text,
        group,
        note: raw.note.map(Spanned::into_inner).unwrap_or_default(),
    })
}

/// Where a member is while the steps are gone through.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Present,
    Failed,
    Removed,
}

/// Goes through the steps as an array would and refuses what cannot happen.
struct Checker<'a> {
    document: &'a Document,
    members: Vec<Place>,
    jobs: Vec<(String, usize)>,
}

impl<'a> Checker<'a> {
    fn new(document: &'a Document, members: usize) -> Self {
        Self {
            document,
            members: vec![Place::Present; members],
            jobs: Vec::new(),
        }
    }

    fn check(&mut self, step: &Step, span: Range<usize>) -> Result<(), FileError> {
        match step {
            Step::Wait(_) => Ok(()),
            Step::Job(job) => self.check_job(job, span),
            Step::Event(event) => self.check_event(*event, span),
        }
    }

    fn check_job(&mut self, job: &Job, span: Range<usize>) -> Result<(), FileError> {
        if let Some((_, line)) = self.jobs.iter().find(|(name, _)| *name == job.name) {
            let what = format!("job `{}` is also on line {line}", job.name);
            return Err(self
                .document
                .invalid(span, what, "give each job its own name"));
        }
        let line = self.document.line(span.start);
        self.jobs.push((job.name.clone(), line));
        Ok(())
    }

    fn check_event(&mut self, event: Event, span: Range<usize>) -> Result<(), FileError> {
        let count = self.members.len();
        let index = usize::from(event.member);
        let Some(&place) = self.members.get(index) else {
            let what = format!("there is no member {}", event.member);
            let remedy = format!("`disks` names {count} disks: members 0 to {}", count - 1);
            return Err(self.document.invalid(span, what, remedy));
        };
        let next = match (event.kind, place) {
            (EventKind::Fail, Place::Present) => Place::Failed,
            (EventKind::Remove, Place::Present | Place::Failed) => Place::Removed,
            (EventKind::Insert, Place::Removed) => Place::Present,
            (EventKind::Insert, _) => {
                let what = format!("member {} is still in the array", event.member);
                let remedy = "remove it in an earlier step";
                return Err(self.document.invalid(span, what, remedy));
            }
            (EventKind::Fail | EventKind::Remove, _) => {
                let what = format!("member {} is no longer in the array", event.member);
                let remedy = "insert it in an earlier step";
                return Err(self.document.invalid(span, what, remedy));
            }
        };
        self.members[index] = next;
        if !self.members.contains(&Place::Present) {
            let what = "this leaves the array without a member";
            let remedy = "insert another one before";
            return Err(self.document.invalid(span, what, remedy));
        }
        Ok(())
    }
}
