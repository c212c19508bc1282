//! The places of an array sector's copies: linear, RAID 0, RAID 1, RAID 10.
//!
//! These levels keep whole copies, one or more, and nothing else. Within an array chunk (or a
//! member of a linear array, or all of a mirror) the copies lie on the same members at addresses
//! that advance together: an [`Extent`]. The members of an extent, and the distances between its
//! copies' addresses, follow one of a few patterns, which are computed when the map is made.

mod linear;
mod striped;
#[cfg(test)]
mod tests;
mod zones;

use crate::level::{Layout, Level, ZoneLayout};
use crate::shape::{Shape, ShapeError};
use crate::slots::{Slot, SlotSet};
use linear::Linear;
use raidlab_units::Sectors;
use striped::Striped;
use zones::Zones;

/// The map of an array that keeps copies.
#[derive(Debug, Clone)]
pub struct CopyMap {
    kind: Kind,
    size: Sectors,
    used: Vec<Sectors>,
    patterns: Vec<Pattern>,
    copy_sets: Vec<SlotSet>,
}

#[derive(Debug, Clone)]
enum Kind {
    Linear(Linear),
    Zones(Zones),
    Mirror,
    Striped(Striped),
}

/// The members of a copy set, and each copy's distance from the extent's base.
#[derive(Debug, Clone)]
struct Pattern {
    slots: SlotSet,
    places: Vec<(Slot, Sectors)>,
}

/// An extent in the form in which a level computes it.
#[derive(Debug, Clone, Copy)]
struct Found {
    pattern: usize,
    base: Sectors,
    contiguous: Sectors,
}

/// The copies of an array sector, and the number of sectors for which they advance together.
#[derive(Debug, Clone, Copy)]
pub struct Extent<'a> {
    /// Sectors from the start for which the copies advance together.
    pub contiguous: Sectors,
    base: Sectors,
    pattern: &'a Pattern,
}

/// The content of a member's sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inverse {
    /// Sectors for which the content advances likewise; 0 only beyond the used part of the member.
    pub contiguous: Sectors,
    /// The array sector that is stored there; `None` for nothing, as the array's last row need
    /// not be full.
    pub content: Option<Content>,
}

/// The content of a sector of a member: a copy of this array sector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Content {
    /// The sector of the array of which this is a copy.
    pub start: Sectors,
    /// The index of the copy, in the order of [`Extent::copies`].
    pub copy: usize,
}

impl CopyMap {
    /// The map of a shape.
    ///
    /// # Errors
    /// When there can be no such array, or its level has parity.
    pub fn new(shape: &Shape) -> Result<Self, ShapeError> {
        shape.check()?;
        let map = match (shape.level, shape.layout) {
            (Level::Linear, _) => Linear::map(shape),
            (Level::Raid0, Layout::Zones(layout)) => Zones::map(shape, Some(layout))?,
            (Level::Raid0, _) => Zones::map(shape, None)?,
            (Level::Raid1, _) => Self::mirror(shape),
            (Level::Raid10, Layout::Copies(copies)) => Striped::map(shape, copies)?,
            (level, layout) => return Err(ShapeError::Layout { level, layout }),
        };
        if map.size == Sectors::ZERO {
            return Err(ShapeError::NoSize);
        }
        Ok(map)
    }

    fn mirror(shape: &Shape) -> Self {
        let members = shape.member_sizes.len();
        let places = slots(members).map(|slot| (slot, Sectors::ZERO));
        let size = shape.used_size;
        let pattern = Pattern::new(places.collect());
        Self::of_patterns(Kind::Mirror, size, vec![size; members], vec![pattern])
    }

    /// A map that uses all of these patterns.
    fn of_patterns(kind: Kind, size: Sectors, used: Vec<Sectors>, patterns: Vec<Pattern>) -> Self {
        Self {
            kind,
            size,
            used,
            copy_sets: patterns.iter().map(|pattern| pattern.slots).collect(),
            patterns,
        }
    }

    /// Sectors that the array offers.
    #[must_use]
    #[inline]
    pub const fn array_size(&self) -> Sectors {
        self.size
    }

    /// The number of the array's slots, each of which has room for one member.
    #[must_use]
    pub fn members(&self) -> usize {
        self.used.len()
    }

    /// Sectors of a slot's data area that the array uses.
    #[must_use]
    pub fn member_used(&self, slot: Slot) -> Sectors {
        self.used[slot.index()]
    }

    /// The sets of members that hold the same sectors: the array has lost data
    /// as soon as one of them has no member left.
    #[must_use]
    pub fn copy_sets(&self) -> &[SlotSet] {
        &self.copy_sets
    }

    /// Returns the copies of an array sector below [`array_size`](Self::array_size).
    #[must_use]
    #[inline]
    pub fn extent(&self, start: Sectors) -> Extent<'_> {
        debug_assert!(start < self.size, "{start} is beyond the array");
        let found = match &self.kind {
            Kind::Mirror => Found {
                pattern: 0,
                base: start,
                contiguous: Sectors(self.size.0 - start.0),
            },
            Kind::Linear(linear) => linear.extent(start),
            Kind::Zones(zones) => zones.extent(start),
            Kind::Striped(striped) => striped.extent(start, self.size),
        };
        Extent {
            contiguous: found.contiguous,
            base: found.base,
            pattern: &self.patterns[found.pattern],
        }
    }

    /// Returns the content of a sector of a slot's data area.
    #[must_use]
    pub fn inverse(&self, slot: Slot, sector: Sectors) -> Inverse {
        let used = self.member_used(slot);
        if sector >= used {
            return Inverse {
                contiguous: Sectors::ZERO,
                content: None,
            };
        }
        match &self.kind {
            Kind::Mirror => Inverse {
                contiguous: Sectors(used.0 - sector.0),
                content: Some(Content {
                    start: sector,
                    copy: slot.index(),
                }),
            },
            Kind::Linear(linear) => linear.inverse(slot, sector),
            Kind::Zones(zones) => zones.inverse(slot, sector),
            Kind::Striped(striped) => striped.inverse(slot, sector, self.size),
        }
    }
}

impl Pattern {
    fn new(places: Vec<(Slot, Sectors)>) -> Self {
        Self {
            slots: places.iter().map(|(slot, _)| *slot).collect(),
            places,
        }
    }

    fn single(slot: Slot) -> Self {
        Self::new(vec![(slot, Sectors::ZERO)])
    }
}

impl<'a> Extent<'a> {
    /// The members that hold the extent.
    #[must_use]
    #[inline]
    pub const fn slots(&self) -> SlotSet {
        self.pattern.slots
    }

    /// Returns each copy's member and the sector of its data area, in md's order.
    #[inline]
    pub fn copies(&self) -> impl Iterator<Item = (Slot, Sectors)> + use<'a> {
        let base = self.base;
        let places = self.pattern.places.iter();
        places.map(move |(slot, apart)| (*slot, base + *apart))
    }

    /// Returns the sector of a member's data area, if the member holds a copy.
    #[must_use]
    #[inline]
    pub fn sector_on(&self, slot: Slot) -> Option<Sectors> {
        let mut copies = self.copies();
        copies
            .find(|(holder, _)| *holder == slot)
            .map(|(_, sector)| sector)
    }
}

fn slots(count: usize) -> impl Iterator<Item = Slot> {
    (0..).map(Slot).take(count)
}

impl ZoneLayout {
    /// Returns the member of a chunk, counted within its zone.
    const fn member(self, array_chunk: u64, zone_chunk: u64, members: u64) -> u64 {
        match self {
            Self::Original => array_chunk % members,
            Self::Alternate => zone_chunk % members,
        }
    }
}
