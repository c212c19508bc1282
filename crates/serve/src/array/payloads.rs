//! The memory behind the buffer names that the core uses.
//!
//! Each request's payload and each scratch buffer is a [`Memory`]: a command or step that works on
//! a range borrows it. Releasing a name drops its reference to the memory; commands that still
//! borrow ranges keep it.
//!
//! A hung read may write its range at any later time. So when a hung member is given up, the buffer
//! moves: the name gets fresh memory with the same bytes, and reads of the same buffer that are
//! still under way on other members are copied over as they complete.

use crate::export::{Buffer, BufferError, BufferPool};
use crate::member::{BorrowError, Exclusive, Memory, Shared};
use raidlab_array::{BufferId, ComputeStep, RequestId, ScratchId, StepId, StepResult};
pub(crate) use raidlab_payload::length;
use raidlab_payload::{Ranges, Store};
use raidlab_units::Sectors;
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// The number of further attempts to get memory, and the pause before each.
const NAPS: u32 = if cfg!(test) { 5 } else { 500 };
const NAP: Duration = Duration::from_millis(10);

/// An impossible order of the core: a bug in it, after which the array's bytes cannot be trusted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PayloadError {
    /// A name that no buffer has.
    #[error("{0:?} was named, which does not exist")]
    Unknown(BufferId),
    /// A name that a buffer has already.
    #[error("{0:?} was made twice")]
    Exists(BufferId),
    /// A range that cannot be borrowed.
    #[error("{bytes} bytes of {buffer:?} cannot be used")]
    Borrow {
        /// The buffer, and the place in it where the range begins.
        buffer: BufferId,
        /// Bytes of the range.
        bytes: usize,
        /// The reason why the range was not lent.
        #[source]
        source: BorrowError,
    },
    /// No memory for a scratch buffer.
    #[error("no scratch buffer")]
    Memory(#[source] BufferError),
    /// A step with invalid parameters.
    #[error("a step cannot be executed")]
    Step(#[from] raidlab_payload::PayloadError),
}

/// All buffers that the core may name.
#[derive(Default)]
pub(crate) struct Payloads {
    pool: BufferPool,
    requests: HashMap<RequestId, Arc<Memory>>,
    scratches: HashMap<ScratchId, Arc<Memory>>,
}

impl Payloads {
    /// Adds a request's payload, for the time that the core works on it.
    pub(crate) fn insert(&mut self, request: RequestId, memory: Arc<Memory>) {
        self.requests.insert(request, memory);
    }

    /// Takes a finished request's payload back.
    pub(crate) fn remove(&mut self, request: RequestId) -> Option<Arc<Memory>> {
        self.requests.remove(&request)
    }

    /// Takes a buffer from the driver's own pool. Where the system has no memory at the moment, the
    /// call waits: the core cannot go on without it, and clients that take their replies free some.
    pub(crate) fn take(&self, bytes: usize) -> Result<Buffer, PayloadError> {
        let mut taken = self.pool.take(bytes);
        for _ in 0..NAPS {
            if !matches!(taken, Err(BufferError::OutOfMemory(_))) {
                break;
            }
            std::thread::sleep(NAP);
            taken = self.pool.take(bytes);
        }
        taken.map_err(PayloadError::Memory)
    }

    /// Executes a compute step of the core.
    pub(crate) fn execute(
        &mut self,
        step: &ComputeStep,
    ) -> Result<Option<(StepId, StepResult)>, PayloadError> {
        raidlab_payload::execute(self, step)
    }

    /// Borrows a range for reading.
    pub(crate) fn read(&self, buffer: BufferId, bytes: usize) -> Result<Shared, PayloadError> {
        let (memory, start) = self.find(buffer)?;
        let lent = memory.read(start..start.saturating_add(bytes));
        lent.map_err(refused(buffer, bytes))
    }

    /// Borrows a range for writing.
    pub(crate) fn write(&self, buffer: BufferId, bytes: usize) -> Result<Exclusive, PayloadError> {
        let (memory, start) = self.find(buffer)?;
        let lent = memory.write(start..start.saturating_add(bytes));
        lent.map_err(refused(buffer, bytes))
    }

    fn find(&self, buffer: BufferId) -> Result<(&Arc<Memory>, usize), PayloadError> {
        let unknown = PayloadError::Unknown(buffer);
        match buffer {
            BufferId::Request { request, skip } => {
                let memory = self.requests.get(&request).ok_or(unknown)?;
                Ok((memory, length(skip)))
            }
            BufferId::Scratch { scratch, skip } => {
                let memory = self.scratches.get(&scratch).ok_or(unknown)?;
                Ok((memory, length(skip)))
            }
            BufferId::None => Err(unknown),
        }
    }

    /// Moves a buffer to other memory, out of reach of a command that hangs.
    pub(crate) fn move_away(&mut self, buffer: BufferId) -> Result<(), PayloadError> {
        let Ok((old, _)) = self.find(buffer) else {
            // The core has released it already.
            return Ok(());
        };
        let new = Memory::new(self.take(old.len())?);
        for gap in gaps(old.exclusive_ranges(), old.len()) {
            let copied = old
                .read(gap.clone())
                .and_then(|from| Ok((from, new.write(gap.clone())?)));
            let (from, mut to) = copied.map_err(refused(buffer, gap.len()))?;
            to.copy_from_slice(&from);
        }
        match buffer {
            BufferId::Request { request, .. } => drop(self.requests.insert(request, new)),
            BufferId::Scratch { scratch, .. } => drop(self.scratches.insert(scratch, new)),
            BufferId::None => {}
        }
        Ok(())
    }

    /// Records that a read into `buffer` has completed: if the buffer has moved meanwhile, its
    /// bytes are copied.
    pub(crate) fn arrived(&self, buffer: BufferId, bytes: &Exclusive) -> Result<(), PayloadError> {
        match self.find(buffer) {
            Ok((memory, _)) if !Arc::ptr_eq(memory, bytes.memory()) => {
                self.write(buffer, bytes.len())?.copy_from_slice(bytes);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

impl Store for Payloads {
    type Error = PayloadError;

    fn allocate(&mut self, scratch: ScratchId, count: Sectors) -> Result<(), PayloadError> {
        let memory = Memory::new(self.take(length(count))?);
        match self.scratches.insert(scratch, memory) {
            None => Ok(()),
            Some(_) => Err(PayloadError::Exists(scratch.whole())),
        }
    }

    fn release(&mut self, scratch: ScratchId) -> Result<(), PayloadError> {
        let released = self.scratches.remove(&scratch);
        released
            .map(drop)
            .ok_or(PayloadError::Unknown(scratch.whole()))
    }

    fn with<R>(
        &mut self,
        ranges: Ranges<'_>,
        work: impl FnOnce(&[Option<&[u8]>], &mut [Option<&mut [u8]>]) -> R,
    ) -> Result<R, PayloadError> {
        let is_there = |&buffer: &BufferId| (buffer != BufferId::None).then_some(buffer);
        let read = |buffer| {
            is_there(buffer)
                .map(|buffer| self.read(buffer, ranges.bytes))
                .transpose()
        };
        let write = |buffer| {
            is_there(buffer)
                .map(|buffer| self.write(buffer, ranges.bytes))
                .transpose()
        };
        let reads: Vec<Option<Shared>> = ranges.reads.iter().map(read).collect::<Result<_, _>>()?;
        let mut writes: Vec<Option<Exclusive>> =
            ranges.writes.iter().map(write).collect::<Result<_, _>>()?;
        let reads: Vec<_> = reads.iter().map(Option::as_deref).collect();
        let mut writes: Vec<_> = writes.iter_mut().map(Option::as_deref_mut).collect();
        Ok(work(&reads, &mut writes))
    }
}

/// Returns the error for a range of a buffer that is not lent.
fn refused(buffer: BufferId, bytes: usize) -> impl FnOnce(BorrowError) -> PayloadError {
    move |source| PayloadError::Borrow {
        buffer,
        bytes,
        source,
    }
}

/// Returns the gaps between ranges, up to `end`.
fn gaps(mut ranges: Vec<Range<usize>>, end: usize) -> Vec<Range<usize>> {
    ranges.sort_unstable_by_key(|range| range.start);
    let mut gaps = Vec::new();
    let mut at = 0;
    for range in ranges {
        if range.start > at {
            gaps.push(at..range.start);
        }
        at = at.max(range.end);
    }
    if at < end {
        gaps.push(at..end);
    }
    gaps
}

#[cfg(test)]
mod tests;
