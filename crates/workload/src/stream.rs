//! The requests of one clone, one after the other.
//!
//! A clone works through its region in passes of `size`, or of the whole region. Random passes
//! visit blocks as drawn, with a new order in each pass where there is a random map. A sequential
//! pass begins at the region's start, in a mixed job with both directions, and ends where one of
//! them reaches the region's end; with `time_based` each goes round alone. An engine that queues
//! requests ends a pass when its bytes have been issued. The amount (`io_size`, else `size`, and
//! `loops`) or `number_ios` ends the job; with `time_based` only the clock does.
//!
//! The rules are those of `keep_running` and `do_io` (backend.c) and `get_next_seq_offset`
//! and `get_next_rand_block` (io_u.c) of fio 3. A sequential pass of a length that is no
//! multiple of the block size ends with a whole block that sticks out of the region, unless
//! the device ends there; a random pass with a map leaves the region's tail out.
//!
//! fio draws a block as a fraction of the region, so that jobs with equal seeds and regions that
//! differ a little visit blocks near each other. Below 2^26 blocks the random map is honoured
//! exactly, by an order of its own; above, blocks are drawn as fio draws them, but a repeat is not
//! replaced by the next free block as in fio: in the first million requests there is about one in
//! a hundred thousand. Where sizes differ the map is fio's, of the smallest size, and cuts
//! requests that meet a block of it; requests that follow others in a run are not in it
//! ([`block_map`]). Where offsets are not multiples of the size there is no map.
//!
//! Amounts are counted in requests where all have one size, else in bytes.
//!
//! A job with a `randseed` draws as fio does, number by number (see [`draws`]), with fio's random
//! map of any size.
//!
//! Other mixed patterns draw the direction of each request. fio also holds back a
//! direction that fell far behind its share, which changes the order of the
//! first few requests only.
//!
//! Where blocks are discarded and then written, a sequential job discards the next
//! block when its last write began where its last discard did, and a random one writes
//! each block as it was discarded; the amount counts writes (`set_rw_ddir`,
//! `get_next_block` of io_u.c, `io_bytes_exceeded` of backend.c).
//!
//! With `verify`, the writes of a pass are read back when it has ended, or after each
//! backlog (see [`read_back`]).

mod begin;
mod block_map;
mod draws;
mod finer;
mod read_back;

use self::draws::Draws;
use self::finer::Finer;
use crate::job::Pattern;
use crate::offsets::Offsets;
use crate::permutation::Permutation;
use raidlab_random::Stream;
use raidlab_units::Bytes;

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// Reads bytes from the device.
    Read,
    /// Writes bytes to the device.
    Write,
    /// Discards blocks of the device.
    Trim,
    /// Makes all completed writes durable; without offset and length.
    Flush,
}

impl Direction {
    /// The index of the direction: 0 for reads, 1 for writes, 2 for discards; `None` for a flush.
    #[must_use]
    pub const fn index(self) -> Option<usize> {
        match self {
            Self::Read => Some(0),
            Self::Write => Some(1),
            Self::Trim => Some(2),
            Self::Flush => None,
        }
    }
}

/// One request of a clone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoUnit {
    /// The operation on the bytes.
    pub direction: Direction,
    /// The first byte on the device; 0 for a flush.
    pub offset: Bytes,
    /// The number of bytes; 0 for a flush.
    pub length: Bytes,
}

impl IoUnit {
    /// A flush of the device.
    pub const FLUSH: Self = Self {
        direction: Direction::Flush,
        offset: Bytes(0),
        length: Bytes(0),
    };
}

/// The choice of the next request's offset.
#[derive(Debug, Clone, PartialEq)]
enum Order {
    /// Offsets are sequential: the next unit of reads, writes and discards.
    Sequential { next: [u64; 3] },
    /// Offsets follow a random order, at this index.
    Mapped { order: Permutation, next: u64 },
    /// Offsets are drawn each time, for reads, writes and discards.
    Drawn(Box<[Offsets; 3]>),
}

/// The request stream of one clone.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestStream {
    pattern: Pattern,
    read_mix_percent: u32,
    /// The unit of amounts: the block, or a byte where sizes differ.
    unit: u64,
    start: u64,
    /// The bytes from the start in which requests lie; the last block of a sequential pass may
    /// stick out of the job's region.
    region: u64,
    /// The number of blocks that can be chosen.
    region_blocks: u64,
    /// The number of units in one pass over the region.
    pass_units: u64,
    /// The number of units left of this pass.
    pass_left: u64,
    /// The number of units left until the job ends.
    units_left: u64,
    /// The number of requests left until the job ends.
    requests_left: u64,
    /// The number of passes left with this one; `None` where it takes as many as it takes.
    passes_left: Option<u32>,
    /// The number of units left from which another pass follows those.
    another_from: u64,
    /// Whether a direction that reaches the region's end continues at its start alone, without
    /// the other one.
    wraps_alone: bool,
    /// Whether fio notices the end of a pass by a request for which it finds no place, and not by
    /// the bytes of the pass.
    misses: bool,
    order: Order,
    random: Stream,
    /// fio's own draws, where the job has a seed.
    draws: Option<Box<Draws>>,
    /// The direction of the next request, if it has been chosen already.
    drawn: Option<Direction>,
    fsync_every: u32,
    fdatasync_every: u32,
    /// The number of writes so far.
    writes: u64,
    /// Whether no flush is due, as the last completion that fio noticed was one.
    flushed_last: bool,
    finer: Option<Box<Finer>>,
}

impl RequestStream {
    /// The next request, or `None` when the job has done its amount.
    #[inline]
    pub fn next_unit(&mut self) -> Option<IoUnit> {
        if self.finer.is_some() {
            return self.next_finer();
        }
        if self.units_left == 0 {
            return None;
        }
        if self.flush_is_due() {
            return Some(IoUnit::FLUSH);
        }
        if self.pass_left == 0 && self.start_pass(false) {
            return Some(IoUnit::FLUSH);
        }
        let direction = self.next_direction();
        if self.is_at_end(direction) && self.wrap(direction) {
            return self.next_unit();
        }
        let block = match &mut self.order {
            Order::Sequential { next } => {
                let next = &mut next[direction.index().unwrap_or(0)];
                let block = *next;
                *next += 1;
                block
            }
            Order::Mapped { order, next } => {
                let block = order.block(*next);
                *next += 1;
                block
            }
            Order::Drawn(_) => match &mut self.draws {
                Some(draws) => draws.block(self.region_blocks),
                None => self.random.below(self.region_blocks),
            },
        };
        self.pass_left -= 1;
        self.units_left -= 1;
        self.count_write(direction);
        Some(IoUnit {
            direction,
            offset: Bytes(self.start + block * self.unit),
            length: Bytes(self.unit),
        })
    }

    /// Whether a direction of a sequential stream has reached the region's end.
    #[inline]
    fn is_at_end(&self, direction: Direction) -> bool {
        match self.order {
            Order::Sequential { next } => {
                next[direction.index().unwrap_or(0)] >= self.region_blocks
            }
            _ => false,
        }
    }

    /// Starts the region again. fio then finds no place for the request whose direction it has
    /// drawn, and begins another pass with another direction, unless the job is time-based;
    /// returns whether it does.
    fn wrap(&mut self, direction: Direction) -> bool {
        if let Order::Sequential { next } = &mut self.order {
            match self.wraps_alone {
                true => next[direction.index().unwrap_or(0)] = 0,
                false => *next = [0; 3],
            }
        }
        if !self.wraps_alone {
            self.flushed_last = false;
            if let Some(draws) = &mut self.draws {
                draws.take_back(direction);
            }
        }
        !self.wraps_alone
    }

    /// The region of the clone: the start and the length.
    #[must_use]
    pub const fn region(&self) -> (Bytes, Bytes) {
        (Bytes(self.start), Bytes(self.region))
    }

    /// The offset of the next request of a sequential stream of one direction without flushes, and
    /// the bytes from there that follow without a gap. `None` for all other streams; no bytes are
    /// left when the job is done.
    #[must_use]
    pub fn sequential_remaining(&self) -> Option<(Bytes, Bytes)> {
        let flushes = self.fsync_every > 0 || self.fdatasync_every > 0;
        match self.order {
            Order::Sequential { next }
                if !self.pattern.is_mixed() && !flushes && self.finer.is_none() =>
            {
                let next = next[self.only_direction()];
                let begins = !self.wraps_alone && self.pass_left == 0;
                let goes_on = next < self.region_blocks && !begins;
                let block = if goes_on { next } else { 0 };
                let pass_left = match self.pass_left {
                    0 => self.pass_units,
                    left => left,
                };
                let left = pass_left.min(self.units_left);
                let left = left.min(self.region_blocks - block);
                Some((
                    Bytes(self.start + block * self.unit),
                    Bytes(left * self.unit),
                ))
            }
            _ => None,
        }
    }

    /// Skips the whole requests in the next `bytes` of a sequential stream, at most those
    /// that [`sequential_remaining`] returns; does nothing to other streams. Returns the
    /// number of requests skipped.
    ///
    /// [`sequential_remaining`]: Self::sequential_remaining
    pub fn skip_sequential(&mut self, bytes: Bytes) -> u64 {
        let Some((place, left)) = self.sequential_remaining() else {
            return 0;
        };
        let units = bytes.0.min(left.0) / self.unit;
        if units == 0 {
            return 0;
        }
        if self.pass_left == 0 {
            self.start_pass(false);
        }
        let direction = self.only_direction();
        if let Order::Sequential { next } = &mut self.order {
            next[direction] = (place.0 - self.start) / self.unit + units;
        }
        self.pass_left -= units;
        self.units_left -= units;
        units
    }

    /// Notes whether the last completion that fio noticed was a flush: the next request is none
    /// then. Without this call each request counts as noticed before the next.
    #[inline]
    pub const fn flushed_last(&mut self, flushed: bool) {
        self.flushed_last = flushed;
    }

    /// fio asks for a flush before each request for which the writes so far are a multiple of
    /// `fsync` or `fdatasync`, unless a flush is what ended last: so also after each read
    /// until the next write (`get_rw_ddir`, `should_fsync` of io_u.c, fio 3.33).
    #[inline]
    fn flush_is_due(&mut self) -> bool {
        let due = |every: u32| every > 0 && self.writes.is_multiple_of(every.into());
        let is_due = self.writes > 0 && (due(self.fsync_every) || due(self.fdatasync_every));
        self.flushed_last = is_due && !self.flushed_last;
        self.flushed_last
    }

    #[inline]
    fn count_write(&mut self, direction: Direction) {
        if direction == Direction::Write {
            self.writes += 1;
        }
    }

    /// Starts a pass; returns whether a flush comes first. Where fio noticed the end of the last
    /// pass by a request without a place, as where it `failed`, it has forgotten the flush before
    /// that (`reset_io_counters` of libfio.c). A time-based job is one pass for fio.
    fn start_pass(&mut self, failed: bool) -> bool {
        self.pass_left = self.pass_units;
        self.passes_left = self.passes_left.map(|passes| passes.saturating_sub(1));
        if let Some(finer) = &mut self.finer {
            finer.start_pass(!self.wraps_alone);
        }
        if let Some(draws) = &mut self.draws {
            if self.misses {
                let mixed = self.pattern.is_mixed() && !self.wraps_alone;
                draws.miss(mixed.then_some(self.read_mix_percent));
            }
            draws.start_pass(self.wraps_alone);
        }
        match &mut self.order {
            Order::Mapped { order, next } => {
                *order = Permutation::new(self.region_blocks, &mut self.random);
                *next = 0;
            }
            Order::Sequential { next } if !self.wraps_alone => *next = [0; 3],
            Order::Sequential { .. } | Order::Drawn(_) => {}
        }
        let missed = failed || (self.misses && !self.wraps_alone);
        let forgets = missed && !self.reads_back();
        self.flushed_last &= !forgets;
        forgets && self.flush_is_due()
    }

    /// The direction of a pattern that has only one, as an index of arrays.
    fn only_direction(&self) -> usize {
        if self.pattern.trims() {
            2
        } else {
            usize::from(self.pattern.writes())
        }
    }

    /// Changes the direction of the next request of a mixed job to that which `turn` returns for
    /// the drawn one. fio turns to the direction that is behind its rate.
    pub fn choose_direction(&mut self, turn: impl FnOnce(Direction) -> Direction) {
        if !self.pattern.is_mixed() || !(1..100).contains(&self.read_mix_percent) {
            return;
        }
        let drawn = self.next_direction();
        let chosen = turn(drawn);
        if let Some(draws) = self.draws.as_mut().filter(|_| chosen != drawn) {
            draws.turn_to(chosen);
        }
        self.drawn = Some(chosen);
    }

    /// The direction that was chosen for the next request, or a newly drawn one.
    #[inline]
    fn next_direction(&mut self) -> Direction {
        match self.drawn.take() {
            Some(drawn) => drawn,
            None => self.direction(),
        }
    }

    #[inline]
    fn direction(&mut self) -> Direction {
        if let Some(draws) = &mut self.draws
            && self.pattern.is_mixed()
        {
            return draws.direction(self.read_mix_percent);
        }
        let read = if self.pattern.is_mixed() {
            self.random.percent(self.read_mix_percent)
        } else {
            self.pattern.reads()
        };
        match read {
            true => Direction::Read,
            false if self.pattern.writes() => Direction::Write,
            false => Direction::Trim,
        }
    }
}

#[cfg(test)]
mod tests;
