//! Dirty data, the write throttle, transaction groups and their sync.
//!
//! One group is open and takes writes, one is being synced. The sync of the
//! open group begins when no other is running and the group is 5 s old, or
//! holds 64 MiB, or a resilver is running (`txg_sync_thread`).
//!
//! Throttle (`dmu_tx_delay`): with more than 60 % of the dirty limit dirty, a
//! write is delayed by `scale * (dirty - min) / (max - dirty)`, at most 100
//! ms, and not before that long after the previous delayed one; at the limit
//! writers block, and who has been blocked for longer than the delay has had it. Until 2015 only data counts as dirty here; in OpenZFS 2.3 also the
//! indirect blocks above them, of 128 KiB each: with random writes those are most of
//! it, and make groups follow each other much faster.
//!
//! Sync (`spa_sync`): the syncing thread prepares all dirty blocks; then, in the order of the tree,
//! they get places one after the other. An indirect block is placed as soon as all blocks under it
//! are (a parent waits for its own children only, `zio_ready`), so it lies right after the last of
//! them; that is why a read of a level-1 block and the read of the data that follows are a short
//! seek apart, and within the 1 MiB for which the mirror prefers the same child. The second copy of
//! indirect blocks goes to another cursor an eighth of the disk further (`metaslab_alloc_dva`). All
//! go into the leaf queues as asynchronous writes at the pace of one syncing thread. When all are
//! on disk the resilver has its turn, then the rounds of pool metadata (three copies), a cache
//! flush, the uberblocks in front and at the end of every disk, and a second flush
//! (`vdev_config_sync`). Runs are passed to the queue already merged up to its limit: the queue
//! would merge them; the log's writes are 126 KB on average.

mod place;

use super::io::WriteFor;
use super::{Pool, Timer};
use crate::cache::IndirectId;
use crate::leaf_queue::Class;
use crate::map::Place;
use raidlab_array::Outputs;
use raidlab_units::{Bytes, Nanos};
use std::collections::{BTreeSet, VecDeque};

/// The size of a slot of the uberblock ring, and the distance between two labels.
const UBERBLOCK_SECTORS: u64 = 2;
const LABEL_SECTORS: u64 = 512;

/// The state of all groups. See the file's head.
#[derive(Debug)]
pub(super) struct Groups {
    /// The number of dirty blocks of the open group; the cache knows which they are.
    open_blocks: u64,
    /// The indirect blocks above them, where these count.
    open_parents: BTreeSet<IndirectId>,
    deadline: Nanos,
    /// The number of dirty blocks, including those of the syncing group that are not yet on disk.
    dirty: u64,
    /// The number of indirect blocks that count as dirty, likewise.
    dirty_parents: u64,
    last_wakeup: Nanos,
    /// The writes that wait until less is dirty, each with the time since which it waits.
    blocked: VecDeque<(u32, Nanos)>,
    sync: Option<Sync>,
}

/// The state of the transaction group that is being synced.
#[derive(Debug)]
struct Sync {
    stage: Stage,
    /// The time at which the syncing thread last worked.
    now: Nanos,
    /// The dirty blocks not yet placed, as runs (first, number) in rising order.
    runs: VecDeque<(u64, u64)>,
    /// The pointers changed so far in the present block of level 1 and of level 2.
    changed: [u64; 2],
    /// The indirect blocks that count as dirty until everything is written.
    dirty_parents: u64,
    /// The blocks of level 1 and of level 2 that wait for places, with the numbers of
    /// their changed pointers.
    parents: [VecDeque<(u64, u64)>; 2],
    /// A run of data and first copies, and its dirty blocks.
    run: Option<(Place, u64)>,
    /// The run of second copies of indirect blocks that is gathered for one write.
    copies: Option<Place>,
    copy_cursor: u64,
    outstanding: u32,
    /// The number of the group's writes that have ended.
    written: u32,
    /// The number of looks at the blocks that wait for places, see `place`.
    looks: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Blocks,
    Settle,
    Scan,
    Scanned,
    PoolMetadata(u8),
    FlushBefore,
    Uberblocks,
    FlushAfter,
}

impl Groups {
    pub(super) fn new(deadline: Nanos) -> Self {
        Self {
            open_blocks: 0,
            open_parents: BTreeSet::new(),
            deadline,
            dirty: 0,
            dirty_parents: 0,
            last_wakeup: Nanos::ZERO,
            blocked: VecDeque::new(),
            sync: None,
        }
    }

    pub(super) fn is_clean(&self) -> bool {
        self.open_blocks == 0 && self.sync.is_none()
    }
}

impl Pool {
    /// The bytes that are dirty: written to the volume, and not yet to the disks.
    #[must_use]
    pub const fn dirty(&self) -> Bytes {
        let parents = self.config.indirect_dirty.0 * self.txg.dirty_parents;
        Bytes(self.block_bytes(self.txg.dirty).0 + parents)
    }

    /// The dirty bytes of the open group, including its indirect blocks where they count.
    fn open_bytes(&self) -> Bytes {
        let parents = self.config.indirect_dirty.0 * self.txg.open_parents.len() as u64;
        Bytes(self.block_bytes(self.txg.open_blocks).0 + parents)
    }

    /// Passes a write that has had all it needs `since` a time through the throttle.
    pub(super) fn admit(&mut self, now: Nanos, job: u32, since: Nanos) {
        let (dirty, maximum) = (self.dirty().0, self.config.dirty_data_max.0);
        if dirty >= maximum {
            self.txg.blocked.push_back((job, since));
            return;
        }
        let whole = self.delay(dirty, maximum);
        let delay = whole.min(self.config.delay_max);
        let waited = if self.config.waits_count_for_whole_delay {
            whole
        } else {
            delay
        };
        if delay == Nanos::ZERO || now.0 - since.0 > waited.0 {
            self.admitted(now, job);
            return;
        }
        let wakeup = (since + delay).max(self.txg.last_wakeup + delay);
        self.txg.last_wakeup = wakeup;
        self.set_timer(wakeup, Timer::Admit(job));
    }

    /// The delay of a write with this much dirty, without its limit.
    pub(super) fn delay(&self, dirty: u64, maximum: u64) -> Nanos {
        let minimum = maximum / 100 * self.config.delay_min_percent;
        if dirty <= minimum {
            return Nanos::ZERO;
        }
        let scale = u128::from(self.config.delay_scale.0);
        let delay = scale * u128::from(dirty - minimum) / u128::from(maximum - dirty);
        Nanos(u64::try_from(delay).unwrap_or(u64::MAX))
    }

    /// Marks a write's blocks as dirty.
    pub(super) fn admitted(&mut self, now: Nanos, index: u32) {
        let block_sectors = self.map.block_sectors();
        let Some(job) = self.jobs.get_mut(index) else {
            return;
        };
        let (first, end) = (job.request.start.0 / block_sectors, job.end);
        if self.txg.open_blocks == 0 && self.txg.deadline <= now {
            let late = now.0 - self.txg.deadline.0;
            let timeout = self.config.txg_timeout.0.max(1);
            self.txg.deadline += Nanos((late / timeout + 1) * timeout);
        }
        self.note_stream(first, end);
        // A block that is written twice is dirty once (`dbuf_dirty`).
        let new = self.cache.make_dirty(first, end);
        self.txg.open_blocks += new;
        self.txg.dirty += new;
        if self.config.indirect_dirty.0 > 0 {
            self.dirty_above(first, end);
        }
        self.cache.insert_data(first, end);
        let time = self.config.write_time;
        self.finish_later(now, index, time);
    }

    /// Frees the blocks `first..end`: those of the open group need not be written.
    pub(super) fn free(&mut self, first: u64, end: u64) {
        self.map.free(first, end);
        let clean = self.cache.make_clean(first, end);
        self.txg.open_blocks -= clean;
        self.txg.dirty -= clean;
    }

    /// Marks the indirect blocks above `first..end` as dirty in the open group.
    fn dirty_above(&mut self, first: u64, end: u64) {
        for level in [1, 2] {
            let low = self.map.indirect_index(level, first);
            for index in low..=self.map.indirect_index(level, end - 1) {
                let new = self.txg.open_parents.insert(IndirectId { level, index });
                self.txg.dirty_parents += u64::from(new);
            }
        }
    }

    /// The number of asynchronous writes that may be in a disk with this amount of dirty data.
    pub(super) fn maximum_async_writes(&self) -> u32 {
        let limits = self.config.queue.async_write;
        let (low, high) = self.config.async_write_ramp_percent;
        let (dirty, maximum) = (self.dirty().0, self.config.dirty_data_max.0);
        let (low, high) = (maximum / 100 * low, maximum / 100 * high);
        if dirty < low {
            return limits.min_active;
        }
        if dirty >= high {
            return limits.max_active;
        }
        let span = u64::from(limits.max_active.saturating_sub(limits.min_active));
        let more = (dirty - low) * span / (high - low);
        limits.min_active + u32::try_from(more).unwrap_or(0)
    }

    /// The time at which the open group's sync begins, unless one is running.
    pub(super) fn sync_due(&self) -> Option<Nanos> {
        if self.txg.sync.is_some() {
            return None;
        }
        let full = self.open_bytes() >= self.config.txg_dirty_sync;
        if full || self.scan.wants_group() {
            return Some(Nanos::ZERO);
        }
        (self.txg.open_blocks > 0).then_some(self.txg.deadline)
    }

    pub(super) fn start_sync_if_due(&mut self, now: Nanos, out: &mut Outputs) {
        if self.sync_due().is_none_or(|due| due > now) {
            return;
        }
        let blocks = std::mem::take(&mut self.txg.open_blocks);
        let prepared = now + self.config.sync_prepare_time * blocks;
        self.txg.deadline = now + self.config.txg_timeout;
        self.log.group_closes();
        self.txg.sync = Some(Sync {
            stage: Stage::Blocks,
            now,
            runs: self.cache.take_dirty(),
            changed: [0; 2],
            dirty_parents: std::mem::take(&mut self.txg.open_parents).len() as u64,
            parents: [VecDeque::new(), VecDeque::new()],
            run: None,
            copies: None,
            copy_cursor: (self.map.cursor() + self.copies_apart()) % self.map.space(),
            outstanding: 0,
            written: 0,
            looks: u32::MAX,
        });
        if prepared > now {
            self.set_timer(prepared, Timer::Emit);
        } else {
            self.emit(now, out);
        }
    }

    /// Handles a write of the sync that is on all disks.
    pub(super) fn sync_write_done(&mut self, now: Nanos, dirty_blocks: u64, out: &mut Outputs) {
        self.txg.dirty -= dirty_blocks;
        if dirty_blocks > 0 {
            self.unblock(now);
        }
        let mut goes_on = false;
        if let Some(sync) = &mut self.txg.sync {
            sync.outstanding -= 1;
            sync.written += 1;
            sync.looks = sync.looks.saturating_add(1);
            goes_on = sync.stage == Stage::Blocks;
        }
        if goes_on && self.config.allocations.is_some() {
            self.emit(now, out);
        } else {
            self.sync_settled(now, out);
        }
    }

    fn unblock(&mut self, now: Nanos) {
        while self.dirty() < self.config.dirty_data_max {
            let Some((job, since)) = self.txg.blocked.pop_front() else {
                return;
            };
            self.admit(now, job, since);
        }
    }

    /// Moves to the next stage when nothing of the present one is outstanding.
    fn sync_settled(&mut self, now: Nanos, out: &mut Outputs) {
        loop {
            let Some(sync) = &mut self.txg.sync else {
                return;
            };
            let waiting = matches!(sync.stage, Stage::Blocks | Stage::Scan);
            if sync.outstanding > 0 || waiting {
                return;
            }
            sync.stage = match sync.stage {
                Stage::Blocks | Stage::Settle => Stage::Scan,
                Stage::Scan | Stage::Scanned => Stage::PoolMetadata(0),
                Stage::PoolMetadata(round) if round + 1 < self.config.pool_metadata.rounds => {
                    Stage::PoolMetadata(round + 1)
                }
                Stage::PoolMetadata(_) => Stage::FlushBefore,
                Stage::FlushBefore => Stage::Uberblocks,
                Stage::Uberblocks => Stage::FlushAfter,
                Stage::FlushAfter => {
                    self.sync_finished(now, out);
                    return;
                }
            };
            let stage = sync.stage;
            self.enter(now, stage, out);
        }
    }

    fn enter(&mut self, now: Nanos, stage: Stage, out: &mut Outputs) {
        let mut sent = 0;
        match stage {
            Stage::Scan => {
                self.clean_parents(now);
                if !self.open_scan_phase(now) {
                    self.leave_scan_stage();
                }
            }
            Stage::PoolMetadata(_) => {
                let metadata = self.config.pool_metadata;
                for _ in 0..metadata.pieces {
                    let place = self.map.allocate(metadata.sectors.0);
                    self.sync_copies(&mut sent, (now, place), self.config.metadata_copies + 1);
                }
            }
            Stage::FlushBefore | Stage::FlushAfter => {
                let purpose = WriteFor::Sync { dirty_blocks: 0 };
                sent = u32::from(self.start_flush(purpose, out));
            }
            Stage::Uberblocks => {
                let last = self.map.space() - UBERBLOCK_SECTORS;
                for start in [0, LABEL_SECTORS, last - LABEL_SECTORS, last] {
                    let count = UBERBLOCK_SECTORS;
                    let at = (now, Place { start, count });
                    self.sync_write(&mut sent, at, Class::SyncWrite, 0);
                }
            }
            Stage::Blocks | Stage::Settle | Stage::Scanned => {}
        }
        if let Some(sync) = &mut self.txg.sync {
            sync.outstanding += sent;
        }
    }

    /// Marks the indirect blocks as clean when all of the group's blocks are on the disks.
    fn clean_parents(&mut self, now: Nanos) {
        let Some(sync) = &mut self.txg.sync else {
            return;
        };
        let parents = std::mem::take(&mut sync.dirty_parents);
        self.txg.dirty_parents -= parents;
        if parents > 0 {
            self.unblock(now);
        }
    }

    /// Ends the resilver's turn in this group.
    pub(super) fn end_scan_phase(&mut self, now: Nanos, out: &mut Outputs) {
        self.leave_scan_stage();
        self.sync_settled(now, out);
    }

    /// Lets [`Self::sync_settled`] leave the stage of the scan.
    fn leave_scan_stage(&mut self) {
        if let Some(sync) = &mut self.txg.sync
            && sync.stage == Stage::Scan
        {
            sync.stage = Stage::Scanned;
        }
    }

    fn sync_finished(&mut self, now: Nanos, out: &mut Outputs) {
        self.txg.sync = None;
        self.log.group_is_synced();
        self.start_sync_if_due(now, out);
    }

    /// Whether a group waits that would be synced before its time.
    pub(super) fn group_waits(&self, now: Nanos) -> bool {
        let open = self.open_bytes();
        open >= self.config.txg_dirty_sync || (self.txg.open_blocks > 0 && self.txg.deadline <= now)
    }

    /// Whether a sorted resilver must yield to a group after its least time
    /// (`scan_io_queue_check_suspend`): a request waits for one, or one is full, or much is dirty,
    /// or the present one has been synced for too long.
    pub(super) fn group_is_urgent(&self, now: Nanos) -> bool {
        let open = self.open_bytes();
        let (low, _) = self.config.async_write_ramp_percent;
        open >= self.config.txg_dirty_sync
            || self.dirty().0 >= self.config.dirty_data_max.0 / 100 * low
            || self.txg.deadline <= now
    }
}
