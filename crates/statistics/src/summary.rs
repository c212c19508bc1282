//! What a table shows of a sample.
//!
//! Quantiles are type 7 of Hyndman and Fan (1996), the default of R and
//! NumPy: position (n - 1) p between the ordered values, by straight line.

use crate::sample::{Sample, median_of_sorted};

/// The plain and the robust measures of a sample. Same unit as the values
/// unless said otherwise.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Summary {
    /// How many values, at least 1.
    pub count: usize,
    /// Arithmetic mean of all values, outliers included.
    pub mean: f64,
    /// The middle one of the ordered values, or the mean of the middle two.
    pub median: f64,
    /// The smallest value of the sample.
    pub min: f64,
    /// The largest value of the sample.
    pub max: f64,
    /// Lower quartile, type 7.
    pub lower_quartile: f64,
    /// Upper quartile, type 7.
    pub upper_quartile: f64,
    /// Sample standard deviation (divisor n - 1); `None` for one value.
    pub standard_deviation: Option<f64>,
    /// Standard deviation over mean, no unit; `None` for one value or a mean
    /// that is not above zero.
    pub coefficient_of_variation: Option<f64>,
    /// Median of the absolute differences from the median, not scaled; times
    /// 1.4826 it estimates the standard deviation of normal values.
    pub median_absolute_deviation: f64,
}

/// All measures of `sample`.
#[must_use]
pub fn summary(sample: &Sample) -> Summary {
    let mean = sample.mean();
    let standard_deviation = sample.standard_deviation();
    Summary {
        count: sample.len(),
        mean,
        median: sample.median(),
        min: sample.min(),
        max: sample.max(),
        lower_quartile: quantile(sample, 0.25),
        upper_quartile: quantile(sample, 0.75),
        standard_deviation,
        coefficient_of_variation: standard_deviation
            .filter(|_| mean > 0.0)
            .map(|deviation| deviation / mean),
        median_absolute_deviation: median_absolute_deviation(sample),
    }
}

/// The type 7 quantile at `probability`; outside `0..=1` it is held at the
/// ends, and NaN is taken as 0.
#[must_use]
pub fn quantile(sample: &Sample, probability: f64) -> f64 {
    quantile_of_sorted(sample.sorted(), probability)
}

/// [`quantile`] of a non-empty ascending slice.
pub(crate) fn quantile_of_sorted(sorted: &[f64], probability: f64) -> f64 {
    let last = sorted.len() - 1;
    let held = if probability.is_nan() {
        0.0
    } else {
        probability.clamp(0.0, 1.0)
    };
    let position = last as f64 * held;
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let part = position - below as f64;
    sorted[below] + part * (sorted[above] - sorted[below])
}

/// Median of the absolute differences from the median.
pub(crate) fn median_absolute_deviation(sample: &Sample) -> f64 {
    let centre = sample.median();
    let mut distances: Vec<f64> = sample.values().iter().map(|v| (v - centre).abs()).collect();
    distances.sort_unstable_by(f64::total_cmp);
    median_of_sorted(&distances)
}

#[cfg(test)]
mod tests {
    use super::{quantile, summary};
    use crate::sample::Sample;
    use proptest::prelude::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).expect("finite")
    }

    /// R: quantile(c(1,2,4,8), .25) is 1.75, mad(constant = 1) is 1.5.
    #[test]
    fn four_values_by_hand() {
        let found = summary(&sample(&[8.0, 1.0, 4.0, 2.0]));
        assert_eq!((found.mean, found.median), (3.75, 3.0));
        assert_eq!((found.lower_quartile, found.upper_quartile), (1.75, 5.0));
        assert_eq!(found.median_absolute_deviation, 1.5);
        let deviation = found.standard_deviation.expect("four values");
        assert!((deviation - (28.75_f64 / 3.0).sqrt()).abs() < 1e-12);
    }

    #[test]
    fn one_value_has_no_deviation_and_zero_mean_no_coefficient() {
        let one = summary(&sample(&[5.0]));
        assert_eq!((one.standard_deviation, one.median), (None, 5.0));
        let zero = summary(&sample(&[-1.0, 1.0]));
        assert_eq!(zero.coefficient_of_variation, None);
        let equal = summary(&sample(&[0.1; 10]));
        assert_eq!(equal.standard_deviation, Some(0.0));
        assert_eq!(equal.mean, 0.1);
        assert_eq!(quantile(&sample(&[3.0, 4.0]), f64::NAN), 3.0);
    }

    proptest! {
        /// Type 7 by its definition: the k-th ordered value stands at
        /// probability (k - 1) / (n - 1), straight lines between.
        #[test]
        fn quantiles_follow_the_definition(
            values in proptest::collection::vec(-1e6..1e6_f64, 2..40),
            p in 0.0..=1.0_f64,
        ) {
            let sample = sample(&values);
            let mut sorted = values.clone();
            sorted.sort_by(|a, b| a.partial_cmp(b).expect("finite"));
            let gaps = (values.len() - 1) as f64;
            let expected = (0..values.len() - 1)
                .find(|&k| p <= (k + 1) as f64 / gaps)
                .map(|k| {
                    let share = (p - k as f64 / gaps) * gaps;
                    sorted[k] * (1.0 - share) + sorted[k + 1] * share
                })
                .unwrap_or(sorted[values.len() - 1]);
            prop_assert!((quantile(&sample, p) - expected).abs() < 1e-6);
            prop_assert!((quantile(&sample, 0.5) - sample.median()).abs() < 1e-6);
            prop_assert_eq!(quantile(&sample, -1.0), sample.min());
            prop_assert_eq!(quantile(&sample, 2.0), sample.max());
        }
    }
}
