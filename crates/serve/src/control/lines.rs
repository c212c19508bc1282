//! Reading of lines of bounded length.

use super::MAXIMUM_LINE_BYTES;
use std::io::{self, BufRead, Read};

/// The result of reading a line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// A line without its end. The last line of a stream may lack one.
    Whole(Vec<u8>),
    /// A line without an end within the bound; the following lines cannot be found.
    TooLong,
    /// The end of the stream.
    End,
}

pub(super) fn read_line(from: &mut impl BufRead) -> io::Result<Line> {
    let mut line = Vec::new();
    let bound = MAXIMUM_LINE_BYTES as u64;
    from.by_ref().take(bound).read_until(b'\n', &mut line)?;
    if line.last() == Some(&b'\n') {
        line.pop();
        return Ok(Line::Whole(line));
    }
    if line.len() == MAXIMUM_LINE_BYTES {
        return Ok(Line::TooLong);
    }
    if line.is_empty() {
        return Ok(Line::End);
    }
    Ok(Line::Whole(line))
}
