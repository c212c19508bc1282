//! Helpers for reading and writing text: an error with its causes, the line of a byte, bytes as
//! hexadecimal digits, numbers with their nouns.

use std::error::Error;
use std::fmt::Write;

/// Returns the messages of an error and its causes, the outermost first.
#[must_use]
pub fn reasons(error: &dyn Error) -> Vec<String> {
    let all = std::iter::successors(Some(error), |&error| error.source());
    all.map(ToString::to_string).collect()
}

/// Returns an error and its causes in one line: `cannot read x: no such file`.
#[must_use]
pub fn in_one_line(error: &dyn Error) -> String {
    reasons(error).join(": ")
}

/// Returns the line of a text that contains this byte, from 1; the last line for a byte
/// beyond the end.
#[must_use]
pub fn line_of(text: &str, byte: usize) -> usize {
    let before = text.bytes().take(byte);
    1 + before.filter(|one| *one == b'\n').count()
}

/// Returns bytes as text of two hexadecimal digits each.
#[must_use]
pub fn hexadecimal(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        write!(text, "{byte:02x}").expect("a string takes all");
    }
    text
}

/// Returns a number with its noun: `1 job`, `29 jobs`.
#[must_use]
pub fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}

/// Whether a list of words, separated by blanks or line ends, contains this one.
#[must_use]
pub fn lists(words: &str, word: &str) -> bool {
    words.split_whitespace().any(|known| known == word)
}

/// Returns the columns of one line of a text table: two or more blanks separate them.
pub fn columns(line: &str) -> impl Iterator<Item = &str> {
    let columns = line.split("  ").map(str::trim);
    columns.filter(|column| !column.is_empty())
}

/// Returns the rows of a table that is part of the program: each line is one, in [`columns`],
/// except empty ones and comments, which begin with `#`.
///
/// # Panics
/// When a line has another number of columns, or `row` rejects it: the first test that reads the
/// table fails then, and no line is lost.
pub fn table<T, const COLUMNS: usize>(
    text: &'static str,
    row: impl Fn([&'static str; COLUMNS]) -> Option<T>,
) -> Vec<T> {
    let lines = text.lines();
    let lines = lines.filter(|line| !line.is_empty() && !line.starts_with('#'));
    let rows = lines.map(|line| {
        let columns: Vec<&str> = columns(line).collect();
        let read = columns.try_into().ok().and_then(&row);
        read.unwrap_or_else(|| panic!("a table has a line that is no row of it: {line}"))
    });
    rows.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt;

    #[derive(Debug)]
    struct Outer(fmt::Error);

    impl fmt::Display for Outer {
        fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
            formatter.write_str("cannot say it")
        }
    }

    impl Error for Outer {
        fn source(&self) -> Option<&(dyn Error + 'static)> {
            Some(&self.0)
        }
    }

    #[test]
    fn causes_follow_their_error() {
        let inner = fmt::Error.to_string();
        let error = Outer(fmt::Error);
        assert_eq!(reasons(&error), ["cannot say it", &inner]);
        assert_eq!(in_one_line(&error), format!("cannot say it: {inner}"));
    }

    #[test]
    fn lines_are_counted_from_one() {
        let lines: Vec<usize> = (0..8).map(|byte| line_of("a\n\u{e4}\nb", byte)).collect();
        assert_eq!(lines, [1, 1, 2, 2, 2, 3, 3, 3]);
        assert_eq!(hexadecimal(&[0, 0xab, 9]), "00ab09");
        let counts = [0, 1, 2].map(|number| count(number, "job", "jobs"));
        assert_eq!(counts, ["0 jobs", "1 job", "2 jobs"]);
    }

    #[test]
    fn rows_of_a_table_are_its_lines_without_comments() {
        let rows = table("# two columns\n\na b  1\nc    2\n", |[name, number]| {
            Some((name, number.parse::<u8>().ok()?))
        });
        assert_eq!(rows, [("a b", 1), ("c", 2)]);
    }

    #[test]
    #[should_panic(expected = "no row of it: c  3")]
    fn a_line_with_too_few_columns_is_not_left_out() {
        table("a  1  x\nc  3\n", |[name, _, _]| Some(name));
    }

    #[test]
    #[should_panic(expected = "no row of it: c  three")]
    fn a_line_with_an_unknown_word_is_not_left_out() {
        table("a  1\nc  three\n", |[_, number]| number.parse::<u8>().ok());
    }
}
