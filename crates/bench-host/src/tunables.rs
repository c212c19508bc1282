//! Tunables of the kernel that outlive an array, and their values before a run.
//!
//! A run restores them when it takes its array down. A killed run cannot, and the earlier values
//! would be lost: so they are among the [`Marks`](crate::Marks), and
//! [`cleanup`](crate::cleanup()) restores them.

use crate::error::HostError;
use raidlab_shell::{Command, Target};
use serde::{Deserialize, Serialize};

/// The file whose text differs between two boots of a Linux machine.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// A tunable that a run changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tunable {
    /// The tunable's file: `/sys/block/sdb/queue/scheduler`.
    pub path: String,
    /// The value before the run.
    pub before: String,
    /// The boot during which that value held: after another one the kernel has its own values
    /// again, and the file may be another disk's.
    pub boot: String,
}

/// The present values of tunables, each a file and a value that was
/// read, for [`Marks`](crate::Marks).
///
/// # Errors
/// When the machine cannot be queried.
pub fn before(target: &dyn Target, values: &[(String, String)]) -> Result<Vec<Tunable>, HostError> {
    let boot = target.read(BOOT)?.trim().to_owned();
    let tunables = values.iter().map(|(path, before)| Tunable {
        path: path.clone(),
        before: before.clone(),
        boot: boot.clone(),
    });
    Ok(tunables.collect())
}

/// The command that writes a tunable.
pub fn write(path: &str, value: &str) -> Command {
    Command::changes("tee", [path]).input(format!("{value}\n"))
}

/// The chosen word of `none [mq-deadline] kyber`; the whole text of a file without a choice.
pub fn chosen(text: &str) -> &str {
    let mut words = text.split_whitespace();
    let marked = words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    marked.unwrap_or(text.trim())
}

/// The tunables that have another value now.
///
/// # Errors
/// When the machine cannot be queried.
pub fn changed<'a>(
    target: &dyn Target,
    tunables: &'a [Tunable],
) -> Result<Vec<&'a Tunable>, HostError> {
    if tunables.is_empty() {
        return Ok(Vec::new());
    }
    let boot = target.read(BOOT)?;
    let mut changed = Vec::new();
    for one in tunables.iter().filter(|one| one.boot == boot.trim()) {
        match target.read(&one.path) {
            Ok(text) if chosen(&text) != one.before => changed.push(one),
            Ok(_) => {}
            // The disk is gone, and its tunables with it.
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(changed)
}
