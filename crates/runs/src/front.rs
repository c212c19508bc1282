//! The interfaces of a run to its caller: a terminal for messages and questions, and a watcher of
//! what is measured.

use crate::failure::{Failure, Kind};
use raidlab_lab::Progress;
use raidlab_store::{ExportError, Measurement, StoreError};
use raidlab_uml::{Cache, Kernel};
use std::io;
use std::sync::atomic::AtomicBool;

/// The services that a run needs from the program that it is a part of.
pub trait Front {
    /// Prints a line beside the results.
    fn say(&self, line: &str);

    /// Asks whether what the question describes may be done. `help` says how to consent where no
    /// user can be asked.
    ///
    /// # Errors
    /// When the answer is no, or no user can be asked.
    fn consent(&self, question: &str, help: &str) -> Result<(), Failure>;

    /// Begins to listen for requests to stop the run; the returned flag is set by one.
    ///
    /// # Errors
    /// When the system does not let us listen.
    fn listen(&self) -> Result<&'static AtomicBool, Failure>;

    /// Offers to build a kernel where there is none; `None` if the user does not want it.
    ///
    /// # Errors
    /// When the build fails.
    fn offer_kernel(&self, cache: &Cache, with_zfs: bool) -> Result<Option<Kernel>, Failure>;
}

/// A watcher of a run, called on the thread that runs it.
pub trait Watcher {
    /// Called when an experiment, given by its position, made progress.
    fn progress(&mut self, experiment: usize, progress: Progress);

    /// Called for each row that has been kept, in order.
    ///
    /// # Errors
    /// When the row cannot be shown; the run is then cancelled.
    fn row(&mut self, row: &Measurement) -> Result<(), KeepError>;
}

/// Why a result could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The store does not take the row.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The row cannot be written as a line of JSON.
    #[error(transparent)]
    Line(#[from] ExportError),
    /// Standard output does not take the line.
    #[error("cannot write standard output")]
    Print(#[source] io::Error),
}

impl KeepError {
    /// The error as a failure, with the kind that decides the exit code.
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::Store(error) => error.into(),
            Self::Line(error) => error.into(),
            print @ Self::Print(_) => Failure::new(Kind::Output, print),
        }
    }
}
