//! The place where the disks' contents are kept: in memory up to a budget, beyond it in a file.
//!
//! The budget may be that of several calendars: each takes from it when it needs a
//! slab of pages, and gives back when it is dropped. A slab for which nothing is
//! left lies in a file of the calendar's own, which has no name in its folder: it
//! is gone when the process ends, however that ends.
//!
//! The file is read and written at positions; it is not mapped. A mapped page that
//! the disk below cannot deliver ends the process with SIGBUS; here that is an
//! error like any other. The space of a slab is allocated before its first page is
//! written, and some of the file system is left to others, so that a full disk is
//! an error of this run and not one of everybody's.

use raidlab_units::Bytes;
use rustix::fs::{FallocateFlags, fallocate, fstatvfs};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The space that a file system keeps beside the file. Chosen, not measured: other programs of the
/// machine go on, and so do the rows of the run.
const SPARE: Bytes = Bytes(1 << 30);

/// The place where the disks' contents are kept. Clones share one budget.
#[derive(Debug, Clone)]
pub struct Storage {
    /// The bytes of memory that are not taken.
    budget: Arc<AtomicU64>,
    folder: PathBuf,
    spare: Bytes,
}

/// The reason why the disks' contents cannot be kept.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// The file system is nearly full.
    #[error(
        "the disks hold more than fits: {} has {free} left, and {spare} of it stay free",
        folder.display()
    )]
    NoRoom {
        /// The folder in which the file is.
        folder: PathBuf,
        /// The free space that the file system has left.
        free: Bytes,
        /// The space that the file system has to keep free.
        spare: Bytes,
    },
    /// The operating system refuses to make, read or write the file.
    #[error("cannot {doing} the file for what the disks hold in {}", folder.display())]
    File {
        /// The action that was tried, in the words that follow "cannot".
        doing: &'static str,
        /// The folder in which the file is.
        folder: PathBuf,
        /// The error of the system.
        #[source]
        source: io::Error,
    },
}

impl Storage {
    /// Makes storage of up to `memory` bytes in memory, and of whatever is more in a file in
    /// `folder`, which must exist when it comes to that.
    #[must_use]
    pub fn new(memory: Bytes, folder: impl Into<PathBuf>) -> Self {
        Self {
            budget: Arc::new(AtomicU64::new(memory.0)),
            folder: folder.into(),
            spare: SPARE,
        }
    }

    /// Makes storage without a file: everything stays in memory.
    #[must_use]
    pub fn in_memory() -> Self {
        Self::new(Bytes(u64::MAX), "")
    }

    /// Sets another amount that stays free, for tests.
    #[cfg(test)]
    pub(crate) fn sparing(mut self, spare: Bytes) -> Self {
        self.spare = spare;
        self
    }

    /// Takes bytes from the budget, if so many are left.
    pub(crate) fn take_memory(&self, bytes: u64) -> bool {
        let take = |left: u64| left.checked_sub(bytes);
        let order = Ordering::Relaxed;
        self.budget.fetch_update(order, order, take).is_ok()
    }

    /// Gives memory back to the budget, in bytes.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.budget.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Makes a file for the contents beyond the budget.
    pub(crate) fn file(&self) -> Result<Overflow, StorageError> {
        let file = tempfile::tempfile_in(&self.folder).map_err(|source| StorageError::File {
            doing: "make",
            folder: self.folder.clone(),
            source,
        })?;
        Ok(Overflow {
            file,
            folder: self.folder.clone(),
            spare: self.spare,
            bytes: 0,
        })
    }
}

/// The file of one calendar.
#[derive(Debug)]
pub(crate) struct Overflow {
    file: File,
    folder: PathBuf,
    spare: Bytes,
    bytes: u64,
}

impl Overflow {
    /// Makes the file longer by `bytes`, which read as zeros; returns the offset of the first.
    pub(crate) fn extend(&mut self, bytes: u64) -> Result<u64, StorageError> {
        let at = self.bytes;
        let statistics = fstatvfs(&self.file).map_err(|errno| self.failed("look at", errno))?;
        let free = statistics.f_bavail.saturating_mul(statistics.f_frsize);
        if free < self.spare.0.saturating_add(bytes) {
            return Err(StorageError::NoRoom {
                folder: self.folder.clone(),
                free: Bytes(free),
                spare: self.spare,
            });
        }
        match fallocate(&self.file, FallocateFlags::empty(), at, bytes) {
            Ok(()) => {}
            // Without this call the space is found when it is written to.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                let longer = self.file.set_len(at + bytes);
                longer.map_err(|source| self.failed("lengthen", source))?;
            }
            Err(errno) => return Err(self.failed("lengthen", errno)),
        }
        self.bytes += bytes;
        Ok(at)
    }

    /// Reads the bytes from `at` on.
    pub(crate) fn read(&self, at: u64, bytes: &mut [u8]) -> Result<(), StorageError> {
        let read = self.file.read_exact_at(bytes, at);
        read.map_err(|source| self.failed("read", source))
    }

    /// Puts bytes at `at`.
    pub(crate) fn write(&self, at: u64, bytes: &[u8]) -> Result<(), StorageError> {
        let written = self.file.write_all_at(bytes, at);
        written.map_err(|source| self.failed("write", source))
    }

    fn failed(&self, doing: &'static str, source: impl Into<io::Error>) -> StorageError {
        StorageError::File {
            doing,
            folder: self.folder.clone(),
            source: source.into(),
        }
    }
}

#[cfg(test)]
mod tests;
