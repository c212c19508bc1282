//! A guest that runs one command and is thrown away.

use crate::frames::FrameError;
use crate::kernel::Kernel;
use crate::machine::Machine;
use raidlab_initramfs::{Archive, ArchiveError, Initramfs, Node, Reason};
use raidlab_shell::{Command, Output};
use raidlab_units::PathError;
use std::io;
use std::time::Duration;

/// The parts of a guest; every run begins with a new one.
#[derive(Debug, Clone)]
pub struct Guest {
    /// The kernel that the guest boots.
    pub kernel: Kernel,
    /// The first file system of the guest, with its programs and modules.
    pub initramfs: Initramfs,
    /// The virtual machine: its processors, its memory and its disks.
    pub machine: Machine,
}

/// One of the command's two streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// The command's standard output.
    Output,
    /// The command's standard error.
    Error,
}

/// A job to run in a guest.
#[derive(Debug, Clone)]
pub struct Job {
    /// The command; the guest must have its program. Its time limit is that of
    /// the command and the boot together.
    pub command: Command,
    /// The files for the guest: their paths there and their contents.
    pub files: Archive,
    /// Paths of files and folders in the guest that are wanted back.
    pub take: Vec<String>,
}

impl Job {
    /// Makes a job of a command alone.
    #[must_use]
    pub fn new(command: Command) -> Self {
        Self {
            command,
            files: Archive::default(),
            take: Vec::new(),
        }
    }
}

/// The results of a job.
#[derive(Debug, Clone)]
pub struct Finished {
    /// The result of the command. `took` is the time from its start to the machine's end; a signal
    /// shows as exit code 128 and its number, as in a shell.
    pub output: Output,
    /// The files wanted back, as far as they were there.
    pub files: Archive,
    /// The time from QEMU's start to the command's.
    pub boot: Duration,
    /// The text of the guest's kernel on its console.
    pub console: String,
}

/// Makes the job's files for the guest, beside the first file system.
pub(crate) fn job_archive(job: &Job) -> Archive {
    let mut archive = job.files.clone();
    // `env` sets the variables; the command's own text quotes its words.
    let mut words = vec!["LC_ALL=C".to_owned()];
    words.extend(
        job.command
            .environment
            .iter()
            .map(|(name, value)| format!("{name}={value}")),
    );
    words.push(job.command.program.clone());
    words.extend(job.command.arguments.iter().cloned());
    let line = Command::reads("env", words);
    let mut file = |path: &str, mode, text: String| {
        let contents = text.into_bytes();
        archive.insert(path, Node::File { mode, contents });
    };
    file(
        "raidlab/job",
        0o755,
        format!("#!/busybox sh\nexec {line}\n"),
    );
    file("raidlab/input", 0o644, job.command.input.clone());
    let take: String = job.take.iter().map(|path| format!("{path}\n")).collect();
    file("raidlab/take", 0o644, take);
    archive
}

/// The reason why a job was not run to its end.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// A program of the host's is missing.
    #[error("cannot run {program}; on Debian: apt-get install {package}")]
    Program {
        /// The program that is called, without its path.
        program: &'static str,
        /// The package of Debian that has the program.
        package: &'static str,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// A file of the boot cannot be used.
    #[error(transparent)]
    File(#[from] PathError),
    /// QEMU's state cannot be told.
    #[error("lost track of the virtual machine")]
    Lost(#[source] io::Error),
    /// The time limit passed.
    #[error(
        "the guest did not come to its end within {} s; its console ends with:\n{console}",
        limit.as_secs()
    )]
    Timeout {
        /// The time limit that it had.
        limit: Duration,
        /// The console's last lines.
        console: String,
    },
    /// The machine ended before the job.
    #[error("the guest ended early: {reason}\nQEMU said: {emulator}\nconsole:\n{console}")]
    Early {
        /// The reason, as far as is known.
        reason: Reason,
        /// The console's last lines.
        console: String,
        /// The text that QEMU wrote.
        emulator: String,
    },
    /// The result port has something else than frames.
    #[error(transparent)]
    Garbled(#[from] FrameError),
    /// A frame lacks a part, or has one that it should not.
    #[error("the guest's result has no sound `{lacks}`")]
    Incomplete {
        /// The part of the conversation that is missing.
        lacks: &'static str,
    },
    /// The files taken back are damaged.
    #[error("the files that the guest sent are damaged")]
    Files(#[from] ArchiveError),
}

#[cfg(test)]
mod tests;
