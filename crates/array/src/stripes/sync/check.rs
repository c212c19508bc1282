//! Check, repair and resync of one window.
//!
//! All readable blocks of the window are read. Blocks that the medium refused are computed from the
//! others and written back, and so are those that a bad-block log names, unless the sync is a mere
//! check. Then parity is compared with the data: both P and Q if everything is known, Q alone if P
//! or a data block is lost, nothing if as many blocks are lost as there are parities. If a whole
//! window differs it is compared again block by block, so that only the blocks that differ are
//! reported and rewritten.
//!
//! A check reports the blocks, a resync recomputes parity from the data, and a repair does both.
//! Where a resync meets data that cannot be read, parity can never be made to fit: that parity is
//! marked as bad, as no other record of it would remain once the resync is over.

use super::super::compute::whole;
use super::super::config::BLOCK;
use super::super::flow::Next;
use super::super::job::{Job, Phase};
use super::super::{Mutation, StripeArray, mutated};
use crate::recovery::SyncKind;
use crate::request::{BufferId, ComputeStep, Event, Outputs, Slot, StepId, StepResult};
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

impl StripeArray {
    pub(super) fn step_check(&mut self, job: &mut Job, out: &mut Outputs) -> Next {
        let all = SlotSet::first(self.map.members());
        let serving: SlotSet = all
            .iter()
            .filter(|slot| self.serves(*slot, job.start, job.end) && !job.bad.contains(*slot))
            .collect();
        if !(serving - job.known).is_empty() {
            self.read_blocks(job, serving - job.known, out);
            return Next::Keep;
        }
        let lost = all - job.known;
        job.check.lost = lost;
        let marked = self.marked_bad(job);
        if !marked.is_empty() && job.end - job.start > BLOCK {
            return Next::Split;
        }
        // A block that the medium refused is rewritten on this occasion, and one that the bad-block
        // log names unless this is a mere check.
        let rebuilt = (job.bad | marked) - job.known;
        if !rebuilt.is_empty() && self.solve(job, rebuilt).is_ok() {
            self.recover_needed(job, rebuilt, out);
            Self::add_corrections(job);
            for slot in (marked - job.bad).iter() {
                if let Some(scratch) = job.old[slot.index()] {
                    job.writes.push(whole(job, slot, scratch));
                }
            }
        }
        let spare = self.map.level().parity_count();
        let lost_data = lost & job.data();
        // In a RAID 6 with one data block lost, P computes it, and Q tests it.
        let unknown = !(lost_data - job.known).is_empty() && self.solve(job, lost_data).is_err();
        if unknown
            && self.resyncs()
            && !self.parity_fits(job)
            && !self.lacks_members(job, lost_data)
        {
            if job.end - job.start > BLOCK {
                return Next::Split;
            }
            // Parity cannot be made to fit data that cannot be read, and once the resync is over no
            // record would show that it does not.
            for slot in (job.parities() - lost).iter() {
                self.mark_bad(slot, job.start, job.end, out);
            }
        }
        if lost.len() >= spare || unknown || mutated(Mutation::CheckBlind) {
            // Parity agrees with blocks that were computed from it, and with data from which
            // it was computed.
            let made_of_data = lost_data.is_empty() && !mutated(Mutation::RemadeParityDistrusted);
            job.makes_fit = self.resyncs()
                && (self.parity_tells(job) || made_of_data)
                && (lost - job.known).is_empty();
            job.phase = Phase::Computed;
            return self.proceed(job, out);
        }
        self.recover_needed(job, lost_data, out);
        job.phase = Phase::Checking;
        self.check_part(job, (job.start, job.end), out);
        Next::Keep
    }

    /// Returns the members whose bad-block logs name the window, if their blocks are
    /// to be rewritten.
    fn marked_bad(&self, job: &Job) -> SlotSet {
        let writes = self.resyncs() || self.repairs();
        let marked = |slot: &Slot| {
            self.members.is_bad(*slot, job.span()) && self.members.is_filled(*slot, job.span())
        };
        let serving = self.members.in_service();
        serving
            .iter()
            .filter(|slot| writes && marked(slot))
            .collect()
    }

    /// Orders the check of a part of a window.
    fn check_part(&mut self, job: &mut Job, (from, to): (u64, u64), out: &mut Outputs) {
        let id = StepId(self.next_step);
        self.next_step += 1;
        self.steps.insert(id.0, (job.id, from));
        job.outstanding += 1;
        let count = Sectors(to - from);
        let data = job.in_exponent_order(|_, slot| job.old_at(slot, from));
        let (p, q) = job.parity_at(job.parities() - job.check.lost, from);
        if job.check.lost.is_empty() || q == BufferId::None {
            out.steps.push(ComputeStep::Check {
                id,
                count,
                data,
                p,
                q,
            });
            return;
        }
        // P or a data block is lost: only Q can be tested.
        let scratch = self.allocate(count, out);
        job.scratch.push(scratch);
        let expected = scratch.whole();
        out.steps.push(ComputeStep::Generate {
            count,
            data,
            p: BufferId::None,
            q: expected,
        });
        out.steps.push(ComputeStep::Compare {
            id,
            left: expected,
            right: q,
            count,
        });
    }

    /// Handles the result of a check.
    pub(in super::super) fn sync_computed(
        &mut self,
        job: &mut Job,
        at: u64,
        result: &StepResult,
        out: &mut Outputs,
    ) -> Next {
        let (p_different, q_different) = match *result {
            StepResult::Parity {
                p_different,
                q_different,
            } => (p_different.0, q_different.0),
            StepResult::Compared { different } => (0, different.0),
            StepResult::Bytes(_) => (0, 0),
        };
        if p_different > 0 {
            job.check.misfits = job.check.misfits.with(job.row.p());
        }
        if q_different > 0 {
            job.check.misfits = job
                .row
                .q()
                .map_or(job.check.misfits, |q| job.check.misfits.with(q));
        }
        let differs = p_different + q_different > 0;
        if differs && !job.check.by_block && job.end - job.start > BLOCK {
            job.check.by_block = true;
            for from in (job.start..job.end).step_by(BLOCK as usize) {
                self.check_part(job, (from, from + BLOCK), out);
            }
            return Next::Keep;
        }
        if differs && self.reports_mismatches() {
            out.events.push(Event::Mismatch {
                start: Sectors(at),
                count: Sectors(p_different.max(q_different)),
            });
        }
        if job.outstanding > 0 {
            return Next::Keep;
        }
        let rewrites = self.resyncs() || self.repairs();
        let misfits = job.check.misfits;
        if rewrites && !misfits.is_empty() && !mutated(Mutation::SyncParityKept) {
            out.steps.push(job.generate_old(misfits));
            for slot in misfits.iter() {
                if let Some(scratch) = job.old[slot.index()] {
                    job.writes.push(whole(job, slot, scratch));
                }
            }
        }
        job.makes_fit = misfits.is_empty() || rewrites;
        job.phase = Phase::Computed;
        self.proceed(job, out)
    }

    fn reports_mismatches(&self) -> bool {
        self.repairs() || self.does(SyncKind::Check)
    }

    fn repairs(&self) -> bool {
        self.does(SyncKind::Repair)
    }

    fn resyncs(&self) -> bool {
        self.does(SyncKind::Resync)
    }

    /// Whether the sync is of this kind, and goes on.
    fn does(&self, kind: SyncKind) -> bool {
        self.walk.kind() == Some(kind) && !self.walk.is_stopping()
    }
}
