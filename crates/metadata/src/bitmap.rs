//! The write-intent bitmap: which chunks of the array may differ between its
//! members.
//!
//! A superblock of 256 bytes, little-endian, and behind it one bit for each
//! chunk, the lowest bit of the first byte first. An internal bitmap lies
//! near each member's superblock, an external one fills a file with the same
//! bytes. It is read and written in pages of 4 KiB counted from the bitmap's
//! start; the first holds the superblock. Rules and names are those of
//! drivers/md/md-bitmap.c, Linux 6.1, and of bitmap.c and super1.c, mdadm 4.2.

mod bits;
mod choose;
mod header;

pub use bits::{Bitmap, BitmapError, MAXIMUM_BITMAP_BYTES, PAGE_BYTES};
pub use choose::{bitmap_space, external_chunk, internal_chunk};
pub(crate) use header::HEADER_BYTES;
pub use header::{BitmapSuperblock, Staleness};
