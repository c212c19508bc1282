//! A machine on which commands run and files are read.

use crate::command::{Command, Output};
use crate::hold::{Claim, Lock, or_somebody};
use serde::{Deserialize, Serialize};
use std::io;
use std::thread;
use std::time::{Duration, Instant};

/// The folders in which tools are looked for on this machine beside `PATH`, and on any other:
/// ordinary users do not have all of them in their path.
pub const TOOL_FOLDERS: [&str; 6] = [
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
];

/// A machine, shared by the thread that does the steps and those that sample.
pub trait Target: Send + Sync {
    /// The name for people: `localhost`, `root@store1`.
    fn name(&self) -> &str;

    /// Runs a command to its end, whatever its exit code.
    ///
    /// # Errors
    /// When it cannot be started, when its output cannot be read, or after its timeout.
    fn output(&self, command: &Command) -> Result<Output, TargetError>;

    /// Starts a command and returns while it runs.
    ///
    /// # Errors
    /// When it cannot be started.
    fn start(&self, command: &Command) -> Result<Box<dyn Running>, TargetError>;

    /// Reads a whole file, such as one of `/proc` or `/sys`.
    ///
    /// # Errors
    /// When there is none ([`TargetError::is_missing`]) or it cannot be read.
    fn read(&self, path: &str) -> Result<String, TargetError>;

    /// Replaces a file's contents, such as a tunable's of `/sys`.
    ///
    /// # Errors
    /// When it cannot be written.
    fn write(&self, path: &str, text: &str) -> Result<(), TargetError>;

    /// Lists the names in a folder, sorted; empty where there is no such folder.
    ///
    /// # Errors
    /// When the folder cannot be read.
    fn list(&self, folder: &str) -> Result<Vec<String>, TargetError>;

    /// The folders in which programs are looked for; some may not exist.
    fn tool_folders(&self) -> Vec<String> {
        TOOL_FOLDERS.map(str::to_owned).to_vec()
    }

    /// Resolves a symbolic link to its final target, as an absolute path.
    ///
    /// # Errors
    /// When there is no such file.
    fn resolve(&self, path: &str) -> Result<String, TargetError>;

    /// Reads some sources periodically, all at the same moment, for as long as the result lives. A
    /// missing source is left out of a frame.
    ///
    /// # Errors
    /// When the watch cannot begin.
    fn watch(&self, sources: Vec<Watched>, every: Duration)
    -> Result<Box<dyn Frames>, TargetError>;

    /// Takes a lock that dies with its holder; `holder` names the holder to other processes, and
    /// must not be foreign text.
    ///
    /// # Errors
    /// [`TargetError::Locked`] when another process has it, or the file cannot be created.
    fn lock(&self, path: &str, holder: &str) -> Result<Lock, TargetError> {
        lock_by_program(self, path, holder)
    }

    /// Opens a block device exclusively; `None` where that is impossible, on a machine behind ssh.
    ///
    /// # Errors
    /// When another program has it, or it cannot be opened.
    fn claim(&self, _device: &str) -> Result<Option<Claim>, TargetError> {
        Ok(None)
    }

    /// Runs a command, and treats any exit code but its successes as an error.
    ///
    /// # Errors
    /// As [`Target::output`], and [`TargetError::Failed`] with the command's output.
    fn run(&self, command: &Command) -> Result<Output, TargetError> {
        let output = self.output(command)?;
        match output.code {
            Some(code) if command.success.contains(&code) => Ok(output),
            _ => Err(TargetError::Failed {
                machine: self.name().to_owned(),
                command: command.to_string(),
                output: Box::new(output),
            }),
        }
    }
}

/// The sources of a [`Target::watch`].
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Watched {
    /// A file, by its path.
    File(String),
    /// The output of a command, where a system has no file for it (FreeBSD).
    Command(Command),
}

/// The contents of all watched sources at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Frame {
    /// The time since the watch began, on a clock that never steps.
    pub at: Duration,
    /// The contents of each source in the given order; `None` where it could not be read.
    pub contents: Vec<Option<String>>,
}

/// A watch that continues until it is dropped.
pub trait Frames: Send {
    /// The frames since the last call, oldest first; empty when there are none
    /// yet. Never blocks.
    ///
    /// # Errors
    /// When the machine can no longer be reached.
    fn take(&mut self) -> Result<Vec<Frame>, TargetError>;
}

/// A command in the background.
pub trait Running: Send {
    /// The result if the command has ended; never blocks.
    ///
    /// # Errors
    /// When its state cannot be read any more.
    fn poll(&mut self) -> Result<Option<Output>, TargetError>;

    /// Ends the command and all it started: by SIGTERM, after `patience` by SIGKILL; and
    /// returns its output.
    ///
    /// # Errors
    /// When it cannot be reached.
    fn stop(&mut self, patience: Duration) -> Result<Output, TargetError>;
}

/// The error of an action on a machine.
#[derive(Debug, thiserror::Error)]
pub enum TargetError {
    /// A program is not installed there.
    #[error("{machine} has no program `{program}`")]
    NoProgram {
        /// The machine that was asked, as the user names it.
        machine: String,
        /// The program that was called.
        program: String,
    },
    /// A command ended with an exit code that is no success.
    #[error("on {machine}, `{command}` {}", ending(output))]
    Failed {
        /// The machine that was asked, as the user names it.
        machine: String,
        /// The command line, as one would type it.
        command: String,
        /// The result of the command.
        output: Box<Output>,
    },
    /// A command took too long and was ended.
    #[error("on {machine}, `{command}` did not end within {} s", limit.as_secs())]
    Timeout {
        /// The machine that was asked, as the user names it.
        machine: String,
        /// The command line, as one would type it.
        command: String,
        /// The limit on its time.
        limit: Duration,
    },
    /// A file or process could not be used.
    #[error("on {machine}, cannot {action}")]
    Io {
        /// The machine that was asked, as the user names it.
        machine: String,
        /// The action: `read /proc/mdstat`.
        action: String,
        /// The error of the operating system.
        #[source]
        source: io::Error,
    },
    /// Another process holds a lock.
    #[error("{machine} is taken: {holder} goes on (lock {path})")]
    Locked {
        /// The machine that was asked, as the user names it.
        machine: String,
        /// The lock's file.
        path: String,
        /// The holder, in its own words.
        holder: String,
    },
    /// The machine cannot be reached.
    #[error("cannot reach {machine}: {reason}")]
    Unreachable {
        /// The machine that was asked, as the user names it.
        machine: String,
        /// The message of ssh.
        reason: String,
    },
    /// A recorded machine was asked for something it has not recorded.
    #[error("the recording of {machine} has no answer to `{request}`")]
    NotRecorded {
        /// The machine that was asked, as the user names it.
        machine: String,
        /// The command or file that was requested.
        request: String,
    },
}

impl TargetError {
    /// Whether the error means that a file does not exist.
    #[must_use]
    pub fn is_missing(&self) -> bool {
        matches!(self, Self::Io { source, .. } if source.kind() == io::ErrorKind::NotFound)
    }
}

/// The number of last lines of a failed command that its error repeats: the reason often comes
/// before a last line that only reports the failure.
const REPEATED_LINES: usize = 3;

/// The end of a command in words, with the last lines of its output.
fn ending(output: &Output) -> String {
    let mut last: Vec<&str> = Vec::new();
    for stream in [&output.stderr, &output.stdout] {
        if last.is_empty() {
            let lines = stream.lines().rev().map(str::trim);
            last.extend(lines.filter(|line| !line.is_empty()).take(REPEATED_LINES));
        }
    }
    last.reverse();
    let said = match last.as_slice() {
        [] => String::new(),
        last => format!(": {}", last.join(" / ")),
    };
    match (output.code, output.signal) {
        (Some(code), _) => format!("ended with exit code {code}{said}"),
        (None, Some(signal)) => format!("was ended by signal {signal}{said}"),
        (None, None) => format!("ended in an unknown way{said}"),
    }
}

/// The exit code of flock(1) of util-linux and lockf(1) of FreeBSD when another process
/// holds the lock.
const TAKEN: i32 = 75;
/// The time that the program has to report that it holds the lock.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Takes the lock by a program, on a machine whose files cannot be opened directly. `holder` must
/// not be foreign text.
pub(crate) fn lock_by_program<T: Target + ?Sized>(
    target: &T,
    path: &str,
    holder: &str,
) -> Result<Lock, TargetError> {
    let tells = r#"printf %s "$2" >"$1" && exec sleep 2147483647"#;
    // Its environment must not look like that of a run's command: a process that removes the
    // leftovers of a dead run would kill its own lock.
    let script = r#"
        if command -v flock >/dev/null; then
            exec env -i PATH="$PATH" flock --nonblock --conflict-exit-code 75 "$1" sh -c "$3" sh "$1" "$2"
        fi
        exec env -i PATH="$PATH" lockf -k -s -t 0 "$1" sh -c "$3" sh "$1" "$2""#;
    let command = Command::changes("sh", ["-c", script, "sh", path, holder, tells]);
    let mut running = target.start(&command)?;
    let begun = Instant::now();
    loop {
        if let Some(output) = running.poll()? {
            let machine = target.name().to_owned();
            if output.code == Some(TAKEN) {
                let holder = target.read(path).unwrap_or_default();
                return Err(TargetError::Locked {
                    machine,
                    path: path.to_owned(),
                    holder: or_somebody(&holder),
                });
            }
            return Err(TargetError::Failed {
                machine,
                command: command.to_string(),
                output: Box::new(output),
            });
        }
        if target.read(path).is_ok_and(|said| said == holder) {
            return Ok(Lock::held_by(Box::new(running)));
        }
        if begun.elapsed() >= PATIENCE {
            return Err(TargetError::Timeout {
                machine: target.name().to_owned(),
                command: command.to_string(),
                limit: PATIENCE,
            });
        }
        thread::sleep(Duration::from_millis(20));
    }
}
