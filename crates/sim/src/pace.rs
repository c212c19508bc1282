//! The limits that hold a clone back beside its depth: a rate, pauses to think, a depth that is
//! refilled in batches, and its share among other jobs.
//!
//! A rate makes the clone a source of requests that are due at times of their own
//! ([`Arrivals`]); without one the next request is due after a completion.
//!
//! The rules are those of fio's `rate_ddir` (io_u.c), `usec_for_io`,
//! `handle_thinktime` and `check_min_rate` (backend.c) and
//! `flow_threshold_exceeded` (flow.c). A clone that has to sleep waits for all
//! of its requests in flight first, but not under `io_submit_mode=offload`. A mixed job
//! issues in the other direction where that is behind its rate, so that each keeps its own.

use raidlab_random::Stream;
use raidlab_units::Nanos;
use raidlab_workload::{Arrivals, Direction, Flow, IoUnit, JobSpec, Rate, Thinking};

/// The time that a job may settle before its least rate counts.
const SETTLE: Nanos = Nanos::from_secs(2);
/// The time between two checks of the least rate unless the job sets another.
const CYCLE: Nanos = Nanos::SECOND;

/// The pause of a clone before its next request, by which it keeps its rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pause {
    /// The clone submits its next request at once.
    None,
    /// The clone sleeps for this time once nothing is in flight.
    DrainFor(Nanos),
    /// The clone sleeps until this time once nothing is in flight.
    DrainUntil(Nanos),
    /// The clone sleeps until this time, whatever is in flight.
    Until(Nanos),
}

/// The completed requests in one direction.
#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    bytes: u64,
    requests: u64,
}

/// The rate that one clone may have (fio's `rate` and `rate_iops`), and how far it is.
#[derive(Debug)]
pub(crate) struct Pace {
    rate: Option<Rate>,
    random: Stream,
    begun: Nanos,
    /// The times at which reads, writes and discards are due, where they have a rate.
    arrivals: [Option<Arrivals>; 3],
    /// Completed reads, writes and discards, and their amounts when the least rate was
    /// last looked at.
    completed: [Amount; 3],
    checked: [Option<(Nanos, Amount)>; 3],
    /// The time from which the least rate counts.
    settled: Nanos,
    think_time: Nanos,
    think_blocks: u64,
    thinking: Thinking,
    counted: u64,
    /// The time at which the clone last woke from a pause; fio counts from its first as if it
    /// came after one.
    thought: Nanos,
    refill_at: Option<u32>,
    refilling: bool,
    pub(crate) pause: Pause,
    /// A request that was drawn before its time.
    pub(crate) waiting: Option<IoUnit>,
}

impl Pace {
    pub(crate) fn new(job: &JobSpec, random: Stream, begun: Nanos) -> Self {
        let arrivals = |index: usize| {
            let rate = job.rate.filter(|rate| rate.per_second[index] > 0)?;
            let smallest = job.least(index).0.max(1);
            Some(rate.process.begin(rate.per_second[index], smallest))
        };
        Self {
            rate: job.rate,
            random,
            begun,
            arrivals: std::array::from_fn(arrivals),
            completed: Default::default(),
            checked: [None; 3],
            settled: begun + job.ramp_time + SETTLE,
            think_time: job.think_time,
            think_blocks: u64::from(job.think_time_blocks),
            thinking: job.thinking,
            counted: 0,
            thought: begun + job.think_time,
            refill_at: job.refill_at,
            refilling: false,
            pause: Pause::None,
            waiting: None,
        }
    }

    /// Moves the clone's begin to `at`, after it was made.
    pub(crate) fn begin(&mut self, at: Nanos) {
        self.settled += at.saturating_sub(self.begun);
        self.begun = at;
        self.thought = at + self.think_time;
    }

    /// Whether the clone is never held back.
    pub(crate) fn is_free(&self) -> bool {
        self.rate.is_none() && self.think_time == Nanos::ZERO && self.refill_at.is_none()
    }

    /// Whether requests wait until fewer are in flight.
    pub(crate) fn refills(&mut self, in_flight: u32, depth: u32) -> bool {
        let Some(low) = self.refill_at else {
            return false;
        };
        self.refilling = if self.refilling {
            in_flight > low
        } else {
            in_flight >= depth
        };
        self.refilling
    }

    /// Whether the clone submits nothing before requests that are in flight have ended.
    pub(crate) fn waits_for_answers(&self) -> bool {
        self.refilling || matches!(self.pause, Pause::DrainFor(_) | Pause::DrainUntil(_))
    }

    /// Whether the clone submits nothing at `now`: it sleeps still, or will when it has drained.
    pub(crate) fn is_paused(&self, now: Nanos) -> bool {
        match self.pause {
            Pause::None => false,
            Pause::DrainFor(_) | Pause::DrainUntil(_) => true,
            Pause::Until(time) => now < time,
        }
    }

    /// The time at which a request in this direction is due; `None`: after a completion.
    pub(crate) fn due(&self, direction: Direction) -> Option<Nanos> {
        let arrivals = self.arrivals[direction.index()?].as_ref()?;
        Some(Nanos(self.begun.0.saturating_add(arrivals.due().0)))
    }

    /// The direction in which a mixed job goes on at `now` whose next request was drawn to be
    /// a `drawn` one: where that is not due yet, the one that is due first.
    pub(crate) fn turn(&self, drawn: Direction, now: Nanos) -> Direction {
        let other = match drawn {
            Direction::Read => Direction::Write,
            _ => Direction::Read,
        };
        let due = |direction| self.due(direction).unwrap_or(Nanos::ZERO);
        match due(drawn) <= now || due(drawn) <= due(other) {
            true => drawn,
            false => other,
        }
    }

    /// The time from which the latency of a request counts that is sent at `now`: in an open loop
    /// the time at which it was due.
    pub(crate) fn since(&self, direction: Direction, now: Nanos) -> Nanos {
        let open = self.rate.is_some_and(|rate| rate.offload);
        let due = if open { self.due(direction) } else { None };
        due.map_or(now, |due| due.min(now))
    }

    /// The pause before a request that is due at `due`.
    pub(crate) fn sleep(&self, due: Nanos) -> Pause {
        if self.rate.is_some_and(|rate| rate.offload) {
            Pause::Until(due)
        } else {
            Pause::DrainUntil(due)
        }
    }

    /// Counts a request that the clone submits at `now`.
    pub(crate) fn issue(&mut self, unit: &IoUnit, now: Nanos) {
        let Some(index) = unit.direction.index() else {
            return;
        };
        if let Some(arrivals) = &mut self.arrivals[index] {
            arrivals.sent(unit.length.0, &mut self.random);
        }
        if self.thinking.counts_issues {
            self.count(now);
        }
    }

    /// Counts a request of `bytes` that has completed at `now`.
    pub(crate) fn complete(&mut self, direction: Direction, bytes: u64, now: Nanos) {
        let Some(index) = direction.index() else {
            return;
        };
        self.completed[index].bytes += bytes;
        self.completed[index].requests += 1;
        if !self.thinking.counts_issues {
            self.count(now);
        }
    }

    /// Counts a request, and begins to think where it is time.
    fn count(&mut self, now: Nanos) {
        if self.think_time == Nanos::ZERO {
            return;
        }
        self.counted += 1;
        let after = self.thinking.after;
        let by_time = after > Nanos::ZERO && now.saturating_sub(self.thought) >= after;
        let by_count = !self.thinking.only_by_time && self.counted >= self.think_blocks;
        if !by_time && !by_count {
            return;
        }
        self.counted = 0;
        self.thought = now + self.think_time;
        self.pause = Pause::DrainFor(self.think_time);
        if self.rate.is_some_and(|rate| rate.ignores_thinking) {
            for arrivals in self.arrivals.iter_mut().flatten() {
                arrivals.skip(self.think_time);
            }
        }
    }

    /// Whether the clone is slower than it may be, which ends it. As in fio a direction in which
    /// nothing has completed yet is not looked at.
    pub(crate) fn is_too_slow(&mut self, now: Nanos) -> bool {
        let limited = |rate: &Rate| rate.least != [0; 3] || rate.least_requests != [0; 3];
        match self.rate.filter(limited) {
            Some(rate) if now >= self.settled => {
                (0..3).any(|index| self.is_too_slow_in(index, rate, now))
            }
            _ => false,
        }
    }

    fn is_too_slow_in(&mut self, index: usize, rate: Rate, now: Nanos) -> bool {
        let done = self.completed[index];
        if done.requests == 0 {
            return false;
        }
        let cycle = if rate.cycle > Nanos::ZERO {
            rate.cycle
        } else {
            CYCLE
        };
        let (spent, before) = match self.checked[index] {
            Some((at, before)) => (now.saturating_sub(at), before),
            None => (Nanos::ZERO, done),
        };
        if self.checked[index].is_some() && spent < cycle {
            return false;
        }
        self.checked[index] = Some((now, done));
        let is_less = |amount: u64, least: u64| {
            u128::from(amount) * 1_000_000_000 < u128::from(least) * u128::from(spent.0)
        };
        is_less(done.bytes - before.bytes, rate.least[index])
            || is_less(done.requests - before.requests, rate.least_requests[index])
    }
}

/// The requests of all clones that share by `flow`.
#[derive(Debug, Default)]
pub(crate) struct Flows(Vec<Shared>);

#[derive(Debug)]
struct Shared {
    id: u32,
    /// The number of requests that its clones have issued, counted from 1 as fio does.
    counter: u64,
    weight: u64,
}

impl Flows {
    /// Adds a clone to a flow, which is made if it is the first.
    pub(crate) fn join(&mut self, flow: Flow) {
        if self.of(flow).is_none() {
            self.0.push(Shared {
                id: flow.id,
                counter: 1,
                weight: 0,
            });
        }
        if let Some(shared) = self.of(flow) {
            shared.weight += u64::from(flow.weight);
        }
    }

    /// Removes a clone that has issued `count` from its flow.
    pub(crate) fn leave(&mut self, flow: Flow, count: u64) {
        if let Some(shared) = self.of(flow) {
            shared.weight -= u64::from(flow.weight);
            shared.counter -= count;
        }
    }

    /// Whether a clone that has issued `count` is ahead of its share; else its
    /// next request counts.
    pub(crate) fn is_ahead(&mut self, flow: Flow, count: u64) -> bool {
        let Some(shared) = self.of(flow) else {
            return false;
        };
        let own = u128::from(count) * u128::from(shared.weight);
        if own > u128::from(flow.weight) * u128::from(shared.counter) {
            return true;
        }
        shared.counter += 1;
        false
    }

    fn of(&mut self, flow: Flow) -> Option<&mut Shared> {
        self.0.iter_mut().find(|shared| shared.id == flow.id)
    }
}
