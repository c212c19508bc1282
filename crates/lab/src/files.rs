//! The texts of data files: those of this machine, those built into the program, or
//! those that a plan brings along.
//!
//! A run reads each file once, through here: what is checked is what is run, and what
//! was read is what its plan keeps. Where a plan brings the texts, nothing else is
//! read: its run is the same on another machine, and after a file has changed.

use raidlab_units::{PathError, cannot};
use raidlab_workload::Permission;
use std::collections::BTreeMap;
use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The beginning of the names of built-in files, which no path has.
const BUILT_IN: &str = "built in: ";

/// Texts by their names: a path as it is written, or [`built_in`].
#[derive(Debug, Default)]
pub struct Files {
    texts: Mutex<BTreeMap<String, String>>,
    /// Whether these are all files: others are not looked for on this machine.
    complete: bool,
    /// The permission for what the files may ask of fio beside its load.
    permission: Permission,
}

/// The name of a built-in file of this folder of the repository among a plan's files.
#[must_use]
pub fn built_in(folder: &str, name: &str) -> String {
    format!("{BUILT_IN}{folder}/{name}")
}

/// The folder and the name in a name made by [`built_in`]; `None` for a path.
#[must_use]
pub fn as_built_in(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix(BUILT_IN)?.split_once('/')
}

impl Files {
    /// The files that a plan brought with it; no others are looked for on this machine.
    #[must_use]
    pub fn brought(texts: BTreeMap<String, String>) -> Self {
        Self {
            texts: Mutex::new(texts),
            complete: true,
            permission: Permission::default(),
        }
    }

    /// The same files, with this permission for what they may ask of fio.
    #[must_use]
    pub fn allowing(self, permission: Permission) -> Self {
        Self { permission, ..self }
    }

    /// The permission for what the files may ask of fio beside its load.
    #[must_use]
    pub const fn permission(&self) -> &Permission {
        &self.permission
    }

    /// All texts that were read so far, or brought by a plan.
    #[must_use]
    pub fn texts(&self) -> BTreeMap<String, String> {
        self.lock().clone()
    }

    /// The text of this name, which `read` provides the first time.
    ///
    /// # Errors
    /// As `read`; an error of its own where a plan's files are complete and this is not among them.
    pub fn text<E: From<PathError>>(
        &self,
        name: &str,
        read: impl FnOnce() -> Result<String, E>,
    ) -> Result<String, E> {
        if let Some(text) = self.lock().get(name) {
            return Ok(text.clone());
        }
        if self.complete {
            let words = "it is not among the files of the plan";
            let lacking = io::Error::new(io::ErrorKind::NotFound, words);
            return Err(cannot("read", name)(lacking).into());
        }
        let text = read()?;
        self.lock().insert(name.to_owned(), text.clone());
        Ok(text)
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, String>> {
        // A panic cannot leave a map of texts half changed, so a poisoned lock is used.
        self.texts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_once_and_a_plan_brings_all() {
        let files = Files::default();
        let text = |files: &Files, name: &str, text: &str| {
            let found: Result<String, PathError> = files.text(name, || Ok(text.to_owned()));
            found.map_err(|error| error.source.to_string())
        };
        assert_eq!(text(&files, "a.toml", "1").as_deref(), Ok("1"));
        assert_eq!(text(&files, "a.toml", "2").as_deref(), Ok("1"));
        let missing = || Err(cannot("read", "b.toml")(io::ErrorKind::NotFound.into()));
        let failed = files.text("b.toml", missing).expect_err("not there");
        assert_eq!(failed.source.kind(), io::ErrorKind::NotFound);
        let brought = Files::brought(files.texts());
        assert_eq!(text(&brought, "a.toml", "3").as_deref(), Ok("1"));
        let error = text(&brought, "b.toml", "3").expect_err("not brought");
        assert!(error.contains("not among the files"), "{error}");
    }

    #[test]
    fn built_in_files_have_names_that_no_path_has() {
        let name = built_in("suites", "quick");
        assert_eq!(as_built_in(&name), Some(("suites", "quick")));
        assert_eq!(as_built_in("suites/quick.toml"), None);
    }
}
