//! Data blocks on their way from the disks to the cache.
//!
//! Neighbours on the disk that are ordered together travel as one run, up to what the leaf queue
//! would merge, or block by block (`DataReads`); a request for a block that is being read waits
//! for its run.

use super::Pool;
use super::io::{DataRun, ReadFor};
use crate::config::DataReads;
use crate::leaf_queue::Class;
use raidlab_array::{Operation, Outputs};
use raidlab_units::Nanos;
use std::collections::BTreeMap;
use std::ops::Range;

/// A run being read, and the requests that wait for it.
#[derive(Debug)]
pub(super) struct Flight {
    end: u64,
    read: u32,
    /// Whether it was ordered by prefetch, without a waiting request.
    ahead: bool,
    jobs: Vec<u32>,
}

/// The runs being read, by their first blocks; they do not overlap.
pub(super) type Flights = BTreeMap<u64, Flight>;

impl Pool {
    /// Orders the blocks of `from..to`, which are under one level-1 block, that a request needs:
    /// all that it reads, and those that it overwrites in part.
    pub(super) fn order_for_job(
        &mut self,
        now: Nanos,
        index: u32,
        (from, to): (u64, u64),
        out: &mut Outputs,
    ) {
        let size = self.map.block_sectors();
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        let (start, count) = (job.request.start.0, job.request.count.0);
        if job.request.operation == Operation::Read {
            self.order(now, from..to, Some(index), out);
            return;
        }
        let covered = start.div_ceil(size)..(start + count) / size;
        let (first, last) = (start / size, job.end - 1);
        for block in [first, last] {
            if (from..to).contains(&block) && !covered.contains(&block) {
                self.order(now, block..block + 1, Some(index), out);
            }
        }
    }

    /// Orders the blocks that are neither in memory nor a hole, for a request or its prefetch.
    pub(super) fn order(
        &mut self,
        now: Nanos,
        blocks: Range<u64>,
        job: Option<u32>,
        out: &mut Outputs,
    ) {
        let one_by_one = self.config.data_reads == DataReads::Blocks;
        let merged = if one_by_one {
            1
        } else {
            self.config.aggregation_limit() / self.map.placed_sectors()
        };
        let class = match job {
            Some(_) => Class::SyncRead,
            None => Class::AsyncRead,
        };
        let mut block = blocks.start;
        while block < blocks.end {
            if !self.map.may_hold(block, block + 1) || self.cache.contains(block) {
                block += 1;
                continue;
            }
            if let Some((&first, flight)) = self.flights.range(..=block).next_back()
                && flight.end > block
            {
                block = flight.end;
                self.wait_for(first, job);
                continue;
            }
            let mut limit = (blocks.end - block).min(merged.max(1));
            if let Some((&next, _)) = self.flights.range(block..).next() {
                limit = limit.min(next - block);
            }
            let absent = (1..limit).find(|more| self.cache.contains(block + more));
            let Some((place, found)) = self.map.run_from(block, absent.unwrap_or(limit)) else {
                block += 1;
                continue;
            };
            let (first, end) = (block, block + found);
            block = end;
            let purpose = ReadFor::Data(DataRun { first, end });
            if let Some(read) = self.order_read(now, place, class, purpose) {
                self.last_foreground = Some(now);
                let flight = Flight {
                    end,
                    read,
                    ahead: job.is_none(),
                    jobs: Vec::new(),
                };
                self.flights.insert(first, flight);
                self.wait_for(first, job);
                if one_by_one {
                    self.issue(out);
                }
            } else if let Some(job) = job.and_then(|job| self.jobs.get_mut(job)) {
                job.failed = true;
                return;
            }
        }
    }

    fn wait_for(&mut self, first: u64, job: Option<u32>) {
        let (Some(index), Some(flight)) = (job, self.flights.get_mut(&first)) else {
            return;
        };
        if !flight.jobs.contains(&index)
            && let Some(job) = self.jobs.get_mut(index)
        {
            job.pending += 1;
            job.missed = true;
            flight.jobs.push(index);
        }
        let read = flight.read;
        if self.config.data_reads == DataReads::Blocks {
            self.raise_read(read);
        }
    }

    /// Handles a run that was read, or could not be.
    pub(super) fn data_read(&mut self, now: Nanos, run: DataRun, good: bool, out: &mut Outputs) {
        let Some(flight) = self.flights.remove(&run.first) else {
            return;
        };
        if good {
            self.cache.insert_data(run.first, run.end);
        }
        if flight.ahead {
            self.prefetch.arrived(run.first);
        }
        for index in flight.jobs {
            if let Some(job) = self.jobs.get_mut(index) {
                job.failed |= !good;
                job.pending -= 1;
                self.job_gathered(now, index, out);
            }
        }
    }
}
