//! Errors of reading a tool's output.

use crate::Tool;
use thiserror::Error;

/// The reason why a tool's output could not be read.
#[derive(Debug, Error)]
pub enum ParseError {
    /// The text holds no output of the tool.
    #[error("no output of {tool} found: expected {expected}")]
    NoOutput {
        /// The tool whose output was expected.
        tool: Tool,
        /// The mark by which that output would be recognized.
        expected: &'static str,
    },
    /// A line does not have the form that its place requires.
    #[error("line {line}: expected {expected}, found `{found}`")]
    Line {
        /// The number of the line, from 1.
        line: usize,
        /// The form that was expected.
        expected: &'static str,
        /// The text that was found, shortened.
        found: String,
    },
    /// A member of a JSON document does not have the form that its name requires.
    #[error("the JSON that begins in line {line}: `{path}`: expected {expected}, found `{found}`")]
    Member {
        /// The line at which the document begins, from 1.
        line: usize,
        /// The path to the member: `jobs[0].read.io_bytes`.
        path: String,
        /// The form that was expected.
        expected: &'static str,
        /// The text that was found, shortened.
        found: String,
    },
    /// A JSON document is broken or cut off.
    #[error("the JSON that begins in line {line} cannot be read")]
    Json {
        /// The line at which the document begins, from 1.
        line: usize,
        /// The JSON reader's error, with lines counted within the document.
        #[source]
        source: serde_json::Error,
    },
}

impl ParseError {
    /// The error of a wrong line; `index` counts from 0.
    pub(crate) fn line(index: usize, expected: &'static str, found: &str) -> Self {
        Self::Line {
            line: index + 1,
            expected,
            found: shorten(found),
        }
    }
}

/// The first part of a text, for an error.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 80;
    let text = text.trim();
    if text.chars().count() <= LONGEST {
        return text.to_owned();
    }
    let mut short: String = text.chars().take(LONGEST).collect();
    short.push('…');
    short
}

#[cfg(test)]
mod tests {
    use super::{ParseError, shorten};

    #[test]
    fn long_lines_are_shortened_between_letters() {
        let error = ParseError::line(2, "a number", &"ä".repeat(200));
        let text = error.to_string();
        assert!(text.starts_with("line 3: expected a number, found `ää"));
        assert!(text.chars().count() < 140);
        assert_eq!(shorten("  x "), "x");
    }
}
