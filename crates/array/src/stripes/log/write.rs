//! The sealing and writing of log records.

use super::super::StripeArray;
use super::super::config::BLOCK;
use super::super::flow::{Role, Transfer};
use super::record::Header;
use super::{Batch, Log, Placed, record};
use super::{Mutation, mutated};
use crate::request::{BufferId, ComputeStep, Operation, Outputs, Purpose, ScratchId};
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

impl Log {
    /// Returns, for every ring that lacks room and has unannounced void records, a record that only
    /// announces them. Rings with room get none: all of them must have it at the same time.
    pub(super) fn announcements(&mut self) -> Vec<Placed> {
        // The newest batch has changed since the last flush.
        self.retire(&[]);
        let mut placed = Vec::new();
        for slot in self.without_room.iter() {
            let ring = self.rings.get_mut(&slot);
            let Some(ring) = ring.filter(|ring| ring.has_unannounced()) else {
                continue;
            };
            let Some(at) = ring.find_announcement() else {
                continue;
            };
            let transaction = self.next_transaction;
            self.next_transaction += 1;
            let header = Header {
                session: self.session,
                batch: self.next_batch,
                transaction,
                oldest: ring.take(transaction, self.next_batch, at, BLOCK),
                position: at,
                slot,
                participants: SlotSet::only(slot),
                window: (0, 0),
                extents: Vec::new(),
                checksums: Vec::new(),
            };
            placed.push(Placed {
                slot,
                at,
                items: Vec::new(),
                header,
            });
        }
        placed
    }
}

impl StripeArray {
    /// Joins records that lie beside each other, seals them and sends them.
    pub(super) fn write_records(
        &mut self,
        mut records: Vec<Placed>,
        batch: &mut Batch,
        out: &mut Outputs,
    ) {
        records.sort_by_key(|record| (record.slot, record.header.transaction));
        let mut rest = records.as_slice();
        while let Some(first) = rest.first() {
            let mut end = first.at;
            let mut run = 0;
            for record in rest {
                if record.slot != first.slot || record.at != end {
                    break;
                }
                end += record.header.sectors();
                run += 1;
            }
            let (together, others) = rest.split_at(run);
            rest = others;
            let count = Sectors(end - first.at);
            let scratch = self.allocate(count, out);
            batch.scratch.push(scratch);
            for record in together {
                seal_record(record, scratch, record.at - first.at, out);
            }
            let log = self.log.as_ref();
            let Some(log) = log.filter(|log| log.rings.contains_key(&first.slot)) else {
                continue;
            };
            let start = log.area.start.0;
            batch.outstanding += 1;
            let transfer = Transfer {
                operation: Operation::Write,
                start: start + first.at,
                count: count.0,
                buffer: scratch.whole(),
                purpose: Purpose::Metadata,
                force_unit_access: !mutated(Mutation::LogVolatile),
            };
            self.issue(first.slot, Role::Log, transfer, out);
        }
    }
}

/// Fills one record's part of a scratch buffer.
fn seal_record(record: &Placed, scratch: ScratchId, skip: u64, out: &mut Outputs) {
    let to = |sectors: u64| BufferId::Scratch {
        scratch,
        skip: Sectors(skip + sectors),
    };
    out.steps.push(ComputeStep::Fill {
        to: to(0),
        bytes: record.header.encode_unsealed(),
    });
    let mut at = BLOCK;
    let mut blocks = Vec::new();
    for item in &record.items {
        let count = Sectors(item.count);
        out.steps.push(ComputeStep::Copy {
            from: item.buffer,
            to: to(at),
            count,
        });
        blocks.push((to(at), count));
        at += item.count;
    }
    let slack = record.header.sectors() - at;
    if slack > 0 {
        out.steps.push(ComputeStep::Zero {
            to: to(at),
            count: Sectors(slack),
        });
    }
    out.steps.push(ComputeStep::Seal {
        header: to(0),
        header_bytes: record::HEADER_BYTES,
        at: record::CHECKSUMS_AT,
        seal_at: record::SEAL_AT,
        blocks,
    });
}
