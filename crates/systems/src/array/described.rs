//! What an array is, whatever its system: its level, its stripes, how much its members
//! write, what they are for, whether they must be made equal first, whether it copies on
//! write. Benches write these down as facts, and who judges a measurement reads the facts.

use super::steps::cannot_build;
use super::{Result, SystemError};
use crate::words::RefusedWord;
use std::time::Duration;

/// What a kind of array says of itself. What a kind does not say of itself is as most
/// arrays are.
pub trait Described {
    /// What people call it, with its level: `md raid5`, `ZFS raidz1`.
    fn title(&self) -> String;

    /// The error that it cannot do this, with the reason.
    fn lacks(&self, what: &str, reason: &str) -> SystemError {
        SystemError::unsupported(&self.title(), what, reason)
    }

    /// Refuses to be built, with the reason.
    ///
    /// # Errors
    /// The reason, whatever is asked for.
    fn refuse<T>(&self, reason: impl Into<String>) -> Result<T>
    where
        Self: Sized,
    {
        Err(cannot_build(&self.title(), reason))
    }

    /// The level as the system names it: `raid5`, `mirror`; `None` where only
    /// somebody else knows it.
    fn level(&self) -> Option<&'static str>;

    /// Checks the words that a file gives to the system's programs.
    ///
    /// # Errors
    /// The first that does more than shape the array.
    fn check_words(&self) -> Result<(), RefusedWord> {
        Ok(())
    }

    /// Members' worth of data in a stripe of an array of `count` members; `None`
    /// where there are no stripes or the level does not tell.
    fn data_members(&self, _count: usize) -> Option<u64> {
        None
    }

    /// Bytes that all members together write for each byte that is written in sequence,
    /// in whole stripes: 2 for two copies of everything, 4/3 for a RAID 5 of four. `None`
    /// where the members do not bound it (a cache answers before them) or somebody else
    /// knows it. Members beside the array proper (spares, logs) do not count.
    fn member_bytes_per_byte(&self, _count: usize) -> Option<f64> {
        None
    }

    /// How many of `count` members may be missing at a time, at most: with more gone, data are
    /// lost whichever they are. `None` where nobody here knows it.
    fn may_miss(&self, _count: usize) -> Option<usize> {
        None
    }

    /// Whether data that are written again go to another place, so that the old ones
    /// stay until the new ones are whole.
    fn copies_on_write(&self) -> bool {
        false
    }

    /// Whether it is a file system, or holds one, of its own kind.
    fn has_own_file_system(&self) -> bool {
        false
    }

    /// How it compresses data, where its file says so and the system does not tell.
    fn compression(&self) -> Option<&str> {
        None
    }

    /// Whether its settings tell if equal data are kept once; without, they are not.
    fn tells_deduplication(&self) -> bool {
        false
    }

    /// What stands beside the array proper and answers or takes requests before it:
    /// `cache`, `log`, `cache log`; empty where nothing does.
    fn auxiliary(&self) -> &'static str {
        ""
    }

    /// The program that says the version of the system, and the words that make it do so;
    /// `None` where the kernel's own version is that of the system.
    fn version_command(&self) -> Option<(&'static str, &'static [&'static str])> {
        None
    }

    /// What the member in a slot of `count` does beside being one. Caches and logs
    /// are the last members.
    fn role(&self, _count: usize, _slot: usize) -> Option<&'static str> {
        None
    }

    /// Whether its members are made equal after it is created.
    fn has_first_sync(&self) -> bool {
        false
    }

    /// Leaves that out where it can be: right where members are equal as they are.
    fn leave_out_first_sync(&mut self) {}

    /// How long it is left alone after the machine's caches were dropped, until its own
    /// are as large as they may be.
    fn idle_after_drop(&self) -> Duration {
        Duration::ZERO
    }
}

/// The bytes that `members` write for each byte, where `data` of them are worth of data.
pub(super) fn written(members: usize, data: f64) -> Option<f64> {
    (members > 0 && data > 0.0).then(|| members as f64 / data)
}

/// Members' worth of data in a stripe over `active` members; `None` where the level has
/// no stripes or its name does not tell.
pub(super) fn data_of(level: &str, active: usize) -> Option<u64> {
    let data = match level {
        "raid0" | "striped" => active,
        "raid4" | "raid5" => active.checked_sub(1)?,
        "raid6" => active.checked_sub(2)?,
        _ => return None,
    };
    u64::try_from(data).ok()
}
