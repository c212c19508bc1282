//! The computation of a write: new blocks, parity, and the list of writes.

use super::job::{Item, Job};
use super::pending::{Blocks, Segment, covers};
use super::plan::Method;
use super::{Mutation, StripeArray, mutated};
use crate::request::{BufferId, ComputeStep, Outputs, ScratchId, Slot};
use raidlab_units::Sectors;
use std::collections::{BTreeMap, BTreeSet};

/// The most pieces of a block with a log; one in more pieces is assembled first, as a record's
/// header has no room for them.
const MOST_PIECES: usize = super::log::MOST_EXTENTS;

/// New data blocks: in the requests' buffers, or assembled in scratch buffers.
struct NewData<'a> {
    blocks: &'a Blocks,
    together: BTreeMap<u16, ScratchId>,
    start: u64,
}

impl NewData<'_> {
    /// Returns the buffer of a data block's new bytes from a sector on, if it is written.
    fn at(&self, index: u16, from: u64) -> Option<BufferId> {
        if let Some(&scratch) = self.together.get(&index) {
            let skip = Sectors(from - self.start);
            return Some(BufferId::Scratch { scratch, skip });
        }
        let segments = self.blocks.get(&index)?;
        let segment = segments
            .iter()
            .find(|it| it.start <= from && from < it.end)?;
        Some(segment.buffer(from))
    }

    /// Returns the ranges in which every block's new bytes lie in one piece.
    fn parts(&self, end: u64) -> Vec<(u64, u64)> {
        let apart = self
            .blocks
            .iter()
            .filter(|(index, _)| !self.together.contains_key(index));
        let starts = apart.flat_map(|(_, segments)| segments.iter().map(|it| it.start));
        let borders: BTreeSet<u64> = starts.chain([self.start, end]).collect();
        let borders: Vec<u64> = borders.into_iter().collect();
        borders.windows(2).map(|pair| (pair[0], pair[1])).collect()
    }
}

impl StripeArray {
    /// Computes the new data and parity and lists the writes.
    pub(super) fn compute_write(
        &mut self,
        job: &mut Job,
        blocks: &Blocks,
        method: Method,
        out: &mut Outputs,
    ) {
        let together = if method == Method::Direct {
            BTreeMap::new()
        } else {
            self.put_together(job, blocks, method, out)
        };
        let new = NewData {
            blocks,
            together,
            start: job.start,
        };
        let parities = job.parities() & self.members.in_service();
        if method == Method::Reconstruct {
            for slot in parities.iter() {
                self.scratch_for(job, slot, out);
            }
            for (from, to) in new.parts(job.end) {
                let block = |index, slot: Slot| {
                    let old = || job.old_at(slot, from);
                    new.at(index, from).unwrap_or_else(old)
                };
                let (p, q) = job.parity_at(parities, from);
                out.steps.push(ComputeStep::Generate {
                    count: Sectors(to - from),
                    data: job.in_exponent_order(block),
                    p,
                    q,
                });
            }
        }
        if method == Method::Modify {
            for (from, to) in new.parts(job.end) {
                update_parity(job, &new, (from, to), out);
            }
        }
        for (&index, segments) in blocks {
            let slot = job.row.data_slot(index);
            if let Some(&scratch) = new.together.get(&index) {
                job.writes.push(whole(job, slot, scratch));
            } else {
                job.writes.extend(runs(slot, segments));
            }
        }
        if method != Method::Direct {
            for slot in parities.iter() {
                let scratch = job.old[slot.index()].expect("parity was computed into it");
                job.writes.push(whole(job, slot, scratch));
            }
        }
    }

    /// Assembles blocks: those written in part over their old bytes, and those in many pieces if
    /// they must be logged.
    fn put_together(
        &mut self,
        job: &mut Job,
        blocks: &Blocks,
        method: Method,
        out: &mut Outputs,
    ) -> BTreeMap<u16, ScratchId> {
        let mut together = BTreeMap::new();
        for (&index, segments) in blocks {
            let slot = job.row.data_slot(index);
            let is_whole = covers(segments, job.start, job.end);
            let scattered = self.log.is_some() && runs(slot, segments).len() > MOST_PIECES;
            if is_whole && !scattered {
                continue;
            }
            let count = job.count();
            // Reconstruction does not need the old bytes again.
            let reused = job.old[slot.index()].filter(|_| method == Method::Reconstruct);
            let scratch = reused.unwrap_or_else(|| {
                let scratch = self.allocate(count, out);
                job.scratch.push(scratch);
                scratch
            });
            let to = |skip| BufferId::Scratch { scratch, skip };
            if !is_whole && reused.is_none() {
                out.steps.push(ComputeStep::Copy {
                    from: job.old_block(slot),
                    to: to(Sectors::ZERO),
                    count,
                });
            }
            if mutated(Mutation::NeighbourFilled) {
                let to = to(Sectors::ZERO);
                out.steps.push(ComputeStep::Zero { to, count });
            }
            for segment in segments {
                out.steps.push(ComputeStep::Copy {
                    from: segment.buffer(segment.start),
                    to: to(Sectors(segment.start - job.start)),
                    count: Sectors(segment.end - segment.start),
                });
            }
            together.insert(index, scratch);
        }
        together
    }
}

/// Orders read-modify-write of the sectors `from..to`.
fn update_parity(job: &Job, new: &NewData, (from, to): (u64, u64), out: &mut Outputs) {
    let (p, q) = job.parity_at(job.parities(), from);
    for index in new.blocks.keys() {
        let Some(bytes) = new.at(*index, from) else {
            continue;
        };
        let old = job.old_at(job.row.data_slot(*index), from);
        let off = u8::from(mutated(Mutation::QExponentOff));
        out.steps.push(ComputeStep::Update {
            count: Sectors(to - from),
            index: job.row.exponent(*index) + off,
            old: if mutated(Mutation::RmwOldFromNew) {
                bytes
            } else {
                old
            },
            new: bytes,
            p,
            q,
        });
    }
}

/// Returns the write of a slot's whole block.
pub(super) fn whole(job: &Job, slot: Slot, scratch: ScratchId) -> Item {
    Item {
        slot,
        buffer: scratch.whole(),
        start: job.start,
        count: job.end - job.start,
    }
}

/// Returns as few writes as the segments permit.
fn runs(slot: Slot, segments: &[Segment]) -> Vec<Item> {
    let mut items: Vec<(Segment, Item)> = Vec::new();
    for segment in segments {
        if let Some((last, item)) = items.last_mut()
            && last.request == segment.request
            && last.end == segment.start
            && last.skip + (last.end - last.start) == segment.skip
        {
            last.end = segment.end;
            item.count = last.end - last.start;
            continue;
        }
        let item = Item {
            slot,
            buffer: segment.buffer(segment.start),
            start: segment.start,
            count: segment.end - segment.start,
        };
        items.push((*segment, item));
    }
    items.into_iter().map(|(_, item)| item).collect()
}
