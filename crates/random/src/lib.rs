//! Portable random streams: the same seed gives the same bytes on every
//! machine, for ever.
//!
//! The `rand` crate promises reproducible output only for named algorithms,
//! not for its distributions, so the little that a simulator needs stands
//! here: `SplitMix64` to spread a seed (Steele, Lea and Flood 2014),
//! `xoshiro256++` to draw from (Blackman and Vigna 2019), and bounded integers
//! by multiplication with rejection (Lemire 2019). Every component forks its
//! own stream by name and index, so that one more disk does not shift the
//! numbers of the others.

use raidlab_units::{FNV_BASIS, fnv1a};

/// A stream of pseudo-random numbers (`xoshiro256++`).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    state: [u64; 4],
}

/// One step of `SplitMix64`: advances `state` and returns the next word.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut word = *state;
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

impl Stream {
    /// A stream from a seed; equal seeds give equal streams.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut spread = seed;
        Self {
            state: std::array::from_fn(|_| split_mix(&mut spread)),
        }
    }

    /// An independent stream named by `label` and `index`. It depends on the
    /// seed of `self` and on how much was drawn from it, and draws nothing.
    #[must_use]
    pub fn fork(&self, label: &str, index: u64) -> Self {
        // FNV-1a over the label, then mixed with the parent's state: a fork
        // must differ from its siblings in every bit of its state.
        let mut spread = fnv1a(FNV_BASIS, label.bytes().chain(index.to_le_bytes()));
        Self {
            state: std::array::from_fn(|word| {
                let mut mixed = self.state[word] ^ split_mix(&mut spread);
                split_mix(&mut mixed)
            }),
        }
    }

    /// The next 64 random bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [s0, s1, s2, s3] = self.state;
        let result = s0.wrapping_add(s3).rotate_left(23).wrapping_add(s0);
        let (mut n2, mut n3) = (s2 ^ s0, s3 ^ s1);
        let (n1, n0) = (s1 ^ n2, s0 ^ n3);
        n2 ^= s1 << 17;
        n3 = n3.rotate_left(45);
        self.state = [n0, n1, n2, n3];
        result
    }

    /// A uniform integer in `0..bound`. A bound of 0 or 1 gives 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        if bound <= 1 {
            return 0;
        }
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            #[expect(
                clippy::cast_possible_truncation,
                reason = "the halves of the product are what the method uses"
            )]
            let (high, low) = ((product >> 64) as u64, product as u64);
            // The remainder is below the bound: most draws need no division.
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return high;
            }
        }
    }

    /// True in `percent` of 100 draws; 100 and more is always true.
    #[inline]
    pub fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < u64::from(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::Stream;

    /// From the authors' reference program for xoshiro256++ with the state
    /// 1, 2, 3, 4 (also the test vector of the `rand_xoshiro` crate).
    #[test]
    fn xoshiro_gives_the_reference_words() {
        let mut stream = Stream {
            state: [1, 2, 3, 4],
        };
        let words: Vec<u64> = (0..4).map(|_| stream.next_u64()).collect();
        assert_eq!(
            words,
            [
                41_943_041,
                58_720_359,
                3_588_806_011_781_223,
                3_591_011_842_654_386
            ]
        );
    }

    /// Stored runs quote their seed: this output must never change.
    #[test]
    fn seeded_and_forked_streams_are_pinned() {
        let mut stream = Stream::new(42);
        let first = stream.next_u64();
        let mut fork = Stream::new(42).fork("disk", 3);
        assert_eq!((first, fork.next_u64()), PINNED);
    }

    const PINNED: (u64, u64) = (15_021_278_609_987_233_951, 6_510_416_049_925_161_449);

    #[test]
    fn forks_differ_by_label_and_index() {
        let root = Stream::new(7);
        let words: Vec<u64> = [("disk", 0), ("disk", 1), ("job", 0)]
            .iter()
            .map(|&(label, index)| root.fork(label, index).next_u64())
            .collect();
        assert!(words[0] != words[1] && words[0] != words[2] && words[1] != words[2]);
    }

    #[test]
    fn bounded_draws_are_uniform() {
        let mut stream = Stream::new(1);
        let mut counts = [0_u32; 7];
        for _ in 0..70_000 {
            counts[usize::try_from(stream.below(7)).expect("below seven")] += 1;
        }
        // Six standard deviations of a binomial with p = 1/7 are 556.
        assert!(counts.iter().all(|&count| count.abs_diff(10_000) < 556));
        assert_eq!((stream.below(0), stream.below(1)), (0, 0));
    }
}
