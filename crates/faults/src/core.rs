//! What the simulation needs of an array core, and of whoever creates and
//! assembles one.

use crate::disk::Disk;
use crate::options::Options;
use crate::reader::Reader;
use raidlab_array::{
    ArrayStatus, CommandId, MemberError, MemberState, Outputs, Request, Slot, Stale, StepId,
    StepResult, SyncAction,
};
use raidlab_units::Nanos;

/// A running array.
pub trait Core {
    /// Begins: called once after assembly.
    ///
    /// # Errors
    /// Why it cannot.
    fn start(&mut self, now: Nanos, out: &mut Outputs) -> Result<(), String>;
    /// Takes a request.
    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs);
    /// Takes a member's answer.
    fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    );
    /// Takes a step's result.
    fn computed(&mut self, now: Nanos, step: StepId, result: StepResult, out: &mut Outputs);
    /// Time has passed.
    fn tick(&mut self, now: Nanos, out: &mut Outputs);
    /// When [`Self::tick`] is wanted.
    fn next_tick(&self) -> Option<Nanos>;
    /// What each slot holds.
    fn states(&self) -> Vec<MemberState>;
    /// The handle of the device that serves each slot, failed ones included.
    fn served(&self) -> Vec<Option<usize>>;
    /// All that a user is told of the array; nothing before it has started.
    fn status(&self) -> Option<ArrayStatus>;
    /// Whether writes go through a log, so that no crash opens the write hole.
    fn keeps_log(&self) -> bool;
    /// Resync, recovery, check or repair runs or is about to.
    fn is_syncing(&self) -> bool;
    /// No request is in work and none held back.
    fn is_idle(&self) -> bool;
    /// Marks a member failed.
    ///
    /// # Errors
    /// The core's reason for refusing.
    fn fail(&mut self, now: Nanos, handle: Slot, out: &mut Outputs) -> Result<(), String>;
    /// Takes a failed member out.
    ///
    /// # Errors
    /// The core's reason for refusing.
    fn remove(&mut self, now: Nanos, handle: Slot, out: &mut Outputs) -> Result<(), String>;
    /// Puts a former member in again under this handle; nothing if the disk does
    /// not say that it was one.
    fn re_add(
        &mut self,
        now: Nanos,
        handle: Slot,
        disk: (usize, &Disk),
        out: &mut Outputs,
    ) -> Option<Result<(), String>>;
    /// Puts a disk in under this handle. One that was a member before is
    /// re-added, if that can be.
    ///
    /// # Errors
    /// The core's reason for refusing.
    fn add(
        &mut self,
        now: Nanos,
        handle: Slot,
        disk: (usize, &Disk),
        out: &mut Outputs,
    ) -> Result<Added, String>;
    /// Starts a check or repair.
    ///
    /// # Errors
    /// The core's reason for refusing.
    fn start_sync(
        &mut self,
        now: Nanos,
        action: SyncAction,
        out: &mut Outputs,
    ) -> Result<(), String>;
    /// Carries out one of the administrator's orders.
    ///
    /// # Errors
    /// The core's reason for refusing.
    fn order(&mut self, now: Nanos, order: Order, out: &mut Outputs) -> Result<(), String>;
    /// Begins a clean stop; no request is in flight.
    fn stop(&mut self, now: Nanos, out: &mut Outputs);
    /// The clean stop is complete.
    fn is_stopped(&self) -> bool;
}

/// What an administrator may order beside the verbs that faults need.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A spare is filled with what this device holds, and takes its slot.
    Replace(Slot),
    /// The sync that runs ends early.
    Idle,
    /// Syncs go at least and at most so fast, in KiB/s.
    Speed(u64, u64),
    /// No more writes.
    ReadOnly,
    /// Writes again; syncs that were ended go on.
    ReadWrite,
}

/// How a disk came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Added {
    /// As a new member: all of it is filled.
    New,
    /// Again: what it lacks is filled.
    Again,
}

/// Why an array was not assembled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// Dirty, degraded, parity, no complete log: in the core's words.
    WriteHole(String),
    /// Too few current members.
    NotEnough,
    /// Both sides of a split array are there.
    SplitBrain,
    /// The power was cut during replay.
    PowerCut,
    /// Something else, in the core's words.
    Other(String),
}

/// How to assemble.
#[derive(Debug, Clone, Copy, Default)]
pub struct HowToAssemble {
    /// Take what is there, even where data may be lost.
    pub force: bool,
    /// Cut the power after so many writes of the log's replay.
    pub cut_replay_after: Option<u64>,
    /// A number, not 0, that no other run of the array has.
    pub session: u64,
    /// What becomes of members that are out of date.
    pub stale: Stale,
}

/// An array that was assembled.
pub struct Assembled {
    /// The core.
    pub core: Box<dyn Core>,
    /// Which disk each handle names: first one for each slot, then spares.
    pub handles: Vec<Option<usize>>,
    /// Those that are current.
    pub in_service: Vec<usize>,
    /// Those of them that are out of date, and were taken by force.
    pub forced: Vec<usize>,
}

/// Creates and assembles arrays on simulated disks.
pub trait Maker: Sync {
    /// Formats the disks, one for each slot.
    ///
    /// # Errors
    /// The core's reason for refusing.
    fn create(&self, options: &Options, disks: &mut [Disk]) -> Result<Reader, String>;
    /// Assembles from the disks named by `present`, in that order.
    ///
    /// # Errors
    /// Why not.
    fn assemble(
        &self,
        options: &Options,
        disks: &mut [Disk],
        present: &[usize],
        how: HowToAssemble,
    ) -> Result<Assembled, Refusal>;
}
