//! Writes in a solid-state disk: the buffer, the units that are programmed, the copies and the
//! folding that they cause, and the waiting for them.
//!
//! Pages are taken into the buffer, and as soon as there are enough of them they become a
//! unit. Each unit pays for copies ([pages](super::pages)): when a unit's worth is owed, or
//! in bursts when as much is owed as the preset says, units of copies follow it. Each of them
//! is first gathered. With a share `v` of valid pages in a victim, a page of flash with `n`
//! logical pages yields `n v` of them, and the planes are read together.
//!
//! The cache of one bit takes three times the cells for a byte that cells of three bits take. While
//! there are unused cells beside it, data for which it has no room go to these directly. Then the
//! drive folds to make room for new data: a unit of three bits leaves as many cells as two others
//! need. So an erased drive is filled at three rates, as reviews measure and explain: once the
//! cache is full "the SSD will write directly to TLC flash", and in the end it "starts moving data
//! out of SLC into TLC, to make up free space for incoming data" (TechPowerUp, review of the ADATA
//! XPG Atom 50). Only valid data fill cells here.
//!
//! Flushes divide all units into *epochs*: one waits until the units of its epoch, and of
//! those before it, are programmed.

use super::dies::{Unit, UnitKind};
use super::pages::{PAGE_BYTES, PART, Pages};
use super::parameters::Parameters;
use super::shape::NONE;
use super::translation::State;
use std::collections::VecDeque;
use std::ops::Range;

/// The write buffer, and the state of its pages.
#[derive(Debug, Clone)]
pub(super) struct Writes {
    numbers: Parameters,
    pub(super) pages: Pages,
    /// The capacity of the buffer in pages, the pages in it, and those of them that are in
    /// no unit yet.
    room: u64,
    held: u64,
    loose: u64,
    /// The number of host units of each epoch that are not programmed, and the number of
    /// the first epoch.
    epochs: VecDeque<u32>,
    oldest: u32,
    /// Whether there was a write after the last flush.
    dirty: bool,
    /// The copies owed by units, in parts.
    owed: u64,
    /// The bytes in the cache of one bit a cell.
    cached: u64,
    /// Whether the latest unit went into that cache.
    caching: bool,
}

impl Writes {
    pub(super) fn new(numbers: Parameters, window: usize, pages: Pages) -> Self {
        let unit = numbers.unit_bytes(false) / PAGE_BYTES;
        let mut new = Self {
            pages,
            room: if window == 0 { unit } else { window as u64 },
            held: 0,
            loose: 0,
            epochs: VecDeque::from([0]),
            oldest: 0,
            dirty: false,
            owed: 0,
            cached: 0,
            caching: false,
            numbers,
        };
        if numbers.state == State::Steady {
            // Data in the cache leave room elsewhere, by which the cache is larger.
            while new.cached < new.cache_size() {
                new.cached = new.cache_size();
            }
        }
        new
    }

    /// Trims pages `first` to before `end`. The cache of one bit holds no more than all
    /// that is left.
    pub(super) fn trim(&mut self, first: u64, end: u64) {
        self.pages.trim(first, end);
        self.cached = self.cached.min(self.pages.mapped());
    }

    /// The number of further pages for which the buffer has room.
    pub(super) fn room(&self) -> u64 {
        self.room.saturating_sub(self.held)
    }

    /// Takes pages of one command, which are placed together in flash or each on its own; appends
    /// the units that are full.
    pub(super) fn take(&mut self, pages: Range<u64>, together: bool, units: &mut Vec<Unit>) {
        let count = pages.end - pages.start;
        self.pages.write(pages.start, pages.end, together);
        self.held += count;
        self.loose += count;
        self.dirty = true;
        loop {
            let size = self.unit_pages();
            if self.loose < size {
                return;
            }
            self.unit(size, units);
        }
    }

    /// Closes the unit that is being filled.
    pub(super) fn close(&mut self, units: &mut Vec<Unit>) {
        if self.loose > 0 {
            self.unit_pages();
            self.unit(self.loose, units);
        }
    }

    /// Closes the unit that is being filled. Returns the epoch to wait for, if anything
    /// is not programmed.
    pub(super) fn end_epoch(&mut self, units: &mut Vec<Unit>) -> Option<u32> {
        self.close(units);
        let current = self.oldest + self.epochs.len() as u32 - 1;
        if self.epochs.back() != Some(&0) {
            self.epochs.push_back(0);
            return Some(current);
        }
        (self.epochs.len() > 1).then(|| current - 1)
    }

    /// Whether there was a write after the last flush, and forgets it.
    pub(super) fn cleaned(&mut self) -> bool {
        std::mem::take(&mut self.dirty)
    }

    /// Frees the buffer of a programmed unit, and ends its epoch if it was the last.
    pub(super) fn programmed(&mut self, unit: Unit) {
        self.held -= u64::from(unit.pages);
        if unit.epoch == NONE {
            return;
        }
        self.epochs[(unit.epoch - self.oldest) as usize] -= 1;
        while self.epochs.len() > 1 && self.epochs.front() == Some(&0) {
            self.epochs.pop_front();
            self.oldest += 1;
        }
    }

    /// The first epoch with units that are not programmed.
    pub(super) fn oldest(&self) -> u32 {
        self.oldest
    }

    /// Whether a unit of the host waits or is in progress.
    pub(super) fn is_programming(&self) -> bool {
        self.epochs.iter().any(|&units| units > 0)
    }

    /// Appends a unit that empties a part of the cache of one bit; returns false if that is empty.
    pub(super) fn fold(&mut self, units: &mut Vec<Unit>) -> bool {
        if self.cached == 0 {
            return false;
        }
        let bytes = self.numbers.unit_bytes(false);
        self.cached = self.cached.saturating_sub(bytes);
        let reads = bytes / self.numbers.page.0;
        self.push_copies(reads, self.numbers.sense_time(0), units);
        true
    }

    /// Whether the cache of one bit holds anything.
    pub(super) fn has_cached(&self) -> bool {
        self.cached > 0
    }

    /// Whether writes would continue in the same way for hours.
    pub(super) fn is_steady(&self) -> bool {
        !self.caching && !self.pages.grows() && !self.is_short()
    }

    /// The bytes of logical pages that are not in the cache of one bit.
    fn elsewhere(&self) -> u64 {
        let mapped = self.pages.mapped().saturating_sub(self.cached);
        mapped.min(self.pages.size())
    }

    /// The capacity of the cells outside the fixed part of the cache of one bit, used
    /// with all bits.
    fn cells(&self) -> u64 {
        (self.pages.size() as f64 * self.numbers.over_provisioning) as u64
    }

    /// Whether there is room for another unit only if the cache of one bit makes it.
    fn is_short(&self) -> bool {
        let cached = self.cached.saturating_sub(self.numbers.slc.0);
        let used = self.elsewhere() + cached * u64::from(self.numbers.bits);
        cached > 0 && used + self.numbers.unit_bytes(false) > self.cells()
    }

    /// The capacity of the cache of one bit: its fixed part, and a part of the rest that shrinks as
    /// the drive fills, as far as there is room. Data in the cache fill no other cells.
    fn cache_size(&self) -> u64 {
        let Parameters {
            slc, slc_dynamic, ..
        } = self.numbers;
        if slc_dynamic.0 == 0 {
            return slc.0;
        }
        let (size, elsewhere) = (self.pages.size(), self.elsewhere());
        let share = u128::from(slc_dynamic.0) * u128::from(size - elsewhere) / u128::from(size);
        let cells = self.cells() - elsewhere;
        slc.0 + (share as u64).min(cells / u64::from(self.numbers.bits))
    }

    /// Decides how the next unit is programmed, and returns its size in pages.
    fn unit_pages(&mut self) -> u64 {
        let bytes = self.numbers.unit_bytes(true);
        self.caching = self.cached + bytes <= self.cache_size();
        self.numbers.unit_bytes(self.caching) / PAGE_BYTES
    }

    /// Makes a unit of so many loose pages, and the work that it causes.
    fn unit(&mut self, pages: u64, units: &mut Vec<Unit>) {
        self.loose -= pages;
        let epoch = self.oldest + self.epochs.len() as u32 - 1;
        if let Some(count) = self.epochs.back_mut() {
            *count += 1;
        }
        let kind = if self.caching {
            self.cached += self.numbers.unit_bytes(true);
            UnitKind::Cached
        } else {
            UnitKind::Host
        };
        units.push(Unit {
            kind,
            pages: pages as u32,
            epoch,
        });
        if !self.caching && self.is_short() {
            self.fold(units);
        }
        self.pay(pages, units);
    }

    /// Makes the copies for so many pages of the host.
    fn pay(&mut self, pages: u64, units: &mut Vec<Unit>) {
        let rate = self.pages.copies();
        self.owed += pages * rate;
        let unit = (self.numbers.unit_bytes(false) / PAGE_BYTES) << PART;
        if self.owed < unit.max((self.numbers.burst.0 / PAGE_BYTES) << PART) {
            return;
        }
        let in_page = self.numbers.page.0 / PAGE_BYTES;
        let copies = unit >> PART;
        // A share `rate / (1 + rate)` of a page of flash is valid; at least one of the
        // pages read is.
        let reads = copies * ((1 << PART) + rate) / (in_page * rate.max(1));
        let reads = reads.clamp(copies.div_ceil(in_page), copies);
        let bits = u64::from(self.numbers.bits);
        let kinds = (0..self.numbers.bits).map(|bit| self.numbers.sense_time(bit));
        let sense = kinds.sum::<u64>() / bits;
        while self.owed >= unit {
            self.owed -= unit;
            self.push_copies(reads, sense, units);
        }
    }

    /// Appends a unit of copies that are gathered by so many reads.
    fn push_copies(&self, reads: u64, sense: u64, units: &mut Vec<Unit>) {
        let page = sense + self.numbers.channel_time(self.numbers.page.0);
        let gather = reads.div_ceil(u64::from(self.numbers.planes)) * page;
        units.push(Unit {
            kind: UnitKind::Copies { gather, page },
            pages: 0,
            epoch: NONE,
        });
    }
}
