//! The errors of a bench on a real machine.

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
    /// The machine could not carry out a command.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The array's system could not carry out an operation.
    #[error(transparent)]
    System(#[from] SystemError),
    /// The machine's hardware could not be inspected.
    #[error(transparent)]
    Inventory(#[from] InventoryError),
    /// A job does not fit on the array.
    #[error(transparent)]
    Capacity(#[from] CapacityError),
    /// A program or module that the experiment needs is missing.
    #[error("{machine} lacks {}", .missing.join("; "))]
    Missing {
        /// The machine that lacks it.
        machine: String,
        /// The missing things, each with how to install it.
        missing: Vec<String>,
    },
    /// Disks may not be used.
    #[error("disks of {machine} may not be used: {}", list(.refusals))]
    Refused {
        /// The machine with the disks.
        machine: String,
        /// The disks that may not be used, each with the reason.
        refusals: Vec<Refusal>,
    },
    /// The machine holds what another run left, or is used by one that is under way.
    #[error("{machine} is taken: {what}")]
    Taken {
        /// The machine in question.
        machine: String,
        /// The run or program that holds the machine, in words.
        what: String,
    },
    /// The subject cannot be built on this machine.
    #[error("{what}")]
    Unsuitable {
        /// The thing that cannot be done on the machine, and why, in words.
        what: String,
    },
    /// A tool's output could not be read.
    #[error("cannot read the output of {tool}")]
    Output {
        /// The tool that was called.
        tool: String,
        /// The error of the output's parser.
        #[source]
        source: ParseError,
    },
    /// A tool ended with an error or was ended by a signal.
    #[error("{command} {how}")]
    Tool {
        /// The command line of the tool.
        command: String,
        /// The end of the tool in words: its exit code or signal.
        how: String,
    },
    /// A state was not reached in time.
    #[error("{what} within {seconds} s")]
    Late {
        /// The state that was waited for.
        what: String,
        /// The time limit, in seconds.
        seconds: u64,
    },
    /// Something is still there after everything was taken down.
    #[error("{machine} still has {what}; `raidlab cleanup` finds it")]
    LeftBehind {
        /// The machine on which something is left.
        machine: String,
        /// The things that are left, in words.
        what: String,
    },
    /// The run was asked to stop.
    #[error("interrupted")]
    Interrupted,
}

impl HostError {
    /// The error for a job that asks for something impossible.
    pub(crate) fn of_job(job: &PlannedJob, what: impl Display) -> Self {
        let what = format!("job `{}`: {what}", job.name);
        Self::Unsuitable { what }
    }

    /// Whether another run holds the machine, so that waiting helps.
    #[must_use]
    pub const fn is_of_another_run(&self) -> bool {
        matches!(self, Self::Target(TargetError::Locked { .. }))
    }
}

fn list(refusals: &[Refusal]) -> String {
    let texts: Vec<String> = refusals.iter().map(ToString::to_string).collect();
    texts.join("; ")
}
