//! The table of all buffers that the core may name.

use crate::buffer::{Buffer, Memory, Pool};
use crate::{ALIGNMENT, PayloadError};
use raidlab_array::{BufferId, Mixed, RequestId, ScratchId};
use raidlab_units::{SECTOR_BYTES, Sectors};
use std::collections::HashMap;
use std::sync::atomic::{AtomicPtr, Ordering};

/// How a [`Buffers`] behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BuffersConfig {
    /// Bytes of unused memory that are kept for reuse. What is in use is not
    /// bounded here: the core bounds it.
    pub maximum_retained_bytes: usize,
    /// Fills every scratch buffer with this when it is allocated, so that a
    /// core that uses bytes that nobody wrote is found out. `None`: whatever is
    /// there.
    pub poison: Option<u8>,
}

impl Default for BuffersConfig {
    fn default() -> Self {
        Self {
            maximum_retained_bytes: 64 << 20,
            poison: None,
        }
    }
}

/// Payloads of requests and scratch buffers.
#[derive(Debug)]
pub struct Buffers {
    pub(crate) entries: Vec<Entry>,
    free_entries: Vec<u32>,
    scratches: HashMap<u32, u32, Mixed>,
    requests: HashMap<u64, u32, Mixed>,
    pool: Pool,
    poison: Option<u8>,
    /// The list of one step's ranges, kept for its memory.
    pub(crate) regions: Vec<Region>,
}

/// A place in the table.
#[derive(Debug)]
pub(crate) struct Entry {
    /// `None` in a place that is free.
    pub(crate) buffer: Option<Buffer>,
    /// Commands in flight that use it.
    in_flight: u32,
}

/// A range of a buffer that a command in flight uses: its memory stays where
/// it is until [`Buffers::end`].
#[derive(Debug)]
#[must_use = "the buffer cannot be released before the range is handed back"]
pub struct InFlight {
    entry: u32,
    /// Atomic only so that a driver may hand it to another thread: an address
    /// by itself gives no access.
    address: AtomicPtr<u8>,
    bytes: usize,
    memory: Memory,
}

impl InFlight {
    /// Where the bytes are.
    #[must_use]
    pub fn address(&self) -> *mut u8 {
        self.address.load(Ordering::Relaxed)
    }

    /// Bytes of the range.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Which memory they belong to.
    #[must_use]
    pub const fn memory(&self) -> Memory {
        self.memory
    }
}

/// A range of a buffer that a step names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Region {
    /// Which place of the table.
    pub(crate) entry: u32,
    pub(crate) start: usize,
    pub(crate) end: usize,
    /// Which of the step's buffers.
    pub(crate) place: u32,
}

impl Buffers {
    /// An empty table.
    #[must_use]
    pub fn new(config: BuffersConfig) -> Self {
        Self {
            entries: Vec::new(),
            free_entries: Vec::new(),
            scratches: HashMap::default(),
            requests: HashMap::default(),
            pool: Pool::new(config.maximum_retained_bytes),
            poison: config.poison,
            regions: Vec::new(),
        }
    }

    /// A buffer of so many bytes for a request's payload; its bytes are
    /// undefined (never another process's).
    ///
    /// # Errors
    /// When it is larger than [`MAXIMUM_BUFFER_BYTES`](crate::MAXIMUM_BUFFER_BYTES).
    pub fn take(&mut self, bytes: usize) -> Result<Buffer, PayloadError> {
        self.pool.take(bytes)
    }

    /// Keeps a buffer's memory for later.
    pub fn give_back(&mut self, buffer: Buffer) {
        self.pool.give_back(buffer);
    }

    /// Gives a request's payload into the core's hands: before it is submitted.
    ///
    /// # Errors
    /// When the request has one.
    pub fn insert(&mut self, request: RequestId, payload: Buffer) -> Result<(), PayloadError> {
        if self.requests.contains_key(&request.0) {
            return Err(PayloadError::RequestExists(request));
        }
        let entry = self.enter(payload);
        self.requests.insert(request.0, entry);
        Ok(())
    }

    /// Takes a request's payload back: when it has finished.
    ///
    /// # Errors
    /// When it has none, or a command in flight uses it.
    pub fn remove(&mut self, request: RequestId) -> Result<Buffer, PayloadError> {
        let unknown = PayloadError::UnknownRequest(request);
        let entry = *self.requests.get(&request.0).ok_or(unknown)?;
        let buffer = self.leave(entry)?;
        self.requests.remove(&request.0);
        Ok(buffer)
    }

    pub(crate) fn allocate(&mut self, id: ScratchId, count: Sectors) -> Result<(), PayloadError> {
        if self.scratches.contains_key(&id.0) {
            return Err(PayloadError::ScratchExists(id));
        }
        let mut buffer = self.pool.take(length(count))?;
        if let Some(poison) = self.poison {
            buffer.fill(poison);
        }
        let entry = self.enter(buffer);
        self.scratches.insert(id.0, entry);
        Ok(())
    }

    pub(crate) fn release(&mut self, id: ScratchId) -> Result<(), PayloadError> {
        let unknown = PayloadError::UnknownScratch(id);
        let entry = *self.scratches.get(&id.0).ok_or(unknown)?;
        let buffer = self.leave(entry)?;
        self.scratches.remove(&id.0);
        self.pool.give_back(buffer);
        Ok(())
    }

    /// The bytes of a buffer.
    ///
    /// # Errors
    /// When there is no such buffer or it is too short.
    pub fn slice(&self, buffer: BufferId, count: Sectors) -> Result<&[u8], PayloadError> {
        self.bytes_of(buffer, length(count))
    }

    pub(crate) fn bytes_of(&self, buffer: BufferId, bytes: usize) -> Result<&[u8], PayloadError> {
        let region = self.region(buffer, bytes)?;
        Ok(&self.bytes(region.entry)[region.start..region.end])
    }

    /// The bytes of a buffer, to be written.
    ///
    /// # Errors
    /// As [`Self::slice`].
    pub fn slice_mut(
        &mut self,
        buffer: BufferId,
        count: Sectors,
    ) -> Result<&mut [u8], PayloadError> {
        let region = self.region(buffer, length(count))?;
        let buffer = &mut self.entries[region.entry as usize].buffer;
        let buffer = buffer.as_mut().expect("names lead to buffers");
        Ok(&mut buffer[region.start..region.end])
    }

    /// Where the bytes of a buffer are, for a command that will be in flight.
    /// The buffer cannot be released or removed before [`Self::end`].
    ///
    /// # Errors
    /// As [`Self::slice`].
    pub fn begin(&mut self, buffer: BufferId, count: Sectors) -> Result<InFlight, PayloadError> {
        let region = self.region(buffer, length(count))?;
        let bytes = self.slice_mut(buffer, count)?;
        let (address, bytes) = (bytes.as_mut_ptr(), bytes.len());
        let entry = &mut self.entries[region.entry as usize];
        entry.in_flight += 1;
        let memory = entry
            .buffer
            .as_ref()
            .expect("names lead to buffers")
            .memory();
        Ok(InFlight {
            entry: region.entry,
            address: AtomicPtr::new(address),
            bytes,
            memory,
        })
    }

    /// The command has completed; the kernel no longer knows the address.
    pub fn end(&mut self, range: InFlight) {
        self.entries[range.entry as usize].in_flight -= 1;
    }

    /// Buffers that the core has allocated and not released.
    #[must_use]
    pub fn scratch_count(&self) -> usize {
        self.scratches.len()
    }

    /// Requests whose payload is here.
    #[must_use]
    pub fn request_count(&self) -> usize {
        self.requests.len()
    }

    /// Bytes of memory that are kept for reuse.
    #[must_use]
    pub const fn retained_bytes(&self) -> usize {
        self.pool.retained_bytes()
    }

    /// Where a range lies.
    pub(crate) fn region(&self, buffer: BufferId, bytes: usize) -> Result<Region, PayloadError> {
        let (entry, skip) = match buffer {
            BufferId::Request { request, skip } => {
                let entry = self.requests.get(&request.0);
                (entry.ok_or(PayloadError::UnknownRequest(request))?, skip)
            }
            BufferId::Scratch { scratch, skip } => {
                let entry = self.scratches.get(&scratch.0);
                (entry.ok_or(PayloadError::UnknownScratch(scratch))?, skip)
            }
            BufferId::None => return Err(PayloadError::NoBuffer),
        };
        let start = length(skip);
        let available = self.bytes(*entry).len().saturating_sub(start);
        if bytes > available {
            return Err(PayloadError::TooShort {
                buffer,
                bytes: bytes as u64,
                available: available as u64,
            });
        }
        Ok(Region {
            entry: *entry,
            start,
            end: start + bytes,
            place: 0,
        })
    }

    fn bytes(&self, entry: u32) -> &[u8] {
        let buffer = &self.entries[entry as usize].buffer;
        buffer.as_ref().expect("names lead to buffers")
    }

    fn enter(&mut self, buffer: Buffer) -> u32 {
        debug_assert!(buffer.as_ptr().addr().is_multiple_of(ALIGNMENT));
        let entry = Entry {
            buffer: Some(buffer),
            in_flight: 0,
        };
        if let Some(free) = self.free_entries.pop() {
            self.entries[free as usize] = entry;
            return free;
        }
        self.entries.push(entry);
        u32::try_from(self.entries.len() - 1).expect("fewer buffers than 2^32")
    }

    fn leave(&mut self, entry: u32) -> Result<Buffer, PayloadError> {
        let place = &mut self.entries[entry as usize];
        if place.in_flight > 0 {
            return Err(PayloadError::InFlight);
        }
        self.free_entries.push(entry);
        Ok(place.buffer.take().expect("names lead to buffers"))
    }
}

/// Bytes of so many sectors; a number beyond every buffer for absurd ones.
pub(crate) fn length(count: Sectors) -> usize {
    usize::try_from(count.0.saturating_mul(SECTOR_BYTES)).unwrap_or(usize::MAX)
}
