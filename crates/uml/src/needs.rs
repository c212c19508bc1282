//! What a build needs of the machine: programs, headers, space.

use std::env;
use std::path::{Path, PathBuf};

/// A program or a header, and the package of Debian's that has it.
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

/// Headers of the C library's, below `/usr/include`.
const HEADERS: [(&str, &str); 1] = [("stdio.h", "libc6-dev")];

/// The packages that are missing.
pub(crate) fn missing_packages() -> Vec<&'static str> {
    let path = env::var_os("PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = env::split_paths(&path).collect();
    missing_among(&folders, Path::new("/usr/include"))
}

fn missing_among(folders: &[PathBuf], headers: &Path) -> Vec<&'static str> {
    let has = |name: &&str| folders.iter().any(|folder| folder.join(name).is_file());
    let programs = NEEDED.iter().filter(|(name, _)| !has(name));
    let headers = HEADERS
        .iter()
        .filter(|(name, _)| !headers.join(name).is_file());
    programs
        .chain(headers)
        .map(|(_, package)| *package)
        .collect()
}

/// Bytes that a user may still write in a folder's file system.
pub(crate) fn free_bytes(folder: &Path) -> Option<u64> {
    let known = rustix::fs::statvfs(folder).ok()?;
    known.f_bavail.checked_mul(known.f_frsize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn all_that_is_missing_is_named_at_once() {
        let folder = tempfile::tempdir().expect("a folder");
        for name in ["make", "gcc", "ld", "perl", "tar", "xz"] {
            fs::write(folder.path().join(name), "").expect("written");
        }
        let folders = [PathBuf::from("/nonexistent"), folder.path().to_owned()];
        let missing = missing_among(&folders, folder.path());
        assert_eq!(missing, ["flex", "bison", "bc", "libc6-dev"]);
        fs::write(folder.path().join("stdio.h"), "").expect("written");
        let missing = missing_among(&folders, folder.path());
        assert_eq!(missing, ["flex", "bison", "bc"]);
    }

    #[test]
    fn a_folder_that_is_not_there_has_no_known_space() {
        assert!(free_bytes(Path::new("/")).is_some());
        assert_eq!(free_bytes(Path::new("/nonexistent/folder")), None);
    }
}
