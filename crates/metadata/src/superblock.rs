//! What an md superblock says, in any version.

mod areas;
pub(crate) mod legacy;
mod place;
pub(crate) mod version_1;

use raidlab_units::Sectors;

pub(crate) use place::SMALLEST_MEMBER;
pub use place::place_of;

/// 16 bytes that name an array or a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Uuid(pub [u8; 16]);

/// Where a superblock lies and how it is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 0.90: near the member's end, host byte order (read only).
    V0_90,
    /// 1.0: near the member's end.
    V1_0,
    /// 1.1: at the member's start.
    V1_1,
    /// 1.2: 4 KiB from the member's start; what raidlab writes unless told otherwise.
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
    /// A clustered bitmap.
    pub const BITMAP_VERSIONED: u32 = 256;
    /// A journal member.
    pub const JOURNAL: u32 = 512;
    /// A partial parity log.
    pub const PPL: u32 = 1024;
    /// Several partial parity logs.
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

/// What a member is to the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// The member of this slot.
    Slot(u16),
    /// The device is a spare (role 0xffff).
    Spare,
    /// 0xfffe: failed, or no such device.
    Faulty,
    /// The device is the journal of the array (role 0xfffd).
    Journal,
}

/// A member's flags.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct DeviceFlags(pub u8);

impl DeviceFlags {
    /// Read from it only where no other member can serve.
    pub const WRITE_MOSTLY: u8 = 1;
    /// Fail it at the first error.
    pub const FAILFAST: u8 = 2;
}

/// A reshape under way: kept as found, not carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Reshape {
    /// The array's level after the reshape, in md's numbers.
    pub new_level: i32,
    /// Next array sector to move.
    pub position: u64,
    /// Members more or fewer.
    pub delta_disks: i32,
    /// The array's layout after the reshape, as md's word.
    pub new_layout: u32,
    /// Chunk after it, in sectors.
    pub new_chunk: u32,
    /// Data offset after it, in sectors from the present one.
    pub new_offset: i32,
}

/// Where the bad-block log lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BadBlockLog {
    /// Sectors from the superblock to the log; negative before it.
    pub offset: i32,
    /// Sectors of the log.
    pub size: u16,
    /// Entries are in units of `1 << shift` sectors.
    pub shift: u8,
}

/// One member's superblock. Sizes and offsets in sectors of 512 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Superblock {
    /// Format and place.
    pub version: Version,
    /// The feature map as on disk.
    pub features: Features,
    /// The UUID of the array.
    pub array_uuid: Uuid,
    /// `host:name`, at most 32 bytes; empty for 0.90.
    pub name: String,
    /// When the array was made: seconds since 1970 in the low 40 bits,
    /// microseconds above.
    pub created: u64,
    /// md's level number.
    pub level: i32,
    /// md's layout word.
    pub layout: u32,
    /// Used size of each member's data area.
    pub used_size: Sectors,
    /// Chunk; 0 where the level has none.
    pub chunk: Sectors,
    /// Slots of the array.
    pub raid_disks: u32,
    /// Sectors from the superblock to the bitmap, where there is one
    /// ([`Features::BITMAP`]).
    pub bitmap_offset: i32,
    /// Meaningful with [`Features::RESHAPE`].
    pub reshape: Reshape,
    /// Where the array's data begin on the member.
    pub data_offset: Sectors,
    /// Sectors of the member that can hold data.
    pub data_size: Sectors,
    /// The sector of the member at which this superblock lies.
    pub super_offset: Sectors,
    /// Recovered below this sector of the data area; meaningful with
    /// [`Features::RECOVERY_OFFSET`].
    pub recovery_offset: Sectors,
    /// This member's index in `roles`.
    pub device_number: u32,
    /// Read errors corrected so far.
    pub corrected_read_errors: u32,
    /// This member; for 0.90, which has no such thing, the array's UUID with the
    /// device's number.
    pub device_uuid: Uuid,
    /// Flags of this member.
    pub device_flags: DeviceFlags,
    /// The bad-block log, where there is one.
    pub bad_block_log: Option<BadBlockLog>,
    /// When the superblock was last written, as `created`.
    pub updated: u64,
    /// Counts the changes of the array's state.
    pub events: u64,
    /// The array is in sync below this sector; `u64::MAX` sectors: everywhere.
    pub resync_offset: Sectors,
    /// The role of each device number; its length is `max_dev` on disk.
    pub roles: Vec<Role>,
}

impl Superblock {
    /// `resync_offset` of an array that is in sync everywhere.
    pub const IN_SYNC: Sectors = Sectors(u64::MAX);

    /// What this member is to the array.
    #[must_use]
    pub fn role(&self) -> Role {
        let index = usize::try_from(self.device_number).ok();
        index
            .and_then(|index| self.roles.get(index))
            .copied()
            .unwrap_or(Role::Spare)
    }
}
