//! Data blocks on their way from the disks to the cache.
//!
//! Neighbours on the disk that are ordered together travel as one run, up to
//! what the leaf queue would merge; who wants a block that is being read waits
//! for its run.

use super::Pool;
use super::io::ReadFor;
use crate::leaf_queue::Class;
use raidlab_array::{Operation, Outputs};
use raidlab_units::Nanos;
use std::ops::Range;

/// Data blocks `first..end` that are read as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DataRun {
    first: u64,
    end: u64,
}

/// A run being read, and the requests that wait for it.
#[derive(Debug)]
pub(super) struct Flight {
    run: DataRun,
    /// Nobody waited when it was ordered.
    ahead: bool,
    jobs: Vec<u32>,
}

impl Pool {
    /// Orders what a request needs of the blocks `from..to`, which lie under
    /// one level-1 block: all that it reads, and what it overwrites in part.
    pub(super) fn order_for_job(&mut self, now: Nanos, index: u32, from: u64, to: u64) {
        let size = self.map.block_sectors();
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        let (start, count) = (job.request.start.0, job.request.count.0);
        if job.request.operation == Operation::Read {
            self.order(now, from..to, Class::SyncRead, Some(index));
            return;
        }
        let covered = start.div_ceil(size)..(start + count) / size;
        let (first, last) = (start / size, job.end - 1);
        for block in [first, last] {
            if (from..to).contains(&block) && !covered.contains(&block) {
                self.order(now, block..block + 1, Class::SyncRead, Some(index));
            }
        }
    }

    /// Orders a read of what is neither in memory nor a hole.
    pub(super) fn order(&mut self, now: Nanos, blocks: Range<u64>, class: Class, job: Option<u32>) {
        let merged = self.config.queue.aggregation_limit.0 / self.map.block_sectors();
        let mut block = blocks.start;
        while block < blocks.end {
            if self.cache.contains(block) || !self.map.may_hold(block, block + 1) {
                block += 1;
                continue;
            }
            let mut limit = (blocks.end - block).min(merged.max(1));
            let mut known = None;
            for (index, flight) in self.flights.iter().enumerate() {
                if (flight.run.first..flight.run.end).contains(&block) {
                    known = Some(index);
                } else if flight.run.first > block {
                    limit = limit.min(flight.run.first - block);
                }
            }
            if let Some(known) = known {
                block = self.flights[known].run.end;
                self.wait_for(known, job);
                continue;
            }
            let absent = (1..limit).find(|more| self.cache.contains(block + more));
            let Some((place, found)) = self.map.run_from(block, absent.unwrap_or(limit)) else {
                block += 1;
                continue;
            };
            let run = DataRun {
                first: block,
                end: block + found,
            };
            block = run.end;
            if self.start_read(now, place, class, ReadFor::Data(run)) {
                self.last_foreground = Some(now);
                self.flights.push(Flight {
                    run,
                    ahead: job.is_none(),
                    jobs: Vec::new(),
                });
                self.wait_for(self.flights.len() - 1, job);
            } else if let Some(job) = job.and_then(|job| self.jobs.get_mut(job)) {
                job.failed = true;
                return;
            }
        }
    }

    fn wait_for(&mut self, flight: usize, job: Option<u32>) {
        let Some(index) = job else {
            return;
        };
        let flight = &mut self.flights[flight];
        if !flight.jobs.contains(&index)
            && let Some(job) = self.jobs.get_mut(index)
        {
            job.pending += 1;
            flight.jobs.push(index);
        }
    }

    /// A run was read, or could not be.
    pub(super) fn data_read(&mut self, now: Nanos, run: DataRun, good: bool, out: &mut Outputs) {
        let found = self.flights.iter().position(|flight| flight.run == run);
        let Some(index) = found else {
            return;
        };
        let flight = self.flights.swap_remove(index);
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
