//! The orders of administrators, right and mistaken, and the faults of spares.

/// An administrator's order beyond those that faults need, or a fault of a spare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// A new disk is added, which serves an empty slot or waits as a spare.
    Spare,
    /// A member is replaced by a spare that is added for it.
    Replace {
        /// The slot whose member is replaced.
        member: usize,
    },
    /// A disk that serves no slot dies: a spare, or one that is being filled to replace a member.
    LoseSpare,
    /// The next commands fail of a disk that is attached and serves no slot: a spare, a disk that
    /// is filled to replace a member, or one that another disk has just replaced.
    SpareErrs {
        /// The number of commands that fail; at least 1.
        commands: u32,
    },
    /// The newest of the disks that are attached and serve no slot answers slowly from now on, like
    /// a disk in standby. Superblocks are written to it as to any other, and take as long.
    SlowSpare {
        /// The factor of the disk's latencies.
        factor: u64,
    },
    /// The administrator fails a disk that serves no slot: a spare, or one that is being filled
    /// to replace a member.
    FailSpare {
        /// Whether the newest such disk is failed, and not the oldest.
        newest: bool,
    },
    /// The administrator removes a disk that serves no slot. One that is being filled is not
    /// removed, and the order is refused.
    RemoveSpare {
        /// Whether the newest such disk is removed, and not the oldest.
        newest: bool,
    },
    /// The disk with the file that holds the bitmap dies.
    LoseBitmapFile,
    /// The next commands to the disk with the bitmap's file fail.
    BitmapFileErrs {
        /// The number of commands that fail; at least 1.
        commands: u32,
    },
    /// The sync that runs ends early.
    Idle,
    /// Syncs get a lowest and a highest speed.
    Speed {
        /// The lowest speed in KiB/s, kept while other requests use the array.
        minimum: u64,
        /// The highest speed in KiB/s.
        maximum: u64,
    },
    /// The array becomes read-only when all requests are answered.
    ReadOnly,
    /// The array becomes read-only at once, with writes under way.
    ReadOnlyAtOnce,
    /// The array takes writes again.
    ReadWrite,
}

/// A mistaken order, which must be refused and change nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A member that is in service is removed.
    Remove {
        /// The slot whose member is to be removed.
        member: usize,
    },
    /// A member is failed without which the array would lose data.
    FailNeeded {
        /// The slot whose member is to be failed.
        member: usize,
    },
    /// A disk that is in service is added once more.
    ReAddInService {
        /// The slot whose disk is added again.
        member: usize,
    },
    /// A disk is added that is too small for a member's data.
    AddSmall,
    /// A member is replaced that is not in sync, or for which there is no spare.
    ReplaceWithNothing {
        /// The slot whose member is to be replaced.
        member: usize,
    },
}
