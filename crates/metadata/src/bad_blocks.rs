//! The bad-block log: ranges of a member whose bytes are not to be trusted.
//!
//! Little-endian words of 64 bits: the low 10 bits are a length, the high 54 a
//! start, both in units of `1 << shift` sectors; a word of ones ends the list
//! (`super_1_load` and `super_1_sync` of drivers/md/md.c). Ranges are in
//! sectors of the whole member, its data offset included.

use crate::mutation::{self, Mutation};
use crate::superblock::BadBlockLog;
use raidlab_units::{Sectors, Span, SpanSet};

/// The longest range of one entry, in the log's units (`BB_MAX_LEN` of include/linux/badblocks.h).
const LONGEST: u64 = 512;
/// The bound of a start in the log's units: it has 54 bits.
const UNITS: u64 = 1 << 54;
/// The most entries that the kernel keeps: one page of words.
const MOST_ENTRIES: usize = 512;
/// The most sectors of a log that the kernel reads.
pub(crate) const MAXIMUM_SECTORS: u16 = 8;

/// A range of sectors whose correct bytes are lost.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BadBlockEntry {
    /// The first sector, counted on the whole member and not in its data area.
    pub start: Sectors,
    /// The number of sectors, at least 1.
    pub count: Sectors,
}

impl BadBlockEntry {
    /// Returns the entry as a range of the member's sectors; the part beyond the last possible
    /// sector is left out.
    #[must_use]
    pub const fn span(&self) -> Span {
        Span::new(self.start.0, self.start.0.saturating_add(self.count.0))
    }
}

impl From<Span> for BadBlockEntry {
    fn from(span: Span) -> Self {
        Self {
            start: span.start,
            count: span.count(),
        }
    }
}

/// The reason why a bad-block log cannot be read or written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadBlockError {
    /// A shift that makes the number of sectors overflow.
    #[error("the bad-block log's shift is {0}; at most 53 is possible")]
    Shift(u8),
    /// An entry that is empty or too long.
    #[error("entry {index} of the bad-block log has a length of {count}, not 1 to 512")]
    Length {
        /// The index of the entry in the log, from 0.
        index: usize,
        /// The length that was found, in the log's units.
        count: u64,
    },
    /// An entry that reaches beyond the last sector that a log can name.
    #[error("entry {index} of the bad-block log begins at {start} and ends beyond any device")]
    Start {
        /// The index of the entry in the log, from 0.
        index: usize,
        /// The start that was found, in the log's units.
        start: u64,
    },
    /// More ranges than the log has room for.
    #[error("{entries} entries do not fit a bad-block log of {capacity}")]
    Full {
        /// Entries that the ranges would take.
        entries: usize,
        /// Entries that the log has room for.
        capacity: usize,
    },
}

impl BadBlockLog {
    /// The log that mdadm makes: 8 sectors, entries in sectors.
    #[must_use]
    pub const fn new(offset: i32) -> Self {
        Self {
            offset,
            size: MAXIMUM_SECTORS,
            shift: 0,
        }
    }

    /// Returns the number of entries that the log has room for: 64 per sector, at most 512.
    #[must_use]
    pub fn capacity(&self) -> usize {
        (usize::from(self.size) * 64).min(MOST_ENTRIES)
    }

    /// Returns the entries in the log's bytes, in their order; the first word of ones ends them.
    ///
    /// # Errors
    ///
    /// An entry that the kernel would not accept.
    pub fn decode(&self, bytes: &[u8]) -> Result<Vec<BadBlockEntry>, BadBlockError> {
        if self.shift > 53 {
            return Err(BadBlockError::Shift(self.shift));
        }
        let words = bytes.chunks_exact(8).take(self.capacity());
        let words = words.map(|word| {
            word.iter()
                .rev()
                .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
        });
        words
            .take_while(|word| *word != u64::MAX)
            .enumerate()
            .map(|(index, word)| self.entry(index, word))
            .collect()
    }

    fn entry(&self, index: usize, word: u64) -> Result<BadBlockEntry, BadBlockError> {
        let [start, count] = [word >> 10, word & 0x3ff];
        if count == 0 || count > LONGEST {
            return Err(BadBlockError::Length { index, count });
        }
        let end = start + count;
        if end > UNITS || end > u64::MAX >> self.shift {
            return Err(BadBlockError::Start { index, start });
        }
        let count = match mutation::is(Mutation::BadCountUnshifted) {
            true => count,
            false => count << self.shift,
        };
        Ok(BadBlockEntry {
            start: Sectors(start << self.shift),
            count: Sectors(count),
        })
    }

    /// Returns the bytes of all the log's sectors. Entries ascend, ranges that touch are merged,
    /// long ranges take several entries, and all are extended to whole units.
    ///
    /// # Errors
    ///
    /// [`BadBlockError::Full`] if they do not fit, [`BadBlockError::Start`] if a log cannot
    /// express them, [`BadBlockError::Shift`].
    pub fn encode(&self, ranges: &[BadBlockEntry]) -> Result<Vec<u8>, BadBlockError> {
        if self.shift > 53 {
            return Err(BadBlockError::Shift(self.shift));
        }
        let mut words = Vec::new();
        let merged: SpanSet = ranges.iter().map(BadBlockEntry::span).collect();
        for (index, span) in merged.iter().enumerate() {
            let mut start = span.start.0 >> self.shift;
            let end = span.end.0.div_ceil(1 << self.shift);
            if end > UNITS {
                return Err(BadBlockError::Start { index, start });
            }
            while start < end {
                let count = (end - start).min(LONGEST);
                words.push(start << 10 | count);
                start += count;
                if words.len() > MOST_ENTRIES || mutation::is(Mutation::LongBadRangeCut) {
                    break;
                }
            }
        }
        let capacity = self.capacity();
        if words.len() > capacity {
            return Err(BadBlockError::Full {
                entries: words.len(),
                capacity,
            });
        }
        let mut bytes = vec![0xff; usize::from(self.size) * 512];
        for (target, word) in bytes.chunks_exact_mut(8).zip(words) {
            target.copy_from_slice(&word.to_le_bytes());
        }
        Ok(bytes)
    }
}
