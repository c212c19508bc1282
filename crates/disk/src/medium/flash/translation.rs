//! The translation layer of a solid-state disk: the places of logical pages in flash, and the cost
//! of garbage collection. It is a data structure without time.
//!
//! Flash cannot be overwritten. A rewritten page goes to the next free place of an open block, and
//! its old place becomes stale. When free blocks run out, a closed block is the *victim*: its valid
//! pages are copied into another open block, and it is erased. Pages copied for each page written,
//! plus one, are the *write amplification*.
//!
//! 1. Host writes and copies have an open block each. A block that is full is closed.
//! 2. Before the host's next block is opened, victims are collected until two blocks
//!    are free: one for the host, one for copies. The victim is chosen by an entry
//!    of the [registry](super::victims).
//! 3. The host's block is the least worn free one, that of copies the most worn. When the most worn
//!    block has been erased more than [`WEAR_SPREAD`] times more often than the least worn closed
//!    one, that one is collected too, so that unchanging data move to worn blocks.
//! 4. A trimmed page is not mapped and costs nothing to collect.
//!
//! Blocks are kept in lists by their number of valid pages, so that the greedy victim is
//! found at once. A page takes four bytes in the map and, with over-provisioning, a little
//! more than four in the table of owners.
//!
//! Under uniform random writes and greedy choice all blocks age alike, and the share of
//! valid pages in a victim is the smaller root `v` of `v = exp(-r (1 - v))`, where `r` is
//! physical over logical pages; then the write amplification is `1 / (1 - v)`. That is
//! equation 12 of L. Xiang and B. Kurkoski, "An Improved Analytical Expression for Write
//! Amplification in NAND Flash" (arXiv 1110.4245), there with Lambert's function. A block of
//! age `a` (0 the latest, 1 the victim) then holds `v^a` valid pages of one, from which a
//! drive [in steady state](State::Steady) is drawn.

use super::shape::NONE;
pub use super::shape::Shape;
use super::victims::{Closed, Victims};
use raidlab_random::Stream;

/// The number of erasures by which the most worn block may be ahead of the least worn closed one
/// before that is moved: a thirtieth of the 3000 that blocks of TLC flash are rated for.
pub const WEAR_SPREAD: u32 = 100;

/// The history of a drive before the first command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum State {
    /// The drive is erased and was never written.
    Fresh,
    /// Every page was written once, in ascending order.
    #[default]
    Filled,
    /// Single pages were written at random until the drive's state was stationary.
    Steady,
}

impl State {
    /// All states with their names in files.
    pub const ALL: [(Self, &'static str); 3] = [
        (Self::Fresh, "fresh"),
        (Self::Filled, "filled"),
        (Self::Steady, "steady"),
    ];

    /// The state's name in suites, such as `steady`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// The counts of pages and blocks so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Pages that the host wrote.
    pub written: u64,
    /// Valid pages of victims that were copied.
    pub copied: u64,
    /// Blocks that were erased.
    pub erased: u64,
}

/// A block that is being filled; full when `left` is 0.
#[derive(Debug, Clone, Copy, Default)]
struct Open {
    next: u32,
    left: u32,
}

/// The map of a drive.
#[derive(Debug, Clone)]
pub struct Translation {
    shape: Shape,
    shift: u32,
    victims: Victims,
    /// The place of each logical page: block and page in it.
    map: Vec<u32>,
    /// The logical page that is validly at each place.
    owner: Vec<u32>,
    /// The number of valid pages in each block.
    valid: Vec<u32>,
    wear: Vec<u32>,
    /// The wear of the block that is worn most.
    most_wear: u32,
    free: Vec<u32>,
    closed: Closed,
    host: Open,
    copies: Open,
    mapped: u32,
    counts: Counts,
}

impl Translation {
    /// Creates a drive in a state; `random` is used for [`State::Steady`] only.
    #[must_use]
    pub fn new(shape: Shape, victims: Victims, state: State, random: &mut Stream) -> Self {
        let places = shape.blocks as usize * shape.block_pages as usize;
        let mut new = Self {
            shape,
            shift: shape.block_pages.trailing_zeros(),
            victims,
            map: vec![NONE; shape.pages as usize],
            owner: vec![NONE; places],
            valid: vec![0; shape.blocks as usize],
            wear: vec![0; shape.blocks as usize],
            most_wear: 0,
            free: (0..shape.blocks).rev().collect(),
            closed: Closed::new(shape),
            host: Open::default(),
            copies: Open::default(),
            mapped: 0,
            counts: Counts::default(),
        };
        match state {
            State::Fresh => {}
            State::Filled => (0..shape.pages).for_each(|page| {
                new.write(page, random);
            }),
            State::Steady => new.make_steady(random),
        }
        new.counts = Counts::default();
        new
    }

    /// The share of a victim's pages that are valid under uniform random writes, with
    /// `over_provisioning` times as many physical as logical pages; 1 without any.
    #[must_use]
    pub fn valid_share(over_provisioning: f64) -> f64 {
        let mut share = 0.0_f64;
        for _ in 0..100_000 {
            let next = (-over_provisioning * (1.0 - share)).exp();
            if next - share < 1e-12 {
                break;
            }
            share = next;
        }
        share
    }

    /// The write amplification of uniform random writes in theory.
    #[must_use]
    pub fn amplification(over_provisioning: f64) -> f64 {
        1.0 / (1.0 - Self::valid_share(over_provisioning))
    }

    /// The numbers of pages and blocks.
    #[must_use]
    pub const fn shape(&self) -> Shape {
        self.shape
    }

    /// The counts since the first state.
    #[must_use]
    pub const fn counts(&self) -> Counts {
        self.counts
    }

    /// The number of logical pages that are mapped.
    #[must_use]
    pub const fn mapped(&self) -> u32 {
        self.mapped
    }

    /// The place of a logical page, if it is mapped.
    #[inline]
    #[must_use]
    pub fn place(&self, page: u32) -> Option<u32> {
        let place = self.map[page as usize];
        (place != NONE).then_some(place)
    }

    /// The number of erasures of the least and the most worn block.
    #[must_use]
    pub fn wear(&self) -> (u32, u32) {
        let all = self.wear.iter().copied();
        let least = all.clone().min().unwrap_or(0);
        (least, all.max().unwrap_or(0))
    }

    /// Writes a logical page, and returns how many pages had to be copied for it. `random` is for
    /// random choices of victims.
    #[inline]
    pub fn write(&mut self, page: u32, random: &mut Stream) -> u32 {
        let mut copied = 0;
        if self.host.left == 0 {
            while self.free.len() < 2 {
                let victim = self.victims.choose(&mut self.closed, random);
                copied += self.collect(victim);
            }
            copied += self.level_wear();
            self.host = self.open(false);
        }
        self.forget(page);
        self.mapped += 1;
        self.host = self.put(page, self.host);
        self.counts.written += 1;
        copied
    }

    /// Trims a logical page.
    pub fn trim(&mut self, page: u32) {
        self.forget(page);
    }

    /// Makes the old place of a page stale.
    #[inline]
    fn forget(&mut self, page: u32) {
        let place = std::mem::replace(&mut self.map[page as usize], NONE);
        if place == NONE {
            return;
        }
        self.mapped -= 1;
        self.owner[place as usize] = NONE;
        let block = place >> self.shift;
        let valid = &mut self.valid[block as usize];
        *valid -= 1;
        self.closed.lost_one(block, *valid);
    }

    /// Puts a page into an open block that has room.
    #[inline]
    fn put(&mut self, page: u32, open: Open) -> Open {
        let Open { next, left } = open;
        self.map[page as usize] = next;
        self.owner[next as usize] = page;
        let block = next >> self.shift;
        self.valid[block as usize] += 1;
        if left == 1 {
            self.closed.add(block, self.valid[block as usize]);
        }
        Open {
            next: next + 1,
            left: left - 1,
        }
    }

    /// Takes a free block: the most or the least worn.
    fn open(&mut self, most_worn: bool) -> Open {
        let wear = |index: &usize| {
            let wear = self.wear[self.free[*index] as usize];
            if most_worn { u32::MAX - wear } else { wear }
        };
        let index = match self.most_wear {
            // While a drive is being filled, no block is worn more than another.
            0 => self.free.len().checked_sub(1),
            _ => (0..self.free.len()).rev().min_by_key(wear),
        };
        let block = index.map_or(NONE, |index| self.free.swap_remove(index));
        Open {
            next: block << self.shift,
            left: self.shape.block_pages,
        }
    }

    /// Copies the valid pages of a closed block and erases it. Returns the number of pages.
    fn collect(&mut self, victim: u32) -> u32 {
        self.closed.remove(victim, self.valid[victim as usize]);
        let mut left = self.valid[victim as usize];
        let copied = left;
        let mut place = (victim << self.shift) as usize;
        while left > 0 {
            let page = std::mem::replace(&mut self.owner[place], NONE);
            place += 1;
            if page == NONE {
                continue;
            }
            left -= 1;
            if self.copies.left == 0 {
                self.copies = self.open(true);
            }
            self.copies = self.put(page, self.copies);
        }
        self.valid[victim as usize] = 0;
        self.wear[victim as usize] += 1;
        self.most_wear = self.most_wear.max(self.wear[victim as usize]);
        self.free.push(victim);
        self.counts.copied += u64::from(copied);
        self.counts.erased += 1;
        copied
    }

    /// Moves the least worn closed block if it is too far behind. Returns the number
    /// of pages copied.
    fn level_wear(&mut self) -> u32 {
        let closed = |block: &u32| self.closed.has(*block);
        let wear = |block: &u32| self.wear[*block as usize];
        if self.most_wear <= WEAR_SPREAD {
            return 0;
        }
        let least = (0..self.shape.blocks).filter(closed).min_by_key(wear);
        match least {
            Some(block) if wear(&block) + WEAR_SPREAD < self.most_wear => self.collect(block),
            _ => 0,
        }
    }

    /// Fills the blocks of a fresh drive as long random writes would leave them.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a block's valid pages are few and not negative"
    )]
    fn make_steady(&mut self, random: &mut Stream) {
        let Shape {
            pages,
            block_pages,
            blocks,
        } = self.shape;
        let closed = blocks - 2;
        let exponent = f64::from(closed) * f64::from(block_pages) / f64::from(pages);
        let exponent = -exponent * (1.0 - Self::valid_share(exponent));
        let mut order: Vec<u32> = (0..pages).collect();
        for last in (1..order.len()).rev() {
            let other = random.below(last as u64 + 1);
            order.swap(last, usize::try_from(other).unwrap_or(0));
        }
        // The oldest come first. The remainder from rounding goes to the youngest that have room.
        let share = |age: u32| ((f64::from(age) + 0.5) / f64::from(closed) * exponent).exp();
        let mut counts: Vec<u32> = (0..closed)
            .rev()
            .map(|age| (share(age) * f64::from(block_pages)) as u32)
            .collect();
        let mut left = i64::from(pages) - counts.iter().map(|&count| i64::from(count)).sum::<i64>();
        while left != 0 {
            for count in counts.iter_mut().rev() {
                if left > 0 && *count < block_pages {
                    *count += 1;
                    left -= 1;
                } else if left < 0 && *count > 0 {
                    *count -= 1;
                    left += 1;
                }
            }
        }
        self.free.truncate(2);
        let mut pages = order.into_iter();
        for (block, count) in (0..closed).zip(counts) {
            let mut open = Open {
                next: block << self.shift,
                left: block_pages,
            };
            for page in pages.by_ref().take(count as usize) {
                open = self.put(page, open);
            }
            if count < block_pages {
                self.closed.add(block, count);
            }
        }
        self.mapped = self.shape.pages;
    }
}

#[cfg(test)]
mod tests;
