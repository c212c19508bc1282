//! The plan of what has to be written to make an array: pure arithmetic, with mdadm's values.
//!
//! Every number is the one that `mdadm --create` of mdadm 4.2 chooses (Create.c,
//! `validate_geometry1`, `add_internal_bitmap1` and `write_init_super1` of super1.c), so that an
//! array made here cannot be told from one that mdadm made, with two exceptions: room for raidlab's
//! own log can be kept between the bad-block log and the data, and RAID 4 and 5 begin with a resync
//! unless the last member is to be rebuilt as a spare. Time and names come from outside.

mod member;
mod space;

use crate::bitmap::{Bitmap, BitmapError, BitmapSuperblock, external_chunk, internal_chunk};
use crate::superblock::version_1::{EncodeError, MAXIMUM_ROLES, NAME_BYTES};
use crate::superblock::{DeviceFlags, Superblock, Uuid, Version};
use raidlab_geometry::{CopyMap, Layout, Level, Shape, ShapeError, Slot};
use raidlab_units::{Bytes, Sectors};
use std::ops::Range;

pub use space::default_log_reserve;

/// The chunk where none is given: 512 KiB.
const DEFAULT_CHUNK: Sectors = Sectors(1024);
/// The smallest chunk: 4 KiB.
const SMALLEST_CHUNK: Sectors = Sectors(8);
/// The used size of a member from which on mdadm makes a bitmap unasked: 100 GiB.
const BITMAP_BY_ITSELF: Sectors = Sectors(100 << 21);
/// The unit of RAID 1's used size, in sectors: 64 KiB.
const RAID1_ROUNDING: u64 = 128;

/// Whether the array gets a write-intent bitmap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BitmapChoice {
    /// An internal bitmap if more than 100 GiB of each member are used.
    #[default]
    Automatic,
    /// The array gets no bitmap.
    None,
    /// An internal bitmap on every member; the chunk is chosen unless given.
    Internal(Option<Bytes>),
    /// An external bitmap in a file; the chunk is chosen unless given.
    External(Option<Bytes>),
}

/// The way in which copies and parity come to agree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InitialSync {
    /// A resync of the whole array. With members missing: see [`plan`].
    #[default]
    Resync,
    /// A rebuild of the last member as a spare on RAID 4 and 5, which reads and writes in order
    /// (mdadm's choice). Other levels: a resync.
    SpareRebuild,
    /// No sync: copies and parity are declared to agree already.
    AssumeClean,
}

/// The smallest area in which raidlab keeps a write log: 128 KiB.
pub const LEAST_LOG_AREA: Sectors = Sectors(256);

/// Room for raidlab's own log on each member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LogReserve {
    /// [`default_log_reserve`] for RAID 4, 5 and 6, no room for the others. With a given data
    /// offset: whatever room is free there.
    #[default]
    Automatic,
    /// No more room than mdadm leaves, which may be enough for a log.
    None,
    /// Less room than a log needs ([`LEAST_LOG_AREA`]), so that there is no log. With a given data
    /// offset: whatever room is free there.
    TooLittle,
    /// Room for at least this many sectors.
    AtLeast(Sectors),
}

/// The array to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreateSpec {
    /// The superblock's version: 1.0, 1.1 or 1.2.
    pub version: Version,
    /// The level of the array.
    pub level: Level,
    /// The layout; `None`: as [`Layout::default_of`] the level.
    pub layout: Option<Layout>,
    /// The chunk, at least 4 KiB; `None`: 512 KiB where the level has chunks. For linear the unit
    /// to which members' sizes are rounded down.
    pub chunk: Option<Sectors>,
    /// The number of slots; further members are spares.
    pub raid_disks: usize,
    /// The array's UUID.
    pub array_uuid: Uuid,
    /// The host that the array belongs to; may be empty.
    pub host: String,
    /// The array's name; it stands without the host if both together exceed 31 bytes.
    pub name: String,
    /// The time of creation in seconds since 1970.
    pub created: u64,
    /// The used size of each member; `None`: all that the smallest one offers.
    pub size: Option<Sectors>,
    /// The start of the data on each member; `None`: chosen.
    pub data_offset: Option<Sectors>,
    /// Whether the array gets a write-intent bitmap, and with which chunk.
    pub bitmap: BitmapChoice,
    /// The way in which copies and parity come to agree.
    pub initial: InitialSync,
    /// The room that each member keeps for raidlab's own log.
    pub log: LogReserve,
    /// Whether members get a bad-block log.
    pub bad_block_log: bool,
}

/// A device that is to become a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemberSize {
    /// The size of the whole device.
    pub size: Bytes,
    /// The UUID that the member's superblock gets.
    pub device_uuid: Uuid,
    /// The flags in the member's superblock: write-mostly, failfast.
    pub flags: DeviceFlags,
    /// The versions of superblocks found on the device
    /// ([`versions_present`](crate::versions_present)): they are erased.
    pub found: Vec<Version>,
}

/// Bytes to be written to a member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Write {
    /// The first byte on the member.
    pub offset: Bytes,
    /// The bytes, a whole number of sectors.
    pub bytes: Vec<u8>,
}

/// A member of the plan, with all that is written to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlannedMember {
    /// The member's index among the members given.
    pub index: usize,
    /// The superblock that the member gets.
    pub superblock: Superblock,
    /// Room for raidlab's own log; see [`Superblock::log_area`].
    pub log_area: Range<Sectors>,
    /// The writes in their order, the superblock last: until it is written the device is not
    /// yet a member.
    pub writes: Vec<Write>,
}

/// Everything that has to be written to make the array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreatePlan {
    /// The sectors that the array offers.
    pub array_size: Sectors,
    /// The internal bitmap, the same on every member.
    pub bitmap: Option<Bitmap>,
    /// The contents of the external bitmap's file, see [`Bitmap::encode`].
    pub external_bitmap: Option<Bitmap>,
    /// The members that are not missing, in the order given.
    pub members: Vec<PlannedMember>,
}

/// The reason why an array cannot be made as specified.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CreateError {
    /// Level, layout, chunk and number of members do not fit each other.
    #[error("no such array")]
    Shape(#[from] ShapeError),
    /// Fewer members than slots were given.
    #[error("{raid_disks} slots need as many members, missing ones included, not {given}")]
    TooFewMembers {
        /// Slots that the array has.
        raid_disks: usize,
        /// Members that were given, missing ones included.
        given: usize,
    },
    /// More members than a superblock has room for.
    #[error("{0} members are too many; at most {MAXIMUM_ROLES} are possible")]
    TooManyMembers(usize),
    /// All members are given as missing.
    #[error("all members are missing")]
    NothingThere,
    /// A spare is given as missing.
    #[error("member {0} is a spare and missing")]
    MissingSpare(usize),
    /// Spares or missing members at a level without redundancy.
    #[error("{0} has neither spares nor missing members")]
    NoRedundancy(Level),
    /// A bitmap at a level without redundancy.
    #[error("{0} has no bitmap")]
    NoBitmap(Level),
    /// More members missing than the level tolerates.
    #[error("{missing} missing members are more than {level} can bear")]
    TooManyMissing {
        /// The level that was asked for.
        level: Level,
        /// Members that are missing.
        missing: usize,
    },
    /// All copies of some data are on missing members.
    #[error("all copies of some data are on the missing members {}", list(.0))]
    NoCopy(Vec<usize>),
    /// A chunk that is too small, or one for RAID 1.
    #[error("{level} cannot have a chunk of {}", chunk.to_bytes())]
    Chunk {
        /// The level that was asked for.
        level: Level,
        /// The chunk that was asked for, in sectors.
        chunk: Sectors,
    },
    /// A member without room for metadata and at least one chunk.
    #[error("member {index} has {size}, which is too little")]
    TooSmall {
        /// The index among the members given, from 0.
        index: usize,
        /// The size of the whole member, in bytes.
        size: Bytes,
    },
    /// A member that offers less than the size asked for.
    #[error("member {index} offers {}, less than {}", offered.to_bytes(), wanted.to_bytes())]
    SmallerThanSize {
        /// The index among the members given, from 0.
        index: usize,
        /// The sectors that the member has for data.
        offered: Sectors,
        /// The size that was asked for, in sectors.
        wanted: Sectors,
    },
    /// A size below one chunk.
    #[error("a size of {} is less than a chunk", .0.to_bytes())]
    Size(Sectors),
    /// A data offset that leaves no room for the metadata before it, or is not a
    /// multiple of 4 KiB.
    #[error("a data offset of {} is not a multiple of 4 KiB from {} on", offset.to_bytes(), needed.to_bytes())]
    DataOffset {
        /// The data offset that was asked for, in sectors.
        offset: Sectors,
        /// The smallest data offset that leaves room for the metadata, in sectors.
        needed: Sectors,
    },
    /// A name that would be truncated.
    #[error("the name `{0}` is longer than the 31 bytes that a superblock has for it")]
    Name(String),
    /// A chunk size that no bitmap can have.
    #[error("a bitmap has chunks of a power of two from 4 KiB to 2 GiB, not of {0}")]
    BitmapChunk(Bytes),
    /// No room for a bitmap.
    #[error("there is no room for a bitmap")]
    BitmapRoom,
    /// No room for a bitmap with so small chunks.
    #[error(
        "there is no room for a bitmap with chunks of {chunk}: the smallest that fit are {fits}"
    )]
    BitmapChunkRoom {
        /// The chunk that was asked for, in bytes.
        chunk: Bytes,
        /// The smallest chunk for which there is room, in bytes.
        fits: Bytes,
    },
    /// The bitmap cannot be made.
    #[error("the bitmap cannot be made")]
    Bitmap(#[from] BitmapError),
    /// A superblock cannot be made.
    #[error("the superblock cannot be made")]
    Superblock(#[from] EncodeError),
}

/// Returns what is written to make the array `spec` of `members`; `None` is a missing one. The
/// first `raid_disks` are the slots in order, the others spares.
///
/// With a member missing, RAID 4 and 5 are clean from the start: there is nothing that parity could
/// be compared with. RAID 6 with one member missing still has one parity to compare; as mdadm does,
/// a further member is then made a spare, which is rebuilt.
///
/// # Errors
///
/// Whatever mdadm would refuse, and an array of which some data has no copy.
pub fn plan(spec: &CreateSpec, members: &[Option<MemberSize>]) -> Result<CreatePlan, CreateError> {
    check_members(spec, members)?;
    if spec.name.len() >= NAME_BYTES {
        return Err(CreateError::Name(spec.name.clone()));
    }
    let layout = spec.layout.unwrap_or(Layout::default_of(spec.level));
    let chunk = chunk(spec)?;
    let space = space::choose(spec, chunk, members)?;
    let bitmap = choose_bitmap(spec, layout, space.used_size)?;
    let [internal, external] = match (&spec.bitmap, bitmap) {
        (BitmapChoice::External(_), bitmap) => [None, bitmap],
        (_, bitmap) => [bitmap, None],
    };
    let draft = member::Draft {
        spec,
        layout,
        chunk,
        space: &space,
        bitmap: internal.as_ref(),
        members,
    };
    let planned = draft.members()?;
    let member_sizes = (0..spec.raid_disks).map(|slot| {
        let member = planned.iter().find(|member| member.index == slot);
        member.map_or(space.used_size, |member| member.superblock.data_size)
    });
    let shape = Shape {
        level: spec.level,
        layout,
        chunk,
        member_sizes: member_sizes.collect(),
        used_size: space.used_size,
    };
    if matches!(spec.level, Level::Raid1 | Level::Raid10) {
        check_copies(&shape, members)?;
    }
    Ok(CreatePlan {
        array_size: shape.array_size()?,
        bitmap: internal,
        external_bitmap: external,
        members: planned,
    })
}

/// Checks the number and the kinds of the members.
fn check_members(spec: &CreateSpec, members: &[Option<MemberSize>]) -> Result<(), CreateError> {
    let level = spec.level;
    if spec.version == Version::V0_90 {
        return Err(EncodeError::ReadOnlyVersion.into());
    }
    if members.len() < spec.raid_disks || spec.raid_disks == 0 {
        return Err(CreateError::TooFewMembers {
            raid_disks: spec.raid_disks,
            given: members.len(),
        });
    }
    // A member that is made a spare takes one more number.
    if members.len() >= MAXIMUM_ROLES {
        return Err(CreateError::TooManyMembers(members.len()));
    }
    let [slots, spares] = [&members[..spec.raid_disks], &members[spec.raid_disks..]];
    if let Some(missing) = spares.iter().position(Option::is_none) {
        return Err(CreateError::MissingSpare(spec.raid_disks + missing));
    }
    if members.iter().all(Option::is_none) {
        return Err(CreateError::NothingThere);
    }
    let missing = slots.iter().filter(|member| member.is_none()).count();
    let bare = matches!(level, Level::Linear | Level::Raid0);
    if bare && (missing > 0 || !spares.is_empty()) {
        return Err(CreateError::NoRedundancy(level));
    }
    if bare
        && matches!(
            spec.bitmap,
            BitmapChoice::Internal(_) | BitmapChoice::External(_)
        )
    {
        return Err(CreateError::NoBitmap(level));
    }
    let bearable = match level {
        // The level's copies decide, in `check_copies`.
        Level::Raid1 | Level::Raid10 => usize::MAX,
        _ => level.parity_count(),
    };
    if missing > bearable {
        return Err(CreateError::TooManyMissing { level, missing });
    }
    Ok(())
}

/// Checks that a copy of everything is on a member that is present.
fn check_copies(shape: &Shape, members: &[Option<MemberSize>]) -> Result<(), CreateError> {
    let map = CopyMap::new(shape)?;
    let is_there = |slot: Slot| members.get(slot.index()).is_some_and(Option::is_some);
    let mut copies = map.copy_sets().iter();
    match copies.find(|copies| !copies.iter().any(is_there)) {
        Some(copies) => Err(CreateError::NoCopy(
            copies.iter().map(Slot::index).collect(),
        )),
        None => Ok(()),
    }
}

fn list(members: &[usize]) -> String {
    let members: Vec<String> = members.iter().map(usize::to_string).collect();
    members.join(", ")
}

/// Returns the chunk; 0 where the level has none.
fn chunk(spec: &CreateSpec) -> Result<Sectors, CreateError> {
    let level = spec.level;
    match (level, spec.chunk) {
        (Level::Raid1, Some(chunk)) if chunk > Sectors::ZERO => {
            Err(CreateError::Chunk { level, chunk })
        }
        (Level::Raid1, _) | (Level::Linear, None) => Ok(Sectors::ZERO),
        (Level::Linear, Some(Sectors::ZERO)) => Ok(Sectors::ZERO),
        (_, None) => Ok(DEFAULT_CHUNK),
        (_, Some(chunk)) if chunk < SMALLEST_CHUNK || !chunk.0.is_multiple_of(2) => {
            Err(CreateError::Chunk { level, chunk })
        }
        (_, Some(chunk)) => Ok(chunk),
    }
}

/// Returns the bitmap, all bits set as mdadm writes it: the superblock's `resync_offset` decides
/// which of them count.
fn choose_bitmap(
    spec: &CreateSpec,
    layout: Layout,
    used_size: Sectors,
) -> Result<Option<Bitmap>, CreateError> {
    // Bits stand for the array's sectors where a sector's copies lie in
    // different places, otherwise for sectors of the members' data areas.
    let sync_size = match layout {
        Layout::Copies(copies) => {
            let slots = spec.raid_disks as u128;
            let kib = u128::from(used_size.0 / 2) * slots / copies.count() as u128;
            Sectors(u64::try_from(kib * 2).unwrap_or(u64::MAX))
        }
        _ => used_size,
    };
    if let BitmapChoice::Internal(Some(wished)) | BitmapChoice::External(Some(wished)) = spec.bitmap
        && !(wished.0.is_power_of_two() && (4096..1 << 32).contains(&wished.0))
    {
        return Err(CreateError::BitmapChunk(wished));
    }
    let chunk = match spec.bitmap {
        BitmapChoice::None => return Ok(None),
        BitmapChoice::Automatic => {
            let bare = matches!(spec.level, Level::Linear | Level::Raid0);
            if bare || used_size <= BITMAP_BY_ITSELF {
                return Ok(None);
            }
            internal_chunk(sync_size, space::bitmap_room(spec, used_size), None)
        }
        BitmapChoice::Internal(wished) => {
            internal_chunk(sync_size, space::bitmap_room(spec, used_size), wished)
        }
        BitmapChoice::External(wished) => Some(wished.unwrap_or_else(|| external_chunk(sync_size))),
    };
    let chunk = chunk.ok_or_else(|| no_room(spec, sync_size, used_size))?;
    let superblock = BitmapSuperblock::new(spec.array_uuid, sync_size, chunk);
    Ok(Some(Bitmap::new(superblock, true)?))
}

/// Why there is no bitmap on the members.
fn no_room(spec: &CreateSpec, sync_size: Sectors, used_size: Sectors) -> CreateError {
    let BitmapChoice::Internal(Some(chunk)) = spec.bitmap else {
        return CreateError::BitmapRoom;
    };
    let room = space::bitmap_room(spec, used_size);
    let larger = (1..32).map(|doublings| Bytes(chunk.0 << doublings));
    let fits = larger
        .take_while(|size| size.0 < 1 << 32)
        .find(|&size| internal_chunk(sync_size, room, Some(size)).is_some());
    fits.map_or(CreateError::BitmapRoom, |fits| {
        CreateError::BitmapChunkRoom { chunk, fits }
    })
}
