//! An array that keeps its state on its members: md's superblocks, the dirty mark, the write-intent
//! bitmap, failures, recovery offsets, bad blocks.
//!
//! [`Assembly::decide`] determines the array that a set of devices forms; [`PersistentArray`] runs
//! it on top of an [`Engine`], again without I/O, clock or payload. It writes its state in passes
//! (`pass`). The rules, which together keep every acknowledged and flushed write through any crash:
//!
//! * *Dirty before data.* The first write after a pause waits until the
//!   superblocks of all members say that the array is dirty (`resync_offset`
//!   0). After 200 ms without writes they are flushed and called clean.
//! * *Bit before data.* A write waits until the bits of its chunks are durable
//!   on all members. Bits go only after two passes of the daemon, after a flush,
//!   and never while a member is missing or under recovery.
//! * *Failure before acknowledgement.* From the moment a member fails, nothing
//!   but reads is acknowledged, and the engine starts no write in which the member
//!   had a part, until the superblocks of all others call it failed.
//! * *Flush before progress.* Before superblocks record the progress of a recovery
//!   or a resync, the members are flushed.
//! * *Bad blocks before acknowledgement.* A range whose correct bytes are lost is in the
//!   bad-block log before any later request is acknowledged.
//!
//! Requests that have to wait are held in the order in which they came; reads never wait. An engine
//! acknowledges a write only when it is on the members (in their caches), not when it is merely in
//! a log: only so may a bit be cleared after a flush.
//!
//! **Handles.** Devices are named by handles, which are slots as far as drivers are concerned:
//! commands go to them, events name them. A device keeps its handle for as long as it is
//! attached. At the start a member has its slot as its handle and the others the numbers behind;
//! a spare that takes a failed member's place keeps its own handle, and [`ArrayStatus`] says
//! which slot it serves.

mod absorb;
mod agreement;
mod assembly;
mod build;
mod commands;
mod device;
mod error;
mod flushes;
mod imitation;
mod intent;
mod life;
mod log_superblock;
mod new_device;
mod pass;
mod replace;
mod start;
mod status;
mod syncs;
mod verbs;
mod waits;

pub use assembly::{
    AssembleOptions, AssembledMember, Assembly, BitmapFile, Candidate, LeftOut, LogWrite,
    NeededLog, NeededReplay, NeededSync, Part, Replay, Stale, Update,
};
pub use build::{EngineOptions, ParityBuilder};
pub use error::{AssembleError, LogFault, StartError, VerbError};
pub use log_superblock::{
    LOG_SUPERBLOCK_SECTORS, LogBlock, LogSays, LogSuperblock, Numbers, log_area,
};
pub use new_device::NewDevice;
pub use status::{ArrayState, ArrayStatus, DeviceStatus, SyncProgress};

use crate::engine::{Engine, FIRST_OUTER_ID};
use crate::member::MemberState;
use crate::mutation::{self, Mutation};
use crate::recovery::MdRules;
use crate::request::{
    CommandId, Finished, MemberError, Operation, Outputs, Request, RequestError, RequestId, Slot,
    StepId, StepResult,
};
use commands::Commands;
use device::{Device, Place};
use flushes::Flushes;
use imitation::BitPasses;
use intent::Intent;
use raidlab_geometry::{Layout, Level, StripeMap};
use raidlab_metadata::Superblock;
use raidlab_units::{Nanos, Sectors, Span};
use replace::Replacements;
use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::ops::Range;
use syncs::{InSync, Syncs};

/// The settings of a run, which the driver chooses when it starts the array.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// The time since 1970-01-01 at the driver's time 0.
    pub unix_base: Nanos,
    /// A random number that names this run in the members' write logs; 0: no log is kept.
    pub session: u64,
    /// The time without writes after which the array is marked clean: md's
    /// `safe_mode_delay`, 200 ms.
    pub safe_mode_delay: Nanos,
}

impl Settings {
    /// Settings with md's delay; the time and the session are the driver's.
    #[must_use]
    pub const fn new(unix_base: Nanos, session: u64) -> Self {
        Self {
            unix_base,
            session,
            safe_mode_delay: Nanos::from_millis(200),
        }
    }
}

/// Whether the array takes writes, and the reason if not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mode {
    ReadWrite,
    /// Writes are refused; the clean mark is still written if needed.
    ReadOnly,
    /// The array was started without permission to write anything at all.
    Untouched,
    Stopping,
    Stopped,
    /// The array's state can no longer be recorded.
    Broken,
}

impl Mode {
    const fn at_start(read_only: bool) -> Self {
        match read_only {
            true => Self::Untouched,
            false => Self::ReadWrite,
        }
    }
}

/// A request other than a read, in the engine or waiting to go there.
#[derive(Debug, Clone)]
struct Tracked {
    /// Whether the request is a write or a discard, not a flush.
    is_write: bool,
    /// The request's sectors of the array.
    range: Span,
    /// The request's range in the units of a resync.
    span: Span,
    chunks: Range<usize>,
    /// Whether the bits of its chunks are set in memory.
    is_marked: bool,
}

/// An array with its metadata: an engine, the devices that serve it, and the recorded
/// state of each.
#[derive(Debug)]
pub struct PersistentArray {
    engine: Box<dyn Engine>,
    /// The outputs of the engine's last call, kept so that no new ones are allocated.
    inner: Outputs,
    settings: Settings,
    /// Whether the array is a model of md, and not one of our own with the rules above.
    imitates_md: bool,
    /// The differences between Linux versions, where md is imitated.
    rules: MdRules,
    flushes: Flushes,
    bit_passes: BitPasses,
    now: Nanos,
    mode: Mode,
    level: Level,
    layout: Layout,
    /// The map from array ranges to member sectors, for levels with parity.
    stripes: Option<StripeMap>,
    /// The fields that all superblocks have in common.
    array: Superblock,
    devices: BTreeMap<Slot, Device>,
    /// The device that serves each of the engine's slots.
    served: Vec<Option<Slot>>,
    /// The device numbers of members that are gone.
    gone: BTreeSet<u32>,
    intent: Option<Intent>,
    bitmap_is_external: bool,
    /// The place of the records of the members' logs, the same on all; `None` if no log is kept.
    ring: Option<Span>,
    /// The device numbers of members that were away when the log was replayed.
    absent: Numbers,

    /// The number of passes with superblocks to come before anything is written.
    passes_to_start: u8,
    /// Whether the passes with superblocks that come before anything is written are over.
    started: bool,
    /// Whether there are writes, or were a moment ago.
    active: bool,
    /// Whether the superblocks of all members say that the array is dirty.
    disk_dirty: bool,
    /// The time when the array is to be marked clean.
    clean_at: Option<Nanos>,
    /// The time when the bitmap's daemon runs, or md's thread wakes by itself.
    daemon_at: Option<Nanos>,
    /// The time when bits aged last, where md is imitated.
    daemon_ran: Nanos,
    /// The part of the array in which the members agree.
    in_sync: InSync,
    /// The ranges that a resync has to cover, if not everything.
    resync_ranges: Option<Vec<Span>>,
    /// The part of the array that is in sync by the members' superblocks.
    said: InSync,
    syncs: Syncs,

    /// Requests that wait for metadata, oldest first.
    held: VecDeque<Request>,
    tracked: HashMap<RequestId, Tracked>,
    /// The number of writes and discards in the engine.
    writes: usize,
    /// Answers that wait for a failure (or bad blocks) to be recorded.
    held_finished: Vec<Finished>,
    /// Engine slots whose failure the superblocks do not record yet.
    unrecorded: BTreeSet<Slot>,
    /// Engine slots whose failure they record, and the engine has not heard of that.
    recorded: BTreeSet<Slot>,
    replacements: Replacements,
    /// Whether a request has woken the engine's thread, which runs when the submitter sleeps.
    thread_is_due: bool,
    /// Whether the engine's thread has written bits, and handles stripes before it writes others
    /// (Linux drivers/md/raid5.c, `raid5d`).
    turn_is_due: bool,
    /// Whether there are bad blocks that the logs do not name yet.
    bad_blocks_unrecorded: bool,
    /// Whether the write log waits until the superblocks name this run, or until bad
    /// blocks are recorded.
    log_waits: bool,

    pass: Option<pass::Pass>,
    /// Members whose superblocks are one event behind, with the superblock that brings them level.
    behind: Vec<(Slot, Superblock)>,
    want_superblocks: bool,
    /// Whether everything is drained, so that the next pass with superblocks is the last.
    is_final: bool,
    /// Whether some slot of the engine is not in sync.
    degraded: bool,
    commands: Commands,
}

impl PersistentArray {
    /// Returns the sectors that the array offers.
    #[must_use]
    pub fn size(&self) -> Sectors {
        self.engine.size()
    }

    /// Takes a request of the array's user; the work to be done is added to `out`.
    pub fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        self.now = now;
        match request.operation {
            Operation::Read => self.pass_to_engine(request, out),
            Operation::Flush => {
                let flush = Tracked {
                    is_write: false,
                    range: Span::between(Sectors::ZERO, Sectors::ZERO),
                    span: Span::between(Sectors::ZERO, Sectors::ZERO),
                    chunks: 0..0,
                    is_marked: false,
                };
                self.tracked.insert(request.id, flush);
                if self.flush_is_next(&request) {
                    self.pass_to_engine(request, out);
                }
            }
            Operation::Write | Operation::Discard => {
                self.submit_write(request, out);
                let imitation = self.engine.imitation();
                self.thread_is_due = imitation.is_some_and(|it| it.has_a_thread());
            }
        }
        self.pump(out);
    }

    fn submit_write(&mut self, request: Request, out: &mut Outputs) {
        let refusal = match self.mode {
            Mode::ReadWrite => None,
            Mode::ReadOnly | Mode::Untouched | Mode::Stopping | Mode::Stopped => {
                Some(RequestError::ReadOnly)
            }
            Mode::Broken => Some(RequestError::Failed),
        };
        if let Some(error) = refusal {
            out.finished.push(Finished {
                id: request.id,
                result: Err(error),
            });
            return;
        }
        if !request.is_inside(self.engine.size(), out) {
            return;
        }
        if !self.is_recorded() {
            return self.pass_to_engine(request, out);
        }
        let range = Span::between(request.start, request.start + request.count);
        let span = self.sync_span(range);
        let chunks = self.chunks_of(span);
        let write = Tracked {
            is_write: true,
            range,
            span,
            chunks,
            is_marked: false,
        };
        self.tracked.insert(request.id, write);
        if !self.enters_first() {
            self.mark(request.id);
        }
        self.active = true;
        self.clean_at = None;
        self.want_superblocks |= !self.disk_dirty && self.pass.is_none();
        self.held.push_back(request);
    }

    /// Sets the bits of a write, where that was not done yet.
    fn mark(&mut self, id: RequestId) {
        let has_workers = self.enters_first() && self.has_internal_bitmap();
        if let (Some(intent), Some(tracked)) = (&mut self.intent, self.tracked.get_mut(&id))
            && !std::mem::replace(&mut tracked.is_marked, true)
        {
            let new = intent.begin(tracked.chunks.clone());
            if has_workers {
                self.bit_passes.dirty.extend(new);
            }
        }
    }

    /// Returns the range of a write in the units of a resync and the bitmap: whole rows for
    /// levels with parity.
    fn sync_span(&self, write: Span) -> Span {
        match &self.stripes {
            None => write,
            Some(map) => {
                let first = map.locate(write.start).row;
                let last = map.locate(Sectors(write.end.0 - 1)).row;
                Span {
                    start: map.member_sector(first, Sectors::ZERO),
                    end: map.member_sector(
                        last + u64::from(!mutation::is(Mutation::LastRowUnmarked) || first == last),
                        Sectors::ZERO,
                    ),
                }
            }
        }
    }

    /// Returns the bitmap's chunks that a write touches.
    fn chunks_of(&self, span: Span) -> Range<usize> {
        let Some(intent) = &self.intent else {
            return 0..0;
        };
        let chunks = intent.chunks_of(span);
        if mutation::is(Mutation::BitmapLastChunk) && chunks.len() > 1 {
            return chunks.start..chunks.end - 1;
        }
        chunks
    }

    /// Takes a member's answer to a command.
    pub fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.now = now;
        if self.copying_answered(command, result, out) {
            // The engine does not know these commands.
        } else if command.0 >= FIRST_OUTER_ID {
            let handle = self.commands.metadata.remove(&command);
            debug_assert!(handle.is_some(), "{command:?} is not in flight");
            if let Some(handle) = handle {
                self.metadata_done(handle, result, out);
            }
        } else {
            let handle = self.commands.data.remove(&command);
            self.engine_answered(command, handle, result, out);
        }
        self.pump(out);
    }

    /// Takes the result of a step with an id.
    pub fn computed(&mut self, now: Nanos, step: StepId, result: StepResult, out: &mut Outputs) {
        self.now = now;
        self.with_engine_do(out, |engine, out| engine.computed(now, step, result, out));
        self.pump(out);
    }

    /// Does what is due by now, as time has passed.
    pub fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        let is_turn = std::mem::take(&mut self.turn_is_due);
        if std::mem::take(&mut self.thread_is_due) && !is_turn {
            // Pages of bits are sent before the engine's work.
            self.pump(out);
        }
        self.with_engine_do(out, |engine, out| engine.tick(now, out));
        self.tick_life();
        self.pump(out);
    }

    /// Returns the time when [`Self::tick`] is to be called even if nothing happens.
    #[must_use]
    pub fn next_tick(&self) -> Option<Nanos> {
        let daemon = self.daemon_at.filter(|_| self.pass.is_none());
        let clean = self.clean_at;
        let window = self.next_window_at();
        let thread = (self.thread_is_due || self.turn_is_due).then_some(self.now);
        let flush = self.flushes.next_at();
        [
            self.engine.next_tick(),
            daemon,
            clean,
            window,
            thread,
            flush,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Returns the state of each of the engine's slots.
    #[must_use]
    pub fn member_states(&self) -> Vec<MemberState> {
        self.engine.member_states()
    }

    /// Returns the device that serves each of the engine's slots.
    #[must_use]
    pub fn served(&self) -> &[Option<Slot>] {
        &self.served
    }

    /// Whether a sync runs or is about to: a recovery or a resync. A resync that waits for a
    /// missing member does not count.
    #[must_use]
    pub fn is_syncing(&self) -> bool {
        let fills = |device: &Device| matches!(device.place, Place::Recovering { .. });
        let resyncs = !self.is_in_sync() && !self.syncs.resync_waits && !self.lacks_for_resync();
        self.engine.sync_status().is_some()
            || !self.replacements.is_empty()
            || self.mode == Mode::ReadWrite && (resyncs || self.devices.values().any(fills))
    }

    /// Whether nothing is in flight, nothing held back, and nothing to be written.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.engine.is_idle()
            && self.pass.is_none()
            && self.held.is_empty()
            && self.held_finished.is_empty()
            && self.replacements.is_idle()
            && (!self.wants_pass() || !self.may_write())
    }

    /// Whether everything is on the members, and their superblocks say clean; or, if the array
    /// broke down on the way, nothing more can be done for it.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.mode == Mode::Stopped
    }

    /// Whether the superblocks of the members say that nothing is being written to the array, or
    /// will not say it: it keeps none up to date, or has broken down.
    #[must_use]
    pub fn is_recorded_clean(&self) -> bool {
        let is_recorded = !self.active && !self.want_superblocks && self.pass.is_none();
        is_recorded || !self.is_recorded() || self.mode == Mode::Broken
    }

    /// Whether the array keeps superblocks up to date: without redundancy there is no state to
    /// record (md does the same).
    fn is_recorded(&self) -> bool {
        build::is_redundant(self.level)
    }

    /// Whether metadata may be written.
    fn may_write(&self) -> bool {
        matches!(self.mode, Mode::ReadWrite | Mode::ReadOnly | Mode::Stopping)
    }

    fn has_internal_bitmap(&self) -> bool {
        self.intent.is_some() && !self.bitmap_is_external
    }
}

/// Returns a time in the form of md's superblocks: seconds in the low 40 bits, microseconds above.
fn now_since_1970(base: Nanos, now: Nanos) -> u64 {
    let since = base.0.saturating_add(now.0);
    let seconds = since / Nanos::SECOND.0;
    let micros = since % Nanos::SECOND.0 / 1000;
    seconds & ((1 << 40) - 1) | micros << 40
}
