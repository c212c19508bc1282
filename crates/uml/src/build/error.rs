//! Why a build did not come to its end, and what would help.

use super::SPACE;
use crate::cache::CacheError;
use crate::edits::EditError;
use crate::needs;
use crate::source::SourceError;
use crate::zfs::ZfsError;
use raidlab_shell::TargetError;
use std::io;
use std::path::{Path, PathBuf};

/// A build that did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Packages that the build needs.
    #[error(
        "a kernel and its guests need packages that are not installed: {}",
        packages.join(", ")
    )]
    Packages {
        /// Debian's names.
        packages: Vec<String>,
    },
    /// Somebody builds it already.
    #[error("the kernel {name} is being built by another raidlab")]
    Busy {
        /// The name as it was given.
        name: String,
    },
    /// Too little space for a tree.
    #[error(
        "{} has {} MiB free; a build takes up to {} MiB, and less than 20 MiB stay",
        folder.display(), free >> 20, SPACE >> 20
    )]
    Space {
        /// Where it would be built.
        folder: PathBuf,
        /// Bytes that are free.
        free: u64,
    },
    /// The source is not as expected.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// Settings that the kernel does not take.
    #[error("the kernel does not take these settings: {}", lacking.join(", "))]
    Configuration {
        /// The kernel's options that are not set.
        lacking: Vec<String>,
    },
    /// OpenZFS cannot be built in.
    #[error(transparent)]
    Zfs(#[from] ZfsError),
    /// A program failed.
    #[error("`{command}` {how}; {} ends with:\n{tail}", log.display())]
    Command {
        /// The program with its arguments.
        command: String,
        /// How it ended.
        how: String,
        /// All that it said.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// The disk is full.
    #[error("no space is left for {}", log.parent().unwrap_or(log).display())]
    Full {
        /// All that was said.
        log: PathBuf,
    },
    /// A program cannot be run.
    #[error("a step of the build cannot be run")]
    Target(#[from] TargetError),
    /// A file cannot be used.
    #[error("cannot use {}", path.display())]
    File {
        /// The file or folder that could not be used.
        path: PathBuf,
        /// What the operating system answered.
        #[source]
        source: io::Error,
    },
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// It was stopped.
    #[error("the build was stopped")]
    Cancelled,
}

impl BuildError {
    pub(crate) fn file(path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self::File { path, source }
    }

    /// What would help.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Source(error) => error.help(),
            Self::Zfs(error) => error.help(),
            Self::Packages { packages } => Some(needs::remedy(packages)),
            Self::Space { .. } | Self::Full { .. } => {
                Some("free some space, or name a folder elsewhere in XDG_CACHE_HOME".to_owned())
            }
            Self::Command { .. } | Self::Cancelled => {
                Some("the same command goes on where it was".to_owned())
            }
            _ => None,
        }
    }
}
