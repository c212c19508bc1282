//! The disk's peak rate as BFQ estimates it, from which the largest budgets and the duration of
//! raised weights follow.
//!
//! Requests that are sent are counted for a second, or until the disk was idle for a tenth of one.
//! They make a sample, if there were 32 requests in 0.3 s at least, and three quarters of them
//! continued others or the rate is higher than the estimate. The more of them did, and the longer
//! the time is, the higher its weight: from a tenth to a half.

use raidlab_units::Nanos;

/// The unit of rates: one sector per microsecond (`BFQ_RATE_SHIFT`).
const UNIT: u64 = 1 << 16;
/// The reference rates of flash and of platters (`ref_rate`); the estimate begins a third below.
const REFERENCE: [u64; 2] = [33_000, 14_000];
/// The time that a disk of that rate needs to start a large program (`ref_wr_duration`).
const STARTS: [Nanos; 2] = [Nanos::from_millis(2500), Nanos::from_millis(7000)];
/// The bounds of the time of raised weights (`bfq_wr_duration`).
const RAISED: [Nanos; 2] = [Nanos::from_secs(3), Nanos::from_secs(25)];
/// The least number of requests in a sample, and its times
/// (`BFQ_RATE_MIN_SAMPLES`, `_MIN_INTERVAL`, `_REF_INTERVAL`).
const SAMPLES: u64 = 32;
const SHORTEST: Nanos = Nanos::from_millis(300);
const LONGEST: Nanos = Nanos::SECOND;
/// The idle time of the disk that ends a sample.
const PAUSE: Nanos = Nanos::from_millis(100);
/// A rate that no disk reaches.
const IMPOSSIBLE: u64 = 20 * UNIT;
/// The number of given budgets until which the largest is this
/// one (`bfq_stats_min_budgets`, `bfq_default_max_budget`).
const BUDGETS: u32 = 194;
const DEFAULT_BUDGET: u64 = 16 * 1024;

/// The requests since the sample began, and the estimate.
#[derive(Debug, Clone)]
pub(super) struct PeakRate {
    kind: usize,
    /// The estimate, in units of a sector per microsecond.
    rate: u64,
    /// The largest budget by the rate, in sectors.
    budget: u64,
    /// A mean of the number of given budgets, which grows to 256.
    given: u32,
    samples: u64,
    sequential: u64,
    sectors: u64,
    largest: u64,
    first: Nanos,
    last: Nanos,
    span: Nanos,
}

/// A sent request, as the estimate sees it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Sent {
    pub(super) sectors: u64,
    /// Whether it is far from the request before it.
    pub(super) seeks: bool,
    /// Whether other requests are with the disk, or were just now.
    pub(super) follows: bool,
    /// Whether the disk has other requests at this moment.
    pub(super) busy: bool,
}

impl PeakRate {
    pub(super) fn new(rotational: bool) -> Self {
        let kind = usize::from(rotational);
        Self {
            kind,
            rate: REFERENCE[kind] * 2 / 3,
            budget: DEFAULT_BUDGET,
            given: 0,
            samples: 0,
            sequential: 0,
            sectors: 0,
            largest: 0,
            first: Nanos::ZERO,
            last: Nanos::ZERO,
            span: Nanos::ZERO,
        }
    }

    /// The largest budget by the rate, whether or not it is in use yet.
    pub(super) const fn budget(&self) -> u64 {
        self.budget
    }

    /// Counts a budget that is given to a queue.
    pub(super) const fn give_budget(&mut self) {
        self.given = (self.given * 7 + 256) / 8;
    }

    /// Whether the budgets that were given are enough to trust the rate.
    pub(super) const fn is_known(&self) -> bool {
        self.given >= BUDGETS
    }

    /// The largest budget that a queue is given.
    pub(super) const fn largest_budget(&self) -> u64 {
        match self.is_known() {
            true => self.budget,
            false => DEFAULT_BUDGET,
        }
    }

    /// The smallest budget that a queue is given, a 32nd of the largest.
    pub(super) const fn smallest_budget(&self) -> u64 {
        self.largest_budget() / 32
    }

    /// The time for which a queue's weight is raised.
    pub(super) fn raised_for(&self) -> Nanos {
        let time = STARTS[self.kind] * REFERENCE[self.kind];
        Nanos(time.0 / self.rate).clamp(RAISED[0], RAISED[1])
    }

    /// Takes a request that is sent into the sample of the rate, or begins a new sample.
    pub(super) fn sent(&mut self, now: Nanos, completed: Nanos, sent: Sent, timeout: Nanos) {
        if self.samples == 0 {
            self.begin(now, Some(sent.sectors));
        } else if now - self.last > PAUSE && !sent.busy {
            self.end(now, completed, Some(sent.sectors), timeout);
        } else {
            self.samples += 1;
            self.sequential += u64::from(sent.follows && !sent.seeks);
            self.sectors += sent.sectors;
            self.largest = match self.samples.is_multiple_of(32) {
                true => sent.sectors,
                false => self.largest.max(sent.sectors),
            };
            self.span = now - self.first;
            if self.span >= LONGEST {
                self.end(now, completed, Some(sent.sectors), timeout);
            }
        }
        self.last = now;
    }

    /// Ends the sample if a request has ended so long after the one before that the disk was not at
    /// its peak rate.
    pub(super) fn ended(&mut self, now: Nanos, completed: Nanos, short: Nanos, timeout: Nanos) {
        let micros = (now - completed).0 / 1000;
        if micros > short.0 / 1000 && self.largest * UNIT / micros < UNIT / 1024 {
            self.end(now, completed, None, timeout);
        }
    }

    fn begin(&mut self, now: Nanos, sectors: Option<u64>) {
        self.samples = 0;
        if let Some(sectors) = sectors {
            self.samples = 1;
            self.sequential = 0;
            (self.sectors, self.largest) = (sectors, sectors);
            (self.first, self.last) = (now, now);
        }
    }

    fn end(&mut self, now: Nanos, completed: Nanos, sectors: Option<u64>, timeout: Nanos) {
        if self.samples >= SAMPLES && self.span >= SHORTEST {
            self.span = self.span.max(completed.saturating_sub(self.first));
            let rate = self.sectors * UNIT / (self.span.0 / 1000);
            let counts = self.sequential >= self.samples * 3 / 4 || rate > self.rate;
            if counts && rate <= IMPOSSIBLE {
                let weight = 9 * self.sequential / self.samples * self.span.0 / LONGEST.0;
                let divisor = 10 - weight.min(8);
                self.rate = (self.rate * (divisor - 1) / divisor + rate / divisor).max(1);
                self.budget = self.rate * (timeout.0 / 1000) / UNIT;
            }
        }
        self.begin(now, sectors);
    }
}
