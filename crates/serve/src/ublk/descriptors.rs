//! The requests' descriptors, which the driver writes into memory that it shares with its server:
//! one for each tag.

use super::wire::Descriptor;
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use std::ffi::c_void;
use std::fs::File;
use std::io;
use std::ptr::NonNull;

/// The descriptors of a device's first queue.
pub(super) struct Descriptors {
    start: NonNull<c_void>,
    bytes: usize,
    count: u16,
}

// SAFETY: the mapping belongs to this value alone, wherever it goes; nothing
// in it is bound to a thread.
unsafe impl Send for Descriptors {}

impl Descriptors {
    /// Maps the descriptors of an open character device, one for each of `count` tags.
    pub(super) fn map(character: &File, count: u16) -> io::Result<Self> {
        // The kernel rounds it up to whole pages, as the driver wants it.
        let bytes = usize::from(count) * size_of::<Descriptor>();
        // SAFETY: a new mapping at a place of the kernel's choice touches no
        // memory of ours.
        let start = unsafe {
            mmap(
                std::ptr::null_mut(),
                bytes,
                ProtFlags::READ,
                MapFlags::SHARED | MapFlags::POPULATE,
                character,
                0,
            )
        }?;
        let start = NonNull::new(start).ok_or(io::ErrorKind::InvalidData)?;
        Ok(Self {
            start,
            bytes,
            count,
        })
    }

    /// Returns the request of a tag. The driver has written it before it completed the tag's
    /// command, and does not change it again until it is answered.
    pub(super) fn get(&self, tag: u16) -> Option<Descriptor> {
        if tag >= self.count {
            return None;
        }
        // SAFETY: the place is within the mapping, aligned (the mapping begins
        // at a page, and a descriptor's length is a multiple of its alignment),
        // and any bytes make a descriptor.
        let descriptor = unsafe {
            self.start
                .cast::<Descriptor>()
                .add(usize::from(tag))
                .read_volatile()
        };
        Some(descriptor)
    }
}

impl Drop for Descriptors {
    fn drop(&mut self) {
        // SAFETY: the mapping is this value's own, and no reference into it is
        // ever given out.
        let unmapped = unsafe { munmap(self.start.as_ptr(), self.bytes) };
        debug_assert!(unmapped.is_ok());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use zerocopy::IntoBytes;

    #[test]
    fn a_tags_descriptor_is_found() {
        let mut file = tempfile::tempfile().expect("a file");
        for tag in 0..3_u32 {
            let descriptor = Descriptor {
                sectors: 10 + tag,
                start_sector: u64::from(tag) << 40,
                ..Descriptor::default()
            };
            file.write_all(descriptor.as_bytes()).expect("written");
        }
        let descriptors = Descriptors::map(&file, 3).expect("mapped");
        let last = descriptors.get(2).expect("there");
        assert_eq!((last.sectors, last.start_sector), (12, 2 << 40));
        assert!(descriptors.get(3).is_none());
    }

    #[test]
    fn what_cannot_be_mapped_is_an_error() {
        let file = File::open("/dev/null").expect("open");
        assert!(Descriptors::map(&file, 0).is_err());
    }
}
