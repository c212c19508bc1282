//! The places of data, P and Q in RAID 4, 5 and 6.
//!
//! The array is cut into chunks; `members - parities` of them and their parity form a *row*, one
//! chunk on each member. Row `r` takes the sectors from `r * chunk` on of every member's data area.
//! A layout says, row by row, on which member P, Q and the data chunks lie, and in which order the
//! data chunks count in Q = sum of 2^exponent * block. The formulas are those of
//! `raid5_compute_sector`, `raid6_d0` and `raid6_idx_to_slot` in drivers/md/raid5.c of Linux 6.6:
//! * md's own layouts count data upwards and cyclically from the member after
//!   Q, parity left out;
//! * the three DDF layouts count from member 0, and the places of P and Q are
//!   blocks of zeros that have an exponent of their own.

use crate::level::{Level, ParityLayout};
use crate::slots::{MAXIMUM_MEMBERS, Slot};
use raidlab_units::Sectors;

/// The map of a RAID 4, 5 or 6.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StripeMap {
    level: Level,
    layout: ParityLayout,
    members: u16,
    chunk: u64,
    rows: u64,
}

/// The reason why an array has no such map.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StripeMapError {
    /// A level other than RAID 4, 5 and 6, which keeps no parity.
    #[error("{0} has no parity")]
    Level(Level),
    /// A layout of RAID 6 with another level.
    #[error("{0} does not have this layout")]
    Layout(Level),
    /// Fewer members than the level needs, or more than there are slots.
    #[error("{level} takes {least} to {MAXIMUM_MEMBERS} members, not {members}")]
    Members {
        /// The level of the array that was asked for: RAID 4, 5 or 6.
        level: Level,
        /// The number of members that was asked for, parity included.
        members: usize,
        /// The fewest: 2, or 4 for RAID 6 (as the kernel demands).
        least: usize,
    },
    /// A chunk that is not a power of two of at least 4 KiB, as md requires.
    #[error("a chunk of {} sectors is not a power of two of at least 8 sectors", .0.0)]
    Chunk(Sectors),
    /// Members too small for one chunk each, or with more sectors than can be counted.
    #[error("members of {} sectors cannot make up an array", .0.0)]
    MemberSize(Sectors),
}

/// A place in the array: a sector of a data chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The row's number, from 0.
    pub row: u64,
    /// The index of the data chunk in its row, in the order of the array's sectors.
    pub index: u16,
    /// Sectors from the chunk's start.
    pub offset: Sectors,
}

/// The content of a member in one row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BlockRole {
    /// The data chunk of this index.
    Data(u16),
    /// The XOR of the data.
    P,
    /// The weighted sum of the data.
    Q,
}

/// One row: the content of each member in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    number: u64,
    members: u16,
    p: u16,
    q: Option<u16>,
    /// The member of the first data chunk, for the symmetric layouts; the others number their data
    /// chunks by ascending member.
    first: Option<u16>,
    /// The number of members that the symmetric layouts rotate over.
    cycle: u16,
    ddf: bool,
}

impl StripeMap {
    /// The map of members with data areas of at least `member_size`, which is
    /// rounded down to whole chunks. RAID 4 has its parity on the last member
    /// whatever the layout says, as in the kernel.
    ///
    /// # Errors
    /// When the kernel would refuse such an array too.
    pub fn new(
        level: Level,
        layout: ParityLayout,
        members: usize,
        chunk: Sectors,
        member_size: Sectors,
    ) -> Result<Self, StripeMapError> {
        let least = match level {
            Level::Raid4 | Level::Raid5 => 2,
            Level::Raid6 => 4,
            _ => return Err(StripeMapError::Level(level)),
        };
        if level != Level::Raid6 && !plain(layout) {
            return Err(StripeMapError::Layout(level));
        }
        let count = u16::try_from(members).unwrap_or(u16::MAX);
        if !(least..=MAXIMUM_MEMBERS).contains(&members) {
            return Err(StripeMapError::Members {
                level,
                members,
                least,
            });
        }
        if chunk.0 < 8 || !chunk.0.is_power_of_two() {
            return Err(StripeMapError::Chunk(chunk));
        }
        let rows = member_size.0 / chunk.0;
        let fits = member_size.0.checked_mul(u64::from(count)).is_some();
        if rows == 0 || !fits {
            return Err(StripeMapError::MemberSize(member_size));
        }
        let layout = match level {
            Level::Raid4 => ParityLayout::ParityLast,
            _ => layout,
        };
        Ok(Self {
            level,
            layout,
            members: count,
            chunk: chunk.0,
            rows,
        })
    }

    /// The array's level: RAID 4, 5 or 6.
    #[must_use]
    pub const fn level(&self) -> Level {
        self.level
    }

    /// The layout; [`ParityLayout::ParityLast`] for RAID 4.
    #[must_use]
    pub const fn layout(&self) -> ParityLayout {
        self.layout
    }

    /// The number of members, those that hold a row's parity included.
    #[must_use]
    pub const fn members(&self) -> usize {
        self.members as usize
    }

    /// Data chunks in a row.
    #[must_use]
    pub const fn data_count(&self) -> usize {
        self.members as usize - self.level.parity_count()
    }

    /// Returns the sectors of a chunk.
    #[must_use]
    pub const fn chunk(&self) -> Sectors {
        Sectors(self.chunk)
    }

    /// The number of rows: how many whole chunks fit the data area of each member.
    #[must_use]
    pub const fn rows(&self) -> u64 {
        self.rows
    }

    /// Sectors of each member that are used.
    #[must_use]
    pub const fn member_size(&self) -> Sectors {
        Sectors(self.rows * self.chunk)
    }

    /// Sectors of the array.
    #[must_use]
    pub const fn size(&self) -> Sectors {
        Sectors(self.rows * self.chunk * self.data_count() as u64)
    }

    /// Returns the place of a sector of the array.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a remainder by fewer than 64 members"
    )]
    pub const fn locate(&self, sector: Sectors) -> Place {
        let number = sector.0 / self.chunk;
        let data = self.data_count() as u64;
        Place {
            row: number / data,
            index: (number % data) as u16,
            offset: Sectors(sector.0 % self.chunk),
        }
    }

    /// Returns the array sector at a place: the inverse of [`Self::locate`].
    #[must_use]
    pub const fn array_sector(&self, place: Place) -> Sectors {
        let number = place.row * self.data_count() as u64 + place.index as u64;
        Sectors(number * self.chunk + place.offset.0)
    }

    /// Returns the sector of each member's data area at which this sector of a row lies.
    #[must_use]
    pub const fn member_sector(&self, row: u64, offset: Sectors) -> Sectors {
        Sectors(row * self.chunk + offset.0)
    }

    /// Returns the row of a sector of the members' data areas.
    #[must_use]
    pub const fn row_of(&self, member_sector: Sectors) -> u64 {
        member_sector.0 / self.chunk
    }

    /// Returns the content of each member in a row.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "remainders by at most 64 members"
    )]
    pub const fn row(&self, number: u64) -> Row {
        use ParityLayout as L;
        let n = self.members;
        let raid6 = matches!(self.level, Level::Raid6);
        // The number of members that parity rotates over.
        let cycle = match self.layout {
            L::LeftAsymmetric6 | L::RightAsymmetric6 | L::LeftSymmetric6 | L::RightSymmetric6 => {
                n - 1
            }
            _ => n,
        };
        let step = (number % cycle as u64) as u16;
        let p = match self.layout {
            L::LeftAsymmetric | L::LeftSymmetric | L::RotatingNContinue => n - 1 - step,
            L::LeftAsymmetric6 | L::LeftSymmetric6 => n - 2 - step,
            L::RightAsymmetric
            | L::RightSymmetric
            | L::RotatingZeroRestart
            | L::RightAsymmetric6
            | L::RightSymmetric6 => step,
            L::RotatingNRestart => n - 1 - (step + 1) % n,
            L::ParityFirst | L::ParityFirst6 => 0,
            L::ParityLast => self.data_count() as u16,
        };
        let q = if !raid6 {
            None
        } else {
            Some(match self.layout {
                L::RotatingNContinue => (p + n - 1) % n,
                L::LeftAsymmetric6
                | L::RightAsymmetric6
                | L::LeftSymmetric6
                | L::RightSymmetric6
                | L::ParityFirst6 => n - 1,
                _ => (p + 1) % n,
            })
        };
        let first = match self.layout {
            L::LeftSymmetric | L::RightSymmetric => {
                Some((p + self.level.parity_count() as u16) % n)
            }
            L::RotatingNContinue => Some((p + 1) % n),
            L::LeftSymmetric6 | L::RightSymmetric6 => Some((p + 1) % cycle),
            _ => None,
        };
        Row {
            number,
            members: n,
            p,
            q,
            first,
            cycle,
            ddf: matches!(
                self.layout,
                L::RotatingZeroRestart | L::RotatingNRestart | L::RotatingNContinue
            ),
        }
    }
}

/// Whether RAID 5 has the layout too.
const fn plain(layout: ParityLayout) -> bool {
    matches!(
        layout,
        ParityLayout::LeftAsymmetric
            | ParityLayout::RightAsymmetric
            | ParityLayout::LeftSymmetric
            | ParityLayout::RightSymmetric
            | ParityLayout::ParityFirst
            | ParityLayout::ParityLast
    )
}

impl Row {
    /// The row's number, 0 for the one at the start of the members' data areas.
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.number
    }

    /// The member that holds P.
    #[must_use]
    pub const fn p(&self) -> Slot {
        Slot(self.p)
    }

    /// The member that holds Q, in a RAID 6.
    #[must_use]
    pub const fn q(&self) -> Option<Slot> {
        match self.q {
            Some(q) => Some(Slot(q)),
            None => None,
        }
    }

    /// Data chunks in the row.
    #[must_use]
    pub const fn data_count(&self) -> u16 {
        self.members - 1 - self.q.is_some() as u16
    }

    const fn is_parity(&self, slot: u16) -> bool {
        slot == self.p || matches!(self.q, Some(q) if q == slot)
    }

    /// Returns the number of parity members below this one.
    const fn parity_below(&self, slot: u16) -> u16 {
        (self.p < slot) as u16 + matches!(self.q, Some(q) if q < slot) as u16
    }

    /// Returns the member that holds the data chunk of this index.
    #[must_use]
    pub const fn data_slot(&self, index: u16) -> Slot {
        if let Some(first) = self.first {
            return Slot((first + index) % self.cycle);
        }
        let mut slot = 0;
        let mut left = index;
        while self.is_parity(slot) || left > 0 {
            left -= !self.is_parity(slot) as u16;
            slot += 1;
        }
        Slot(slot)
    }

    /// Returns the content of a member in this row.
    #[must_use]
    pub const fn role(&self, slot: Slot) -> BlockRole {
        if slot.0 == self.p {
            return BlockRole::P;
        }
        if self.is_parity(slot.0) {
            return BlockRole::Q;
        }
        BlockRole::Data(match self.first {
            Some(first) => (slot.0 + self.cycle - first) % self.cycle,
            None => slot.0 - self.parity_below(slot.0),
        })
    }

    /// Returns the number of exponents in Q: one per data chunk, and with a DDF layout two more for
    /// the places of parity.
    #[must_use]
    pub const fn exponents(&self) -> u16 {
        if self.ddf {
            self.members
        } else {
            self.data_count()
        }
    }

    /// The exponent of 2 with which a data chunk counts in Q; its index where
    /// there is no Q.
    #[must_use]
    pub const fn exponent(&self, index: u16) -> u8 {
        let exponent = match self.q {
            None => index,
            Some(_) if self.ddf => self.data_slot(index).0,
            Some(q) => {
                // The number of data members from the one after Q to this one.
                let slot = self.data_slot(index).0;
                let start = (q + 1) % self.members;
                let steps = (slot + self.members - start) % self.members;
                let p_steps = (self.p + self.members - start) % self.members;
                steps - (p_steps < steps) as u16
            }
        };
        exponent as u8
    }
}

#[cfg(test)]
mod tests;
