//! How much of a write that was not durable is found after a power cut.

use raidlab_random::Stream;

/// Which sectors of one write landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Landing {
    /// None.
    Nothing,
    /// All of them.
    All,
    /// The first so many.
    Prefix(usize),
    /// Those whose bit is set in a word drawn from this seed.
    Subset(u64),
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
        }
    }
}

/// How often writes tear, in percent; the rest is split between whole and not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TearRates {
    /// Prefixes.
    pub prefix: u32,
    /// Subsets.
    pub subset: u32,
    /// Of what is left: whole writes.
    pub whole: u32,
}

/// Draws landings.
#[derive(Debug)]
pub struct Tear {
    /// How often what.
    pub rates: TearRates,
    /// The stream that says how each write lands.
    pub random: Stream,
}

impl Tear {
    /// The landing of a write of so many sectors.
    pub fn draw(&mut self, sectors: u64) -> Landing {
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
