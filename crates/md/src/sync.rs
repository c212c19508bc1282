//! Resync, check and recovery (`md_do_sync`, `raid5_sync_request`).
//!
//! md's thread asks for one stripe after the other and goes on until its throttle
//! stops it. Where the cache has no stripe left it sleeps like everybody else, and
//! with the one it then gets it sleeps a tick more, so as not to be in the way. A
//! stripe is read from all members that have it; where nothing is lost its parity is
//! compared, else what is lost is computed and written to the members that are
//! filled. Of a member that is filled reads are served up to the last checkpoint.

use super::{BLOCK, Raid5d};
use raidlab_array::parts::blocks_of;
use raidlab_array::parts::{Governor, Pause};
use raidlab_array::{
    AdminError, Event, Outputs, Slot, SyncAction, SyncKind, SyncRequest, SyncStatus,
};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors, Span, SpanSet};
use std::collections::BTreeSet;

/// What the running sync does; `None`: fills members.
type Action = Option<SyncAction>;

#[derive(Debug)]
struct Sync {
    action: Action,
    /// Members that are filled.
    targets: SlotSet,
    /// Sectors not begun.
    todo: SpanSet,
    /// Stripes in work.
    in_work: BTreeSet<u64>,
    checkpoint: u64,
    checkpoint_at: Nanos,
    pause: Pause,
    throttle_due: bool,
    /// It sleeps for a stripe.
    is_asleep: bool,
    /// The stripe that it got so, and until when it sleeps with it.
    held: Option<(u64, Nanos)>,
    is_cancelled: bool,
    governor: Governor,
}

/// The running sync, and what is left of the last.
#[derive(Debug, Default)]
pub(super) struct Syncs {
    running: Option<Sync>,
    /// Recovery was stopped by hand.
    is_stopped: bool,
    /// Where a sync began to run as it does, and the places of the cache then: what a
    /// leap goes by.
    runs_since: (u64, u64),
    /// Since when no stripe starts, for a simulation's leap.
    frozen: Option<Nanos>,
}

impl Sync {
    fn position(&self, total: u64) -> u64 {
        let todo = self.todo.first().map_or(total, |span| span.start.0);
        let work = self.in_work.first().map_or(total, |number| number * BLOCK);
        todo.min(work)
    }

    fn sectors_in_work(&self) -> u64 {
        self.in_work.len() as u64 * BLOCK
    }
}

impl Raid5d {
    pub(super) fn sync_wakes_at(&self) -> Option<Nanos> {
        let is_frozen = self.syncs.frozen.is_some();
        let Some(sync) = &self.syncs.running else {
            return (!is_frozen && self.wants_recovery()).then_some(self.now);
        };
        match (sync.held, sync.pause) {
            // It has begun, so it comes to its end in a freeze too.
            (Some((_, until)), _) => Some(until),
            (None, Pause::Until(time)) if !is_frozen && !sync.is_cancelled => Some(time),
            _ => None,
        }
    }

    pub(super) fn status_of_sync(&self) -> Option<SyncStatus> {
        let sync = self.syncs.running.as_ref()?;
        let total = self.map.member_size();
        Some(SyncStatus {
            kind: match sync.action {
                None => SyncKind::Recovery,
                Some(SyncAction::Resync | SyncAction::FirstResync) => SyncKind::Resync,
                Some(SyncAction::Check) => SyncKind::Check,
                Some(SyncAction::Repair) => SyncKind::Repair,
            },
            position: Sectors(sync.position(total.0)),
            readable_below: Sectors(sync.checkpoint),
            total,
            in_flight: u32::try_from(sync.in_work.len()).unwrap_or(u32::MAX),
            mismatches: Sectors::ZERO,
        })
    }

    fn wants_recovery(&self) -> bool {
        !(self.members.recovering().is_empty() || self.syncs.is_stopped || self.is_broken())
    }

    fn launch(&mut self, action: Action, todo: SpanSet, out: &mut Outputs) {
        let total = self.map.member_size().0;
        let start = todo.first().map_or(total, |span| span.start.0);
        out.events.push(Event::SyncStarted(Sectors(start)));
        self.syncs.runs_since = (start, self.cache.places());
        self.syncs.running = Some(Sync {
            action,
            targets: match action {
                None => self.members.recovering(),
                Some(_) => SlotSet::EMPTY,
            },
            todo,
            in_work: BTreeSet::new(),
            checkpoint: start,
            checkpoint_at: self.now,
            pause: Pause::None,
            throttle_due: false,
            is_asleep: false,
            held: None,
            is_cancelled: false,
            governor: Governor::new(self.recovery.throttle, self.now, &self.members),
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
        self.syncs.is_stopped = false;
        let size = self.map.member_size();
        let mut todo = blocks_of(request.ranges.as_deref(), size, BLOCK);
        let mut action = request.action;
        if action == SyncAction::FirstResync {
            action = SyncAction::Resync;
            // With no redundancy left there is nothing to compare.
            if self.members.in_sync().len() <= self.map.data_count() {
                todo.clear();
            }
        }
        if action == SyncAction::Resync {
            self.parity_fits_below = todo.first().map(|span| span.start.0);
        }
        self.launch(Some(action), todo, out);
        Ok(())
    }

    pub(super) fn cancel_sync(&mut self) {
        if let Some(sync) = &mut self.syncs.running {
            sync.is_cancelled = true;
            self.syncs.is_stopped |= sync.action.is_none();
        }
    }

    pub(super) const fn sync_member_added(&mut self) {
        self.syncs.is_stopped = false;
    }

    pub(super) fn sync_lost_member(&mut self, slot: Slot) {
        let broken = self.is_broken();
        if let Some(sync) = &mut self.syncs.running {
            sync.targets = sync.targets.without(slot);
            // The rest of a resync is for another one with who is left.
            let is_useless = sync.action.is_some() || sync.targets.is_empty();
            sync.is_cancelled |= is_useless || broken;
        }
    }

    pub(super) fn set_throttle(&mut self, minimum: u64, maximum: u64) {
        let throttle = self.recovery.throttle.with_speeds(minimum, maximum);
        self.recovery.throttle = throttle;
        if let Some(sync) = &mut self.syncs.running {
            sync.governor = Governor::new(throttle, self.now, &self.members);
            // What is in flight will be reported as finished.
            sync.throttle_due = sync.governor.issued(Sectors(sync.sectors_in_work()));
            sync.pause = Pause::Until(self.now);
        }
    }

    /// Starts stripes, takes checkpoints, ends the sync.
    pub(super) fn pump_sync(&mut self, out: &mut Outputs) {
        if self.syncs.running.is_none() {
            if !self.wants_recovery() || self.syncs.frozen.is_some() {
                return;
            }
            let recovering = self.members.recovering().iter();
            let todo = recovering.flat_map(|slot| self.members.unfilled_ranges(slot));
            let todo = todo.collect();
            self.launch(None, todo, out);
        }
        while let Some(number) = self.next_sync_stripe(out) {
            let stripe = self.cache.stripe(number);
            stripe.sync = super::stripe::Sync::Requested;
            stripe.wants_handling = true;
            self.cache.release(number);
        }
    }

    /// The stripe that is to be synced now: held.
    fn next_sync_stripe(&mut self, out: &mut Outputs) -> Option<u64> {
        let total = self.map.member_size().0;
        let sync = self.syncs.running.as_mut()?;
        if let Some((number, until)) = sync.held {
            if self.now < until {
                return None;
            }
            sync.held = None;
            return Some(number);
        }
        let is_drained = sync.in_work.is_empty();
        if sync.is_cancelled || sync.todo.is_empty() {
            if is_drained {
                let complete = !sync.is_cancelled;
                self.end_sync(complete, out);
            }
            return None;
        }
        if self.syncs.frozen.is_some() {
            return None;
        }
        let position = sync.position(total);
        if position > sync.checkpoint {
            let fills = sync.action.is_none();
            let due = self.recovery.checkpoint.is_some_and(|rule| {
                let (next, last) = (Sectors(position), Sectors(sync.checkpoint));
                rule.of(fills)
                    .is_due(next, last, Sectors(total), self.now, sync.checkpoint_at)
            });
            if due {
                self.take_checkpoint(position, out);
            }
        }
        let sync = self.syncs.running.as_mut()?;
        match sync.pause {
            Pause::Until(time) if self.now < time => return None,
            Pause::Drain if !is_drained => return None,
            _ => sync.pause = Pause::None,
        }
        let in_work = sync.sectors_in_work();
        let due = &mut sync.throttle_due;
        sync.pause = sync.governor.pause(due, self.now, in_work, &self.members);
        if sync.pause != Pause::None {
            return None;
        }
        let start = sync.todo.first()?.start;
        self.acquire_for_sync(start.0 / BLOCK)
    }

    fn acquire_for_sync(&mut self, number: u64) -> Option<u64> {
        let sync = self.syncs.running.as_mut()?;
        if sync.is_asleep {
            if !self.cache.wakes(number) {
                return None;
            }
            self.cache.unblock();
        }
        if !self.cache.acquire(number) {
            sync.is_asleep = true;
            return None;
        }
        sync.todo
            .remove(Span::new(number * BLOCK, (number + 1) * BLOCK));
        sync.in_work.insert(number);
        sync.throttle_due = sync.governor.issued(Sectors(BLOCK));
        if std::mem::take(&mut sync.is_asleep) {
            sync.held = Some((number, self.recovery.after_a_tick(self.now)));
            return None;
        }
        Some(number)
    }

    fn take_checkpoint(&mut self, position: u64, out: &mut Outputs) {
        let Some(sync) = self.syncs.running.as_mut() else {
            return;
        };
        sync.checkpoint = position;
        sync.checkpoint_at = self.now;
        for slot in sync.targets.iter() {
            self.members.filled_to(slot, Sectors(position));
        }
        if sync.action == Some(SyncAction::Resync) {
            self.parity_fits_below = Some(position);
        }
        out.events.push(Event::SyncCheckpoint(Sectors(position)));
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
        if complete && sync.action == Some(SyncAction::Resync) {
            self.parity_fits_below = None;
        }
        out.events.push(if complete {
            Event::SyncFinished
        } else {
            Event::SyncAborted
        });
    }

    /// `md_done_sync`.
    pub(super) fn sync_stripe_done(&mut self, number: u64, _out: &mut Outputs) {
        if let Some(sync) = &mut self.syncs.running {
            sync.in_work.remove(&number);
            for slot in sync.targets.iter() {
                let range = Span::new(number * BLOCK, (number + 1) * BLOCK);
                self.members.set_filled(slot, range, true);
            }
        }
    }

    /// A stripe that cannot be computed: its blocks are bad on the members that are
    /// filled.
    pub(super) fn sync_stripe_failed(&mut self, number: u64, out: &mut Outputs) {
        let targets = self.syncs.running.as_ref().map(|sync| sync.targets);
        for slot in targets.unwrap_or_default().iter() {
            let range = Span::new(number * BLOCK, (number + 1) * BLOCK);
            self.members.bad_range_found(slot, range, out);
        }
        self.sync_stripe_done(number, out);
    }

    pub(super) const fn freeze_stripes(&mut self) {
        self.syncs.frozen = Some(self.now);
    }

    pub(super) fn thaw_stripes(&mut self) {
        self.syncs.frozen = None;
        if let Some(sync) = &self.syncs.running {
            let position = sync.position(self.map.member_size().0);
            self.syncs.runs_since = (position, self.cache.places());
        }
    }

    /// Everything below `position` counts as done.
    pub(super) fn leap_stripes(&mut self, position: Sectors, out: &mut Outputs) {
        let total = self.map.member_size().0;
        let position = position.0 / BLOCK * BLOCK;
        let (Some(since), Some(sync)) = (self.syncs.frozen, &mut self.syncs.running) else {
            return;
        };
        let from = sync.position(total);
        let is_possible = sync.in_work.is_empty() && (from..=total).contains(&position);
        debug_assert!(is_possible, "a leap needs a frozen and drained sync");
        if !is_possible || position == from {
            return;
        }
        let (began, places) = self.syncs.runs_since;
        let seen = from.saturating_sub(began);
        self.cache.grow_unseen(places, seen, position - from);
        sync.todo.remove(Span::new(from, position));
        for slot in sync.targets.iter() {
            self.members
                .set_filled(slot, Span::new(from, position), true);
        }
        sync.governor
            .leap(since, self.now, Sectors(position - from));
        sync.pause = Pause::None;
        sync.throttle_due = position < total;
        self.syncs.frozen = Some(self.now);
        self.take_checkpoint(position, out);
    }
}
