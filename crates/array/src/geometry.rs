//! Where array sectors lie on members.
//!
//! Each level answers the same questions: how far a range stays on the same
//! members, which members hold it, and at which member sector.

mod mirror;

pub(crate) use mirror::Mirror;

use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

/// A level's mapping.
#[derive(Debug)]
pub(crate) enum Geometry {
    /// Every member holds everything.
    Mirror(Mirror),
}

impl Geometry {
    /// Array sectors from `start` to where the mapping changes.
    #[inline]
    pub(crate) const fn contiguous(&self, start: Sectors) -> Sectors {
        match self {
            Self::Mirror(mirror) => mirror.contiguous(start),
        }
    }

    /// The slots that hold a copy of the array sector.
    #[inline]
    pub(crate) const fn copies(&self, start: Sectors) -> SlotSet {
        match self {
            Self::Mirror(mirror) => mirror.copies(start),
        }
    }

    /// The sector within a member's data area.
    #[inline]
    pub(crate) const fn member_sector(&self, start: Sectors) -> Sectors {
        match self {
            Self::Mirror(mirror) => mirror.member_sector(start),
        }
    }
}
