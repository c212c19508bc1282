//! Parity of whole blocks, and parity updated for one changed block.

use crate::Kernels;
use crate::block::{Block, MAXIMUM_DATA, PIECE_BYTES, Sources, ZEROS};
use crate::field::power;

impl Kernels {
    /// Computes P: the sum of all data blocks. Without any block, zeros.
    ///
    /// # Panics
    /// When a block's length is not P's, or there are more than [`MAXIMUM_DATA`].
    pub fn generate_p(&self, data: &[impl Block], p: &mut [u8]) {
        Sources::new(data, p.len())
            .present()
            .for_pieces(usize::MAX, |piece, data| {
                self.table.xor(data, &mut p[piece]);
            });
    }

    /// Computes P, and Q: the sum of all data blocks, block `j` times g^j.
    ///
    /// # Panics
    /// As [`Self::generate_p`], and when Q's length is not P's.
    pub fn generate_pq(&self, data: &[impl Block], p: &mut [u8], q: &mut [u8]) {
        assert_eq!(p.len(), q.len(), "length of Q");
        Sources::new(data, p.len()).for_pieces(usize::MAX, |piece, data| {
            self.table.pq(data, &mut p[piece.clone()], &mut q[piece]);
        });
    }

    /// Computes Q alone.
    ///
    /// # Panics
    /// When a block's length is not Q's, or there are more than [`MAXIMUM_DATA`].
    pub fn generate_q(&self, data: &[impl Block], q: &mut [u8]) {
        Sources::new(data, q.len()).for_pieces(usize::MAX, |piece, data| {
            self.table.q(data, &mut q[piece]);
        });
    }

    /// Updates P and Q of a stripe whose data block `index` changed from `old` to `new`. Parity
    /// that is `None` is left alone.
    ///
    /// # Panics
    /// When lengths differ or `index` is not below [`MAXIMUM_DATA`].
    pub fn update(
        &self,
        index: usize,
        old: impl Block,
        new: impl Block,
        mut p: Option<&mut [u8]>,
        mut q: Option<&mut [u8]>,
    ) {
        assert!(
            index < MAXIMUM_DATA,
            "data block {index}: the field allows {MAXIMUM_DATA}"
        );
        let Some(bytes) = p.as_ref().or(q.as_ref()).map(|parity| parity.len()) else {
            return;
        };
        let (old, new) = (old.bytes(), new.bytes());
        for block in [old, new].into_iter().flatten() {
            assert_eq!(block.len(), bytes, "length of the data block");
        }
        let limit = if old.is_some() && new.is_some() {
            usize::MAX
        } else {
            PIECE_BYTES
        };
        let coefficient = power(index);
        let mut start = 0;
        while start < bytes {
            let piece = start..bytes.min(start.saturating_add(limit));
            let [old, new] = [old, new].map(|block| match block {
                Some(block) => &block[piece.clone()],
                None => &ZEROS[..piece.len()],
            });
            start = piece.end;
            let p = p.as_deref_mut().map(|p| &mut p[piece.clone()]);
            let q = q.as_deref_mut().map(|q| &mut q[piece]);
            self.table.update(coefficient, old, new, p, q);
        }
    }
}
