//! One stripe of the cache: a block of 4 KiB of each member, and the work pending on it.

use super::BLOCK;
use raidlab_array::{RequestId, Slot};
use raidlab_geometry::SlotSet;

/// Sectors of one member's block that a request writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) slot: Slot,
    /// The first sector that is written, counted from the block's start.
    pub(super) from: u64,
    /// The sector after the last one that is written, counted from the block's start.
    pub(super) to: u64,
    pub(super) request: RequestId,
    pub(super) force_unit_access: bool,
}

/// The progress of a stripe of a sync with its parity (`check_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Check {
    #[default]
    Idle,
    /// Parity was compared; `computed`: the lost blocks were computed, and are still to be written.
    Compared { computed: bool },
}

/// The progress of a sync on a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SyncStage {
    #[default]
    No,
    Requested,
    Runs,
}

/// New data and parity, computed and still to be written (`reconstruct_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Drained {
    /// Whether the parity is made by read-modify-write.
    pub(super) modified: bool,
}

/// A stripe in the cache.
#[derive(Debug, Default)]
pub(super) struct Stripe {
    /// The number of plugs, threads and commands that use the stripe.
    pub(super) references: u32,
    /// Whether the stripe is in use: on no list of free ones.
    pub(super) is_active: bool,
    /// Whether the thread has to handle the stripe.
    pub(super) wants_handling: bool,
    /// The stripe's place in the thread's list, if it is there.
    pub(super) ticket: Option<u64>,
    /// Blocks that are in memory (`R5_UPTODATE`).
    pub(super) fresh: SlotSet,
    /// Blocks that are read, written or about to be (`R5_LOCKED`).
    pub(super) locked: SlotSet,
    /// Requests that read a block.
    pub(super) reads: Vec<(Slot, RequestId)>,
    /// Parts of requests to be written, not taken over yet (`towrite`).
    pub(super) writes: Vec<Part>,
    /// Parts of requests that are being written to the members (`written`).
    pub(super) written: Vec<Part>,
    pub(super) drained: Option<Drained>,
    pub(super) check: Check,
    pub(super) sync: SyncStage,
    /// Whether the parity fits, or the lost blocks have been written (`STRIPE_INSYNC`).
    pub(super) is_in_sync: bool,
    /// Blocks that the medium refused; they count as lost until written again.
    pub(super) refused: SlotSet,
    /// Blocks of `refused` that were written again and are to be read once more.
    pub(super) rewritten: SlotSet,
    /// Whether the thread has handled the stripe since it came into the cache; if so, it
    /// joins no batch.
    pub(super) is_known: bool,
    /// The stripe that heads the batch that this one is in.
    pub(super) head: Option<u64>,
    /// The other stripes of the batch that this one heads, ascending.
    pub(super) batch: Vec<u64>,
}

impl Stripe {
    pub(super) fn reads_of(&self) -> SlotSet {
        self.reads.iter().map(|(slot, _)| *slot).collect()
    }

    pub(super) fn writes_of(&self) -> SlotSet {
        self.writes.iter().map(|part| part.slot).collect()
    }

    /// Returns the blocks that are written wholly (`R5_OVERWRITE`).
    pub(super) fn overwrites(&self) -> SlotSet {
        let whole = |slot: &Slot| {
            let parts = self.writes.iter().filter(|part| part.slot == *slot);
            let covered = parts.fold(0_u32, |mask, part| {
                mask | ((1 << part.to) - 1) & !((1 << part.from) - 1)
            });
            covered == (1 << BLOCK) - 1
        };
        self.writes_of().iter().filter(whole).collect()
    }

    /// Whether these parts can be added: none of their sectors is to be written already, and the
    /// stripe is in no batch (`stripe_bio_overlaps`). What is on its way
    /// to the members does not count.
    pub(super) fn takes(&self, parts: &[Part]) -> bool {
        let meets = |new: &Part| {
            let mut old = self.writes.iter().filter(|old| old.slot == new.slot);
            old.any(|old| old.from < new.to && new.from < old.to)
        };
        self.head.is_none() && self.batch.is_empty() && !parts.iter().any(meets)
    }

    /// Whether the stripe, of `data` data blocks, can be part of a batch (`stripe_can_batch`).
    pub(super) fn can_batch(&self, data: usize) -> bool {
        !self.is_known && self.overwrites().len() == data
    }

    pub(super) fn is_synced_now(&self) -> bool {
        self.sync == SyncStage::Runs
    }
}
