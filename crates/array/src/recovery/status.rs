//! The status of a sync.

use raidlab_units::Sectors;

/// The kind of a sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SyncKind {
    /// Fills members that were added.
    Recovery,
    /// Makes the copies, or data and parity, of a dirty array agree.
    Resync,
    /// Compares copies, or data and parity, and changes nothing.
    Check,
    /// Compares, and corrects differences.
    Repair,
}

impl SyncKind {
    /// Whether the sync only compares, on demand: a check or a repair.
    #[must_use]
    pub const fn is_on_demand(self) -> bool {
        matches!(self, Self::Check | Self::Repair)
    }

    /// Returns the kind in a word, as in `/proc/mdstat`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Recovery => "recovery",
            Self::Resync => "resync",
            Self::Check => "check",
            Self::Repair => "repair",
        }
    }
}

/// The progress of a sync. Positions are array sectors; for levels with parity, and for the
/// recovery of a RAID 10, sectors of the members' data areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncStatus {
    /// The kind of the sync.
    pub kind: SyncKind,
    /// The position below which the sync is done.
    pub position: Sectors,
    /// The position below which reads may be served from the targets (recovery), or
    /// are balanced (resync).
    pub readable_below: Sectors,
    /// The position at which the sync ends.
    pub total: Sectors,
    /// The number of blocks in flight, one that waits for its range included.
    pub in_flight: u32,
    /// The number of times that the sync slept, as it was above its maximum speed.
    pub sleeps: u64,
    /// The sectors a second above which the sync sleeps, as positions count them; `None` where it
    /// does not for that reason.
    pub fastest: Option<Sectors>,
}
