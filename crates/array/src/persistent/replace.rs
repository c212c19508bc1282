//! The replacement of a member while it serves (mdadm's `--replace`).
//!
//! The engine knows nothing of it: it goes on with the old device, and this layer sends every
//! write, discard and flush of the engine to the new device as well, the records of the write log
//! included; nothing is copied before the commands that were in flight when it began have ended. An
//! answer goes to the engine when both have answered. Meanwhile the rest is copied in windows,
//! upwards: first the write log's records, then the data. A window is copied when no write of the
//! engine is in flight over it, and writes that come while it is copied are sent when it is done;
//! so, below the position, the new device has at any moment the content of the old one. Syncs go
//! first; apart from that the copying runs at the syncs' speeds.
//!
//! On the members the new device has the same slot as the old one and the bit `REPLACEMENT`, with
//! the sector below which it is filled as its recovery offset, as md does it. A crash costs the
//! part that was copied since the last superblock and the writes of the time: the position goes
//! back to the first dirty chunk.
//!
//! *The change of place.* When all is copied and the superblocks say so, the new device is flushed:
//! it may have died since it was last written to, and the old one is not given up for a device that
//! no longer answers. Then it takes the slot: the engine's commands go to it, and the old device is
//! the one that gets a copy of the writes, until the superblocks (for which the members are
//! flushed) call the old one failed. So whichever of the two a crash leaves in the slot has every
//! write. A read that was sent to the old device before, and that fails after, is sent to the new
//! one: the engine, which knows slots alone, would count the failure against that one.
//!
//! *The old one cannot be read.* Ranges in its bad-block log are not copied, and count as bad on
//! the new one until, when all else is copied, a repair of those ranges makes the engine rewrite
//! them from the other members, on both devices; md fills a replacement from the others there, too
//! (Linux drivers/md/raid1.c, `raid1_sync_request`; raid5.c, `handle_stripe`). Ranges that no other
//! member has stay bad on the new one. A range that turns out to be unreadable is searched block by
//! block; a check of each unreadable block makes the engine rewrite it from the other members. If
//! it still cannot be read, or the device is gone, the old one fails.
//!
//! *The old one fails.* The new one takes its slot at once and is recovered from the other members
//! from its position on. That happens before the engine may write without the old one, and after
//! all writes to the new one have ended, so that it has missed none.
//!
//! *The new one fails*: the old one has everything, and goes on. The engine gets its answers for
//! writes that the new one missed when the superblocks leave it out: if they call it filled, a
//! power cut that the old one does not survive would give it the slot, and a resync might read it
//! first. *The old one fails after the change of place*: the same, until they name the new one.

mod doubles;
mod ending;
mod windows;

use super::PersistentArray;
use super::device::Place;
use super::error::VerbError;
use crate::mutation::{self, Mutation};
use crate::request::{CommandId, MemberCommand, MemberError, Outputs, ScratchId, Slot};
use raidlab_units::{Nanos, Sectors, Span, SpanSet};
use std::collections::{BTreeMap, BTreeSet};

/// Sectors copied at a time: 128 KiB, md's window of a sync.
const WINDOW: u64 = 256;
/// Sectors copied at a time in an unreadable range.
const BLOCK: u64 = 8;
/// The part of the whole after which the position is recorded, one sixteenth as in md.
const CHECKPOINTS: u64 = 16;
/// The number of attempts at a block, with a check before each further attempt.
const ATTEMPTS: u32 = 4;
/// The time that the engine gets to rewrite the block after the check.
const PATIENCE: Nanos = Nanos::from_millis(500);

/// The progress of the replacement of a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Copying,
    /// The old device has failed; the new one is about to take its slot.
    Orphaned,
    /// The new device has the slot; the superblocks do not record that yet.
    Taken,
}

/// The flush of the new device before it takes the slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastFlush {
    /// The flush has not been sent, or data were copied since.
    Due,
    UnderWay,
    Answered,
}

/// A member that is being replaced, and the device that will take its slot.
#[derive(Debug)]
pub(super) struct Replacement {
    stage: Stage,
    last_flush: LastFlush,
    old: Slot,
    new: Slot,
    /// The ranges not copied yet of the write log's records, and of the data, in sectors
    /// of the device.
    log: SpanSet,
    data: SpanSet,
    window: Option<Window>,
    /// The engine's commands to the old device that were in flight when the replacement began: data
    /// that are copied meanwhile may lack these writes.
    earlier: BTreeSet<CommandId>,
    /// The engine's writes that are sent to both devices.
    writes: BTreeMap<CommandId, Span>,
    /// The engine's writes that wait for the window.
    held: Vec<MemberCommand>,
    /// The earliest time at which the next window begins.
    due: Nanos,
    /// The sector below which data are copied block by block.
    careful_below: Sectors,
    /// A block that cannot be read.
    unreadable: Option<Unreadable>,
    /// The number of repairs that were begun for the old device's bad-block log.
    repairs: u32,
    /// Whether the copied data are void: the old device has failed while the members were
    /// not in sync.
    is_void: bool,
    /// The recorded sector of the data area below which the new device is filled.
    recorded: Sectors,
    /// The count of the engine's commands when the last window was copied.
    commands_seen: u64,
}

/// A block that the old device cannot read.
#[derive(Debug, Clone, Copy)]
struct Unreadable {
    start: Sectors,
    attempts: u32,
    /// Whether a check has passed there since the last attempt.
    was_checked: bool,
}

/// A range that is being copied.
#[derive(Debug, Clone, Copy)]
struct Window {
    span: Span,
    scratch: ScratchId,
}

/// A command of the engine that is sent to two devices.
#[derive(Debug)]
pub(super) struct Double {
    slot: Slot,
    is_flush: bool,
    /// The answer of the device that serves the slot.
    served: Option<Result<(), MemberError>>,
    /// Whether the engine has had that answer already.
    is_told: bool,
    copied: bool,
}

/// The state of a slot one of whose two devices has missed a write while the superblocks may give
/// it the slot.
#[derive(Debug, Default)]
struct Missed {
    /// Whether the superblocks of the pass under way leave that device out.
    is_named: bool,
    /// Answers to the engine's commands that are withheld until then.
    answers: Vec<(CommandId, Result<(), MemberError>)>,
}

/// The purpose of a command that the replacement sends by itself.
#[derive(Debug)]
pub(super) enum Copying {
    /// The second device's share of the engine's command.
    Double(CommandId, Slot),
    /// The read or the write of a window that is being copied.
    Window {
        slot: Slot,
        new: Slot,
        window: ScratchId,
        is_write: bool,
    },
    /// The flush of a slot's new device before it takes the slot.
    LastFlush { slot: Slot, new: Slot },
}

/// All replacements that are under way, and their commands.
#[derive(Debug)]
pub(super) struct Replacements {
    running: BTreeMap<Slot, Replacement>,
    doubles: BTreeMap<CommandId, Double>,
    commands: BTreeMap<CommandId, Copying>,
    /// The engine's reads of slots whose members are being replaced, with the device that each
    /// was sent to.
    reads: BTreeMap<CommandId, (Slot, MemberCommand)>,
    missed: BTreeMap<Slot, Missed>,
    /// The speeds in KiB/s: while other requests use the array, and at most.
    speeds: (u64, u64),
    /// The number of commands that the engine has sent.
    engine_commands: u64,
    /// Whether a check runs that makes the engine rewrite a block.
    pub(super) is_correcting: bool,
}

impl Default for Replacements {
    fn default() -> Self {
        Self {
            running: BTreeMap::new(),
            doubles: BTreeMap::new(),
            commands: BTreeMap::new(),
            reads: BTreeMap::new(),
            missed: BTreeMap::new(),
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

    /// Returns the number of answers that are withheld from the engine.
    pub(super) fn held_answers(&self) -> usize {
        self.missed
            .values()
            .map(|missed| missed.answers.len())
            .sum()
    }

    /// Whether a slot's member is being replaced.
    pub(super) fn has(&self, slot: Slot) -> bool {
        self.running.contains_key(&slot)
    }

    /// Whether a device is being filled as a replacement.
    pub(super) fn fills(&self, device: Slot) -> bool {
        self.running.values().any(|it| it.new == device)
    }

    /// Whether no member is being replaced.
    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty()
    }

    /// Returns the replacement that a device is part of.
    fn of_device(&mut self, device: Slot) -> Option<&mut Replacement> {
        let mut running = self.running.values_mut();
        running.find(|it| it.old == device || it.new == device)
    }

    /// Whether nothing that goes to both devices of a slot is in flight or waits. A flush counts as
    /// well as a write: a later answer would be counted against the wrong device.
    fn is_drained(&self, slot: Slot) -> bool {
        let replacement = self.running.get(&slot);
        replacement.is_some_and(|it| it.window.is_none() && it.held.is_empty())
            && (self.doubles.values().all(|double| double.slot != slot)
                || mutation::is(Mutation::ReplacementUndrained))
    }

    /// Whether nothing of this layer is in flight.
    pub(super) fn is_idle(&self) -> bool {
        self.commands.is_empty() && self.running.values().all(|it| it.held.is_empty())
    }

    /// Records how far a new device is filled, as its superblock says.
    pub(super) fn set_recorded(&mut self, device: Slot, below: Sectors) {
        let mut running = self.running.values_mut();
        if let Some(replacement) = running.find(|it| it.new == device) {
            replacement.recorded = below;
        }
    }

    /// Returns the slots whose new devices the next superblocks name.
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
    /// Returns the device that gets copies of the writes to the slot's device.
    const fn other(&self) -> Slot {
        match self.stage {
            Stage::Copying | Stage::Orphaned => self.new,
            Stage::Taken => self.old,
        }
    }

    /// Returns the sector of the data area below which the new device is filled.
    fn below(&self, data: Span) -> Sectors {
        if self.is_void {
            return Sectors::ZERO;
        }
        // Without the log's records it cannot be relied on as a participant.
        if !self.log.is_empty() && !mutation::is(Mutation::ReplacementLogUncopied) {
            return Sectors::ZERO;
        }
        let first = self.data.iter().next();
        first.map_or(data.end, |span| span.start) - data.start
    }
}

const fn span_of(command: &MemberCommand) -> Span {
    Span::between(command.start, Sectors(command.start.0 + command.count.0))
}

impl PersistentArray {
    /// mdadm's `--replace`, and `--with`: a spare is filled with the member's content while that
    /// goes on serving; then it takes the slot, and the member counts as failed. Without a spare
    /// named, the first that fits is taken.
    ///
    /// # Errors
    /// When the member is not in sync or is being replaced already, or there is no spare that fits.
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
            return Err(VerbError::BeingReplaced(handle));
        }
        let offset = self.device(handle)?.own.data_offset;
        let fits = |new: &Slot| self.devices[new].own.data_offset == offset;
        let mut spares = self.spares().into_iter().filter(fits);
        let new = spares.find(|new| with.is_none_or(|with| with == *new));
        let new = new.ok_or_else(|| with.map_or(VerbError::NoSpare, VerbError::NotThatSpare))?;
        self.begin_replacement(slot, handle, new, Sectors::ZERO);
        self.pump(out);
        Ok(())
    }

    /// Continues replacements that an earlier run has begun; a device that cannot go on is
    /// a spare again.
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
        let rest = Span::between(span.start + below.min(self.array.used_size), span.end);
        let mut data: SpanSet = [rest].into_iter().collect();
        let (bad, named) = {
            let old = &self.devices[&old];
            (old.bad_blocks.clone(), old.named_bad.clone())
        };
        for entry in &bad {
            data.remove(entry.span());
        }
        let Some(device) = self.devices.get_mut(&new) else {
            return;
        };
        // Its own former content is overwritten.
        device.bad_blocks_changed |= device.bad_blocks != bad;
        (device.bad_blocks, device.named_bad) = (bad, named);
        let recorded = match device.place {
            Place::Replacing { .. } => device.own.recovery_offset,
            _ => Sectors::ZERO,
        };
        device.place = Place::Replacing {
            slot,
            below: Sectors::ZERO,
        };
        let in_flight = self.commands.data.iter();
        let earlier = in_flight
            .filter(|(_, to)| **to == old)
            .map(|(id, _)| *id)
            .filter(|_| !mutation::is(Mutation::ReplacementMissesEarlier));
        let earlier = earlier.collect();
        let replacement = Replacement {
            stage: Stage::Copying,
            last_flush: LastFlush::Due,
            old,
            new,
            log: self.ring.into_iter().collect(),
            data,
            window: None,
            is_void: false,
            earlier,
            writes: BTreeMap::new(),
            held: Vec::new(),
            due: self.now,
            careful_below: Sectors::ZERO,
            unreadable: None,
            repairs: 0,
            recorded,
            commands_seen: self.replacements.engine_commands,
        };
        self.replacements.running.insert(slot, replacement);
        if let Some(intent) = &mut self.intent {
            intent.want_all();
        }
        self.want_superblocks = true;
        self.note_position(slot);
    }

    /// Returns the part of a device that holds the array's data.
    fn data_span(&self, handle: Slot) -> Span {
        let start = self.devices[&handle].own.data_offset;
        Span::between(start, start + self.array.used_size)
    }

    /// Tells the engine of failures that the superblocks record, where no replacement in the slot
    /// has to act first.
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

    /// Applies a change of a device's bad blocks to the other device of its replacement, too.
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
        let start = device.own.data_offset + start;
        let end = start + count;
        let span = Span { start, end };
        if bad {
            replacement.data.remove(span);
        } else if replacement.stage == Stage::Copying {
            // The write may have been sent before the replacement began.
            replacement.data.insert(span);
        }
    }

    /// Returns the progress of the first replacement: sectors copied, and all.
    pub(super) fn replacement_progress(&self) -> Option<(Sectors, Sectors)> {
        let (_, replacement) = self.replacements.running.first_key_value()?;
        let below = replacement.below(self.data_span(replacement.new));
        Some((below, self.array.used_size))
    }
}
