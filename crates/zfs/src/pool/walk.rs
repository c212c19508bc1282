//! A request's walk over its blocks: blocks that it needs are in memory or are read, and with all
//! of them it ends, or passes the write throttle.

use super::{Job, Pool, Timer, Waiter, finish, io};
use crate::cache::IndirectId;
use crate::config::HostTime;
use crate::leaf_queue::Class;
use raidlab_array::{Finished, Operation, Outputs, RequestError};
use raidlab_units::Nanos;

impl Pool {
    /// Continues with a request's blocks as far as memory allows, then with its prefetch.
    pub(super) fn step_job(&mut self, now: Nanos, index: u32, out: &mut Outputs) {
        while let Some(job) = self.jobs.get_mut(index)
            && !job.failed
        {
            let request = job.request;
            let wanted = job.next < job.end;
            let blocks = if wanted {
                job.next..job.end
            } else if let Some(ahead) = job.ahead.clone() {
                ahead
            } else if request.operation == Operation::Read {
                self.look_ahead(now, index, out);
                continue;
            } else {
                break;
            };
            if blocks.is_empty() {
                break;
            }
            if let Some(id) = self.missing_above(blocks.start) {
                self.fetch_for_job(now, id, index, out);
                return;
            }
            let stop = (blocks.start + 1).next_multiple_of(self.map.pointers());
            let stop = stop.min(blocks.end);
            if let Some(job) = self.jobs.get_mut(index) {
                if wanted {
                    job.next = stop;
                } else {
                    job.ahead = Some(stop..blocks.end);
                }
            }
            if wanted {
                self.order_for_job(now, index, (blocks.start, stop), out);
            } else {
                self.order(now, blocks.start..stop, None, out);
            }
        }
        self.job_gathered(now, index, out);
    }

    /// Reads an indirect block unless it is being read, and registers the waiter.
    pub(super) fn fetch(
        &mut self,
        now: Nanos,
        id: IndirectId,
        class: Class,
        waiter: Waiter,
        out: &mut Outputs,
    ) {
        let known = self.fetches.contains_key(&id);
        let fetch = self.fetches.entry(id).or_default();
        match waiter {
            Waiter::Job(job) => fetch.jobs.push(job),
            Waiter::Scan => fetch.scan = true,
            Waiter::Nobody => {}
            Waiter::Ahead(first, end) => fetch.ahead.push(first..end),
        }
        if known {
            self.raise_fetch(id, class);
            return;
        }
        let place = self.map.indirect_place(id.level, id.index);
        let purpose = io::ReadFor::Indirect(id);
        let read = place.and_then(|place| self.order_read(now, place, class, purpose));
        match self.fetches.get_mut(&id) {
            Some(fetch) if read.is_some() => fetch.read = read,
            _ => self.fetched(now, id, false, out),
        }
    }

    /// Handles an indirect block that was read, or could not be.
    pub(super) fn fetched(&mut self, now: Nanos, id: IndirectId, good: bool, out: &mut Outputs) {
        let Some(fetch) = self.fetches.remove(&id) else {
            return;
        };
        if good {
            self.cache.insert_indirect(id);
        }
        for index in fetch.jobs {
            let Some(job) = self.jobs.get_mut(index) else {
                continue;
            };
            job.failed |= !good;
            job.pending -= 1;
            self.step_job(now, index, out);
        }
        if fetch.scan {
            self.scan_fetched(now, id, good);
        }
        for blocks in fetch.ahead {
            if good {
                self.order_ahead(now, blocks, out);
            }
        }
    }

    /// Continues a request if all that it needs is in memory.
    pub(super) fn job_gathered(&mut self, now: Nanos, index: u32, out: &mut Outputs) {
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        let ahead = job.ahead.as_ref().is_some_and(|ahead| !ahead.is_empty());
        if job.pending > 0 || ((job.next < job.end || ahead) && !job.failed) {
            return;
        }
        let (failed, operation, id) = (job.failed, job.request.operation, job.request.id);
        if failed {
            self.jobs.remove(index);
            finish(id, Err(RequestError::NoMember), out);
        } else if operation == Operation::Write {
            self.admit(now, index, now);
        } else {
            let time = self.config.read_time;
            self.finish_later(now, index, time);
        }
    }

    pub(super) fn finish_later(&mut self, now: Nanos, index: u32, time: HostTime) {
        let block = self.map.block_sectors();
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        let blocks = job.end - job.request.start.0 / block;
        self.finish_at(now + time.request + time.block * blocks, index);
    }

    pub(super) fn finish_at(&mut self, time: Nanos, index: u32) {
        if !self.config.charged || self.jobs.get_mut(index).is_some_and(|job| job.is_durable()) {
            self.set_timer(time, Timer::Finish(index));
        } else if let Some(id) = self.leave(index).map(|job| job.request.id) {
            self.ended.push(Finished { id, result: Ok(()) });
        }
    }

    /// Ends a job, or commits it if it is to be durable.
    pub(super) fn finish_job(&mut self, now: Nanos, index: u32, out: &mut Outputs) {
        match self.leave(index) {
            Some(job) if job.is_durable() => self.commit(now, vec![job.request.id], out),
            Some(job) => finish(job.request.id, Ok(()), out),
            None => {}
        }
    }

    /// Takes a job off the table. A write leaves its record in the intent log as the last thing
    /// that it does, so that of several writers each commits what is its own first (`zvol_write`).
    fn leave(&mut self, index: u32) -> Option<Job> {
        let job = self.jobs.remove(index)?;
        if job.request.operation == Operation::Write {
            self.log.record(job.request.count.to_bytes());
        }
        Some(job)
    }
}
