//! Members that leave service, bad blocks, and writes that wait until a failure
//! is recorded.

use super::{Array, Command, Piece};
use crate::mutation::{self, Mutation};
use crate::request::{Event, Outputs, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Span};

impl Array {
    /// Whether some data has no other member in sync.
    pub(super) fn is_needed(&self, slot: Slot) -> bool {
        let in_sync = self.members.in_sync();
        let mut sets = self.map.copy_sets().iter();
        sets.any(|set| (*set & in_sync) == SlotSet::only(slot))
    }

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
            self.fail_member(slot, out);
        }
        false
    }

    /// Whether the member that the command was sent to is still there.
    pub(super) fn is_in_service(&self, command: &Command) -> bool {
        self.members.epoch(command.slot) == command.epoch
    }

    /// Takes a member out of service.
    pub(super) fn fail_member(&mut self, slot: Slot, out: &mut Outputs) {
        self.members.set_faulty(slot);
        out.events.push(Event::MemberFailed(slot));
        if self.record_failures && !mutation::is(Mutation::FailureNotAwaited) {
            self.unrecorded = self.unrecorded.with(slot);
        }
        self.retarget_sync(slot);
    }

    /// The members' superblocks know that this one has failed: what waited for
    /// that goes on.
    pub fn failure_recorded(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) {
        self.now = now;
        self.unrecorded = self.unrecorded.without(slot);
        for piece in std::mem::take(&mut self.unanswered) {
            self.answer(piece, out);
        }
        self.release_gated(out);
        self.pump_sync(out);
    }

    /// Whether a piece's answer must wait: a member that did not take it might
    /// come back as current.
    pub(super) fn must_wait_for_record(&self, piece: &Piece) -> bool {
        !((piece.asked - piece.succeeded) & self.unrecorded).is_empty()
    }

    /// A range of a member's data area has no right bytes.
    pub(super) fn add_bad_block(&mut self, slot: Slot, range: Span, out: &mut Outputs) {
        if mutation::is(Mutation::BadBlockForgotten) {
            return;
        }
        self.members.set_bad(slot, range);
        out.events.push(Event::BadBlocksFound {
            slot,
            start: range.start,
            count: range.count(),
        });
    }

    /// A write reached the medium.
    pub(super) fn clear_bad_blocks(&mut self, command: &Command, out: &mut Outputs) {
        let range = Span {
            start: command.address,
            end: command.address + command.count,
        };
        for span in self.members.clear_bad(command.slot, range) {
            out.events.push(Event::BadBlocksCleared {
                slot: command.slot,
                start: span.start,
                count: span.end - span.start,
            });
        }
    }
}
