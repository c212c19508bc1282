//! Values far from the others: reported, never dropped.
//!
//! Two rules. The modified z-score of Iglewicz and Hoaglin (How to Detect and
//! Handle Outliers, 1993): 0.6745 (x - median) / MAD beyond 3.5; where more
//! than half the values are equal and the MAD is zero, (x - median) /
//! (1.2533 x mean absolute difference) instead, also theirs. And Tukey's
//! fences (Exploratory Data Analysis, 1977): beyond 1.5 and 3 times the
//! distance of the quartiles from the nearer quartile.
//!
//! Of fewer than three values none is an outlier. Of three or four the rules
//! speak but know little: two close values make any third look far.

use crate::sample::Sample;
use crate::summary::{median_absolute_deviation, quantile};

/// Iglewicz and Hoaglin's limit.
const SCORE_LIMIT: f64 = 3.5;

/// Which rule a value broke.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum OutlierReason {
    /// Modified z-score beyond 3.5 to either side.
    ModifiedZScore {
        /// The score, with its sign.
        score: f64,
    },
    /// Beyond Tukey's inner fence, 1.5 quartile distances out.
    InnerFence {
        /// The fence, in the unit of the values.
        fence: f64,
    },
    /// Beyond Tukey's outer fence, 3 quartile distances out.
    OuterFence {
        /// The fence, in the unit of the values.
        fence: f64,
    },
}

/// A value far from the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Outlier {
    /// Its position in the sample, from 0.
    pub index: usize,
    /// The value itself, as measured, in the unit of the sample.
    pub value: f64,
    /// The rules it broke, at least one.
    pub reasons: Vec<OutlierReason>,
}

/// The outliers of `sample` in the order measured.
#[must_use]
pub fn outliers(sample: &Sample) -> Vec<Outlier> {
    if sample.len() < 3 || sample.is_constant() {
        return Vec::new();
    }
    let median = sample.median();
    let deviation = scaled_deviation(sample, median);
    let (lower, upper) = (quantile(sample, 0.25), quantile(sample, 0.75));
    sample
        .values()
        .iter()
        .enumerate()
        .filter_map(|(index, &value)| {
            let score = (value - median) / deviation;
            let mut reasons = Vec::new();
            if score.abs() > SCORE_LIMIT {
                reasons.push(OutlierReason::ModifiedZScore { score });
            }
            reasons.extend(fence_broken(value, lower, upper));
            (!reasons.is_empty()).then_some(Outlier {
                index,
                value,
                reasons,
            })
        })
        .collect()
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

fn fence_broken(value: f64, lower: f64, upper: f64) -> Option<OutlierReason> {
    let distance = upper - lower;
    let beyond = |times: f64| {
        let (low, high) = (lower - times * distance, upper + times * distance);
        if value < low {
            Some(low)
        } else {
            (value > high).then_some(high)
        }
    };
    beyond(3.0)
        .map(|fence| OutlierReason::OuterFence { fence })
        .or_else(|| beyond(1.5).map(|fence| OutlierReason::InnerFence { fence }))
}

#[cfg(test)]
mod tests {
    use super::{OutlierReason, outliers};
    use crate::sample::Sample;
    use proptest::prelude::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).expect("finite")
    }

    /// Median 12, MAD 1 (of 1, 2, 0, 1, 0, 1, 88).
    #[test]
    fn one_far_value_breaks_both_rules() {
        let found = outliers(&sample(&[11.0, 14.0, 12.0, 11.0, 12.0, 13.0, 100.0]));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].index, found[0].value), (6, 100.0));
        let [
            OutlierReason::ModifiedZScore { score },
            OutlierReason::OuterFence { fence },
        ] = found[0].reasons[..]
        else {
            panic!("{found:?}");
        };
        assert!((score - 0.6745 * 88.0).abs() < 1e-9);
        // Quartiles at positions 1.5 and 4.5: 11.5 and 13.5; 13.5 + 3 x 2.
        assert_eq!(fence, 19.5);
    }

    #[test]
    fn a_mad_of_zero_uses_the_mean_difference() {
        let mut values = [10.0; 20];
        values[3] = 20.0;
        let found = outliers(&sample(&values));
        assert_eq!(found.len(), 1);
        // Mean difference 0.5: 10 / (1.253314 x 0.5).
        let OutlierReason::ModifiedZScore { score } = found[0].reasons[0] else {
            panic!("{found:?}");
        };
        assert!((score - 15.957_69).abs() < 1e-4);
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
        /// The middle half is never reported by a fence, and what is reported
        /// carries a reason and its place.
        #[test]
        fn reports_point_at_their_value(values in proptest::collection::vec(-1e3..1e3_f64, 1..30)) {
            for outlier in outliers(&sample(&values)) {
                prop_assert_eq!(values[outlier.index], outlier.value);
                prop_assert!(!outlier.reasons.is_empty());
            }
        }
    }
}
