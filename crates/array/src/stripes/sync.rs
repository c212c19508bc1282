//! Resync, check, repair and recovery, window by window.
//!
//! One sync runs at a time. It walks upwards over what is to be done, as many
//! windows at once as the depth says, and pauses as its throttle says (see
//! `recovery/throttle`). A window takes its lock like everybody else, so that
//! it and the writes wait for each other.
//!
//! * *Check, repair, resync* read all readable blocks. With no block lost, P
//!   and Q are checked; a RAID 6 with one block lost computes it by one parity
//!   and compares the other. Where a window does not fit, its blocks are
//!   checked one by one for their places. Repair and resync write the
//!   parities that do not fit, as md does: data is never changed, even where a
//!   single wrong data block would explain everything; the report names it.
//! * A *first resync* does what no write has made to fit meanwhile (`unwritten`).
//! * *Recovery* computes the blocks of all members under recovery and writes
//!   them. A block whose sources cannot be read is recorded as bad on the
//!   member under recovery. As soon as a window is written, it serves reads.
//!
//! Progress is told by checkpoints: everything below is done. Whoever records
//! one flushes the members first.

mod check;
mod leap;
mod window;

use super::config::BLOCK;
use super::flow::Next;
use super::job::{Job, Kind, Phase};
use super::{Mutation, StripeArray, mutated};
use crate::admission::blocks_of;
use crate::config::AdminError;
use crate::engine::{SyncAction, SyncRequest};
use crate::recovery::{Governor, Pause, SyncKind, SyncStatus};
use crate::request::{Event, Outputs, RequestError, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors, SpanSet};
use std::collections::BTreeSet;

/// Places that a report names; further ones are only counted.
const MOST_PLACES: usize = 1024;

/// A block in which parity does not fit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MismatchPlace {
    /// Sector of the members' data areas.
    pub start: Sectors,
    /// Sectors that differ.
    pub count: Sectors,
    /// The one member whose block would explain it (RAID 6 only).
    pub culprit: Option<Slot>,
}

/// What a check or repair found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// Sectors that differ.
    pub different: u64,
    /// The first places, by and large ascending; at most 1024.
    pub places: Vec<MismatchPlace>,
}

/// What the running sync does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    Recovery,
    Action(SyncAction),
}

#[derive(Debug)]
struct Sync {
    mode: Mode,
    targets: SlotSet,
    /// Not begun.
    todo: SpanSet,
    /// Single blocks of windows that were split.
    blocks: BTreeSet<u64>,
    /// Where the windows in work begin.
    in_work: BTreeSet<u64>,
    in_flight_sectors: u64,
    checkpoint: u64,
    checkpoint_at: Nanos,
    pause: Pause,
    throttle_due: bool,
    cancelled: bool,
    governor: Governor,
}

/// Syncs: the running one, and what is left of the last.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    running: Option<Sync>,
    /// Recovery was stopped by hand.
    stopped: bool,
    /// Since when no new window starts, for a simulation's leap.
    frozen: Option<Nanos>,
    pub(super) report: CheckReport,
}

impl Sync {
    fn position(&self, total: u64) -> u64 {
        let todo = self.todo.first().map_or(total, |span| span.start.0);
        let work = self.in_work.first().copied().unwrap_or(total);
        let block = self.blocks.first().copied().unwrap_or(total);
        todo.min(work).min(block)
    }
}

impl StripeArray {
    pub(super) fn sync_wakes_at(&self) -> Option<Nanos> {
        if self.syncs.frozen.is_some() {
            return None;
        }
        match &self.syncs.running {
            None if self.wants_recovery() => Some(self.now),
            None => None,
            Some(sync) => match sync.pause {
                Pause::Until(time) if !sync.cancelled => Some(time),
                _ => None,
            },
        }
    }

    pub(super) fn status_of_sync(&self) -> Option<SyncStatus> {
        let sync = self.syncs.running.as_ref()?;
        let total = self.map.member_size();
        let position = Sectors(sync.position(total.0));
        Some(SyncStatus {
            kind: match sync.mode {
                Mode::Recovery => SyncKind::Recovery,
                Mode::Action(SyncAction::Resync | SyncAction::FirstResync) => SyncKind::Resync,
                Mode::Action(SyncAction::Check) => SyncKind::Check,
                Mode::Action(SyncAction::Repair) => SyncKind::Repair,
            },
            position,
            readable_below: position,
            total,
            in_flight: u32::try_from(sync.in_work.len()).unwrap_or(u32::MAX),
            mismatches: match sync.mode {
                Mode::Action(SyncAction::Check | SyncAction::Repair) => {
                    Sectors(self.syncs.report.different)
                }
                _ => Sectors::ZERO,
            },
        })
    }

    fn wants_recovery(&self) -> bool {
        let admits = self.log.as_ref().is_some_and(super::Log::is_admitting);
        !(self.members.recovering().is_empty() || self.syncs.stopped || self.is_broken() || admits)
    }

    fn launch(&mut self, mode: Mode, targets: SlotSet, todo: SpanSet, out: &mut Outputs) {
        let start = todo
            .first()
            .map_or(self.map.member_size(), |span| span.start);
        out.events.push(Event::SyncStarted(start));
        self.syncs.running = Some(Sync {
            mode,
            targets,
            todo,
            blocks: BTreeSet::new(),
            in_work: BTreeSet::new(),
            in_flight_sectors: 0,
            checkpoint: start.0,
            checkpoint_at: self.now,
            pause: Pause::None,
            throttle_due: false,
            cancelled: false,
            governor: Governor::new(self.config.sync.throttle, self.now, &self.members),
        });
    }

    pub(super) fn begin_sync(
        &mut self,
        request: &SyncRequest,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        if self.syncs.running.is_some() {
            return Err(AdminError::SyncRunning);
        }
        self.syncs.stopped = false;
        let size = self.map.member_size();
        let mut todo = blocks_of(request.ranges.as_deref(), size, BLOCK);
        match request.action {
            SyncAction::Resync => self.may_not_fit(&todo),
            SyncAction::FirstResync => todo = self.without_fit(&todo),
            SyncAction::Check | SyncAction::Repair => {
                self.syncs.report = CheckReport::default();
            }
        }
        self.launch(Mode::Action(request.action), SlotSet::EMPTY, todo, out);
        Ok(())
    }

    pub(super) fn cancel_sync(&mut self) {
        if let Some(sync) = &mut self.syncs.running {
            sync.cancelled = true;
            self.syncs.stopped |= sync.mode == Mode::Recovery;
        }
    }

    /// A member was added: recovery may run again.
    pub(super) fn sync_member_added(&mut self) {
        self.syncs.stopped = false;
    }

    pub(super) fn sync_lost_member(&mut self, slot: Slot) {
        let broken = self.is_broken();
        if let Some(sync) = &mut self.syncs.running {
            sync.targets = sync.targets.without(slot);
            let useless = match sync.mode {
                Mode::Recovery => sync.targets.is_empty(),
                // The rest is for another sync with the members that are left.
                Mode::Action(_) => true,
            };
            sync.cancelled |= useless || broken;
        }
    }

    pub(super) fn set_throttle(&mut self, minimum: u64, maximum: u64) {
        let throttle = &mut self.config.sync.throttle;
        *throttle = throttle.with_speeds(minimum, maximum);
        if let Some(sync) = &mut self.syncs.running {
            sync.governor = Governor::new(*throttle, self.now, &self.members);
            // What is in flight will be reported as finished.
            sync.throttle_due = sync.governor.issued(Sectors(sync.in_flight_sectors));
            // It goes on with the next tick, not with the next request, which
            // may never come.
            sync.pause = Pause::Until(self.now);
        }
    }

    /// Starts windows, takes checkpoints, ends the sync.
    pub(super) fn pump_sync(&mut self, out: &mut Outputs) -> bool {
        if self.syncs.running.is_none() {
            if !self.wants_recovery() || self.syncs.frozen.is_some() {
                return false;
            }
            let targets = self.members.recovering();
            let todo = targets
                .iter()
                .flat_map(|slot| self.members.unfilled_ranges(slot));
            let todo = todo.collect();
            self.launch(Mode::Recovery, targets, todo, out);
        }
        let mut moved = false;
        while let Some(start) = self.next_sync_window(out) {
            moved = true;
            let end = self.take_window(start);
            let row = self.map.row(self.map.row_of(Sectors(start)));
            self.enqueue(Job::new(row, (start, end), Kind::Sync, Vec::new()));
        }
        moved
    }

    /// Where the next window begins, if one may begin now.
    fn next_sync_window(&mut self, out: &mut Outputs) -> Option<u64> {
        let total = self.map.member_size().0;
        let rule = self.config.sync.checkpoint;
        let sync = self.syncs.running.as_mut()?;
        let drained = sync.in_work.is_empty();
        let position = sync.position(total);
        if sync.cancelled {
            if drained {
                self.end_sync(false, out);
            }
            return None;
        }
        if drained && sync.todo.is_empty() && sync.blocks.is_empty() {
            self.end_sync(true, out);
            return None;
        }
        if self.syncs.frozen.is_some() {
            return None;
        }
        if position > sync.checkpoint
            && let Some(rule) = rule
        {
            let due = rule.is_due(
                Sectors(position),
                Sectors(sync.checkpoint),
                Sectors(total),
                self.now,
                sync.checkpoint_at,
            );
            if due {
                sync.checkpoint = position;
                sync.checkpoint_at = self.now;
                out.events.push(Event::SyncCheckpoint(Sectors(position)));
            }
        }
        match sync.pause {
            Pause::Until(time) if self.now < time => return None,
            Pause::Drain if !drained => return None,
            _ => sync.pause = Pause::None,
        }
        let in_flight = sync.in_flight_sectors;
        let due = &mut sync.throttle_due;
        sync.pause = sync.governor.pause(due, self.now, in_flight, &self.members);
        if sync.pause != Pause::None || self.is_sync_full() {
            return None;
        }
        let sync = self.syncs.running.as_ref()?;
        let block = sync.blocks.first().copied();
        block.or_else(|| sync.todo.first().map(|span| span.start.0))
    }

    fn end_sync(&mut self, complete: bool, out: &mut Outputs) {
        let Some(sync) = self.syncs.running.take() else {
            return;
        };
        for slot in sync.targets.iter() {
            if self.members.is_full(slot) {
                self.members.set_in_sync(slot);
            }
        }
        out.events.push(if complete {
            Event::SyncFinished
        } else {
            Event::SyncAborted
        });
    }

    fn sync_mode(&self) -> Option<(Mode, SlotSet)> {
        let sync = self.syncs.running.as_ref()?;
        (!sync.cancelled).then_some((sync.mode, sync.targets))
    }

    /// Reads what is missing, or computes and goes on.
    pub(super) fn step_sync(&mut self, job: &mut Job, out: &mut Outputs) -> Next {
        match self.sync_mode() {
            None => Next::Done(Err(RequestError::Failed)),
            Some((Mode::Recovery, targets)) => self.step_recovery(job, targets, out),
            Some((Mode::Action(_), _)) => self.step_check(job, out),
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
                self.cancel_sync();
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

    /// All writes of a sync job are done.
    pub(super) fn sync_written(&mut self, job: &Job, filled: SlotSet) {
        let recovers = matches!(
            self.syncs.running.as_ref().map(|it| it.mode),
            Some(Mode::Recovery)
        );
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

    fn leave_work(&mut self, job: &Job) {
        if let Some(sync) = &mut self.syncs.running {
            sync.in_work.remove(&job.start);
            sync.in_flight_sectors -= job.end - job.start;
        }
    }

    pub(super) fn sync_job_ended(&mut self, job: &Job) {
        self.leave_work(job);
    }

    pub(super) fn sync_job_split(&mut self, job: &Job) {
        self.leave_work(job);
        if let Some(sync) = &mut self.syncs.running {
            sync.blocks
                .extend((job.start..job.end).step_by(BLOCK as usize));
        }
    }
}
