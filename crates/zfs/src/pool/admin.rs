//! The administrator's commands to a pool.

use super::Pool;
use super::io::LeafState;
use crate::leaf_queue::LeafQueue;
use raidlab_array::{AdminError, Event, Outputs, Slot};
use raidlab_units::Nanos;

impl Pool {
    /// Fails a disk (`zpool offline -f`, or it has died). Its queued I/Os go elsewhere.
    ///
    /// # Errors
    /// A slot without a working disk, or the last one in sync.
    pub fn fail(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        match self.state(slot)? {
            LeafState::Missing => Err(AdminError::Empty(slot)),
            LeafState::Faulty => Err(AdminError::AlreadyFaulty(slot)),
            LeafState::InSync if self.readable_leaves() == 1 => Err(AdminError::LastInSync(slot)),
            LeafState::InSync | LeafState::Resilvering => {
                self.fail_leaf(now, slot, out);
                self.issue(out);
                Ok(())
            }
        }
    }

    /// Removes a disk from the mirror (`zpool detach`); a working one is failed first.
    ///
    /// # Errors
    /// An empty slot, or the last disk in sync.
    pub fn remove(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        match self.fail(now, slot, out) {
            Ok(()) | Err(AdminError::AlreadyFaulty(_)) => {}
            Err(error) => return Err(error),
        }
        self.leaves[slot.index()].state = LeafState::Missing;
        out.events.push(Event::MemberRemoved(slot));
        Ok(())
    }

    /// Adds a blank disk of the configured kind to an empty slot (`zpool attach`), which is then
    /// resilvered. A resilver that is running starts again from the front, for both disks.
    ///
    /// # Errors
    /// A slot that is not empty.
    pub fn add(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        if self.state(slot)? != LeafState::Missing {
            return Err(AdminError::Occupied(slot));
        }
        let leaf = &mut self.leaves[slot.index()];
        leaf.state = LeafState::Resilvering;
        leaf.queue = LeafQueue::new(self.config.queue.of(&self.config.members[slot.index()]));
        leaf.epoch = leaf.epoch.wrapping_add(1);
        self.selection.member_added(slot);
        out.events.push(Event::MemberAdded(slot));
        self.start_scan(out);
        self.start_sync_if_due(now, out);
        self.issue(out);
        Ok(())
    }

    fn state(&self, slot: Slot) -> Result<LeafState, AdminError> {
        let leaf = self.leaves.get(slot.index());
        leaf.map(|leaf| leaf.state)
            .ok_or(AdminError::NoSuchSlot(slot))
    }

    fn readable_leaves(&self) -> usize {
        self.leaves.iter().filter(|leaf| leaf.is_readable()).count()
    }

    /// Takes a disk out of service; also the last one, if it reports itself that it is gone:
    /// then reads fail.
    pub(super) fn fail_leaf(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) {
        let leaf = &mut self.leaves[slot.index()];
        leaf.state = LeafState::Faulty;
        leaf.epoch = leaf.epoch.wrapping_add(1);
        let waiting = leaf.queue.drain();
        out.events.push(Event::MemberFailed(slot));
        for owner in waiting {
            self.owner_done(now, owner, false, out);
        }
        let resilvering = |leaf: &super::io::Leaf| leaf.state == LeafState::Resilvering;
        if self.scan.is_running() && !self.leaves.iter().any(resilvering) {
            self.abort_scan(now, out);
        }
    }
}
