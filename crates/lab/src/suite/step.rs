//! Reading one `[[step]]` of a suite: an event, a wait, or a job, which a
//! matrix multiplies.

use super::freshness::Footprint;
use super::matrix::{Combination, RawMatrix, Value, combinations};
use super::tool::{RawTool, read_tool};
use super::wait::{RawWait, read_percent, read_wait};
use super::{Event, EventKind, Job, QueueRule, TimedEvent, Wait, When, Work};
use crate::catalogue::{self, Kind, LoadError};
use crate::document::{Document, FileError, check_name};
use crate::files::Files;
use crate::fio::{FioText, read_fio};
use crate::job_words::{class_of_job, describe};
use crate::settings::Time;
use raidlab_units::Nanos;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::ops::Range;
use std::path::Path;
use toml::Spanned;

/// The subjects that a step is for, as written: for each key the values that it takes.
pub(super) type RawFor = BTreeMap<Spanned<String>, Spanned<OneOrSeveral>>;

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a value, or a list of values")]
pub(super) enum OneOrSeveral {
    One(Value),
    Several(Vec<Value>),
}

impl OneOrSeveral {
    pub(super) fn values(&self) -> &[Value] {
        match self {
            Self::One(value) => std::slice::from_ref(value),
            Self::Several(values) => values,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawStep {
    pub(super) job: Option<Spanned<String>>,
    event: Option<Spanned<RawEvent>>,
    wait: Option<Spanned<RawWait>>,
    wait_sync_percent: Option<Spanned<f64>>,
    at_most: Option<Spanned<Time>>,
    pub(super) round: Option<Spanned<String>>,
    title: Option<Spanned<String>>,
    class: Option<Spanned<String>>,
    queue: Option<Spanned<QueueRule>>,
    fio: Option<Spanned<OneOrMany>>,
    fio_file: Option<Spanned<String>>,
    fio_job: Option<Spanned<String>>,
    tool: Option<Spanned<String>>,
    arguments: Option<Spanned<Vec<Spanned<String>>>>,
    pub(super) matrix: Option<Spanned<RawMatrix>>,
    pub(super) draw: Option<Spanned<u32>>,
    #[serde(rename = "for")]
    pub(super) for_subjects: Option<Spanned<RawFor>>,
    prepares: Option<Spanned<bool>>,
    events: Option<Spanned<Vec<Spanned<RawTimedEvent>>>>,
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

/// The values of `event`.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum RawEvent {
    Fail,
    Remove,
    Insert,
    ReAdd,
    Check,
}

impl RawEvent {
    /// The event of a member; `None` for an event of the whole array.
    const fn of_member(self) -> Option<EventKind> {
        match self {
            Self::Fail => Some(EventKind::Fail),
            Self::Remove => Some(EventKind::Remove),
            Self::Insert => Some(EventKind::Insert),
            Self::ReAdd => Some(EventKind::ReAdd),
            Self::Check => None,
        }
    }
}

/// An event during a job, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTimedEvent {
    at: Option<Spanned<Time>>,
    sync_percent: Option<Spanned<f64>>,
    event: EventKind,
    member: Spanned<u16>,
}

/// A step as read, with its place in the file for errors that depend on other steps.
pub(super) enum ReadStep {
    Jobs {
        jobs: Vec<(Job, Footprint)>,
        /// The combination of the step's matrix for each job.
        combinations: Vec<Combination>,
        /// The place of the job's name in the file.
        named: Range<usize>,
        /// The place of its class.
        classed: Range<usize>,
        /// The places of the members in the jobs' events.
        members: Vec<Range<usize>>,
    },
    Event(Event, Range<usize>),
    Check,
    Wait(Wait),
}

/// The suite whose entries are read, and where the files that they name are found.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    /// The files in which subjects and job files are looked for.
    pub(super) files: &'a Files,
    pub(super) document: &'a Document,
    /// The folder from which relative paths start.
    pub(super) folder: &'a Path,
    /// The suite's name.
    pub(super) suite: &'a str,
}

impl RawStep {
    /// The places of fields that only jobs have.
    fn of_jobs(&self) -> impl Iterator<Item = Range<usize>> {
        [
            self.title.as_ref().map(Spanned::span),
            self.class.as_ref().map(Spanned::span),
            self.queue.as_ref().map(Spanned::span),
            self.fio.as_ref().map(Spanned::span),
            self.fio_file.as_ref().map(Spanned::span),
            self.fio_job.as_ref().map(Spanned::span),
            self.tool.as_ref().map(Spanned::span),
            self.arguments.as_ref().map(Spanned::span),
            self.matrix.as_ref().map(Spanned::span),
            self.draw.as_ref().map(Spanned::span),
            self.prepares.as_ref().map(Spanned::span),
            self.events.as_ref().map(Spanned::span),
            self.round.as_ref().map(Spanned::span),
        ]
        .into_iter()
        .flatten()
    }

    /// Whether some subjects do not do all of the step.
    pub(super) fn is_for_some(&self) -> bool {
        self.draw.is_some() || self.for_subjects.is_some()
    }

    fn of_events(&self) -> Option<Range<usize>> {
        self.member.as_ref().map(Spanned::span)
    }

    fn of_waits(&self) -> Option<Range<usize>> {
        self.at_most.as_ref().map(Spanned::span)
    }
}

/// Turns a step as written, at `span`, into a step.
///
/// # Errors
/// With the file's line and field.
pub(super) fn read_step(
    context: Context<'_>,
    raw: &RawStep,
    span: Range<usize>,
) -> Result<ReadStep, LoadError> {
    let document = context.document;
    let given = [
        raw.job.as_ref().map(Spanned::span),
        raw.event.as_ref().map(Spanned::span),
        raw.wait.as_ref().map(Spanned::span),
        raw.wait_sync_percent.as_ref().map(Spanned::span),
    ];
    let mut given = given.into_iter().flatten();
    let (Some(named), None) = (given.next(), given.next()) else {
        let what = "a step is exactly one of `job`, `event`, `wait` and `wait_sync_percent`";
        let remedy = "split it, or say which it is";
        return Err(document.invalid(span, what, remedy).into());
    };
    let (kind, stray) = if raw.event.is_some() {
        ("an event", raw.of_jobs().next().or(raw.of_waits()))
    } else if raw.job.is_some() {
        ("a job", raw.of_events().or(raw.of_waits()))
    } else {
        ("a wait", raw.of_jobs().next().or(raw.of_events()))
    };
    if let Some(span) = stray {
        let what = format!("{kind} has no such field");
        let remedy = "move it to the step it belongs to";
        return Err(document.invalid(span, what, remedy).into());
    }
    if let Some(event) = &raw.event {
        let Some(kind) = event.get_ref().of_member() else {
            if let Some(member) = &raw.member {
                let what = "a check is of all members";
                return Err(document.invalid(member.span(), what, "remove it").into());
            }
            return Ok(ReadStep::Check);
        };
        let Some(member) = &raw.member else {
            return Err(document
                .missing(named, "member", "members count from 0")
                .into());
        };
        let event = Event {
            kind,
            member: *member.get_ref(),
        };
        return Ok(ReadStep::Event(event, member.span()));
    }
    if raw.job.is_some() {
        return read_jobs(context, raw, named);
    }
    let wait = read_wait(
        document,
        raw.wait.as_ref().map(Spanned::get_ref),
        raw.wait_sync_percent.as_ref(),
        raw.at_most.as_ref(),
        named,
    );
    Ok(ReadStep::Wait(wait?))
}

/// Turns a job as written into jobs, one for each combination of its matrix.
fn read_jobs(
    context: Context<'_>,
    raw: &RawStep,
    named: Range<usize>,
) -> Result<ReadStep, LoadError> {
    let document = context.document;
    let (events, members) = read_events(document, raw)?;
    let combinations = combinations(document, raw.matrix.as_ref())?;
    let read = |one| read_job(context, raw, named.clone(), one, &events);
    let jobs = combinations.iter().map(read).collect::<Result<_, _>>()?;
    let class = raw.class.as_ref().map(Spanned::span);
    Ok(ReadStep::Jobs {
        jobs,
        combinations,
        classed: class.unwrap_or_else(|| named.clone()),
        named,
        members,
    })
}

fn read_job(
    context: Context<'_>,
    raw: &RawStep,
    named: Range<usize>,
    combination: &Combination,
    events: &[TimedEvent],
) -> Result<(Job, Footprint), LoadError> {
    let document = context.document;
    let text = |field: &Option<Spanned<String>>| {
        let text = field.as_ref().map(Spanned::get_ref);
        text.map(|text| combination.apply(text))
    };
    let name = text(&raw.job).unwrap_or_default();
    document.hold(named.clone(), check_name(&name))?;
    let (work, footprint) = read_work(context, raw, named.clone(), &name, combination)?;
    let queue = raw.queue.as_ref().map(|queue| *queue.get_ref());
    let queue = queue.unwrap_or_default();
    let unknown = work.group().err().filter(|_| raw.tool.is_none());
    let missing = |field, remedy: &str| {
        let remedy = match &unknown {
            Some(why) => format!("{remedy}, as the model cannot tell ({why})"),
            None => remedy.to_owned(),
        };
        document.missing(named.clone(), field, &remedy)
    };
    let title = text(&raw.title).or_else(|| in_words(&work, queue));
    let class = text(&raw.class).or_else(|| Some(class_of_job(work.group().ok()?).to_owned()));
    let job = Job {
        title: title.ok_or_else(|| missing("title", "say in words what the job does"))?,
        class: class
            .ok_or_else(|| missing("class", "say which jobs belong together: \"random-read\""))?,
        name,
        queue,
        work,
        prepares: raw
            .prepares
            .as_ref()
            .is_some_and(|prepares| *prepares.get_ref()),
        events: events.to_vec(),
        note: text(&raw.note).unwrap_or_default(),
    };
    Ok((job, footprint))
}

/// What fio does, in words, with the depth as this rule reaches it on Linux; `None` where the model
/// cannot read its options.
fn in_words(work: &Work, queue: QueueRule) -> Option<String> {
    let mut work = work.clone();
    if queue != QueueRule::Fio {
        work.edit_fio(|jobs| jobs.queue_as(queue == QueueRule::Host));
    }
    work.group().ok().map(describe)
}

/// Reads the tool that a job runs.
fn read_work(
    context: Context<'_>,
    raw: &RawStep,
    named: Range<usize>,
    name: &str,
    combination: &Combination,
) -> Result<(Work, Footprint), LoadError> {
    let document = context.document;
    let fio = [
        raw.fio.as_ref().map(Spanned::span),
        raw.fio_file.as_ref().map(Spanned::span),
        raw.fio_job.as_ref().map(Spanned::span),
    ];
    if let Some(tool) = &raw.tool {
        let queue = raw.queue.as_ref().map(Spanned::span);
        if let Some(span) = fio.into_iter().flatten().next().or(queue) {
            let what = format!("{} has no such field", tool.get_ref());
            let remedy = "a job is fio's or another tool's";
            return Err(document.invalid(span, what, remedy).into());
        }
        let tool = RawTool {
            name: tool,
            arguments: raw.arguments.as_ref(),
        };
        let work = read_tool(document, tool, combination)?;
        let footprint = Footprint::of(&work, None);
        return Ok((work, footprint));
    }
    if let Some(arguments) = &raw.arguments {
        let remedy = "write fio's options into `fio`, or say which `tool` it is";
        let what = "fio has no such field";
        return Err(document.invalid(arguments.span(), what, remedy).into());
    }
    let (text, span) = read_fio_text(context, raw, named, name, combination)?;
    let file = raw.fio_file.as_ref().map_or("", |file| file.get_ref());
    let included = catalogue::beside(Path::new(&combination.apply(file)), context.folder);
    let folder = included.parent().unwrap_or(context.folder);
    let reading = read_fio(document, span, name, &text, (folder, context.files))?;
    let work = Work::Fio {
        jobs: reading.jobs.clone(),
        group: reading.modelled(),
    };
    let footprint = Footprint::of(&work, Some(&reading.group));
    Ok((work, footprint))
}

/// Reads the text for fio, with its place in the file.
fn read_fio_text(
    context: Context<'_>,
    raw: &RawStep,
    named: Range<usize>,
    name: &str,
    combination: &Combination,
) -> Result<(FioText, Range<usize>), LoadError> {
    let document = context.document;
    match (&raw.fio, &raw.fio_file, &raw.fio_job) {
        (Some(options), None, None) => {
            let lines = match options.get_ref() {
                OneOrMany::One(line) => std::slice::from_ref(line),
                OneOrMany::Many(lines) => lines,
            };
            let lines = lines.iter().map(|line| combination.apply(line)).collect();
            Ok((FioText::Options(lines), options.span()))
        }
        (None, Some(file), None) => {
            let path = combination.apply(file.get_ref());
            let path = catalogue::beside(Path::new(&path), context.folder);
            let text = catalogue::read_text(context.files, &path).map_err(|error| {
                super::named::named_at(document, file.span(), Kind::Suite, error)
            })?;
            let text = combination.apply(&text);
            let name = path.display().to_string();
            Ok((FioText::JobFile { name, text }, file.span()))
        }
        (None, None, Some(text)) => {
            let span = text.span();
            let text = combination.apply(text.get_ref());
            let name = format!("job {name}");
            Ok((FioText::JobFile { name, text }, span))
        }
        (None, None, None) => {
            let remedy = "write fio's options, or use `fio_file`, `fio_job` or `tool`";
            Err(document.missing(named, "fio", remedy).into())
        }
        _ => {
            let what = "a job has one of `fio`, `fio_file`, `fio_job` and `tool`";
            Err(document.invalid(named, what, "keep one").into())
        }
    }
}

/// Reads the events within a job, with the places of their members.
fn read_events(
    document: &Document,
    raw: &RawStep,
) -> Result<(Vec<TimedEvent>, Vec<Range<usize>>), FileError> {
    let entries = raw
        .events
        .as_ref()
        .map_or(&[][..], |events| events.get_ref());
    let mut events = Vec::new();
    let mut last = Nanos::ZERO;
    for entry in entries {
        let raw = entry.get_ref();
        let when = match (&raw.at, &raw.sync_percent) {
            (Some(at), None) => {
                let time = at.get_ref().0;
                if time < last {
                    let what = "an earlier event comes later";
                    let remedy = "write the events in the order of their times";
                    return Err(document.invalid(at.span(), what, remedy));
                }
                last = time;
                When::After(time)
            }
            (None, Some(percent)) => When::SyncPercent(read_percent(document, percent)?),
            _ => {
                let what = "an event within a job has one of `at` and `sync_percent`";
                let remedy = "write at = \"10s\" or sync_percent = 45";
                return Err(document.invalid(entry.span(), what, remedy));
            }
        };
        let event = Event {
            kind: raw.event,
            member: *raw.member.get_ref(),
        };
        events.push(TimedEvent { when, event });
    }
    let members = entries.iter().map(|entry| entry.get_ref().member.span());
    Ok((events, members.collect()))
}
