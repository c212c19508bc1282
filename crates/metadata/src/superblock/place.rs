//! The places of superblocks on a member.

use super::Version;
use raidlab_units::Sectors;

/// Sectors that version 0.90 keeps free at a member's end.
const RESERVED_0_90: u64 = 128;
/// The smallest member that md takes, in sectors (mdadm, super1.c).
pub(crate) const SMALLEST_MEMBER: Sectors = Sectors(24);

/// Returns the sector of a superblock of this version on a member of `size` sectors; `None` if
/// the member is too small. 1.0 lies at least 8 KiB and less than 12 KiB before the end
/// (super1.c of mdadm 4.2), 0.90 at the start of the last whole 64 KiB but one
/// (`MD_NEW_SIZE_SECTORS` of md_p.h).
#[must_use]
pub const fn place_of(version: Version, size: Sectors) -> Option<Sectors> {
    let Sectors(size) = size;
    if size < SMALLEST_MEMBER.0 {
        return None;
    }
    match version {
        Version::V0_90 if size < RESERVED_0_90 => None,
        Version::V0_90 => Some(Sectors((size & !(RESERVED_0_90 - 1)) - RESERVED_0_90)),
        Version::V1_0 => Some(Sectors((size - 16) & !7)),
        Version::V1_1 => Some(Sectors(0)),
        Version::V1_2 => Some(Sectors(8)),
    }
}

impl Version {
    /// All versions in the order in which members are probed.
    pub const PROBED: [Self; 4] = [Self::V1_2, Self::V1_1, Self::V1_0, Self::V0_90];

    /// Returns the version as mdadm writes it: `1.2`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::V0_90 => "0.90",
            Self::V1_0 => "1.0",
            Self::V1_1 => "1.1",
            Self::V1_2 => "1.2",
        }
    }
}
