//! The running jobs of a group: their clones, the requests in flight, and their results.
//!
//! Each clone of each job has its own request stream and its own stop clock,
//! as in fio. A clone with an asynchronous engine keeps its depth in flight; a
//! synchronous one has one request in flight. After a completion the clone
//! issues again one host turnaround later. A subject may have a clone sleep with
//! a request; then it issues nothing before it wakes.
//!
//! Latencies are fio's: a request's ends when fio takes notice of it. A clone is one thread. While
//! it flushes it takes notice of nothing, and between flushes only when all its requests are in
//! use, of one (fio's `do_io`, `wait_for_completions` and `fio_libaio_queue`); so with `fsync=1` at
//! queue depth 8 a write's latency is that of seven flushes. It does not flush again before it has
//! taken notice of another request (`should_fsync`). A flush's own latency begins when its request
//! was last submitted: with an asynchronous engine that was its submission as a write, as fio does
//! not look at the clock before it flushes. A discard holds its clone up as a flush does, unless
//! its engine has a queue for them; its own latency begins when it is submitted.
//!
//! A clone with a rate is a source of requests that are due at times. Where it is an open loop
//! (`io_submit_mode=offload`), a request that finds the depth in use waits for a place, and
//! that wait counts: its latency begins when it was due. fio itself begins to count when the
//! request has its place.

mod batch;
mod endings;
mod leaped;
mod load;
mod oldest;
mod requests;
mod zoned;

use crate::latency_target::DepthSearch;
use crate::machine::{Issue, Machine, SimError};
use crate::pace::{Flows, Pace, Pause};
use crate::result::{JobOperations, MemberStatistics};
use crate::steady::{Done, SteadyWatch};
use batch::Flight;
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::{
    Engine, ExitWhat, IoUnit, JobGroup, JobSpec, RequestStream, StopClock, ZonedDevice,
};
use std::collections::VecDeque;

/// One clone of one job.
#[derive(Debug)]
struct Clone {
    job: JobSpec,
    /// The place of the job in its group.
    job_index: usize,
    stream: RequestStream,
    clock: StopClock,
    depth: u32,
    in_flight: u32,
    pace: Pace,
    /// The number of requests that counted towards the clone's share among others; and whether it
    /// waits for the others. Turns that came meanwhile are counted.
    flow_count: u64,
    ahead: bool,
    /// Whether the clone has started: it waits for no other job.
    begun: bool,
    /// The time at which the clone begins; once it has started, the time at which it began.
    begins: Nanos,
    wrote: bool,
    /// Flights that have ended and that fio has not taken notice of, in order.
    ripe: VecDeque<Flight>,
    /// Whether the last request that fio took notice of was a flush.
    flushed_last: bool,
    /// When each request that is not in use was last submitted; the last one is used next.
    submitted: Vec<Nanos>,
    /// Whether a flush, or a discard that is not queued, is in flight: fio waits for it before
    /// anything else. Turns that came meanwhile are counted.
    flushing: bool,
    turns_owed: u32,
    /// The turns that came while the clone slept until a time; they follow the one that wakes it.
    turns_slept: u32,
    /// Whether the subject has the clone sleep with a request.
    asleep: bool,
    /// The write, by its number, that is durable and whose system call has yet to flush.
    owes_flush: Option<usize>,
    /// The requests of a batch that have not been handed over yet, with their flights.
    batch: Vec<(IoUnit, usize)>,
    /// Whether the clone makes no new requests: the amount is done or the time is up.
    stopped: bool,
    /// Whether issuing is held back for a leap.
    held: bool,
    /// The number of the latest leap; turns of an earlier one no longer count (see [`Issue`]).
    era: u32,
    ended: bool,
    /// The time at which the clone ended, once it has.
    ended_at: Nanos,
    /// The search for a depth, if the clone does one; its results count from its end on.
    search: Option<Box<Search>>,
    /// Whether a zone that the clone needs is in use: it looks again when a request has ended.
    waits_for_zone: bool,
    /// The operations of the clone so far, where a job's steadiness is watched.
    done: Done,
    /// The time since which the clone has been reading back what a pass has written, if it does.
    reads_back_since: Option<Nanos>,
    /// The time for which it did so before.
    read_back: Nanos,
}

/// A clone's search for the depth that keeps its latency.
#[derive(Debug)]
struct Search {
    depth: DepthSearch,
    results: JobOperations,
    /// The time from which results are counted.
    since: Nanos,
    /// Whether the reported window begins when nothing is in flight.
    last_window_begins: bool,
}

impl Clone {
    /// Makes clone `index` of all, of the job with the number `job_index`, at the time `now`.
    fn new(
        job: &JobSpec,
        (job_index, index): (usize, u64),
        stream: RequestStream,
        now: Nanos,
        random: &Stream,
    ) -> Self {
        let begin = now + job.start_delay;
        Self {
            stream,
            clock: StopClock::new(job, begin),
            pace: Pace::new(job, random.fork("pace", index), begin),
            flow_count: 0,
            ahead: false,
            begun: job.wait_for.is_none(),
            begins: begin,
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
            owes_flush: None,
            turns_owed: 0,
            turns_slept: 0,
            asleep: false,
            batch: Vec::new(),
            stopped: false,
            held: false,
            era: 0,
            ended: false,
            ended_at: now,
            search: job.latency_target.map(|rule| {
                Box::new(Search {
                    depth: DepthSearch::new(rule, job.io_depth, begin),
                    results: JobOperations::default(),
                    since: begin + job.ramp_time,
                    last_window_begins: false,
                })
            }),
            waits_for_zone: false,
            done: Done::default(),
            reads_back_since: None,
            read_back: Nanos::ZERO,
        }
    }

    /// The time from which the clone's requests count: its own ramp time is over.
    fn counts_from(&self) -> Nanos {
        Nanos(self.begins.0.saturating_add(self.job.ramp_time.0))
    }

    /// The same time where the clone has a ramp time or searches a depth; else zero.
    fn ramps_until(&self) -> Nanos {
        match self.search.is_some() || self.job.ramp_time > Nanos::ZERO {
            true => self.counts_from(),
            false => Nanos::ZERO,
        }
    }

    /// The clone's run time, fio's `runt`: a delay and ramp time do not count, nor a search
    /// for a depth.
    fn runtime(&self) -> Nanos {
        let search = self.search.as_ref().map(|search| search.since);
        let since = search.unwrap_or(self.counts_from());
        match self.begun {
            true => self.ended_at.saturating_sub(since),
            false => Nanos::ZERO,
        }
    }

    /// Puts so many turns into the calendar of this clone, which is number `index`.
    fn schedule(&self, machine: &mut Machine, index: usize, at: Nanos, turns: u32) {
        let issue = Issue {
            clone: index,
            era: self.era,
        };
        for _ in 0..turns {
            machine.calendar.schedule(at, issue);
        }
    }

    /// Turns the clone from writing to reading back what it wrote, or from that to the next pass.
    fn turn_over(&mut self, now: Nanos) {
        match self.reads_back_since.take() {
            None => self.reads_back_since = Some(now),
            Some(since) => self.read_back += now.saturating_sub(since.max(self.counts_from())),
        }
    }

    /// The run times of the clone's reads and of all else. fio's clock of writes stands still while
    /// it reads back what was written, and that of reads while it writes, unless reads are part of
    /// that (`thread_main` of backend.c). Of a backlog's reads fio counts no time, so that their
    /// rate has no meaning: here they have all of it.
    fn runtimes(&self) -> [Nanos; 2] {
        let all = self.runtime();
        if self.job.verify.is_none() {
            return [all; 2];
        }
        let reads = match self.job.reads_beside_writes() {
            true => all,
            false => self.read_back,
        };
        [reads, all.saturating_sub(self.read_back)]
    }

    /// The number of requests that the clone may have in flight.
    fn limit(&self) -> u32 {
        self.search
            .as_ref()
            .map_or(self.depth, |search| search.depth.depth())
    }
}

/// The jobs of a group while they run.
#[derive(Debug)]
pub(crate) struct Jobs {
    clones: Vec<Clone>,
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    /// The number of clones that sleep in the subject.
    sleepers: usize,
    started: Nanos,
    /// The time from which the rows count, as far as it is known: the last ramp time is over and
    /// the last search for a depth has begun its last window. Clones that wait for others count
    /// from their start on; zero: all counts.
    pub(crate) counts_from: Nanos,
    stop_together: bool,
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
        // Processes of earlier groups of the same job file have drawn from streams of their own.
        let before = group.jobs.first().map_or(1, |job| job.first_process);
        let before = u64::from(before.saturating_sub(1));
        for (job_index, job) in group.jobs.iter().enumerate() {
            for clone in 0..job.num_jobs {
                let index = clones.len() as u64;
                let stream = job
                    .request_stream(clone, machine.size(), random.fork("clone", before + index))
                    .map_err(|source| SimError::Job {
                        job: job.name.clone(),
                        source,
                    })?;
                job.flow.into_iter().for_each(|flow| flows.join(flow));
                let numbers = (job_index, index);
                clones.push(Clone::new(job, numbers, stream, machine.now, random));
            }
        }
        for (index, clone) in clones.iter().enumerate().filter(|(_, clone)| clone.begun) {
            clone.schedule(machine, index, clone.begins, clone.depth);
        }
        let watches = endings::watches(group, machine);
        let begun = clones.iter().filter(|clone| clone.begun);
        Ok(Self {
            counts_from: begun.map(Clone::ramps_until).max().unwrap_or(Nanos::ZERO),
            flows,
            zones: ZonedDevice::default(),
            watches,
            clones,
            flights: Vec::new(),
            free: Vec::new(),
            sleepers: 0,
            started: machine.now,
            stop_together: group.stop_together,
            results: vec![JobOperations::default(); group.jobs.len()],
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

    pub(crate) fn leaped(&self) -> Bytes {
        self.leaped
    }

    pub(crate) fn leaped_member(&self, index: usize) -> MemberStatistics {
        self.leaped_members[index]
    }

    /// Stops a clone, which submits nothing more.
    fn stop(&mut self, machine: &mut Machine, index: usize) {
        self.clones[index].stopped = true;
        self.commit(machine, index);
        self.take_notice(machine, index);
        self.end_if_drained(machine, index);
    }

    /// Puts a clone that has to sleep to sleep when nothing is in flight, or at once. One turn
    /// wakes it, which the turns that it owes follow as long as it stays awake: a clone whose next
    /// request is not due yet sleeps again at the first, whatever its depth.
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
        // A clone without a turn to give sleeps already.
        if let Some(further) = std::mem::take(&mut clone.turns_owed).checked_sub(1) {
            clone.turns_slept += further;
            clone.schedule(machine, index, wake.max(machine.now), 1);
        }
    }

    /// Gives a clone the turns that it is owed.
    fn pay(&mut self, machine: &mut Machine, index: usize, at: Nanos) {
        let clone = &mut self.clones[index];
        let turns = std::mem::take(&mut clone.turns_owed);
        clone.schedule(machine, index, at.max(machine.now), turns);
    }

    /// Whether a clone is ahead of its share among others, and waits; else its turn counts, for
    /// which others may be waiting.
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

    /// Lets clones that were ahead look again, as shares have changed.
    fn let_others_go(&mut self, machine: &mut Machine) {
        for index in 0..self.clones.len() {
            if std::mem::take(&mut self.clones[index].ahead) {
                self.pay(machine, index, machine.now);
            }
        }
    }

    /// Ends a stopped clone with nothing in flight, after a last flush.
    fn end_if_drained(&mut self, machine: &mut Machine, index: usize) {
        let clone = &mut self.clones[index];
        if !clone.stopped || clone.in_flight > 0 || clone.ended {
            return;
        }
        if self.flushes_in_the_end(machine, index) {
            return;
        }
        let clone = &mut self.clones[index];
        clone.ended = true;
        clone.ended_at = machine.now;
        if clone.reads_back_since.is_some() {
            clone.turn_over(machine.now);
        }
        let result = &mut self.results[clone.job_index];
        result.runtime = result.runtime.max(clone.runtime());
        let [reads, others] = clone.runtimes();
        result.read_runtime = result.read_runtime.max(reads);
        result.write_runtime = result.write_runtime.max(others);
        if let Some(search) = &clone.search {
            result.add(&search.results);
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

    /// Whether a clone that turns to reading back what it wrote, or from that to the next pass, has
    /// something to wait for first: nothing of the one phase is in flight beside the other.
    fn ends_phase(&mut self, machine: &mut Machine, index: usize) -> bool {
        let clone = &mut self.clones[index];
        if clone.in_flight > 0 {
            clone.pace.pause = Pause::DrainUntil(machine.now);
            clone.turns_owed += 1;
            self.take_notice(machine, index);
            self.sleep_if_drained(machine, index);
            return true;
        }
        if clone.reads_back_since.is_none() && self.flushes_in_the_end(machine, index) {
            return true;
        }
        self.clones[index].turn_over(machine.now);
        false
    }

    /// Flushes at the end of a clone's writing, where the job asks for it; returns whether it does.
    fn flushes_in_the_end(&mut self, machine: &mut Machine, index: usize) -> bool {
        let clone = &mut self.clones[index];
        if !clone.job.end_fsync || !clone.wrote {
            return false;
        }
        clone.wrote = false;
        self.send(machine, index, IoUnit::FLUSH, true);
        true
    }

    /// Begins the clones whose awaited job has ended.
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
            clone.begins = begin;
            self.counts_from = self.counts_from.max(clone.ramps_until());
            if let Some(search) = &mut clone.search {
                search.since = begin + clone.job.ramp_time;
            }
            clone.clock = StopClock::new(&clone.job, begin);
            clone.pace.begin(begin);
            clone.turns_owed = clone.depth;
            self.pay(machine, index, begin);
        }
    }
}
