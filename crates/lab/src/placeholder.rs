//! Placeholders in a suite's texts for tools: `{target}`, `{capacity*3/4}`.
//!
//! A suite is written before its machine is known. Text that depends on the machine is in braces: a
//! name, and for numbers at most one factor and one divisor after it, in this order. The arithmetic
//! is that of integers: multiplied first, then divided and rounded down.
//!
//! `${NAME}` is fio's own syntax of a variable and left alone.

/// The values for one job on one machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placeholders {
    /// The value of `{target}`: the array's device, or the folder of the file system.
    pub target: String,
    /// The value of `{file}`: a file in that folder, or the device.
    pub file: String,
    /// The value of `{memory}`: main memory, bytes.
    pub memory_bytes: u64,
    /// The value of `{capacity}`: the size of the target, or the free space of a
    /// file system, bytes.
    pub capacity_bytes: u64,
}

/// An error in a placeholder.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PlaceholderError {
    /// An opening brace has no closing one.
    #[error("`{text}` has no closing brace")]
    Unclosed {
        /// The text from the opening brace on.
        text: String,
    },
    /// No placeholder has this name.
    #[error("there is no placeholder `{{{name}}}`")]
    Unknown {
        /// The name as written.
        name: String,
    },
    /// The expression is more than a name, a factor and a divisor, or a text is multiplied.
    #[error("`{{{placeholder}}}` cannot be worked out")]
    Arithmetic {
        /// The text between the braces.
        placeholder: String,
    },
    /// The result is too large for 64 bits.
    #[error("`{{{placeholder}}}` is too large")]
    TooLarge {
        /// The text between the braces.
        placeholder: String,
    },
}

/// The names that a matrix must not take.
pub(crate) const NAMES: [&str; 4] = ["target", "file", "memory", "capacity"];

/// The remedy for a wrong placeholder.
pub(crate) const REMEDY: &str =
    "write {target}, {file}, {memory}, {capacity}, or a number of those as {capacity*3/4}";

/// The text with example values, for a check before the machine is known; `None` where there is
/// nothing to replace.
///
/// # Errors
/// As [`expand`].
pub(crate) fn example(text: &str) -> Result<Option<String>, PlaceholderError> {
    let values = Placeholders {
        target: "/target".to_owned(),
        file: "/target/file".to_owned(),
        memory_bytes: 16 << 30,
        capacity_bytes: 1 << 40,
    };
    let expand = |_| expand(text, &values);
    opening(text).map(expand).transpose()
}

/// The text with every placeholder replaced by its value.
///
/// # Errors
/// When a placeholder is not known, cannot be worked out or is too large.
pub fn expand(text: &str, values: &Placeholders) -> Result<String, PlaceholderError> {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = opening(rest) {
        let (before, from) = rest.split_at(start);
        let Some(end) = from.find('}') else {
            let text = from.to_owned();
            return Err(PlaceholderError::Unclosed { text });
        };
        expanded.push_str(before);
        expanded.push_str(&value(&from[1..end], values)?);
        rest = &from[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// The first opening brace that does not belong to `${`.
fn opening(text: &str) -> Option<usize> {
    let mut braces = text.match_indices('{');
    braces
        .find(|(at, _)| !text[..*at].ends_with('$'))
        .map(|(at, _)| at)
}

/// The value of the text between two braces.
fn value(placeholder: &str, values: &Placeholders) -> Result<String, PlaceholderError> {
    let end = placeholder.find(['*', '/']).unwrap_or(placeholder.len());
    let (name, operations) = placeholder.split_at(end);
    let text = match name {
        "target" => &values.target,
        "file" => &values.file,
        "memory" => return number(placeholder, values.memory_bytes, operations),
        "capacity" => return number(placeholder, values.capacity_bytes, operations),
        _ => {
            let name = name.to_owned();
            return Err(PlaceholderError::Unknown { name });
        }
    };
    if operations.is_empty() {
        Ok(text.clone())
    } else {
        Err(arithmetic(placeholder))
    }
}

fn arithmetic(placeholder: &str) -> PlaceholderError {
    PlaceholderError::Arithmetic {
        placeholder: placeholder.to_owned(),
    }
}

/// The number `bytes`, multiplied and divided by `operations` (`*3/4`).
fn number(placeholder: &str, bytes: u64, operations: &str) -> Result<String, PlaceholderError> {
    let (factor, divisor) = match operations.split_once('/') {
        Some((factor, divisor)) => (factor, Some(divisor)),
        None => (operations, None),
    };
    let factor = match factor.strip_prefix('*') {
        Some(factor) => Some(factor),
        None if factor.is_empty() => None,
        None => return Err(arithmetic(placeholder)),
    };
    let operand = |text: Option<&str>| match text {
        None => Ok(1),
        Some(digits) if digits.bytes().all(|digit| digit.is_ascii_digit()) => digits
            .parse::<u64>()
            .ok()
            .filter(|&number| number > 0)
            .ok_or_else(|| arithmetic(placeholder)),
        Some(_) => Err(arithmetic(placeholder)),
    };
    let product = u128::from(bytes) * u128::from(operand(factor)?);
    let quotient = product / u128::from(operand(divisor)?);
    u64::try_from(quotient)
        .map(|number| number.to_string())
        .map_err(|_| PlaceholderError::TooLarge {
            placeholder: placeholder.to_owned(),
        })
}

#[cfg(test)]
mod tests {
    use super::{PlaceholderError, Placeholders, expand};
    use proptest::prelude::*;

    fn values() -> Placeholders {
        Placeholders {
            target: "/mnt/array".to_owned(),
            file: "/mnt/array/data".to_owned(),
            memory_bytes: 8 << 30,
            capacity_bytes: 1001,
        }
    }

    #[test]
    fn names_and_numbers_are_replaced() {
        for (text, expected) in [
            ("", ""),
            ("--rw=read", "--rw=read"),
            ("{target}", "/mnt/array"),
            ("if={file} of=/dev/null", "if=/mnt/array/data of=/dev/null"),
            ("{memory}", "8589934592"),
            ("{memory*2}", "17179869184"),
            ("{memory*4/1048576}", "32768"),
            ("{capacity/8}x{capacity*3/4}", "125x750"),
            ("${NAME} $ncpus {capacity}", "${NAME} $ncpus 1001"),
        ] {
            assert_eq!(expand(text, &values()).as_deref(), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_placeholder_is_refused() {
        for (text, error) in [
            ("{", "`{` has no closing brace"),
            ("a {target", "`{target` has no closing brace"),
            ("{}", "there is no placeholder `{}`"),
            ("{bs}", "there is no placeholder `{bs}`"),
            ("{ target }", "there is no placeholder `{ target }`"),
            ("{target*2}", "`{target*2}` cannot be worked out"),
            ("{memory*}", "`{memory*}` cannot be worked out"),
            ("{memory/0}", "`{memory/0}` cannot be worked out"),
            ("{memory/2*3}", "`{memory/2*3}` cannot be worked out"),
            ("{memory*+2}", "`{memory*+2}` cannot be worked out"),
            ("{memory*1.5}", "`{memory*1.5}` cannot be worked out"),
            (
                "{memory*99999999999}",
                "`{memory*99999999999}` is too large",
            ),
        ] {
            let found = expand(text, &values()).map_err(|error| error.to_string());
            assert_eq!(found, Err(error.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_expanded_or_refused(text in "[a-z{}*/$0-9]{0,20}") {
            let braces = text.contains('{');
            match expand(&text, &values()) {
                Ok(expanded) => prop_assert!(braces || expanded == text),
                Err(PlaceholderError::Unclosed { text: rest }) => prop_assert!(text.ends_with(&rest)),
                Err(_) => prop_assert!(braces),
            }
        }

        #[test]
        fn numbers_are_multiplied_before_they_are_divided(
            capacity_bytes in 0_u64..1 << 50,
            factor in 1_u64..1000,
            divisor in 1_u64..1000,
        ) {
            let values = Placeholders { capacity_bytes, ..values() };
            let text = format!("{{capacity*{factor}/{divisor}}}");
            let expected = (capacity_bytes * factor / divisor).to_string();
            prop_assert_eq!(expand(&text, &values), Ok(expected));
        }
    }
}
