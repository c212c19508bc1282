//! The part of an array that is in sync, and the syncs that extend it.

use super::assembly::NeededSync;
use super::log_superblock::LogSays;
use crate::engine::SyncAction;
use raidlab_metadata::Superblock;
use raidlab_units::{Sectors, SpanSet};

/// The part of an array that is in sync.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InSync {
    /// The position below which it is in sync, as `resync_offset` counts.
    pub(super) below: Sectors,
    /// Whether the part above is what the first resync has not reached: see `assembly`.
    pub(super) is_first: bool,
}

impl InSync {
    /// The state of an array that needs this resync.
    pub(super) fn but_for(resync: Option<&NeededSync>) -> Self {
        Self {
            below: resync.map_or(Superblock::IN_SYNC, |it| it.from),
            is_first: resync.is_some_and(|it| it.is_first),
        }
    }

    /// Returns the content of the logs of a run in this state; those that have been emptied are
    /// of run 0.
    pub(super) const fn in_logs_of(self, session: u64) -> LogSays {
        LogSays {
            session,
            in_sync_below: self.below,
            first_resync: self.is_first,
        }
    }
}

/// The sync under way, and the conditions of the next ones.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    /// The members in sync when the resync under way began.
    pub(super) resynced_members: usize,
    /// Ranges that a failed write left different while a resync ran, which may have
    /// passed there already.
    pub(super) resync_again: SpanSet,
    /// The sync that was ordered from the engine.
    pub(super) asked: Option<SyncAction>,
    /// Whether no resync starts by itself until something changes.
    pub(super) resync_waits: bool,
    /// Whether the next resync begins only when no member is under recovery: the older content of
    /// one may differ from what a failed flush has left of the others, with which it is compared
    /// when it is filled.
    pub(super) waits_for_filled: bool,
    /// Whether a sync that was stopped goes on as soon as it has ended.
    pub(super) resume_due: bool,
    /// Sectors that the last check or repair found to differ.
    pub(super) mismatches: Sectors,
}
