//! An administrator's verbs.

use super::Array;
use crate::admission::Admission;
use crate::config::{AdminError, MemberConfig};
use crate::engine::{SyncAction, SyncRequest};
use crate::member::{MemberVerbs, Members};
use crate::recovery::{Plan, SyncKind};
use crate::request::{Event, Outputs, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors, Span};

impl MemberVerbs for Array {
    fn members(&self) -> &Members {
        &self.members
    }

    fn members_mut(&mut self) -> &mut Members {
        &mut self.members
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
        self.retarget_sync(slot);
    }

    fn member_arrived(&mut self, slot: Slot, out: &mut Outputs) {
        self.policy.member_added(slot);
        self.is_sync_held = false;
        self.start_recovery(out);
    }
}

impl Array {
    /// Marks a member failed. Its commands in flight still complete, but
    /// nothing is answered from it any more.
    ///
    /// # Errors
    /// When there is no such member, it has failed before, or some data has no
    /// other member in sync.
    pub fn fail(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        self.now = now;
        self.fail_member(slot, out)?;
        self.pump_sync(out);
        Ok(())
    }

    /// Takes a member out of its slot; one in service fails first. Its commands
    /// in flight must still be completed.
    ///
    /// # Errors
    /// When there is no such member or some data has no other one in sync.
    pub fn remove(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        self.now = now;
        self.remove_member(slot, out)?;
        self.pump_sync(out);
        Ok(())
    }

    /// Puts a member into an empty slot. Its recovery starts at once, or when
    /// the sync that runs has ended.
    ///
    /// # Errors
    /// When the slot does not exist or is occupied, or the member is too small.
    pub fn add(
        &mut self,
        now: Nanos,
        slot: Slot,
        member: MemberConfig,
        admission: Admission,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        self.now = now;
        self.add_member(slot, member, &admission, out)?;
        self.pump_sync(out);
        Ok(())
    }

    /// Declares that the members in sync may differ, before anything is read:
    /// until a resync has passed, all reads of a range go to one member.
    pub fn declare_dirty(&mut self) {
        self.resynced_below = Some(Sectors::ZERO);
    }

    /// What of a member's data area has no right bytes.
    pub fn bad_blocks(&self, slot: Slot) -> impl Iterator<Item = Span> {
        self.members.bad_blocks(slot)
    }

    /// Starts a resync, check or repair. A resync declares the array dirty, as
    /// after a crash or a creation without `--assume-clean`: the members in sync
    /// may differ, and the lowest one's copies are written over the others
    /// without comparing. Until a range is done, all its reads go to one member.
    ///
    /// Where no data has two members in sync, there is nothing to do, and the
    /// sync has finished at once.
    ///
    /// # Errors
    /// When recovery or another sync runs.
    pub fn start_sync(
        &mut self,
        now: Nanos,
        request: SyncRequest,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        self.now = now;
        if self.recovery.is_running() {
            return Err(AdminError::SyncRunning);
        }
        self.is_sync_held = false;
        let kind = match request.action {
            SyncAction::Resync | SyncAction::FirstResync => SyncKind::Resync,
            SyncAction::Check => SyncKind::Check,
            SyncAction::Repair => SyncKind::Repair,
        };
        out.events.push(Event::SyncStarted(Sectors::ZERO));
        let targets = self.comparable();
        if targets.is_empty() {
            out.events.push(Event::SyncFinished);
            self.start_recovery(out);
        } else {
            if kind == SyncKind::Resync {
                self.resynced_below = Some(Sectors::ZERO);
            }
            let plan = Plan {
                kind,
                targets,
                start: Sectors::ZERO,
                total: self.size(),
                ranges: request.ranges.map(|ranges| ranges.into_iter().collect()),
            };
            self.recovery.begin(now, plan, &self.members);
        }
        self.pump_sync(out);
        Ok(())
    }

    /// Ends the running sync early, when the blocks in flight are done. Members
    /// under recovery stay so, and keep what they have; their recovery goes on
    /// after the next [`add`](Self::add) or [`start_sync`](Self::start_sync).
    pub fn stop_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.is_sync_held = true;
        self.recovery.stop();
        self.pump_sync(out);
    }

    /// Sets the throttle of syncs, in KiB/s per member.
    pub fn set_sync_speed(&mut self, minimum_kib_per_second: u64, maximum_kib_per_second: u64) {
        let throttle = self.recovery.config().throttle;
        let throttle = throttle.with_speeds(minimum_kib_per_second, maximum_kib_per_second);
        self.recovery.set_throttle(throttle);
    }

    /// Whether nothing is in flight and nothing held back.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.requests.is_empty()
            && self.commands.is_empty()
            && self.recovery.in_flight() == 0
            && !self.is_correcting()
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
        if status.is_some_and(|status| status.position >= status.total) {
            self.finish_sync(out);
            self.pump_sync(out);
        }
    }
}
