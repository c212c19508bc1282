//! Replies in the form that the client and the server agreed on.

use super::{agreed::Session, requests::Request};
use crate::{
    ErrorCode, Extent,
    strings::shortened,
    wire::{self, Command, chunk},
};

/// The header of a reply or a chunk, before its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    bytes: [u8; Self::MAXIMUM_BYTES],
    length: u8,
}

impl Head {
    /// The bytes of the longest head, which is that of a hole.
    pub const MAXIMUM_BYTES: usize = wire::CHUNK_BYTES + 12;

    fn simple(cookie: u64, error: u32) -> Self {
        let mut bytes = [0; Self::MAXIMUM_BYTES];
        bytes[..4].copy_from_slice(&wire::SIMPLE_REPLY_MAGIC.to_be_bytes());
        bytes[4..8].copy_from_slice(&error.to_be_bytes());
        bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
        Self {
            bytes,
            length: wire::SIMPLE_REPLY_BYTES as u8,
        }
    }

    fn chunk(cookie: u64, kind: u16, done: bool, length: u32) -> Self {
        let flags = if done { chunk::FLAG_DONE } else { 0 };
        let mut bytes = [0; Self::MAXIMUM_BYTES];
        bytes[..4].copy_from_slice(&wire::STRUCTURED_REPLY_MAGIC.to_be_bytes());
        bytes[4..6].copy_from_slice(&flags.to_be_bytes());
        bytes[6..8].copy_from_slice(&kind.to_be_bytes());
        bytes[8..16].copy_from_slice(&cookie.to_be_bytes());
        bytes[16..20].copy_from_slice(&length.to_be_bytes());
        Self {
            bytes,
            length: wire::CHUNK_BYTES as u8,
        }
    }

    fn and(mut self, more: &[u8]) -> Self {
        let end = usize::from(self.length) + more.len();
        self.bytes[usize::from(self.length)..end].copy_from_slice(more);
        self.length = end as u8;
        self
    }
}

impl std::ops::Deref for Head {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }
}

impl Session {
    /// Returns the whole reply to a success without payload: any request but a read or
    /// a block status.
    #[must_use]
    pub fn succeeded(&self, cookie: u64) -> Head {
        Head::simple(cookie, 0)
    }

    /// Returns the head of a part of a read: `length` bytes from `skip` bytes into the request.
    /// Without structured replies a single part covers the whole read.
    #[must_use]
    pub fn data(&self, request: &Request, skip: u32, length: u32, done: bool) -> Head {
        if !self.structured {
            return Head::simple(request.cookie, 0);
        }
        let offset = request.offset + u64::from(skip);
        Head::chunk(request.cookie, chunk::OFFSET_DATA, done, length + 8).and(&offset.to_be_bytes())
    }

    /// Returns the head of a part of a read that is all zeroes; only with structured replies.
    #[must_use]
    pub fn hole(&self, request: &Request, skip: u32, length: u32, done: bool) -> Head {
        let offset = request.offset + u64::from(skip);
        Head::chunk(request.cookie, chunk::OFFSET_HOLE, done, 12)
            .and(&offset.to_be_bytes())
            .and(&length.to_be_bytes())
    }

    /// Writes the whole reply to a failure, with words for a human reader where the form of the
    /// reply has room for them.
    pub fn failed(&self, cookie: u64, error: ErrorCode, words: &str, output: &mut Vec<u8>) {
        if !self.structured {
            output.extend_from_slice(&Head::simple(cookie, error.number()));
            return;
        }
        let words = shortened(words).as_bytes();
        // A shortened string has at most 4,096 bytes.
        let length = words.len() as u16;
        let head = Head::chunk(cookie, chunk::ERROR, true, u32::from(length) + 6)
            .and(&error.number().to_be_bytes())
            .and(&length.to_be_bytes());
        output.extend_from_slice(&head);
        output.extend_from_slice(words);
    }

    /// Writes one context's part of the reply to a block status, cut to what
    /// the request allows. An empty list stands for one extent in state 0.
    pub fn status(
        &self,
        request: &Request,
        context: u32,
        extents: impl IntoIterator<Item = Extent>,
        done: bool,
        output: &mut Vec<u8>,
    ) {
        debug_assert_eq!(request.command, Command::BlockStatus);
        let begin = output.len();
        let head = Head::chunk(request.cookie, chunk::BLOCK_STATUS, done, 0);
        output.extend_from_slice(&head);
        output.extend_from_slice(&context.to_be_bytes());
        let limit = if request.one_extent() {
            1
        } else {
            Self::MAXIMUM_EXTENTS
        };
        let mut left = request.length;
        let mut count = 0;
        let mut put = |length: u32, flags: u32| {
            output.extend_from_slice(&length.to_be_bytes());
            output.extend_from_slice(&flags.to_be_bytes());
        };
        for Extent { length, flags } in extents {
            let length = length.min(left);
            if length == 0 || count == limit {
                break;
            }
            put(length, flags);
            left -= length;
            count += 1;
        }
        if count == 0 {
            put(request.length, 0);
            count = 1;
        }
        // At most MAXIMUM_EXTENTS extents of eight bytes.
        let length = 4 + 8 * count as u32;
        output[begin + 16..begin + 20].copy_from_slice(&length.to_be_bytes());
    }

    /// The most extents of one context in one reply.
    pub const MAXIMUM_EXTENTS: usize = 4096;
}
