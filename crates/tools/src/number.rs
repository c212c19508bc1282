//! Parsers of numbers as tools print them.

/// Parses a finite number with a decimal point.
pub(crate) fn finite(text: &str) -> Option<f64> {
    let text = text.trim();
    // No tool here prints a number as `inf`, `nan` or `0x1p3`.
    text.starts_with(|first: char| first.is_ascii_digit() || "+-.".contains(first))
        .then(|| text.parse::<f64>().ok())
        .flatten()
        .filter(|number| number.is_finite())
}

/// Parses a number that may end in a percent sign.
pub(crate) fn percent(text: &str) -> Option<f64> {
    let text = text.trim();
    finite(text.strip_suffix('%').unwrap_or(text))
}

/// The whole number nearest to a number from 0 to 2^64.
// The range was checked above.
pub(crate) fn whole(number: f64) -> Option<u64> {
    (number.is_finite() && (0.0..1.8e19).contains(&number)).then(|| number.round() as u64)
}

/// Converts a time in seconds to nanoseconds.
pub(crate) fn nanoseconds(seconds: f64) -> Option<u64> {
    whole(seconds * 1e9)
}

/// A number with a unit: its value, its unit and the step of its last digit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Measured<'text> {
    /// The number as printed, without its unit.
    pub(crate) value: f64,
    /// One step of the last digit printed: 0.1 in `92.3`.
    pub(crate) step: f64,
    /// The text after the number, trimmed.
    pub(crate) unit: &'text str,
}

/// Splits `92.3MiB/s` into its number and its unit.
pub(crate) fn measured(text: &str) -> Option<Measured<'_>> {
    let text = text.trim();
    let end = text
        .find(|letter: char| !letter.is_ascii_digit() && letter != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    let digits = number.split_once('.').map_or(0, |(_, after)| after.len());
    Some(Measured {
        value: finite(number)?,
        step: 0.1_f64.powi(i32::try_from(digits).ok()?),
        unit: unit.trim(),
    })
}

/// Whether two rates differ by more than `tolerance`, a share of the first.
pub(crate) fn differ(one: f64, other: f64, tolerance: f64) -> bool {
    (one - other).abs() > tolerance * one.abs()
}

#[cfg(test)]
mod tests {
    use super::{finite, measured, whole};

    #[test]
    fn numbers_that_are_none_are_refused() {
        for text in [
            "", "inf", "-nan", "NaN", "infinity", "1e999", "+++++", "0x10",
        ] {
            assert_eq!(finite(text), None, "{text}");
        }
        assert_eq!(finite(" 7.5694e-05 "), Some(7.5694e-5));
        assert_eq!(
            (whole(-1.0), whole(1e30), whole(2.6)),
            (None, None, Some(3))
        );
    }

    #[test]
    fn a_unit_is_told_from_its_number() {
        let rate = measured("92.3MiB/s").expect("a rate");
        assert_eq!((rate.value, rate.unit), (92.3, "MiB/s"));
        assert!((rate.step - 0.1).abs() < 1e-12);
        assert_eq!(measured("MiB"), None);
    }
}
