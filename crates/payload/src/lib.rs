//! The array core's compute steps executed on bytes.
//!
//! The core names buffers and orders work on them. A driver with real bytes keeps the
//! payload of every request that is in the core's hands, and every scratch buffer that the
//! core has allocated, in a [`Store`] of its own, and calls [`execute`]. The order of work
//! for one `Outputs`:
//!
//! 1. execute each step, keeping the results;
//! 2. send the commands;
//! 3. answer the finished requests, taking their payload back;
//! 4. hand the results to the core's `computed`.
//!
//! An error here is a bug of the core, or of the driver: the bytes of the array
//! can no longer be trusted, and the driver stops.

mod execute;

pub use execute::{Ranges, Store, execute, length};

use raidlab_parity::RecoverError;

/// An impossible request of a compute step, in whatever store keeps the bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PayloadError {
    /// A step needs a buffer where none was named.
    #[error("no buffer was named where one is needed")]
    NoBuffer,
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
    /// The lost blocks cannot be computed from the blocks that were named.
    #[error("lost blocks cannot be made again")]
    Recover(#[from] RecoverError),
}
