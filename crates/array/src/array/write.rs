//! Writes, discards and flushes.

use super::{Array, Command, Piece, Role, Shape, payload};
use crate::recovery::{Range, RecoveringWrites, WriteTicket};
use crate::request::{BufferId, MemberError, Operation, Outputs, Request, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

impl Array {
    pub(super) fn submit_write(&mut self, key: u32, request: &Request, out: &mut Outputs) {
        let end = request.start + request.count;
        let mut start = request.start;
        while start < end {
            let limit = start + self.command_limit(start, end);
            let range = Range { start, end: limit };
            let piece = self.add_piece(key, range);
            if self.recovery.write_waits(range) {
                self.recovery.barrier_mut().write_begins_waiting(start);
                self.waiting.push_back(piece);
            } else {
                self.write(piece, out);
            }
            start = limit;
        }
    }

    pub(super) fn submit_flush(&mut self, key: u32, out: &mut Outputs) {
        let nothing = Range {
            start: Sectors::ZERO,
            end: Sectors::ZERO,
        };
        let piece = self.add_piece(key, nothing);
        for slot in self.members.in_sync().iter() {
            self.pieces.get_mut(piece).outstanding += 1;
            let shape = Shape {
                operation: Operation::Flush,
                force_unit_access: false,
                buffer: BufferId::None,
            };
            self.issue(slot, Role::Flush { piece }, nothing, shape, out);
        }
    }

    fn add_piece(&mut self, request: u32, range: Range) -> u32 {
        self.requests.get_mut(request).remaining += 1;
        self.pieces.insert(Piece {
            request,
            range,
            outstanding: 0,
            succeeded: SlotSet::EMPTY,
            ticket: WriteTicket::Uncounted,
        })
    }

    /// Sends a piece to every member that must have it.
    fn write(&mut self, key: u32, out: &mut Outputs) {
        let Piece { request, range, .. } = *self.pieces.get(key);
        let request = self.requests.get(request).request;
        let targets = self.write_targets(range.start);
        let completed = self.recovery.completed();
        let ticket = self.recovery.barrier_mut().write_started(range, completed);
        let piece = self.pieces.get_mut(key);
        piece.ticket = ticket;
        for slot in targets.iter() {
            self.pieces.get_mut(key).outstanding += 1;
            let buffer = match request.operation {
                Operation::Write => payload(&request, range.start),
                _ => BufferId::None,
            };
            let shape = Shape {
                operation: request.operation,
                force_unit_access: request.force_unit_access,
                buffer,
            };
            self.issue(slot, Role::Write { piece: key }, range, shape, out);
        }
    }

    /// The members in sync, and those under recovery that get this write.
    fn write_targets(&self, start: Sectors) -> SlotSet {
        let recovering = match self.recovery.config().recovering_writes {
            RecoveringWrites::Everywhere => self.members.recovering(),
            RecoveringWrites::BelowPosition if start < self.recovery.next() => {
                self.members.recovering() & self.recovery.targets()
            }
            RecoveringWrites::BelowPosition => SlotSet::EMPTY,
        };
        (self.members.in_sync() | recovering) & self.geometry.copies(start)
    }

    pub(super) fn complete_piece(
        &mut self,
        command: &Command,
        key: u32,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        match result {
            Ok(()) => self.piece_succeeded(key, command.slot),
            Err(_) => self.member_error(command, true, out),
        }
        let piece = self.pieces.get_mut(key);
        piece.outstanding -= 1;
        if piece.outstanding > 0 {
            return;
        }
        let piece = self.pieces.take(key);
        if matches!(command.role, Role::Write { .. }) {
            let barrier = self.recovery.barrier_mut();
            barrier.write_finished(piece.range.start, piece.ticket);
        }
        let state = self.requests.get_mut(piece.request);
        state.remaining -= 1;
        state.failed |= (piece.succeeded & self.members.in_sync()).is_empty();
        self.finish_if_done(piece.request, out);
        self.pump_sync(out);
    }

    fn piece_succeeded(&mut self, key: u32, slot: Slot) {
        let piece = self.pieces.get_mut(key);
        piece.succeeded = piece.succeeded.with(slot);
    }

    /// Sends the waiting pieces that need to wait no longer, oldest first.
    pub(super) fn release_writes(&mut self, out: &mut Outputs) {
        let mut at = 0;
        while let Some(&key) = self.waiting.get(at) {
            let range = self.pieces.get(key).range;
            if self.recovery.write_keeps_waiting(range) {
                at += 1;
                continue;
            }
            self.waiting.remove(at);
            self.recovery.barrier_mut().write_stops_waiting(range.start);
            self.write(key, out);
        }
    }
}
