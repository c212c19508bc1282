//! Payload buffers: page-aligned, owned by who works on them, recycled.
//!
//! A buffer is taken from a [`BufferPool`] by the connection that reads a
//! request, travels with the request through the export to the members and
//! back into the reply, and returns to its pool when it is dropped. Buffers
//! come in powers of two from one page up; the list of free ones is last in,
//! first out, so that the memory which is warm in the cache is used again.
//! The pool keeps a bounded number of bytes; what goes beyond is given back
//! to the system. Some buffers may be made in advance: these never leave the
//! pool for the system, so that a ring can register them once.

use std::{
    ops::{Deref, DerefMut},
    sync::{Arc, Mutex, PoisonError},
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Alignment of every buffer, and its smallest capacity, in bytes.
pub const PAGE_BYTES: usize = 4096;

/// The most that one buffer holds, in bytes: the longest request.
pub const MAXIMUM_BUFFER_BYTES: usize = 32 << 20;

/// Powers of two from one page to the longest request.
const CLASSES: usize = (MAXIMUM_BUFFER_BYTES / PAGE_BYTES).ilog2() as usize + 1;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// Bytes of a request: aligned to [`PAGE_BYTES`], with a length of its own
/// that may be less than what is allocated.
#[derive(Default)]
pub struct Buffer {
    pages: Box<[Page]>,
    length: usize,
    home: Option<Arc<Shelves>>,
    registration: Option<u16>,
}

impl Buffer {
    /// No bytes; for requests without payload.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Bytes that are allocated, a multiple of the page.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    /// Its place in [`BufferPool::registrable`], if it was made in advance.
    #[must_use]
    pub fn registration(&self) -> Option<u16> {
        self.registration
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.pages.as_bytes()[..self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.pages.as_mut_bytes()[..self.length]
    }
}

impl std::fmt::Debug for Buffer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(formatter, "Buffer({} bytes)", self.length)
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        if let Some(home) = self.home.take() {
            home.put(Shelved {
                pages: std::mem::take(&mut self.pages),
                registration: self.registration,
            });
        }
    }
}

struct Shelved {
    pages: Box<[Page]>,
    registration: Option<u16>,
}

struct Shelves {
    by_class: [Mutex<Vec<Shelved>>; CLASSES],
    /// Bytes that one class may keep.
    keep_bytes: usize,
}

impl Shelves {
    fn put(&self, shelved: Shelved) {
        let bytes = shelved.pages.len() * PAGE_BYTES;
        if bytes == 0 {
            return;
        }
        let mut shelf = self.by_class[class(bytes)]
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if shelved.registration.is_some() || shelf.len() * bytes < self.keep_bytes {
            shelf.push(shelved);
        }
    }
}

/// Which power of two holds `bytes`, counted from one page.
fn class(bytes: usize) -> usize {
    bytes
        .div_ceil(PAGE_BYTES)
        .next_power_of_two()
        .trailing_zeros() as usize
}

/// Why there is no buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BufferError {
    /// Longer than [`MAXIMUM_BUFFER_BYTES`].
    #[error("a buffer of {0} bytes is longer than any request")]
    TooLong(usize),
    /// The system has no memory.
    #[error("no memory for a buffer of {0} bytes")]
    OutOfMemory(usize),
}

/// Where buffers come from and go back to. Clones share the same buffers.
#[derive(Clone)]
pub struct BufferPool {
    shelves: Arc<Shelves>,
    registrable: Arc<[(usize, usize)]>,
}

impl std::fmt::Debug for BufferPool {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("BufferPool")
    }
}

impl Default for BufferPool {
    fn default() -> Self {
        Self::new(16 << 20)
    }
}

impl BufferPool {
    /// A pool that keeps up to `keep_bytes` of free buffers for each of its
    /// sizes.
    #[must_use]
    pub fn new(keep_bytes: usize) -> Self {
        Self {
            shelves: Arc::new(Shelves {
                by_class: std::array::from_fn(|_| Mutex::default()),
                keep_bytes,
            }),
            registrable: Arc::new([]),
        }
    }

    /// A pool with `count` buffers of each of `sizes` made in advance, whose
    /// addresses never change: [`BufferPool::registrable`] lists them. At most
    /// 65,536 buffers.
    ///
    /// # Errors
    ///
    /// A size is too long, or the system has no memory.
    pub fn with_registrable(
        keep_bytes: usize,
        sizes: &[usize],
        count: u16,
    ) -> Result<Self, BufferError> {
        let mut pool = Self::new(keep_bytes);
        let mut registrable = Vec::new();
        for &size in sizes {
            for _ in 0..count {
                let Ok(index) = u16::try_from(registrable.len()) else {
                    break;
                };
                let mut buffer = pool.allocate(size)?;
                buffer.registration = Some(index);
                registrable.push((buffer.pages.as_bytes().as_ptr().addr(), buffer.capacity()));
            }
        }
        pool.registrable = registrable.into();
        Ok(pool)
    }

    /// Address and bytes of each buffer that was made in advance, by its
    /// [`Buffer::registration`]. They live as long as any clone of the pool.
    #[must_use]
    pub fn registrable(&self) -> &[(usize, usize)] {
        &self.registrable
    }

    /// A buffer of `length` bytes. Its content is what its last user left.
    ///
    /// # Errors
    ///
    /// The length is beyond [`MAXIMUM_BUFFER_BYTES`], or the system has no
    /// memory.
    pub fn take(&self, length: usize) -> Result<Buffer, BufferError> {
        if length > MAXIMUM_BUFFER_BYTES {
            return Err(BufferError::TooLong(length));
        }
        let shelved = self.shelves.by_class[class(length.max(1))]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .pop();
        match shelved {
            Some(Shelved {
                pages,
                registration,
            }) => Ok(Buffer {
                pages,
                length,
                home: Some(Arc::clone(&self.shelves)),
                registration,
            }),
            None => self.allocate(length),
        }
    }

    fn allocate(&self, length: usize) -> Result<Buffer, BufferError> {
        if length > MAXIMUM_BUFFER_BYTES {
            return Err(BufferError::TooLong(length));
        }
        let pages = 1_usize << class(length.max(1));
        let pages = <[Page]>::new_box_zeroed_with_elems(pages)
            .map_err(|_| BufferError::OutOfMemory(length))?;
        Ok(Buffer {
            pages,
            length,
            home: Some(Arc::clone(&self.shelves)),
            registration: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_powers_of_two_of_pages() {
        assert_eq!([1, 4096, 4097, 8192, 8193].map(class), [0, 0, 1, 1, 2]);
        assert_eq!(class(MAXIMUM_BUFFER_BYTES), CLASSES - 1);
    }

    #[test]
    fn a_dropped_buffer_is_taken_again_and_stays_aligned() {
        let pool = BufferPool::new(1 << 20);
        let mut buffer = pool.take(5000).unwrap();
        assert_eq!((buffer.len(), buffer.capacity()), (5000, 8192));
        buffer[4999] = 7;
        let address = buffer.as_ptr().addr();
        assert_eq!(address % PAGE_BYTES, 0);
        drop(buffer);
        let again = pool.take(8192).unwrap();
        assert_eq!((again.as_ptr().addr(), again[4999]), (address, 7));
    }

    #[test]
    fn what_goes_beyond_the_bound_is_not_kept() {
        let pool = BufferPool::new(2 * PAGE_BYTES);
        let taken: Vec<_> = (0..5).map(|_| pool.take(PAGE_BYTES).unwrap()).collect();
        drop(taken);
        assert_eq!(pool.shelves.by_class[0].lock().unwrap().len(), 2);
    }

    #[test]
    fn buffers_made_in_advance_keep_their_number_and_place() {
        let pool = BufferPool::with_registrable(0, &[4096, 65_536], 2).unwrap();
        assert_eq!(pool.registrable().len(), 4);
        for length in [100, 65_536] {
            let buffer = pool.take(length).unwrap();
            let index = usize::from(buffer.registration().unwrap());
            let (address, bytes) = pool.registrable()[index];
            assert_eq!(
                (address, bytes),
                (buffer.as_ptr().addr(), buffer.capacity())
            );
        }
        assert_eq!(pool.shelves.by_class[0].lock().unwrap().len(), 2);
    }

    #[test]
    fn too_long_is_an_error() {
        let length = MAXIMUM_BUFFER_BYTES + 1;
        let error = BufferPool::default().take(length).unwrap_err();
        assert_eq!(error, BufferError::TooLong(length));
    }
}
