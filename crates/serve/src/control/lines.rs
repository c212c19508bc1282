//! Lines of bounded length.

use super::MAXIMUM_LINE_BYTES;
use std::io::{self, BufRead, Read};

/// A line that was read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Without its end. The last line may lack one.
    Whole(Vec<u8>),
    /// There is no end within the bound; what follows cannot be told apart.
    TooLong,
    /// The other side sends nothing more.
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
