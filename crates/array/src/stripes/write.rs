//! Writes: from request to windows, from windows to jobs.
//!
//! A request is cut at the borders of windows and gathered there. A window goes at once when it is
//! full, when it must be durable, or when no member with its parity is in service; the others go
//! when no window reads for a write, or when too many have gathered. A window that goes becomes a
//! job, unless another job works on the same range; then it waits for that one's end and takes in
//! what is written meanwhile.
//!
//! A job asks `plan` for the cheaper method, read-modify-write or reconstruct-write, reads the
//! missing blocks that it needs, computes blocks that could not be read from the others, and then
//! the new blocks and parity. Where a window of several blocks has one that can neither be read nor
//! computed, it is done again block by block.

use super::config::BLOCK;
use super::flow::{Next, pieces};
use super::job::{Job, Kind, Phase};
use super::pending::covers;
use super::plan::Method;
use super::{Mutation, StripeArray, mutated};
use crate::request::{Outputs, Request, RequestError};
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

impl StripeArray {
    pub(super) fn submit_write(&mut self, request: &Request) {
        let mut counts = Vec::new();
        let mut touched = Vec::new();
        for (_, index, segment) in pieces(&self.map, request.id, request.start.0, request.count.0) {
            touched.extend(self.pending.insert(
                index,
                segment,
                self.longest,
                request.force_unit_access,
                &mut counts,
            ));
        }
        self.count(&counts);
        let service = self.members.in_service();
        for start in touched {
            let row = self.map.row(self.map.row_of(Sectors(start)));
            // Nothing is read where no parity member is present.
            let parity = service.contains(row.p()) || row.q().is_some_and(|q| service.contains(q));
            let window = self.pending.get(start);
            let goes = window.is_some_and(|window| {
                window.force_unit_access || !parity || window.is_full(self.map.data_count())
            });
            if goes {
                self.pending.release(start);
            }
        }
    }

    /// Makes jobs of the windows that may be written. Those that wait for more writes follow when
    /// no window reads for a write (md's `IO_THRESHOLD`, 1), or when too many are gathered.
    pub(super) fn dispatch_writes(&mut self, out: &mut Outputs) -> bool {
        let mut moved = self.dispatch_ready(out);
        if self.prereads == 0 || self.pending.len() > self.config.stripes {
            self.pending.release_delayed();
            moved |= self.dispatch_ready(out);
        }
        moved
    }

    fn dispatch_ready(&mut self, out: &mut Outputs) -> bool {
        let mut moved = false;
        while let Some((start, end)) = self.pending.next_ready() {
            if self.is_locked(start, end) || self.is_awaited(start, end) {
                continue;
            }
            let chunk = self.map.chunk().0;
            let limit = (start / chunk * chunk + chunk).min(start + self.longest);
            let mut pending = std::mem::take(&mut self.pending);
            let window = pending.take(start, limit, |from, to| {
                !self.is_locked(from, to) && !self.is_awaited(from, to)
            });
            self.pending = pending;
            let Some(window) = window else {
                continue;
            };
            moved = true;
            let row = self.map.row(start / chunk);
            let kind = Kind::Write {
                blocks: window.blocks,
            };
            let mut job = Job::new(row, (window.start, window.end), kind, window.requests);
            job.force_unit_access = window.force_unit_access;
            job.id = self.next_job;
            self.next_job += 1;
            self.locks.insert(job.start, job.end);
            let id = job.id;
            self.jobs.insert(id, job);
            self.with_job(id, out, Self::job_read);
        }
        moved
    }

    /// Reads missing blocks, or computes and continues.
    pub(super) fn step_write(&mut self, job: &mut Job, out: &mut Outputs) -> Next {
        if self.is_broken() {
            return Next::Done(Err(RequestError::Failed));
        }
        let Kind::Write { blocks } = &mut job.kind else {
            return Next::Keep;
        };
        let blocks = std::mem::take(blocks);
        let (method, needed) = self.method(job, &blocks);
        let next = match self.solve(job, needed) {
            Err(_) if job.end - job.start > BLOCK => Next::Split,
            Err(_) => Next::Done(Err(RequestError::Failed)),
            Ok(wanted) if !(wanted - job.known).is_empty() => {
                if !job.preread {
                    job.preread = true;
                    self.prereads += 1;
                }
                self.read_blocks(job, wanted - job.known, out);
                Next::Keep
            }
            Ok(_) if method == Method::Direct && self.hits_bad_block(job, &blocks) => {
                Next::Done(Err(RequestError::Failed))
            }
            Ok(_) => {
                self.preread_over(job);
                self.recover_needed(job, needed, out);
                self.compute_write(job, &blocks, method, out);
                job.makes_fit = method == Method::Reconstruct;
                Self::add_corrections(job);
                if mutated(Mutation::ParityNotUpdated) && method == Method::Modify {
                    let parities = job.parities();
                    job.writes.retain(|item| !parities.contains(item.slot));
                }
                job.phase = Phase::Computed;
                Next::Keep
            }
        };
        if let Kind::Write { blocks: place } = &mut job.kind {
            *place = blocks;
        }
        match job.phase {
            Phase::Computed => self.proceed(job, out),
            _ => next,
        }
    }

    /// Whether the job would write a part of a block whose rest is not right.
    fn hits_bad_block(&self, job: &Job, blocks: &super::pending::Blocks) -> bool {
        blocks.iter().any(|(index, segments)| {
            let slot = job.row.data_slot(*index);
            self.members.is_bad(slot, job.span()) && !covers(segments, job.start, job.end)
        })
    }

    /// Computes the needed blocks that could not be read.
    pub(super) fn recover_needed(&mut self, job: &mut Job, needed: SlotSet, out: &mut Outputs) {
        let parities = (needed & job.parities()) - job.known;
        // Parity needs all data.
        let data = if parities.is_empty() {
            needed & job.data()
        } else {
            job.data()
        };
        if !(data - job.known).is_empty() {
            let lost = job.data() - job.known;
            for slot in lost.iter() {
                self.scratch_for(job, slot, out);
            }
            out.steps.push(job.recover_old(lost));
            job.known = job.known | lost;
        }
        if !parities.is_empty() {
            for slot in parities.iter() {
                self.scratch_for(job, slot, out);
            }
            out.steps.push(job.generate_old(parities));
            job.known = job.known | parities;
        }
    }
}
