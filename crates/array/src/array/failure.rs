//! Members that leave service, bad blocks, and writes that wait until a failure is recorded.

use super::{Array, Command, Piece};
use crate::member::MemberVerbs;
use crate::mutation::{self, Mutation};
use crate::request::Outputs;

impl Array {
    /// Handles a member's error on a command. The member leaves service if the error demands that,
    /// unless the array needs it, or it has left since the command was sent: its slot may hold
    /// another member by now. Returns true if it stays although the error demands that it leave.
    pub(super) fn member_error(
        &mut self,
        command: &Command,
        fatal: bool,
        out: &mut Outputs,
    ) -> bool {
        let slot = command.slot;
        if !fatal || !self.is_in_service(command) {
            return false;
        }
        if self.is_needed(slot) {
            return true;
        }
        if !mutation::is(Mutation::WriteErrorIgnored) {
            self.lose_member(slot, out);
        }
        false
    }

    /// Whether the member that the command was sent to is still in service.
    pub(super) fn is_in_service(&self, command: &Command) -> bool {
        self.members.epoch(command.slot) == command.epoch
    }

    /// Whether a piece's answer must wait, as a member that did not take it might come back as
    /// a current one.
    pub(super) fn must_wait_for_record(&self, piece: &Piece) -> bool {
        !((piece.asked - piece.succeeded) & self.members.unrecorded()).is_empty()
    }

    /// Records that a member got content that an earlier read may not have found on it.
    pub(super) fn mended(&mut self) {
        self.mends = self.mends.wrapping_add(1);
    }

    /// Removes the range of a write that succeeded from the member's bad blocks.
    pub(super) fn clear_bad_blocks(&mut self, command: &Command, out: &mut Outputs) {
        if self.corrections.wants(command.slot, command.range()) {
            self.mended();
        }
        self.members
            .bad_range_written(command.slot, command.on_member(), out);
    }
}
