//! What the administrator does.

use super::super::ALL;
use super::super::disks::{Disk, index};
use super::{RUBBISH, Shelved, World, member_config};
use crate::admission::Admission;
use crate::engine::Engine;
use crate::engine::SyncAction;
use crate::member::MemberState;
use crate::request::Slot;
use raidlab_units::{Sectors, Span};

impl World {
    pub(super) fn record_failure(&mut self) {
        if let Some(slot) = self.unrecorded.pop() {
            self.unrecorded.retain(|other| *other != slot);
            self.array.failure_recorded(self.now, slot, &mut self.out);
        }
    }

    pub(super) fn fail_or_remove(&mut self) {
        let slot = Slot(u16::try_from(self.random.below(self.slots.len() as u64)).expect("few"));
        if !self.faults || self.spared.contains(slot) {
            return;
        }
        if let Some(disk) = self.slots[slot.index()] {
            self.disks[disk].blamed = true;
        }
        // Refusals (empty, failed before, needed) leave all unchanged.
        let refused = if self.random.percent(50) {
            self.array.fail(self.now, slot, &mut self.out).is_err()
        } else {
            self.array.remove(self.now, slot, &mut self.out).is_err()
        };
        assert!(!refused || self.out.events.is_empty());
    }

    /// Puts a disk into an empty or failed slot: a new one, full of rubbish, or
    /// the one that was there, with what was written since to be copied.
    pub(super) fn add(&mut self) {
        for slot in (0..).map(Slot).take(self.slots.len()) {
            let state = self.array.members.states().nth(slot.index());
            if state == Some(MemberState::Faulty) {
                let removed = self.array.remove(self.now, slot, &mut self.out);
                removed.expect("a failed member can be removed");
            }
            if matches!(state, Some(MemberState::Faulty | MemberState::Missing)) {
                self.take_outputs();
                let (mut disk, admission) = self.disk_to_add(slot);
                let mut config = member_config(&self.map, slot, self.plan.remembers_bad_blocks);
                if let Some(log) = &mut config.bad_blocks {
                    log.extend(self.lose_some(&mut disk));
                }
                self.disks.push(disk);
                self.slots[slot.index()] = Some(self.disks.len() - 1);
                self.array
                    .add(self.now, slot, config, admission, &mut self.out)
                    .expect("the slot is empty");
                return;
            }
        }
    }

    fn disk_to_add(&mut self, slot: Slot) -> (Disk, Admission) {
        let shelved = self.shelf[slot.index()].take();
        if let Some(Shelved { content, stale }) = shelved
            && self.random.percent(70)
        {
            let ranges = stale.iter().map(|&sector| Span::new(sector, sector + 1));
            return (Disk::new(content), Admission::Ranges(ranges.collect()));
        }
        let rubbish = RUBBISH + self.disks.len() as u64;
        let content = vec![rubbish; index(self.map.member_used(slot).0)];
        (Disk::new(content), ALL)
    }

    /// Some disks have lost a range, and their bad-block logs name it.
    fn lose_some(&mut self, disk: &mut Disk) -> Option<Span> {
        let size = disk.content.len() as u64;
        if size == 0 || self.random.percent(50) {
            return None;
        }
        let start = self.random.below(size);
        let end = (start + 1 + self.random.below(12)).min(size);
        disk.content[index(start)..index(end)].fill(RUBBISH);
        Some(Span::new(start, end))
    }

    pub(super) fn start_or_stop_sync(&mut self) {
        if self.array.sync_status().is_some() && self.random.percent(50) {
            self.array.stop_sync(self.now, &mut self.out);
            return;
        }
        let action = match self.random.below(3) {
            0 => SyncAction::Resync,
            1 => SyncAction::Check,
            _ => SyncAction::Repair,
        };
        let start = self.random.below(self.map.array_size().0);
        let ranges = vec![Span::between(
            Sectors(start),
            Sectors(start + 20).min(self.map.array_size()),
        )];
        // Ranges say that the rest is clean.
        let part = self.random.percent(50) && !(self.plan.dirty && action == SyncAction::Resync);
        let ranges = part.then_some(ranges);
        if self.sync(action, ranges).is_err() {
            assert!(self.array.sync_status().is_some());
        }
    }
}
