//! The frames that a guest writes to its result port.
//!
//! A frame is a line `raidlab-guest KIND LENGTH`, as many bytes as it says,
//! and a line end. The last is of kind `end`: without it the guest did not
//! come to its end.

use std::str;

/// The beginning of every frame.
const MARK: &[u8] = b"raidlab-guest ";

/// A frame: a kind and its bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The kind of the frame: `ready`, `exit`, `files`, `end`.
    pub kind: &'a str,
    /// The bytes that it carries.
    pub payload: &'a [u8],
}

/// Parses the frames that are there as a whole, in order.
///
/// # Errors
/// When there is something else between them.
pub fn frames(bytes: &[u8]) -> Result<Vec<Frame<'_>>, FrameError> {
    let mut frames = Vec::new();
    let mut at = 0;
    while let Some((frame, next)) = frame_at(bytes, at)? {
        frames.push(frame);
        at = next;
    }
    Ok(frames)
}

/// Parses the frame at a byte, and returns it with the place of the next; `None` when it
/// is not whole.
fn frame_at(bytes: &[u8], at: usize) -> Result<Option<(Frame<'_>, usize)>, FrameError> {
    let rest = &bytes[at..];
    let garbled = || FrameError { at };
    let marked = rest.len().min(MARK.len());
    if rest[..marked] != MARK[..marked] {
        return Err(garbled());
    }
    let Some(line_end) = rest.iter().position(|byte| *byte == b'\n') else {
        return Ok(None);
    };
    let line = rest.get(MARK.len()..line_end).ok_or_else(garbled)?;
    let line = str::from_utf8(line).map_err(|_| garbled())?;
    let (kind, length) = line.split_once(' ').ok_or_else(garbled)?;
    // A length of more bytes than memory has is no length of a frame.
    let length: u32 = length.trim().parse().map_err(|_| garbled())?;
    let begin = line_end + 1;
    let end = begin + length as usize;
    match (rest.get(begin..end), rest.get(end)) {
        (Some(payload), Some(b'\n')) => Ok(Some((Frame { kind, payload }, at + end + 1))),
        (Some(_), Some(_)) => Err(garbled()),
        _ => Ok(None),
    }
}

/// The error of bytes on the result port that are no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no frame at byte {at} of what the guest said")]
pub struct FrameError {
    /// The offset of the byte at which a frame must begin.
    pub at: usize,
}

#[cfg(test)]
mod tests {
    use super::{Frame, FrameError, frames};
    use proptest::prelude::*;

    #[test]
    fn frames_are_read_in_order_and_payloads_may_look_like_frames() {
        let bytes = b"raidlab-guest exit 2\n0\n\nraidlab-guest files 16\nraidlab-guest x\n\nraidlab-guest end 0\n\n";
        let read = frames(bytes).expect("three frames");
        let frame = |kind, payload| Frame { kind, payload };
        assert_eq!(
            read,
            [
                frame("exit", &b"0\n"[..]),
                frame("files", b"raidlab-guest x\n"),
                frame("end", b""),
            ]
        );
    }

    #[test]
    fn a_frame_that_is_not_whole_is_left() {
        let bytes = b"raidlab-guest ready 9\n1.5 2.25\n\nraidlab-guest exit 2\n1\n\n";
        let whole_ones = |length: usize| frames(&bytes[..length]).map(|frames| frames.len());
        for length in 0..32 {
            assert_eq!(whole_ones(length), Ok(0), "{length}");
        }
        for length in 32..bytes.len() {
            assert_eq!(whole_ones(length), Ok(1), "{length}");
        }
        assert_eq!(whole_ones(bytes.len()), Ok(2));
    }

    #[test]
    fn what_is_no_frame_is_told_with_its_place() {
        for (bytes, at) in [
            (&b"hello"[..], 0),
            (b"raidlab-guest exit\n", 0),
            (b"raidlab-guest exit -1\n", 0),
            (b"raidlab-guest exit 1\n00", 0),
            (b"raidlab-guest end 0\n\nmore", 21),
        ] {
            assert_eq!(frames(bytes), Err(FrameError { at }), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn no_bytes_make_the_reader_panic(bytes in "(raidlab-guest [a-z]{0,3} [0-9]{0,12}\n[a-z\n]{0,4}){0,4}") {
            let _ = frames(bytes.as_bytes());
        }
    }
}
