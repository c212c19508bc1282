//! Errors of array systems.

use raidlab_shell::TargetError;

/// The reason why a system could not answer.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// The machine could not be queried.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// An answer was not understood.
    #[error("cannot understand {source_name}, line {line}: {problem}")]
    Unreadable {
        /// The command that gave it: `zpool status`, `lvs --reportformat json`.
        source_name: String,
        /// The line, from 1; 0 for the whole output.
        line: usize,
        /// The problem in words.
        problem: String,
    },
    /// This kind of array cannot do what was asked.
    #[error("{system} cannot {what}: {reason}")]
    Unsupported {
        /// The name of the array for people: `md linear`.
        system: String,
        /// The requested action: `remove a member`.
        what: String,
        /// The reason, and what to do instead.
        reason: String,
    },
    /// The array does not exist.
    #[error("there is no array `{name}`")]
    NoArray {
        /// The name that was looked for.
        name: String,
    },
}

/// The answer of a system, or its error.
pub(crate) type Result<T, E = SystemError> = std::result::Result<T, E>;

impl SystemError {
    pub(crate) fn unreadable(
        source_name: impl Into<String>,
        line: usize,
        problem: impl Into<String>,
    ) -> Self {
        Self::Unreadable {
            source_name: source_name.into(),
            line,
            problem: problem.into(),
        }
    }

    pub(crate) fn unsupported(system: &str, what: &str, reason: impl Into<String>) -> Self {
        Self::Unsupported {
            system: system.to_owned(),
            what: what.to_owned(),
            reason: reason.into(),
        }
    }

    pub(crate) fn no_array(name: &str) -> Self {
        Self::NoArray {
            name: name.to_owned(),
        }
    }
}
