//! How much of a write that was not durable is found after a power cut.

use crate::medium::Medium;
use crate::pages::PAGE_SECTORS;
use raidlab_random::Stream;

/// Which sectors of one write landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// No sector of the write lands.
    Nothing,
    /// Every sector of the write lands.
    All,
    /// So many sectors from the start of the write land.
    Prefix(usize),
    /// Those whose bit is set in a word drawn from this seed.
    Subset(u64),
    /// The pages of those programs that were not lost.
    Programs {
        /// The seed that decides which programs were lost.
        seed: u64,
        /// Percent of the programs that were not.
        whole: u32,
        /// How many pages one program writes.
        pages: u64,
        /// How many pages came before the first one of the write.
        first: u64,
        /// Sectors of that page before the write.
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

/// How often writes tear, in percent; the rest is split between whole and not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TearRates {
    /// Of 100 writes, those of which only the first sectors land.
    pub prefix: u32,
    /// Of 100 writes, those of which each sector lands or not by its own draw.
    pub subset: u32,
    /// Of 100 of all other writes, those that land whole; the rest does not land.
    pub whole: u32,
}

/// Draws the landings of a disk's writes, in the order in which they came.
#[derive(Debug)]
pub struct Tear {
    /// How often writes tear in which way.
    rates: TearRates,
    /// The stream that says how each write lands.
    random: Stream,
    /// The medium, which decides what can tear at all.
    medium: Medium,
    /// Pages of flash that the writes so far have touched, which number the next one's.
    pages: u64,
}

impl Tear {
    /// For a disk at one power cut.
    #[must_use]
    pub fn new(medium: Medium, rates: TearRates, random: Stream) -> Self {
        Self {
            rates,
            random,
            medium,
            pages: 0,
        }
    }

    /// The landing of the next write, of so many sectors from `start`.
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
            // The same for all writes of this power cut: it is not drawn from.
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
