//! The shape of an array: everything that decides where its sectors lie, and so its size.

use crate::level::{Copies, Layout, Level, ParityLayout};
use crate::slots::MAXIMUM_MEMBERS;
use raidlab_units::Sectors;
use thiserror::Error;

/// The largest size of a member: 2^54 sectors are 2^63 bytes.
const MAXIMUM_SIZE: Sectors = Sectors(1 << 54);

/// An array's level, layout and members.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shape {
    /// The RAID level, or linear.
    pub level: Level,
    /// The placement of copies or parity; [`Layout::None`] where the level has no choice.
    pub layout: Layout,
    /// Sectors of a chunk. RAID 1 ignores it. For linear, 0 or the unit to which members' sizes are
    /// rounded down; for RAID 0 at least 1; for the others a power of two (md wants at least 8).
    pub chunk: Sectors,
    /// Sectors of each slot's data area, slot 0 first. A missing member of a level with redundancy
    /// counts with `used_size`.
    pub member_sizes: Vec<Sectors>,
    /// Sectors that a level with redundancy uses of every member: `size` of md's
    /// superblock. Linear and RAID 0 ignore it.
    pub used_size: Sectors,
}

/// A shape that no array can have.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ShapeError {
    /// Fewer members than the level or layout needs, or more than there are
    /// slots.
    #[error("{level} needs {minimum} to {MAXIMUM_MEMBERS} members, not {count}")]
    Members {
        /// The level whose limits the shape breaks.
        level: Level,
        /// The fewest members that the level and its layout allow.
        minimum: usize,
        /// The number of members that the shape has.
        count: usize,
    },
    /// A layout that belongs to another level.
    #[error("{level} cannot have the layout `{layout}`")]
    Layout {
        /// The level of the shape.
        level: Level,
        /// The layout of the shape, which this level does not have.
        layout: Layout,
    },
    /// A chunk that the level cannot have.
    #[error("{level} cannot have a chunk of {}", .chunk.to_bytes())]
    Chunk {
        /// The level of the shape.
        level: Level,
        /// The chunk of the shape, in sectors of 512 bytes.
        chunk: Sectors,
    },
    /// A member that is smaller than the part of it that the array uses, or larger than the
    /// greatest size possible.
    #[error("the data area in slot {slot} has {size} sectors; {needed} are needed")]
    MemberSize {
        /// The slot of the member, 0 for the first.
        slot: usize,
        /// The length of the member's data area, in sectors of 512 bytes.
        size: u64,
        /// The sectors that the array uses of each member; 0 for linear and RAID 0, where only
        /// too large a member is refused.
        needed: u64,
    },
    /// Members of different sizes, and no record of how their zones are numbered.
    #[error("a RAID 0 of unequal members needs its layout: original or alternate")]
    UnknownZones,
    /// A RAID 10 in which md would put two copies, or two different chunks, into one place.
    #[error("the layout {copies} does not keep the copies of {members} members apart")]
    CopiesCollide {
        /// The copies that the RAID 10 was to keep.
        copies: Copies,
        /// The number of members over which the copies would go.
        members: usize,
    },
    /// Members too small for a single chunk.
    #[error("an array needs at least one sector")]
    NoSize,
}

impl Shape {
    /// The shape of equal members of which `used_size` sectors are used.
    #[must_use]
    pub fn uniform(
        level: Level,
        layout: Layout,
        chunk: Sectors,
        members: usize,
        used_size: Sectors,
    ) -> Self {
        Self {
            level,
            layout,
            chunk,
            member_sizes: vec![used_size; members],
            used_size,
        }
    }

    /// The shape of members with these data areas, of which as much is used as mdadm would use: the
    /// smallest one's size, in whole chunks if there are chunks.
    #[must_use]
    pub fn of_members(
        level: Level,
        layout: Layout,
        chunk: Sectors,
        member_sizes: Vec<Sectors>,
    ) -> Self {
        let smallest = member_sizes.iter().copied().min().unwrap_or(Sectors::ZERO);
        let used_size = match level {
            Level::Raid1 => smallest,
            _ => round_down(smallest, chunk),
        };
        Self {
            level,
            layout,
            chunk,
            member_sizes,
            used_size,
        }
    }

    /// Checks everything that does not depend on where copies lie.
    pub(crate) fn check(&self) -> Result<(), ShapeError> {
        let (level, count) = (self.level, self.member_sizes.len());
        let minimum = match (level, self.layout) {
            (Level::Linear | Level::Raid0 | Level::Raid1, _) => 1,
            (Level::Raid4 | Level::Raid5, _) => 2,
            (Level::Raid6, _) => 4,
            (Level::Raid10, Layout::Copies(copies)) => copies.count().max(2),
            (Level::Raid10, _) => 2,
        };
        if count < minimum || count > MAXIMUM_MEMBERS {
            return Err(ShapeError::Members {
                level,
                minimum,
                count,
            });
        }
        if !self.layout.fits(level) {
            return Err(ShapeError::Layout {
                level,
                layout: self.layout,
            });
        }
        let chunk = self.chunk;
        let chunk_fits = match level {
            Level::Raid1 => true,
            Level::Linear => chunk <= MAXIMUM_SIZE,
            Level::Raid0 => chunk > Sectors::ZERO && chunk <= MAXIMUM_SIZE,
            _ => chunk.0.is_power_of_two() && chunk <= MAXIMUM_SIZE,
        };
        if !chunk_fits {
            return Err(ShapeError::Chunk { level, chunk });
        }
        let needed = match level {
            Level::Linear | Level::Raid0 => Sectors::ZERO,
            _ => self.used_size,
        };
        for (slot, size) in self.member_sizes.iter().enumerate() {
            if *size < needed || *size > MAXIMUM_SIZE {
                return Err(ShapeError::MemberSize {
                    slot,
                    size: size.0,
                    needed: needed.0,
                });
            }
        }
        Ok(())
    }
}

impl Layout {
    /// Whether the level can have this layout.
    fn fits(self, level: Level) -> bool {
        match self {
            Self::None => matches!(level, Level::Linear | Level::Raid0 | Level::Raid1),
            Self::Zones(_) => level == Level::Raid0,
            Self::Parity(ParityLayout::ParityLast) => level.parity_count() > 0,
            Self::Parity(layout) => match level {
                Level::Raid5 => !layout.is_raid6_only(),
                Level::Raid6 => true,
                _ => false,
            },
            // md refuses a RAID 10 with a single copy.
            Self::Copies(copies) => level == Level::Raid10 && copies.count() >= 2,
        }
    }
}

/// Rounds a size down to whole units; leaves it as it is if the unit is 0.
pub(crate) fn round_down(size: Sectors, unit: Sectors) -> Sectors {
    match size.0.checked_rem(unit.0) {
        Some(rest) => Sectors(size.0 - rest),
        None => size,
    }
}

#[cfg(test)]
mod tests {
    use super::{Shape, ShapeError};
    use crate::level::{Copies, Layout, Level, ParityLayout};
    use raidlab_units::Sectors;

    fn size(level: Level, chunk: u64, sizes: &[u64]) -> Result<u64, ShapeError> {
        let sizes = sizes.iter().copied().map(Sectors).collect();
        let layout = Layout::default_of(level);
        let shape = Shape::of_members(level, layout, Sectors(chunk), sizes);
        shape.array_size().map(|size| size.0)
    }

    #[test]
    fn sizes_as_md_counts_them() {
        assert_eq!(size(Level::Linear, 0, &[1001, 503]), Ok(1504));
        assert_eq!(size(Level::Linear, 128, &[1001, 503]), Ok(896 + 384));
        assert_eq!(size(Level::Raid0, 128, &[1001, 503]), Ok(896 + 384));
        assert_eq!(size(Level::Raid1, 0, &[1001, 1003]), Ok(1001));
        assert_eq!(size(Level::Raid4, 128, &[1001, 1003, 1024]), Ok(2 * 896));
        assert_eq!(size(Level::Raid5, 128, &[1001, 1003, 1024]), Ok(2 * 896));
        assert_eq!(size(Level::Raid6, 128, &[1001; 5]), Ok(3 * 896));
        // 7 chunks of each of 3 members, 2 copies: 10.5 chunks.
        assert_eq!(size(Level::Raid10, 128, &[1001; 3]), Ok(10 * 128));
        assert_eq!(size(Level::Raid10, 128, &[1001; 4]), Ok(14 * 128));
    }

    #[test]
    fn shapes_that_cannot_be_are_refused() {
        let members = |level, minimum, count| {
            Err(ShapeError::Members {
                level,
                minimum,
                count,
            })
        };
        assert_eq!(size(Level::Raid0, 8, &[]), members(Level::Raid0, 1, 0));
        assert_eq!(
            size(Level::Raid1, 0, &[9; 65]),
            members(Level::Raid1, 1, 65)
        );
        assert_eq!(size(Level::Raid6, 8, &[9; 3]), members(Level::Raid6, 4, 3));
        assert_eq!(size(Level::Raid10, 8, &[9]), members(Level::Raid10, 2, 1));
        for (level, chunk) in [(Level::Raid0, 0), (Level::Raid5, 24), (Level::Raid10, 0)] {
            let error = ShapeError::Chunk {
                level,
                chunk: Sectors(chunk),
            };
            assert_eq!(size(level, chunk, &[1000; 4]), Err(error));
        }
        assert_eq!(size(Level::Raid5, 128, &[100; 3]), Err(ShapeError::NoSize));
        assert_eq!(size(Level::Raid10, 128, &[100; 3]), Err(ShapeError::NoSize));
        assert_eq!(size(Level::Linear, 0, &[0, 0]), Err(ShapeError::NoSize));
        assert!(matches!(
            size(Level::Linear, 0, &[u64::MAX, 1]),
            Err(ShapeError::MemberSize { slot: 0, .. })
        ));
        for (level, layout) in [
            (Level::Raid4, Layout::Parity(ParityLayout::LeftSymmetric)),
            (Level::Raid5, Layout::Parity(ParityLayout::ParityFirst6)),
            (Level::Raid10, Layout::Copies(Copies::near(1))),
            (Level::Raid1, Layout::Copies(Copies::near(2))),
            (Level::Raid10, Layout::None),
        ] {
            let shape = Shape::uniform(level, layout, Sectors(8), 4, Sectors(64));
            assert_eq!(
                shape.array_size(),
                Err(ShapeError::Layout { level, layout })
            );
        }
        let mut shape = Shape::uniform(Level::Raid1, Layout::None, Sectors(0), 2, Sectors(64));
        shape.member_sizes[1] = Sectors(63);
        assert!(matches!(
            shape.array_size(),
            Err(ShapeError::MemberSize { slot: 1, .. })
        ));
    }
}
