//! The master connection and the sessions over it.

use super::SshOptions;
use crate::process::{Process, State};
use crate::target::TargetError;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};
use std::{env, io, thread};
use tempfile::TempDir;

/// The silence on the connection after which ssh probes the other side; three unanswered
/// probes end it.
const ALIVE_INTERVAL_SECONDS: u64 = 15;

#[derive(Debug)]
pub struct Connection {
    machine: String,
    options: SshOptions,
    /// The folder of the socket, private to the user: access to the socket is access
    /// to the machine.
    folder: TempDir,
    /// The process of the master connection, set once it is up.
    master: OnceLock<Process>,
}

/// The address for a session whose master connection has just ended, for which ssh would make a
/// connection of its own. Connecting to the broadcast address always fails.
const NOWHERE: &str = "255.255.255.255";

/// The message for a connection that has ended without one.
const ENDED: &str = "the connection has ended";

impl Connection {
    /// Connects to a machine, once.
    pub fn up(machine: &str, options: &SshOptions) -> Result<Self, TargetError> {
        let connection = Self::new(machine, options)?;
        let master = connection.begin()?;
        // This is the only place that sets it.
        let _ = connection.master.set(master);
        Ok(connection)
    }

    /// Prepares a connection that is not up yet.
    fn new(machine: &str, options: &SshOptions) -> Result<Self, TargetError> {
        let runtime = env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
        // A socket's path is at most 104 bytes long on FreeBSD, and ssh adds 17 while it creates
        // it, so a short folder is needed.
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
            master: OnceLock::new(),
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

    /// Runs a line in the far login shell; its input is kept open.
    pub fn session(&self, line: &str, input: Vec<u8>) -> Result<Process, TargetError> {
        if let Some(reason) = self.master.get().and_then(ending) {
            return Err(self.unreachable(&reason));
        }
        let mut client = self.client("no");
        client.args(["-T", "--", &self.machine, line]);
        self.spawn(client, input)
    }

    /// Starts the master connection.
    fn begin(&self) -> Result<Process, TargetError> {
        let mut client = self.client("yes");
        client.args(["-N", "-T", "--", &self.machine]);
        let process = self.spawn(client, Vec::new())?;
        let deadline = Instant::now() + self.options.connect_timeout + Duration::from_secs(10);
        // ssh creates the socket when it is logged in.
        while !self.socket().exists() {
            if process.look(State::complete) {
                return Err(self.unreachable(&last_words(&process)));
            }
            if Instant::now() >= deadline {
                return Err(self.unreachable("it does not answer"));
            }
            thread::sleep(Duration::from_millis(5));
        }
        Ok(process)
    }

    fn client(&self, is_master: &str) -> Command {
        let mut client = Command::new(&self.options.program);
        let mut options = vec![
            "BatchMode=yes".to_owned(),
            // Its messages would be mixed into the command's errors.
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
        // ssh heeds the first of several settings.
        if is_master == "no" {
            options.push(format!("HostName={NOWHERE}"));
        }
        for option in &options {
            client.args(["-o", option]);
        }
        client.args(&self.options.arguments).env("LC_ALL", "C");
        client
    }

    fn spawn(&self, client: Command, input: Vec<u8>) -> Result<Process, TargetError> {
        Process::spawn(client, input, true).map_err(|source| {
            if source.kind() == io::ErrorKind::NotFound {
                // The local machine lacks the client, and the name tells which
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

/// The reason why a master connection has ended, if it has.
fn ending(master: &Process) -> Option<String> {
    let ended = master.look(|state| state.ended.is_some());
    ended.then(|| last_words(master))
}

fn last_words(client: &Process) -> String {
    client.look(|state| reason(&String::from_utf8_lossy(&state.stderr)))
}

/// The reason why a connection failed, from the output of ssh.
pub(crate) fn reason(said: &str) -> String {
    match last_line(said) {
        "" => ENDED.to_owned(),
        line if line.contains(NOWHERE) => ENDED.to_owned(),
        line => line.to_owned(),
    }
}

/// The last line with any text.
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

    /// With it the lock on the machine has gone, which another program may have by now; or the
    /// machine was started again, and has other disks under the same names.
    #[test]
    fn a_broken_connection_is_not_made_again() {
        let options = SshOptions {
            program: concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fake-ssh.sh").to_owned(),
            ..SshOptions::default()
        };
        let mut connection = Connection::up("store1", &options).unwrap();
        let session = connection.session("echo once", Vec::new()).unwrap();
        session.wait(None, State::complete);
        assert_eq!(session.take_stdout(), b"once\n");
        let master = connection.master.get_mut().unwrap();
        master.stop(Duration::ZERO).unwrap();
        let error = connection.session("echo again", Vec::new()).unwrap_err();
        let words = "cannot reach store1: the connection has ended";
        assert_eq!(error.to_string(), words);
    }

    /// The master may end in the moment before ssh looks for it.
    #[test]
    fn a_session_without_its_master_goes_nowhere() {
        let Ok(ssh) = Command::new("ssh").arg("-V").output() else {
            eprintln!("nothing was tested: no ssh here");
            return;
        };
        assert!(ssh.status.success());
        let connection = Connection::new("root@127.0.0.1", &SshOptions::default()).unwrap();
        let session = connection.session("echo again", Vec::new()).unwrap();
        session.wait(None, State::complete);
        assert_eq!(session.take_stdout(), b"");
        assert_eq!(last_words(&session), ENDED);
    }
}
