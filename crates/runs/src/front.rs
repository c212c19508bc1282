//! Who stands before a run: a terminal that can be spoken to, and somebody who watches
//! what is measured.

use crate::failure::{Failure, Kind};
use raidlab_lab::Progress;
use raidlab_store::{ExportError, Measurement, StoreError};
use raidlab_uml::{Cache, Kernel};
use std::io;
use std::sync::atomic::AtomicBool;

/// What a run needs of the program that it is a part of.
pub trait Front {
    /// Says a line beside the results.
    fn say(&self, line: &str);

    /// Asks whether what the question says may be done.
    ///
    /// # Errors
    /// When it may not, or nobody can be asked.
    fn consent(&self, question: &str) -> Result<(), Failure>;

    /// Listens to who wants to stop the run, from here on: the flag says so.
    ///
    /// # Errors
    /// When the system does not let us listen.
    fn listen(&self) -> Result<&'static AtomicBool, Failure>;

    /// Offers to build a kernel for who has none; `None`: it is not wanted.
    ///
    /// # Errors
    /// When the build fails.
    fn offer_kernel(&self, cache: &Cache, with_zfs: bool) -> Result<Option<Kernel>, Failure>;
}

/// Who watches a run, on the thread that runs it.
pub trait Watcher {
    /// An experiment, by its position, got on.
    fn progress(&mut self, experiment: usize, progress: Progress);

    /// A row has been kept; in order.
    ///
    /// # Errors
    /// When it cannot be shown; the run is then cancelled.
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
    /// With the kind that decides the exit code.
    pub(crate) fn into_failure(self) -> Failure {
        match self {
            Self::Store(error) => error.into(),
            Self::Line(error) => error.into(),
            print @ Self::Print(_) => Failure::new(Kind::Output, print),
        }
    }
}
