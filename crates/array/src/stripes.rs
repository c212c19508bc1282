//! The engine of RAID 4, 5 and 6.
//!
//! **Windows.** All work that needs more than one member is done on a window: a range of sectors
//! within one row of chunks, in whole blocks of 4 KiB, the same sectors on every member. A write is
//! cut into windows in which each data block is written wholly or not at all (windows of one block
//! may be written in part) and gathered (`pending`): later writes merge into windows that wait,
//! full windows go at once, the others when no window reads for a write, or when too many wait. A
//! full chunk row is one window, one command for each member.
//!
//! **Jobs.** A window in work is a job (`job`), which holds a lock on its member range. Writes that
//! overlap stay gathered behind it; reads that have to compute and syncs wait their turn, before
//! the writes. Reads that a member can serve by itself go straight to it, into the request's
//! buffer: a read of a sector during a write gets the old or the new content.
//!
//! A job reads the blocks that it needs (`plan`), computes those that cannot be read from the
//! others, computes the blocks to be written, writes log records if there is a log (`log`), then
//! writes in place. When a read fails, the needs are computed again from the known blocks; if
//! the window is longer than a block and the medium is to blame, it is done again block by
//! block, so that only blocks that are bad are rebuilt (and written back). Computed blocks stay
//! right when members fail afterwards: the new content of a row does not depend on the members
//! that are present.
//!
//! **Failures.** A member is left out from the moment it fails. No in-place write, log write or
//! acknowledgement leaves until the failure is recorded. Bytes are never invented: a request fails
//! if its bytes cannot be computed from blocks known to be right, and so does every write once more
//! members than parities are lost.
//!
//! **Recovering members** are written like the others and read where they are filled. **Bad
//! blocks** of a member are not read; a write that covers them makes them good.

mod admin;
mod compute;
mod config;
mod finish;
mod flow;
mod flush;
mod job;
pub mod log;
mod pending;
mod plan;
mod read;
mod sync;
#[cfg(test)]
mod tests;
mod unwritten;
mod waits;
mod write;

pub use config::{LogConfig, RmwLevel, StripeConfig, StripeConfigError, WritePolicy};

use crate::admission::blocks_of;
use crate::engine::{Engine, SyncRequest};
use crate::member::{MemberRules, Members};
use crate::mutation::{Mutation, is as mutated};
use crate::recovery::{SyncStatus, SyncWalk};
use crate::request::{
    CommandId, ComputeStep, MemberError, Operation, Outputs, Request, RequestError, RequestId,
    ScratchId, StepId, StepResult,
};
use crate::requests::Requests;
use crate::slab::Slab;
use config::BLOCK;
use flow::Command;
use flush::Flush;
use job::{Job, JobId};
use log::Log;
use pending::Pending;
use raidlab_geometry::StripeMap;
use raidlab_units::{Nanos, Sectors, Span, SpanSet};
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// A RAID 4, 5 or 6 without I/O, clock or payload.
#[derive(Debug)]
pub struct StripeArray {
    config: StripeConfig,
    map: StripeMap,
    /// Sectors of the longest window.
    longest: u64,
    now: Nanos,
    members: Members,
    /// The ranges where parity may not fit, and nothing is computed from it.
    unsynced: SpanSet,
    /// The ranges that were never written since the array was made; disjoint from `unsynced`.
    unwritten: SpanSet,
    requests: Requests,
    commands: Slab<Command>,
    commands_in_flight: usize,
    jobs: BTreeMap<JobId, Job>,
    next_job: JobId,
    /// The ranges in work, from start to end.
    locks: BTreeMap<u64, u64>,
    /// Jobs that wait for their range.
    waiting: VecDeque<JobId>,
    /// Jobs that wait for permission to write.
    held: BTreeSet<JobId>,
    pending: Pending,
    prereads: usize,
    flushes: BTreeMap<u64, Flush>,
    next_flush: u64,
    steps: BTreeMap<u64, (JobId, u64)>,
    next_step: u64,
    free_scratch: Vec<ScratchId>,
    next_scratch: u32,
    walk: SyncWalk,
    log: Option<Log>,
}

impl StripeArray {
    /// An array whose members have the content that the configuration says. Recovery of members
    /// that need it begins with the first call.
    ///
    /// # Errors
    /// When there is no such array or a member cannot be part of it.
    pub fn new(config: StripeConfig) -> Result<Self, StripeConfigError> {
        let (map, longest) = config.check()?;
        let rules = MemberRules {
            blocks: Some((map.member_size(), BLOCK)),
            reads_filled: true,
            record_failures: true,
        };
        let members = Members::new(config.members.clone(), rules);
        Ok(Self {
            log: config.log.as_ref().map(|log| Log::new(log, map.members())),
            walk: SyncWalk::new(config.sync.throttle, config.sync.checkpoint, false),
            map,
            longest,
            now: Nanos::ZERO,
            members,
            unsynced: SpanSet::default(),
            unwritten: SpanSet::default(),
            requests: Requests::default(),
            commands: Slab::new(),
            commands_in_flight: 0,
            jobs: BTreeMap::new(),
            next_job: 0,
            locks: BTreeMap::new(),
            waiting: VecDeque::new(),
            held: BTreeSet::new(),
            pending: Pending::default(),
            prereads: 0,
            flushes: BTreeMap::new(),
            next_flush: 0,
            steps: BTreeMap::new(),
            next_step: 0,
            free_scratch: Vec::new(),
            next_scratch: 0,
            config,
        })
    }

    /// Returns the map of data and parity.
    #[must_use]
    pub const fn map(&self) -> &StripeMap {
        &self.map
    }

    /// Declares, before any read, that parity may not fit in these ranges of the members' data
    /// areas (`None`: anywhere): nothing is computed from it until a resync has passed.
    pub fn declare_unsynced(&mut self, spans: Option<&[Span]>) {
        let size = self.map.member_size();
        self.may_not_fit(&blocks_of(spans, size, BLOCK));
    }

    /// Whether more members are lost than the level tolerates.
    fn is_broken(&self) -> bool {
        self.members.in_sync().len() < self.map.data_count()
    }

    /// Whether writes have to wait because the failure of a member is not recorded yet.
    fn writes_must_wait(&self) -> bool {
        !self.members.unrecorded().is_empty()
    }

    fn allocate(&mut self, count: Sectors, out: &mut Outputs) -> ScratchId {
        let scratch = self.free_scratch.pop().unwrap_or_else(|| {
            self.next_scratch += 1;
            ScratchId(self.next_scratch - 1)
        });
        out.steps.push(ComputeStep::Allocate { scratch, count });
        scratch
    }

    fn release(&mut self, scratch: ScratchId, out: &mut Outputs) {
        out.steps.push(ComputeStep::Release { scratch });
        self.free_scratch.push(scratch);
    }

    /// Takes the result of one part of a request; the last part answers the request.
    fn settle(&mut self, id: RequestId, result: Result<(), RequestError>, out: &mut Outputs) {
        self.requests.settle(id, result, &self.members, out);
    }
}

impl Engine for StripeArray {
    fn size(&self) -> Sectors {
        self.map.size()
    }

    fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        self.now = now;
        let id = request.id;
        if !self.requests.begin(&request, self.map.size(), out) {
            return;
        }
        let mut result = Ok(());
        match request.operation {
            Operation::Read => self.submit_read(&request, out),
            Operation::Write if self.is_broken() => result = Err(RequestError::Failed),
            Operation::Write => self.submit_write(&request),
            Operation::Flush => self.submit_flush(id, out),
            // A discard is advice, which is not followed: the bytes stay, and parity with them.
            Operation::Discard => {}
        }
        self.settle(id, result, out);
        self.pump(out);
    }

    fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.now = now;
        self.command_done(command, result, out);
        self.pump(out);
    }

    fn computed(&mut self, now: Nanos, step: StepId, result: StepResult, out: &mut Outputs) {
        self.now = now;
        if let Some((job, at)) = self.steps.remove(&step.0) {
            self.job_computed(job, at, &result, out);
        }
        self.pump(out);
    }

    fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.pump(out);
    }

    fn next_tick(&self) -> Option<Nanos> {
        self.sync_wakes_at()
    }

    fn sync_status(&self) -> Option<SyncStatus> {
        self.walk.status(self.walk.position())
    }

    fn is_idle(&self) -> bool {
        self.requests.is_idle()
            && self.jobs.is_empty()
            && self.pending.is_empty()
            && self.flushes.is_empty()
            && self.commands_in_flight == 0
    }

    fn waits(&self) -> Vec<String> {
        self.waits_of_all()
    }

    fn release_recorded(&mut self, out: &mut Outputs) {
        self.requests.release(&self.members, out);
    }

    fn log_may_go_on(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        if let Some(log) = &mut self.log {
            log.is_held = false;
        }
        self.pump(out);
    }

    fn begin_sync(&mut self, request: SyncRequest, out: &mut Outputs) {
        self.walk_through(&request, out);
    }

    fn leap_sync(&mut self, now: Nanos, position: Sectors, out: &mut Outputs) {
        self.now = now;
        self.leap_windows(position, out);
    }
}
