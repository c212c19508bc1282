//! What every bench does: it runs one experiment and tells an observer.

use crate::background::ArrayLook;
use crate::experiment::Experiment;
use raidlab_store::{Cell, CellResult, Records};
use raidlab_units::Nanos;
use serde::{Deserialize, Serialize};
use std::error::Error;

/// Something that can run experiments: the model, a kernel, a host.
pub trait Bench: Sync {
    /// `model`, `kernel` or `host`.
    fn name(&self) -> &'static str;

    /// Whether an experiment gives the same, byte by byte, whenever it is run. Where a
    /// run goes on, such an experiment that did not come to its end is begun anew;
    /// another one keeps the cells that it has.
    fn repeats_exactly(&self) -> bool;

    /// Whether this experiment can run here at all, asked before anything
    /// runs.
    ///
    /// # Errors
    /// What is not possible, by name.
    fn check(&self, experiment: &Experiment) -> Result<(), BenchError>;

    /// What an experiment has for itself while it runs, such as the machine that it runs
    /// on: no two of the same run at the same time. `None`: any number may.
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

/// What is told of an experiment while it runs: steps, rows and records.
pub trait Observer {
    /// A step begins, or time has passed within one. Cheap: a bench may call
    /// it often.
    fn progress(&mut self, _progress: Progress) {}
    /// Something to write down that belongs to no single cell.
    fn record(&mut self, records: Records);
    /// The array was looked at. Looks come in the order of their times, if not at once;
    /// what the array did in the background is measured by them. Whoever keeps no rows
    /// may pass over them.
    fn look(&mut self, _look: ArrayLook) {}
    /// A job is done: its rows and what belongs to them.
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

/// How far an experiment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Progress {
    /// The step that runs, from 0; equal to `steps` at the end.
    pub step: usize,
    /// How many steps the experiment has.
    pub steps: usize,
    /// Time on the experiment's own clock: virtual on modelled disks.
    pub clock: Nanos,
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// Every step was carried out.
    Complete,
    /// It was asked to stop; what was measured stands.
    Cancelled,
}

/// Why a bench could not run an experiment.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// A step of the experiment failed.
    #[error("step {step} failed")]
    Step {
        /// The step, from 1 as in the plan.
        step: usize,
        /// What the bench met.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
    /// Something outside the steps failed: building or taking down.
    #[error("{what} failed")]
    Setup {
        /// What the bench was doing, in words.
        what: String,
        /// What the bench met.
        #[source]
        source: Box<dyn Error + Send + Sync>,
    },
}

impl BenchError {
    /// Something outside the steps failed: `what` was being done.
    pub fn setup(what: &str, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Setup {
            what: what.to_owned(),
            source: source.into(),
        }
    }
}
