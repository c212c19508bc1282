//! Reading sizes and times as people and fio write them.

use crate::{Bytes, Nanos};
use thiserror::Error;

/// The reason why a size or a time could not be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum ParseUnitError {
    /// No digits where a number should be.
    #[error("`{text}` does not start with a number")]
    NoNumber {
        /// The text as given.
        text: String,
    },
    /// Letters that name no unit.
    #[error("`{unit}` is not a unit of {quantity}; use one of {expected}")]
    UnknownUnit {
        /// The letters after the number.
        unit: String,
        /// `size` or `time`.
        quantity: &'static str,
        /// The units that exist.
        expected: &'static str,
    },
    /// A number that does not fit 64 bits, or a fraction of the smallest unit.
    #[error("`{text}` is out of range")]
    OutOfRange {
        /// The text as given.
        text: String,
    },
}

/// Reads a size in fio's terms: a plain number is bytes; `k`, `m`, `g`, `t`,
/// `p` (also `kb`, `kib`, any case) are powers of 1024, as in fio with its
/// default `kb_base=1024`. Decimals are allowed: `1.5g`.
///
/// # Errors
/// When there is no number, the unit is unknown, or the size is not a whole
/// number of bytes below 2^64.
pub fn parse_bytes(text: &str) -> Result<Bytes, ParseUnitError> {
    let (number, unit) = split(text)?;
    let power = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kb" | "kib" => 1,
        "m" | "mb" | "mib" => 2,
        "g" | "gb" | "gib" => 3,
        "t" | "tb" | "tib" => 4,
        "p" | "pb" | "pib" => 5,
        _ => {
            return Err(ParseUnitError::UnknownUnit {
                unit: unit.to_owned(),
                quantity: "size",
                expected: "b, k, m, g, t, p",
            });
        }
    };
    scale(text, number, 1 << (10 * power)).map(Bytes)
}

/// The longest time that a file or an option may ask for, 366 days, so that whatever it
/// limits does end.
pub const LONGEST_TIME: Nanos = Nanos(366 * 86_400 * 1_000_000_000);

/// Reads a time: a plain number is seconds; `ns`, `us`, `ms`, `s`, `m`, `h`,
/// `d` name a unit. Decimals are allowed: `1.5h`.
///
/// # Errors
/// When there is no number, the unit is unknown, or the time is not a whole
/// number of nanoseconds below 2^64.
pub fn parse_duration(text: &str) -> Result<Nanos, ParseUnitError> {
    let (number, unit) = split(text)?;
    let nanos = match unit.to_ascii_lowercase().as_str() {
        "ns" => 1,
        "us" => 1_000,
        "ms" => 1_000_000,
        "" | "s" => 1_000_000_000,
        "m" | "min" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        "d" => 86_400_000_000_000,
        _ => {
            return Err(ParseUnitError::UnknownUnit {
                unit: unit.to_owned(),
                quantity: "time",
                expected: "ns, us, ms, s, m, h, d",
            });
        }
    };
    scale(text, number, nanos).map(Nanos)
}

/// Splits `12.5k` into `12.5` and `k`.
fn split(text: &str) -> Result<(&str, &str), ParseUnitError> {
    let text = text.trim();
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(ParseUnitError::NoNumber {
            text: text.to_owned(),
        });
    }
    Ok((number, unit.trim()))
}

/// Returns `number` times `unit`, exactly, without floating point.
fn scale(text: &str, number: &str, unit: u64) -> Result<u64, ParseUnitError> {
    let out_of_range = || ParseUnitError::OutOfRange {
        text: text.trim().to_owned(),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if fraction.len() > 9 || !fraction.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(out_of_range());
    }
    let whole: u128 = whole.parse().map_err(|_| out_of_range())?;
    let tens = 10_u128.pow(u32::try_from(fraction.len()).unwrap_or(0));
    let fraction: u128 = format!("0{fraction}").parse().map_err(|_| out_of_range())?;
    let scaled = whole
        .checked_mul(tens)
        .and_then(|value| value.checked_add(fraction))
        .and_then(|value| value.checked_mul(u128::from(unit)))
        .ok_or_else(out_of_range)?;
    if !scaled.is_multiple_of(tens) {
        return Err(out_of_range());
    }
    u64::try_from(scaled / tens).map_err(|_| out_of_range())
}

/// Returns the bytes in a unit of size or rate as programs print it, `kB`, `MiB/s`, `bytes/sec`,
/// `m`: with `i` a power of 1024, otherwise of `kilo`, which is 1000 or 1024.
#[must_use]
pub fn bytes_in(unit: &str, kilo: f64) -> Option<f64> {
    let unit = unit.strip_suffix("/s").unwrap_or(unit);
    let unit = unit.strip_suffix("/sec").unwrap_or(unit);
    if unit == "bytes" {
        return Some(1.0);
    }
    let unit = unit.strip_suffix('B').unwrap_or(unit);
    let (prefix, kilo) = match unit.strip_suffix('i') {
        Some(prefix) if !prefix.is_empty() => (prefix, 1024.0),
        _ => (unit, kilo),
    };
    let power = match prefix {
        "" => 0,
        "k" | "K" => 1,
        "m" | "M" => 2,
        "g" | "G" => 3,
        "t" | "T" => 4,
        "p" | "P" => 5,
        _ => return None,
    };
    Some(f64::powi(kilo, power))
}

#[cfg(test)]
mod tests {
    use super::{bytes_in, parse_bytes, parse_duration};
    use crate::{Bytes, Nanos};

    #[test]
    fn sizes_are_read_as_fio_reads_them() {
        let cases = [
            ("4096", 4096),
            ("4k", 4096),
            ("128K", 131_072),
            ("3t", 3 << 40),
            ("1.5g", 3 << 29),
            ("64KiB", 65_536),
            (" 8 m ", 8 << 20),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_bytes(text), Ok(Bytes(bytes)), "{text}");
        }
    }

    #[test]
    fn times_default_to_seconds() {
        let cases = [
            ("60", Nanos::from_secs(60)),
            ("59us", Nanos::from_micros(59)),
            ("1h", Nanos::from_secs(3600)),
            ("0.5ms", Nanos::from_micros(500)),
        ];
        for (text, time) in cases {
            assert_eq!(parse_duration(text), Ok(time), "{text}");
        }
    }

    #[test]
    fn errors_name_what_is_wrong() {
        let cases = [
            ("", "`` does not start with a number"),
            ("k4", "`k4` does not start with a number"),
            (
                "4q",
                "`q` is not a unit of size; use one of b, k, m, g, t, p",
            ),
            ("0.3", "`0.3` is out of range"),
            ("1.2.3k", "`1.2.3k` is out of range"),
            ("99999999t", "`99999999t` is out of range"),
        ];
        for (text, message) in cases {
            let error = parse_bytes(text).expect_err(text);
            assert_eq!(error.to_string(), message);
        }
    }

    #[test]
    fn units_are_powers_of_1024_or_1000() {
        let cases = [
            ("KB", 1024.0, 1024.0),
            ("KiB", 1000.0, 1024.0),
            ("kB/s", 1000.0, 1000.0),
            ("B/s", 1024.0, 1.0),
            ("m", 1024.0, 1_048_576.0),
            ("GB", 1024.0, 1_073_741_824.0),
            ("bytes/sec", 1024.0, 1.0),
        ];
        for (unit, kilo, bytes) in cases {
            assert_eq!(bytes_in(unit, kilo), Some(bytes), "{unit}");
        }
        for unit in ["i", "iB", "x", "KiBs", "us"] {
            assert_eq!(bytes_in(unit, 1024.0), None, "{unit}");
        }
    }
}
