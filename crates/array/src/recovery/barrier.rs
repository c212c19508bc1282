//! The write barrier: foreground writes and sync blocks must not touch the same sectors at the same
//! time, or a block read before a write could be written to the target after it.
//!
//! **Overlap** (FreeBSD sys/geom/mirror/g_mirror.c, `g_mirror_sync_collision` and
//! `g_mirror_regular_collision`): a write waits while it overlaps a block in flight; a block waits
//! while it overlaps a write in flight.
//!
//! **Windows** (Linux 3.18.8 drivers/md/raid1.c, `raise_barrier`, `wait_barrier`, `allow_barrier`).
//! D is three times depth times block (6 MiB in md).
//! * A write waits if the barrier is up (blocks in flight, or one waiting),
//!   unless it ends at or below the last checkpoint or starts at or beyond the
//!   newest block's start + D. It waits until the barrier is down completely.
//! * A write that is let through above the checkpoint is counted. If nothing
//!   was counted, the window starts at the newest block's start + D. A write at
//!   or beyond window start + D counts for the next window, else for the
//!   current one. When the current count falls to zero the next window becomes
//!   the current one, D further up; with both empty there is no window.
//! * A block first waits until no write waits, then raises the barrier, then
//!   waits until the current count is zero and the window starts at or beyond
//!   the block's end.
//! * If sync is not below its minimum speed and writes wait, it sleeps one
//!   second before it raises the barrier.
//!
//! md counts a write only if it *starts* at or above the checkpoint; here it counts if it *ends*
//! above, which closes a hole for writes across it.
//!
//! **Buckets** (Linux 4.11 and later): units of 64 MiB; writes and blocks are cut at unit ends. A
//! write waits while the barrier of its unit is up. A block waits until no write waits in its unit,
//! raises the barrier, and waits until no read or write is in flight in the unit. If writes wait
//! there, it sleeps one timer tick first. md hashes units into 1024 counters; here a unit's counter
//! is its number mod 1024.
//!
//! **Array** (Linux 6.12 drivers/md/raid10.c): as buckets, with a single unit that is the whole
//! array; reads wait for the barrier like writes. So under load blocks and other I/O take turns:
//! the barrier goes up, I/O in flight drains, one block goes (or several, as long as no I/O waits),
//! and the I/O that came meanwhile follows.
//!
//! Whatever the rule, a block never starts over a write in flight.

use super::Block;
use super::config::WriteBarrier;
use raidlab_units::{Nanos, Sectors, Span};

/// The sleep before a block while writes wait, by the window rule.
const WINDOW_COURTESY: Nanos = Nanos::from_secs(1);
/// Sectors of a unit, 64 MiB.
const UNIT: u64 = 1 << 17;
/// The number of counters: units whose numbers leave the same remainder share one.
const BUCKETS: u64 = 1024;

/// The time that a block sleeps before it raises the barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Courtesy {
    /// The block sleeps for this time, in nanoseconds.
    For(Nanos),
    /// The block sleeps for one tick of the kernel's timer.
    Tick,
}

/// The count of a write, to be undone when the write is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WriteTicket {
    /// The write was not counted.
    Uncounted,
    /// The write counts in the window with this serial number, or in the next one.
    Window { serial: u32, next: bool },
}

/// The progress of a sync's blocks, for the rules that compare writes with them.
pub(super) struct Front<'a> {
    pub(super) completed: Sectors,
    pub(super) blocks: &'a [Option<Block>],
    pub(super) in_flight: u32,
}

/// The barrier between writes and the blocks of a sync, by one of the rules.
#[derive(Debug)]
pub(crate) struct Barrier {
    rule: WriteBarrier,
    /// D of the window rule, in sectors.
    distance: u64,
    /// The block that has raised the barrier and waits.
    raised: Option<Sectors>,
    /// Start of the newest block, raised or started.
    newest: Sectors,
    /// The number of writes that wait in all.
    waiting: u32,
    windows: Windows,
    buckets: Vec<Bucket>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Windows {
    start: Option<Sectors>,
    current: u32,
    next: u32,
    /// A number that changes with every window, so that a count is undone where it was made.
    serial: u32,
}

#[derive(Debug, Clone, Copy, Default)]
struct Bucket {
    /// The number of reads and writes in flight in the unit.
    pending: u32,
    /// The number of writes that wait in the unit.
    waiting: u32,
    /// The number of a sync's blocks in flight in the unit.
    blocks: u32,
}

impl Barrier {
    pub(super) fn new(rule: WriteBarrier, block: Sectors, depth: u32) -> Self {
        let buckets = match rule {
            WriteBarrier::MdBuckets => usize::try_from(BUCKETS).unwrap_or(0),
            WriteBarrier::MdArray => 1,
            WriteBarrier::Overlap | WriteBarrier::MdWindow => 0,
        };
        Self {
            rule,
            distance: 3 * u64::from(depth) * block.0,
            raised: None,
            newest: Sectors::ZERO,
            waiting: 0,
            windows: Windows::default(),
            buckets: vec![Bucket::default(); buckets],
        }
    }

    /// Whether blocks wait until no other I/O is in flight in their unit, so
    /// that one that is admitted may grow to the unit's end.
    pub(super) const fn counts_io(&self) -> bool {
        !self.buckets.is_empty()
    }

    /// Whether a read must wait.
    pub(super) fn read_waits(&self) -> bool {
        let blocks = self.buckets.first().map_or(0, |bucket| bucket.blocks);
        self.rule == WriteBarrier::MdArray && (blocks > 0 || self.raised.is_some())
    }

    /// Whether reads or writes are in flight, where one unit is the whole array.
    pub(super) fn has_io(&self) -> bool {
        self.rule == WriteBarrier::MdArray && self.bucket(Sectors::ZERO).pending > 0
    }

    pub(super) const fn raised(&self) -> Option<Sectors> {
        self.raised
    }

    /// Undoes a raise, for a sync that is aborted.
    pub(super) const fn lower(&mut self) {
        self.raised = None;
    }

    pub(super) const fn sync_ended(&mut self) {
        self.raised = None;
        self.newest = Sectors::ZERO;
    }

    /// Returns the sector where I/O that starts at `start` must be cut.
    pub(super) fn boundary(&self, start: Sectors) -> Option<Sectors> {
        (self.rule == WriteBarrier::MdBuckets).then(|| Sectors((start.0 / UNIT + 1) * UNIT))
    }

    pub(super) fn clip(&self, range: Span) -> Span {
        Span {
            start: range.start,
            end: self
                .boundary(range.start)
                .map_or(range.end, |boundary| boundary.min(range.end)),
        }
    }

    /// Returns how long a block at `next` sleeps to let waiting writes pass.
    pub(super) fn courtesy(&self, next: Sectors, fast: bool) -> Option<Courtesy> {
        match self.rule {
            WriteBarrier::MdWindow if fast && self.waiting > 0 => {
                Some(Courtesy::For(WINDOW_COURTESY))
            }
            WriteBarrier::MdBuckets | WriteBarrier::MdArray if self.bucket(next).waiting > 0 => {
                Some(Courtesy::Tick)
            }
            _ => None,
        }
    }

    /// Whether a block may start now; raises the barrier where the rule says so, also for a block
    /// that waits for a place.
    pub(super) fn admit_sync(
        &mut self,
        block: Span,
        is_full: bool,
        mut writes: impl Iterator<Item = Span>,
    ) -> bool {
        if self.raised.is_none() {
            let waiting = match self.rule {
                WriteBarrier::Overlap => 0,
                WriteBarrier::MdWindow => self.waiting,
                WriteBarrier::MdBuckets | WriteBarrier::MdArray => self.bucket(block.start).waiting,
            };
            if waiting > 0 {
                return false;
            }
            if self.rule != WriteBarrier::Overlap {
                self.raised = Some(block.start);
                self.newest = block.start;
            }
        }
        let admitted = match self.rule {
            WriteBarrier::Overlap => true,
            WriteBarrier::MdWindow => {
                self.windows.current == 0
                    && self.windows.start.is_none_or(|start| start >= block.end)
            }
            WriteBarrier::MdBuckets | WriteBarrier::MdArray => {
                self.bucket(block.start).pending == 0
            }
        };
        let admitted = admitted && !is_full && !writes.any(|write| write.overlaps(&block));
        if admitted {
            self.raised = None;
        }
        admitted
    }

    pub(super) fn sync_started(&mut self, start: Sectors) {
        self.newest = start;
        if let Some(bucket) = self.bucket_mut(start) {
            bucket.blocks += 1;
        }
    }

    pub(super) fn sync_finished(&mut self, start: Sectors) {
        if let Some(bucket) = self.bucket_mut(start) {
            bucket.blocks -= 1;
        }
    }

    /// Whether a write must wait.
    pub(super) fn write_waits(&self, write: Span, front: &Front<'_>) -> bool {
        match self.rule {
            WriteBarrier::Overlap => {
                let mut blocks = front.blocks.iter().flatten();
                blocks.any(|block| write.overlaps(&block.range))
            }
            WriteBarrier::MdWindow => {
                let up = front.in_flight > 0 || self.raised.is_some();
                up && write.end > front.completed && write.start.0 < self.newest.0 + self.distance
            }
            WriteBarrier::MdBuckets => {
                let number = bucket_number(write.start);
                self.bucket(write.start).blocks > 0
                    || self
                        .raised
                        .is_some_and(|start| bucket_number(start) == number)
            }
            WriteBarrier::MdArray => self.read_waits(),
        }
    }

    /// Whether a write that waited must go on waiting: by the window rule until the barrier is
    /// down, wherever the write lies.
    pub(crate) fn keeps_waiting(&self, blocks_in_flight: bool) -> bool {
        self.rule == WriteBarrier::MdWindow && (blocks_in_flight || self.raised.is_some())
    }

    pub(crate) fn write_begins_waiting(&mut self, start: Sectors) {
        self.waiting += 1;
        if let Some(bucket) = self.bucket_mut(start) {
            bucket.waiting += 1;
        }
    }

    pub(crate) fn write_stops_waiting(&mut self, start: Sectors) {
        self.waiting -= 1;
        if let Some(bucket) = self.bucket_mut(start) {
            bucket.waiting -= 1;
        }
    }

    /// Counts a write that goes to the members.
    pub(crate) fn write_started(&mut self, write: Span, completed: Sectors) -> WriteTicket {
        match self.rule {
            WriteBarrier::Overlap => WriteTicket::Uncounted,
            WriteBarrier::MdBuckets | WriteBarrier::MdArray => {
                self.io_started(write.start);
                WriteTicket::Uncounted
            }
            WriteBarrier::MdWindow if write.end <= completed => WriteTicket::Uncounted,
            WriteBarrier::MdWindow => {
                let first = Sectors(self.newest.0 + self.distance);
                let start = *self.windows.start.get_or_insert(first);
                let next = write.start.0 >= start.0 + self.distance;
                if next {
                    self.windows.next += 1;
                } else {
                    self.windows.current += 1;
                }
                WriteTicket::Window {
                    serial: self.windows.serial,
                    next,
                }
            }
        }
    }

    /// Undoes the count of a write that is done on all members.
    pub(crate) fn write_finished(&mut self, start: Sectors, ticket: WriteTicket) {
        self.io_finished(start);
        let WriteTicket::Window { serial, next } = ticket else {
            return;
        };
        let windows = &mut self.windows;
        if next && serial == windows.serial {
            windows.next -= 1;
        } else {
            windows.current -= 1;
        }
        if windows.current == 0 {
            windows.current = std::mem::take(&mut windows.next);
            windows.serial = windows.serial.wrapping_add(1);
            windows.start = windows
                .start
                .filter(|_| windows.current > 0)
                .map(|start| Sectors(start.0 + self.distance));
        }
    }

    /// Whether the rule counts reads in flight too, and not only writes.
    #[inline]
    pub(crate) const fn counts_reads(&self) -> bool {
        self.counts_io()
    }

    /// Counts a read or write that goes to a member.
    pub(crate) fn io_started(&mut self, start: Sectors) {
        if let Some(bucket) = self.bucket_mut(start) {
            bucket.pending += 1;
        }
    }

    /// Undoes the count of a read or write that is done.
    pub(crate) fn io_finished(&mut self, start: Sectors) {
        if let Some(bucket) = self.bucket_mut(start) {
            bucket.pending -= 1;
        }
    }

    fn bucket(&self, start: Sectors) -> Bucket {
        let bucket = self.buckets.get(self.place_of(start));
        bucket.copied().unwrap_or_default()
    }

    fn bucket_mut(&mut self, start: Sectors) -> Option<&mut Bucket> {
        let place = self.place_of(start);
        self.buckets.get_mut(place)
    }

    fn place_of(&self, start: Sectors) -> usize {
        match self.rule {
            WriteBarrier::MdArray => 0,
            _ => bucket_number(start),
        }
    }
}

fn bucket_number(start: Sectors) -> usize {
    usize::try_from(start.0 / UNIT % BUCKETS).unwrap_or(0)
}

#[cfg(test)]
mod tests;
