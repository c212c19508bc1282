//! The places of the volume's blocks on the disks.
//!
//! Copy-on-write: a block is written to free space and its old place is freed. Free space is
//! allocated by one cursor that runs through the disk and starts again at the front when it reaches
//! the end: on an empty or sequentially filled pool that is what the first-fit cursor of a metaslab
//! does (`metaslab_df_alloc`), metaslabs being taken from the outer edge inwards. Fragmented free
//! space is not modelled: after the cursor has wrapped around once, places are no longer unique,
//! which changes no timing class.
//!
//! Data is kept as extents (runs of blocks that lie one behind the other), so a sequential fill of
//! terabytes is a few thousand of them and each random overwrite adds one. Indirect blocks of level
//! 1 and 2 are kept in flat tables; level 3 and above (192 blocks for 3 TiB) are taken to be always
//! in memory. An indirect block is compressed: its size on disk follows from the number of pointers
//! ever put into it. Data blocks may be compressed too, all to the same size.

use crate::config::{LABELS, PoolConfig};
use std::collections::BTreeMap;

/// A run of sectors in the allocatable space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    /// The run's first sector, counted from the start of the allocatable space.
    pub(crate) start: u64,
    /// The run's length, in sectors of 512 bytes.
    pub(crate) count: u64,
}

// Packed, as there are half a million after a minute of random writes.
#[derive(Debug, Clone, Copy)]
#[repr(Rust, packed)]
struct Extent {
    blocks: u64,
    start: u64,
    /// Whether indirect blocks are between the data, each after its last block.
    interleaved: bool,
}

/// The indirect blocks of one level: sector and number of pointers, packed so that an entry is one
/// word; without pointers there is no block.
#[derive(Debug)]
struct Level {
    entries: Vec<u64>,
    /// A bit for each existing block: on an empty volume most look-ups fail, at random places of a
    /// table that no processor's cache holds.
    there: Vec<u64>,
    pointer_bytes: u64,
}

const POINTER_BITS: u32 = 16;

/// The map from the volume's blocks to places that the top of the file describes.
#[derive(Debug)]
pub(crate) struct BlockMap {
    block_sectors: u64,
    /// The size of a block on the disks, in sectors.
    placed_sectors: u64,
    pointer_shift: u32,
    pointers: u64,
    unit_sectors: u64,
    volume_blocks: u64,
    extents: BTreeMap<u64, Extent>,
    blocks: u64,
    /// The end of the last blocks that were written.
    written_to: u64,
    levels: [Level; 2],
    cursor: u64,
    space: u64,
}

impl BlockMap {
    pub(crate) fn new(config: &PoolConfig) -> Self {
        let block_sectors = config.volume_block.to_sectors().0;
        let blocks = config.volume_size.0.div_ceil(block_sectors);
        let level_1 = blocks.div_ceil(config.indirect_pointers);
        let level = |entries: u64, pointer_bytes| {
            let entries = usize::try_from(entries).expect("a table that fits memory");
            Level {
                entries: vec![0; entries],
                there: vec![0; entries.div_ceil(64)],
                pointer_bytes,
            }
        };
        let placed = config.placed_block.unwrap_or(config.volume_block);
        Self {
            block_sectors,
            placed_sectors: placed.to_sectors().0,
            pointer_shift: config.indirect_pointers.trailing_zeros(),
            pointers: config.indirect_pointers,
            unit_sectors: (1_u64 << config.ashift) / 512,
            volume_blocks: blocks,
            extents: BTreeMap::new(),
            blocks: 0,
            written_to: 0,
            levels: [
                level(level_1, config.level_1_pointer_bytes),
                level(
                    level_1.div_ceil(config.indirect_pointers),
                    config.level_2_pointer_bytes,
                ),
            ],
            cursor: 0,
            space: config.smallest_member().0 - LABELS.0,
        }
    }

    /// The number of blocks of the volume, holes included.
    pub(crate) const fn volume_blocks(&self) -> u64 {
        self.volume_blocks
    }

    /// The number of blocks that have a place.
    pub(crate) const fn allocated_blocks(&self) -> u64 {
        self.blocks
    }

    pub(crate) const fn block_sectors(&self) -> u64 {
        self.block_sectors
    }

    /// The size of a block on the disks, compressed or not, in sectors.
    pub(crate) const fn placed_sectors(&self) -> u64 {
        self.placed_sectors
    }

    /// The position of the next allocation.
    pub(crate) const fn cursor(&self) -> u64 {
        self.cursor
    }

    /// The number of sectors that can be allocated on a disk.
    pub(crate) const fn space(&self) -> u64 {
        self.space
    }

    /// The index of the indirect block of `level` (1 or 2) over a block.
    pub(crate) const fn indirect_index(&self, level: u8, block: u64) -> u64 {
        block >> (self.pointer_shift * level as u32)
    }

    /// The number of level-1 blocks under one of level 2.
    pub(crate) const fn pointers(&self) -> u64 {
        self.pointers
    }

    /// The number of indirect blocks of a level, holes included.
    pub(crate) fn indirect_blocks(&self, level: u8) -> usize {
        self.levels[usize::from(level) - 1].entries.len()
    }

    /// The place of a data block; `None` for a hole.
    pub(crate) fn place_of(&self, block: u64) -> Option<Place> {
        self.run_from(block, 1).map(|(place, _)| place)
    }

    /// The blocks from `block` on that lie one after the other under one level-1 block, at most
    /// `limit` of them, and their place; `None` for a hole.
    pub(crate) fn run_from(&self, block: u64, limit: u64) -> Option<(Place, u64)> {
        let (&first, extent) = self.extents.range(..=block).next_back()?;
        let left = extent.blocks.checked_sub(block - first)?;
        let under = self.pointers - block % self.pointers;
        let blocks = left.min(under).min(limit);
        (blocks > 0).then(|| {
            let start = extent.start + self.distance(first, block, extent.interleaved);
            let count = blocks * self.placed_sectors;
            (Place { start, count }, blocks)
        })
    }

    /// The number of sectors from one block to a later one in the same extent.
    fn distance(&self, from: u64, to: u64, interleaved: bool) -> u64 {
        let data = (to - from) * self.placed_sectors;
        let between = |level| {
            let indirect = self.indirect_index(level, to) - self.indirect_index(level, from);
            indirect * self.indirect_sectors(level, self.pointers)
        };
        if interleaved {
            data + between(1) + between(2)
        } else {
            data
        }
    }

    /// The first allocated block at or after `block`.
    pub(crate) fn next_allocated(&self, block: u64) -> Option<u64> {
        if self.place_of(block).is_some() {
            return Some(block);
        }
        self.extents.range(block..).next().map(|(&first, _)| first)
    }

    /// The block that has `skip` allocated blocks before it, or the end.
    pub(crate) fn block_after(&self, skip: u64) -> Option<u64> {
        let mut left = skip;
        for (&first, extent) in &self.extents {
            if left < extent.blocks {
                return Some(first + left);
            }
            left -= extent.blocks;
        }
        None
    }

    /// The place of an indirect block; `None` for a hole.
    pub(crate) fn indirect_place(&self, level: u8, index: u64) -> Option<Place> {
        if !self.has_indirect(level, index) {
            return None;
        }
        let entry = self.levels[usize::from(level) - 1].entries[usize::try_from(index).ok()?];
        Some(Place {
            start: entry >> POINTER_BITS,
            count: self.indirect_sectors(level, entry & ((1 << POINTER_BITS) - 1)),
        })
    }

    /// Whether an indirect block has a place.
    pub(crate) fn has_indirect(&self, level: u8, index: u64) -> bool {
        let there = &self.levels[usize::from(level) - 1].there;
        let word = usize::try_from(index / 64)
            .ok()
            .and_then(|word| there.get(word));
        word.is_some_and(|bits| bits >> (index % 64) & 1 == 1)
    }

    fn indirect_sectors(&self, level: u8, pointers: u64) -> u64 {
        let bytes = 64 + self.levels[usize::from(level) - 1].pointer_bytes * pointers;
        bytes.div_ceil(512).next_multiple_of(self.unit_sectors)
    }

    /// Allocates the next free place of that many sectors.
    pub(crate) fn allocate(&mut self, sectors: u64) -> Place {
        let count = sectors.next_multiple_of(self.unit_sectors);
        if self.cursor + count > self.space {
            self.cursor = 0;
        }
        let start = self.cursor;
        self.cursor += count;
        Place { start, count }
    }

    /// Gives a run of blocks new places, one after the other.
    pub(crate) fn write_blocks(&mut self, first: u64, blocks: u64) -> Place {
        let place = self.allocate(blocks * self.placed_sectors);
        if self.may_hold(first, first + blocks) {
            self.forget(first, first + blocks);
        }
        self.blocks += blocks;
        let continues = self.written_to == first || (first > 0 && self.may_hold(first - 1, first));
        self.written_to = first + blocks;
        if continues
            && let Some((&before, extent)) = self.extents.range_mut(..first).next_back()
            && before + extent.blocks == first
            && !extent.interleaved
            && extent.start + extent.blocks * self.placed_sectors == place.start
        {
            extent.blocks += blocks;
            return place;
        }
        let extent = Extent {
            blocks,
            start: place.start,
            interleaved: false,
        };
        self.extents.insert(first, extent);
        place
    }

    /// Gives the blocks `first..end` new places in one run, as a long sequential write leaves
    /// them: each indirect block right after the last block under it. All indirect blocks are
    /// taken to be full.
    pub(crate) fn write_interleaved(&mut self, first: u64, end: u64) {
        let last = end - 1;
        let tail = self.placed_sectors
            + self.indirect_sectors(1, self.pointers)
            + self.indirect_sectors(2, self.pointers);
        let start = self.allocate(self.distance(first, last, true) + tail).start;
        self.forget(first, end);
        self.blocks += end - first;
        let extent = Extent {
            blocks: end - first,
            start,
            interleaved: true,
        };
        self.extents.insert(first, extent);
        for level in [1_u8, 2] {
            let shift = self.pointer_shift * u32::from(level);
            for index in first >> shift..=last >> shift {
                let under = (((index + 1) << shift) - 1).min(last);
                let mut place = start + self.distance(first, under, true) + self.placed_sectors;
                if level == 2 {
                    place += self.indirect_sectors(1, self.pointers);
                }
                self.set_indirect(level, index, place, self.pointers);
            }
        }
    }

    fn set_indirect(&mut self, level: u8, index: u64, start: u64, pointers: u64) {
        let slot = usize::try_from(index).expect("an index into a table in memory");
        let table = &mut self.levels[usize::from(level) - 1];
        table.entries[slot] = (start << POINTER_BITS) | pointers;
        table.there[slot / 64] |= 1 << (slot % 64);
    }

    /// Whether any of `first..end` may have a place: one table look-up where nothing was ever
    /// written, which saves most random writes on an empty pool a search. The level-1 block is
    /// written after its data, but within a transaction group no block is written twice.
    pub(crate) fn may_hold(&self, first: u64, end: u64) -> bool {
        let low = self.indirect_index(1, first);
        let high = self.indirect_index(1, end - 1);
        (low..=high).any(|index| self.has_indirect(1, index))
    }

    /// Frees the places of `first..end`.
    pub(crate) fn free(&mut self, first: u64, end: u64) {
        if self.may_hold(first, end) {
            self.forget(first, end);
        }
    }

    /// Removes `first..end` from the extents.
    fn forget(&mut self, first: u64, end: u64) {
        if let Some((&before, extent)) = self.extents.range_mut(..first).next_back() {
            let old = *extent;
            let before_end = before + old.blocks;
            if before_end > first {
                extent.blocks = first - before;
                self.blocks -= before_end.min(end) - first;
                self.keep_tail(before, old, end);
            }
        }
        let mut last = None;
        for (next, extent) in self.extents.extract_if(first..end, |_, _| true) {
            self.blocks -= (next + extent.blocks).min(end) - next;
            last = Some((next, extent));
        }
        if let Some((next, extent)) = last {
            self.keep_tail(next, extent, end);
        }
    }

    /// Puts back the part of an extent from `tail` on.
    fn keep_tail(&mut self, first: u64, extent: Extent, tail: u64) {
        let end = first + extent.blocks;
        if end > tail {
            let kept = Extent {
                blocks: end - tail,
                start: extent.start + self.distance(first, tail, extent.interleaved),
                ..extent
            };
            self.extents.insert(tail, kept);
        }
    }

    /// Gives an indirect block a new place after `pointers` of its pointers were changed.
    pub(crate) fn write_indirect(&mut self, level: u8, index: u64, pointers: u64) -> Place {
        let slot = usize::try_from(index).expect("an index into a table in memory");
        let entry = self.levels[usize::from(level) - 1].entries[slot];
        let held = entry & ((1 << POINTER_BITS) - 1);
        let pointers = (held + pointers).min(self.pointers);
        let place = self.allocate(self.indirect_sectors(level, pointers));
        self.set_indirect(level, index, place.start, pointers);
        place
    }
}

#[cfg(test)]
mod tests {
    use super::{BlockMap, Place};
    use crate::config::{MemberConfig, PoolConfig};
    use proptest::prelude::*;
    use raidlab_units::{Bytes, Sectors};

    fn map() -> BlockMap {
        let member = MemberConfig {
            size: Sectors(1 << 24),
            rotational: true,
        };
        BlockMap::new(&PoolConfig::freebsd_10_1(
            vec![member; 2],
            Sectors(1 << 20),
            Bytes(16 << 30),
        ))
    }

    #[test]
    fn an_overwritten_block_moves_and_its_neighbours_stay() {
        let mut map = map();
        map.write_blocks(0, 10);
        map.write_indirect(1, 0, 10);
        map.write_blocks(4, 1);
        let places: Vec<Option<u64>> = (3..11)
            .map(|block| map.place_of(block).map(|place| place.start))
            .collect();
        // The level-1 block took the sector at 160.
        let expected = [48, 161, 80, 96, 112, 128, 144].map(Some);
        assert_eq!(places[..7], expected);
        assert_eq!(places[7], None);
        assert_eq!(map.allocated_blocks(), 10);
        assert_eq!(map.block_after(4), Some(4));
        assert_eq!(map.block_after(10), None);
        assert_eq!(map.next_allocated(10), None);
    }

    /// 64 + 13 bytes fit a sector; 64 + 128 * 13 = 1728 take four.
    #[test]
    fn an_indirect_block_grows_with_its_pointers() {
        let mut map = map();
        assert_eq!(map.indirect_place(1, 3), None);
        assert_eq!(map.write_indirect(1, 3, 1), Place { start: 0, count: 1 });
        assert_eq!(map.write_indirect(1, 3, 200), Place { start: 1, count: 4 });
        assert_eq!(map.indirect_place(1, 3), Some(Place { start: 1, count: 4 }));
        assert_eq!(map.indirect_index(1, 511), 3);
        assert_eq!(map.indirect_index(2, 128 * 128), 1);
    }

    /// 128 blocks of 16 sectors, then 4 of level 1; after 128 of those one of
    /// level 2 with 10.
    #[test]
    fn a_long_write_has_its_indirect_blocks_in_between() {
        let mut map = map();
        map.write_interleaved(0, 40_000);
        let at = |block: u64| map.place_of(block).map(|place| place.start);
        assert_eq!(at(127), Some(127 * 16));
        assert_eq!(
            map.indirect_place(1, 0),
            Some(Place {
                start: 2048,
                count: 4
            })
        );
        assert_eq!(at(128), Some(2052));
        let fan = 128 * 2052;
        assert_eq!(
            map.indirect_place(1, 127).map(|place| place.start),
            Some(fan - 4)
        );
        assert_eq!(
            map.indirect_place(2, 0),
            Some(Place {
                start: fan,
                count: 10
            })
        );
        assert_eq!(at(128 * 128), Some(fan + 10));
        // An overwritten block leaves both sides where they were.
        map.write_blocks(200, 1);
        let at = |block: u64| map.place_of(block).map(|place| place.start);
        assert_eq!(
            (at(199), at(201)),
            (Some(2052 + 71 * 16), Some(2052 + 73 * 16))
        );
        assert_eq!(at(128 * 128), Some(fan + 10));
        assert_eq!(map.allocated_blocks(), 40_000);
    }

    #[test]
    fn the_cursor_goes_round() {
        let mut map = map();
        let space = map.space();
        map.allocate(space - 8);
        assert_eq!(map.allocate(9), Place { start: 0, count: 9 });
    }

    proptest! {
        /// Against an array with one entry per block.
        #[test]
        fn extents_agree_with_a_flat_table(
            writes in prop::collection::vec((0_u64..200, 1_u64..40), 1..60)
        ) {
            let mut map = map();
            let mut flat = vec![None; 256];
            for (first, blocks) in writes {
                let place = map.write_blocks(first, blocks);
                map.write_indirect(1, 0, blocks);
                map.write_indirect(1, 1, blocks);
                for skip in 0..blocks {
                    let block = usize::try_from(first + skip).expect("small");
                    flat[block] = Some(place.start + skip * 16);
                }
            }
            let mapped: Vec<Option<u64>> = (0..256)
                .map(|block| map.place_of(block).map(|place| place.start))
                .collect();
            prop_assert_eq!(&mapped, &flat);
            let held: Vec<u64> = (0..256).filter(|&block| map.place_of(block).is_some()).collect();
            prop_assert_eq!(map.allocated_blocks(), held.len() as u64);
            for (skip, &block) in (0..).zip(&held) {
                prop_assert_eq!(map.block_after(skip), Some(block));
            }
            prop_assert_eq!(map.next_allocated(0), held.first().copied());
        }
    }
}
