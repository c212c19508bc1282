//! The prediction interval of a small sample: where the next value lies.

use crate::distributions::student_t_quantile;
use crate::interval::{Confidence, Interval};
use crate::sample::Sample;

/// The interval that holds one more value of a normal distribution with this confidence, after the
/// values of `sample`: mean ± t s √(1 + 1/n), with t of n - 1 degrees of freedom (Hahn and Meeker,
/// Statistical Intervals, section 4.8). `None` for a single value.
#[must_use]
// A sample has fewer than 2^53 values.
pub fn next_value(sample: &Sample, confidence: Confidence) -> Option<Interval> {
    let deviation = sample.standard_deviation()?;
    let count = sample.len() as f64;
    let quantile = student_t_quantile(1.0 - confidence.alpha() / 2.0, count - 1.0);
    let half = quantile * deviation * (1.0 + 1.0 / count).sqrt();
    Some(Interval {
        low: sample.mean() - half,
        high: sample.mean() + half,
        confidence,
    })
}

#[cfg(test)]
mod tests {
    use super::next_value;
    use crate::{Confidence, Sample};

    #[test]
    fn three_values_leave_much_room() {
        // t(0.95, 2) = 2.920, s = 1, sqrt(4/3) = 1.1547: 3.372 either way.
        let sample = Sample::new(&[1.0, 2.0, 3.0]).unwrap();
        let found = next_value(&sample, Confidence::new(0.9).unwrap()).unwrap();
        assert!((found.low - (2.0 - 3.3717)).abs() < 1e-3, "{found:?}");
        assert!((found.high - (2.0 + 3.3717)).abs() < 1e-3, "{found:?}");
        let one = Sample::new(&[1.0]).unwrap();
        assert_eq!(next_value(&one, Confidence::NINETY_FIVE), None);
    }
}
