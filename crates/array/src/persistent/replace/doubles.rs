//! What the engine writes goes to both devices, and is answered when both have.

use super::{Copying, Double, span_of};
use crate::mutation::{self, Mutation};
use crate::persistent::PersistentArray;
use crate::request::{CommandId, MemberCommand, MemberError, Operation, Outputs, Slot};

impl PersistentArray {
    /// Sends a command of the engine, to both devices where a member is being
    /// replaced.
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
        if command.operation == Operation::Read || mutation::is(Mutation::ReplacementMissesWrites) {
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
    pub(in crate::persistent) fn double_answered(
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

    pub(super) fn double_done(&mut self, command: CommandId) {
        let double = self.replacements.doubles.remove(&command);
        let slot = double.map(|double| double.slot);
        let replacement = slot.and_then(|slot| self.replacements.running.get_mut(&slot));
        if let Some(replacement) = replacement {
            replacement.writes.remove(&command);
        }
    }

    /// Whether an answer is to a command of this layer; if so, it is taken.
    pub(in crate::persistent) fn copying_answered(
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
}
