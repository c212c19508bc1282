//! Writes that leave a solid-state disk as after long random writes, in little more than one pass
//! (fio `sprandom`, sprandom.c).
//!
//! In a disk at the end of long random writes the blocks of flash hold more or fewer valid pages,
//! the oldest fewest. By P. Desnoyers, "Analytic Models of SSD Write Performance", ACM Transactions
//! on Storage 8(2), 2012, the product of the number of valid pages and of the number of blocks with
//! so many is constant; the least is `1 - 1/A`, where `A` is the write amplification, about
//! `0.5/p + 0.7` for over-provisioning `p`.
//!
//! The pass visits every block once in random order and is divided into parts as large as the
//! disk's flash, over-provisioning included, divided by their number. Of each part's blocks the
//! share that is to be stale in the end is written again at the start of the next part, or at its
//! end where the disk's cache would hide it.

use crate::permutation::Permutation;
use crate::shape::Distribution;
use raidlab_random::Stream;
use raidlab_units::Bytes;
use std::collections::VecDeque;

/// The number of parts into which shares of stale blocks are divided.
const PARTS: u64 = 10_000;

/// The state of a pass.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Preconditioning {
    order: Permutation,
    /// The number of visited blocks, and of all blocks.
    visited: u64,
    blocks: u64,
    /// The share of blocks of each part that is to be stale in the end, out of [`PARTS`].
    stale: Vec<u64>,
    part: usize,
    writes_of_part: u64,
    /// The number of new blocks that the part still visits.
    left: u64,
    deferred: bool,
    /// The blocks to be written again, now and in the next part.
    again: VecDeque<u64>,
    staged: VecDeque<u64>,
}

impl Preconditioning {
    /// Creates a pass over `blocks` blocks of `align` bytes; `None` unless
    /// `distribution` is [`Distribution::Preconditioning`].
    pub(super) fn new(
        distribution: &Distribution,
        blocks: u64,
        align: u64,
        random: &mut Stream,
    ) -> Option<Self> {
        let &Distribution::Preconditioning {
            over_provisioning_millionths,
            regions,
            cache,
        } = distribution
        else {
            return None;
        };
        let bytes = distribution.bytes_to_write(blocks * align, align)?;
        let writes_of_part = bytes / u64::from(regions.max(1)) / align;
        Some(Self {
            order: Permutation::new(blocks, random),
            visited: 0,
            blocks,
            stale: stale_shares(regions, f64::from(over_provisioning_millionths) / 1e6),
            part: 0,
            writes_of_part,
            left: writes_of_part,
            deferred: cache > Bytes(0),
            again: VecDeque::new(),
            staged: VecDeque::new(),
        })
    }

    /// The next block; `None` at the end of the pass.
    pub(super) fn next(&mut self, random: &mut Stream) -> Option<u64> {
        if (!self.deferred || self.left == 0)
            && let Some(block) = self.again.pop_front()
        {
            self.stage(block, random);
            return Some(block);
        }
        if self.left == 0 {
            if self.part >= self.stale.len() {
                return None;
            }
            self.part += 1;
            self.left = self.writes_of_part.saturating_sub(self.staged.len() as u64);
            self.again.append(&mut self.staged);
        }
        if self.visited == self.blocks {
            return self.again.pop_front().filter(|_| self.deferred);
        }
        let block = self.order.block(self.visited);
        self.visited += 1;
        self.left = self.left.saturating_sub(1);
        self.stage(block, random);
        Some(block)
    }

    /// Draws whether a block is to come again.
    fn stage(&mut self, block: u64, random: &mut Stream) {
        let share = self.stale.get(self.part).copied().unwrap_or(0);
        if random.below(PARTS + 1) <= share {
            self.staged.push_back(block);
        }
    }
}

impl Distribution {
    /// The bytes that a pass writes where these are more than the region: the disk's flash,
    /// over-provisioning included, in whole blocks.
    pub(crate) fn bytes_to_write(&self, region: u64, block: u64) -> Option<u64> {
        let Self::Preconditioning {
            over_provisioning_millionths: more,
            ..
        } = self
        else {
            return None;
        };
        let more = (u128::from(region) * u128::from(*more)).div_ceil(1_000_000);
        let bytes = u64::try_from(more).ok()?.checked_add(region)?;
        Some(bytes - bytes % block.max(1))
    }
}

/// The share of blocks that is to be stale, in each part of the pass, out of [`PARTS`]: the oldest
/// part has the most.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shares of a whole"
)]
fn stale_shares(parts: u32, over_provisioning: f64) -> Vec<u64> {
    let count = f64::from(parts.max(1));
    let least = 1.0 - 1.0 / (0.5 / over_provisioning + 0.7);
    // Valid shares at even distances, and the share of the flash up to each.
    let mut reached = 0.0;
    let curve: Vec<(f64, f64)> = (0..parts)
        .map(|index| {
            let valid = 1.0 - (1.0 - least) * f64::from(index) / (count - 1.0).max(1.0);
            reached += 1.0 / valid;
            (reached, valid)
        })
        .collect();
    let (Some(&first), Some(&last)) = (curve.first(), curve.last()) else {
        return Vec::new();
    };
    let valid_at = |place: f64| {
        let after = curve.iter().position(|&(reached, _)| reached >= place);
        match after {
            None => last.1,
            Some(0) => first.1,
            Some(index) => {
                let (from, to) = (curve[index - 1], curve[index]);
                from.1 + (to.1 - from.1) * (place - from.0) / (to.0 - from.0)
            }
        }
    };
    let shares = (0..parts).map(|index| {
        let step = (last.0 - first.0) / (count - 1.0).max(1.0);
        ((1.0 - valid_at(first.0 + step * f64::from(index))) * 1e4).round() as u64
    });
    let mut shares: Vec<u64> = shares.collect();
    shares.reverse();
    shares
}

#[cfg(test)]
mod tests {
    use super::{Preconditioning, stale_shares};
    use crate::shape::Distribution;
    use raidlab_random::Stream;
    use raidlab_units::Bytes;

    /// By hand for two parts and 15 %: amplification 4.03, so the fewest valid are
    /// 75.2 %.
    #[test]
    fn the_oldest_part_has_most_stale_blocks() {
        assert_eq!(stale_shares(2, 0.15), [2479, 0]);
        let shares = stale_shares(100, 0.15);
        assert_eq!((shares[0], shares[99]), (2479, 0));
        assert!(shares.windows(2).all(|pair| pair[0] >= pair[1]));
    }

    #[test]
    fn every_block_is_written_and_as_many_again_as_there_is_flash() {
        for cache in [0, 1 << 20] {
            let distribution = Distribution::Preconditioning {
                over_provisioning_millionths: 150_000,
                regions: 100,
                cache: Bytes(cache),
            };
            let mut random = Stream::new(3);
            let blocks = 100_000;
            let mut pass = Preconditioning::new(&distribution, blocks, 4096, &mut random).unwrap();
            let mut times = vec![0_u32; 100_000];
            let mut writes = 0_u64;
            while let Some(block) = pass.next(&mut random) {
                times[usize::try_from(block).unwrap()] += 1;
                writes += 1;
                assert!(writes < 2 * blocks, "no end");
            }
            assert!(times.iter().all(|&count| count > 0));
            let again = writes - blocks;
            assert!((11_000..=16_000).contains(&again), "{again}");
        }
    }
}
