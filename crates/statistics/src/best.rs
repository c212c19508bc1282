//! A value against the best of its row, and how the difference is printed.

use std::fmt;

use crate::sample::usable;

/// The direction in which a figure is better.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// More is better: rates such as IOPS and bytes per second. More is called faster.
    MoreIsBetter,
    /// More is better, and is called higher: shares.
    HigherIsBetter,
    /// Less is better, and more is called higher: latencies and durations.
    LessIsBetter,
}

/// A relative change, `value / reference - 1`, kept as the ratio.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd)]
pub struct Change {
    ratio: f64,
}

impl Change {
    /// The change from `reference` (above zero) to `value` (zero or more);
    /// `None` outside these ranges and for what is not finite.
    #[must_use]
    pub fn between(reference: f64, value: f64) -> Option<Self> {
        let ratio = value / reference;
        let valid = usable(reference) && reference > 0.0 && usable(value) && value >= 0.0;
        (valid && ratio.is_finite()).then_some(Self { ratio })
    }

    /// `value / reference`, zero or more.
    #[must_use]
    pub fn ratio(self) -> f64 {
        self.ratio
    }

    /// The change in per cent, not rounded: -100 or more.
    #[must_use]
    pub fn percent(self) -> f64 {
        (self.ratio - 1.0) * 100.0
    }

    /// Whole per cent with a sign: `-95 %`, `0 %` (never `-0 %`), `+5238 %`. Only a value of zero
    /// is `-100 %`; any other is `-99.9 %` or closer to zero.
    #[must_use]
    pub fn percent_text(self) -> String {
        let percent = self.percent();
        if self.ratio > 0.0 && percent <= -99.5 {
            return format!("{:.1} %", percent.max(-99.9));
        }
        signed(percent, 0)
    }
}

impl fmt::Display for Change {
    /// Writes [`Change::percent_text`] up to +100 %, above that the ratio: `53.4 x`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.percent() > 100.0 {
            let decimals = if self.ratio < 99.95 { 1 } else { 0 };
            write!(f, "{:.decimals$} x", self.ratio)
        } else {
            f.write_str(&self.percent_text())
        }
    }
}

/// A percentage with a sign and so many decimals, never `-0 %`.
pub(crate) fn signed(percent: f64, decimals: usize) -> String {
    let digits = format!("{:.decimals$}", percent.abs());
    if digits.bytes().all(|byte| matches!(byte, b'0' | b'.')) {
        return format!("{digits} %");
    }
    format!("{}{digits} %", if percent < 0.0 { '-' } else { '+' })
}

#[cfg(test)]
mod tests {
    use super::Change;
    use proptest::prelude::*;

    fn change(value: f64, reference: f64) -> Change {
        Change::between(reference, value).expect("valid")
    }

    /// A published table of 2015 has -99 % and +5338 % here, by hand.
    #[test]
    fn percentages_are_recomputed() {
        assert_eq!(change(99.0, 1952.0).percent_text(), "-95 %");
        assert_eq!(change(9608.0, 180.0).percent_text(), "+5238 %");
        assert_eq!(change(9608.0, 180.0).to_string(), "53.4 x");
        assert_eq!(change(200.0, 100.0).to_string(), "+100 %");
        assert_eq!(change(200.1, 100.0).to_string(), "2.0 x");
        assert_eq!(change(99.8, 100.0).to_string(), "0 %");
        assert_eq!(change(0.0, 100.0).to_string(), "-100 %");
        assert_eq!(change(38.0, 9608.0).to_string(), "-99.6 %");
        assert_eq!(change(1.0, 1e9).to_string(), "-99.9 %");
    }

    proptest! {
        #[test]
        fn no_change_is_minus_zero(
            reference in proptest::num::f64::ANY,
            value in proptest::num::f64::ANY,
        ) {
            if let Some(change) = Change::between(reference, value) {
                prop_assert!(change.ratio() >= 0.0);
                prop_assert_ne!(change.to_string(), "-0 %");
            }
        }
    }
}
