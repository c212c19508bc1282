//! The guest's memory: the shared part, and the part that is not.
//!
//! User-Mode Linux keeps its physical memory in a file and shares it, but for its
//! beginning: there lies the kernel's own image, which is not in the file. A
//! driver hands over a buffer in there all the same: since Linux 6.x the page of
//! zeros (`empty_zero_page`) is a part of the image, and `blkdev_issue_zeroout`
//! writes it. All of the physical memory, image included, is mapped at one place of
//! the guest's process, so such a buffer is read out of the process, as a debugger
//! would, through `/proc/PID/mem`.
//!
//! Every address is checked by `vm-memory`. It cannot check one thing: a guest that
//! makes its file shorter while it is mapped ends this process with SIGBUS. The
//! guest is a process that the user started, not a stranger's.

use crate::vhost_user::MemoryRegion;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use vm_memory::mmap::MmapRegionError;
use vm_memory::{
    Bytes, FileOffset, GuestAddress, GuestMemoryMmap, GuestRegionCollectionError, GuestRegionMmap,
    MmapRegion,
};

/// The reason why a memory table cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// A region has no file, or a file no region.
    #[error("{regions} regions came with {files} files")]
    Files {
        /// The number of regions in the memory table.
        regions: usize,
        /// The number of files that came with the table.
        files: usize,
    },
    /// A region ends beyond the last address.
    #[error("a region of {size} bytes at {address:#x} has no end")]
    NoEnd {
        /// The region's first address in the guest's physical memory.
        address: u64,
        /// The region's length in bytes.
        size: u64,
    },
    /// The size of a file is unknown.
    #[error("the size of a region's file is not known")]
    Size(#[source] io::Error),
    /// A region ends beyond its file.
    #[error("a region of {size} bytes at {offset:#x} is not inside its file of {there} bytes")]
    TooSmall {
        /// The region's length in bytes.
        size: u64,
        /// The offset in the file at which it begins.
        offset: u64,
        /// The file's length in bytes.
        there: u64,
    },
    /// The system does not map a region.
    #[error("a region of {size} bytes cannot be mapped")]
    Map {
        /// The region's length in bytes.
        size: u64,
        /// The reason why it could not be mapped.
        #[source]
        source: MmapRegionError,
    },
    /// Regions overlap, or otherwise make no memory together.
    #[error("the regions do not make a memory")]
    Regions(#[source] GuestRegionCollectionError),
}

/// The error of a buffer that lies outside the guest's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Outside;

/// The process of a guest, to read its kernel image.
#[derive(Debug)]
pub(crate) struct Process {
    memory: File,
    physical_memory_at: u64,
}

impl Process {
    /// Opens the memory of process `pid`, for which the open file then stands, even when the number
    /// is another process's.
    pub(crate) fn open(pid: i32, physical_memory_at: u64) -> io::Result<Self> {
        Ok(Self {
            memory: File::open(format!("/proc/{pid}/mem"))?,
            physical_memory_at,
        })
    }
}

/// The memory of its guest that a device can use.
#[derive(Debug)]
pub(crate) struct GuestMemory {
    shared: GuestMemoryMmap,
    table: Vec<MemoryRegion>,
}

impl GuestMemory {
    /// Maps a memory table.
    pub(crate) fn map(table: Vec<MemoryRegion>, files: Vec<OwnedFd>) -> Result<Self, MemoryError> {
        if table.len() != files.len() {
            return Err(MemoryError::Files {
                regions: table.len(),
                files: files.len(),
            });
        }
        let mut regions = Vec::with_capacity(table.len());
        for (region, file) in table.iter().zip(files) {
            regions.push(map_region(region, file.into())?);
        }
        regions.sort_by_key(vm_memory::GuestMemoryRegion::start_addr);
        Ok(Self {
            shared: GuestMemoryMmap::from_regions(regions).map_err(MemoryError::Regions)?,
            table,
        })
    }

    /// The memory in the form in which `virtio-queue` takes it.
    pub(crate) fn shared(&self) -> &GuestMemoryMmap {
        &self.shared
    }

    /// The guest's address that belongs to one of the front-end's.
    pub(crate) fn guest_address(&self, user_address: u64) -> Option<u64> {
        self.table.iter().find_map(|region| {
            let offset = user_address.checked_sub(region.user_address)?;
            (offset < region.size).then(|| region.guest_address + offset)
        })
    }

    /// Reads a buffer of the guest's.
    pub(crate) fn read(
        &self,
        process: Option<&Process>,
        address: u64,
        bytes: &mut [u8],
    ) -> Result<(), Outside> {
        if self.shared.read_slice(bytes, GuestAddress(address)).is_ok() {
            return Ok(());
        }
        let process = process.ok_or(Outside)?;
        let there = process.physical_memory_at.checked_add(address);
        let there = there.ok_or(Outside)?;
        let read = process.memory.read_exact_at(bytes, there);
        read.map_err(|_| Outside)
    }

    /// Writes into a buffer of the guest's, which must be in the shared part.
    pub(crate) fn write(&self, address: u64, bytes: &[u8]) -> Result<(), Outside> {
        let written = self.shared.write_slice(bytes, GuestAddress(address));
        written.map_err(|_| Outside)
    }
}

fn map_region(region: &MemoryRegion, file: File) -> Result<GuestRegionMmap, MemoryError> {
    let no_end = MemoryError::NoEnd {
        address: region.guest_address,
        size: region.size,
    };
    let length = usize::try_from(region.size).ok();
    let user_end = region.user_address.checked_add(region.size);
    let (Some(length), Some(_)) = (length, user_end) else {
        return Err(no_end);
    };
    let there = file.metadata().map(|metadata| metadata.len());
    let needed = region.file_offset.checked_add(region.size);
    match (there, needed) {
        (Ok(there), Some(needed)) if there >= needed => {}
        (Err(source), _) => return Err(MemoryError::Size(source)),
        (Ok(there), _) => {
            return Err(MemoryError::TooSmall {
                size: region.size,
                offset: region.file_offset,
                there,
            });
        }
    }
    let mapped = MmapRegion::from_file(FileOffset::new(file, region.file_offset), length);
    let mapped = mapped.map_err(|source| MemoryError::Map {
        size: region.size,
        source,
    })?;
    GuestRegionMmap::new(mapped, GuestAddress(region.guest_address)).ok_or(no_end)
}

#[cfg(test)]
mod tests;
