//! Does a series drift?
//!
//! Mann and Kendall's test counts the pairs that rise less the pairs that
//! fall (S); the size of the drift is the median of all pairwise slopes
//! (Theil 1950, Sen 1968). Neither takes the values as normal, and one wild
//! value moves neither much. Up to 20 values without ties the probability is
//! exact, from the number of orders with so many falling pairs; otherwise the
//! normal approximation with Kendall's correction for ties and for
//! continuity.
//!
//! The test takes the values as independent. Seconds of a throughput series
//! are not: their resemblance alone passes for drift. Average them to batches
//! first ([`crate::batch_means`] says how many), or read the slope only.

use crate::distributions::normal_cdf;
use crate::sample::{Sample, mean, median_of_sorted};

/// Fewest values: with three, the most extreme order has probability 1/3.
const LEAST_VALUES: usize = 4;
/// Longer series are averaged to at most so many values: pairs are quadratic.
const MOST_VALUES: usize = 2000;
/// Longest series with an exact probability.
const MOST_EXACT: usize = 20;

/// Drift of a series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Trend {
    /// Median slope, per step from one value to the next, in the unit of the
    /// values.
    pub slope: f64,
    /// Slope over the whole series, from the first value to the last, as a
    /// fraction of the median; `None` for a median of zero.
    pub relative_change: Option<f64>,
    /// Kendall's S over its largest value, -1 (always falls) to 1.
    pub tau: f64,
    /// Two-sided probability of so much drift in values without any.
    pub p_value: f64,
    /// Neighbours averaged to one value before testing; 1 up to 2000 values.
    pub averaged: usize,
}

impl Trend {
    /// True when the probability is below `alpha`, such as 0.05.
    #[must_use]
    pub fn is_significant(&self, alpha: f64) -> bool {
        self.p_value < alpha
    }
}

/// Why there is no trend test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoTrend {
    /// Too few values to tell drift from chance.
    #[error("{values} values are too few for a trend, at least {LEAST_VALUES} are needed")]
    TooFew {
        /// The number of values that the series has.
        values: usize,
    },
}

/// Drift of `series`, whose values stand in order at equal distances.
///
/// With 4 values even a steady rise has p = 1/12; 5 are the fewest that can
/// fall below 0.05.
///
/// # Errors
/// Fewer than 4 values.
pub fn trend(series: &Sample) -> Result<Trend, NoTrend> {
    if series.len() < LEAST_VALUES {
        return Err(NoTrend::TooFew {
            values: series.len(),
        });
    }
    let averaged = series.len().div_ceil(MOST_VALUES);
    let values: Vec<f64> = if averaged == 1 {
        series.values().to_vec()
    } else {
        series.values().chunks_exact(averaged).map(mean).collect()
    };
    let count = values.len();
    let mut slopes = Vec::with_capacity(count * (count - 1) / 2);
    let mut score = 0_i64;
    for (later, y) in values.iter().enumerate() {
        for (earlier, x) in values[..later].iter().enumerate() {
            score += i64::from(y > x) - i64::from(y < x);
            slopes.push((y - x) / (later - earlier) as f64);
        }
    }
    slopes.sort_unstable_by(f64::total_cmp);
    let slope = median_of_sorted(&slopes) / averaged as f64;
    let median = series.median();
    let whole = slope * (series.len() - 1) as f64;
    Ok(Trend {
        slope,
        relative_change: Some(whole / median.abs()).filter(|change| change.is_finite()),
        tau: score as f64 / slopes.len() as f64,
        p_value: p_value(&values, score),
        averaged,
    })
}

fn p_value(values: &[f64], score: i64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let ties: Vec<f64> = sorted
        .chunk_by(|a, b| a == b)
        .map(|equal| equal.len() as f64)
        .collect();
    if values.len() <= MOST_EXACT && ties.len() == values.len() {
        return exact_p_value(values.len(), score);
    }
    let term = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let tied: f64 = ties.iter().copied().map(term).sum();
    let variance = (term(values.len() as f64) - tied) / 18.0;
    if variance <= 0.0 {
        return 1.0;
    }
    let distance = (score.abs() as f64 - 1.0).max(0.0);
    (2.0 * (1.0 - normal_cdf(distance / variance.sqrt()))).clamp(0.0, 1.0)
}

/// Probability of |S| >= |score| over all orders of `count` distinct values.
/// The number of orders with k falling pairs grows by one value at a time:
/// the new value can stand before 0, 1, ... of those already placed.
fn exact_p_value(count: usize, score: i64) -> f64 {
    let pairs = count * (count - 1) / 2;
    let mut shares = vec![0.0; pairs + 1];
    shares[0] = 1.0;
    for placed in 1..count {
        let mut next = vec![0.0; pairs + 1];
        for (falling, share) in shares.iter().enumerate().filter(|(_, share)| **share > 0.0) {
            for before in 0..=placed {
                next[falling + before] += share / (placed + 1) as f64;
            }
        }
        shares = next;
    }
    let extreme = |falling: usize| (pairs as i64 - 2 * falling as i64).abs() >= score.abs();
    let tail = shares.iter().enumerate().filter(|(k, _)| extreme(*k));
    tail.map(|(_, share)| share).sum::<f64>().min(1.0)
}

#[cfg(test)]
mod tests {
    use super::{NoTrend, exact_p_value, trend};
    use crate::sample::Sample;
    use proptest::prelude::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).expect("finite")
    }

    /// Of 120 orders of five values two are monotone; of 24 of four, two.
    #[test]
    fn monotone_series_have_the_exact_probability() {
        let rising = trend(&sample(&[1.0, 3.0, 5.0, 7.0, 9.0])).expect("five");
        assert_eq!((rising.slope, rising.tau), (2.0, 1.0));
        assert!((rising.p_value - 2.0 / 120.0).abs() < 1e-12);
        assert_eq!(rising.relative_change, Some(1.6));
        assert!(rising.is_significant(0.05));
        let falling = trend(&sample(&[9.0, 7.0, 5.0, 3.0])).expect("four");
        assert_eq!((falling.slope, falling.tau), (-2.0, -1.0));
        assert!((falling.p_value - 2.0 / 24.0).abs() < 1e-12);
        let three = trend(&sample(&[1.0, 2.0, 3.0]));
        assert_eq!(three, Err(NoTrend::TooFew { values: 3 }));
    }

    /// 28 pairs, one of them tied: S = 27, variance
    /// (8 x 7 x 21 - 2 x 1 x 9) / 18 = 64.333.
    #[test]
    fn ties_use_the_corrected_variance() {
        let found = trend(&sample(&[1.0, 2.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])).expect("eight");
        assert!((found.tau - 27.0 / 28.0).abs() < 1e-12);
        // (27 - 1) / sqrt(64.333) = 3.2415: two-sided 0.00119.
        assert!(
            (found.p_value - 0.001_189).abs() < 1e-5,
            "{}",
            found.p_value
        );
        let flat = trend(&sample(&[3.0; 8])).expect("eight");
        assert_eq!((flat.slope, flat.p_value), (0.0, 1.0));
        assert_eq!(
            trend(&sample(&[0.0; 5])).expect("five").relative_change,
            None
        );
    }

    #[test]
    fn one_wild_value_moves_the_slope_little() {
        let mut values: Vec<f64> = (0..15).map(f64::from).collect();
        values[7] = 1e6;
        let found = trend(&sample(&values)).expect("fifteen");
        assert!((found.slope - 1.0).abs() < 0.05 && found.is_significant(0.01));
    }

    #[test]
    fn long_series_are_averaged() {
        let values: Vec<f64> = (0..5000).map(|t| f64::from(t) * 0.5).collect();
        let found = trend(&sample(&values)).expect("many");
        assert_eq!(found.averaged, 3);
        assert!((found.slope - 0.5).abs() < 1e-12 && found.p_value < 1e-9);
    }

    /// Every order of `rest` after `placed`, counted by its S.
    fn count_orders(placed: &mut Vec<i64>, rest: &[i64], least: i64, hits: &mut (u32, u32)) {
        if rest.is_empty() {
            let pairs = (0..placed.len()).flat_map(|j| (0..j).map(move |i| (i, j)));
            let score: i64 = pairs.map(|(i, j)| (placed[j] - placed[i]).signum()).sum();
            hits.0 += u32::from(score.abs() >= least);
            hits.1 += 1;
        }
        for (position, &value) in rest.iter().enumerate() {
            let mut others = rest.to_vec();
            others.remove(position);
            placed.push(value);
            count_orders(placed, &others, least, hits);
            placed.pop();
        }
    }

    #[test]
    fn exact_probabilities_are_the_enumeration() {
        let values: Vec<i64> = (0..6).collect();
        for score in 0..=15 {
            let mut hits = (0, 0);
            count_orders(&mut Vec::new(), &values, score, &mut hits);
            let expected = f64::from(hits.0) / f64::from(hits.1);
            assert!(
                (exact_p_value(6, score) - expected).abs() < 1e-12,
                "S = {score}"
            );
        }
    }

    proptest! {
        #[test]
        fn turning_the_series_round_turns_the_slope(
            values in proptest::collection::vec(-1e3..1e3_f64, 4..30)
        ) {
            let there = trend(&sample(&values)).expect("four or more");
            let mut back = values.clone();
            back.reverse();
            let back = trend(&sample(&back)).expect("four or more");
            prop_assert!((there.slope + back.slope).abs() < 1e-9);
            prop_assert!((there.p_value - back.p_value).abs() < 1e-12);
            prop_assert!((0.0..=1.0).contains(&there.p_value));
        }
    }
}
