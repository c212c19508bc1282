//! Reading the values of fio's options.

use super::error::OptionError;
use raidlab_units::{Bytes, Nanos, parse_bytes, parse_duration};
use std::ops::RangeInclusive;

/// What `k`, `m`, `g`, `t`, `p` multiply by (fio `kb_base`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum KiloBase {
    /// `k` is 1024 and `ki` is 1000: fio's default, the reverse of the
    /// standards, so that old job files keep their meaning.
    #[default]
    Binary,
    /// `k` is 1000 and `ki` is 1024.
    Decimal,
}

/// A size: `4096`, `4k`, `4kb`, `4KiB`, `0x1000`, `1.5g`.
pub(super) fn size(text: &str, base: KiloBase) -> Result<Bytes, OptionError> {
    let lower = text.trim().to_ascii_lowercase();
    if let Some(hexadecimal) = lower.strip_prefix("0x") {
        return u64::from_str_radix(hexadecimal, 16)
            .map(Bytes)
            .map_err(|_| not_a_number(text, 0..=u64::MAX));
    }
    let not_a_size = |cause| OptionError::Size {
        text: text.to_owned(),
        cause,
    };
    let unit_start = lower
        .find(|letter: char| letter.is_ascii_alphabetic())
        .unwrap_or(lower.len());
    let (number, unit) = lower.split_at(unit_start);
    let unit = unit.strip_suffix('b').unwrap_or(unit);
    let (letter, has_i) = match unit.strip_suffix('i') {
        Some(letter) => (letter, true),
        None => (unit, false),
    };
    let power = match letter {
        "" if !has_i => 0,
        "k" => 1,
        "m" => 2,
        "g" => 3,
        "t" => 4,
        "p" => 5,
        _ => return parse_bytes(&lower).map_err(not_a_size),
    };
    if has_i == (base == KiloBase::Decimal) {
        return parse_bytes(&format!("{number}{letter}")).map_err(not_a_size);
    }
    let bytes = parse_bytes(number).map_err(not_a_size)?;
    (0..power)
        .try_fold(bytes.0, |bytes, _| bytes.checked_mul(1000))
        .map(Bytes)
        .ok_or_else(|| not_a_number(text, 0..=u64::MAX))
}

/// A time; a plain number is in `unit` (`s` or `us`).
pub(super) fn time(text: &str, unit: &str) -> Result<Nanos, OptionError> {
    let lower = text.trim().to_ascii_lowercase();
    // `usec` and `msec` are other spellings of `us` and `ms`.
    let short = lower.strip_suffix("ec").unwrap_or(&lower);
    let with_unit = if short.ends_with(|last: char| last.is_ascii_digit()) {
        format!("{short}{unit}")
    } else {
        short.to_owned()
    };
    parse_duration(&with_unit).map_err(|cause| OptionError::Time {
        text: text.to_owned(),
        cause,
    })
}

/// A whole number in `range`.
pub(super) fn number(text: &str, range: RangeInclusive<u64>) -> Result<u64, OptionError> {
    text.trim()
        .parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| not_a_number(text, range))
}

/// A whole number from 1, or from 0, to 2^32 - 1.
pub(super) fn count(text: &str, least: u32) -> Result<u32, OptionError> {
    let range = u64::from(least)..=u64::from(u32::MAX);
    let value = number(text, range.clone())?;
    u32::try_from(value).map_err(|_| not_a_number(text, range))
}

/// A switch: nothing or `1` is on, `0` is off. fio takes `1--time_based` for
/// on and drops the rest; here that is an error.
pub(super) fn switch(text: Option<&str>) -> Result<bool, OptionError> {
    match text.map(str::trim) {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(text) => Err(OptionError::Choice {
            text: text.to_owned(),
            expected: "0, 1",
        }),
    }
}

fn not_a_number(text: &str, range: RangeInclusive<u64>) -> OptionError {
    OptionError::Number {
        text: text.to_owned(),
        least: *range.start(),
        most: *range.end(),
    }
}

/// Millionths of a decimal number such as `1.2`.
pub(super) fn millionths(text: &str) -> Result<u32, OptionError> {
    let wrong = || OptionError::Choice {
        text: text.to_owned(),
        expected: "decimal numbers such as 1.2",
    };
    let (whole, part) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let digits = |text: &str| text.bytes().all(|digit| digit.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) || part.len() > 6 {
        return Err(wrong());
    }
    let part = format!("{part:0<6}").parse::<u32>().map_err(|_| wrong())?;
    let whole = whole.parse::<u32>().map_err(|_| wrong())?;
    let millionths = whole.checked_mul(1_000_000);
    millionths
        .and_then(|millionths| millionths.checked_add(part))
        .ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::{KiloBase, size, switch, time};
    use raidlab_units::{Bytes, Nanos};

    #[test]
    fn sizes_follow_the_kilo_base() {
        // From the examples under "Parameter types" in fio's HOWTO.
        let cases = [
            ("4096", 4096, 4096),
            ("4096b", 4096, 4096),
            ("0x1000", 4096, 4096),
            ("4k", 4096, 4000),
            ("4K", 4096, 4000),
            ("4kb", 4096, 4000),
            ("4KiB", 4000, 4096),
            ("1m", 1 << 20, 1_000_000),
            ("1MiB", 1_000_000, 1 << 20),
            ("3t", 3 << 40, 3_000_000_000_000),
            ("2pi", 2_000_000_000_000_000, 2 << 50),
        ];
        for (text, binary, decimal) in cases {
            let sizes = [size(text, KiloBase::Binary), size(text, KiloBase::Decimal)];
            assert_eq!(sizes, [Ok(Bytes(binary)), Ok(Bytes(decimal))], "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "", "k", "4q", "4i", "0x", "0xg", "-4k", "4 k k", "i", "b", "ü",
        ] {
            for base in [KiloBase::Binary, KiloBase::Decimal] {
                assert!(size(text, base).is_err(), "{text} {base:?}");
            }
        }
        assert!(size("99999999999999p", KiloBase::Decimal).is_err());
    }

    #[test]
    fn times_have_the_unit_of_their_option() {
        let cases = [
            ("60", "s", Nanos::from_secs(60)),
            ("60", "us", Nanos::from_micros(60)),
            ("2m", "s", Nanos::from_secs(120)),
            ("500ms", "s", Nanos::from_millis(500)),
            ("500msec", "us", Nanos::from_millis(500)),
            ("1.5h", "s", Nanos::from_secs(5400)),
        ];
        for (text, unit, expected) in cases {
            assert_eq!(time(text, unit), Ok(expected), "{text}");
        }
        for text in ["", "s", "-1", "5x", "ec"] {
            assert!(time(text, "s").is_err(), "{text}");
        }
    }

    #[test]
    fn a_switch_drops_nothing() {
        assert_eq!(switch(None), Ok(true));
        assert_eq!(switch(Some("0")), Ok(false));
        assert!(switch(Some("1--time_based=1")).is_err());
    }
}
