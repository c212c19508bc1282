//! The master connection and the sessions over it.

use super::SshOptions;
use crate::process::{Process, State};
use crate::target::TargetError;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{env, fs, io, thread};
use tempfile::TempDir;

/// Silence on the connection after which ssh asks whether the other side is
/// there; three unanswered questions end it.
const ALIVE_INTERVAL_SECONDS: u64 = 15;

#[derive(Debug)]
pub struct Connection {
    machine: String,
    options: SshOptions,
    /// Private to the user: whoever can open the socket is on the machine.
    folder: TempDir,
    master: Mutex<Option<Process>>,
}

impl Connection {
    /// A connection that is not up yet.
    pub fn new(machine: &str, options: &SshOptions) -> Result<Self, TargetError> {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        // A socket's path is at most 104 bytes long on FreeBSD, and ssh adds
        // 17 while it makes it: a short folder is needed.
        let runtime = runtime
            .filter(|folder| folder.is_dir() && folder.as_os_str().len() < 40)
            .unwrap_or_else(|| PathBuf::from("/tmp"));
        let folder = tempfile::Builder::new()
            .prefix("raidlab-ssh-")
            .tempdir_in(runtime)
            .map_err(|source| TargetError::Io {
                machine: machine.to_owned(),
                action: "make a folder for the connection".to_owned(),
                source,
            })?;
        Ok(Self {
            machine: machine.to_owned(),
            options: options.clone(),
            folder,
            master: Mutex::new(None),
        })
    }

    pub fn machine(&self) -> &str {
        &self.machine
    }

    pub fn failed(&self, action: String, source: io::Error) -> TargetError {
        TargetError::Io {
            machine: self.machine.clone(),
            action,
            source,
        }
    }

    fn unreachable(&self, reason: &str) -> TargetError {
        TargetError::Unreachable {
            machine: self.machine.clone(),
            reason: reason.to_owned(),
        }
    }

    fn socket(&self) -> PathBuf {
        self.folder.path().join("socket")
    }

    /// Runs a line in the far login shell; its input stays open.
    pub fn session(&self, line: &str, input: Vec<u8>) -> Result<Process, TargetError> {
        self.up()?;
        let mut client = self.client("no");
        client.args(["-T", "--", &self.machine, line]);
        self.spawn(client, input)
    }

    /// Brings the master connection up where it is not.
    pub fn up(&self) -> Result<(), TargetError> {
        let mut master = self.master.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(process) = &*master
            && !process.look(|state| state.ended.is_some())
        {
            return Ok(());
        }
        // The socket of one that was killed would be taken for a live one.
        let _ = fs::remove_file(self.socket());
        let mut client = self.client("yes");
        client.args(["-N", "-T", "--", &self.machine]);
        let process = self.spawn(client, Vec::new())?;
        let deadline = Instant::now() + self.options.connect_timeout + Duration::from_secs(10);
        // ssh makes the socket when it is logged in.
        while !self.socket().exists() {
            if process.look(State::complete) {
                let reason = process
                    .look(|state| last_line(&String::from_utf8_lossy(&state.stderr)).to_owned());
                return Err(self.unreachable(&reason));
            }
            if Instant::now() >= deadline {
                return Err(self.unreachable("it does not answer"));
            }
            thread::sleep(Duration::from_millis(5));
        }
        *master = Some(process);
        Ok(())
    }

    fn client(&self, is_master: &str) -> Command {
        let mut client = Command::new(&self.options.program);
        let options = [
            "BatchMode=yes".to_owned(),
            // Its chatter would stand among the command's errors.
            "LogLevel=ERROR".to_owned(),
            "ClearAllForwardings=yes".to_owned(),
            format!(
                "ConnectTimeout={}",
                self.options.connect_timeout.as_secs().max(1)
            ),
            format!("ServerAliveInterval={ALIVE_INTERVAL_SECONDS}"),
            format!("ControlMaster={is_master}"),
            format!("ControlPath={}", self.socket().display()),
            "ControlPersist=no".to_owned(),
        ];
        for option in &options {
            client.args(["-o", option]);
        }
        client.args(&self.options.arguments).env("LC_ALL", "C");
        client
    }

    fn spawn(&self, client: Command, input: Vec<u8>) -> Result<Process, TargetError> {
        Process::spawn(client, input, true).map_err(|source| {
            if source.kind() == io::ErrorKind::NotFound {
                // It is this machine that lacks it, and the name says which
                // connection was wanted.
                TargetError::NoProgram {
                    machine: format!("localhost (to reach {})", self.machine),
                    program: self.options.program.clone(),
                }
            } else {
                self.failed("start ssh".to_owned(), source)
            }
        })
    }
}

/// The last line that says anything.
pub(crate) fn last_line(text: &str) -> &str {
    text.lines()
        .rev()
        .map(str::trim)
        .find(|line| !line.is_empty())
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_broken_connection_is_made_again() {
        let options = SshOptions {
            program: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake-ssh.sh").to_owned(),
            ..SshOptions::default()
        };
        let connection = Connection::new("store1", &options).unwrap();
        connection.up().unwrap();
        if let Some(master) = &mut *connection.master.lock().unwrap() {
            master.stop(Duration::ZERO).unwrap();
        }
        fs::remove_file(connection.socket()).unwrap();
        let session = connection.session("echo again", Vec::new()).unwrap();
        session.wait(None, State::complete);
        assert_eq!(session.take_stdout(), b"again\n");
        assert!(connection.socket().exists());
    }
}
