//! Linear: the members one after the other, in slot order, each rounded down to
//! whole chunks where there are chunks (Linux drivers/md/md-linear.c).

use super::{Content, CopyMap, Found, Inverse, Kind, Pattern, slots};
use crate::shape::{Shape, round_down};
use crate::slots::Slot;
use raidlab_units::Sectors;

#[derive(Debug, Clone)]
pub(super) struct Linear {
    /// The array sector after each member's last.
    ends: Vec<Sectors>,
}

impl Linear {
    pub(super) fn map(shape: &Shape) -> CopyMap {
        let sizes = shape.member_sizes.iter();
        let used: Vec<_> = sizes.map(|size| round_down(*size, shape.chunk)).collect();
        let mut end = Sectors::ZERO;
        let ends = used.iter().map(|used| {
            end += *used;
            end
        });
        let ends: Vec<_> = ends.collect();
        let patterns = slots(used.len()).map(Pattern::single).collect();
        CopyMap::of_patterns(Kind::Linear(Self { ends }), end, used, patterns)
    }

    fn start_of(&self, member: usize) -> Sectors {
        member
            .checked_sub(1)
            .map_or(Sectors::ZERO, |before| self.ends[before])
    }

    pub(super) fn extent(&self, start: Sectors) -> Found {
        let member = self.ends.partition_point(|end| *end <= start);
        Found {
            pattern: member,
            base: Sectors(start.0 - self.start_of(member).0),
            contiguous: Sectors(self.ends[member].0 - start.0),
        }
    }

    pub(super) fn inverse(&self, slot: Slot, sector: Sectors) -> Inverse {
        let start = self.start_of(slot.index()) + sector;
        Inverse {
            contiguous: Sectors(self.ends[slot.index()].0 - start.0),
            content: Some(Content { start, copy: 0 }),
        }
    }
}
