//! Writes, discards and flushes of an array of copies.
//!
//! A write is cut into pieces of one range of copies each, and each piece goes to every member in
//! service that has the range; a member under recovery gets it as its rule says. A flush is one
//! piece without sectors, for all members. A piece waits, in this order, for
//!
//! 1. the *gate*: while a failure of one of its members is not recorded, or while a range of it
//!    is being corrected, nothing is sent that could be acknowledged too early; and of pieces that
//!    overlap one is sent at a time, since each member may reorder its commands;
//! 2. the *barrier* of a running sync, whose rules are in `recovery::barrier`.
//!
//! A piece is answered when all its members have answered. It succeeded if, of each set of copies,
//! some member that is in sync took it. A member with an error is failed, unless the array needs
//! it: then it stays, the request fails, and copies that differ from the content that is read from
//! now on are noted as bad (`call_bad`). A failure that happened meanwhile holds the answer back
//! until it is recorded.

use super::{Array, Command, Piece, Role, Shape, payload};
use crate::mutation::{self, Mutation};
use crate::recovery::{RecoveringWrites, SyncKind, WriteTicket};
use crate::request::{BufferId, MemberError, Operation, Outputs, Request, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Sectors, Span};

impl Array {
    pub(super) fn submit_write(&mut self, key: u32, request: &Request, out: &mut Outputs) {
        let end = request.start + request.count;
        let mut start = request.start;
        let mut entered = self.has_entered(request);
        while start < end {
            let limit = start + self.command_limit(request, start);
            let range = Span { start, end: limit };
            let piece = self.add_piece(key, range);
            entered &= self.is_inside_barrier(request, range);
            match entered {
                true => self.write(piece, out),
                false => self.admit(piece, range, out),
            }
            start = limit;
        }
        self.leave(request);
    }

    /// Sends a piece, or makes it wait.
    fn admit(&mut self, piece: u32, range: Span, out: &mut Outputs) {
        if self.is_gated(range) {
            self.gated.push_back(piece);
        } else if range.count() == Sectors::ZERO {
            self.flush(piece, out);
        } else if self.recovery.write_waits(range) && !mutation::is(Mutation::CopyBarrierIgnored) {
            self.recovery
                .barrier_mut()
                .write_begins_waiting(range.start);
            self.waiting.push_back(piece);
        } else {
            self.write(piece, out);
        }
    }

    /// Whether a write has to wait for a correction or an earlier write of the same place, or a
    /// write or flush for a failure to be recorded.
    pub(super) fn is_gated(&self, range: Span) -> bool {
        if range.count() == Sectors::ZERO {
            return !self.members.unrecorded().is_empty();
        }
        if self.is_being_written(range) {
            return true;
        }
        if self.members.unrecorded().is_empty() && !self.corrections.is_busy() {
            return false;
        }
        let slots = self.map.extent(range.start).slots();
        let waits = !(slots & self.members.unrecorded()).is_empty()
            && !mutation::is(Mutation::CopyWrittenUnrecorded);
        waits || self.corrections.hold(range)
    }

    /// Whether a write of some of these sectors is in flight, or waits at the gate already.
    fn is_being_written(&self, range: Span) -> bool {
        let in_flight = self.pieces.iter().filter(|piece| piece.outstanding > 0);
        let gated = self.gated.iter().map(|key| self.pieces.get(*key));
        let mut ranges = in_flight.chain(gated).map(|piece| piece.range);
        self.orders_writes
            && ranges.any(|other| other.overlaps(&range))
            && !mutation::is(Mutation::WritesOverlap)
    }

    /// Sends the pieces that need to wait no longer.
    pub(super) fn release_gated(&mut self, out: &mut Outputs) {
        for piece in std::mem::take(&mut self.gated) {
            let range = self.pieces.get(piece).range;
            self.admit(piece, range, out);
        }
    }

    pub(super) fn submit_flush(&mut self, key: u32, out: &mut Outputs) {
        let nothing = Span::between(Sectors::ZERO, Sectors::ZERO);
        let piece = self.add_piece(key, nothing);
        self.admit(piece, nothing, out);
    }

    fn flush(&mut self, piece: u32, out: &mut Outputs) {
        let range = self.pieces.get(piece).range;
        let mut targets = self.members.in_sync() | self.members.recovering();
        self.pieces.get_mut(piece).asked = targets;
        if mutation::is(Mutation::FlushOneMember) {
            targets = targets.lowest().map_or(targets, SlotSet::only);
        }
        if mutation::is(Mutation::FlushForgotten) {
            let piece = self.pieces.take(piece);
            self.requests.get_mut(piece.request).remaining -= 1;
            self.finish_if_done(piece.request, out);
            return;
        }
        for slot in targets.iter() {
            self.pieces.get_mut(piece).outstanding += 1;
            let shape = Shape {
                operation: Operation::Flush,
                force_unit_access: false,
                buffer: BufferId::None,
            };
            self.issue(slot, Role::Flush { piece }, range, shape, out);
        }
    }

    fn add_piece(&mut self, request: u32, range: Span) -> u32 {
        self.requests.get_mut(request).remaining += 1;
        self.pieces.insert(Piece {
            request,
            range,
            outstanding: 0,
            asked: SlotSet::EMPTY,
            succeeded: SlotSet::EMPTY,
            refused: SlotSet::EMPTY,
            is_answered: false,
            ticket: WriteTicket::Uncounted,
        })
    }

    /// Sends a piece to every member that must have it.
    fn write(&mut self, key: u32, out: &mut Outputs) {
        let Piece { request, range, .. } = *self.pieces.get(key);
        let request = self.requests.get(request).request;
        let targets = self.write_targets(range.start);
        let completed = self.recovery.walk.checkpoint();
        let ticket = self.recovery.barrier_mut().write_started(range, completed);
        let piece = self.pieces.get_mut(key);
        piece.ticket = ticket;
        piece.asked = targets;
        for (number, slot) in targets.iter().enumerate() {
            self.pieces.get_mut(key).outstanding += 1;
            let mut range = range;
            if mutation::is(Mutation::CopyTrimmed)
                && number + 1 == targets.len()
                && range.count() > Sectors(1)
            {
                range.end = Sectors(range.end.0 - 1);
            }
            let buffer = match request.operation {
                Operation::Write => payload(&request, range.start),
                _ => BufferId::None,
            };
            let shape = Shape {
                operation: request.operation,
                force_unit_access: request.force_unit_access
                    && !mutation::is(Mutation::ForceUnitAccessDropped),
                buffer,
            };
            self.issue(slot, Role::Write { piece: key }, range, shape, out);
        }
    }

    /// Returns the members in sync, and those under recovery that get this write.
    fn write_targets(&self, start: Sectors) -> SlotSet {
        let slots = self.map.extent(start).slots();
        let mut recovering = self.members.recovering() & slots;
        if mutation::is(Mutation::CopyWriteSkipsRecovering) {
            recovering = SlotSet::EMPTY;
        }
        let below_position = RecoveringWrites::BelowPosition;
        if self.recovery.config().recovering_writes == below_position {
            recovering = recovering
                .iter()
                .filter(|slot| self.is_current_at(*slot, start))
                .collect();
        }
        (self.members.in_sync() & slots) | recovering
    }

    /// Whether a member under recovery would become stale without a write that begins here.
    fn is_current_at(&self, slot: Slot, start: Sectors) -> bool {
        let unfilled = self.members.unfilled(slot);
        let mut current_below = unfilled.from;
        if self.recovery.walk.kind() == Some(SyncKind::Recovery)
            && self.recovery.walk.targets().contains(slot)
        {
            current_below = current_below.max(self.recovery.walk.next());
        }
        unfilled.ranges.is_some() || self.address(slot, start) < current_below
    }

    pub(super) fn complete_piece(
        &mut self,
        command: &Command,
        key: u32,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        match result {
            Ok(()) => self.piece_succeeded(command, key, out),
            Err(_) => self.piece_failed(command, key, out),
        }
        let piece = self.pieces.get_mut(key);
        piece.outstanding -= 1;
        if mutation::is(Mutation::AcknowledgedByFirst) {
            let early = *piece;
            piece.is_answered = true;
            self.answer(early, out);
        }
        let piece = self.pieces.get_mut(key);
        if piece.outstanding > 0 {
            return;
        }
        let piece = self.pieces.take(key);
        if matches!(command.role, Role::Write { .. }) {
            let barrier = self.recovery.barrier_mut();
            barrier.write_finished(piece.range.start, piece.ticket);
        }
        self.call_bad(&piece, out);
        self.answer(piece, out);
        if !self.gated.is_empty() {
            self.release_gated(out);
        }
        self.pump_corrections(out);
        self.pump_sync(out);
    }

    fn piece_succeeded(&mut self, command: &Command, key: u32, out: &mut Outputs) {
        let piece = self.pieces.get_mut(key);
        piece.succeeded = piece.succeeded.with(command.slot);
        let request = piece.request;
        if self.requests.get(request).request.operation == Operation::Write {
            self.clear_bad_blocks(command, out);
        }
    }

    fn piece_failed(&mut self, command: &Command, key: u32, out: &mut Outputs) {
        if self.member_error(command, true, out) {
            let piece = self.pieces.get_mut(key);
            piece.refused = piece.refused.with(command.slot);
        }
    }

    /// Marks copies as bad after a member that cannot be spared did not take a piece: the copies
    /// differ now, and one content must be read from now on. It is that of the members in sync that
    /// took it; if none did, the first that refused it has the old one, and the copy of any other
    /// member, also one under recovery, counts as bad.
    fn call_bad(&mut self, piece: &Piece, out: &mut Outputs) {
        let in_sync = self.members.in_sync();
        let refused = piece.refused & in_sync;
        if refused.is_empty() || piece.range.count() == Sectors::ZERO {
            return;
        }
        let is_held = !(piece.succeeded & in_sync).is_empty();
        let bad = match self.first_copy(piece.range.start, refused) {
            Some(kept) if !is_held && !mutation::is(Mutation::FillingCopyKept) => {
                (refused | piece.succeeded & self.members.recovering()).without(kept)
            }
            _ if is_held => refused,
            _ => SlotSet::EMPTY,
        };
        for slot in bad.iter() {
            let range = self.range_on(slot, piece.range);
            self.members.bad_range_found(slot, range, out);
        }
    }

    /// Declares the copies as possibly different after a member that cannot be spared failed a
    /// flush, as it may have lost what others have: until a resync has passed, all reads of a place
    /// go to one copy.
    fn lost_in_flush(&mut self) {
        let is_imitation = self.recovery.config().threads.is_some();
        let is_told = !mutation::is(Mutation::FailedFlushForgotten);
        let has_others = !(self.comparable() | self.members.recovering()).is_empty();
        if is_told && !is_imitation && has_others {
            self.resynced_below = Some(Sectors::ZERO);
        }
    }

    /// Answers a piece that is done on all members.
    pub(super) fn answer(&mut self, piece: Piece, out: &mut Outputs) {
        if piece.is_answered {
            return;
        }
        if self.must_wait_for_record(&piece) {
            self.unanswered.push(piece);
            return;
        }
        let in_sync = self.members.in_sync();
        let took = piece.succeeded & in_sync;
        let is_flush = piece.range.count() == Sectors::ZERO;
        if is_flush && !piece.refused.is_empty() {
            self.lost_in_flush();
        }
        let is_held = if is_flush {
            let mut sets = self.map.copy_sets().iter();
            sets.all(|set| !(*set & took).is_empty())
        } else {
            !took.is_empty()
        };
        let state = self.requests.get_mut(piece.request);
        state.remaining -= 1;
        let is_refused = !piece.refused.is_empty();
        if is_flush && !is_held && !is_refused && !(in_sync - piece.asked).is_empty() {
            // The members that had the flush have failed since, and another one
            // was recovered meanwhile.
            self.submit_flush(piece.request, out);
            return;
        }
        state.failed |= is_refused || !is_held;
        self.finish_if_done(piece.request, out);
    }

    /// Sends the waiting pieces and reads that need to wait no longer, oldest first.
    pub(super) fn release_waiting(&mut self, out: &mut Outputs) {
        self.open_door();
        while !self.recovery.read_waits()
            && let Some((key, start)) = self.waiting_reads.pop_front()
        {
            let barrier = self.recovery.barrier_mut();
            barrier.write_stops_waiting(start);
            self.recovery.yield_to_submitters(self.now);
            self.requests.get_mut(key).remaining -= 1;
            self.submit_read(key, start, out);
        }
        let mut at = 0;
        while let Some(&key) = self.waiting.get(at) {
            let range = self.pieces.get(key).range;
            if self.recovery.write_keeps_waiting(range) {
                at += 1;
                continue;
            }
            self.waiting.remove(at);
            self.recovery.barrier_mut().write_stops_waiting(range.start);
            self.recovery.yield_to_submitters(self.now);
            if self.is_gated(range) {
                self.gated.push_back(key);
            } else {
                self.write(key, out);
            }
        }
    }
}
