//! The error of a build that did not come to its end, with its remedy.

use crate::cache::CacheError;
use crate::edits::EditError;
use crate::source::SourceError;
use raidlab_shell::TargetError;
use raidlab_units::{PathError, visible_path};
use std::path::PathBuf;

/// The space that an unpacked tree and its objects take, in bytes.
pub(crate) const SPACE: u64 = 4 << 30;

/// The packages of OpenZFS: its source and its tools.
pub(crate) const SOURCE_OF_ZFS: &str = "zfs-dkms";
pub(crate) const TOOLS_OF_ZFS: &str = "zfsutils-linux";

/// A hint where the packages of OpenZFS are, which no other error of apt's gives.
const WHERE_ZFS_IS: &str = "OpenZFS is in Debian's section `contrib`, and the version that Linux \
    6.12 needs (2.3), in Debian 12, in the suite `bookworm-backports`: add `contrib` behind `main` \
    in /etc/apt/sources.list, there also the line `deb http://deb.debian.org/debian \
    bookworm-backports main contrib`, and run `apt-get update`; then its packages are had with \
    `apt-get install -t bookworm-backports zfs-dkms zfsutils-linux`. A kernel of \
    linux-source-6.1 takes the 2.1 of Debian 12 itself";

/// The reason why a build did not come to its end.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// There is no source.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// Packages that the build needs are not installed.
    #[error(
        "a kernel and its guests need packages that are not installed: {}",
        packages.join(", ")
    )]
    Packages {
        /// The names of the packages, as Debian has them.
        packages: Vec<String>,
    },
    /// There is too little space for a tree.
    #[error(
        "{} has {} MiB free; a build takes up to {} MiB, and less than 20 MiB stay",
        visible_path(folder), free >> 20, SPACE >> 20
    )]
    Space {
        /// The folder in which it would be built.
        folder: PathBuf,
        /// The number of bytes that the file system has free.
        free: u64,
    },
    /// The source is not as expected.
    #[error(transparent)]
    Edit(#[from] EditError),
    /// The kernel does not take some settings.
    #[error("the kernel does not take these settings: {}", lacking.join(", "))]
    Configuration {
        /// The kernel's options that are not set.
        lacking: Vec<String>,
    },
    /// A program of the build failed.
    #[error("`{command}` {how}; {} ends with:\n{tail}", visible_path(log))]
    Command {
        /// The program with its arguments.
        command: String,
        /// The end of the program in words.
        how: String,
        /// The file with all the output of the program.
        log: PathBuf,
        /// The log's last lines.
        tail: String,
    },
    /// The disk became full during the build.
    #[error("no space is left for {}", log.parent().unwrap_or(log).display())]
    Full {
        /// The file with all the output of programs until then.
        log: PathBuf,
    },
    /// A program cannot be run.
    #[error("a step of the build cannot be run")]
    Target(#[from] TargetError),
    /// A file cannot be used.
    #[error(transparent)]
    File(#[from] PathError),
    /// The cache cannot be used.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// The user stopped the build.
    #[error("the build was stopped")]
    Cancelled,
}

impl BuildError {
    /// The remedy, where there is one.
    #[must_use]
    pub fn help(&self) -> Option<String> {
        match self {
            Self::Source(error) => error.help(),
            Self::Packages { packages } => Some(remedy(packages)),
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

/// The command line of apt, and where to look for packages that it does not find.
pub(crate) fn remedy(packages: &[String]) -> String {
    let mut words = format!(
        "sudo apt-get install {}\n      or, without root: `--fetch` fetches them into raidlab's \
         own cache and installs nothing",
        packages.join(" ")
    );
    let of_zfs = |package: &String| [SOURCE_OF_ZFS, TOOLS_OF_ZFS].contains(&package.as_str());
    if packages.iter().any(of_zfs) {
        words = format!("{words}\n      {WHERE_ZFS_IS}");
    }
    words
}
