//! A run to be done: what is asked for, of which files, and how it is done here.

use crate::asked::{Asked, Here, On};
use crate::failure::{Failure, Kind};
use crate::front::Front;
use crate::typed;
use raidlab_lab::{Experiment, Files, Plan, Subject};
use raidlab_store::RunSummary;
use std::num::NonZero;
use std::sync::Arc;

/// The number of threads asked for, or of processors.
#[must_use]
pub fn threads(asked: Option<NonZero<u16>>) -> usize {
    match asked {
        Some(threads) => usize::from(threads.get()),
        None => std::thread::available_parallelism().map_or(1, NonZero::get),
    }
}

/// Who holds a lock, for others to read: this process and what it does.
#[must_use]
pub fn holder() -> String {
    format!(
        "`{}` (process {}, since {})",
        typed::command_line(),
        std::process::id(),
        jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ")
    )
}

/// A run to be done.
pub struct Task {
    pub(crate) asked: Asked,
    pub(crate) here: Here,
    pub(crate) files: Arc<Files>,
    pub(crate) front: &'static dyn Front,
    /// The plan that it is of; `None`: it is planned now.
    pub(crate) planned: Option<Plan<Asked>>,
    /// The run that goes on with it.
    pub(crate) resumed: Option<RunSummary>,
}

impl Task {
    /// The bench that is asked for.
    #[must_use]
    pub const fn on(&self) -> On {
        self.asked.on
    }

    /// Whether this experiment is to be done: where there is a plan, one of the plan's.
    pub(crate) fn plans(&self, experiment: &Experiment, repetitions: u32) -> bool {
        self.planned.as_ref().is_none_or(|plan| {
            let label = experiment.label(repetitions);
            plan.experiments.iter().any(|one| one.label == label)
        })
    }

    /// Refuses targets that files name and nobody has allowed.
    ///
    /// # Errors
    /// With the target, and what would allow it.
    pub(crate) fn check_targets(&self, subjects: &[Subject]) -> Result<(), Failure> {
        for subject in subjects {
            let Some(target) = subject.own_target() else {
                continue;
            };
            let mut allowed = self.here.allowed_targets.iter();
            if !allowed.any(|allowed| allowed == target) {
                let words = format!(
                    "the file of subject `{}` names what is written to, `{target}`, which no \
                     file may do",
                    subject.name
                );
                let help = format!("`--allow-target {target}` allows it for this run");
                return Err(Failure::words(Kind::Input, words).help(help));
            }
        }
        Ok(())
    }
}
