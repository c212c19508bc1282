//! Data blocks in the forms that callers have, and the list of slices that the kernels want.
//!
//! An absent block counts as zeros. At the upper end of the list it needs no work at all;
//! in between, the kernels read [`ZEROS`] in its place, which limits one call to a piece
//! of that length.

use std::ops::Range;

/// The most data blocks that Q can tell apart: the order of the generator.
pub const MAXIMUM_DATA: usize = 255;

/// Bytes of one piece where work is done piece by piece: small enough that
/// the pieces of all blocks stay in the first-level cache, for usual widths.
pub(crate) const PIECE_BYTES: usize = 4096;

/// Zeros that are read in place of an absent block.
pub(crate) static ZEROS: [u8; PIECE_BYTES] = [0; PIECE_BYTES];

/// A data block to read: a slice, or nothing, which counts as zeros.
pub trait Block {
    /// Returns the block's bytes; `None` stands for zeros.
    fn bytes(&self) -> Option<&[u8]>;
}

/// A data block to read or, if it is lost, to write.
pub trait BlockMut: Block {
    /// Returns the block's bytes; `None` stands for zeros, which cannot be lost.
    fn bytes_mut(&mut self) -> Option<&mut [u8]>;
}

impl Block for &[u8] {
    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl Block for &mut [u8] {
    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl BlockMut for &mut [u8] {
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(self)
    }
}

impl Block for Vec<u8> {
    fn bytes(&self) -> Option<&[u8]> {
        Some(self)
    }
}

impl BlockMut for Vec<u8> {
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        Some(self)
    }
}

impl<B: Block> Block for Option<B> {
    fn bytes(&self) -> Option<&[u8]> {
        self.as_ref().and_then(Block::bytes)
    }
}

impl<B: BlockMut> BlockMut for Option<B> {
    fn bytes_mut(&mut self) -> Option<&mut [u8]> {
        self.as_mut().and_then(BlockMut::bytes_mut)
    }
}

/// The longest list of blocks that needs no allocation.
const FEW: usize = 32;

/// Data blocks in the order of their exponents, absent ones at the upper end
/// left out.
pub(crate) struct Sources<'a> {
    few: [Option<&'a [u8]>; FEW],
    many: Vec<Option<&'a [u8]>>,
    count: usize,
    bytes: usize,
    absent: usize,
}

impl<'a> Sources<'a> {
    /// A list of blocks that all have `bytes` bytes.
    ///
    /// # Panics
    /// When a block has another length, or there are too many.
    pub(crate) fn new<B: Block>(data: &'a [B], bytes: usize) -> Self {
        Self::of(data.iter().map(Block::bytes), data.len(), bytes)
    }

    /// A list of `count` blocks from an iterator; otherwise as [`Self::new`].
    pub(crate) fn of(
        data: impl Iterator<Item = Option<&'a [u8]>>,
        count: usize,
        bytes: usize,
    ) -> Self {
        assert!(
            count <= MAXIMUM_DATA,
            "{count} data blocks: the field allows {MAXIMUM_DATA}"
        );
        let mut few = [None; FEW];
        let mut many = Vec::new();
        if count > FEW {
            many.resize(count, None);
        }
        let list = if count > FEW { &mut many[..] } else { &mut few };
        let (mut used, mut present) = (0, 0);
        for (place, (entry, block)) in list.iter_mut().zip(data).enumerate() {
            let Some(block) = block else { continue };
            assert_eq!(block.len(), bytes, "length of data block {place}");
            *entry = Some(block);
            used = place + 1;
            present += 1;
        }
        Self {
            few,
            many,
            count: used,
            bytes,
            absent: used - present,
        }
    }

    fn list(&self) -> &[Option<&'a [u8]>] {
        if self.many.is_empty() {
            &self.few[..self.count]
        } else {
            &self.many[..self.count]
        }
    }

    /// Calls `work` for each piece with the slices of all blocks in that piece,
    /// absent ones as zeros. Pieces have at most `limit` bytes.
    pub(crate) fn for_pieces(&self, limit: usize, mut work: impl FnMut(Range<usize>, &[&[u8]])) {
        let limit = if self.absent == 0 {
            limit
        } else {
            limit.min(PIECE_BYTES)
        };
        let mut few: [&[u8]; FEW] = [&[]; FEW];
        let mut many: Vec<&[u8]> = Vec::new();
        if self.count > FEW {
            many.resize(self.count, &[]);
        }
        let slices = if self.count > FEW {
            &mut many[..]
        } else {
            &mut few[..self.count]
        };
        let mut start = 0;
        while start < self.bytes {
            let piece = start..self.bytes.min(start.saturating_add(limit));
            for (slice, block) in slices.iter_mut().zip(self.list()) {
                *slice = match block {
                    Some(block) => &block[piece.clone()],
                    None => &ZEROS[..piece.len()],
                };
            }
            start = piece.end;
            work(piece, slices);
        }
    }

    /// Returns the list without the absent blocks: for sums in which places do not count.
    pub(crate) fn present(mut self) -> Self {
        if self.absent > 0 {
            let list = if self.many.is_empty() {
                &mut self.few[..self.count]
            } else {
                &mut self.many[..self.count]
            };
            let mut used = 0;
            for place in 0..list.len() {
                if list[place].is_some() {
                    list.swap(used, place);
                    used += 1;
                }
            }
            self.count = used;
            self.absent = 0;
        }
        self
    }
}
