//! What the machine drives: the array core, or a pool, behind one trait.

use raidlab_array::{
    Behind, CommandId, MemberError, Outputs, Request, Slot, StepId, StepResult, SyncProgress,
};
use raidlab_units::{Bytes, Nanos, Sectors};
use thiserror::Error;

/// How a subject stands at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubjectState {
    /// Virtual time since the machine was started.
    pub at: Nanos,
    /// The state of each member in mdstat's letters: `[UU]`.
    pub health: String,
    /// Resync or recovery, where one runs.
    pub sync: Option<SyncProgress>,
    /// How much of the time until then was leapt over.
    pub leaped: Nanos,
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
    /// The result of a step with an id, for subjects that order such steps.
    fn computed(&mut self, _now: Nanos, _step: StepId, _result: StepResult, _out: &mut Outputs) {}
    /// Time has come to what [`Self::next_tick`] announced.
    fn tick(&mut self, now: Nanos, out: &mut Outputs);
    /// The same as a turn of a thread that takes its time, where threads have such.
    fn turn(&mut self, now: Nanos, _thread: usize, out: &mut Outputs) {
        self.tick(now, out);
    }
    /// The turn of that thread is over.
    fn turn_over(&mut self, _now: Nanos, _thread: usize, _out: &mut Outputs) {}
    /// From now on it takes processes time to go from stripe to stripe: they go on when it is
    /// time ([`Self::go_on`]). `has_plug`: whether they have a plug meanwhile.
    fn take_time(&mut self, _has_plug: bool) {}
    /// The request of this process goes on to its next stripe.
    fn go_on(&mut self, _now: Nanos, _process: u32, _out: &mut Outputs) {}
    /// When the subject wants to be called.
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
    /// Puts a member back that was only away: what it missed is copied where the subject knows
    /// that, and everything where it does not.
    ///
    /// # Errors
    /// Where the subject's state does not allow it.
    fn re_add(&mut self, now: Nanos, slot: Slot, out: &mut Outputs) -> Result<(), SubjectError> {
        self.insert(now, slot, out)
    }
    /// Whether the sync passes over what is equal anyway, so that no sample tells its pace.
    fn sync_skips(&self) -> bool {
        false
    }
    /// Begins to read and compare all that is there more than once.
    ///
    /// # Errors
    /// Where the subject's state does not allow it, or there is nothing to compare.
    fn check(&mut self, _now: Nanos, _out: &mut Outputs) -> Result<(), SubjectError> {
        Err(SubjectError("it has no check".to_owned()))
    }
    /// The sync that runs, if one does; its positions are sectors of each member.
    fn sync(&self) -> Option<SyncProgress>;
    /// A sync runs or is about to.
    fn is_syncing(&self) -> bool {
        self.sync().is_some()
    }
    /// No new sync I/O is started until thawed.
    fn freeze_sync(&mut self);
    /// Sync I/O may start again, as before [`Self::freeze_sync`].
    fn thaw_sync(&mut self, now: Nanos, out: &mut Outputs);
    /// A frozen, drained sync has advanced to `position` unseen.
    fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs);
    /// A sequential write of `[start, start + count)` has happened unseen.
    fn leap_write(&mut self, start: Sectors, count: Sectors);
    /// How long a phase must be simulated to be representative.
    fn leap_sample(&self) -> Nanos;
    /// How long it takes until its syncs do the same again, where they do not go evenly.
    fn sync_rhythm(&self) -> Option<Nanos> {
        None
    }
    /// Longest leap of a sequential job: after it a new sample is taken.
    fn longest_leap(&self) -> Bytes {
        Bytes(128 << 30)
    }
    /// Longest leap of a recovery.
    fn longest_sync_leap(&self) -> Nanos {
        Nanos::from_secs(600)
    }
    /// Whether the process sleeps in the subject with a request that it has just
    /// submitted, so that it submits nothing more until it wakes.
    fn holds_submitter(&self, _process: u32) -> bool {
        false
    }
    /// Whether its threads, once they are woken, go before a process that has used more of the
    /// processor, on a host whose scheduler looks at that.
    fn threads_go_first(&self) -> bool {
        false
    }
    /// These processes go after the threads that are woken with them from now on.
    fn set_behind(&mut self, _behind: Behind) {}
    /// What is held back at this moment and by what, for people: a line for each cause.
    fn waits(&self) -> Vec<String> {
        Vec::new()
    }
    /// A job is about to begin: what the host's memory keeps of the subject's data
    /// is let go, where the bench that is modelled drops caches.
    fn job_begins(&mut self) {}
    /// Nothing in flight to members and nothing that will be without cause.
    fn is_idle(&self) -> bool;
    /// Which of the machine's disks a command's slot means.
    fn disk_of(&self, slot: Slot) -> usize {
        slot.index()
    }
    /// The members as the letters of /proc/mdstat, such as `[U_]`.
    fn health(&self) -> String;
    /// Size offered to the jobs.
    fn size(&self) -> Sectors;
    /// About where an address of the subject lies on its members.
    fn member_sector(&self, sector: Sectors) -> Sectors;
    /// Where a position of [`Self::sync`] lies on its members.
    fn member_sync_sector(&self, position: Sectors) -> Sectors {
        self.member_sector(position)
    }
}
