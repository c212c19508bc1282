//! Memory that member commands, compute steps and a client may use at the same time.
//!
//! A request's payload is cut over members: the kernel writes one piece while another piece is
//! read, compared or added to parity. A hung command may even write its piece long after all
//! others have finished. So each user borrows a range, shared or exclusive, and the ranges are
//! checked when they are borrowed: as with a `RefCell`, but for ranges and across threads. A
//! borrow keeps the memory alive, whatever other references are dropped; a borrow that conflicts
//! is refused, never granted.

use crate::export::{Buffer, Identity};
use raidlab_array::mutation::{self, Mutation};
use std::cell::UnsafeCell;
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::NonNull;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A buffer at a fixed, page-aligned address, lent in ranges.
pub struct Memory {
    /// The buffer, not accessed until the memory has a single owner again; `base` is its address.
    buffer: UnsafeCell<Buffer>,
    base: NonNull<u8>,
    len: usize,
    capacity: usize,
    identity: Option<Arc<Identity>>,
    borrows: Mutex<Vec<Borrow>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Borrow {
    range: Range<usize>,
    exclusive: bool,
}

// SAFETY: the bytes behind `base` belong to `buffer`, which may be sent.
unsafe impl Send for Memory {}
// SAFETY: `buffer` is reached only by a single owner. The bytes are reached
// through borrows, which the mutex keeps apart: shared ones only read, an
// exclusive one overlaps no other.
unsafe impl Sync for Memory {}

/// The reason why a range was not lent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BorrowError {
    /// The range ends beyond the end of the memory.
    #[error("the range is outside the memory")]
    OutOfRange,
    /// A part of the range is borrowed already.
    #[error("a part of the range is in use")]
    Conflict,
}

impl Memory {
    /// Makes a buffer available for borrowing, range by range.
    #[must_use]
    pub fn new(buffer: Buffer) -> Arc<Self> {
        let mut memory = Arc::new(Self {
            base: NonNull::dangling(),
            len: buffer.len(),
            capacity: buffer.capacity(),
            identity: buffer.identity().cloned(),
            buffer: UnsafeCell::new(buffer),
            borrows: Mutex::new(Vec::new()),
        });
        if let Some(memory) = Arc::get_mut(&mut memory) {
            memory.base = NonNull::from(&mut **memory.buffer.get_mut()).cast();
        }
        memory
    }

    /// Returns the buffer, if no range of it is borrowed.
    #[must_use]
    pub fn into_buffer(self: Arc<Self>) -> Option<Buffer> {
        Arc::into_inner(self).map(|memory| memory.buffer.into_inner())
    }

    /// Returns the number of bytes of the memory.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the memory has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the identity of the memory; `None` if it has no bytes.
    pub(super) fn identity(&self) -> Option<&Arc<Identity>> {
        self.identity.as_ref()
    }

    /// Returns the address and the bytes of the whole allocation: the same for every buffer
    /// with this identity.
    pub(super) fn allocation(&self) -> (NonNull<u8>, usize) {
        (self.base, self.capacity)
    }

    /// Borrows a range for reading.
    ///
    /// # Errors
    /// When the range ends beyond the memory or a part of it is borrowed for writing.
    pub fn read(self: &Arc<Self>, range: Range<usize>) -> Result<Shared, BorrowError> {
        self.borrow(range, false).map(Shared)
    }

    /// Borrows a range for writing.
    ///
    /// # Errors
    /// When the range ends beyond the memory or a part of it is borrowed.
    pub fn write(self: &Arc<Self>, range: Range<usize>) -> Result<Exclusive, BorrowError> {
        self.borrow(range, true).map(Exclusive)
    }

    /// Returns the ranges that are borrowed for writing.
    #[must_use]
    pub fn exclusive_ranges(&self) -> Vec<Range<usize>> {
        let borrows = self.lock();
        let exclusive = borrows.iter().filter(|held| held.exclusive);
        exclusive.map(|held| held.range.clone()).collect()
    }

    fn borrow(self: &Arc<Self>, range: Range<usize>, exclusive: bool) -> Result<Lent, BorrowError> {
        if range.start > range.end || range.end > self.len() {
            return Err(BorrowError::OutOfRange);
        }
        let mut borrows = self.lock();
        let unseen = 512 * usize::from(mutation::is(Mutation::OverlapLent));
        let conflict = borrows.iter().any(|held| {
            (held.exclusive || exclusive)
                && held.range.start < range.end
                && range.start + unseen < held.range.end
        });
        if conflict {
            return Err(BorrowError::Conflict);
        }
        let borrow = Borrow { range, exclusive };
        borrows.push(borrow.clone());
        Ok(Lent {
            memory: Arc::clone(self),
            borrow,
        })
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Borrow>> {
        // The list of ranges is consistent after every step that could panic.
        self.borrows.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Memory")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

/// A borrowed range, which is returned when this is dropped.
#[derive(Debug)]
struct Lent {
    memory: Arc<Memory>,
    borrow: Borrow,
}

impl Lent {
    fn bytes(&self) -> &[u8] {
        let Range { start, end } = self.borrow.range;
        // SAFETY: the range is inside the buffer, which this borrow keeps alive. While this
        // borrow lives it is only read, or no other borrow overlaps it.
        unsafe { std::slice::from_raw_parts(self.memory.base.as_ptr().add(start), end - start) }
    }
}

impl Drop for Lent {
    fn drop(&mut self) {
        let mut borrows = self.memory.lock();
        let found = borrows.iter().rposition(|held| *held == self.borrow);
        if let Some(index) = found {
            borrows.swap_remove(index);
        }
    }
}

/// A range that is borrowed for reading.
#[derive(Debug)]
pub struct Shared(Lent);

/// A range that is borrowed for reading and writing, by one borrower alone.
#[derive(Debug)]
pub struct Exclusive(Lent);

impl Shared {
    /// Returns the memory that the range is a part of.
    #[must_use]
    pub fn memory(&self) -> &Arc<Memory> {
        &self.0.memory
    }
}

impl Exclusive {
    /// Returns the memory that the range is a part of.
    #[must_use]
    pub fn memory(&self) -> &Arc<Memory> {
        &self.0.memory
    }

    /// Returns the byte of its memory at which the range begins.
    #[must_use]
    pub fn start(&self) -> usize {
        self.0.borrow.range.start
    }
}

impl Deref for Shared {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl Deref for Exclusive {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        self.0.bytes()
    }
}

impl DerefMut for Exclusive {
    fn deref_mut(&mut self) -> &mut [u8] {
        let Range { start, end } = self.0.borrow.range;
        let base = self.0.memory.base.as_ptr();
        // SAFETY: as in `Lent::bytes`: no other borrow overlaps this one. `self` is borrowed
        // mutably for as long as the slice lives.
        unsafe { std::slice::from_raw_parts_mut(base.add(start), end - start) }
    }
}

#[cfg(test)]
mod tests {
    use super::{BorrowError, Memory};
    use crate::export::BufferPool;
    use std::sync::Arc;

    fn memory(len: usize) -> Arc<Memory> {
        Memory::new(BufferPool::default().take(len).expect("room"))
    }

    #[test]
    fn the_buffer_comes_back_when_all_are_done() {
        let memory = memory(10_000);
        let bytes = memory.read(5000..10_000).expect("free");
        let address = bytes.as_ptr().addr();
        let second = Arc::clone(&memory);
        assert!(second.into_buffer().is_none(), "two owners");
        drop(bytes);
        let buffer = memory.into_buffer().expect("one owner");
        assert_eq!(buffer[5000..].as_ptr().addr(), address);
    }

    #[test]
    fn ranges_are_lent_as_the_rules_say() {
        let memory = memory(4096);
        let left = memory.write(0..1024).expect("free");
        let right = memory.read(1024..2048).expect("apart");
        let again = memory.read(1500..4096).expect("shared");
        assert_eq!(memory.read(1023..1024).err(), Some(BorrowError::Conflict));
        assert_eq!(memory.write(2047..2048).err(), Some(BorrowError::Conflict));
        assert_eq!(memory.read(4000..4097).err(), Some(BorrowError::OutOfRange));
        drop((left, right));
        assert_eq!(memory.write(1024..2048).err(), Some(BorrowError::Conflict));
        drop(again);
        assert!(memory.write(0..4096).is_ok());
    }

    #[test]
    fn a_borrow_outlives_the_memory_s_owner() {
        let memory = memory(512);
        let mut bytes = memory.write(0..512).expect("free");
        drop(memory);
        bytes.fill(7);
        assert_eq!(bytes[511], 7);
    }

    #[test]
    fn what_is_written_is_read() {
        let memory = memory(1024);
        memory.write(512..1024).expect("free").fill(9);
        let all = memory.read(0..1024).expect("free");
        assert_eq!((all[511], all[512]), (0, 9));
    }
}
