//! The resilver that reads by address (OpenZFS 2.3.2 `dsl_scan.c`, the statement on
//! sorting at its head).
//!
//! A turn either finds or reads. Finding walks over the tree and records the blocks under each
//! level-1 block. It continues until everything is found, or until the records take a twentieth of
//! the memory, which is checked before each turn (`dsl_scan_should_clear`); then turns read, until
//! a twentieth of that is free. The next recorded block is chosen by `found`. The bytes in flight
//! are limited, with a block in flight from its read to its write on the new disk. A turn is over
//! when none is in flight any more (`zio_wait`).
//!
//! Left out: the resilver of the indirect blocks themselves, a thousandth of the data; the
//! checkpoint of every two hours; skipping blocks written since it began.

use super::super::Pool;
use super::super::io::ReadFor;
use super::found::{Found, Run};
use crate::config::ScanOrder;
use crate::leaf_queue::Class;
use crate::map::Place;
use raidlab_array::Outputs;
use raidlab_units::{Bytes, Nanos, Sectors};

/// The state of a sorted resilver.
#[derive(Debug)]
pub(super) struct Sorting {
    found: Found,
    block_sectors: u64,
    gap: Sectors,
    memory: Bytes,
    /// Whether the whole pool was visited, so that nothing more is found.
    complete: bool,
    /// Whether this turn reads; otherwise it finds.
    reads: bool,
}

impl Sorting {
    pub(super) fn new(order: ScanOrder, block_sectors: u64) -> Option<Self> {
        let ScanOrder::Sorted { memory, gap, .. } = order else {
            return None;
        };
        Some(Self {
            found: Found::new(block_sectors, gap),
            block_sectors,
            gap,
            memory,
            complete: false,
            reads: false,
        })
    }

    /// The same resilver at its beginning, with nothing found.
    pub(super) fn again(self) -> Self {
        Self {
            found: Found::new(self.block_sectors, self.gap),
            complete: false,
            reads: false,
            ..self
        }
    }

    /// Decides what the turn does, with so many bytes allocated in the pool.
    pub(super) fn begin_turn(&mut self, allocated: Bytes) {
        const SOFT: u64 = 20;
        const SOFT_MAXIMUM: u64 = 128 << 20;
        let most = self.memory.0.min(allocated.0 / 20);
        let enough = most - (most / SOFT).min(SOFT_MAXIMUM);
        let used = self.found.memory().0;
        let full = used >= most || (used >= enough && self.reads);
        // In a nearly empty pool the memory would always count as full.
        self.reads = self.complete || (full && used > 0);
    }
}

impl Pool {
    /// Runs the thread in a turn; `over`: the turn is to end.
    pub(super) fn sorted_step(
        &mut self,
        now: Nanos,
        in_flight: Bytes,
        over: bool,
        out: &mut Outputs,
    ) {
        let walk = self.scan.running.as_ref();
        let reads = walk
            .and_then(|walk| walk.sorting.as_ref())
            .is_some_and(|sorting| sorting.reads);
        if reads {
            self.read_found(now, in_flight, over, out);
        } else {
            self.find(now, over, out);
        }
    }

    /// Records the blocks under the next level-1 block, if it is in memory.
    fn find(&mut self, now: Nanos, over: bool, out: &mut Outputs) {
        let Some(walk) = &mut self.scan.running else {
            return;
        };
        let next = self.map.next_allocated(walk.next);
        let (Some(block), false) = (next, over) else {
            if let (None, Some(sorting)) = (next, &mut walk.sorting) {
                sorting.complete = true;
            }
            self.end_turn(now, out);
            return;
        };
        walk.next = block;
        if self.scan_needs_indirect(now, block, out) {
            return;
        }
        let pointers = self.map.pointers();
        let end = (self.map.indirect_index(1, block) + 1) * pointers;
        let mut next = Some(block);
        while let Some(first) = next.filter(|&first| first < end) {
            let run = self.map.run_from(first, pointers);
            let blocks = run.map_or(1, |(_, blocks)| blocks);
            if let Some((place, blocks)) = run
                && let Some(walk) = &mut self.scan.running
                && let Some(sorting) = &mut walk.sorting
            {
                let start = place.start;
                sorting.found.insert(Run {
                    start,
                    first,
                    blocks,
                });
            }
            next = self.map.next_allocated(first + blocks);
        }
        if let Some(walk) = &mut self.scan.running {
            walk.next = end;
        }
        self.wake_scan(now, 0);
    }

    /// Orders reads of found blocks while there is room.
    fn read_found(&mut self, now: Nanos, in_flight: Bytes, over: bool, out: &mut Outputs) {
        let limit = (in_flight.0 / self.config.volume_block.0).max(1);
        let merged = self.config.aggregation_limit() / self.map.placed_sectors();
        let mut complete = false;
        let mut empty = false;
        while !over && !empty && self.scan.in_flight < limit {
            let Some(walk) = &mut self.scan.running else {
                return;
            };
            let Some(sorting) = &mut walk.sorting else {
                return;
            };
            complete = sorting.complete;
            let most = merged.clamp(1, limit - self.scan.in_flight);
            match sorting.found.take(complete, most) {
                Some(run) => {
                    walk.done += run.blocks;
                    self.displace(run.blocks);
                    self.read_run(now, run);
                }
                None => empty = true,
            }
        }
        if self.scan.in_flight > 0 || !(over || empty) {
            return;
        }
        if empty && complete {
            self.finish_scan(now, out);
        } else {
            self.end_turn(now, out);
        }
    }

    /// Reads those blocks of a run that are still where they were found.
    fn read_run(&mut self, now: Nanos, run: Run) {
        let sectors = self.map.placed_sectors();
        let mut at = 0;
        while at < run.blocks {
            let expected = run.start + at * sectors;
            let there = self.map.run_from(run.first + at, run.blocks - at);
            let Some((place, blocks)) = there.filter(|(place, _)| place.start == expected) else {
                at += 1;
                continue;
            };
            at += blocks;
            self.scan.in_flight += blocks;
            let place = Place {
                count: blocks * sectors,
                ..place
            };
            if !self.start_read(now, place, Class::Scrub, ReadFor::Resilver(place)) {
                self.scan_blocks_done(now, blocks);
            }
        }
    }

    fn end_turn(&mut self, now: Nanos, out: &mut Outputs) {
        if let Some(walk) = &mut self.scan.running {
            walk.turn = None;
        }
        self.end_scan_phase(now, out);
    }
}
