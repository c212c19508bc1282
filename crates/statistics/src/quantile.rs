//! Quantiles, type 7 of Hyndman and Fan (1996), the default of R and NumPy:
//! position (n - 1) p between the ordered values, by straight line.

use crate::sample::{Sample, median_of_sorted};

/// The type 7 quantile at `probability`; outside `0..=1` the probability is clamped, and NaN is
/// taken as 0.
pub(crate) fn quantile(sample: &Sample, probability: f64) -> f64 {
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
    use super::{median_absolute_deviation, quantile};
    use crate::sample::Sample;
    use proptest::prelude::*;

    fn sample(values: &[f64]) -> Sample {
        Sample::new(values).expect("finite")
    }

    /// R: quantile(c(1,2,4,8), .25) is 1.75, mad(constant = 1) is 1.5.
    #[test]
    fn four_values_by_hand() {
        let four = sample(&[8.0, 1.0, 4.0, 2.0]);
        assert_eq!((quantile(&four, 0.25), quantile(&four, 0.75)), (1.75, 5.0));
        assert_eq!(median_absolute_deviation(&four), 1.5);
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
