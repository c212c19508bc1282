//! The rules of recovery as data, and the sets that known drivers use.

use super::MdRules;
use crate::senders::HostRequests;
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES, Sectors};

/// How members are recovered and resynced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryConfig {
    /// What one block is: one read command and one write command per target.
    /// md's own block is 64 KiB, but it plugs the queue while it submits, and
    /// the block layer merges adjacent blocks into commands of up to the
    /// queue's limit (512 KiB in Linux 3.16): give the merged size, as the
    /// core has no block layer, or say the size to `merged`. Whole sectors, at
    /// least one.
    pub block: Bytes,
    /// Blocks in flight at once, at least 1.
    pub depth: u32,
    /// Adjacent blocks that start in the same instant go as one command of at
    /// most this size: what a plugged block layer does with md's blocks. `None`:
    /// each goes by itself. Levels with copies merge only behind a barrier that
    /// counts all I/O (`MdBuckets`, `MdArray`).
    pub merged: Option<Bytes>,
    /// A tick of the kernel's timer, 1/HZ s: where md sleeps for one out of
    /// courtesy (`schedule_timeout_uninterruptible(1)`), it wakes at the second
    /// tick from then.
    pub tick: Nanos,
    /// Which member a block of a sync is read from.
    pub source: SyncSource,
    /// What keeps foreground writes and sync blocks apart.
    pub barrier: WriteBarrier,
    /// Which foreground writes a member under recovery gets.
    pub recovering_writes: RecoveringWrites,
    /// How sync makes room for foreground I/O.
    pub throttle: Throttle,
    /// Which reads a member under recovery may serve.
    pub read_recovered: ReadRecovered,
    /// When checkpoints are taken, if ever.
    pub checkpoint: Option<CheckpointRule>,
    /// Where md itself is predicted, how its threads get in each other's way. Only
    /// levels with copies look at it.
    pub threads: Option<MdThreads>,
}

/// What md does because it has the threads that it has (Linux 6.12): the processes that
/// submit, one thread of the array (raid1d, raid10d), and the sync's.
///
/// * A block of a sync that was read goes on in the array's thread. While that one
///   writes superblocks or the bitmap, and waits for them (`md_check_recovery`), nothing
///   is written or compared.
/// * A RAID 10's resync reads all copies of a block and writes those that differ
///   (`raid10_sync_request`, `sync_request_write`); other mirrors read one and write the
///   others.
/// * Who submits comes before the sync's thread. An answer first wakes the process that
///   waited for it, then the thread that waits to raise its barrier
///   (`raid_end_bio_io` before `allow_barrier`); the end of a block wakes whoever
///   waits at the barrier, and then the thread, which sleeps a tick if it still finds
///   somebody waiting, as it does where it goes before that process. A RAID 10's block
///   whose copies are alike wakes the thread first where that waits for the end of all
///   blocks (`sync_request_write`: `md_done_sync` before `put_buf`), so that it finds who
///   waits and sleeps. With one processor the process runs until it sleeps.
/// * The sync's thread looks whether somebody waits once for each block, as it comes to
///   it; then it raises the barrier, and with that up waits for a place in the window
///   (`raise_barrier`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MdThreads {
    /// What a process takes from an answer to its next request.
    pub turnaround: Nanos,
    /// What the host holds for each member's disk: who sends more, sleeps.
    pub requests: HostRequests,
    /// Blocks of a sync are commands of their own, and those that leave in one instant
    /// side by side on a member are one (`merged` says how long at most), across the
    /// chunks of an array too: the plug of the thread that sends them. Only where no bytes
    /// are moved, as such a command has several buffers.
    pub plugs: bool,
    /// What differs from one Linux to another.
    pub rules: MdRules,
    /// The processes share one processor: those that are woken together submit one after the
    /// other, a turnaround apart.
    pub one_processor: bool,
}

impl MdThreads {
    /// Linux 6.12 before SATA disks, on a host whose processes compute for nothing, and without
    /// plugs, so that bytes may be moved.
    pub const LINUX_6_12: Self = Self {
        turnaround: Nanos::ZERO,
        requests: HostRequests::SATA,
        plugs: false,
        rules: MdRules::LINUX_6_12,
        one_processor: false,
    };
}

/// Who is read for a sync block. Members that fail the read are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncSource {
    /// The lowest slot in sync that is not write-mostly, where copies begin on another
    /// member with each chunk the first one in md's order (md).
    LowestInSync,
    /// Whoever the read policy chooses (gmirror).
    Balanced,
}

/// What keeps foreground writes and sync blocks apart. Whatever the rule, a
/// sync block never starts over a write in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteBarrier {
    /// A write waits for a block that it overlaps, a block for a write that it
    /// overlaps (gmirror).
    Overlap,
    /// md of Linux 3.13 to 4.10: windows around the sync position; writes near
    /// it wait until no block is in flight.
    MdWindow,
    /// md of Linux 4.11 and later: units of 64 MiB; a write waits while blocks
    /// are in flight in its unit, a block while other I/O is.
    MdBuckets,
    /// md's RAID 10 (Linux 6.12 drivers/md/raid10.c, `raise_barrier` and
    /// `wait_barrier`): one unit, the whole array, and reads wait as well.
    MdArray,
}

/// Which foreground writes a member under recovery gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveringWrites {
    /// A member under recovery gets all writes (md).
    Everywhere,
    /// Those that start below the next block (gmirror).
    BelowPosition,
}

/// How sync makes room for foreground I/O. Speeds are in KiB/s, the unit of
/// md's `speed_limit_min` and `speed_limit_max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    /// A sync makes no room for others.
    None,
    /// An even pace: a block starts when the blocks before it are due at this
    /// speed. Time lost is not made up.
    Rate {
        /// While nobody else uses the members; at least 1.
        maximum_kib_per_second: u64,
        /// While others do, by md's idle test; at least 1.
        busy_kib_per_second: u64,
    },
    /// md until Linux 4.1: above the minimum, and if the array is not idle or
    /// the maximum is passed, sleep 500 ms and look again.
    MdSleep {
        /// Never slower than this by the throttle's doing.
        minimum_kib_per_second: u64,
        /// A sync is never faster than this.
        maximum_kib_per_second: u64,
    },
    /// md from Linux 4.2 to 6.14: above the maximum, sleep as before; above
    /// the minimum and not idle, let the blocks in flight finish.
    MdDrain {
        /// The lowest speed, as for [`Self::MdSleep`].
        minimum_kib_per_second: u64,
        /// The highest speed, as for [`Self::MdSleep`].
        maximum_kib_per_second: u64,
    },
}

impl Throttle {
    /// The lowest and the highest speed, in KiB/s; md's defaults where there are none.
    #[must_use]
    pub const fn speeds(self) -> (u64, u64) {
        match self {
            Self::None => MD_SPEEDS,
            Self::Rate {
                maximum_kib_per_second: maximum,
                busy_kib_per_second: minimum,
            }
            | Self::MdSleep {
                minimum_kib_per_second: minimum,
                maximum_kib_per_second: maximum,
            }
            | Self::MdDrain {
                minimum_kib_per_second: minimum,
                maximum_kib_per_second: maximum,
            } => (minimum, maximum),
        }
    }

    /// The same way of making room with other speeds, in KiB/s; who has none gets
    /// md's since Linux 4.2.
    #[must_use]
    pub fn with_speeds(self, minimum_kib_per_second: u64, maximum_kib_per_second: u64) -> Self {
        match self {
            Self::Rate { .. } => Self::Rate {
                maximum_kib_per_second: maximum_kib_per_second.max(1),
                busy_kib_per_second: minimum_kib_per_second.max(1),
            },
            Self::MdSleep { .. } => Self::MdSleep {
                minimum_kib_per_second,
                maximum_kib_per_second,
            },
            Self::None | Self::MdDrain { .. } => Self::MdDrain {
                minimum_kib_per_second,
                maximum_kib_per_second,
            },
        }
    }
}

/// Which reads a member under recovery may serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadRecovered {
    /// A member under recovery serves no reads before its end (gmirror, ZFS).
    AtEnd,
    /// Those that end at or below the last checkpoint (md).
    BelowCheckpoint,
    /// Those that end at or below what is copied (gflash).
    BelowPosition,
}

/// A checkpoint is taken when the progress since the last one is more than a
/// part of the whole, or when enough time has passed (Linux
/// drivers/md/md.c, `md_do_sync`: a sixteenth, five minutes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointRule {
    /// 16 means a sixteenth of the array; at least 1.
    pub parts: u64,
    /// A checkpoint is taken when this much time has passed since the last one.
    pub interval: Nanos,
    /// The same while a member is filled.
    pub interval_of_recovery: Nanos,
}

/// Recovery settings that cannot work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum RecoveryConfigError {
    /// The size of a block is zero, or not whole sectors.
    #[error("a block of {bytes} bytes is not one or more whole sectors")]
    Block {
        /// Bytes of a block, as asked for.
        bytes: u64,
    },
    /// No block may be in flight.
    #[error("a depth of 0 copies nothing")]
    Depth,
    /// A merged command smaller than a block, or not of whole sectors.
    #[error("a merged command of {bytes} bytes does not hold whole sectors of at least one block")]
    Merged {
        /// Bytes of a block, as asked for.
        bytes: u64,
    },
    /// The timer's tick is zero, so a sleep of one tick would never end.
    #[error("a timer tick of 0 never comes")]
    Tick,
    /// A pace that never gets on.
    #[error("a rate of 0 KiB/s copies nothing")]
    Rate,
    /// The rule for checkpoints has zero parts.
    #[error("a checkpoint every 0th part of the array has no meaning")]
    CheckpointParts,
    /// Reads go below the checkpoint only, and there is no rule that takes one.
    #[error("reads below the checkpoint need a checkpoint rule")]
    NoCheckpoint,
}

/// The rule of md in all versions: a sixteenth of the array, or five minutes.
const MD_CHECKPOINT: CheckpointRule = CheckpointRule {
    parts: 16,
    interval: Nanos::from_secs(300),
    interval_of_recovery: Nanos::from_secs(300),
};

/// HZ = 250, as Debian's and Ubuntu's kernels have it.
const TICK: Nanos = Nanos::from_millis(4);

/// `sysctl_speed_limit_min` and `_max` of drivers/md/md.c.
const MD_SPEEDS: (u64, u64) = (1000, 200_000);

impl RecoveryConfig {
    /// md of Linux 3.16 (drivers/md/raid1.c and md.c of 3.18.8): a window of
    /// 2 MiB, as four commands of 512 KiB.
    #[must_use]
    pub const fn md_3_16() -> Self {
        Self {
            block: Bytes(512 << 10),
            depth: 4,
            merged: None,
            tick: TICK,
            source: SyncSource::LowestInSync,
            barrier: WriteBarrier::MdWindow,
            recovering_writes: RecoveringWrites::Everywhere,
            throttle: Throttle::MdSleep {
                minimum_kib_per_second: MD_SPEEDS.0,
                maximum_kib_per_second: MD_SPEEDS.1,
            },
            read_recovered: ReadRecovered::BelowCheckpoint,
            checkpoint: Some(MD_CHECKPOINT),
            threads: None,
        }
    }

    /// md of Linux 4.11 to 6.14.
    #[must_use]
    pub const fn md_6() -> Self {
        Self {
            barrier: WriteBarrier::MdBuckets,
            throttle: Throttle::MdDrain {
                minimum_kib_per_second: MD_SPEEDS.0,
                maximum_kib_per_second: MD_SPEEDS.1,
            },
            ..Self::md_3_16()
        }
    }

    /// The rules of the Linux that is imitated; those of 6.12 where none is.
    pub(crate) fn rules(&self) -> MdRules {
        let threads = self.threads;
        threads.map_or(MdRules::LINUX_6_12, |threads| threads.rules)
    }

    /// How long after one another writers come whose bits are set in one moment, if md has workers
    /// that find the bits of several: those who were woken together.
    pub(crate) fn moment_of_writers(&self) -> Option<Nanos> {
        let threads = self.threads.filter(|threads| threads.one_processor);
        let moment = threads.map_or(Nanos::ZERO, |threads| threads.turnaround);
        self.rules().bits_by_worker.then_some(moment)
    }

    /// Until when a sleep of one tick lasts that begins now: the timer rounds up
    /// once for the tick that is under way and once for its own wheel.
    #[must_use]
    pub const fn after_a_tick(&self, now: Nanos) -> Nanos {
        Nanos((now.0 / self.tick.0 + 2) * self.tick.0)
    }

    /// gmirror of FreeBSD 10 (sys/geom/mirror/g_mirror.c): `sync_requests` 2,
    /// blocks of MAXPHYS, read through the mirror.
    #[must_use]
    pub const fn gmirror() -> Self {
        Self {
            block: Bytes(128 << 10),
            depth: 2,
            merged: None,
            tick: TICK,
            source: SyncSource::Balanced,
            barrier: WriteBarrier::Overlap,
            recovering_writes: RecoveringWrites::BelowPosition,
            throttle: Throttle::None,
            read_recovered: ReadRecovered::AtEnd,
            checkpoint: None,
            threads: None,
        }
    }

    pub(crate) fn check(&self) -> Result<(), RecoveryConfigError> {
        if self.block.0 == 0 || !self.block.0.is_multiple_of(SECTOR_BYTES) {
            return Err(RecoveryConfigError::Block {
                bytes: self.block.0,
            });
        }
        if self.depth == 0 {
            return Err(RecoveryConfigError::Depth);
        }
        if let Some(Bytes(bytes)) = self.merged
            && (bytes < self.block.0 || !bytes.is_multiple_of(SECTOR_BYTES))
        {
            return Err(RecoveryConfigError::Merged { bytes });
        }
        if self.tick == Nanos::ZERO {
            return Err(RecoveryConfigError::Tick);
        }
        if let Throttle::Rate {
            maximum_kib_per_second: maximum,
            busy_kib_per_second: busy,
        } = self.throttle
            && (maximum == 0 || busy == 0)
        {
            return Err(RecoveryConfigError::Rate);
        }
        if self.checkpoint.is_some_and(|rule| rule.parts == 0) {
            return Err(RecoveryConfigError::CheckpointParts);
        }
        if self.read_recovered == ReadRecovered::BelowCheckpoint && self.checkpoint.is_none() {
            return Err(RecoveryConfigError::NoCheckpoint);
        }
        Ok(())
    }
}

impl CheckpointRule {
    /// The rule for a sync that fills members, or for another one.
    #[must_use]
    pub const fn of(mut self, fills: bool) -> Self {
        if fills {
            self.interval = self.interval_of_recovery;
        }
        self
    }

    /// Whether a checkpoint is to be taken: everything below `next` of `total` is done, the
    /// last one was at `completed`, at the time `checkpointed_at`.
    #[must_use]
    pub fn is_due(
        &self,
        next: Sectors,
        completed: Sectors,
        total: Sectors,
        now: Nanos,
        checkpointed_at: Nanos,
    ) -> bool {
        let progress = next.0 - completed.0;
        progress > total.0 / self.parts || (progress > 0 && now >= checkpointed_at + self.interval)
    }
}

#[cfg(test)]
mod tests {
    use super::{RecoveryConfig, RecoveryConfigError};
    use raidlab_units::{Bytes, Nanos};

    #[test]
    fn settings_that_cannot_work_are_refused() {
        let good = RecoveryConfig::md_3_16;
        assert_eq!(good().check(), Ok(()));
        let cases = [
            (
                RecoveryConfig {
                    block: Bytes(1000),
                    ..good()
                },
                RecoveryConfigError::Block { bytes: 1000 },
            ),
            (
                RecoveryConfig { depth: 0, ..good() },
                RecoveryConfigError::Depth,
            ),
            (
                RecoveryConfig {
                    merged: Some(Bytes(256 << 10)),
                    ..good()
                },
                RecoveryConfigError::Merged { bytes: 256 << 10 },
            ),
            (
                RecoveryConfig {
                    tick: Nanos::ZERO,
                    ..good()
                },
                RecoveryConfigError::Tick,
            ),
            (
                RecoveryConfig {
                    checkpoint: None,
                    ..good()
                },
                RecoveryConfigError::NoCheckpoint,
            ),
        ];
        for (config, error) in cases {
            assert_eq!(config.check(), Err(error));
        }
    }
}
