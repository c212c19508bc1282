//! Recovery of lost blocks from the others.
//!
//! With x and y the places of lost data blocks, P' and Q' the parities of the stripe with zeros
//! there ("The mathematics of RAID-6", section 4):
//!
//! * D, with P: `dx = P + P'`, a sum.
//! * D, without P: `dx = g^-x (Q + Q')`.
//! * D + D: `dx = A (P + P') + B (Q + Q')`, `dy = (P + P') + dx`, with
//!   `A = g^(y-x) / (g^(y-x) + 1)` and `B = g^-x / (g^(y-x) + 1)`.
//! * Lost parity is generated when the data are complete.

use crate::Kernels;
use crate::block::{BlockMut, MAXIMUM_DATA, PIECE_BYTES, Sources};
use crate::field::{inverse, multiply, power};

/// The reason why lost blocks could not be recovered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum RecoverError {
    /// More data blocks than the field allows.
    TooManyBlocks(usize),
    /// A block has another length than the first.
    Length {
        /// The index of the block among those given.
        block: usize,
    },
    /// More than two blocks are lost.
    TooManyLost(usize),
    /// There is no block of that number, or it was named twice.
    NoSuchBlock(usize),
    /// A lost data block is absent, so there is nowhere to write it.
    Absent(usize),
    /// The parity that is left does not suffice.
    NotEnoughParity,
}

impl std::error::Error for RecoverError {}

impl std::fmt::Display for RecoverError {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::TooManyBlocks(count) => {
                write!(
                    formatter,
                    "{count} data blocks where {MAXIMUM_DATA} are allowed"
                )
            }
            Self::Length { block } => {
                write!(
                    formatter,
                    "block {block} has another length than the first block"
                )
            }
            Self::TooManyLost(count) => {
                write!(formatter, "{count} lost blocks where 2 are allowed")
            }
            Self::NoSuchBlock(block) => write!(formatter, "no block {block} that could be lost"),
            Self::Absent(block) => {
                write!(formatter, "lost block {block} has no place to be written")
            }
            Self::NotEnoughParity => formatter.write_str("too little parity is left"),
        }
    }
}

/// A plan of the recovery: the lost data blocks in ascending order, and whether parity must
/// be generated afterwards.
struct Plan {
    data: [Option<usize>; 2],
    p_lost: bool,
    q_lost: bool,
}

impl Kernels {
    /// Recovers the lost blocks and writes them in place.
    ///
    /// `lost` names at most two blocks: an index into `data`, `data.len()` for P, `data.len() +
    /// 1` for Q. A lost parity block may be `None` if it is not wanted; parity that is `None`
    /// is not used.
    ///
    /// # Errors
    /// When the parity given is not enough, or blocks do not fit each other. Nothing has
    /// been written then.
    pub fn recover(
        &self,
        data: &mut [impl BlockMut],
        p: Option<&mut [u8]>,
        q: Option<&mut [u8]>,
        lost: &[usize],
    ) -> Result<(), RecoverError> {
        check_lengths(data, p.as_deref(), q.as_deref())?;
        let plan = Plan::new(data, lost)?;
        let whole_p = p.as_deref().filter(|_| !plan.p_lost);
        let whole_q = q.as_deref().filter(|_| !plan.q_lost);
        match (plan.data, whole_p, whole_q) {
            ([None, _], _, _) => {}
            ([Some(place), None], Some(p), _) => self.recover_by_p(data, p, place),
            ([Some(place), None], None, Some(q)) => self.recover_by_q(data, q, place),
            ([Some(first), Some(second)], Some(p), Some(q)) => {
                self.recover_two(data, p, q, first, second);
            }
            _ => return Err(RecoverError::NotEnoughParity),
        }
        match (p.filter(|_| plan.p_lost), q.filter(|_| plan.q_lost)) {
            (Some(p), Some(q)) => self.generate_pq(data, p, q),
            (Some(p), None) => self.generate_p(data, p),
            (None, Some(q)) => self.generate_q(data, q),
            (None, None) => {}
        }
        Ok(())
    }

    fn recover_by_p(&self, data: &mut [impl BlockMut], p: &[u8], place: usize) {
        let ([lost], sources) = take(data, [place], Some(p), p.len());
        sources.present().for_pieces(usize::MAX, |piece, sources| {
            self.table.xor(sources, &mut lost[piece]);
        });
    }

    fn recover_by_q(&self, data: &mut [impl BlockMut], q: &[u8], place: usize) {
        let by = inverse(power(place));
        let ([lost], sources) = take(data, [place], None, q.len());
        sources.for_pieces(PIECE_BYTES, |piece, sources| {
            let lost = &mut lost[piece.clone()];
            self.table.q(sources, lost);
            self.table.scale_sum(by, &q[piece], lost);
        });
    }

    fn recover_two(
        &self,
        data: &mut [impl BlockMut],
        p: &[u8],
        q: &[u8],
        first: usize,
        second: usize,
    ) {
        let ratio = power(second - first);
        let divisor = inverse(ratio ^ 1);
        let by_p = multiply(ratio, divisor);
        let by_q = multiply(inverse(power(first)), divisor);
        let ([x, y], sources) = take(data, [first, second], None, p.len());
        sources.for_pieces(PIECE_BYTES, |piece, sources| {
            let (x, y) = (&mut x[piece.clone()], &mut y[piece.clone()]);
            self.table.pq(sources, x, y);
            let parity = [&p[piece.clone()], &q[piece]];
            self.table.solve([by_p, by_q], parity, [x, y]);
        });
    }
}

/// Returns the lost blocks to write, and the list of the others with `instead` in the places of
/// the lost ones.
fn take<'a, const LOST: usize>(
    data: &'a mut [impl BlockMut],
    lost: [usize; LOST],
    instead: Option<&'a [u8]>,
    bytes: usize,
) -> ([&'a mut [u8]; LOST], Sources<'a>) {
    let mut taken = [const { None }; LOST];
    let count = data.len();
    let others = data.iter_mut().enumerate().map(|(place, block)| {
        match lost.iter().position(|&lost| lost == place) {
            Some(which) => {
                taken[which] = block.bytes_mut();
                instead
            }
            None => {
                let block = &*block;
                block.bytes()
            }
        }
    });
    let sources = Sources::of(others, count, bytes);
    (
        taken.map(|block| block.expect("the plan names blocks that are present")),
        sources,
    )
}

impl Plan {
    fn new(data: &[impl BlockMut], lost: &[usize]) -> Result<Self, RecoverError> {
        if lost.len() > 2 {
            return Err(RecoverError::TooManyLost(lost.len()));
        }
        if let [first, second] = lost
            && first == second
        {
            return Err(RecoverError::NoSuchBlock(*first));
        }
        let mut plan = Self {
            data: [None; 2],
            p_lost: false,
            q_lost: false,
        };
        for &block in lost {
            match block.checked_sub(data.len()) {
                Some(0) => plan.p_lost = true,
                Some(1) => plan.q_lost = true,
                Some(_) => return Err(RecoverError::NoSuchBlock(block)),
                None if data[block].bytes().is_none() => return Err(RecoverError::Absent(block)),
                None => plan.add(block),
            }
        }
        Ok(plan)
    }

    fn add(&mut self, block: usize) {
        self.data = match self.data {
            [Some(other), _] if other < block => [Some(other), Some(block)],
            [other, _] => [Some(block), other],
        };
    }
}

fn check_lengths(
    data: &[impl BlockMut],
    p: Option<&[u8]>,
    q: Option<&[u8]>,
) -> Result<(), RecoverError> {
    if data.len() > MAXIMUM_DATA {
        return Err(RecoverError::TooManyBlocks(data.len()));
    }
    let mut length = None;
    let blocks = data.iter().map(|block| block.bytes()).chain([p, q]);
    for (block, bytes) in blocks.enumerate() {
        let Some(bytes) = bytes else { continue };
        if *length.get_or_insert(bytes.len()) != bytes.len() {
            return Err(RecoverError::Length { block });
        }
    }
    Ok(())
}
