//! md's on-disk formats: superblocks, bitmaps, bad-block logs.
//!
//! Bytes in, structures out, and back. Nothing here decides what an array does
//! with them; where they are on a member is said by the structures themselves.

mod superblock;

pub use superblock::{
    BadBlockLog, DeviceFlags, Features, Reshape, Role, Superblock, Uuid, Version,
};
