//! Strings and numbers read from a message of known length.

use crate::wire::MAXIMUM_STRING_BYTES;

/// A message that has wholly arrived, read from its front. Every method returns `None` when the
/// message is too short or breaks a rule.
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (first, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn u16(&mut self) -> Option<u16> {
        self.bytes().map(u16::from_be_bytes)
    }

    pub fn u32(&mut self) -> Option<u32> {
        self.bytes().map(u32::from_be_bytes)
    }

    pub fn u64(&mut self) -> Option<u64> {
        self.bytes().map(u64::from_be_bytes)
    }

    /// Reads a string of `length` bytes.
    pub fn string(&mut self, length: usize) -> Option<&'a str> {
        let (first, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        string(first)
    }

    /// Reads a string that is preceded by its length.
    pub fn counted_string(&mut self) -> Option<&'a str> {
        let length = self.u32()?;
        self.string(length as usize)
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Returns the bytes as a string if they keep the protocol's rules: length, UTF-8, no NUL.
pub(crate) fn string(bytes: &[u8]) -> Option<&str> {
    if bytes.len() > MAXIMUM_STRING_BYTES || bytes.contains(&0) {
        return None;
    }
    std::str::from_utf8(bytes).ok()
}

/// Returns the longest prefix of `text` that is a string by the protocol's rules; for the
/// server's own messages.
pub(crate) fn shortened(text: &str) -> &str {
    let end = text.find('\0').unwrap_or(text.len());
    let end = text.floor_char_boundary(end.min(MAXIMUM_STRING_BYTES));
    &text[..end]
}

/// Moves bytes from `input` to `partial` until that holds `wanted`; returns the number moved and
/// whether `partial` is complete.
pub(crate) fn gather(partial: &mut Vec<u8>, input: &[u8], wanted: usize) -> (usize, bool) {
    let count = wanted.saturating_sub(partial.len()).min(input.len());
    partial.extend_from_slice(&input[..count]);
    (count, partial.len() >= wanted)
}
