//! md's on-disk formats: superblocks, bitmaps, bad-block logs.
//!
//! The functions decode bytes to structures and encode them again. Nothing here decides what an
//! array does with them; the structures themselves say where on a member they lie.

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
