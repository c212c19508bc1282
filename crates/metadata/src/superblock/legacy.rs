//! Superblocks of version 0.90 (and 0.91 during a reshape), read only.
//!
//! 4 KiB of 32-bit words in the byte order of the machine that wrote them: a
//! magic number that reads right only backwards says that it was the other
//! order. Constant part, state, personality, 27 descriptors of devices, and at
//! the end the descriptor of the device itself. The checks are those of
//! `super_90_load` and `super_90_validate` (drivers/md/md.c, Linux 6.1).

use super::version_1::{MAGIC, SuperblockError};
use super::{DeviceFlags, Features, Reshape, Role, Superblock, Uuid, Version, place_of};
use crate::fields::{Fault, FieldError, check};
use raidlab_units::Sectors;

/// Bytes of the superblock.
pub(crate) const BYTES: usize = 4096;
/// The number of descriptors of devices.
const DEVICES: usize = 27;
/// The word where the descriptors begin, and the number of words of each.
const FIRST_DEVICE_WORD: usize = 128;
const DEVICE_WORDS: usize = 32;
const THIS_DEVICE_WORD: usize = 992;
/// The index of the checksum's word.
const CHECKSUM_WORD: usize = 38;
/// Bytes from the superblock to its bitmap.
pub(crate) const BITMAP_AT_BYTES: u32 = 4096;
/// The most bytes of the bitmap: the rest of the reserved 64 KiB.
pub(crate) const BITMAP_BYTES: usize = 60 * 1024;

/// The minor version of an array that is being reshaped; otherwise it is 90.
const RESHAPING: u32 = 91;
/// State bit: the array was stopped in order.
const STATE_CLEAN: u32 = 1;
/// State bit: there is a bitmap behind the superblock.
const STATE_BITMAP: u32 = 1 << 8;

/// One device's descriptor in a 0.90 superblock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LegacyDevice {
    /// The number of the device in the superblock, from 0.
    pub number: u32,
    /// The major number of the device's node when the superblock was written.
    pub major: u32,
    /// The minor number of the device's node when the superblock was written.
    pub minor: u32,
    /// The slot of the array that it serves, from 0.
    pub raid_disk: u32,
    /// The state: bits 0 faulty, 1 active, 2 sync, 3 removed, 9 write-mostly, 10 failfast.
    pub state: u32,
}

impl LegacyDevice {
    const FAULTY: u32 = 1;
    const ACTIVE: u32 = 2;
    const SYNC: u32 = 4;
    const WRITE_MOSTLY: u32 = 1 << 9;
    const FAILFAST: u32 = 1 << 10;

    /// Returns the device's role in the array: in sync, or (from 0.91 on) active and
    /// being recovered (`super_90_validate`).
    fn role(self, minor_version: u32) -> Role {
        let slot = u16::try_from(self.raid_disk).map_or(Role::Spare, Role::Slot);
        let active = self.state & Self::ACTIVE != 0 && minor_version >= RESHAPING;
        if self.state & Self::FAULTY != 0 {
            Role::Faulty
        } else if self.state & Self::SYNC != 0 || active {
            slot
        } else {
            Role::Spare
        }
    }
}

/// The fields of a 0.90 superblock that a [`Superblock`] does not have, as found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Legacy {
    /// The minor version: 90, or 91 during a reshape.
    pub minor_version: u32,
    /// The third number of the version: 3 in 0.90.3.
    pub patch_version: u32,
    /// Whether the superblock's bytes are big-endian.
    pub big_endian: bool,
    /// The used size of each member in KiB.
    pub size_kib: u32,
    /// The number of devices, spares included.
    pub nr_disks: u32,
    /// The number N of `/dev/mdN`.
    pub preferred_minor: u32,
    /// Whether the superblock declares itself not persistent.
    pub not_persistent: bool,
    /// The state: bits 0 clean, 1 errors, 8 bitmap present, as `MD_SB_CLEAN` and its like in Linux.
    pub state: u32,
    /// The number of devices in sync.
    pub active_disks: u32,
    /// The number of devices that work.
    pub working_disks: u32,
    /// The number of devices that have failed.
    pub failed_disks: u32,
    /// The number of spares.
    pub spare_disks: u32,
    /// The checksum that stands in the superblock.
    pub checksum: u32,
    /// The sector below which the array is in sync, as found; meaningful if it is not clean.
    pub recovery_checkpoint: u32,
    /// The device that carries this superblock.
    pub this_device: LegacyDevice,
    /// The descriptors of all devices of the array.
    pub devices: Vec<LegacyDevice>,
}

/// The superblock as words in this machine's order.
struct Words {
    words: Vec<u32>,
    big_endian: bool,
}

impl Words {
    /// Reads the bytes; `None` if neither order gives the magic number.
    fn new(bytes: &[u8]) -> Option<Self> {
        let first = <[u8; 4]>::try_from(bytes.get(..4)?).ok()?;
        let big_endian = u32::from_be_bytes(first) == MAGIC;
        if !big_endian && u32::from_le_bytes(first) != MAGIC {
            return None;
        }
        let word = |bytes: &[u8]| {
            let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
            if big_endian {
                u32::from_be_bytes(bytes)
            } else {
                u32::from_le_bytes(bytes)
            }
        };
        let words = bytes.get(..BYTES)?.chunks_exact(4).map(word).collect();
        Some(Self { words, big_endian })
    }

    fn word(&self, index: usize) -> u32 {
        self.words.get(index).copied().unwrap_or_default()
    }

    /// Returns two words that form a number of 64 bits in the writer's order.
    fn long(&self, index: usize) -> u64 {
        let [first, second] = [self.word(index), self.word(index + 1)].map(u64::from);
        if self.big_endian {
            first << 32 | second
        } else {
            second << 32 | first
        }
    }

    fn device(&self, at: usize) -> LegacyDevice {
        LegacyDevice {
            number: self.word(at),
            major: self.word(at + 1),
            minor: self.word(at + 2),
            raid_disk: self.word(at + 3),
            state: self.word(at + 4),
        }
    }

    /// Returns the sum of all words with the checksum as 0, carries added (`calc_sb_csum` of md.c).
    fn sum(&self) -> u32 {
        let words = self.words.iter().enumerate();
        let counted = words.filter(|(index, _)| *index != CHECKSUM_WORD);
        let total: u64 = counted.map(|(_, word)| u64::from(*word)).sum();
        let folded = (total & u64::from(u32::MAX)) + (total >> 32);
        u32::try_from(folded & u64::from(u32::MAX)).unwrap_or_default()
    }

    /// Returns the array's 16 bytes as mdadm prints them: four words, the first apart
    /// from the others.
    fn uuid(&self) -> Uuid {
        let mut bytes = [0; 16];
        for (target, word) in bytes.chunks_exact_mut(4).zip([5, 13, 14, 15]) {
            target.copy_from_slice(&self.word(word).to_be_bytes());
        }
        Uuid(bytes)
    }
}

/// Folds a sum to 16 bits: older kernels and other machines summed differently, to results that are
/// the same when folded (`super_90_load`).
fn fold(sum: u32) -> u32 {
    let once = (sum & 0xffff) + (sum >> 16);
    (once & 0xffff) + (once >> 16)
}

/// Whether these bytes have the magic number (in either order) and the major
/// version of 0.90.
pub(crate) fn looks_like(bytes: &[u8]) -> bool {
    Words::new(bytes).is_some_and(|words| words.word(1) == 0)
}

/// Checks the rules of `super_90_load` and of `super_90_validate`.
fn check_words(words: &Words, place: Sectors) -> Result<(), FieldError> {
    let named = |field, index: usize| {
        let offset = u32::try_from(index * 4).unwrap_or(u32::MAX);
        check(field, offset, words.word(index))
    };
    named("major_version", 1).equal(0_u32)?;
    named("minor_version", 2)
        .at_least(90)?
        .at_most(RESHAPING.into())?;
    let disks = words.word(10);
    named("raid_disks", 10).require(disks > 0, Fault::AtLeast(1))?;
    let sum = words.sum();
    named("sb_csum", CHECKSUM_WORD).require(
        fold(words.word(CHECKSUM_WORD)) == fold(sum),
        Fault::Expected(sum.into()),
    )?;
    let this = THIS_DEVICE_WORD;
    named("this_disk.number", this).at_most(DEVICES as u64 - 1)?;
    named("chunk_size", 65).require(words.word(65).is_multiple_of(512), Fault::UnknownValue)?;
    let level = words.word(7).cast_signed();
    if level >= 1 {
        named("size", 8).at_most(place.0 / 2)?;
    }
    Ok(())
}

impl Legacy {
    /// Decodes a 0.90 superblock from the bytes at its place on a device of `device` sectors.
    ///
    /// # Errors
    ///
    /// A field that the kernel would refuse at load.
    pub fn decode(bytes: &[u8], device: Sectors) -> Result<(Superblock, Self), SuperblockError> {
        let short = SuperblockError::Short {
            needed: BYTES,
            given: bytes.len(),
        };
        let bytes = bytes.get(..BYTES).ok_or(short)?;
        let words = Words::new(bytes).ok_or_else(|| {
            let found = u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            check("md_magic", 0, found).fault(Fault::Expected(MAGIC.into()))
        })?;
        let place = place_of(Version::V0_90, device).unwrap_or_default();
        check_words(&words, place)?;
        let legacy = read(&words);
        Ok((legacy.superblock(&words, place), legacy))
    }

    /// Whether there is a bitmap behind the superblock.
    #[must_use]
    pub const fn has_bitmap(&self) -> bool {
        self.state & STATE_BITMAP != 0
    }

    /// Whether the array was stopped in order.
    #[must_use]
    pub const fn is_clean(&self) -> bool {
        self.state & STATE_CLEAN != 0
    }

    fn superblock(&self, words: &Words, place: Sectors) -> Superblock {
        let mut features = Features::default();
        if self.has_bitmap() {
            features.0 |= Features::BITMAP;
        }
        if self.minor_version >= RESHAPING {
            features.0 |= Features::RESHAPE;
        }
        let events = if words.big_endian {
            u64::from(words.word(39)) << 32 | u64::from(words.word(40))
        } else {
            u64::from(words.word(40)) << 32 | u64::from(words.word(39))
        };
        let resync_offset = if self.is_clean() {
            Superblock::IN_SYNC
        } else if self.checkpoint_is_valid(words) {
            Sectors(self.recovery_checkpoint.into())
        } else {
            Sectors(0)
        };
        let mut device_flags = DeviceFlags::default();
        if self.this_device.state & LegacyDevice::WRITE_MOSTLY != 0 {
            device_flags.0 |= DeviceFlags::WRITE_MOSTLY;
        }
        if self.this_device.state & LegacyDevice::FAILFAST != 0 {
            device_flags.0 |= DeviceFlags::FAILFAST;
        }
        Superblock {
            version: Version::V0_90,
            features,
            array_uuid: words.uuid(),
            name: String::new(),
            created: words.word(6).into(),
            level: words.word(7).cast_signed(),
            layout: words.word(64),
            used_size: Sectors(u64::from(self.size_kib) * 2),
            chunk: Sectors(u64::from(words.word(65)) / 512),
            raid_disks: words.word(10),
            bitmap_offset: (BITMAP_AT_BYTES / 512).cast_signed(),
            reshape: self.reshape(words),
            data_offset: Sectors(0),
            data_size: place,
            super_offset: place,
            recovery_offset: Sectors(0),
            device_number: self.this_device.number,
            corrected_read_errors: 0,
            device_uuid: self.member(words),
            device_flags,
            bad_block_log: None,
            updated: words.word(32).into(),
            events,
            resync_offset,
            roles: self.roles(),
        }
    }

    /// Returns the shape that a reshape leads to; without a reshape the present shape.
    fn reshape(&self, words: &Words) -> Reshape {
        if self.minor_version < RESHAPING {
            return Reshape {
                new_level: words.word(7).cast_signed(),
                position: 0,
                delta_disks: 0,
                new_layout: words.word(64),
                new_chunk: words.word(65) / 512,
                new_offset: 0,
            };
        }
        Reshape {
            new_level: words.word(46).cast_signed(),
            position: words.long(44),
            delta_disks: words.word(47).cast_signed(),
            new_layout: words.word(48),
            new_chunk: words.word(49) / 512,
            new_offset: 0,
        }
    }

    /// Whether the checkpoint counts: the events recorded with it have to be the array's events.
    fn checkpoint_is_valid(&self, words: &Words) -> bool {
        words.word(39) == words.word(41) && words.word(40) == words.word(42)
    }

    /// Returns a substitute for the UUID that members of 0.90 do not have: the array's, with the
    /// number by which the array knows the member (`this_disk`).
    fn member(&self, words: &Words) -> Uuid {
        let mut uuid = words.uuid();
        let number = self.this_device.number.to_be_bytes();
        for (byte, number) in uuid.0[12..].iter_mut().zip(number) {
            *byte ^= number;
        }
        uuid
    }

    fn roles(&self) -> Vec<Role> {
        let mut roles: Vec<Role> = vec![Role::Spare; DEVICES];
        for (role, device) in roles.iter_mut().zip(&self.devices) {
            *role = device.role(self.minor_version);
        }
        roles
    }
}

fn read(words: &Words) -> Legacy {
    let devices = (0..DEVICES).map(|index| words.device(FIRST_DEVICE_WORD + index * DEVICE_WORDS));
    Legacy {
        minor_version: words.word(2),
        patch_version: words.word(3),
        big_endian: words.big_endian,
        size_kib: words.word(8),
        nr_disks: words.word(9),
        preferred_minor: words.word(11),
        not_persistent: words.word(12) != 0,
        state: words.word(33),
        active_disks: words.word(34),
        working_disks: words.word(35),
        failed_disks: words.word(36),
        spare_disks: words.word(37),
        checksum: words.word(CHECKSUM_WORD),
        recovery_checkpoint: words.word(43),
        this_device: words.device(THIS_DEVICE_WORD),
        devices: devices.collect(),
    }
}
