//! The interface of every level's engine, which moves an array's data; the layer above keeps the
//! metadata (superblocks, bitmap).
//!
//! An engine knows the members' states of this moment, no history: it is told which members are in
//! sync at the start, and what must be copied or compared. It reports by [`Event`](crate::Event)s
//! what must be recorded. If `record_failures` is set in its configuration, then after
//! `Event::MemberFailed(slot)` it starts no write in which the failed member would have had a part,
//! until [`Engine::failure_recorded`] reports that the other members' superblocks contain the
//! failure: a crash in between must not bring the member back as a current one.

use crate::admission::Admission;
use crate::config::{AdminError, MemberConfig};
use crate::member::{EngineParts, MemberState, MemberVerbs};
use crate::recovery::{SyncKind, SyncStatus};
use crate::request::{CommandId, MemberError, Outputs, Request, Slot, StepId, StepResult};
use raidlab_units::{Nanos, Sectors, Span, SpanSet};

/// The action of a sync of members that are all in sync.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncAction {
    /// Make copies and parity agree, without comparing first.
    Resync,
    /// [`Self::Resync`] of an array that was never in sync. Sectors that were never written since
    /// it was made are undefined, so they cannot be lost; sectors that agree by now are left alone;
    /// and where no redundancy is left, all do.
    FirstResync,
    /// Compare, count and report mismatches, change nothing.
    Check,
    /// Compare and make mismatches agree.
    Repair,
}

impl SyncAction {
    /// Returns the kind of the sync.
    #[must_use]
    pub const fn kind(self) -> SyncKind {
        match self {
            Self::Resync | Self::FirstResync => SyncKind::Resync,
            Self::Check => SyncKind::Check,
            Self::Repair => SyncKind::Repair,
        }
    }
}

/// A resync, check or repair. Positions are array sectors for levels without
/// parity, sectors of the members' data areas for levels with parity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyncRequest {
    /// The action of the sync.
    pub action: SyncAction,
    /// The ranges to be synced, ascending and apart; `None`: everything.
    pub ranges: Option<Vec<Span>>,
}

/// The lowest id of commands and steps of the layer above the engines; engines stay below it.
pub const FIRST_OUTER_ID: u64 = 1 << 63;

/// The lowest scratch buffer of the layer above the engines.
pub const FIRST_OUTER_SCRATCH: u32 = 1 << 31;

/// The slot of commands to an external bitmap.
pub const EXTERNAL_BITMAP: Slot = Slot(u16::MAX);

/// The engine of one level, without I/O, clock or payload.
///
/// Verbs on members come from [`MemberVerbs`](crate::parts::MemberVerbs), which contains the parts
/// common to all engines.
pub trait Engine: MemberVerbs + std::fmt::Debug + Send {
    /// Returns the sectors that the array offers.
    fn size(&self) -> Sectors;
    /// Takes a request; the work to be done is added to `out`. The range is checked here.
    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs);
    /// Takes a member's answer.
    fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    );
    /// Takes the result of a step with an id; an engine that never orders such a step ignores it.
    fn computed(&mut self, now: Nanos, _step: StepId, _result: StepResult, _out: &mut Outputs) {
        self.set_now(now);
    }
    /// Does what is due by now, as time has passed.
    fn tick(&mut self, now: Nanos, out: &mut Outputs);
    /// Returns the time when [`Self::tick`] is to be called even if nothing happens.
    fn next_tick(&self) -> Option<Nanos>;
    /// Returns the state of each slot, slot 0 first.
    fn member_states(&self) -> Vec<MemberState> {
        self.members().states().collect()
    }
    /// Returns the progress of the sync, if one runs.
    fn sync_status(&self) -> Option<SyncStatus>;
    /// Whether nothing is in flight and nothing is held back.
    fn is_idle(&self) -> bool;
    /// Returns what is held back at this moment and why, in words: a line for each cause.
    fn waits(&self) -> Vec<String> {
        Vec::new()
    }
    /// Returns the methods that only models of other drivers have, if the engine is one.
    fn imitation(&self) -> Option<&dyn Imitation> {
        None
    }
    /// Returns the same methods as [`Self::imitation`], mutably.
    fn imitation_mut(&mut self) -> Option<&mut dyn Imitation> {
        None
    }
    /// Marks a member failed.
    ///
    /// # Errors
    /// When there is no such member, it failed before, or the array needs it.
    fn fail(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        self.set_now(now);
        self.fail_member(slot, out)?;
        self.go_on(out);
        Ok(())
    }
    /// Tells the engine that the other members' superblocks record this member's failure.
    fn failure_recorded(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) {
        self.set_now(now);
        self.members_mut().failure_recorded(slot);
        self.release_recorded(out);
        self.go_on(out);
    }
    /// Tells the engine that the members' superblocks name this run's write log, and their
    /// bad-block logs every bad block that was reported. An engine that keeps a write log writes to
    /// it from then on, until it reports the next bad block.
    fn log_may_go_on(&mut self, now: Nanos, _out: &mut Outputs) {
        self.set_now(now);
    }
    /// Sets whether sectors that a member cannot read are rewritten. They are not where nothing may
    /// be written to the members.
    fn set_corrects(&mut self, corrects: bool) {
        self.members_mut().corrects = corrects;
    }
    /// Resumes requests that waited for a failure to be recorded, unless they wait for another one.
    fn release_recorded(&mut self, out: &mut Outputs);
    /// Empties a slot; a member in service fails first.
    ///
    /// # Errors
    /// As [`Self::fail`].
    fn remove(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), AdminError> {
        self.set_now(now);
        self.remove_member(slot, out)?;
        self.go_on(out);
        Ok(())
    }
    /// Puts a member into an empty slot; its recovery starts when no other
    /// sync runs.
    ///
    /// # Errors
    /// When the slot does not exist or is occupied, or the member is too small.
    fn add(
        &mut self,
        now: Nanos,
        slot: Slot,
        member: MemberConfig,
        admission: Admission,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        self.set_now(now);
        self.add_member(slot, member, &admission, out)?;
        self.go_on(out);
        Ok(())
    }
    /// Tells the engine that another device has replaced a member, with the same content: from now
    /// on its kind determines which reads it gets, and whether bad blocks can be recorded.
    fn member_replaced(&mut self, slot: Slot, member: MemberConfig) {
        self.members_mut().set_replaced(slot, member);
    }
    /// Starts a resync, check or repair over the members in sync.
    ///
    /// # Errors
    /// When a sync runs already.
    fn start_sync(
        &mut self,
        now: Nanos,
        request: SyncRequest,
        out: &mut Outputs,
    ) -> Result<(), AdminError> {
        self.set_now(now);
        let walk = self.parts().walk;
        if walk.is_running() {
            return Err(AdminError::SyncRunning);
        }
        walk.is_held = false;
        self.begin_sync(request, out);
        self.go_on(out);
        Ok(())
    }
    /// Begins the requested sync; called only while none runs.
    fn begin_sync(&mut self, request: SyncRequest, out: &mut Outputs);
    /// Ends the running sync early; members under recovery stay in that state.
    fn stop_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.set_now(now);
        self.parts().walk.cancel();
        self.go_on(out);
    }
    /// Ends the running sync like [`Self::stop_sync`], and starts no recovery until a sync is
    /// started or a member is added: one that waits for a check to end does not begin then.
    fn halt_syncs(&mut self, now: Nanos, out: &mut Outputs) {
        self.parts().walk.is_held = true;
        self.stop_sync(now, out);
    }
    /// Sets the throttle of syncs, in KiB/s per member.
    fn set_sync_speed(&mut self, minimum_kib_per_second: u64, maximum_kib_per_second: u64) {
        let (minimum, maximum) = (minimum_kib_per_second, maximum_kib_per_second);
        let EngineParts { now, members, walk } = self.parts();
        walk.set_speeds(*now, minimum, maximum, members);
    }
    /// Returns the positions that the running sync still has to copy or compare, for simulations;
    /// `None` where the engine does not know which it will pass over.
    fn sync_rest(&mut self) -> Option<SpanSet> {
        Some(self.parts().walk.rest())
    }
    /// Starts no new sync block from now on, for simulations; those in flight complete.
    fn freeze_sync(&mut self) {
        let EngineParts { now, walk, .. } = self.parts();
        walk.freeze(*now);
    }
    /// Ends [`Self::freeze_sync`]: blocks of the sync may start again.
    fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.set_now(now);
        self.parts().walk.thaw();
        self.go_on(out);
    }
    /// Skips part of a sync, for simulations: since the freeze (or the leap before) the sync ran
    /// evenly up to `position` (as [`SyncStatus`] counts), and now it is `now`. Nothing is copied.
    /// Only while frozen with no sync block in flight, and only forward; else it is an error of the
    /// driver and is ignored.
    fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs);
}

/// The processes that a host's scheduler runs after the threads that are woken with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Behind {
    /// No process runs after the threads.
    #[default]
    Nobody,
    /// Every process runs after the threads.
    All,
    /// One process, by the number in its requests.
    Process(u32),
}

impl Behind {
    /// Whether this process is among them.
    #[must_use]
    pub const fn has(self, process: u32) -> bool {
        match self {
            Self::Nobody => false,
            Self::All => true,
            Self::Process(behind) => behind == process,
        }
    }
}

/// The methods of an engine only as the model of another driver, which has threads, sleepers and
/// caches. Arrays that keep data have none of them.
pub trait Imitation {
    /// Asks to let in a write that is to be submitted later; returns whether it has passed the
    /// barrier of a sync. The sync begins nothing at its place from then on.
    fn enter(&mut self, _now: Nanos, _request: &Request) -> bool {
        true
    }
    /// Forgets a write for which [`Self::enter`] was called and that is never submitted.
    fn leave(&mut self, _request: &Request) {}
    /// Whether a request of this process waits in a place where md puts its submitter to sleep:
    /// then the process submits nothing more, and does not see completions, until it goes on.
    fn holds_submitter(&self, process: u32) -> bool;
    /// The number of commands so far that found no free request of their disk, and that no queue of
    /// a disk counts.
    fn overflows(&self) -> u64 {
        0
    }
    /// Whether a thread of its own writes metadata, as md's does for levels with parity: it runs
    /// once the submitter sleeps, so all requests submitted in one instant are in one pass.
    fn has_a_thread(&self) -> bool {
        false
    }
    /// Whether a write to these array sectors has to leave out a missing member.
    fn leaves_out(&self, range: Span) -> bool;
    /// Makes these processes run after the threads that are woken with them. A sync's thread that
    /// finds the barrier free raises it before the next request of such a process comes.
    fn set_behind(&mut self, _behind: Behind) {}
    /// Drops the host's caches, as before a measurement.
    fn drop_caches(&mut self) {}
    /// Sends the commands under the plugs of the threads, which have finished their work
    /// of this moment.
    fn unplug(&mut self, _out: &mut Outputs) {}
    /// Makes the next tick a turn of this thread, which takes time: its end is reported by
    /// [`Self::end_turn`], and until then the thread keeps what it has taken.
    fn begin_turn(&mut self, _thread: usize) {}
    /// Makes processes take time to go from stripe to stripe: at each one their requests stop,
    /// until [`Self::go_on`] is called. `has_plug`: whether they have a plug that keeps the stripes
    /// which they have visited until they have visited all.
    fn take_time(&mut self, _has_plug: bool) {}
    /// Moves the request of this process on to its next stripe.
    fn go_on(&mut self, _now: Nanos, _process: u32, _out: &mut Outputs) {}
    /// Ends the turn of this thread.
    fn end_turn(&mut self, _now: Nanos, _thread: usize, _out: &mut Outputs) {}
    /// Tells that metadata are being written from now on, or no longer: work that waits for them in
    /// the imitated driver waits.
    fn set_metadata_pass(&mut self, now: Nanos, runs: bool, out: &mut Outputs);
    /// Records that this many sectors of metadata are written to a member: its disk is not idle
    /// (Linux drivers/md/md.c, `is_mddev_idle` counts all I/O that is not a sync's).
    fn metadata_written(&mut self, slot: Slot, count: Sectors);
}
