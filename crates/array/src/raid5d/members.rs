//! An administrator's verbs.

use super::{BLOCK, Raid5d};
use crate::config::{AdminError, MemberConfig};
use crate::engine::Admission;
use crate::member::MemberState;
use crate::ranges::RangeSet;
use crate::request::{Event, Outputs, Slot};
use raidlab_units::Sectors;

impl Raid5d {
    pub(super) fn states(&self) -> Vec<MemberState> {
        let slots = (0..).map(Slot).take(self.map.members());
        let state = |slot: Slot| match self.members.state(slot) {
            MemberState::Recovering { .. } => {
                let unfilled = self.extras[slot.index()].unfilled.first();
                let below = unfilled.map_or(self.map.member_size().0, |(start, _)| start);
                MemberState::Recovering {
                    readable_below: Sectors(below),
                }
            }
            state => state,
        };
        slots.map(state).collect()
    }

    pub(super) fn fail_by_hand(&mut self, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        self.members.occupied(slot)?;
        if self.members.is_faulty(slot) {
            return Err(AdminError::AlreadyFaulty(slot));
        }
        let others = self.members.in_sync().without(slot).len();
        if self.members.in_sync().contains(slot) && others < self.map.data_count() {
            return Err(AdminError::LastInSync(slot));
        }
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
        self.members.takes(slot, &member, self.map.member_size())?;
        self.members.set_recovering(slot, member);
        let extra = &mut self.extras[slot.index()];
        extra.bad.clear();
        extra.unfilled = RangeSet::unfilled(admission, self.map.member_size(), BLOCK);
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
