//! What an administrator does with members, and what happens when one is lost, for the
//! engines of all levels.

use super::Members;
use crate::admission::Admission;
use crate::config::{AdminError, MemberConfig};
use crate::recovery::SyncWalk;
use crate::request::{Event, Outputs, Slot};
use raidlab_units::{Nanos, Sectors};

/// The fields that every engine has, as the verbs change them.
#[derive(Debug)]
pub struct EngineParts<'a> {
    /// The latest time that the driver told.
    pub now: &'a mut Nanos,
    /// The table of its members.
    pub members: &'a mut Members,
    /// The walk of the sync that runs, and the pace of syncs.
    pub walk: &'a mut SyncWalk,
}

/// An engine's side of the verbs. Each verb changes the member table, tells so, and has
/// the engine do what follows from it for what is in work.
pub trait MemberVerbs {
    /// The engine's table of its members.
    fn members(&self) -> &Members;

    /// What this engine has as every other one, to be changed.
    fn parts(&mut self) -> EngineParts<'_>;

    /// The member table, to be changed.
    fn members_mut(&mut self) -> &mut Members {
        self.parts().members
    }

    /// Tells the engine the driver's time before a verb changes something.
    fn set_now(&mut self, now: Nanos) {
        *self.parts().now = now;
    }

    /// Lets everything go as far as it can, once a verb has been done.
    fn go_on(&mut self, out: &mut Outputs);

    /// Whether the array cannot do without the member that is in sync in this slot.
    fn is_needed(&self, slot: Slot) -> bool;

    /// Sectors of the data area that the array uses of the member in a slot.
    fn used_sectors(&self, slot: Slot) -> Sectors;

    /// Looks whether a member has room for what the engine keeps beside the data.
    ///
    /// # Errors
    /// When it has none; the engine is unchanged.
    fn make_room(&mut self, _slot: Slot, _member: &MemberConfig) -> Result<(), AdminError> {
        Ok(())
    }

    /// A member has left service: what was in work on it must end or go on without it.
    fn member_lost(&mut self, slot: Slot, out: &mut Outputs);

    /// A member was added, and is to be filled.
    fn member_arrived(&mut self, slot: Slot, out: &mut Outputs);

    /// Takes a member out of service, unless it is out already.
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

    /// Takes a member out of its slot; one in service fails first.
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

    /// Puts a member into an empty slot: a new one, or one that comes back and lacks
    /// only what its admission says.
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
