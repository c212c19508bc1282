//! The bytes of a modelled disk; moving them costs no modelled time.

use crate::export::{ErrorCode, Operation, Request, SEGMENT_BYTES, pieces, zeroed_segment};
use crate::member::MemberFile;
use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::unix::fs::FileExt;

pub(super) enum Data {
    Memory(HashMap<usize, Box<[u8]>>),
    File(MemberFile),
}

impl Data {
    pub(super) fn in_memory() -> Self {
        Self::Memory(HashMap::new())
    }

    pub(super) fn in_file(file: MemberFile) -> Self {
        Self::File(file)
    }

    /// Moves the bytes of a request.
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
    segments: &mut HashMap<usize, Box<[u8]>>,
    request: &mut Request,
) -> Result<(), ErrorCode> {
    let mut done = 0;
    for (segment, range) in pieces(request.offset, u64::from(request.length)) {
        let payload = done..done + range.len();
        done += range.len();
        match request.operation {
            Operation::Read => {
                let piece = &mut request.buffer[payload];
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
                bytes[range].copy_from_slice(&request.buffer[payload]);
            }
            Operation::Trim if range.len() == SEGMENT_BYTES => {
                segments.remove(&segment);
            }
            Operation::Trim => {
                if let Some(bytes) = segments.get_mut(&segment) {
                    bytes[range].fill(0);
                }
            }
            Operation::Flush | Operation::WriteZeroes | Operation::Cache => {}
        }
    }
    Ok(())
}
