//! Tunables of the kernel that outlive an array, and what they held before a run.
//!
//! A run puts them back when it takes its array down. One that is killed cannot, and
//! nobody could tell later what they held: so that stands among the [`Marks`](crate::Marks), and
//! [`cleanup`](crate::cleanup()) puts it back.

use crate::error::HostError;
use raidlab_shell::{Command, Target};
use serde::{Deserialize, Serialize};

/// What tells one start of a Linux machine from another.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";

/// A tunable that a run changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tunable {
    /// Its file: `/sys/block/sdb/queue/scheduler`.
    pub path: String,
    /// What it held.
    pub before: String,
    /// The start of the machine in which that was so: after another one the kernel has
    /// its own values again, and the file may be another disk's.
    pub boot: String,
}

/// What tunables hold now, each a file and a value that was read, for [`Marks`](crate::Marks).
///
/// # Errors
/// When the machine cannot be asked.
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

/// The chosen one of `none [mq-deadline] kyber`; the text of a file without a choice.
pub fn chosen(text: &str) -> &str {
    let mut words = text.split_whitespace();
    let marked = words.find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    marked.unwrap_or(text.trim())
}

/// Those that hold something else now.
///
/// # Errors
/// When the machine cannot be asked.
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
            // The disk has gone, and its tunables with it.
            Err(error) if error.is_missing() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(changed)
}
