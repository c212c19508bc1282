//! The blocks of a sync, and the parts of 4 KiB to which read errors are narrowed down.
use crate::request::{BufferId, ScratchId, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Sectors, Span};

/// A block being copied or compared.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Block {
    /// The positions of the sync that the block covers.
    pub(crate) positions: Span,
    /// The array sectors that the block covers.
    pub(crate) range: Span,
    /// The part that is being copied: all, or a few sectors where all could not
    /// be read.
    pub(crate) part: Span,
    /// The buffer of the block, from its first sector on.
    pub(crate) scratch: ScratchId,
    /// Members that failed a sync read of the part.
    pub(crate) tried: SlotSet,
    /// Whether a source that the array cannot do without is gone.
    pub(crate) source_gone: bool,
    /// The member whose bytes are being written to the others.
    pub(crate) source: Option<Slot>,
    /// The number of writes of the block to members that have not ended yet.
    pub(crate) writes: u32,
}

impl Block {
    pub(crate) fn new(new: NewBlock, scratch: ScratchId) -> Self {
        Self {
            positions: new.positions(),
            range: new.range,
            part: new.range,
            scratch,
            tried: SlotSet::EMPTY,
            source_gone: false,
            source: None,
            writes: 0,
        }
    }

    /// Returns the buffer of the part being copied.
    pub(crate) fn buffer(&self) -> BufferId {
        BufferId::Scratch {
            scratch: self.scratch,
            skip: Sectors(self.part.start.0 - self.range.start.0),
        }
    }

    /// Restricts the work to a few sectors, with no member tried.
    pub(crate) fn begin_part(&mut self, start: Sectors) {
        self.part = part(start, self.range.end);
        self.tried = SlotSet::EMPTY;
    }

    /// Goes on with the part behind the one that is done; returns false at the end.
    pub(crate) fn next_part(&mut self) -> bool {
        let start = self.part.end;
        if start < self.range.end {
            self.begin_part(start);
        }
        start < self.range.end
    }
}

/// A block of a sync that is about to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewBlock {
    /// The first of the sync's positions in the block: an array sector, or a sector of the member's
    /// data area in the recovery of a RAID 10.
    pub(crate) start: Sectors,
    /// The array sectors that the block covers.
    pub(crate) range: Span,
}

impl NewBlock {
    /// Returns the positions of the sync that the block would cover.
    pub(crate) fn positions(&self) -> Span {
        Span::between(self.start, self.start + self.range.count())
    }
}

/// Sectors of the parts to which errors are narrowed down: md's page.
const PART: u64 = 8;

/// Returns the part that begins at `start` in a range that ends at `end`: up to the next multiple
/// of 4 KiB.
pub(crate) fn part(start: Sectors, end: Sectors) -> Span {
    Span::between(start, Sectors((start.0 / PART + 1) * PART).min(end))
}

/// Whether a range is no more than one part.
pub(crate) fn is_part(range: Span) -> bool {
    part(range.start, range.end) == range
}
