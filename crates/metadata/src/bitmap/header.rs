//! The bitmap's superblock (`struct bitmap_super_s`): reading, checks and writing; and whether the
//! bitmap is current, by the array's UUID and event count.

use crate::fields::{Fault, FieldError, check};
use crate::mutation::{self, Mutation};
use crate::superblock::Uuid;
use raidlab_units::{Bytes, Sectors};
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The four letters "bitm", as a little-endian number.
const MAGIC: u32 = 0x6d74_6962;
/// Bytes of the superblock; the bits follow.
pub(crate) const HEADER_BYTES: usize = 256;
/// The version that is written.
const VERSION: u32 = 4;
/// The version with bits in the writer's word order: on a little-endian machine the same as 4.
const VERSION_HOST_ENDIAN: u32 = 3;
/// The most write-behind requests (`COUNTER_MAX`).
const MAXIMUM_WRITE_BEHIND: u64 = (1 << 14) - 1;
/// The longest flush period (`MAX_SCHEDULE_TIMEOUT` in jiffies at 1000 Hz is
/// far beyond 32 bits of seconds on 64-bit machines; 32-bit ones take this).
const MAXIMUM_SLEEP: u64 = (1 << 31) / 1000;

/// `struct bitmap_super_s` of drivers/md/md-bitmap.h.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct Raw {
    magic: U32,
    version: U32,
    uuid: [u8; 16],
    events: U64,
    events_cleared: U64,
    sync_size: U64,
    state: U32,
    chunksize: U32,
    daemon_sleep: U32,
    write_behind: U32,
    sectors_reserved: U32,
    nodes: U32,
    cluster_name: [u8; 64],
    pad: [u8; 120],
}

const _: () = assert!(size_of::<Raw>() == HEADER_BYTES);

/// The contents of a bitmap's superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BitmapSuperblock {
    /// The version of the bitmap's format: 3 or 4.
    pub version: u32,
    /// The UUID of the array that the bitmap belongs to.
    pub array_uuid: Uuid,
    /// The array's events when the bitmap was last written; never below those in the members'
    /// superblocks unless the bitmap is stale.
    pub events: u64,
    /// The array's events when all its members were last present: no bit has been cleared since,
    /// while a member was missing.
    pub events_cleared: u64,
    /// Sectors that the bits cover: of each member's data area, or of the array for RAID 10.
    pub sync_size: Sectors,
    /// State bits: [`Self::STALE`], [`Self::WRITE_ERROR`].
    pub state: u32,
    /// Bytes per bit: a power of two, at least 512.
    pub chunk: Bytes,
    /// Seconds between passes that clear bits lazily.
    pub daemon_sleep_seconds: u32,
    /// The most write-behind requests to write-mostly members; 0 turns write-behind off.
    pub write_behind: u32,
    /// Sectors reserved for the bitmap; 0 if not recorded.
    pub reserved: Sectors,
}

/// The reason why a bitmap does not tell which chunks differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Staleness {
    /// The bitmap belongs to another array.
    #[error("the bitmap belongs to another array")]
    OtherArray,
    /// The bitmap missed later changes of the array.
    #[error("the bitmap was written at event {bitmap}, the array is at {array}")]
    Behind {
        /// The event count of the bitmap.
        bitmap: u64,
        /// The event count of the array's superblock.
        array: u64,
    },
    /// The bitmap's own state bit marks it as out of date.
    #[error("the bitmap is marked out of date")]
    Marked,
}

impl BitmapSuperblock {
    /// State bit: the bits are out of date.
    pub const STALE: u32 = 1 << 1;
    /// State bit: the bitmap could not be written.
    pub const WRITE_ERROR: u32 = 1 << 2;

    /// A new bitmap's superblock, as mdadm makes it.
    #[must_use]
    pub const fn new(array_uuid: Uuid, sync_size: Sectors, chunk: Bytes) -> Self {
        Self {
            version: VERSION,
            array_uuid,
            events: 0,
            events_cleared: 0,
            sync_size,
            state: 0,
            chunk,
            daemon_sleep_seconds: 5,
            write_behind: 0,
            reserved: Sectors(0),
        }
    }

    /// Returns the number of bits that count: one for each chunk, of which the last may be shorter.
    #[must_use]
    pub const fn chunks(&self) -> u64 {
        let per_chunk = self.chunk.0 / 512;
        if per_chunk == 0 {
            return 0;
        }
        self.sync_size.0.div_ceil(per_chunk)
    }

    /// Returns the bytes of superblock and bits.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.chunks().div_ceil(8) + HEADER_BYTES as u64
    }

    /// The superblock in the bitmap's first 256 bytes.
    ///
    /// # Errors
    ///
    /// A field that the kernel would refuse (`md_bitmap_read_sb`), and clustered bitmaps. The UUID
    /// and the events are left to [`Self::staleness`].
    pub fn decode(bytes: &[u8; HEADER_BYTES]) -> Result<Self, FieldError> {
        let Ok(raw) = Raw::read_from_bytes(bytes) else {
            return Err(check("magic", 0, 0_u32)
                .equal(MAGIC)
                .err()
                .unwrap_or(check("magic", 0, 0_u32).fault(Fault::Expected(MAGIC.into()))));
        };
        check("magic", 0, raw.magic.get()).equal(MAGIC)?;
        let version = raw.version.get();
        let known = version == VERSION || version == VERSION_HOST_ENDIAN;
        check("version", 4, version).require(known, Fault::UnknownValue)?;
        let chunk = raw.chunksize.get();
        check("chunksize", 52, chunk)
            .at_least(512)?
            .require(chunk.is_power_of_two(), Fault::NotPowerOfTwo)?;
        check("daemon_sleep", 56, raw.daemon_sleep.get())
            .at_least(1)?
            .at_most(MAXIMUM_SLEEP)?;
        check("write_behind", 60, raw.write_behind.get()).at_most(MAXIMUM_WRITE_BEHIND)?;
        let nodes = raw.nodes.get();
        check("nodes", 68, nodes).require(nodes == 0, Fault::NotZero)?;
        Ok(Self {
            version,
            array_uuid: Uuid(raw.uuid),
            events: raw.events.get(),
            events_cleared: raw.events_cleared.get(),
            sync_size: Sectors(raw.sync_size.get()),
            state: raw.state.get(),
            chunk: Bytes(chunk.into()),
            daemon_sleep_seconds: raw.daemon_sleep.get(),
            write_behind: raw.write_behind.get(),
            reserved: Sectors(raw.sectors_reserved.get().into()),
        })
    }

    /// Returns the 256 bytes. Chunk and reserve have 32 bits on disk; larger values are written
    /// as the largest.
    #[must_use]
    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let word = |long: u64| U32::new(u32::try_from(long).unwrap_or(u32::MAX));
        let raw = Raw {
            magic: MAGIC.into(),
            version: self.version.into(),
            uuid: self.array_uuid.0,
            events: self.events.into(),
            events_cleared: self.events_cleared.into(),
            sync_size: self.sync_size.0.into(),
            state: self.state.into(),
            chunksize: word(self.chunk.0),
            daemon_sleep: self.daemon_sleep_seconds.into(),
            write_behind: self.write_behind.into(),
            sectors_reserved: word(self.reserved.0),
            nodes: 0.into(),
            cluster_name: [0; 64],
            pad: [0; 120],
        };
        let mut bytes = [0; HEADER_BYTES];
        bytes.copy_from_slice(raw.as_bytes());
        bytes
    }

    /// Returns the reason why the bitmap cannot be relied on for the array `uuid` whose
    /// newest superblock has `events`; `None` if it can. In a stale bitmap all bits count
    /// as set (`md_bitmap_read_sb`).
    #[must_use]
    pub fn staleness(&self, uuid: Uuid, events: u64) -> Option<Staleness> {
        if self.array_uuid != uuid {
            Some(Staleness::OtherArray)
        } else if self.events < events && !mutation::is(Mutation::StaleBitmapBelieved) {
            Some(Staleness::Behind {
                bitmap: self.events,
                array: events,
            })
        } else if self.state & Self::STALE != 0 {
            Some(Staleness::Marked)
        } else {
            None
        }
    }

    /// Whether [`Self::staleness`] finds a reason.
    #[must_use]
    pub fn is_stale(&self, uuid: Uuid, events: u64) -> bool {
        self.staleness(uuid, events).is_some()
    }
}
