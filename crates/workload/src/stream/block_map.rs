//! fio's random map of a job whose sizes differ.
//!
//! The map has an entry for each block of the smallest size of all directions (`init_random_map` of
//! filesetup.c of fio 3.33), while a block is drawn, looked up and marked by its number in the
//! sizes of its own direction (`last_block`, `__get_next_rand_offset` and `mark_random_map` of
//! io_u.c). So with `bs=64k,16k` a job of reads finds free entries beyond its region's end once it
//! has drawn a block twice, and its pass ends there, as in fio. A request that meets a block of the
//! map is cut before it.

use crate::job::JobSpec;
use raidlab_units::{Sectors, Span, SpanSet};

/// The blocks that were taken in this pass.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BlockMap {
    places: u64,
    taken: SpanSet,
}

impl BlockMap {
    /// Creates an empty map of a job's region of so many bytes.
    pub(super) fn new(job: &JobSpec, region: u64) -> Self {
        let least = (0..3).map(|direction| job.least(direction).0).min();
        Self {
            places: region / least.unwrap_or(1).max(1),
            taken: SpanSet::default(),
        }
    }

    /// The block, or if it is taken the next free one, cyclically (`axmap_next_free`).
    pub(super) fn free(&self, block: u64) -> Option<u64> {
        let from = [block, 0].into_iter();
        let mut free = from.map(|from| match self.taken.at(Sectors(from)) {
            (true, end) => end.0,
            (false, _) => from,
        });
        free.find(|&block| block < self.places)
    }

    /// Marks a request whose first block is free; returns its bytes, up to the next taken block.
    pub(super) fn take(&mut self, offset: u64, length: u64, least: u64) -> u64 {
        let first = offset / least;
        let (_, end) = self.taken.at(Sectors(first));
        let blocks = length.div_ceil(least).min(end.0 - first);
        self.taken.insert(Span::new(first, first + blocks));
        length.min(blocks * least)
    }

    /// Empties the map for a new pass.
    pub(super) fn clear(&mut self) {
        self.taken.clear();
    }
}
