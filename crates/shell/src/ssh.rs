//! A machine behind the system's `ssh`.
//!
//! One master connection is kept for all commands (OpenSSH's `ControlMaster`), as a process that
//! belongs to this target and ends with it. Every command and watch is a session over it. A server
//! allows ten at a time by default (`MaxSessions`).
//!
//! A broken connection is not restored: locks that were held over it may have been taken by others,
//! and a restarted machine may have other disks under the same names.
//!
//! Processes on the far side never outlive their session: see [`script`] for the keeper that ends
//! them when the connection is lost. Passwords are never asked for: there must be a key or an
//! agent, and `sudo` must not ask either.

mod connection;
mod frames;
mod script;

use crate::command::{Command, Output};
use crate::local::{TIMEOUT_PATIENCE, may_create};
use crate::process::{Process, State};
use crate::target::{Frames, Running, Target, TargetError, Watched};
use connection::Connection;
use script::Trailer;
use std::hash::{BuildHasher, RandomState};
use std::io;
use std::time::{Duration, Instant};

/// The time, beyond its patience, that the far side has to report the end of a command.
const STOP_SLACK: Duration = Duration::from_secs(15);

/// The options for reaching a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SshOptions {
    /// The client program; `ssh` by default.
    pub program: String,
    /// Further arguments of the client, such as `-p`, `2222`.
    pub arguments: Vec<String>,
    /// The words before every command for users who may not log in as root: `sudo`, `-n`. They must
    /// not ask for a password.
    pub elevate: Vec<String>,
    /// The variables set for every command: the run's marker.
    pub environment: Vec<(String, String)>,
    /// The time limit for establishing a connection; whole seconds.
    pub connect_timeout: Duration,
}

impl Default for SshOptions {
    fn default() -> Self {
        Self {
            program: "ssh".to_owned(),
            arguments: Vec::new(),
            elevate: Vec::new(),
            environment: Vec::new(),
            connect_timeout: Duration::from_secs(10),
        }
    }
}

/// A machine behind ssh.
#[derive(Debug)]
pub struct Ssh {
    connection: Connection,
    options: SshOptions,
}

impl Ssh {
    /// Connects to `destination`: `store1`, `root@store1`, or a `Host` of
    /// ssh's configuration.
    ///
    /// # Errors
    /// When there is no ssh client, or the machine cannot be reached or wants
    /// a password.
    pub fn new(destination: &str, options: SshOptions) -> Result<Self, TargetError> {
        Ok(Self {
            connection: Connection::up(destination, &options)?,
            options,
        })
    }

    fn failed(&self, action: impl Into<String>, source: io::Error) -> TargetError {
        self.connection.failed(action.into(), source)
    }

    fn begin(&self, command: &Command) -> Result<SshRunning, TargetError> {
        let environment = command.environment.iter();
        let mut texts = command
            .arguments
            .iter()
            .chain([&command.program, &command.input])
            .chain(environment.flat_map(|(name, value)| [name, value]));
        if texts.any(|text| text.contains('\0')) {
            let source = io::Error::new(io::ErrorKind::InvalidInput, "it holds a zero byte");
            return Err(self.failed(format!("start `{command}`"), source));
        }
        let mark = new_mark();
        let keeper = script::keeper(&mark, &self.options.environment, command);
        let line = script::line(&self.options.elevate, &keeper);
        let process = self
            .connection
            .session(&line, command.input.clone().into_bytes())?;
        Ok(SshRunning {
            process,
            mark,
            machine: self.name().to_owned(),
            command: command.clone(),
            said_goodbye: None,
            ended: None,
        })
    }

    /// Runs a command that handles a file, and turns its failure into the file's.
    fn on_file(&self, action: &str, command: &Command) -> Result<String, TargetError> {
        let output = self.output(command)?;
        if output.code == Some(0) {
            return Ok(output.stdout);
        }
        // The far side uses the locale C, where these are strerror(3)'s words on Linux
        // and FreeBSD alike.
        let kind = [
            ("No such file or directory", io::ErrorKind::NotFound),
            ("Permission denied", io::ErrorKind::PermissionDenied),
            ("Is a directory", io::ErrorKind::IsADirectory),
            ("Not a directory", io::ErrorKind::NotADirectory),
        ]
        .into_iter()
        .find(|(words, _)| output.stderr.contains(words))
        .map_or(io::ErrorKind::Other, |(_, kind)| kind);
        let words = connection::last_line(&output.stderr).to_owned();
        Err(self.failed(action, io::Error::new(kind, words)))
    }
}

/// A word that no output contains by chance.
fn new_mark() -> String {
    // The standard library seeds the hash from the system's randomness.
    format!("raidlab-{:016x}", RandomState::new().hash_one("mark"))
}

/// The command that runs a shell script on a path, its `$1`.
fn on_path(script: &str, path: &str) -> Command {
    Command::reads("sh", ["-c", script, "sh", path])
}

impl Target for Ssh {
    fn name(&self) -> &str {
        self.connection.machine()
    }

    /// Runs a command as [`Target::output`] does. A status above 128 is taken for a signal, as in
    /// POSIX shells, unless the command counts it as success.
    fn output(&self, command: &Command) -> Result<Output, TargetError> {
        let mut running = self.begin(command)?;
        let deadline = command.timeout.map(|limit| Instant::now() + limit);
        match running.wait(deadline)? {
            Some(output) => Ok(output),
            None => {
                running.stop(TIMEOUT_PATIENCE)?;
                Err(TargetError::Timeout {
                    machine: self.name().to_owned(),
                    command: command.to_string(),
                    limit: command.timeout.unwrap_or_default(),
                })
            }
        }
    }

    fn start(&self, command: &Command) -> Result<Box<dyn Running>, TargetError> {
        Ok(Box::new(self.begin(command)?))
    }

    fn read(&self, path: &str) -> Result<String, TargetError> {
        let command = Command::reads("cat", ["--", path]);
        self.on_file(&format!("read {path}"), &command)
    }

    fn write(&self, path: &str, text: &str) -> Result<(), TargetError> {
        let script = if may_create(path) {
            r#"cat >"$1""#
        } else {
            r#"if [ -e "$1" ]; then cat >"$1"; else ls "$1"; fi"#
        };
        let command = on_path(script, path).input(text);
        self.on_file(&format!("write {path}"), &command).map(|_| ())
    }

    fn list(&self, folder: &str) -> Result<Vec<String>, TargetError> {
        let command = on_path(r#"cd "$1" && ls -1A"#, folder);
        let text = match self.on_file(&format!("list {folder}"), &command) {
            // dash prints "can't cd to" for every reason.
            Err(error) if error.is_missing() || !self.exists(folder)? => return Ok(Vec::new()),
            text => text?,
        };
        let mut names: Vec<String> = text.lines().map(str::to_owned).collect();
        names.sort();
        Ok(names)
    }

    fn resolve(&self, path: &str) -> Result<String, TargetError> {
        // Both programs would resolve a path whose last part does not exist; `ls` reports it.
        let script = r#"if [ -e "$1" ]; then realpath "$1" || readlink -f "$1"; else ls "$1"; fi"#;
        let text = self.on_file(&format!("resolve {path}"), &on_path(script, path))?;
        Ok(text.trim_end_matches('\n').to_owned())
    }

    /// Watches as [`Target::watch`] does. A frame's time is the middle between its request and its
    /// first byte. A command among the sources must end by itself: its limit is not kept.
    fn watch(
        &self,
        sources: Vec<Watched>,
        every: Duration,
    ) -> Result<Box<dyn Frames>, TargetError> {
        let mark = new_mark();
        let watcher = script::watcher(&mark, &self.options.environment, &sources);
        let line = script::line(&self.options.elevate, &watcher);
        let process = self.connection.session(&line, Vec::new())?;
        let parser = frames::Parser::new(&mark, frames::successes(&sources));
        frames::SshFrames::begin(self.name(), process, parser, every)
            .map(|frames| Box::new(frames) as Box<dyn Frames>)
            .map_err(|source| self.failed("start a watch", source))
    }
}

impl Ssh {
    fn exists(&self, path: &str) -> Result<bool, TargetError> {
        let output = self.output(&on_path(r#"[ -e "$1" ]"#, path))?;
        Ok(output.code == Some(0))
    }
}

struct SshRunning {
    process: Process,
    mark: String,
    machine: String,
    command: Command,
    /// The time when the trailer was first seen.
    said_goodbye: Option<Instant>,
    ended: Option<Output>,
}

impl SshRunning {
    fn lost(&self, source: io::Error) -> TargetError {
        TargetError::Io {
            machine: self.machine.clone(),
            action: format!("follow `{}`", self.command),
            source,
        }
    }

    /// Waits for the command's end, or until the deadline.
    fn wait(&mut self, deadline: Option<Instant>) -> Result<Option<Output>, TargetError> {
        loop {
            if let Some(output) = self.poll()? {
                return Ok(Some(output));
            }
            if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
                return Ok(None);
            }
            // ssh ends with the command, unless a daemon is left behind that holds the far pipes.
            let soon = Instant::now() + Duration::from_millis(50);
            let until = deadline.map_or(soon, |deadline| deadline.min(soon));
            self.process.wait(Some(until), State::complete);
        }
    }

    /// Interprets the whole output of ssh.
    fn finish(&mut self) -> Result<Output, TargetError> {
        let result = self.process.result();
        let output = result.map_err(|source| self.lost(source))?;
        let output = output.ok_or_else(|| self.lost(io::Error::other("ssh does not end")))?;
        let Some((trailer, stdout)) = script::trailer(&self.mark, output.stdout.as_bytes()) else {
            return Err(TargetError::Unreachable {
                machine: self.machine.clone(),
                reason: connection::reason(&output.stderr),
            });
        };
        let Trailer::Status(status) = trailer else {
            return Err(TargetError::NoProgram {
                machine: self.machine.clone(),
                program: self.command.program.clone(),
            });
        };
        let signal = (status > 128 && !self.command.success.contains(&status))
            .then_some(status - 128)
            .filter(|signal| *signal <= 64);
        Ok(Output {
            code: signal.is_none().then_some(status),
            signal,
            stdout: String::from_utf8_lossy(&stdout).into_owned(),
            ..output
        })
    }
}

impl Running for SshRunning {
    fn poll(&mut self) -> Result<Option<Output>, TargetError> {
        if self.ended.is_some() {
            return Ok(self.ended.clone());
        }
        if !self.process.look(State::complete) {
            let mark = &self.mark;
            let seen = self
                .process
                .look(|state| script::trailer(mark, &state.stdout).is_some());
            if !seen {
                return Ok(None);
            }
            let since = *self.said_goodbye.get_or_insert_with(Instant::now);
            if !self.process.look(|state| state.quiet_since(since)) {
                return Ok(None);
            }
            let stopped = self.process.stop(Duration::ZERO);
            stopped.map_err(|source| self.lost(source))?;
            self.process.wait(None, State::complete);
        }
        self.ended = Some(self.finish()?);
        Ok(self.ended.clone())
    }

    fn stop(&mut self, patience: Duration) -> Result<Output, TargetError> {
        if let Some(output) = self.poll()? {
            return Ok(output);
        }
        let seconds = patience.as_secs() + u64::from(patience.subsec_nanos() > 0);
        // The first newline ends a line that the command may have left unread.
        self.process.feed(&format!("\n{} {seconds}\n", self.mark));
        let deadline = Instant::now() + Duration::from_secs(seconds) + STOP_SLACK;
        self.wait(Some(deadline))?
            .ok_or_else(|| TargetError::Unreachable {
                machine: self.machine.clone(),
                reason: "it does not answer".to_owned(),
            })
    }
}

#[cfg(test)]
mod tests;
