//! The contents of an md superblock of any version.

mod areas;
pub(crate) mod legacy;
mod place;
pub(crate) mod version_1;

use raidlab_units::Sectors;

pub(crate) use place::SMALLEST_MEMBER;
pub use place::place_of;

/// The UUID of an array or a member: 16 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

/// The format version of a superblock: its place and encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 0.90: near the member's end, host byte order (read only).
    V0_90,
    /// 1.0: near the member's end, less than 12 KiB before it.
    V1_0,
    /// 1.1: at the member's start.
    V1_1,
    /// 1.2: 4 KiB from the member's start; raidlab's default.
    V1_2,
}

/// Bits of the feature map (include/uapi/linux/raid/md_p.h).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Features(pub u32);

impl Features {
    /// `bitmap_offset` is valid.
    pub const BITMAP: u32 = 1;
    /// `recovery_offset` is valid.
    pub const RECOVERY_OFFSET: u32 = 2;
    /// A reshape is under way.
    pub const RESHAPE: u32 = 4;
    /// The bad-block log is not empty.
    pub const BAD_BLOCKS: u32 = 8;
    /// This member replaces one that is still there.
    pub const REPLACEMENT: u32 = 16;
    /// A reshape goes backwards.
    pub const RESHAPE_BACKWARDS: u32 = 32;
    /// `new_offset` is valid.
    pub const NEW_OFFSET: u32 = 64;
    /// Recovery is guided by the bitmap.
    pub const RECOVERY_BITMAP: u32 = 128;
    /// The bitmap is a clustered one.
    pub const BITMAP_VERSIONED: u32 = 256;
    /// The array has a journal member.
    pub const JOURNAL: u32 = 512;
    /// The member has a partial parity log.
    pub const PPL: u32 = 1024;
    /// The member has several partial parity logs.
    pub const MULTIPLE_PPLS: u32 = 2048;
    /// The layout of a RAID 0 is valid.
    pub const RAID0_LAYOUT: u32 = 4096;

    /// All bits above: the kernel refuses a superblock with any other.
    pub const ALL: u32 = (1 << 13) - 1;

    /// Whether all bits of `mask` are set.
    #[must_use]
    pub const fn has(self, mask: u32) -> bool {
        self.0 & mask == mask
    }
}

/// The role of a device in the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The member of this slot.
    Slot(u16),
    /// The device is a spare (role 0xffff).
    Spare,
    /// The device has failed, or no device has this number (role 0xfffe).
    Faulty,
    /// The device is the journal of the array (role 0xfffd).
    Journal,
}

/// A member's flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DeviceFlags(pub u8);

impl DeviceFlags {
    /// Reads go to this member only where no other can serve.
    pub const WRITE_MOSTLY: u8 = 1;
    /// The member is failed at its first error.
    pub const FAILFAST: u8 = 2;
}

/// A reshape under way: kept as found, not continued.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Reshape {
    /// The array's level after the reshape, in md's numbers.
    pub new_level: i32,
    /// The next array sector to move.
    pub position: u64,
    /// The number of members added, or removed if negative.
    pub delta_disks: i32,
    /// The array's layout after the reshape, as md's word.
    pub new_layout: u32,
    /// The chunk after the reshape, in sectors.
    pub new_chunk: u32,
    /// The data offset after the reshape, in sectors from the present one.
    pub new_offset: i32,
}

/// The place of the bad-block log, and its unit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BadBlockLog {
    /// Sectors from the superblock to the log; negative before it.
    pub offset: i32,
    /// Sectors of the log.
    pub size: u16,
    /// The unit of entries: `1 << shift` sectors.
    pub shift: u8,
}

/// One member's superblock. Sizes and offsets in sectors of 512 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// The version: format and place.
    pub version: Version,
    /// The feature map as on disk.
    pub features: Features,
    /// The UUID of the array.
    pub array_uuid: Uuid,
    /// The array's name as `host:name`, at most 32 bytes; empty for 0.90.
    pub name: String,
    /// The time when the array was made: seconds since 1970 in the low 40 bits, microseconds above.
    pub created: u64,
    /// md's level number.
    pub level: i32,
    /// md's layout word.
    pub layout: u32,
    /// The used size of each member's data area.
    pub used_size: Sectors,
    /// The chunk; 0 where the level has none.
    pub chunk: Sectors,
    /// The number of slots of the array.
    pub raid_disks: u32,
    /// Sectors from the superblock to the bitmap, where there is one
    /// ([`Features::BITMAP`]).
    pub bitmap_offset: i32,
    /// A reshape; meaningful with [`Features::RESHAPE`].
    pub reshape: Reshape,
    /// The sector of the member at which the array's data begin.
    pub data_offset: Sectors,
    /// Sectors of the member that can hold data.
    pub data_size: Sectors,
    /// The sector of the member at which this superblock lies.
    pub super_offset: Sectors,
    /// The sector of the data area below which the member is recovered;
    /// meaningful with [`Features::RECOVERY_OFFSET`].
    pub recovery_offset: Sectors,
    /// This member's index in `roles`.
    pub device_number: u32,
    /// The number of read errors corrected so far.
    pub corrected_read_errors: u32,
    /// The UUID of this member; for 0.90, which has none, the array's UUID with
    /// the device's number.
    pub device_uuid: Uuid,
    /// Flags of this member.
    pub device_flags: DeviceFlags,
    /// The bad-block log, where there is one.
    pub bad_block_log: Option<BadBlockLog>,
    /// The time of the last update, in the form of `created`.
    pub updated: u64,
    /// The count of changes of the array's state.
    pub events: u64,
    /// The sector below which the array is in sync; `u64::MAX` means everywhere.
    pub resync_offset: Sectors,
    /// The role of each device number; its length is `max_dev` on disk.
    pub roles: Vec<Role>,
}

impl Superblock {
    /// The `resync_offset` of an array that is in sync everywhere.
    pub const IN_SYNC: Sectors = Sectors(u64::MAX);

    /// Returns the role of this member.
    #[must_use]
    pub fn role(&self) -> Role {
        let index = usize::try_from(self.device_number).ok();
        index
            .and_then(|index| self.roles.get(index))
            .copied()
            .unwrap_or(Role::Spare)
    }
}
