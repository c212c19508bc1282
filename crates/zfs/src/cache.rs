//! The cache (ARC), as far as timing needs it: which indirect blocks and
//! which data blocks are in memory.
//!
//! Rules, after FreeBSD 10's `arc.c` and `dbuf.c`:
//! - Data and indirect blocks share the cache. When it is full data goes
//!   first (`arc_adjust` evicts data before metadata). Data blocks of these
//!   workloads are touched once, and the list of blocks seen once is a queue:
//!   data leaves in the order it came.
//! - Indirect blocks are kept by last use. Above the metadata limit the least
//!   recently used goes, unless it is the parent of a block in memory: a buffer
//!   holds its parent.
//!
//! Check against the log: 60 s of random writes (job 1) read 1761 blocks in
//! all. If the limit of 3.75 GiB bound the 527 000 level-1 blocks of 16 KiB,
//! about 18 000 would have been read again.
//!
//! Ghost lists and the division into seen once and seen often are left out.

use crate::config::PoolConfig;
use std::collections::VecDeque;

/// An indirect block: its level (1 or 2) and its index in that level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct IndirectId {
    /// 1 points to data, 2 to level 1.
    pub(crate) level: u8,
    /// Index within the level.
    pub(crate) index: u64,
}

/// No node: the ends of the list, and indirect blocks that are not held.
const NONE: u32 = 0;

#[derive(Debug, Clone, Copy)]
struct Node {
    id: IndirectId,
    newer: u32,
    older: u32,
}

/// Indirect blocks in memory as a list by last use. Nodes are numbered from
/// 1; the tables hold each block's node, so that a look-up is one load.
#[derive(Debug)]
struct Indirect {
    tables: [Vec<u32>; 2],
    nodes: Vec<Node>,
    free: Vec<u32>,
    newest: u32,
    oldest: u32,
}

impl Indirect {
    fn new(blocks: [usize; 2]) -> Self {
        let end = Node {
            id: IndirectId { level: 0, index: 0 },
            newer: NONE,
            older: NONE,
        };
        Self {
            tables: blocks.map(|blocks| vec![NONE; blocks]),
            nodes: vec![end],
            free: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    fn held(&self) -> u64 {
        (self.nodes.len() - 1 - self.free.len()) as u64
    }

    fn entry(&mut self, id: IndirectId) -> Option<&mut u32> {
        let table = self.tables.get_mut(usize::from(id.level).wrapping_sub(1))?;
        table.get_mut(usize::try_from(id.index).ok()?)
    }

    fn hit(&mut self, id: IndirectId) -> bool {
        match self.entry(id) {
            None | Some(&mut NONE) => false,
            Some(&mut node) => {
                self.make_newest(node);
                true
            }
        }
    }

    fn insert(&mut self, id: IndirectId) {
        let node = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(self.nodes[NONE as usize]);
            u32::try_from(self.nodes.len() - 1).expect("fewer than 2^32 indirect blocks")
        });
        if let Some(entry) = self.entry(id) {
            *entry = node;
            self.nodes[node as usize].id = id;
            self.link_newest(node);
        } else {
            self.free.push(node);
        }
    }

    fn remove_oldest(&mut self) {
        let node = self.oldest;
        if node == NONE {
            return;
        }
        self.unlink(node);
        self.free.push(node);
        let id = self.nodes[node as usize].id;
        if let Some(entry) = self.entry(id) {
            *entry = NONE;
        }
    }

    fn make_newest(&mut self, node: u32) {
        if node != self.newest {
            self.unlink(node);
            self.link_newest(node);
        }
    }

    fn unlink(&mut self, node: u32) {
        let Node { newer, older, .. } = self.nodes[node as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, node: u32) {
        let older = self.newest;
        self.nodes[node as usize].newer = NONE;
        self.nodes[node as usize].older = older;
        match older {
            NONE => self.oldest = node,
            older => self.nodes[older as usize].newer = node,
        }
        self.newest = node;
    }
}

/// Runs longer than this many blocks are kept as several, so that the oldest
/// part of a long stream can leave.
const LONGEST_RUN: u64 = 1024;

/// Data blocks in memory, first in first out: a bit for each block of the
/// volume (pages of it that were never touched take no memory) and the runs in
/// which they came.
#[derive(Debug)]
struct Data {
    held: u64,
    bits: Vec<u64>,
    arrivals: VecDeque<(u64, u64)>,
}

impl Data {
    const fn bit(block: u64) -> (usize, u64) {
        ((block / 64) as usize, 1 << (block % 64))
    }

    fn contains(&self, block: u64) -> bool {
        let (word, bit) = Self::bit(block);
        self.bits[word] & bit != 0
    }

    /// Whether any of `count` blocks from `first` is held: both multiples of
    /// the pointers in an indirect block, a power of two.
    fn holds_any(&self, first: u64, count: u64) -> bool {
        let (word, _) = Self::bit(first);
        if count < 64 {
            let mask = ((1_u64 << count) - 1) << (first % 64);
            return self.bits[word] & mask != 0;
        }
        let (end, _) = Self::bit(first + count);
        self.bits[word..end].iter().any(|&bits| bits != 0)
    }

    /// The words that hold the bits of `first..end`, with those bits.
    fn words(first: u64, end: u64) -> impl Iterator<Item = (usize, u64)> {
        (first / 64..end.div_ceil(64)).map(move |word| {
            let low = first.saturating_sub(word * 64);
            let high = (end - word * 64).min(64);
            let mask = (u64::MAX >> (64 - high)) & (u64::MAX << low);
            (word as usize, mask)
        })
    }

    /// Takes in `first..end`, which is not empty.
    fn insert(&mut self, first: u64, end: u64) {
        if Self::words(first, end).all(|(word, mask)| self.bits[word] & mask == 0) {
            self.insert_new(first, end);
            return;
        }
        for block in first..end {
            if !self.contains(block) {
                self.insert_new(block, block + 1);
            }
        }
    }

    fn insert_new(&mut self, first: u64, end: u64) {
        for (word, mask) in Self::words(first, end) {
            self.bits[word] |= mask;
        }
        let blocks = end - first;
        self.held += blocks;
        match self.arrivals.back_mut() {
            Some((start, length))
                if *start + *length == first && *length + blocks <= LONGEST_RUN =>
            {
                *length += blocks;
            }
            _ => self.arrivals.push_back((first, blocks)),
        }
    }

    fn shrink_to(&mut self, capacity: u64) {
        while self.held > capacity
            && let Some((start, length)) = self.arrivals.pop_front()
        {
            self.held -= length;
            for (word, mask) in Self::words(start, start + length) {
                self.bits[word] &= !mask;
            }
        }
    }
}

/// The cache of data and indirect blocks that the top of the file describes.
#[derive(Debug)]
pub(crate) struct Cache {
    /// What the cache holds at most, counted in data blocks of the volume's size.
    capacity: u64,
    /// An indirect block takes the room of this many data blocks.
    indirect_size: u64,
    /// Indirect blocks that are held beside data that needs them.
    indirect_limit: u64,
    /// Data blocks under one level-1 block.
    pointers: u64,
    indirect: Indirect,
    data: Data,
}

/// Old indirect blocks found to be needed for each new one before it is let
/// be: bounds the work where most are needed.
const KEPT: u32 = 2;

impl Cache {
    /// For a volume with that many indirect blocks of level 1 and 2.
    pub(crate) fn new(config: &PoolConfig, indirect_blocks: [usize; 2]) -> Self {
        let block = config.volume_block.0;
        let words = usize::try_from(config.indirect_pointers.div_ceil(64)).unwrap_or(1);
        Self {
            capacity: config.cache.0 / block,
            indirect_size: config.indirect_memory.0.div_ceil(block),
            indirect_limit: (config.metadata_limit.0 / config.indirect_memory.0).max(1),
            pointers: config.indirect_pointers,
            data: Data {
                held: 0,
                bits: vec![0; indirect_blocks[0].saturating_mul(words)],
                arrivals: VecDeque::new(),
            },
            indirect: Indirect::new(indirect_blocks),
        }
    }

    /// Data blocks that fit when there is nothing else.
    pub(crate) const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Indirect blocks that stay without data that needs them.
    pub(crate) const fn indirect_limit(&self) -> u64 {
        self.indirect_limit
    }

    /// Whether an indirect block is in memory; a hit makes it the newest.
    pub(crate) fn hit(&mut self, id: IndirectId) -> bool {
        self.indirect.hit(id)
    }

    /// Puts an indirect block in as the newest.
    pub(crate) fn insert_indirect(&mut self, id: IndirectId) {
        if self.indirect.hit(id) {
            return;
        }
        self.indirect.insert(id);
        let mut kept = 0;
        while self.indirect.held() > self.indirect_limit && kept < KEPT {
            let oldest = self.indirect.oldest;
            if self.is_needed(self.indirect.nodes[oldest as usize].id) {
                self.indirect.make_newest(oldest);
                kept += 1;
            } else {
                self.indirect.remove_oldest();
            }
        }
        self.make_room();
    }

    /// Whether anything right below an indirect block is in memory.
    fn is_needed(&self, id: IndirectId) -> bool {
        let first = id.index * self.pointers;
        if id.level == 1 {
            return self.data.holds_any(first, self.pointers);
        }
        let level_1 = &self.indirect.tables[0];
        let below = (first as usize).min(level_1.len())
            ..((first + self.pointers) as usize).min(level_1.len());
        level_1[below].iter().any(|&node| node != NONE)
    }

    /// Whether a data block is in memory.
    pub(crate) fn contains(&self, block: u64) -> bool {
        self.data.contains(block)
    }

    /// Puts the data blocks `first..end` in as the last to leave.
    pub(crate) fn insert_data(&mut self, first: u64, end: u64) {
        let mut next = first;
        while next < end {
            let stop = end.min(next + LONGEST_RUN);
            self.data.insert(next, stop);
            next = stop;
        }
        self.make_room();
    }

    /// Lets data go beyond so many blocks, the oldest first.
    pub(crate) fn keep_data(&mut self, blocks: u64) {
        self.data.shrink_to(blocks);
    }

    /// Drops all data blocks; indirect blocks stay.
    pub(crate) fn forget_data(&mut self) {
        self.data.shrink_to(0);
    }

    /// Lets everything go, data and indirect blocks, as if nothing had been read.
    pub(crate) fn forget(&mut self) {
        self.forget_data();
        while self.indirect.held() > 0 {
            self.indirect.remove_oldest();
        }
    }

    fn make_room(&mut self) {
        let indirect = self.indirect.held() * self.indirect_size;
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
