//! Processes that a killed run has left behind.
//!
//! The warden beside raidlab and the keeper behind ssh end what a killed run
//! started. What they cannot know is a daemon that left its process group.
//! Every command of a run therefore carries a variable of its own, such as
//! `RAIDLAB_RUN=17`, which its children inherit, and which Linux shows in
//! `/proc/*/environ`. FreeBSD shows nothing there.

use crate::command::Command;
use crate::target::{Target, TargetError};
use std::thread;
use std::time::{Duration, Instant};

/// A process that carries a run's marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// Its number.
    pub process: u32,
    /// Its arguments, with blanks between them; empty for one that is ending.
    pub command: String,
}

/// The processes whose environment holds exactly `marker`
/// (`RAIDLAB_RUN=17`), by number. Those of other users are seen by root only.
///
/// # Errors
/// When the machine cannot be asked.
pub fn leftovers(target: &dyn Target, marker: &str) -> Result<Vec<Leftover>, TargetError> {
    let mut found = Vec::new();
    for name in target.list("/proc")? {
        let Ok(process) = name.parse() else { continue };
        if !carries(target, process, marker)? {
            continue;
        }
        let arguments = text(target, &format!("/proc/{process}/cmdline"))?;
        found.push(Leftover {
            process,
            command: arguments.trim_end_matches('\0').replace('\0', " "),
        });
    }
    found.sort_by_key(|leftover| leftover.process);
    Ok(found)
}

/// Ends the processes that carry `marker`, politely, and by force what is left
/// after `patience`; returns those that were found.
///
/// # Errors
/// When the machine cannot be asked.
pub fn end_leftovers(
    target: &dyn Target,
    marker: &str,
    patience: Duration,
) -> Result<Vec<Leftover>, TargetError> {
    let found = leftovers(target, marker)?;
    let deadline = Instant::now() + patience;
    let mut left = found.clone();
    signal(target, "TERM", &left)?;
    while !left.is_empty() {
        thread::sleep(Duration::from_millis(20));
        // By now the number could be another process's.
        let mut still = Vec::new();
        for leftover in left {
            if carries(target, leftover.process, marker)? {
                still.push(leftover);
            }
        }
        left = still;
        if Instant::now() >= deadline {
            signal(target, "KILL", &left)?;
            break;
        }
    }
    Ok(found)
}

fn signal(target: &dyn Target, signal: &str, processes: &[Leftover]) -> Result<(), TargetError> {
    if processes.is_empty() {
        return Ok(());
    }
    let numbers = processes
        .iter()
        .map(|leftover| leftover.process.to_string());
    let arguments = ["-s".to_owned(), signal.to_owned()]
        .into_iter()
        .chain(numbers);
    // One that has just ended by itself makes kill(1) fail.
    target
        .output(&Command::changes("kill", arguments))
        .map(|_| ())
}

fn carries(target: &dyn Target, process: u32, marker: &str) -> Result<bool, TargetError> {
    let environment = text(target, &format!("/proc/{process}/environ"))?;
    Ok(environment.split('\0').any(|entry| entry == marker))
}

/// A file of a process; empty when it has ended or is another user's.
fn text(target: &dyn Target, path: &str) -> Result<String, TargetError> {
    match target.read(path) {
        Err(TargetError::Io { .. }) => Ok(String::new()),
        text => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::Local;
    use crate::recorded::Recorded;

    #[test]
    fn only_a_whole_variable_is_the_marker() {
        let store = Recorded::new("store1")
            .file("/proc/7/environ", "HOME=/\0RAIDLAB_RUN=17\0")
            .file("/proc/7/cmdline", "mdadm\0--monitor\0")
            .file("/proc/8/environ", "RAIDLAB_RUN=170\0NOT_RAIDLAB_RUN=17\0")
            .file("/proc/12/environ", "RAIDLAB_RUN=17")
            .file("/proc/12/cmdline", "")
            .file_missing("/proc/13/environ")
            .folder("/proc", &["12", "13", "7", "8", "cpuinfo"]);
        let found = leftovers(&store, "RAIDLAB_RUN=17").unwrap();
        let expected = [(7, "mdadm --monitor"), (12, "")];
        assert_eq!(
            found,
            expected.map(|(process, command)| Leftover {
                process,
                command: command.to_owned()
            })
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_daemon_that_will_not_go_is_found_and_ended() {
        let name = format!("RAIDLAB_TEST_{}", std::process::id());
        let local = Local::new().environment(&*name, "1");
        let script = "trap '' TERM; while :; do sleep 0.05; done";
        let daemon = Command::changes("setsid", ["-f", "sh", "-c", script]);
        local.run(&daemon).unwrap();
        let marker = format!("{name}=1");
        let left = |command: &Leftover| command.command.contains("while");
        let found = end_leftovers(&local, &marker, Duration::from_millis(100)).unwrap();
        assert!(found.iter().any(left), "{found:?}");
        let begun = Instant::now();
        while leftovers(&local, &marker).unwrap().iter().any(left) {
            assert!(begun.elapsed() < Duration::from_secs(20));
            thread::sleep(Duration::from_millis(10));
        }
    }
}
