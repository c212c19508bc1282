//! The areas of a member, as its superblock describes them.

use super::{Features, Superblock, Version, legacy};
use crate::bitmap::BitmapSuperblock;
use crate::mutation::{self, Mutation};
use raidlab_units::Sectors;
use std::ops::Range;

/// The unit, in sectors, in which the areas of a member begin and end: 4 KiB.
const ALIGNMENT: u64 = 8;

impl Superblock {
    /// Returns the sector at an offset in sectors from the superblock.
    fn beside(&self, offset: i32) -> Option<u64> {
        self.super_offset.0.checked_add_signed(i64::from(offset))
    }

    /// Returns the sectors of the superblock itself, in whole 4 KiB.
    #[must_use]
    pub fn superblock_area(&self) -> Range<Sectors> {
        let start = self.super_offset.0;
        Sectors(start)..Sectors(start.saturating_add(ALIGNMENT))
    }

    /// Returns the sectors that hold the array's data: as much as the member offers.
    #[must_use]
    pub fn data_area(&self) -> Range<Sectors> {
        let start = self.data_offset.0;
        let held = if self.level > 0 && self.version == Version::V1_0 {
            // mdadm does not subtract the data offset from data_size where the superblock lies
            // at the end.
            let room = self.super_offset.0.saturating_sub(start);
            self.data_size.0.min(room)
        } else {
            self.data_size.0
        };
        Sectors(start)..Sectors(start.saturating_add(held))
    }

    /// Returns the sectors of the bad-block log, if there is one.
    #[must_use]
    pub fn bad_block_area(&self) -> Option<Range<Sectors>> {
        let log = self.bad_block_log?;
        let start = self.beside(log.offset)?;
        Some(Sectors(start)..Sectors(start.checked_add(log.size.into())?))
    }

    /// Returns the sectors from the internal bitmap's start to the next area or the member's end,
    /// at `size` sectors: the most that the bitmap can take. `None` if there is no bitmap or its
    /// start lies within another area.
    #[must_use]
    pub fn bitmap_room(&self, size: Sectors) -> Option<Range<Sectors>> {
        if !self.features.has(Features::BITMAP) {
            return None;
        }
        let start = self.beside(self.bitmap_offset)?;
        if self.version == Version::V0_90 {
            let end = start + legacy::BITMAP_BYTES as u64 / 512;
            return (end <= size.0).then_some(Sectors(start)..Sectors(end));
        }
        // Bitmaps that were added by old kernels begin 1 KiB behind the
        // superblock, which is shorter than that.
        let head = 256 + 2 * self.roles.len() as u64;
        let own = self.super_offset..Sectors(self.super_offset.0 + head.div_ceil(512));
        let taken = [Some(own), Some(self.data_held()), self.bad_block_area()];
        let mut end = size.0;
        for area in taken.into_iter().flatten() {
            if (area.start.0..area.end.0).contains(&start) {
                return None;
            }
            if area.start.0 >= start && area.start < area.end {
                end = end.min(area.start.0);
            }
        }
        (start < end).then_some(Sectors(start)..Sectors(end))
    }

    /// Returns the sectors that the array uses of the data area.
    fn data_held(&self) -> Range<Sectors> {
        let area = self.data_area();
        let used = if self.level > 0 {
            self.used_size.0
        } else {
            self.data_size.0
        };
        area.start..area.end.min(Sectors(area.start.0.saturating_add(used)))
    }

    /// Returns the most sectors that the array's data may have on a device of `size` sectors: from
    /// their start to the device's end, or to the first of the superblock, the bitmap and the
    /// bad-block log that lies behind them.
    #[must_use]
    pub fn data_room(&self, size: Sectors) -> Sectors {
        let start = self.data_offset.0;
        let has_bitmap = self.features.has(Features::BITMAP);
        let bitmap = self.beside(self.bitmap_offset).filter(|_| has_bitmap);
        let log = self.bad_block_area().map(|area| area.start.0);
        let ends_device = self.version == Version::V1_0;
        let behind = [Some(self.super_offset.0), bitmap, log]
            .into_iter()
            .flatten();
        let behind = behind.filter(|at| ends_device || *at >= start);
        Sectors(
            behind
                .chain([size.0])
                .min()
                .unwrap_or(start)
                .saturating_sub(start),
        )
    }

    /// Returns the sectors that neither md's metadata nor its data use, in whole 4 KiB: for 1.1 and
    /// 1.2 between bitmap and bad-block log and the data, for 1.0 between the data and what lies
    /// before the superblock. Empty for 0.90, and where a partial parity log takes the room.
    #[must_use]
    pub fn log_area(&self, bitmap: Option<&BitmapSuperblock>) -> Range<Sectors> {
        let nothing = Sectors(0)..Sectors(0);
        let exclusive = Features::PPL | Features::MULTIPLE_PPLS | Features::RESHAPE;
        if self.version == Version::V0_90 || self.features.0 & exclusive != 0 {
            return nothing;
        }
        let bitmap_area = if self.features.has(Features::BITMAP) {
            // A bitmap that cannot be read may be of any length.
            let (Some(bitmap), Some(start)) = (bitmap, self.beside(self.bitmap_offset)) else {
                return nothing;
            };
            let length = bitmap.bytes().max(bitmap.reserved.to_bytes().0);
            let length = length.div_ceil(4096).saturating_mul(ALIGNMENT);
            Some(Sectors(start)..Sectors(start.saturating_add(length)))
        } else {
            None
        };
        let taken = [
            Some(self.superblock_area()),
            bitmap_area,
            self.bad_block_area(),
        ];
        let taken = taken.into_iter().enumerate();
        let taken =
            taken.filter(|(which, _)| *which != 1 || !mutation::is(Mutation::LogOverBitmap));
        let taken = taken.filter_map(|(_, area)| area);
        let (start, end) = if self.version == Version::V1_0 {
            let end = self.data_area().end;
            (end, taken.map(|area| area.start).min().unwrap_or(end))
        } else {
            let start = taken.map(|area| area.end).max();
            (start.unwrap_or(self.data_offset), self.data_offset)
        };
        let start = start
            .0
            .checked_next_multiple_of(ALIGNMENT)
            .unwrap_or(u64::MAX);
        let end = end.0 - end.0 % ALIGNMENT;
        if start < end {
            Sectors(start)..Sectors(end)
        } else {
            nothing
        }
    }
}
