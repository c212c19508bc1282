//! A random order that visits each block of a region exactly once, without a
//! map.
//!
//! fio keeps one bit per block and, where a drawn block was visited already, takes the next free
//! one. That is 96 MiB for 3 TiB of 4 KiB blocks and each clone. Here the order is a keyed
//! permutation of `0..blocks`: the generalised Feistel network of Black and Rogaway (2002, "Ciphers
//! with Arbitrary Finite Domains"). It is a uniform draw without replacement, as fio's is until the
//! map fills up; then fio's draws tend towards runs of neighbours and these do not.
//!
//! The blocks lie row by row in a grid that is about as wide as high. Each round shifts one
//! coordinate cyclically by a hash of the other under a key drawn from the job's stream, so that
//! each round can be undone and two places never meet. The grid holds less than one row more than
//! the blocks; a place after the last block is sent through the network again.

use raidlab_random::Stream;

/// The number of keyed rounds; even, so that both coordinates are shifted equally often.
const ROUNDS: usize = 4;

/// A permutation of `0..blocks`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Permutation {
    blocks: u64,
    /// The sides of the grid of blocks, both at most 2^32.
    width: u64,
    height: u64,
    keys: [u64; ROUNDS],
}

impl Permutation {
    /// A permutation of `0..blocks` (at least 1 block) with keys from `random`.
    pub(crate) fn new(blocks: u64, random: &mut Stream) -> Self {
        let root = blocks.isqrt();
        let width = root + u64::from(root * root < blocks);
        Self {
            blocks,
            width,
            height: blocks.div_ceil(width),
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
        let (mut row, mut column) = (index / self.width, index % self.width);
        for keys in self.keys.chunks_exact(2) {
            row = shift(row, hash(column, keys[0]), self.height);
            column = shift(column, hash(row, keys[1]), self.width);
        }
        row * self.width + column
    }
}

/// Adds a share of `size` given by `fraction` (in units of 2^-32) to `place`, cyclically.
#[inline]
const fn shift(place: u64, fraction: u64, size: u64) -> u64 {
    let moved = place + ((fraction * size) >> 32);
    if moved >= size { moved - size } else { moved }
}

/// A hash of 32 bits: the upper half of a product in the manner of `SplitMix64`'s finaliser
/// (Steele, Lea and Flood 2014), which depends on all lower bits.
#[inline]
const fn hash(coordinate: u64, key: u64) -> u64 {
    let mixed = (coordinate ^ key).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    (mixed ^ (mixed >> 32)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 32
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
        fn large_ranges_are_not_left(
            blocks in prop_oneof![1_u64.., u64::MAX - 9..=u64::MAX],
            seed: u64,
            place: u64,
        ) {
            let order = Permutation::new(blocks, &mut Stream::new(seed));
            for place in [0, place % blocks, blocks - 1] {
                prop_assert!(order.block(place) < blocks);
            }
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
