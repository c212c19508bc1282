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

use crate::catalogue::{self, Kind, LoadError};
use crate::document::Document;
use crate::files::Files;
use crate::fio::{GroupError, read_group, read_job_file};
use crate::job_words::{class_of_job, named_in_words};
use crate::published::Published;
use crate::subject::Subject;
use raidlab_systems::FileSystemSpec;
use raidlab_units::{Nanos, in_one_line};
use raidlab_workload::{FioJobs, JobGroup, Note};
use serde::Deserialize;
use std::path::Path;

pub use reader::MOST_REPETITIONS;
pub use regions::{Bus, Region};

/// The draw that is taken where no number is said.
pub const FIRST_DRAW: u64 = 1;

/// An experiment's recipe, before a subject is chosen.
#[derive(Debug, Clone, PartialEq)]
pub struct Suite {
    /// The suite's name, which is its file's: `mirror-2015`.
    pub name: String,
    /// The name of the suite in headings, for people.
    pub title: String,
    /// What the suite is for, in a few sentences; may be empty.
    pub description: String,
    /// Where the suite is from.
    pub source: String,
    /// One disk preset per member, by name or path: the model's disks. Where
    /// disks are real, as many are needed.
    pub disks: Vec<String>,
    /// Which part of which drive each of them is, on the benches that model disks;
    /// as long as `disks`.
    pub regions: Vec<Region>,
    /// The same as its file says it, whatever disks were chosen since: of these parts
    /// are the figures from elsewhere.
    pub figures_of: Vec<Region>,
    /// The processor of modelled hosts, by name or path; `None`: computing takes no time.
    pub processor: Option<String>,
    /// Where the suite's file names these, as errors tell it.
    pub places: Places,
    /// The file systems that each subject is measured with, one after the
    /// other; `None` is the raw array. Never empty.
    pub filesystems: Vec<Option<FileSystemSpec>>,
    /// How often everything is done, with a newly built array each time; at
    /// least 1.
    pub repetitions: u32,
    /// How arrays stand when the first step begins.
    pub begin: Begin,
    /// The number of the draw that it is of; `None`: nothing of it is drawn.
    pub draw: Option<u64>,
    /// The subjects compared, in the order of the tables.
    pub subjects: Vec<Subject>,
    /// Figures for the same cells from elsewhere.
    pub published: Option<Published>,
    /// What is done, in this order.
    pub steps: Vec<Step>,
    /// What the user should know: options that do nothing here, reads of what
    /// was just written.
    pub remarks: Vec<String>,
}

/// Where a suite's file names what is described by files of others, `own.toml:6: disks[2]`, and
/// where its steps stand, which a bench may refuse.
/// Nothing where somebody else has named it since.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Places {
    /// Where each entry of `disks` stands, one text for each member.
    pub disks: Vec<String>,
    /// Where the processor is named; `None` where the file names none.
    pub processor: Option<String>,
    /// Where each of the steps stands.
    pub steps: Vec<String>,
}

/// How an array that has just been created stands when the first step begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Begin {
    /// Its members are equal: blank modelled disks are taken to be, on real ones
    /// the first resync is waited for.
    #[default]
    InSync,
    /// As its system leaves it: a first resync may have just begun.
    AsCreated,
}

/// One step of a suite, in the order in which they are carried out, or of an experiment, whose
/// jobs are [planned](crate::PlannedStep).
#[derive(Debug, Clone, PartialEq)]
pub enum Step<J = Job> {
    /// A job runs.
    Job(J),
    /// Something happens to a member.
    Event(Event),
    /// A check of the whole array begins: all is read and compared, nothing changed.
    Check,
    /// Time passes; a rebuild goes on.
    Wait(Wait),
    /// Jobs in rounds until a figure is steady.
    Rounds(Rounds<J>),
}

impl<J> Step<J> {
    /// The jobs in it, in order.
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
    /// Short and unique in the suite.
    pub name: String,
    /// After so many it ends, steady or not; at least 5.
    pub at_most: u32,
    /// The name of the job whose figure is tracked.
    pub track: String,
    /// The jobs of a round, in order.
    pub jobs: Vec<J>,
}

/// What a suite waits for before its next step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Wait {
    /// Until so much time has passed.
    Time(Nanos),
    /// A condition, at most so long; that it was not met is an error.
    Until {
        /// What must come true.
        condition: Condition,
        /// The longest time to wait.
        at_most: Nanos,
    },
}

/// A state of the array that can be waited for.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Condition {
    /// Nothing is copied in the background any more.
    SyncDone,
    /// The background copying has come so far, percent.
    SyncPercent(f64),
    /// The members have done nothing for some seconds.
    Idle,
    /// Nothing is dirty in the array's cache; it is made to write back meanwhile.
    Clean,
}

/// A run of a tool: for fio one job, or several together.
#[derive(Debug, Clone, PartialEq)]
pub struct Job {
    /// Short and unique in the suite: `9`.
    pub name: String,
    /// In words: `random read 4 KiB, queue depth 4`.
    pub title: String,
    /// The class by which accuracy statements and graphs group jobs: `random-read`.
    pub class: String,
    /// How a queue depth above one is reached.
    pub queue: QueueRule,
    /// The program that the job runs, with its arguments.
    pub work: Work,
    /// It only prepares (fills, ages): it gets no rows in tables, and is done
    /// again where an interrupted run goes on.
    pub prepares: bool,
    /// What happens to members while it runs.
    pub events: Vec<TimedEvent>,
    /// What the reader must know; may be empty.
    pub note: String,
}

/// What a job runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Work {
    /// fio, with options or a job file.
    Fio {
        /// What it is told: options with [`crate::Placeholders`].
        jobs: FioJobs,
        /// What the model makes of them, or why it cannot.
        group: Result<JobGroup, String>,
    },
    /// A tool that is called word by word.
    Tool {
        /// Its name among the tools: `bonnie++`.
        name: String,
        /// Its arguments, with [`crate::Placeholders`] to be replaced by
        /// [`crate::expand`].
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

    /// What fio runs together, where the model can do it.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn group(&self) -> Result<&JobGroup, String> {
        match self {
            Self::Fio { group, .. } => group.as_ref().map_err(Clone::clone),
            Self::Tool { name, .. } => Err(format!("{name} is not modelled")),
        }
    }

    /// What the user should know of fio's options: of how they were read and changed, and
    /// where `modelled`, of what the model makes of them.
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

    /// Edits fio's options and has the model look at them again. Other tools
    /// have none.
    pub fn edit_fio(&mut self, edit: impl FnOnce(&mut FioJobs)) {
        let Self::Fio { jobs, group } = self else {
            return;
        };
        edit(jobs);
        if group.is_ok() {
            *group = match read_group(jobs.clone()) {
                Ok(reading) => reading.modelled(),
                // Threads that make up a depth can be more than fio has.
                Err(error) => Err(in_one_line(&error)),
            };
        }
    }
}

/// Something that happens while a job runs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TimedEvent {
    /// When it happens, counted from the start of the step's jobs.
    pub when: When,
    /// The event that then happens.
    pub event: Event,
}

/// A moment of a job.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum When {
    /// So much time after the start of the job.
    After(Nanos),
    /// When the background copying has come so far, percent.
    SyncPercent(f64),
}

/// How a job reaches a queue depth above one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueueRule {
    /// By threads or asynchronously, as the subject's host does it.
    #[default]
    Host,
    /// By threads with one synchronous request each, on every host.
    Threads,
    /// By exactly the engine and depth that fio's options say.
    Fio,
}

/// Something that happens to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    /// What is done to the subject.
    pub kind: EventKind,
    /// The member that it happens to, from 0.
    pub member: u16,
}

/// What can happen to a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EventKind {
    /// It is taken out of the array (declared failed first, where the
    /// subject insists on that).
    Remove,
    /// It stops to take part but stays in its place.
    Fail,
    /// It is put back as if new, and rebuilt.
    Insert,
    /// It is put back as the one that was there: only what it missed is
    /// copied, where the subject knows what that is.
    ReAdd,
}

impl EventKind {
    /// Its name in suites and on time lines: `re-add`.
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
    /// A built-in suite by name, or a file by path: anything with a `/` or
    /// ending in `.toml` is a path. Everything that can be checked without
    /// running is checked, the subjects and figures it names included.
    ///
    /// # Errors
    /// When there is no such suite or its file is wrong.
    pub fn load(name_or_path: &str) -> Result<Self, LoadError> {
        Self::load_from(&Files::default(), name_or_path)
    }

    /// The same, of these files.
    ///
    /// # Errors
    /// As [`Suite::load`].
    pub fn load_from(files: &Files, name_or_path: &str) -> Result<Self, LoadError> {
        Self::load_draw(files, name_or_path, FIRST_DRAW)
    }

    /// The same; of what is drawn, the draw of this number. The number means nothing
    /// where nothing is: [`Suite::draw`] is `None` then.
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

    /// A suite from its text. `file` is what errors call it; relative paths in
    /// it start from `folder`.
    ///
    /// # Errors
    /// When the text is no suite, or names something that does not exist.
    pub fn parse(file: &str, text: &str, folder: &Path) -> Result<Self, LoadError> {
        let (file, text) = (file.to_owned(), text.to_owned());
        let document = Document { file, text };
        Self::read(&Files::default(), &document, folder, FIRST_DRAW)
    }

    /// A suite of what a fio job file says, run exactly so: each group of jobs
    /// that run together becomes one job of the suite.
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
        let folder = path.parent().unwrap_or(Path::new(""));
        let file = read_job_file(&name, &text, folder, files)?;
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

    /// Replaces the disks: each is a whole one, with a way of its own.
    pub fn use_disks(&mut self, disks: Vec<String>) {
        self.regions = vec![Region::default(); disks.len()];
        self.disks = disks;
        self.places.disks.clear();
    }

    /// How many disks it takes at least: every member that its steps and subjects
    /// name must exist.
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

    /// One of the suite's own subjects by name, else any other by name or
    /// path.
    ///
    /// # Errors
    /// When there is no such subject or its file is wrong.
    pub fn subject(&self, name_or_path: &str) -> Result<Subject, LoadError> {
        self.subject_from(&Files::default(), name_or_path)
    }

    /// The same, of these files.
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
