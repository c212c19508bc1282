//! Writes that pass a sync's barrier before they are submitted.
//!
//! md takes the barrier first (Linux 6.12 drivers/md/raid1.c, `raid1_write_request`:
//! `wait_barrier`; raid10.c, `raid10_write_request`: `regular_request_wait`), and sets the bits of
//! the bitmap behind it; so no block of the sync begins from then until the write has ended, and
//! while its bits are written no block of the sync is in the way. The layer that keeps the bitmap
//! asks for a write, as often as needed, until it is let in, and submits it later. Waiting writes
//! are let in as the barrier comes down, before the sync's thread checks for waiters
//! (`lower_barrier` wakes both, and the process was there first).

use super::Array;
use crate::recovery::MdRules;
use crate::request::{Request, RequestId};
use raidlab_units::{Nanos, Sectors, Span};
use std::collections::BTreeSet;

/// Writes that have asked at a sync's barrier and have not been submitted.
#[derive(Debug, Default)]
pub(super) struct Door {
    /// Writes that wait for the barrier, each with its part in the first unit and its process.
    waiting: Vec<(RequestId, Span, u32)>,
    /// Writes behind the barrier that were not submitted yet.
    inside: BTreeSet<RequestId>,
}

impl Door {
    /// Returns how many writes wait to be let in.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the processes whose writes wait.
    pub(super) fn processes(&self) -> impl Iterator<Item = u32> {
        self.waiting.iter().map(|(.., process)| *process)
    }
}

impl Array {
    /// Whether a write has passed the barrier where it starts.
    pub(super) fn enter(&mut self, now: Nanos, request: &Request) -> bool {
        self.now = now;
        if self.door.inside.contains(&request.id) {
            return true;
        }
        if self.door.waiting.iter().any(|(id, ..)| *id == request.id) {
            return false;
        }
        let (start, end) = (request.start, request.start + request.count);
        let end = self.recovery.boundary(start).map_or(end, |it| it.min(end));
        let range = Span { start, end };
        let limit = start + self.command_limit(request, start);
        let waits = self.recovery.write_waits(range) && !self.passes_raised_barrier(request, limit);
        let barrier = self.recovery.barrier_mut();
        if waits {
            barrier.write_begins_waiting(start);
            let waits = (request.id, range, request.process);
            self.door.waiting.push(waits);
            return false;
        }
        barrier.io_started(start);
        self.door.inside.insert(request.id);
        true
    }

    /// Lets in the writes that need to wait no longer.
    pub(super) fn open_door(&mut self) {
        for (id, range, process) in std::mem::take(&mut self.door.waiting) {
            if self.recovery.write_keeps_waiting(range) {
                self.door.waiting.push((id, range, process));
                continue;
            }
            let barrier = self.recovery.barrier_mut();
            barrier.write_stops_waiting(range.start);
            barrier.io_started(range.start);
            self.recovery.yield_to_submitters(self.now);
            self.door.inside.insert(id);
        }
    }

    /// Forgets a write that was let in, or that has asked, and is never submitted.
    pub(super) fn leave(&mut self, request: &Request) {
        let barrier = self.recovery.barrier_mut();
        let waiting = &mut self.door.waiting;
        if let Some(at) = waiting.iter().position(|(id, ..)| *id == request.id) {
            waiting.remove(at);
            barrier.write_stops_waiting(request.start);
        }
        if self.door.inside.remove(&request.id) {
            barrier.io_finished(request.start);
        }
    }

    /// Whether this part of a write is behind the barrier already, as the write and all its parts
    /// before this one are: in a mirror up to the end of the unit. In a RAID 10 each chunk comes to
    /// the barrier by itself ([`Self::passes_raised_barrier`]). Where a request has one plug, all
    /// its parts have passed before its bits are written.
    pub(super) fn is_inside_barrier(&self, request: &Request, part: Span) -> bool {
        let at_once = self.recovery.config().rules().plugs_requests;
        let passes = at_once || self.is_mirror || !ends_bio(request, part.end);
        self.recovery.counts_io()
            && (passes || part.start == request.start)
            && self.recovery.boundary(request.start) == self.recovery.boundary(part.start)
            && !self.is_gated(part)
    }

    /// Whether the chunk of a request that ends here passes a raised barrier: any but the last one
    /// of a bio, as long as others are under way, since the barrier cannot close before these have
    /// ended (Linux 6.12 drivers/md/raid10.c, `stop_waiting_barrier`: `nr_pending` and `bio_list`).
    pub(super) fn passes_raised_barrier(&self, request: &Request, end: Sectors) -> bool {
        self.cut_by_chunk.is_some() && self.recovery.has_io() && !ends_bio(request, end)
    }

    /// Whether a write that is submitted was let in before.
    pub(super) fn has_entered(&self, request: &Request) -> bool {
        self.door.inside.contains(&request.id)
    }
}

/// Whether a bio of a request ends at this sector: the request's last one, or one of
/// the greatest length.
fn ends_bio(request: &Request, end: Sectors) -> bool {
    let so_far = end.0 - request.start.0;
    so_far == request.count.0 || so_far.is_multiple_of(MdRules::OF_ONE_BIO.0)
}
