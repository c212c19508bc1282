//! Reads: choose a member, and on an error choose again among the others.
//!
//! Members that were tried before are tried again if a member was mended since: it may have what it
//! lacked, and the others may be gone.
//!
//! Where every copy of a range fails, the range is read again in parts of 4 KiB, as the copies need
//! not be bad in the same place. That is also done, and of the same member first, where the copies
//! may differ: other reads have seen its readable sectors before.
//!
//! While a resync copies a block, all reads of it go to the member that it is copied from. If
//! that one leaves, the others get its bytes all the same, and their earlier bytes must not be
//! seen any more: reads wait until the block is written. (In Linux they wait for every block of a
//! resync, drivers/md/raid1.c, `wait_barrier`.)

use super::{Array, Command, RequestState, Role, Shape, Tried, payload};
use crate::mutation::{self, Mutation};
use crate::policy::{Choice, MemberView, Places, Read};
use crate::recovery::{is_part, part};
use crate::request::{MemberError, Operation, Outputs, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Sectors, Span};

impl Array {
    /// Reads the range of a request from this sector on, up to the first barrier.
    pub(super) fn submit_read(&mut self, key: u32, mut start: Sectors, out: &mut Outputs) {
        let request = self.requests.get(key).request;
        let end = request.start + request.count;
        while start < end {
            let limit = start + self.command_limit(&request, start);
            if self.recovery.read_waits() && !self.passes_raised_barrier(&request, limit) {
                self.recovery.barrier_mut().write_begins_waiting(start);
                self.requests.get_mut(key).remaining += 1;
                self.waiting_reads.push_back((key, start));
                return;
            }
            self.read_or_hold(key, Span { start, end: limit }, self.none_tried(), out);
            start = limit;
        }
        self.finish_if_done(key, out);
    }

    pub(super) fn complete_read(
        &mut self,
        command: &Command,
        key: u32,
        mut tried: Tried,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.requests.get_mut(key).remaining -= 1;
        if self.recovery.barrier_mut().counts_reads() {
            self.recovery.barrier_mut().io_finished(command.start);
        }
        if let Err(error) = result
            && !mutation::is(Mutation::ReadErrorIgnored)
        {
            self.member_error(command, error == MemberError::Gone, out);
            let range = command.range();
            if error == MemberError::Medium
                && self.may_differ(range.end)
                && !is_part(range)
                && !mutation::is(Mutation::DirtyReadSwitched)
            {
                self.read_in_parts(key, range, out);
            } else {
                tried.slots = tried.slots.with(command.slot);
                self.read_or_hold(key, range, tried, out);
                self.read_failed(command, error, out);
            }
        }
        self.finish_if_done(key, out);
        if self.recovery.barrier_mut().counts_reads() {
            self.pump_sync(out);
        }
    }

    fn read_or_hold(&mut self, key: u32, range: Span, tried: Tried, out: &mut Outputs) {
        let in_sync = self.members.in_sync();
        let waits = self.may_differ(range.end) && self.recovery.is_orphaned(&range, in_sync);
        if waits && !mutation::is(Mutation::OrphanRead) {
            self.requests.get_mut(key).remaining += 1;
            self.held_reads.push((key, range, tried));
        } else {
            self.read(key, range, tried, out);
        }
    }

    /// Resumes reads that waited for a block, or for one of several.
    pub(super) fn release_held_reads(&mut self, out: &mut Outputs) {
        for (key, range, tried) in std::mem::take(&mut self.held_reads) {
            self.requests.get_mut(key).remaining -= 1;
            self.read_or_hold(key, range, tried, out);
            self.finish_if_done(key, out);
        }
    }

    /// Reads a range for a request from members not tried yet; marks the
    /// request failed if there is none.
    fn read(&mut self, key: u32, range: Span, tried: Tried, out: &mut Outputs) {
        let request = self.requests.get(key).request;
        let mut start = range.start;
        while start < range.end {
            let limit = self.bad_block_limit(start, range.end);
            let piece = Span { start, end: limit };
            let read = Read {
                start,
                count: piece.count(),
                whole_start: range.start,
                whole_count: range.count(),
                process: request.process,
                candidates: self.readable(piece) - tried.slots,
            };
            let Some(choice) = self.choose(&read) else {
                let is_mended = tried.mends != self.mends;
                if (piece != range || is_mended) && !tried.slots.is_empty() {
                    // It was part of a range that could not be read as a whole, or may be
                    // readable by now.
                    self.read(key, piece, self.none_tried(), out);
                    start = piece.end;
                    continue;
                }
                // A single copy does not improve when it is read in parts.
                if tried.slots.len() < 2 || is_part(piece) {
                    self.requests.get_mut(key).failed = true;
                    return;
                }
                self.read_in_parts(key, piece, out);
                start = piece.end;
                continue;
            };
            debug_assert!(read.candidates.contains(choice.slot) && choice.count <= read.count);
            let part = Span::between(start, start + choice.count);
            if self.recovery.barrier_mut().counts_reads() {
                self.recovery.barrier_mut().io_started(start);
            }
            let RequestState { remaining, .. } = self.requests.get_mut(key);
            *remaining += 1;
            let shape = Shape {
                operation: Operation::Read,
                force_unit_access: false,
                buffer: payload(&request, start),
            };
            let role = Role::Read {
                request: key,
                tried,
            };
            self.issue(choice.slot, role, part, shape, out);
            start = part.end;
        }
    }

    const fn none_tried(&self) -> Tried {
        Tried {
            slots: SlotSet::EMPTY,
            mends: self.mends,
        }
    }

    fn read_in_parts(&mut self, key: u32, range: Span, out: &mut Outputs) {
        let mut start = range.start;
        while start < range.end {
            let part = part(start, range.end);
            self.read_or_hold(key, part, self.none_tried(), out);
            start = part.end;
        }
    }

    /// Returns the members that may serve a read of this range, whose copies advance together.
    #[inline]
    pub(super) fn readable(&self, range: Span) -> SlotSet {
        let extent = self.map.extent(range.start);
        if self.members.is_plain() {
            return self.members.in_sync() & extent.slots();
        }
        let readable = extent.copies().filter(|(slot, address)| {
            let on_member = Span::between(*address, *address + range.count());
            self.members.may_read(*slot, on_member)
                || (mutation::is(Mutation::CopyReadUnrecovered)
                    && self.members.recovering().contains(*slot))
        });
        readable.map(|(slot, _)| slot).collect()
    }

    /// Returns the part of a range from `start` on in which no copy's bad blocks begin or end.
    #[inline]
    pub(super) fn bad_block_limit(&self, start: Sectors, end: Sectors) -> Sectors {
        if self.members.with_bad_blocks().is_empty() {
            return end;
        }
        let extent = self.map.extent(start);
        let mut count = Sectors(end.0 - start.0);
        for (slot, address) in extent.copies() {
            let boundary = self.members.bad_block_boundary(slot, address);
            count = count.min(Sectors(boundary.0 - address.0));
        }
        start + count
    }

    /// Returns, of these members, the one with the first copy in md's order, which is not that of
    /// the slots where chunks begin on another member each time (Linux drivers/md/raid10.c,
    /// `raid10_find_phys`). Reads of copies that may differ, syncs and checks all follow it. A
    /// member that is in service by force comes last.
    pub(super) fn first_copy(&self, start: Sectors, among: SlotSet) -> Option<Slot> {
        let first = |among: SlotSet| {
            let mut slots = self.map.extent(start).copies().map(|(slot, _)| slot);
            slots.find(|slot| among.contains(*slot))
        };
        first(among - self.doubtful).or_else(|| first(among))
    }

    /// Whether copies that end here may differ, as the array is dirty.
    pub(super) fn may_differ(&self, end: Sectors) -> bool {
        self.resynced_below.is_some_and(|below| end > below)
    }

    /// Returns which of these members serves all reads of a range whose copies may differ.
    pub(super) fn shown_of(&self, range: Span, candidates: SlotSet) -> Option<Slot> {
        self.shown(&Read {
            start: range.start,
            count: range.count(),
            whole_start: range.start,
            whole_count: range.count(),
            process: 0,
            candidates,
        })
    }

    /// Returns the member that serves all reads of a range whose copies may differ. It is the one
    /// that a resync copies to the others, or reads would see one content and later another. Where
    /// md is imitated a mirror's policy says which: since Linux 6.9 md reads the first member here,
    /// write-mostly or not, and its resync does not (`choose_first_rdev` and `raid1_sync_request` in
    /// drivers/md/raid1.c).
    pub(super) fn shown(&self, read: &Read) -> Option<Slot> {
        let views = self.members.views();
        let is_as_md =
            self.recovery.config().threads.is_some() || mutation::is(Mutation::DirtyShowsAnother);
        match self.is_mirror && is_as_md {
            true => self.policy.choose_first(read, views),
            false => self.first_copy(read.start, read.preferred(views)),
        }
    }

    /// Asks the policy; above the resync position of a dirty array it has no choice.
    #[inline]
    pub(super) fn choose(&mut self, read: &Read) -> Option<Choice> {
        let views = self.members.views();
        if self.may_differ(read.end()) && !mutation::is(Mutation::DirtyCopiesBalanced) {
            let slot = self.shown(read)?;
            return Some(Choice {
                slot,
                count: read.count,
            });
        }
        if self.is_mirror {
            return match self.busy_views() {
                None => self.policy.choose(self.now, read, views),
                Some(views) => self.policy.choose(self.now, read, &views),
            };
        }
        let places = Places {
            extent: self.map.extent(read.start),
            copies: self.copies,
        };
        self.policy.choose_place(self.now, read, &places, views)
    }

    /// Returns the members as md's RAID 1 sees them while blocks of a sync are under way: each
    /// block holds all members from its beginning to its end, whichever it reads (Linux 6.12
    /// drivers/md/raid1.c, `raid1_sync_request`: `nr_pending` of all that have a `bi_end_io`), so
    /// none is idle.
    fn busy_views(&self) -> Option<Vec<MemberView>> {
        if self.recovery.config().threads.is_none() || self.recovery.in_flight() == 0 {
            return None;
        }
        let mut views = self.members.views().to_vec();
        for slot in (self.members.in_sync() | self.members.recovering()).iter() {
            views[slot.index()].pending += 1;
        }
        Some(views)
    }
}
