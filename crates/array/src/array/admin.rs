//! An administrator's verbs.

use super::Array;
use crate::config::{AdminError, MemberConfig};
use crate::recovery::SyncKind;
use crate::request::{Event, Outputs, Slot};
use raidlab_units::{Nanos, Sectors};

impl Array {
    /// Marks a member failed. Its commands in flight still complete, but
    /// nothing is answered from it any more.
    ///
    /// # Errors
    /// When there is no such member, it has failed before, or it is the last
    /// one in sync.
    pub fn fail(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        self.now = now;
        self.check_present(slot)?;
        if self.members.is_faulty(slot) {
            return Err(AdminError::AlreadyFaulty(slot));
        }
        if self.members.is_last_in_sync(slot) {
            return Err(AdminError::LastInSync(slot));
        }
        self.fail_member(slot, out);
        self.pump_sync(out);
        Ok(())
    }

    /// Takes a member out of its slot; one in service fails first. Its commands
    /// in flight must still be completed.
    ///
    /// # Errors
    /// When there is no such member or it is the last one in sync.
    pub fn remove(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        self.now = now;
        self.check_present(slot)?;
        if !self.members.is_faulty(slot) {
            self.fail(now, slot, out)?;
        }
        self.members.set_missing(slot);
        out.events.push(Event::MemberRemoved(slot));
        Ok(())
    }

    /// Puts a new member into an empty slot. Its recovery starts at once, or
    /// when the sync that runs has ended.
    ///
    /// # Errors
    /// When the slot does not exist or is occupied, or the member is too small.
    pub fn add(
        &mut self,
        now: Nanos,
        slot: Slot,
        member: MemberConfig,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        self.now = now;
        if !self.members.exists(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        if !self.members.is_missing(slot) {
            return Err(AdminError::Occupied(slot));
        }
        let needed = member.needed(self.size);
        if member.size.0 < needed {
            return Err(AdminError::TooSmall {
                size: member.size.0,
                needed,
            });
        }
        self.members.set_recovering(slot, member);
        self.policy.member_added(slot);
        out.events.push(Event::MemberAdded(slot));
        self.start_recovery(out);
        self.pump_sync(out);
        Ok(())
    }

    /// Declares the mirror dirty, as after a crash or a creation without
    /// `--assume-clean`: the members in sync may differ, and a resync copies the
    /// lowest one over the others without comparing. Until a range is done, all
    /// its reads go to one member.
    ///
    /// # Errors
    /// When recovery or resync runs.
    pub fn start_resync(&mut self, now: Nanos, out: &mut Outputs) -> Result<(), AdminError> {
        self.now = now;
        if self.recovery.is_running() {
            return Err(AdminError::SyncRunning);
        }
        let targets = self.members.in_sync();
        if targets.len() < 2 {
            return Ok(());
        }
        self.resynced_below = Some(Sectors::ZERO);
        self.recovery
            .begin(now, SyncKind::Resync, targets, &self.members);
        out.events.push(Event::SyncStarted(Sectors::ZERO));
        self.pump_sync(out);
        Ok(())
    }

    /// Starts no new sync block from now on, as md's `sync_action` frozen;
    /// those in flight, and one for which writes wait already, complete.
    pub fn freeze_sync(&mut self) {
        self.recovery.freeze(self.now);
    }

    /// Ends [`freeze_sync`](Self::freeze_sync).
    pub fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.recovery.thaw();
        self.pump_sync(out);
    }

    /// Skips time that the driver worked out by itself: since the freeze (or
    /// the leap before, or the start of the sync if it began frozen) the sync
    /// ran evenly up to `position`, and now it is `now`. Checkpoints and the
    /// throttle's memory are left as that run would have left them. The sync
    /// ends if `position` is the array's end. For simulations only: nothing is
    /// copied.
    ///
    /// Only while frozen with nothing in flight ([`sync_status`] tells), and
    /// only forward; otherwise it is an error of the driver and is ignored.
    ///
    /// [`sync_status`]: Self::sync_status
    pub fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs) {
        self.now = now;
        let leapt = self.recovery.leap(now, position);
        debug_assert!(leapt, "a leap needs a frozen and drained sync");
        if !leapt {
            return;
        }
        self.publish_progress();
        let status = self.recovery.status();
        if let Some(status) = status.filter(|status| status.readable_below > Sectors::ZERO) {
            out.events
                .push(Event::SyncCheckpoint(status.readable_below));
        }
        if position == self.size {
            self.finish_sync(out);
            self.pump_sync(out);
        }
    }

    fn check_present(&self, slot: Slot) -> Result<(), AdminError> {
        if !self.members.exists(slot) {
            return Err(AdminError::NoSuchSlot(slot));
        }
        if self.members.is_missing(slot) {
            return Err(AdminError::Empty(slot));
        }
        Ok(())
    }

    /// Takes a member out of service.
    pub(super) fn fail_member(&mut self, slot: Slot, out: &mut Outputs) {
        self.members.set_faulty(slot);
        out.events.push(Event::MemberFailed(slot));
        self.retarget_sync(slot);
    }
}
