//! A random order that visits each block of a region exactly once, without a
//! map.
//!
//! fio keeps one bit per block and, where a drawn block was used, takes the
//! next free one. That is 96 MiB for 3 TiB of 4 KiB blocks and each clone. Here
//! the order is a keyed permutation of `0..blocks`: a Feistel network over
//! the smallest power of two that holds the blocks, walked on where it leaves
//! the range (Black and Rogaway 2002, "Ciphers with Arbitrary Finite
//! Domains"). It is a uniform draw without replacement, which fio's is too
//! until the map fills up; then fio's bends towards runs of neighbours and
//! this one does not.
//!
//! An index of b bits is split into a left part of ceil(b/2) and a right part
//! of floor(b/2) bits. Each round xors a hash of one part, under a key drawn
//! from the job's stream, into the other, so that each round can be undone and
//! two indices never meet. The range is more than half of the power of two,
//! so the walk takes less than two steps on average.

use raidlab_random::Stream;

/// Keyed rounds; an even number, so that both parts are changed equally often.
const ROUNDS: usize = 4;

/// A permutation of `0..blocks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permutation {
    blocks: u64,
    right_bits: u32,
    left_mask: u64,
    right_mask: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// A permutation of `0..blocks` (at least 1 block) with keys from `random`.
    pub(crate) fn new(blocks: u64, random: &mut Stream) -> Self {
        let bits = u64::BITS - (blocks - 1).leading_zeros();
        let right_bits = bits / 2;
        Self {
            blocks,
            right_bits,
            left_mask: low_bits(bits - right_bits),
            right_mask: low_bits(right_bits),
            keys: std::array::from_fn(|_| random.next_u64()),
        }
    }

    /// The block at place `index`, which is below `blocks`.
    #[inline]
    pub(crate) fn block(&self, index: u64) -> u64 {
        let mut block = self.step(index);
        while block >= self.blocks {
            block = self.step(block);
        }
        block
    }

    #[inline]
    fn step(&self, index: u64) -> u64 {
        let mut left = index >> self.right_bits;
        let mut right = index & self.right_mask;
        for keys in self.keys.chunks_exact(2) {
            left ^= hash(right, keys[0]) & self.left_mask;
            right ^= hash(left, keys[1]) & self.right_mask;
        }
        left << self.right_bits | right
    }
}

/// The lowest `bits` (0 to 32) bits set.
const fn low_bits(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// Half of a `SplitMix64` finaliser (Steele, Lea and Flood 2014): the upper
/// bits of the product depend on all bits of the part.
#[inline]
const fn hash(part: u64, key: u64) -> u64 {
    let mixed = (part ^ key).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed ^ (mixed >> 32)
}
