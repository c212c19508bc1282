//! Emptying the ring of a member that is added, before any other write.

use super::super::StripeArray;
use super::super::flow::{Role, Transfer};
use super::{WIPE, Wipe};
use crate::request::{
    BufferId, ComputeStep, MemberError, Operation, Outputs, Purpose, ScratchId, Slot,
};
use raidlab_units::Sectors;

impl StripeArray {
    /// Empties the ring of a member that was added.
    pub(in super::super) fn wipe_log(&mut self, slot: Slot, out: &mut Outputs) {
        if self.log.is_none() {
            return;
        }
        let scratch = self.allocate(Sectors(WIPE), out);
        out.steps.push(ComputeStep::Zero {
            to: BufferId::Scratch {
                scratch,
                skip: Sectors::ZERO,
            },
            count: Sectors(WIPE),
        });
        let wipe = Wipe {
            slot,
            dead: false,
            next: 0,
        };
        if let Some(log) = &mut self.log {
            log.wipes.insert(scratch, wipe);
        }
        self.wipe_more(scratch, out);
    }

    fn wipe_more(&mut self, scratch: ScratchId, out: &mut Outputs) {
        let Some(log) = &mut self.log else {
            return;
        };
        let Some(wipe) = log.wipes.get_mut(&scratch) else {
            return;
        };
        let slot = wipe.slot;
        let ring = log.rings.get(slot.index()).and_then(Option::as_ref);
        let area = ring.filter(|_| !wipe.dead).map(|ring| ring.area);
        let left = area.map_or(0, |area| area.end.0 - area.start.0 - wipe.next);
        let Some(area) = area.filter(|_| left > 0) else {
            log.wipes.remove(&scratch);
            self.release(scratch, out);
            return;
        };
        let transfer = Transfer {
            operation: Operation::Write,
            start: area.start.0 + wipe.next,
            count: left.min(WIPE),
            buffer: BufferId::Scratch {
                scratch,
                skip: Sectors::ZERO,
            },
            purpose: Purpose::Metadata,
            force_unit_access: true,
        };
        wipe.next += transfer.count;
        self.issue(slot, Role::Wipe(scratch), transfer, out);
    }

    pub(in super::super) fn wipe_done(
        &mut self,
        slot: Slot,
        scratch: ScratchId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        let wipes = self.log.as_ref().map(|log| &log.wipes);
        let dead = wipes.is_none_or(|wipes| wipes.get(&scratch).is_none_or(|wipe| wipe.dead));
        if result.is_err() && !dead {
            self.lose_member(slot, out);
        }
        self.wipe_more(scratch, out);
    }
}
