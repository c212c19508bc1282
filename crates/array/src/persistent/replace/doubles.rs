//! The doubling of the engine's writes: they go to both devices, and are answered when both have.
//!
//! When one of the two fails, the engine gets no answer for the slot until superblocks are written
//! that leave that device out: acknowledged writes would be missing on it, records of the write log
//! that it needs might be freed, and after a power cut it might hold the slot.
//!
//! One answer waits for nothing: a flush that failed on the device that serves the slot. What it was
//! for may be lost there, and until the engine knows, it takes what that device reads for good.

use super::{Copying, Double, Missed, Stage, span_of};
use crate::mutation::{self, Mutation};
use crate::persistent::PersistentArray;
use crate::persistent::device::Place;
use crate::request::{CommandId, MemberCommand, MemberError, Operation, Outputs, Slot};
use raidlab_units::Span;
use std::collections::BTreeMap;

impl PersistentArray {
    /// Sends a command of the engine, to both devices where a member is being replaced.
    pub(in crate::persistent) fn send_engine_command(
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
            self.replacements.reads.insert(command.id, (slot, command));
            out.commands.push(command);
            return;
        }
        if mutation::is(Mutation::ReplacementMissesWrites) {
            out.commands.push(command);
            return;
        }
        let span = span_of(&command);
        if let Some(window) = &replacement.window
            && window.span.overlaps(&span)
            && !mutation::is(Mutation::ReplacementWindowOpen)
        {
            replacement.held.push(command);
            return;
        }
        self.send_to_both(slot, command, out);
    }

    pub(super) fn send_to_both(&mut self, slot: Slot, command: MemberCommand, out: &mut Outputs) {
        out.commands.push(command);
        let Some(replacement) = self.replacements.running.get_mut(&slot) else {
            return;
        };
        if command.operation != Operation::Flush {
            let span = span_of(&command);
            replacement.writes.insert(command.id, span);
        }
        let other = replacement.other();
        let copy = MemberCommand {
            id: self.commands.new_id(),
            slot: other,
            ..command
        };
        let double = Double {
            slot,
            is_flush: command.operation == Operation::Flush,
            served: None,
            is_told: false,
            copied: false,
        };
        self.replacements.doubles.insert(command.id, double);
        let copying = Copying::Double(command.id, copy.slot);
        self.replacements.commands.insert(copy.id, copying);
        self.commands.data.insert(copy.id, copy.slot);
        out.commands.push(copy);
    }

    /// Handles the answer of the device that serves a slot. The engine gets it when the other
    /// device has answered, too, if the command went to both.
    pub(in crate::persistent) fn engine_answered(
        &mut self,
        command: CommandId,
        handle: Option<Slot>,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        let read = self.replacements.reads.remove(&command);
        if let (Some((slot, read)), Err(_)) = (read, result)
            && self.ask_successor(slot, read, out)
        {
            return;
        }
        match self.replacements.doubles.get_mut(&command) {
            Some(double) if !double.copied => {
                double.served = Some(result);
                double.is_told = double.is_flush && result.is_err();
                if double.is_told {
                    let now = self.now;
                    self.with_engine_do(out, |engine, out| {
                        engine.complete(now, command, result, out)
                    });
                }
            }
            _ => {
                let served = self
                    .served
                    .iter()
                    .position(|it| it.is_some() && *it == handle);
                let slot = served.and_then(|at| u16::try_from(at).ok()).map(Slot);
                self.tell_engine(command, slot, result, out);
            }
        }
    }

    /// Sends a read that has failed to the device that has taken the slot since; returns whether
    /// there is one.
    fn ask_successor(&mut self, slot: Slot, read: MemberCommand, out: &mut Outputs) -> bool {
        let new = self.handle(slot);
        let device = self.devices.get(&new);
        let serves = device.is_some_and(|device| device.place == Place::InSync(slot));
        if new == read.slot || !serves || mutation::is(Mutation::SuccessorBlamed) {
            return false;
        }
        let read = MemberCommand { slot: new, ..read };
        self.commands.data.insert(read.id, new);
        self.send_engine_command(slot, read, out);
        true
    }

    /// Gives the engine an answer, at once or when superblocks leave out the device that has missed
    /// a write in this slot.
    fn tell_engine(
        &mut self,
        command: CommandId,
        slot: Option<Slot>,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        let double = self.replacements.doubles.remove(&command);
        let slot = double.map_or(slot, |double| Some(double.slot));
        let replacement = slot.and_then(|slot| self.replacements.running.get_mut(&slot));
        let span = replacement.and_then(|replacement| replacement.writes.remove(&command));
        let missed = slot.and_then(|slot| self.replacements.missed.get_mut(&slot));
        match missed {
            Some(missed) => missed.answers.push((command, result)),
            None => {
                let now = self.now;
                self.with_engine_do(out, |engine, out| {
                    engine.complete(now, command, result, out)
                });
            }
        }
        if let (Err(_), Some(slot), Some(span)) = (result, slot, span) {
            self.copy_again(slot, span);
        }
    }

    /// Copies a range again after a failed write on a device that goes on serving, as it is the
    /// last one: the new device may have the write all the same, and would show it once it
    /// takes the slot.
    fn copy_again(&mut self, slot: Slot, span: Span) {
        let Some(replacement) = self.replacements.running.get(&slot) else {
            return;
        };
        if replacement.stage != Stage::Copying || mutation::is(Mutation::FailedWriteUncopied) {
            return;
        }
        let is_data = self.data_span(replacement.new).overlaps(&span);
        if let Some(replacement) = self.replacements.running.get_mut(&slot) {
            let uncopied = match is_data {
                true => &mut replacement.data,
                false => &mut replacement.log,
            };
            uncopied.insert(span);
            self.want_superblocks = true;
        }
        self.note_position(slot);
    }

    /// Handles a failed command of the device that gets copies.
    fn copy_missed(&mut self, command: CommandId, device: Slot, out: &mut Outputs) {
        let double = self.replacements.doubles.get(&command);
        let Some(slot) = double.map(|double| double.slot) else {
            return;
        };
        let running = self.replacements.running.get(&slot);
        if running.is_some_and(|it| it.stage == Stage::Taken && it.old == device) {
            self.hold_answers(slot);
        }
        self.replacement_failed(device, out);
    }

    /// Withholds answers from now on, as one of the two devices of a slot misses writes, and by the
    /// superblocks it may be fit to hold the slot: the new one when it is filled, the old one until
    /// they name the new one.
    pub(super) fn hold_answers(&mut self, slot: Slot) {
        if self.is_recorded() && self.may_write() && !mutation::is(Mutation::CopyMissUnrecorded) {
            self.want_superblocks = true;
            self.replacements.missed.entry(slot).or_default().is_named = false;
        }
    }

    /// Notes that superblocks are about to be written that leave out each device that has missed a
    /// write so far.
    pub(in crate::persistent) fn name_missed(&mut self) {
        for missed in self.replacements.missed.values_mut() {
            missed.is_named = true;
        }
    }

    /// Gives the engine the withheld answers, where the superblocks are written, or where nothing
    /// is written any more (`all`).
    pub(in crate::persistent) fn release_answers(&mut self, all: bool, out: &mut Outputs) {
        let missed = std::mem::take(&mut self.replacements.missed);
        let (told, held) = missed.into_iter().partition(|(_, it)| all || it.is_named);
        self.replacements.missed = held;
        let told: BTreeMap<Slot, Missed> = told;
        for (command, result) in told.into_values().flat_map(|missed| missed.answers) {
            let now = self.now;
            self.with_engine_do(out, |engine, out| {
                engine.complete(now, command, result, out)
            });
        }
    }

    /// Handles an answer to a command of this layer; returns whether it was one.
    pub(in crate::persistent) fn copying_answered(
        &mut self,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) -> bool {
        let Some(copying) = self.replacements.commands.remove(&command) else {
            return false;
        };
        self.commands.data.remove(&command);
        match copying {
            Copying::Double(id, device) => {
                if result.is_err() {
                    self.copy_missed(id, device, out);
                }
                let Some(double) = self.replacements.doubles.get_mut(&id) else {
                    return true;
                };
                double.copied = true;
                if double.is_told {
                    self.replacements.doubles.remove(&id);
                } else if let Some(result) = double.served {
                    self.tell_engine(id, None, result, out);
                }
            }
            Copying::Window {
                slot,
                new,
                window,
                is_write,
            } => self.window_answered((slot, new), window, is_write, result, out),
            Copying::LastFlush { slot, new } => self.last_flush_answered((slot, new), result, out),
        }
        true
    }
}
