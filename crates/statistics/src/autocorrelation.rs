//! Autocorrelation: how much a series resembles itself some steps later.
//!
//! A monitor that wakes the disks every tenth second shows as autocorrelation
//! at lag 10. The estimate is the usual one, r = sum (x(t) - m)(x(t+k) - m) /
//! sum (x(t) - m)^2 (Box and Jenkins, Time Series Analysis, section 2.1.5);
//! without any resemblance it lies within z / sqrt(n) of zero as often as the
//! confidence says (Bartlett 1946, first order).

use crate::distributions::normal_quantile;
use crate::interval::Confidence;
use crate::sample::Sample;

/// The autocorrelation of a series at a lag.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Autocorrelation {
    /// The correlation coefficient at this lag, from -1 to 1.
    pub value: f64,
    /// The distance from zero within which values may be chance.
    pub bound: f64,
}

impl Autocorrelation {
    /// Whether the value is beyond the bound, to either side.
    #[must_use]
    pub fn is_significant(&self) -> bool {
        self.value.abs() > self.bound
    }
}

/// The autocorrelation of `series` at `lag`. `None` when the series is shorter than four lags or
/// four values, or constant, which is too little to judge by.
#[must_use]
pub fn autocorrelation(
    series: &Sample,
    lag: usize,
    confidence: Confidence,
) -> Option<Autocorrelation> {
    let values = series.values();
    let long_enough = values.len() >= 4 && lag <= values.len() / 4;
    if !long_enough || series.is_constant() {
        return None;
    }
    let centre = series.mean();
    // Divided by the largest distance, so that squares do not underflow.
    let reach = (series.max() - centre).max(centre - series.min());
    let scaled: Vec<f64> = values.iter().map(|v| (v - centre) / reach).collect();
    let total: f64 = scaled.iter().map(|d| d * d).sum();
    let shared: f64 = scaled.iter().zip(&scaled[lag..]).map(|(a, b)| a * b).sum();
    Some(Autocorrelation {
        value: (shared / total).clamp(-1.0, 1.0),
        bound: normal_quantile(confidence.upper()) / (values.len() as f64).sqrt(),
    })
}

#[cfg(test)]
mod tests {
    use super::autocorrelation;
    use crate::interval::Confidence;
    use crate::sample::Sample;
    use raidlab_random::Stream;

    fn at(values: &[f64], lag: usize) -> Option<super::Autocorrelation> {
        let series = Sample::new(values).expect("finite");
        autocorrelation(&series, lag, Confidence::NINETY_FIVE)
    }

    /// Distances from the mean 5: -3 -1 1 3; products at lag 1: 3 - 1 + 3 = 5
    /// of 20.
    #[test]
    fn four_values_by_hand() {
        let found = at(&[2.0, 4.0, 6.0, 8.0], 1).expect("long enough");
        assert!((found.value - 0.25).abs() < 1e-12);
        assert!((found.bound - 0.98).abs() < 1e-3);
        assert_eq!(at(&[2.0, 4.0, 6.0, 8.0], 0).map(|r| r.value), Some(1.0));
        assert!(at(&[2.0, 4.0, 6.0, 8.0], 2).is_none());
        assert!(at(&[5.0; 40], 1).is_none());
    }

    #[test]
    fn a_dip_every_ten_seconds_shows_at_lag_ten() {
        let mut stream = Stream::new(8);
        let values: Vec<f64> = (0..120)
            .map(|t| (if t % 10 == 0 { 60.0 } else { 100.0 }) + stream.below(10) as f64)
            .collect();
        assert!(at(&values, 10).expect("long enough").value > 0.8);
        let significant = |lag: usize| at(&values, lag).expect("long enough").is_significant();
        assert!(significant(10) && significant(20) && !significant(7));
    }
}
