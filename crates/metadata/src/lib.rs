//! md's on-disk formats: superblocks, bitmaps, bad-block logs.
//!
//! Bytes in, structures out, and back. Nothing here decides what an array does
//! with them; where they are on a member is said by the structures themselves.

mod bad_blocks;
mod bitmap;
pub mod create;
pub mod detail;
mod erase;
mod fields;
pub mod mutation;
mod name;
mod probe;
mod superblock;

pub use bad_blocks::{BadBlockEntry, BadBlockError};
pub use bitmap::{
    Bitmap, BitmapError, BitmapSuperblock, MAXIMUM_BITMAP_BYTES, PAGE_BYTES, Staleness,
    bitmap_space, external_chunk, internal_chunk,
};
pub use erase::erase;
pub use fields::{Fault, FieldError};
pub use name::full_name;
pub use probe::{
    MemberMetadata, ProbeError, ReadAt, examine_member, read_member, versions_present,
};
pub use superblock::legacy::{Legacy, LegacyDevice};
pub use superblock::version_1::{Checksum, EncodeError, SuperblockError, superblock_checksum};
pub use superblock::{
    BadBlockLog, DeviceFlags, Features, Reshape, Role, Superblock, Uuid, Version, place_of,
};
