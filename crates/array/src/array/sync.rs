//! The copying of recovery and resync: reads, writes and state changes for the
//! engine's decisions.

use super::{Array, Command, Role, Shape};
use crate::policy::Read;
use crate::recovery::{Block, Range, Step, SyncKind, SyncSource};
use crate::request::{BufferId, Event, MemberError, Operation, Outputs, ScratchId, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

impl Array {
    /// Lets waiting writes and the sync go as far as they can.
    pub(super) fn pump_sync(&mut self, out: &mut Outputs) {
        if !self.recovery.is_running() && self.waiting.is_empty() {
            return;
        }
        loop {
            self.release_writes(out);
            let in_flight = self.pieces.iter().filter(|piece| piece.outstanding > 0);
            let writes = in_flight.map(|piece| piece.range);
            match self.recovery.step(self.now, &self.members, writes) {
                Step::Wait => return,
                Step::Start(start, count) => {
                    let block = self.recovery.block_started(start, count);
                    self.read_block(block, out);
                }
                Step::Checkpoint(sector) => {
                    self.publish_progress();
                    out.events.push(Event::SyncCheckpoint(sector));
                }
                Step::Finish => self.finish_sync(out),
                Step::Abort => {
                    out.events.push(Event::SyncAborted);
                    self.end_sync(out);
                }
            }
        }
    }

    /// Starts the next sync if there is something to recover.
    pub(super) fn start_recovery(&mut self, out: &mut Outputs) {
        let targets = self.members.recovering();
        if !self.recovery.is_running() && !targets.is_empty() {
            self.recovery
                .begin(self.now, SyncKind::Recovery, targets, &self.members);
            out.events.push(Event::SyncStarted(Sectors::ZERO));
        }
    }

    /// A member left; the sync goes on with the targets that remain.
    pub(super) fn retarget_sync(&mut self, slot: Slot) {
        match self.recovery.kind() {
            None => {}
            Some(SyncKind::Recovery) => {
                let left = self.recovery.targets().without(slot);
                self.recovery.retarget(left);
            }
            Some(_) => {
                // A single member left has nothing to be compared with.
                let in_sync = self.members.in_sync();
                let left = if in_sync.len() > 1 {
                    in_sync
                } else {
                    SlotSet::EMPTY
                };
                self.recovery.retarget(left);
            }
        }
    }

    pub(super) fn finish_sync(&mut self, out: &mut Outputs) {
        if self.recovery.kind() == Some(SyncKind::Recovery) {
            for slot in self.recovery.targets().iter() {
                self.members.set_in_sync(slot);
            }
        }
        out.events.push(Event::SyncFinished);
        self.end_sync(out);
    }

    fn end_sync(&mut self, out: &mut Outputs) {
        if self.recovery.kind() == Some(SyncKind::Resync) {
            self.resynced_below = None;
        }
        self.recovery.end();
        self.start_recovery(out);
    }

    /// Lets reads use what the recovery rule allows.
    pub(super) fn publish_progress(&mut self) {
        let readable = self.recovery.readable_below();
        match self.recovery.kind() {
            Some(SyncKind::Recovery) => {
                for slot in self.recovery.targets().iter() {
                    self.members.set_readable_below(slot, readable);
                }
            }
            Some(SyncKind::Resync) => self.resynced_below = Some(readable),
            _ => {}
        }
    }

    /// Reads a block from a member that did not fail it before; if there is
    /// none, the sync cannot be completed.
    fn read_block(&mut self, number: u32, out: &mut Outputs) {
        let block = *self.recovery.block(number);
        let Some((slot, balanced)) = self.sync_source(&block) else {
            self.recovery.block_finished(number);
            if self.recovery.kind() == Some(SyncKind::Recovery) {
                for slot in self.recovery.targets().iter() {
                    self.fail_member(slot, out);
                }
            } else {
                self.recovery.retarget(SlotSet::EMPTY);
            }
            return;
        };
        let role = Role::SyncRead {
            block: number,
            balanced,
        };
        self.issue_sync(slot, role, number, Operation::Read, out);
    }

    /// The member to read a block from, and whether the policy chose it.
    fn sync_source(&mut self, block: &Block) -> Option<(Slot, bool)> {
        let read = Read {
            start: block.start,
            count: block.count,
            whole_start: block.start,
            whole_count: block.count,
            process: 0,
            candidates: self.members.in_sync() - block.tried,
        };
        match self.recovery.config().source {
            SyncSource::Balanced => Some((self.choose(&read)?.slot, true)),
            SyncSource::Fixed(slot) if read.candidates.contains(slot) => Some((slot, false)),
            SyncSource::Fixed(_) | SyncSource::LowestInSync => {
                let slot = read.preferred(self.members.views()).lowest()?;
                Some((slot, false))
            }
        }
    }

    fn issue_sync(
        &mut self,
        slot: Slot,
        role: Role,
        number: u32,
        operation: Operation,
        out: &mut Outputs,
    ) {
        let Block { start, count, .. } = *self.recovery.block(number);
        let range = Range {
            start,
            end: start + count,
        };
        let shape = Shape {
            operation,
            force_unit_access: false,
            buffer: BufferId::Scratch {
                scratch: ScratchId(number),
                skip: Sectors::ZERO,
            },
        };
        self.issue(slot, role, range, shape, out);
    }

    pub(super) fn complete_sync_read(
        &mut self,
        command: &Command,
        number: u32,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        match result {
            Ok(()) => {
                let targets = self.recovery.targets().without(command.slot);
                for slot in targets.iter() {
                    self.recovery.block(number).writes += 1;
                    let role = Role::SyncWrite { block: number };
                    self.issue_sync(slot, role, number, Operation::Write, out);
                }
                self.finish_block_if_written(number);
            }
            Err(error) => {
                self.member_error(command, error == MemberError::Gone, out);
                let block = self.recovery.block(number);
                block.tried = block.tried.with(command.slot);
                if self.recovery.targets().is_empty() {
                    self.recovery.block_finished(number);
                } else {
                    self.read_block(number, out);
                }
            }
        }
        self.pump_sync(out);
    }

    pub(super) fn complete_sync_write(
        &mut self,
        command: &Command,
        number: u32,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.recovery.block(number).writes -= 1;
        if result.is_err() {
            self.member_error(command, true, out);
        }
        self.finish_block_if_written(number);
        self.pump_sync(out);
    }

    fn finish_block_if_written(&mut self, number: u32) {
        if self.recovery.block(number).writes == 0 {
            self.recovery.block_finished(number);
            self.publish_progress();
        }
    }
}
