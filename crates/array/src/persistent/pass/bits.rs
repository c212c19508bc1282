//! A pass that only sets bits: the one that writes wait for.
//!
//! No claim about one member in it depends on another one's flush, so each member flushes and gets
//! its pages by itself, and none waits for another's flush, as md has it (Linux drivers/md/md.c,
//! `md_super_write`: every page is a write with PREFLUSH and FUA to each member). Bits that are set
//! later go with the next pass; with md those set in the same moment may go with this one.

use super::{Phase, Placed};
use crate::persistent::PersistentArray;
use crate::persistent::device::Place;
use crate::persistent::intent::PAGE_SECTORS;
use crate::request::{Outputs, Slot};
use raidlab_metadata::PAGE_BYTES;
use raidlab_units::Sectors;
use std::collections::BTreeSet;

/// Returns runs of pages as far as the bitmap goes, by their distance from its beginning.
fn placed(runs: Vec<(usize, Vec<u8>)>, end: usize) -> Vec<Placed> {
    let runs = runs.into_iter().map(|(page, mut bytes)| {
        bytes.truncate(end.saturating_sub(page * PAGE_BYTES));
        (Sectors(page as u64 * PAGE_SECTORS), bytes)
    });
    runs.collect()
}

/// Returns the pages at their places on a member whose bitmap begins at `start`.
fn placed_from(start: Sectors, pages: &[Placed]) -> Vec<Placed> {
    let pages = pages.iter();
    pages
        .map(|(skip, bytes)| (start + *skip, bytes.clone()))
        .collect()
}

impl PersistentArray {
    /// Adds pages to a pass that has begun in this moment.
    pub(in crate::persistent) fn add_bits(&mut self, pages: &BTreeSet<usize>) {
        let Some(intent) = &mut self.intent else {
            return;
        };
        let pages = placed(intent.take_also(pages), intent.end_bytes());
        let pass = self.pass.iter();
        let flushing: Vec<Slot> = pass
            .flat_map(|pass| pass.behind_flush.keys())
            .copied()
            .collect();
        for handle in flushing {
            let start = self.bitmap_start(handle);
            if let (Some(start), Some(pass)) = (start, &mut self.pass) {
                let behind = pass.behind_flush.entry(handle).or_default();
                behind.extend(placed_from(start, &pages));
            }
        }
    }

    /// Begins the pass: all members are flushed.
    pub(super) fn send_bits(&mut self, out: &mut Outputs) {
        let events = self.array.events;
        let (Some(pass), Some(intent)) = (&mut self.pass, &mut self.intent) else {
            return;
        };
        pass.phase = Phase::Bits;
        let own = self.bit_passes.next().and_then(|id| self.tracked.get(&id));
        let pages = match own {
            Some(write) => intent.take_pages_of(write.chunks.clone(), events),
            None => intent.take_pages(false, events),
        };
        let pages = placed(pages, intent.end_bytes());
        for handle in self.targets() {
            if let Some(start) = self.bitmap_start(handle) {
                self.send_with_flush(handle, placed_from(start, &pages), out);
            }
        }
    }

    /// Returns the place of the bitmap on a member that holds data.
    fn bitmap_start(&self, handle: Slot) -> Option<Sectors> {
        let device = self.devices.get(&handle)?;
        let holds_data = !matches!(device.place, Place::Spare | Place::Faulty);
        device
            .beside(device.own.bitmap_offset)
            .filter(|_| holds_data)
    }
}
