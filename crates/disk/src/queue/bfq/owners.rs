//! The queues of processes: new processes, bursts of them, and merging of queues.

use super::process_queue::ProcessQueue;
use super::share::Place;
use super::{Bfq, Submitter, turns};
use raidlab_units::Nanos;

/// The interval within which new queues belong together (`bfq_burst_interval`), and the time after
/// which they are merged on hard disks (`bfq_late_stable_merging`).
const TOGETHER: Nanos = Nanos::from_millis(180);
const LATE: Nanos = Nanos::from_millis(600);
/// The number of them that make a large burst (`bfq_large_burst_thresh`).
const LARGE: usize = 8;

/// A process that has sent synchronous requests.
#[derive(Debug, Clone, Copy)]
pub(super) struct Process {
    queue: usize,
    /// The number of its requests, waiting or with the disk.
    pub(super) requests: u32,
    /// The queue with which its own is to be merged.
    merges_with: Option<usize>,
}

/// Queues that came up together.
#[derive(Debug, Clone, Default)]
pub(super) struct Burst {
    queues: Vec<usize>,
    size: usize,
    large: bool,
    last: Option<Nanos>,
}

impl Burst {
    pub(super) fn forget(&mut self, queue: usize) {
        self.queues.retain(|&other| other != queue);
    }
}

impl Bfq {
    /// Finds the queue of a new request.
    pub(in crate::queue) fn owner(&mut self, now: Nanos, from: Submitter) -> usize {
        if !from.sync {
            let shared = self.shared.unwrap_or_else(|| self.create(now, false));
            self.shared = Some(shared);
            return shared;
        }
        let Some(process) = self.processes.get(&from.process).copied() else {
            return self.meet(now, from.process);
        };
        let queue = &self.queues[process.queue];
        let is_old = !queue.new && queue.created + LATE < now;
        if let Some(other) = process
            .merges_with
            .filter(|_| is_old && !self.queueing_flash())
        {
            self.merge(from.process, other);
        }
        let own = self.processes[&from.process].queue;
        self.note_burst(now, own);
        own
    }

    /// Whether the disk is flash with a queue of its own, as is assumed for all flash until
    /// it is known.
    fn queueing_flash(&self) -> bool {
        !self.rotational && self.queueing != Some(false)
    }

    /// Registers a process that sends its first request.
    fn meet(&mut self, now: Nanos, process: u32) -> usize {
        let last = self.last_created;
        let age = last.map(|last| now - self.queues[last].created);
        let merges_with = last.filter(|_| age.is_some_and(|age| age <= TOGETHER));
        let early = merges_with.filter(|_| self.queueing_flash());
        let queue = match early {
            Some(other) => {
                self.queues[other].processes += 1;
                other
            }
            None => self.create(now, true),
        };
        if age.is_none_or(|age| age > LATE) {
            self.last_created = Some(queue);
        }
        let met = Process {
            queue,
            requests: 0,
            merges_with: merges_with.filter(|_| early.is_none()),
        };
        self.processes.insert(process, met);
        self.note_burst(now, queue);
        queue
    }

    /// Creates an empty queue, in a free slot if there is one.
    fn create(&mut self, now: Nanos, sync: bool) -> usize {
        let new = ProcessQueue::new(sync, now, self.rate.largest_budget());
        let is_gone = |queue: &ProcessQueue| {
            queue.processes == 0
                && !queue.busy
                && queue.with_disk == 0
                && queue.share.place == Place::Out
        };
        match self.queues.iter().position(is_gone) {
            Some(slot) => {
                self.queues[slot] = new;
                slot
            }
            None => {
                self.queues.push(new);
                self.queues.len() - 1
            }
        }
    }

    /// Notes a queue that has had no request yet, and so may be one of a burst.
    fn note_burst(&mut self, now: Nanos, own: usize) {
        let busy = self.busy();
        let queue = &mut self.queues[own];
        let burst = &mut self.burst;
        let is_known = burst.queues.contains(&own) || queue.in_burst;
        if !queue.new || is_known || burst.size == 0 && busy > 0 {
            return;
        }
        if burst.last.is_none_or(|last| last + TOGETHER < now) {
            burst.large = false;
            burst.queues.clear();
            burst.size = usize::from(busy == 0);
            burst.queues.extend((busy == 0).then_some(own));
        } else if burst.large {
            queue.in_burst = true;
        } else {
            burst.size += 1;
            burst.queues.push(own);
            if burst.size == LARGE {
                burst.large = true;
                for queue in burst.queues.drain(..) {
                    self.queues[queue].in_burst = true;
                }
            }
        }
        self.burst.last = Some(now);
    }

    /// Merges a process's queue with another one, unless it streams; this is tried once.
    fn merge(&mut self, process: u32, other: usize) {
        let Some(merging) = self.processes.get_mut(&process) else {
            return;
        };
        merging.merges_with = None;
        let old = merging.queue;
        if old == other || self.queues[other].processes == 0 || self.idling_helps(old) {
            return;
        }
        let queue = self.queues[old].clone();
        let new = &mut self.queues[other];
        new.processes += 1;
        new.bound |= queue.bound;
        new.raise_as(&queue);
        self.queues[old].bound = false;
        self.queues[old].raised = false;
        if let Some(merging) = self.processes.get_mut(&process) {
            merging.queue = other;
        }
        self.lose_process(old);
    }

    /// Notes that a process has left a queue.
    fn lose_process(&mut self, own: usize) {
        let queue = &mut self.queues[own];
        queue.processes -= 1;
        if queue.busy && queue.queued == 0 && self.serving != Some(own) {
            self.leave(own);
        }
        if self.queues[own].processes == 0 {
            self.last_created = self.last_created.filter(|&last| last != own);
            self.burst.forget(own);
            for process in self.processes.values_mut() {
                process.merges_with = process.merges_with.filter(|&other| other != own);
            }
        }
    }

    /// Notes that a process has ended.
    pub(super) fn process_ends(&mut self, now: Nanos, process: u32) {
        let Some(ended) = self.processes.remove(&process) else {
            return;
        };
        if self.serving == Some(ended.queue) {
            self.end_turn(now, ended.queue, turns::End::Timeout);
        }
        self.lose_process(ended.queue);
    }
}
