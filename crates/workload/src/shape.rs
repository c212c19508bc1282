//! The finer shapes of a job: sizes that differ, offsets that are not drawn
//! evenly, rates, pauses and dependences between jobs.
//!
//! Shares and exponents are whole numbers of millionths, so that a job can be compared
//! and printed exactly.

use crate::arrivals::ArrivalProcess;
use raidlab_units::{Bytes, Nanos};

/// The sizes of the requests of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    /// All requests have this size (fio `bs`).
    One(Bytes),
    /// Sizes are drawn evenly, in steps of the least (fio `bsrange`).
    Range {
        /// The smallest size that is drawn.
        least: Bytes,
        /// The largest size that is drawn.
        most: Bytes,
    },
    /// Sizes are drawn by their shares in percent (fio `bssplit`), which add up to 100.
    Split(Vec<(Bytes, u32)>),
}

impl Sizes {
    /// The smallest size.
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

    /// The largest size.
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

/// The distribution of random offsets in the region (fio `random_distribution`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Distribution {
    /// Every block is equally frequent.
    #[default]
    Even,
    /// Zipf's law: the frequency of the n-th most frequent block is proportional to `n^-theta`.
    Zipf {
        /// The exponent in parts of a million; not 1.
        theta_millionths: u32,
    },
    /// Pareto's law with fio's power `h`, above 0 and below 1.
    Pareto {
        /// The power in parts of a million.
        power_millionths: u32,
    },
    /// A normal distribution about the middle of the region, with this deviation.
    Normal {
        /// The standard deviation, in millionths of the region.
        deviation_millionths: u32,
    },
    /// Zones, each with its share of requests and of the region, in percent.
    Zoned(Vec<(u32, u32)>),
    /// Zones, each with its share of requests in percent and its length.
    ZonedByLength(Vec<(u32, Bytes)>),
    /// These blocks are visited again and again (fio `sequence:`).
    Sequence {
        /// The numbers of the blocks, in order.
        blocks: Vec<u64>,
        /// Whether each repetition is shifted by the length of the list, in blocks.
        strides: bool,
    },
    /// Each block is visited once, and some again soon after, so that a solid-state disk is left as
    /// after long random writes (fio `sprandom`).
    Preconditioning {
        /// The disk's over-provisioning, in millionths of its size (fio `spr_op`).
        over_provisioning_millionths: u32,
        /// The number of parts of the pass, each with its own blocks that come again (fio
        /// `spr_num_regions`); at least 1.
        regions: u32,
        /// The size of the disk's cache, with which blocks come again one part later (fio
        /// `spr_cs`); 0 for none.
        cache: Bytes,
    },
}

/// The sequential runs of a random job (fio `rw=randread:8`, `rw_sequencer`, `percentage_random`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Runs {
    /// The number of requests after which the offset is drawn; at least 1.
    pub draw_every: u32,
    /// Whether requests between draws repeat the last offset instead of continuing.
    pub repeat: bool,
    /// The percentage of draws that are random; the others continue after the request before.
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

/// Zones of the device that are visited one after the other, with gaps (fio `zonemode=strided`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Strides {
    /// The bytes moved in a zone before the next one (`zonesize`).
    pub amount: Bytes,
    /// The length of a zone (`zonerange`).
    pub length: Bytes,
    /// The gap after each zone (`zoneskip`).
    pub skip: Bytes,
}

/// A limited rate. fio starts a request when the bytes issued before it are due,
/// and waits for all in flight before it sleeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rate {
    /// The limits of reads, writes and discards, bytes per second (fio `rate`, or `rate_iops` times
    /// the smallest size); 0: no limit.
    pub per_second: [u64; 3],
    /// The least rates of reads, writes and discards, bytes per second: a job that falls below ends
    /// (fio `rate_min`); 0: none.
    pub least: [u64; 3],
    /// The least rates in requests per second (fio `rate_iops_min`), whatever their sizes.
    pub least_requests: [u64; 3],
    /// The interval at which that is checked (fio `rate_cycle`).
    pub cycle: Nanos,
    /// The arrival process of requests (fio `rate_process`).
    pub process: ArrivalProcess,
    /// Whether think time does not count (fio `rate_ignore_thinktime`).
    pub ignores_thinking: bool,
    /// Whether the job is an open loop: requests in flight are not waited for (fio
    /// `io_submit_mode=offload`), and a request's latency counts from when it was due.
    pub offload: bool,
}

/// A share in the requests of all jobs with the same number (fio `flow`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// The number of the flow: jobs with the same number keep their ratio (fio `flow_id`).
    pub id: u32,
    /// The job's weight in the flow.
    pub weight: u32,
    /// The time for which a job that is ahead sleeps; 0: until it is no longer ahead.
    pub sleep: Nanos,
}

/// Reading back of written data (fio `verify`), without the processor's time for comparing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verify {
    /// The number of writes after which they are read back (fio `verify_backlog`); 0: after all
    /// of a pass.
    pub backlog: u64,
    /// The number that is read back then (fio `verify_backlog_batch`); 0: the whole backlog.
    pub batch: u64,
}

/// Zones that are written sequentially, which fio emulates on a device that is not zoned (fio
/// `zonemode=zbd`); `zones.rs` has the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ZoneRules {
    /// The length of a zone (`zonesize`); at least 512 bytes.
    pub size: Bytes,
    /// The writable part of a zone (`zonecapacity`); at most the length.
    pub capacity: Bytes,
    /// The largest number of zones open for writing, over all jobs (`max_open_zones`); 0: any.
    pub most_open: u32,
    /// The largest number of zones that one clone has open (`job_max_open_zones`).
    pub most_open_of_job: u32,
    /// Whether reads may go to unwritten places (`read_beyond_wp`).
    pub reads_beyond: bool,
    /// The written share of the region at which zones are reset, in millionths
    /// (`zone_reset_threshold`); 0: only full ones.
    pub reset_threshold_millionths: u32,
    /// The share of the writes beyond that threshold that reset a zone,
    /// in millionths (`zone_reset_frequency`).
    pub reset_frequency_millionths: u32,
}

/// A latency that the job keeps by adapting its depth (fio `latency_target`): the depth doubles
/// from 1 until a window fails, and is then searched between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LatencyTarget {
    /// The longest latency that counts as kept.
    pub target: Nanos,
    /// The time for which each depth is tried (`latency_window`).
    pub window: Nanos,
    /// The share of requests within the target that makes a window succeed,
    /// in millionths (`latency_percentile`).
    pub share_millionths: u32,
    /// Whether the search goes on for ever (`latency_run`); else the job ends after a window at the
    /// depth that was found.
    pub goes_on: bool,
}

/// The figure of a job that becomes steady (fio `steadystate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SteadyMeasure {
    /// Requests a second.
    Iops,
    /// Bytes a second.
    Bandwidth,
    /// The mean latency in nanoseconds.
    Latency,
}

/// The steady state at which a job ends (fio `steadystate`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SteadyState {
    /// The figure that is measured.
    pub measure: SteadyMeasure,
    /// Whether the slope of the line through the window counts; else the largest distance
    /// from its mean.
    pub slope: bool,
    /// The limit of that, in millionths of a unit, or of a percent of the mean.
    pub limit_millionths: u64,
    /// Whether the limit is in percent.
    pub in_percent: bool,
    /// The length of the window (`steadystate_duration`).
    pub duration: Nanos,
    /// The time at the start that is not measured (`steadystate_ramp_time`).
    pub ramp_time: Nanos,
    /// The interval of the checks (`steadystate_check_interval`).
    pub interval: Nanos,
}

/// The jobs that end with one under `exitall` (fio `exit_what`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitWhat {
    /// The jobs of its reporting group end with it.
    #[default]
    Group,
    /// All jobs that run at the same time end with it.
    Stonewall,
}

/// The conditions for a clone's pauses (fio `thinktime_blocks_type`, `thinktime_iotime`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Thinking {
    /// Whether requests count when they are issued, not when they complete.
    pub counts_issues: bool,
    /// The working time after which it also pauses; 0 for never.
    pub after: Nanos,
    /// Whether the count of requests does not cause pauses.
    pub only_by_time: bool,
}
