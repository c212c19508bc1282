//! What the verbs on members ask of RAID 4, 5 and 6.

use super::StripeArray;
use super::config::{ring_is_sound, ring_window};
use crate::config::{AdminError, MemberConfig};
use crate::member::{EngineParts, MemberVerbs, Members};
use crate::request::{Outputs, Slot};
use raidlab_units::{Sectors, Span};

impl StripeArray {
    /// Where the log of the member that will be added to a slot lies; asked
    /// for before [`Engine::add`](crate::Engine::add) if the array has a log.
    pub fn set_log_area(&mut self, slot: Slot, area: Option<Span>) {
        if let Some(log) = &mut self.log {
            log.set_area(slot, area);
        }
    }
}

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
        let Some(log) = &mut self.log else {
            return Ok(());
        };
        let fits = |area: &Span| {
            ring_is_sound(*area, member, self.map.member_size())
                && ring_window(area.end.0 - area.start.0) >= self.longest
        };
        let area = log.area(slot).filter(fits);
        log.set_area(slot, Some(area.ok_or(AdminError::NoLogArea(slot))?));
        Ok(())
    }

    fn member_lost(&mut self, slot: Slot, _out: &mut Outputs) {
        self.define_unwritten();
        self.walk.lose_member(slot, self.is_broken());
        self.log_lost_member(slot);
    }

    fn member_arrived(&mut self, slot: Slot, _out: &mut Outputs) {
        // What is in work now leaves the new member out.
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
