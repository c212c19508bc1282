//! The array: requests in, member commands out.
//!
//! A read is cut at the size limit, each part is given to the member that the
//! read policy chooses, and is asked from another one if that fails. A write
//! (or discard) is cut likewise; each part waits for the write barrier, goes to
//! every member that must have it, and has succeeded if at least one member
//! that is in sync when the part is done took it. A flush goes to all members
//! in sync. A member that fails a write or a flush, or says that it is gone, is
//! failed, unless it is the last one in sync: then the request fails.
//!
//! Commands in flight are entries of a slab; a command's id is its index and
//! generation. An entry remembers the member's epoch, so that an answer from a
//! member that has failed since counts as no answer.

mod admin;
mod read;
mod sync;
#[cfg(test)]
mod tests;
mod write;

use crate::config::{ArrayConfig, ConfigError};
use crate::geometry::{Geometry, Mirror};
use crate::member::{MemberState, Members};
use crate::policy::{Io, IoKind, ReadPolicy};
use crate::recovery::{Range, Recovery, SyncStatus, WriteTicket};
use crate::request::{
    BufferId, CommandId, Finished, MemberCommand, MemberError, Operation, Outputs, Purpose,
    Request, RequestError, Slot,
};
use crate::slab::Slab;
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors};
use std::collections::VecDeque;

/// A software RAID array without I/O, clock or payload.
#[derive(Debug)]
pub struct Array {
    geometry: Geometry,
    members: Members,
    policy: Box<dyn ReadPolicy>,
    size: Sectors,
    maximum_request: Sectors,
    requests: Slab<RequestState>,
    pieces: Slab<Piece>,
    commands: Slab<Command>,
    /// Pieces that the write barrier holds back, oldest first.
    waiting: VecDeque<u32>,
    recovery: Recovery,
    /// A dirty mirror: reads that end above this are not balanced.
    resynced_below: Option<Sectors>,
    /// The latest time that the driver told.
    now: Nanos,
}

/// A request in work.
#[derive(Debug, Clone, Copy)]
struct RequestState {
    request: Request,
    /// Commands (reads) or pieces (all others) outstanding.
    remaining: u32,
    failed: bool,
}

/// A part of a write or discard, or a flush, that goes to several members.
#[derive(Debug, Clone, Copy)]
struct Piece {
    request: u32,
    range: Range,
    /// Commands outstanding; 0 while the piece waits.
    outstanding: u32,
    succeeded: SlotSet,
    ticket: WriteTicket,
}

/// A member command in flight.
#[derive(Debug, Clone, Copy)]
struct Command {
    slot: Slot,
    epoch: u32,
    role: Role,
    start: Sectors,
    count: Sectors,
}

#[derive(Debug, Clone, Copy)]
enum Role {
    /// Part of a read; the members that failed it before.
    Read { request: u32, tried: SlotSet },
    /// One member's share of a piece that is a write or discard.
    Write { piece: u32 },
    /// One member's share of a flush.
    Flush { piece: u32 },
    /// The read of a sync block, and whether the policy chose.
    SyncRead { block: u32, balanced: bool },
    /// A write of a sync block.
    SyncWrite { block: u32 },
}

/// What a command is to look like to the member.
struct Shape {
    operation: Operation,
    force_unit_access: bool,
    buffer: BufferId,
}

impl Array {
    /// An array with all members in sync and nothing in flight.
    ///
    /// # Errors
    /// When the configuration cannot work: see [`ConfigError`].
    pub fn new(config: ArrayConfig) -> Result<Self, ConfigError> {
        config.check()?;
        let count = config.members.len();
        Ok(Self {
            geometry: Geometry::Mirror(Mirror::new(config.size, count)),
            policy: config.read_policy.build(count),
            members: Members::new(config.members),
            size: config.size,
            maximum_request: config.maximum_request,
            requests: Slab::new(),
            pieces: Slab::new(),
            commands: Slab::new(),
            waiting: VecDeque::new(),
            recovery: Recovery::new(config.recovery, config.size),
            resynced_below: None,
            now: Nanos::ZERO,
        })
    }

    /// Sectors that the array offers.
    #[must_use]
    pub const fn size(&self) -> Sectors {
        self.size
    }

    /// What each slot holds, slot 0 first.
    pub fn member_states(&self) -> impl Iterator<Item = MemberState> {
        self.members.states()
    }

    /// The members in the letters of `/proc/mdstat`: `[UU]`, `[U_]`.
    #[must_use]
    pub fn health(&self) -> String {
        let letters = self.member_states().map(|state| match state {
            MemberState::InSync => 'U',
            _ => '_',
        });
        format!("[{}]", letters.collect::<String>())
    }

    /// How far recovery or resync is, if one runs.
    #[must_use]
    pub fn sync_status(&self) -> Option<SyncStatus> {
        self.recovery.status()
    }

    /// When [`tick`](Self::tick) is to be called even if nothing happens. It
    /// changes only in calls to the array.
    #[must_use]
    pub fn next_tick(&self) -> Option<Nanos> {
        self.recovery.wake_at()
    }

    /// Time has passed.
    pub fn tick(&mut self, now: Nanos, out: &mut Outputs) {
        self.now = now;
        self.pump_sync(out);
    }

    /// Takes a request; what is to be done is added to `out`.
    pub fn submit(&mut self, now: Nanos, request: Request, out: &mut Outputs) {
        self.now = now;
        if request.operation != Operation::Flush && !self.is_inside(&request) {
            out.finished.push(Finished {
                id: request.id,
                result: Err(RequestError::OutOfRange),
            });
            return;
        }
        let key = self.requests.insert(RequestState {
            request,
            remaining: 0,
            failed: false,
        });
        match request.operation {
            Operation::Read => self.submit_read(key, &request, out),
            Operation::Write | Operation::Discard => self.submit_write(key, &request, out),
            Operation::Flush => self.submit_flush(key, out),
        }
    }

    /// Takes a member's answer. An answer to a command that is not in flight
    /// is an error of the driver and is ignored.
    pub fn complete(
        &mut self,
        now: Nanos,
        command: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.now = now;
        let Some(command) = self.commands.take_key(command.0) else {
            debug_assert!(false, "{command:?} is not in flight");
            return;
        };
        let in_service = self.members.epoch(command.slot) == command.epoch;
        if in_service {
            self.members.completed(command.slot, command.count.0);
            if let Some(io) = command.io() {
                self.policy.completed(&io);
            }
        }
        let result = if in_service {
            result
        } else {
            Err(MemberError::Gone)
        };
        match command.role {
            Role::Read { request, tried } => {
                self.complete_read(&command, request, tried, result, out);
            }
            Role::Write { piece } | Role::Flush { piece } => {
                self.complete_piece(&command, piece, result, out);
            }
            Role::SyncRead { block, .. } => self.complete_sync_read(&command, block, result, out),
            Role::SyncWrite { block } => self.complete_sync_write(&command, block, result, out),
        }
    }

    fn is_inside(&self, request: &Request) -> bool {
        let end = request.start.0.checked_add(request.count.0);
        request.count > Sectors::ZERO && end.is_some_and(|end| end <= self.size.0)
    }

    /// How many sectors from `start` may be one command of a range that ends
    /// at `end`.
    #[inline]
    fn command_limit(&self, start: Sectors, end: Sectors) -> Sectors {
        let mut limit = Sectors(end.0 - start.0).min(self.geometry.contiguous(start));
        if self.maximum_request > Sectors::ZERO {
            limit = limit.min(self.maximum_request);
        }
        if let Some(boundary) = self.recovery.boundary(start) {
            limit = limit.min(Sectors(boundary.0 - start.0));
        }
        limit
    }

    /// Sends a command to a member.
    #[inline]
    fn issue(&mut self, slot: Slot, role: Role, range: Range, shape: Shape, out: &mut Outputs) {
        let command = Command {
            slot,
            epoch: self.members.epoch(slot),
            role,
            start: range.start,
            count: Sectors(range.end.0 - range.start.0),
        };
        let (purpose, sync_sectors) = match role {
            Role::SyncRead { .. } | Role::SyncWrite { .. } => (Purpose::Sync, command.count.0),
            _ => (Purpose::Foreground, 0),
        };
        self.members.issued(slot, sync_sectors);
        if let Some(io) = command.io() {
            self.policy.issued(&io, self.members.views());
        }
        let start = match shape.operation {
            Operation::Flush => Sectors::ZERO,
            _ => self.members.data_offset(slot) + self.geometry.member_sector(range.start),
        };
        let index = self.commands.insert(command);
        out.commands.push(MemberCommand {
            id: CommandId(self.commands.key(index)),
            slot,
            operation: shape.operation,
            start,
            count: command.count,
            force_unit_access: shape.force_unit_access,
            purpose,
            buffer: shape.buffer,
        });
    }

    /// A member failed a command. It leaves service if the error says so,
    /// unless it is the last one in sync, or has left since the command was
    /// sent: its slot may hold another member by now.
    fn member_error(&mut self, command: &Command, fatal: bool, out: &mut Outputs) {
        let slot = command.slot;
        let in_service = self.members.epoch(slot) == command.epoch;
        if fatal && in_service && !self.members.is_last_in_sync(slot) {
            self.fail_member(slot, out);
        }
    }

    /// Ends a request whose parts are all done.
    #[inline]
    fn finish_if_done(&mut self, key: u32, out: &mut Outputs) {
        let state = self.requests.get(key);
        if state.remaining > 0 {
            return;
        }
        let result = if state.failed {
            Err(RequestError::NoMember)
        } else {
            Ok(())
        };
        out.finished.push(Finished {
            id: state.request.id,
            result,
        });
        self.requests.take(key);
    }
}

impl Command {
    /// The command as policies see it; flushes they do not.
    #[inline]
    fn io(&self) -> Option<Io> {
        let kind = match self.role {
            Role::Read { .. } | Role::SyncRead { balanced: true, .. } => IoKind::Read,
            Role::SyncRead { .. } => IoKind::SyncRead,
            Role::Write { .. } => IoKind::Write,
            Role::SyncWrite { .. } => IoKind::SyncWrite,
            Role::Flush { .. } => return None,
        };
        Some(Io {
            kind,
            slot: self.slot,
            start: self.start,
            count: self.count,
        })
    }
}

/// The payload of a request at an array sector.
#[inline]
fn payload(request: &Request, at: Sectors) -> BufferId {
    BufferId::Request {
        request: request.id,
        skip: Sectors(at.0 - request.start.0),
    }
}
