//! Time as integer nanoseconds.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Div, SubAssign};

/// A point in virtual time, or a span of it, in nanoseconds.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Nanos(pub u64);

impl Nanos {
    /// The start of virtual time, or no time at all.
    pub const ZERO: Self = Self(0);
    /// The greatest time; it stands for one later than every event.
    pub const MAX: Self = Self(u64::MAX);
    /// One second of a thousand million nanoseconds.
    pub const SECOND: Self = Self(1_000_000_000);

    /// A span of this many whole seconds; the product must fit 64 bits.
    #[must_use]
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds * 1_000_000_000)
    }

    /// A span of this many whole milliseconds; the product must fit 64 bits.
    #[must_use]
    pub const fn from_millis(milliseconds: u64) -> Self {
        Self(milliseconds * 1_000_000)
    }

    /// A span of this many whole microseconds; the product must fit 64 bits.
    #[must_use]
    pub const fn from_micros(microseconds: u64) -> Self {
        Self(microseconds * 1_000)
    }

    /// A span of seconds with a fraction, rounded to the nearest nanosecond; negative and
    /// non-finite values give zero.
    #[must_use]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "float to integer casts saturate, which is what is wanted"
    )]
    pub fn from_secs_f64(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as u64)
    }

    /// The time in seconds.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for printing and statistics")]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// Returns the difference, or zero where `earlier` is the later one.
    #[must_use]
    pub const fn saturating_sub(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl SubAssign for Nanos {
    #[inline]
    fn sub_assign(&mut self, other: Self) {
        self.0 -= other.0;
    }
}

impl Div<u64> for Nanos {
    type Output = Self;
    #[inline]
    fn div(self, divisor: u64) -> Self {
        Self(self.0 / divisor)
    }
}

impl fmt::Display for Nanos {
    /// Writes the time in the largest unit in which it is not below 1, with at most three decimals:
    /// `60s`, `11.46ms`, `59us`, `7ns`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, name) = match self.0 {
            0..1_000 => (1, "ns"),
            1_000..1_000_000 => (1_000, "us"),
            1_000_000..1_000_000_000 => (1_000_000, "ms"),
            _ => (1_000_000_000, "s"),
        };
        let thousandths = (u128::from(self.0) * 1_000 + unit / 2) / unit;
        let text = format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000);
        write!(
            formatter,
            "{}{name}",
            text.trim_end_matches('0').trim_end_matches('.')
        )
    }
}

#[cfg(test)]
mod tests {
    use super::Nanos;

    #[test]
    fn printing_takes_the_largest_unit() {
        let cases = [
            (7, "7ns"),
            (59_000, "59us"),
            (11_460_000, "11.46ms"),
            (60_000_000_000, "60s"),
            (0, "0ns"),
        ];
        for (nanos, text) in cases {
            assert_eq!(Nanos(nanos).to_string(), text);
        }
    }

    #[test]
    fn seconds_round_and_saturate() {
        assert_eq!(Nanos::from_secs_f64(1.5), Nanos(1_500_000_000));
        assert_eq!(Nanos::from_secs_f64(-1.0), Nanos::ZERO);
        assert_eq!(Nanos::from_secs_f64(f64::NAN), Nanos::ZERO);
    }
}
