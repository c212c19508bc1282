//! The syncing thread gives places to dirty blocks and sends them.
//!
//! Until 2015 it goes at its own pace, and runs are passed to the queues already merged up
//! to their limit.
//!
//! In OpenZFS 2.3 a block gets its place only while there is a slot for it (`zio_dva_throttle`),
//! two for one with two copies. There are 32 slots when a group's sync begins
//! (`zfs_vdev_def_queue_depth`), and one more for each block that has ended, up to 100
//! (`metaslab_group_increment_qdepth`). But only one waiting block is tried when one ends or a new
//! one comes (`zio_io_to_allocate`). So the first 32 go to the disks one by one, and each that ends
//! lets one follow, which keeps their number; it rises when an indirect block comes, that is when
//! everything under it has its place. In a sequential write that is once in a thousand blocks, in
//! random writes for almost each of them. Blocks waiting in a disk's queue are merged. The blocks
//! that wait for slots are sorted by level (`zio_bookmark_compare`): the data of a group come
//! first, then the indirect blocks above them, level by level.

use super::{Stage, Sync};
use crate::cache::IndirectId;
use crate::leaf_queue::Class;
use crate::map::Place;
use crate::pool::io::WriteFor;
use crate::pool::{Pool, Timer};
use raidlab_array::Outputs;
use raidlab_units::Nanos;
use std::collections::VecDeque;

/// The part of the disk between the copies of metadata, as a divisor, by default.
const COPY_DISTANCE: u64 = 8;

impl Pool {
    /// Runs the syncing thread: it orders the next run of blocks, or has no more.
    pub(in crate::pool) fn emit(&mut self, now: Nanos, out: &mut Outputs) {
        let Some(mut sync) = self.txg.sync.take() else {
            return;
        };
        sync.now = now;
        let limit = self.config.aggregation_limit();
        if self.config.allocations.is_some() {
            self.place_some(&mut sync, out);
            self.txg.sync = Some(sync);
            self.sync_settled(now, out);
            return;
        }
        let mut handled = 0;
        while let Some(&(first, dirty)) = sync.runs.front()
            && sync.run.is_none_or(|(run, _)| run.count < limit)
        {
            handled += self.place_blocks(&mut sync, first, dirty, limit);
        }
        self.send_run(&mut sync);
        if handled == 0 {
            self.send_copies(&mut sync);
            sync.stage = Stage::Settle;
        }
        self.txg.sync = Some(sync);
        if handled > 0 {
            self.set_timer(now + self.config.sync_block_time * handled, Timer::Emit);
        } else {
            self.sync_settled(now, out);
        }
    }

    /// Gives places to blocks, one for each look that finds free slots; each goes to the
    /// queues at once.
    fn place_some(&mut self, sync: &mut Sync, out: &mut Outputs) {
        let (first, most) = self.config.allocations.unwrap_or_default();
        let slots = most.min(first.saturating_add(sync.written));
        let limit = self.map.placed_sectors();
        let copies = u32::try_from(self.config.metadata_copies).unwrap_or(u32::MAX);
        // Without a disk no write ends, so none is waited for.
        while sync.looks > 0 || sync.outstanding == 0 {
            sync.looks = sync.looks.saturating_sub(1);
            let needed = if sync.runs.is_empty() { copies } else { 1 };
            if sync.outstanding > 0 && sync.outstanding + needed > slots {
                sync.looks = 0;
                break;
            }
            if let Some(&(first, dirty)) = sync.runs.front() {
                self.place_blocks(sync, first, dirty, limit);
            } else if let Some((index, changed)) = sync.parents[0].pop_front() {
                self.place_indirect(sync, 1, index, changed);
            } else if let Some((index, changed)) = sync.parents[1].pop_front() {
                self.place_indirect(sync, 2, index, changed);
            } else {
                sync.stage = Stage::Settle;
                return;
            }
            self.send_run(sync);
            self.send_copies(sync);
            self.issue(out);
        }
        if sync.runs.is_empty() && sync.parents.iter().all(VecDeque::is_empty) {
            sync.stage = Stage::Settle;
        }
    }

    /// Places the next consecutive dirty blocks under one level-1 block, and the indirect blocks
    /// above them if they are its last. Returns the number of blocks placed.
    fn place_blocks(&mut self, sync: &mut Sync, first: u64, dirty: u64, limit: u64) -> u64 {
        let room = limit - sync.run.map_or(0, |(run, _)| run.count);
        let room = (room / self.map.placed_sectors()).max(1);
        let parent = |level, block| self.map.indirect_index(level, block);
        let (level_1, level_2) = (parent(1, first), parent(2, first));
        let under = self.map.pointers() - first % self.map.pointers();
        let blocks = dirty.min(room).min(under);
        sync.runs.pop_front();
        if blocks < dirty {
            sync.runs.push_front((first + blocks, dirty - blocks));
        }
        let next = sync.runs.front().map(|run| run.0);
        let last_1 = next.is_none_or(|next| parent(1, next) != level_1);
        let last_2 = next.is_none_or(|next| parent(2, next) != level_2);

        let place = self.map.write_blocks(first, blocks);
        self.append(sync, place, blocks);
        sync.changed[0] += blocks;
        if last_1 {
            self.finish_parent(sync, 1, level_1);
            sync.changed[1] += 1;
        }
        if last_2 {
            self.finish_parent(sync, 2, level_2);
        }
        blocks + u64::from(last_1) + u64::from(last_2)
    }

    /// Handles an indirect block all of whose blocks have places: it gets its own, or waits for it.
    fn finish_parent(&mut self, sync: &mut Sync, level: u8, index: u64) {
        let above = usize::from(level) - 1;
        let changed = std::mem::take(&mut sync.changed[above]);
        if self.config.allocations.is_some() {
            sync.parents[above].push_back((index, changed));
            sync.looks = sync.looks.saturating_add(1);
        } else {
            self.place_indirect(sync, level, index, changed);
        }
    }

    fn place_indirect(&mut self, sync: &mut Sync, level: u8, index: u64, changed: u64) {
        let place = self.map.write_indirect(level, index, changed);
        self.cache.insert_indirect(IndirectId { level, index });
        self.append(sync, place, 0);
        for _ in 1..self.config.metadata_copies {
            if sync.copy_cursor + place.count > self.map.space() {
                sync.copy_cursor = 0;
            }
            let start = sync.copy_cursor;
            let grown = sync.copies.filter(|copies| {
                copies.start + copies.count == start
                    && copies.count + place.count <= self.config.aggregation_limit()
            });
            if grown.is_none() {
                self.send_copies(sync);
            }
            sync.copies = Some(Place {
                start: grown.map_or(start, |copies| copies.start),
                count: grown.map_or(0, |copies| copies.count) + place.count,
            });
            sync.copy_cursor += place.count;
        }
    }

    /// Adds a place to the run, which is written first if it ends elsewhere.
    fn append(&mut self, sync: &mut Sync, place: Place, dirty: u64) {
        let adjoins = |run: &(Place, u64)| run.0.start + run.0.count == place.start;
        if let Some((run, dirty_before)) = sync.run.filter(adjoins) {
            let (start, count) = (run.start, run.count + place.count);
            sync.run = Some((Place { start, count }, dirty_before + dirty));
        } else {
            self.send_run(sync);
            sync.run = Some((place, dirty));
        }
    }

    fn send_run(&mut self, sync: &mut Sync) {
        if let Some((place, dirty)) = sync.run.take() {
            let at = (sync.now, place);
            self.sync_write(&mut sync.outstanding, at, Class::AsyncWrite, dirty);
        }
    }

    fn send_copies(&mut self, sync: &mut Sync) {
        if let Some(place) = sync.copies.take() {
            let at = (sync.now, place);
            self.sync_write(&mut sync.outstanding, at, Class::AsyncWrite, 0);
        }
    }

    /// The distance of a block's second copy from its first.
    pub(super) fn copies_apart(&self) -> u64 {
        let told = self.config.copies_apart.map(|apart| apart.0);
        told.unwrap_or(self.map.space() / COPY_DISTANCE)
    }

    pub(super) fn sync_copies(
        &mut self,
        outstanding: &mut u32,
        (now, place): (Nanos, Place),
        copies: u64,
    ) {
        let space = self.map.space();
        for copy in 0..copies {
            let start = (place.start + copy * self.copies_apart()) % space;
            let start = start.min(space - place.count);
            let count = place.count;
            let at = (now, Place { start, count });
            self.sync_write(outstanding, at, Class::AsyncWrite, 0);
        }
    }

    pub(super) fn sync_write(
        &mut self,
        outstanding: &mut u32,
        (now, place): (Nanos, Place),
        class: Class,
        dirty_blocks: u64,
    ) {
        if self.start_write(now, place, class, WriteFor::Sync { dirty_blocks }) {
            *outstanding += 1;
        } else {
            // No disk is left, and data must not stay dirty for ever.
            self.txg.dirty -= dirty_blocks;
        }
    }
}
