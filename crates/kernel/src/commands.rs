//! Every command of every disk of an experiment, as a file of comma-separated
//! values: one line for each command, in the order in which they ended. What a
//! layer above the disks really asked for is seen there, and nowhere else.

use crate::devices::DisksError;
use raidlab_calendar::{DiskOperation, Observer, TraceRecord};
use raidlab_lab::Experiment;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// The first line. Times are virtual, since the guest's start.
const HEAD: &str = "arrived_ns,completed_ns,disk,operation,first_sector,sectors,succeeded";

/// Writes commands down, if that was asked for.
#[derive(Debug, Default)]
pub(crate) struct Commands {
    path: PathBuf,
    file: Option<BufWriter<File>>,
    failed: Option<io::Error>,
}

impl Commands {
    /// Into a new file of the folder; `None`: nowhere.
    pub(crate) fn of(folder: Option<&Path>, experiment: &Experiment) -> Result<Self, DisksError> {
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
            Err(source) => Err(DisksError::Commands { path, source }),
        }
    }

    /// All of it is in the file, or what went wrong.
    pub(crate) fn finish(self) -> Result<(), DisksError> {
        let flushed = match (self.failed, self.file) {
            (Some(error), _) => Err(error),
            (None, Some(mut file)) => file.flush(),
            (None, None) => Ok(()),
        };
        let path = self.path;
        flushed.map_err(|source| DisksError::Commands { path, source })
    }
}

fn begin(folder: &Path, path: &Path) -> io::Result<BufWriter<File>> {
    std::fs::create_dir_all(folder)?;
    let mut file = BufWriter::new(File::create(path)?);
    writeln!(file, "{HEAD}")?;
    Ok(file)
}

impl Observer for Commands {
    fn completed(&mut self, record: &TraceRecord) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = line(file, record) {
            self.failed = Some(error);
            self.file = None;
        }
    }
}

fn line(file: &mut impl Write, record: &TraceRecord) -> io::Result<()> {
    let operation = match record.operation {
        DiskOperation::Read => "read",
        DiskOperation::Write => "write",
        DiskOperation::Flush => "flush",
        DiskOperation::Discard => "discard",
        DiskOperation::WriteZeroes => "write-zeroes",
        DiskOperation::Other => "other",
    };
    writeln!(
        file,
        "{},{},{},{operation},{},{},{}",
        record.arrived.0,
        record.completed.0,
        record.disk,
        record.start.0,
        record.count.0,
        u8::from(record.good)
    )
}

/// `md-raid5.ext4.1.csv`: subject, file system if any, repetition.
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
    folder.join(format!("{name}.{}.csv", experiment.repetition + 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_lab::{Choices, Suite};
    use raidlab_units::{Nanos, Sectors};

    #[test]
    fn each_command_is_a_line() {
        let suite = Suite::load("quick").expect("built in");
        let experiments = suite.experiments(&suite.subjects, &Choices::default());
        let folder = tempfile::tempdir().expect("a folder");
        let inner = folder.path().join("new");
        let mut commands = Commands::of(Some(&inner), &experiments[0]).expect("it can be written");
        commands.completed(&TraceRecord {
            arrived: Nanos(1000),
            completed: Nanos(9000),
            disk: 1,
            operation: DiskOperation::Write,
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
        let commands = Commands::of(None, &experiments[0]).expect("nothing to do");
        assert!(commands.file.is_none());
        commands.finish().expect("nothing to do");
    }
}
