//! A process in a group of its own, with all its output kept.
//!
//! Four small threads serve it: one writes its input, one each drains its standard output and
//! error, so that no pipe fills up, and one notices its end. The last only looks (`WNOWAIT`)
//! and leaves the zombie to the owner, so that the process ID is not reused while it may
//! still be signalled.
//!
//! A tool may leave a daemon behind that keeps the pipes open. Its output is therefore taken
//! as complete when the process has ended and either the pipes are closed or nothing came for
//! a moment ([`LINGER`]).

use crate::command::Output;
use crate::warden;
use rustix::io::Errno;
use rustix::process::{
    Pid, Signal, WaitId, WaitIdOptions, kill_process_group, test_kill_process_group, waitid,
};
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// The time that an open pipe is awaited after its process has ended and the last byte came.
pub(crate) const LINGER: Duration = Duration::from_millis(200);

/// The limit on that time where a daemon keeps writing.
const LINGER_AT_MOST: Duration = Duration::from_secs(5);

/// The largest output, bytes; more is an error, as it would fill the memory.
const OUTPUT_LIMIT: usize = 256 << 20;

/// The state of a process: its output so far, and its end.
#[derive(Debug)]
pub struct State {
    /// The standard output so far.
    pub stdout: Vec<u8>,
    /// The standard error so far.
    pub stderr: Vec<u8>,
    /// The time when the process ended; `None` while it runs.
    pub ended: Option<Instant>,
    /// The number of its two output pipes that are open.
    open: u8,
    /// The time when the last byte of output came.
    grown: Instant,
    overflowed: bool,
}

impl State {
    /// Whether no output came for a moment, or the limit since `moment` has passed.
    pub(crate) fn quiet_since(&self, moment: Instant) -> bool {
        self.grown.max(moment).elapsed() >= LINGER || moment.elapsed() >= LINGER_AT_MOST
    }

    /// Whether the process has ended and its output is complete.
    pub fn complete(&self) -> bool {
        self.ended
            .is_some_and(|ended| self.open == 0 || self.quiet_since(ended))
    }
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.lock());
        self.changed.notify_all();
    }
}

/// A running or ended process. Dropped while it runs, it is killed with its
/// whole group.
#[derive(Debug)]
pub struct Process {
    child: Child,
    group: Pid,
    begun: Instant,
    input: Option<Sender<Vec<u8>>>,
    shared: Arc<Shared>,
    status: Option<ExitStatus>,
}

impl Process {
    /// Starts a process with `input`, which is then closed unless `keep_input`.
    pub fn spawn(mut command: Command, input: Vec<u8>, keep_input: bool) -> io::Result<Self> {
        let no_input = input.is_empty() && !keep_input;
        command
            .stdin(if no_input {
                Stdio::null()
            } else {
                Stdio::piped()
            })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let start = warden::Start::announce(&mut command);
        let begun = Instant::now();
        let child = command.spawn()?;
        start.guard(child.id());
        let mut process = Self {
            group: Pid::from_child(&child),
            child,
            begun,
            input: None,
            shared: Arc::new(Shared {
                state: Mutex::new(State {
                    stdout: Vec::new(),
                    stderr: Vec::new(),
                    ended: None,
                    open: 2,
                    grown: begun,
                    overflowed: false,
                }),
                changed: Condvar::new(),
            }),
            status: None,
        };
        process.serve(input, keep_input)?;
        Ok(process)
    }

    /// Starts the threads. If one fails to start, the drop kills the process.
    fn serve(&mut self, input: Vec<u8>, keep_input: bool) -> io::Result<()> {
        if let Some(pipe) = self.child.stdin.take() {
            let (sender, receiver) = mpsc::channel();
            let name = thread::Builder::new().name("input".to_owned());
            name.spawn(move || write(pipe, &receiver))?;
            // The thread has just started, and takes the first piece.
            let _ = sender.send(input);
            self.input = keep_input.then_some(sender);
        }
        if let Some(pipe) = self.child.stdout.take() {
            let shared = Arc::clone(&self.shared);
            let name = thread::Builder::new().name("stdout".to_owned());
            name.spawn(move || drain(pipe, &shared, |state| &mut state.stdout))?;
        }
        if let Some(pipe) = self.child.stderr.take() {
            let shared = Arc::clone(&self.shared);
            let name = thread::Builder::new().name("stderr".to_owned());
            name.spawn(move || drain(pipe, &shared, |state| &mut state.stderr))?;
        }
        let (shared, group) = (Arc::clone(&self.shared), self.group);
        let name = thread::Builder::new().name("end".to_owned());
        name.spawn(move || {
            let look = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
            while matches!(waitid(WaitId::Pid(group), look), Err(Errno::INTR)) {}
            shared.change(|state| state.ended = Some(Instant::now()));
        })?;
        Ok(())
    }

    /// Writes more to a kept input. Text that the process does not read is lost.
    pub fn feed(&self, text: &str) {
        if let Some(input) = &self.input {
            // An ended process has no reader, and its end is reported anyway.
            let _ = input.send(text.as_bytes().to_vec());
        }
    }

    /// Waits until `done` holds or the deadline has passed; returns whether it
    /// holds. `done` is called at every change and, in the moment after one, often
    /// enough for [`State::quiet_since`].
    pub fn wait(&self, deadline: Option<Instant>, done: impl Fn(&State) -> bool) -> bool {
        let mut state = self.shared.lock();
        loop {
            if done(&state) {
                return true;
            }
            let now = Instant::now();
            let left = deadline.map_or(Duration::MAX, |at| at.saturating_duration_since(now));
            if left.is_zero() {
                return false;
            }
            let restless = state.ended.is_some() || state.grown + 2 * LINGER > now;
            let nap = if restless { LINGER / 10 } else { LINGER * 50 };
            state = self
                .shared
                .changed
                .wait_timeout(state, nap.min(left))
                .unwrap_or_else(PoisonError::into_inner)
                .0;
        }
    }

    /// Passes the present state to `look`, and returns its result.
    pub fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.lock())
    }

    /// Takes the standard output since the last call.
    pub(crate) fn take_stdout(&self) -> Vec<u8> {
        std::mem::take(&mut self.shared.lock().stdout)
    }

    /// The result of the process; `None` while it is not complete.
    pub fn result(&mut self) -> io::Result<Option<Output>> {
        if !self.look(State::complete) {
            return Ok(None);
        }
        let status = self.reap()?;
        let state = self.shared.lock();
        if state.overflowed {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!("it printed more than {} MiB", OUTPUT_LIMIT >> 20),
            ));
        }
        let took = state.ended.map(|at| at.duration_since(self.begun));
        Ok(Some(Output {
            code: status.code(),
            signal: status.signal(),
            stdout: String::from_utf8_lossy(&state.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&state.stderr).into_owned(),
            took: took.unwrap_or_default(),
        }))
    }

    /// Ends the group: by SIGTERM, and SIGKILL for what is left after `patience`. A process that
    /// has ended by itself is left alone, with the daemons it may have started.
    pub fn stop(&mut self, patience: Duration) -> io::Result<()> {
        if self.look(|state| state.ended.is_some()) {
            self.reap()?;
            return Ok(());
        }
        let deadline = Instant::now() + patience;
        // An error means that it has just ended.
        let _ = kill_process_group(self.group, Signal::TERM);
        if self.wait(Some(deadline), |state| state.ended.is_some()) {
            self.reap()?;
            // The group's number is not reused while it has members.
            while test_kill_process_group(self.group).is_ok() {
                if Instant::now() >= deadline {
                    let _ = kill_process_group(self.group, Signal::KILL);
                    break;
                }
                thread::sleep(Duration::from_millis(2));
            }
            return Ok(());
        }
        self.kill()
    }

    fn kill(&mut self) -> io::Result<()> {
        let _ = kill_process_group(self.group, Signal::KILL);
        self.wait(None, |state| state.ended.is_some());
        self.reap().map(|_| ())
    }

    fn reap(&mut self) -> io::Result<ExitStatus> {
        if let Some(status) = self.status {
            return Ok(status);
        }
        warden::release(self.child.id());
        let status = self.child.wait()?;
        self.status = Some(status);
        Ok(status)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.status.is_none() {
            let _ = kill_process_group(self.group, Signal::KILL);
            // Errors cannot be reported from a drop.
            let _ = self.reap();
        }
    }
}

fn write(mut pipe: impl Write, pieces: &Receiver<Vec<u8>>) {
    for piece in pieces {
        // A process that closes its input unread is no error of ours.
        if pipe.write_all(&piece).is_err() || pipe.flush().is_err() {
            return;
        }
    }
}

fn drain(mut pipe: impl Read, shared: &Shared, stream: fn(&mut State) -> &mut Vec<u8>) {
    let mut piece = vec![0; 64 << 10];
    loop {
        match pipe.read(&mut piece) {
            Ok(0) => break,
            Ok(count) => shared.change(|state| {
                state.grown = Instant::now();
                let kept = stream(state);
                if kept.len() + count > OUTPUT_LIMIT {
                    state.overflowed = true;
                } else {
                    kept.extend_from_slice(&piece[..count]);
                }
            }),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => break,
        }
    }
    shared.change(|state| state.open -= 1);
}
