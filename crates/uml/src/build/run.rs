//! The programs of a build: their output goes to a log, and its lines are counted to tell how
//! far they are.

use super::Watcher;
use crate::error::BuildError;
use raidlab_shell::{Command, Local, Target};
use raidlab_units::cannot;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::time::Duration;

/// The time between two looks at a running program.
const LOOK: Duration = Duration::from_millis(200);
/// The time that a program that is stopped may take to end.
const PATIENCE: Duration = Duration::from_secs(5);
/// The number of lines of the log that an error shows.
const TAIL: usize = 15;

/// The script that sends a program's output to a file and ends as the program does.
const SCRIPT: &str = r#"exec "$@" >>"$0" 2>&1 </dev/null"#;

/// A runner of programs, one by one.
#[derive(Debug)]
pub(crate) struct Runner {
    log: PathBuf,
    /// Variables that every program gets.
    environment: Vec<(String, String)>,
}

impl Runner {
    pub(crate) const fn new(log: PathBuf, environment: Vec<(String, String)>) -> Self {
        Self { log, environment }
    }

    /// Runs a program to its end; it prints about `lines` lines, or an unknown number where that
    /// is 0. Work that `make` has done before, in a build that was interrupted, it does not print
    /// again: that counts as done.
    pub(crate) fn run(
        &self,
        command: &Command,
        lines: u64,
        watcher: &mut dyn Watcher,
    ) -> Result<(), BuildError> {
        let on_log = cannot("use", &self.log);
        let mut log = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&self.log)
            .map_err(on_log)?;
        writeln!(log, "+ {command}").map_err(on_log)?;
        let said = fs::read(&self.log).map_err(on_log)?;
        let mut tail = File::open(&self.log).map_err(on_log)?;
        let begun = io::Seek::seek(&mut tail, io::SeekFrom::End(0)).map_err(on_log)?;
        let mut shell = vec!["-c".to_owned(), SCRIPT.to_owned()];
        shell.push(self.log.to_string_lossy().into_owned());
        shell.push(command.program.clone());
        shell.extend(command.arguments.iter().cloned());
        let mut wrapped = Command::changes("sh", shell);
        wrapped.environment.clone_from(&self.environment);
        wrapped
            .environment
            .extend(command.environment.iter().cloned());
        let mut running = Local::new().start(&wrapped)?;
        let mut seen = if command.program == "make" {
            made(&said)
        } else {
            0
        };
        let output = loop {
            if let Some(output) = running.poll()? {
                break output;
            }
            if watcher.cancelled() {
                running.stop(PATIENCE)?;
                return Err(BuildError::Cancelled);
            }
            seen += count_lines(&mut tail).map_err(on_log)?;
            #[expect(clippy::cast_precision_loss, reason = "a share for a bar")]
            if lines > 0 {
                watcher.share((seen as f64 / lines as f64).min(1.0));
            }
            std::thread::sleep(LOOK);
        };
        if output.code == Some(0) {
            return Ok(());
        }
        Err(self.failed(command, output.code, begun))
    }

    fn failed(&self, command: &Command, code: Option<i32>, begun: u64) -> BuildError {
        let said = fs::read(&self.log).unwrap_or_default();
        let begun = usize::try_from(begun).unwrap_or(0).min(said.len());
        let said = String::from_utf8_lossy(&said[begun..]);
        let log = self.log.clone();
        if said.contains("No space left on device") {
            return BuildError::Full { log };
        }
        BuildError::Command {
            command: command.to_string(),
            how: code.map_or_else(
                || "was killed".to_owned(),
                |code| format!("ended with {code}"),
            ),
            log,
            tail: last_lines(&said, TAIL),
        }
    }
}

/// The number of things that `make` says that it has made: ` CC kernel/fork.o` and the like.
fn made(log: &[u8]) -> u64 {
    let lines = log.split(|byte| *byte == b'\n');
    lines.filter(|line| line.starts_with(b"  ")).count() as u64
}

fn count_lines(file: &mut File) -> io::Result<u64> {
    let mut piece = [0; 8192];
    let mut lines = 0;
    loop {
        let count = file.read(&mut piece)?;
        if count == 0 {
            return Ok(lines);
        }
        lines += piece[..count].iter().filter(|byte| **byte == b'\n').count() as u64;
    }
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::build::Step;

    struct Quiet {
        shares: Vec<f64>,
        stop: bool,
    }

    impl Watcher for Quiet {
        fn step(&mut self, _: Step) {}
        fn share(&mut self, share: f64) {
            self.shares.push(share);
        }
        fn cancelled(&self) -> bool {
            self.stop
        }
    }

    fn run(script: &str, stop: bool) -> (Result<(), BuildError>, String, Vec<f64>) {
        let folder = tempfile::tempdir().expect("a folder");
        let runner = Runner::new(folder.path().join("log"), Vec::new());
        let mut watcher = Quiet {
            shares: Vec::new(),
            stop,
        };
        let command = Command::changes("sh", ["-c", script]);
        let ended = runner.run(&command, 4, &mut watcher);
        let log = fs::read_to_string(folder.path().join("log")).expect("a log");
        (ended, log, watcher.shares)
    }

    #[test]
    fn what_a_program_says_is_in_the_log_and_its_end_in_the_error() {
        let (ended, log, _) = run("echo one; echo two >&2", false);
        ended.expect("it succeeds");
        assert!(log.starts_with("+ sh -c "), "{log}");
        assert!(log.ends_with("one\ntwo\n"), "{log}");
        let (ended, _, _) = run("seq 30; exit 3", false);
        let error = ended.expect_err("it fails").to_string();
        assert!(error.contains("ended with 3"), "{error}");
        assert!(
            error.ends_with("\n29\n30") && !error.contains("\n15\n"),
            "{error}"
        );
    }

    #[test]
    fn what_make_has_made_before_counts() {
        let log = b"+ tar -xJf linux.tar.xz\ntar: Write checkpoint 1000\n+ make linux\n\
                    make: Entering directory\n  CC      init/main.o\n  AR      init/built-in.a\n";
        assert_eq!(made(log), 2);
        assert_eq!(made(b""), 0);
    }

    #[test]
    fn a_full_disk_is_told_as_that() {
        let (ended, _, _) = run("echo 'x.o: No space left on device'; exit 1", false);
        assert!(matches!(ended, Err(BuildError::Full { .. })), "{ended:?}");
    }

    #[test]
    fn a_program_is_stopped_when_nobody_wants_it_any_more() {
        let (ended, _, _) = run("sleep 600", true);
        assert!(matches!(ended, Err(BuildError::Cancelled)), "{ended:?}");
    }
}
