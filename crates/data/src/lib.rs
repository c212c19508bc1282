//! The repository's data files, built into the program: suites, subjects, disks, and
//! what was published, claimed and measured of them.
//!
//! The build finds the files: every `.toml` file in the folders `suites`, `subjects`, `disks`,
//! `processors`, `published`, `claims` and `facts` of `data/` is here under its own name.

/// A file built into the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    /// The name of the file without `.toml`, by which it is found.
    pub name: &'static str,
    /// The text of the file, comments included.
    pub text: &'static str,
}

/// The files of each folder, by name.
const FOLDERS: &[(&str, &[Entry])] = include!(concat!(env!("OUT_DIR"), "/folders.rs"));

/// The files of a folder of `data/`, by name; none where it is no folder of data.
#[must_use]
pub fn entries(folder: &str) -> &'static [Entry] {
    let found = FOLDERS.iter().find(|(name, _)| *name == folder);
    found.map_or(&[], |(_, entries)| entries)
}

/// The text of a file by its folder and name; `None`: there is no such file.
#[must_use]
pub fn text(folder: &str, name: &str) -> Option<&'static str> {
    let found = entries(folder).iter().find(|entry| entry.name == name);
    found.map(|entry| entry.text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn every_data_file_of_the_repository_is_built_in() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../data");
        for (folder, entries) in FOLDERS {
            assert!(!entries.is_empty(), "{folder}");
            let files = std::fs::read_dir(root.join(folder)).expect(folder);
            assert_eq!(files.count(), entries.len(), "{folder}");
            assert!(entries.is_sorted_by_key(|entry| entry.name), "{folder}");
            for entry in *entries {
                let file = root.join(folder).join(format!("{}.toml", entry.name));
                let there = std::fs::read_to_string(&file).expect(entry.name);
                assert_eq!(text(folder, entry.name), Some(there.as_str()));
            }
        }
        assert_eq!(text("suites", "none of them"), None);
        assert_eq!(text("nowhere", "quick"), None);
    }
}
