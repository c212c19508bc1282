//! Requests of the block layer translated to the export's, and their answers back.

use super::wire::{Descriptor, operation};
use crate::export::{BlockSizes, ErrorCode, Export, Features, Operation, RequestFlags};
use raidlab_units::SECTOR_BYTES;
use rustix::io::Errno;

/// The size and the features of an export, against which requests are checked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Shape {
    pub size_bytes: u64,
    pub features: Features,
    pub sizes: BlockSizes,
}

impl Shape {
    pub(super) fn of(export: &dyn Export) -> Self {
        Self {
            size_bytes: export.size_bytes(),
            features: export.features(),
            sizes: export.block_sizes(),
        }
    }
}

/// A request in the export's terms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    pub operation: Operation,
    pub offset: u64,
    pub length: u32,
    pub flags: RequestFlags,
}

impl Wanted {
    /// Whether `length` bytes of payload belong to the request.
    pub(super) fn has_payload(&self) -> bool {
        matches!(self.operation, Operation::Read | Operation::Write)
    }
}

/// Translates a descriptor. The block layer respects the device's parameters; the export relies on
/// them, so they are checked here once more.
///
/// # Errors
/// The error to return to the block layer.
pub(super) fn wanted(descriptor: &Descriptor, shape: &Shape) -> Result<Wanted, Errno> {
    let features = shape.features;
    let bits = descriptor.operation_and_flags;
    let (operation, offered) = match bits & operation::MASK {
        operation::READ => (Operation::Read, true),
        operation::WRITE => (Operation::Write, true),
        operation::FLUSH => (Operation::Flush, features.flush),
        operation::DISCARD => (Operation::Trim, features.trim),
        operation::WRITE_ZEROES => (Operation::WriteZeroes, features.write_zeroes),
        _ => return Err(Errno::OPNOTSUPP),
    };
    if !offered {
        return Err(Errno::OPNOTSUPP);
    }
    let flags = RequestFlags {
        force_unit_access: bits & operation::FORCE_UNIT_ACCESS != 0,
        no_hole: bits & operation::NO_UNMAP != 0,
        fast_zero: false,
    };
    if operation == Operation::Flush {
        return Ok(Wanted {
            operation,
            offset: 0,
            length: 0,
            flags: RequestFlags::default(),
        });
    }
    if features.read_only && operation != Operation::Read {
        return Err(Errno::ROFS);
    }
    if flags.force_unit_access && !features.flush {
        return Err(Errno::OPNOTSUPP);
    }
    let wanted = range(descriptor).map(|(offset, length)| Wanted {
        operation,
        offset,
        length,
        flags,
    });
    wanted
        .filter(|wanted| fits(wanted, shape))
        .ok_or(Errno::INVAL)
}

/// Returns the first byte and the length, unless they overflow.
fn range(descriptor: &Descriptor) -> Option<(u64, u32)> {
    let offset = descriptor.start_sector.checked_mul(SECTOR_BYTES)?;
    let length = u64::from(descriptor.sectors) * SECTOR_BYTES;
    Some((offset, u32::try_from(length).ok()?))
}

fn fits(wanted: &Wanted, shape: &Shape) -> bool {
    let length = u64::from(wanted.length);
    let block = u64::from(shape.sizes.minimum.max(1));
    let end = wanted.offset.checked_add(length);
    length > 0
        && end.is_some_and(|end| end <= shape.size_bytes)
        && (wanted.offset | length).is_multiple_of(block)
        && (!wanted.has_payload() || wanted.length <= shape.sizes.maximum)
}

/// Returns the result for the block layer: the bytes that were done, or a negative errno.
pub(super) fn result(done: Result<u32, Errno>) -> i32 {
    match done {
        // Every request is at most 1 GiB long.
        Ok(bytes) => i32::try_from(bytes).unwrap_or(i32::MAX),
        Err(error) => -error.raw_os_error(),
    }
}

/// Returns the block layer's errno for an export's error. It distinguishes few (`ENOSPC`, `ENOMEM`,
/// `EOPNOTSUPP`); all others are an input or output error.
pub(super) fn errno(error: ErrorCode) -> Errno {
    match error {
        ErrorCode::NoSpace => Errno::NOSPC,
        ErrorCode::OutOfMemory => Errno::NOMEM,
        ErrorCode::NotSupported => Errno::OPNOTSUPP,
        ErrorCode::Invalid | ErrorCode::Overflow => Errno::INVAL,
        ErrorCode::NotPermitted => Errno::ROFS,
        ErrorCode::Io | ErrorCode::Shutdown => Errno::IO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape() -> Shape {
        Shape {
            size_bytes: 1 << 20,
            features: Features {
                flush: true,
                trim: true,
                write_zeroes: true,
                ..Features::default()
            },
            sizes: BlockSizes {
                minimum: 512,
                preferred: 4096,
                maximum: 64 << 10,
            },
        }
    }

    fn asked(bits: u32, start_sector: u64, sectors: u32) -> Descriptor {
        Descriptor {
            operation_and_flags: bits,
            sectors,
            start_sector,
            ..Descriptor::default()
        }
    }

    #[test]
    fn every_operation_has_its_like() {
        use operation as ublk;
        for (bits, operation) in [
            (ublk::READ, Operation::Read),
            (ublk::WRITE, Operation::Write),
            (ublk::DISCARD, Operation::Trim),
            (ublk::WRITE_ZEROES, Operation::WriteZeroes),
        ] {
            let wanted = wanted(&asked(bits, 8, 16), &shape()).unwrap();
            assert_eq!(wanted.operation, operation);
            assert_eq!((wanted.offset, wanted.length), (4096, 8192));
            assert_eq!(wanted.flags, RequestFlags::default());
        }
    }

    #[test]
    fn a_flush_has_no_range() {
        // The block layer's flush has no range; the field is ignored.
        let flush = wanted(&asked(operation::FLUSH, u64::MAX, 0), &shape()).unwrap();
        assert_eq!(flush.operation, Operation::Flush);
        assert_eq!((flush.offset, flush.length), (0, 0));
    }

    #[test]
    fn flags_reach_the_export() {
        let bits = operation::WRITE | operation::FORCE_UNIT_ACCESS | 1 << 11;
        let flags = wanted(&asked(bits, 0, 1), &shape()).unwrap().flags;
        assert!(flags.force_unit_access && !flags.no_hole);
        let bits = operation::WRITE_ZEROES | operation::NO_UNMAP;
        let flags = wanted(&asked(bits, 0, 1), &shape()).unwrap().flags;
        assert!(flags.no_hole && !flags.force_unit_access);
    }

    #[test]
    fn what_is_not_offered_is_not_done() {
        let nothing = Shape {
            features: Features::default(),
            ..shape()
        };
        for bits in [
            operation::FLUSH,
            operation::DISCARD,
            operation::WRITE_ZEROES,
            operation::WRITE | operation::FORCE_UNIT_ACCESS,
        ] {
            let refused = wanted(&asked(bits, 0, 8), &nothing);
            assert_eq!(refused, Err(Errno::OPNOTSUPP), "{bits:#x}");
        }
        // Write same, the zones' operations, and what does not exist yet.
        for bits in [4, 10, 15, 18, 0xff] {
            let refused = wanted(&asked(bits, 0, 8), &shape());
            assert_eq!(refused, Err(Errno::OPNOTSUPP), "{bits}");
        }
    }

    #[test]
    fn nothing_is_written_to_a_read_only_export() {
        let mut read_only = shape();
        read_only.features.read_only = true;
        for bits in [
            operation::WRITE,
            operation::DISCARD,
            operation::WRITE_ZEROES,
        ] {
            let refused = wanted(&asked(bits, 0, 8), &read_only);
            assert_eq!(refused, Err(Errno::ROFS));
        }
        assert!(wanted(&asked(operation::READ, 0, 8), &read_only).is_ok());
        assert!(wanted(&asked(operation::FLUSH, 0, 0), &read_only).is_ok());
    }

    #[test]
    fn ranges_are_within_the_export_and_its_blocks() {
        let read = |start, sectors| wanted(&asked(operation::READ, start, sectors), &shape());
        assert!(read(2040, 8).is_ok());
        for (start, sectors) in [
            (0, 0),
            (2041, 8),
            (2048, 1),
            (u64::MAX, 1),
            (u64::MAX / 512, 1),
            (0, u32::MAX),
            // Longer than the longest read, though not than the export.
            (0, 129),
        ] {
            assert_eq!(read(start, sectors), Err(Errno::INVAL), "{start} {sectors}");
        }
        // Trims may be longer than any payload.
        assert!(wanted(&asked(operation::DISCARD, 0, 2048), &shape()).is_ok());
        let mut large = shape();
        large.sizes.minimum = 4096;
        let odd = wanted(&asked(operation::READ, 4, 8), &large);
        assert_eq!(odd, Err(Errno::INVAL));
    }

    #[test]
    fn answers_are_bytes_or_negative_numbers() {
        assert_eq!(result(Ok(4096)), 4096);
        assert_eq!(result(Ok(0)), 0);
        assert_eq!(result(Err(Errno::IO)), -5);
        assert_eq!(result(Err(errno(ErrorCode::NotSupported))), -95);
    }

    #[test]
    fn a_member_that_fails_is_an_io_error() {
        for error in [ErrorCode::Io, ErrorCode::Shutdown] {
            assert_eq!(errno(error), Errno::IO);
        }
        assert_eq!(errno(ErrorCode::NoSpace), Errno::NOSPC);
        assert_eq!(errno(ErrorCode::NotPermitted), Errno::ROFS);
    }
}
