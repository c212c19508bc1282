//! Payload buffers: page-aligned, owned by the code that works on them, recycled.
//!
//! A buffer is taken from a [`BufferPool`] by the connection that reads a request, travels with
//! the request through the export to the members and back into the reply, and returns to its pool
//! when it is dropped. Buffers come in powers of two from one page up; the list of free ones is
//! last in, first out, so that memory that is still in the cache is used again. The pool keeps a
//! bounded number of bytes, and returns the rest to the system. A ring that has registered a
//! buffer's memory with the kernel marks it ([`Identity::keep`]): such memory stays in the pool
//! and is taken first, so that it is registered once and used many times. Rings bound the memory
//! that they register. Where the system has no memory left, the pool returns all free buffers that
//! no ring has registered.

use std::{
    ops::{Deref, DerefMut},
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// Alignment of every buffer, and its smallest capacity, in bytes.
pub const PAGE_BYTES: usize = 4096;

/// The most that one buffer holds, in bytes: the longest request.
pub const MAXIMUM_BUFFER_BYTES: usize = 32 << 20;

/// The number of sizes: powers of two from one page to the longest request.
const CLASSES: usize = (MAXIMUM_BUFFER_BYTES / PAGE_BYTES).ilog2() as usize + 1;

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C, align(4096))]
struct Page([u8; PAGE_BYTES]);

/// The identity of a buffer's memory, for a ring that registers it: an address alone could belong
/// to other memory after the first was freed.
#[derive(Debug)]
pub struct Identity {
    number: u64,
    kept: AtomicBool,
}

impl Identity {
    fn new() -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Arc::new(Self {
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            kept: AtomicBool::new(false),
        })
    }

    /// Returns a number that no other memory has or will have in this process.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Makes the pool keep this memory from now on, even beyond its bound.
    pub fn keep(&self) {
        self.kept.store(true, Ordering::Relaxed);
    }

    fn is_kept(&self) -> bool {
        self.kept.load(Ordering::Relaxed)
    }
}

/// The payload of a request: aligned to [`PAGE_BYTES`], with a length that may be less than
/// the allocated bytes.
#[derive(Default)]
pub struct Buffer {
    pages: Box<[Page]>,
    length: usize,
    home: Option<Arc<Shelves>>,
    identity: Option<Arc<Identity>>,
}

impl Buffer {
    /// A buffer without bytes, for requests without payload.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// Returns the allocated bytes, a multiple of the page.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.pages.len() * PAGE_BYTES
    }

    /// Returns the identity of the memory; `None` if there is none.
    #[must_use]
    pub fn identity(&self) -> Option<&Arc<Identity>> {
        self.identity.as_ref()
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
        if let (Some(home), Some(identity)) = (self.home.take(), self.identity.take()) {
            home.put(Shelved {
                pages: std::mem::take(&mut self.pages),
                identity,
            });
        }
    }
}

struct Shelved {
    pages: Box<[Page]>,
    identity: Arc<Identity>,
}

/// Free buffers of one size.
#[derive(Default)]
struct Shelf {
    kept: Vec<Shelved>,
    others: Vec<Shelved>,
}

struct Shelves {
    by_class: [Mutex<Shelf>; CLASSES],
    /// The most bytes of free buffers of one size.
    keep_bytes: usize,
    /// The number of further allocations that are made to fail, for tests.
    #[cfg(test)]
    refusals: std::sync::atomic::AtomicUsize,
}

impl Shelves {
    fn put(&self, shelved: Shelved) {
        let bytes = shelved.pages.len() * PAGE_BYTES;
        let mut shelf = self.lock(class(bytes));
        if shelved.identity.is_kept() {
            shelf.kept.push(shelved);
        } else if shelf.others.len() * bytes < self.keep_bytes {
            shelf.others.push(shelved);
        }
    }

    fn take(&self, class: usize) -> Option<Shelved> {
        let mut shelf = self.lock(class);
        shelf.kept.pop().or_else(|| shelf.others.pop())
    }

    /// Returns free buffers to the system.
    fn give_back(&self) {
        for class in 0..CLASSES {
            self.lock(class).others = Vec::new();
        }
    }

    #[cfg(test)]
    fn refuses(&self) -> bool {
        let left = |left: usize| left.checked_sub(1);
        let refused = self
            .refusals
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, left);
        refused.is_ok()
    }

    fn lock(&self, class: usize) -> MutexGuard<'_, Shelf> {
        self.by_class[class]
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the index of the size that holds `bytes`, counted from one page.
fn class(bytes: usize) -> usize {
    bytes
        .div_ceil(PAGE_BYTES)
        .next_power_of_two()
        .trailing_zeros() as usize
}

/// The reason why no buffer can be had.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BufferError {
    /// The buffer would be longer than [`MAXIMUM_BUFFER_BYTES`].
    #[error("a buffer of {0} bytes is longer than any request")]
    TooLong(usize),
    /// The system has no memory.
    #[error("no memory for a buffer of {0} bytes")]
    OutOfMemory(usize),
}

/// A pool of buffers. Clones share the same buffers.
#[derive(Clone)]
pub struct BufferPool {
    shelves: Arc<Shelves>,
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
    /// A pool that keeps up to `keep_bytes` of free buffers for each of its sizes.
    #[must_use]
    pub fn new(keep_bytes: usize) -> Self {
        Self {
            shelves: Arc::new(Shelves {
                by_class: std::array::from_fn(|_| Mutex::default()),
                keep_bytes,
                #[cfg(test)]
                refusals: std::sync::atomic::AtomicUsize::new(0),
            }),
        }
    }

    /// Makes the next `times` allocations fail, as if the system had no memory.
    #[cfg(test)]
    pub(crate) fn refuse(&self, times: usize) {
        self.shelves.refusals.store(times, Ordering::Relaxed);
    }

    /// Takes a buffer of `length` bytes. Its content is that of its last use.
    ///
    /// # Errors
    ///
    /// The length is beyond [`MAXIMUM_BUFFER_BYTES`], or the system has no memory.
    pub fn take(&self, length: usize) -> Result<Buffer, BufferError> {
        if length > MAXIMUM_BUFFER_BYTES {
            return Err(BufferError::TooLong(length));
        }
        match self.shelves.take(class(length.max(1))) {
            Some(Shelved { pages, identity }) => Ok(Buffer {
                pages,
                length,
                home: Some(Arc::clone(&self.shelves)),
                identity: Some(identity),
            }),
            None => self.allocate(length).or_else(|_| {
                self.shelves.give_back();
                self.allocate(length)
            }),
        }
    }

    fn allocate(&self, length: usize) -> Result<Buffer, BufferError> {
        let pages = 1_usize << class(length.max(1));
        #[cfg(test)]
        if self.shelves.refuses() {
            return Err(BufferError::OutOfMemory(length));
        }
        let pages = <[Page]>::new_box_zeroed_with_elems(pages)
            .map_err(|_| BufferError::OutOfMemory(length))?;
        Ok(Buffer {
            pages,
            length,
            home: Some(Arc::clone(&self.shelves)),
            identity: Some(Identity::new()),
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
        assert_eq!(pool.shelves.lock(0).others.len(), 2);
    }

    #[test]
    fn memory_that_is_to_be_kept_stays_and_is_taken_first() {
        let pool = BufferPool::new(PAGE_BYTES);
        let number = |buffer: &Buffer| buffer.identity().unwrap().number();
        let taken: Vec<_> = (0..4).map(|_| pool.take(PAGE_BYTES).unwrap()).collect();
        let kept = [number(&taken[1]), number(&taken[2])];
        taken[1].identity().unwrap().keep();
        taken[2].identity().unwrap().keep();
        let last = number(&taken[3]);
        drop(taken);
        let again: Vec<_> = (0..4).map(|_| pool.take(100).unwrap()).collect();
        assert_eq!([number(&again[1]), number(&again[0])], kept);
        // Of the others the pool had room for the first; the last is gone, and
        // so is its number.
        assert!(number(&again[2]) < kept[0] && number(&again[3]) > last);
    }

    #[test]
    fn where_there_is_no_memory_what_nobody_uses_is_given_back() {
        let pool = BufferPool::new(1 << 20);
        drop(pool.take(5 * PAGE_BYTES).unwrap());
        let kept = || pool.shelves.lock(3).others.len();
        assert_eq!(kept(), 1);
        pool.refuse(1);
        pool.take(PAGE_BYTES).expect("what was given back");
        assert_eq!(kept(), 0);
        pool.refuse(2);
        let error = pool.take(2 * PAGE_BYTES).unwrap_err();
        assert_eq!(error, BufferError::OutOfMemory(2 * PAGE_BYTES));
    }

    #[test]
    fn too_long_is_an_error() {
        let length = MAXIMUM_BUFFER_BYTES + 1;
        let error = BufferPool::default().take(length).unwrap_err();
        assert_eq!(error, BufferError::TooLong(length));
    }
}
