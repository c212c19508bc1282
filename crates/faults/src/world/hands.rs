//! Slots that change hands, as a member that has not failed is replaced by another disk; and
//! members that come into sync or leave it.

use super::{Violation, World};
use crate::inspect;
use crate::reader::slot_of;
use crate::script::Moment;
use raidlab_array::{Operation, Purpose};
use raidlab_geometry::{Slot, SlotSet};

impl World<'_> {
    /// Follows changes of the disks that serve the slots.
    pub(super) fn follow_slots(&mut self) {
        let Some(driver) = &self.driver else {
            return;
        };
        let disk = |handle: Option<usize>| self.handles.get(handle?).copied().flatten();
        let slots: Vec<Option<usize>> = driver.served().into_iter().map(disk).collect();
        for (slot, (old, new)) in self.slots.iter().zip(&slots).enumerate() {
            if old != new {
                let lived = old.is_some_and(|old| !self.standing[old].failed);
                let slot = slot_of(slot);
                self.handed_over = match lived && new.is_some() {
                    true => self.handed_over.with(slot),
                    false => self.handed_over.without(slot),
                };
            }
        }
        self.slots = slots;
    }

    /// Returns slots that another disk has taken over from a member that had not failed, where a
    /// crash must not lose the slot, whichever of the superblocks that record it have landed. Slots
    /// are left out where the new disk's superblock names bad blocks: sectors that the old one
    /// could not read may still have to be computed from the others.
    pub(super) fn safely_handed_over(&self) -> SlotSet {
        let is_sound = |disk: usize| {
            let pages = self.disks[disk].pristine();
            self.is_alive(disk) && !inspect::has_bad_blocks(pages, self.options.version)
        };
        let slots = self.handed_over.iter();
        slots
            .filter(|slot| self.slots[slot.index()].is_some_and(is_sound))
            .collect()
    }

    /// Records which members are in sync, and whether errors are over.
    pub(super) fn follow_members(&mut self) {
        if self.standing.iter().any(|it| it.erring) {
            self.look_at_errors();
        }
        if self.options.over_budget {
            self.follow_records();
        }
    }

    /// Records until when members have what the array has, whatever happens to the power: what
    /// filled a disk may be in its cache until a superblock says that it is in sync.
    fn follow_records(&mut self) {
        let in_sync = self.in_sync();
        let serving: Vec<(Slot, usize)> = in_sync
            .iter()
            .filter_map(|slot| Some((slot, self.slots[slot.index()]?)))
            .collect();
        for (disk, standing) in self.standing.iter_mut().enumerate() {
            standing.is_recorded &= serving.iter().any(|(_, its)| *its == disk);
        }
        let is_new = |(_, disk): &(Slot, usize)| !self.standing[*disk].is_recorded;
        let said = serving.iter().any(is_new).then(|| self.said()).flatten();
        let current = said.map_or(SlotSet::EMPTY, |said| said.current());
        for (slot, disk) in serving {
            let standing = &mut self.standing[disk];
            standing.is_recorded |= current.contains(slot);
            if standing.is_recorded {
                standing.in_sync_until = self.oracle.now();
            }
        }
    }

    /// Lets time pass until the moment has come, at most for `most_ns` nanoseconds.
    pub(super) fn await_moment(&mut self, moment: Moment, most_ns: u64) -> Result<(), Violation> {
        let deadline = self.now + most_ns;
        let (slots, order) = (self.slots.clone(), self.order);
        let version = self.options.version;
        let has_come = |world: &Self| match moment {
            Moment::Handover => world.slots != slots,
            Moment::Superblocks => world.flights.values().any(|flight| {
                let sectors = flight.disk.map_or(0, |disk| world.disks[disk].sectors());
                let command = &flight.command;
                flight.sent > order
                    && command.purpose == Purpose::Metadata
                    && command.operation == Operation::Write
                    && command.start.0 == inspect::superblock_sector(sectors, version)
            }),
        };
        while !has_come(self) && self.next_event().is_some_and(|time| time <= deadline) {
            self.step_event()?;
        }
        Ok(())
    }
}
