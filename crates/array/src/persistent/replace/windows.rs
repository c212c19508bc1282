//! The copying of a replacement in windows, upwards, where and when the engine permits it.

use super::{
    ATTEMPTS, BLOCK, CHECKPOINTS, Copying, LastFlush, PATIENCE, Replacement, Stage, Unreadable,
    WINDOW, Window,
};
use crate::engine::{SyncAction, SyncRequest};
use crate::mutation::{self, Mutation};
use crate::persistent::device::Place;
use crate::persistent::syncs::InSync;
use crate::persistent::{Mode, PersistentArray, assembly};
use crate::request::{
    ComputeStep, Event, MemberCommand, MemberError, Operation, Outputs, Purpose, ScratchId, Sender,
    Slot,
};
use raidlab_geometry::CopyMap;
use raidlab_units::{Nanos, Sectors, Span, SpanSet};

impl PersistentArray {
    pub(super) fn window_answered(
        &mut self,
        (slot, new): (Slot, Slot),
        scratch: ScratchId,
        is_write: bool,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        let running = self.replacements.running.get_mut(&slot);
        let of = |it: &Replacement| it.window.filter(|window| window.scratch == scratch);
        let found = running.and_then(|it| of(it).map(|window| (it, window)));
        let Some((replacement, window)) = found else {
            // The new device has failed meanwhile.
            out.steps.push(ComputeStep::Release { scratch });
            return;
        };
        if result.is_ok() && !is_write && replacement.stage == Stage::Copying {
            self.send_window(slot, window, true, out);
            return;
        }
        replacement.window = None;
        out.steps.push(ComputeStep::Release { scratch });
        if result.is_ok() && is_write {
            replacement.log.remove(window.span);
            replacement.data.remove(window.span);
            replacement.unreadable = None;
            let is_busy = self.replacements.engine_commands != replacement.commands_seen;
            replacement.commands_seen = self.replacements.engine_commands;
            let (minimum, maximum) = self.replacements.speeds;
            let speed = if is_busy { minimum } else { maximum };
            let sectors = window.span.end.0 - window.span.start.0;
            let time = sectors * Nanos::SECOND.0 / (2 * speed.min(maximum));
            replacement.due = self.now + Nanos(time);
        }
        for command in std::mem::take(&mut replacement.held) {
            self.send_to_both(slot, command, out);
        }
        match (is_write, result) {
            (_, Ok(())) => self.note_position(slot),
            (true, Err(_)) => self.replacement_failed(new, out),
            (false, Err(error)) => self.window_unreadable(slot, window.span, error, out),
        }
    }

    /// Notes how far the new device is filled, and has it recorded at intervals.
    pub(super) fn note_position(&mut self, slot: Slot) {
        self.take_down_positions();
        let Some(replacement) = self.replacements.running.get(&slot) else {
            return;
        };
        let position = replacement.below(self.data_span(replacement.new));
        let step = (self.array.used_size.0 / CHECKPOINTS).max(1);
        self.want_superblocks |= position.0 >= replacement.recorded.0.saturating_add(step);
    }

    /// Notes how far each new device is filled at this moment, which may be less far than before: a
    /// range that was bad on the old one, and was not copied, may have been rewritten.
    pub(in crate::persistent) fn take_down_positions(&mut self) {
        for replacement in self.replacements.running.values() {
            let position = replacement.below(self.data_span(replacement.new));
            if let Some(device) = self.devices.get_mut(&replacement.new)
                && let Place::Replacing { below, .. } = &mut device.place
            {
                *below = position;
            }
        }
    }

    /// Whether the superblock of some new device calls it filled further than it is: if that is not
    /// corrected, and the old one is gone, it takes the slot with this claim.
    fn claims_too_much(&self) -> bool {
        let mut running = self.replacements.running.values();
        running.any(|it| it.recorded > it.below(self.data_span(it.new)))
            && !mutation::is(Mutation::OverclaimIgnored)
    }

    /// Returns the part of the array to be recorded as in sync: no more than in the last
    /// superblocks, while a new device still claims to be filled further than it is. Its content
    /// may differ from the others', and if the correction does not reach it, a resync must follow.
    pub(in crate::persistent) fn in_sync_to_say(&self) -> InSync {
        match self.claims_too_much() && self.said.below < self.in_sync.below {
            true => self.said,
            false => self.in_sync,
        }
    }

    /// Handles a window that the old device could not read.
    pub(super) fn window_unreadable(
        &mut self,
        slot: Slot,
        span: Span,
        error: MemberError,
        out: &mut Outputs,
    ) {
        let Some(replacement) = self.replacements.running.get_mut(&slot) else {
            return;
        };
        if replacement.stage != Stage::Copying {
            return;
        }
        if error == MemberError::Medium && span.end.0 - span.start.0 > BLOCK {
            replacement.careful_below = span.end;
            return;
        }
        let before = replacement.unreadable.filter(|it| it.start == span.start);
        let attempts = before.map_or(1, |it| it.attempts + 1);
        let is_data = replacement.log.is_empty();
        if error == MemberError::Medium && is_data && attempts < ATTEMPTS {
            replacement.unreadable = Some(Unreadable {
                start: span.start,
                attempts,
                was_checked: false,
            });
            return;
        }
        let (now, new) = (self.now, replacement.new);
        let failed = self.with_engine_do(out, |engine, out| engine.fail(now, slot, out));
        if failed.is_err() {
            // The old device is the last one that has some of the data: it stays in service.
            self.abandon_replacement(slot, out);
            let mut commands = self.replacements.commands.values();
            let is_used = commands.any(|it| matches!(it, Copying::Double(_, to) if *to == new));
            if let Some(device) = self.devices.get_mut(&new) {
                device.place = if is_used { Place::Faulty } else { Place::Spare };
            }
            out.events.push(Event::SyncAborted);
        }
    }

    /// Copies what can be copied now; returns true if anything has changed.
    pub(in crate::persistent) fn go_on_replacing(&mut self, out: &mut Outputs) -> bool {
        let slots: Vec<Slot> = self.replacements.running.keys().copied().collect();
        let mut progress = false;
        for slot in slots {
            progress |= self.take_orphan(slot, out) || self.copy_on(slot, out);
        }
        progress
    }

    pub(super) fn copy_on(&mut self, slot: Slot, out: &mut Outputs) -> bool {
        let may_go = self.mode == Mode::ReadWrite && self.started;
        let is_syncing = self.engine.sync_status().is_some();
        let Some(replacement) = self.replacements.running.get_mut(&slot) else {
            return false;
        };
        let in_flight = &self.commands.data;
        replacement.earlier.retain(|id| in_flight.contains_key(id));
        if (!may_go || is_syncing) && replacement.last_flush == LastFlush::Answered {
            // The new device has to wait, and may die without having got a command.
            replacement.last_flush = LastFlush::Due;
        }
        let is_free = replacement.stage == Stage::Copying
            && replacement.window.is_none()
            && replacement.earlier.is_empty();
        if !is_free || !may_go || is_syncing || replacement.due > self.now {
            return false;
        }
        let first = replacement.log.iter().next();
        let Some(rest) = first.or_else(|| replacement.data.iter().next()) else {
            return self.rewrite_bad(slot, out) || self.take_place(slot, out);
        };
        replacement.last_flush = LastFlush::Due;
        if let Some(unreadable) = &mut replacement.unreadable
            && !std::mem::replace(&mut unreadable.was_checked, true)
        {
            let start = unreadable.start;
            return self.correct(slot, start, out);
        }
        let careful = replacement.careful_below > rest.start || replacement.unreadable.is_some();
        let length = if careful { BLOCK } else { WINDOW };
        let span = Span::between(rest.start, rest.end.min(Sectors(rest.start.0 + length)));
        if replacement
            .writes
            .values()
            .any(|write| write.overlaps(&span))
        {
            return false;
        }
        let scratch = self.commands.new_scratch();
        let count = Sectors(span.end.0 - span.start.0);
        out.steps.push(ComputeStep::Allocate { scratch, count });
        let window = Window { span, scratch };
        if let Some(replacement) = self.replacements.running.get_mut(&slot) {
            replacement.window = Some(window);
        }
        self.send_window(slot, window, false, out);
        true
    }

    pub(super) fn send_window(
        &mut self,
        slot: Slot,
        window: Window,
        is_write: bool,
        out: &mut Outputs,
    ) {
        let Some(replacement) = self.replacements.running.get(&slot) else {
            return;
        };
        let (old, new) = (replacement.old, replacement.new);
        let (device, operation) = match is_write {
            true => (new, Operation::Write),
            false => (old, Operation::Read),
        };
        let id = self.commands.new_id();
        let count = Sectors(window.span.end.0 - window.span.start.0);
        let copying = Copying::Window {
            slot,
            new,
            window: window.scratch,
            is_write,
        };
        self.replacements.commands.insert(id, copying);
        self.commands.data.insert(id, device);
        out.commands.push(MemberCommand {
            id,
            slot: device,
            operation,
            start: window.span.start,
            count,
            force_unit_access: false,
            purpose: Purpose::Sync,
            sender: match is_write {
                true => Sender::Thread,
                false => Sender::Sync,
            },
            buffer: window.scratch.whole(),
        });
    }

    /// Makes the engine check a block that the old device cannot read, and rewrite it.
    pub(super) fn correct(&mut self, slot: Slot, start: Sectors, out: &mut Outputs) -> bool {
        let Some(replacement) = self.replacements.running.get_mut(&slot) else {
            return false;
        };
        replacement.due = self.now + PATIENCE;
        let old = replacement.old;
        let data = self.data_span(old);
        let span = Span::between(start, data.end.min(Sectors(start.0 + BLOCK)));
        let ranges = self.positions_of(slot, data, span);
        if ranges.is_empty() {
            // The block has no content.
            if let Some(replacement) = self.replacements.running.get_mut(&slot) {
                replacement.data.remove(span);
                replacement.unreadable = None;
            }
            return true;
        }
        self.have_engine_write(SyncAction::Check, ranges, out);
        true
    }

    /// Repairs the ranges in the old device's bad-block log, which are not read: the engine
    /// rewrites them on both devices, as far as the other members have them. Ranges that are left
    /// after some attempts stay in the logs of both.
    fn rewrite_bad(&mut self, slot: Slot, out: &mut Outputs) -> bool {
        let Some(replacement) = self.replacements.running.get(&slot) else {
            return false;
        };
        let old = replacement.old;
        let data = self.data_span(old);
        let used = data.end - data.start;
        let bad = self.devices[&old].bad_spans().into_iter();
        let bad = bad.map(|bad| {
            Span::between(
                data.start + bad.start.min(used),
                data.start + bad.end.min(used),
            )
        });
        let ranges: Vec<Span> = bad
            .flat_map(|bad| self.positions_of(slot, data, bad))
            .collect();
        let Some(replacement) = self.replacements.running.get_mut(&slot) else {
            return false;
        };
        let is_done = ranges.is_empty() || replacement.repairs == ATTEMPTS;
        if is_done || mutation::is(Mutation::ReplacementBadUncopied) {
            return false;
        }
        replacement.repairs += 1;
        self.have_engine_write(SyncAction::Repair, ranges, out);
        true
    }

    /// Starts a sync of some ranges, for a replacement's sake.
    fn have_engine_write(&mut self, action: SyncAction, ranges: Vec<Span>, out: &mut Outputs) {
        let ranges: SpanSet = ranges.into_iter().collect();
        let request = SyncRequest {
            action,
            ranges: Some(ranges.iter().collect()),
        };
        let now = self.now;
        self.syncs.asked = Some(action);
        self.replacements.is_correcting = true;
        let started = self.with_engine_do(out, |engine, out| engine.start_sync(now, request, out));
        if started.is_err() || self.engine.sync_status().is_none() {
            self.syncs.asked = None;
            self.replacements.is_correcting = false;
        }
    }

    /// Returns a range of the data area of a slot's device in the units of the engine's syncs,
    /// without parts that have no content.
    fn positions_of(&self, slot: Slot, data: Span, span: Span) -> Vec<Span> {
        let shape = assembly::shape_of(&self.array, self.level, self.layout);
        let (mut at, end) = (span.start - data.start, span.end - data.start);
        let (None, Ok(map)) = (&self.stripes, CopyMap::new(&shape)) else {
            let all = Span { start: at, end };
            return [all].into_iter().filter(|it| it.start < it.end).collect();
        };
        let mut positions = Vec::new();
        while at < end {
            let inverse = map.inverse(slot, at);
            let count = inverse.contiguous.min(end - at);
            if count == Sectors::ZERO {
                break;
            }
            positions.extend(
                inverse
                    .content
                    .map(|content| Span::between(content.start, content.start + count)),
            );
            at += count;
        }
        positions
    }

    /// Returns the time when the next window is due.
    pub(in crate::persistent) fn next_window_at(&self) -> Option<Nanos> {
        let waits = self.mode == Mode::ReadWrite && self.engine.sync_status().is_none();
        let running = self.replacements.running.values();
        let due = running
            .filter(|it| it.stage == Stage::Copying && it.window.is_none() && it.due > self.now)
            .map(|it| it.due);
        due.min().filter(|_| waits)
    }
}
