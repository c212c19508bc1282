//! The engine's outputs: their effects are recorded before they go on to the driver.

use super::device::Place;
use super::intent::Intent;
use super::{Mode, PersistentArray};
use crate::engine::{EXTERNAL_BITMAP, Engine, SyncAction};
use crate::member::MemberState;
use crate::mutation::{self, Mutation};
use crate::request::{
    CommandId, Event, Finished, MemberError, Operation, Outputs, Request, RequestError, Slot,
};
use raidlab_metadata::Superblock;
use raidlab_units::{Sectors, Span, SpanSet};

impl PersistentArray {
    /// Calls the engine, and handles its outputs.
    pub(super) fn with_engine_do<R>(
        &mut self,
        out: &mut Outputs,
        call: impl FnOnce(&mut dyn Engine, &mut Outputs) -> R,
    ) -> R {
        let mut inner = std::mem::take(&mut self.inner);
        let result = call(&mut *self.engine, &mut inner);
        if let Some(imitation) = self.engine.imitation_mut() {
            imitation.unplug(&mut inner);
        }
        let mut refused = self.take_in(&mut inner, out);
        while let Some(id) = refused.pop() {
            let error = Err(MemberError::Medium);
            self.engine.complete(self.now, id, error, &mut inner);
            refused.extend(self.take_in(&mut inner, out));
        }
        self.inner = inner;
        result
    }

    /// Passes on the engine's outputs. If the array has broken down, also while it was being
    /// stopped, no write goes to the members any more: those that wait until a failure is recorded
    /// would wait for ever. Their ids are returned.
    fn take_in(&mut self, inner: &mut Outputs, out: &mut Outputs) -> Vec<CommandId> {
        out.steps.append(&mut inner.steps);
        out.work.add(inner.work);
        out.on_their_way.append(&mut inner.on_their_way);
        let is_broken = matches!(self.mode, Mode::Broken | Mode::Stopped)
            && !mutation::is(Mutation::BrokenWritesOn);
        let mut refused = Vec::new();
        for mut command in inner.commands.drain(..) {
            if is_broken && matches!(command.operation, Operation::Write | Operation::Discard) {
                refused.push(command.id);
                continue;
            }
            let slot = command.slot;
            let handle = self.handle(slot);
            self.commands.data.insert(command.id, handle);
            command.slot = handle;
            self.send_engine_command(slot, command, out);
        }
        // Failures first: they hold back the answers that came with them.
        let events = std::mem::take(&mut inner.events);
        for event in &events {
            self.note(event, out);
        }
        if !events.is_empty() {
            self.follow_members();
        }
        for finished in inner.finished.drain(..) {
            self.finish(finished, out);
        }
        inner.clear();
        refused
    }

    pub(super) fn pass_to_engine(&mut self, request: Request, out: &mut Outputs) {
        let now = self.now;
        self.with_engine_do(out, |engine, out| engine.submit(now, request, out));
    }

    /// Returns the device that serves a slot of the engine; a slot without one keeps
    /// its own number.
    pub(in crate::persistent) fn handle(&self, slot: Slot) -> Slot {
        let served = self.served.get(slot.index());
        served.copied().flatten().unwrap_or(slot)
    }

    /// Records an event, and passes it on by handle.
    fn note(&mut self, event: &Event, out: &mut Outputs) {
        let mut event = *event;
        match &mut event {
            Event::MemberFailed(slot) => {
                self.replaced_member_failed(*slot, out);
                self.member_failed(*slot);
                *slot = self.handle(*slot);
            }
            Event::MemberRemoved(slot) | Event::MemberAdded(slot) => *slot = self.handle(*slot),
            Event::SyncStarted(_) => {}
            Event::SyncCheckpoint(position) => self.sync_checkpoint(*position),
            Event::SyncFinished => self.sync_ended(true),
            Event::SyncAborted => self.sync_ended(false),
            Event::Mismatch { .. } if self.replacements.is_correcting => {}
            Event::Mismatch { count, .. } => {
                self.syncs.mismatches = Sectors(self.syncs.mismatches.0.saturating_add(count.0));
            }
            Event::ReadErrorCorrected { slot, count, .. } => {
                *slot = self.handle(*slot);
                if let Some(device) = self.devices.get_mut(slot) {
                    let count = u32::try_from(count.0).unwrap_or(u32::MAX);
                    let corrected = &mut device.own.corrected_read_errors;
                    *corrected = corrected.saturating_add(count);
                }
            }
            Event::BadBlocksFound { slot, start, count } => {
                *slot = self.handle(*slot);
                self.set_bad(*slot, (*start, *count), true);
            }
            Event::BadBlocksCleared { slot, start, count } => {
                *slot = self.handle(*slot);
                self.set_bad(*slot, (*start, *count), false);
            }
        }
        out.events.push(event);
    }

    fn member_failed(&mut self, slot: Slot) {
        let handle = self.handle(slot);
        let Some(device) = self.devices.get_mut(&handle) else {
            return;
        };
        device.place = Place::Faulty;
        self.syncs.resync_waits = false;
        self.degraded = true;
        self.unrecorded.insert(slot);
        if let Some(intent) = &mut self.intent
            && !self.imitates_md
        {
            intent.keep_cleared();
        }
        self.want_superblocks = true;
    }

    fn set_bad(&mut self, handle: Slot, (start, count): (Sectors, Sectors), bad: bool) {
        if mutation::is(Mutation::BadBlockForgotten) {
            return;
        }
        if let Some(device) = self.devices.get_mut(&handle) {
            device.set_bad(start, count, bad);
            self.want_superblocks = true;
            self.bad_blocks_unrecorded |= bad;
            self.log_waits |= bad && self.ring.is_some();
            self.set_twin_bad(handle, start, count, bad);
        }
    }

    /// Handles the progress of a recovery or resync. The next pass flushes the members before
    /// it records that.
    fn sync_checkpoint(&mut self, position: Sectors) {
        match self.syncs.asked {
            Some(SyncAction::Resync | SyncAction::FirstResync) => {
                let again = self.syncs.resync_again.iter().next();
                let position = again.map_or(position, |span| position.min(span.start));
                self.in_sync.below = self.in_sync.below.max(position);
                if let Some(intent) = &mut self.intent {
                    intent.resynced(position);
                }
                self.want_superblocks = true;
            }
            // md writes its superblocks then, though they contain nothing new.
            Some(SyncAction::Check | SyncAction::Repair) => {
                self.want_superblocks |= self.imitates_md;
            }
            None => self.recovery_checkpoint(),
        }
    }

    fn recovery_checkpoint(&mut self) {
        let states = self.engine.member_states();
        for device in self.devices.values_mut() {
            let Place::Recovering {
                slot,
                below,
                by_bitmap: false,
            } = &mut device.place
            else {
                continue;
            };
            let state = states.get(slot.index());
            if let Some(MemberState::Recovering { readable_below }) = state {
                let ahead = match mutation::is(Mutation::RecoveryOffsetAhead) {
                    true => self.array.used_size.0 / 2,
                    false => 0,
                };
                *below = (*below).max(Sectors(readable_below.0.saturating_add(ahead)));
                self.want_superblocks = true;
            }
        }
    }

    fn sync_ended(&mut self, finished: bool) {
        self.replacements.is_correcting = false;
        if self.syncs.asked.take() != Some(SyncAction::Resync) {
            return;
        }
        if finished {
            return self.resync_done();
        }
        for span in std::mem::take(&mut self.syncs.resync_again).iter() {
            self.out_of_sync(span);
        }
        // With other members the resync is another one.
        self.syncs.resync_waits = self.members_in_sync() == self.syncs.resynced_members;
    }

    pub(super) fn resync_done(&mut self) {
        self.in_sync.below = Superblock::IN_SYNC;
        self.resync_ranges = None;
        self.in_sync.is_first = false;
        self.syncs.waits_for_filled = false;
        if let Some(intent) = &mut self.intent {
            intent.resynced(Superblock::IN_SYNC);
        }
        self.want_superblocks = true;
        for span in std::mem::take(&mut self.syncs.resync_again).iter() {
            if let Some(intent) = &mut self.intent {
                intent.need(span);
            }
            self.out_of_sync(span);
        }
    }

    /// Marks members that the engine has recovered as in sync.
    pub(super) fn follow_members(&mut self) {
        let states = self.engine.member_states();
        self.degraded = states.iter().any(|state| *state != MemberState::InSync);
        for device in self.devices.values_mut() {
            if let Place::Recovering { slot, .. } = device.place
                && states.get(slot.index()) == Some(&MemberState::InSync)
            {
                device.place = Place::InSync(slot);
                self.want_superblocks = true;
                self.syncs.resync_waits = false;
            }
        }
        if self.imitates_md
            && !self.degraded
            && self.is_in_sync()
            && let Some(intent) = &mut self.intent
        {
            // Bits that were kept for the missing member may go.
            intent.resynced(Superblock::IN_SYNC);
        }
    }

    /// Handles a request that is done: it may be acknowledged unless something has to
    /// be recorded first.
    fn finish(&mut self, finished: Finished, out: &mut Outputs) {
        let Some(tracked) = self.tracked.remove(&finished.id) else {
            out.finished.push(finished);
            return;
        };
        self.flush_ended(finished.id, out);
        if tracked.is_write {
            self.writes -= 1;
            let differs = self.failure_differs()
                && matches!(
                    finished.result,
                    Err(RequestError::NoMember | RequestError::Failed)
                );
            let lacks = self.keeps_bits_of(&tracked);
            let all_have = self.imitates_md && !self.degraded && finished.result.is_ok();
            if let Some(intent) = self.intent.as_mut().filter(|_| tracked.is_marked) {
                intent.end(tracked.chunks, differs || lacks);
                if all_have {
                    intent.all_have_as_md(self.array.events);
                }
            }
            if differs {
                self.out_of_sync(tracked.span);
            }
        } else if finished.result.is_err() && !mutation::is(Mutation::FailedFlushForgotten) {
            self.flush_failed();
        }
        if matches!(self.mode, Mode::Broken | Mode::Stopped) {
            out.finished.push(Finished {
                id: finished.id,
                result: Err(RequestError::Failed),
            });
        } else if self.has_unrecorded() {
            self.held_finished.push(finished);
        } else {
            out.finished.push(finished);
        }
    }

    /// Whether a write that has failed may leave members that differ. With parity nothing was
    /// written, or the member that did not take its part has failed or has a bad block there; a
    /// resync would distrust the parity of everything beside it.
    fn failure_differs(&self) -> bool {
        let has_parity = self.stripes.is_some() && !mutation::is(Mutation::FailedWriteResynced);
        !has_parity || self.imitates_md
    }

    /// Handles a failed flush of a member that cannot be spared. The next flush may succeed without
    /// the writes that this one was to make durable, so the copies may differ wherever those were.
    fn flush_failed(&mut self) {
        let is_kept = self.is_recorded() && self.may_write() && !self.imitates_md;
        if !is_kept || !self.failure_differs() {
            return;
        }
        self.syncs.waits_for_filled = !mutation::is(Mutation::FilledUncompared);
        let everything = Span::between(Sectors::ZERO, self.sync_end());
        let spans = self.intent.as_ref().map(Intent::spans);
        for span in spans.unwrap_or_else(|| vec![everything]) {
            if let Some(intent) = &mut self.intent {
                intent.need(span);
            }
            self.out_of_sync(span);
        }
    }

    /// Handles a failed write: the members may hold different bytes there from now on. One resync
    /// of it is tried at once; if that stops short, only a change of the members, or the next
    /// start, makes another one promising.
    fn out_of_sync(&mut self, span: Span) {
        self.want_superblocks = true;
        self.syncs.resync_waits = false;
        self.in_sync.is_first = false;
        self.said.is_first = false;
        if self.syncs.asked == Some(SyncAction::Resync) {
            self.syncs.resync_again.insert(span);
            self.in_sync.below = self.in_sync.below.min(span.start);
            return;
        }
        let ranges = match (self.resync_ranges.take(), self.in_sync.below) {
            (_, Superblock::IN_SYNC) => Some(SpanSet::default()),
            (Some(ranges), _) => Some(ranges.into_iter().collect()),
            (None, Sectors::ZERO) => None,
            (None, start) => {
                let end = self.sync_end();
                Some([Span { start, end }].into_iter().collect())
            }
        };
        self.resync_ranges = ranges.map(|mut ranges: SpanSet| {
            ranges.insert(span);
            ranges.iter().collect()
        });
        self.in_sync.below = self.in_sync.below.min(span.start);
    }

    /// Whether acknowledgements have to wait.
    pub(super) fn has_unrecorded(&self) -> bool {
        let failures = !self.unrecorded.is_empty() && !mutation::is(Mutation::FailureNotAwaited);
        let pass = self.pass.as_ref();
        let bad_blocks =
            self.bad_blocks_unrecorded || pass.is_some_and(|pass| pass.records_bad_blocks);
        self.is_recorded() && self.may_write() && (failures || bad_blocks)
    }

    /// Tells the engine that a failure is recorded.
    pub(super) fn tell_recorded(&mut self, slot: Slot, out: &mut Outputs) {
        let now = self.now;
        self.with_engine_do(out, |engine, out| engine.failure_recorded(now, slot, out));
    }

    /// Tells the engine that what its write log waits for is recorded. The engine may find another
    /// bad block at once, and then waits again.
    pub(super) fn let_log_go_on(&mut self, out: &mut Outputs) {
        let now = self.now;
        if std::mem::take(&mut self.log_waits) {
            self.with_engine_do(out, |engine, out| engine.log_may_go_on(now, out));
        }
    }

    /// Handles a device to which its metadata could not be written.
    pub(super) fn metadata_failed(&mut self, handle: Slot, out: &mut Outputs) {
        if handle == EXTERNAL_BITMAP {
            // With the next event count, the file is out of date for any later start. Until then no
            // write may rely on it.
            self.intent = None;
            self.disk_dirty = false;
            if let Some(pass) = &mut self.pass
                && !mutation::is(Mutation::LostBitmapTrusted)
            {
                pass.bitmap_is_lost = true;
            }
            self.want_superblocks = true;
            return;
        }
        let Some(device) = self.devices.get_mut(&handle) else {
            return;
        };
        match device.place {
            Place::Faulty => {}
            Place::Replacing { .. } if self.replacements.fills(handle) => {
                self.replacement_failed(handle, out);
            }
            Place::Spare | Place::Replacing { .. } => {
                device.place = Place::Faulty;
                self.want_superblocks = true;
                out.events.push(Event::MemberFailed(handle));
            }
            Place::InSync(slot) | Place::Recovering { slot, .. } => {
                let now = self.now;
                let refused = self.with_engine_do(out, |engine, out| engine.fail(now, slot, out));
                if refused.is_err() && self.devices[&handle].place != Place::Faulty {
                    self.break_down(out);
                }
            }
        }
    }

    /// Breaks the array down, as its state can no longer be recorded: no request that depends on it
    /// is acknowledged from now on.
    pub(super) fn break_down(&mut self, out: &mut Outputs) {
        self.mode = match self.mode {
            // A stopped array has broken down before: it stays stopped.
            Mode::Stopping | Mode::Stopped => Mode::Stopped,
            _ => Mode::Broken,
        };
        self.clean_at = None;
        if let Some(imitation) = self.engine.imitation_mut() {
            self.held.iter().for_each(|held| imitation.leave(held));
        }
        self.bit_passes.forget();
        let held = self.held.drain(..).map(|request| request.id);
        let unanswered = self.held_finished.drain(..).map(|finished| finished.id);
        for id in unanswered.chain(held) {
            self.tracked.remove(&id);
            out.finished.push(Finished {
                id,
                result: Err(RequestError::Failed),
            });
        }
    }
}
