//! Confidence intervals, and the reasons for having none.

use std::fmt;

/// The share of such intervals that hold the true value, in `0.5..1`.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Confidence(f64);

/// A confidence outside `0.5..=0.9999`.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
#[error("confidence {0} is outside 0.5 to 0.9999")]
pub struct ConfidenceError(f64);

impl Confidence {
    /// Confidence of 95 %: one interval in twenty misses the true value.
    pub const NINETY_FIVE: Self = Self(0.95);

    /// A confidence from a fraction, `0.5..=0.9999`.
    ///
    /// # Errors
    /// Outside that range, or NaN.
    pub fn new(fraction: f64) -> Result<Self, ConfidenceError> {
        if (0.5..=0.9999).contains(&fraction) {
            Ok(Self(fraction))
        } else {
            Err(ConfidenceError(fraction))
        }
    }

    /// The probability of missing the true value: 0.05 for 95 %.
    pub(crate) fn alpha(self) -> f64 {
        1.0 - self.0
    }

    /// The probability below the upper end of a two-sided interval: 0.975.
    pub(crate) fn upper(self) -> f64 {
        1.0 - self.alpha() / 2.0
    }

    /// The smallest sample whose range holds the median with this confidence:
    /// the least n with 1 - 2^(1-n) >= confidence (6 at 95 %). Each value
    /// lies below the median with probability one half, so the range misses
    /// it with probability 2^(1-n) (Conover, Practical Nonparametric
    /// Statistics, section 3.2).
    #[must_use]
    pub(crate) fn least_values(self) -> usize {
        let mut values = 2;
        while 1.0 - 0.5_f64.powi(values - 1) < self.0 {
            values += 1;
        }
        values as usize
    }
}

impl fmt::Display for Confidence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = self.0 * 100.0;
        if (percent - percent.round()).abs() < 1e-6 {
            write!(f, "{percent:.0} %")
        } else {
            write!(f, "{percent:.2} %")
        }
    }
}

/// A two-sided interval, `low <= high`, both finite.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Interval {
    /// The lower end, in the unit of the estimate.
    pub low: f64,
    /// The upper end, in the unit of the estimate.
    pub high: f64,
    /// The share of such intervals that hold the true value.
    pub confidence: Confidence,
}

impl Interval {
    /// True when `value` lies in the interval, ends included.
    #[must_use]
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }
}

/// The reason why there is no interval.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NoInterval {
    /// A single value says nothing about its own spread.
    #[error("1 value has no spread")]
    OneValue,
    /// All values are equal: the spread is below the resolution, not zero.
    #[error("all values are equal, the spread is hidden below their resolution")]
    NoSpread,
    /// A ratio needs positive values.
    #[error("a ratio needs values above zero")]
    NotPositive,
    /// The ends of the interval are not finite numbers above zero.
    #[error("the spread is too large for the interval to be a number")]
    Unbounded,
}

/// A value with its interval, or the reason for having none.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Estimate {
    /// The median of a sample, or a ratio of two medians; NaN where there is no ratio.
    pub value: f64,
    /// The value's interval, or the reason for having none.
    pub interval: Result<Interval, NoInterval>,
}

#[cfg(test)]
mod tests {
    use super::Confidence;

    #[test]
    fn least_values_follow_the_order_statistics() {
        let least = |level| Confidence::new(level).expect("valid").least_values();
        // n = 5 reaches 93.75 %, n = 6 96.875 %; n = 7 98.4 %, n = 8 99.2 %.
        assert_eq!((least(0.9375), least(0.95), least(0.99)), (5, 6, 8));
        assert_eq!(least(0.5), 2);
    }

    #[test]
    fn confidence_prints_and_refuses() {
        assert_eq!(Confidence::NINETY_FIVE.to_string(), "95 %");
        let odd = Confidence::new(0.995).expect("valid");
        assert_eq!(odd.to_string(), "99.50 %");
        for bad in [f64::NAN, 0.4, 1.0, 95.0] {
            assert!(Confidence::new(bad).is_err());
        }
    }
}
