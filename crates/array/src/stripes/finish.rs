//! The last steps of every job: its writes, and its end.

use super::config::BLOCK;
use super::flow::{Next, Role, Transfer};
use super::job::{Job, Kind, Phase};
use super::pending::{Segment, Window};
use super::{Mutation, StripeArray, mutated};
use crate::request::{Event, Operation, Outputs, RequestError};
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

impl StripeArray {
    /// Continues when the writes are computed: logs them, writes them, or waits for permission.
    pub(super) fn proceed(&mut self, job: &mut Job, out: &mut Outputs) -> Next {
        if job.writes.is_empty() {
            return Next::Done(Ok(()));
        }
        if self.writes_must_wait() {
            self.held.insert(job.id);
            return Next::Keep;
        }
        if job.phase == Phase::Computed && self.must_log(job) {
            job.phase = Phase::Logging;
            self.log_later(job.id);
            return Next::Keep;
        }
        if matches!(job.kind, Kind::Write { .. }) && self.is_broken() {
            return Next::Done(Err(RequestError::Failed));
        }
        job.phase = Phase::Writing;
        self.first_written(job);
        let service = self.members.in_service();
        for item in job.writes.clone() {
            if !service.contains(item.slot) {
                continue;
            }
            job.written = job.written.with(item.slot);
            job.outstanding += 1;
            let transfer = Transfer {
                operation: Operation::Write,
                start: item.start,
                count: item.count,
                buffer: item.buffer,
                purpose: job.purpose(),
                force_unit_access: job.force_unit_access
                    && !mutated(Mutation::ForceUnitAccessDropped),
            };
            self.issue(item.slot, Role::JobWrite(job.id), transfer, out);
        }
        self.job_written(job, out)
    }

    pub(super) fn job_written(&mut self, job: &mut Job, out: &mut Outputs) -> Next {
        if job.outstanding > 0 {
            if mutated(Mutation::AcknowledgedByFirst) {
                for id in std::mem::take(&mut job.requests) {
                    self.settle(id, Ok(()), out);
                }
            }
            return Next::Keep;
        }
        let count = job.count();
        let mut filled = SlotSet::EMPTY;
        for slot in job.written.iter() {
            let written = job.writes.iter().filter(|item| item.slot == slot);
            let whole = written.map(|item| item.count).sum::<u64>() == count.0;
            if whole || mutated(Mutation::RecoveryParitySwapped) {
                filled = filled.with(slot);
            }
            if whole {
                self.members.bad_range_written(slot, job.span(), out);
            }
            if job.bad.contains(slot) {
                out.events.push(Event::ReadErrorCorrected {
                    slot,
                    start: Sectors(job.start),
                    count,
                });
            }
        }
        let fails = job.lost || self.is_broken();
        let fails = fails && matches!(job.kind, Kind::Write { .. });
        self.sync_written(job, filled);
        Next::Done(if fails {
            Err(RequestError::Failed)
        } else {
            Ok(())
        })
    }

    /// Stops counting the job as one that reads for a write.
    pub(super) fn preread_over(&mut self, job: &mut Job) {
        if std::mem::take(&mut job.preread) {
            self.prereads -= 1;
        }
    }

    /// Releases the range and the scratch memory.
    fn free_job(&mut self, job: &mut Job, out: &mut Outputs) {
        self.preread_over(job);
        self.locks.remove(&job.start);
        self.pending.unblock(job.start, job.end);
        for scratch in std::mem::take(&mut job.scratch) {
            self.release(scratch, out);
        }
        if let Some(transaction) = job.transaction {
            self.log_written(transaction);
        }
    }

    pub(super) fn end_job(
        &mut self,
        mut job: Job,
        result: Result<(), RequestError>,
        out: &mut Outputs,
    ) {
        // A member that did not take its part has a bad block there, so parity still fits.
        if job.makes_fit && (result.is_ok() || job.lost && !self.is_broken()) {
            self.now_fits(job.span());
        }
        self.free_job(&mut job, out);
        if matches!(job.kind, Kind::Sync) {
            self.walk.ended(job.span());
        }
        for id in job.requests {
            self.settle(id, result, out);
        }
    }

    pub(super) fn split_job(&mut self, mut job: Job, out: &mut Outputs) {
        self.free_job(&mut job, out);
        let blocks = (job.start..job.end).step_by(BLOCK as usize);
        match std::mem::replace(&mut job.kind, Kind::Sync) {
            Kind::Sync => self.walk.give_back(job.span()),
            Kind::Write { blocks } => {
                let window = Window {
                    start: job.start,
                    end: job.end,
                    blocks,
                    requests: job.requests,
                    force_unit_access: job.force_unit_access,
                    alone: true,
                };
                let mut counts = Vec::new();
                self.pending.put_back_in_blocks(window, &mut counts);
                self.count(&counts);
            }
            Kind::Read { outputs } => {
                for at in blocks {
                    let inside = |(index, segment): &(u16, Segment)| {
                        Some((*index, segment.clip(at, at + BLOCK)?))
                    };
                    let outputs: Vec<_> = outputs.iter().filter_map(inside).collect();
                    if !outputs.is_empty() {
                        self.count(&job.requests);
                        let requests = job.requests.clone();
                        let kind = Kind::Read { outputs };
                        self.enqueue(Job::new(job.row, (at, at + BLOCK), kind, requests));
                    }
                }
                for id in job.requests {
                    self.settle(id, Ok(()), out);
                }
            }
        }
    }
}
