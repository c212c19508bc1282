//! Random offsets that are not drawn evenly.
//!
//! - **Zipf**: the generator of Gray and others (1994, "Quickly Generating
//!   Billion-Record Synthetic Databases"), which fio uses too. Its sum over all
//!   blocks is taken term by term for the first [`EXACT_TERMS`] and by the
//!   integral after that (the formula of Euler and Maclaurin; the error is below
//!   one part in a million million).
//! - **Pareto**: `(n - 1) * u^(ln h / ln (1 - h))`, so that the share `h` of the
//!   blocks has the share `1 - h` of the requests.
//! - **Normal**: the mean of twelve even draws over the region, moved by up to half of the
//!   deviation, as in fio.
//! - **Zones**: a zone by its share of the requests, then evenly inside.
//!
//! The most frequent blocks of these three are spread over the region in a random order that is the
//! same for a whole job, as fio spreads them by a hash.

mod preconditioning;

use self::preconditioning::Preconditioning;
use crate::permutation::Permutation;
use crate::shape::Distribution;
use raidlab_random::Stream;

/// The number of terms of Zipf's sum that are added one by one.
const EXACT_TERMS: u64 = 10_000;
/// The number of draws whose mean is used as a normal one.
const NORMAL_DRAWS: u64 = 12;
/// The number of parts of a share or an exponent.
const MILLION: f64 = 1e6;

/// Draws block numbers of `0..blocks`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Offsets {
    blocks: u64,
    kind: Kind,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    Even,
    Zipf {
        theta: f64,
        zeta: f64,
        eta: f64,
        spread: Permutation,
    },
    Pareto {
        exponent: f64,
        spread: Permutation,
    },
    Normal {
        /// The largest shift of draws, in blocks.
        deviation: u64,
        spread: Permutation,
    },
    /// Zones: the percentage up to each one's end, its first block, its number of blocks.
    Zones(Vec<(u32, u64, u64)>),
    Sequence {
        blocks: Vec<u64>,
        strides: bool,
        drawn: u64,
    },
    Preconditioning(Option<Box<Preconditioning>>),
}

impl Offsets {
    /// Creates the generator for a region of `blocks` blocks (at least 1) of `align` bytes.
    pub(crate) fn new(
        distribution: &Distribution,
        blocks: u64,
        align: u64,
        random: &mut Stream,
    ) -> Self {
        let kind = match distribution {
            Distribution::Even => Kind::Even,
            Distribution::Zipf { theta_millionths } => {
                let theta = f64::from(*theta_millionths) / MILLION;
                let zeta = harmonic(blocks, theta);
                let eta = (1.0 - (2.0 / float(blocks)).powf(1.0 - theta))
                    / (1.0 - harmonic(2.min(blocks), theta) / zeta);
                let spread = Permutation::new(blocks, random);
                Kind::Zipf {
                    theta,
                    zeta,
                    eta,
                    spread,
                }
            }
            Distribution::Pareto { power_millionths } => {
                let power = f64::from(*power_millionths) / MILLION;
                Kind::Pareto {
                    exponent: power.ln() / (1.0 - power).ln(),
                    spread: Permutation::new(blocks, random),
                }
            }
            Distribution::Normal {
                deviation_millionths,
            } => {
                let deviation = u128::from(blocks) * u128::from(*deviation_millionths);
                let deviation = u64::try_from(deviation / 1_000_000).unwrap_or(u64::MAX);
                Kind::Normal {
                    deviation: deviation.min(blocks / 2),
                    spread: Permutation::new(blocks, random),
                }
            }
            Distribution::Zoned(zones) => {
                let lengths = zones.iter().scan(0, |before, &(share, size)| {
                    let first = percent(blocks, *before);
                    *before += size;
                    Some((share, first, percent(blocks, size).max(1)))
                });
                Kind::Zones(add_up(lengths))
            }
            Distribution::ZonedByLength(zones) => {
                let lengths = zones.iter().scan(0, |before, &(share, length)| {
                    let first = *before / align;
                    *before += length.0;
                    Some((share, first, (*before / align - first).max(1)))
                });
                Kind::Zones(add_up(lengths))
            }
            Distribution::Sequence { blocks, strides } => Kind::Sequence {
                blocks: blocks.clone(),
                strides: *strides,
                drawn: 0,
            },
            Distribution::Preconditioning { .. } => Kind::Preconditioning(
                Preconditioning::new(distribution, blocks, align, random).map(Box::new),
            ),
        };
        Self { blocks, kind }
    }

    /// The number of blocks that can be drawn.
    pub(crate) const fn blocks(&self) -> u64 {
        self.blocks
    }

    /// The next block; `None` where a sequence has left the region, or a preconditioning
    /// pass has ended.
    pub(crate) fn next(&mut self, random: &mut Stream) -> Option<u64> {
        let blocks = self.blocks;
        let block = match &mut self.kind {
            Kind::Even => random.below(blocks),
            Kind::Zipf {
                theta,
                zeta,
                eta,
                spread,
            } => {
                let draw = fraction(random);
                let rank = if draw * *zeta < 1.0 {
                    0
                } else if draw * *zeta < 1.0 + 0.5_f64.powf(*theta) {
                    1
                } else {
                    let power = 1.0 / (1.0 - *theta);
                    whole(float(blocks) * (*eta * draw - *eta + 1.0).powf(power))
                };
                spread.block(rank.min(blocks - 1))
            }
            Kind::Pareto { exponent, spread } => {
                let rank = whole(float(blocks - 1) * fraction(random).powf(*exponent));
                spread.block(rank.min(blocks - 1))
            }
            Kind::Normal { deviation, spread } => {
                let draws = (0..NORMAL_DRAWS).map(|_| u128::from(random.below(blocks)));
                let sum: u128 = draws.sum();
                let mean = u64::try_from(sum / u128::from(NORMAL_DRAWS)).unwrap_or(u64::MAX);
                let moved = mean + random.below(*deviation);
                spread.block(moved.saturating_sub(*deviation / 2).min(blocks - 1))
            }
            Kind::Zones(zones) => {
                let draw = u32::try_from(random.below(100)).unwrap_or(99);
                let zone = zones.iter().find(|&&(until, _, _)| draw < until);
                let &(_, first, length) = zone.or(zones.last())?;
                (first + random.below(length)).min(blocks - 1)
            }
            Kind::Sequence {
                blocks: list,
                strides,
                drawn,
            } => {
                let length = list.len() as u64;
                let place = usize::try_from(*drawn % length).unwrap_or(0);
                let further = if *strides {
                    *drawn / length * length
                } else {
                    0
                };
                *drawn += 1;
                return Some(list[place] + further).filter(|&block| block < blocks);
            }
            Kind::Preconditioning(pass) => return pass.as_mut()?.next(random),
        };
        Some(block)
    }
}

/// Turns shares into cumulative shares; fio's draws of 1 to 100 fall into the first zone whose
/// sum reaches them.
fn add_up(zones: impl Iterator<Item = (u32, u64, u64)>) -> Vec<(u32, u64, u64)> {
    let summed = zones.scan(0, |sum, (share, first, length)| {
        *sum += share;
        Some((*sum, first, length))
    });
    summed.collect()
}

fn percent(of: u64, percent: u32) -> u64 {
    let part = u128::from(of) * u128::from(percent) / 100;
    u64::try_from(part).unwrap_or(u64::MAX)
}

/// The sum of `n^-theta` for n from 1 to `count`.
fn harmonic(count: u64, theta: f64) -> f64 {
    let term = |n: f64| n.powf(-theta);
    let exact: f64 = (1..=count.min(EXACT_TERMS)).map(|n| term(float(n))).sum();
    if count <= EXACT_TERMS {
        return exact;
    }
    let (from, to) = (float(EXACT_TERMS), float(count));
    let integral = (to.powf(1.0 - theta) - from.powf(1.0 - theta)) / (1.0 - theta);
    exact
        + integral
        + (term(to) - term(from)) / 2.0
        + theta / 12.0 * (from.powf(-theta - 1.0) - to.powf(-theta - 1.0))
}

/// A random number from 0 up to 1.
fn fraction(random: &mut Stream) -> f64 {
    float(random.next_u64() >> 11) / float(1 << 53)
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a draw among more than 2^53 blocks may be off by a few"
)]
const fn float(number: u64) -> f64 {
    number as f64
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "rounded down on purpose; never negative"
)]
const fn whole(number: f64) -> u64 {
    number as u64
}

#[cfg(test)]
mod tests {
    use super::{Offsets, harmonic};
    use crate::shape::Distribution;
    use raidlab_random::Stream;
    use std::collections::BTreeMap;

    const BLOCKS: u64 = 10_000;
    const DRAWS: u64 = 100_000;

    /// How often each block came, most wanted first.
    fn counts(distribution: &Distribution) -> Vec<u64> {
        let mut random = Stream::new(7);
        let mut offsets = Offsets::new(distribution, BLOCKS, 4096, &mut random);
        let mut counts: BTreeMap<u64, u64> = BTreeMap::new();
        for _ in 0..DRAWS {
            let block = offsets.next(&mut random).expect("no end");
            assert!(block < BLOCKS);
            *counts.entry(block).or_default() += 1;
        }
        let mut counts: Vec<u64> = counts.into_values().collect();
        counts.sort_unstable_by(|one, other| other.cmp(one));
        counts
    }

    #[test]
    fn zipf_wants_blocks_by_the_power_of_their_rank() {
        for theta_millionths in [500_000, 900_000, 1_200_000] {
            let theta = f64::from(theta_millionths) / 1e6;
            let counts = counts(&Distribution::Zipf { theta_millionths });
            let expected = 100_000.0 / harmonic(BLOCKS, theta);
            #[expect(clippy::cast_precision_loss, reason = "small")]
            let first = counts[0] as f64;
            assert!(
                (first / expected - 1.0).abs() < 0.15,
                "{theta}: {first} {expected}"
            );
        }
    }

    #[test]
    fn the_sum_by_the_integral_is_the_sum() {
        for theta in [0.5, 0.9, 1.2] {
            let exact: f64 = (1..=50_000_u32).map(|n| f64::from(n).powf(-theta)).sum();
            assert!((harmonic(50_000, theta) / exact - 1.0).abs() < 1e-10);
        }
    }

    #[test]
    fn pareto_gives_a_fifth_of_the_blocks_four_fifths_of_the_requests() {
        let counts = counts(&Distribution::Pareto {
            power_millionths: 200_000,
        });
        let most: u64 = counts.iter().take(2_000).sum();
        assert!((78_000..=86_000).contains(&most), "{most}");
    }

    #[test]
    fn zones_have_their_shares() {
        let mut random = Stream::new(7);
        let zones = Distribution::Zoned(vec![(50, 5), (30, 15), (20, 80)]);
        let mut offsets = Offsets::new(&zones, BLOCKS, 4096, &mut random);
        let mut counts = [0_u64; 3];
        for _ in 0..DRAWS {
            match offsets.next(&mut random).expect("no end") {
                ..500 => counts[0] += 1,
                500..2_000 => counts[1] += 1,
                _ => counts[2] += 1,
            }
        }
        for (count, share) in counts.into_iter().zip([50_000, 30_000, 20_000]) {
            assert!(count.abs_diff(share) < 1_000, "{count} {share}");
        }
    }

    #[test]
    fn normal_draws_lie_about_one_rank() {
        let counts = counts(&Distribution::Normal {
            deviation_millionths: 10_000,
        });
        // The deviation of the mean of twelve even draws is a twelfth.
        let most: u64 = counts.iter().take(3_334).sum();
        assert!((94_000..=97_000).contains(&most), "{most}");
    }

    #[test]
    fn a_sequence_comes_again_and_strides() {
        let mut random = Stream::new(7);
        let mut draw = |strides: bool| -> Vec<Option<u64>> {
            let blocks = vec![2, 0, 1];
            let sequence = Distribution::Sequence { blocks, strides };
            let mut offsets = Offsets::new(&sequence, 5, 4096, &mut random);
            (0..5).map(|_| offsets.next(&mut random)).collect()
        };
        assert_eq!(draw(false), [2, 0, 1, 2, 0].map(Some));
        assert_eq!(draw(true), [Some(2), Some(0), Some(1), None, Some(3)]);
    }
}
