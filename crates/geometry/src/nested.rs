//! Arrays whose members are arrays: where sectors lie on the leaves, and back.
//!
//! As with md over md, each array knows only its own members: an inner array
//! is a device, and what the outer array keeps begins some sectors into it,
//! after the outer's superblock. So a place is found by one step a layer, from
//! the outermost array down to the leaves, and a leaf's content by the same
//! steps upwards. A sector that the innermost array uses for its own parity, or
//! the outer array for its metadata, ends the way up.
//!
//! Leaves are numbered from the left: all of member 0's, then all of member
//! 1's. Arrays are numbered likewise, each before its members, the outermost
//! one is 0.

#[cfg(test)]
mod tests;

use crate::copies::CopyMap;
use crate::level::Layout;
use crate::parity::{MemberSector, StripeMap, StripeMapError};
use crate::shape::{Shape, ShapeError};
use crate::slots::Slot;
use raidlab_units::Sectors;

/// What stands in a slot.
#[derive(Debug, Clone)]
pub enum NestedMember {
    /// A disk.
    Leaf,
    /// Another array.
    Array {
        /// Its layout.
        map: Box<NestedMap>,
        /// Sector of the inner array at which the outer's data area begins:
        /// `data_offset` of the superblock on it.
        data_offset: Sectors,
    },
}

/// The map of an array of arrays.
#[derive(Debug, Clone)]
pub struct NestedMap {
    layer: Layer,
    members: Vec<Numbered>,
    size: Sectors,
    leaves: usize,
    arrays: usize,
}

#[derive(Debug, Clone)]
enum Layer {
    Copies(CopyMap),
    Stripes(StripeMap),
}

#[derive(Debug, Clone)]
struct Numbered {
    member: NestedMember,
    /// Sectors of its data area that the array uses.
    used: Sectors,
    first_leaf: usize,
    first_array: usize,
}

/// Why there is no such map.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NestedError {
    /// One of the arrays cannot be.
    #[error(transparent)]
    Shape(#[from] ShapeError),
    /// One of the arrays with parity cannot be.
    #[error(transparent)]
    Stripes(#[from] StripeMapError),
    /// As many members as slots are needed.
    #[error("{slots} slots have {members} members")]
    Members {
        /// Of the shape.
        slots: usize,
        /// As given.
        members: usize,
    },
    /// An inner array is smaller than the data area that it shall have.
    #[error("the array in slot {} offers {offered} sectors of data area; {needed} are needed", .slot.0)]
    TooSmall {
        /// Where.
        slot: Slot,
        /// Sectors behind its data offset.
        offered: u64,
        /// Sectors of the slot's data area.
        needed: u64,
    },
}

/// A sector of a leaf's data area.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeafSector {
    /// Which leaf.
    pub leaf: usize,
    /// Which sector.
    pub sector: Sectors,
}

/// What a leaf keeps for the outermost array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NestedRole {
    /// A sector of the outermost array.
    Data(Sectors),
    /// P of a row of one of the arrays.
    P {
        /// Which array.
        array: usize,
        /// Which row.
        row: u64,
    },
    /// Q of a row of one of the arrays.
    Q {
        /// Which array.
        array: usize,
        /// Which row.
        row: u64,
    },
    /// Nothing: beyond what one of the arrays uses, or before the data area of
    /// the array above it.
    Unused,
}

/// Places of an array sector, and how far they run along.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NestedExtent {
    /// Sectors from the start for which it goes on so, on the same leaves.
    pub contiguous: Sectors,
    /// Where, in the order of the leaves.
    pub places: Vec<LeafSector>,
}

impl NestedMap {
    /// An array of this shape whose slots have these members.
    ///
    /// # Errors
    /// When there can be no such array, or a member is too small.
    pub fn new(shape: &Shape, members: Vec<NestedMember>) -> Result<Self, NestedError> {
        let slots = shape.member_sizes.len();
        if members.len() != slots {
            let members = members.len();
            return Err(NestedError::Members { slots, members });
        }
        let layer = match shape.layout {
            Layout::Parity(layout) => Layer::Stripes(StripeMap::new(
                shape.level,
                layout,
                slots,
                shape.chunk,
                shape.used_size,
            )?),
            _ => Layer::Copies(CopyMap::new(shape)?),
        };
        let size = match &layer {
            Layer::Copies(map) => map.array_size(),
            Layer::Stripes(map) => map.size(),
        };
        let (mut leaves, mut arrays) = (0, 1);
        let mut numbered = Vec::with_capacity(slots);
        for ((slot, member), needed) in (0..).map(Slot).zip(members).zip(&shape.member_sizes) {
            let (first_leaf, first_array) = (leaves, arrays);
            match &member {
                NestedMember::Leaf => leaves += 1,
                NestedMember::Array { map, data_offset } => {
                    let offered = map.size.0.saturating_sub(data_offset.0);
                    if offered < needed.0 {
                        return Err(NestedError::TooSmall {
                            slot,
                            offered,
                            needed: needed.0,
                        });
                    }
                    leaves += map.leaves;
                    arrays += map.arrays;
                }
            }
            let used = match &layer {
                Layer::Copies(map) => map.member_used(slot),
                Layer::Stripes(map) => map.member_size(),
            };
            numbered.push(Numbered {
                member,
                used,
                first_leaf,
                first_array,
            });
        }
        Ok(Self {
            layer,
            members: numbered,
            size,
            leaves,
            arrays,
        })
    }

    /// Sectors that the outermost array offers.
    #[must_use]
    pub const fn array_size(&self) -> Sectors {
        self.size
    }

    /// Leaves.
    #[must_use]
    pub const fn leaves(&self) -> usize {
        self.leaves
    }

    /// Arrays, this one included.
    #[must_use]
    pub const fn arrays(&self) -> usize {
        self.arrays
    }

    /// Where an array sector below [`array_size`](Self::array_size) lies: every
    /// copy of its data, without parity.
    #[must_use]
    pub fn extent(&self, start: Sectors) -> NestedExtent {
        let mut found = NestedExtent {
            contiguous: Sectors(self.size.0 - start.0),
            places: Vec::new(),
        };
        self.collect_data(start, 0, &mut found);
        found
    }

    /// Every leaf sector whose content depends on an array sector, with what it
    /// is there: the data, and the parity of each layer, which the layers below
    /// protect again. Sorted; each leaf sector once.
    #[must_use]
    pub fn dependents(&self, start: Sectors) -> Vec<(LeafSector, NestedRole)> {
        let mut found = Vec::new();
        self.collect_dependents(start, NestedRole::Data(start), (0, 0), &mut found);
        found.sort_unstable();
        found.dedup();
        found
    }

    /// What a sector of a leaf's data area is. Leaves count from 0 to
    /// [`leaves`](Self::leaves).
    #[must_use]
    pub fn role(&self, place: LeafSector) -> NestedRole {
        self.role_within(place, 0)
    }

    /// Where a sector lies on the members: slot and sector of the data area,
    /// and for how many sectors it goes on so.
    fn copies(&self, start: Sectors) -> (Sectors, Vec<(Slot, Sectors)>) {
        match &self.layer {
            Layer::Copies(map) => {
                let extent = map.extent(start);
                (extent.contiguous, extent.copies().collect())
            }
            Layer::Stripes(map) => {
                let place = map.locate(start);
                let slot = map.row(place.row).data_slot(place.index);
                let sector = map.member_sector(place.row, place.offset);
                (
                    Sectors(map.chunk().0 - place.offset.0),
                    vec![(slot, sector)],
                )
            }
        }
    }

    fn collect_data(&self, start: Sectors, first_leaf: usize, found: &mut NestedExtent) {
        let (contiguous, copies) = self.copies(start);
        found.contiguous = found.contiguous.min(contiguous);
        for (slot, sector) in copies {
            let own = &self.members[slot.index()];
            let leaf = first_leaf + own.first_leaf;
            match &own.member {
                NestedMember::Leaf => found.places.push(LeafSector { leaf, sector }),
                NestedMember::Array { map, data_offset } => {
                    map.collect_data(*data_offset + sector, leaf, found);
                }
            }
        }
        found.places.sort_unstable();
    }

    /// `first`: the numbers of this array's first leaf and of itself.
    fn collect_dependents(
        &self,
        start: Sectors,
        role: NestedRole,
        first: (usize, usize),
        found: &mut Vec<(LeafSector, NestedRole)>,
    ) {
        let (_, copies) = self.copies(start);
        let mut held: Vec<_> = copies
            .into_iter()
            .map(|(slot, sector)| (slot, sector, role))
            .collect();
        if let Layer::Stripes(map) = &self.layer {
            let place = map.locate(start);
            let sector = map.member_sector(place.row, place.offset);
            let (row, array) = (place.row, first.1);
            let places = map.row(row);
            held.push((places.p(), sector, NestedRole::P { array, row }));
            held.extend(
                places
                    .q()
                    .map(|slot| (slot, sector, NestedRole::Q { array, row })),
            );
        }
        for (slot, sector, role) in held {
            let own = &self.members[slot.index()];
            let leaf = first.0 + own.first_leaf;
            match &own.member {
                NestedMember::Leaf => found.push((LeafSector { leaf, sector }, role)),
                NestedMember::Array { map, data_offset } => {
                    let inner = (leaf, first.1 + own.first_array);
                    map.collect_dependents(*data_offset + sector, role, inner, found);
                }
            }
        }
    }

    fn role_within(&self, place: LeafSector, number: usize) -> NestedRole {
        let slot = self
            .members
            .partition_point(|member| member.first_leaf <= place.leaf)
            - 1;
        let own = &self.members[slot];
        let sector = match &own.member {
            NestedMember::Leaf => place.sector,
            NestedMember::Array { map, data_offset } => {
                let below = LeafSector {
                    leaf: place.leaf - own.first_leaf,
                    sector: place.sector,
                };
                match map.role_within(below, number + own.first_array) {
                    NestedRole::Data(sector) if sector >= *data_offset => {
                        Sectors(sector.0 - data_offset.0)
                    }
                    NestedRole::Data(_) => return NestedRole::Unused,
                    parity => return parity,
                }
            }
        };
        if sector >= own.used {
            return NestedRole::Unused;
        }
        let slot = Slot(u16::try_from(slot).unwrap_or(u16::MAX));
        let array = number;
        match &self.layer {
            Layer::Copies(map) => map
                .inverse(slot, sector)
                .content
                .map_or(NestedRole::Unused, |content| {
                    NestedRole::Data(content.start)
                }),
            Layer::Stripes(map) => match map.member_content(slot, sector) {
                MemberSector::Data(start) => NestedRole::Data(start),
                MemberSector::P(row) => NestedRole::P { array, row },
                MemberSector::Q(row) => NestedRole::Q { array, row },
            },
        }
    }
}
