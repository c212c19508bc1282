//! Why an array system could not answer.

use raidlab_shell::TargetError;

/// Why a system could not answer.
#[derive(Debug, thiserror::Error)]
pub enum SystemError {
    /// The machine could not be asked.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// What it said was not understood.
    #[error("cannot understand {source_name}, line {line}: {problem}")]
    Unreadable {
        /// `zpool status`, `lvs --reportformat json`.
        source_name: String,
        /// The line, from 1; 0 for the whole.
        line: usize,
        /// What of the line was not understood, in words.
        problem: String,
    },
    /// This kind of array cannot do that.
    #[error("{system} cannot {what}: {reason}")]
    Unsupported {
        /// What people call the array: `md linear`.
        system: String,
        /// `remove a member`.
        what: String,
        /// Why, and what to do instead.
        reason: String,
    },
    /// The array is not there.
    #[error("there is no array `{name}`")]
    NoArray {
        /// The name by which it was looked for.
        name: String,
    },
}

/// What a system answers, or why it could not.
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
