//! A member is replaced while it serves (mdadm's `--replace`).
//!
//! The engine knows nothing of it: it goes on with the old device, and this
//! layer gives every write, discard and flush of the engine to the new device as
//! well, the records of the write log included. An answer goes to the engine
//! when both have answered. Meanwhile the rest is copied in windows, upwards:
//! first the write log's records, then the data. A window is copied when no
//! write of the engine is in flight over it, and writes that come while it is
//! copied are sent when it is done; so, below the position, the new device has
//! at any moment what the old one has. Syncs go first; apart from that the
//! copying runs at the syncs' speeds.
//!
//! On the members the new device has the same slot as the old one and the bit
//! `REPLACEMENT`, with the sector below which it is filled as its recovery
//! offset, as md does it. A crash costs what was copied since the last superblock
//! and what is written at the time: the position goes back to the first dirty
//! chunk.
//!
//! *The change of place.* When all is copied and the superblocks say so, the new
//! device takes the slot: the engine's commands go to it, and the old device is the one that gets a copy of
//! the writes, until the superblocks (for which the members are flushed) call the
//! old one failed. So whichever of the two a crash leaves in the slot has every
//! write.
//!
//! *The old one cannot be read.* What its bad-block log names is not copied and
//! becomes bad on the new one. What turns out to be unreadable is looked for
//! block by block; a check of that block lets the engine write it anew from the
//! other members. If it still cannot be read, or the device is gone, the old one
//! fails.
//!
//! *The old one fails.* The new one takes its slot at once and is filled from
//! the other members from its position on. That happens before the engine may
//! write without the old one, and after all writes to the new one have ended,
//! so that it has missed none.
//!
//! *The new one fails*: the old one has all, nothing else happens. That the
//! failure is not recorded yet does no harm: a crash leaves the chunks dirty
//! that the new one missed.

use super::device::Place;
use super::error::VerbError;
use super::{Mode, PersistentArray, assembly};
use crate::engine::{Admission, Span, SyncAction, SyncRequest};
use crate::recovery::Spans;
use crate::request::{
    BufferId, CommandId, ComputeStep, Event, MemberCommand, MemberError, Operation, Outputs,
    Purpose, ScratchId, Slot,
};
use raidlab_geometry::CopyMap;
use raidlab_units::{Nanos, Sectors};
use std::collections::BTreeMap;

/// Sectors copied at a time: 128 KiB, md's window of a sync.
const WINDOW: u64 = 256;
/// Sectors copied at a time where something cannot be read.
const BLOCK: u64 = 8;
/// A part of the whole after which the position is recorded, as md does.
const CHECKPOINTS: u64 = 16;
/// How often a block is tried, with a check before each further attempt.
const ATTEMPTS: u32 = 4;
/// What the engine gets to write the block anew after the check.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// How far a replacement is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Copying,
    /// The old device has failed; the new one is about to take its slot.
    Orphaned,
    /// The new device has the slot; the superblocks do not know yet.
    Taken,
}

/// A member that is replaced.
#[derive(Debug)]
pub(super) struct Replacement {
    stage: Stage,
    old: Slot,
    new: Slot,
    /// What is not copied yet of the write log's records, and of the data, in
    /// sectors of the device.
    log: Spans,
    data: Spans,
    window: Option<Window>,
    /// The engine's writes that both devices are given.
    writes: BTreeMap<CommandId, Span>,
    /// The engine's writes that wait for the window.
    held: Vec<MemberCommand>,
    /// The next window begins at this time or later.
    due: Nanos,
    /// Copied block by block below this sector.
    careful_below: Sectors,
    /// A block that cannot be read.
    unreadable: Option<Unreadable>,
    /// Recorded as filled below this sector of the data area.
    recorded: Sectors,
    /// The engine's commands when the last window was copied.
    commands_seen: u64,
}

/// A block that the old device cannot read.
#[derive(Debug, Clone, Copy)]
struct Unreadable {
    start: Sectors,
    attempts: u32,
    /// A check has passed there since the last attempt.
    was_checked: bool,
}

/// A range that is being copied.
#[derive(Debug, Clone, Copy)]
struct Window {
    span: Span,
    scratch: ScratchId,
}

/// A command of the engine that two devices are given.
#[derive(Debug)]
pub(super) struct Double {
    slot: Slot,
    /// The answer of the device that serves the slot.
    served: Option<Result<(), MemberError>>,
    copied: bool,
}

/// A command of this layer.
#[derive(Debug)]
pub(super) enum Copying {
    /// The second device's share of the engine's command.
    Double(CommandId, Slot),
    /// A window's read or write.
    Window {
        slot: Slot,
        new: Slot,
        window: ScratchId,
        is_write: bool,
    },
}

/// All replacements.
#[derive(Debug)]
pub(super) struct Replacements {
    running: BTreeMap<Slot, Replacement>,
    doubles: BTreeMap<CommandId, Double>,
    commands: BTreeMap<CommandId, Copying>,
    /// KiB/s: while others use the array, and at most.
    speeds: (u64, u64),
    /// Commands that the engine has sent.
    engine_commands: u64,
    /// A check runs that is to have a block written anew.
    pub(super) is_correcting: bool,
}

impl Default for Replacements {
    fn default() -> Self {
        Self {
            running: BTreeMap::new(),
            doubles: BTreeMap::new(),
            commands: BTreeMap::new(),
            // md's defaults of `sync_speed_min` and `sync_speed_max`.
            speeds: (1000, 200_000),
            engine_commands: 0,
            is_correcting: false,
        }
    }
}

impl Replacements {
    pub(super) fn set_speeds(&mut self, minimum: u64, maximum: u64) {
        self.speeds = (minimum.max(1), maximum.max(1));
    }

    /// Whether a slot's member is being replaced.
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.running.contains_key(&slot)
    }

    /// Whether a device is being filled.
    pub(super) fn fills(&self, device: Slot) -> bool {
        self.running.values().any(|it| it.new == device)
    }

    /// Nothing is being replaced.
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// The two devices of a slot of which this is one.
    fn of_device(&mut self, device: Slot) -> Option<&mut Replacement> {
        let mut running = self.running.values_mut();
        running.find(|it| it.old == device || it.new == device)
    }

    /// Nothing of this layer is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.commands.is_empty() && self.running.values().all(|it| it.held.is_empty())
    }

    /// How far each new device is filled, as its superblock says.
    pub(super) fn set_recorded(&mut self, device: Slot, below: Sectors) {
        let mut running = self.running.values_mut();
        if let Some(replacement) = running.find(|it| it.new == device) {
            replacement.recorded = below;
        }
    }

    /// Slots whose new devices the next superblocks name.
    pub(super) fn taken(&self) -> Vec<Slot> {
        let taken = self.running.iter();
        taken
            .filter(|(_, it)| it.stage == Stage::Taken)
            .map(|(slot, _)| *slot)
            .collect()
    }

    /// Whether a device is part of a replacement that is about to end.
    pub(super) fn is_busy(&self, device: Slot) -> bool {
        let ending = |it: &&Replacement| it.stage != Stage::Copying;
        let mut ending = self.running.values().filter(ending);
        ending.any(|it| it.old == device || it.new == device)
    }
}

impl Replacement {
    /// The device that gets copies of what the slot's device is given.
    const fn other(&self) -> Slot {
        match self.stage {
            Stage::Copying | Stage::Orphaned => self.new,
            Stage::Taken => self.old,
        }
    }

    /// Filled below this sector of the data area.
    fn below(&self, data: Span) -> Sectors {
        // Without the log's records it is no participant to be relied on.
        if !self.log.is_empty() {
            return Sectors::ZERO;
        }
        let first = self.data.iter().next();
        first.map_or(data.end, |span| span.start) - data.start
    }

    fn is_drained(&self) -> bool {
        self.window.is_none() && self.writes.is_empty() && self.held.is_empty()
    }
}

const fn span_of(command: &MemberCommand) -> Span {
    Span {
        start: command.start,
        end: Sectors(command.start.0 + command.count.0),
    }
}

const fn overlap(one: &Span, other: &Span) -> bool {
    one.start.0 < other.end.0 && other.start.0 < one.end.0
}

impl PersistentArray {
    /// mdadm's `--replace`, and `--with`: a spare is filled with what the member
    /// holds while that goes on serving; then it takes the slot, and the member
    /// counts as failed. Without a spare named, the first that fits is taken.
    ///
    /// # Errors
    /// When the member is not in sync or is being replaced already, or there is
    /// no spare that fits.
    pub fn replace(
        &mut self,
        now: Nanos,
        handle: Slot,
        with: Option<Slot>,
        out: &mut Outputs,
    ) -> Result<(), VerbError> {
        self.now = now;
        self.check_changeable()?;
        let Place::InSync(slot) = self.device(handle)?.place else {
            return Err(VerbError::NotInSync(handle));
        };
        if self.replacements.has(slot) {
            return Err(VerbError::Busy);
        }
        let offset = self.device(handle)?.own.data_offset;
        let fits = |new: &Slot| self.devices[new].own.data_offset == offset;
        let mut spares = self.spares().into_iter().filter(fits);
        let new = spares.find(|new| with.is_none_or(|with| with == *new));
        let new = new.ok_or(VerbError::NoSpare)?;
        self.begin_replacement(slot, handle, new, Sectors::ZERO);
        self.pump(out);
        Ok(())
    }

    /// Replacements that a run before has begun go on; a device that cannot go
    /// on is a spare again.
    pub(super) fn resume_replacements(&mut self) {
        let begun: Vec<_> = self
            .devices
            .iter()
            .filter_map(|(handle, device)| match device.place {
                Place::Replacing { slot, below } if !self.replacements.fills(*handle) => {
                    Some((*handle, slot, below))
                }
                _ => None,
            })
            .collect();
        for (new, slot, below) in begun {
            let old = self.served.get(slot.index()).copied().flatten();
            let old = old.filter(|old| {
                let (old, new) = (&self.devices[old], &self.devices[&new]);
                old.place == Place::InSync(slot)
                    && old.own.data_offset == new.own.data_offset
                    && self.is_fit(new)
                    && !self.replacements.has(slot)
            });
            match old {
                Some(old) => self.begin_replacement(slot, old, new, below),
                None => {
                    if let Some(device) = self.devices.get_mut(&new) {
                        device.place = Place::Spare;
                    }
                }
            }
        }
    }

    fn begin_replacement(&mut self, slot: Slot, old: Slot, new: Slot, below: Sectors) {
        let span = self.data_span(old);
        let rest = Span {
            start: span.start + below.min(self.array.used_size),
            end: span.end,
        };
        let mut data: Spans = [rest].into_iter().collect();
        let bad = self.devices[&old].bad_blocks.clone();
        for entry in &bad {
            data.remove(Span {
                start: entry.start,
                end: Sectors(entry.start.0.saturating_add(entry.count.0)),
            });
        }
        let Some(device) = self.devices.get_mut(&new) else {
            return;
        };
        // What it had of its own is overwritten.
        device.bad_blocks_changed |= device.bad_blocks != bad;
        device.bad_blocks = bad;
        device.place = Place::Replacing {
            slot,
            below: Sectors::ZERO,
        };
        let log = self.ring.filter(|_| self.session != 0);
        let replacement = Replacement {
            stage: Stage::Copying,
            old,
            new,
            log: log.into_iter().collect(),
            data,
            window: None,
            writes: BTreeMap::new(),
            held: Vec::new(),
            due: self.now,
            careful_below: Sectors::ZERO,
            unreadable: None,
            recorded: Sectors::ZERO,
            commands_seen: self.replacements.engine_commands,
        };
        self.replacements.running.insert(slot, replacement);
        if let Some(intent) = &mut self.intent {
            intent.want_all();
        }
        self.want_superblocks = true;
        self.note_position(slot);
    }

    /// The part of a device that holds the array's data.
    fn data_span(&self, handle: Slot) -> Span {
        let start = self.devices[&handle].own.data_offset;
        Span {
            start,
            end: start + self.array.used_size,
        }
    }

    /// Sends a command of the engine, to both devices where a member is being
    /// replaced.
    pub(super) fn send_engine_command(
        &mut self,
        slot: Slot,
        command: MemberCommand,
        out: &mut Outputs,
    ) {
        self.replacements.engine_commands += 1;
        let Some(replacement) = self.replacements.running.get_mut(&slot) else {
            out.commands.push(command);
            return;
        };
        if command.operation == Operation::Read {
            out.commands.push(command);
            return;
        }
        let span = span_of(&command);
        if let Some(window) = &replacement.window
            && overlap(&window.span, &span)
        {
            replacement.held.push(command);
            return;
        }
        self.send_to_both(slot, command, out);
    }

    fn send_to_both(&mut self, slot: Slot, command: MemberCommand, out: &mut Outputs) {
        out.commands.push(command);
        let Some(replacement) = self.replacements.running.get_mut(&slot) else {
            return;
        };
        if command.operation != Operation::Flush {
            let span = span_of(&command);
            replacement.writes.insert(command.id, span);
        }
        let copy = MemberCommand {
            id: CommandId(self.next_command),
            slot: replacement.other(),
            ..command
        };
        self.next_command += 1;
        let double = Double {
            slot,
            served: None,
            copied: false,
        };
        self.replacements.doubles.insert(command.id, double);
        let copying = Copying::Double(command.id, copy.slot);
        self.replacements.commands.insert(copy.id, copying);
        let traffic = (copy.slot, copy.operation, copy.count);
        self.data_commands.insert(copy.id, traffic);
        out.commands.push(copy);
    }

    /// The device that serves a slot has answered a command of the engine: what
    /// the engine is to be told now, if anything.
    pub(super) fn double_answered(
        &mut self,
        command: CommandId,
        result: Result<(), MemberError>,
    ) -> Option<Result<(), MemberError>> {
        match self.replacements.doubles.get_mut(&command) {
            None => Some(result),
            Some(double) if double.copied => {
                self.double_done(command);
                Some(result)
            }
            Some(double) => {
                double.served = Some(result);
                None
            }
        }
    }

    fn double_done(&mut self, command: CommandId) {
        let double = self.replacements.doubles.remove(&command);
        let slot = double.map(|double| double.slot);
        let replacement = slot.and_then(|slot| self.replacements.running.get_mut(&slot));
        if let Some(replacement) = replacement {
            replacement.writes.remove(&command);
        }
    }

    /// Whether an answer is to a command of this layer; if so, it is taken.
    pub(super) fn copying_answered(
        &mut self,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) -> bool {
        let Some(copying) = self.replacements.commands.remove(&command) else {
            return false;
        };
        self.count(command, result);
        match copying {
            Copying::Double(id, device) => {
                if result.is_err() {
                    self.replacement_failed(device, out);
                }
                let Some(double) = self.replacements.doubles.get_mut(&id) else {
                    return true;
                };
                double.copied = true;
                if let Some(result) = double.served {
                    self.double_done(id);
                    let now = self.now;
                    self.with_engine_do(out, |engine, out| engine.complete(now, id, result, out));
                }
            }
            Copying::Window {
                slot,
                new,
                window,
                is_write,
            } => self.window_answered((slot, new), window, is_write, result, out),
        }
        true
    }

    fn window_answered(
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

    /// Takes down how far the new device is filled.
    fn note_position(&mut self, slot: Slot) {
        let Some(replacement) = self.replacements.running.get(&slot) else {
            return;
        };
        let new = replacement.new;
        let position = replacement.below(self.data_span(new));
        let Some(device) = self.devices.get_mut(&new) else {
            return;
        };
        if let Place::Replacing { below, .. } = &mut device.place {
            *below = position;
        }
        let step = (self.array.used_size.0 / CHECKPOINTS).max(1);
        let recorded = self.replacements.running[&slot].recorded;
        self.want_superblocks |= position.0 >= recorded.0.saturating_add(step);
    }

    /// The old device could not read a window.
    fn window_unreadable(&mut self, slot: Slot, span: Span, error: MemberError, out: &mut Outputs) {
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
            // It is the last one that has some of the data: it stays as it is.
            self.abandon_replacement(slot, out);
            let mut commands = self.replacements.commands.values();
            let is_used = commands.any(|it| matches!(it, Copying::Double(_, to) if *to == new));
            if let Some(device) = self.devices.get_mut(&new) {
                device.place = if is_used { Place::Faulty } else { Place::Spare };
            }
            out.events.push(Event::SyncAborted);
        }
    }

    /// The new device no longer takes part.
    pub(super) fn replacement_failed(&mut self, device: Slot, out: &mut Outputs) {
        let running = self.replacements.running.iter();
        let found = running
            .filter(|(_, it)| it.new == device && it.stage != Stage::Taken)
            .map(|(slot, _)| *slot)
            .next();
        let Some(slot) = found else { return };
        self.abandon_replacement(slot, out);
        self.retire(device);
        out.events.push(Event::MemberFailed(device));
    }

    /// Ends a replacement as it stands.
    fn abandon_replacement(&mut self, slot: Slot, out: &mut Outputs) {
        self.want_superblocks = true;
        let Some(mut replacement) = self.replacements.running.remove(&slot) else {
            return;
        };
        out.commands.append(&mut replacement.held);
    }

    /// A slot's member has failed.
    pub(super) fn replaced_member_failed(&mut self, slot: Slot, out: &mut Outputs) {
        match self.replacements.running.get_mut(&slot) {
            None => {}
            Some(replacement) if replacement.stage == Stage::Copying => {
                replacement.stage = Stage::Orphaned;
            }
            Some(_) => self.abandon_replacement(slot, out),
        }
    }

    /// The superblocks name the new device: the old one is done with.
    pub(super) fn replacement_recorded(&mut self, slot: Slot) {
        let running = self.replacements.running.get(&slot);
        if running.is_some_and(|it| it.stage == Stage::Taken) {
            self.replacements.running.remove(&slot);
        }
    }

    /// Copies what can be copied now; true if something has changed.
    pub(super) fn go_on_replacing(&mut self, out: &mut Outputs) -> bool {
        let slots: Vec<Slot> = self.replacements.running.keys().copied().collect();
        let mut progress = false;
        for slot in slots {
            progress |= self.take_orphan(slot, out) || self.copy_on(slot, out);
        }
        progress
    }

    fn copy_on(&mut self, slot: Slot, out: &mut Outputs) -> bool {
        let may_go = self.mode == Mode::ReadWrite && self.started;
        let is_syncing = self.engine.sync_status().is_some();
        let Some(replacement) = self.replacements.running.get_mut(&slot) else {
            return false;
        };
        let is_free = replacement.stage == Stage::Copying && replacement.window.is_none();
        if !is_free || !may_go || is_syncing || replacement.due > self.now {
            return false;
        }
        let first = replacement.log.iter().next();
        let Some(rest) = first.or_else(|| replacement.data.iter().next()) else {
            return self.take_place(slot);
        };
        if let Some(unreadable) = &mut replacement.unreadable
            && !std::mem::replace(&mut unreadable.was_checked, true)
        {
            let start = unreadable.start;
            return self.correct(slot, start, out);
        }
        let careful = replacement.careful_below > rest.start || replacement.unreadable.is_some();
        let length = if careful { BLOCK } else { WINDOW };
        let span = Span {
            start: rest.start,
            end: rest.end.min(Sectors(rest.start.0 + length)),
        };
        if replacement
            .writes
            .values()
            .any(|write| overlap(write, &span))
        {
            return false;
        }
        let scratch = self.new_scratch();
        let count = Sectors(span.end.0 - span.start.0);
        out.steps.push(ComputeStep::Allocate { scratch, count });
        let window = Window { span, scratch };
        if let Some(replacement) = self.replacements.running.get_mut(&slot) {
            replacement.window = Some(window);
        }
        self.send_window(slot, window, false, out);
        true
    }

    fn send_window(&mut self, slot: Slot, window: Window, is_write: bool, out: &mut Outputs) {
        let Some(replacement) = self.replacements.running.get(&slot) else {
            return;
        };
        let (old, new) = (replacement.old, replacement.new);
        let (device, operation) = match is_write {
            true => (new, Operation::Write),
            false => (old, Operation::Read),
        };
        let id = CommandId(self.next_command);
        self.next_command += 1;
        let count = Sectors(window.span.end.0 - window.span.start.0);
        let copying = Copying::Window {
            slot,
            new,
            window: window.scratch,
            is_write,
        };
        self.replacements.commands.insert(id, copying);
        self.data_commands.insert(id, (device, operation, count));
        out.commands.push(MemberCommand {
            id,
            slot: device,
            operation,
            start: window.span.start,
            count,
            force_unit_access: false,
            purpose: Purpose::Sync,
            buffer: BufferId::Scratch {
                scratch: window.scratch,
                skip: Sectors::ZERO,
            },
        });
    }

    /// Has the engine look at a block that the old device cannot read, and write
    /// it anew.
    fn correct(&mut self, slot: Slot, start: Sectors, out: &mut Outputs) -> bool {
        let Some(replacement) = self.replacements.running.get_mut(&slot) else {
            return false;
        };
        replacement.due = self.now + PATIENCE;
        let old = replacement.old;
        let data = self.data_span(old);
        let on_member = start - data.start;
        let shape = assembly::shape_of(&self.array, self.level, self.layout);
        let position = match (&self.stripes, CopyMap::new(&shape)) {
            (None, Ok(map)) => match map.inverse(slot, on_member).content {
                Some(content) => content.start,
                None => {
                    // Nothing lies there.
                    let end = data.end.min(Sectors(start.0 + BLOCK));
                    if let Some(replacement) = self.replacements.running.get_mut(&slot) {
                        replacement.data.remove(Span { start, end });
                        replacement.unreadable = None;
                    }
                    return true;
                }
            },
            _ => on_member,
        };
        let end = Sectors(position.0 + BLOCK).min(self.sync_end());
        let request = SyncRequest {
            action: SyncAction::Check,
            ranges: Some(vec![Span {
                start: position,
                end,
            }]),
        };
        let now = self.now;
        self.sync = Some(SyncAction::Check);
        self.replacements.is_correcting = true;
        let started = self.with_engine_do(out, |engine, out| engine.start_sync(now, request, out));
        if started.is_err() || self.engine.sync_status().is_none() {
            self.sync = None;
            self.replacements.is_correcting = false;
        }
        true
    }

    /// Everything is copied: the new device takes the slot.
    fn take_place(&mut self, slot: Slot) -> bool {
        let Some(replacement) = self.replacements.running.get_mut(&slot) else {
            return false;
        };
        // Doubles in flight have the old device's answer for the engine.
        if !replacement.is_drained() || !self.unrecorded.is_empty() || self.pass.is_some() {
            return false;
        }
        // First that it has everything, then that it is the member: a crash
        // between two superblocks of the second pass must not cost a member.
        if replacement.recorded < self.array.used_size {
            return !std::mem::replace(&mut self.want_superblocks, true);
        }
        replacement.stage = Stage::Taken;
        let (old, new) = (replacement.old, replacement.new);
        self.served[slot.index()] = Some(new);
        if let Some(device) = self.devices.get_mut(&new) {
            device.place = Place::InSync(slot);
        }
        self.retire(old);
        self.want_superblocks = true;
        true
    }

    /// The old device has failed, and the superblocks know: the new one takes
    /// its slot and is filled from the others.
    fn take_orphan(&mut self, slot: Slot, out: &mut Outputs) -> bool {
        if !self.recorded.contains(&slot) {
            return false;
        }
        let Some(replacement) = self.replacements.running.get(&slot) else {
            return false;
        };
        if replacement.stage != Stage::Orphaned || !replacement.is_drained() {
            return false;
        }
        if self.mode != Mode::ReadWrite {
            // The next assembly finds it as it is.
            self.replacements.running.remove(&slot);
            return true;
        }
        let new = replacement.new;
        let mut below = replacement.below(self.data_span(new));
        self.replacements.running.remove(&slot);
        if let Some(device) = self.devices.get_mut(&new) {
            let bad = device.bad_spans();
            below = bad.first().map_or(below, |bad| below.min(bad.start));
            // All of it is filled now.
            device.bad_blocks_changed |= !device.bad_blocks.is_empty();
            device.bad_blocks.clear();
            device.place = Place::Spare;
        }
        self.seat(new, slot, Admission::From(below), true, out);
        true
    }

    /// Failures that the superblocks know, and for whose slots nothing more has
    /// to be done before the engine is told.
    pub(super) fn tell_what_is_recorded(&mut self, out: &mut Outputs) -> bool {
        let ready: Vec<Slot> = self
            .recorded
            .iter()
            .copied()
            .filter(|slot| !self.replacements.has(*slot))
            .collect();
        for slot in &ready {
            self.recorded.remove(slot);
            self.tell_recorded(*slot, out);
        }
        !ready.is_empty()
    }

    /// A device's bad blocks are its twin's too.
    pub(super) fn set_twin_bad(&mut self, handle: Slot, start: Sectors, count: Sectors, bad: bool) {
        let Some(replacement) = self.replacements.of_device(handle) else {
            return;
        };
        let twin = match replacement.old == handle {
            true => replacement.new,
            false => replacement.old,
        };
        let Some(device) = self.devices.get_mut(&twin) else {
            return;
        };
        device.set_bad(start, count, bad);
        if bad {
            let start = device.own.data_offset + start;
            let end = start + count;
            replacement.data.remove(Span { start, end });
        }
    }

    /// When the next window is due.
    pub(super) fn next_window_at(&self) -> Option<Nanos> {
        let waits = self.mode == Mode::ReadWrite && self.engine.sync_status().is_none();
        let running = self.replacements.running.values();
        let due = running
            .filter(|it| it.stage == Stage::Copying && it.window.is_none() && it.due > self.now)
            .map(|it| it.due);
        due.min().filter(|_| waits)
    }

    /// The first replacement, and how far it is: sectors copied, and all.
    pub(super) fn replacement_progress(&self) -> Option<(Sectors, Sectors)> {
        let (_, replacement) = self.replacements.running.first_key_value()?;
        let below = replacement.below(self.data_span(replacement.new));
        Some((below, self.array.used_size))
    }
}
