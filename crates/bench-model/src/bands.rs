//! The bands by which the figures of an experiment may be off because its disks were not fitted.
//!
//! The work of the members matters, not the job's requests: a write to a RAID 5 is reads and writes
//! of its members, and a queue of 32 is one of 8 on each of four. So the load of each member is
//! told from its own counters, except that only the job knows whether it ran in sequence. The band
//! of a row is the one around those of all its members that were not fitted.

use crate::presets::{self, LoadPresetError};
use raidlab_disk::{Band, Bands, Load, Medium, Preset};
use raidlab_lab::{Experiment, Files, PlannedJob, PlannedStep, Work};
use raidlab_store::{DiskBand, Measurement, MemberUse, Operation};
use raidlab_units::Nanos;
use raidlab_workload::{JobGroup, JobSpec};
use std::sync::LazyLock;

/// The bands as they are built in; a test reads the file.
static BANDS: LazyLock<Bands> = LazyLock::new(|| {
    let text = raidlab_data::text("facts", "bands").unwrap_or_default();
    Bands::parse("facts/bands.toml", text).unwrap_or_default()
});

/// The average number of reads in flight from which a disk has a choice.
const QUEUED: f64 = 2.5;

/// The part of the other kind below which operations count as all alike.
const ALIKE: f64 = 0.05;

/// The disks of an experiment that were not fitted.
#[derive(Debug, Clone, Default)]
pub struct Unfitted {
    /// The kind of disk in each slot; `None` where it was fitted.
    members: Vec<Option<Medium>>,
}

impl Unfitted {
    /// Makes the list for these presets, slot by slot, in the parameter set `fit` or the only one
    /// that they have.
    #[must_use]
    pub fn new(presets: &[Preset], fit: &str) -> Self {
        let medium = |preset: &Preset| {
            let fit = preset.set_beside(fit);
            let fitted = preset.is_fitted(fit).unwrap_or_default();
            let parameters = preset.parameters(fit).ok().filter(|_| !fitted);
            parameters.map(raidlab_disk::DiskParameters::medium)
        };
        Self {
            members: presets.iter().map(medium).collect(),
        }
    }

    /// Makes the list for an experiment's disks.
    ///
    /// # Errors
    /// A preset that cannot be read.
    pub fn of(experiment: &Experiment, files: &Files) -> Result<Self, LoadPresetError> {
        let presets = experiment.disks.iter();
        let presets: Vec<Preset> = presets
            .map(|name| presets::load_from(files, name))
            .collect::<Result<_, _>>()?;
        Ok(Self::new(&presets, &experiment.fit))
    }

    /// The band of a job's row; `None` where all disks that took part were fitted, and of discards.
    #[must_use]
    pub fn band(&self, work: &Work, row: &Measurement) -> Option<DiskBand> {
        // Nobody told how long a discard takes. What members counted beside it, as the superblocks
        // of an array that is written to, says nothing of it.
        if row.op == Operation::Trim {
            return None;
        }
        let order = Order::of(work, row);
        let counted = counted_ns(work, row);
        let of_member = |(medium, member): (&Option<Medium>, &MemberUse)| {
            let load = order.load(member, counted)?;
            Some(BANDS.of((*medium)?, load))
        };
        let members = self.members.iter().zip(&row.members);
        let found = members.filter_map(of_member).reduce(Band::or)?;
        let most = room(work, row).unwrap_or(f64::INFINITY);
        Some(DiskBand {
            low: found.low,
            high: found.high.min(most.max(1.0)),
            ratio: found.ratio,
        })
    }

    /// The band of a row that tells no more than its job's place in the suite; `None`
    /// as in [`Self::band`].
    #[must_use]
    pub fn band_in(&self, experiment: &Experiment, row: &Measurement) -> Option<DiskBand> {
        let job = |step: &PlannedStep| match step {
            PlannedStep::Job(job) if job.sequence == row.sequence => Some(job.clone()),
            _ => None,
        };
        let job: PlannedJob = experiment.steps.iter().find_map(job)?;
        self.band(&job.work, row)
    }
}

/// The operations for which fio has limits, in the order of [`Rate::per_second`].
///
/// [`Rate::per_second`]: raidlab_workload::Rate::per_second
pub(crate) const DIRECTIONS: [Operation; 3] = [Operation::Read, Operation::Write, Operation::Trim];

/// The rate of an operation that all jobs together are not to exceed, in bytes per second; `None`
/// where not each of them has a limit.
pub(crate) fn rate_limit(group: &JobGroup, operation: Operation) -> Option<u64> {
    let place = DIRECTIONS.iter().position(|one| *one == operation)?;
    let limit = |job: &JobSpec| {
        let each = job.rate?.per_second[place];
        (each > 0).then(|| each.saturating_mul(u64::from(job.num_jobs)))
    };
    group.jobs.iter().map(limit).sum()
}

/// The requests per second that think times leave to all jobs together on the fastest disk; `None`
/// where not each of them pauses after a number of requests.
fn thinking_limit(group: &JobGroup) -> Option<f64> {
    let limit = |job: &JobSpec| {
        let pauses = job.think_time > Nanos::ZERO && !job.thinking.only_by_time;
        let each = f64::from(job.think_time_blocks) * 1e9 / job.think_time.0 as f64;
        pauses.then(|| each * f64::from(job.num_jobs))
    };
    group.jobs.iter().map(limit).sum()
}

/// How many times as fast a row can become on faster disks before its job's own limits hold it;
/// `None` where it has none.
fn room(work: &Work, row: &Measurement) -> Option<f64> {
    let group = work.group().ok()?;
    let by_rate = rate_limit(group, row.op).map(|limit| limit as f64 / row.bytes_per_second);
    let both = |job: &JobSpec| job.pattern.reads() && job.pattern.writes();
    let alone = !group.jobs.iter().any(both);
    let by_thinking = thinking_limit(group).filter(|_| alone);
    let by_thinking = by_thinking.map(|limit| limit / row.iops);
    by_rate.into_iter().chain(by_thinking).reduce(f64::min)
}

/// The time that counters of members cover: that of the row, and ramp time, in which they count and
/// rows do not.
fn counted_ns(work: &Work, row: &Measurement) -> u64 {
    let ramp = match work {
        Work::Fio { .. } => work.group().map_or(0, |group| {
            let each = group.jobs.iter().map(|job| job.ramp_time.0);
            each.max().unwrap_or(0)
        }),
        _ => 0,
    };
    row.runtime_ns.saturating_add(ramp)
}

/// The order in which a job goes through the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    /// One sequential stream, which a disk serves without a seek.
    Stream,
    /// Several streams, or one that goes back and forth.
    Streams,
    /// Random places, each request at one of its own, drawn anew.
    Random,
    /// An unknown order, as of a tool whose order is its own: the widest band holds.
    Unknown,
}

impl Order {
    fn of(work: &Work, row: &Measurement) -> Self {
        let alone = match (work, row.op) {
            (Work::Fio { .. }, _) => work.group().map_or(Self::Unknown, |group| {
                let plain = |job: &JobSpec| {
                    !job.pattern.is_random() && job.step == 0 && job.strides.is_none()
                };
                let clones = group.jobs.iter().map(|job| job.num_jobs).sum::<u32>();
                let both = |job: &JobSpec| job.pattern.reads() && job.pattern.writes();
                match (group.jobs.iter().all(plain), clones) {
                    (false, _) => Self::Random,
                    (true, 1) if !group.jobs.iter().any(both) => Self::Stream,
                    (true, _) => Self::Streams,
                }
            }),
            (_, op) if op.only_reads() || op.only_writes() => match op {
                Operation::RandomRead
                | Operation::RandomWrite
                | Operation::StrideRead
                | Operation::BackwardRead
                | Operation::RecordRewrite => Self::Random,
                _ => Self::Stream,
            },
            (_, Operation::Rewrite) => Self::Streams,
            (_, Operation::Seek) => Self::Random,
            _ => Self::Unknown,
        };
        // A copying beside a stream is another stream.
        match alone {
            Self::Stream if row.sync_percent_start.is_some() => Self::Streams,
            other => other,
        }
    }

    /// The load of a member in so many nanoseconds; `None` where it had none.
    fn load(self, member: &MemberUse, counted_ns: u64) -> Option<Load> {
        let (reads, writes) = (member.read_ios as f64, member.write_ios as f64);
        if reads + writes <= 0.0 {
            return None;
        }
        let in_flight = member.read_ticks_ns as f64 / (counted_ns as f64).max(1.0);
        let part = reads / (reads + writes);
        Some(match self {
            Self::Stream => Load::Stream,
            Self::Streams => Load::Streams,
            Self::Unknown => Load::Mixed,
            Self::Random if part < ALIKE => Load::RandomWrite,
            Self::Random if part <= 1.0 - ALIKE => Load::Mixed,
            Self::Random if in_flight < QUEUED => Load::RandomRead,
            Self::Random => Load::QueuedRandomRead,
        })
    }
}

#[cfg(test)]
mod tests;
