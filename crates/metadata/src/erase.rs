//! Erasing a member's superblocks with zeros, as `--zero-superblock` does.

use crate::create::Write;
use crate::superblock::{Version, place_of};
use raidlab_units::{Bytes, Sectors};

/// Returns the writes that erase the superblocks of these versions
/// ([`versions_present`](crate::versions_present)) from a member of this size: 4 KiB of zeros at
/// the place of 0.90, 512 bytes at the others', as mdadm writes them.
#[must_use]
pub fn erase(versions: &[Version], size: Bytes) -> Vec<Write> {
    let size = size.to_sectors();
    let writes = versions.iter().filter_map(|version| write(*version, size));
    writes.collect()
}

/// Returns the write for one version; `None` if the member is too small to have it.
pub(crate) fn write(version: Version, size: Sectors) -> Option<Write> {
    let bytes = match version {
        Version::V0_90 => 4096,
        _ => 512,
    };
    Some(Write {
        offset: place_of(version, size)?.to_bytes(),
        bytes: vec![0; bytes],
    })
}
