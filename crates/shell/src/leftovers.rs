//! Processes that a killed run has left behind.
//!
//! The warden beside raidlab and the keeper behind ssh end the processes of a killed run, except a
//! daemon that left its process group. Every command of a run therefore carries a variable of its
//! own, such as `RAIDLAB_RUN=17`, which its children inherit, and which Linux shows in
//! `/proc/*/environ`. FreeBSD does not show it.

use crate::command::Command;
use crate::target::{Target, TargetError};
use std::thread;
use std::time::{Duration, Instant};

/// A process that carries a run's marker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Leftover {
    /// The process ID.
    pub process: u32,
    /// The arguments, separated by blanks; empty for a process that is ending.
    pub command: String,
}

/// The command that searches: over ssh, reading every process one by one would take minutes. An
/// exit code of 1 means that there is none, 2 that some belong to other users.
fn search(marker: &str) -> Command {
    let script = r#"grep -lzxF -e "$1" /proc/[0-9]*/environ 2>/dev/null"#;
    Command::reads("sh", ["-c", script, "sh", marker]).success(&[0, 1, 2])
}

/// The processes whose environment holds exactly `marker`
/// (`RAIDLAB_RUN=17`), by number. Those of other users are seen by root only.
///
/// # Errors
/// When the machine cannot be queried.
pub fn leftovers(target: &dyn Target, marker: &str) -> Result<Vec<Leftover>, TargetError> {
    let mut found = Vec::new();
    for path in target.run(&search(marker))?.stdout.lines() {
        let name = path.split('/').nth(2).unwrap_or_default();
        let Ok(process) = name.parse() else { continue };
        let arguments = match target.read(&format!("/proc/{process}/cmdline")) {
            // The process has ended meanwhile, as the search itself has.
            Err(TargetError::Io { .. }) => continue,
            arguments => arguments?,
        };
        found.push(Leftover {
            process,
            command: arguments.trim_end_matches('\0').replace('\0', " "),
        });
    }
    found.sort_by_key(|leftover| leftover.process);
    Ok(found)
}

/// Ends the processes that carry `marker` by SIGTERM, and those left after `patience` by SIGKILL;
/// returns those that were found.
///
/// # Errors
/// When the machine cannot be queried.
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
        // A number could be another process's by now.
        let still = leftovers(target, marker)?;
        left.retain(|leftover| still.contains(leftover));
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
    // A process that has just ended by itself makes kill(1) fail.
    target
        .output(&Command::changes("kill", arguments))
        .map(|_| ())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::local::Local;
    use crate::recorded::Recorded;

    #[test]
    fn those_that_have_ended_meanwhile_are_left_out() {
        let list = "/proc/12/environ\n/proc/13/environ\n/proc/7/environ\n";
        let store = Recorded::new("store1")
            .says(&search("RAIDLAB_RUN=17"), list)
            .file("/proc/7/cmdline", "mdadm\0--monitor\0")
            .file("/proc/12/cmdline", "")
            .file_missing("/proc/13/cmdline");
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
        assert_eq!(
            end_leftovers(&local, &format!("{name}="), Duration::ZERO).unwrap(),
            [],
            "only a whole variable is the marker"
        );
        let found = end_leftovers(&local, &marker, Duration::from_millis(100)).unwrap();
        assert!(found.iter().any(left), "{found:?}");
        let begun = Instant::now();
        while leftovers(&local, &marker).unwrap().iter().any(left) {
            assert!(begun.elapsed() < Duration::from_secs(20));
            thread::sleep(Duration::from_millis(10));
        }
    }
}
