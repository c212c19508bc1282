//! The interface of an export: a range of bytes that takes requests.
//!
//! A request owns its payload and the means to answer it. An export may answer at once, on the
//! thread that submits (a null or memory export), or pass the request to a thread of its own and
//! answer from there later, in any order. The server bounds the requests in flight, so an export
//! may queue without a bound of its own.

mod buffer;
mod memory;
mod null;

pub use buffer::{Buffer, BufferError, BufferPool, Identity, MAXIMUM_BUFFER_BYTES, PAGE_BYTES};
pub use memory::MemoryExport;
pub(crate) use memory::{SEGMENT_BYTES, pieces, zeroed_segment};
pub use null::NullExport;
pub use raidlab_nbd::{BlockSizes, ErrorCode};

use std::sync::Arc;

/// The operation of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Fills the buffer with bytes of the export.
    Read,
    /// Stores the bytes of the buffer.
    Write,
    /// Makes durable every write completed before the flush was submitted.
    Flush,
    /// Discards the content of the range, which is no longer needed.
    Trim,
    /// Makes the range read as zeroes from now on. No payload.
    WriteZeroes,
    /// Announces reads of the range; may be ignored.
    Cache,
}

/// The flags of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RequestFlags {
    /// The request is durable before it is answered (writes, trims, zeroes).
    pub force_unit_access: bool,
    /// Zeroes must stay allocated.
    pub no_hole: bool,
    /// Zeroes are written only if that is faster than a write of zero bytes, else the answer is
    /// [`ErrorCode::NotSupported`] at once.
    pub fast_zero: bool,
}

/// The receiver of answers to requests.
pub trait Completions: Send + Sync {
    /// Called when the request named `token` is done. `buffer` is the request's own; after a read
    /// that succeeded it contains the bytes. Called from any thread; does not block on the network.
    fn completed(&self, token: u64, buffer: Buffer, result: Result<(), ErrorCode>);
}

/// One request to an export. The server has checked it: it lies within the export, on the minimum
/// block size, not longer than the maximum (zeroes and trims up to 4 GiB), and its operation is one
/// of the export's features.
///
/// It has to be answered by [`Request::complete`]; a request that is dropped without is
/// answered with [`ErrorCode::Io`].
pub struct Request {
    /// The operation of the request.
    pub operation: Operation,
    /// The first byte; 0 for a flush.
    pub offset: u64,
    /// The number of bytes; 0 for a flush, at least 1 otherwise.
    pub length: u32,
    /// The flags that the client has set.
    pub flags: RequestFlags,
    /// The number of the client, unique among the server's connections.
    pub client: u32,
    /// The payload, `length` bytes for reads and writes, else empty. A read's answer must be in
    /// this buffer at its completion (an export may take the buffer and put it back).
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

/// The features of an export; each is announced to clients, and a request that needs a missing one
/// never reaches the export.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features {
    /// The export takes no writes, trims or zeroes.
    pub read_only: bool,
    /// The export takes [`Operation::Flush`] and [`RequestFlags::force_unit_access`].
    pub flush: bool,
    /// The export takes trims ([`Operation::Trim`]).
    pub trim: bool,
    /// The export takes requests for zeroes ([`Operation::WriteZeroes`]).
    pub write_zeroes: bool,
    /// The export takes zeroes that must be fast or fail ([`RequestFlags::fast_zero`]).
    pub fast_zero: bool,
    /// The export takes requests to read ahead ([`Operation::Cache`]).
    pub cache: bool,
    /// A flush on one connection covers the writes of all: clients may open
    /// several.
    pub multiple_connections: bool,
    /// Seeks cost time, as on a turning disk.
    pub rotational: bool,
    /// The export has holes worth asking for before each read: the server sends them as holes
    /// instead of zeroes.
    pub sparse: bool,
}

/// The name of the metadata context that every export has: holes and zeroes.
pub const BASE_ALLOCATION: &str = "base:allocation";

/// A state in [`BASE_ALLOCATION`]: the range is not allocated.
pub const STATE_HOLE: u32 = 1;

/// A state in [`BASE_ALLOCATION`]: the range reads as zeroes.
pub const STATE_ZERO: u32 = 2;

/// A run of bytes with the same state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Extent {
    /// The number of bytes, at least 1.
    pub length: u64,
    /// The state, as the context defines it.
    pub flags: u32,
}

/// A range of bytes that takes requests. All methods are called by several
/// threads at once; none may wait for the network or for a medium.
pub trait Export: Send + Sync {
    /// Returns the number of bytes; does not change while the export is served.
    fn size_bytes(&self) -> u64;

    /// Returns a description for a human reader, at most 4,096 bytes; empty for none.
    fn description(&self) -> String {
        String::new()
    }

    /// Returns the features; they do not change while the export is served.
    fn features(&self) -> Features;

    /// Returns the sizes of requests; they do not change while the export is served.
    fn block_sizes(&self) -> BlockSizes {
        BlockSizes::default()
    }

    /// Returns the names of metadata contexts besides [`BASE_ALLOCATION`], such as `raidlab:state`.
    fn contexts(&self) -> &[&'static str] {
        &[]
    }

    /// Appends the states of the context `context` from `offset` on, for up to `length` bytes, to
    /// `extents`: consecutive runs, at least one, as many as are cheap to find up to `limit`; the
    /// last may go beyond the range. Appending nothing means state 0 for the whole range.
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

    /// Whether the export has lost so much that parts of it are gone for good: asked after an
    /// error, to distinguish it from an error of one place.
    fn has_failed(&self) -> bool {
        false
    }

    /// Takes a request; answers it now or later, from any thread.
    fn submit(&self, request: Request);

    /// Tells the export that no further request follows for now, a good moment to wake up the
    /// thread that serves them. Called some time after every submission.
    fn submitted(&self) {}
}

#[cfg(test)]
mod tests;
