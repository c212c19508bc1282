//! Members that leave service, bad blocks, and writes that wait until a failure
//! is recorded.

use super::{Array, Command, Piece};
use crate::member::MemberVerbs;
use crate::mutation::{self, Mutation};
use crate::request::Outputs;

impl Array {
    /// A member failed a command. It leaves service if the error says so,
    /// unless it is needed, or has left since the command was sent: its slot
    /// may hold another member by now. True if it stays although the error says
    /// that it should go.
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

    /// Whether the member that the command was sent to is still there.
    pub(super) fn is_in_service(&self, command: &Command) -> bool {
        self.members.epoch(command.slot) == command.epoch
    }

    /// Whether a piece's answer must wait: a member that did not take it might
    /// come back as current.
    pub(super) fn must_wait_for_record(&self, piece: &Piece) -> bool {
        !((piece.asked - piece.succeeded) & self.members.unrecorded()).is_empty()
    }

    /// A member has what a read may have failed to find on it.
    pub(super) fn mended(&mut self) {
        self.mends = self.mends.wrapping_add(1);
    }

    /// Takes the range of a write that succeeded out of the member's bad blocks.
    pub(super) fn clear_bad_blocks(&mut self, command: &Command, out: &mut Outputs) {
        if self.corrections.wants(command.slot, command.range()) {
            self.mended();
        }
        self.members
            .bad_range_written(command.slot, command.on_member(), out);
    }
}
