//! What can go wrong with a real machine.

use raidlab_inventory::InventoryError;
use raidlab_inventory::choose::Refusal;
use raidlab_lab::{CapacityError, PlannedJob};
use raidlab_shell::TargetError;
use raidlab_systems::SystemError;
use raidlab_tools::ParseError;
use std::fmt::Display;

/// Why a step on a real machine failed.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The machine could not do it.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The array's system could not do it.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The machine could not be looked at.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// A job does not fit on the array.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    /// Something that the experiment needs is not there.
    #[error("{machine} lacks {}", .missing.join("; "))]
    Missing {
        /// The machine on which that is so.
        machine: String,
        /// What, each with how to install it.
        missing: Vec<String>,
    },
    /// Disks may not be used.
    #[error("disks of {machine} may not be used: {}", list(.refusals))]
    Refused {
        /// The machine on which that is so.
        machine: String,
        /// The disks that may not be used, each with the reason.
        refusals: Vec<Refusal>,
    },
    /// Something was left by another run, or belongs to one that runs.
    #[error("{machine} is taken: {what}")]
    Taken {
        /// The machine on which that is so.
        machine: String,
        /// Which run or program holds the machine, in words.
        what: String,
    },
    /// The subject cannot be built on this machine.
    #[error("{what}")]
    Unsuitable {
        /// What cannot be done here and why, in words.
        what: String,
    },
    /// A tool's output could not be read.
    #[error("cannot read the output of {tool}")]
    Output {
        /// The tool that was called.
        tool: String,
        /// What of the output could not be read.
        #[source]
        source: ParseError,
    },
    /// A tool ended with an error or was ended by a signal.
    #[error("{command} {how}")]
    Tool {
        /// The command line of the tool.
        command: String,
        /// How the tool ended, in words: its exit code or signal.
        how: String,
    },
    /// A state was not reached in time.
    #[error("{what} within {seconds} s")]
    Late {
        /// What was waited for.
        what: String,
        /// The time that it had, in seconds.
        seconds: u64,
    },
    /// Something is still there after everything was taken down.
    #[error("{machine} still has {what}; `raidlab cleanup` finds it")]
    LeftBehind {
        /// The machine on which that is so.
        machine: String,
        /// What was being done or looked for, in words that follow the error.
        what: String,
    },
    /// The run was asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl HostError {
    /// What a job asks for cannot be done.
    pub(crate) fn of_job(job: &PlannedJob, what: impl Display) -> Self {
        let what = format!("job `{}`: {what}", job.name);
        Self::Unsuitable { what }
    }

    /// Whether another run has the machine, which ends some time.
    #[must_use]
    pub const fn is_of_another_run(&self) -> bool {
        matches!(self, Self::Target(TargetError::Locked { .. }))
    }
}

fn list(refusals: &[Refusal]) -> String {
    let texts: Vec<String> = refusals.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
