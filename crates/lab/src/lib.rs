//! Experiments: suites, subjects, events and published figures, on benches
//! behind one trait.
//!
//! A [`Suite`] is a list of steps (jobs, events, waits) for a set of disks; a [`Subject`] is the
//! array, disk or pool that they act on; [`Published`] holds what others measured in the same
//! cells. All three are TOML files, built in or the user's own. [`Suite::experiments`] makes them
//! ready to run, a [`Bench`] runs one, [`run_suite`] runs all, in parallel, with results in an
//! order that does not depend on the number of threads. A [`Plan`] is all that decides a run's
//! rows, as data.

mod asked;
mod background;
mod bench;
pub mod built_in;
pub mod catalogue;
pub mod claims;
pub mod cut;
mod document;
#[cfg(test)]
mod edited;
mod experiment;
pub mod files;
mod fio;
mod host;
mod job_words;
mod placeholder;
pub mod plan;
mod published;
mod recognized;
mod run;
mod settings;
mod subject;
mod suite;
mod words;

pub use asked::{Asked, Deeds};
pub use background::{ArrayLook, BACKGROUND_CLASS, BACKGROUND_JOB, Background, SyncLook};
pub use bench::{Bench, BenchError, Finish, Observer, Progress};
pub use catalogue::LoadError;
pub use document::{FileError, Problem, SCHEMA};
pub use experiment::{
    CapacityError, Choices, Experiment, HostChoice, PlannedJob, PlannedStep, UnalignedError,
    by_steps, option_notes, unaligned,
};
pub use files::Files;
pub use host::{BitmapWrites, Host, MdRelease, OldLock, QueueStyle};
pub use job_words::describe_job;
pub use placeholder::{PlaceholderError, Placeholders, expand};
pub use plan::Plan;
pub use published::{Accuracy, Cell, Class, Log, Published, Synced};
pub use raidlab_workload::{Honoured, OptionFacts, Permission, fio_options};
pub use recognized::{FileKind, check_file};
pub use run::{Before, RunEnd, RunError, RunOptions, Sink, run_suite};
pub use subject::{
    Checkpoint, Metadata, ReadRecovered, RecoveringWrites, Recovery, Subject, SubjectKind,
    SyncSource, Throttle, WriteBarrier, Zfs, ZfsChecksum, ZfsCompression, ZfsRelease,
};
pub use suite::{
    Begin, Bus, Condition, Event, EventKind, FIRST_DRAW, Job, MOST_DISKS, MOST_REPETITIONS, Places,
    QueueRule, Region, Rounds, Step, Suite, TimedEvent, Wait, When, Work,
};
pub use words::{CHECK_IN_WORDS, event_in_words, wait_in_words};
