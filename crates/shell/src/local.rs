//! The local machine.
//!
//! Every command gets a process group of its own, so that a Ctrl-C at the terminal does not reach
//! it by chance, and stopping it also stops its children. Programs are looked up in `PATH` and then
//! where administrators' tools live, which is not in every user's `PATH`.

use crate::command::{Command, Output};
use crate::hold::{Claim, Lock, LockError, lock_file};
use crate::process::Process;
use crate::target::{Frame, Frames, Running, TOOL_FOLDERS, Target, TargetError, Watched};
use crate::watch::{Queue, next_tick};
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};
use std::{env, process, thread};

/// The largest file that is read, bytes: a larger one is probably a disk.
const FILE_LIMIT_BYTES: u64 = 64 << 20;

/// The time that a command has to end after SIGTERM when its limit has passed.
pub(crate) const TIMEOUT_PATIENCE: Duration = Duration::from_secs(5);

/// The machine that raidlab runs on.
#[derive(Debug, Clone, Default)]
pub struct Local {
    environment: Vec<(String, String)>,
}

impl Local {
    /// The machine that this program runs on.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a variable for every command: the marker by which [`crate::leftovers`] finds what a
    /// killed run has left.
    #[must_use]
    pub fn environment(mut self, name: impl Into<String>, value: impl Into<String>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    fn begin(&self, command: &Command) -> Result<LocalRunning, TargetError> {
        let path = search_path().join(":");
        let program =
            find_program(&command.program, &path).ok_or_else(|| TargetError::NoProgram {
                machine: NAME.to_owned(),
                program: command.program.clone(),
            })?;
        let mut child = process::Command::new(program);
        child
            .args(&command.arguments)
            .env("PATH", &path)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .envs(
                command
                    .environment
                    .iter()
                    .map(|(name, value)| (name, value)),
            )
            .env("LC_ALL", "C");
        let process =
            Process::spawn(child, command.input.clone().into_bytes(), false).map_err(|source| {
                // "Not found" would mean a script's interpreter, not a file that was requested.
                failed(
                    format!("start `{command}`"),
                    io::Error::other(source.to_string()),
                )
            })?;
        Ok(LocalRunning {
            process,
            command: command.to_string(),
            ended: None,
        })
    }
}

const NAME: &str = "localhost";

fn failed(action: String, source: io::Error) -> TargetError {
    TargetError::Io {
        machine: NAME.to_owned(),
        action,
        source,
    }
}

/// The folders of `PATH`, and the folders of tools that it lacks.
fn search_path() -> Vec<String> {
    let path = env::var("PATH").unwrap_or_default();
    let mut folders: Vec<&str> = path
        .split(':')
        .filter(|folder| !folder.is_empty())
        .collect();
    for folder in TOOL_FOLDERS {
        if !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders.into_iter().map(str::to_owned).collect()
}

fn find_program(program: &str, path: &str) -> Option<PathBuf> {
    let executable = |file: &PathBuf| {
        fs::metadata(file)
            .is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0)
    };
    if program.contains('/') {
        return Some(PathBuf::from(program)).filter(executable);
    }
    path.split(':')
        .map(|folder| Path::new(folder).join(program))
        .find(executable)
}

/// Whether a missing file may be created: nothing can be created in `/proc` and `/sys`, where a
/// missing file means a tunable that this kernel lacks.
pub(crate) fn may_create(path: &str) -> bool {
    !path.starts_with("/sys/") && !path.starts_with("/proc/")
}

impl Target for Local {
    fn name(&self) -> &str {
        NAME
    }

    fn output(&self, command: &Command) -> Result<Output, TargetError> {
        let mut running = self.begin(command)?;
        let deadline = command.timeout.map(|limit| Instant::now() + limit);
        if !running
            .process
            .wait(deadline, crate::process::State::complete)
        {
            running.stop(TIMEOUT_PATIENCE)?;
            return Err(TargetError::Timeout {
                machine: NAME.to_owned(),
                command: command.to_string(),
                limit: command.timeout.unwrap_or_default(),
            });
        }
        running.finish()
    }

    fn start(&self, command: &Command) -> Result<Box<dyn Running>, TargetError> {
        Ok(Box::new(self.begin(command)?))
    }

    fn read(&self, path: &str) -> Result<String, TargetError> {
        read(path).map_err(|source| failed(format!("read {path}"), source))
    }

    fn write(&self, path: &str, text: &str) -> Result<(), TargetError> {
        fs::OpenOptions::new()
            .write(true)
            .truncate(true)
            .create(may_create(path))
            .open(path)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .map_err(|source| failed(format!("write {path}"), source))
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, TargetError> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries,
        };
        let names: io::Result<Vec<String>> = entries.and_then(|entries| {
            entries
                .map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned()))
                .collect()
        });
        let mut names = names.map_err(|source| failed(format!("list {folder}"), source))?;
        names.sort();
        Ok(names)
    }

    /// Those that cannot be read have no programs for this user.
    fn tool_folders(&self) -> Vec<String> {
        let mut folders = search_path();
        folders.retain(|folder| fs::read_dir(folder).is_ok());
        folders
    }

    fn resolve(&self, path: &str) -> Result<String, TargetError> {
        fs::canonicalize(path)
            .map(|path| path.to_string_lossy().into_owned())
            .map_err(|source| failed(format!("resolve {path}"), source))
    }

    fn lock(&self, path: &str, holder: &str) -> Result<Lock, TargetError> {
        lock_file(Path::new(path), holder).map_err(|error| match error {
            LockError::Held { holder, .. } => TargetError::Locked {
                machine: NAME.to_owned(),
                path: path.to_owned(),
                holder,
            },
            LockError::Io { source, .. } => failed(format!("lock {path}"), source),
        })
    }

    fn claim(&self, device: &str) -> Result<Option<Claim>, TargetError> {
        Claim::take(Path::new(device))
            .map(Some)
            .map_err(|source| failed(format!("claim {device}"), source))
    }

    fn watch(
        &self,
        sources: Vec<Watched>,
        every: Duration,
    ) -> Result<Box<dyn Frames>, TargetError> {
        let queue = Queue::default();
        let (frames, local) = (queue.clone(), self.clone());
        let (alive, gone) = mpsc::channel::<()>();
        let begun = Instant::now();
        thread::Builder::new()
            .name("watch".to_owned())
            .spawn(move || {
                loop {
                    let at = begun.elapsed();
                    let contents = sources.iter().map(|source| local.sample(source)).collect();
                    frames.push(Frame { at, contents });
                    let pause = next_tick(begun.elapsed(), every).saturating_sub(begun.elapsed());
                    if gone.recv_timeout(pause) == Err(RecvTimeoutError::Disconnected) {
                        return;
                    }
                }
            })
            .map_err(|source| failed("start a watch".to_owned(), source))?;
        Ok(Box::new(LocalFrames {
            queue,
            _alive: alive,
        }))
    }
}

impl Local {
    fn sample(&self, source: &Watched) -> Option<String> {
        match source {
            Watched::File(path) => read(path).ok(),
            Watched::Command(command) => self.run(command).ok().map(|output| output.stdout),
        }
    }
}

fn read(path: &str) -> io::Result<String> {
    let mut bytes = Vec::new();
    File::open(path)?
        .take(FILE_LIMIT_BYTES + 1)
        .read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_LIMIT_BYTES {
        return Err(io::Error::new(
            io::ErrorKind::FileTooLarge,
            format!("it is larger than {} MiB", FILE_LIMIT_BYTES >> 20),
        ));
    }
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// A watch of local sources. The reading thread ends when this is dropped: it waits on the other
/// end of `_alive`.
struct LocalFrames {
    queue: Queue,
    _alive: Sender<()>,
}

impl Frames for LocalFrames {
    fn take(&mut self) -> Result<Vec<Frame>, TargetError> {
        Ok(self.queue.take())
    }
}

struct LocalRunning {
    process: Process,
    command: String,
    ended: Option<Output>,
}

impl LocalRunning {
    fn lost(&self, source: io::Error) -> TargetError {
        failed(format!("follow `{}`", self.command), source)
    }

    fn finish(&mut self) -> Result<Output, TargetError> {
        self.process.wait(None, crate::process::State::complete);
        let ended = self.poll()?;
        ended.ok_or_else(|| self.lost(io::Error::other("it has ended, but not its output")))
    }
}

impl Running for LocalRunning {
    fn poll(&mut self) -> Result<Option<Output>, TargetError> {
        if self.ended.is_none() {
            self.ended = self.process.result().map_err(|source| self.lost(source))?;
        }
        Ok(self.ended.clone())
    }

    fn stop(&mut self, patience: Duration) -> Result<Output, TargetError> {
        let stopped = self.process.stop(patience);
        stopped.map_err(|source| self.lost(source))?;
        self.finish()
    }
}

#[cfg(test)]
mod tests;
