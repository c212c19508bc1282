//! The bits of a bitmap: read, set, counted and written as pages.
//!
//! The bytes are kept as they lie on the device: pages of 4 KiB, of which the first begins with the
//! superblock. Bytes beyond the end of a file read as set bits, as mdadm fills them: a chunk of
//! which nothing is known may differ.

use super::header::{BitmapSuperblock, HEADER_BYTES};
use crate::fields::FieldError;
use crate::mutation::{self, Mutation};
use raidlab_units::Sectors;
use std::ops::Range;

/// Bytes of a bitmap's page.
pub const PAGE_BYTES: usize = 4096;

/// The largest bitmap that is read, superblock included: 128 Mi chunks. mdadm
/// chooses chunks so that 128 KiB are enough.
pub const MAXIMUM_BITMAP_BYTES: u64 = 16 << 20;

/// The reason why bytes cannot be used as a bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BitmapError {
    /// A field that the kernel would refuse.
    #[error(transparent)]
    Field(#[from] FieldError),
    /// Fewer bytes than the bitmap needs.
    #[error("a bitmap of {needed} bytes does not fit {given} bytes")]
    Short {
        /// Bytes that the bitmap takes.
        needed: u64,
        /// Bytes given or free at its place.
        given: u64,
    },
    /// A bitmap larger than [`MAXIMUM_BITMAP_BYTES`].
    #[error("a bitmap of {needed} bytes is larger than {MAXIMUM_BITMAP_BYTES}")]
    TooLarge {
        /// Bytes that the bitmap takes.
        needed: u64,
    },
    /// A bitmap whose first sector lies outside the member, in the data or on the superblock.
    #[error("the bitmap at {offset} sectors from the superblock is out of place")]
    OutOfPlace {
        /// Sectors from the superblock to the bitmap, as the superblock says.
        offset: i32,
    },
    /// A bitmap that could not be read from the member.
    #[error("the bitmap cannot be read at byte {offset}")]
    Unreadable {
        /// The first byte that was to be read, counted from the start of the member.
        offset: u64,
    },
}

/// A bitmap in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitmap {
    /// The bitmap's superblock. Size and chunk must not be changed.
    pub superblock: BitmapSuperblock,
    /// Whole pages from the bitmap's start; the first 256 bytes are zeros.
    pages: Vec<u8>,
}

impl Bitmap {
    /// A bitmap with all bits set, up to the end of its last page, as mdadm
    /// writes it, or with none.
    ///
    /// # Errors
    ///
    /// [`BitmapError::TooLarge`].
    pub fn new(superblock: BitmapSuperblock, set: bool) -> Result<Self, BitmapError> {
        let bytes = area(&superblock)?;
        let mut bitmap = Self {
            superblock,
            pages: vec![0; bytes],
        };
        bitmap.fill(set);
        Ok(bitmap)
    }

    /// The bitmap in these bytes: an external bitmap's whole file, or an internal one's
    /// area or more.
    ///
    /// # Errors
    ///
    /// A field out of range, or too few bytes.
    pub fn decode(bytes: &[u8]) -> Result<Self, BitmapError> {
        let given = bytes.len() as u64;
        let short = |needed| BitmapError::Short { needed, given };
        let head = bytes.first_chunk::<HEADER_BYTES>();
        let head = head.ok_or_else(|| short(HEADER_BYTES as u64))?;
        let superblock = BitmapSuperblock::decode(head)?;
        let needed = superblock.bytes();
        let area = area(&superblock)?;
        if given < needed {
            return Err(short(needed));
        }
        // Nothing is known of chunks beyond a file's last byte: their bits are set, as mdadm does.
        let mut pages = bytes[..bytes.len().min(area)].to_vec();
        pages.resize(area, 0xff);
        pages[..HEADER_BYTES].fill(0);
        Ok(Self { superblock, pages })
    }

    /// Returns all bytes: the superblock and whole pages of bits.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        (0..self.page_count())
            .flat_map(|page| self.page(page))
            .collect()
    }

    /// Returns the number of pages of the bitmap.
    #[must_use]
    pub fn page_count(&self) -> usize {
        self.pages.len() / PAGE_BYTES
    }

    /// Returns the 4 KiB of page `page`; the first contains the superblock. Zeros for a page
    /// beyond the last.
    #[must_use]
    pub fn page(&self, page: usize) -> [u8; PAGE_BYTES] {
        let mut bytes = [0; PAGE_BYTES];
        let start = page.saturating_mul(PAGE_BYTES);
        if let Some(source) = self.pages.get(start..start.saturating_add(PAGE_BYTES)) {
            bytes.copy_from_slice(source);
        }
        if page == 0 {
            bytes[..HEADER_BYTES].copy_from_slice(&self.superblock.encode());
        }
        bytes
    }

    /// Returns the number of chunks, that is, of bits that count.
    #[must_use]
    pub fn chunks(&self) -> u64 {
        self.superblock.chunks()
    }

    /// Returns the chunks that hold any of these sectors.
    #[must_use]
    pub fn chunks_of(&self, start: Sectors, count: Sectors) -> Range<u64> {
        let size = self.chunk_sectors();
        let end = start.0.saturating_add(count.0).div_ceil(size);
        start.0 / size..end.min(self.chunks())
    }

    /// Returns the sectors of a chunk.
    #[must_use]
    pub fn chunk_sectors(&self) -> u64 {
        (self.superblock.chunk.0 / 512).max(1)
    }

    /// Returns the page that holds a chunk's bit.
    #[must_use]
    pub fn page_of(&self, chunk: u64) -> usize {
        let byte = chunk / 8 + HEADER_BYTES as u64;
        usize::try_from(byte / PAGE_BYTES as u64).unwrap_or(usize::MAX)
    }

    /// Whether a chunk's bit is set; `false` beyond the last chunk.
    #[must_use]
    pub fn test(&self, chunk: u64) -> bool {
        self.byte_of(chunk)
            .is_some_and(|index| self.pages[index] & mask(chunk) != 0)
    }

    /// Sets a chunk's bit; returns whether it was clear. No effect beyond the last chunk.
    pub fn set(&mut self, chunk: u64) -> bool {
        let clear = self.byte_of(chunk).filter(|_| !self.test(chunk));
        if let Some(index) = clear {
            self.pages[index] |= mask(chunk);
        }
        clear.is_some()
    }

    /// Sets the bit of each of these chunks to the value that `set` returns for it. Chunks beyond
    /// the last one of the bitmap are left out.
    pub fn assign(&mut self, chunks: Range<u64>, mut set: impl FnMut(u64) -> bool) {
        for chunk in chunks.start..chunks.end.min(self.chunks()) {
            let Some(byte) = index_of(chunk).and_then(|index| self.pages.get_mut(index)) else {
                return;
            };
            match set(chunk) {
                true => *byte |= mask(chunk),
                false => *byte &= !mask(chunk),
            }
        }
    }

    /// Sets or clears the bits of all chunks.
    pub fn fill(&mut self, set: bool) {
        self.pages[HEADER_BYTES..].fill(if set { 0xff } else { 0 });
    }

    /// Returns the number of chunks whose bits are set.
    #[must_use]
    pub fn count_set(&self) -> u64 {
        self.runs().map(|run| run.end - run.start).sum()
    }

    /// Returns the chunks whose bits are set, as ascending ranges with gaps between them.
    pub fn runs(&self) -> impl Iterator<Item = Range<u64>> {
        let unread = u64::from(mutation::is(Mutation::LastBitUnread));
        let chunks = self.chunks().saturating_sub(unread);
        let mut next = 0;
        std::iter::from_fn(move || {
            let start = self.seek(next, true);
            if start >= chunks {
                return None;
            }
            let end = self.seek(start, false).min(chunks);
            next = end;
            Some(start..end)
        })
    }

    /// Returns the sectors whose chunks' bits are set, as ascending ranges `start..end` with gaps
    /// between them, cut at the end of the sectors that the bitmap covers.
    pub fn set_spans(&self) -> impl Iterator<Item = Range<Sectors>> {
        let size = self.chunk_sectors();
        let end = self.superblock.sync_size;
        self.runs().map(move |run| {
            Sectors(run.start * size)..end.min(Sectors(run.end.saturating_mul(size)))
        })
    }

    /// Returns those of [`Self::set_spans`] that have to be synchronised when the array starts
    /// (`md_bitmap_init_from_disk`): a set bit counts only if its chunk reaches beyond
    /// `in_sync_below`, the array's `resync_offset`. For an array that has missing members, and has
    /// set bits since all of them were present (`events_cleared` differs from its events), pass 0:
    /// then every set bit counts, for the missing member's sake.
    pub fn needed_spans(&self, in_sync_below: Sectors) -> impl Iterator<Item = Range<Sectors>> {
        let size = self.chunk_sectors();
        // The first chunk that ends beyond that sector; even the last chunk counts as a whole one.
        let before = u64::from(!mutation::is(Mutation::NeededFromNext));
        let first = Sectors(
            (in_sync_below.0.div_ceil(size))
                .saturating_sub(before)
                .saturating_mul(size),
        );
        self.set_spans()
            .filter(move |span| span.end > first)
            .map(move |span| span.start.max(first)..span.end)
            .filter(|span| span.start < span.end)
    }

    /// Returns the first chunk from `from` on whose bit is `set`.
    fn seek(&self, from: u64, set: bool) -> u64 {
        let nothing = if set { 0 } else { 0xff };
        let chunks = self.chunks();
        let mut chunk = from;
        while chunk < chunks {
            if chunk.is_multiple_of(8)
                && self
                    .byte_of(chunk)
                    .is_some_and(|index| self.pages[index] == nothing)
            {
                chunk += 8;
            } else if self.test(chunk) == set {
                return chunk;
            } else {
                chunk += 1;
            }
        }
        chunk
    }

    /// Returns the index of the byte with a chunk's bit, if the bitmap has one.
    fn byte_of(&self, chunk: u64) -> Option<usize> {
        let index = index_of(chunk).filter(|index| *index < self.pages.len())?;
        (chunk < self.chunks()).then_some(index)
    }
}

/// Returns the index of the byte that a chunk's bit has or would have.
fn index_of(chunk: u64) -> Option<usize> {
    usize::try_from(chunk / 8).ok()?.checked_add(HEADER_BYTES)
}

/// Returns a chunk's bit within its byte.
fn mask(chunk: u64) -> u8 {
    match mutation::is(Mutation::BitsMirrored) {
        true => 0x80 >> (chunk % 8),
        false => 1 << (chunk % 8),
    }
}

/// Returns the bytes of the whole pages that hold the bitmap.
fn area(superblock: &BitmapSuperblock) -> Result<usize, BitmapError> {
    let needed = superblock.bytes();
    if needed > MAXIMUM_BITMAP_BYTES {
        return Err(BitmapError::TooLarge { needed });
    }
    let bytes = usize::try_from(needed).map_err(|_| BitmapError::TooLarge { needed })?;
    Ok(bytes.next_multiple_of(PAGE_BYTES))
}
