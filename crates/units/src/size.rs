//! Bytes, sectors and rates.

use crate::Nanos;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

/// Bytes in a sector, the unit of block-device addresses on Linux and in md's
/// metadata whatever the disk's own sector size.
pub const SECTOR_BYTES: u64 = 512;

/// A number of bytes, or a byte address.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize,
)]
pub struct Bytes(pub u64);

/// A number of 512-byte sectors, or a sector address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Sectors(pub u64);

/// A rate in bytes per second.
#[derive(Debug, Clone, Copy, PartialEq, PartialOrd, Default)]
pub struct BytesPerSecond(pub f64);

impl Bytes {
    /// Returns the number of whole sectors in this many bytes; a rest is dropped.
    #[must_use]
    pub const fn to_sectors(self) -> Sectors {
        Sectors(self.0 / SECTOR_BYTES)
    }
}

impl Sectors {
    /// No sectors, or the first address.
    pub const ZERO: Self = Self(0);

    /// The number of bytes in these sectors.
    #[must_use]
    pub const fn to_bytes(self) -> Bytes {
        Bytes(self.0 * SECTOR_BYTES)
    }
}

impl BytesPerSecond {
    /// The mean rate of `bytes` in `time`; no time gives a rate of zero.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "a rate is a statistic")]
    pub fn mean(bytes: Bytes, time: Nanos) -> Self {
        if time == Nanos::ZERO {
            return Self(0.0);
        }
        Self(bytes.0 as f64 / time.as_secs_f64())
    }
}

// What sizes and times have in common: sums, differences and multiples.
macro_rules! amounts {
    ($($name:ident),*) => {$(
        impl Add for $name {
            type Output = Self;
            #[inline]
            fn add(self, other: Self) -> Self {
                Self(self.0 + other.0)
            }
        }
        impl AddAssign for $name {
            #[inline]
            fn add_assign(&mut self, other: Self) {
                self.0 += other.0;
            }
        }
        impl Sub for $name {
            type Output = Self;
            #[inline]
            fn sub(self, other: Self) -> Self {
                Self(self.0 - other.0)
            }
        }
        impl Mul<u64> for $name {
            type Output = Self;
            #[inline]
            fn mul(self, factor: u64) -> Self {
                Self(self.0 * factor)
            }
        }
    )*};
}
amounts!(Bytes, Sectors, Nanos);

impl fmt::Display for Bytes {
    /// Writes an exact binary multiple where there is one (`128 KiB`, `3 TiB`), else the largest
    /// binary unit with two decimals (`3.64 TiB`).
    #[expect(clippy::cast_precision_loss, reason = "for printing")]
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [&str; 6] = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
        let mut power = 0;
        while power + 1 < NAMES.len() && self.0 >> (10 * (power + 1)) > 0 {
            power += 1;
        }
        let unit = 1_u64 << (10 * power);
        if self.0.is_multiple_of(unit) {
            write!(formatter, "{} {}", self.0 / unit, NAMES[power])
        } else {
            write!(
                formatter,
                "{:.2} {}",
                self.0 as f64 / unit as f64,
                NAMES[power]
            )
        }
    }
}

impl fmt::Display for Sectors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sector {}", self.0)
    }
}

impl fmt::Display for BytesPerSecond {
    /// Writes decimal megabytes per second: `177.9 MB/s`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:.1} MB/s", self.0 / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::{Bytes, BytesPerSecond, Sectors};
    use crate::Nanos;

    #[test]
    fn sizes_print_in_binary_units() {
        let cases = [
            (0, "0 B"),
            (512, "512 B"),
            (131_072, "128 KiB"),
            (3 << 40, "3 TiB"),
            (4_000_787_030_016, "3.64 TiB"),
        ];
        for (bytes, text) in cases {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
    }

    #[test]
    fn sectors_are_512_bytes() {
        assert_eq!(Bytes(1_000_000).to_sectors(), Sectors(1953));
        assert_eq!(Sectors(8).to_bytes(), Bytes(4096));
    }

    #[test]
    fn a_rate_is_bytes_over_seconds() {
        let rate = BytesPerSecond::mean(Bytes(1 << 20), Nanos::from_millis(500));
        assert!((rate.0 - 2_097_152.0).abs() < 1e-6);
        assert!(BytesPerSecond::mean(Bytes(1), Nanos::ZERO).0.abs() < f64::EPSILON);
    }
}
