//! The finer shapes of a job: sizes that differ, offsets that are not drawn
//! evenly, rates, pauses and dependences between jobs.
//!
//! Shares and exponents are whole parts of a million, so that a job can be
//! compared and printed exactly.

use raidlab_units::{Bytes, Nanos};

/// Sizes of the requests of one direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sizes {
    /// All alike (fio `bs`).
    One(Bytes),
    /// Drawn evenly, in steps of the least (fio `bsrange`).
    Range {
        /// The smallest.
        least: Bytes,
        /// The largest.
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
    /// Evenly.
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
        /// In millionths of the region.
        deviation_millionths: u32,
    },
    /// Zones, each with its share of requests and of the region, in percent.
    Zoned(Vec<(u32, u32)>),
    /// Zones, each with its share of requests in percent and its length.
    ZonedByLength(Vec<(u32, Bytes)>),
    /// These blocks, again and again (fio `sequence:`).
    Sequence {
        /// Block numbers.
        blocks: Vec<u64>,
        /// Each time as many blocks further on as the list is long.
        strides: bool,
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
    /// Bytes a second of reads and of writes (fio `rate`, or `rate_iops` times
    /// the smallest size); 0: no limit.
    pub per_second: [u64; 2],
    /// The least rate, bytes a second, of reads and of writes: a job that falls
    /// below it ends (fio `rate_min`, `rate_iops_min`); 0: none.
    pub least: [u64; 2],
    /// How often that is looked at (fio `rate_cycle`).
    pub cycle: Nanos,
    /// Requests at the times of a Poisson process (fio `rate_process`).
    pub poisson: bool,
    /// Time spent thinking does not count (fio `rate_ignore_thinktime`).
    pub ignores_thinking: bool,
    /// What is in flight is not waited for (fio `io_submit_mode=offload`).
    pub offload: bool,
}

/// A share in the requests of all jobs with the same number (fio `flow`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Flow {
    /// fio `flow_id`.
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
}

/// Which jobs end with one that ends under `exitall` (fio `exit_what`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ExitWhat {
    /// Those of its reporting group.
    #[default]
    Group,
    /// All that run with it.
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
