//! The indirect blocks that must be known before data can be ordered, and the orders of prefetch.
//!
//! Until 2015 a request waits for the indirect blocks of its prefetch as it does for its own. In
//! OpenZFS 2.3 no request waits: a missing indirect block is read like one that a request needs,
//! and when it is in memory the blocks under it are ordered (`dbuf_prefetch_impl`,
//! `dbuf_prefetch_indirect_done`); those of level 1 further ahead are ordered like data. (Where
//! also the block of level 2 above them is missing, they are left to be read for the data.)

use super::{Pool, Waiter};
use crate::cache::IndirectId;
use crate::config::DataReads;
use crate::leaf_queue::Class;
use crate::map::BlockMap;
use crate::prefetch::Ahead;
use raidlab_array::Outputs;
use raidlab_units::Nanos;
use std::ops::Range;

impl Pool {
    /// The indirect block that must be read before a block's place is known,
    /// if one must. Level 2 is not needed where level 1 is in memory.
    pub(super) fn missing_above(&mut self, block: u64) -> Option<IndirectId> {
        let id = |level: u8, map: &BlockMap| IndirectId {
            level,
            index: map.indirect_index(level, block),
        };
        let (level_1, level_2) = (id(1, &self.map), id(2, &self.map));
        let known = self.cache.hit(level_2);
        // A block without a place is not in memory either, and the map is faster to query.
        if self.map.has_indirect(1, level_1.index) && self.cache.hit(level_1) {
            return None;
        }
        let missing = if known { level_1 } else { level_2 };
        let placed = self.map.has_indirect(missing.level, missing.index);
        placed.then_some(missing)
    }

    pub(super) fn fetch_for_job(
        &mut self,
        now: Nanos,
        id: IndirectId,
        index: u32,
        out: &mut Outputs,
    ) {
        if let Some(job) = self.jobs.get_mut(index) {
            job.pending += 1;
        }
        self.last_foreground = Some(now);
        self.fetch(now, id, Class::SyncRead, Waiter::Job(index), out);
    }

    /// Orders the prefetch of a read, when all that it needs itself has been ordered.
    pub(super) fn look_ahead(&mut self, now: Nanos, index: u32, out: &mut Outputs) {
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        let first = job.request.start.0 / self.map.block_sectors();
        let Ahead { data, indirect } = self.prefetch.read(now, first, job.end, job.missed);
        let data = data.start..data.end.min(self.map.volume_blocks());
        if self.config.data_reads == DataReads::Runs {
            job.ahead = Some(data);
            return;
        }
        job.ahead = Some(0..0);
        self.order_ahead(now, data, out);
        let pointers = self.map.pointers();
        for index in indirect.start.div_ceil(pointers)..indirect.end.div_ceil(pointers) {
            self.order_indirect(now, index, out);
        }
    }

    /// Orders data blocks, and first the indirect blocks above them.
    pub(super) fn order_ahead(&mut self, now: Nanos, blocks: Range<u64>, out: &mut Outputs) {
        let mut block = blocks.start;
        while block < blocks.end {
            let stop = (block + 1).next_multiple_of(self.map.pointers());
            let stop = stop.min(blocks.end);
            match self.missing_above(block) {
                Some(id) => {
                    self.fetch(now, id, Class::SyncRead, Waiter::Ahead(block, stop), out);
                    self.issue(out);
                }
                None => self.order(now, block..stop, None, out),
            }
            block = stop;
        }
    }

    /// Orders a block of level 1 if its place is known.
    fn order_indirect(&mut self, now: Nanos, index: u64, out: &mut Outputs) {
        let block = index * self.map.pointers();
        if block < self.map.volume_blocks()
            && let Some(id) = self.missing_above(block)
            && id == (IndirectId { level: 1, index })
        {
            self.fetch(now, id, Class::AsyncRead, Waiter::Nobody, out);
            self.issue(out);
        }
    }

    /// Raises the class of a block that is being read and wanted again.
    pub(super) fn raise_fetch(&mut self, id: IndirectId, class: Class) {
        let read = self.fetches.get(&id).and_then(|fetch| fetch.read);
        if let Some(read) = read
            && class == Class::SyncRead
            && self.config.data_reads == DataReads::Blocks
        {
            self.raise_read(read);
        }
    }
}
