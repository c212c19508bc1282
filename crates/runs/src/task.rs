//! A run to be done: the arguments, the texts of files, and how it is done here.

use crate::asked::{Asked, Here, On};
use crate::failure::{Failure, Kind};
use crate::front::Front;
use crate::typed;
use raidlab_bench_host::{HostError, Machine};
use raidlab_lab::{Experiment, Files, Plan, Subject};
use raidlab_shell::Lock;
use raidlab_store::RunSummary;
use std::num::NonZero;
use std::sync::Arc;

/// The number of threads: as asked for, or as many as there are processors.
#[must_use]
pub fn threads(asked: Option<NonZero<u16>>) -> usize {
    match asked {
        Some(threads) => usize::from(threads.get()),
        None => std::thread::available_parallelism().map_or(1, NonZero::get),
    }
}

/// The holder of a lock, for other processes to read: this process and its command.
pub(crate) fn holder() -> String {
    format!(
        "`{}` (process {}, since {})",
        typed::command_line(),
        std::process::id(),
        jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ")
    )
}

/// Locks a machine for this process, until the lock is dropped.
///
/// # Errors
/// When a run is under way there, or no lock can be taken.
pub fn hold(machine: &Machine) -> Result<Lock, Failure> {
    machine.lock(&holder()).map_err(not_held)
}

fn not_held(error: HostError) -> Failure {
    let help = match error.is_of_another_run() {
        true => "wait until it has ended",
        false => "arrays, mounts and loop devices need root",
    };
    Failure::run(error).help(help)
}

/// A run to be done.
pub struct Task {
    pub(crate) asked: Asked,
    pub(crate) here: Here,
    pub(crate) files: Arc<Files>,
    pub(crate) front: &'static dyn Front,
    /// The plan that the run follows; `None`: it is planned now.
    pub(crate) planned: Option<Plan<Asked>>,
    /// The earlier run that is resumed.
    pub(crate) resumed: Option<RunSummary>,
}

impl Task {
    /// The bench that is asked for.
    #[must_use]
    pub const fn on(&self) -> On {
        self.asked.on
    }

    /// Whether this experiment is to be done: where there is a plan, whether the plan has it.
    pub(crate) fn plans(&self, experiment: &Experiment, repetitions: u32) -> bool {
        self.planned.as_ref().is_none_or(|plan| {
            let label = experiment.label(repetitions);
            plan.experiments.iter().any(|one| one.label == label)
        })
    }

    /// Refuses targets that files name and the user has not allowed.
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

#[cfg(test)]
mod tests {
    use super::not_held;
    use raidlab_bench_host::HostError;
    use raidlab_shell::TargetError;

    #[test]
    fn who_finds_a_machine_taken_is_told_to_wait() {
        let said = |error: TargetError| not_held(HostError::from(error)).to_string();
        let machine = || "localhost".to_owned();
        let locked = said(TargetError::Locked {
            machine: machine(),
            path: "/run/raidlab.lock".to_owned(),
            holder: "`raidlab run quick`".to_owned(),
        });
        assert!(locked.contains("help: wait until it has ended"), "{locked}");
        let denied = said(TargetError::Io {
            machine: machine(),
            action: "lock /run/raidlab.lock".to_owned(),
            source: std::io::ErrorKind::PermissionDenied.into(),
        });
        assert!(denied.contains("need root"), "{denied}");
    }
}
