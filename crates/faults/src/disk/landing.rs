//! The parts of writes that had not been durable and are found after a power cut.

use crate::medium::Medium;
use crate::pages::PAGE_SECTORS;
use raidlab_random::Stream;

/// The sectors of one write that landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// No sector of the write lands.
    Nothing,
    /// Every sector of the write lands.
    All,
    /// This many sectors from the start of the write land.
    Prefix(usize),
    /// The sectors land whose bit is set in a word drawn from this seed.
    Subset(u64),
    /// The pages of programs that were not lost land.
    Programs {
        /// The seed that decides which programs were lost.
        seed: u64,
        /// The percentage of programs that are not lost.
        whole: u32,
        /// The number of pages that one program writes.
        pages: u64,
        /// The number of pages before the first one of the write.
        first: u64,
        /// The sectors of that page before the write.
        skip: usize,
    },
}

impl Landing {
    /// Whether the sector with this index in the write landed.
    #[must_use]
    pub fn has(self, index: usize) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Prefix(count) => index < count,
            Self::Subset(seed) => Stream::new(seed ^ index as u64).next_u64() & 1 == 1,
            Self::Programs {
                seed,
                whole,
                pages,
                first,
                skip,
            } => {
                let page = first + (skip + index) as u64 / PAGE_SECTORS;
                Stream::new(seed ^ (page / pages)).percent(whole)
            }
        }
    }
}

/// The percentages of writes that tear, and of those that land whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TearRates {
    /// Of 100 writes, the number of which only the first sectors land.
    pub prefix: u32,
    /// Of 100 writes, the number of which each sector lands or not by its own draw.
    pub subset: u32,
    /// Of 100 of all other writes, the number that land whole; the rest does not land.
    pub whole: u32,
}

/// A generator of the landings of a disk's writes, in the order in which they came.
#[derive(Debug)]
pub struct Tear {
    /// The percentages with which writes tear.
    rates: TearRates,
    /// The random stream of the landings.
    random: Stream,
    /// The medium, which decides what can tear at all.
    medium: Medium,
    /// The number of flash pages that the writes so far have touched, which numbers the next one's.
    pages: u64,
}

impl Tear {
    /// A generator for one disk at one power cut.
    #[must_use]
    pub fn new(medium: Medium, rates: TearRates, random: Stream) -> Self {
        Self {
            rates,
            random,
            medium,
            pages: 0,
        }
    }

    /// Draws the landing of the next write, of `sectors` sectors from `start`.
    pub fn draw(&mut self, start: u64, sectors: u64) -> Landing {
        match self.medium {
            Medium::Flash { program_pages } => {
                let skip = start % PAGE_SECTORS;
                self.draw_programs(skip, sectors, program_pages)
            }
            Medium::Drawn | Medium::Platters => self.draw_alone(sectors),
        }
    }

    fn draw_programs(&mut self, skip: u64, sectors: u64, pages: u64) -> Landing {
        let first = self.pages;
        self.pages += (skip + sectors).div_ceil(PAGE_SECTORS);
        Landing::Programs {
            // The same for all writes of this power cut: the stream is not advanced.
            seed: self.random.clone().next_u64(),
            whole: self.rates.whole,
            pages,
            first,
            skip: skip as usize,
        }
    }

    fn draw_alone(&mut self, sectors: u64) -> Landing {
        let kind = self.random.below(100);
        let prefix = u64::from(self.rates.prefix);
        if kind < prefix {
            let count = self.random.below(sectors + 1);
            return Landing::Prefix(usize::try_from(count).unwrap_or(0));
        }
        if kind < prefix + u64::from(self.rates.subset) {
            return Landing::Subset(self.random.next_u64());
        }
        if self.random.percent(self.rates.whole) {
            Landing::All
        } else {
            Landing::Nothing
        }
    }
}
