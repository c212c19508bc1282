//! Files that outputs go to.
//!
//! An output takes a name that is free, or replaces a file that raidlab itself wrote as an output
//! of the same format: every format begins with a mark by which it is recognized. Anything else
//! under the name, a folder, a pipe, a device, a database, a dangling link, a foreign file, stays
//! as it is, and the refusal says what it is. An empty file has nothing to lose and is replaced.
//!
//! The new file is written beside the old one under another name, with the old one's owner
//! and permissions, synced, and renamed: no reader ever sees half of it, and until then the
//! old one stays.

mod found;

pub use found::{Found, PROCESSOR, SCRIPT, look};

use crate::text::visible_path;
use raidlab_units::{PathError, cannot};
use std::ffi::OsStr;
use std::fs::{self, File, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// The format of an output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A report or a comparison as a page of HTML.
    Page,
    /// A report or a comparison as Markdown.
    Markdown,
    /// Measurements as comma-separated values.
    Rows,
    /// The use of members as comma-separated values.
    MemberRows,
    /// Measurements as lines of JSON.
    JsonLines,
    /// The commands of an experiment's disks as comma-separated values.
    DiskCommands,
    /// A plan of a run as JSON.
    Plan,
    /// A part of a fault simulation as JSON.
    SimulationPart,
    /// A table of a run as Parquet.
    Parquet,
    /// A script for a scheduler.
    Script,
    /// A record of the scheduler's jobs that make a run.
    Submission,
    /// The measured properties of a processor.
    Processor,
    /// A store of runs, which is not replaced but added to.
    Store,
}

/// Why a file cannot be an output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OutputError {
    /// The name is that of something else.
    #[error("{} is {found}; it was left as it is", visible_path(.path))]
    Taken {
        /// The path that the output was to have.
        path: PathBuf,
        /// The thing that stands at that path.
        found: Found,
    },
    /// Two outputs have the same path.
    #[error("{first} and {second} both go to {}", visible_path(.path))]
    Twice {
        /// The option that names the path first.
        first: String,
        /// The option that names the path again.
        second: String,
        /// The path that both name.
        path: PathBuf,
    },
    /// The folder of the path does not exist.
    #[error("cannot write {}: there is no folder {}; make it first", visible_path(.path), visible_path(folder_of(.path)))]
    NoFolder {
        /// The path that the output was to have.
        path: PathBuf,
    },
    /// The operating system refuses the write.
    #[error(transparent)]
    Write(#[from] PathError),
}

/// A file that is being written, and gets its name once it is whole. Dropped before that,
/// it leaves nothing.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    format: Format,
    part: NamedTempFile,
}

impl OutputFile {
    /// Begins a file beside `path`.
    ///
    /// # Errors
    /// When something stands there that is not raidlab's, or the folder cannot be
    /// written to.
    pub fn begin(path: &Path, format: Format) -> Result<Self, OutputError> {
        let old = replaceable(path, format)?;
        let path = path.to_owned();
        if !folder_of(&path).is_dir() {
            return Err(OutputError::NoFolder { path });
        }
        let part = temporary(&path, old.as_ref()).map_err(cannot("write", &path))?;
        Ok(Self { path, format, part })
    }

    /// Gives the file its name, once all of it is on the disk.
    ///
    /// # Errors
    /// As [`Self::begin`], and when the disk does not take it.
    pub fn finish(self) -> Result<(), OutputError> {
        // The first check may be hours old.
        replaceable(&self.path, self.format)?;
        let path = self.path;
        // A link to a file of ours stays a link.
        let place = fs::canonicalize(&path).unwrap_or_else(|_| path.clone());
        let named = (self.part.as_file().sync_all())
            .and_then(|()| self.part.persist(&place).map_err(|error| error.error))
            .and_then(|_| File::open(folder_of(&place))?.sync_all());
        Ok(named.map_err(cannot("write", &path))?)
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        // Errors of the part itself would name its temporary name, which the user does not know.
        self.part.as_file_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.part.as_file_mut().flush()
    }
}

/// Writes a file atomically.
///
/// # Errors
/// When something stands there that is not raidlab's, or it cannot be written; an earlier file is
/// then still there.
pub fn write(path: &Path, format: Format, bytes: &[u8]) -> Result<(), OutputError> {
    let mut file = OutputFile::begin(path, format)?;
    (file.write_all(bytes)).map_err(cannot("write", path))?;
    file.finish()
}

/// Gives a file another name in the same folder, once all of it is on the disk.
pub(crate) fn rename(from: &Path, to: &Path) -> io::Result<()> {
    File::open(from)?.sync_all()?;
    fs::rename(from, to)?;
    File::open(folder_of(to))?.sync_all()
}

/// Checks that a file of this format may have the name `path`, and touches nothing.
///
/// # Errors
/// When the name is that of something else.
pub fn check(path: &Path, format: Format) -> Result<(), OutputError> {
    replaceable(path, format).map(drop)
}

/// Does what [`check()`] does, and checks that the folder can be written to.
///
/// # Errors
/// When [`write()`] would fail.
pub fn check_writable(path: &Path, format: Format) -> Result<(), OutputError> {
    OutputFile::begin(path, format).map(drop)
}

/// Checks that no two of these outputs, given as options with the files that they name, are one
/// file. A store also takes the names of its journals.
///
/// # Errors
/// The first two outputs that are the same file.
pub fn check_distinct(outputs: &[(&str, &Path)]) -> Result<(), OutputError> {
    for (index, (second, path)) in outputs.iter().enumerate() {
        for (first, other) in &outputs[..index] {
            if is_same(other, path) || is_journal(other, path) || is_journal(path, other) {
                return Err(OutputError::Twice {
                    first: (*first).to_owned(),
                    second: (*second).to_owned(),
                    path: (*path).to_owned(),
                });
            }
        }
    }
    Ok(())
}

/// The endings of the files that `SQLite` makes beside a database.
const JOURNALS: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Removes a database with its journals, as far as they exist. The database must not be open.
pub fn remove_database(path: &Path) {
    for ending in [""].into_iter().chain(JOURNALS) {
        // A file that cannot be removed gives an error when it is opened next.
        drop(fs::remove_file(beside(path, ending)));
    }
}

/// The file whose name is that of `path` with an ending.
pub(crate) fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

fn is_journal(database: &Path, path: &Path) -> bool {
    let mut journals = JOURNALS.iter();
    journals.any(|ending| is_same(&beside(database, ending), path))
}

/// Whether two names lead to one file, which need not exist yet.
fn is_same(one: &Path, other: &Path) -> bool {
    #[cfg(unix)]
    if let (Ok(one), Ok(other)) = (fs::metadata(one), fs::metadata(other)) {
        use std::os::unix::fs::MetadataExt;
        return (one.dev(), one.ino()) == (other.dev(), other.ino());
    }
    let whole = |path: &Path| {
        let folder = fs::canonicalize(folder_of(path)).unwrap_or_else(|_| folder_of(path).into());
        folder.join(path.file_name().unwrap_or(OsStr::new("")))
    };
    whole(one) == whole(other)
}

/// The folder that a path leads to; `.` for a name alone.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// The metadata of the file that this output would replace; `None` if the name is free.
fn replaceable(path: &Path, format: Format) -> Result<Option<Metadata>, OutputError> {
    match look(path).map_err(cannot("write", path))? {
        Found::Nothing => Ok(None),
        Found::Empty => old(path),
        Found::Ours(one) if one == format => old(path),
        found => Err(OutputError::Taken {
            path: path.to_owned(),
            found,
        }),
    }
}

fn old(path: &Path) -> Result<Option<Metadata>, OutputError> {
    let metadata = fs::metadata(path).map_err(cannot("write", path))?;
    Ok(Some(metadata))
}

/// Creates an empty file beside `path`, with the permissions of the file that it will replace, or
/// of any new file.
fn temporary(path: &Path, old: Option<&Metadata>) -> io::Result<NamedTempFile> {
    let place = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let mut builder = tempfile::Builder::new();
    builder.prefix(".raidlab-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(fs::Permissions::from_mode(0o666));
    }
    // An error of the part would name its temporary name, which the user does not know.
    let part = builder.tempfile_in(folder_of(&place));
    let part = part.map_err(|error| io::Error::from(error.kind()))?;
    if let Some(old) = old {
        #[cfg(unix)]
        {
            use std::os::unix::fs::{MetadataExt, fchown};
            let new = part.as_file().metadata()?;
            if (new.uid(), new.gid()) != (old.uid(), old.gid()) {
                // Only root may give a file away; other users keep what they write.
                fchown(part.as_file(), Some(old.uid()), Some(old.gid())).ok();
            }
        }
        part.as_file().set_permissions(old.permissions())?;
    }
    Ok(part)
}

#[cfg(test)]
mod tests;
