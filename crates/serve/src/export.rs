//! What a server serves: a range of bytes that takes requests.
//!
//! A request owns its payload and the way to answer it. An export may answer
//! at once, on the thread that submits (nothing, memory), or hand the request
//! to a thread of its own and answer from there later, in any order. The
//! server bounds what is in flight, so an export may queue without a bound of
//! its own.

mod buffer;
mod memory;
mod null;

pub use buffer::{Buffer, BufferError, BufferPool, Identity, MAXIMUM_BUFFER_BYTES, PAGE_BYTES};
pub use memory::MemoryExport;
pub(crate) use memory::{SEGMENT_BYTES, pieces, zeroed_segment};
pub use null::NullExport;
pub use raidlab_nbd::{BlockSizes, ErrorCode};

use std::sync::Arc;

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The buffer is filled with bytes of the export.
    Read,
    /// The bytes of the buffer are stored.
    Write,
    /// Every write completed before this came becomes durable.
    Flush,
    /// The range's content is no longer needed.
    Trim,
    /// The range reads as zeroes from now on. No payload.
    WriteZeroes,
    /// The range will be read soon; may be ignored.
    Cache,
}

/// How it is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestFlags {
    /// Durable before it is answered (writes, trims, zeroes).
    pub force_unit_access: bool,
    /// Zeroes must stay allocated.
    pub no_hole: bool,
    /// Zeroes only if that is faster than writing them, else
    /// [`ErrorCode::NotSupported`] at once.
    pub fast_zero: bool,
}

/// Takes the answers to requests.
pub trait Completions: Send + Sync {
    /// The request named `token` is done. `buffer` is the one that travelled
    /// with it; for a read that succeeded it holds the bytes. Called from any
    /// thread; does not block on the network.
    fn completed(&self, token: u64, buffer: Buffer, result: Result<(), ErrorCode>);
}

/// One request to an export. The server has checked it: it lies within the
/// export, on the minimum block size, not longer than the maximum (zeroes and
/// trims up to 4 GiB), and its operation is one of the export's features.
///
/// Must be answered by [`Request::complete`]; a request that is dropped
/// without is answered with [`ErrorCode::Io`].
pub struct Request {
    /// What the request does.
    pub operation: Operation,
    /// First byte; 0 for a flush.
    pub offset: u64,
    /// Number of bytes; 0 for a flush, at least 1 otherwise.
    pub length: u32,
    /// What the client wants beside the operation itself.
    pub flags: RequestFlags,
    /// Which client asks, unique among the server's connections.
    pub client: u32,
    /// The payload, `length` bytes for reads and writes, else empty. A read's
    /// answer must be in the buffer that stands here at its completion (an
    /// export may take the buffer and put it back).
    pub buffer: Buffer,
    token: u64,
    answer: Option<Arc<dyn Completions>>,
}

impl Request {
    /// A request that is answered to `answer` under the name `token`.
    #[must_use]
    pub fn new(
        operation: Operation,
        offset: u64,
        length: u32,
        flags: RequestFlags,
        buffer: Buffer,
        (answer, token): (Arc<dyn Completions>, u64),
    ) -> Self {
        Self {
            operation,
            offset,
            length,
            flags,
            client: 0,
            buffer,
            token,
            answer: Some(answer),
        }
    }

    /// Answers the request.
    pub fn complete(mut self, result: Result<(), ErrorCode>) {
        self.answer_with(result);
    }

    fn answer_with(&mut self, result: Result<(), ErrorCode>) {
        if let Some(answer) = self.answer.take() {
            answer.completed(self.token, std::mem::take(&mut self.buffer), result);
        }
    }
}

impl Drop for Request {
    fn drop(&mut self) {
        self.answer_with(Err(ErrorCode::Io));
    }
}

impl std::fmt::Debug for Request {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Request")
            .field("operation", &self.operation)
            .field("offset", &self.offset)
            .field("length", &self.length)
            .field("flags", &self.flags)
            .finish_non_exhaustive()
    }
}

/// What an export can do; each is told to clients, and a request for
/// something else never reaches the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// Takes no writes, trims or zeroes.
    pub read_only: bool,
    /// [`Operation::Flush`] and [`RequestFlags::force_unit_access`].
    pub flush: bool,
    /// Takes trims ([`Operation::Trim`]).
    pub trim: bool,
    /// Takes requests for zeroes ([`Operation::WriteZeroes`]).
    pub write_zeroes: bool,
    /// Takes zeroes that must be fast or fail ([`RequestFlags::fast_zero`]).
    pub fast_zero: bool,
    /// Takes requests to read ahead ([`Operation::Cache`]).
    pub cache: bool,
    /// A flush on one connection covers the writes of all: clients may open
    /// several.
    pub multiple_connections: bool,
    /// Seeks cost time, as on a turning disk.
    pub rotational: bool,
    /// Has holes worth asking for before each read: the server sends them as
    /// holes instead of zeroes.
    pub sparse: bool,
}

/// The name of the metadata context that every export has: holes and zeroes.
pub const BASE_ALLOCATION: &str = "base:allocation";

/// In [`BASE_ALLOCATION`]: the range is not allocated.
pub const STATE_HOLE: u32 = 1;

/// In [`BASE_ALLOCATION`]: the range reads as zeroes.
pub const STATE_ZERO: u32 = 2;

/// A run of bytes with the same state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// Number of bytes, at least 1.
    pub length: u64,
    /// The state, with the context's own meaning.
    pub flags: u32,
}

/// A range of bytes that takes requests. All methods are called by several
/// threads at once; none may wait for the network or for a medium.
pub trait Export: Send + Sync {
    /// Number of bytes; does not change while it is served.
    fn size_bytes(&self) -> u64;

    /// For a human reader, at most 4,096 bytes; empty for none.
    fn description(&self) -> String {
        String::new()
    }

    /// What it can do; does not change while it is served.
    fn features(&self) -> Features;

    /// Sizes of requests; do not change while it is served.
    fn block_sizes(&self) -> BlockSizes {
        BlockSizes::default()
    }

    /// Names of metadata contexts besides [`BASE_ALLOCATION`], such as
    /// `raidlab:state`.
    fn contexts(&self) -> &[&'static str] {
        &[]
    }

    /// The states of the context `context` from `offset` on, for up to
    /// `length` bytes: consecutive runs appended to `extents`, at least one,
    /// as many as are cheap to find up to `limit`; the last may go beyond the
    /// range. Appending nothing means state 0 for the whole range.
    fn block_status(
        &self,
        context: &str,
        offset: u64,
        length: u32,
        limit: usize,
        extents: &mut Vec<Extent>,
    ) {
        let _ = (context, offset, length, limit, extents);
    }

    /// Whether it has lost so much that parts of it will not come back: asked
    /// after an error, to tell it from one that concerns a place.
    fn has_failed(&self) -> bool {
        false
    }

    /// Takes a request; answers it now or later, from any thread.
    fn submit(&self, request: Request);

    /// For now no further request follows: a good moment to wake up a thread
    /// that serves what was submitted. Called after every submission at last.
    fn submitted(&self) {}
}

#[cfg(test)]
mod tests;
