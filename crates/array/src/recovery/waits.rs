//! The waiting states of a sync, in words.

use super::{Pause, Recovery};
use raidlab_units::Sectors;
use std::fmt::Write as _;

impl Recovery {
    /// Returns the position of the sync and what it waits for, in words.
    pub(crate) fn waits(&self) -> Option<String> {
        let status = self.walk.status(Sectors::ZERO)?;
        let mut line = format!(
            "the {} is at sector {} of {} with {} blocks in flight",
            status.kind.name(),
            self.walk.next().0,
            status.total.0,
            self.in_flight
        );
        if let Some(Sectors(start)) = self.barrier.raised() {
            let _ = write!(line, ", its barrier up for the block at sector {start}");
        }
        let _ = match self.walk.pause() {
            Pause::None => Ok(()),
            Pause::Until(time) => write!(line, ", asleep until {time}"),
            Pause::Drain => write!(line, ", and starts no other before these have ended"),
        };
        Some(line)
    }
}
