//! Superblocks 1.0, 1.1 and 1.2: the same bytes in three places.
//!
//! 256 bytes, little-endian, then two bytes for the role of each device
//! number. The checks are those of `super_1_load` and `super_1_validate`
//! (drivers/md/md.c, Linux 6.1): what the kernel would refuse is refused.

use super::{
    BadBlockLog, DeviceFlags, Features, Reshape, Role, Superblock, Uuid, Version, place_of,
};
use crate::fields::{Fault, FieldError, check};
use crate::mutation::{self, Mutation};
use raidlab_units::Sectors;
use zerocopy::little_endian::{I32, U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// The magic number of every md superblock.
pub(crate) const MAGIC: u32 = 0xa92b_4efc;
/// Bytes of the superblock before its roles.
const HEAD_BYTES: usize = 256;
/// The most bytes of a superblock.
pub(crate) const MAXIMUM_BYTES: usize = 4096;
/// The most roles that fit into [`MAXIMUM_BYTES`].
pub(crate) const MAXIMUM_ROLES: usize = (MAXIMUM_BYTES - HEAD_BYTES) / 2;
/// Bytes of the field for the name.
pub(crate) const NAME_BYTES: usize = 32;

/// `struct mdp_superblock_1` of include/uapi/linux/raid/md_p.h without roles.
#[derive(FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned, Clone, Copy)]
#[repr(C)]
struct Head {
    magic: U32,
    major_version: U32,
    feature_map: U32,
    pad0: U32,
    set_uuid: [u8; 16],
    set_name: [u8; NAME_BYTES],
    ctime: U64,
    level: I32,
    layout: U32,
    size: U64,
    chunksize: U32,
    raid_disks: U32,
    bitmap_offset: I32,
    new_level: I32,
    reshape_position: U64,
    delta_disks: I32,
    new_layout: U32,
    new_chunk: U32,
    new_offset: I32,
    data_offset: U64,
    data_size: U64,
    super_offset: U64,
    recovery_offset: U64,
    dev_number: U32,
    cnt_corrected_read: U32,
    device_uuid: [u8; 16],
    devflags: u8,
    bblog_shift: u8,
    bblog_size: U16,
    bblog_offset: I32,
    utime: U64,
    events: U64,
    resync_offset: U64,
    sb_csum: U32,
    max_dev: U32,
    pad3: [u8; 32],
}

const _: () = assert!(size_of::<Head>() == HEAD_BYTES);

/// The byte of the superblock at which its checksum (`sb_csum`) lies.
const CHECKSUM_AT: usize = 216;

/// The reason why bytes cannot be used as a superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SuperblockError {
    /// Fewer bytes than the superblock needs.
    #[error("a superblock of {needed} bytes does not fit {given} bytes")]
    Short {
        /// Bytes that the superblock takes.
        needed: usize,
        /// Bytes that were given.
        given: usize,
    },
    /// A field that the kernel would refuse.
    #[error(transparent)]
    Field(#[from] FieldError),
}

/// The reason why a superblock cannot be written.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// Version 0.90, which is read but never written.
    #[error("superblocks of version 0.90 are not written")]
    ReadOnlyVersion,
    /// The name takes more than 32 bytes.
    #[error("the name `{name}` takes {bytes} bytes; at most 32 are possible")]
    LongName {
        /// The name that was to be written.
        name: String,
        /// Bytes that the name takes, the host's included.
        bytes: usize,
    },
    /// More roles than fit 4 KiB.
    #[error("{count} roles are too many; at most {MAXIMUM_ROLES} are possible")]
    TooManyRoles {
        /// Roles that were to be written.
        count: usize,
    },
    /// A chunk that does not fit its 32 bits.
    #[error("a chunk of {0} sectors is too large")]
    Chunk(u64),
    /// A slot in the roles that is one of the special values.
    #[error("{0} is too large for a slot")]
    Slot(u16),
}

/// A superblock's checksum: the stored one and the correct one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Checksum {
    /// The checksum that stands in the superblock.
    pub stored: u32,
    /// The checksum of the superblock's other bytes.
    pub expected: u32,
}

/// Returns the checksum (`sb_csum`) of a 1.x superblock's bytes, whatever value the field itself
/// has; `None` if they are fewer than the superblock says. It is the sum of the little-endian
/// 32-bit words, the carries added (`calc_sb_1_csum` of md.c).
#[must_use]
pub fn superblock_checksum(bytes: &[u8]) -> Option<u32> {
    let (head, _) = Head::read_from_prefix(bytes).ok()?;
    let roles = usize::try_from(head.max_dev.get()).ok()?;
    let end = roles.checked_mul(2)?.checked_add(HEAD_BYTES)?;
    Some(sum(bytes.get(..end)?))
}

/// Returns the checksum of a superblock over exactly these bytes.
fn sum(bytes: &[u8]) -> u32 {
    let bytes = match mutation::is(Mutation::RolesNotSummed) {
        true => &bytes[..HEAD_BYTES],
        false => bytes,
    };
    let words = bytes.chunks(4).enumerate().map(|(index, word)| {
        if index == CHECKSUM_AT / 4 {
            return 0;
        }
        let mut whole = [0; 4];
        whole[..word.len()].copy_from_slice(word);
        u64::from(u32::from_le_bytes(whole))
    });
    let total: u64 = words.sum();
    let [low, high] = [total & u64::from(u32::MAX), total >> 32];
    // At most 1024 words: low + high overflows 32 bits at most once, and the
    // kernel drops that carry.
    u32::try_from((low + high) & u64::from(u32::MAX)).unwrap_or_default()
}

impl Role {
    fn from_word(word: u16) -> Self {
        match word {
            0xffff => Self::Spare,
            0xfffe => Self::Faulty,
            0xfffd => Self::Journal,
            slot => Self::Slot(slot),
        }
    }

    fn word(self) -> Result<u16, EncodeError> {
        match self {
            Self::Spare => Ok(0xffff),
            Self::Faulty => Ok(0xfffe),
            Self::Journal => Ok(0xfffd),
            Self::Slot(slot @ 0xfffd..) => Err(EncodeError::Slot(slot)),
            Self::Slot(slot) => Ok(slot),
        }
    }
}

/// Whether the magic number, the major version and the place are those of a 1.x superblock at
/// `position`: mdadm's first test.
pub(crate) fn looks_like(bytes: &[u8], position: Sectors) -> bool {
    Head::read_from_prefix(bytes).is_ok_and(|(head, _)| {
        head.magic.get() == MAGIC
            && head.major_version.get() == 1
            && head.super_offset.get() == position.0
    })
}

/// Checks the rules for the map of features (`super_1_load`, `super_1_validate`).
fn check_features(head: &Head) -> Result<(), FieldError> {
    let map = head.feature_map.get();
    let field = check("feature_map", 8, map);
    let unknown = map & !Features::ALL;
    field.require(unknown == 0, Fault::UnknownBits(unknown.into()))?;
    let features = Features(map);
    for exclusive in [
        Features::BITMAP | Features::PPL,
        Features::BITMAP | Features::MULTIPLE_PPLS,
        Features::PPL | Features::MULTIPLE_PPLS,
        Features::JOURNAL | Features::PPL,
        Features::JOURNAL | Features::MULTIPLE_PPLS,
    ] {
        field.require(
            !features.has(exclusive),
            Fault::ExclusiveBits(exclusive.into()),
        )?;
    }
    if features.has(Features::RAID0_LAYOUT) {
        let level = head.level.get().cast_unsigned();
        check("level", 72, level).equal(0_u32)?;
    }
    Ok(())
}

/// Checks the rules for places and sizes on a device of `device` sectors. Two go beyond the
/// kernel's: the array's data on a member must end before a superblock that lies behind them, and
/// must fit `data_size` (the kernel shrinks the array instead).
fn check_places(head: &Head, version: Version, device: Sectors) -> Result<(), FieldError> {
    let bytes = HEAD_BYTES as u64 + 2 * u64::from(head.max_dev.get());
    let super_offset = head.super_offset.get();
    let data_offset = head.data_offset.get();
    let size = check("data_size", 136, head.data_size.get()).at_least(10)?;
    let offset = check("data_offset", 128, data_offset);
    if version == Version::V1_0 {
        size.at_most(super_offset)?;
        let striped = head.level.get() <= 0;
        let held = if striped { &head.data_size } else { &head.size };
        offset.at_most(super_offset.saturating_sub(held.get()))?;
    } else {
        // The kernel rounds a superblock up to logical blocks.
        offset.at_least(super_offset + bytes.div_ceil(512))?;
        let room = device.0.saturating_sub(data_offset);
        size.require(head.data_size.get() <= room, Fault::NoRoom(room))?;
    }
    if Features(head.feature_map.get()).has(Features::BAD_BLOCKS) {
        check("bblog_size", 186, head.bblog_size.get()).at_most(8)?;
        let log = head.bblog_offset.get();
        check("bblog_offset", 188, log.cast_unsigned()).require(log != 0, Fault::OutOfPlace)?;
    }
    Ok(())
}

/// Checks that a member's part of a level with redundancy fits its data area.
fn check_size(superblock: &Superblock) -> Result<(), FieldError> {
    let held = superblock.level > 0 && matches!(superblock.role(), Role::Slot(_));
    if held {
        check("size", 80, superblock.used_size.0).at_most(superblock.data_size.0)?;
    }
    Ok(())
}

impl Superblock {
    /// Decodes a 1.x superblock from the bytes at its place on a device of `device` sectors.
    ///
    /// # Errors
    ///
    /// A field that the kernel would refuse at load; version 0.90 has a decoder of
    /// its own ([`Legacy`](crate::Legacy)).
    pub fn decode(
        bytes: &[u8],
        version: Version,
        device: Sectors,
    ) -> Result<Self, SuperblockError> {
        let short = |needed| SuperblockError::Short {
            needed,
            given: bytes.len(),
        };
        let (head, _) = Head::read_from_prefix(bytes).map_err(|_| short(HEAD_BYTES))?;
        check("magic", 0, head.magic.get()).equal(MAGIC)?;
        check("major_version", 4, head.major_version.get()).equal(1_u32)?;
        check("max_dev", 220, head.max_dev.get()).at_most(MAXIMUM_ROLES as u64)?;
        let roles = usize::try_from(head.max_dev.get()).unwrap_or(usize::MAX);
        let end = HEAD_BYTES + 2 * roles;
        let whole = bytes.get(..end).ok_or_else(|| short(end))?;
        if !mutation::is(Mutation::SumUnchecked) {
            check("sb_csum", CHECKSUM_AT as u32, head.sb_csum.get()).equal(sum(whole))?;
        }
        let place = place_of(version, device).unwrap_or(Sectors(u64::MAX));
        check("super_offset", 144, head.super_offset.get()).equal(place.0)?;
        check("pad0", 12, head.pad0.get()).require(head.pad0.get() == 0, Fault::NotZero)?;
        if let Some(index) = head.pad3.iter().position(|byte| *byte != 0) {
            let offset = u32::try_from(224 + index).unwrap_or(224);
            return Err(check("pad3", offset, head.pad3[index])
                .fault(Fault::NotZero)
                .into());
        }
        // The next update increments the count: one that overflows would make the newest
        // member the oldest.
        check("events", 200, head.events.get()).at_most(u64::MAX >> 1)?;
        check_features(&head)?;
        check_places(&head, version, device)?;
        let superblock = from_head(&head, version, roles_of(whole));
        check_size(&superblock)?;
        Ok(superblock)
    }

    /// Decodes a 1.x superblock, sound or not; missing roles are left out.
    pub(crate) fn decode_unchecked(bytes: &[u8], version: Version) -> Option<(Self, Checksum)> {
        let (head, _) = Head::read_from_prefix(bytes).ok()?;
        let roles = usize::try_from(head.max_dev.get()).unwrap_or(usize::MAX);
        let end = HEAD_BYTES + 2 * roles.min(MAXIMUM_ROLES);
        let whole = &bytes[..end.min(bytes.len())];
        let checksum = Checksum {
            stored: head.sb_csum.get(),
            expected: sum(whole),
        };
        Some((from_head(&head, version, roles_of(whole)), checksum))
    }

    /// Returns the superblock's bytes, with checksum: a whole number of sectors, at most 4 KiB,
    /// zeros behind the last role.
    ///
    /// # Errors
    ///
    /// See [`EncodeError`].
    pub fn encode(&self) -> Result<Vec<u8>, EncodeError> {
        let head = to_head(self)?;
        let mut bytes = head.as_bytes().to_vec();
        for role in &self.roles {
            bytes.extend_from_slice(&role.word()?.to_le_bytes());
        }
        let checksum = sum(&bytes);
        bytes[CHECKSUM_AT..CHECKSUM_AT + 4].copy_from_slice(&checksum.to_le_bytes());
        bytes.resize(bytes.len().next_multiple_of(512), 0);
        Ok(bytes)
    }
}

/// Returns the roles behind the head.
fn roles_of(superblock: &[u8]) -> Vec<Role> {
    let words = superblock[HEAD_BYTES..].chunks_exact(2);
    let roles = words.map(|word| Role::from_word(u16::from_le_bytes([word[0], word[1]])));
    roles.collect()
}

/// Returns the name up to its first zero byte. A byte that is not UTF-8 becomes `?`, so that the
/// name still fits when it is written again.
fn name_of(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0);
    let mut name = String::new();
    for part in bytes[..end.unwrap_or(bytes.len())].utf8_chunks() {
        name.push_str(part.valid());
        name.extend(part.invalid().iter().map(|_| '?'));
    }
    name
}

/// Returns the name padded with zero bytes.
fn padded_name(name: &str) -> Result<[u8; NAME_BYTES], EncodeError> {
    let mut padded = [0; NAME_BYTES];
    let place = padded.get_mut(..name.len());
    let place = place.ok_or_else(|| EncodeError::LongName {
        name: name.to_owned(),
        bytes: name.len(),
    })?;
    place.copy_from_slice(name.as_bytes());
    Ok(padded)
}

fn from_head(head: &Head, version: Version, roles: Vec<Role>) -> Superblock {
    let log = BadBlockLog {
        offset: head.bblog_offset.get(),
        size: head.bblog_size.get(),
        shift: head.bblog_shift,
    };
    let log = (log.offset != 0 && log.size != 0).then_some(log);
    let mut features = head.feature_map.get();
    if log.is_none() {
        // The kernel takes a log of no sectors for an empty one. It would refuse a superblock that
        // has the feature without the log's place, which is not kept.
        features &= !Features::BAD_BLOCKS;
    }
    Superblock {
        version,
        features: Features(features),
        array_uuid: Uuid(head.set_uuid),
        name: name_of(&head.set_name),
        created: head.ctime.get(),
        level: head.level.get(),
        layout: head.layout.get(),
        used_size: Sectors(head.size.get()),
        chunk: Sectors(head.chunksize.get().into()),
        raid_disks: head.raid_disks.get(),
        bitmap_offset: head.bitmap_offset.get(),
        reshape: Reshape {
            new_level: head.new_level.get(),
            position: head.reshape_position.get(),
            delta_disks: head.delta_disks.get(),
            new_layout: head.new_layout.get(),
            new_chunk: head.new_chunk.get(),
            new_offset: head.new_offset.get(),
        },
        data_offset: Sectors(head.data_offset.get()),
        data_size: Sectors(head.data_size.get()),
        super_offset: Sectors(head.super_offset.get()),
        recovery_offset: Sectors(head.recovery_offset.get()),
        device_number: head.dev_number.get(),
        corrected_read_errors: head.cnt_corrected_read.get(),
        device_uuid: Uuid(head.device_uuid),
        device_flags: DeviceFlags(head.devflags),
        bad_block_log: log,
        updated: head.utime.get(),
        events: head.events.get(),
        resync_offset: Sectors(head.resync_offset.get()),
        roles,
    }
}

fn to_head(superblock: &Superblock) -> Result<Head, EncodeError> {
    if superblock.version == Version::V0_90 {
        return Err(EncodeError::ReadOnlyVersion);
    }
    let count = superblock.roles.len();
    let max_dev = u32::try_from(count).ok();
    let max_dev = max_dev.filter(|_| count <= MAXIMUM_ROLES);
    let log = superblock.bad_block_log.unwrap_or(BadBlockLog {
        offset: 0,
        size: 0,
        shift: 0,
    });
    let lost = match () {
        () if mutation::is(Mutation::RecoveryFlagLost) => Features::RECOVERY_OFFSET,
        () if mutation::is(Mutation::BadBlockFlagLost) => Features::BAD_BLOCKS,
        () => 0,
    };
    let events = match mutation::is(Mutation::EventsCut) {
        true => superblock.events & u64::from(u32::MAX),
        false => superblock.events,
    };
    let resync_offset = match mutation::is(Mutation::ResyncOffsetAhead) {
        true => superblock.resync_offset.0.saturating_add(64),
        false => superblock.resync_offset.0,
    };
    let Sectors(chunk) = superblock.chunk;
    let chunk = u32::try_from(chunk).map_err(|_| EncodeError::Chunk(chunk))?;
    Ok(Head {
        magic: MAGIC.into(),
        major_version: 1.into(),
        feature_map: (superblock.features.0 & !lost).into(),
        pad0: 0.into(),
        set_uuid: superblock.array_uuid.0,
        set_name: padded_name(&superblock.name)?,
        ctime: superblock.created.into(),
        level: superblock.level.into(),
        layout: superblock.layout.into(),
        size: superblock.used_size.0.into(),
        chunksize: chunk.into(),
        raid_disks: superblock.raid_disks.into(),
        bitmap_offset: superblock.bitmap_offset.into(),
        new_level: superblock.reshape.new_level.into(),
        reshape_position: superblock.reshape.position.into(),
        delta_disks: superblock.reshape.delta_disks.into(),
        new_layout: superblock.reshape.new_layout.into(),
        new_chunk: superblock.reshape.new_chunk.into(),
        new_offset: superblock.reshape.new_offset.into(),
        data_offset: superblock.data_offset.0.into(),
        data_size: superblock.data_size.0.into(),
        super_offset: superblock.super_offset.0.into(),
        recovery_offset: superblock.recovery_offset.0.into(),
        dev_number: superblock.device_number.into(),
        cnt_corrected_read: superblock.corrected_read_errors.into(),
        device_uuid: superblock.device_uuid.0,
        devflags: superblock.device_flags.0,
        bblog_shift: log.shift,
        bblog_size: log.size.into(),
        bblog_offset: log.offset.into(),
        utime: superblock.updated.into(),
        events: events.into(),
        resync_offset: resync_offset.into(),
        sb_csum: 0.into(),
        max_dev: max_dev.ok_or(EncodeError::TooManyRoles { count })?.into(),
        pad3: [0; 32],
    })
}
