//! The rules of recovery as data, and the sets of rules that known drivers use.

use super::MdRules;
use crate::senders::{HostRequests, OtherRequests};
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES, Sectors};

/// The rules by which members are recovered and resynced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecoveryConfig {
    /// The size of a block, which is one read command and one write command per target. md's own
    /// block is 64 KiB, but it plugs the queue while it submits, and the block layer merges
    /// adjacent blocks into commands of up to the queue's limit (512 KiB in Linux 3.16): give the
    /// merged size, as the core has no block layer, or set `merged`. Whole sectors, at least one.
    pub block: Bytes,
    /// The number of blocks in flight at once, at least 1.
    pub depth: u32,
    /// The longest command into which adjacent blocks that start in the same instant are merged, as
    /// a plugged block layer does with md's blocks. `None`: each goes by itself. Levels with copies
    /// merge only behind a barrier that counts all I/O (`MdBuckets`, `MdArray`).
    pub merged: Option<Bytes>,
    /// A tick of the kernel's timer, 1/HZ s: where md sleeps for one to let writes pass
    /// (`schedule_timeout_uninterruptible(1)`), it wakes at the second tick from then.
    pub tick: Nanos,
    /// The member from which a block of a sync is read.
    pub source: SyncSource,
    /// The rule that separates foreground writes and sync blocks.
    pub barrier: WriteBarrier,
    /// The foreground writes that a member under recovery gets.
    pub recovering_writes: RecoveringWrites,
    /// The rule by which a sync makes room for foreground I/O.
    pub throttle: Throttle,
    /// The reads that a member under recovery may serve.
    pub read_recovered: ReadRecovered,
    /// The rule for checkpoints; `None`: none are taken.
    pub checkpoint: Option<CheckpointRule>,
    /// The interaction of md's threads, where md itself is predicted. Only levels with
    /// copies use it.
    pub threads: Option<MdThreads>,
}

/// The behaviour of md that follows from its threads (Linux 6.12): the submitting processes, one
/// thread of the array (raid1d, raid10d), and the sync's.
///
/// * A block of a sync that was read goes on in the array's thread. While that one
///   writes superblocks or the bitmap, and waits for them (`md_check_recovery`), no block
///   is written or compared.
/// * A RAID 10's resync reads all copies of a block and writes those that differ
///   (`raid10_sync_request`, `sync_request_write`); other mirrors read one and write the
///   others.
/// * Submitting processes run before the sync's thread. An answer first wakes the process that
///   waited for it, then the thread that waits to raise its barrier
///   (`raid_end_bio_io` before `allow_barrier`); the end of a block wakes the processes that
///   wait at the barrier, and then the thread, which sleeps a tick if it still finds
///   one waiting, as it does where it runs before that process. A RAID 10's block
///   whose copies are alike wakes the thread first where that waits for the end of all
///   blocks (`sync_request_write`: `md_done_sync` before `put_buf`), so that it finds the
///   waiting process and sleeps. With one processor the process runs until it sleeps.
/// * The sync's thread checks for waiters once for each block, as it comes to
///   it; then it raises the barrier, and with that up waits for a place in the window
///   (`raise_barrier`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MdThreads {
    /// The time of a process from an answer to its next request.
    pub turnaround: Nanos,
    /// The requests that the host has for each member's disk: a thread that finds none sleeps.
    pub requests: HostRequests,
    /// The members before whose disks the host has others, as before NVMe drives beside SATA disks.
    pub others: OtherRequests,
    /// Whether blocks of a sync are commands of their own, and those that leave in one instant
    /// side by side on a member are merged into one (up to `merged`), across the chunks of an
    /// array too: the plug of the thread that sends them. Only where no bytes are moved, as such a
    /// command has several buffers.
    pub plugs: bool,
    /// The differences between Linux versions.
    pub rules: MdRules,
    /// Whether the processes share one processor: those that are woken together submit one after
    /// the other, a turnaround apart.
    pub one_processor: bool,
}

impl MdThreads {
    /// Linux 6.12 before SATA disks, on a host whose processes take no time to compute, and without
    /// plugs, so that bytes may be moved.
    pub const LINUX_6_12: Self = Self {
        turnaround: Nanos::ZERO,
        requests: HostRequests::SATA,
        others: None,
        plugs: false,
        rules: MdRules::LINUX_6_12,
        one_processor: false,
    };
}

/// The member that is read for a sync block. Members that fail the read are passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncSource {
    /// The lowest slot in sync that is not write-mostly; where copies begin on another member with
    /// each chunk, the one with the first copy in md's order (md).
    LowestInSync,
    /// The member that the read policy chooses (gmirror).
    Balanced,
}

/// The rule that separates foreground writes and sync blocks. Whatever the rule, a sync block never
/// starts over a write in flight.
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

/// The foreground writes that a member under recovery gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecoveringWrites {
    /// A member under recovery gets all writes (md).
    Everywhere,
    /// Writes that start below the next block (gmirror).
    BelowPosition,
}

/// The rule by which a sync makes room for foreground I/O. Speeds are in KiB/s, the unit of md's
/// `speed_limit_min` and `speed_limit_max`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    /// No room is made for other I/O.
    None,
    /// An even pace: a block starts when the blocks before it are due at this
    /// speed. Time lost is not made up.
    Rate {
        /// The speed while no foreground I/O uses the members; at least 1.
        maximum_kib_per_second: u64,
        /// The speed while foreground I/O does, by md's idle test; at least 1.
        busy_kib_per_second: u64,
    },
    /// md until Linux 4.1: above the minimum, and if the array is not idle or the maximum is
    /// exceeded, the sync sleeps 500 ms and checks again.
    MdSleep {
        /// The speed below which the throttle never slows the sync.
        minimum_kib_per_second: u64,
        /// The speed that the sync never exceeds.
        maximum_kib_per_second: u64,
    },
    /// md from Linux 4.2 to 6.14: above the maximum, the sync sleeps as before; above the minimum
    /// and not idle, it lets the blocks in flight finish.
    MdDrain {
        /// The lowest speed, as for [`Self::MdSleep`].
        minimum_kib_per_second: u64,
        /// The highest speed, as for [`Self::MdSleep`].
        maximum_kib_per_second: u64,
    },
}

impl Throttle {
    /// Returns the lowest and the highest speed, in KiB/s; md's defaults where the rule has none.
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

    /// Returns the same rule with other speeds, in KiB/s; a rule without speeds becomes that of md
    /// since Linux 4.2.
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

/// The reads that a member under recovery may serve.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadRecovered {
    /// A member under recovery serves no reads before its end (gmirror, ZFS).
    AtEnd,
    /// Reads that end at or below the last checkpoint (md).
    BelowCheckpoint,
    /// Reads that end at or below what is copied (gflash).
    BelowPosition,
}

/// A checkpoint is taken when the progress since the last one is more than a
/// part of the whole, or when enough time has passed (Linux
/// drivers/md/md.c, `md_do_sync`: a sixteenth, five minutes).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointRule {
    /// The part of the array that makes a checkpoint due: 16 means a sixteenth; at least 1.
    pub parts: u64,
    /// A checkpoint is taken when this much time has passed since the last one.
    pub interval: Nanos,
    /// The interval of checkpoints during a recovery.
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
    /// The depth is zero, so that no block could be in flight.
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
    /// A pace of zero.
    #[error("a rate of 0 KiB/s copies nothing")]
    Rate,
    /// The rule for checkpoints has zero parts.
    #[error("a checkpoint every 0th part of the array has no meaning")]
    CheckpointParts,
    /// Reads are permitted below the checkpoint only, and no rule takes checkpoints.
    #[error("reads below the checkpoint need a checkpoint rule")]
    NoCheckpoint,
}

/// The rule of md in all versions: a sixteenth of the array, or five minutes.
const MD_CHECKPOINT: CheckpointRule = CheckpointRule {
    parts: 16,
    interval: Nanos::from_secs(300),
    interval_of_recovery: Nanos::from_secs(300),
};

/// The tick at HZ = 250, as in Debian's and Ubuntu's kernels.
const TICK: Nanos = Nanos::from_millis(4);

/// `sysctl_speed_limit_min` and `_max` of drivers/md/md.c, in KiB/s.
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

    /// Returns the rules of the imitated Linux; those of 6.12 where none is imitated.
    pub(crate) fn rules(&self) -> MdRules {
        let threads = self.threads;
        threads.map_or(MdRules::LINUX_6_12, |threads| threads.rules)
    }

    /// Returns the longest time between writers whose bits are set in one moment, if md has workers
    /// that find the bits of several: those that were woken together.
    pub(crate) fn moment_of_writers(&self) -> Option<Nanos> {
        let threads = self.threads.filter(|threads| threads.one_processor);
        let moment = threads.map_or(Nanos::ZERO, |threads| threads.turnaround);
        self.rules().bits_by_worker.then_some(moment)
    }

    /// Returns the end of a sleep of one tick that begins now: the timer rounds up once for the
    /// tick that is under way and once for its own wheel.
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
    /// Returns the rule for a sync that fills members, or for another one.
    #[must_use]
    pub const fn of(mut self, fills: bool) -> Self {
        if fills {
            self.interval = self.interval_of_recovery;
        }
        self
    }

    /// Whether a checkpoint is due: everything below `next` of `total` is done, the last one was at
    /// `completed`, at the time `checkpointed_at`.
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
