//! The cache (ARC), as far as timing needs it: the indirect blocks and data blocks in memory.
//!
//! Rules, after FreeBSD 10's `arc.c` and `dbuf.c`:
//! - Data and indirect blocks share the cache. When it is full data is evicted first (`arc_adjust`
//!   evicts data before metadata). Data blocks of these workloads are touched once, and the list of
//!   blocks seen once is a queue: data leaves in order of arrival.
//! - Indirect blocks are kept by last use. Above the metadata limit the least recently used one is
//!   evicted, unless it is the parent of a block in memory: a buffer holds its parent.
//!
//! Check against the log: 60 s of random writes (job 1) read 1761 blocks in
//! all. If the limit of 3.75 GiB bound the 527 000 level-1 blocks of 16 KiB,
//! about 18 000 would have been read again.
//!
//! Ghost lists and the division into seen once and seen often are left out.

mod data;

use crate::config::PoolConfig;
use data::{Data, LONGEST_RUN};
use std::collections::VecDeque;

/// An indirect block: its level (1 or 2) and its index in that level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct IndirectId {
    /// The level: 1 points to data, 2 to level 1.
    pub(crate) level: u8,
    /// The index within the level.
    pub(crate) index: u64,
}

/// An indirect block's number: those of level 1 are numbered from 1, those of level 2 after them.
type Number = u32;

/// The number of no block, also at the ends of the list.
const NONE: Number = 0;
const END: Number = u32::MAX;

/// The neighbours of a held block in the list, the newer one first; for a block that is not held
/// both are [`NONE`].
type Links = [Number; 2];
const NEWER: usize = 0;
const OLDER: usize = 1;

/// The indirect blocks in memory as a list by last use: a table of all indirect blocks, in which a
/// held block has its neighbours.
#[derive(Debug)]
struct Indirect {
    links: Vec<Links>,
    /// The number of the last block of level 1.
    last_of_level_1: Number,
    newest: Number,
    oldest: Number,
    held: u64,
}

impl Indirect {
    fn new([level_1, level_2]: [usize; 2]) -> Self {
        Self {
            links: vec![[NONE; 2]; 1 + level_1 + level_2],
            last_of_level_1: u32::try_from(level_1).expect("fewer than 2^32 indirect blocks"),
            newest: END,
            oldest: END,
            held: 0,
        }
    }

    /// The number of a block, if it exists.
    fn number(&self, id: IndirectId) -> Option<Number> {
        let (before, last) = match id.level {
            1 => (0, self.last_of_level_1 as usize),
            _ => (self.last_of_level_1, self.links.len() - 1),
        };
        let number = u32::try_from(id.index).ok()?.checked_add(before + 1)?;
        (number as usize <= last).then_some(number)
    }

    /// The block with this number.
    const fn id(&self, number: Number) -> IndirectId {
        let (level, before) = match number > self.last_of_level_1 {
            true => (2, self.last_of_level_1),
            false => (1, 0),
        };
        IndirectId {
            level,
            index: (number - before - 1) as u64,
        }
    }

    const fn is_held(links: Links) -> bool {
        links[NEWER] != NONE
    }

    fn hit(&mut self, id: IndirectId) -> bool {
        let held = self
            .number(id)
            .filter(|&number| Self::is_held(self.links[number as usize]));
        if let Some(number) = held {
            self.make_newest(number);
        }
        held.is_some()
    }

    /// Inserts a block that is not held.
    fn insert(&mut self, id: IndirectId) {
        if let Some(number) = self.number(id) {
            self.held += 1;
            self.link_newest(number);
        }
    }

    fn remove_oldest(&mut self) {
        if self.oldest != END {
            let oldest = self.oldest;
            self.unlink(oldest);
            self.links[oldest as usize] = [NONE; 2];
            self.held -= 1;
        }
    }

    fn make_newest(&mut self, number: Number) {
        if number != self.newest {
            self.unlink(number);
            self.link_newest(number);
        }
    }

    fn unlink(&mut self, number: Number) {
        let [newer, older] = self.links[number as usize];
        match newer {
            END => self.newest = older,
            newer => self.links[newer as usize][OLDER] = older,
        }
        match older {
            END => self.oldest = newer,
            older => self.links[older as usize][NEWER] = newer,
        }
    }

    fn link_newest(&mut self, number: Number) {
        let older = self.newest;
        self.links[number as usize] = [END, older];
        match older {
            END => self.oldest = number,
            older => self.links[older as usize][NEWER] = number,
        }
        self.newest = number;
    }
}

/// The cache of data and indirect blocks that the top of the file describes.
#[derive(Debug)]
pub(crate) struct Cache {
    /// The capacity of the cache, in data blocks of the volume's size.
    capacity: u64,
    /// The number of data blocks whose room an indirect block takes.
    indirect_size: u64,
    /// The number of indirect blocks that are held in addition to those with data under them.
    indirect_limit: u64,
    /// The number of data blocks under one level-1 block.
    pointers: u64,
    indirect: Indirect,
    data: Data,
}

/// The number of old indirect blocks found to be needed for each new one before eviction stops,
/// which bounds the work where most are needed.
const KEPT: u32 = 2;

impl Cache {
    /// Creates a cache for a volume with these numbers of indirect blocks of level 1 and 2.
    pub(crate) fn new(config: &PoolConfig, indirect_blocks: [usize; 2]) -> Self {
        let block = config.volume_block.0;
        let pointers = usize::try_from(config.indirect_pointers).unwrap_or(usize::MAX);
        Self {
            capacity: config.cache.0 / block,
            indirect_size: config.indirect_memory.0.div_ceil(block),
            indirect_limit: (config.metadata_limit.0 / config.indirect_memory.0).max(1),
            pointers: config.indirect_pointers,
            data: Data::new(indirect_blocks[0].saturating_mul(pointers)),
            indirect: Indirect::new(indirect_blocks),
        }
    }

    /// The number of data blocks that fit into an otherwise empty cache.
    pub(crate) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The number of indirect blocks that stay without data under them.
    pub(crate) const fn indirect_limit(&self) -> u64 {
        self.indirect_limit
    }

    /// Whether an indirect block is in memory; a hit makes it the newest.
    pub(crate) fn hit(&mut self, id: IndirectId) -> bool {
        self.indirect.hit(id)
    }

    /// Inserts an indirect block as the newest.
    pub(crate) fn insert_indirect(&mut self, id: IndirectId) {
        if self.indirect.hit(id) {
            return;
        }
        self.indirect.insert(id);
        let mut kept = 0;
        while self.indirect.held > self.indirect_limit && kept < KEPT {
            let oldest = self.indirect.oldest;
            if self.is_needed(self.indirect.id(oldest)) {
                self.indirect.make_newest(oldest);
                kept += 1;
            } else {
                self.indirect.remove_oldest();
            }
        }
        self.make_room();
    }

    /// Whether a block directly under an indirect block is in memory.
    fn is_needed(&self, id: IndirectId) -> bool {
        let first = id.index * self.pointers;
        if id.level == 1 {
            return self.data.holds_any(first, first + self.pointers);
        }
        // Their numbers are one more than their indexes.
        let end = (1 + first + self.pointers).min(u64::from(self.indirect.last_of_level_1) + 1);
        let below = &self.indirect.links[1 + first as usize..end as usize];
        below.iter().any(|&links| Indirect::is_held(links))
    }

    /// Whether a data block is in memory.
    pub(crate) fn contains(&self, block: u64) -> bool {
        self.data.holds_any(block, block + 1)
    }

    /// Inserts the data blocks `first..end` as the last to leave.
    pub(crate) fn insert_data(&mut self, first: u64, end: u64) {
        let mut next = first;
        while next < end {
            let stop = end.min(next + LONGEST_RUN);
            self.data.insert(next, stop);
            next = stop;
        }
        self.make_room();
    }

    /// Evicts data beyond so many blocks, the oldest first.
    pub(crate) fn keep_data(&mut self, blocks: u64) {
        self.data.shrink_to(blocks);
    }

    /// Marks the data blocks `first..end` as dirty in the open transaction group; returns how
    /// many were not.
    pub(crate) fn make_dirty(&mut self, first: u64, end: u64) -> u64 {
        self.data.make_dirty(first, end)
    }

    /// Marks the data blocks `first..end` as not dirty in the open group; returns how many were.
    pub(crate) fn make_clean(&mut self, first: u64, end: u64) -> u64 {
        self.data.make_clean(first, end)
    }

    /// Closes the open group: returns the blocks that are dirty in it, as runs (first, number) that
    /// do not touch, in rising order.
    pub(crate) fn take_dirty(&mut self) -> VecDeque<(u64, u64)> {
        self.data.take_dirty()
    }

    /// Drops all data blocks; indirect blocks stay.
    pub(crate) fn forget_data(&mut self) {
        self.data.forget();
    }

    /// Drops all blocks, data and indirect ones, as if nothing had been read.
    pub(crate) fn forget(&mut self) {
        self.forget_data();
        while self.indirect.held > 0 {
            self.indirect.remove_oldest();
        }
    }

    fn make_room(&mut self) {
        let indirect = self.indirect.held * self.indirect_size;
        self.data.shrink_to(self.capacity.saturating_sub(indirect));
    }
}

#[cfg(test)]
mod tests {
    use super::{Cache, IndirectId};
    use crate::config::PoolConfig;
    use raidlab_units::{Bytes, Sectors};

    const fn level_1(index: u64) -> IndirectId {
        IndirectId { level: 1, index }
    }

    /// `capacity` data blocks of 8 KiB; an indirect block takes two.
    fn cache(capacity: u64, indirect: u64) -> Cache {
        let mut config = PoolConfig::freebsd_10_1(Vec::new(), Sectors(1 << 24), Bytes(16 << 30));
        config.cache = Bytes(capacity << 13);
        config.metadata_limit = Bytes(indirect << 14);
        Cache::new(&config, [8192, 64])
    }

    #[test]
    fn the_least_recently_used_indirect_block_leaves() {
        let mut cache = cache(1000, 3);
        for index in 0..3 {
            cache.insert_indirect(level_1(index));
        }
        assert!(cache.hit(level_1(0)));
        cache.insert_indirect(level_1(3));
        let held: Vec<bool> = (0..4).map(|index| cache.hit(level_1(index))).collect();
        assert_eq!(held, [true, false, true, true]);
        // Those three hits made 0 the oldest.
        cache.insert_indirect(IndirectId { level: 2, index: 1 });
        assert!(!cache.hit(level_1(0)) && cache.hit(level_1(3)));
        assert!(!cache.hit(IndirectId { level: 2, index: 0 }));
    }

    /// Block 128 is under level-1 block 1: that one stays, 0 goes.
    #[test]
    fn data_holds_the_block_above_it() {
        let mut cache = cache(1000, 2);
        cache.insert_indirect(level_1(1));
        cache.insert_data(128, 129);
        cache.insert_indirect(level_1(0));
        cache.insert_indirect(level_1(2));
        let held: Vec<bool> = (0..3).map(|index| cache.hit(level_1(index))).collect();
        assert_eq!(held, [false, true, true]);
    }

    #[test]
    fn data_leaves_in_the_order_it_came() {
        let mut cache = cache(4, 100);
        for block in [10, 11, 12, 50, 50] {
            cache.insert_data(block, block + 1);
        }
        assert!(cache.contains(10) && cache.contains(12) && cache.contains(50));
        assert!(!cache.contains(13) && !cache.contains(9));
        // The run 10..13 came first and leaves as one.
        cache.insert_data(70, 71);
        assert!(!cache.contains(10) && !cache.contains(12));
        assert!(cache.contains(50) && cache.contains(70));
        // An indirect block takes the room of two.
        cache.insert_data(90, 91);
        cache.insert_data(95, 96);
        cache.insert_indirect(level_1(500));
        assert!(!cache.contains(50) && !cache.contains(70));
        assert!(cache.contains(90) && cache.contains(95));
    }
}
