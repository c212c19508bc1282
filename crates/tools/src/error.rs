//! Why a tool's output could not be read.

use crate::Tool;
use thiserror::Error;

/// Why a tool's output could not be read.
#[derive(Debug, Error)]
pub enum ParseError {
    /// The text has nothing of the tool's in it.
    #[error("no output of {tool} found: expected {expected}")]
    NoOutput {
        /// Whose output it should be.
        tool: Tool,
        /// What it would be known by.
        expected: &'static str,
    },
    /// A line is not what its place demands.
    #[error("line {line}: expected {expected}, found `{found}`")]
    Line {
        /// Its number, from 1.
        line: usize,
        /// What should stand there.
        expected: &'static str,
        /// What stands there, shortened.
        found: String,
    },
    /// A member of a JSON document is not what its name demands.
    #[error("the JSON that begins in line {line}: `{path}`: expected {expected}, found `{found}`")]
    Member {
        /// Where the document begins, from 1.
        line: usize,
        /// The way to the member: `jobs[0].read.io_bytes`.
        path: String,
        /// What should stand there.
        expected: &'static str,
        /// What stands there, shortened.
        found: String,
    },
    /// A JSON document is broken or cut off.
    #[error("the JSON that begins in line {line} cannot be read")]
    Json {
        /// Where the document begins, from 1.
        line: usize,
        /// What is wrong with it; lines are counted within the document.
        #[source]
        source: serde_json::Error,
    },
}

impl ParseError {
    /// A line that is wrong; `index` counts from 0.
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
