//! Every command of every disk of an experiment, as a file of comma-separated
//! values: one line for each command, in the order in which they ended. What a
//! layer above the disks really asked for is seen there, and nowhere else.

use raidlab_lab::Experiment;
use raidlab_units::{Nanos, Sectors};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The first line. Times are virtual, since the start of the machine or the guest.
const HEAD: &str = "arrived_ns,completed_ns,disk,operation,first_sector,sectors,succeeded";

/// A command that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLine {
    /// When it came to the disk.
    pub arrived: Nanos,
    /// When it had ended.
    pub completed: Nanos,
    /// Which disk, from 0.
    pub disk: usize,
    /// `read`, `write`, `flush`, `discard`, ...
    pub operation: &'static str,
    /// Where it begins.
    pub start: Sectors,
    /// How long it is.
    pub count: Sectors,
    /// Whether it was carried out.
    pub good: bool,
}

/// A file of commands that cannot be written.
#[derive(Debug, Error)]
#[error("the disks' commands cannot be written to {}", .path.display())]
pub struct CommandFileError {
    /// The file.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Writes commands down, if that was asked for.
#[derive(Debug, Default)]
pub struct CommandFile {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    failed: Option<io::Error>,
}

impl CommandFile {
    /// A new file in the folder; `None`: nowhere.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn of(folder: Option<&Path>, experiment: &Experiment) -> Result<Self, CommandFileError> {
        let Some(folder) = folder else {
            return Ok(Self::default());
        };
        let path = path(folder, experiment);
        match begin(folder, &path) {
            Ok(file) => Ok(Self {
                path,
                file: Some(file),
                failed: None,
            }),
            Err(source) => Err(CommandFileError { path, source }),
        }
    }

    /// Whether anything is written.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.file.is_some()
    }

    /// A command has ended. What cannot be written is said by [`Self::finish`].
    pub fn write(&mut self, command: &CommandLine) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = line(file, command) {
            self.failed = Some(error);
            self.file = None;
        }
    }

    /// All of it is in the file.
    ///
    /// # Errors
    /// The first thing that went wrong.
    pub fn finish(self) -> Result<(), CommandFileError> {
        let flushed = match (self.failed, self.file) {
            (Some(error), _) => Err(error),
            (None, Some(mut file)) => file.flush(),
            (None, None) => Ok(()),
        };
        let path = self.path;
        flushed.map_err(|source| CommandFileError { path, source })
    }
}

fn begin(folder: &Path, path: &Path) -> io::Result<BufWriter<File>> {
    std::fs::create_dir_all(folder)?;
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "{HEAD}")?;
    Ok(file)
}

fn line(file: &mut impl Write, command: &CommandLine) -> io::Result<()> {
    writeln!(
        file,
        "{},{},{},{},{},{},{}",
        command.arrived.0,
        command.completed.0,
        command.disk,
        command.operation,
        command.start.0,
        command.count.0,
        u8::from(command.good)
    )
}

/// `md-raid5.ext4.strict.1.csv`: subject, file system if any, parameter set,
/// repetition.
fn path(folder: &Path, experiment: &Experiment) -> PathBuf {
    let mut name = experiment.subject.name.clone();
    if experiment.filesystem.is_some() {
        name = format!("{name}.{}", experiment.filesystem_label());
    }
    let plain = |letter: char| match letter {
        'a'..='z' | 'A'..='Z' | '0'..='9' | '.' | '-' | '_' => letter,
        _ => '-',
    };
    let name: String = name.chars().map(plain).collect();
    folder.join(format!(
        "{name}.{}.{}.csv",
        experiment.fit,
        experiment.repetition + 1
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_lab::{Choices, Suite};

    #[test]
    fn each_command_is_a_line() {
        let suite = Suite::load("quick").expect("built in");
        let experiments = suite.experiments(&suite.subjects, &Choices::default());
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("new");
        let mut commands =
            CommandFile::of(Some(&inner), &experiments[0]).expect("it can be written");
        commands.write(&CommandLine {
            arrived: Nanos(1000),
            completed: Nanos(9000),
            disk: 1,
            operation: "write",
            start: Sectors(2048),
            count: Sectors(16),
            good: true,
        });
        commands.finish().expect("there is room");
        let written = std::fs::read_to_string(path(&inner, &experiments[0])).expect("it is there");
        let expected = format!("{HEAD}\n1000,9000,1,write,2048,16,1\n");
        assert_eq!(written, expected);
    }

    #[test]
    fn nothing_is_written_unasked() {
        let suite = Suite::load("quick").expect("built in");
        let experiments = suite.experiments(&suite.subjects, &Choices::default());
        let commands = CommandFile::of(None, &experiments[0]).expect("nothing to do");
        assert!(!commands.is_wanted());
        commands.finish().expect("nothing to do");
    }
}
