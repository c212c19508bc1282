//! A run, from what is asked for to what is kept of it, on any of the three benches.
//!
//! A [`Task`] is what is [`Asked`] for, with the texts of its files, and how it is done [`Here`];
//! or the same from a plan, in a file or of a run that is resumed. [`Task::prepare`] decides
//! everything that can be decided before anything runs: suite, subjects, disks, machines,
//! experiments. The [`Ready`] run can be described in words, written as a plan, or run into a
//! store. Everything that can be refused is refused before; then rows go into the store as they
//! arise, and stay there whatever happens afterwards.
//!
//! The user interface is no part of this crate: it talks to a [`Front`] and reports to a
//! [`Watcher`]. An error is a [`Failure`], whose kind decides the program's exit code.

mod asked;
mod explain;
mod failure;
mod front;
mod host;
mod keeper;
mod kept;
mod kernel;
mod merge;
pub mod notes;
mod planned;
mod prepare;
mod prepared;
mod ready;
mod sharded;
pub mod status;
pub mod submission;
pub mod submit;
mod task;
pub mod typed;
pub mod values;

pub use asked::{Asked, DEFAULT_SEED, Here, HostAsked, KernelAsked, On, Typed};
pub use explain::{ExplainedJob, explain};
pub use failure::{CLAIMS, Failure, Kind, SUBJECTS, open_store};
pub use front::{Front, KeepError, Watcher};
pub use keeper::new_run;
pub use kept::{go_on, see};
pub use kernel::serve_guest;
pub use merge::{Merge, Merged, merge};
pub use prepare::SUITES;
pub use ready::{Ended, Ready, lock_store};
pub use sharded::file_of;
pub use task::{Task, hold, threads};
