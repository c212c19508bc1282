//! What administrators order, and what they order by mistake; and what strikes spares.

/// An order that an administrator gives beside those that faults need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// A new disk is added: it fills an empty slot, or waits as a spare.
    Spare,
    /// A member is replaced by a spare that is added for it.
    Replace {
        /// The slot whose member is replaced.
        member: usize,
    },
    /// A disk that serves no slot, a spare or one that is being filled to replace
    /// a member, dies.
    LoseSpare,
    /// The next commands fail of a disk that is attached and serves no slot: a spare, a disk that
    /// is filled to replace a member, or one whose place another has just taken.
    SpareErrs {
        /// So many commands fail; at least 1.
        commands: u32,
    },
    /// Of the disks that are attached and serve no slot the one that came last answers slowly from
    /// now on, as a disk does that has fallen asleep. Superblocks are written to it like to
    /// any other, and take as long.
    SlowSpare {
        /// By how much every latency of the disk is multiplied.
        factor: u64,
    },
    /// The administrator fails a disk that serves no slot: a spare, or one that is being filled
    /// to replace a member.
    FailSpare {
        /// The one that came last, and not the one that came first.
        newest: bool,
    },
    /// The administrator removes a disk that serves no slot. One that is being filled is not
    /// removed, and says so.
    RemoveSpare {
        /// The one that came last, and not the one that came first.
        newest: bool,
    },
    /// The disk with the file that holds the bitmap dies.
    LoseBitmapFile,
    /// The next commands to the disk with the bitmap's file fail.
    BitmapFileErrs {
        /// So many commands fail; at least 1.
        commands: u32,
    },
    /// The sync that runs ends early.
    Idle,
    /// Syncs go at least and at most so fast.
    Speed {
        /// In KiB/s, while others use the array.
        minimum: u64,
        /// In KiB/s, never more than this.
        maximum: u64,
    },
    /// No more writes, when all requests are answered.
    ReadOnly,
    /// No more writes than those under way.
    ReadOnlyAtOnce,
    /// The array takes writes again.
    ReadWrite,
}

/// An order that must be refused, and change nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// A member that is in service is removed.
    Remove {
        /// The slot whose member is to be removed.
        member: usize,
    },
    /// A member is failed that the array cannot do without.
    FailNeeded {
        /// The slot whose member is to be failed.
        member: usize,
    },
    /// A disk that is in service is put in once more.
    ReAddInService {
        /// The slot whose disk is put in again.
        member: usize,
    },
    /// A disk is added that has no room for what a member holds.
    AddSmall,
    /// A member is replaced that is not in sync, or though there is no spare.
    ReplaceWithNothing {
        /// The slot whose member is to be replaced.
        member: usize,
    },
}
