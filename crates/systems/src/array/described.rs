//! The properties of an array, whatever its system: its level, its stripes, the bytes that its
//! members write, their roles, whether they must be made equal first, whether it copies on write.
//! Benches record these as facts, which the audit of a measurement reads.

use super::steps::cannot_build;
use super::{Result, SystemError};
use crate::words::RefusedWord;
use std::time::Duration;

/// The properties of a kind of array. The defaults are those of most arrays.
pub trait Described {
    /// The name for people, with the level: `md raid5`, `ZFS raidz1`.
    fn title(&self) -> String;

    /// The error that the array lacks an ability, with the reason.
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

    /// The level as the system names it: `raid5`, `mirror`; `None` where only another
    /// program knows it.
    fn level(&self) -> Option<&'static str>;

    /// Checks the words that a file gives to the system's programs.
    ///
    /// # Errors
    /// The first word that does more than shape the array.
    fn check_words(&self) -> Result<(), RefusedWord> {
        Ok(())
    }

    /// The number of members' worth of data in a stripe of an array of `count` members; `None`
    /// where there are no stripes or the level does not tell.
    fn data_members(&self, _count: usize) -> Option<u64> {
        None
    }

    /// Bytes that all members together write for each byte that is written in sequence, in whole
    /// stripes: 2 for two copies of everything, 4/3 for a RAID 5 of four. `None` where the members
    /// do not bound it (a cache answers before them) or only another program knows it. Members
    /// beside the array proper (spares, logs) do not count.
    fn member_bytes_per_byte(&self, _count: usize) -> Option<f64> {
        None
    }

    /// The largest number of `count` members that may be missing at a time: with more gone, data
    /// are lost whichever they are. `None` where that is not known here.
    fn may_miss(&self, _count: usize) -> Option<usize> {
        None
    }

    /// Whether rewritten data go to another place, so that the old ones stay until the new
    /// ones are complete.
    fn copies_on_write(&self) -> bool {
        false
    }

    /// Whether the array is a file system, or holds one, of its own kind.
    fn has_own_file_system(&self) -> bool {
        false
    }

    /// The compression, where its file sets it and the system does not report it.
    fn compression(&self) -> Option<&str> {
        None
    }

    /// Whether its settings show that equal data are stored once; otherwise they are not.
    fn tells_deduplication(&self) -> bool {
        false
    }

    /// The auxiliary devices that answer or take requests before the array proper: `cache`, `log`,
    /// `cache log`; empty where there are none.
    fn auxiliary(&self) -> &'static str {
        ""
    }

    /// The program that prints the version of the system, with its arguments; `None` where the
    /// kernel's own version is that of the system.
    fn version_command(&self) -> Option<(&'static str, &'static [&'static str])> {
        None
    }

    /// The role of the member in a slot of `count` beside being one. Caches and logs are
    /// the last members.
    fn role(&self, _count: usize, _slot: usize) -> Option<&'static str> {
        None
    }

    /// Whether its members are made equal after it is created.
    fn has_first_sync(&self) -> bool {
        false
    }

    /// Leaves out that first sync where possible: right where members are already equal.
    fn leave_out_first_sync(&mut self) {}

    /// The time that it is left alone after the machine's caches were dropped, until its own are as
    /// large as they may be.
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
