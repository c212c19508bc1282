//! The data files: those built into the program, and the user's own.
//!
//! A name with a `/` in it or ending in `.toml` is a path and wins; any other
//! name is looked up among the files built in from the repository's `suites`,
//! `subjects`, `published` and `claims` folders.

use crate::document::{Document, FileError};
use crate::files::{Files, built_in};
use crate::host::{Host, read_hosts, read_one};
use crate::recognized::FileKind;
use raidlab_data::Entry;
use raidlab_store::read_bytes;
use raidlab_units::{PathError, cannot, nearest, text_of};
use raidlab_workload::{JobFileError, OptionError};
use std::path::{Path, PathBuf};

/// The reason why a suite, a subject or published figures could not be loaded.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file is wrong.
    #[error(transparent)]
    File(#[from] FileError),
    /// A file that a suite names is wrong.
    #[error("{error}")]
    Named {
        /// The kind of the file.
        kind: Kind,
        /// The error in the file.
        error: Box<FileError>,
    },
    /// Nothing built in has this name.
    #[error("{what} `{name}` is not known{}", nearby(.name, .known))]
    Unknown {
        /// The kind of the name: `suite`, `subject`, `published figures`.
        what: &'static str,
        /// The name as given.
        name: String,
        /// The names that exist.
        known: Vec<String>,
    },
    /// The fio job file is wrong.
    #[error(transparent)]
    JobFile(#[from] JobFileError),
    /// A word in braces of the fio job file is wrong.
    #[error("{file}: {error}")]
    Placeholder {
        /// The job file.
        file: String,
        /// The error of the placeholder.
        error: crate::PlaceholderError,
    },
    /// The file of an article's figures is wrong.
    #[error(transparent)]
    Figures(#[from] raidlab_import::ImportError),
    /// The file could not be read.
    #[error(transparent)]
    Read(#[from] PathError),
}

impl LoadError {
    /// Whether the file that was read as a job file of fio is one beyond doubt: the error is about
    /// an option that fio has.
    #[must_use]
    pub fn is_in_a_job_file(&self) -> bool {
        match self {
            Self::JobFile(JobFileError::Option { cause, .. }) => {
                !matches!(**cause, OptionError::Unknown { .. })
            }
            Self::JobFile(JobFileError::Job { .. }) | Self::Placeholder { .. } => true,
            _ => false,
        }
    }

    /// Turns the error into that of a file of this kind that a suite names.
    pub(crate) fn named(self, kind: Kind) -> Self {
        match self {
            Self::File(error) => Self::Named {
                kind,
                error: Box::new(error),
            },
            other => other,
        }
    }
}

/// Names similar to an unknown one, in words: `; did you mean ...?`, those that contain it, all
/// where there are few, or nothing.
#[must_use]
pub fn nearby(name: &str, known: &[String]) -> String {
    const FEW: usize = 8;
    if let Some(near) = nearest(name, known) {
        return format!("; did you mean `{near}`?");
    }
    let with: Vec<&str> = known
        .iter()
        .map(String::as_str)
        .filter(|candidate| !name.is_empty() && candidate.contains(name))
        .collect();
    if (1..=FEW).contains(&with.len()) {
        return format!("; with it in their names: {}", with.join(", "));
    }
    if known.len() <= FEW {
        return format!("; known: {}", known.join(", "));
    }
    String::new()
}

/// The kind of thing that a file describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A [`Suite`](crate::Suite), which is run.
    Suite,
    /// A [`Subject`](crate::Subject), which is measured.
    Subject,
    /// Figures of others: [`Published`](crate::Published).
    Published,
    /// The [`Claims`](crate::claims::Claims) of an article.
    Claims,
}

/// The file of hosts, which stands among the subjects that name them.
const HOSTS: &str = "hosts";

impl Kind {
    /// The word for the kind in messages, its folder, and the same kind among all kinds of files.
    const fn parts(self) -> (&'static str, &'static str, FileKind) {
        match self {
            Self::Suite => ("suite", "suites", FileKind::Suite),
            Self::Subject => ("subject", "subjects", FileKind::Subject),
            Self::Published => ("published figures", "published", FileKind::Published),
            Self::Claims => ("claims", "claims", FileKind::Claims),
        }
    }

    /// The folder of the repository that has the files.
    #[must_use]
    pub const fn folder(self) -> &'static str {
        self.parts().1
    }

    /// The built-in files of this kind, by name.
    pub fn entries(self) -> impl Iterator<Item = &'static Entry> {
        let entries = raidlab_data::entries(self.folder()).iter();
        entries.filter(move |entry| self != Self::Subject || entry.name != HOSTS)
    }
}

/// Opens a built-in file as a document.
fn document(files: &Files, folder: &str, entry: &Entry) -> Result<Document, LoadError> {
    let name = built_in(folder, entry.name);
    let text = files.text::<LoadError>(&name, || Ok(entry.text.to_owned()))?;
    Ok(Document {
        file: format!("{}.toml (built in)", entry.name),
        text,
    })
}

/// All built-in hosts.
///
/// # Errors
/// When the built-in file is wrong, which a test rules out.
pub fn hosts() -> Result<Vec<Host>, LoadError> {
    hosts_of(&Files::default())
}

/// All hosts of these files.
///
/// # Errors
/// When the file of hosts is wrong, or not among them.
pub(crate) fn hosts_of(files: &Files) -> Result<Vec<Host>, LoadError> {
    let folder = Kind::Subject.folder();
    let hosts = Entry {
        name: HOSTS,
        text: raidlab_data::text(folder, HOSTS).unwrap_or_default(),
    };
    let document = document(files, folder, &hosts)?;
    Ok(read_hosts(&document)?)
}

/// A built-in host by name, or the one that a file describes.
///
/// # Errors
/// When there is no such host, or its file is wrong or describes several.
pub fn host(files: &Files, name_or_path: &str) -> Result<Host, LoadError> {
    if is_path(name_or_path) {
        return Ok(read_one(&read_document(
            files,
            FileKind::Host,
            name_or_path,
        )?)?);
    }
    let hosts = hosts_of(files)?;
    let known = hosts.iter().map(|host| host.name.clone()).collect();
    let mut hosts = hosts.into_iter();
    let host = hosts.find(|host| host.name == name_or_path);
    host.ok_or_else(|| LoadError::Unknown {
        what: "host",
        name: name_or_path.to_owned(),
        known,
    })
}

/// Whether a name on the command line or in a suite is a path.
#[must_use]
pub fn is_path(name: &str) -> bool {
    name.contains('/')
        || Path::new(name)
            .extension()
            .is_some_and(|extension| extension == "toml")
}

/// Resolves a relative path against `folder`; a name stays as it is.
pub(crate) fn resolve(name_or_path: &str, folder: &Path) -> String {
    if is_path(name_or_path) {
        let path = beside(Path::new(name_or_path), folder);
        path.display().to_string()
    } else {
        name_or_path.to_owned()
    }
}

/// Resolves a path in a file in `folder`: `./x` beside `./suite.toml` is that file as well.
pub(crate) fn beside(path: &Path, folder: &Path) -> PathBuf {
    match path.strip_prefix(".") {
        // Without a folder the dot distinguishes a path from a built-in name.
        Ok(inside) if !folder.as_os_str().is_empty() => folder.join(inside),
        _ => folder.join(path),
    }
}

/// Reads the text of one of these files.
///
/// # Errors
/// As [`read_file`].
pub fn read_text(files: &Files, path: &Path) -> Result<String, LoadError> {
    let name = path.display().to_string();
    files.text(&name, || read_file(path))
}

/// Reads the text of a file, as [`read_bytes`] does.
///
/// # Errors
/// When it cannot be read, is no text, or has more than 16 MiB.
pub fn read_file(path: &Path) -> Result<String, LoadError> {
    const MOST: u64 = 16 << 20;
    let text = read_bytes(path, MOST).and_then(text_of);
    Ok(text.map_err(cannot("read", path))?)
}

/// Opens the file at a path as a document of a kind.
fn read_document(files: &Files, kind: FileKind, path: &str) -> Result<Document, LoadError> {
    let text = read_text(files, Path::new(path))?;
    let file = path.to_owned();
    let document = Document { file, text };
    document.check_kind(kind)?;
    Ok(document)
}

/// Opens the document behind a name or a path.
pub(crate) fn find(files: &Files, kind: Kind, name_or_path: &str) -> Result<Document, LoadError> {
    let (what, folder, kind_of_file) = kind.parts();
    if is_path(name_or_path) {
        return read_document(files, kind_of_file, name_or_path);
    }
    let entry = kind.entries().find(|entry| entry.name == name_or_path);
    let entry = entry.ok_or_else(|| LoadError::Unknown {
        what,
        name: name_or_path.to_owned(),
        known: kind.entries().map(|entry| entry.name.to_owned()).collect(),
    })?;
    document(files, folder, entry)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn one_file_has_one_name_however_it_is_named() {
        for (name, folder, whole) in [
            ("./x.toml", ".", "./x.toml"),
            ("x.toml", ".", "./x.toml"),
            ("././q/x.toml", "a/b", "a/b/q/x.toml"),
            ("../x.toml", "a", "a/../x.toml"),
            ("/q/x.toml", ".", "/q/x.toml"),
            ("./x", "", "./x"),
            ("md", ".", "md"),
        ] {
            assert_eq!(super::resolve(name, Path::new(folder)), whole, "{name}");
        }
    }

    #[test]
    fn a_wrong_name_is_answered_with_what_may_be_meant() {
        let known: Vec<String> = (0..20)
            .map(|one| format!("array-{one}"))
            .chain(["mirror-2015".to_owned(), "mirror-2015-small".to_owned()])
            .collect();
        let near = |name: &str| super::nearby(name, &known);
        assert_eq!(near("miror-2015"), "; did you mean `mirror-2015`?");
        assert_eq!(
            near("mirror"),
            "; with it in their names: mirror-2015, mirror-2015-small"
        );
        assert_eq!(near("arr"), "", "too many");
        assert_eq!(near(""), "");
        assert_eq!(super::nearby("x", &known[..2]), "; known: array-0, array-1");
    }
}
