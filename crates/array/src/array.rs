//! The engine of the levels that keep whole copies: linear, RAID 0, RAID 1, RAID 10.
//!
//! A read is cut at the size limit and where its copies cease to advance together; each part is
//! given to the member that the read policy chooses, and is sent to another one if that fails. A
//! write (or discard) is cut likewise; each part waits for the write barrier, goes to every member
//! that must have it, and has succeeded if at least one member that is in sync when the part is
//! done took it. A flush goes to all members in sync or under recovery. A member that fails a
//! write or a flush, or reports that it is gone, is failed, unless some data has no other member
//! in sync: then the request fails, and where other members took the write, the range becomes a
//! bad block of the member.
//!
//! A member that could not read a range is given the bytes of another copy (see `correct`). Where
//! failures are to be recorded, a write or flush in which a failed member has a part is neither
//! begun nor answered until the failure is recorded: otherwise a crash could bring the member back
//! as a current one.
//!
//! Commands in flight are entries of a slab; a command's id is its index and generation. An
//! entry remembers the member's epoch, so that an answer from a member that has failed since
//! counts as no answer.

mod admin;
mod check;
mod correct;
mod door;
mod engine;
mod failure;
mod plug;
mod read;
mod sync;
mod sync_thread;
#[cfg(test)]
mod tests;
mod waits;
mod write;

use crate::config::{ArrayConfig, ConfigError};
use crate::engine::Behind;
use crate::member::{MemberRules, MemberState, Members};
use crate::policy::{Io, IoKind, ReadPolicy};
use crate::recovery::{ReadRecovered, Recovery, WriteBarrier, WriteTicket};
use crate::request::{
    BufferId, CommandId, ComputeStep, Finished, MemberCommand, MemberError, Operation, Outputs,
    Purpose, Request, RequestError, ScratchId, Sender, Slot,
};
use crate::senders::Senders;
use crate::slab::Slab;
use check::{Comparison, Question};
use correct::Corrections;
use door::Door;
use plug::{LONGEST_DISCARD, Plug, stripe_of_discards};
use raidlab_geometry::{Copies, CopyMap, Layout, Level, SlotSet};
use raidlab_units::{Nanos, Sectors, Span};
use std::collections::VecDeque;
use sync_thread::SyncThread;

/// A software RAID array without I/O, clock or payload.
#[derive(Debug)]
pub struct Array {
    map: CopyMap,
    /// Whether every member holds everything, at the same sector as the array.
    is_mirror: bool,
    /// The near and far copies, for read policies that depend on them.
    copies: Copies,
    members: Members,
    policy: Box<dyn ReadPolicy>,
    maximum_request: Sectors,
    /// The longest discard of a member. Where no data are kept it is that of Linux, whose limit for
    /// reads and writes does not hold for discards (block/blk-merge.c, `bio_split_discard`).
    maximum_discard: Sectors,
    /// The chunk at which requests are cut, also where all members hold
    /// each chunk ([`MdRules::cuts_full_copies`](crate::MdRules)).
    cut_by_chunk: Option<Sectors>,
    /// The length of pieces into which requests are cut from their start, too: md's RAID 0 takes
    /// none longer than a chunk (`raid0_set_limits` in raid0.c: `max_hw_sectors`).
    longest_piece: Option<Sectors>,
    requests: Slab<RequestState>,
    pieces: Slab<Piece>,
    commands: Slab<Command>,
    scratch: Slab<()>,
    /// Pieces that the write barrier holds back, oldest first.
    waiting: VecDeque<u32>,
    /// Reads that the barrier holds back (only with `WriteBarrier::MdArray`), each from
    /// a sector on.
    waiting_reads: VecDeque<(u32, Sectors)>,
    /// Parts of reads that wait until a block is written whose source has left.
    held_reads: Vec<(u32, Span, Tried)>,
    /// The number of times that a member got content that an earlier read may not have found on it.
    mends: u32,
    /// Pieces that wait for a correction, for an earlier piece of the same place, or until a
    /// failure has been recorded.
    gated: VecDeque<u32>,
    /// Pieces that are done, and whose answers wait until a failure is recorded.
    unanswered: Vec<Piece>,
    recovery: Recovery,
    /// The processes that run after the thread of a sync when both are woken.
    behind: Behind,
    /// The copies that are being compared, by the number of their sync block.
    comparisons: Vec<Option<Comparison>>,
    questions: Slab<Question>,
    corrections: Corrections,
    /// The sector of a dirty array up to which reads are balanced, by their end; `None`: all are.
    resynced_below: Option<Sectors>,
    /// Members in service by force, which may lack writes that others have.
    doubtful: SlotSet,
    /// The state of md's thread: while it writes metadata, blocks of a sync that were read
    /// wait for it.
    thread: SyncThread,
    /// Whether only one of several overlapping writes is in flight at a time, so that the same one
    /// is the last on all members. Other drivers leave that order to their clients.
    orders_writes: bool,
    /// Writes that pass the barrier before they are submitted.
    door: Door,
    plug: Plug,
    senders: Senders,
    /// The latest time passed in by the driver.
    now: Nanos,
}

/// A request of the array's user that has not been answered yet.
#[derive(Debug, Clone, Copy)]
struct RequestState {
    request: Request,
    /// The number of commands (reads) or pieces (all others) outstanding.
    remaining: u32,
    failed: bool,
}

/// A part of a write or discard, or a flush, that goes to several members.
#[derive(Debug, Clone, Copy)]
struct Piece {
    request: u32,
    /// The sectors of the array that the piece covers; no sectors for a flush.
    range: Span,
    /// The number of commands outstanding; 0 while the piece waits.
    outstanding: u32,
    asked: SlotSet,
    succeeded: SlotSet,
    /// Members that stay in sync although they did not take the piece.
    refused: SlotSet,
    /// Whether the request was answered early, by a seeded bug.
    is_answered: bool,
    ticket: WriteTicket,
}

/// A command that was sent to a member and not answered yet.
#[derive(Debug, Clone, Copy)]
struct Command {
    slot: Slot,
    epoch: u32,
    role: Role,
    /// The first sector of the command's range, counted in the array (512 bytes each).
    start: Sectors,
    count: Sectors,
    /// The first sector on the member, counted from the start of its data area; 0 for a flush.
    address: Sectors,
}

#[derive(Debug, Clone, Copy)]
enum Role {
    /// A part of a read, with the members that failed it before.
    Read { request: u32, tried: Tried },
    /// One member's share of a piece that is a write or discard.
    Write { piece: u32 },
    /// One member's share of a piece that is a flush.
    Flush { piece: u32 },
    /// The read of a sync block, and whether the policy chose the member.
    SyncRead { block: u32, balanced: bool },
    /// The write of a sync block.
    SyncWrite { block: u32 },
    /// The read of one copy of a sync block.
    CompareRead { block: u32 },
    /// A read or write of the correction under way.
    Correction,
}

/// The members that failed a read, and the array's count of mends when the first of them was tried.
#[derive(Debug, Clone, Copy)]
struct Tried {
    slots: SlotSet,
    mends: u32,
}

/// The properties of a command as the member sees them.
struct Shape {
    operation: Operation,
    force_unit_access: bool,
    buffer: BufferId,
}

impl Array {
    /// An array with nothing in flight. If members are under recovery, it begins with the first
    /// [`tick`](crate::Engine::tick), so that a resync can be started before.
    ///
    /// # Errors
    /// When the configuration cannot work: see [`ConfigError`].
    pub fn new(config: ArrayConfig) -> Result<Self, ConfigError> {
        let map = config.check()?;
        let count = map.members();
        let is_mirror = config.shape.level == Level::Raid1;
        let copies = match config.shape.layout {
            Layout::Copies(copies) => copies,
            _ => Copies::near(1),
        };
        let mut recovery = config.recovery;
        if !is_mirror && recovery.barrier != WriteBarrier::MdArray {
            recovery.barrier = WriteBarrier::Overlap;
        }
        let rules = MemberRules {
            blocks: None,
            reads_filled: recovery.read_recovered != ReadRecovered::AtEnd,
            record_failures: config.record_failures,
        };
        let is_md10 = recovery.threads.is_some() && recovery.barrier == WriteBarrier::MdArray;
        let md = recovery.rules();
        let cut_by_chunk = (md.cuts_full_copies && is_md10 && config.shape.level == Level::Raid10)
            .then_some(config.shape.chunk)
            .filter(|chunk| chunk.0 > 0);
        let has_copies = matches!(config.shape.level, Level::Raid1 | Level::Raid10);
        let keeps_data = config.record_failures && recovery.threads.is_none();
        let orders_writes = has_copies && keeps_data;
        let discards = recovery.threads.and(stripe_of_discards(&config.shape));
        let is_md0 = recovery.threads.is_some() && config.shape.level == Level::Raid0;
        let longest_piece = is_md0.then_some(config.shape.chunk);
        let longest = recovery.merged.unwrap_or(recovery.block).to_sectors();
        let limits = recovery.threads.map(|it| (it.requests, it.others));
        Ok(Self {
            map,
            is_mirror,
            copies,
            policy: config.read_policy.build(count),
            members: Members::new(config.members, rules),
            maximum_request: config.maximum_request,
            maximum_discard: match keeps_data {
                true => config.maximum_request,
                false => LONGEST_DISCARD,
            },
            cut_by_chunk,
            longest_piece: longest_piece.filter(|chunk| chunk.0 > 0),
            requests: Slab::new(),
            pieces: Slab::new(),
            commands: Slab::new(),
            scratch: Slab::new(),
            waiting: VecDeque::new(),
            waiting_reads: VecDeque::new(),
            held_reads: Vec::new(),
            mends: 0,
            gated: VecDeque::new(),
            unanswered: Vec::new(),
            comparisons: (0..recovery.depth).map(|_| None).collect(),
            recovery: Recovery::new(recovery),
            behind: Behind::default(),
            questions: Slab::new(),
            corrections: Corrections::default(),
            resynced_below: None,
            doubtful: SlotSet::EMPTY,
            thread: SyncThread::default(),
            orders_writes,
            door: Door::default(),
            plug: Plug::new(md.plug_begins_with_oldest, discards),
            senders: Senders::with_limits(limits, longest),
            now: Nanos::ZERO,
        })
    }

    /// Returns the sectors that the array offers.
    #[must_use]
    pub const fn size(&self) -> Sectors {
        self.map.array_size()
    }

    /// Returns the map of the array's sectors to the members.
    #[must_use]
    pub const fn map(&self) -> &CopyMap {
        &self.map
    }

    /// Returns the members in the letters of `/proc/mdstat`: `[UU]`, `[U_]`.
    #[must_use]
    pub fn health(&self) -> String {
        let letters = self.members.states().map(|state| match state {
            MemberState::InSync => 'U',
            _ => '_',
        });
        format!("[{}]", letters.collect::<String>())
    }

    /// Handles the end of a command, or of one that was merged into another and is not `counted`.
    fn command_ended(
        &mut self,
        command: &Command,
        result: Result<(), MemberError>,
        counted: bool,
        out: &mut Outputs,
    ) {
        let in_service = self.members.epoch(command.slot) == command.epoch;
        if in_service {
            match counted {
                true => self.members.completed(command.slot, command.count.0),
                false => self.members.part_completed(command.slot, command.count.0),
            }
            if let Some(io) = self.ended_io(command) {
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
                self.complete_read(command, request, tried, result, out);
            }
            Role::Write { piece } | Role::Flush { piece } => {
                self.complete_piece(command, piece, result, out);
            }
            Role::SyncRead { block, .. } => self.complete_sync_read(command, block, result, out),
            Role::SyncWrite { block } => self.complete_sync_write(command, block, result, out),
            Role::CompareRead { block } => {
                self.complete_compare_read(command, block, result, out);
            }
            Role::Correction => self.complete_correction(command, result, out),
        }
    }

    /// Returns how many sectors from `start` on may be one command of this request.
    #[inline]
    fn command_limit(&self, request: &Request, start: Sectors) -> Sectors {
        let end = request.start + request.count;
        let mut limit = Sectors(end.0 - start.0).min(self.map.extent(start).contiguous);
        if let Some(longest) = self.longest_piece {
            limit = limit.min(Sectors(longest.0 - (start.0 - request.start.0) % longest.0));
        }
        let longest = match request.operation {
            Operation::Discard => self.maximum_discard,
            _ => self.maximum_request,
        };
        if longest > Sectors::ZERO {
            limit = limit.min(longest);
        }
        if let Some(boundary) = self.recovery.boundary(start) {
            limit = limit.min(Sectors(boundary.0 - start.0));
        }
        if let Some(chunk) = self.cut_by_chunk {
            limit = limit.min(Sectors(chunk.0 - start.0 % chunk.0));
        }
        limit
    }

    /// Sends a command to a member that holds the range.
    #[inline]
    fn issue(&mut self, slot: Slot, role: Role, range: Span, shape: Shape, out: &mut Outputs) {
        let address = match shape.operation {
            Operation::Flush => Sectors::ZERO,
            _ => self.address(slot, range.start),
        };
        let command = Command {
            slot,
            epoch: self.members.epoch(slot),
            role,
            start: range.start,
            count: range.count(),
            address,
        };
        let (purpose, sync_sectors) = match role {
            Role::Read { .. } | Role::Write { .. } | Role::Flush { .. } => (Purpose::Foreground, 0),
            _ => (Purpose::Sync, command.count.0),
        };
        let start = match shape.operation {
            Operation::Flush => Sectors::ZERO,
            _ => self.members.data_offset(slot) + address,
        };
        let mut sent = MemberCommand {
            id: CommandId(u64::MAX),
            slot,
            operation: shape.operation,
            start,
            count: command.count,
            force_unit_access: shape.force_unit_access,
            purpose,
            sender: self.sender(role),
            buffer: shape.buffer,
        };
        let index = self.commands.insert(command);
        sent.id = CommandId(self.commands.key(index));
        let longest = self.longest_plugged_now(&sent, role);
        let is_part = longest.is_some_and(|longest| self.plug.takes(&sent, command, longest, out));
        match is_part {
            true => self.members.part_issued(slot, sync_sectors),
            false => self.members.issued(slot, sync_sectors),
        }
        if let Some(io) = command.io() {
            self.policy.issued(&io, self.members.views());
        }
        match is_part {
            true => drop(self.commands.take(index)),
            false => self.send(sent, longest, out),
        }
    }

    /// Returns the sender of a command of this role, which may sleep until the disk has
    /// a free request.
    fn sender(&self, role: Role) -> Sender {
        let request = match role {
            Role::Read { request, .. } => request,
            Role::Write { piece } | Role::Flush { piece } => self.pieces.get(piece).request,
            Role::SyncRead { .. } | Role::CompareRead { .. } => return Sender::Sync,
            Role::SyncWrite { .. } | Role::Correction => return Sender::Thread,
        };
        Sender::Process(self.requests.get(request).request.process)
    }

    /// Returns the sector of a member's data area for an array sector that it holds.
    #[inline]
    fn address(&self, slot: Slot, start: Sectors) -> Sectors {
        if self.is_mirror {
            return start;
        }
        let address = self.map.extent(start).sector_on(slot);
        address.expect("a command goes to a member that holds its range")
    }

    /// Returns the range of a member's data area for an array range whose copies advance together.
    #[inline]
    fn range_on(&self, slot: Slot, range: Span) -> Span {
        let start = self.address(slot, range.start);
        Span::between(start, start + range.count())
    }

    fn allocate(&mut self, count: Sectors, out: &mut Outputs) -> ScratchId {
        let scratch = ScratchId(self.scratch.insert(()));
        out.steps.push(ComputeStep::Allocate { scratch, count });
        scratch
    }

    fn release(&mut self, scratch: ScratchId, out: &mut Outputs) {
        self.scratch.take(scratch.0);
        out.steps.push(ComputeStep::Release { scratch });
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
    /// Returns the array sectors that the command covers.
    fn range(&self) -> Span {
        Span::between(self.start, self.start + self.count)
    }

    /// Returns the command's sectors of the member's data area.
    fn on_member(&self) -> Span {
        Span::between(self.address, self.address + self.count)
    }

    /// Returns the command as policies see it; they see no flushes.
    #[inline]
    fn io(&self) -> Option<Io> {
        let kind = match self.role {
            Role::Read { .. } | Role::SyncRead { balanced: true, .. } => IoKind::Read,
            Role::SyncRead { .. } | Role::CompareRead { .. } => IoKind::SyncRead,
            Role::Write { .. } => IoKind::Write,
            Role::SyncWrite { .. } => IoKind::SyncWrite,
            // These are rare, and not used to estimate head positions.
            Role::Flush { .. } | Role::Correction => return None,
        };
        Some(Io {
            kind,
            slot: self.slot,
            start: self.start,
            count: self.count,
            address: self.address,
        })
    }
}

/// Returns the buffer of a request's payload at an array sector.
#[inline]
fn payload(request: &Request, at: Sectors) -> BufferId {
    BufferId::Request {
        request: request.id,
        skip: Sectors(at.0 - request.start.0),
    }
}
