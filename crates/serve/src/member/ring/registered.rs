//! Payload memory registered with the kernel.
//!
//! For registered memory the kernel has looked up and pinned the pages once; a command past the
//! page cache need not do it again. A buffer's memory is registered when a command first uses it,
//! as long as the bound allows, and remains so for the ring's life: its pool keeps it and prefers
//! it (see `export::buffer`). Commands on any other memory are ordinary reads and writes, with the
//! same result: beyond the bound, when the kernel has no table for it (before 5.19), or refuses
//! (RLIMIT_MEMLOCK, for a process that lacks CAP_IPC_LOCK). After a refusal no more is registered.
//!
//! An index of the table is never given to other memory, and neither is a number of
//! [`Identity`](crate::export::Identity): the memory found here is the memory that the kernel has
//! pinned. Memory that was freed nevertheless (its pool is gone) leaves a pinned page behind that
//! no command names.

use crate::member::Memory;
use io_uring::Submitter;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// The size of the table: the kernel's own limit (`IORING_MAX_REG_BUFFERS`, 5.13).
const MAXIMUM_PLACES: u16 = 1 << 14;

/// The amount of payload memory that is registered.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RegisteredMemory {
    /// The number of bytes registered.
    pub bytes: u64,
    /// The most bytes that may be registered.
    pub limit_bytes: u64,
    /// The reason why the kernel refused more.
    pub refused: Option<String>,
}

/// The table of one ring.
pub(super) struct Registered {
    limit_bytes: u64,
    bytes: u64,
    /// Indexes by the memory's number.
    places: HashMap<u64, u16>,
    capacity: u16,
    refused: Option<Errno>,
}

impl Registered {
    /// An empty table for at most `limit_bytes` bytes.
    pub(super) fn new(submitter: &Submitter<'_>, limit_bytes: u64) -> Self {
        let pages = limit_bytes / crate::export::PAGE_BYTES as u64;
        let capacity =
            u16::try_from(pages).map_or(MAXIMUM_PLACES, |pages| pages.clamp(1, MAXIMUM_PLACES));
        let made = submitter.register_buffers_sparse(u32::from(capacity));
        Self {
            limit_bytes,
            bytes: 0,
            places: HashMap::new(),
            capacity,
            refused: made.err().map(errno),
        }
    }

    /// Returns the index of the memory; registers it if there is room.
    pub(super) fn index(&mut self, submitter: &Submitter<'_>, memory: &Memory) -> Option<u16> {
        let identity = memory.identity()?;
        if let Some(place) = self.places.get(&identity.number()) {
            return Some(*place);
        }
        let (address, length) = memory.allocation();
        let bytes = self.bytes + length as u64;
        let place = u16::try_from(self.places.len()).ok()?;
        if self.refused.is_some() || bytes > self.limit_bytes || place >= self.capacity {
            return None;
        }
        let range = libc::iovec {
            iov_base: address.as_ptr().cast(),
            iov_len: length,
        };
        // SAFETY: the range is one live allocation of whole pages, whose pages
        // the kernel pins here. Only commands that borrow from memory with the
        // same number are sent with this place, so these pages are theirs.
        let made = unsafe { submitter.register_buffers_update(u32::from(place), &[range], None) };
        match made {
            Ok(()) => {
                self.bytes = bytes;
                self.places.insert(identity.number(), place);
                identity.keep();
                Some(place)
            }
            Err(error) => {
                self.refused = Some(errno(error));
                None
            }
        }
    }

    /// Returns the bytes registered, their limit, and the reason why the kernel refused more.
    pub(super) fn report(&self) -> RegisteredMemory {
        RegisteredMemory {
            bytes: self.bytes,
            limit_bytes: self.limit_bytes,
            refused: self.refused.map(|error| match error {
                Errno::NOMEM => "more than RLIMIT_MEMLOCK allows, or no memory".to_owned(),
                Errno::INVAL => "this kernel has no table to register memory in".to_owned(),
                error => error.to_string(),
            }),
        }
    }
}

fn errno(error: std::io::Error) -> Errno {
    Errno::from_io_error(&error).unwrap_or(Errno::INVAL)
}
