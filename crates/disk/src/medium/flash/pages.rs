//! The map of a drive of any size, kept for a sample of its pages.
//!
//! A map of each page of a large drive would need gigabytes. Of a drive with more than [`SAMPLE`]
//! pages of 4 KiB, every n-th page is kept, `n` odd, so that a stride of a power of two meets all
//! of them in turn; the physical pages are as many times fewer. All shares are preserved: of any
//! region the same share is kept, whether it is the whole drive or a file on it, and a region's
//! pages are overwritten in the sample as often as in the drive. The cost of a write is therefore
//! taken from the sample, with the error of a drive with as many pages.
//!
//! - **Copies.** The copies for victims of the sample are added to a debt, and each page that the
//!   host writes pays a [`LEAK`]-th of it. In sum that is the cost of the victims, spread over as
//!   many pages as the sample stands for. Trimming reduces the debt by its share.
//! - **Places.** Pages that one command wrote together share pages of flash, which lie on the dies
//!   in turn, and so do those of small commands that came one after the other and in order, as the
//!   buffer programs what it has in that order. A page that was written alone lies on a die of its
//!   own, drawn by a hash of the page and of the present place of its sample page, so that
//!   rewriting moves it. Which of the two
//!   kinds a page is, is known from the preceding sample page. The same hash says what kind of page
//!   of flash it is, and so it is the same for all that share one.

use super::parameters::Parameters;
use super::translation::{Shape, State, Translation};
use raidlab_random::Stream;

/// The bytes of a logical page.
pub(super) const PAGE_BYTES: u64 = 4096;

/// The largest number of pages that are kept: 9 MB of tables. By
/// `cargo run --release -p raidlab-disk --example flash`, write amplification is then within 2.1 %
/// of theory, as it is with 16 times as many.
pub const SAMPLE: u64 = 1 << 20;

/// The pages of a block of the sample, where it has a thousand such blocks.
const BLOCK_PAGES: u64 = 256;

/// The inverse of the part of the debt that a page pays, as a power of two: many blocks' worth,
/// since victims are collected when the host's next block is opened, several at once.
const LEAK: u32 = 13;

/// The parts into which a copy is divided in the debt, as a power of two.
pub(super) const PART: u32 = 16;

/// The location of a logical page in flash.
#[derive(Debug, Clone, Copy)]
pub(super) struct Location {
    /// Whether it shares a page of flash with those written with it.
    pub(super) together: bool,
    /// A number of the page of flash, which changes with each place.
    pub(super) hash: u64,
}

/// The map of a drive's pages.
#[derive(Debug, Clone)]
pub(super) struct Pages {
    /// The number of the drive's logical pages, including those not kept.
    count: u64,
    /// The sampling interval: one logical page in so many is kept in the map, and stands
    /// for the others.
    every: u64,
    /// The logical pages in a page of flash.
    in_page: u64,
    translation: Translation,
    /// A bit for each kept page: whether it was written together with its neighbours.
    together: Vec<u64>,
    /// The debt of copies that the sample made, in parts.
    owed: u64,
    /// The copies that each page pays for, in parts.
    rate: u64,
    /// Whether the last write mapped a page that was not mapped before.
    grows: bool,
    random: Stream,
}

impl Pages {
    pub(super) fn new(bytes: u64, parameters: &Parameters, random: Stream) -> Self {
        Self::sampled(bytes, SAMPLE, parameters, random)
    }

    /// Creates a map as [`Self::new`] does, with `sample` pages at most.
    fn sampled(bytes: u64, sample: u64, parameters: &Parameters, mut random: Stream) -> Self {
        let count = bytes.div_ceil(PAGE_BYTES).max(1);
        let every = match count.div_ceil(sample) {
            1 => 1,
            every => every | 1,
        };
        let kept = count.div_ceil(every);
        let block = (kept / 1024).clamp(8, BLOCK_PAGES).next_power_of_two();
        let shape = Shape::new(kept as u32, parameters.over_provisioning, block as u32);
        let state = parameters.state;
        let victims = parameters.victims.unwrap_or_default();
        let rate = match state {
            State::Steady => {
                // A small share of spare blocks is rounded up to the number that collecting needs.
                let places = f64::from(shape.blocks) * f64::from(shape.block_pages);
                let share = (places / f64::from(shape.pages)).max(parameters.over_provisioning);
                let copies = Translation::amplification(share) - 1.0;
                (copies * f64::from(1_u32 << PART)) as u64
            }
            State::Fresh | State::Filled => 0,
        };
        let together = match state {
            State::Filled => u64::MAX,
            State::Fresh | State::Steady => 0,
        };
        Self {
            count,
            every,
            in_page: (parameters.page.0 / PAGE_BYTES).max(1),
            translation: Translation::new(shape, victims, state, &mut random),
            together: vec![together; kept.div_ceil(64) as usize],
            owed: rate << LEAK,
            rate,
            grows: false,
            random,
        }
    }

    /// The kept pages among `first` to before `end`.
    #[inline]
    fn kept(&self, first: u64, end: u64) -> std::ops::Range<u32> {
        let end = end.min(self.count);
        let from = first.div_ceil(self.every);
        let mut to = from;
        while to * self.every < end {
            to += 1;
        }
        from as u32..to as u32
    }

    /// Writes pages `first` to before `end` by one command of the host.
    #[inline]
    pub(super) fn write(&mut self, first: u64, end: u64, together: bool) {
        for page in self.kept(first, end) {
            let before = self.translation.mapped();
            let copied = self.translation.write(page, &mut self.random);
            self.grows = self.translation.mapped() > before;
            self.owed += u64::from(copied) << PART;
            self.rate = self.owed >> LEAK;
            self.owed -= self.rate;
            let (word, bit) = (page as usize / 64, 1 << (page % 64));
            if together {
                self.together[word] |= bit;
            } else {
                self.together[word] &= !bit;
            }
        }
    }

    /// Trims pages `first` to before `end`, and their share of the debt.
    pub(super) fn trim(&mut self, first: u64, end: u64) {
        let before = u128::from(self.translation.mapped().max(1));
        for page in self.kept(first, end) {
            self.translation.trim(page);
        }
        let left = u128::from(self.translation.mapped());
        self.owed = (u128::from(self.owed) * left / before) as u64;
        self.rate = self.owed >> LEAK;
    }

    /// The location of a page, if it is mapped; one beyond the drive's end counts as the last.
    #[inline]
    pub(super) fn location(&self, page: u64) -> Option<Location> {
        let page = page.min(self.count - 1);
        let kept = (page / self.every) as u32;
        let place = self.translation.place(kept)?;
        let together = self.together[kept as usize / 64] >> (kept % 64) & 1 == 1;
        // Pages that share one of flash are told apart from others by the place of the first.
        let (first, place) = if together {
            let first = page - page % self.in_page;
            let place = self.translation.place((first / self.every) as u32).unwrap_or(place);
            (first, place)
        } else {
            (page, place)
        };
        let mut hash = (first ^ (u64::from(place) << 40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        hash = (hash ^ (hash >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        Some(Location {
            together,
            hash: hash ^ (hash >> 32),
        })
    }

    /// The copies that a page from the host pays for, in parts of 2^-[`PART`] pages.
    #[inline]
    pub(super) fn copies(&self) -> u64 {
        self.rate
    }

    /// The bytes of the logical pages that are mapped.
    pub(super) fn mapped(&self) -> u64 {
        u64::from(self.translation.mapped()) * self.every * PAGE_BYTES
    }

    /// The bytes of all logical pages.
    pub(super) fn size(&self) -> u64 {
        self.count * PAGE_BYTES
    }

    /// Whether the last write mapped a page that was not mapped before.
    pub(super) fn grows(&self) -> bool {
        self.grows
    }
}

#[cfg(test)]
mod tests;
