//! The waiting states of an array of copies, in words.

use super::Array;
use raidlab_units::Sectors;

impl Array {
    /// Returns the requests held back or under way at this moment, a line for each cause: requests
    /// at the barrier of a sync, reads that wait for a block, writes that wait for a failure to be
    /// recorded, and the position of the sync.
    #[must_use]
    pub fn waits(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let mut held = |count: usize, first: Option<Sectors>, what: &str| {
            if let Some(Sectors(first)) = first {
                lines.push(format!("{count} {what}, the first at sector {first}"));
            }
        };
        let start_of = |key: &u32| self.pieces.get(*key).range.start;
        held(
            self.waiting.len(),
            self.waiting.front().map(start_of),
            "writes wait at the barrier of the sync",
        );
        held(
            self.waiting_reads.len(),
            self.waiting_reads.front().map(|(_, start)| *start),
            "reads wait at the barrier of the sync",
        );
        held(
            self.held_reads.len(),
            self.held_reads.first().map(|(_, range, _)| range.start),
            "reads wait for a block whose source has left",
        );
        held(
            self.gated.len(),
            self.gated.front().map(start_of),
            "writes wait for a correction, for earlier ones, or for a failure to be recorded",
        );
        held(
            self.unanswered.len(),
            self.unanswered.first().map(|piece| piece.range.start),
            "writes are done and wait for a failure to be recorded",
        );
        let in_flight = self.pieces.iter().filter(|piece| piece.outstanding > 0);
        let in_flight = in_flight.count();
        if in_flight > 0 {
            lines.push(format!(
                "{in_flight} writes or flushes are with the members"
            ));
        }
        if self.door.waiting() > 0 {
            lines.push(format!(
                "{} writes wait at the barrier of the sync, before their bits are set",
                self.door.waiting()
            ));
        }
        if self.thread.waiting() > 0 {
            lines.push(format!(
                "{} blocks of the sync wait for the array's thread, which writes metadata",
                self.thread.waiting()
            ));
        }
        if self.senders.asleep() > 0 {
            lines.push(format!(
                "{} threads sleep until a disk has a request for them",
                self.senders.asleep()
            ));
        }
        lines.extend(self.recovery.waits());
        lines
    }
}
