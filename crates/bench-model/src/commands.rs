//! Every command of every disk of an experiment, as a file of comma-separated values: one line for
//! each command, in the order in which they ended. The real requests of a layer above the disks are
//! seen there, and nowhere else.

use raidlab_lab::Experiment;
use raidlab_store::output::{self, Format, Found, OutputError, OutputFile, check_distinct, look};
use raidlab_units::{Nanos, Sectors, cannot};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The first line of the file. Times are virtual, since the start of the machine or the guest.
const HEAD: &str = "arrived_ns,completed_ns,disk,operation,first_sector,sectors,succeeded";

/// A command that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandLine {
    /// The time at which it came to the disk.
    pub arrived: Nanos,
    /// The time at which the command had ended, since the experiment began.
    pub completed: Nanos,
    /// The number of the disk that had the command, from 0.
    pub disk: usize,
    /// The operation: `read`, `write`, `flush`, `discard`, ...
    pub operation: &'static str,
    /// The first sector of the command on its disk.
    pub start: Sectors,
    /// The number of sectors that the command covers; 0 for a flush.
    pub count: Sectors,
    /// Whether the command was carried out.
    pub good: bool,
}

/// A file of commands, written if that was asked for.
#[derive(Debug, Default)]
pub struct CommandFile {
    path: PathBuf,
    file: Option<BufWriter<OutputFile>>,
    failed: Option<io::Error>,
}

impl CommandFile {
    /// Makes a new file in the folder; `None`: nowhere. It has its name once it is finished.
    ///
    /// # Errors
    /// When the file cannot be made, or one stands there that is not raidlab's.
    pub fn of(folder: Option<&Path>, experiment: &Experiment) -> Result<Self, OutputError> {
        let Some(folder) = folder else {
            return Ok(Self::default());
        };
        let path = path(folder, experiment);
        let failed = cannot("write", &path);
        std::fs::create_dir_all(folder).map_err(failed)?;
        let mut file = BufWriter::new(OutputFile::begin(&path, Format::DiskCommands)?);
        writeln!(file, "{HEAD}").map_err(failed)?;
        Ok(Self {
            path,
            file: Some(file),
            failed: None,
        })
    }

    /// Whether commands are written.
    #[must_use]
    pub const fn is_wanted(&self) -> bool {
        self.file.is_some()
    }

    /// Writes a command that has ended. Errors of writing are returned by [`Self::finish`].
    pub fn write(&mut self, command: &CommandLine) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = line(file, command) {
            self.failed = Some(error);
            self.file = None;
        }
    }

    /// Finishes the file, with all commands in it.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(self) -> Result<(), OutputError> {
        let whole = match (self.failed, self.file) {
            (Some(error), _) => Err(error),
            (None, Some(file)) => file.into_inner().map_err(|error| error.into_error()),
            (None, None) => return Ok(()),
        };
        whole.map_err(cannot("write", &self.path))?.finish()
    }
}

/// Checks, before anything runs, that each of these experiments can have a file of its
/// own in the folder.
///
/// # Errors
/// When the folder is no folder, a name of a file in it is taken, or two of them are
/// the same.
pub fn check(folder: &Path, experiments: &[Experiment]) -> Result<(), OutputError> {
    match look(folder).map_err(cannot("write", folder))? {
        Found::Nothing | Found::Folder => {}
        found => {
            let path = folder.to_owned();
            return Err(OutputError::Taken { path, found });
        }
    }
    let outputs: Vec<(String, PathBuf)> = experiments
        .iter()
        .map(|experiment| {
            let whose = format!("the disk commands of `{}`", experiment.subject.name);
            (whose, path(folder, experiment))
        })
        .collect();
    let named: Vec<_> = outputs
        .iter()
        .map(|(whose, path)| (whose.as_str(), path.as_path()))
        .collect();
    check_distinct(&named)?;
    for (_, path) in named {
        output::check(path, Format::DiskCommands)?;
    }
    Ok(())
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

/// The file's path, such as `md-raid5.ext4.strict.1.csv`: subject, file system if any,
/// parameter set, repetition.
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
    fn files_of_others_stay_and_names_are_not_shared() {
        let suite = Suite::load("quick").expect("built in");
        let mut experiments = suite.experiments(&suite.subjects, &Choices::default());
        let folder = tempfile::tempdir().expect("a folder");
        check(folder.path(), &experiments).expect("each has its own");
        let taken = path(folder.path(), &experiments[0]);
        std::fs::write(&taken, "a,b\n1,2\n").expect("written");
        check(folder.path(), &experiments).expect_err("it is not ours");
        CommandFile::of(Some(folder.path()), &experiments[0]).expect_err("nor then");
        check(&taken, &experiments).expect_err("no folder");
        assert_eq!(std::fs::read(&taken).expect("there"), b"a,b\n1,2\n");
        std::fs::remove_file(&taken).expect("removed");
        let mut twin = experiments[0].clone();
        experiments[0].subject.name = "a b".to_owned();
        twin.subject.name = "a-b".to_owned();
        experiments.push(twin);
        let error = check(folder.path(), &experiments).expect_err("one name for two");
        assert!(error.to_string().contains("`a b`"), "{error}");
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
