//! A pass that only sets bits: the one that writes wait for.
//!
//! Nothing in it says of one member what another has to make true first, so each
//! member flushes and gets its pages by itself, and none waits for another's flush,
//! as md has it (Linux drivers/md/md.c, `md_super_write`: every page is a write with
//! PREFLUSH and FUA to each member). What is set later goes with the next
//! pass; with md what is set in the same moment may go with this one.

use super::{Pass, Phase};
use crate::persistent::PersistentArray;
use crate::persistent::device::Place;
use crate::persistent::intent::PAGE_SECTORS;
use crate::request::{Operation, Outputs, Slot};
use raidlab_metadata::PAGE_BYTES;
use raidlab_units::Sectors;
use std::collections::BTreeSet;

impl Pass {
    /// Runs of pages, the first of each with its bytes, as far as the bitmap goes.
    fn add_bits(&mut self, runs: Vec<(usize, Vec<u8>)>, end: usize) {
        for (page, mut bytes) in runs {
            bytes.truncate(end.saturating_sub(page * PAGE_BYTES));
            let skip = Sectors(page as u64 * PAGE_SECTORS);
            self.bits.push((skip, bytes));
        }
    }
}

impl PersistentArray {
    /// More pages go with a pass that has begun in this moment.
    pub(in crate::persistent) fn add_bits(&mut self, pages: &BTreeSet<usize>) {
        if let (Some(pass), Some(intent)) = (&mut self.pass, &mut self.intent) {
            let runs = intent.take_also(pages);
            pass.add_bits(runs, intent.end_bytes());
        }
    }

    /// Begins it: all members are flushed.
    pub(super) fn send_bits(&mut self, out: &mut Outputs) {
        let events = self.array.events;
        let (Some(pass), Some(intent)) = (&mut self.pass, &mut self.intent) else {
            return;
        };
        let end = intent.end_bytes();
        pass.phase = Phase::Bits;
        let own = self.bit_passes.next().and_then(|id| self.tracked.get(&id));
        let pages = match own {
            Some(write) => intent.take_pages_of(write.chunks.clone(), events),
            None => intent.take_pages(false, events),
        };
        pass.add_bits(pages, end);
        for handle in self.targets() {
            if self.bitmap_start(handle).is_some() {
                if let Some(pass) = &mut self.pass {
                    pass.flushing.insert(handle);
                }
                self.send(handle, Operation::Flush, Sectors::ZERO, None, out);
            }
        }
    }

    /// A member was flushed, or has answered to something else.
    pub(super) fn send_bits_to(&mut self, handle: Slot, out: &mut Outputs) {
        let Some(pass) = &mut self.pass else { return };
        if !pass.flushing.remove(&handle) {
            return;
        }
        let pages = pass.bits.clone();
        let Some(start) = self.bitmap_start(handle) else {
            return;
        };
        for (skip, bytes) in pages {
            self.send(handle, Operation::Write, start + skip, Some(bytes), out);
        }
    }

    /// Where a member that holds data keeps its bitmap.
    fn bitmap_start(&self, handle: Slot) -> Option<Sectors> {
        let device = self.devices.get(&handle)?;
        let holds_data = !matches!(device.place, Place::Spare | Place::Faulty);
        device
            .beside(device.own.bitmap_offset)
            .filter(|_| holds_data)
    }
}
