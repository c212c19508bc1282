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

#[cfg(test)]
mod tests {
    use super::Permutation;
    use proptest::prelude::*;
    use raidlab_random::Stream;

    proptest! {
        #[test]
        fn each_block_comes_exactly_once(blocks in 1_u64..5_000, seed: u64) {
            let order = Permutation::new(blocks, &mut Stream::new(seed));
            let mut seen: Vec<u64> = (0..blocks).map(|index| order.block(index)).collect();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..blocks));
        }

        #[test]
        fn large_ranges_are_not_left(blocks in 1_u64.., seed: u64, place: u64) {
            let order = Permutation::new(blocks, &mut Stream::new(seed));
            prop_assert!(order.block(place % blocks) < blocks);
        }
    }

    /// Seek distances are what a disk model sees of the order: those of the
    /// permutation must be those of independent draws, whose distance has the
    /// mean n/3 and the variance n^2/18.
    #[test]
    fn seeks_are_as_long_as_those_of_independent_draws() {
        let draws = 100_000_u64;
        for (blocks, seed) in [
            (805_303_808_u64, 1),
            (805_303_808, 2),
            (1 << 30, 3),
            (1_000_000, 4),
        ] {
            let order = Permutation::new(blocks, &mut Stream::new(seed));
            for stride in [1, 2, 64] {
                let total: u128 = (0..draws)
                    .map(|index| {
                        let distance = order.block(index).abs_diff(order.block(index + stride));
                        u128::from(distance)
                    })
                    .sum();
                // In thousandths of the range: 333 and, with 100 000 draws,
                // six standard deviations of 0.75 each.
                let mean = total * 1_000 / u128::from(draws * blocks);
                assert!(
                    (328..=338).contains(&mean),
                    "{blocks} {seed} {stride}: {mean}"
                );
            }
        }
    }

    /// Sixteen bins over the range, and the same over pairs of neighbours in
    /// the order: all equally full.
    #[test]
    fn places_and_pairs_of_places_are_even() {
        let (blocks, draws) = (805_303_808_u64, 256_000_u64);
        let order = Permutation::new(blocks, &mut Stream::new(5));
        let bin = |index: u64| usize::try_from(order.block(index) * 16 / blocks).expect("a bin");
        let mut pairs = [0_u64; 256];
        for index in 0..draws {
            pairs[bin(index) * 16 + bin(index + 1)] += 1;
        }
        // 1000 each, standard deviation 32.
        assert!(pairs.iter().all(|count| count.abs_diff(1_000) < 190));
    }
}
