//! The choice of the block that is collected when a solid-state disk needs a free one: a
//! registry of policies.

use super::shape::{NONE, Shape};
use raidlab_random::Stream;
use std::collections::VecDeque;

/// The policy that chooses the victim among closed blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Victims {
    /// The victim is the block with the fewest valid pages.
    #[default]
    Greedy,
    /// The victim is the block that was closed first.
    Oldest,
    /// The victim is the one of ten drawn blocks with the fewest valid pages.
    BestOfTen,
    /// The victim is any closed block, drawn at random.
    Drawn,
}

impl Victims {
    /// All policies in the order of their numbers in preset files, with their names. Ten is the
    /// number of blocks that MQSim's default draws for planes of about a thousand blocks (the
    /// logarithm of their number, `GC_and_WL_Unit_Page_Level.cpp`).
    pub const ALL: [(Self, &'static str); 4] = [
        (Self::Greedy, "greedy"),
        (Self::Oldest, "oldest"),
        (Self::BestOfTen, "best-of-ten"),
        (Self::Drawn, "drawn"),
    ];

    /// The policy of a number in preset files.
    #[must_use]
    pub fn of_number(number: usize) -> Option<Self> {
        Self::ALL.get(number).map(|entry| entry.0)
    }

    /// Chooses one of the closed blocks, of which there must be at least one.
    pub(super) fn choose(self, closed: &mut Closed, random: &mut Stream) -> u32 {
        match self {
            Self::Greedy => closed.fewest(),
            Self::Oldest => closed.oldest(),
            Self::BestOfTen => {
                let drawn = (0..10).map(|_| closed.draw(random));
                drawn.min_by_key(|&block| closed.valid(block)).unwrap_or(0)
            }
            Self::Drawn => closed.draw(random),
        }
    }
}

/// A closed block in the list of those with as many valid pages.
#[derive(Debug, Clone, Copy)]
struct Link {
    before: u32,
    after: u32,
    /// The number of valid pages; [`NONE`] for blocks that are not closed.
    valid: u32,
    /// The serial number of its closing.
    serial: u32,
}

/// The closed blocks by their number of valid pages, and in the order of their closing.
#[derive(Debug, Clone)]
pub(super) struct Closed {
    links: Vec<Link>,
    /// The first block with so many valid pages.
    heads: Vec<u32>,
    /// A lower bound of the valid pages in any closed block.
    least: usize,
    /// Blocks and their serials in the order of their closing; some are not closed any more.
    order: VecDeque<(u32, u32)>,
    serial: u32,
}

impl Closed {
    pub(super) fn new(shape: Shape) -> Self {
        let link = Link {
            before: NONE,
            after: NONE,
            valid: NONE,
            serial: 0,
        };
        Self {
            links: vec![link; shape.blocks as usize],
            heads: vec![NONE; shape.block_pages as usize + 1],
            least: shape.block_pages as usize,
            order: VecDeque::with_capacity(2 * shape.blocks as usize),
            serial: 0,
        }
    }

    /// Whether a block is closed.
    pub(super) fn has(&self, block: u32) -> bool {
        self.valid(block) != NONE
    }

    fn valid(&self, block: u32) -> u32 {
        self.links[block as usize].valid
    }

    /// Adds a block that is full, with the number of its valid pages.
    pub(super) fn add(&mut self, block: u32, valid: u32) {
        self.serial = self.serial.wrapping_add(1);
        self.links[block as usize].serial = self.serial;
        if self.order.len() == self.order.capacity() {
            let mut order = std::mem::take(&mut self.order);
            order.retain(|&entry| self.is_current(entry));
            self.order = order;
        }
        self.order.push_back((block, self.serial));
        self.link(block, valid);
    }

    /// Removes a block that is about to be erased.
    pub(super) fn remove(&mut self, block: u32, valid: u32) {
        self.unlink(block, valid);
        self.links[block as usize].valid = NONE;
    }

    /// Updates a block of which a page became stale, with `valid` left; nothing if it
    /// is not closed.
    #[inline]
    pub(super) fn lost_one(&mut self, block: u32, valid: u32) {
        if self.has(block) {
            self.unlink(block, valid + 1);
            self.link(block, valid);
        }
    }

    #[inline]
    fn link(&mut self, block: u32, valid: u32) {
        let head = std::mem::replace(&mut self.heads[valid as usize], block);
        if head != NONE {
            self.links[head as usize].before = block;
        }
        let link = &mut self.links[block as usize];
        link.before = NONE;
        link.after = head;
        link.valid = valid;
        self.least = self.least.min(valid as usize);
    }

    #[inline]
    fn unlink(&mut self, block: u32, valid: u32) {
        let Link { before, after, .. } = self.links[block as usize];
        if before == NONE {
            self.heads[valid as usize] = after;
        } else {
            self.links[before as usize].after = after;
        }
        if after != NONE {
            self.links[after as usize].before = before;
        }
        while self.least + 1 < self.heads.len() && self.heads[self.least] == NONE {
            self.least += 1;
        }
    }

    fn fewest(&self) -> u32 {
        self.heads[self.least]
    }

    fn oldest(&mut self) -> u32 {
        while let Some(&entry) = self.order.front() {
            if self.is_current(entry) {
                return entry.0;
            }
            self.order.pop_front();
        }
        0
    }

    /// Whether a block is still closed since it got its serial.
    fn is_current(&self, (block, serial): (u32, u32)) -> bool {
        let link = self.links[block as usize];
        link.valid != NONE && link.serial == serial
    }

    fn draw(&self, random: &mut Stream) -> u32 {
        loop {
            let block = random.below(self.links.len() as u64);
            let block = u32::try_from(block).unwrap_or(0);
            if self.has(block) {
                return block;
            }
        }
    }
}
