//! The frames that a guest hands out on a console of its own.
//!
//! A frame is a line `raidlab KIND LENGTH CHECKSUM`, as many bytes as it says, and a line end. The
//! checksum is CRC-32C of kind and payload, in hexadecimal. The last frame is of kind `end`:
//! without it the guest did not come to its end.

use std::str;

/// The beginning of every frame.
const MARK: &[u8] = b"raidlab ";
/// The length in bytes above which a first line is none.
const LONGEST_LINE: usize = 128;
/// The length in bytes above which a payload is none of raidlab's: results of one job take
/// some hundred KiB.
const LONGEST: usize = 512 << 20;

/// One message that a guest sends through its console, whole and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    /// The kind of the message, a word.
    pub kind: String,
    /// The bytes of the message.
    pub payload: Vec<u8>,
}

/// The kind of the last frame.
pub const END: &str = "end";

impl Frame {
    /// Encodes a frame as bytes.
    #[must_use]
    pub fn bytes(kind: &str, payload: &[u8]) -> Vec<u8> {
        let check = checksum(kind, payload);
        let mut bytes = format!("raidlab {kind} {} {check:08x}\n", payload.len()).into_bytes();
        bytes.extend_from_slice(payload);
        bytes.push(b'\n');
        bytes
    }
}

fn checksum(kind: &str, payload: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(kind.as_bytes()), payload)
}

/// A reader that takes a guest's bytes as they come and gives whole frames.
#[derive(Debug, Default)]
pub struct FrameReader {
    waiting: Vec<u8>,
    taken: usize,
}

impl FrameReader {
    /// Takes more bytes that have come.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.waiting.extend_from_slice(bytes);
    }

    /// Takes the next frame that is there as a whole.
    ///
    /// # Errors
    /// When the bytes are no frame, or were damaged.
    pub fn take(&mut self) -> Result<Option<Frame>, FrameError> {
        let Some((frame, length)) = parse(&self.waiting).map_err(|what| FrameError {
            at: self.taken,
            what,
        })?
        else {
            return Ok(None);
        };
        self.waiting.drain(..length);
        self.taken += length;
        Ok(Some(frame))
    }
}

/// Parses the first frame of some bytes, and returns it with its length; `None` while it
/// is not whole.
fn parse(bytes: &[u8]) -> Result<Option<(Frame, usize)>, Damage> {
    let marked = bytes.len().min(MARK.len());
    if bytes[..marked] != MARK[..marked] {
        return Err(Damage::NoFrame);
    }
    let line = &bytes[..bytes.len().min(LONGEST_LINE)];
    let Some(line_end) = line.iter().position(|byte| *byte == b'\n') else {
        return if bytes.len() < LONGEST_LINE {
            Ok(None)
        } else {
            Err(Damage::NoFrame)
        };
    };
    let line = str::from_utf8(&line[..line_end]).map_err(|_| Damage::NoFrame)?;
    let mut words = line.split(' ').skip(1);
    let (Some(kind), Some(length), Some(check), None) =
        (words.next(), words.next(), words.next(), words.next())
    else {
        return Err(Damage::NoFrame);
    };
    let length: usize = length.parse().map_err(|_| Damage::NoFrame)?;
    let check = u32::from_str_radix(check, 16).map_err(|_| Damage::NoFrame)?;
    if length > LONGEST {
        return Err(Damage::NoFrame);
    }
    let begin = line_end + 1;
    let end = begin + length;
    let (Some(payload), Some(last)) = (bytes.get(begin..end), bytes.get(end)) else {
        return Ok(None);
    };
    if *last != b'\n' || checksum(kind, payload) != check {
        return Err(Damage::Altered);
    }
    let frame = Frame {
        kind: kind.to_owned(),
        payload: payload.to_vec(),
    };
    Ok(Some((frame, end + 1)))
}

/// The error of bytes that are no frame.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at} of what the guest handed out")]
pub struct FrameError {
    /// The offset at which a frame should begin.
    pub at: usize,
    /// The damage of the bytes there.
    pub what: Damage,
}

/// The damage of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Damage {
    /// The bytes do not begin as a frame does.
    #[error("no frame")]
    NoFrame,
    /// The checksum is not that of the frame's contents.
    #[error("a frame that was altered on its way")]
    Altered,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_damaged_frame_is_told_with_its_place() {
        let mut bytes = Frame::bytes("cell", b"{}");
        let second = bytes.len();
        bytes.extend(Frame::bytes("end", b""));
        bytes[second - 2] ^= 1;
        let mut reader = FrameReader::default();
        reader.feed(&bytes);
        let error = reader.take().expect_err("one bit is wrong");
        assert_eq!((error.at, error.what), (0, Damage::Altered));
        for text in [
            "hello",
            "raidlab cell\n",
            "raidlab cell 2 zz\n{}\n",
            "raidlab a b c d\n",
        ] {
            let mut reader = FrameReader::default();
            reader.feed(&Frame::bytes("x", b"y"));
            reader.feed(text.as_bytes());
            assert!(reader.take().expect("one frame").is_some());
            let error = reader.take().expect_err(text);
            assert_eq!(error.what, Damage::NoFrame, "{text}");
            assert_eq!(error.at, Frame::bytes("x", b"y").len());
        }
    }

    #[test]
    fn a_line_without_end_and_a_length_without_bound_are_no_frames() {
        let mut reader = FrameReader::default();
        reader.feed(b"raidlab ");
        assert_eq!(reader.take(), Ok(None));
        reader.feed(&[b'x'; LONGEST_LINE]);
        reader.take().expect_err("no line is so long");
        let mut reader = FrameReader::default();
        reader.feed(b"raidlab cell 99999999999 00000000\n");
        reader.take().expect_err("no payload is so long");
    }

    proptest! {
        #[test]
        fn what_was_framed_comes_out_however_it_is_cut(
            frames in prop::collection::vec(("[a-z]{1,8}", prop::collection::vec(any::<u8>(), 0..40)), 0..6),
            cut in 1_usize..50,
        ) {
            let bytes: Vec<u8> = frames
                .iter()
                .flat_map(|(kind, payload)| Frame::bytes(kind, payload))
                .collect();
            let mut reader = FrameReader::default();
            let mut read = Vec::new();
            for piece in bytes.chunks(cut) {
                reader.feed(piece);
                while let Some(frame) = reader.take().expect("whole frames") {
                    read.push((frame.kind, frame.payload));
                }
            }
            prop_assert_eq!(read, frames);
        }

        #[test]
        fn no_bytes_make_the_reader_panic(bytes in "(raidlab [a-z]{0,3} [0-9]{0,12} [0-9a-f]{0,9}\n[a-z\n]{0,4}){0,4}") {
            let mut reader = FrameReader::default();
            reader.feed(bytes.as_bytes());
            while let Ok(Some(_)) = reader.take() {}
        }
    }
}
