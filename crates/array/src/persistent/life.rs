//! The processes of an array that run by themselves: held requests, the dirty and the clean mark,
//! the bitmap's daemon, resync, spares, the end.

use super::device::{Device, Place};
use super::{Mode, PersistentArray};
use crate::admission::Admission;
use crate::engine::{SyncAction, SyncRequest};
use crate::member::MemberState;
use crate::mutation::{self, Mutation};
use crate::request::{Outputs, Request, Slot};
use raidlab_metadata::Superblock;
use raidlab_units::{Sectors, Span};

impl PersistentArray {
    /// Does all that can be done now.
    pub(super) fn pump(&mut self, out: &mut Outputs) {
        loop {
            let mut progress = self.release(out) | self.send_next_flush(out);
            self.follow_writes();
            progress |= self.go_on_replacing(out);
            progress |= self.tell_what_is_recorded(out);
            progress |= self.place_spare(out);
            progress |= self.resume(out);
            progress |= self.go_on_with_resync(out);
            self.follow_stop();
            self.record_nothing(out);
            if self.may_begin_pass() && self.wants_pass() {
                if self.want_superblocks || self.stripes.is_some() {
                    self.wake_thread();
                }
                self.begin_pass(out);
                progress = true;
            }
            if !progress {
                break;
            }
        }
        debug_assert_eq!(self.disagreement(), None, "of engine and metadata");
    }

    fn may_begin_pass(&self) -> bool {
        self.pass.is_none() && !self.thread_is_due && !self.turn_is_due && self.may_write()
    }

    /// Sends the held requests that need to wait no longer, in order.
    fn release(&mut self, out: &mut Outputs) -> bool {
        if self.enters_first() {
            return self.release_each(out);
        }
        let mut progress = false;
        while let Some(request) = self.held.front() {
            if !self.may_go(request) {
                break;
            }
            let Some(request) = self.held.pop_front() else {
                break;
            };
            self.writes += 1;
            self.pass_to_engine(request, out);
            progress = true;
        }
        progress
    }

    /// Whether the members' metadata already cover this write.
    pub(super) fn may_go(&self, request: &Request) -> bool {
        if !self.started {
            return false;
        }
        if !self.disk_dirty && !mutation::is(Mutation::DirtyMarkLate) {
            return false;
        }
        let (Some(intent), Some(tracked)) = (&self.intent, self.tracked.get(&request.id)) else {
            return true;
        };
        intent.is_durable(tracked.chunks.clone()) || mutation::is(Mutation::BitmapSetLate)
    }

    /// Sets the clean mark's timer when the last write is done, and makes sure that the dirty mark
    /// is written when the first one waits.
    fn follow_writes(&mut self) {
        if !self.held.is_empty() && !self.disk_dirty && self.pass.is_none() {
            self.want_superblocks = true;
        }
        // md calls no array clean during its resync (Linux drivers/md/md.c, `md_check_recovery`:
        // `resync_offset == MaxSector`).
        let stays_dirty = self.imitates_md && !self.is_in_sync();
        let is_quiet = self.writes == 0 && self.held.is_empty() && !stays_dirty;
        if self.active && is_quiet && self.clean_at.is_none() && self.may_write() {
            self.clean_at = Some(self.now + self.settings.safe_mode_delay);
        }
        if mutation::is(Mutation::CleanMarkEarly) && self.active && self.clean_at.is_none() {
            self.clean_at = Some(self.now + self.settings.safe_mode_delay);
        }
        if self.imitates_md {
            return self.follow_thread();
        }
        if let Some(intent) = &self.intent
            && self.daemon_at.is_none()
            && !self.keeps_bits()
            && intent.can_age()
        {
            self.daemon_at = Some(self.now + intent.daemon_sleep());
        }
    }

    /// Does what is due at the present time, such as marking the array clean.
    pub(super) fn tick_life(&mut self) {
        if self.clean_at.is_some_and(|at| at <= self.now) {
            self.mark_clean();
        }
        let is_due = self.daemon_at.is_some_and(|at| at <= self.now);
        if is_due && self.pass.is_none() {
            match self.imitates_md {
                true => self.wake_thread(),
                false => self.daemon(),
            }
        }
    }

    pub(super) fn mark_clean(&mut self) {
        self.clean_at = None;
        if self.active {
            self.active = false;
            self.want_superblocks = true;
        }
    }

    /// Runs the bitmap's daemon. Only between passes over the metadata: the pages with cleared bits
    /// must be preceded by a flush.
    fn daemon(&mut self) {
        self.daemon_at = None;
        let events = self.array.events;
        let is_quiet = self.started && !self.want_superblocks && !self.keeps_bits();
        if let Some(intent) = &mut self.intent
            && is_quiet
        {
            intent.age(events);
        }
    }

    /// Whether the bitmap's bits stay as they are: without permission to write, and while a member
    /// lacks the chunks that they mark.
    pub(super) fn keeps_bits(&self) -> bool {
        let degraded = self.is_degraded()
            && !self.imitates_md
            && !mutation::is(Mutation::BitmapClearedDegraded);
        degraded || self.mode != Mode::ReadWrite
    }

    /// Whether a slot is without a member that is current everywhere.
    pub(super) fn is_degraded(&self) -> bool {
        self.degraded || !self.unrecorded.is_empty()
    }

    /// Starts the resync that is due, if it can be started.
    fn go_on_with_resync(&mut self, out: &mut Outputs) -> bool {
        let is_due = self.in_sync.below != Superblock::IN_SYNC
            && self.mode == Mode::ReadWrite
            && self.syncs.asked.is_none()
            && !self.syncs.resync_waits
            && self.started;
        let fills = |device: &Device| matches!(device.place, Place::Recovering { .. });
        if is_due && self.syncs.waits_for_filled && self.devices.values().any(fills) {
            if self.engine.sync_status().is_none() {
                self.resume_recovery(out);
            }
            return false;
        }
        is_due && self.start_resync(out)
    }

    pub(super) fn start_resync(&mut self, out: &mut Outputs) -> bool {
        if self.lacks_for_resync() {
            return false;
        }
        let ranges = match (&self.resync_ranges, self.in_sync.below) {
            (Some(ranges), _) => Some(ranges.clone()),
            (None, Sectors::ZERO) => None,
            (None, from) => Some(vec![Span::between(from, self.sync_end())]),
        };
        let request = SyncRequest {
            action: match self.in_sync.is_first {
                true => SyncAction::FirstResync,
                false => SyncAction::Resync,
            },
            ranges,
        };
        let now = self.now;
        self.syncs.asked = Some(SyncAction::Resync);
        self.syncs.resynced_members = self.members_in_sync();
        let started = self.with_engine_do(out, |engine, out| engine.start_sync(now, request, out));
        if started.is_err() {
            self.syncs.asked = None;
            return false;
        }
        // With a single member there is nothing to compare.
        if self.syncs.asked.is_some() && self.engine.sync_status().is_none() {
            self.syncs.asked = None;
            self.resync_done();
        }
        true
    }

    /// Whether a resync lacks members to compare with: parity is corrected once the members are
    /// there. In a first resync parity defines the content of missing members.
    pub(super) fn lacks_for_resync(&self) -> bool {
        self.level.parity_count() > 0 && self.is_degraded() && !self.in_sync.is_first
    }

    pub(super) fn members_in_sync(&self) -> usize {
        let states = self.engine.member_states();
        let in_sync = |state: &&MemberState| **state == MemberState::InSync;
        states.iter().filter(in_sync).count()
    }

    /// Returns the position where a sync of all members ends, as `resync_offset` counts.
    pub(super) fn sync_end(&self) -> Sectors {
        match self.level.parity_count() {
            0 => self.engine.size(),
            _ => self.array.used_size,
        }
    }

    /// Puts a spare into a slot whose member is gone.
    fn place_spare(&mut self, out: &mut Outputs) -> bool {
        let is_known = self.unrecorded.is_empty() && self.recorded.is_empty()
            || mutation::is(Mutation::SpareSeatedEarly);
        let is_settled = is_known && self.started && self.is_recorded();
        if self.mode != Mode::ReadWrite || !self.degraded || !is_settled {
            return false;
        }
        let states = self.engine.member_states();
        let vacant = (0..)
            .map(Slot)
            .zip(&states)
            .filter(|(_, state)| matches!(state, MemberState::Faulty | MemberState::Missing));
        let spares = self.spares();
        for (slot, state) in vacant {
            for handle in &spares {
                let vacate = *state == MemberState::Faulty;
                let all = Admission::From(Sectors::ZERO);
                if self.seat(*handle, slot, all, vacate, out) {
                    return true;
                }
            }
        }
        false
    }

    /// Returns the spares that have room for a member's data and its write log.
    pub(super) fn spares(&self) -> Vec<Slot> {
        let devices = self.devices.iter();
        devices
            .filter(|(_, device)| device.place == Place::Spare && self.is_fit(device))
            .map(|(handle, _)| *handle)
            .collect()
    }

    /// Whether a device has room for a member's data and its write log.
    pub(super) fn is_fit(&self, device: &Device) -> bool {
        let room = device.own.data_room(device.size);
        room >= self.array.used_size && self.has_log_room(device)
    }

    /// Whether a device has room for the write log that the array keeps, if it
    /// keeps one.
    pub(super) fn has_log_room(&self, device: &Device) -> bool {
        let Some(ring) = self.ring else {
            return true;
        };
        device.log_area.is_some_and(|area| {
            area.start + super::LOG_SUPERBLOCK_SECTORS <= ring.start && ring.end <= area.end
        })
    }

    /// Assigns a device to a slot of the engine whose member, if it has one, has failed.
    pub(super) fn seat(
        &mut self,
        handle: Slot,
        slot: Slot,
        admission: Admission,
        vacate: bool,
        out: &mut Outputs,
    ) -> bool {
        let now = self.now;
        if vacate {
            let removed = self.with_engine_do(out, |engine, out| engine.remove(now, slot, out));
            if removed.is_err() {
                return false;
            }
        }
        let Some(device) = self.devices.get_mut(&handle) else {
            return false;
        };
        let before = device.place;
        device.place = Place::Recovering {
            slot,
            below: match admission {
                Admission::From(sector) => sector,
                Admission::Ranges(_) => Sectors::ZERO,
            },
            by_bitmap: matches!(admission, Admission::Ranges(_)),
        };
        let mut config = device.config();
        if mutation::is(Mutation::LogOfMemberForgotten) {
            config.bad_blocks = config.bad_blocks.map(|_| Vec::new());
        }
        let left = self.served[slot.index()].replace(handle);
        let added = self.with_engine_do(out, |engine, out| {
            engine.add(now, slot, config, admission, out)
        });
        if added.is_err() {
            self.served[slot.index()] = left;
            if let Some(device) = self.devices.get_mut(&handle) {
                device.place = before;
            }
            return false;
        }
        // Writes under way leave the new member out, also where it was filled already.
        let states = self.engine.member_states();
        if let Some(MemberState::Recovering { readable_below }) = states.get(slot.index())
            && let Some(device) = self.devices.get_mut(&handle)
            && let Place::Recovering { below, .. } = &mut device.place
        {
            *below = (*below).min(*readable_below);
        }
        if let Some(intent) = &mut self.intent {
            // The new member's bitmap has to equal the others'.
            intent.want_all();
        }
        self.want_superblocks = true;
        true
    }

    /// Counts a device that serves no slot of the engine as failed from now on.
    pub(super) fn retire(&mut self, handle: Slot) {
        if let Some(device) = self.devices.get_mut(&handle) {
            device.place = Place::Faulty;
            self.want_superblocks = true;
        }
        // The flush before bits are cleared on the members will not cover it.
        if let Some(intent) = self.intent.as_mut().filter(|_| !self.imitates_md) {
            intent.keep_cleared();
        }
    }

    /// Continues a stop once everything is drained.
    fn follow_stop(&mut self) {
        let is_drained = self.writes == 0
            && self.held.is_empty()
            && self.pass.is_none()
            && self.replacements.is_idle()
            && self.engine.is_idle();
        if self.mode != Mode::Stopping || !is_drained {
            return;
        }
        if !self.is_recorded() {
            self.mode = Mode::Stopped;
        } else if !self.is_final {
            self.is_final = true;
            self.active = false;
            self.clean_at = None;
            self.want_superblocks = true;
        } else if !self.want_superblocks {
            self.mode = Mode::Stopped;
        }
    }

    /// Treats failures as recorded where nothing is written.
    fn record_nothing(&mut self, out: &mut Outputs) {
        if self.is_recorded() && self.may_write() {
            return;
        }
        self.release_answers(true, out);
        // What goes on then, also by those answers, may fail at once, and waits again.
        while self.log_waits || !self.unrecorded.is_empty() {
            match self.unrecorded.pop_first() {
                Some(slot) => self.tell_recorded(slot, out),
                None => self.let_log_go_on(out),
            }
        }
        out.finished.append(&mut self.held_finished);
    }
}
