//! The reliable content of each member: the part that is filled, and its bad blocks.
//!
//! Bad blocks are ranges of the data area whose correct bytes are lost; reads avoid them until a
//! write has stored correct bytes again. For a failed member neither is known any more.

use super::{Members, Unfilled};
use crate::mutation::{self, Mutation};
use crate::request::{Event, Outputs, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Sectors, Span, SpanSet};

impl Members {
    /// Whether a member may serve a read of this range of its data area.
    pub(crate) fn may_read(&self, slot: Slot, range: Span) -> bool {
        let view = &self.views[slot.index()];
        view.readable_below >= range.end && !self.is_bad(slot, range)
    }

    pub(crate) const fn with_bad_blocks(&self) -> SlotSet {
        self.with_bad_blocks
    }

    /// Whether a member has a log in which bad blocks can be recorded.
    pub(crate) fn remembers_bad_blocks(&self, slot: Slot) -> bool {
        self.members[slot.index()].config.bad_blocks.is_some()
    }

    /// Whether any sector of a range of a member's data area is a bad block.
    #[must_use]
    pub fn is_bad(&self, slot: Slot, range: Span) -> bool {
        self.with_bad_blocks.contains(slot) && self.members[slot.index()].bad_blocks.overlaps(range)
    }

    /// Returns the next sector, from this one of the member's data area on, where bad blocks
    /// begin or end.
    pub(crate) fn bad_block_boundary(&self, slot: Slot, sector: Sectors) -> Sectors {
        self.members[slot.index()].bad_blocks.at(sector).1
    }

    /// Marks a range of a member's data area as bad.
    pub fn bad_range_found(&mut self, slot: Slot, range: Span, out: &mut Outputs) {
        if mutation::is(Mutation::BadBlockForgotten) {
            return;
        }
        self.members[slot.index()].bad_blocks.insert(range);
        self.note_bad_blocks(slot);
        out.events.push(Event::BadBlocksFound {
            slot,
            start: range.start,
            count: range.count(),
        });
    }

    /// Clears bad blocks of a range, all of which a write has stored on the medium.
    pub fn bad_range_written(&mut self, slot: Slot, range: Span, out: &mut Outputs) {
        if !self.is_bad(slot, range) {
            return;
        }
        let cleared = self.members[slot.index()].bad_blocks.take(range);
        self.note_bad_blocks(slot);
        out.events
            .extend(cleared.iter().map(|span| Event::BadBlocksCleared {
                slot,
                start: span.start,
                count: span.count(),
            }));
    }

    pub(crate) fn bad_blocks(&self, slot: Slot) -> impl Iterator<Item = Span> {
        self.members[slot.index()].bad_blocks.iter()
    }

    pub(super) fn note_bad_blocks(&mut self, slot: Slot) {
        self.with_bad_blocks = if self.members[slot.index()].bad_blocks.is_empty() {
            self.with_bad_blocks.without(slot)
        } else {
            self.with_bad_blocks.with(slot)
        };
    }

    pub(crate) fn unfilled(&self, slot: Slot) -> &Unfilled {
        &self.members[slot.index()].unfilled
    }

    /// Whether a member has all of a range of its data area.
    pub(crate) fn is_filled(&self, slot: Slot, range: Span) -> bool {
        self.unfilled(slot).is_filled(range)
    }

    /// Returns the sector below which a member under recovery is known to be filled.
    #[must_use]
    pub fn filled_below(&self, slot: Slot) -> Sectors {
        self.unfilled(slot).from
    }

    /// Whether no part of a member is left to be recovered.
    #[must_use]
    pub fn is_full(&self, slot: Slot) -> bool {
        self.unfilled_ranges(slot).next().is_none()
    }

    /// Returns the ranges of a member that are not filled, where these are known by ranges.
    pub fn unfilled_ranges(&self, slot: Slot) -> impl Iterator<Item = Span> {
        self.unfilled(slot).ranges.iter().flat_map(SpanSet::iter)
    }

    /// Returns the ranges that any member under recovery lacks, where these are known by ranges.
    #[must_use]
    pub fn unfilled_of_all(&self) -> SpanSet {
        let recovering = self.recovering.iter();
        recovering
            .flat_map(|slot| self.unfilled_ranges(slot))
            .collect()
    }

    /// Marks a range of a member as filled, or as not filled after all; for members that are
    /// recovered by ranges.
    pub fn set_filled(&mut self, slot: Slot, range: Span, filled: bool) {
        if !self.recovering.contains(slot) {
            return;
        }
        let unfilled = &mut self.members[slot.index()].unfilled;
        if !filled {
            unfilled.from = unfilled.from.min(range.start);
        }
        if let Some(ranges) = &mut unfilled.ranges {
            match filled {
                true => ranges.remove(range),
                false => ranges.insert(range),
            }
        }
        self.views[slot.index()].readable_below = self.readable_below(slot);
    }

    /// Marks everything below a position as filled.
    pub fn filled_to(&mut self, slot: Slot, position: Sectors) {
        let unfilled = &mut self.members[slot.index()].unfilled;
        unfilled.from = unfilled.from.max(position);
    }

    /// Returns the sector where reads end of a member under recovery that was just
    /// admitted or filled.
    pub(super) fn readable_below(&self, slot: Slot) -> Sectors {
        let unfilled = self.unfilled(slot);
        match (self.rules.blocks, self.rules.reads_filled) {
            (Some((size, _)), _) => {
                let mut ranges = self.unfilled_ranges(slot);
                ranges.next().map_or(size, |range| range.start)
            }
            (None, true) => unfilled.from,
            (None, false) => Sectors::ZERO,
        }
    }

    /// Advances the readable part of a member during recovery; it never shrinks.
    pub(crate) fn set_readable_below(&mut self, slot: Slot, sector: Sectors) {
        let readable = &mut self.views[slot.index()].readable_below;
        *readable = sector.max(*readable);
    }
}
