//! The real-time driver of the array core.
//!
//! One thread owns an array (see `owner` and `running`). Other threads send it requests and calls
//! over a channel, and wake it if it sleeps. Time is CLOCK_MONOTONIC. The core never sees a byte,
//! the members never see an array: between them are the payloads, which lend ranges of memory to
//! commands and compute steps.
//!
//! If the core orders something impossible (a bug), or the backend fails as a whole, the array
//! stops taking requests and every client gets an error: no byte is written on a guess.

mod attach;
mod engine;
mod events;
mod files;
mod nest;
mod owner;
mod passthrough;
mod payloads;
mod random;
mod requests;
mod running;
mod serve;
mod verbs;

pub use attach::AttachError;
pub use engine::place_of;
pub use files::{
    Assembled, FilesError, assemble, create, decide, read_bitmap, read_candidate, versions_on,
    write_all,
};
pub use nest::{Nest, NestError};
pub use owner::{Broken, Owner, Watcher};
pub use payloads::PayloadError;
pub use running::monotonic_now;
pub use serve::{
    ArrayExport, DEFAULT_REGISTERED_BYTES, DriverConfig, FileExport, ServeError, ServeOptions,
};

#[cfg(test)]
mod tests;

#[cfg(test)]
pub(crate) mod testing;
