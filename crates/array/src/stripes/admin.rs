//! The member verbs of RAID 4, 5 and 6.

use super::StripeArray;
use super::config::ring_is_sound;
use crate::config::{AdminError, MemberConfig};
use crate::member::{EngineParts, MemberVerbs, Members};
use crate::request::{Outputs, Slot};
use raidlab_units::{Sectors, Span};

impl MemberVerbs for StripeArray {
    fn members(&self) -> &Members {
        &self.members
    }

    fn parts(&mut self) -> EngineParts<'_> {
        EngineParts {
            now: &mut self.now,
            members: &mut self.members,
            walk: &mut self.walk,
        }
    }

    fn go_on(&mut self, out: &mut Outputs) {
        self.pump(out);
    }

    fn is_needed(&self, slot: Slot) -> bool {
        self.members.is_needed(slot, self.map.data_count())
    }

    fn used_sectors(&self, _slot: Slot) -> Sectors {
        self.map.member_size()
    }

    fn make_room(&mut self, slot: Slot, member: &MemberConfig) -> Result<(), AdminError> {
        if let Some(log) = &mut self.log {
            if !ring_is_sound(log.area(), member, self.map.member_size()) {
                return Err(AdminError::NoLogArea(slot));
            }
            log.begin_ring(slot);
        }
        Ok(())
    }

    fn member_lost(&mut self, slot: Slot, _out: &mut Outputs) {
        self.define_unwritten();
        self.walk.lose_member(slot, self.is_broken());
        // A member that takes its place has none of these writes.
        if !super::mutated(super::Mutation::PredecessorCounts) {
            for job in self.jobs.values_mut() {
                job.written = job.written.without(slot);
            }
        }
        self.log_lost_member(slot);
    }

    fn member_arrived(&mut self, slot: Slot, _out: &mut Outputs) {
        // Writes in work now leave the new member out.
        for (start, end) in &self.locks {
            if !super::mutated(super::Mutation::ArrivalDuringWrite) {
                let range = Span::new(*start, *end);
                self.members.set_filled(slot, range, false);
            }
        }
        self.walk.is_held = false;
        if let Some(log) = &mut self.log {
            log.arrives(slot);
        }
    }
}
