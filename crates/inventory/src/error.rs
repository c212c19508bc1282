//! Errors of inspecting a machine.

use raidlab_shell::TargetError;

/// The reason why a machine could not be inspected.
#[derive(Debug, thiserror::Error)]
pub enum InventoryError {
    /// A command or file could not be read.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A command or file answered in an unknown form.
    #[error("{machine}: {origin}: {problem}")]
    Format {
        /// The machine that was looked at.
        machine: String,
        /// The command or file with that answer.
        origin: String,
        /// The problem with the answer, with its line where it has lines.
        problem: String,
    },
    /// The operating system is not supported.
    #[error("{machine} runs {system}: only Linux and FreeBSD are known")]
    UnknownSystem {
        /// The machine that was looked at.
        machine: String,
        /// The answer of `uname -s`.
        system: String,
    },
}
