//! Arrays grow when they start, if all their members have more room than is used.
//!
//! Until the superblocks say so the array is what it was, so a crash may take the growth back; then
//! no write to what is new can have been acknowledged. What nobody has written there is undefined,
//! as in a new array, and what was there before is kept like ever.

use super::begin::disk_sectors;
use super::{Violation, World, violation};
use crate::driver::{Ready, Refusal};
use crate::script::Restart;
use raidlab_geometry::{Layout, SlotSet};

impl World<'_> {
    /// Whether the array is to grow at a start, as far as the seed says.
    pub(super) fn is_to_grow(&self, restart: Restart) -> bool {
        self.options.seldom.room.is_some() && (restart.seed >> 40).is_multiple_of(2)
    }

    /// The size that the array has come up with.
    pub(super) fn follow_size(&mut self, ready: &Ready) -> Result<(), Violation> {
        let assembly = &ready.assembly;
        let (used, size) = (assembly.array.used_size.0, assembly.size.0);
        if self.options.seldom.room.is_none() || used == self.reader.used {
            return Ok(());
        }
        let before = self.reader.size;
        let is_kept = self.oracle.resize(size);
        self.reader.resize(used, size);
        if size < before {
            self.did("growth taken back");
            return match is_kept || self.beyond {
                true => Ok(()),
                false => Err(violation(
                    "growth",
                    "what was written to a larger array is gone",
                )),
            };
        }
        self.did("growth");
        let resync = assembly.resync.as_ref();
        self.first_sync |= resync.is_some_and(|resync| resync.is_first);
        Ok(())
    }

    /// Sectors that a disk needs to be put in: the array may have grown since it was taken out.
    pub(super) fn least_sectors(&self) -> u64 {
        let first = disk_sectors(self.options, 0);
        match self.options.seldom.room {
            Some(room) => first - room / 8 * 8 + self.reader.used - self.options.used,
            None => 0,
        }
    }

    /// Comes up as it was where it cannot grow, which has to be right.
    pub(super) fn without_growth(
        &mut self,
        assembled: Result<Ready, Refusal>,
        present: &[usize],
    ) -> Result<Ready, Refusal> {
        let grows = std::mem::take(&mut self.grows);
        match assembled {
            Err(Refusal::CannotGrow) if grows && self.may_refuse_growth(present) => {
                self.did("growth refused");
                self.assemble(present, false, None)
            }
            assembled => assembled,
        }
    }

    /// Copies that lie far away lie elsewhere in a larger array; and every member has to be there
    /// and in sync, and none may be about to be replaced.
    fn may_refuse_growth(&self, present: &[usize]) -> bool {
        let is_far = match self.options.layout {
            Layout::Copies(copies) => copies.far > 1 && !copies.offset,
            _ => false,
        };
        let all = SlotSet::first(self.slots.len());
        let has_all = self.said().is_some_and(|said| said.current() == all);
        let is_there = |disk: &Option<usize>| disk.is_some_and(|disk| present.contains(&disk));
        let is_whole = has_all && self.slots.iter().all(is_there);
        is_far || !is_whole || present.len() > self.slots.len()
    }
}
