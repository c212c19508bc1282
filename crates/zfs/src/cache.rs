//! The cache (ARC), as far as timing needs it: which indirect blocks and
//! which data blocks are in memory.
//!
//! Indirect blocks are looked up again and again, so they are kept by last
//! use (LRU) within the metadata limit. Data blocks of these workloads are
//! touched once; the ARC's list of blocks seen once is a queue, so data
//! leaves in the order it came. Ghost lists and the split between the two
//! lists of the real ARC are not modelled.

use std::collections::{BTreeMap, HashMap, VecDeque};

/// An indirect block: its level (1 or 2) and its index in that level.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct IndirectId {
    /// 1 points to data, 2 to level 1.
    pub(crate) level: u8,
    /// Index within the level.
    pub(crate) index: u64,
}

const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
struct Node {
    id: IndirectId,
    newer: u32,
    older: u32,
}

/// Indirect blocks in memory, least recently used out first.
#[derive(Debug)]
pub(crate) struct MetadataCache {
    capacity: usize,
    places: HashMap<IndirectId, u32>,
    nodes: Vec<Node>,
    newest: u32,
    oldest: u32,
}

impl MetadataCache {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.max(1),
            places: HashMap::new(),
            nodes: Vec::new(),
            newest: NONE,
            oldest: NONE,
        }
    }

    pub(crate) const fn capacity(&self) -> usize {
        self.capacity
    }

    /// Whether the block is in memory; a hit makes it the newest.
    pub(crate) fn hit(&mut self, id: IndirectId) -> bool {
        let Some(&place) = self.places.get(&id) else {
            return false;
        };
        if place != self.newest {
            self.unlink(place);
            self.link_newest(place);
        }
        true
    }

    /// Puts a block in as the newest, the oldest out if there is no room.
    pub(crate) fn insert(&mut self, id: IndirectId) {
        if self.hit(id) {
            return;
        }
        let place = if self.nodes.len() < self.capacity {
            self.nodes.push(Node {
                id,
                newer: NONE,
                older: NONE,
            });
            u32::try_from(self.nodes.len() - 1).expect("a cache of fewer than 2^32 blocks")
        } else {
            let place = self.oldest;
            self.unlink(place);
            let old = std::mem::replace(&mut self.nodes[place as usize].id, id);
            self.places.remove(&old);
            place
        };
        self.link_newest(place);
        self.places.insert(id, place);
    }

    fn unlink(&mut self, place: u32) {
        let Node { newer, older, .. } = self.nodes[place as usize];
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
    }

    fn link_newest(&mut self, place: u32) {
        let older = self.newest;
        self.nodes[place as usize].newer = NONE;
        self.nodes[place as usize].older = older;
        match older {
            NONE => self.oldest = place,
            older => self.nodes[older as usize].newer = place,
        }
        self.newest = place;
    }
}

/// Runs longer than this many blocks are kept as several, so that the oldest
/// part of a long stream can leave.
const LONGEST_RUN: u64 = 1024;

/// Data blocks in memory, first in first out, as runs of block numbers.
#[derive(Debug)]
pub(crate) struct DataCache {
    capacity: u64,
    held: u64,
    runs: BTreeMap<u64, u64>,
    arrivals: VecDeque<u64>,
}

impl DataCache {
    pub(crate) const fn new(capacity: u64) -> Self {
        Self {
            capacity,
            held: 0,
            runs: BTreeMap::new(),
            arrivals: VecDeque::new(),
        }
    }

    pub(crate) const fn capacity(&self) -> u64 {
        self.capacity
    }

    pub(crate) fn contains(&self, block: u64) -> bool {
        let before = self.runs.range(..=block).next_back();
        before.is_some_and(|(&start, &length)| block - start < length)
    }

    pub(crate) fn insert(&mut self, block: u64) {
        if self.contains(block) {
            return;
        }
        let grown = self.arrivals.back().and_then(|start| {
            let length = self.runs.get_mut(start)?;
            (start + *length == block && *length < LONGEST_RUN).then(|| *length += 1)
        });
        if grown.is_none() {
            self.runs.insert(block, 1);
            self.arrivals.push_back(block);
        }
        self.held += 1;
        while self.held > self.capacity {
            let Some(oldest) = self.arrivals.pop_front() else {
                return;
            };
            self.held -= self.runs.remove(&oldest).unwrap_or(0);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.held = 0;
        self.runs.clear();
        self.arrivals.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::{DataCache, IndirectId, MetadataCache};

    const fn level_1(index: u64) -> IndirectId {
        IndirectId { level: 1, index }
    }

    #[test]
    fn the_least_recently_used_indirect_block_leaves() {
        let mut cache = MetadataCache::new(3);
        for index in 0..3 {
            cache.insert(level_1(index));
        }
        assert!(cache.hit(level_1(0)));
        cache.insert(level_1(3));
        let held: Vec<bool> = (0..4).map(|index| cache.hit(level_1(index))).collect();
        assert_eq!(held, [true, false, true, true]);
        // Those three hits made 0 the oldest.
        cache.insert(IndirectId { level: 2, index: 1 });
        assert!(!cache.hit(level_1(0)) && cache.hit(level_1(3)));
    }

    #[test]
    fn data_leaves_in_the_order_it_came() {
        let mut cache = DataCache::new(4);
        for block in [10, 11, 12, 50] {
            cache.insert(block);
        }
        assert!(cache.contains(10) && cache.contains(12) && cache.contains(50));
        assert!(!cache.contains(13) && !cache.contains(9));
        // The run 10..13 came first and leaves as one.
        cache.insert(70);
        assert!(!cache.contains(10) && !cache.contains(12));
        assert!(cache.contains(50) && cache.contains(70));
    }

    #[test]
    fn a_block_already_held_is_not_counted_twice() {
        let mut cache = DataCache::new(2);
        cache.insert(1);
        cache.insert(1);
        cache.insert(5);
        assert!(cache.contains(1) && cache.contains(5));
    }
}
