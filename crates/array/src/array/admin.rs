//! The member verbs of the levels that keep whole copies.

use super::Array;
use crate::member::{EngineParts, MemberVerbs, Members};
use crate::request::{Outputs, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

impl MemberVerbs for Array {
    fn members(&self) -> &Members {
        &self.members
    }

    fn parts(&mut self) -> EngineParts<'_> {
        EngineParts {
            now: &mut self.now,
            members: &mut self.members,
            walk: &mut self.recovery.walk,
        }
    }

    fn go_on(&mut self, out: &mut Outputs) {
        self.pump_sync(out);
    }

    /// Whether some data has no other member in sync.
    fn is_needed(&self, slot: Slot) -> bool {
        let in_sync = self.members.in_sync();
        let mut sets = self.map.copy_sets().iter();
        sets.any(|set| (*set & in_sync) == SlotSet::only(slot))
    }

    fn used_sectors(&self, slot: Slot) -> Sectors {
        self.map.member_used(slot)
    }

    fn member_lost(&mut self, slot: Slot, _out: &mut Outputs) {
        self.doubtful = self.doubtful.without(slot);
        self.retarget_sync(slot);
    }

    fn member_arrived(&mut self, slot: Slot, out: &mut Outputs) {
        // What the slot's former member was sent or has taken, the new one was not and has not.
        for piece in self.pieces.iter_mut().chain(&mut self.unanswered) {
            piece.asked = piece.asked.without(slot);
            piece.succeeded = piece.succeeded.without(slot);
        }
        self.policy.member_added(slot);
        self.mended();
        self.recovery.walk.is_held = false;
        self.start_recovery(out);
    }
}

impl Array {
    /// Declares, before any read, that the members in sync may differ: until a resync has passed,
    /// all reads of a range go to one member.
    pub fn declare_dirty(&mut self) {
        self.resynced_below = Some(Sectors::ZERO);
    }

    /// Declares that these members are in sync by force only: until a resync has passed, sectors
    /// that another member has, too, are read from that one.
    pub fn declare_doubtful(&mut self, slots: SlotSet) {
        self.doubtful = slots;
    }
}
