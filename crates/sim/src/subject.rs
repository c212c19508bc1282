//! The trait of what the machine drives: the array core, or a pool.

use raidlab_array::{
    Behind, CommandId, MemberError, Outputs, Request, Slot, StepId, StepResult, SyncProgress,
};
use raidlab_units::{Bytes, Nanos, Sectors, SpanSet};
use thiserror::Error;

/// The state of a subject at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectState {
    /// Virtual time since the machine was started.
    pub at: Nanos,
    /// The state of each member in mdstat's letters: `[UU]`.
    pub health: String,
    /// The progress of a resync or recovery, where one runs.
    pub sync: Option<SyncProgress>,
    /// The part of the time until then that was leapt over.
    pub leaped: Nanos,
}

/// The way in which a sync moves along the disks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Gait {
    /// A sample of a second is enough for its pace.
    Even,
    /// It gets faster while its cache grows, and at the disks' own pace it stays.
    Growing(Nanos),
    /// It repeats itself after this time.
    Rhythmic(Nanos),
    /// A throttle holds it back.
    HeldBack,
}

/// A verb that the subject refused.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct SubjectError(pub String);

/// A subject: the sans-IO calls of the array core, and what a leap needs.
pub trait Subject {
    /// Takes a request from a job.
    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs);
    /// Takes a member's answer to a command.
    fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    );
    /// Takes the result of a step with an id, for subjects that order such steps.
    fn computed(&mut self, _now: Nanos, _step: StepId, _result: StepResult, _out: &mut Outputs) {}
    /// Does the work for which [`Self::next_tick`] announced this time.
    fn tick(&mut self, now: Nanos, out: &mut Outputs);
    /// Does the same as a turn of a thread that takes its time, where threads have such.
    fn turn(&mut self, now: Nanos, _thread: usize, out: &mut Outputs) {
        self.tick(now, out);
    }
    /// Ends the turn of that thread.
    fn turn_over(&mut self, _now: Nanos, _thread: usize, _out: &mut Outputs) {}
    /// Makes processes take time from now on to go from stripe to stripe: they go on when it is
    /// time ([`Self::go_on`]). `has_plug` says whether they have a plug meanwhile.
    fn take_time(&mut self, _has_plug: bool) {}
    /// Moves the request of this process on to its next stripe.
    fn go_on(&mut self, _now: Nanos, _process: u32, _out: &mut Outputs) {}
    /// The time at which the subject wants to be called.
    fn next_tick(&self) -> Option<Nanos>;
    /// Marks a member as failed.
    ///
    /// # Errors
    /// Where the subject's state does not allow it.
    fn fail(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError>;
    /// Takes a member out, failing it first where that is needed.
    ///
    /// # Errors
    /// Where the subject's state does not allow it.
    fn remove(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError>;
    /// Puts a member of the same kind into an empty slot.
    ///
    /// # Errors
    /// Where the subject's state does not allow it.
    fn insert(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError>;
    /// Puts a member back that was only away: the changes that it missed are copied where the
    /// subject knows them, and everything where it does not.
    ///
    /// # Errors
    /// Where the subject's state does not allow it.
    fn re_add(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.insert(now, slot, out)
    }
    /// Begins to read and compare all data that are there more than once.
    ///
    /// # Errors
    /// Where the subject's state does not allow it, or there is nothing to compare.
    fn check(&mut self, _now: Nanos, _out: &mut Outputs) -> Result<(), SubjectError> {
        Err(SubjectError("it has no check".to_owned()))
    }
    /// The sync that runs, if one does; its positions are sectors of each member.
    fn sync(&self) -> Option<SyncProgress>;
    /// Returns the positions that the sync still has to copy or compare; `None` where it is not
    /// known which of them it will pass over.
    fn sync_rest(&mut self) -> Option<SpanSet> {
        Some(self.sync()?.rest())
    }
    /// Whether a sync runs or is about to.
    fn is_syncing(&self) -> bool {
        self.sync().is_some()
    }
    /// Starts no new sync I/O until thawed.
    fn freeze_sync(&mut self);
    /// Lets sync I/O start again, as before [`Self::freeze_sync`].
    fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs);
    /// Moves a frozen, drained sync to `position`, with nothing simulated on the way.
    fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs);
    /// Takes a sequential write of `[start, start + count)` as done, which was not simulated.
    fn leap_write(&mut self, start: Sectors, count: Sectors);
    /// The time for which a phase must be simulated to be representative.
    fn leap_sample(&self) -> Nanos;
    /// The way in which its syncs move that no throttle holds back.
    fn sync_gait(&self) -> Gait {
        Gait::Even
    }
    /// The longest leap of a sequential job: after it a new sample is taken.
    fn longest_leap(&self) -> Bytes {
        Bytes(128 << 30)
    }
    /// The longest leap of a recovery.
    fn longest_sync_leap(&self) -> Nanos {
        Nanos::from_secs(600)
    }
    /// Whether the process sleeps in the subject with a request that it has just
    /// submitted, so that it submits nothing more until it wakes.
    fn holds_submitter(&self, _process: u32) -> bool {
        false
    }
    /// The number of commands so far that found no free request of their disk, so that their
    /// process slept, and that no queue of a disk counts.
    fn overflows(&self) -> u64 {
        0
    }
    /// Whether its threads, once they are woken, go before a process that has used more of the
    /// processor, on a host whose scheduler looks at that.
    fn threads_go_first(&self) -> bool {
        false
    }
    /// Puts these processes after the threads that are woken with them from now on.
    fn set_behind(&mut self, _behind: Behind) {}
    /// The things that are held back at this moment, with their causes, for people: a line
    /// for each cause.
    fn waits(&self) -> Vec<String> {
        Vec::new()
    }
    /// Prepares for a job that is about to begin: the host's memory drops its copies of the
    /// subject's data, where the modelled bench drops caches.
    fn job_begins(&mut self) {}
    /// Whether nothing is in flight to members and nothing will be without cause.
    fn is_idle(&self) -> bool;
    /// The number of the machine's disk that a command's slot means.
    fn disk_of(&self, slot: Slot) -> usize {
        slot.index()
    }
    /// The members as the letters of /proc/mdstat, such as `[U_]`.
    fn health(&self) -> String;
    /// The size offered to the jobs.
    fn size(&self) -> Sectors;
    /// The approximate place of an address of the subject on its members.
    fn member_sector(&self, sector: Sectors) -> Sectors;
    /// The place of a position of [`Self::sync`] on its members.
    fn member_sync_sector(&self, position: Sectors) -> Sectors {
        self.member_sector(position)
    }
}
