//! Memory for payloads: aligned for direct I/O, reused, at stable addresses.
//!
//! A buffer is a part of a boxed slice that is one alignment longer, so that an
//! aligned start is always found within it. The box never moves or grows, so
//! the bytes stay where they are until the buffer is dropped, wherever the
//! [`Buffer`] itself goes.

use crate::PayloadError;
use std::ops::{Deref, DerefMut};

/// Every buffer begins at a multiple of this many bytes: what `O_DIRECT` wants
/// of any device in use.
pub const ALIGNMENT: usize = 4096;

/// Bytes of the largest buffer.
pub const MAXIMUM_BUFFER_BYTES: usize = 256 << 20;

/// Which memory a buffer has: for drivers that register memory with the
/// kernel. Memory that is reused keeps its name; a name never stands for
/// another memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Memory {
    /// Small: the lowest that no live memory had.
    pub index: u32,
    /// Tells apart the memories that had this index one after the other.
    pub generation: u64,
}

/// Aligned bytes.
#[derive(Debug)]
pub struct Buffer {
    bytes: Box<[u8]>,
    start: usize,
    length: usize,
    memory: Memory,
}

impl Buffer {
    /// Which memory this is.
    #[must_use]
    pub const fn memory(&self) -> Memory {
        self.memory
    }

    /// Bytes that the memory has from the buffer's start, at least the
    /// buffer's length: what a driver registers.
    #[must_use]
    pub fn capacity(&self) -> usize {
        self.bytes.len() - (ALIGNMENT - 1)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.length]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }
}

/// Classes of capacity: powers of two from the alignment to the largest.
const CLASSES: usize = (MAXIMUM_BUFFER_BYTES / ALIGNMENT).ilog2() as usize + 1;

/// Buffers that nobody uses, by class, and the names of memories.
#[derive(Debug)]
pub(crate) struct Pool {
    free: [Vec<Buffer>; CLASSES],
    retained_bytes: usize,
    maximum_retained_bytes: usize,
    /// Indices below the highest that no live memory has, the last freed last.
    free_indices: Vec<u32>,
    next_index: u32,
    next_generation: u64,
}

impl Pool {
    pub(crate) fn new(maximum_retained_bytes: usize) -> Self {
        Self {
            free: [const { Vec::new() }; CLASSES],
            retained_bytes: 0,
            maximum_retained_bytes,
            free_indices: Vec::new(),
            next_index: 0,
            next_generation: 0,
        }
    }

    /// A buffer whose bytes are undefined: zeros or what they were.
    pub(crate) fn take(&mut self, length: usize) -> Result<Buffer, PayloadError> {
        if length > MAXIMUM_BUFFER_BYTES {
            return Err(PayloadError::TooLarge(length as u64));
        }
        let class = class(length);
        if let Some(mut buffer) = self.free[class].pop() {
            self.retained_bytes -= buffer.capacity();
            buffer.length = length;
            return Ok(buffer);
        }
        let bytes = vec![0; (ALIGNMENT << class) + ALIGNMENT - 1].into_boxed_slice();
        let start = bytes.as_ptr().addr().next_multiple_of(ALIGNMENT) - bytes.as_ptr().addr();
        Ok(Buffer {
            start,
            length,
            memory: self.name(),
            bytes,
        })
    }

    /// Keeps a buffer for reuse, or drops it if enough is kept.
    pub(crate) fn give_back(&mut self, buffer: Buffer) {
        let capacity = buffer.capacity();
        if self.retained_bytes + capacity > self.maximum_retained_bytes {
            self.free_indices.push(buffer.memory.index);
            return;
        }
        self.retained_bytes += capacity;
        self.free[class(capacity)].push(buffer);
    }

    pub(crate) const fn retained_bytes(&self) -> usize {
        self.retained_bytes
    }

    fn name(&mut self) -> Memory {
        let index = self.free_indices.pop().unwrap_or_else(|| {
            self.next_index += 1;
            self.next_index - 1
        });
        self.next_generation += 1;
        Memory {
            index,
            generation: self.next_generation,
        }
    }
}

/// The class whose capacity is at least this.
const fn class(length: usize) -> usize {
    length.div_ceil(ALIGNMENT).next_power_of_two().ilog2() as usize
}
