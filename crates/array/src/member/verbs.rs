//! The administrator's verbs on members, and the loss of a member, for the engines of all levels.

use super::Members;
use crate::admission::Admission;
use crate::config::{AdminError, MemberConfig};
use crate::recovery::SyncWalk;
use crate::request::{Event, Outputs, Slot};
use raidlab_units::{Nanos, Sectors};

/// The fields that every engine has and the verbs change.
#[derive(Debug)]
pub struct EngineParts<'a> {
    /// The latest time passed in by the driver.
    pub now: &'a mut Nanos,
    /// The member table of the engine.
    pub members: &'a mut Members,
    /// The walk of the sync that runs, and the pace of syncs.
    pub walk: &'a mut SyncWalk,
}

/// An engine's side of the verbs. Each verb changes the member table, reports that, and lets the
/// engine adapt the requests in work.
pub trait MemberVerbs {
    /// Returns the member table.
    fn members(&self) -> &Members;

    /// Returns the fields common to all engines, mutably.
    fn parts(&mut self) -> EngineParts<'_>;

    /// Returns the member table, mutably.
    fn members_mut(&mut self) -> &mut Members {
        self.parts().members
    }

    /// Tells the engine the driver's time before a verb changes something.
    fn set_now(&mut self, now: Nanos) {
        *self.parts().now = now;
    }

    /// Continues all work as far as possible, once a verb has been done.
    fn go_on(&mut self, out: &mut Outputs);

    /// Whether the array needs the member in this slot, which is in sync.
    fn is_needed(&self, slot: Slot) -> bool;

    /// Returns the sectors of the data area that the array uses of the member in a slot.
    fn used_sectors(&self, slot: Slot) -> Sectors;

    /// Checks that a member has room for what the engine keeps beside the data.
    ///
    /// # Errors
    /// When it has none; the engine is unchanged.
    fn make_room(&mut self, _slot: Slot, _member: &MemberConfig) -> Result<(), AdminError> {
        Ok(())
    }

    /// Called when a member has left service: work on it must end or continue without it.
    fn member_lost(&mut self, slot: Slot, out: &mut Outputs);

    /// Called when a member was added, and is to be recovered.
    fn member_arrived(&mut self, slot: Slot, out: &mut Outputs);

    /// Removes a member from service, unless it has left already.
    fn lose_member(&mut self, slot: Slot, out: &mut Outputs) {
        if self.members().in_service().contains(slot) {
            self.members_mut().fail(slot, out);
            self.member_lost(slot, out);
        }
    }

    /// Marks a member failed.
    ///
    /// # Errors
    /// When there is none, it has failed before, or the array needs it.
    fn fail_member(&mut self, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        self.members().occupied(slot)?;
        if self.members().is_faulty(slot) {
            return Err(AdminError::AlreadyFaulty(slot));
        }
        if self.is_needed(slot) {
            return Err(AdminError::LastInSync(slot));
        }
        self.lose_member(slot, out);
        Ok(())
    }

    /// Removes a member from its slot; one in service fails first.
    ///
    /// # Errors
    /// When there is none, or it is in service and the array needs it.
    fn remove_member(&mut self, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        self.members().occupied(slot)?;
        if !self.members().is_faulty(slot) {
            self.fail_member(slot, out)?;
        }
        self.members_mut().remove(slot, out);
        Ok(())
    }

    /// Adds a member to an empty slot: a new one, or a former one that lacks only the part that
    /// its admission names.
    ///
    /// # Errors
    /// When there is no such slot, it is not empty, or the member is too small.
    fn add_member(
        &mut self,
        slot: Slot,
        member: MemberConfig,
        admission: &Admission,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        self.members().vacant(slot)?;
        member.check_room(slot, self.used_sectors(slot))?;
        self.make_room(slot, &member)?;
        self.members_mut().admit(slot, member, admission);
        out.events.push(Event::MemberAdded(slot));
        self.member_arrived(slot, out);
        Ok(())
    }
}
