//! An administrator's verbs.

use super::{BLOCK, Raid5d};
use crate::admission::Admission;
use crate::config::{AdminError, MemberConfig};
use crate::member::MemberState;
use crate::request::{Event, Outputs, Slot};

impl Raid5d {
    pub(super) fn states(&self) -> Vec<MemberState> {
        self.members.states_filled_to(|slot| {
            let unfilled = self.extras[slot.index()].unfilled.first();
            unfilled.map_or(self.map.member_size(), |span| span.start)
        })
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
        let bad = member.bad_ranges(self.map.member_size(), BLOCK);
        self.members.set_recovering(slot, member);
        let extra = &mut self.extras[slot.index()];
        extra.bad = bad;
        extra.unfilled = admission.unfilled(self.map.member_size(), BLOCK);
        extra.recovered_below = match admission {
            Admission::From(start) => start.0,
            Admission::Ranges(_) => 0,
        };
        self.cache.forget(slot);
        out.events.push(Event::MemberAdded(slot));
        self.sync_member_added();
        Ok(())
    }
}
