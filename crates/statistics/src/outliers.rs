//! Values far from the others: reported, never dropped.
//!
//! Two rules. The modified z-score of Iglewicz and Hoaglin (How to Detect and
//! Handle Outliers, 1993): 0.6745 (x - median) / MAD beyond 3.5; where more
//! than half the values are equal and the MAD is zero, (x - median) /
//! (1.2533 x mean absolute difference) instead, also theirs. And Tukey's
//! fences (Exploratory Data Analysis, 1977): beyond 1.5 times the distance of
//! the quartiles from the nearer quartile.
//!
//! Among fewer than three values none is an outlier. Among three or four the rules apply but are
//! unreliable: two close values make any third look far.

use crate::quantile::{median_absolute_deviation, quantile};
use crate::sample::Sample;

/// Iglewicz and Hoaglin's limit.
const SCORE_LIMIT: f64 = 3.5;
/// Tukey's fence, in interquartile ranges beyond the nearer quartile.
const FENCE: f64 = 1.5;

/// The positions of the outliers of `sample`, from 0, in the order measured.
#[must_use]
pub fn outliers(sample: &Sample) -> Vec<usize> {
    if sample.len() < 3 || sample.is_constant() {
        return Vec::new();
    }
    let median = sample.median();
    let deviation = scaled_deviation(sample, median);
    let (lower, upper) = (quantile(sample, 0.25), quantile(sample, 0.75));
    let fence = FENCE * (upper - lower);
    let is_far = |value: f64| {
        let score = (value - median) / deviation;
        score.abs() > SCORE_LIMIT || value < lower - fence || value > upper + fence
    };
    let values = sample.values().iter().enumerate();
    let far = values.filter(|(_, value)| is_far(**value));
    far.map(|(index, _)| index).collect()
}

/// A robust stand-in for the standard deviation, above zero unless all
/// values are equal.
fn scaled_deviation(sample: &Sample, median: f64) -> f64 {
    let robust = median_absolute_deviation(sample);
    if robust > 0.0 {
        return robust / 0.6745;
    }
    let sum: f64 = sample.values().iter().map(|v| (v - median).abs()).sum();
    1.253_314 * sum / sample.len() as f64
}

#[cfg(test)]
mod tests {
    use super::outliers;
    use crate::sample::Sample;
    use proptest::prelude::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).expect("finite")
    }

    /// Median 12, MAD 1 (of 1, 2, 0, 1, 0, 1, 88).
    #[test]
    fn one_far_value_is_found_and_a_near_one_is_not() {
        let found = outliers(&sample(&[11.0, 14.0, 12.0, 11.0, 12.0, 13.0, 100.0]));
        assert_eq!(found, [6]);
    }

    /// Quartiles at positions 1.5 and 4.5: 11.5 and 13.5, so that the fences stand at 8.5 and
    /// 16.5. The score of 17 is 0.6745 x 5 = 3.4, within its own limit.
    #[test]
    fn a_fence_alone_is_enough() {
        let found = outliers(&sample(&[11.0, 14.0, 12.0, 11.0, 12.0, 13.0, 17.0]));
        assert_eq!(found, [6]);
        let found = outliers(&sample(&[11.0, 14.0, 12.0, 11.0, 12.0, 13.0, 16.4]));
        assert!(found.is_empty());
    }

    /// The score is 10 / (1.253314 x the mean difference, 0.5) = 16.
    #[test]
    fn a_mad_of_zero_uses_the_mean_difference() {
        let mut values = [10.0; 20];
        values[3] = 20.0;
        assert_eq!(outliers(&sample(&values)), [3]);
    }

    #[test]
    fn few_or_even_values_have_none() {
        for values in [
            &[1.0][..],
            &[1.0, 99.0],
            &[5.0; 8],
            &[1.0, 2.0, 3.0, 4.0, 5.0],
        ] {
            assert!(outliers(&sample(values)).is_empty());
        }
    }

    proptest! {
        /// Half of all values lie within the median distance, and half between the quartiles.
        #[test]
        fn at_most_half_are_far(values in proptest::collection::vec(-1e3..1e3_f64, 1..30)) {
            let found = outliers(&sample(&values));
            prop_assert!(2 * found.len() <= values.len());
        }
    }
}
