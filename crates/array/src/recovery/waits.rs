//! What a sync waits for, for people.

use super::{Pause, Recovery};
use raidlab_units::Sectors;
use std::fmt::Write as _;

impl Recovery {
    /// Where the sync is and what it waits for, for people.
    pub(crate) fn waits(&self) -> Option<String> {
        let sync = self.sync.as_ref()?;
        let mut line = format!(
            "the {} is at sector {} of {} with {} blocks in flight",
            sync.kind.name(),
            sync.next.0,
            sync.total.0,
            self.in_flight
        );
        if let Some(Sectors(start)) = self.barrier.raised() {
            let _ = write!(line, ", its barrier up for the block at sector {start}");
        }
        let _ = match sync.pause {
            Pause::None => Ok(()),
            Pause::Until(time) => write!(line, ", asleep until {time}"),
            Pause::Drain => write!(line, ", and starts no other before these have ended"),
        };
        Some(line)
    }
}
