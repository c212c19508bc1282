//! What every level's engine does: the floor between an array's memory of
//! itself (superblocks, bitmap) and the moving of its data.
//!
//! An engine knows the members' states of this moment, no history: who is in
//! sync when it starts, what must be copied or compared, is told to it. It
//! reports by [`Event`](crate::Event)s what must be remembered. If
//! `record_failures` is set in its configuration, then after
//! `Event::MemberFailed(slot)` it starts no write that the failed member would
//! have had a part in, until [`Engine::failure_recorded`] says that the other
//! members' superblocks know: a crash in between must not bring the member back
//! as one that is current.

use crate::admission::Admission;
use crate::config::{AdminError, MemberConfig};
use crate::member::{EngineParts, MemberState, MemberVerbs};
use crate::recovery::{SyncKind, SyncStatus};
use crate::request::{CommandId, MemberError, Outputs, Request, Slot, StepId, StepResult};
use raidlab_units::{Nanos, Sectors, Span};

/// What a sync of members that are all in sync does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SyncAction {
    /// Make copies and parity agree, without comparing first.
    Resync,
    /// As [`Self::Resync`], of an array that was never in sync. What no write has
    /// reached since it was made is undefined, so nothing of it can be lost; what
    /// agrees by now is left alone; and where no redundancy is left, all does.
    FirstResync,
    /// Compare, count and report mismatches, change nothing.
    Check,
    /// Compare and make mismatches agree.
    Repair,
}

impl SyncAction {
    /// The kind of sync that it is.
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
    /// What the sync does.
    pub action: SyncAction,
    /// Only these ranges, ascending and apart; `None`: everything.
    pub ranges: Option<Vec<Span>>,
}

/// The lowest id of commands and steps that the floor above the engines gives
/// out; engines stay below it.
pub const FIRST_OUTER_ID: u64 = 1 << 63;

/// The lowest scratch buffer that the floor above the engines gives out.
pub const FIRST_OUTER_SCRATCH: u32 = 1 << 31;

/// The slot that commands to an external bitmap name.
pub const EXTERNAL_BITMAP: Slot = Slot(u16::MAX);

/// One level's engine, without I/O, clock or payload.
///
/// Verbs on members are [`MemberVerbs`](crate::parts::MemberVerbs)'s: what is common to all
/// engines is written there.
pub trait Engine: MemberVerbs + std::fmt::Debug + Send {
    /// Sectors that the array offers.
    fn size(&self) -> Sectors;
    /// Takes a request; what is to be done is added to `out`. The range is
    /// checked here.
    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs);
    /// Takes a member's answer.
    fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    );
    /// Takes the result of a step with an id; an engine that never asks for one has nothing
    /// to do.
    fn computed(&mut self, now: Nanos, _step: StepId, _result: StepResult, _out: &mut Outputs) {
        self.set_now(now);
    }
    /// Time has passed: what is due by now is done.
    fn tick(&mut self, now: Nanos, out: &mut Outputs);
    /// When [`Self::tick`] is to be called even if nothing happens.
    fn next_tick(&self) -> Option<Nanos>;
    /// What each slot holds, slot 0 first.
    fn member_states(&self) -> Vec<MemberState> {
        self.members().states().collect()
    }
    /// How far a sync is, if one runs.
    fn sync_status(&self) -> Option<SyncStatus>;
    /// Nothing in flight, nothing held back.
    fn is_idle(&self) -> bool;
    /// What is held back at this moment and by what, for people: a line for each cause.
    fn waits(&self) -> Vec<String> {
        Vec::new()
    }
    /// Where the engine is the model of a driver: what only models do.
    fn imitation(&self) -> Option<&dyn Imitation> {
        None
    }
    /// As [`Self::imitation`], to be changed.
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
    /// The members' superblocks know that this one has failed.
    fn failure_recorded(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) {
        self.set_now(now);
        self.members_mut().failure_recorded(slot);
        self.release_recorded(out);
        self.go_on(out);
    }
    /// The members' superblocks name this run's write log, and their bad-block logs every bad
    /// block that was told. An engine that keeps a write log writes to it from then on, until
    /// it tells of the next bad block.
    fn log_may_go_on(&mut self, now: Nanos, _out: &mut Outputs) {
        self.set_now(now);
    }
    /// Whether what a member cannot read is written anew. It stays as it is where nothing
    /// may be written to the members.
    fn set_corrects(&mut self, corrects: bool) {
        self.members_mut().corrects = corrects;
    }
    /// Lets go what waited for a failure to be recorded, as far as no other one is.
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
    /// Another device has taken a member's place, and holds all that the member held:
    /// from now on its kind decides which reads it is given, and whether bad blocks can
    /// be remembered.
    fn member_replaced(&mut self, slot: Slot, member: MemberConfig) {
        self.members_mut().set_replaced(slot, member);
    }
    /// Starts a resync, check or repair over the members in sync.
    ///
    /// # Errors
    /// When one runs.
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
    /// Begins the sync that was asked for; none runs.
    fn begin_sync(&mut self, request: SyncRequest, out: &mut Outputs);
    /// Ends the running sync early; members under recovery stay so.
    fn stop_sync(&mut self, now: Nanos, out: &mut Outputs) {
        self.set_now(now);
        self.parts().walk.cancel();
        self.go_on(out);
    }
    /// As [`Self::stop_sync`], and nothing is filled until a sync is started or a member is
    /// added: what waits for a check to end does not begin then.
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
    /// For simulations: starts no new sync block from now on; those in flight
    /// complete.
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
    /// For simulations: since the freeze (or the leap before) the sync ran evenly
    /// up to `position` (as [`SyncStatus`] counts), and now it is `now`. Nothing
    /// is copied. Only while frozen with no sync block in flight, and only
    /// forward; else it is an error of the driver and is ignored.
    fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs);
}

/// Which processes a host's scheduler has go after the threads that are woken with them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Behind {
    /// None of them.
    #[default]
    Nobody,
    /// All of them.
    All,
    /// One of them, by the number in its requests.
    Process(u32),
}

impl Behind {
    /// Whether it is this process, or this one too.
    #[must_use]
    pub const fn has(self, process: u32) -> bool {
        match self {
            Self::Nobody => false,
            Self::All => true,
            Self::Process(behind) => behind == process,
        }
    }
}

/// What an engine does only as the model of another driver, which has threads, sleepers and
/// caches. Arrays that keep data have nothing of it.
pub trait Imitation {
    /// Knocks for a write that is to be submitted later: whether it has passed what a sync
    /// holds writes back with. Nothing of the sync begins in its place from then on.
    fn enter(&mut self, _now: Nanos, _request: &Request) -> bool {
        true
    }
    /// A write for which somebody knocked never comes.
    fn leave(&mut self, _request: &Request) {}
    /// Whether a request of this process waits in a place where md has its
    /// submitter sleep: then the process submits nothing more, and does not look
    /// at what completes, until it goes on.
    fn holds_submitter(&self, process: u32) -> bool;
    /// Whether a thread of its own writes metadata, as md's does for levels with
    /// parity: it runs once the submitter sleeps, so all that was submitted in one
    /// instant is in one pass.
    fn has_a_thread(&self) -> bool {
        false
    }
    /// Whether a write to these array sectors has to leave a member out that is missing.
    fn leaves_out(&self, range: Span) -> bool;
    /// From now on these processes go after the threads that are woken with them. A sync's thread
    /// that finds the barrier free raises it before the next request of such a process comes.
    fn set_behind(&mut self, _behind: Behind) {}
    /// The host drops its caches, as before a measurement.
    fn drop_caches(&mut self) {}
    /// The threads have done what they had to do at this moment: what gathered under their
    /// plugs is sent.
    fn unplug(&mut self, _out: &mut Outputs) {}
    /// The next tick is a turn of this thread, which takes its time: it says when it is over
    /// ([`Self::end_turn`]), and has until then what it has taken.
    fn begin_turn(&mut self, _thread: usize) {}
    /// From now on it takes processes time to go from stripe to stripe: with each one their
    /// requests stop, until it is time to [`Self::go_on`]. `has_plug`: whether they have a plug
    /// that keeps the stripes which they were at until they have been at all.
    fn take_time(&mut self, _has_plug: bool) {}
    /// The request of this process goes on to its next stripe.
    fn go_on(&mut self, _now: Nanos, _process: u32, _out: &mut Outputs) {}
    /// The turn of this thread is over.
    fn end_turn(&mut self, _now: Nanos, _thread: usize, _out: &mut Outputs) {}
    /// Metadata are being written from now on, or no longer: what waits for them
    /// by the driver's own way of doing it waits.
    fn set_metadata_pass(&mut self, now: Nanos, runs: bool, out: &mut Outputs);
    /// So many sectors of metadata are written to a member: its disk is not idle (Linux
    /// drivers/md/md.c, `is_mddev_idle` counts all that is not a sync's).
    fn metadata_written(&mut self, slot: Slot, count: Sectors);
}
