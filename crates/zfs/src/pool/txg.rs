//! Dirty data, the write throttle, transaction groups and their sync.
//!
//! One group is open and takes writes, one is being synced. The sync of the
//! open group begins when no other is running and the group is 5 s old, or
//! holds 64 MiB, or a resilver is running (`txg_sync_thread`), or somebody
//! waits for a flush.
//!
//! Throttle (`dmu_tx_delay`): with more than 60 % of the dirty limit dirty, a
//! write is delayed by `scale * (dirty - min) / (max - dirty)`, at most 100
//! ms, and not before that long after the previous delayed one; at the limit
//! writers block, and who has been blocked for longer than the delay has had it. Until 2015 only data counts as dirty here; in OpenZFS 2.3 also the
//! indirect blocks above them, of 128 KiB each: with random writes those are most of
//! it, and make groups follow each other much faster.
//!
//! Sync (`spa_sync`): the syncing thread prepares all dirty blocks; then, in the order
//! of the tree, they get places one behind the other. An indirect block is placed as soon as all blocks under
//! it are (a parent waits for its own children only, `zio_ready`), so it lies
//! right behind the last of them; that is why a read of a level-1 block and
//! the read of the data that follows are a short seek apart, and within the 1
//! MiB for which the mirror prefers the same child. The second copy of
//! indirect blocks goes to another cursor an eighth of the disk further
//! (`metaslab_alloc_dva`). All go into the leaf queues as asynchronous writes
//! at the pace of one syncing thread.
//! When all are on disk the resilver has its turn, then the rounds of pool
//! metadata (three copies), a cache flush, the uberblocks in front and at the
//! end of every disk, and a second flush (`vdev_config_sync`). Runs are handed
//! to the queue already merged up to its limit: the queue would merge them,
//! the log's writes are 126 KB on average.

mod place;

use super::{Pool, Timer, finish};
use crate::cache::IndirectId;
use crate::leaf_queue::Class;
use crate::map::Place;
use raidlab_array::{Outputs, RequestId};
use raidlab_units::{Bytes, Nanos};
use std::collections::{BTreeSet, VecDeque};

/// A slot of the uberblock ring, and the distance between two labels.
const UBERBLOCK_SECTORS: u64 = 2;
const LABEL_SECTORS: u64 = 512;

/// All groups. See the file's head.
#[derive(Debug)]
pub(super) struct Groups {
    /// Dirty blocks of the open group: how many. The cache knows which.
    open_blocks: u64,
    /// Indirect blocks above them, where these count.
    open_parents: BTreeSet<IndirectId>,
    open_flushes: Vec<RequestId>,
    deadline: Nanos,
    /// Dirty blocks, those of the syncing group that are not yet on disk
    /// included.
    dirty: u64,
    /// Indirect blocks that count as dirty, likewise.
    dirty_parents: u64,
    last_wakeup: Nanos,
    /// Writes that wait until less is dirty, and since when.
    blocked: VecDeque<(u32, Nanos)>,
    sync: Option<Sync>,
}

/// The state of the transaction group that is being synced.
#[derive(Debug)]
struct Sync {
    stage: Stage,
    /// When the syncing thread was last at work.
    now: Nanos,
    /// Dirty blocks not yet placed, as runs (first, number) in rising order.
    runs: VecDeque<(u64, u64)>,
    /// Pointers changed so far in the present block of level 1 and of level 2.
    changed: [u64; 2],
    /// Indirect blocks that count as dirty until all is written.
    dirty_parents: u64,
    /// Blocks of level 1 and of level 2 that wait for places, and how many of their
    /// pointers have changed.
    parents: [VecDeque<(u64, u64)>; 2],
    /// A run of data and first copies, and its dirty blocks.
    run: Option<(Place, u64)>,
    /// The run of second copies of indirect blocks that is gathered for one write.
    copies: Option<Place>,
    copy_cursor: u64,
    outstanding: u32,
    /// How many writes of the group have ended.
    written: u32,
    /// Looks at the blocks that wait for places, see `place`.
    looks: u32,
    flushes: Vec<RequestId>,
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
            open_flushes: Vec::new(),
            deadline,
            dirty: 0,
            dirty_parents: 0,
            last_wakeup: Nanos::ZERO,
            blocked: VecDeque::new(),
            sync: None,
        }
    }

    pub(super) fn is_clean(&self) -> bool {
        self.open_blocks == 0 && self.open_flushes.is_empty() && self.sync.is_none()
    }
}

impl Pool {
    /// Bytes that are dirty: written to the volume, not yet to the disks.
    #[must_use]
    pub const fn dirty(&self) -> Bytes {
        let parents = self.config.indirect_dirty.0 * self.txg.dirty_parents;
        Bytes(self.block_bytes(self.txg.dirty).0 + parents)
    }

    /// The dirty bytes of the open group, its indirect blocks included where they count.
    fn open_bytes(&self) -> Bytes {
        let parents = self.config.indirect_dirty.0 * self.txg.open_parents.len() as u64;
        Bytes(self.block_bytes(self.txg.open_blocks).0 + parents)
    }

    pub(super) fn submit_flush(&mut self, now: Nanos, id: RequestId, out: &mut Outputs) {
        self.txg.open_flushes.push(id);
        self.start_sync_if_due(now, out);
        self.issue(out);
    }

    /// A write that has had all it needs since a time passes the throttle.
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

    /// A write's blocks become dirty.
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
        // One that is written twice is dirty once (`dbuf_dirty`).
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

    /// The blocks `first..end` are free: those of the open group need not be written.
    pub(super) fn free(&mut self, first: u64, end: u64) {
        self.map.free(first, end);
        let clean = self.cache.make_clean(first, end);
        self.txg.open_blocks -= clean;
        self.txg.dirty -= clean;
    }

    /// The indirect blocks above `first..end` are dirty in the open group.
    fn dirty_above(&mut self, first: u64, end: u64) {
        for level in [1, 2] {
            let low = self.map.indirect_index(level, first);
            for index in low..=self.map.indirect_index(level, end - 1) {
                let new = self.txg.open_parents.insert(IndirectId { level, index });
                self.txg.dirty_parents += u64::from(new);
            }
        }
    }

    /// The asynchronous writes that may be in a disk with this much dirty.
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

    /// When the open group's sync begins, unless one is running.
    pub(super) fn sync_due(&self) -> Option<Nanos> {
        if self.txg.sync.is_some() {
            return None;
        }
        let full = self.open_bytes() >= self.config.txg_dirty_sync;
        if full || !self.txg.open_flushes.is_empty() || self.scan.wants_group() {
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
            flushes: std::mem::take(&mut self.txg.open_flushes),
        });
        if prepared > now {
            self.set_timer(prepared, Timer::Emit);
        } else {
            self.emit(now, out);
        }
    }

    /// A write of the sync is on all disks.
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

    /// Goes to the next stage when nothing of the present one is outstanding.
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
            Stage::FlushBefore | Stage::FlushAfter => sent = self.start_flush(out),
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

    /// All of the group's blocks are on the disks.
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

    /// The resilver's turn in this group is over.
    pub(super) fn end_scan_phase(&mut self, now: Nanos, out: &mut Outputs) {
        self.leave_scan_stage();
        self.sync_settled(now, out);
    }

    /// Lets [`Self::sync_settled`] go on from the scan.
    fn leave_scan_stage(&mut self) {
        if let Some(sync) = &mut self.txg.sync
            && sync.stage == Stage::Scan
        {
            sync.stage = Stage::Scanned;
        }
    }

    fn sync_finished(&mut self, now: Nanos, out: &mut Outputs) {
        if let Some(sync) = self.txg.sync.take() {
            for id in sync.flushes {
                finish(id, Ok(()), out);
            }
        }
        self.start_sync_if_due(now, out);
    }

    /// Whether a group waits that would be synced without its time being up.
    pub(super) fn group_waits(&self, now: Nanos) -> bool {
        let open = self.open_bytes();
        open >= self.config.txg_dirty_sync
            || !self.txg.open_flushes.is_empty()
            || (self.txg.open_blocks > 0 && self.txg.deadline <= now)
    }

    /// Whether a sorted resilver must give way to a group after its least time
    /// (`scan_io_queue_check_suspend`): somebody waits for one, or one is full, or
    /// much is dirty, or the present one has been synced for too long.
    pub(super) fn group_is_urgent(&self, now: Nanos) -> bool {
        let open = self.open_bytes();
        let (low, _) = self.config.async_write_ramp_percent;
        open >= self.config.txg_dirty_sync
            || !self.txg.open_flushes.is_empty()
            || self.dirty().0 >= self.config.dirty_data_max.0 / 100 * low
            || self.txg.deadline <= now
    }
}
