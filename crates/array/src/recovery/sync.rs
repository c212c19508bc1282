//! A sync under way.

use super::{Governor, Pause, Placement, SyncKind};
use crate::member::Members;
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors, SpanSet};

/// A sync under way.
#[derive(Debug)]
pub(super) struct Sync {
    pub(super) kind: SyncKind,
    pub(super) targets: SlotSet,
    pub(super) next: Sectors,
    pub(super) total: Sectors,
    /// Array sectors to which it is restricted.
    pub(super) ranges: Option<SpanSet>,
    pub(super) mismatches: u64,
    /// The last checkpoint; md calls it `curr_resync_completed`.
    pub(super) completed: Sectors,
    pub(super) checkpointed_at: Nanos,
    pub(super) pause: Pause,
    /// The courtesy sleep before this block was taken, or was not owed.
    pub(super) was_courteous: bool,
    pub(super) throttle_due: bool,
    pub(super) aborted: bool,
    pub(super) governor: Governor,
}

impl Sync {
    /// The array sector of a placement that is to be copied, and how far that
    /// goes on.
    pub(super) fn wanted(&self, placement: Placement) -> Option<(Sectors, Sectors)> {
        let start = placement.array?;
        let Some(ranges) = &self.ranges else {
            return Some((start, placement.contiguous));
        };
        let (inside, until) = ranges.at(start);
        let contiguous = placement.contiguous.min(Sectors(until.0 - start.0));
        inside.then_some((start, contiguous))
    }

    /// A block was taken.
    pub(super) fn advance(&mut self, count: Sectors) {
        self.next += count;
        self.was_courteous = false;
        self.throttle_due = self.governor.issued(count) && self.next < self.total;
    }

    /// Asks the throttle if that is due; whether there is to be a pause.
    pub(super) fn asked_to_pause(&mut self, now: Nanos, in_flight: u64, members: &Members) -> bool {
        self.pause = self
            .governor
            .pause(&mut self.throttle_due, now, in_flight, members);
        self.pause != Pause::None
    }

    /// Passes over positions that hold nothing or are not asked for.
    pub(super) fn skip_unwanted(&mut self, place: &dyn Fn(Sectors) -> Placement) {
        while self.next < self.total {
            let placement = place(self.next);
            if self.wanted(placement).is_some() {
                return;
            }
            let mut count = placement.contiguous;
            if let (Some(start), Some(ranges)) = (placement.array, &self.ranges) {
                count = count.min(Sectors(ranges.at(start).1.0 - start.0));
            }
            // Until the end at once where nothing follows.
            self.next = Sectors(self.next.0.saturating_add(count.0)).min(self.total);
        }
        self.throttle_due = false;
    }
}
