//! The finer shapes of a job: sizes that differ, offsets that are not drawn
//! evenly, rates, pauses and dependences between jobs.
//!
//! Shares and exponents are whole parts of a million, so that a job can be
//! compared and printed exactly.

use crate::arrivals::ArrivalProcess;
use raidlab_units::{Bytes, Nanos};

/// Sizes of the requests of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    /// All alike (fio `bs`).
    One(Bytes),
    /// Drawn evenly, in steps of the least (fio `bsrange`).
    Range {
        /// The smallest size that is drawn.
        least: Bytes,
        /// The largest size that is drawn.
        most: Bytes,
    },
    /// Each with its share in percent (fio `bssplit`); the shares make 100.
    Split(Vec<(Bytes, u32)>),
}

impl Sizes {
    /// The smallest of them.
    #[must_use]
    pub fn least(&self) -> Bytes {
        match self {
            Self::One(size) => *size,
            Self::Range { least, .. } => *least,
            Self::Split(sizes) => sizes
                .iter()
                .map(|&(size, _)| size)
                .min()
                .unwrap_or(Bytes(0)),
        }
    }

    /// The largest of them.
    #[must_use]
    pub fn most(&self) -> Bytes {
        match self {
            Self::One(size) => *size,
            Self::Range { most, .. } => *most,
            Self::Split(sizes) => sizes
                .iter()
                .map(|&(size, _)| size)
                .max()
                .unwrap_or(Bytes(0)),
        }
    }
}

/// How random offsets lie in the region (fio `random_distribution`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Every block as often as any other.
    #[default]
    Even,
    /// Zipf's law: the n-th most wanted block in proportion to `n^-theta`.
    Zipf {
        /// The exponent in parts of a million; not 1.
        theta_millionths: u32,
    },
    /// Pareto's law with fio's power `h`, above 0 and below 1.
    Pareto {
        /// The power in parts of a million.
        power_millionths: u32,
    },
    /// About the middle of the region, with this deviation.
    Normal {
        /// The standard deviation, in millionths of the region.
        deviation_millionths: u32,
    },
    /// Zones, each with its share of requests and of the region, in percent.
    Zoned(Vec<(u32, u32)>),
    /// Zones, each with its share of requests in percent and its length.
    ZonedByLength(Vec<(u32, Bytes)>),
    /// These blocks, again and again (fio `sequence:`).
    Sequence {
        /// The numbers of the blocks, in order.
        blocks: Vec<u64>,
        /// Each time as many blocks further on as the list is long.
        strides: bool,
    },
    /// Each block once, and some of them again soon after, so that a solid-state disk
    /// is left as long random writes would leave it (fio `sprandom`).
    Preconditioning {
        /// What the disk has beside its size, in parts of a million of it (fio
        /// `spr_op`).
        over_provisioning_millionths: u32,
        /// Parts of the pass, each with blocks of its own that come again (fio
        /// `spr_num_regions`); at least 1.
        regions: u32,
        /// With a cache of this size in the disk blocks come again one part later
        /// (fio `spr_cs`); 0: none.
        cache: Bytes,
    },
}

/// Where a random job's requests are not random (fio `rw=randread:8`,
/// `rw_sequencer`, `percentage_random`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// Every so many requests the offset is drawn; at least 1.
    pub draw_every: u32,
    /// Between draws the last offset again, not the next one.
    pub repeat: bool,
    /// Of the draws so many in a hundred are random, the others go on after
    /// the request before.
    pub random_percent: u32,
}

impl Default for Runs {
    fn default() -> Self {
        Self {
            draw_every: 1,
            repeat: false,
            random_percent: 100,
        }
    }
}

/// Zones of the device that are worked in one after the other, with gaps (fio
/// `zonemode=strided`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    /// Bytes moved in a zone before the next one's turn (`zonesize`).
    pub amount: Bytes,
    /// A zone's length (`zonerange`).
    pub length: Bytes,
    /// The gap after each (`zoneskip`).
    pub skip: Bytes,
}

/// A limited rate. fio starts a request when the bytes issued before it are due,
/// and waits for all in flight before it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rate {
    /// Bytes a second of reads, writes and discards (fio `rate`, or `rate_iops`
    /// times the smallest size); 0: no limit.
    pub per_second: [u64; 3],
    /// The least rate, bytes a second, of reads, writes and discards: a job that falls
    /// below it ends (fio `rate_min`); 0: none.
    pub least: [u64; 3],
    /// The same in requests a second (fio `rate_iops_min`), whatever their sizes.
    pub least_requests: [u64; 3],
    /// How often that is looked at (fio `rate_cycle`).
    pub cycle: Nanos,
    /// When requests are due (fio `rate_process`).
    pub process: ArrivalProcess,
    /// Time spent thinking does not count (fio `rate_ignore_thinktime`).
    pub ignores_thinking: bool,
    /// An open loop: what is in flight is not waited for (fio `io_submit_mode=offload`), and
    /// a request's latency begins when it was due.
    pub offload: bool,
}

/// A share in the requests of all jobs with the same number (fio `flow`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// Jobs with the same number keep step with each other (fio `flow_id`).
    pub id: u32,
    /// This job's part; the others' are theirs.
    pub weight: u32,
    /// How long a job that is ahead sleeps; 0: until it is not.
    pub sleep: Nanos,
}

/// Reading back what was written (fio `verify`), without the processor's time
/// for comparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verify {
    /// After so many writes those are read (fio `verify_backlog`); 0: after all
    /// of a pass.
    pub backlog: u64,
    /// So many are read then (fio `verify_backlog_batch`); 0: the whole backlog.
    pub batch: u64,
}

/// Zones that are written in sequence only, which fio emulates on a device that is
/// not zoned (fio `zonemode=zbd`); `zones.rs` has the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneRules {
    /// A zone's length (`zonesize`); at least 512 bytes.
    pub size: Bytes,
    /// What of it can be written (`zonecapacity`); at most the length.
    pub capacity: Bytes,
    /// Zones that are written to at a time, by all jobs (`max_open_zones`); 0: any.
    pub most_open: u32,
    /// The most zones that one clone has open (`job_max_open_zones`).
    pub most_open_of_job: u32,
    /// Reads go where nothing was written too (`read_beyond_wp`).
    pub reads_beyond: bool,
    /// Zones are reset when so much of the region is written, in parts of a million
    /// (`zone_reset_threshold`); 0: only full ones.
    pub reset_threshold_millionths: u32,
    /// Of the writes beyond that threshold so many in a million reset a zone
    /// (`zone_reset_frequency`).
    pub reset_frequency_millionths: u32,
}

/// A latency that the job shall keep by its depth (fio `latency_target`): the depth
/// doubles from 1 until a window fails, and is then searched between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyTarget {
    /// The longest latency that counts as kept.
    pub target: Nanos,
    /// How long each depth is tried (`latency_window`).
    pub window: Nanos,
    /// Requests within the target that make a window succeed, in millionths of all
    /// (`latency_percentile`).
    pub share_millionths: u32,
    /// The search goes on for ever (`latency_run`); else the job ends after a window
    /// at the depth that was found.
    pub goes_on: bool,
}

/// What of a job becomes even (fio `steadystate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SteadyMeasure {
    /// Requests a second.
    Iops,
    /// Bytes a second.
    Bandwidth,
    /// The mean latency in nanoseconds.
    Latency,
}

/// When a job counts as even, and ends (fio `steadystate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SteadyState {
    /// What is looked at.
    pub measure: SteadyMeasure,
    /// By the slope of the line through the window; else by the largest distance
    /// from its mean.
    pub slope: bool,
    /// The most of that, in millionths of a unit, or of a percent of the mean.
    pub limit_millionths: u64,
    /// The limit is in percent.
    pub in_percent: bool,
    /// The window (`steadystate_duration`).
    pub duration: Nanos,
    /// Time at the start that is not looked at (`steadystate_ramp_time`).
    pub ramp_time: Nanos,
    /// How often it is looked at (`steadystate_check_interval`).
    pub interval: Nanos,
}

/// Which jobs end with one that ends under `exitall` (fio `exit_what`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitWhat {
    /// The jobs of its reporting group end with it.
    #[default]
    Group,
    /// All jobs that run at the same time end with it.
    Stonewall,
}

/// What makes a clone pause to think (fio `thinktime_blocks_type`,
/// `thinktime_iotime`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thinking {
    /// Requests count when they are issued, not when they complete.
    pub counts_issues: bool,
    /// It also pauses when it has worked so long; 0: not.
    pub after: Nanos,
    /// The count of requests does not make it pause.
    pub only_by_time: bool,
}
