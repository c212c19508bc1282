//! Corruption without an error: flipped bits, lost and misdirected writes.
//!
//! RAID without checksums does not promise to read right bytes then; it promises that a check
//! *finds* it. So this comes only when everything is settled, nothing is in flight, and no read
//! comes before the check. The check must report a mismatch at the place (at both places of a
//! misdirected write) and none anywhere else. Then the overlays are lifted, which restores the
//! pristine bytes, and a second check must find nothing.

use super::{LONGEST_WAIT_NS, Violation, World, violation};
use crate::disk::Overlay;
use crate::pages::SECTOR;
use crate::script::Silent;
use raidlab_array::SyncAction;

/// The most sectors that a check compares at once.
const LONGEST_WINDOW: u64 = 1024;

impl World<'_> {
    pub(super) fn silent(
        &mut self,
        member: usize,
        sector: u64,
        kind: Silent,
    ) -> Result<(), Violation> {
        if self.reader.redundancy() == 0 || self.beyond {
            return Ok(());
        }
        self.settle()?;
        if self.beyond {
            return Ok(());
        }
        let Some(places) = self.corrupt(member, sector, kind) else {
            return Ok(());
        };
        self.did(match kind {
            Silent::Rot => "bit rot",
            Silent::LostWrite => "lost write",
            Silent::Misdirected(_) => "misdirected write",
        });
        self.mismatches.clear();
        // All is settled, so no other sync runs.
        let _started = self.call(|driver, now| driver.start_sync(now, SyncAction::Check))?;
        self.quiet("check", LONGEST_WAIT_NS)?;
        self.compare_findings(member, &places)?;
        for disk in self.slots.iter().flatten() {
            self.disks[*disk].heal();
        }
        self.check_finds(0..0)
    }

    /// Adds the overlays; returns the sectors of the data area that are wrong now, or `None` if the
    /// disk would have had the same bytes.
    fn corrupt(&mut self, member: usize, sector: u64, kind: Silent) -> Option<Vec<u64>> {
        let number = self.slots[member]?;
        let (offset, _) = self.reader.areas[member];
        let wrong = |disks: &mut Vec<crate::disk::Disk>, sector: u64, bytes: [u8; SECTOR]| {
            let disk = &mut disks[number];
            if *disk.pristine().sector(offset + sector) == bytes
                || self.reader.position(member, sector).is_none()
            {
                return false;
            }
            disk.afflict(offset + sector, Overlay::Wrong(Box::new(bytes)));
            true
        };
        let disks = &mut self.disks;
        let own = *disks[number].pristine().sector(offset + sector);
        let mut places = Vec::new();
        match kind {
            Silent::Rot => {
                let mut bytes = own;
                bytes[(sector % 512) as usize] ^= 1 << (sector % 8);
                if wrong(disks, sector, bytes) {
                    places.push(sector);
                }
            }
            // The bytes from before the last write: zeros, as on a new disk.
            Silent::LostWrite => {
                if wrong(disks, sector, [0; SECTOR]) {
                    places.push(sector);
                }
            }
            Silent::Misdirected(other) => {
                if other != sector && wrong(disks, sector, [0; SECTOR]) {
                    places.push(sector);
                }
                if other != sector && wrong(disks, other, own) {
                    places.push(other);
                }
            }
        }
        (!places.is_empty()).then_some(places)
    }

    /// Checks that each place is in a mismatch, and each mismatch has a place. A mismatch names the
    /// start of the range that was compared at once, and how many sectors of it differ.
    fn compare_findings(&self, member: usize, places: &[u64]) -> Result<(), Violation> {
        let positions: Vec<u64> = places
            .iter()
            .filter_map(|sector| self.reader.position(member, *sector))
            .collect();
        let covers = |(start, count): &(u64, u64), position: &u64| {
            *start <= *position && *position < start + count.max(&LONGEST_WINDOW)
        };
        for position in &positions {
            if !self
                .mismatches
                .iter()
                .any(|mismatch| covers(mismatch, position))
            {
                let detail = format!("corruption at {position} of member {member} is not found");
                return Err(violation("check", detail));
            }
        }
        for mismatch in &self.mismatches {
            if !positions.iter().any(|position| covers(mismatch, position)) {
                let detail = format!("{mismatch:?} is reported, where nothing was corrupted");
                return Err(violation("check", detail));
            }
        }
        Ok(())
    }
}
