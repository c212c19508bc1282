//! BFQ, a scheduler of Linux that shares a disk between processes (`block/bfq-iosched.c` and
//! `bfq-wf2q.c` of 6.12).
//!
//! Each process has a queue for its synchronous requests, reads and direct writes. All others,
//! discards and the writes of a resync, go into one that all processes share. One queue at a
//! time is served:
//!
//! - **Its turn** lasts until its budget of sectors is used up, for 125 ms (30 times as long with a
//!   raised weight), or until it has no request and is not worth waiting for. The next queue, by
//!   weight, is chosen in `bfq/service.rs`. Budgets begin at two thirds of 16384 sectors and grow
//!   and shrink with how the last turn ended, up to what the disk does in 125 ms at its best
//!   (`bfq/rate.rs`). A queue that seeks, or was slow, is charged for its time as if it had read in
//!   order for so long. Requests of the shared queue count three times.
//! - **Of its requests** the one that is nearest to the last one is next; once in a turn the
//!   oldest, if it has waited for 125 ms, or 250 ms in the shared queue.
//! - **Idling**: where a queue runs empty, the disk may be kept idle for it, for 8 ms from the end
//!   of its last request, 2 ms if it seeks, 20 ms if its weight is raised. That is done for a
//!   process that reads a hard disk in order; on a disk without a queue of its own; and, so that
//!   weights are kept, for a raised queue beside others, and for one that is alone.
//! - **Injection**: meanwhile a few requests of others may go, where idling is not for throughput.
//!   Their number is adapted for each process with one request at a time: one more while its
//!   requests take less than one and a half times what they take alone.
//! - **Raised weights**, seeking and thinking: `bfq/process_queue.rs`.
//! - **Limits**: writes may have no more than three quarters of a disk's requests, and the shared
//!   queue no more than half of them; while any weight is raised, six and three sixteenths. The
//!   kernel's limit is on the places of their tags, which reads take as well.
//! - **Merging**: queues that came up within 180 ms of each other are one, at once on flash, and
//!   after 0.6 s on hard disks, unless the process then streams. fio's jobs of a group are such. So
//!   BFQ shares a disk between them only in their first moments, or where they stream.
//! - A disk **has a queue of its own** if it once had more than three requests at a time.
//! - Where nothing is sent though requests wait, it is asked again after 3 ms
//!   (`BLK_MQ_BUDGET_DELAY`), when a request comes, and when the disk has done all that it had.
//!
//! Left out: groups (a `cgroup` with a weight of its own), priorities of processes, merging of
//! queues whose requests are close to each other and their splitting, wakers (`waker_bfqq`),
//! actuators. Times are exact, where the kernel counts ticks.

mod owners;
mod process_queue;
mod rate;
mod service;
mod share;
mod turns;

use super::waiting::{Submitter, Waiting};
use crate::command::{Command, CommandKind};
use owners::{Burst, Process};
use process_queue::{Next, ProcessQueue, SLICE_IDLE, nearer};
use raidlab_units::Nanos;
use rate::PeakRate;
use service::Service;
use std::collections::BTreeMap;

/// The length of a turn (`bfq_timeout`).
const TURN: Nanos = Nanos::from_millis(125);
/// The waiting times after which requests are late: in the shared queue, and of
/// a process (`bfq_fifo_expire`).
const EXPIRE: [Nanos; 2] = [Nanos::from_millis(250), Nanos::from_millis(125)];
/// The longest pause between requests that counts as none (`BFQ_MIN_TT`).
const SHORT: Nanos = Nanos::from_millis(2);
/// The number of samples until it is known whether a disk has a queue, and of requests that show
/// one (`BFQ_HW_QUEUE_SAMPLES`, `BFQ_HW_QUEUE_THRESHOLD`).
const QUEUE_SAMPLES: u32 = 32;
const QUEUE: u32 = 3;
/// The time for which data about injection are valid, the interval of its checks, and the interval
/// after it was too much.
const INJECTION_OLD: Nanos = Nanos::SECOND;
const INJECTION_PAUSE: Nanos = Nanos::from_millis(10);
const THINKS_ANEW: Nanos = Nanos::from_millis(100);
/// The pause after which the shared queue is raised (`bfq_wr_min_inter_arr_async`).
const SHARED_PAUSE: Nanos = Nanos::from_millis(500);

/// A request with the disk.
#[derive(Debug, Clone, Copy)]
struct Sent {
    queue: usize,
    /// The process, if the request is synchronous.
    process: Option<u32>,
    writes: bool,
}

/// The state of BFQ for the requests of a disk.
#[derive(Debug, Clone)]
pub(super) struct Bfq {
    rotational: bool,
    /// All queues so far; the slot of one that is gone is reused.
    queues: Vec<ProcessQueue>,
    processes: BTreeMap<u32, Process>,
    shared: Option<usize>,
    /// The queue whose turn it is.
    serving: Option<usize>,
    service: Service,
    rate: PeakRate,
    with_disk: BTreeMap<u64, Sent>,
    queued: u32,
    /// The number of writing requests, waiting or with the disk.
    writes: usize,
    /// Whether the disk has a queue of its own, once known; and the most requests that it had.
    queueing: Option<bool>,
    queue_samples: u32,
    most: u32,
    /// The end of the last request that was sent, and the time at which the last one was done.
    position: u64,
    completed: Nanos,
    turn_began: Nanos,
    idling_began: Nanos,
    /// The end of idling, and the time at which the queues are checked again.
    idle_until: Option<Nanos>,
    look_again: Option<Nanos>,
    /// The request whose time decides how much may be injected: since when it is measured, whether
    /// it is the next one to be sent, its tag once sent, and whether anything was injected.
    measured_since: Nanos,
    measures_next: bool,
    measured: Option<u64>,
    injected: bool,
    last_created: Option<usize>,
    burst: Burst,
}

impl Bfq {
    pub(super) fn new(rotational: bool) -> Self {
        Self {
            rotational,
            queues: Vec::new(),
            processes: BTreeMap::new(),
            shared: None,
            serving: None,
            service: Service::default(),
            rate: PeakRate::new(rotational),
            with_disk: BTreeMap::new(),
            queued: 0,
            writes: 0,
            queueing: None,
            queue_samples: 0,
            most: 0,
            position: 0,
            completed: Nanos::ZERO,
            turn_began: Nanos::ZERO,
            idling_began: Nanos::ZERO,
            idle_until: None,
            look_again: None,
            measured_since: Nanos::ZERO,
            measures_next: false,
            measured: None,
            injected: false,
            last_created: None,
            burst: Burst::default(),
        }
    }

    /// The time of the next event that is no command.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        self.idle_until.into_iter().chain(self.look_again).min()
    }

    /// Whether one more such request may be held, of so many requests in all.
    pub(super) fn has_room(&self, new: &Waiting, requests: usize) -> bool {
        let raised = self.raised_busy() > 0;
        let limit = match (new.command.kind, new.from.sync) {
            (CommandKind::Read, _) => return true,
            (_, true) if raised => requests * 6 / 16,
            (_, true) => requests * 3 / 4,
            (_, false) if raised => requests * 3 / 16,
            (_, false) => requests / 2,
        };
        self.writes < limit.max(1)
    }

    fn busy(&self) -> usize {
        self.queues.iter().filter(|queue| queue.busy).count()
    }

    fn raised_busy(&self) -> usize {
        let busy = self.queues.iter().filter(|queue| queue.busy);
        busy.filter(|queue| queue.raised).count()
    }

    /// Takes a command whose queue [`Self::owner`] has found, and that was not merged.
    pub(super) fn arrived(&mut self, now: Nanos, new: &Waiting) {
        let Some(own) = new.owner else { return };
        let command = &new.command;
        let writes = command.kind != CommandKind::Read;
        self.writes += usize::from(writes);
        self.queued += 1;
        let queue = &mut self.queues[own];
        let changed = queue.think(now);
        let looks_anew = queue.fewer_at + THINKS_ANEW <= now || !queue.short_think;
        if changed && queue.alone.is_none() && looks_anew {
            queue.reset_injection(now);
            self.measured = None;
        }
        queue.seek(now, command, self.rotational, self.rate.raised_for());
        queue.queued += 1;
        if let Some(process) = self
            .processes
            .get_mut(&new.from.process)
            .filter(|_| new.from.sync)
        {
            process.requests += 1;
            if process.requests <= 1 {
                self.measure(now, own);
            }
            self.queues[own].note_intensity(now);
        }
        let queue = &mut self.queues[own];
        let before = queue.next;
        queue.next = nearer(queue.next, Some(Next::from(command)), self.position);
        let was_raised = queue.raised;
        let mut interactive = false;
        if queue.busy {
            if !was_raised && !queue.sync && queue.raised_at + SHARED_PAUSE < now {
                queue.raised = true;
                queue.raised_for = self.rate.raised_for();
            }
            if before != queue.next {
                self.next_changed(own);
            }
        } else {
            interactive = self.becomes_busy(now, own);
        }
        let queue = &mut self.queues[own];
        if !was_raised || !queue.raised || interactive {
            queue.raised_at = now;
        }
        queue.ends_at(command.end());
        self.wait_is_over(now, own, command.count.0);
    }

    /// Begins to measure, as a process with one request at a time has another one: its time may
    /// show how much can be injected.
    fn measure(&mut self, now: Nanos, own: usize) {
        let nothing_sent = self.with_disk.is_empty();
        let queue = &mut self.queues[own];
        if queue.fewer_at + INJECTION_OLD <= now {
            queue.reset_injection(now);
            self.measured = None;
        }
        let compares = queue.alone.is_some() && self.injected && !nothing_sent;
        let measures = self.serving == Some(own) && (nothing_sent || compares);
        if measures && queue.fewer_at + INJECTION_PAUSE <= now {
            self.measured_since = now;
            self.measures_next = true;
            self.injected &= !nothing_sent;
        }
    }

    /// Notes that a queue has requests again. Returns whether its weight is raised as that of
    /// an interactive process.
    fn becomes_busy(&mut self, now: Nanos, own: usize) -> bool {
        let soon = now <= self.queues[own].last_end + SLICE_IDLE * 3;
        let (smallest, raised_for) = (self.rate.smallest_budget(), self.rate.raised_for());
        let queue = &mut self.queues[own];
        let interactive = !queue.in_burst && queue.was_idle(now);
        let resumes = queue.resumes && soon && queue.share.left() > 0;
        queue.share.budget = match resumes {
            true => queue.share.left().min(queue.budget),
            false => queue.budget.max(queue.next_charge()),
        };
        queue.share.served = 0;
        queue.resumes = resumes;
        if queue.burst_is_over(now) {
            queue.in_burst = false;
            self.burst.forget(own);
        }
        queue.new = false;
        if queue.raise_at_start(now, interactive, raised_for) {
            queue.share.budget = queue.share.budget.min(2 * smallest);
        }
        queue.busy = true;
        queue.resumes = false;
        self.service.activate(&mut self.queues, own, resumes);
        if let Some(serving) = self.serving {
            let (queue, other) = (&self.queues[own], &self.queues[serving]);
            let preempts = resumes && queue.raise() >= other.raise()
                || queue.weight() > other.share.weight
                || !self.is_worth_idling(serving);
            if preempts {
                self.expire(now, serving, turns::End::Preempted);
            }
        }
        interactive
    }

    /// Updates a queue whose next request has changed: if it waits for its turn it is sorted again.
    fn next_changed(&mut self, own: usize) {
        let queue = &mut self.queues[own];
        if queue.next.is_none() || self.serving == Some(own) {
            return;
        }
        let least = queue.budget.max(queue.next_charge());
        let budget = least.max(queue.share.served);
        if queue.share.budget != budget {
            queue.share.budget = budget;
            self.service.requeue(queue);
        }
    }

    /// Ends idling for a queue that has a request again; for a small request it continues, as
    /// others may follow that can be merged with it.
    fn wait_is_over(&mut self, now: Nanos, own: usize, sectors: u64) {
        const SMALL: u64 = 32;
        let queue = &self.queues[own];
        if self.serving != Some(own) || !queue.waited_for {
            return;
        }
        let late = queue.is_late(now);
        let small = queue.queued == 1 && sectors < SMALL;
        if small && !late && self.idling_helps(own) {
            return;
        }
        self.queues[own].waited_for = false;
        self.idle_until = None;
        if late {
            self.expire(now, own, turns::End::Timeout);
        }
    }

    /// Notes that a request of a queue has grown by merging, and whether it begins earlier.
    pub(super) fn grown(&mut self, own: usize, command: &Command, earlier: bool) {
        let queue = &mut self.queues[own];
        let before = queue.next;
        if let Some(next) = queue.next.as_mut().filter(|next| next.tag == command.tag) {
            *next = Next::from(command);
        } else if earlier {
            queue.next = nearer(before, Some(Next::from(command)), self.position);
            if before != queue.next {
                self.next_changed(own);
            }
        }
    }

    /// Notes that two requests of a queue have become one, with the other one's `command`; `gone`
    /// no longer exists.
    pub(super) fn joined(&mut self, own: usize, command: &Command, gone: &Waiting) {
        self.queued -= 1;
        self.writes -= usize::from(command.kind != CommandKind::Read);
        let process = self.processes.get_mut(&gone.from.process);
        if let Some(process) = process.filter(|_| gone.from.sync) {
            process.requests = process.requests.saturating_sub(1);
        }
        let queue = &mut self.queues[own];
        queue.queued -= 1;
        let joined = [command.tag, gone.command.tag];
        if let Some(next) = queue
            .next
            .as_mut()
            .filter(|next| joined.contains(&next.tag))
        {
            *next = Next::from(command);
        }
    }

    /// Handles a request that the disk has done. Returns whether the queues are to be checked.
    pub(super) fn ended(&mut self, now: Nanos, tag: u64) -> bool {
        let Some(sent) = self.with_disk.get(&tag).copied() else {
            return true;
        };
        if self.measured == Some(tag) {
            self.measured_ended(now, sent.queue);
        }
        self.note_queueing();
        self.with_disk.remove(&tag);
        self.writes -= usize::from(sent.writes);
        let process = sent
            .process
            .and_then(|process| self.processes.get_mut(&process));
        if let Some(process) = process {
            process.requests = process.requests.saturating_sub(1);
        }
        let queue = &mut self.queues[sent.queue];
        queue.with_disk -= 1;
        if queue.with_disk == 0 && !queue.busy {
            queue.until = Some(now);
        }
        queue.last_end = now;
        queue.find_soft_at_end(now);
        self.rate.ended(now, self.completed, SHORT, TURN);
        self.completed = now;
        if self.serving == Some(sent.queue) && self.idles_or_expires(now, sent.queue) {
            return false;
        }
        self.with_disk.is_empty()
    }

    /// Notes whether the disk has a queue of its own, when that can be told.
    fn note_queueing(&mut self) {
        let with_disk = u32::try_from(self.with_disk.len()).unwrap_or(u32::MAX);
        self.most = self.most.max(with_disk);
        let few = |own: usize| {
            let queue = &self.queues[own];
            queue.short_think && queue.with_disk + queue.queued < QUEUE && with_disk < QUEUE
        };
        if self.queueing == Some(true)
            || with_disk + self.queued <= QUEUE
            || self.serving.is_some_and(few)
        {
            return;
        }
        self.queue_samples += 1;
        if self.queue_samples > QUEUE_SAMPLES {
            self.queueing = Some(self.most > QUEUE);
            self.most = 0;
            self.queue_samples = 0;
        }
    }

    /// Handles the end of the measured request: more may be injected if it took less than one and a
    /// half times its time alone, and less if not.
    fn measured_ended(&mut self, now: Nanos, own: usize) {
        let time = now - self.measured_since;
        let only = self.with_disk.len() == 1;
        let most = self.most;
        let queue = &mut self.queues[own];
        let before = queue.injected;
        if let Some(alone) = queue.alone.filter(|_| self.injected) {
            let much = time >= alone * 3 / 2;
            if much && before > 0 {
                queue.injected -= 1;
                queue.fewer_at = now;
            } else if !much && before <= most {
                queue.injected += 1;
            }
        }
        match queue.alone {
            None if only => {
                queue.injected = before.max(1);
                queue.alone = Some(time);
            }
            Some(alone) if time < alone || !self.injected && only => queue.alone = Some(time),
            _ => {}
        }
        self.measured = None;
        self.injected = false;
    }

    /// Handles everything due at `now` beside commands. Returns whether the queues are
    /// to be checked.
    pub(super) fn tick(&mut self, now: Nanos) -> bool {
        let is_due = |due: &mut Option<Nanos>| due.take_if(|due| *due <= now).is_some();
        let (idled, looks) = (is_due(&mut self.idle_until), is_due(&mut self.look_again));
        if let Some(own) = self.serving.filter(|_| idled) {
            let queue = &mut self.queues[own];
            queue.waited_for = false;
            if queue.is_late(now) {
                self.expire(now, own, turns::End::IdledTimeout);
            } else if queue.queued == 0 {
                self.expire(now, own, turns::End::TooIdle);
            }
        }
        idled || looks
    }

    /// Notes that processes have ended.
    pub(super) fn exit(&mut self, now: Nanos, ended: impl Fn(u32) -> bool) {
        let gone: Vec<u32> = self
            .processes
            .keys()
            .copied()
            .filter(|&process| ended(process))
            .collect();
        for process in gone {
            self.process_ends(now, process);
        }
    }
}

#[cfg(test)]
mod tests;
