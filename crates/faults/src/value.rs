//! The content of a sector in one word.
//!
//! The oracle compares sectors by a 64-bit hash of their bytes. Bytes written by a script
//! name their write and their sector, so that a wrong sector can be distinguished from an old
//! or a misplaced one.

use crate::pages::SECTOR;
use std::fmt;

/// The hash of a sector's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Value(pub u64);

const MULTIPLIER: u64 = 0x9e37_79b9_7f4a_7c15;
/// The first word of every sector that a script wrote.
const MAGIC: u64 = 0x5241_4944_4c41_4221;

/// One step of the hash and of the filling: a multiplication whose halves are combined.
pub(crate) const fn mix(word: u64) -> u64 {
    let product = (word ^ MULTIPLIER) as u128 * 0xd6e8_feb8_6659_fd93_u128;
    (product as u64) ^ ((product >> 64) as u64)
}

fn words(bytes: &[u8]) -> impl Iterator<Item = u64> + '_ {
    let (words, _) = bytes.as_chunks::<8>();
    words.iter().map(|word| u64::from_le_bytes(*word))
}

impl Value {
    /// Returns the hash of these bytes.
    #[must_use]
    pub fn of(bytes: &[u8; SECTOR]) -> Self {
        // Two lanes, so that the multiplications overlap.
        let (even, odd) = words(bytes)
            .enumerate()
            .fold((1, 2), |(even, odd), (at, word)| {
                if at % 2 == 0 {
                    (mix(even ^ word), odd)
                } else {
                    (even, mix(odd ^ word))
                }
            });
        Self(mix(even ^ odd.rotate_left(32)))
    }
}

/// Fills a sector with the bytes of write number `write` at array sector `sector`.
pub fn fill(write: u64, sector: u64, into: &mut [u8]) {
    let (words, _) = into.as_chunks_mut::<8>();
    let seed = mix(write.wrapping_mul(MULTIPLIER) ^ mix(sector));
    for (at, word) in (0_u64..).zip(words) {
        *word = match at {
            0 => MAGIC,
            1 => write,
            2 => sector,
            at => seed
                .rotate_left((at % 64) as u32)
                .wrapping_mul(MULTIPLIER | at << 1),
        }
        .to_le_bytes();
    }
}

/// The origin of a sector's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The sector is all zeros.
    Zeros,
    /// The bytes are those of this write, at this array sector.
    Written {
        /// The id of the request that wrote it; reads, flushes and discards are counted too.
        write: u64,
        /// The array sector that the bytes were meant for.
        sector: u64,
    },
    /// The bytes are not those of any write.
    Foreign,
}

impl Origin {
    /// Recognizes the write that these bytes come from, if any.
    #[must_use]
    pub fn of(bytes: &[u8; SECTOR]) -> Self {
        if bytes.iter().all(|byte| *byte == 0) {
            return Self::Zeros;
        }
        let mut head = words(bytes);
        let (Some(magic), Some(write), Some(sector)) = (head.next(), head.next(), head.next())
        else {
            return Self::Foreign;
        };
        let mut expected = [0; SECTOR];
        fill(write, sector, &mut expected);
        if magic == MAGIC && expected == *bytes {
            Self::Written { write, sector }
        } else {
            Self::Foreign
        }
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Zeros => write!(formatter, "zeros"),
            Self::Written { write, sector } => {
                write!(formatter, "write {write}'s bytes for sector {sector}")
            }
            Self::Foreign => write!(formatter, "bytes that nobody wrote"),
        }
    }
}
