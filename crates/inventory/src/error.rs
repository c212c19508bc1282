//! What can go wrong while a machine is looked at.

use raidlab_shell::TargetError;

/// A machine could not be looked at.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// A command or file could not be had.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// Something answered in a form that is not known.
    #[error("{machine}: {origin}: {problem}")]
    Format {
        /// The machine that was looked at.
        machine: String,
        /// The command or file that answered.
        origin: String,
        /// What is wrong with the answer, with its line where it has lines.
        problem: String,
    },
    /// A system for which nothing is known here.
    #[error("{machine} runs {system}: only Linux and FreeBSD are known")]
    UnknownSystem {
        /// The machine that was looked at.
        machine: String,
        /// What `uname -s` says.
        system: String,
    },
}
