//! The waiting states of the md model, in words.

use super::Raid5d;
use raidlab_units::Sectors;

impl Raid5d {
    /// Returns a line each for the requests that sleep for a stripe, the stripes in work, the
    /// thread's state, and the sync's position.
    pub(super) fn waits_of_all(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.asleep.is_empty() {
            lines.push(format!(
                "{} requests sleep for a stripe: {} of {} are in use",
                self.asleep.len(),
                self.cache.in_use(),
                self.cache.places()
            ));
        }
        if self.requests.in_work() > 0 {
            lines.push(format!(
                "{} requests are in the stripe cache or with the members, {} commands in flight",
                self.requests.in_work(),
                self.commands_in_flight
            ));
        }
        if self.senders.asleep() > 0 {
            lines.push(format!(
                "{} threads sleep until a disk has a request for them",
                self.senders.asleep()
            ));
        }
        if self.is_stalled {
            lines.push("the array's thread writes metadata".to_owned());
        }
        if !self.members.unrecorded().is_empty() {
            lines.push("the array's thread waits until a failure is recorded".to_owned());
        }
        if let Some(status) = self.walk.status(Sectors::ZERO) {
            lines.push(format!(
                "the {} is at sector {} of {} with {} stripes in work",
                status.kind.name(),
                status.position.0,
                status.total.0,
                status.in_flight
            ));
        }
        lines
    }
}
