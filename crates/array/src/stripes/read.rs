//! Reads: from one member where that is possible, computed where it is not.
//!
//! A read that a medium refuses is tried again block by block, so that only
//! the blocks that are bad are computed from the others and written back.

use super::config::BLOCK;
use super::flow::{Next, Role, Transfer, pieces};
use super::job::{Job, Kind, Phase};
use super::pending::Segment;
use super::{Mutation, StripeArray, mutated};
use crate::request::{
    ComputeStep, MemberError, Operation, Outputs, Purpose, Request, RequestError,
};
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

impl StripeArray {
    pub(super) fn submit_read(&mut self, request: &Request, out: &mut Outputs) {
        let mut row_pieces: Vec<(u16, Segment)> = Vec::new();
        let mut row = 0;
        for (number, index, segment) in
            pieces(&self.map, request.id, request.start.0, request.count.0)
        {
            if number != row {
                self.read_row(row, &row_pieces, out);
                row_pieces.clear();
                row = number;
            }
            row_pieces.push((index, segment));
        }
        self.read_row(row, &row_pieces, out);
    }

    /// Reads parts of one row: a job for the range in which blocks have to be computed, the rest
    /// straight from the members.
    fn read_row(&mut self, row: u64, parts: &[(u16, Segment)], out: &mut Outputs) {
        let layout = self.map.row(row);
        let lost = parts.iter().filter(|(index, segment)| {
            let slot = layout.data_slot(*index);
            !self.serves(slot, segment.start, segment.end)
        });
        let range = lost.fold(None, |range: Option<(u64, u64)>, (_, segment)| {
            let (from, to) = range.unwrap_or((segment.start, segment.end));
            Some((from.min(segment.start), to.max(segment.end)))
        });
        let (from, to) = range.map_or((0, 0), |(from, to)| {
            (from / BLOCK * BLOCK, to.next_multiple_of(BLOCK))
        });
        for (index, segment) in parts {
            let outside = [segment.clip(0, from), segment.clip(to, u64::MAX)];
            for part in outside.into_iter().flatten() {
                self.read_directly(*index, part, out);
            }
        }
        let mut at = from;
        while at < to {
            let end = to.min(at + self.longest);
            self.enqueue_read(row, (at, end), parts);
            at = end;
        }
    }

    fn enqueue_read(&mut self, row: u64, range: (u64, u64), parts: &[(u16, Segment)]) {
        let inside =
            |(index, segment): &(u16, Segment)| Some((*index, segment.clip(range.0, range.1)?));
        let outputs: Vec<_> = parts.iter().filter_map(inside).collect();
        let Some((_, first)) = outputs.first() else {
            return;
        };
        let requests = vec![first.request];
        self.count(&requests);
        let kind = Kind::Read { outputs };
        self.enqueue(Job::new(self.map.row(row), range, kind, requests));
    }

    fn read_directly(&mut self, index: u16, segment: Segment, out: &mut Outputs) {
        self.count(&[segment.request]);
        let row = self.map.row(self.map.row_of(Sectors(segment.start)));
        let transfer = Transfer {
            operation: Operation::Read,
            start: segment.start,
            count: segment.end - segment.start,
            buffer: segment.buffer(segment.start),
            purpose: Purpose::Foreground,
            force_unit_access: false,
        };
        let role = Role::Direct { index, segment };
        self.issue(row.data_slot(index), role, transfer, out);
    }

    pub(super) fn direct_read_done(
        &mut self,
        index: u16,
        segment: Segment,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        let row = self.map.row_of(Sectors(segment.start));
        let first = segment.start / BLOCK * BLOCK;
        let one_block = segment.end <= first + BLOCK;
        match result {
            Ok(()) => {}
            Err(MemberError::Medium) if !one_block => {
                let mut at = first;
                while at < segment.end {
                    if let Some(part) = segment.clip(at, at + BLOCK) {
                        self.retry_read(row, index, part, out);
                    }
                    at += BLOCK;
                }
            }
            Err(_) => {
                let end = segment.end.next_multiple_of(BLOCK);
                let mut at = first;
                while at < end {
                    let to = end.min(at + self.longest);
                    self.enqueue_read(row, (at, to), &[(index, segment)]);
                    at = to;
                }
            }
        }
        self.settle(segment.request, Ok(()), out);
    }

    fn retry_read(&mut self, row: u64, index: u16, part: Segment, out: &mut Outputs) {
        let slot = self.map.row(row).data_slot(index);
        if self.serves(slot, part.start, part.end) {
            self.read_directly(index, part, out);
        } else {
            let start = part.start / BLOCK * BLOCK;
            self.enqueue_read(row, (start, start + BLOCK), &[(index, part)]);
        }
    }

    /// Reads missing blocks, or computes them, answers and writes back.
    pub(super) fn step_read(&mut self, job: &mut Job, out: &mut Outputs) -> Next {
        let Kind::Read { outputs } = &mut job.kind else {
            return Next::Keep;
        };
        let outputs = std::mem::take(outputs);
        let slots = outputs.iter().map(|(index, _)| job.row.data_slot(*index));
        let needed: SlotSet = slots.collect();
        let next = match self.solve(job, needed) {
            Err(_) if job.end - job.start > BLOCK => Some(Next::Split),
            Err(_) => Some(Next::Done(Err(RequestError::NoMember))),
            Ok(wanted) if !(wanted - job.known).is_empty() => {
                self.read_blocks(job, wanted - job.known, out);
                Some(Next::Keep)
            }
            Ok(_) => None,
        };
        if let Some(next) = next {
            job.kind = Kind::Read { outputs };
            return next;
        }
        let computed = (needed - job.known).lowest();
        self.recover_needed(job, needed, out);
        for (index, segment) in &outputs {
            let mut slot = job.row.data_slot(*index);
            if mutated(Mutation::ParityReadAsData) && computed == Some(slot) {
                slot = (job.parities() & job.known).lowest().unwrap_or(slot);
            }
            out.steps.push(ComputeStep::Copy {
                from: job.old_at(slot, segment.start),
                to: segment.buffer(segment.start),
                count: Sectors(segment.end - segment.start),
            });
        }
        for id in std::mem::take(&mut job.requests) {
            self.settle(id, Ok(()), out);
        }
        if self.members.corrects {
            Self::add_corrections(job);
        }
        job.phase = Phase::Computed;
        self.proceed(job, out)
    }
}
