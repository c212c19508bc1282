//! Whether parity fits, and which block is wrong if it does not.
//!
//! Let `s = P + P'` and `t = Q + Q'` be the differences between the parity
//! that is there and the parity of the data. One wrong data block z, wrong by
//! e, gives s = e and t = g^z e in every byte in which it is wrong: both not
//! zero, and t / s = g^z. A wrong P gives t = 0, a wrong Q gives s = 0. So one
//! wrong block explains a set of differences exactly if all of them name the
//! same block ("The mathematics of RAID-6", section 4.3). Two wrong blocks can
//! look like one in a byte; over many bytes that is unlikely.

use crate::Kernels;
use crate::block::{Block, PIECE_BYTES, Sources};
use crate::field::logarithm;

/// Bytes of one sector, in which differences are counted.
pub const SECTOR_BYTES: usize = 512;

/// What [`check`](crate::check) found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Difference {
    /// Bytes in which P does not fit the data.
    pub p_bytes: u64,
    /// 512-byte sectors in which P does not fit; a shorter one at the end
    /// counts.
    pub p_sectors: u64,
    /// Bytes in which Q does not fit the data.
    pub q_bytes: u64,
    /// 512-byte sectors in which Q does not fit.
    pub q_sectors: u64,
    /// The one block that would explain every difference: a data block's
    /// index, the number of data blocks for P, one more for Q. `None` without
    /// a difference, if no single block explains it, and always without Q.
    pub culprit: Option<usize>,
}

impl Difference {
    /// A result without any difference.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.p_bytes == 0 && self.q_bytes == 0
    }
}

/// The blocks that may have caused what was seen so far.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Suspect {
    Nobody,
    One(usize),
    Several,
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
        let mut suspect = Suspect::Nobody;
        let mut made_p = [0; PIECE_BYTES];
        let mut made_q = [0; PIECE_BYTES];
        Sources::new(data, p.len()).for_pieces(PIECE_BYTES, |piece, sources| {
            let (p, q) = (&p[piece.clone()], q.map(|q| &q[piece.clone()]));
            let (made_p, made_q) = (&mut made_p[..piece.len()], &mut made_q[..piece.len()]);
            match q {
                Some(_) => self.table.pq(sources, made_p, made_q),
                None => self.table.xor(sources, made_p),
            }
            let q = q.unwrap_or(made_q);
            if (p, q) != (&*made_p, &*made_q) {
                let made = made_p.chunks(SECTOR_BYTES).zip(made_q.chunks(SECTOR_BYTES));
                let there = p.chunks(SECTOR_BYTES).zip(q.chunks(SECTOR_BYTES));
                for (there, made) in there.zip(made) {
                    compare_sector(there, made, data.len(), &mut found, &mut suspect);
                }
            }
        });
        found.culprit = match suspect {
            // Zeros that nobody stored cannot be wrong.
            Suspect::One(block) if data.get(block).is_none_or(|data| data.bytes().is_some()) => {
                q.map(|_| block)
            }
            _ => None,
        };
        found
    }
}

fn compare_sector(
    there: (&[u8], &[u8]),
    made: (&[u8], &[u8]),
    data_blocks: usize,
    found: &mut Difference,
    suspect: &mut Suspect,
) {
    if there == made {
        return;
    }
    let before = (found.p_bytes, found.q_bytes);
    let p = there.0.iter().zip(made.0);
    let q = there.1.iter().zip(made.1);
    for ((p, made_p), (q, made_q)) in p.zip(q) {
        let (s, t) = (p ^ made_p, q ^ made_q);
        found.p_bytes += u64::from(s != 0);
        found.q_bytes += u64::from(t != 0);
        let seen = match (s, t) {
            (0, 0) => continue,
            (_, 0) => Suspect::One(data_blocks),
            (0, _) => Suspect::One(data_blocks + 1),
            _ => match (255 + logarithm(t) - logarithm(s)) % 255 {
                block if block < data_blocks => Suspect::One(block),
                _ => Suspect::Several,
            },
        };
        *suspect = match *suspect {
            Suspect::Nobody => seen,
            same if same == seen => same,
            _ => Suspect::Several,
        };
    }
    found.p_sectors += u64::from(found.p_bytes > before.0);
    found.q_sectors += u64::from(found.q_bytes > before.1);
}
