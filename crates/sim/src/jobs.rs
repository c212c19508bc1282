//! The running jobs of a group: who may issue, what is in flight, what ended.
//!
//! Each clone of each job has its own request stream and its own stop clock,
//! as in fio. A clone with an asynchronous engine keeps its depth in flight; a
//! synchronous one has one request in flight. After a completion the clone
//! issues again one host turnaround later. A subject may have a clone sleep with
//! a request; then it issues nothing before it wakes.
//!
//! Latencies are fio's: a request's ends when fio takes notice of it. A clone is one
//! thread. While it flushes it takes notice of nothing, and between flushes only when
//! all its requests are in use, of one (fio's `do_io`, `wait_for_completions` and
//! `fio_libaio_queue`); so with `fsync=1` at queue depth 8 a write's latency is that of
//! seven flushes. It does not flush again before it has taken notice of another request
//! (`should_fsync`). A flush's own latency begins when its request was last submitted:
//! with an asynchronous engine that was as a write, as fio does not look at the clock
//! before it flushes.

use crate::machine::{Issue, Machine, SimError};
use crate::pace::{Flows, Pace, Pause};
use crate::result::{JobOperations, MemberStatistics};
use hdrhistogram::Histogram;
use raidlab_array::{Operation, Request, RequestId};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use raidlab_workload::{
    Direction, Engine, ExitWhat, IoUnit, JobGroup, JobSpec, RequestStream, StopClock,
};
use std::collections::VecDeque;

/// One clone of one job.
#[derive(Debug)]
struct Clone {
    job: JobSpec,
    /// Place of the job in its group.
    job_index: usize,
    stream: RequestStream,
    clock: StopClock,
    depth: u32,
    in_flight: u32,
    pace: Pace,
    /// Requests that counted towards its share among others; and whether it
    /// waits for the others. Turns that came meanwhile are counted.
    flow_count: u64,
    ahead: bool,
    /// It has started: it waits for no other job.
    begun: bool,
    wrote: bool,
    /// What has ended and fio has not taken notice of, in order.
    ripe: VecDeque<Flight>,
    /// What fio took notice of last was a flush.
    flushed_last: bool,
    /// When each request that is not in use was last submitted; the next to be used at
    /// the end.
    submitted: Vec<Nanos>,
    /// A flush is in flight: fio waits for it before anything else. Turns
    /// that came meanwhile are counted.
    flushing: bool,
    turns_owed: u32,
    /// The subject has it sleep with a request; turns that came meanwhile are
    /// counted.
    asleep: bool,
    /// No new requests: the amount is done or the time is up.
    stopped: bool,
    /// Issuing is held back for a leap.
    held: bool,
    /// Which turns count: see [`Issue`].
    era: u32,
    ended: bool,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    clone: usize,
    issued: Nanos,
    direction: Direction,
    bytes: Bytes,
}

/// The jobs of a group while they run.
#[derive(Debug)]
pub(crate) struct Jobs {
    clones: Vec<Clone>,
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    /// Clones that sleep in the subject.
    sleepers: usize,
    started: Nanos,
    last_end: Nanos,
    stop_together: bool,
    ramp: Nanos,
    flows: Flows,
    pub(crate) results: Vec<JobOperations>,
    leaped: Bytes,
    leaped_members: Vec<MemberStatistics>,
}

impl Jobs {
    /// Starts every clone: each issues its whole depth at once.
    pub(crate) fn start(
        group: &JobGroup,
        machine: &mut Machine,
        random: &Stream,
    ) -> Result<Self, SimError> {
        let mut clones = Vec::new();
        let mut flows = Flows::default();
        for (job_index, job) in group.jobs.iter().enumerate() {
            for clone in 0..job.num_jobs {
                let index = clones.len() as u64;
                let stream = job
                    .request_stream(clone, machine.size(), random.fork("clone", index))
                    .map_err(|source| SimError::Job {
                        job: job.name.clone(),
                        source,
                    })?;
                job.flow.into_iter().for_each(|flow| flows.join(flow));
                let begin = machine.now + job.start_delay;
                clones.push(Clone {
                    stream,
                    clock: StopClock::new(job, begin),
                    pace: Pace::new(job, random.fork("pace", index), begin),
                    flow_count: 0,
                    ahead: false,
                    begun: job.wait_for.is_none(),
                    depth: match job.engine {
                        Engine::Libaio => job.io_depth,
                        Engine::Sync | Engine::Null => 1,
                    },
                    job: job.clone(),
                    job_index,
                    in_flight: 0,
                    wrote: false,
                    ripe: VecDeque::new(),
                    flushed_last: false,
                    submitted: Vec::new(),
                    flushing: false,
                    turns_owed: 0,
                    asleep: false,
                    stopped: false,
                    held: false,
                    era: 0,
                    ended: false,
                });
            }
        }
        let ramp = group
            .jobs
            .iter()
            .map(|job| job.ramp_time)
            .max()
            .unwrap_or(Nanos::ZERO);
        for (index, clone) in clones.iter().enumerate().filter(|(_, clone)| clone.begun) {
            let begin = machine.now + clone.job.start_delay;
            let issue = Issue {
                clone: index,
                era: 0,
            };
            for _ in 0..clone.depth {
                machine.calendar.schedule(begin, issue);
            }
        }
        Ok(Self {
            flows,
            clones,
            flights: Vec::new(),
            free: Vec::new(),
            sleepers: 0,
            started: machine.now,
            last_end: machine.now,
            stop_together: group.stop_together,
            ramp,
            results: group.jobs.iter().map(|_| JobOperations::new()).collect(),
            leaped: Bytes(0),
            leaped_members: vec![MemberStatistics::default(); machine.drives.len()],
        })
    }

    pub(crate) fn is_done(&self) -> bool {
        self.clones.iter().all(|clone| clone.ended)
    }

    pub(crate) fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// fio's `runt` of the group: ramp time does not count.
    pub(crate) fn runtime(&self) -> Nanos {
        self.last_end.saturating_sub(self.started + self.ramp)
    }

    pub(crate) fn leaped(&self) -> Bytes {
        self.leaped
    }

    pub(crate) fn leaped_member(&self, index: usize) -> MemberStatistics {
        self.leaped_members[index]
    }

    /// One turn of a clone: it issues a request if it may.
    pub(crate) fn issue(&mut self, machine: &mut Machine, issue: Issue) {
        let now = machine.now;
        let index = issue.clone;
        let clone = &mut self.clones[index];
        if issue.era != clone.era {
            return;
        }
        if clone.stopped {
            self.end_if_drained(machine, index);
            return;
        }
        let full = clone.pace.refills(clone.in_flight, clone.depth);
        if clone.flushing || clone.asleep || full {
            clone.turns_owed += 1;
            self.take_notice(machine, index);
            return;
        }
        match clone.pace.pause {
            Pause::Until(time) if now < time => {
                machine.calendar.schedule(time, issue);
                return;
            }
            Pause::None | Pause::Until(_) => clone.pace.pause = Pause::None,
            Pause::DrainFor(_) | Pause::DrainUntil(_) => {
                clone.turns_owed += 1;
                self.take_notice(machine, index);
                self.sleep_if_drained(machine, index);
                return;
            }
        }
        if !clone.clock.may_issue(now) {
            self.stop(machine, index);
            return;
        }
        if self.waits_for_others(machine, index) {
            return;
        }
        let clone = &mut self.clones[index];
        if clone.flushed_last {
            clone.stream.pass_over_flush();
        }
        let drawn = clone.pace.waiting.take();
        match drawn.or_else(|| clone.stream.next_unit()) {
            Some(unit) => {
                if let Some(due) = clone.pace.due(unit.direction).filter(|&due| due > now) {
                    clone.pace.waiting = Some(unit);
                    clone.pace.pause = clone.pace.sleep(clone.clock.no_later(due));
                    clone.turns_owed += 1;
                    self.take_notice(machine, index);
                    self.sleep_if_drained(machine, index);
                    return;
                }
                self.send(machine, index, unit);
                self.take_notice(machine, index);
            }
            None => self.stop(machine, index),
        }
    }

    /// The clone submits nothing more.
    fn stop(&mut self, machine: &mut Machine, index: usize) {
        self.clones[index].stopped = true;
        self.take_notice(machine, index);
        self.end_if_drained(machine, index);
    }

    /// A clone that has to sleep does so when nothing is in flight, or at once;
    /// the turns that it owes come when it wakes.
    fn sleep_if_drained(&mut self, machine: &mut Machine, index: usize) {
        let clone = &mut self.clones[index];
        let wake = match clone.pace.pause {
            Pause::None => return,
            Pause::Until(time) => time,
            Pause::DrainFor(_) | Pause::DrainUntil(_) if clone.in_flight > 0 => return,
            Pause::DrainFor(time) => machine.now + machine.host.turnaround + time,
            Pause::DrainUntil(time) => time,
        };
        clone.pace.pause = Pause::Until(wake);
        self.pay(machine, index, wake);
    }

    /// Gives a clone the turns that it is owed.
    fn pay(&mut self, machine: &mut Machine, index: usize, at: Nanos) {
        let clone = &mut self.clones[index];
        let issue = Issue {
            clone: index,
            era: clone.era,
        };
        for _ in 0..std::mem::take(&mut clone.turns_owed) {
            machine.calendar.schedule(at.max(machine.now), issue);
        }
    }

    /// Whether a clone is ahead of its share among others, and waits; else its
    /// turn counts, which may be what others wait for.
    fn waits_for_others(&mut self, machine: &mut Machine, index: usize) -> bool {
        let clone = &mut self.clones[index];
        let Some(flow) = clone.job.flow else {
            return false;
        };
        if clone.pace.waiting.is_some() {
            return false;
        }
        if self.flows.is_ahead(flow, clone.flow_count) {
            clone.turns_owed += 1;
            clone.ahead = flow.sleep == Nanos::ZERO;
            if !clone.ahead {
                clone.pace.pause = Pause::DrainFor(flow.sleep);
                self.sleep_if_drained(machine, index);
            }
            return true;
        }
        clone.flow_count += 1;
        self.let_others_go(machine);
        false
    }

    /// Shares have changed: whoever was ahead looks again.
    fn let_others_go(&mut self, machine: &mut Machine) {
        for index in 0..self.clones.len() {
            if std::mem::take(&mut self.clones[index].ahead) {
                self.pay(machine, index, machine.now);
            }
        }
    }

    fn send(&mut self, machine: &mut Machine, index: usize, unit: IoUnit) {
        let process = u32::try_from(index).unwrap_or(u32::MAX);
        let clone = &mut self.clones[index];
        clone.pace.issue(&unit, machine.now);
        clone.in_flight += 1;
        // Once the depth is reached, it is refilled from below.
        clone.pace.refills(clone.in_flight, clone.depth);
        clone.wrote |= unit.direction == Direction::Write;
        clone.flushing |= unit.direction == Direction::Flush;
        let submitted = clone.submitted.pop();
        let issued = match (unit.direction, clone.job.engine) {
            (Direction::Flush, Engine::Libaio) => submitted.unwrap_or(self.started),
            _ => machine.now,
        };
        let flight = Flight {
            clone: index,
            issued,
            direction: unit.direction,
            bytes: unit.length,
        };
        let id = match self.free.pop() {
            Some(id) => {
                self.flights[id] = Some(flight);
                id
            }
            None => {
                self.flights.push(Some(flight));
                self.flights.len() - 1
            }
        };
        if clone.job.engine == Engine::Null {
            // Nobody is asked: the answer is there.
            self.completed(machine, RequestId(id as u64));
            return;
        }
        // Requests smaller than a sector, or not on one, move whole sectors.
        let first = unit.offset.0 / 512;
        let end = (unit.offset.0 + unit.length.0).div_ceil(512);
        machine.submit(Request {
            id: RequestId(id as u64),
            operation: match unit.direction {
                Direction::Read => Operation::Read,
                Direction::Write => Operation::Write,
                Direction::Flush => Operation::Flush,
            },
            start: Sectors(first),
            count: Sectors(end - first),
            force_unit_access: unit.direction == Direction::Write && clone.job.sync_writes,
            process,
        });
        self.clones[index].asleep = machine.subject.holds_submitter(process);
        self.sleepers += usize::from(self.clones[index].asleep);
    }

    /// Lets go on whom the subject no longer has sleep.
    pub(crate) fn wake(&mut self, machine: &mut Machine) {
        if self.sleepers == 0 {
            return;
        }
        for (index, clone) in self.clones.iter_mut().enumerate() {
            let process = u32::try_from(index).unwrap_or(u32::MAX);
            if !clone.asleep || machine.subject.holds_submitter(process) {
                continue;
            }
            clone.asleep = false;
            self.sleepers -= 1;
            let issue = Issue {
                clone: index,
                era: clone.era,
            };
            for _ in 0..std::mem::take(&mut clone.turns_owed) {
                machine.calendar.schedule(machine.now, issue);
            }
        }
    }

    /// A request came back.
    pub(crate) fn completed(&mut self, machine: &mut Machine, id: RequestId) {
        let id = usize::try_from(id.0).unwrap_or(usize::MAX);
        let Some(flight) = self.flights.get_mut(id).and_then(Option::take) else {
            return;
        };
        self.free.push(id);
        let clone = &mut self.clones[flight.clone];
        let flushes = clone.job.fsync_every > 0 || clone.job.fdatasync_every > 0;
        if flushes && flight.direction != Direction::Flush {
            clone.ripe.push_back(flight);
        } else {
            self.noticed(machine, &flight);
        }
        self.take_notice(machine, flight.clone);
    }

    /// A clone's thread takes notice of what has ended if nothing else is to be done: it
    /// does not flush, and has nothing left to submit.
    fn take_notice(&mut self, machine: &mut Machine, index: usize) {
        loop {
            let clone = &mut self.clones[index];
            let all_in_use = clone.in_flight == clone.depth;
            let waits = clone.pace.waits_for_answers();
            if clone.flushing || !(all_in_use || clone.stopped || waits) {
                return;
            }
            let Some(flight) = clone.ripe.pop_front() else {
                return;
            };
            self.noticed(machine, &flight);
        }
    }

    /// fio knows that a request has ended: the clone will issue again after the
    /// turnaround.
    fn noticed(&mut self, machine: &mut Machine, flight: &Flight) {
        let now = machine.now;
        if now >= self.started + self.ramp {
            let results = &mut self.results[self.clones[flight.clone].job_index];
            let last = self.clones[flight.clone].stopped;
            let result = match flight.direction {
                Direction::Read => Some(&mut results.reads),
                Direction::Write => Some(&mut results.writes),
                // The one at the job's end does not count.
                Direction::Flush if last => None,
                Direction::Flush => Some(&mut results.syncs),
            };
            if let Some(result) = result {
                result.record(flight.bytes, now - flight.issued);
            }
        }
        let clone = &mut self.clones[flight.clone];
        clone.in_flight -= 1;
        clone.submitted.push(flight.issued);
        clone.flushed_last = flight.direction == Direction::Flush;
        let mut turns = 1;
        if flight.direction == Direction::Flush {
            clone.flushing = false;
            turns += std::mem::take(&mut clone.turns_owed);
        }
        if clone.stopped {
            self.end_if_drained(machine, flight.clone);
            return;
        }
        if clone.held {
            return;
        }
        clone.pace.complete(flight.direction, flight.bytes.0, now);
        if clone.pace.is_too_slow(now) {
            clone.stopped = true;
            self.end_if_drained(machine, flight.clone);
            return;
        }
        if !matches!(clone.pace.pause, Pause::None | Pause::Until(_)) {
            clone.turns_owed += turns;
            self.sleep_if_drained(machine, flight.clone);
            return;
        }
        let low = !clone.pace.refills(clone.in_flight, clone.depth);
        if low && !clone.flushing && !clone.asleep && !clone.ahead {
            turns += std::mem::take(&mut clone.turns_owed);
        }
        let mut next = now + machine.host.turnaround;
        if clone.job.engine == Engine::Null {
            // Without a device time must pass still.
            next = next.max(now + Nanos(1));
        }
        let issue = Issue {
            clone: flight.clone,
            era: clone.era,
        };
        for _ in 0..turns {
            machine.calendar.schedule(next, issue);
        }
    }

    /// A stopped clone with nothing in flight has ended, after a last flush
    /// where the job asks for one.
    fn end_if_drained(&mut self, machine: &mut Machine, index: usize) {
        let clone = &mut self.clones[index];
        if !clone.stopped || clone.in_flight > 0 || clone.ended {
            return;
        }
        if clone.job.end_fsync && clone.wrote {
            clone.wrote = false;
            let flush = IoUnit {
                direction: Direction::Flush,
                offset: Bytes(0),
                length: Bytes(0),
            };
            self.send(machine, index, flush);
            return;
        }
        clone.ended = true;
        self.last_end = self.last_end.max(machine.now);
        let (group, all) = (
            clone.job.report_group,
            clone.job.exit_what == ExitWhat::Stonewall,
        );
        if let Some(flow) = clone.job.flow {
            self.flows.leave(flow, clone.flow_count);
            self.let_others_go(machine);
        }
        self.begin_waiting(machine);
        if self.stop_together {
            for other in 0..self.clones.len() {
                let ends = all || self.clones[other].job.report_group == group;
                if ends && !self.clones[other].stopped {
                    self.stop(machine, other);
                }
            }
        }
    }

    /// Clones begin whose awaited job has ended.
    fn begin_waiting(&mut self, machine: &mut Machine) {
        for index in 0..self.clones.len() {
            let clone = &self.clones[index];
            let awaited = clone.job.wait_for.as_deref().filter(|_| !clone.begun);
            let Some(awaited) = awaited.filter(|_| !clone.stopped) else {
                continue;
            };
            let mut others = self.clones.iter();
            if others.any(|other| other.job.name == awaited && !other.ended) {
                continue;
            }
            let begin = machine.now + clone.job.start_delay;
            let clone = &mut self.clones[index];
            clone.begun = true;
            clone.clock = StopClock::new(&clone.job, begin);
            clone.pace.begin(begin);
            clone.turns_owed = clone.depth;
            self.pay(machine, index, begin);
        }
    }

    /// The only clone, if the group is one sequential stream that ends by its
    /// amount alone: what can be leaped over.
    pub(crate) fn lone_sequential(&self) -> Option<(Direction, Bytes, Bytes)> {
        let [clone] = self.clones.as_slice() else {
            return None;
        };
        let free = clone.pace.is_free()
            && clone.job.flow.is_none()
            && clone.job.engine != Engine::Null
            && clone.begun;
        if clone.stopped || clone.job.runtime.is_some() || !free {
            return None;
        }
        let direction = if clone.job.pattern.writes() {
            Direction::Write
        } else {
            Direction::Read
        };
        let (offset, left) = clone.stream.sequential_remaining()?;
        Some((direction, offset, left))
    }

    /// Holds back the lone clone: what is in flight completes, nothing new is
    /// issued.
    pub(crate) fn hold(&mut self) {
        let clone = &mut self.clones[0];
        clone.held = true;
        clone.era += 1;
        clone.turns_owed = 0;
    }

    /// Goes on issuing after [`Self::hold`] and a drain.
    pub(crate) fn release(&mut self, machine: &mut Machine) {
        let clone = &mut self.clones[0];
        clone.held = false;
        let issue = Issue {
            clone: 0,
            era: clone.era,
        };
        for _ in 0..clone.depth {
            machine.calendar.schedule(machine.now, issue);
        }
    }

    /// Passes over `bytes` of the lone stream; the skipped I/Os went like
    /// those recorded since `before`. Returns the bytes really passed.
    pub(crate) fn skip(&mut self, bytes: Bytes, before: &Histogram<u64>) -> Bytes {
        let clone = &mut self.clones[0];
        let ios = clone.stream.skip_sequential(bytes);
        let skipped = clone.job.block_size * ios;
        let result = if clone.job.pattern.writes() {
            &mut self.results[0].writes
        } else {
            &mut self.results[0].reads
        };
        result.record_like(before, ios, skipped);
        self.leaped += skipped;
        skipped
    }

    pub(crate) fn add_leaped_member(&mut self, index: usize, statistics: MemberStatistics) {
        self.leaped_members[index] = self.leaped_members[index].plus(statistics);
    }
}
