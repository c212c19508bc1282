//! The interface of benches: each runs an experiment and reports to an observer.

use crate::background::ArrayLook;
use crate::experiment::Experiment;
use raidlab_store::{Cell, CellResult, Records};
use raidlab_units::Nanos;
use serde::{Deserialize, Serialize};
use std::error::Error;

/// A bench that runs experiments: the model, a kernel, a host.
pub trait Bench: Sync {
    /// The name of the bench: `model`, `kernel` or `host`.
    fn name(&self) -> &'static str;

    /// Whether an experiment gives the same results, byte by byte, whenever it is run. When a run
    /// is resumed, unfinished experiments of such a bench start over; those of other benches keep
    /// their finished cells.
    fn repeats_exactly(&self) -> bool;

    /// Checks that this experiment can run on this bench, before anything runs.
    ///
    /// # Errors
    /// The part that is not possible.
    fn check(&self, experiment: &Experiment) -> Result<(), BenchError>;

    /// The resource that an experiment occupies while it runs, such as its machine: no two
    /// experiments with the same one run at the same time. `None`: any number may.
    fn occupies<'a>(&self, _experiment: &'a Experiment) -> Option<&'a str> {
        None
    }

    /// Runs the experiment's steps in order. Finished cells, records and looks at the
    /// array go to the observer as they arise; before each step the bench asks
    /// [`Observer::cancelled`] and stops with [`Finish::Cancelled`] if so; it
    /// may ask within a long step too, whose rows are then not delivered.
    ///
    /// # Errors
    /// When a step cannot be carried out; what was measured before stands.
    fn run(
        &self,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Result<Finish, BenchError>;
}

/// An observer of an experiment while it runs: it is told of steps, rows and records.
pub trait Observer {
    /// Called when a step begins, or time has passed within one. Cheap: a bench may call it often.
    fn progress(&mut self, _progress: Progress) {}
    /// Takes records that belong to no single cell.
    fn record(&mut self, records: Records);
    /// Takes a look at the array. Looks come in the order of their times, if not at once; the
    /// array's background work is measured by them. An observer that keeps no rows may ignore them.
    fn look(&mut self, _look: ArrayLook) {}
    /// Takes a finished job: its rows and the records that belong to them.
    fn cell(&mut self, result: CellResult);
    /// Whether this cell was finished before the run was interrupted: its job
    /// is not measured again. Never so where the bench repeats exactly.
    fn is_finished(&self, _cell: &Cell) -> bool {
        false
    }
    /// Whether the run should end: before the next step, or within one where
    /// the bench can.
    fn cancelled(&self) -> bool {
        false
    }
}

/// The progress of an experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// The current step, from 0; equal to `steps` at the end.
    pub step: usize,
    /// The number of steps of the experiment.
    pub steps: usize,
    /// The time on the experiment's own clock: virtual on modelled disks.
    pub clock: Nanos,
}

/// The way in which a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// All steps were carried out.
    Complete,
    /// The run was cancelled; earlier results are kept.
    Cancelled,
}

/// The reason why a bench could not run an experiment.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A step of the experiment failed.
    #[error("step {step} failed")]
    Step {
        /// The number of the step, from 1 as in the plan.
        step: usize,
        /// The error of the bench.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Building or taking down failed, outside the steps.
    #[error("{what} failed")]
    Setup {
        /// The action that failed, in words.
        what: String,
        /// The error of the bench.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl BenchError {
    /// The error of an action outside the steps; `what` names it.
    pub fn setup(what: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Setup {
            what: what.to_owned(),
            source: source.into(),
        }
    }
}
