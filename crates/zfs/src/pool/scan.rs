//! The resilver (`dsl_scan.c`).
//!
//! **In the order of the block tree**, as of 2014-15: a thread walks the volume's blocks in logical
//! order, holes skipped. At each level-2 block it reads that block and orders all level-1 blocks
//! under it; then, block by block, it orders a read of the scrub class and continues, with at most
//! 32 blocks in flight. (Without other I/O neighbours are ordered at once, up to what the queue
//! would merge: it costs less to simulate.) A block read is written to the disks that are being
//! resilvered, and only then counts as done. If any other read or write began within the last 50
//! ms, the thread sleeps 2 ms before each block.
//!
//! **Sorted**, as of later releases: the walk reads indirect blocks only, and records the blocks
//! that it finds; then these are read by address (`sorted`).
//!
//! Both run inside the sync of a transaction group, for at least 3 s, and at most until the group's
//! timeout when no other group waits; between two turns the group is finished with its flushes and
//! uberblocks. The new disk serves no reads until everything is copied (in its dirty time log
//! everything is missing). Blocks rewritten meanwhile are written to the new disk anyway; the walk
//! visits them again if they lie ahead, and entries found at their old places are skipped.

mod found;
mod sorted;

use super::io::{LeafState, ReadFor, WriteFor};
use super::{Pool, Timer, Waiter};
use crate::cache::IndirectId;
use crate::config::ScanOrder;
use crate::leaf_queue::Class;
use crate::map::Place;
use raidlab_array::{Event, Outputs};
use raidlab_units::{Bytes, Nanos, Sectors};

/// The progress of a resilver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncStatus {
    /// The bytes of allocated volume blocks visited by the walk.
    pub done: Bytes,
    /// The bytes of all allocated blocks, counted when the resilver began.
    pub total: Bytes,
}

/// The resilver, running or not.
#[derive(Debug, Default)]
pub(super) struct Scan {
    running: Option<Walk>,
    /// The number of blocks in flight, including those of an aborted walk.
    in_flight: u64,
    frozen: bool,
}

#[derive(Debug)]
struct Walk {
    next: u64,
    done: u64,
    total: u64,
    /// The blocks that were visited since the cache last lost all that it held.
    passed: u64,
    /// The start of the present turn; `None` between turns.
    turn: Option<Nanos>,
    /// Whether the thread waits for an indirect block.
    fetching: bool,
    /// Whether the walking thread sleeps until its timer expires.
    timer: bool,
    /// The level-2 block whose level-1 blocks have been ordered.
    ordered: Option<u64>,
    /// The blocks that a sorted resilver has found; `None` where it is not sorted.
    sorting: Option<sorted::Sorting>,
}

impl Scan {
    pub(super) const fn is_running(&self) -> bool {
        self.running.is_some()
    }

    /// Whether nothing is in flight, and nothing will be.
    pub(super) const fn is_quiet(&self) -> bool {
        self.in_flight == 0 && (self.frozen || self.running.is_none())
    }

    /// Whether a transaction group is needed for the walk to continue.
    pub(super) const fn wants_group(&self) -> bool {
        self.running.is_some() && !self.frozen
    }
}

impl Pool {
    /// The progress of the resilver; `None` if none is running.
    #[must_use]
    pub fn sync_status(&self) -> Option<SyncStatus> {
        let walk = self.scan.running.as_ref()?;
        Some(SyncStatus {
            done: self.block_bytes(walk.done.min(walk.total)),
            total: self.block_bytes(walk.total),
        })
    }

    /// Stops the walk; reads and writes in flight still complete.
    pub fn freeze_sync(&mut self) {
        self.scan.frozen = true;
    }

    /// Resumes a frozen walk.
    pub fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.scan.frozen = false;
        self.start_sync_if_due(now, out);
        self.issue(out);
    }

    /// Moves a frozen walk forward (never back) to the point where `done` bytes of allocated blocks
    /// are done: the driver's way past hours. The indirect blocks passed over went through the
    /// cache, and displaced what it held before (see `displace`). Without a walk, or with one
    /// that is not frozen, nothing happens.
    pub fn leap_sync(&mut self, done: Bytes) {
        let blocks = done.0 / self.config.volume_block.0;
        let target = self.map.block_after(blocks).unwrap_or(u64::MAX);
        let frozen = self.scan.frozen;
        let end = self.size().0.div_ceil(self.map.block_sectors());
        let Some(walk) = &mut self.scan.running else {
            return;
        };
        if !frozen || blocks <= walk.done {
            return;
        }
        let from = walk.next;
        let passed = blocks.min(walk.total).saturating_sub(walk.done);
        walk.done = blocks.min(walk.total);
        walk.next = target.min(end);
        walk.ordered = None;
        // Blocks before that point are found again.
        walk.sorting = walk.sorting.take().map(|sorting| sorting.again());
        let to = walk.next;
        self.displace(passed);
        for level in [2, 1] {
            let low = self.map.indirect_index(level, from);
            let high = self.map.indirect_index(level, to);
            let held = self.cache.indirect_limit();
            for index in low.max(high.saturating_sub(held))..high {
                if self.map.has_indirect(level, index) {
                    self.cache.insert_indirect(IndirectId { level, index });
                }
            }
        }
    }

    /// Counts blocks that the walk has visited, simulated or leapt over. Nothing in the cache
    /// outlasts as many of them as it holds, however many leaps they are: this is not from the
    /// sources but chosen because in the log random reads fall after the first hour as if their
    /// indirect blocks were gone (2.4 to 2.6 waits for each request, up from 1.7 in job 15).
    fn displace(&mut self, blocks: u64) {
        let capacity = self.cache.capacity();
        let Some(walk) = &mut self.scan.running else {
            return;
        };
        walk.passed += blocks;
        if walk.passed >= capacity {
            walk.passed = 0;
            self.cache.forget();
        }
    }

    pub(super) fn start_scan(&mut self, out: &mut Outputs) {
        let turn = self.scan.running.as_ref().and_then(|walk| walk.turn);
        let timer = self.scan.running.as_ref().is_some_and(|walk| walk.timer);
        self.scan.running = Some(Walk {
            next: 0,
            done: 0,
            total: self.map.allocated_blocks(),
            passed: 0,
            turn,
            fetching: false,
            timer,
            ordered: None,
            sorting: sorted::Sorting::new(self.config.resilver.order, self.map.placed_sectors()),
        });
        out.events.push(Event::SyncStarted(Sectors::ZERO));
    }

    pub(super) fn abort_scan(&mut self, now: Nanos, out: &mut Outputs) {
        if let Some(walk) = self.scan.running.take() {
            out.events.push(Event::SyncAborted);
            if walk.turn.is_some() {
                self.end_scan_phase(now, out);
            }
        }
    }

    /// Begins the resilver's turn in the group's sync; returns true if it takes its turn.
    pub(super) fn open_scan_phase(&mut self, now: Nanos) -> bool {
        if !self.scan.wants_group() {
            return false;
        }
        let allocated = self.block_bytes(self.map.allocated_blocks());
        if let Some(walk) = &mut self.scan.running {
            walk.turn = Some(now);
            if let Some(sorting) = &mut walk.sorting {
                sorting.begin_turn(allocated);
            }
        }
        self.wake_scan(now, 0);
        true
    }

    /// Schedules the thread's next block, after its time for the `ordered` ones or the sleep that
    /// other I/O imposes.
    fn wake_scan(&mut self, now: Nanos, ordered: u64) {
        let resilver = self.config.resilver;
        let sleep = if self.is_loaded(now) {
            resilver.delay
        } else {
            Nanos::ZERO
        };
        let Some(walk) = &mut self.scan.running else {
            return;
        };
        if walk.timer || walk.fetching || walk.turn.is_none() {
            return;
        }
        walk.timer = true;
        let busy = resilver.block_time * ordered.max(1);
        self.set_timer(now + sleep.max(busy), Timer::Scan);
    }

    fn is_loaded(&self, now: Nanos) -> bool {
        let idle = self.config.resilver.idle;
        let last = self.last_foreground;
        last.is_some_and(|last| now.saturating_sub(last) <= idle)
    }

    fn turn_is_over(&self, now: Nanos) -> bool {
        let turn = self.scan.running.as_ref().and_then(|walk| walk.turn);
        let Some(begun) = turn else {
            return false;
        };
        let lasted = now.saturating_sub(begun);
        let somebody_waits = match self.config.resilver.order {
            ScanOrder::Tree { .. } => self.group_waits(now),
            ScanOrder::Sorted { .. } => self.group_is_urgent(now),
        };
        self.scan.frozen
            || lasted >= self.config.txg_timeout
            || (lasted >= self.config.resilver.min_time && somebody_waits)
    }

    /// Runs the thread for one block, or ends the turn.
    pub(super) fn scan_step(&mut self, now: Nanos, out: &mut Outputs) {
        let over = self.turn_is_over(now);
        let Some(walk) = &mut self.scan.running else {
            return;
        };
        walk.timer = false;
        if walk.turn.is_none() || walk.fetching {
            return;
        }
        match self.config.resilver.order {
            ScanOrder::Sorted { in_flight, .. } => self.sorted_step(now, in_flight, over, out),
            ScanOrder::Tree { in_flight } => self.tree_step(now, in_flight, over, out),
        }
    }

    fn tree_step(&mut self, now: Nanos, in_flight: u32, over: bool, out: &mut Outputs) {
        let room = u64::from(in_flight).saturating_sub(self.scan.in_flight);
        let Some(walk) = &mut self.scan.running else {
            return;
        };
        if over {
            walk.turn = None;
            self.end_scan_phase(now, out);
            return;
        }
        if room == 0 {
            return;
        }
        let Some(block) = self.map.next_allocated(walk.next) else {
            if self.scan.in_flight == 0 {
                self.finish_scan(now, out);
            }
            return;
        };
        walk.next = block;
        if self.scan_needs_indirect(now, block, out) {
            return;
        }
        let merged = self.config.aggregation_limit() / self.map.placed_sectors();
        let limit = if self.is_loaded(now) {
            1
        } else {
            merged.clamp(1, room)
        };
        let mut ordered = 0;
        if let Some((place, blocks)) = self.map.run_from(block, limit) {
            ordered = blocks;
            if let Some(walk) = &mut self.scan.running {
                walk.next = block + blocks;
                walk.done += blocks;
            }
            self.displace(blocks);
            self.scan.in_flight += blocks;
            if !self.start_read(now, place, Class::Scrub, ReadFor::Resilver(place)) {
                self.scan_blocks_done(now, blocks);
            }
        }
        self.wake_scan(now, ordered);
    }

    /// Orders the indirect blocks above a block; returns true if the thread must wait.
    fn scan_needs_indirect(&mut self, now: Nanos, block: u64, out: &mut Outputs) -> bool {
        let missing = self.missing_above(block);
        let parent = self.map.indirect_index(2, block);
        let Some(walk) = &mut self.scan.running else {
            return true;
        };
        let first = walk.ordered != Some(parent);
        let level_2 = missing.is_some_and(|id| id.level == 2);
        walk.fetching = missing.is_some();
        if first && !level_2 {
            walk.ordered = Some(parent);
            self.order_level_1(now, block, parent, out);
        }
        if let Some(id) = missing {
            self.fetch(now, id, self.scan_class(), Waiter::Scan, out);
        }
        missing.is_some()
    }

    /// The class in which a resilver reads indirect blocks.
    const fn scan_class(&self) -> Class {
        match self.config.resilver.order {
            ScanOrder::Tree { .. } => Class::AsyncRead,
            ScanOrder::Sorted { .. } => Class::Scrub,
        }
    }

    fn order_level_1(&mut self, now: Nanos, block: u64, parent: u64, out: &mut Outputs) {
        let from = self.map.indirect_index(1, block);
        for index in from..(parent + 1) * self.map.pointers() {
            let id = IndirectId { level: 1, index };
            if self.map.has_indirect(1, index) && !self.cache.hit(id) {
                self.fetch(now, id, self.scan_class(), Waiter::Nobody, out);
            }
        }
    }

    /// Handles the indirect block that the thread waited for; if it could not be read, its
    /// blocks are skipped.
    pub(super) fn scan_fetched(&mut self, now: Nanos, id: IndirectId, good: bool) {
        let Some(walk) = &mut self.scan.running else {
            return;
        };
        walk.fetching = false;
        if !good {
            let shift = self.map.pointers().trailing_zeros() * u32::from(id.level);
            walk.next = walk.next.max((id.index + 1) << shift);
        }
        self.wake_scan(now, 0);
    }

    /// Handles blocks for the new disk that were read, or could not be.
    pub(super) fn scan_read_done(&mut self, now: Nanos, place: Place, good: bool) {
        let blocks = place.count / self.map.placed_sectors();
        let purpose = WriteFor::Resilver { blocks };
        if !good || !self.start_write(now, place, Class::AsyncWrite, purpose) {
            self.scan_blocks_done(now, blocks);
        }
    }

    /// Handles blocks that have been written to the new disk.
    pub(super) fn scan_blocks_done(&mut self, now: Nanos, blocks: u64) {
        self.scan.in_flight -= blocks;
        self.wake_scan(now, 0);
    }

    fn finish_scan(&mut self, now: Nanos, out: &mut Outputs) {
        for leaf in &mut self.leaves {
            if leaf.state == LeafState::Resilvering {
                leaf.state = LeafState::InSync;
            }
        }
        self.scan.running = None;
        out.events.push(Event::SyncFinished);
        self.end_scan_phase(now, out);
    }
}
