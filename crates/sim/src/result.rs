//! The results of a job's run.

use crate::explain::Explained;
use crate::processor::ProcessorUse;
use hdrhistogram::Histogram;
use raidlab_units::{Bytes, Nanos};
use raidlab_workload::Direction;
use std::cell::OnceCell;
use std::ops::Deref;

/// Counters of one member, as Linux diskstats keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MemberStatistics {
    /// The number of reads that were completed.
    pub read_ios: u64,
    /// The number of bytes that were read.
    pub read_bytes: Bytes,
    /// The sum of the reads' latencies.
    pub read_ticks: Nanos,
    /// The number of writes that were completed.
    pub write_ios: u64,
    /// The number of bytes that were written.
    pub write_bytes: Bytes,
    /// The sum of the writes' latencies.
    pub write_ticks: Nanos,
    /// The number of bytes of resync or recovery, read and written.
    pub sync_bytes: Bytes,
    /// The time with at least one command in flight.
    pub busy: Nanos,
}

impl MemberStatistics {
    fn zip(self, other: Self, combine: impl Fn(u64, u64) -> u64) -> Self {
        Self {
            read_ios: combine(self.read_ios, other.read_ios),
            read_bytes: Bytes(combine(self.read_bytes.0, other.read_bytes.0)),
            read_ticks: Nanos(combine(self.read_ticks.0, other.read_ticks.0)),
            write_ios: combine(self.write_ios, other.write_ios),
            write_bytes: Bytes(combine(self.write_bytes.0, other.write_bytes.0)),
            write_ticks: Nanos(combine(self.write_ticks.0, other.write_ticks.0)),
            sync_bytes: Bytes(combine(self.sync_bytes.0, other.sync_bytes.0)),
            busy: Nanos(combine(self.busy.0, other.busy.0)),
        }
    }

    /// The growth of the counters since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        self.zip(earlier, u64::saturating_sub)
    }

    /// The sums of these counters and of another's.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        self.zip(other, u64::saturating_add)
    }

    /// The counters times `numerator` / `denominator`, rounded down: what a
    /// leap adds, in proportion to what was simulated.
    #[must_use]
    pub fn scaled(self, numerator: u64, denominator: u64) -> Self {
        self.zip(self, |value, _| scale(value, numerator, denominator))
    }
}

/// Returns `value` times `numerator` / `denominator` without overflow, rounded down; 0 for a
/// denominator of 0.
pub(crate) fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    if denominator == 0 {
        return 0;
    }
    let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(scaled).unwrap_or(u64::MAX)
}

/// Latencies in nanoseconds, to three significant digits. Their table has 250 KB, and most
/// jobs have one kind of operation of four: it is made when the first latency is noted or the
/// table is read.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Latencies(OnceCell<Histogram<u64>>);

impl Latencies {
    fn none() -> Histogram<u64> {
        Histogram::new_with_bounds(1, 1_000_000_000_000, 3)
            .unwrap_or_else(|_| unreachable!("bounds and digits are constants in range"))
    }

    fn table(&mut self) -> &mut Histogram<u64> {
        self.0.get_or_init(Self::none);
        self.0
            .get_mut()
            .unwrap_or_else(|| unreachable!("it is made by now"))
    }
}

impl Deref for Latencies {
    type Target = Histogram<u64>;

    fn deref(&self) -> &Histogram<u64> {
        self.0.get_or_init(Self::none)
    }
}

/// The results of one kind of operation of a job.
#[derive(Debug, Clone, Default)]
pub struct OperationResult {
    /// The number of operations that were completed.
    pub ios: u64,
    /// The number of bytes that they moved.
    pub bytes: Bytes,
    /// The latencies of the operations.
    pub latency: Latencies,
}

impl OperationResult {
    fn add(&mut self, other: &Self) {
        self.ios += other.ios;
        self.bytes += other.bytes;
        match (self.latency.0.get_mut(), other.latency.0.get()) {
            // Equal bounds by construction: adding cannot fail.
            (Some(own), Some(others)) => *own += others,
            (None, Some(_)) => self.latency = other.latency.clone(),
            (_, None) => {}
        }
    }

    pub(crate) fn record(&mut self, bytes: Bytes, latency: Nanos) {
        self.ios += 1;
        self.bytes += bytes;
        self.latency.table().saturating_record(latency.0.max(1));
    }

    /// Adds `ios` more operations like those recorded since `before`: as many latencies, with
    /// the sample's shares.
    pub(crate) fn record_like(&mut self, before: &Histogram<u64>, ios: u64, bytes: Bytes) {
        let mut sample = self.latency.clone();
        // The table includes the counts of `before`; the sample is the part that came after.
        if sample.table().subtract(before).is_err() {
            return;
        }
        let total = sample.len();
        self.ios += ios;
        self.bytes += bytes;
        // The rest that rounding leaves of one latency's share falls to the next.
        let (mut seen, mut given) = (0, 0);
        for value in sample.iter_recorded() {
            seen += value.count_at_value();
            let due = scale(seen, ios, total);
            let table = self.latency.table();
            table.saturating_record_n(value.value_iterated_to(), due - given);
            given = due;
        }
    }

    /// I/Os per second over `runtime`.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate is a statistic")]
    pub fn iops(&self, runtime: Nanos) -> f64 {
        if runtime == Nanos::ZERO {
            return 0.0;
        }
        self.ios as f64 / runtime.as_secs_f64()
    }
}

/// The operations of one job of a group, all its clones together.
#[derive(Debug, Clone, Default)]
pub struct JobOperations {
    /// The results of its reads.
    pub reads: OperationResult,
    /// The results of its writes.
    pub writes: OperationResult,
    /// The results of its discards, which fio calls trims.
    pub trims: OperationResult,
    /// The results of its flushes after a number of writes.
    pub syncs: OperationResult,
    /// The run time of the clone that took longest.
    pub runtime: Nanos,
    /// The part of the run time in which it read, where it reads back what it has written.
    pub read_runtime: Nanos,
    /// The part of the run time in which it wrote, or discarded.
    pub write_runtime: Nanos,
}

impl JobOperations {
    /// The results to which a direction's requests count; the last of these are flushes.
    pub(crate) fn of(&mut self, direction: Direction) -> &mut OperationResult {
        match direction {
            Direction::Read => &mut self.reads,
            Direction::Write => &mut self.writes,
            Direction::Trim => &mut self.trims,
            Direction::Flush => &mut self.syncs,
        }
    }

    fn get(&self, direction: Direction) -> (&OperationResult, Nanos) {
        match direction {
            Direction::Read => (&self.reads, self.read_runtime),
            Direction::Write => (&self.writes, self.write_runtime),
            Direction::Trim => (&self.trims, self.write_runtime),
            Direction::Flush => (&self.syncs, self.write_runtime),
        }
    }

    /// Adds the operations of another clone.
    pub(crate) fn add(&mut self, other: &Self) {
        self.reads.add(&other.reads);
        self.writes.add(&other.writes);
        self.trims.add(&other.trims);
        self.syncs.add(&other.syncs);
    }
}

/// The depth at which a clone kept its latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DepthFound {
    /// The job's place in its group.
    pub job: usize,
    /// The number of the clone among the job's, from 0.
    pub clone: u32,
    /// The number of requests in flight.
    pub depth: u32,
    /// Whether the search had ended, so that only this depth is reported.
    pub settled: bool,
}

/// Whether a job ran evenly in the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steadiness {
    /// The job's place in its group.
    pub job: usize,
    /// The number of the clone among the job's, from 0; `None` where all are looked at together.
    pub clone: Option<u32>,
    /// Whether the job ran evenly, and so ended before its time.
    pub attained: bool,
    /// The last value of the criterion, in percent of the mean or in units of the limit; `None`
    /// where the job was too short for one.
    pub criterion: Option<f64>,
}

/// The outcome of one group of jobs.
#[derive(Debug, Clone)]
pub struct JobResult {
    /// The operations of each job, in the group's order; at least one.
    pub jobs: Vec<JobOperations>,
    /// The time from the start to the last completion, of the job that took longest: fio's `runt`
    /// of the group. A job's wait before its begin does not count, nor does its ramp time.
    pub runtime: Nanos,
    /// The time that counters of members and of the processor cover: from the start, or from
    /// when the last ramp time was over and the last search for a depth began its last window,
    /// to the end.
    pub elapsed: Nanos,
    /// The counters of each member, resync included, in the time `elapsed`.
    pub members: Vec<MemberStatistics>,
    /// The members' state in mdstat's letters, at the start and at the end.
    pub health: [String; 2],
    /// The resync progress at the start and at the end, in percent.
    pub sync_percent: [Option<f64>; 2],
    /// The number of commands that found no free tag in a drive.
    pub tag_overflows: u64,
    /// The number of bytes that were skipped analytically.
    pub leaped: Bytes,
    /// The depths found by clones that search one for their latency.
    pub depths: Vec<DepthFound>,
    /// The steadiness of jobs that end when they run evenly.
    pub steady: Vec<Steadiness>,
    /// The number of emulated zones that began anew.
    pub zone_resets: u64,
    /// The places where the time of requests went, if the machine was told to [explain] that.
    ///
    /// [explain]: crate::Machine::explain
    pub explained: Option<Explained>,
    /// The use of the processor meanwhile, where one is modelled.
    pub processor: Option<ProcessorUse>,
}

impl JobResult {
    /// The run time of the longest of the jobs that did operations of one kind, as fio has it of a
    /// group; of all jobs where none did any.
    #[must_use]
    pub fn runtime_of(&self, direction: Direction) -> Nanos {
        let jobs = self.jobs.iter().map(|job| job.get(direction));
        let longest = jobs
            .filter(|(done, _)| done.ios > 0)
            .map(|(_, time)| time)
            .max();
        longest.unwrap_or(self.runtime)
    }

    /// The reads of all jobs together, as fio's group reporting has them.
    #[must_use]
    pub fn reads(&self) -> OperationResult {
        total(self.jobs.iter().map(|job| &job.reads))
    }

    /// The writes of all jobs together.
    #[must_use]
    pub fn writes(&self) -> OperationResult {
        total(self.jobs.iter().map(|job| &job.writes))
    }

    /// The discards of all jobs together.
    #[must_use]
    pub fn trims(&self) -> OperationResult {
        total(self.jobs.iter().map(|job| &job.trims))
    }

    /// The flushes of all jobs together.
    #[must_use]
    pub fn syncs(&self) -> OperationResult {
        total(self.jobs.iter().map(|job| &job.syncs))
    }
}

fn total<'a>(results: impl Iterator<Item = &'a OperationResult>) -> OperationResult {
    let mut total = OperationResult::default();
    for result in results {
        total.add(result);
    }
    total
}

#[cfg(test)]
mod tests {
    use super::{MemberStatistics, OperationResult};
    use raidlab_units::{Bytes, Nanos};

    #[test]
    fn a_leap_repeats_the_sample() {
        let mut result = OperationResult::default();
        result.record(Bytes(4096), Nanos::from_millis(50));
        let before = result.latency.clone();
        for _ in 0..10 {
            result.record(Bytes(4096), Nanos::from_millis(1));
        }
        result.record_like(&before, 1000, Bytes(4_096_000));
        assert_eq!((result.ios, result.latency.len()), (1011, 1011));
        assert_eq!(result.latency.count_at(50_000_000), 1);
    }

    #[test]
    fn a_leap_records_a_latency_for_each_request() {
        let mut result = OperationResult::default();
        let before = result.latency.clone();
        for milliseconds in 1..=100 {
            result.record(Bytes(4096), Nanos::from_millis(milliseconds));
        }
        result.record_like(&before, 150, Bytes(150 * 4096));
        assert_eq!((result.ios, result.latency.len()), (250, 250));
        let slow = |value: &OperationResult| value.latency.count_between(91_000_000, 101_000_000);
        assert!((24..=26).contains(&slow(&result)), "{}", slow(&result));
    }

    #[test]
    fn statistics_scale_in_proportion() {
        let statistics = MemberStatistics {
            read_ios: 10,
            busy: Nanos(u64::MAX / 2),
            ..MemberStatistics::default()
        };
        let scaled = statistics.scaled(3, 2);
        assert_eq!(scaled.read_ios, 15);
        assert_eq!(statistics.scaled(1, 0).read_ios, 0);
    }
}
