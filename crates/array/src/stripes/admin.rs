//! An administrator's verbs.

use super::StripeArray;
use super::config::{BLOCK, ring_is_sound, ring_window};
use crate::admission::Admission;
use crate::config::{AdminError, MemberConfig};
use crate::member::MemberState;
use crate::request::{Event, Outputs};
use raidlab_geometry::Slot;
use raidlab_units::Span;

impl StripeArray {
    /// What each slot holds, and how far a new member has been filled.
    pub(super) fn states(&self) -> Vec<MemberState> {
        self.members.states_filled_to(|slot| {
            let unfilled = self.extras[slot.index()].unfilled.first();
            unfilled.map_or(self.map.member_size(), |span| span.start)
        })
    }

    /// Where the log of the member that will be added to a slot lies; asked
    /// for before [`Engine::add`](crate::Engine::add) if the array has a log.
    pub fn set_log_area(&mut self, slot: Slot, area: Option<Span>) {
        if let Some(log) = &mut self.log {
            log.set_area(slot, area);
        }
    }

    pub(super) fn fail_by_hand(&mut self, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        let data = self.map.data_count();
        self.members
            .may_fail(slot, || self.members.is_needed(slot, data))?;
        self.lose_member(slot, out);
        Ok(())
    }

    pub(super) fn remove_member(
        &mut self,
        slot: Slot,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        self.members.occupied(slot)?;
        if !self.members.is_faulty(slot) {
            self.fail_by_hand(slot, out)?;
        }
        self.members.set_missing(slot);
        out.events.push(Event::MemberRemoved(slot));
        Ok(())
    }

    pub(super) fn add_member(
        &mut self,
        slot: Slot,
        member: MemberConfig,
        admission: &Admission,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        self.members
            .takes(slot, &member, || self.map.member_size())?;
        let longest = self.longest;
        if let Some(log) = &mut self.log {
            let area = log.area(slot).filter(|area| {
                ring_is_sound(*area, &member, self.map.member_size())
                    && ring_window(area.end.0 - area.start.0) >= longest
            });
            if area.is_none() {
                return Err(AdminError::NoLogArea(slot));
            }
            log.set_area(slot, area);
        }
        let bad = member.bad_ranges(self.map.member_size(), BLOCK);
        self.members.set_recovering(slot, member);
        let extra = &mut self.extras[slot.index()];
        extra.bad = bad;
        extra.unfilled = admission.unfilled(self.map.member_size(), BLOCK);
        // What is in work now leaves the new member out.
        for (start, end) in &self.locks {
            if !super::mutated(super::Mutation::ArrivalDuringWrite) {
                extra.unfilled.insert(Span::new(*start, *end));
            }
        }
        out.events.push(Event::MemberAdded(slot));
        self.sync_member_added();
        if let Some(log) = &mut self.log {
            log.arrives(slot);
        }
        Ok(())
    }
}
