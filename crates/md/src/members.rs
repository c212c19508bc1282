//! The state that the verbs on members need of md's RAID 4, 5 and 6.

use super::Raid5d;
use raidlab_array::parts::{EngineParts, MemberVerbs, Members};
use raidlab_array::{Outputs, Slot};
use raidlab_units::Sectors;

impl MemberVerbs for Raid5d {
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
        self.pump_sync(out);
    }

    fn is_needed(&self, slot: Slot) -> bool {
        self.members.is_needed(slot, self.map.data_count())
    }

    fn used_sectors(&self, _slot: Slot) -> Sectors {
        self.map.member_size()
    }

    fn member_lost(&mut self, slot: Slot, _out: &mut Outputs) {
        self.walk.lose_member(slot, self.is_broken());
    }

    fn member_arrived(&mut self, slot: Slot, _out: &mut Outputs) {
        self.cache.forget(slot);
        self.walk.is_held = false;
    }
}
