//! A record's header: one block of 4 KiB, little-endian.
//!
//! | byte | size | what |
//! |---|---|---|
//! | 0 | 8 | `rlrecord` |
//! | 8 | 8 | session |
//! | 16 | 8 | batch |
//! | 24 | 8 | transaction |
//! | 32 | 8 | the record's place, sectors from the ring's start |
//! | 40 | 8 | participants, one bit a slot |
//! | 48 | 8 | the window's first sector of the members' data areas |
//! | 56 | 8 | the sector after its last |
//! | 64 | 2 | slot |
//! | 66 | 2 | extents, 0 to 16 |
//! | 72 | 16 each | extents: first sector, sectors |
//! | 328 | 4 each | CRC-32C of each extent's bytes |
//! | 392 | 8 | the oldest transaction whose record in this ring still counts |
//! | 4092 | 4 | CRC-32C of the block with these four bytes as 0 |
//!
//! After it come the extents' bytes one after the other, filled up to a whole
//! block.

use super::super::config::BLOCK;
use crate::request::Slot;
use raidlab_geometry::{MAXIMUM_MEMBERS, SlotSet};

/// The most extents in a header.
pub(in super::super) const MOST_EXTENTS: usize = 16;

pub(super) const HEADER_BYTES: u32 = 4096;
pub(super) const CHECKSUMS_AT: u32 = 328;
pub(super) const SEAL_AT: u32 = 4092;

const MAGIC: [u8; 8] = *b"rlrecord";
const EXTENTS_AT: usize = 72;
const OLDEST_AT: usize = 392;
const BYTES: usize = HEADER_BYTES as usize;
const SEAL: usize = SEAL_AT as usize;

/// The content of a log record's header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) session: u64,
    pub(super) batch: u64,
    pub(super) transaction: u64,
    /// The oldest transaction of the ring that counts: records of earlier ones are void.
    pub(super) oldest: u64,
    pub(super) position: u64,
    pub(super) slot: Slot,
    pub(super) participants: SlotSet,
    pub(super) window: (u64, u64),
    /// The ranges of the record's data: the first sector and the number of sectors.
    pub(super) extents: Vec<(u64, u64)>,
    /// The checksums as read; empty in a header that is yet to be sealed.
    pub(super) checksums: Vec<u32>,
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..at + 4]
        .iter()
        .rev()
        .fold(0, |value, byte| value << 8 | u32::from(*byte))
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) | u64::from(word(bytes, at + 4)) << 32
}

fn half(bytes: &[u8], at: usize) -> u16 {
    u16::from(bytes[at]) | u16::from(bytes[at + 1]) << 8
}

impl Header {
    /// Whether the record is a mark: nothing older counts in any ring (`arrival`).
    pub(super) fn is_mark(&self) -> bool {
        self.extents.is_empty() && self.participants.len() > 1
    }

    /// Returns the sectors of the whole record.
    pub(super) fn sectors(&self) -> u64 {
        let payload: u64 = self.extents.iter().map(|(_, count)| count).sum();
        BLOCK + payload.next_multiple_of(BLOCK)
    }

    /// Returns the header as bytes of its block, with zeros where the checksums will be.
    pub(super) fn encode_unsealed(&self) -> Vec<u8> {
        let mut bytes = vec![0; BYTES];
        let mut put = |at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
        let participants = self
            .participants
            .iter()
            .fold(0_u64, |bits, slot| bits | 1 << slot.0);
        put(0, &MAGIC);
        put(8, &self.session.to_le_bytes());
        put(16, &self.batch.to_le_bytes());
        put(24, &self.transaction.to_le_bytes());
        put(32, &self.position.to_le_bytes());
        put(40, &participants.to_le_bytes());
        put(48, &self.window.0.to_le_bytes());
        put(56, &self.window.1.to_le_bytes());
        put(64, &self.slot.0.to_le_bytes());
        put(66, &(self.extents.len() as u16).to_le_bytes());
        put(OLDEST_AT, &self.oldest.to_le_bytes());
        for (index, (start, count)) in self.extents.iter().enumerate() {
            put(EXTENTS_AT + 16 * index, &start.to_le_bytes());
            put(EXTENTS_AT + 16 * index + 8, &count.to_le_bytes());
        }
        bytes
    }

    /// Decodes a block, if it is an intact header whose extents lie in its window.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes = bytes.get(..BYTES)?;
        if !bytes.starts_with(&MAGIC) {
            return None;
        }
        let sealed = crc32c::crc32c_append(crc32c::crc32c(&bytes[..SEAL]), &[0; 4]);
        let extents = usize::from(half(bytes, 66));
        if sealed != word(bytes, SEAL) || extents > MOST_EXTENTS {
            return None;
        }
        let bits = long(bytes, 40);
        let slots = (0..).map(Slot).take(MAXIMUM_MEMBERS);
        let header = Self {
            session: long(bytes, 8),
            batch: long(bytes, 16),
            transaction: long(bytes, 24),
            oldest: long(bytes, OLDEST_AT),
            position: long(bytes, 32),
            slot: Slot(half(bytes, 64)),
            participants: slots.filter(|slot| bits & 1 << slot.0 != 0).collect(),
            window: (long(bytes, 48), long(bytes, 56)),
            extents: (0..extents)
                .map(|index| EXTENTS_AT + 16 * index)
                .map(|at| (long(bytes, at), long(bytes, at + 8)))
                .collect(),
            checksums: (0..extents)
                .map(|index| word(bytes, CHECKSUMS_AT as usize + 4 * index))
                .collect(),
        };
        let (first, end) = header.window;
        let inside = |(start, count): &(u64, u64)| {
            let to = start.checked_add(*count);
            *count > 0 && *start >= first && to.is_some_and(|to| to <= end)
        };
        let room = header
            .extents
            .iter()
            .try_fold(0_u64, |sum, (_, count)| sum.checked_add(*count));
        // No window is so long that the sectors of its records overflow.
        let countable = room.is_some_and(|sectors| sectors < 1 << 32);
        (countable && header.extents.iter().all(inside)).then_some(header)
    }
}
