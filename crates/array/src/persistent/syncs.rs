//! How far an array is in sync, and the syncs that are to bring it further.

use super::assembly::NeededSync;
use super::log_superblock::LogSays;
use crate::engine::SyncAction;
use raidlab_metadata::Superblock;
use raidlab_units::{Sectors, SpanSet};

/// How far an array is in sync.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct InSync {
    /// As `resync_offset` counts.
    pub(super) below: Sectors,
    /// Above lies what the first resync has not reached: see `assembly`.
    pub(super) is_first: bool,
}

impl InSync {
    /// As an array is that needs this resync.
    pub(super) fn but_for(resync: Option<&NeededSync>) -> Self {
        Self {
            below: resync.map_or(Superblock::IN_SYNC, |it| it.from),
            is_first: resync.is_some_and(|it| it.is_first),
        }
    }

    /// What the logs of a run say then; those that have been emptied are of run 0.
    pub(super) const fn in_logs_of(self, session: u64) -> LogSays {
        LogSays {
            session,
            in_sync_below: self.below,
            first_resync: self.is_first,
        }
    }
}

/// The sync under way, and what the next ones wait for.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    /// Members in sync when the resync under way began.
    pub(super) resynced_members: usize,
    /// What a failed write left different while a resync ran, which may have
    /// passed there already.
    pub(super) resync_again: SpanSet,
    /// The sync that was asked of the engine.
    pub(super) asked: Option<SyncAction>,
    /// No resync starts by itself until something changes.
    pub(super) resync_waits: bool,
    /// The next resync begins when no member is being filled: what one has of before may differ from
    /// what a failed flush has left of the others, which it is compared with when it is full.
    pub(super) waits_for_filled: bool,
    /// What was stopped goes on as soon as it has ended.
    pub(super) resume_due: bool,
    /// Sectors that the last check or repair found to differ.
    pub(super) mismatches: Sectors,
}
