//! Split brain: both halves of an array run alone, each without the other's knowledge,
//! and then meet.
//!
//! The array is stopped cleanly. One half is assembled alone, written to and stopped; then the
//! other. Assembling all of them must be refused. With force one side is taken; from then on that
//! side's writes count, and the other disks are filled anew.
//!
//! On a mirror a former member then does the same: one is failed and removed, and another one is
//! filled in its place. The removed one runs alone on another machine, and meets the members that
//! recorded its removal, while its successor is away. That must be refused as well: its claims must
//! not be taken for those of its successor.

use super::{LONGEST_WAIT_NS, Violation, World, violation};
use crate::disk::Disk;
use crate::driver::Refusal;
use raidlab_array::Operation;
use raidlab_geometry::{Level, SlotSet};

impl World<'_> {
    pub(super) fn split(&mut self, halves: u64) -> Result<(), Violation> {
        if self.beyond || self.reader.redundancy() == 0 {
            return Ok(());
        }
        self.settle()?;
        if self.beyond {
            return Ok(());
        }
        let all: Vec<usize> = self.slots.iter().copied().flatten().collect();
        let first: Vec<usize> = part(&all, |slot| halves >> slot & 1 == 1);
        let second: Vec<usize> = part(&all, |slot| halves >> slot & 1 == 0);
        self.stop_cleanly()?;
        self.forget_and_keep();
        if !self.enough(&first, &all) || !self.enough(&second, &all) {
            return self.whole(&all);
        }
        self.did("split brain");
        let before = self.oracle.clone();
        self.run_half(&first)?;
        let after_first = std::mem::replace(&mut self.oracle, before);
        self.run_half(&second)?;
        match self.assemble(&all, false, None) {
            Err(Refusal::SplitBrain) => {}
            Err(other) => {
                return Err(violation("split brain", format!("refused for {other:?}")));
            }
            Ok(_) => return Err(violation("split brain", "both halves are taken together")),
        }
        let forced = self.assemble(&all, true, None);
        let forced = forced.map_err(|refusal| {
            violation("split brain", format!("refused with force: {refusal:?}"))
        })?;
        if forced.in_service.iter().any(|disk| first.contains(disk)) {
            self.oracle = after_first;
        }
        self.oracle.power_cut();
        self.take(forced)?;
        self.settle()?;
        match self.options.level {
            Level::Raid1 => self.meet_former((halves >> 8) as usize % self.slots.len()),
            _ => Ok(()),
        }
    }

    /// Replaces the member of this slot by a new disk, runs the old one alone and brings it back.
    fn meet_former(&mut self, slot: usize) -> Result<(), Violation> {
        let Some(former) = self.slots[slot].filter(|_| !self.beyond) else {
            return Ok(());
        };
        self.administer_fail(slot)?;
        self.quiet("a failure", LONGEST_WAIT_NS)?;
        self.mend(true, true)?;
        self.mend_and_sync()?;
        if !self.retired.contains(&(slot, former)) {
            return Ok(());
        }
        self.write_some()?;
        self.stop_cleanly()?;
        self.forget_and_keep();
        self.did("former member alone");
        let before = self.oracle.clone();
        self.run_half(&[former])?;
        self.oracle = before;
        let all: Vec<usize> = self.slots.iter().copied().flatten().collect();
        let mut met = part(&all, |its| its != slot);
        met.push(former);
        match self.assemble(&met, false, None) {
            Err(Refusal::SplitBrain) => {}
            other => {
                let what = other.map(|ready| ready.in_service);
                let detail = format!("a former member that ran alone is taken: {what:?}");
                return Err(violation("split brain", detail));
            }
        }
        // The disk's owner erases it.
        let sectors = self.disks[former].sectors();
        self.disks[former] = Disk::new(sectors, self.options.write_through);
        self.retired.retain(|(_, disk)| *disk != former);
        self.whole(&all)?;
        self.settle()
    }

    /// Whether these members alone hold all data.
    fn enough(&self, half: &[usize], all: &[usize]) -> bool {
        let lost: SlotSet = all
            .iter()
            .enumerate()
            .filter(|(_, disk)| !half.contains(disk))
            .map(|(slot, _)| crate::reader::slot_of(slot))
            .collect();
        let images = self.images();
        !half.is_empty()
            && (0..self.reader.size)
                .step_by(self.options.chunk as usize)
                .all(|sector| self.reader.read(&images, lost, sector).is_some())
    }

    /// Assembles the whole array again after halves of it were not enough.
    fn whole(&mut self, all: &[usize]) -> Result<(), Violation> {
        let assembled = self.assemble(all, false, None);
        let assembled = assembled
            .map_err(|refusal| violation("assembly", format!("after a stop: {refusal:?}")))?;
        self.oracle.power_cut();
        self.take(assembled)
    }

    /// Runs a half alone, with some writes.
    fn run_half(&mut self, half: &[usize]) -> Result<(), Violation> {
        let (slots, handles, retired) = (
            self.slots.clone(),
            self.handles.clone(),
            self.retired.clone(),
        );
        let assembled = self.assemble(half, false, None);
        let assembled = assembled
            .map_err(|refusal| violation("split brain", format!("half {half:?}: {refusal:?}")))?;
        self.take(assembled)?;
        self.write_some()?;
        self.stop_cleanly()?;
        self.forget_and_keep();
        (self.slots, self.handles, self.retired) = (slots, handles, retired);
        Ok(())
    }

    /// Writes new bytes at three places, durable on return.
    fn write_some(&mut self) -> Result<(), Violation> {
        let size = self.reader.size;
        for start in [0, size / 2, size - 1] {
            self.ask(Operation::Write, start, 1, true)?;
        }
        self.drain()
    }

    /// Ends the core; the disks keep everything, also in their caches.
    fn forget_and_keep(&mut self) {
        self.lose_power(0);
        self.oracle.power_cut();
    }
}

fn part(all: &[usize], in_half: impl Fn(usize) -> bool) -> Vec<usize> {
    let members = all.iter().enumerate();
    members
        .filter(|(slot, _)| in_half(*slot))
        .map(|(_, disk)| *disk)
        .collect()
}
