//! The errors of a run, and how they are printed.
//!
//! Errors of the other crates stay as they are; here each gets a kind, which decides the exit code,
//! and where one is known a remedy.

mod remedy;

use crate::typed::on_store;
use raidlab_bench_model::presets::LoadPresetError;
use raidlab_lab::LoadError;
use raidlab_lab::plan::PlanError;
use raidlab_store::output::OutputError;
use raidlab_store::text::visible_lines;
use raidlab_store::{ExportError, ParquetError, Store, StoreError};
use raidlab_uml::CacheError;
use raidlab_units::{cannot, in_one_line, reasons};
pub(crate) use remedy::listing;
pub use remedy::{CLAIMS, SUBJECTS};
use remedy::{help_with, instead, instead_of_disk, instead_of_path, store_in_place_of_run};
use std::error::Error;
use std::fmt;
use std::io;
use std::iter;
use std::path::Path;

/// The remedy where a processor cannot be loaded.
const PROCESSORS: &str = "`raidlab processors nas --toml` prints a complete one";

/// The kind of a failure, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Something could not be run, or only in part.
    Run,
    /// The arguments make no sense, or name something that does not exist.
    Usage,
    /// A file given as input is missing or wrong.
    Input,
    /// Output cannot be written.
    Output,
    /// A part of a run was stopped before its end, and continues when it is started again.
    StartAgain,
    /// The user stopped the command.
    Interrupted,
    /// The reader of our standard output has closed it, as behind `| head`. That is no error: the
    /// reader has what it wanted.
    ReaderGone,
}

impl Kind {
    /// All kinds, in the order of the program's exit codes.
    pub const ALL: [Self; 7] = [
        Self::ReaderGone,
        Self::Run,
        Self::Usage,
        Self::Input,
        Self::Output,
        Self::StartAgain,
        Self::Interrupted,
    ];
}

/// The reason why a command ended early.
#[derive(Debug)]
pub struct Failure {
    kind: Kind,
    error: Box<dyn Error>,
    help: Option<String>,
}

/// A failure that is described by words alone.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct Words(String);

/// Standard output that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write standard output")]
struct WriteOutputError(#[source] io::Error);

impl Failure {
    /// A failure of this kind, from an error.
    #[must_use]
    pub fn new(kind: Kind, error: impl Error + 'static) -> Self {
        Self {
            kind,
            error: Box::new(error),
            help: None,
        }
    }

    /// A failure of [`Kind::Run`]: something could not be run.
    #[must_use]
    pub fn run(error: impl Error + 'static) -> Self {
        Self::new(Kind::Run, error)
    }

    /// A failure of [`Kind::Usage`]: the arguments make no sense.
    #[must_use]
    pub fn usage(error: impl Error + 'static) -> Self {
        Self::new(Kind::Usage, error)
    }

    /// A failure of [`Kind::Input`]: a file is wrong.
    #[must_use]
    pub fn input(error: impl Error + 'static) -> Self {
        Self::new(Kind::Input, error)
    }

    /// A failure that words alone describe.
    #[must_use]
    pub fn words(kind: Kind, words: impl Into<String>) -> Self {
        Self::new(kind, Words(words.into()))
    }

    /// The same failure with a remedy, in words.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// The same failure with a remedy, where one is known.
    #[must_use]
    pub fn maybe_help(self, help: Option<impl Into<String>>) -> Self {
        match help {
            Some(help) => self.help(help),
            None => self,
        }
    }

    /// The same failure with this remedy, unless it has one.
    #[must_use]
    pub fn or_help(mut self, help: &str) -> Self {
        self.help.get_or_insert_with(|| help.to_owned());
        self
    }

    /// The failure of writing a file.
    #[must_use]
    pub fn write_file(path: &Path, source: io::Error) -> Self {
        let help = match source.kind() {
            io::ErrorKind::StorageFull => "free some space or name a file on another disk",
            io::ErrorKind::IsADirectory => "name a file in it",
            _ => "check that its folder exists and may be written to, or name another file",
        };
        Self::new(Kind::Output, cannot("write", path)(source)).help(help)
    }

    /// The failure of reading a file or folder.
    #[must_use]
    pub fn read_file(path: &Path, source: io::Error) -> Self {
        Self::new(Kind::Input, cannot("read", path)(source))
    }

    /// The failure of writing to standard output.
    #[must_use]
    pub fn write_output(source: io::Error) -> Self {
        let kind = match source.kind() {
            io::ErrorKind::BrokenPipe => Kind::ReaderGone,
            _ => Kind::Output,
        };
        Self::new(kind, WriteOutputError(source))
    }

    /// The failure of loading a preset, with the place where a file names it, if one does: that
    /// file is wrong then.
    #[must_use]
    pub(crate) fn of_preset(place: Option<&String>, error: LoadPresetError) -> Self {
        let said = in_one_line(&error);
        let leads_nowhere = match &error {
            LoadPresetError::Unknown { .. } => true,
            LoadPresetError::File(error) | LoadPresetError::ProcessorFile(error) => {
                matches!(**error, LoadError::Read(_))
            }
            _ => false,
        };
        let failure = Self::from(error);
        match place.filter(|_| leads_nowhere) {
            None => failure,
            Some(place) => Self {
                help: failure.help,
                ..Self::words(Kind::Input, format!("{place}: {said}"))
            },
        }
    }

    /// The failure's kind, which decides the exit code.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Errors quote text that may come from anyone.
        let mut line =
            |head: &str, text: &str| writeln!(formatter, "{head}: {}", visible_lines(text));
        let heads = iter::once("error").chain(iter::repeat("caused by"));
        for (head, reason) in heads.zip(reasons(self.error.as_ref())) {
            line(head, &reason)?;
        }
        self.help
            .as_deref()
            .map_or(Ok(()), |help| line("help", help))
    }
}

impl From<LoadError> for Failure {
    fn from(error: LoadError) -> Self {
        if let LoadError::Unknown { what, name, .. } = &error {
            let help = instead(name, listing(what));
            return Self::new(Kind::Usage, error).help(help);
        }
        let elsewhere = match &error {
            LoadError::Read(error) => instead_of_path(&error.path),
            LoadError::Named { kind, .. } => help_with(*kind).map(str::to_owned),
            _ => None,
        };
        Self::new(Kind::Input, error).maybe_help(elsewhere)
    }
}

impl From<LoadPresetError> for Failure {
    fn from(error: LoadPresetError) -> Self {
        if let LoadPresetError::Unknown { what, name, .. } = &error {
            let help = instead(name, listing(what));
            return Self::new(Kind::Usage, error).help(help);
        }
        let real = match &error {
            LoadPresetError::File(error) => match &**error {
                LoadError::Read(error) => instead_of_disk(&error.path),
                _ => None,
            },
            _ => None,
        };
        if let Some(help) = real {
            return Self::new(Kind::Input, error).help(help);
        }
        let failure = match error {
            LoadPresetError::File(error) => Self::from(*error),
            LoadPresetError::ProcessorFile(error) => Self::from(*error).or_help(PROCESSORS),
            error @ LoadPresetError::Processor(_) => Self::new(Kind::Input, error).help(PROCESSORS),
            error => Self::new(Kind::Input, error),
        };
        failure.or_help("`raidlab disks wd4000fyyz --toml` prints a complete preset")
    }
}

impl From<OutputError> for Failure {
    fn from(error: OutputError) -> Self {
        match error {
            OutputError::Write(error) => Self::write_file(&error.path, error.source),
            OutputError::Twice { .. } => {
                Self::new(Kind::Usage, error).help("give each output a file of its own")
            }
            OutputError::NoFolder { .. } => {
                Self::new(Kind::Output, error).help("or name a file in a folder that is there")
            }
            _ => Self::new(Kind::Output, error).help("name another file, or move that one away"),
        }
    }
}

/// Opens the store that has these runs.
///
/// # Errors
/// When there is no such store.
pub fn open_store(store: &Path, runs: &[&str]) -> Result<Store, Failure> {
    Store::open_existing(store).map_err(|error| {
        let help = runs.iter().find_map(|run| store_in_place_of_run(run));
        Failure::from(error).maybe_help(help)
    })
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        let kind = match error {
            // The named file is not a store, or has no such run.
            StoreError::Missing { .. }
            | StoreError::NotAFile { .. }
            | StoreError::NotADatabase { .. }
            | StoreError::Foreign { .. }
            | StoreError::OtherVersion { .. }
            | StoreError::Corrupt { .. }
            | StoreError::NoRuns { .. }
            | StoreError::NoSuchRun { .. } => Kind::Input,
            _ => Kind::Output,
        };
        if let StoreError::NoSuchRun { name, .. } = &error
            && Path::new(name).is_file()
        {
            let help = store_in_place_of_run(name).unwrap_or_else(|| {
                format!("`{name}` is a file: `raidlab import {name}` makes a run of it")
            });
            return Self::new(kind, error).help(help);
        }
        let remedy = match error {
            StoreError::NoRuns { .. } => {
                "`raidlab run mirror-2015` makes one; `--store FILE` names another store".to_owned()
            }
            StoreError::NoSuchRun { ref path, .. } => {
                format!(
                    "`{}` lists the runs",
                    on_store("raidlab report --list", path)
                )
            }
            _ => "`--store FILE` names another store".to_owned(),
        };
        Self::new(kind, error).help(remedy)
    }
}

impl From<CacheError> for Failure {
    fn from(error: CacheError) -> Self {
        match error {
            CacheError::NotBuilt { .. } => Self::new(Kind::Run, error)
                .help("`raidlab kernel build` builds one, in 7 to 20 minutes and without root"),
            CacheError::Change(_) => Self::new(Kind::Output, error),
            _ => Self::new(Kind::Run, error),
        }
    }
}

impl From<PlanError> for Failure {
    /// The failure for a plan that has no form as text; its parts are plain words and numbers.
    fn from(error: PlanError) -> Self {
        Self::new(Kind::Run, error)
    }
}

impl From<ExportError> for Failure {
    fn from(error: ExportError) -> Self {
        Self::new(Kind::Output, error)
    }
}

impl From<ParquetError> for Failure {
    fn from(error: ParquetError) -> Self {
        match error {
            ParquetError::Store(error) => error.into(),
            ParquetError::Output(error) => error.into(),
            ParquetError::Folder(error) => {
                Self::new(Kind::Output, error).help("name another folder")
            }
            error => Self::new(Kind::Input, error)
                .help("`raidlab report RUN --parquet FOLDER` writes a run anew"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Failure;
    use std::io;
    use std::path::Path;

    #[test]
    fn a_failure_says_what_why_and_what_to_do() {
        let full = io::Error::from(io::ErrorKind::StorageFull);
        let failure = Failure::write_file(Path::new("/srv/report.html"), full);
        insta::assert_snapshot!(failure, @r"
        error: cannot write /srv/report.html
        caused by: no storage space
        help: free some space or name a file on another disk
        ");
    }
}
