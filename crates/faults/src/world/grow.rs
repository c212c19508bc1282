//! Growth of arrays at a start, if all their members have more room than is used.
//!
//! Until the superblocks record it the array has its old size, so a crash may undo the growth; then
//! no write to the new part can have been acknowledged. Unwritten sectors of the new part are
//! undefined, as in a new array, and the old part is kept as always.

use super::begin::disk_sectors;
use super::{Violation, World, violation};
use crate::driver::{Ready, Refusal};
use crate::script::Restart;
use raidlab_geometry::{Layout, SlotSet};

impl World<'_> {
    /// Whether the array is to grow at a start, by its seed.
    pub(super) fn is_to_grow(&self, restart: Restart) -> bool {
        self.options.seldom.room.is_some() && (restart.seed >> 40).is_multiple_of(2)
    }

    /// Checks and adopts the size with which the array has started.
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

    /// Returns the sectors that a disk needs to be added: the array may have grown since
    /// it was removed.
    pub(super) fn least_sectors(&self) -> u64 {
        let first = disk_sectors(self.options, 0);
        match self.options.seldom.room {
            Some(room) => first - room / 8 * 8 + self.reader.used - self.options.used,
            None => 0,
        }
    }

    /// Starts the array with its old size where it cannot grow, which has to be right.
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

    /// Whether growth may be refused: far copies would have other places in a larger array, and
    /// every member has to be present and in sync, and none may be about to be replaced.
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
