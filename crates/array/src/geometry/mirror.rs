//! RAID 1: array sector `s` is sector `s` of every member's data area. One
//! member is a plain disk.

use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

/// An N-way mirror.
#[derive(Debug)]
pub(crate) struct Mirror {
    size: Sectors,
    copies: SlotSet,
}

impl Mirror {
    pub(crate) const fn new(size: Sectors, members: usize) -> Self {
        Self {
            size,
            copies: SlotSet::first(members),
        }
    }

    #[inline]
    pub(crate) const fn contiguous(&self, start: Sectors) -> Sectors {
        Sectors(self.size.0 - start.0)
    }

    #[inline]
    pub(crate) const fn copies(&self, _start: Sectors) -> SlotSet {
        self.copies
    }

    #[inline]
    pub(crate) const fn member_sector(&self, start: Sectors) -> Sectors {
        start
    }
}

#[cfg(test)]
mod tests {
    use super::Mirror;
    use raidlab_units::Sectors;

    #[test]
    fn every_member_holds_every_sector_at_the_same_place() {
        let mirror = Mirror::new(Sectors(1000), 3);
        assert_eq!(mirror.contiguous(Sectors(10)), Sectors(990));
        assert_eq!(mirror.copies(Sectors(10)).len(), 3);
        assert_eq!(mirror.member_sector(Sectors(10)), Sectors(10));
    }
}
