//! The needs of a kernel, and of guests on it, that the machine must meet: programs,
//! headers, sources, space.
//!
//! All that is missing is told before anything is done, in one line for apt. A build that ended
//! after a quarter of an hour to say that the guest's tools are missing would be no help.

use crate::boot::{SHARED_MEMORY, remove_abandoned};
use crate::error::{SOURCE_OF_ZFS, TOOLS_OF_ZFS};
use crate::image;
use crate::packages::Packages;
use crate::source::{Source, SourceError};
use crate::zfs;
use raidlab_units::Bytes;
use std::path::{Path, PathBuf};

/// The programs and headers that are needed, each with the package of Debian's that has it.
const NEEDED: [(&str, &str); 9] = [
    ("make", "make"),
    ("gcc", "gcc"),
    ("ld", "binutils"),
    ("flex", "flex"),
    ("bison", "bison"),
    ("bc", "bc"),
    ("perl", "perl"),
    ("tar", "tar"),
    ("xz", "xz-utils"),
];

/// Headers of the C library, below `/usr/include`.
const HEADERS: [(&str, &str); 1] = [("stdio.h", "libc6-dev")];

/// The version of the source when none is installed and none is named.
const USUAL: &str = "6.12";

/// The sources with which a build begins.
#[derive(Debug)]
pub(crate) struct Found {
    /// The kernel's source.
    pub(crate) source: Source,
    /// The source of OpenZFS, where it is wanted.
    pub(crate) zfs: Option<zfs::Source>,
}

/// Looks for everything that a build and its guests need; `packages` gets those that are
/// missing, each once.
///
/// # Errors
/// When the source that is named is none; a package that is not installed is no error here.
pub(crate) fn find(
    wanted: Option<&str>,
    with_zfs: bool,
    fetched: &Packages,
) -> Result<Result<Found, Vec<String>>, SourceError> {
    let root = fetched.root();
    let headers = ["/".into(), root.clone()].map(|root: PathBuf| root.join("usr/include"));
    let missing = missing_among(&fetched.program_folders(), &headers);
    let mut packages: Vec<String> = missing.into_iter().map(str::to_owned).collect();
    let source = match Source::find(wanted, &root) {
        Ok(source) => Some(source),
        Err(SourceError::NoPackage { version }) => {
            let version = version.as_deref().unwrap_or(USUAL);
            packages.push(format!("linux-source-{version}"));
            None
        }
        Err(error) => return Err(error),
    };
    packages.extend(image::missing_packages(&root));
    let zfs = if with_zfs {
        let source = zfs::Source::find(&root);
        if source.is_none() {
            packages.push(SOURCE_OF_ZFS.to_owned());
        }
        if image::lacks_tools_of_zfs(&root) {
            packages.push(TOOLS_OF_ZFS.to_owned());
        }
        source
    } else {
        None
    };
    let mut seen = std::collections::BTreeSet::new();
    packages.retain(|package| seen.insert(package.clone()));
    Ok(match source {
        Some(source) if packages.is_empty() => Ok(Found { source, zfs }),
        _ => Err(packages),
    })
}

/// The packages that are missing for building.
fn missing_among(folders: &[PathBuf], headers: &[PathBuf]) -> Vec<&'static str> {
    let has = |name: &&str| folders.iter().any(|folder| folder.join(name).is_file());
    let programs = NEEDED.iter().filter(|(name, _)| !has(name));
    let headers = HEADERS
        .iter()
        .filter(|(name, _)| !headers.iter().any(|folder| folder.join(name).is_file()));
    programs
        .chain(headers)
        .map(|(_, package)| *package)
        .collect()
}

/// The space that the folder of shared memory has left for guests, whose memory is a file
/// in it; `None` where the system does not say. Folders that killed runs have left there
/// are removed before.
#[must_use]
pub fn shared_memory_left() -> Option<Bytes> {
    let folder = Path::new(SHARED_MEMORY);
    remove_abandoned(folder);
    free_bytes(folder).map(Bytes)
}

/// Bytes that a user may still write in a folder's file system.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let known = rustix::fs::statvfs(folder).ok()?;
    known.f_bavail.checked_mul(known.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::Cache;
    use crate::error::remedy;
    use std::fs;

    #[test]
    fn all_that_is_missing_is_named_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["make", "gcc", "ld", "perl", "tar", "xz"] {
            fs::write(folder.path().join(name), "").expect("written");
        }
        let folders = [PathBuf::from("/nonexistent"), folder.path().to_owned()];
        let missing = missing_among(&folders, &[folder.path().to_owned()]);
        assert_eq!(missing, ["flex", "bison", "bc", "libc6-dev"]);
        fs::write(folder.path().join("stdio.h"), "").expect("written");
        let missing = missing_among(&folders, &[folder.path().to_owned()]);
        assert_eq!(missing, ["flex", "bison", "bc"]);
    }

    #[test]
    fn a_source_that_is_not_installed_is_one_of_the_packages() {
        let folder = tempfile::tempdir().expect("a folder");
        let fetched = Packages::of(&Cache::in_folder(folder.path().to_owned()));
        let found = find(Some("6.99"), true, &fetched).expect("a version may be missing");
        let missing = found.expect_err("there is no such kernel");
        let named = missing.iter().filter(|one| *one == "linux-source-6.99");
        assert_eq!(named.count(), 1, "{missing:?}");
        find(Some("/nonexistent/folder"), false, &fetched).expect_err("no tree");
    }

    #[test]
    fn the_remedy_is_one_line_and_says_where_openzfs_is() {
        let packages = ["flex", "busybox"].map(str::to_owned);
        let words = remedy(&packages);
        assert_eq!(
            words.lines().next(),
            Some("sudo apt-get install flex busybox")
        );
        assert!(
            words.contains("--fetch") && !words.contains("contrib"),
            "{words}"
        );
        let with_zfs = remedy(&["flex", "zfs-dkms"].map(str::to_owned));
        let mut lines = with_zfs.lines();
        assert_eq!(lines.next(), Some("sudo apt-get install flex zfs-dkms"));
        for word in ["contrib", "bookworm-backports", "apt-get update"] {
            assert!(with_zfs.contains(word), "{with_zfs}");
        }
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_known_space() {
        assert!(free_bytes(Path::new("/")).is_some());
        assert_eq!(free_bytes(Path::new("/nonexistent/folder")), None);
    }
}
