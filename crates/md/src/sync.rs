//! Resync, check and recovery (`md_do_sync`, `raid5_sync_request`).
//!
//! md's sync thread asks for one stripe after the other and goes on until its throttle stops it.
//! Where the cache has no stripe left it sleeps like other processes, and with the one that it then
//! gets it sleeps a tick more, to give way to others. A stripe is read from all members that have
//! it; where nothing is lost its parity is compared, else the lost blocks are computed and written
//! to the members under recovery. A member under recovery serves reads up to the last checkpoint.

use super::{BLOCK, Raid5d};
use raidlab_array::parts::{Plan, Step, blocks_of};
use raidlab_array::{Event, Outputs, SyncAction, SyncKind, SyncRequest};
use raidlab_units::{Nanos, Sectors, Span, SpanSet};

/// The sleeps of the sync's thread for stripes, and the rate that a leap assumes.
#[derive(Debug, Default)]
pub(super) struct SyncThread {
    /// Whether the thread sleeps until the cache has a stripe for it.
    is_asleep: bool,
    /// The stripe that the thread slept for, and the time until which it sleeps with it.
    held: Option<(u64, Nanos)>,
    /// The position and the places of the cache from which on the sync runs evenly.
    runs_since: (Sectors, u64),
}

/// The sectors of a stripe.
const fn block_of(number: u64) -> Span {
    Span::new(number * BLOCK, (number + 1) * BLOCK)
}

impl Raid5d {
    fn wants_recovery(&self) -> bool {
        self.walk.owes_recovery(&self.members) && !self.is_broken()
    }

    pub(super) fn sync_wakes_at(&self) -> Option<Nanos> {
        if let Some((_, until)) = self.sync_thread.held {
            // The sleep has begun, so it ends even while syncs are frozen.
            return Some(until);
        }
        let begins = self.wants_recovery() && !self.walk.is_frozen();
        begins.then_some(self.now).or(self.walk.wakes_at())
    }

    fn launch(&mut self, kind: SyncKind, todo: SpanSet, out: &mut Outputs) {
        let size = self.map.member_size();
        let plan = Plan::of_data_areas(kind, todo, size, &self.members);
        let start = self.walk.begin(self.now, plan, &self.members);
        out.events.push(Event::SyncStarted(start));
        self.sync_thread = SyncThread::default();
        self.runs_evenly();
    }

    /// Marks the position from which on the sync runs evenly.
    pub(super) fn runs_evenly(&mut self) {
        self.sync_thread.runs_since = (self.walk.position(), self.cache.places());
    }

    pub(super) fn walk_through(&mut self, request: &SyncRequest, out: &mut Outputs) {
        let size = self.map.member_size();
        let mut todo = blocks_of(request.ranges.as_deref(), size, BLOCK);
        let has_redundancy = self.members.in_sync().len() > self.map.data_count();
        if request.action == SyncAction::FirstResync && !has_redundancy {
            // Without redundancy there is nothing to compare.
            todo.clear();
        }
        if request.action.kind() == SyncKind::Resync {
            self.parity_fits_below = todo.first().map(|span| span.start.0);
        }
        self.launch(request.action.kind(), todo, out);
    }

    /// Starts stripes, takes checkpoints, ends the sync.
    pub(super) fn pump_sync(&mut self, out: &mut Outputs) {
        if self.wants_recovery() && !self.walk.is_frozen() {
            let todo = self.members.unfilled_of_all();
            self.launch(SyncKind::Recovery, todo, out);
        }
        while let Some(number) = self.next_sync_stripe(out) {
            let stripe = self.cache.stripe(number);
            stripe.sync = super::stripe::SyncStage::Requested;
            stripe.wants_handling = true;
            self.cache.release(number);
        }
    }

    /// Returns the stripe to be synced now, with a reference to it.
    fn next_sync_stripe(&mut self, out: &mut Outputs) -> Option<u64> {
        if let Some((number, _)) = self
            .sync_thread
            .held
            .take_if(|(_, until)| self.now >= *until)
        {
            return Some(number);
        }
        if self.sync_thread.held.is_some() {
            return None;
        }
        loop {
            match self.walk.step(self.now, &self.members) {
                Step::Wait => return None,
                Step::Block(start) => return self.acquire_for_sync(start.0 / BLOCK),
                Step::Checkpoint(position) => self.checkpoint_taken(position, out),
                Step::Finish => {
                    if self.walk.kind() == Some(SyncKind::Resync) {
                        self.parity_fits_below = None;
                    }
                    self.walk
                        .conclude(Event::SyncFinished, &mut self.members, out);
                    return None;
                }
                Step::Abort => {
                    // Nobody else may be left to wake for a stripe and end the wait of all.
                    if std::mem::take(&mut self.sync_thread.is_asleep) {
                        self.cache.unblock();
                    }
                    self.walk
                        .conclude(Event::SyncAborted, &mut self.members, out);
                    return None;
                }
            }
        }
    }

    fn acquire_for_sync(&mut self, number: u64) -> Option<u64> {
        if self.sync_thread.is_asleep {
            if !self.cache.wakes(number) {
                return None;
            }
            self.cache.unblock();
        }
        if !self.cache.acquire(number) {
            self.sync_thread.is_asleep = true;
            return None;
        }
        self.walk.take(block_of(number));
        if std::mem::take(&mut self.sync_thread.is_asleep) {
            self.sync_thread.held = Some((number, self.recovery.after_a_tick(self.now)));
            return None;
        }
        Some(number)
    }

    fn checkpoint_taken(&mut self, position: Sectors, out: &mut Outputs) {
        for slot in self.walk.targets().iter() {
            self.members.filled_to(slot, position);
        }
        if self.walk.kind() == Some(SyncKind::Resync) {
            self.parity_fits_below = Some(position.0);
        }
        out.events.push(Event::SyncCheckpoint(position));
    }

    /// Records that a stripe of the sync is done (`md_done_sync`).
    pub(super) fn sync_stripe_done(&mut self, number: u64) {
        let block = block_of(number);
        self.walk.ended(block);
        for slot in self.walk.targets().iter() {
            self.members.set_filled(slot, block, true);
        }
    }

    /// Records that a stripe cannot be computed: its blocks become bad on the
    /// members under recovery.
    pub(super) fn sync_stripe_failed(&mut self, number: u64, out: &mut Outputs) {
        for slot in self.walk.targets().iter() {
            self.members.bad_range_found(slot, block_of(number), out);
        }
        self.sync_stripe_done(number);
    }

    /// Counts everything below `position` as done.
    pub(super) fn leap_stripes(&mut self, position: Sectors, out: &mut Outputs) {
        let Some(leapt) = self.walk.leap_blocks(self.now, position, BLOCK) else {
            return;
        };
        let (began, places) = self.sync_thread.runs_since;
        let seen = leapt.start.0.saturating_sub(began.0);
        self.cache.grow_unseen(places, seen, leapt.count().0);
        for slot in self.walk.targets().iter() {
            self.members.set_filled(slot, leapt, true);
        }
        self.checkpoint_taken(self.walk.checkpoint(), out);
    }
}
