//! A sparse disk in memory.
//!
//! The range is cut into segments of 64 KiB, each allocated by its first write. Trims and zeroes
//! free whole segments and clear the rest; block status reports which segments are allocated. Each
//! segment has its own lock, so that connections contend only where they access the same segment.

use super::{
    BASE_ALLOCATION, ErrorCode, Export, Extent, Features, Operation, Request, STATE_HOLE,
    STATE_ZERO,
};
use std::{
    ops::Range,
    sync::{PoisonError, RwLock},
};

/// The unit in which memory is allocated, in bytes.
pub(crate) const SEGMENT_BYTES: usize = 64 << 10;

/// The largest memory export, in bytes (1 TiB): its table of segments takes 1/2048 of that at once.
const MAXIMUM_BYTES: u64 = 1 << 40;

type Segment = RwLock<Option<Box<[u8]>>>;

/// An export in memory, lost with the process. Unwritten ranges read as zeroes and take no memory.
pub struct MemoryExport {
    size_bytes: u64,
    segments: Box<[Segment]>,
}

impl MemoryExport {
    /// An empty disk of `size_bytes`; `None` above 1 TiB.
    #[must_use]
    pub fn new(size_bytes: u64) -> Option<Self> {
        if size_bytes > MAXIMUM_BYTES {
            return None;
        }
        let count = usize::try_from(size_bytes.div_ceil(SEGMENT_BYTES as u64)).ok()?;
        let mut segments = Vec::new();
        segments.try_reserve_exact(count).ok()?;
        segments.resize_with(count, Segment::default);
        Some(Self {
            size_bytes,
            segments: segments.into(),
        })
    }

    fn read(&self, offset: u64, buffer: &mut [u8]) {
        let mut rest = buffer;
        for (segment, range) in pieces(offset, rest.len() as u64) {
            let (piece, after) = rest.split_at_mut(range.len());
            rest = after;
            let segment = self.segments[segment]
                .read()
                .unwrap_or_else(PoisonError::into_inner);
            match segment.as_deref() {
                Some(bytes) => piece.copy_from_slice(&bytes[range]),
                None => piece.fill(0),
            }
        }
    }

    fn write(&self, offset: u64, buffer: &[u8]) -> Result<(), ErrorCode> {
        let mut rest = buffer;
        for (segment, range) in pieces(offset, rest.len() as u64) {
            let (piece, after) = rest.split_at(range.len());
            rest = after;
            let mut segment = self.segments[segment]
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            if segment.is_none() {
                *segment = Some(zeroed_segment()?);
            }
            if let Some(bytes) = segment.as_deref_mut() {
                bytes[range].copy_from_slice(piece);
            }
        }
        Ok(())
    }

    /// Makes the range read as zeroes; `keep` leaves (or makes) it allocated.
    fn clear(&self, offset: u64, length: u32, keep: bool) -> Result<(), ErrorCode> {
        for (segment, range) in pieces(offset, u64::from(length)) {
            let mut segment = self.segments[segment]
                .write()
                .unwrap_or_else(PoisonError::into_inner);
            if range.len() == SEGMENT_BYTES && !keep {
                *segment = None;
            } else if let Some(bytes) = segment.as_deref_mut() {
                bytes[range].fill(0);
            } else if keep {
                *segment = Some(zeroed_segment()?);
            }
        }
        Ok(())
    }
}

pub(crate) fn zeroed_segment() -> Result<Box<[u8]>, ErrorCode> {
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(SEGMENT_BYTES)
        .map_err(|_| ErrorCode::NoSpace)?;
    bytes.resize(SEGMENT_BYTES, 0);
    Ok(bytes.into())
}

/// Cuts a range at the segments: each one's number and the bytes within it.
pub(crate) fn pieces(offset: u64, length: u64) -> impl Iterator<Item = (usize, Range<usize>)> {
    let end = offset + length;
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let segment = (at / SEGMENT_BYTES as u64) as usize;
        let first = (at % SEGMENT_BYTES as u64) as usize;
        let count = (end - at).min((SEGMENT_BYTES - first) as u64) as usize;
        at += count as u64;
        Some((segment, first..first + count))
    })
}

impl Export for MemoryExport {
    fn size_bytes(&self) -> u64 {
        self.size_bytes
    }

    fn description(&self) -> String {
        "a sparse disk in memory".to_owned()
    }

    fn features(&self) -> Features {
        Features {
            flush: true,
            trim: true,
            write_zeroes: true,
            fast_zero: true,
            cache: true,
            multiple_connections: true,
            sparse: true,
            ..Features::default()
        }
    }

    fn block_status(
        &self,
        context: &str,
        offset: u64,
        length: u32,
        limit: usize,
        extents: &mut Vec<Extent>,
    ) {
        if context != BASE_ALLOCATION {
            return;
        }
        let first = extents.len();
        for (segment, range) in pieces(offset, u64::from(length)) {
            let allocated = self.segments[segment]
                .read()
                .unwrap_or_else(PoisonError::into_inner)
                .is_some();
            let flags = if allocated {
                0
            } else {
                STATE_HOLE | STATE_ZERO
            };
            let length = range.len() as u64;
            let full = extents.len() - first == limit;
            match extents[first..].last_mut() {
                Some(last) if last.flags == flags => last.length += length,
                _ if full => return,
                _ => extents.push(Extent { length, flags }),
            }
        }
    }

    fn submit(&self, mut request: Request) {
        let Request { offset, length, .. } = request;
        let result = match request.operation {
            Operation::Read => {
                self.read(offset, &mut request.buffer);
                Ok(())
            }
            Operation::Write => self.write(offset, &request.buffer),
            Operation::Trim => self.clear(offset, length, false),
            Operation::WriteZeroes => self.clear(offset, length, request.flags.no_hole),
            Operation::Flush | Operation::Cache => Ok(()),
        };
        request.complete(result);
    }
}
