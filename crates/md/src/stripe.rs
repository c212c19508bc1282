//! One stripe of the cache: a block of 4 KiB of each member, and what is to
//! become of it.

use super::BLOCK;
use raidlab_array::{RequestId, Slot};
use raidlab_geometry::SlotSet;

/// Sectors of one member's block that a request writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) slot: Slot,
    /// The first sector that is written, counted from the block's start.
    pub(super) from: u64,
    /// The sector after the last one that is written, counted likewise.
    pub(super) to: u64,
    pub(super) request: RequestId,
    pub(super) force_unit_access: bool,
}

/// How far a stripe of a sync is with its parity (`check_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum Check {
    #[default]
    Idle,
    /// Parity was compared; `computed`: what is lost was made, and is still to be
    /// written.
    Compared { computed: bool },
}

/// What a sync wants of a stripe.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum SyncStage {
    #[default]
    No,
    Requested,
    Runs,
}

/// New data and parity are computed and are to be written
/// (`reconstruct_state`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Drained {
    /// Its parity is made by read-modify-write.
    pub(super) modified: bool,
}

/// A stripe in the cache.
#[derive(Debug, Default)]
pub(super) struct Stripe {
    /// Plugs, the thread and commands that hold it.
    pub(super) references: u32,
    /// It is on no list of free ones.
    pub(super) is_active: bool,
    /// The thread is to look at it.
    pub(super) wants_handling: bool,
    /// Its place in the thread's list, if it is there.
    pub(super) ticket: Option<u64>,
    /// Blocks that are in memory (`R5_UPTODATE`).
    pub(super) fresh: SlotSet,
    /// Blocks that are read, written or about to be (`R5_LOCKED`).
    pub(super) locked: SlotSet,
    /// Requests that want a block.
    pub(super) reads: Vec<(Slot, RequestId)>,
    /// What requests write, not taken over yet (`towrite`).
    pub(super) writes: Vec<Part>,
    /// What is on its way to the members (`written`).
    pub(super) written: Vec<Part>,
    pub(super) drained: Option<Drained>,
    pub(super) check: Check,
    pub(super) sync: SyncStage,
    /// Its parity fits, or what was lost has been written (`STRIPE_INSYNC`).
    pub(super) is_in_sync: bool,
    /// Blocks that the medium refused; they count as lost until written again.
    pub(super) refused: SlotSet,
    /// Of these, written again and to be read once more.
    pub(super) rewritten: SlotSet,
    /// The thread has looked at it since it came into the cache: it joins no batch.
    pub(super) is_known: bool,
    /// The stripe that heads its batch.
    pub(super) head: Option<u64>,
    /// The others of the batch that it heads, ascending.
    pub(super) batch: Vec<u64>,
}

impl Stripe {
    pub(super) fn reads_of(&self) -> SlotSet {
        self.reads.iter().map(|(slot, _)| *slot).collect()
    }

    pub(super) fn writes_of(&self) -> SlotSet {
        self.writes.iter().map(|part| part.slot).collect()
    }

    /// Blocks that are written wholly (`R5_OVERWRITE`).
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

    /// Whether it can be part of a batch of stripes with so many data blocks
    /// (`stripe_can_batch`).
    pub(super) fn can_batch(&self, data: usize) -> bool {
        !self.is_known && self.overwrites().len() == data
    }

    pub(super) fn is_synced_now(&self) -> bool {
        self.sync == SyncStage::Runs
    }
}
