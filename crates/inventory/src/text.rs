//! Helpers for reading text that several parts of this crate share.

use crate::InventoryError;
use raidlab_shell::{Target, TargetError};

/// Reads a file's trimmed text; `None` where there is no such file, where it is empty, or where the
/// kernel has no value for it (many files of `/sys` answer with an error then).
///
/// # Errors
/// Only when the machine cannot be reached at all.
pub fn optional(target: &dyn Target, path: &str) -> Result<Option<String>, InventoryError> {
    match target.read(path) {
        Ok(text) => Ok(Some(text.trim().to_owned()).filter(|text| !text.is_empty())),
        Err(TargetError::Io { .. }) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Reads a number in a file, as [`optional`] does.
///
/// # Errors
/// As [`optional`].
pub(crate) fn optional_number(
    target: &dyn Target,
    path: &str,
) -> Result<Option<u64>, InventoryError> {
    Ok(optional(target, path)?.and_then(|text| text.parse().ok()))
}

/// Parses a decimal number as an integer, scaled by so many decimal places: `12.5` with three
/// places is 12500; further digits are dropped.
pub(crate) fn decimal(number: &str, places: u8) -> Option<u64> {
    let (whole, part) = number.split_once('.').unwrap_or((number, ""));
    let digits = part.chars().chain(std::iter::repeat('0'));
    let digits: String = digits.take(places.into()).collect();
    let whole = whole.parse::<u64>().ok()?;
    whole
        .checked_mul(10_u64.pow(places.into()))?
        .checked_add(digits.parse().ok()?)
}

/// The output of a command; `None` where the program is not installed or ends with a failure.
///
/// # Errors
/// Only when the machine cannot be reached at all.
pub(crate) fn optional_output(
    target: &dyn Target,
    command: &raidlab_shell::Command,
) -> Result<Option<String>, InventoryError> {
    match target.run(command) {
        Ok(output) => Ok(Some(output.stdout)),
        Err(
            TargetError::NoProgram { .. }
            | TargetError::Failed { .. }
            | TargetError::Timeout { .. }
            | TargetError::Io { .. },
        ) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Decodes a path in the kernel's tables, where space, tab, line feed and backslash are three octal
/// digits after a backslash (Linux `fs/seq_file.c`, `mangle_path`).
#[must_use]
pub fn unescape(word: &str) -> String {
    let mut bytes = Vec::with_capacity(word.len());
    let mut rest = word.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let code = (first == b'\\')
            .then(|| after.get(..3))
            .flatten()
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::unescape;

    #[test]
    fn the_kernel_s_escapes_are_undone_and_others_kept() {
        assert_eq!(unescape(r"/mnt/my\040disk"), "/mnt/my disk");
        assert_eq!(unescape(r"a\134b"), r"a\b");
        assert_eq!(unescape(r"a\9b\"), r"a\9b\");
        assert_eq!(unescape(r"caf\303\251"), "café");
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_taken(text in ".*") {
            let plain = unescape(&text);
            if !text.contains('\\') {
                assert_eq!(plain, text);
            }
        }
    }
}
