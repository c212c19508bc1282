//! The correction of read errors: a member that could not read a range is given the bytes of
//! another copy, and its medium a chance to store them elsewhere.
//!
//! The request that met the error does not wait for that. One correction runs at a time. It waits
//! until no write and no sync block is in flight over its range, and holds new ones back meanwhile,
//! so that the bytes it reads stay right until they are written. It takes the whole range from
//! another member that has it; if none can read all of it, part by part of 4 KiB. A part that no
//! other member can read is read from the member itself once more; if that fails too, it is a bad
//! block. The rewrite is trusted; if it fails, the member is failed, or if the array needs the
//! member, the part is a bad block.

use super::{Array, Command, Role, Shape};
use crate::mutation::{self, Mutation};
use crate::recovery::{is_part, part};
use crate::request::{BufferId, Event, MemberError, Operation, Outputs, ScratchId, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::Span;
use std::collections::VecDeque;

/// The most corrections that wait; further read errors are met again by later reads.
const MAXIMUM_WAITING: usize = 1024;

/// The correction under way, and those that wait.
#[derive(Debug, Default)]
pub(super) struct Corrections {
    waiting: VecDeque<WantedCorrection>,
    current: Option<Current>,
}

/// A range that a member could not read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct WantedCorrection {
    slot: Slot,
    epoch: u32,
    /// The array sectors that could not be read.
    range: Span,
}

#[derive(Debug, Clone, Copy)]
struct Current {
    wanted: WantedCorrection,
    /// The step of the work; `None` while it waits until its range is quiet.
    work: Option<Work>,
}

#[derive(Debug, Clone, Copy)]
struct Work {
    scratch: ScratchId,
    part: Span,
    /// Members that could not read the part either.
    tried: SlotSet,
    phase: Phase,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Phase {
    /// Another copy of the part is being read.
    Read,
    /// The part is being written to the member.
    Write,
    /// The member itself reads the part once more.
    ReadAgain,
}

impl Corrections {
    /// Whether a correction is under way that holds requests back.
    pub(super) const fn is_busy(&self) -> bool {
        self.current.is_some()
    }

    /// Returns the range that writes and sync blocks must leave alone.
    pub(super) fn range(&self) -> Option<Span> {
        self.current.map(|current| current.wanted.range)
    }

    pub(super) fn hold(&self, range: Span) -> bool {
        self.range().is_some_and(|held| held.overlaps(&range))
            && !mutation::is(Mutation::CorrectionUnheld)
    }

    /// Whether a correction of this member, under way or waiting, has sectors of a range.
    pub(super) fn wants(&self, slot: Slot, range: Span) -> bool {
        let current = self.current.iter().map(|current| &current.wanted);
        let mut all = current.chain(&self.waiting);
        all.any(|wanted| wanted.slot == slot && wanted.range.overlaps(&range))
    }

    fn knows(&self, wanted: &WantedCorrection) -> bool {
        let current = self.current.iter().map(|current| &current.wanted);
        let mut all = current.chain(&self.waiting);
        all.any(|other| {
            (other.slot, other.epoch) == (wanted.slot, wanted.epoch)
                && other.range.start <= wanted.range.start
                && wanted.range.end <= other.range.end
        })
    }
}

impl Array {
    /// Queues a correction after a member's read error, if another copy exists.
    pub(super) fn read_failed(&mut self, command: &Command, error: MemberError, out: &mut Outputs) {
        let holders = self.map.extent(command.start).slots();
        let wanted = WantedCorrection {
            slot: command.slot,
            epoch: command.epoch,
            range: command.range(),
        };
        if !self.members.corrects
            || error != MemberError::Medium
            || !self.is_in_service(command)
            || holders.len() < 2
            || self.corrections.knows(&wanted)
            || self.corrections.waiting.len() >= MAXIMUM_WAITING
        {
            return;
        }
        self.corrections.waiting.push_back(wanted);
        self.pump_corrections(out);
    }

    /// Begins the next correction if its range is quiet. An array that may write no more begins
    /// none, and drops those that wait.
    pub(super) fn pump_corrections(&mut self, out: &mut Outputs) {
        loop {
            if !self.members.corrects {
                self.corrections.waiting.clear();
            }
            if self.corrections.current.is_none() {
                let Some(wanted) = self.corrections.waiting.pop_front() else {
                    return;
                };
                self.corrections.current = Some(Current { wanted, work: None });
            }
            let Some(Current { wanted, work: None }) = self.corrections.current else {
                return;
            };
            if self.members.epoch(wanted.slot) != wanted.epoch || !self.members.corrects {
                self.end_correction(out);
                continue;
            }
            if self.is_busy(wanted.range) {
                return;
            }
            let work = Work {
                scratch: self.allocate(wanted.range.count(), out),
                part: wanted.range,
                tried: SlotSet::EMPTY,
                phase: Phase::Read,
            };
            self.corrections.current = Some(Current {
                wanted,
                work: Some(work),
            });
            self.read_right_bytes(wanted, work, out);
            return;
        }
    }

    /// Whether a write or a sync block is in flight over a range.
    fn is_busy(&self, range: Span) -> bool {
        let pieces = self.pieces.iter().filter(|piece| piece.outstanding > 0);
        let writes = pieces.map(|piece| piece.range);
        let mut busy = writes.chain(self.recovery.ranges_in_flight());
        busy.any(|busy| busy.overlaps(&range))
    }

    fn read_right_bytes(&mut self, wanted: WantedCorrection, mut work: Work, out: &mut Outputs) {
        let mut source = self.right_source(wanted, &work);
        if source.is_none() && !is_part(work.part) {
            work.part = part(work.part.start, wanted.range.end);
            work.tried = SlotSet::EMPTY;
            source = self.right_source(wanted, &work);
        }
        work.phase = if source.is_some() {
            Phase::Read
        } else {
            Phase::ReadAgain
        };
        let slot = source.unwrap_or(wanted.slot);
        self.send_correction(wanted, work, slot, Operation::Read, out);
    }

    /// Returns the member with the right bytes. Where the copies may differ, it is the one
    /// that reads use.
    fn right_source(&self, wanted: WantedCorrection, work: &Work) -> Option<Slot> {
        let sources = self.readable(work.part).without(wanted.slot) - work.tried;
        match self.may_differ(work.part.end) && !mutation::is(Mutation::DirtyCorrectedByLowest) {
            true => self.shown_of(work.part, sources),
            false => sources.lowest(),
        }
    }

    fn send_correction(
        &mut self,
        wanted: WantedCorrection,
        work: Work,
        slot: Slot,
        operation: Operation,
        out: &mut Outputs,
    ) {
        self.corrections.current = Some(Current {
            wanted,
            work: Some(work),
        });
        let shape = Shape {
            operation,
            force_unit_access: false,
            buffer: BufferId::Scratch {
                scratch: work.scratch,
                skip: work.part.start - wanted.range.start,
            },
        };
        self.issue(slot, Role::Correction, work.part, shape, out);
    }

    pub(super) fn complete_correction(
        &mut self,
        command: &Command,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        let Some(Current {
            wanted,
            work: Some(mut work),
        }) = self.corrections.current
        else {
            debug_assert!(false, "no correction is under way");
            return;
        };
        let stays = match result {
            Ok(()) => false,
            Err(error) => {
                let fatal = work.phase == Phase::Write || error == MemberError::Gone;
                self.member_error(command, fatal, out)
            }
        };
        let is_over = !self.members.corrects && work.phase != Phase::Write;
        if self.members.epoch(wanted.slot) != wanted.epoch || is_over {
            self.end_correction(out);
        } else {
            match (work.phase, result) {
                (Phase::Read, Ok(())) => {
                    work.phase = Phase::Write;
                    self.send_correction(wanted, work, wanted.slot, Operation::Write, out);
                }
                (Phase::Read, Err(_)) => {
                    work.tried = work.tried.with(command.slot);
                    self.read_right_bytes(wanted, work, out);
                }
                (phase, _) => {
                    self.correction_part_done(command, phase, result, stays, out);
                    self.next_correction_part(wanted, work, out);
                }
            }
        }
        self.pump_corrections(out);
        self.pump_sync(out);
    }

    /// Goes on after a member has taken or refused a part, or has read or not read it after all.
    fn correction_part_done(
        &mut self,
        command: &Command,
        phase: Phase,
        result: Result<(), MemberError>,
        stays: bool,
        out: &mut Outputs,
    ) {
        let range = command.on_member();
        match (phase, result) {
            (Phase::Write, Ok(())) => {
                self.clear_bad_blocks(command, out);
                out.events.push(Event::ReadErrorCorrected {
                    slot: command.slot,
                    start: range.start,
                    count: range.count(),
                });
            }
            (Phase::ReadAgain, Ok(())) => self.mended(),
            (Phase::Write, Err(_)) if stays => {
                self.members.bad_range_found(command.slot, range, out)
            }
            (Phase::ReadAgain, Err(MemberError::Medium))
                if self.members.remembers_bad_blocks(command.slot) =>
            {
                self.members.bad_range_found(command.slot, range, out);
            }
            _ => {}
        }
    }

    fn next_correction_part(
        &mut self,
        wanted: WantedCorrection,
        mut work: Work,
        out: &mut Outputs,
    ) {
        let start = work.part.end;
        if start >= wanted.range.end || !self.members.corrects {
            self.end_correction(out);
            return;
        }
        work.part = part(start, wanted.range.end);
        work.tried = SlotSet::EMPTY;
        self.read_right_bytes(wanted, work, out);
    }

    fn end_correction(&mut self, out: &mut Outputs) {
        if let Some(Current {
            work: Some(work), ..
        }) = self.corrections.current.take()
        {
            self.release(work.scratch, out);
        }
        self.release_gated(out);
    }

    /// Whether a correction is under way or waits.
    pub(super) fn is_correcting(&self) -> bool {
        self.corrections.is_busy() || !self.corrections.waiting.is_empty()
    }
}
