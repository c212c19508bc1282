//! Data blocks in memory, and those that the open transaction group has to write.
//!
//! Blocks have bits in pages of 128, of which only those are kept in which a bit is set. A table
//! leads to a block's page without a search: with random requests nearly each of them needs another
//! page, at an address that no processor's cache holds, and one such access is enough.

use std::collections::VecDeque;

/// The length of a run above which it is kept as several, so that the oldest part of a long
/// stream can leave.
pub(super) const LONGEST_RUN: u64 = 1024;

/// The number of blocks in a page.
const PAGE: u64 = 128;

/// A bit for each block of a page.
#[derive(Debug, Clone, Copy)]
struct Page {
    held: u128,
    dirty: u128,
}

/// The index of the page that stands for all without a bit.
const EMPTY: u32 = 0;

/// The data blocks; those in memory leave in order of arrival.
#[derive(Debug)]
pub(super) struct Data {
    held: u64,
    /// The runs in which the blocks in memory arrived: the first one, and the number.
    arrivals: VecDeque<(u64, u64)>,
    /// The index of each page of the volume among the pages kept.
    table: Vec<u32>,
    pages: Vec<Page>,
    free: Vec<u32>,
    /// The numbers of all pages with dirty blocks, and perhaps of some that had such.
    dirty: Vec<usize>,
}

impl Data {
    /// Creates an empty set for a volume of at most so many blocks.
    pub(super) fn new(blocks: usize) -> Self {
        let nothing = Page { held: 0, dirty: 0 };
        Self {
            held: 0,
            arrivals: VecDeque::new(),
            table: vec![EMPTY; blocks.div_ceil(PAGE as usize)],
            pages: vec![nothing],
            free: Vec::new(),
            dirty: Vec::new(),
        }
    }

    /// Whether any of the blocks `first..end` is in memory.
    pub(super) fn holds_any(&self, first: u64, end: u64) -> bool {
        let held = |number: usize| self.pages[self.table[number] as usize].held;
        masks(first, end).any(|(number, mask)| held(number) & mask != 0)
    }

    /// Inserts `first..end`, which is not empty.
    pub(super) fn insert(&mut self, first: u64, end: u64) {
        if !self.holds_any(first, end) {
            self.insert_new(first, end);
            return;
        }
        for block in first..end {
            if !self.holds_any(block, block + 1) {
                self.insert_new(block, block + 1);
            }
        }
    }

    fn insert_new(&mut self, first: u64, end: u64) {
        for (number, mask) in masks(first, end) {
            self.page(number).held |= mask;
        }
        let blocks = end - first;
        self.held += blocks;
        match self.arrivals.back_mut() {
            Some((start, length))
                if *start + *length == first && *length + blocks <= LONGEST_RUN =>
            {
                *length += blocks;
            }
            _ => self.arrivals.push_back((first, blocks)),
        }
    }

    /// Evicts blocks until no more than so many are left.
    pub(super) fn shrink_to(&mut self, capacity: u64) {
        while self.held > capacity
            && let Some((start, length)) = self.arrivals.pop_front()
        {
            self.held -= length;
            for (number, mask) in masks(start, start + length) {
                self.page(number).held &= !mask;
                self.tidy(number);
            }
        }
    }

    /// Evicts all blocks: without dirty ones all at once, as after random requests each would have
    /// to be looked up.
    pub(super) fn forget(&mut self) {
        if !self.dirty.is_empty() {
            return self.shrink_to(0);
        }
        self.held = 0;
        self.arrivals.clear();
        self.table.fill(EMPTY);
        self.pages.truncate(1);
        self.free.clear();
    }

    /// Marks the blocks `first..end` as dirty; returns how many were not.
    pub(super) fn make_dirty(&mut self, first: u64, end: u64) -> u64 {
        let mut new = 0;
        for (number, mask) in masks(first, end) {
            let page = self.page(number);
            new += u64::from((mask & !page.dirty).count_ones());
            let was_clean = page.dirty == 0;
            page.dirty |= mask;
            if was_clean {
                self.dirty.push(number);
            }
        }
        new
    }

    /// Marks the blocks `first..end` as clean; returns how many were dirty.
    pub(super) fn make_clean(&mut self, first: u64, end: u64) -> u64 {
        let mut removed = 0;
        for (number, mask) in masks(first, end) {
            if self.table[number] != EMPTY {
                let page = self.page(number);
                removed += u64::from((mask & page.dirty).count_ones());
                page.dirty &= !mask;
                self.tidy(number);
            }
        }
        removed
    }

    /// Marks all blocks as clean. Returns those that were dirty as runs (first, number) that do not
    /// touch, in rising order.
    pub(super) fn take_dirty(&mut self) -> VecDeque<(u64, u64)> {
        let mut numbers = std::mem::take(&mut self.dirty);
        numbers.sort_unstable();
        let mut runs: VecDeque<(u64, u64)> = VecDeque::new();
        for number in numbers.drain(..) {
            let mut bits = std::mem::take(&mut self.page(number).dirty);
            while bits != 0 {
                let low = bits.trailing_zeros();
                let count = u64::from((bits >> low).trailing_ones());
                let first = number as u64 * PAGE + u64::from(low);
                // The carry clears the run.
                bits &= bits.wrapping_add(1 << low);
                match runs.back_mut() {
                    Some(last) if last.0 + last.1 == first => last.1 += count,
                    _ => runs.push_back((first, count)),
                }
            }
            self.tidy(number);
        }
        self.dirty = numbers;
        runs
    }

    /// A page for changes; [`Self::tidy`] must be called when bits of it were cleared.
    fn page(&mut self, number: usize) -> &mut Page {
        let place = &mut self.table[number];
        if *place == EMPTY {
            *place = self.free.pop().unwrap_or_else(|| {
                self.pages.push(self.pages[EMPTY as usize]);
                u32::try_from(self.pages.len() - 1).expect("fewer than 2^32 pages")
            });
        }
        &mut self.pages[*place as usize]
    }

    /// Removes a page without set bits.
    fn tidy(&mut self, number: usize) {
        let place = self.table[number];
        let Page { held, dirty } = self.pages[place as usize];
        if place != EMPTY && held | dirty == 0 {
            self.table[number] = EMPTY;
            self.free.push(place);
        }
    }
}

/// The pages of `first..end`, with the bits of these blocks in each.
fn masks(first: u64, end: u64) -> impl Iterator<Item = (usize, u128)> {
    (first / PAGE..end.div_ceil(PAGE)).map(move |number| {
        let low = first.saturating_sub(number * PAGE);
        let high = (end - number * PAGE).min(PAGE);
        let mask = (u128::MAX >> (PAGE - high)) & (u128::MAX << low);
        (number as usize, mask)
    })
}

#[cfg(test)]
mod tests {
    use super::Data;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    /// The runs of flags that are set.
    fn runs(flags: &[bool]) -> Vec<(u64, u64)> {
        let begins = (0..flags.len()).filter(|&at| flags[at] && (at == 0 || !flags[at - 1]));
        let run = |at: usize| {
            let length = flags[at..].iter().take_while(|flag| **flag).count();
            (at as u64, length as u64)
        };
        begins.map(run).collect()
    }

    fn count(flags: &[bool]) -> u64 {
        flags.iter().filter(|flag| **flag).count() as u64
    }

    proptest! {
        #[test]
        fn bits_in_pages_are_two_tables_of_flags(
            edits in proptest::collection::vec((0_u8..9, 0_u64..600, 1_u64..300), 0..40),
        ) {
            let mut data = Data::new(900);
            let mut dirty = [false; 900];
            let mut came = VecDeque::new();
            for (what, first, blocks) in edits {
                let end = first + blocks;
                let range = first as usize..end as usize;
                let were = count(&dirty[range.clone()]);
                match what {
                    0 => {
                        prop_assert_eq!(data.take_dirty(), runs(&dirty));
                        dirty.fill(false);
                    }
                    1 | 2 => {
                        prop_assert_eq!(data.make_clean(first, end), were);
                        dirty[range].fill(false);
                    }
                    3 | 4 => {
                        prop_assert_eq!(data.make_dirty(first, end), blocks - were);
                        dirty[range].fill(true);
                    }
                    5 | 6 => {
                        data.insert(first, end);
                        let new: Vec<u64> = (first..end).filter(|it| !came.contains(it)).collect();
                        came.extend(new);
                    }
                    7 => {
                        data.shrink_to(blocks);
                        // Runs leave as a whole.
                        came.drain(..came.len() - data.held as usize);
                        prop_assert!(data.held <= blocks);
                    }
                    _ => {
                        data.forget();
                        came.clear();
                    }
                }
                prop_assert_eq!(data.held, came.len() as u64);
                for block in 0..900 {
                    prop_assert_eq!(data.holds_any(block, block + 1), came.contains(&block));
                }
            }
            data.shrink_to(0);
            prop_assert_eq!(data.take_dirty(), runs(&dirty));
            prop_assert_eq!(data.free.len() + 1, data.pages.len(), "no page is kept without a bit");
        }
    }
}
