//! What is told of a sync.

use raidlab_units::Sectors;

/// What a sync does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SyncKind {
    /// Fills members that were put in.
    Recovery,
    /// Makes the copies, or data and parity, of a dirty array agree.
    Resync,
    /// Compares copies, or data and parity, and changes nothing.
    Check,
    /// Compares, and makes agree what does not.
    Repair,
}

impl SyncKind {
    /// The kind in a word, as `/proc/mdstat` has it.
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

/// How far a sync is. Positions are array sectors; for levels with parity, and
/// for the recovery of a RAID 10, sectors of the members' data areas.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncStatus {
    /// What the sync does.
    pub kind: SyncKind,
    /// The sync is done with everything below this position.
    pub position: Sectors,
    /// Reads may be served from the targets below (recovery); reads are balanced
    /// below (resync).
    pub readable_below: Sectors,
    /// The position at which the sync ends.
    pub total: Sectors,
    /// Blocks in flight, one that waits for its range included.
    pub in_flight: u32,
    /// How often it was put to sleep so far, as it was above its maximum speed.
    pub sleeps: u64,
}
