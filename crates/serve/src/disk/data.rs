//! The bytes of a modelled disk, which cost no modelled time.

use crate::export::{ErrorCode, Operation, Request};
use crate::member::MemberFile;
use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::unix::fs::FileExt;

/// The unit of allocation in memory.
const SEGMENT_BYTES: usize = 64 << 10;

pub(super) enum Data {
    Memory(HashMap<u64, Box<[u8]>>),
    File(MemberFile),
}

impl Data {
    pub(super) fn in_memory() -> Self {
        Self::Memory(HashMap::new())
    }

    pub(super) fn in_file(file: MemberFile) -> Self {
        Self::File(file)
    }

    /// Moves a request's bytes.
    pub(super) fn carry_out(&mut self, request: &mut Request) -> Result<(), ErrorCode> {
        let offset = request.offset;
        match self {
            Self::Memory(segments) => in_memory(segments, request),
            Self::File(file) => match request.operation {
                Operation::Read => file.file().read_exact_at(&mut request.buffer, offset),
                Operation::Write => file.file().write_all_at(&request.buffer, offset),
                Operation::Flush => fdatasync(file.file()).map_err(Into::into),
                Operation::Trim => {
                    let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
                    // Where holes cannot be made the bytes stay: a trim is advice.
                    let _ = fallocate(file.file(), mode, offset, u64::from(request.length));
                    Ok(())
                }
                Operation::WriteZeroes | Operation::Cache => Ok(()),
            }
            .map_err(|_| ErrorCode::Io),
        }
    }
}

fn in_memory(
    segments: &mut HashMap<u64, Box<[u8]>>,
    request: &mut Request,
) -> Result<(), ErrorCode> {
    let end = request.offset + u64::from(request.length);
    let mut at = request.offset;
    let mut done = 0;
    while at < end {
        let segment = at / SEGMENT_BYTES as u64;
        let first = (at % SEGMENT_BYTES as u64) as usize;
        let count = usize::try_from(end - at)
            .unwrap_or(usize::MAX)
            .min(SEGMENT_BYTES - first);
        let range = first..first + count;
        match request.operation {
            Operation::Read => {
                let piece = &mut request.buffer[done..done + count];
                match segments.get(&segment) {
                    Some(bytes) => piece.copy_from_slice(&bytes[range]),
                    None => piece.fill(0),
                }
            }
            Operation::Write => {
                let bytes = match segments.entry(segment) {
                    Entry::Occupied(entry) => entry.into_mut(),
                    Entry::Vacant(entry) => entry.insert(zeroed_segment()?),
                };
                bytes[range].copy_from_slice(&request.buffer[done..done + count]);
            }
            Operation::Trim => {
                if count == SEGMENT_BYTES {
                    segments.remove(&segment);
                } else if let Some(bytes) = segments.get_mut(&segment) {
                    bytes[range].fill(0);
                }
            }
            Operation::Flush | Operation::WriteZeroes | Operation::Cache => {}
        }
        at += count as u64;
        done += count;
    }
    Ok(())
}

fn zeroed_segment() -> Result<Box<[u8]>, ErrorCode> {
    let mut bytes = Vec::new();
    bytes
        .try_reserve_exact(SEGMENT_BYTES)
        .map_err(|_| ErrorCode::OutOfMemory)?;
    bytes.resize(SEGMENT_BYTES, 0);
    Ok(bytes.into())
}
