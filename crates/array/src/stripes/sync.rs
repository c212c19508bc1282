//! Resync, check, repair and recovery, window by window.
//!
//! One sync runs at a time, as a walk ([`SyncWalk`](crate::parts::SyncWalk)) with `depth`
//! windows at once. A window takes its lock like every other job, so that it and the writes wait
//! for each other.
//!
//! * *Check, repair, resync* read all readable blocks. With no block lost, P
//!   and Q are checked; a RAID 6 with one block lost computes it by one parity
//!   and compares the other. Where a window does not fit, its blocks are
//!   checked one by one for their places. Repair and resync write the
//!   parities that do not fit, as md does: data is never changed, even where a
//!   single wrong data block would explain everything.
//! * A *first resync* covers the part that no write has made to fit meanwhile (`unwritten`).
//! * *Recovery* computes the blocks of all members under recovery and writes
//!   them. A block whose sources cannot be read is recorded as bad on the
//!   member under recovery. As soon as a window is written, it serves reads.
//!
//! The layer that records a checkpoint flushes the members first.

mod check;

use super::config::BLOCK;
use super::flow::Next;
use super::job::{Job, Kind, Phase};
use super::{Mutation, StripeArray, mutated};
use crate::admission::blocks_of;
use crate::engine::{SyncAction, SyncRequest};
use crate::recovery::{Plan, Step, SyncKind};
use crate::request::{Event, Outputs, RequestError, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors, SpanSet};

impl StripeArray {
    fn wants_recovery(&self) -> bool {
        let admits = self.log.as_ref().is_some_and(super::Log::is_admitting);
        self.walk.owes_recovery(&self.members) && !self.is_broken() && !admits
    }

    pub(super) fn sync_wakes_at(&self) -> Option<Nanos> {
        let begins = self.wants_recovery() && !self.walk.is_frozen();
        begins.then_some(self.now).or(self.walk.wakes_at())
    }

    fn launch(&mut self, kind: SyncKind, todo: SpanSet, out: &mut Outputs) {
        let size = self.map.member_size();
        let plan = Plan::of_data_areas(kind, todo, size, &self.members);
        let start = self.walk.begin(self.now, plan, &self.members);
        out.events.push(Event::SyncStarted(start));
    }

    pub(super) fn walk_through(&mut self, request: &SyncRequest, out: &mut Outputs) {
        let size = self.map.member_size();
        let mut todo = blocks_of(request.ranges.as_deref(), size, BLOCK);
        match request.action {
            SyncAction::Resync => self.may_not_fit(&todo),
            SyncAction::FirstResync => todo = self.without_fit(&todo),
            SyncAction::Check | SyncAction::Repair => {}
        }
        self.launch(request.action.kind(), todo, out);
    }

    /// Starts windows, takes checkpoints, ends the sync.
    pub(super) fn pump_sync(&mut self, out: &mut Outputs) -> bool {
        if self.wants_recovery() && !self.walk.is_frozen() {
            let todo = self.members.unfilled_of_all();
            self.launch(SyncKind::Recovery, todo, out);
        }
        let mut moved = false;
        loop {
            match self.walk.step(self.now, &self.members) {
                Step::Block(_) if self.walk.in_work() >= self.config.sync.depth as usize => {
                    return moved;
                }
                Step::Block(start) => self.begin_window(start),
                Step::Checkpoint(position) => {
                    out.events.push(Event::SyncCheckpoint(position));
                    continue;
                }
                Step::Finish => {
                    self.walk
                        .conclude(Event::SyncFinished, &mut self.members, out);
                    return moved;
                }
                Step::Abort => {
                    self.walk
                        .conclude(Event::SyncAborted, &mut self.members, out);
                    return moved;
                }
                Step::Wait => return moved,
            }
            moved = true;
        }
    }

    fn begin_window(&mut self, start: Sectors) {
        let unit = self.config.sync.block.to_sectors().0 / BLOCK * BLOCK;
        let mut window = self
            .walk
            .block_at(start, unit.clamp(BLOCK, self.longest), BLOCK);
        let chunk = self.map.chunk().0;
        let row_end = start.0 / chunk * chunk + chunk;
        window.end = window.end.min(Sectors(row_end));
        self.walk.take(window);
        let row = self.map.row(self.map.row_of(start));
        let range = (window.start.0, window.end.0);
        self.enqueue(Job::new(row, range, Kind::Sync, Vec::new()));
    }

    /// Counts everything below `position` as done, for a
    /// simulation: see
    /// [`Engine::leap_sync`](crate::Engine::leap_sync).
    pub(super) fn leap_windows(&mut self, position: Sectors, out: &mut Outputs) {
        let Some(leapt) = self.walk.leap_blocks(self.now, position, BLOCK) else {
            return;
        };
        match self.walk.kind() {
            Some(SyncKind::Recovery) => {
                for slot in self.walk.targets().iter() {
                    self.members.set_filled(slot, leapt, true);
                }
            }
            _ => self.now_fits(leapt),
        }
        out.events.push(Event::SyncCheckpoint(leapt.end));
    }

    /// Reads missing blocks, or computes and continues.
    pub(super) fn step_sync(&mut self, job: &mut Job, out: &mut Outputs) -> Next {
        match self.walk.kind().filter(|_| !self.walk.is_stopping()) {
            None => Next::Done(Err(RequestError::Failed)),
            Some(SyncKind::Recovery) => self.step_recovery(job, self.walk.targets(), out),
            Some(_) => self.step_check(job, out),
        }
    }

    fn step_recovery(&mut self, job: &mut Job, targets: SlotSet, out: &mut Outputs) -> Next {
        let wants = |slot: &Slot| !self.members.is_filled(*slot, job.span());
        let needed: SlotSet = targets.iter().filter(wants).collect();
        match self.solve(job, needed) {
            Ok(wanted) if !(wanted - job.known).is_empty() => {
                self.read_blocks(job, wanted - job.known, out);
                Next::Keep
            }
            Ok(_) => {
                self.recover_needed(job, needed, out);
                for slot in needed.iter() {
                    let Some(scratch) = job.old[slot.index()] else {
                        continue;
                    };
                    let mut item = super::compute::whole(job, slot, scratch);
                    item.count -= u64::from(mutated(Mutation::RecoveryParitySwapped));
                    job.writes.push(item);
                }
                Self::add_corrections(job);
                job.phase = Phase::Computed;
                self.proceed(job, out)
            }
            Err(_) if self.lacks_members(job, needed) => {
                self.walk.cancel();
                Next::Done(Err(RequestError::Failed))
            }
            Err(_) if job.end - job.start > BLOCK => Next::Split,
            Err(_) => {
                for slot in needed.iter() {
                    self.mark_bad(slot, job.start, job.end, out);
                    self.members.set_filled(slot, job.span(), true);
                }
                Next::Done(Ok(()))
            }
        }
    }

    /// Handles a sync job all of whose writes are done.
    pub(super) fn sync_written(&mut self, job: &Job, filled: SlotSet) {
        let recovers = self.walk.kind() == Some(SyncKind::Recovery);
        if recovers && matches!(job.kind, Kind::Sync) {
            let filled = match mutated(Mutation::UnwrittenCountsAsFilled) {
                true => self.members.recovering(),
                false => filled,
            };
            for slot in filled.iter() {
                self.members.set_filled(slot, job.span(), true);
            }
        }
    }
}
