//! Suites: an ordered list of jobs, events and waits on a set of disks.

mod checker;
mod freshness;
mod grid;
mod matrix;
mod named;
mod reader;
mod regions;
mod selection;
mod step;
#[cfg(test)]
mod tests;
mod tool;
mod wait;

use crate::catalogue::{self, Kind, LoadError};
use crate::document::Document;
use crate::files::Files;
use crate::fio::{GroupError, read_group, read_job_file};
use crate::job_words::{class_of_job, named_in_words};
use crate::published::Published;
use crate::recognized::{FileKind, check_file};
use crate::subject::Subject;
use raidlab_systems::FileSystemSpec;
use raidlab_units::{Nanos, in_one_line};
use raidlab_workload::{FioJobs, JobGroup, Note};
use serde::Deserialize;
use std::path::Path;

pub use reader::{MOST_DISKS, MOST_REPETITIONS};
pub use regions::{Bus, Region};

/// The default number of a draw.
pub const FIRST_DRAW: u64 = 1;

/// An experiment's recipe, before a subject is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The suite's name, which is that of its file: `mirror-2015`.
    pub name: String,
    /// The name of the suite in headings, for people.
    pub title: String,
    /// What the suite is for, in a few sentences; may be empty.
    pub description: String,
    /// The source of the suite.
    pub source: String,
    /// One disk preset per member, by name or path: the model's disks. On real machines as many
    /// disks are needed.
    pub disks: Vec<String>,
    /// The part of a drive that each disk is, on the benches that model disks; as long as `disks`.
    pub regions: Vec<Region>,
    /// The regions in the suite's file, whatever disks were chosen since: the published figures
    /// are for these.
    pub figures_of: Vec<Region>,
    /// The processor of modelled hosts, by name or path; `None` if computing takes no time.
    pub processor: Option<String>,
    /// The places in the suite's file that name these, for errors.
    pub places: Places,
    /// The file systems that each subject is measured with, one after the
    /// other; `None` is the raw array. Never empty.
    pub filesystems: Vec<Option<FileSystemSpec>>,
    /// The number of repetitions, with a newly built array each time; at least 1.
    pub repetitions: u32,
    /// The state of arrays when the first step begins.
    pub begin: Begin,
    /// The number of the suite's draw; `None` if nothing in it is drawn.
    pub draw: Option<u64>,
    /// The subjects compared, in the order of the tables.
    pub subjects: Vec<Subject>,
    /// Figures of others for the same cells.
    pub published: Option<Published>,
    /// The steps, in this order.
    pub steps: Vec<Step>,
    /// Remarks for the user: options that do nothing here, reads of freshly written data.
    pub remarks: Vec<String>,
}

/// Places in a suite's file, `own.toml:6: disks[2]`, for errors: those that name other files,
/// and those of its steps, which a bench may refuse. Empty where the command line has replaced
/// the name since.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// The place of each entry of `disks`, one text for each member.
    pub disks: Vec<String>,
    /// The place of the processor's name; `None` where the file names none.
    pub processor: Option<String>,
    /// The place of each step.
    pub steps: Vec<String>,
}

/// The state of an array that has just been created when the first step begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Begin {
    /// The members are equal: blank modelled disks are taken to be, on real ones the first
    /// resync is awaited.
    #[default]
    InSync,
    /// The state is as the system leaves it: a first resync may have just begun.
    AsCreated,
}

/// One step of a suite, in the order in which they are carried out, or of an experiment, whose
/// jobs are [planned](crate::PlannedStep).
#[derive(Debug, Clone, PartialEq)]
pub enum Step<J = Job> {
    /// A job runs.
    Job(J),
    /// An event happens to a member.
    Event(Event),
    /// A check of the whole array begins: all data are read and compared, nothing is changed.
    Check,
    /// Time passes; a rebuild continues.
    Wait(Wait),
    /// Jobs are repeated in rounds until a figure is steady.
    Rounds(Rounds<J>),
}

impl<J> Step<J> {
    /// The jobs of the step, in order.
    #[must_use]
    pub fn jobs(&self) -> &[J] {
        match self {
            Self::Job(job) => std::slice::from_ref(job),
            Self::Rounds(rounds) => &rounds.jobs,
            Self::Event(_) | Self::Check | Self::Wait(_) => &[],
        }
    }
}

/// Jobs that are done in rounds, all of them in each, until the tracked one's
/// figure is steady as SNIA's test specification defines it.
#[derive(Debug, Clone, PartialEq)]
pub struct Rounds<J> {
    /// The short name, unique in the suite.
    pub name: String,
    /// The largest number of rounds, steady or not; at least 5.
    pub at_most: u32,
    /// The name of the job whose figure is tracked.
    pub track: String,
    /// The jobs of a round, in order.
    pub jobs: Vec<J>,
}

/// The condition that a suite waits for before its next step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wait {
    /// The wait lasts for this time.
    Time(Nanos),
    /// The wait lasts until a condition is met, at most so long; if it is not met, that
    /// is an error.
    Until {
        /// The condition that is awaited.
        condition: Condition,
        /// The longest time to wait.
        at_most: Nanos,
    },
}

/// A state of the array that can be awaited.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Condition {
    /// No background copying is under way any more.
    SyncDone,
    /// The background copying has reached this progress, percent.
    SyncPercent(f64),
    /// The members have been idle for some seconds.
    Idle,
    /// The array's cache has no dirty data; it is made to write back meanwhile.
    Clean,
}

/// A run of a tool; with fio one job, or several together.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// The short name, unique in the suite: `9`.
    pub name: String,
    /// The job in words: `random read 4 KiB, queue depth 4`.
    pub title: String,
    /// The class by which accuracy statements and graphs group jobs: `random-read`.
    pub class: String,
    /// The way in which a queue depth above one is reached.
    pub queue: QueueRule,
    /// The program that the job runs, with its arguments.
    pub work: Work,
    /// Whether the job only prepares (fills, ages): it gets no rows in tables, and is done again
    /// when an interrupted run is resumed.
    pub prepares: bool,
    /// The events of members while the job runs.
    pub events: Vec<TimedEvent>,
    /// A note for the reader; may be empty.
    pub note: String,
}

/// The tool that a job runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// fio, with options or a job file.
    Fio {
        /// The options, with [`crate::Placeholders`].
        jobs: FioJobs,
        /// The model's reading of the options, or the reason why it cannot run them.
        group: Result<JobGroup, String>,
    },
    /// A tool that is called with words as they are.
    Tool {
        /// The name of the tool: `bonnie++`.
        name: String,
        /// The arguments, with [`crate::Placeholders`] to be replaced by [`crate::expand`].
        arguments: Vec<String>,
    },
}

impl Work {
    /// The name of its tool.
    #[must_use]
    pub fn tool(&self) -> &str {
        match self {
            Self::Fio { .. } => "fio",
            Self::Tool { name, .. } => name,
        }
    }

    /// The jobs that fio runs together, where the model can run them.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub fn group(&self) -> Result<&JobGroup, String> {
        match self {
            Self::Fio { group, .. } => group.as_ref().map_err(Clone::clone),
            Self::Tool { name, .. } => Err(format!("{name} is not modelled")),
        }
    }

    /// Notes for the user on fio's options: how they were read and changed and, if `modelled`, how
    /// the model treats them.
    #[must_use]
    pub fn notes(&self, modelled: bool) -> Vec<Note> {
        let Self::Fio { jobs, .. } = self else {
            return Vec::new();
        };
        match modelled.then(|| read_group(jobs.clone())) {
            Some(Ok(reading)) => reading.notes,
            _ => jobs.notes.clone(),
        }
    }

    /// Edits fio's options and lets the model read them again. Other tools have none.
    pub fn edit_fio(&mut self, edit: impl FnOnce(&mut FioJobs)) {
        let Self::Fio { jobs, group } = self else {
            return;
        };
        edit(jobs);
        if group.is_ok() {
            *group = match read_group(jobs.clone()) {
                Ok(reading) => reading.modelled(),
                // A depth that is made of threads can need more threads than fio allows.
                Err(error) => Err(in_one_line(&error)),
            };
        }
    }
}

/// An event that happens while a job runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedEvent {
    /// The time of the event, counted from the start of the step's jobs.
    pub when: When,
    /// The event that then happens.
    pub event: Event,
}

/// A moment of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// The moment is so much time after the start of the job.
    After(Nanos),
    /// The moment is when the background copying has reached this progress, percent.
    SyncPercent(f64),
}

/// The way in which a job reaches a queue depth above one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueRule {
    /// The subject's host decides: threads or asynchronous requests.
    #[default]
    Host,
    /// Threads with one synchronous request each are used on every host.
    Threads,
    /// fio's options decide, with their engine and depth.
    Fio,
}

/// An event of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// The kind of event.
    pub kind: EventKind,
    /// The member that it happens to, from 0.
    pub member: u16,
}

/// The kinds of events of members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// The member is removed from the array (declared failed first, where the subject
    /// insists on that).
    Remove,
    /// The member is declared failed, but stays in its slot.
    Fail,
    /// The member is put back as if new, and rebuilt.
    Insert,
    /// The member is put back as the same one: only what it missed is copied, where the subject
    /// knows what that is.
    ReAdd,
}

impl EventKind {
    /// The name of the event in suites and on time lines: `re-add`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Remove => "remove",
            Self::Fail => "fail",
            Self::Insert => "insert",
            Self::ReAdd => "re-add",
        }
    }
}

impl Suite {
    /// Loads a built-in suite by name, or a file by path: anything with a `/` or ending in `.toml`
    /// is a path. Everything that can be checked without running is checked, the subjects and
    /// figures it names included.
    ///
    /// # Errors
    /// When there is no such suite or its file is wrong.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        Self::load_from(&Files::default(), name_or_path)
    }

    /// Loads a suite from these files.
    ///
    /// # Errors
    /// As [`Suite::load`].
    pub fn load_from(files: &Files, name_or_path: &str) -> Result<Self, LoadError> {
        Self::load_draw(files, name_or_path, FIRST_DRAW)
    }

    /// Loads a suite with the draw of this number. Where nothing is drawn, the number has no
    /// effect, and [`Suite::draw`] is `None`.
    ///
    /// # Errors
    /// As [`Suite::load`].
    pub fn load_draw(files: &Files, name_or_path: &str, draw: u64) -> Result<Self, LoadError> {
        let document = catalogue::find(files, Kind::Suite, name_or_path)?;
        let folder = if catalogue::is_path(name_or_path) {
            Path::new(name_or_path).parent().unwrap_or(Path::new(""))
        } else {
            Path::new("")
        };
        Self::read(files, &document, folder, draw)
    }

    /// Reads a suite from its text. `file` is its name in errors; relative paths in it
    /// start from `folder`.
    ///
    /// # Errors
    /// When the text is no suite, or names something that does not exist.
    pub fn parse(file: &str, text: &str, folder: &Path) -> Result<Self, LoadError> {
        let (file, text) = (file.to_owned(), text.to_owned());
        let document = Document { file, text };
        Self::read(&Files::default(), &document, folder, FIRST_DRAW)
    }

    /// Makes a suite of a fio job file, run exactly as written: each group of jobs that run
    /// together becomes one job of the suite.
    ///
    /// # Errors
    /// When the file cannot be read, with its line and option.
    pub fn from_job_file(
        files: &Files,
        path: &Path,
        disks: Vec<String>,
        subjects: Vec<Subject>,
    ) -> Result<Self, LoadError> {
        let text = catalogue::read_text(files, path)?;
        let name = path.display().to_string();
        check_file(FileKind::JobFile, &name, &text)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let file = read_job_file(&name, &text, folder, files)?;
        file.check_that_all_run()?;
        let mut steps = Vec::new();
        let mut places = Places::default();
        for (index, jobs) in file.groups().into_iter().enumerate() {
            let first = jobs.jobs.first();
            let place = first.map(|job| format!("{}: [{}]", job.place, job.name().unwrap_or("")));
            places.steps.push(place.unwrap_or_default());
            let reading = match read_group(jobs) {
                Ok(reading) => reading,
                Err(GroupError::Fio(error)) => return Err(error.into()),
                Err(GroupError::Placeholder(error)) => {
                    return Err(LoadError::Placeholder { file: name, error });
                }
            };
            steps.push(Step::Job(Job {
                name: (index + 1).to_string(),
                title: named_in_words(&reading.group),
                class: class_of_job(&reading.group).to_owned(),
                queue: QueueRule::Fio,
                work: Work::Fio {
                    group: reading.modelled(),
                    jobs: reading.jobs,
                },
                prepares: false,
                events: Vec::new(),
                note: String::new(),
            }));
        }
        let regions = vec![Region::default(); disks.len()];
        let stem = path.file_stem().unwrap_or(path.as_os_str());
        Ok(Self {
            name: stem.to_string_lossy().into_owned(),
            title: format!("The fio job file {name}"),
            description: String::new(),
            source: name.clone(),
            disks,
            figures_of: regions.clone(),
            regions,
            processor: None,
            places,
            filesystems: vec![None],
            repetitions: 1,
            begin: Begin::InSync,
            draw: None,
            subjects,
            published: None,
            steps,
            remarks: Vec::new(),
        })
    }

    /// Replaces the disks; each new one is a whole drive on a channel of its own.
    pub fn use_disks(&mut self, disks: Vec<String>) {
        self.regions = vec![Region::default(); disks.len()];
        self.disks = disks;
        self.places.disks.clear();
    }

    /// The least number of disks: every member that its steps and subjects name must exist.
    #[must_use]
    pub fn fewest_disks(&self) -> usize {
        let of_steps = self.steps.iter().flat_map(|step| match step {
            Step::Event(event) => vec![event.member],
            Step::Job(job) => job.events.iter().map(|timed| timed.event.member).collect(),
            Step::Rounds(_) | Step::Check | Step::Wait(_) => Vec::new(),
        });
        let of_subjects = self.subjects.iter().flat_map(|subject| {
            let members = subject.members.iter().flatten();
            members.chain(&subject.removed).copied()
        });
        let highest = of_steps.chain(of_subjects).max();
        highest.map_or(1, |member| usize::from(member) + 1)
    }

    /// The jobs in order; their position is a measurement's `sequence`.
    pub fn jobs(&self) -> impl Iterator<Item = &Job> {
        self.steps.iter().flat_map(Step::jobs)
    }

    /// Finds a subject: one of the suite's own by name, else any other by name or path.
    ///
    /// # Errors
    /// When there is no such subject or its file is wrong.
    pub fn subject(&self, name_or_path: &str) -> Result<Subject, LoadError> {
        self.subject_from(&Files::default(), name_or_path)
    }

    /// Finds a subject in these files.
    ///
    /// # Errors
    /// As [`Suite::subject`].
    pub fn subject_from(&self, files: &Files, name_or_path: &str) -> Result<Subject, LoadError> {
        let own = self.subjects.iter().find(|own| own.name == name_or_path);
        own.map_or_else(
            || Subject::load_from(files, name_or_path),
            |own| Ok(own.clone()),
        )
    }
}
