//! The search for a member's metadata: its superblock, wherever it lies, with its bitmap and
//! its bad-block log.
//!
//! The places of 1.2, 1.1, 1.0 and 0.90 are read in this order. Among several sound superblocks the
//! one of the array made last counts, as with mdadm (`guess_super`): the others are remains. A
//! superblock that looks like one (magic number, major version, its own place) but is not sound is
//! an error even if another place has a sound one, as either may be the member's own. A place that
//! cannot be read is passed over if another has a sound one, as mdadm does; a bitmap that cannot be
//! read counts as one that cannot be used.

use crate::bad_blocks::{BadBlockEntry, BadBlockError};
use crate::bitmap::MAXIMUM_BITMAP_BYTES;
use crate::bitmap::{Bitmap, BitmapError, BitmapSuperblock, HEADER_BYTES, PAGE_BYTES};
use crate::superblock::legacy::{self, Legacy};
use crate::superblock::version_1::{self, Checksum, SuperblockError};
use crate::superblock::{Features, SMALLEST_MEMBER, Superblock, Version, place_of};
use raidlab_units::{Bytes, Sectors};
use std::io;
use std::ops::Range;

/// A source of bytes at addresses: a file, a block device, a test's memory.
pub trait ReadAt {
    /// Fills `bytes` from `offset` on.
    ///
    /// # Errors
    ///
    /// Any failed read, also one beyond the device's end.
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()>;
}

impl ReadAt for &[u8] {
    fn read_at(&mut self, offset: Bytes, bytes: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset.0).unwrap_or(usize::MAX);
        let source = self.get(start..start.saturating_add(bytes.len()));
        let source = source.ok_or(io::ErrorKind::UnexpectedEof)?;
        bytes.copy_from_slice(source);
        Ok(())
    }
}

/// A member's metadata.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberMetadata {
    /// The superblock, of whichever version it is.
    pub superblock: Superblock,
    /// The checksum of a superblock of version 1.0, 1.1 or 1.2 that was read.
    pub checksum: Checksum,
    /// The fields that only a 0.90 superblock has.
    pub legacy: Option<Legacy>,
    /// The internal bitmap, if the member has one that can be used.
    pub bitmap: Option<Bitmap>,
    /// The reason why the internal bitmap cannot be used.
    pub bitmap_error: Option<BitmapError>,
    /// Ranges whose correct bytes are lost, in the log's order.
    pub bad_blocks: Vec<BadBlockEntry>,
    /// Sectors of the member that neither md's metadata nor its data use, in
    /// whole 4 KiB; raidlab's own log may lie there. Empty: none.
    pub log_area: Range<Sectors>,
}

/// The reason why no metadata were found.
#[derive(Debug, thiserror::Error)]
pub enum ProbeError {
    /// No superblock at any of the places where one can be.
    #[error("no md superblock")]
    None,
    /// A device too small to have a superblock; its size in bytes.
    #[error("{0} bytes are too small for a member")]
    TooSmall(u64),
    /// A superblock that cannot be used.
    #[error("the superblock of version {} at sector {sector} is not sound", version.name())]
    Superblock {
        /// The version whose place the superblock was found at.
        version: Version,
        /// The sector of the device at which the superblock begins.
        sector: u64,
        /// The rule that it breaks.
        #[source]
        source: SuperblockError,
    },
    /// A bad-block log that cannot be used.
    #[error("the bad-block log is not sound")]
    BadBlocks(#[from] BadBlockError),
    /// A bad-block log that lies outside the member.
    #[error("the bad-block log at {0} sectors from the superblock is outside the member")]
    BadBlocksOutside(i32),
    /// A read of the member failed.
    #[error("reading {count} bytes at byte {offset}")]
    Read {
        /// The first byte that was to be read, from the start of the member.
        offset: u64,
        /// Bytes that were asked for.
        count: usize,
        /// The device's error.
        #[source]
        source: io::Error,
    },
}

/// Reads `count` bytes at a sector.
fn read(device: &mut dyn ReadAt, at: Sectors, count: usize) -> Result<Vec<u8>, ProbeError> {
    let mut bytes = vec![0; count];
    let offset = at.to_bytes();
    device
        .read_at(offset, &mut bytes)
        .map_err(|source| ProbeError::Read {
            offset: offset.0,
            count,
            source,
        })?;
    Ok(bytes)
}

/// Returns the bytes at a version's place that may be a superblock.
fn read_place(
    device: &mut dyn ReadAt,
    version: Version,
    size: Sectors,
) -> Result<Option<(Sectors, Vec<u8>)>, ProbeError> {
    let Some(place) = place_of(version, size) else {
        return Ok(None);
    };
    let bytes = read(device, place, legacy::BYTES)?;
    let found = match version {
        Version::V0_90 => legacy::looks_like(&bytes),
        _ => version_1::looks_like(&bytes, place),
    };
    Ok(found.then_some((place, bytes)))
}

/// Returns the versions whose places have something that looks like their superblock, sound or not,
/// in probing order: these have to be erased before the device becomes a member of another array. A
/// place that cannot be read may have one.
pub fn versions_present(device: &mut dyn ReadAt, size: Bytes) -> Vec<Version> {
    let may_have =
        |version: &Version| !matches!(read_place(device, *version, size.to_sectors()), Ok(None));
    Version::PROBED.into_iter().filter(may_have).collect()
}

/// Reads the metadata of a member of `size` bytes.
///
/// # Errors
///
/// [`ProbeError::None`] if there are none; otherwise the fault found in them. A bitmap that cannot
/// be used is no error.
pub fn read_member(device: &mut dyn ReadAt, size: Bytes) -> Result<MemberMetadata, ProbeError> {
    let sectors = size.to_sectors();
    if sectors < SMALLEST_MEMBER {
        return Err(ProbeError::TooSmall(size.0));
    }
    let mut best: Option<(Superblock, Option<Legacy>, Checksum)> = None;
    let mut unreadable = None;
    for version in Version::PROBED {
        let (place, bytes) = match read_place(device, version, sectors) {
            Ok(Some(found)) => found,
            Ok(None) => continue,
            Err(error) => {
                unreadable.get_or_insert(error);
                continue;
            }
        };
        let decoded = match version {
            Version::V0_90 => {
                let decoded = Legacy::decode(&bytes, sectors);
                decoded.map(|(superblock, rest)| (superblock, Some(rest), Checksum::default()))
            }
            _ => Superblock::decode(&bytes, version, sectors).map(|superblock| {
                let unchecked = Superblock::decode_unchecked(&bytes, version);
                let checksum = unchecked.map(|(_, checksum)| checksum);
                (superblock, None, checksum.unwrap_or_default())
            }),
        };
        let found = decoded.map_err(|source| ProbeError::Superblock {
            version,
            sector: place.0,
            source,
        })?;
        if best
            .as_ref()
            .is_none_or(|(best, ..)| seconds(found.0.created) > seconds(best.created))
        {
            best = Some(found);
        }
    }
    let (superblock, legacy, checksum) =
        best.ok_or_else(|| unreadable.unwrap_or(ProbeError::None))?;
    let bad_blocks = read_bad_blocks(device, &superblock, sectors)?;
    let (header, found) = read_bitmap(device, &superblock, sectors)?;
    let (bitmap, bitmap_error) = match found {
        None => (None, None),
        Some(Ok(mut bitmap)) => {
            let native = legacy.as_ref().is_some_and(|legacy| !legacy.big_endian);
            if native {
                // Behind a 0.90 superblock the UUID is four words in the
                // writer's order.
                let uuid = &mut bitmap.superblock.array_uuid.0;
                uuid.chunks_mut(4).for_each(<[u8]>::reverse);
            }
            (Some(bitmap), None)
        }
        Some(Err(error)) => (None, Some(error)),
    };
    let log_area = superblock.log_area(header.as_ref());
    Ok(MemberMetadata {
        superblock,
        checksum,
        legacy,
        bitmap,
        bitmap_error,
        bad_blocks,
        log_area,
    })
}

/// Reads the metadata of a member for display: unsound ones too, as far as they can be read, with
/// the error for which [`read_member`] refuses them. mdadm also shows unsound metadata, which it
/// leaves to the kernel to refuse, except those of version 0.90.
///
/// # Errors
///
/// As [`read_member`], where there is nothing to be shown.
pub fn examine_member(
    device: &mut dyn ReadAt,
    size: Bytes,
) -> Result<(MemberMetadata, Option<ProbeError>), ProbeError> {
    let fault = match read_member(device, size) {
        Ok(metadata) => return Ok((metadata, None)),
        Err(fault) => fault,
    };
    let sectors = size.to_sectors();
    let mut best: Option<(Superblock, Checksum)> = None;
    for version in [Version::V1_2, Version::V1_1, Version::V1_0] {
        let place = read_place(device, version, sectors).ok().flatten();
        let found = place.and_then(|(_, bytes)| Superblock::decode_unchecked(&bytes, version));
        if let Some(found) = found
            && best
                .as_ref()
                .is_none_or(|(best, _)| seconds(found.0.created) > seconds(best.created))
        {
            best = Some(found);
        }
    }
    let Some((superblock, checksum)) = best else {
        return Err(fault);
    };
    let bad_blocks = read_bad_blocks(device, &superblock, sectors).unwrap_or_default();
    let (_, bitmap) = read_bitmap(device, &superblock, sectors).unwrap_or_default();
    let (bitmap, bitmap_error) = match bitmap.transpose() {
        Ok(bitmap) => (bitmap, None),
        Err(error) => (None, Some(error)),
    };
    let metadata = MemberMetadata {
        superblock,
        checksum,
        legacy: None,
        bitmap,
        bitmap_error,
        bad_blocks,
        // No room for a log: the metadata cannot be relied on to say which sectors are free.
        log_area: Sectors(0)..Sectors(0),
    };
    Ok((metadata, Some(fault)))
}

/// Returns the seconds of a time in a superblock's form.
const fn seconds(time: u64) -> u64 {
    time & ((1 << 40) - 1)
}

fn read_bad_blocks(
    device: &mut dyn ReadAt,
    superblock: &Superblock,
    size: Sectors,
) -> Result<Vec<BadBlockEntry>, ProbeError> {
    let Some(log) = superblock.bad_block_log else {
        return Ok(Vec::new());
    };
    if !superblock.features.has(Features::BAD_BLOCKS) {
        return Ok(Vec::new());
    }
    let outside = ProbeError::BadBlocksOutside(log.offset);
    let Some(area) = superblock.bad_block_area() else {
        return Err(outside);
    };
    if area.end > size {
        return Err(outside);
    }
    let bytes = read(device, area.start, usize::from(log.size) * 512)?;
    Ok(log.decode(&bytes)?)
}

/// A bitmap's header, which says where the bitmap ends even if the bits cannot be read,
/// and the whole bitmap; nothing if the superblock says that there is none.
type FoundBitmap = (
    Option<BitmapSuperblock>,
    Option<Result<Bitmap, BitmapError>>,
);

/// Reads the internal bitmap.
fn read_bitmap(
    device: &mut dyn ReadAt,
    superblock: &Superblock,
    size: Sectors,
) -> Result<FoundBitmap, ProbeError> {
    if !superblock.features.has(Features::BITMAP) {
        return Ok((None, None));
    }
    let unusable = |error| Ok((None, Some(Err(error))));
    let out_of_place = BitmapError::OutOfPlace {
        offset: superblock.bitmap_offset,
    };
    let Some(room) = superblock.bitmap_room(size) else {
        return unusable(out_of_place);
    };
    let given = (room.end - room.start).to_bytes().0;
    if given < 512 {
        return unusable(out_of_place);
    }
    let head = match read(device, room.start, 512) {
        Err(ProbeError::Read { offset, .. }) => {
            return unusable(BitmapError::Unreadable { offset });
        }
        head => head?,
    };
    let Some(head) = head.first_chunk::<HEADER_BYTES>() else {
        return unusable(out_of_place);
    };
    let header = match BitmapSuperblock::decode(head) {
        Ok(header) => header,
        Err(error) => return unusable(error.into()),
    };
    let needed = header.bytes();
    if needed > given {
        return unusable(BitmapError::Short { needed, given });
    }
    if needed > MAXIMUM_BITMAP_BYTES {
        return unusable(BitmapError::TooLarge { needed });
    }
    let whole = needed.next_multiple_of(PAGE_BYTES as u64).min(given);
    let bitmap = match read(device, room.start, usize::try_from(whole).unwrap_or(0)) {
        Err(ProbeError::Read { offset, .. }) => Err(BitmapError::Unreadable { offset }),
        bytes => Bitmap::decode(&bytes?),
    };
    Ok((Some(header), Some(bitmap)))
}
