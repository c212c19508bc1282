//! What of each member can be relied on: what is filled of it, and its bad blocks.
//!
//! Bad blocks are ranges of the data area that have no right bytes; reads avoid them until a
//! write made them right again. Of a member that has failed neither is known any more.

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

    /// Whether a member has a log in which bad blocks can be remembered.
    pub(crate) fn remembers_bad_blocks(&self, slot: Slot) -> bool {
        self.members[slot.index()].config.bad_blocks.is_some()
    }

    /// Whether a sector of a range of a member's data area has no right bytes.
    #[must_use]
    pub fn is_bad(&self, slot: Slot, range: Span) -> bool {
        self.with_bad_blocks.contains(slot) && self.members[slot.index()].bad_blocks.overlaps(range)
    }

    /// Where, from this sector of the member's data area on, bad blocks begin or
    /// end.
    pub(crate) fn bad_block_boundary(&self, slot: Slot, sector: Sectors) -> Sectors {
        self.members[slot.index()].bad_blocks.at(sector).1
    }

    /// A range of a member's data area has no right bytes.
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

    /// A write of the whole range has reached the medium: what was bad of it has right
    /// bytes again.
    pub fn bad_range_written(&mut self, slot: Slot, range: Span, out: &mut Outputs) {
        if !self.is_bad(slot, range) {
            return;
        }
        let cleared = self.members[slot.index()].bad_blocks.remove(range);
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

    /// How far everything is known to be filled, in a member under recovery.
    #[must_use]
    pub fn filled_below(&self, slot: Slot) -> Sectors {
        self.unfilled(slot).from
    }

    /// Whether no part of a member has yet to be filled.
    #[must_use]
    pub fn is_full(&self, slot: Slot) -> bool {
        self.unfilled_ranges(slot).next().is_none()
    }

    /// The ranges of a member that are not filled, where those are told by ranges.
    pub fn unfilled_ranges(&self, slot: Slot) -> impl Iterator<Item = Span> {
        self.unfilled(slot).ranges.iter().flat_map(SpanSet::iter)
    }

    /// What is to be filled of any member under recovery, where that is told by ranges.
    #[must_use]
    pub fn unfilled_of_all(&self) -> SpanSet {
        let recovering = self.recovering.iter();
        recovering
            .flat_map(|slot| self.unfilled_ranges(slot))
            .collect()
    }

    /// A range of a member was filled, or turns out to be not; of members that are
    /// filled by ranges.
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
                true => drop(ranges.remove(range)),
                false => ranges.insert(range),
            }
        }
        self.views[slot.index()].readable_below = self.readable_below(slot);
    }

    /// Everything below a position is filled.
    pub fn filled_to(&mut self, slot: Slot, position: Sectors) {
        let unfilled = &mut self.members[slot.index()].unfilled;
        unfilled.from = unfilled.from.max(position);
    }

    /// Where reads of a member under recovery end that was just admitted or filled.
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

    /// Recovery got on; what was readable before stays so.
    pub(crate) fn set_readable_below(&mut self, slot: Slot, sector: Sectors) {
        let readable = &mut self.views[slot.index()].readable_below;
        *readable = sector.max(*readable);
    }
}
