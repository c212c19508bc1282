//! Comparison of parity with its data.

use crate::Kernels;
use crate::block::{Block, PIECE_BYTES, Sources};

/// Bytes of one sector, in which differences are counted.
pub const SECTOR_BYTES: usize = 512;

/// The amount of parity that does not fit its data, in sectors of 512 bytes; a shorter sector at
/// the end counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Difference {
    /// Sectors in which P does not fit the data.
    pub p_sectors: u64,
    /// Sectors in which Q does not fit the data.
    pub q_sectors: u64,
}

impl Kernels {
    /// Compares P and Q with the data.
    ///
    /// # Panics
    /// When a block's length is not P's, or there are too many.
    #[must_use]
    pub fn check(&self, data: &[impl Block], p: &[u8], q: Option<&[u8]>) -> Difference {
        if let Some(q) = q {
            assert_eq!(q.len(), p.len(), "length of Q");
        }
        let mut found = Difference::default();
        let mut made_p = [0; PIECE_BYTES];
        let mut made_q = [0; PIECE_BYTES];
        Sources::new(data, p.len()).for_pieces(PIECE_BYTES, |piece, sources| {
            let (p, q) = (&p[piece.clone()], q.map(|q| &q[piece.clone()]));
            let (made_p, made_q) = (&mut made_p[..piece.len()], &mut made_q[..piece.len()]);
            match q {
                Some(q) => {
                    self.table.pq(sources, made_p, made_q);
                    found.q_sectors += different_sectors(q, made_q);
                }
                None => self.table.xor(sources, made_p),
            }
            found.p_sectors += different_sectors(p, made_p);
        });
        found
    }
}

fn different_sectors(there: &[u8], made: &[u8]) -> u64 {
    if there == made {
        return 0;
    }
    let sectors = there.chunks(SECTOR_BYTES).zip(made.chunks(SECTOR_BYTES));
    sectors.map(|(there, made)| u64::from(there != made)).sum()
}
