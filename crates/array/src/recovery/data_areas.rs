//! The common part of the syncs of RAID 4, 5 and 6 beyond the walk: their positions are sectors of
//! the members' data areas, the same on all.

use super::{Plan, SyncKind, SyncWalk};
use crate::member::Members;
use crate::request::{Event, Outputs, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors, Span, SpanSet};

impl Plan {
    /// A plan for data areas of this size. A recovery fills all members under recovery.
    #[must_use]
    pub fn of_data_areas(kind: SyncKind, todo: SpanSet, size: Sectors, members: &Members) -> Self {
        let targets = match kind {
            SyncKind::Recovery => members.recovering(),
            _ => SlotSet::EMPTY,
        };
        Self {
            kind,
            targets,
            todo,
            total: size,
        }
    }
}

impl SyncWalk {
    /// Ends the sync, and reports how. Members that are complete are in sync then.
    pub fn conclude(&mut self, how: Event, members: &mut Members, out: &mut Outputs) {
        for slot in self.targets().iter() {
            if members.is_full(slot) {
                members.set_in_sync(slot);
            }
        }
        self.end();
        out.events.push(how);
    }

    /// Handles a member that has left; where the array `is_broken` without it the sync stops. The
    /// rest of a resync is left to another one, with the members that remain.
    pub fn lose_member(&mut self, slot: Slot, is_broken: bool) {
        self.retarget(self.targets().without(slot));
        if is_broken {
            self.stop();
        }
    }

    /// Runs [`Self::leap`] in whole blocks of `block` sectors; returns the range that was
    /// skipped, if any.
    pub fn leap_blocks(&mut self, now: Nanos, position: Sectors, block: u64) -> Option<Span> {
        let leapt = self.leap(now, Sectors(position.0 / block * block));
        debug_assert!(leapt.is_some(), "a leap needs a frozen and drained sync");
        leapt.filter(|leapt| leapt.start < leapt.end)
    }
}
