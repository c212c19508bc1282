//! Buffers, and the array core's compute steps executed on their bytes.
//!
//! The core names buffers and orders work on them; a driver with real bytes
//! keeps a [`Buffers`], which holds the payload of every request that is in the
//! core's hands and every scratch buffer that the core has allocated, and
//! executes the steps. The order of work for one `Outputs`:
//!
//! 1. [`Buffers::execute`] each step, keeping the results;
//! 2. send the commands: [`Buffers::begin`] gives a stable address for one, to
//!    be handed back by [`Buffers::end`] when the command has completed; a
//!    driver that moves bytes at once uses [`Buffers::slice`] instead;
//! 3. answer the finished requests, taking their payload back by
//!    [`Buffers::remove`];
//! 4. hand the results to the core's `computed`.
//!
//! ```
//! use raidlab_array::{BufferId, ComputeStep, RequestId};
//! use raidlab_payload::{Buffers, BuffersConfig};
//! use raidlab_units::Sectors;
//!
//! let mut buffers = Buffers::new(BuffersConfig::default());
//! let mut payload = buffers.take(1024)?;
//! payload.fill(7);
//! buffers.insert(RequestId(1), payload)?;
//! let first = BufferId::Request { request: RequestId(1), skip: Sectors(0) };
//! let step = ComputeStep::Zero { to: first, count: Sectors(1) };
//! assert_eq!(buffers.execute(&step)?, None);
//! let payload = buffers.remove(RequestId(1))?;
//! assert_eq!((payload[0], payload[512]), (0, 7));
//! buffers.give_back(payload);
//! # Ok::<(), raidlab_payload::PayloadError>(())
//! ```
//!
//! The steps themselves work on any [`Store`]: a driver whose commands and steps
//! run at the same time keeps its buffers in a store of its own, and calls
//! [`execute`].
//!
//! An error here is a bug of the core, or of the driver: the bytes of the array
//! can no longer be trusted, and the driver stops.

mod buffer;
mod buffers;
mod execute;
mod pieces;

pub use buffer::{ALIGNMENT, Buffer, MAXIMUM_BUFFER_BYTES, Memory};
pub use buffers::{Buffers, BuffersConfig, InFlight};
pub use execute::{Ranges, Store, execute};

use raidlab_array::{BufferId, RequestId, ScratchId};
use raidlab_parity::RecoverError;

/// What a step, a command or a driver asked for and cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// No scratch buffer of this name is allocated.
    #[error("scratch buffer {} is not allocated", .0.0)]
    UnknownScratch(ScratchId),
    /// A scratch buffer of this name is allocated already.
    #[error("scratch buffer {} is allocated already", .0.0)]
    ScratchExists(ScratchId),
    /// No request of this name has a payload here.
    #[error("request {} has no payload", .0.0)]
    UnknownRequest(RequestId),
    /// A request of this name has a payload already.
    #[error("request {} has a payload already", .0.0)]
    RequestExists(RequestId),
    /// A buffer is needed where none was named.
    #[error("no buffer was named where one is needed")]
    NoBuffer,
    /// The range goes beyond the buffer's end.
    #[error("{bytes} bytes of {buffer:?} were named, which has {available} there")]
    TooShort {
        /// The buffer with its offset.
        buffer: BufferId,
        /// Bytes that were to be used.
        bytes: u64,
        /// Bytes from the offset to the buffer's end.
        available: u64,
    },
    /// Two ranges of one step overlap.
    #[error("{0:?} and {1:?} overlap in one step")]
    Overlap(BufferId, BufferId),
    /// A buffer of this many bytes is beyond [`MAXIMUM_BUFFER_BYTES`].
    #[error("a buffer of {0} bytes is larger than any may be")]
    TooLarge(u64),
    /// The bytes to be filled in are not whole sectors.
    #[error("{0} bytes are not whole sectors")]
    NotWholeSectors(usize),
    /// More data blocks than the parity code allows.
    #[error("{0} data blocks are more than the parity code allows")]
    TooManyBlocks(usize),
    /// Checksums do not fit into the header to be sealed.
    #[error("the checksums of {blocks} blocks do not fit into a header of {header_bytes} bytes")]
    Seal {
        /// Blocks whose checksums were to be written.
        blocks: usize,
        /// Bytes of the header.
        header_bytes: u32,
    },
    /// Lost blocks cannot be made again from what was named.
    #[error("lost blocks cannot be made again")]
    Recover(#[from] RecoverError),
    /// The buffer of a command in flight was to be released.
    #[error("a buffer of a command in flight was to be released")]
    InFlight,
}
