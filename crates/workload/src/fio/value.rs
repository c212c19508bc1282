//! Reading the values of fio's options.

use super::error::OptionError;
use raidlab_units::{Bytes, LONGEST_TIME, Nanos, parse_duration};
use std::ops::RangeInclusive;

/// The factors of `k`, `m`, `g`, `t`, `p` (fio `kb_base`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) enum KiloBase {
    /// `k` is 1024 and `ki` is 1000: fio's default, the reverse of the
    /// standards, so that old job files keep their meaning.
    #[default]
    Binary,
    /// `k` is 1000 and `ki` is 1024.
    Decimal,
}

/// A size as fio reads it: `4096`, `4k`, `4kb`, `4KiB`, `0x1000`.
///
/// fio's reader (`str_to_decimal` and `get_mult_bytes` of its parse.c) reads the beginning of a
/// text that it knows and silently drops the rest: `1.5g` is one byte to it, `4 k` are four, and
/// `4ki`, which its manual calls 4000 bytes, are 4096. A text that fio would not read completely is
/// refused here, so that both benches run what was written.
pub(super) fn size(text: &str, base: KiloBase) -> Result<Bytes, OptionError> {
    let lower = text.trim().to_ascii_lowercase();
    let hexadecimal = lower.strip_prefix("0x");
    if let Some(digits) = hexadecimal.filter(|digits| !digits.starts_with('+')) {
        let number = u64::from_str_radix(digits, 16);
        return number
            .map(Bytes)
            .map_err(|_| not_a_number(text, 0..=u64::MAX));
    }
    let (number, unit) = whole_and_unit(&lower);
    let letter = unit.strip_suffix("ib").filter(|letter| !letter.is_empty());
    let is_reversed = letter.is_some();
    let letter = letter.unwrap_or(unit.strip_suffix('b').unwrap_or(unit));
    let power = ["", "k", "m", "g", "t", "p"];
    let power = power.iter().position(|known| *known == letter);
    let (Ok(number), Some(power)) = (number.parse::<u64>(), power) else {
        return Err(choice(
            text,
            "the sizes that fio reads: whole numbers with b, k, kb, KiB, m, g, t, p or nothing \
             behind them",
        ));
    };
    let factor: u64 = match is_reversed == (base == KiloBase::Decimal) {
        true => 1024,
        false => 1000,
    };
    (0..power)
        .try_fold(number, |bytes, _| bytes.checked_mul(factor))
        .map(Bytes)
        .ok_or_else(|| not_a_number(text, 0..=u64::MAX))
}

/// A time as fio reads it; a plain number is in `unit` (`s` or `us`).
///
/// fio's `get_mult_time` knows no fractions, `1.5h` is a second to it, and takes units that it does
/// not know for microseconds, `60sec` and `1min` too. It would also run for centuries: a time
/// longer than [`LONGEST_TIME`] is refused on every bench.
pub(super) fn time(text: &str, unit: &str) -> Result<Nanos, OptionError> {
    let lower = text.trim().to_ascii_lowercase();
    let (number, own) = whole_and_unit(&lower);
    let unit = match own {
        "" => unit,
        "usec" => "us",
        "msec" => "ms",
        own => own,
    };
    let is_known = ["us", "ms", "s", "m", "h", "d"].contains(&unit);
    match number.parse::<u64>() {
        Ok(_) if is_known => parse_duration(&format!("{number}{unit}"))
            .ok()
            .filter(|&time| time <= LONGEST_TIME)
            .ok_or_else(|| OptionError::TooLong {
                text: text.to_owned(),
            }),
        _ => Err(choice(
            text,
            "the times that fio reads: whole numbers with us, ms, s, m, h, d or nothing behind \
             them",
        )),
    }
}

/// Splits a text into its digits and the rest.
fn whole_and_unit(text: &str) -> (&str, &str) {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    text.split_at(digits)
}

/// Parses a whole number in `range`.
pub(super) fn number(text: &str, range: RangeInclusive<u64>) -> Result<u64, OptionError> {
    text.trim()
        .parse()
        .ok()
        .filter(|number| range.contains(number))
        .ok_or_else(|| not_a_number(text, range))
}

/// Parses a whole number from 1, or from 0, to 2^32 - 1.
pub(super) fn count(text: &str, least: u32) -> Result<u32, OptionError> {
    count_in(text, least..=u32::MAX)
}

/// Parses a whole number in a range of 32 bits.
pub(super) fn count_in(text: &str, range: RangeInclusive<u32>) -> Result<u32, OptionError> {
    let range = u64::from(*range.start())..=u64::from(*range.end());
    let value = number(text, range.clone())?;
    u32::try_from(value).map_err(|_| not_a_number(text, range))
}

/// Parses a switch: nothing or `1` is on, `0` is off. fio takes `1--time_based` for on and drops
/// the rest; here that is an error.
pub(super) fn switch(text: Option<&str>) -> Result<bool, OptionError> {
    match text.map(str::trim) {
        None | Some("1") => Ok(true),
        Some("0") => Ok(false),
        Some(text) => Err(choice(text, "0, 1")),
    }
}

pub(super) fn choice(text: &str, expected: &'static str) -> OptionError {
    OptionError::Choice {
        text: text.to_owned(),
        expected,
    }
}

fn not_a_number(text: &str, range: RangeInclusive<u64>) -> OptionError {
    OptionError::Number {
        text: text.to_owned(),
        least: *range.start(),
        most: *range.end(),
    }
}

/// Parses a decimal number such as `1.2` into millionths.
pub(super) fn millionths(text: &str) -> Result<u32, OptionError> {
    let wrong = || choice(text, "decimal numbers such as 1.2");
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
    use raidlab_units::{Bytes, LONGEST_TIME, Nanos};

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
            ("4b", 4, 4),
            ("1m", 1 << 20, 1_000_000),
            ("1MiB", 1_000_000, 1 << 20),
            ("3t", 3 << 40, 3_000_000_000_000),
            ("2PiB", 2_000_000_000_000_000, 2 << 50),
        ];
        for (text, binary, decimal) in cases {
            let sizes = [size(text, KiloBase::Binary), size(text, KiloBase::Decimal)];
            assert_eq!(sizes, [Ok(Bytes(binary)), Ok(Bytes(decimal))], "{text}");
        }
    }

    #[test]
    fn what_is_no_size_is_refused() {
        for text in [
            "", "k", "4q", "4i", "0x", "0xg", "0x+1", "-4k", "+4k", "4 k", "i", "b", "ü", "4ib",
            "4ki", "1.5g", "1e3", "4kbb", "4k4",
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
            ("3H", "us", Nanos::from_secs(10_800)),
            ("2d", "s", Nanos::from_secs(172_800)),
            ("366d", "s", LONGEST_TIME),
        ];
        for (text, unit, expected) in cases {
            assert_eq!(time(text, unit), Ok(expected), "{text}");
        }
        for text in [
            "",
            "s",
            "-1",
            "+1",
            "5x",
            "ec",
            "1.5h",
            "0.1",
            "60sec",
            "1min",
            "5ns",
            "60 s",
            "1dec",
            "99999999999999999999",
            "99999999999999d",
            "367d",
            "40000d",
        ] {
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
