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
//! before it flushes. A discard holds its clone up as a flush does, unless its engine has
//! a queue for them; its own latency begins when it is submitted.

mod endings;
mod zoned;

use crate::latency_target::{DepthSearch, Step};
use crate::machine::{Issue, Machine, SimError};
use crate::pace::{Flows, Pace, Pause};
use crate::result::{JobOperations, MemberStatistics};
use crate::steady::{Done, SteadyWatch};
use hdrhistogram::Histogram;
use raidlab_array::{Operation, Request, RequestError, RequestId};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use raidlab_workload::{
    Direction, Engine, ExitWhat, IoUnit, JobGroup, JobSpec, RequestStream, StopClock, ZonedDevice,
};
use std::collections::VecDeque;
use zoned::Way;

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
    /// A flush, or a discard that is not queued, is in flight: fio waits for it before
    /// anything else. Turns that came meanwhile are counted.
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
    /// When it ended.
    ended_at: Nanos,
    /// It looks for a depth; its results so far are its own, and count from then on.
    search: Option<Box<Search>>,
    /// A zone that it needs is in use: it looks again when a request has ended.
    waits_for_zone: bool,
    /// What it did so far, where somebody looks at that.
    done: Done,
}

/// A clone's search for the depth that keeps its latency.
#[derive(Debug)]
struct Search {
    depth: DepthSearch,
    results: JobOperations,
    /// What is reported began then.
    since: Nanos,
    /// What is reported begins when nothing is in flight.
    last_window_begins: bool,
}

impl Clone {
    /// How many requests it may have in flight.
    fn limit(&self) -> u32 {
        self.search
            .as_ref()
            .map_or(self.depth, |search| search.depth.depth())
    }
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    clone: usize,
    issued: Nanos,
    direction: Direction,
    offset: Bytes,
    bytes: Bytes,
    /// The clone does nothing else meanwhile.
    holds_up: bool,
    /// The flight of the first range, and the ranges that have not ended, counted there.
    first: usize,
    ranges: u32,
    failed: bool,
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
    stop_together: bool,
    ramp: Nanos,
    flows: Flows,
    pub(crate) results: Vec<JobOperations>,
    leaped: Bytes,
    leaped_members: Vec<MemberStatistics>,
    zones: ZonedDevice,
    watches: Vec<SteadyWatch>,
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
                    ended_at: machine.now,
                    search: job.latency_target.map(|rule| {
                        Box::new(Search {
                            depth: DepthSearch::new(rule, job.io_depth, begin),
                            results: JobOperations::new(),
                            since: machine.now + job.ramp_time,
                            last_window_begins: false,
                        })
                    }),
                    waits_for_zone: false,
                    done: Done::default(),
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
        let watches = endings::watches(group, machine);
        Ok(Self {
            flows,
            zones: ZonedDevice::default(),
            watches,
            clones,
            flights: Vec::new(),
            free: Vec::new(),
            sleepers: 0,
            started: machine.now,
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

    /// fio's `runt` of the group: ramp time does not count, nor a search for a depth.
    pub(crate) fn runtime(&self) -> Nanos {
        let of = |clone: &Clone| {
            let search = clone.search.as_ref().map(|search| search.since);
            let since = search.unwrap_or(self.started + self.ramp);
            clone.ended_at.saturating_sub(since)
        };
        self.clones.iter().map(of).max().unwrap_or(Nanos::ZERO)
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
        let Some(clone) = self.clones.get_mut(index) else {
            self.look_whether_even(machine, index);
            return;
        };
        if issue.era != clone.era {
            return;
        }
        if clone.stopped {
            self.end_if_drained(machine, index);
            return;
        }
        let full = clone.pace.refills(clone.in_flight, clone.depth)
            || (clone.search.is_some() && clone.in_flight >= clone.limit());
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
                match self.way(machine, index, unit) {
                    Way::Device(unit) => self.send(machine, index, unit, true),
                    Way::Nobody(unit) => self.send(machine, index, unit, false),
                    Way::Later => {}
                }
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

    /// A request leaves; where the device has nothing to do with it, it has ended.
    fn send(&mut self, machine: &mut Machine, index: usize, unit: IoUnit, to_device: bool) {
        let clone = &mut self.clones[index];
        // The further ranges of a discard; a vector of none costs nothing.
        let further: Vec<IoUnit> = match unit.direction {
            Direction::Trim => std::iter::from_fn(|| clone.stream.next_range()).collect(),
            _ => Vec::new(),
        };
        let bytes = Bytes(unit.length.0 + further.iter().map(|range| range.length.0).sum::<u64>());
        clone.pace.issue(&unit, machine.now);
        clone.in_flight += 1;
        // Once the depth is reached, it is refilled from below.
        clone.pace.refills(clone.in_flight, clone.depth);
        clone.wrote |= unit.direction == Direction::Write;
        let holds_up = match unit.direction {
            Direction::Flush => true,
            Direction::Trim => clone.job.engine == Engine::Libaio && !clone.job.queues_trims,
            Direction::Read | Direction::Write => false,
        };
        clone.flushing |= holds_up;
        let submitted = clone.submitted.pop();
        let issued = match (unit.direction, clone.job.engine) {
            (Direction::Flush, Engine::Libaio) => submitted.unwrap_or(self.started),
            _ => machine.now,
        };
        let is_null = clone.job.engine == Engine::Null;
        let flight = Flight {
            clone: index,
            issued,
            direction: unit.direction,
            offset: unit.offset,
            bytes,
            holds_up,
            first: 0,
            ranges: 1 + u32::try_from(further.len()).unwrap_or(0),
            failed: false,
        };
        let first = self.fly(flight);
        if let Some(flight) = &mut self.flights[first] {
            flight.first = first;
        }
        if is_null || !to_device {
            // Nobody is asked: the answer is there.
            self.ended(machine, first);
            return;
        }
        self.hand_over(machine, index, &unit, first);
        for range in &further {
            let id = self.fly(Flight { first, ..flight });
            self.hand_over(machine, index, range, id);
        }
    }

    /// A place among the flights.
    fn fly(&mut self, flight: Flight) -> usize {
        match self.free.pop() {
            Some(id) => {
                self.flights[id] = Some(flight);
                id
            }
            None => {
                self.flights.push(Some(flight));
                self.flights.len() - 1
            }
        }
    }

    /// Gives a request to the subject.
    fn hand_over(&mut self, machine: &mut Machine, index: usize, unit: &IoUnit, id: usize) {
        let process = u32::try_from(index).unwrap_or(u32::MAX);
        let durable = self.clones[index].job.sync_writes;
        // Requests smaller than a sector, or not on one, move whole sectors.
        let first = unit.offset.0 / 512;
        let end = (unit.offset.0 + unit.length.0).div_ceil(512);
        machine.submit(Request {
            id: RequestId(id as u64),
            operation: match unit.direction {
                Direction::Read => Operation::Read,
                Direction::Write => Operation::Write,
                Direction::Trim => Operation::Discard,
                Direction::Flush => Operation::Flush,
            },
            start: Sectors(first),
            count: Sectors(end - first),
            force_unit_access: unit.direction == Direction::Write && durable,
            process,
        });
        if !self.clones[index].asleep && machine.subject.holds_submitter(process) {
            self.clones[index].asleep = true;
            self.sleepers += 1;
        }
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
    ///
    /// # Errors
    /// It failed, and its job does not go on after that.
    pub(crate) fn completed(
        &mut self,
        machine: &mut Machine,
        id: RequestId,
        result: Result<(), RequestError>,
    ) -> Result<(), SimError> {
        let id = usize::try_from(id.0).unwrap_or(usize::MAX);
        let Some(range) = self.flights.get(id).copied().flatten() else {
            return result.map_err(SimError::Request);
        };
        if let Err(error) = result {
            let tolerates = self.clones[range.clone].job.tolerates_errors;
            // fio counts a flush among the writes.
            if !tolerates[range.direction.index().unwrap_or(1)] {
                return Err(SimError::Request(error));
            }
        }
        if range.first != id {
            self.flights[id] = None;
            self.free.push(id);
        }
        if let Some(flight) = &mut self.flights[range.first] {
            flight.failed |= result.is_err();
            flight.ranges -= 1;
            if flight.ranges == 0 {
                self.ended(machine, range.first);
            }
        }
        Ok(())
    }

    /// All of a request is done.
    fn ended(&mut self, machine: &mut Machine, id: usize) {
        let Some(flight) = self.flights[id].take() else {
            return;
        };
        self.free.push(id);
        let clone = &mut self.clones[flight.clone];
        let flushes = clone.job.fsync_every > 0 || clone.job.fdatasync_every > 0;
        if flushes && !flight.holds_up {
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
            let all_in_use = clone.in_flight >= clone.limit();
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
        self.release_zone(machine, flight);
        if now >= self.started + self.ramp && !flight.failed {
            self.count(flight, now);
        }
        let clone = &mut self.clones[flight.clone];
        clone.in_flight -= 1;
        clone.submitted.push(flight.issued);
        clone.flushed_last = flight.direction == Direction::Flush;
        let mut turns = 1;
        if flight.holds_up {
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
        let step = self.search_depth(flight, now);
        let clone = &mut self.clones[flight.clone];
        if step == Step::Drain {
            clone.pace.pause = Pause::DrainFor(Nanos::ZERO);
        }
        if step == Step::End || clone.pace.is_too_slow(now) {
            clone.stopped = true;
            self.end_if_drained(machine, flight.clone);
            return;
        }
        if !matches!(clone.pace.pause, Pause::None | Pause::Until(_)) {
            clone.turns_owed += turns;
            self.sleep_if_drained(machine, flight.clone);
            return;
        }
        let low = !clone.pace.refills(clone.in_flight, clone.depth)
            && (clone.search.is_none() || clone.in_flight < clone.limit());
        if low && !clone.flushing && !clone.asleep && !clone.ahead {
            turns += std::mem::take(&mut clone.turns_owed);
        }
        let mut next = now + machine.host.turnaround;
        if clone.job.engine == Engine::Null || clone.job.zones.is_some() {
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

    /// A request counts in its job's results.
    fn count(&mut self, flight: &Flight, now: Nanos) {
        let clone = &mut self.clones[flight.clone];
        let latency = now - flight.issued;
        let results = match &mut clone.search {
            Some(search) => &mut search.results,
            None => &mut self.results[clone.job_index],
        };
        // The flush at the job's end does not count.
        if flight.direction == Direction::Flush && clone.stopped {
            return;
        }
        results.of(flight.direction).record(flight.bytes, latency);
        if flight.direction != Direction::Flush {
            clone.done = clone.done.plus(Done {
                ios: 1,
                bytes: flight.bytes.0,
                latency: u128::from(latency.0),
            });
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
            self.send(machine, index, flush, true);
            return;
        }
        clone.ended = true;
        clone.ended_at = machine.now;
        if let Some(search) = &clone.search {
            self.results[clone.job_index].add(&search.results);
        }
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
            && !clone.job.pattern.trims()
            && clone.search.is_none()
            && self.watches.is_empty()
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
