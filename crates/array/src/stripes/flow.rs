//! The flow of work: commands out and in, locks, and the steps that every job
//! goes through.

use super::config::BLOCK;
use super::job::{Item, Job, JobId, Kind, Phase};
use super::pending::Segment;
use super::{Mutation, StripeArray, mutated};
use crate::member::MemberVerbs;
use crate::request::{
    BufferId, CommandId, MemberCommand, MemberError, Operation, Outputs, Purpose, RequestError,
    RequestId, ScratchId, Sender, Slot, StepResult,
};
use raidlab_geometry::{SlotSet, StripeMap};
use raidlab_units::{Sectors, Span};

/// The purpose of a command in flight.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    /// A read that a member serves by itself.
    Direct { index: u16, segment: Segment },
    /// A member read that a job ordered.
    JobRead(JobId),
    /// A member write that a job ordered.
    JobWrite(JobId),
    /// A member's share of the flush with this number.
    Flush(u64),
    /// A part of the log's batch.
    Log,
    /// A write of zeros to a member's log area that is being emptied.
    Wipe(ScratchId),
}

/// A command that was sent to a member and not answered yet.
#[derive(Debug, Clone, Copy)]
pub(super) struct Command {
    pub(super) slot: Slot,
    epoch: u32,
    start: u64,
    count: u64,
    pub(super) role: Role,
}

/// The consequence of a step for its job.
#[derive(Debug)]
pub(super) enum Next {
    /// The job waits for commands, steps or permission to write.
    Keep,
    /// The job is over, with this result for its requests.
    Done(Result<(), RequestError>),
    /// The job is done again block by block.
    Split,
}

/// The operation and the range of a command to a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Transfer {
    pub(super) operation: Operation,
    pub(super) start: u64,
    pub(super) count: u64,
    pub(super) buffer: BufferId,
    pub(super) purpose: Purpose,
    pub(super) force_unit_access: bool,
}

/// Returns the data blocks that a range of the array touches, ascending: row, data index and the
/// sectors as a [`Segment`].
pub(super) fn pieces(
    map: &StripeMap,
    request: RequestId,
    start: u64,
    count: u64,
) -> impl Iterator<Item = (u64, u16, Segment)> + use<> {
    let map = *map;
    let mut at = start;
    std::iter::from_fn(move || {
        if at >= start + count {
            return None;
        }
        let place = map.locate(Sectors(at));
        let left = map.chunk().0 - place.offset.0;
        let length = left.min(start + count - at);
        let from = map.member_sector(place.row, place.offset).0;
        let segment = Segment {
            start: from,
            end: from + length,
            request,
            skip: at - start,
        };
        at += length;
        Some((place.row, place.index, segment))
    })
}

impl StripeArray {
    /// Sends a command. Log areas are named in the member's own sectors, everything else in sectors
    /// of its data area.
    pub(super) fn issue(&mut self, slot: Slot, role: Role, transfer: Transfer, out: &mut Outputs) {
        debug_assert!(
            self.members.in_service().contains(slot),
            "{slot:?}: {role:?}"
        );
        let index = self.commands.insert(Command {
            slot,
            epoch: self.members.epoch(slot),
            start: transfer.start,
            count: transfer.count,
            role,
        });
        let offset = match role {
            Role::Log | Role::Wipe(_) | Role::Flush(_) => Sectors::ZERO,
            Role::Direct { .. } | Role::JobRead(_) | Role::JobWrite(_) => {
                self.members.data_offset(slot)
            }
        };
        let sender = match role {
            Role::Direct { segment, .. } => {
                Sender::Process(self.requests.process(segment.request).unwrap_or(u32::MAX))
            }
            _ => Sender::Thread,
        };
        let is_sync = transfer.purpose == Purpose::Sync;
        self.members
            .issued(slot, if is_sync { transfer.count } else { 0 });
        self.commands_in_flight += 1;
        out.commands.push(MemberCommand {
            id: CommandId(self.commands.key(index)),
            slot,
            operation: transfer.operation,
            start: offset + Sectors(transfer.start),
            count: Sectors(transfer.count),
            force_unit_access: transfer.force_unit_access,
            purpose: transfer.purpose,
            sender,
            buffer: transfer.buffer,
        });
    }

    pub(super) fn command_done(
        &mut self,
        id: CommandId,
        mut result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        let Some(command) = self.commands.take_key(id.0) else {
            return;
        };
        self.commands_in_flight -= 1;
        if command.epoch == self.members.epoch(command.slot) {
            self.members.completed(command.slot, command.count);
            let is_read = matches!(command.role, Role::Direct { .. } | Role::JobRead(_));
            if is_read && mutated(Mutation::ReadErrorIgnored) {
                result = Ok(());
            }
            // A write that is not a request's own has no other way to report its failure.
            let is_fatal = matches!(command.role, Role::Flush(_) | Role::Log | Role::Wipe(_))
                && !mutated(Mutation::WriteErrorIgnored);
            if result == Err(MemberError::Gone) || is_fatal && result.is_err() {
                self.lose_member(command.slot, out);
            }
        } else {
            // The slot has another member by now, which has not failed.
            result = Err(MemberError::Gone);
        }
        match command.role {
            Role::Direct { index, segment } => self.direct_read_done(index, segment, result, out),
            Role::JobRead(id) => self.with_job(id, out, |array, job, out| {
                job.outstanding -= 1;
                match result {
                    Ok(()) => job.known = job.known.with(command.slot),
                    Err(MemberError::Medium) => job.bad = job.bad.with(command.slot),
                    Err(MemberError::Gone) => {}
                }
                array.job_read(job, out)
            }),
            Role::JobWrite(id) => self.with_job(id, out, |array, job, out| {
                job.outstanding -= 1;
                if result.is_err() && !mutated(Mutation::WriteErrorIgnored) {
                    job.written = job.written.without(command.slot);
                    job.lost |= array.write_failed(&command, out);
                }
                array.job_written(job, out)
            }),
            Role::Flush(number) => self.flush_part_done(number, out),
            Role::Log => self.log_part_done(out),
            Role::Wipe(scratch) => self.wipe_more(scratch, out),
        }
    }

    /// Handles a failed write: the member is failed, unless the array needs it and it is still
    /// there. Then the place is bad, and the result is true.
    fn write_failed(&mut self, command: &Command, out: &mut Outputs) -> bool {
        let slot = command.slot;
        let current = command.epoch == self.members.epoch(slot);
        if !current || !self.members.in_service().contains(slot) {
            return false;
        }
        let others = self.members.in_sync().without(slot).len();
        if others >= self.map.data_count() {
            self.lose_member(slot, out);
            return false;
        }
        let start = command.start / BLOCK * BLOCK;
        let end = (command.start + command.count).next_multiple_of(BLOCK);
        self.mark_bad(slot, start, end, out);
        if let Some(log) = &mut self.log {
            log.is_held |= !mutated(Mutation::BadBlockUnawaited);
        }
        true
    }

    pub(super) fn mark_bad(&mut self, slot: Slot, start: u64, end: u64, out: &mut Outputs) {
        if mutated(Mutation::BadBlockForgotten) {
            return;
        }
        let range = Span::new(start, end);
        self.members.bad_range_found(slot, range, out);
    }

    /// Continues all work as far as possible.
    pub(super) fn pump(&mut self, out: &mut Outputs) {
        loop {
            let mut moved = false;
            if !self.writes_must_wait() {
                for id in std::mem::take(&mut self.held) {
                    moved = true;
                    self.with_job(id, out, Self::proceed);
                }
            }
            moved |= self.start_waiting(out);
            moved |= self.dispatch_writes(out);
            moved |= self.pump_log(out);
            moved |= self.pump_sync(out);
            if !moved {
                return;
            }
        }
    }

    /// Takes a job out, calls a function with it, and puts it back or ends it.
    pub(super) fn with_job(
        &mut self,
        id: JobId,
        out: &mut Outputs,
        step: impl FnOnce(&mut Self, &mut Job, &mut Outputs) -> Next,
    ) {
        let Some(mut job) = self.jobs.remove(&id) else {
            return;
        };
        match step(self, &mut job, out) {
            Next::Keep => {
                self.jobs.insert(id, job);
            }
            Next::Done(result) => self.end_job(job, result, out),
            Next::Split => self.split_job(job, out),
        }
    }

    pub(super) fn is_locked(&self, start: u64, end: u64) -> bool {
        let last = self.locks.range(..end).next_back();
        last.is_some_and(|(_, to)| *to > start) && !mutated(Mutation::StripeLockIgnored)
    }

    /// Whether a job waits for a part of this range.
    pub(super) fn is_awaited(&self, start: u64, end: u64) -> bool {
        let mut jobs = self.waiting.iter().filter_map(|id| self.jobs.get(id));
        jobs.any(|job| job.start < end && start < job.end)
    }

    /// Gives a job its number; it starts when its range is free.
    pub(super) fn enqueue(&mut self, mut job: Job) {
        job.id = self.next_job;
        self.next_job += 1;
        self.waiting.push_back(job.id);
        self.jobs.insert(job.id, job);
    }

    fn start_waiting(&mut self, out: &mut Outputs) -> bool {
        let mut moved = false;
        for id in std::mem::take(&mut self.waiting) {
            let Some(job) = self.jobs.get(&id) else {
                continue;
            };
            if self.is_locked(job.start, job.end) {
                self.waiting.push_back(id);
                continue;
            }
            moved = true;
            self.locks.insert(job.start, job.end);
            self.with_job(id, out, Self::job_read);
        }
        moved
    }

    /// Reads blocks into the job's scratch memory.
    pub(super) fn read_blocks(&mut self, job: &mut Job, slots: SlotSet, out: &mut Outputs) {
        job.phase = Phase::Reading;
        for slot in slots.iter() {
            self.scratch_for(job, slot, out);
            job.outstanding += 1;
            let transfer = Transfer {
                operation: Operation::Read,
                start: job.start,
                count: job.end - job.start,
                buffer: job.old_block(slot),
                purpose: job.purpose(),
                force_unit_access: false,
            };
            self.issue(slot, Role::JobRead(job.id), transfer, out);
        }
    }

    /// Allocates the scratch memory of a slot, if it has none.
    pub(super) fn scratch_for(&mut self, job: &mut Job, slot: Slot, out: &mut Outputs) {
        if job.old[slot.index()].is_none() {
            let scratch = self.allocate(job.count(), out);
            job.scratch.push(scratch);
            job.old[slot.index()] = Some(scratch);
        }
    }

    /// Continues when all reads of a job so far are back, or none was needed.
    pub(super) fn job_read(&mut self, job: &mut Job, out: &mut Outputs) -> Next {
        if job.outstanding > 0 {
            return Next::Keep;
        }
        if !job.bad.is_empty() && job.end - job.start > BLOCK {
            return Next::Split;
        }
        match job.kind {
            Kind::Write { .. } => self.step_write(job, out),
            Kind::Read { .. } => self.step_read(job, out),
            Kind::Sync => self.step_sync(job, out),
        }
    }

    pub(super) fn job_computed(
        &mut self,
        id: JobId,
        at: u64,
        result: &StepResult,
        out: &mut Outputs,
    ) {
        self.with_job(id, out, |array, job, out| {
            job.outstanding -= 1;
            array.sync_computed(job, at, result, out)
        });
    }

    /// Adds writes of blocks that the medium refused and that are known by now.
    pub(super) fn add_corrections(job: &mut Job) {
        let rewritten: SlotSet = job.writes.iter().map(|item| item.slot).collect();
        for slot in ((job.bad & job.known) - rewritten).iter() {
            job.writes.push(Item {
                slot,
                buffer: job.old_block(slot),
                start: job.start,
                count: job.end - job.start,
            });
        }
    }

    /// Adds one part to these requests each time they are named.
    pub(super) fn count(&mut self, requests: &[RequestId]) {
        for id in requests {
            self.requests.add_part(*id);
        }
    }
}
