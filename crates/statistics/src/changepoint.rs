//! One sudden change in a series: a cache that ran full, a disk that throttled.
//!
//! The series is cut in two at the place where the squares around the two
//! means are least. The cut counts when it explains enough: n ln(whole / cut)
//! above 3 ln n, the price of one change in the modified information
//! criterion of Zhang and Siegmund (Biometrics 63, 2007), which allows for
//! having searched all places. Pieces have at least three values.
//!
//! A steady slope is also cut in two somewhere, and so is a strongly
//! autocorrelated series: average that to batches first.
//!
//! [`cliff`] is the plain rule for drives that shingle or cache: the last
//! quarter at less than 30 % of the first.

use crate::sample::{Sample, mean, squares};

/// The fewest values in a piece.
const LEAST_PIECE: usize = 3;
/// The share of the first quarter below which the last quarter is a cliff.
const CLIFF_SHARE: f64 = 0.30;

/// A sudden change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// Position of the first value after the change.
    pub index: usize,
    /// Mean of the values before the change, in their own unit.
    pub before: f64,
    /// Mean of the values from the change on.
    pub after: f64,
}

/// The best place for one change in `series`, when it explains enough; `None`
/// for fewer than six values, a constant series, or no convincing place.
#[must_use]
pub fn change_point(series: &Sample) -> Option<ChangePoint> {
    let values = series.values();
    let count = values.len();
    if count < 2 * LEAST_PIECE || series.is_constant() {
        return None;
    }
    let centre = series.mean();
    // Divided by the largest distance, so that squares stay in range.
    let reach = (series.max() - centre).max(centre - series.min());
    let scaled: Vec<f64> = values.iter().map(|v| (v - centre) / reach).collect();
    let whole = squares(&scaled);
    let sum: f64 = scaled.iter().sum();
    let mut left = scaled[..LEAST_PIECE - 1].iter().sum::<f64>();
    let mut best = (0.0, 0);
    for index in LEAST_PIECE..=count - LEAST_PIECE {
        left += scaled[index - 1];
        let (n, m) = (index as f64, (count - index) as f64);
        // The sum of squares that two means save over one.
        let saved = (left / n - (sum - left) / m).powi(2) * n * m / (n + m);
        if saved > best.0 {
            best = (saved, index);
        }
    }
    let (saved, index) = best;
    let explained = (saved / whole).clamp(0.0, 1.0);
    let length = count as f64;
    // n ln(1 / (1 - explained)) > 3 ln n, without dividing by zero.
    if 1.0 - explained >= (-3.0 * length.ln() / length).exp() {
        return None;
    }
    Some(ChangePoint {
        index,
        before: mean(&values[..index]),
        after: mean(&values[index..]),
    })
}

/// A series that ends far below where it began.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cliff {
    /// Mean of the first quarter, in the series' own unit.
    pub first: f64,
    /// Mean of the last quarter, in the series' own unit.
    pub last: f64,
}

/// The cliff in a rate `series`: its last quarter has a mean below 30 % of
/// the first quarter's. `None` without one, for fewer than four values, or
/// when the first quarter's mean is not above zero.
#[must_use]
pub fn cliff(series: &Sample) -> Option<Cliff> {
    let values = series.values();
    let quarter = values.len() / 4;
    if quarter == 0 {
        return None;
    }
    let first = mean(&values[..quarter]);
    let last = mean(&values[values.len() - quarter..]);
    (first > 0.0 && last < CLIFF_SHARE * first).then_some(Cliff { first, last })
}

#[cfg(test)]
mod tests {
    use super::{change_point, cliff};
    use crate::distributions::normal_quantile;
    use crate::sample::{Sample, squares};
    use proptest::prelude::*;
    use raidlab_random::Stream;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).expect("finite")
    }

    fn noise(stream: &mut Stream) -> f64 {
        normal_quantile((stream.below(1 << 40) as f64 + 0.5) / (1_u64 << 40) as f64)
    }

    #[test]
    fn a_clean_step_is_found_exactly() {
        let mut values = vec![150.0; 40];
        values.extend([10.0; 60]);
        let found = change_point(&sample(&values)).expect("a step");
        assert_eq!((found.index, found.before, found.after), (40, 150.0, 10.0));
        let fell = cliff(&sample(&values)).expect("a cliff");
        assert_eq!((fell.first, fell.last), (150.0, 10.0));
    }

    #[test]
    fn the_cliff_is_below_thirty_percent() {
        let at = [100.0, 80.0, 60.0, 30.0];
        assert!(cliff(&sample(&at)).is_none());
        let below = [100.0, 80.0, 60.0, 29.9];
        assert!(cliff(&sample(&below)).is_some());
        assert!(cliff(&sample(&[100.0, 1.0, 1.0])).is_none());
        assert!(cliff(&sample(&[0.0, 1.0, 1.0, -5.0])).is_none());
    }

    #[test]
    fn noise_alone_seldom_has_a_change_and_a_step_of_two_deviations_does() {
        let mut stream = Stream::new(21);
        let (mut false_alarms, mut found) = (0, 0);
        for _ in 0..300 {
            let flat: Vec<f64> = (0..100).map(|_| 100.0 + noise(&mut stream)).collect();
            false_alarms += u32::from(change_point(&sample(&flat)).is_some());
            let step: Vec<f64> = flat
                .iter()
                .enumerate()
                .map(|(t, v)| if t < 60 { *v } else { v - 2.0 })
                .collect();
            let change = change_point(&sample(&step));
            found += u32::from(change.is_some_and(|c| c.index.abs_diff(60) <= 5));
        }
        assert!(false_alarms <= 15, "{false_alarms} of 300");
        assert!(found >= 280, "{found} of 300");
    }

    proptest! {
        /// The place is the one that trying every cut finds.
        #[test]
        fn the_cut_is_the_best_of_all(
            level in -20.0..20.0_f64,
            values in proptest::collection::vec(0.0..1.0_f64, 8..40),
        ) {
            let values: Vec<f64> = values.iter().enumerate()
                .map(|(t, v)| if t * 2 < values.len() { *v } else { v + level })
                .collect();
            if let Some(found) = change_point(&sample(&values)) {
                let cost = |at: usize| squares(&values[..at]) + squares(&values[at..]);
                let least = (3..=values.len() - 3).map(cost).fold(f64::INFINITY, f64::min);
                prop_assert!(cost(found.index) <= least + 1e-6);
            }
        }
    }
}
