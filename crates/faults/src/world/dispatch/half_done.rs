//! Commands that fail although the disk has carried them out in part.
//!
//! Any sectors of such a write may be on the disk. With such a flush the disk may have lost the
//! writes that it was to make durable. That case is left out where the array may keep the disk, or
//! learns of the error later: it would be right to read what is left.

use super::{Flight, World};
use crate::disk::Tear;
use crate::pages::SECTOR;
use raidlab_random::Stream;
use raidlab_serve::member::Transfer;

impl World<'_> {
    /// Returns whether a disk fails this command with a transient error.
    pub(super) fn fails_once(&mut self, number: usize, flight: &Flight) -> bool {
        let Some(left) = self.standing[number].transient.checked_sub(1) else {
            return false;
        };
        self.standing[number].transient = left;
        let random = Stream::new(flight.sent).fork("half done", number as u64);
        let does_nothing = random.fork("nothing", 0).percent(50);
        let mut tear = Tear::new(self.options.medium, self.options.tear, random);
        let may_lose = !self.options.over_budget && self.options.driver.turn_ns == 0;
        let disk = &mut self.disks[number];
        match (&flight.job.transfer, &flight.bytes) {
            _ if does_nothing => {}
            (Transfer::Flush, _) if may_lose => disk.power_cut(Vec::new(), |_, write| {
                tear.draw(write.start, write.sectors())
            }),
            (
                Transfer::Write {
                    force_unit_access, ..
                },
                Some(bytes),
            ) => {
                let landing = tear.draw(flight.start, (bytes.len() / SECTOR) as u64);
                let sectors = (flight.start..).zip(bytes.chunks_exact(SECTOR));
                for (index, (start, sector)) in sectors.enumerate() {
                    if landing.has(index) {
                        disk.write(start, sector.into(), *force_unit_access);
                    }
                }
            }
            _ => {}
        }
        true
    }
}
