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

    /// The band of a job's row; `None` where all disks that took part were fitted.
    #[must_use]
    pub fn band(&self, work: &Work, row: &Measurement) -> Option<DiskBand> {
        let order = Order::of(work, row);
        let counted = counted_ns(work, row);
        let of_member = |(medium, member): (&Option<Medium>, &MemberUse)| {
            let load = order.load(member, counted)?;
            Some(BANDS.of((*medium)?, load))
        };
        let members = self.members.iter().zip(&row.members);
        let found = members.filter_map(of_member).reduce(Band::or)?;
        Some(DiskBand {
            low: found.low,
            high: found.high,
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
                let plain = |job: &raidlab_workload::JobSpec| {
                    !job.pattern.is_random() && job.step == 0 && job.strides.is_none()
                };
                let clones = group.jobs.iter().map(|job| job.num_jobs).sum::<u32>();
                let both =
                    |job: &raidlab_workload::JobSpec| job.pattern.reads() && job.pattern.writes();
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
