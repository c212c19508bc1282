//! The addition of a member to an array that keeps a log.
//!
//! Earlier records do not include it: they name the member that had the slot then, and the new one
//! has none of them. If they counted after a crash, the newest would lack a participant's record
//! and be passed over, and older ones would be written over its data. So no earlier record may
//! count once the new member does. While it *arrives*, no batch begins; the earlier transactions
//! are written in place and flushed, until all are retired; then a batch of *marks*, one record in
//! each of the other rings, declares that nothing older counts *in any ring*; and when they are
//! durable the ring of the new member is emptied. A crash before the first mark is durable finds
//! all as it was; one after it finds no earlier record that counts, whichever rings have their
//! marks. Only when the ring is empty do batches and the recovery begin.
//!
//! A mark is a record without extents that names several participants.

use super::super::StripeArray;
use super::super::config::BLOCK;
use super::super::flow::{Role, Transfer};
use super::record::Header;
use super::{Batch, Log, Mutation, Placed, WIPE, Wipe, mutated};
use crate::request::{ComputeStep, Operation, Outputs, Purpose, ScratchId, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

impl Log {
    /// Begins the arrival of a member that was added to a slot.
    pub(in super::super) fn arrives(&mut self, slot: Slot) {
        self.arrivals = self.arrivals.with(slot);
    }

    /// Whether members arrive, or their rings are being emptied.
    pub(in super::super) fn is_admitting(&self) -> bool {
        !self.arrivals.is_empty() || self.wipes.values().any(|wipe| !wipe.dead)
    }

    /// Returns a mark for the ring of each member in service except those that arrive; `None` if
    /// there is no room now.
    fn marks(&mut self, service: SlotSet) -> Option<Vec<Placed>> {
        // Everything is retired, but the newest batch may not be marked so.
        self.retire(&[]);
        let transaction = self.next_transaction;
        let others = service - self.arrivals;
        let mut participants = self.arrivals;
        let mut places = Vec::new();
        for (slot, ring) in self
            .rings
            .iter()
            .filter(|(slot, _)| others.contains(**slot))
        {
            participants = participants.with(*slot);
            places.push((*slot, ring.find_announcement()?));
        }
        self.next_transaction += 1;
        let mut marks = Vec::new();
        for (slot, at) in places {
            let batch = self.next_batch;
            if let Some(ring) = self.rings.get_mut(&slot) {
                ring.take(transaction, batch, at, BLOCK);
            }
            let header = Header {
                session: self.session,
                batch,
                transaction,
                oldest: transaction,
                position: at,
                slot,
                participants,
                window: (0, 0),
                extents: Vec::new(),
                checksums: Vec::new(),
            };
            marks.push(Placed {
                slot,
                at,
                items: Vec::new(),
                header,
            });
        }
        Some(marks)
    }
}

impl StripeArray {
    /// Continues the arrival of members, while no batch is in flight; returns true if there was
    /// anything to do.
    pub(super) fn pump_arrivals(&mut self, out: &mut Outputs) -> bool {
        let service = self.members.in_service();
        let Some(log) = &mut self.log else {
            return false;
        };
        if mutated(Mutation::ArrivalUnmarked) {
            let arrivals = log.arrivals;
            self.marked(arrivals, out);
            return true;
        }
        if !log.live.is_empty() {
            let flushes = !log.flushing && log.live.values().all(|written| *written);
            if flushes {
                log.flushing = true;
                self.flush_members(None, out);
            }
            return flushes;
        }
        let Some(marks) = log.marks(service) else {
            return false;
        };
        let mut batch = Batch {
            outstanding: 0,
            jobs: Vec::new(),
            scratch: Vec::new(),
            arrivals: log.arrivals,
        };
        self.write_records(marks, &mut batch, out);
        if let Some(log) = &mut self.log {
            log.next_batch += 1;
            let is_durable = batch.outstanding == 0;
            log.batch = Some(batch);
            if is_durable {
                self.batch_done(out);
            }
        }
        true
    }

    /// Continues when the marks for these members are durable.
    pub(super) fn marked(&mut self, arrivals: SlotSet, out: &mut Outputs) {
        for slot in arrivals.iter() {
            let Some(log) = &mut self.log else { return };
            if log.arrivals.contains(slot) {
                log.arrivals = log.arrivals.without(slot);
                if !mutated(Mutation::ArrivalNotWiped) {
                    self.wipe_log(slot, out);
                }
            }
        }
    }

    /// Empties the ring of a member that was added.
    fn wipe_log(&mut self, slot: Slot, out: &mut Outputs) {
        let scratch = self.allocate(Sectors(WIPE), out);
        out.steps.push(ComputeStep::Zero {
            to: scratch.whole(),
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

    /// Sends the next part of a ring being emptied, or ends it: where nothing is left, and where
    /// the member has failed.
    pub(in super::super) fn wipe_more(&mut self, scratch: ScratchId, out: &mut Outputs) {
        let Some(log) = &mut self.log else {
            return;
        };
        let Some(wipe) = log.wipes.get_mut(&scratch) else {
            return;
        };
        let slot = wipe.slot;
        let left = log.area.count().0 - wipe.next;
        if wipe.dead || left == 0 {
            log.wipes.remove(&scratch);
            self.release(scratch, out);
            return;
        }
        let transfer = Transfer {
            operation: Operation::Write,
            start: log.area.start.0 + wipe.next,
            count: left.min(WIPE),
            buffer: scratch.whole(),
            purpose: Purpose::Metadata,
            force_unit_access: true,
        };
        wipe.next += transfer.count;
        self.issue(slot, Role::Wipe(scratch), transfer, out);
    }
}
