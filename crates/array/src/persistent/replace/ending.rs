//! The end of a replacement: the new device takes the slot, or one of the two fails.

use super::{Copying, LastFlush, Stage};
use crate::admission::Admission;
use crate::mutation::{self, Mutation};
use crate::persistent::device::Place;
use crate::persistent::{Mode, PersistentArray};
use crate::request::{
    BufferId, Event, MemberCommand, MemberError, Operation, Outputs, Purpose, Sender, Slot,
};
use raidlab_units::Sectors;

impl PersistentArray {
    /// Ends the part of a new device that has failed.
    pub(in crate::persistent) fn replacement_failed(&mut self, device: Slot, out: &mut Outputs) {
        let running = self.replacements.running.iter();
        let found = running
            .filter(|(_, it)| it.new == device && it.stage != Stage::Taken)
            .map(|(slot, it)| (*slot, it.stage))
            .next();
        let Some((slot, stage)) = found else { return };
        self.hold_answers(slot);
        if stage == Stage::Orphaned && !mutation::is(Mutation::SecondLossUnrecorded) {
            self.record_anew(slot);
        }
        self.abandon_replacement(slot, out);
        self.retire(device);
        out.events.push(Event::MemberFailed(device));
    }

    /// Counts the failure of a slot's member as not recorded, although it may be. The engine goes
    /// on without the slot only when superblocks leave out its replacement as well.
    fn record_anew(&mut self, slot: Slot) {
        self.recorded.remove(&slot);
        self.unrecorded.insert(slot);
        self.want_superblocks = true;
        if let Some(pass) = &mut self.pass {
            pass.forget_failure(slot);
        }
    }

    /// Ends a replacement in its present state.
    pub(super) fn abandon_replacement(&mut self, slot: Slot, out: &mut Outputs) {
        self.want_superblocks = true;
        let Some(mut replacement) = self.replacements.running.remove(&slot) else {
            return;
        };
        out.commands.append(&mut replacement.held);
    }

    /// Adapts a replacement to the failure of its slot's member.
    pub(in crate::persistent) fn replaced_member_failed(&mut self, slot: Slot, out: &mut Outputs) {
        // A resync ends without comparing blocks that have one copy left, and a first one
        // where parity defines what is lost: the old member's content would remain different
        // from the others'. After a crash its copy holds what parity does not define, and the
        // resync goes on.
        let differs = !self.is_in_sync() && (self.stripes.is_none() || self.in_sync.is_first);
        match self.replacements.running.get_mut(&slot) {
            None => {}
            Some(replacement) if replacement.stage == Stage::Copying => {
                replacement.stage = Stage::Orphaned;
                replacement.is_void = differs && !mutation::is(Mutation::UnlikeCopyKept);
                self.note_position(slot);
            }
            Some(_) => self.abandon_replacement(slot, out),
        }
    }

    /// Drops the old device, as the superblocks name the new one.
    pub(in crate::persistent) fn replacement_recorded(&mut self, slot: Slot) {
        let running = self.replacements.running.get(&slot);
        if running.is_some_and(|it| it.stage == Stage::Taken) {
            self.replacements.running.remove(&slot);
        }
    }

    /// Gives the slot to the new device when everything is copied, once it has been flushed.
    pub(super) fn take_place(&mut self, slot: Slot, out: &mut Outputs) -> bool {
        // The last part may have been found bad or empty instead of being copied.
        self.note_position(slot);
        let is_drained = self.replacements.is_drained(slot);
        let Some(replacement) = self.replacements.running.get_mut(&slot) else {
            return false;
        };
        if !is_drained || !self.unrecorded.is_empty() || self.pass.is_some() {
            return false;
        }
        // The superblocks first record that it has everything, then that it is the member: a crash
        // between two superblocks of the second pass must not cost a member.
        if replacement.recorded < self.array.used_size
            && !mutation::is(Mutation::ReplacementSeatedEarly)
        {
            return !std::mem::replace(&mut self.want_superblocks, true);
        }
        if replacement.last_flush != LastFlush::Answered
            && !mutation::is(Mutation::ReplacementUnasked)
        {
            return self.send_last_flush(slot, out);
        }
        replacement.stage = Stage::Taken;
        let (old, new) = (replacement.old, replacement.new);
        self.served[slot.index()] = Some(new);
        if let Some(device) = self.devices.get_mut(&new) {
            device.place = Place::InSync(slot);
            self.engine.member_replaced(slot, device.config());
        }
        self.retire(old);
        self.want_superblocks = true;
        true
    }

    /// Sends the flush before the change of place; returns whether it did, as none was under way.
    fn send_last_flush(&mut self, slot: Slot, out: &mut Outputs) -> bool {
        let running = self.replacements.running.get_mut(&slot);
        let Some(replacement) = running.filter(|it| it.last_flush == LastFlush::Due) else {
            return false;
        };
        replacement.last_flush = LastFlush::UnderWay;
        let new = replacement.new;
        let id = self.commands.new_id();
        let copying = Copying::LastFlush { slot, new };
        self.replacements.commands.insert(id, copying);
        self.commands.data.insert(id, new);
        out.commands.push(MemberCommand {
            id,
            slot: new,
            operation: Operation::Flush,
            start: Sectors::ZERO,
            count: Sectors::ZERO,
            force_unit_access: false,
            purpose: Purpose::Sync,
            sender: Sender::Thread,
            buffer: BufferId::None,
        });
        true
    }

    /// Handles a new device's answer to the flush before it takes its slot.
    pub(super) fn last_flush_answered(
        &mut self,
        (slot, new): (Slot, Slot),
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        if result.is_err() {
            return self.replacement_failed(new, out);
        }
        let running = self.replacements.running.get_mut(&slot);
        if let Some(replacement) = running.filter(|it| it.new == new)
            && replacement.last_flush == LastFlush::UnderWay
        {
            replacement.last_flush = LastFlush::Answered;
        }
    }

    /// Gives the slot of a failed old device, when the superblocks record the failure, to the new
    /// one, which is recovered from the others.
    pub(super) fn take_orphan(&mut self, slot: Slot, out: &mut Outputs) -> bool {
        // The claims of a pass under way about the new device are older.
        if !self.recorded.contains(&slot) || self.pass.is_some() {
            return false;
        }
        let Some(replacement) = self.replacements.running.get(&slot) else {
            return false;
        };
        if replacement.stage != Stage::Orphaned || !self.replacements.is_drained(slot) {
            return false;
        }
        let (new, recorded) = (replacement.new, replacement.recorded);
        let mut below = replacement.below(self.data_span(new));
        if recorded > below && self.may_write() && !mutation::is(Mutation::OverclaimIgnored) {
            return !std::mem::replace(&mut self.want_superblocks, true);
        }
        self.replacements.running.remove(&slot);
        if self.mode != Mode::ReadWrite {
            self.leave_orphan(slot, new);
            return true;
        }
        if let Some(device) = self.devices.get_mut(&new) {
            // Blocks that the old one had lost are recovered from the others; the device's log
            // names them until then.
            let bad = device.bad_spans();
            below = bad.iter().fold(below, |below, bad| below.min(bad.start));
            device.place = Place::Spare;
        }
        self.seat(new, slot, Admission::From(below), true, out);
        // Writes in work leave the new device out, so it is filled less far than its superblock
        // says: no write goes out before that is corrected.
        let place = self.devices.get(&new).map(|device| &device.place);
        if let Some(Place::Recovering { below, .. }) = place
            && *below < recorded
            && !mutation::is(Mutation::SeatedOverclaimed)
        {
            self.record_anew(slot);
        }
        true
    }

    /// Leaves a new device whose member has failed: the array is stopped, or read-only, and
    /// nothing is recovered now. If nothing is written any more either, the next assembly finds
    /// the new device as it is. Otherwise it is a spare again, and the engine goes on without
    /// the slot when the superblocks record that: they must not call a device filled that is
    /// about to miss writes.
    fn leave_orphan(&mut self, slot: Slot, new: Slot) {
        let writes = self.writes > 0 || !self.held.is_empty() || self.mode == Mode::ReadOnly;
        if !writes || !self.may_write() || mutation::is(Mutation::OrphanLeftFilled) {
            return;
        }
        if let Some(device) = self.devices.get_mut(&new) {
            device.place = Place::Spare;
        }
        self.record_anew(slot);
    }
}
