//! The copying of recovery and resync: reads, writes and state changes for the
//! engine's decisions.

use super::{Array, Command, Role, Shape};
use crate::engine::Behind;
use crate::member::MemberVerbs;
use crate::mutation::{self, Mutation};
use crate::policy::Read;
use crate::recovery::{Block, NewBlock, Placement, Plan, Step, SyncKind, SyncSource, is_part};
use crate::request::{Event, MemberError, Operation, Outputs, Sender, Slot};
use raidlab_geometry::{CopyMap, SlotSet};
use raidlab_units::{Sectors, Span, SpanSet};

impl Array {
    /// Continues waiting writes and the sync as far as possible.
    pub(super) fn pump_sync(&mut self, out: &mut Outputs) {
        let waits = !self.waiting.is_empty() || !self.waiting_reads.is_empty();
        if !self.recovery.walk.is_running() && !waits || self.thread.has_more {
            return;
        }
        loop {
            self.release_waiting(out);
            match self.next_step() {
                Step::Wait => return,
                Step::Block(new) => self.start_block(new, out),
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

    fn next_step(&mut self) -> Step<NewBlock> {
        self.recovery.is_asleep = self.senders.is_asleep(Sender::Sync);
        let in_flight = self.pieces.iter().filter(|piece| piece.outstanding > 0);
        let writes = in_flight
            .map(|piece| piece.range)
            .filter(|_| !mutation::is(Mutation::CopyBarrierIgnored));
        let writes = writes.chain(self.corrections.range());
        // A RAID 10 is recovered member by member.
        let target = match self.recovery.walk.kind() {
            Some(SyncKind::Recovery) if !self.is_mirror => self.recovery.walk.targets().lowest(),
            _ => None,
        };
        let (map, members) = (&self.map, &self.members);
        let place = |position| {
            let mut placement = place(map, target, position);
            if let Some(start) = placement.array
                && !members.with_bad_blocks().is_empty()
            {
                for (slot, address) in map.extent(start).copies() {
                    let boundary = members.bad_block_boundary(slot, address);
                    let until = Sectors(boundary.0 - address.0);
                    placement.contiguous = placement.contiguous.min(until);
                }
            }
            placement
        };
        self.recovery.step(self.now, members, writes, &place)
    }

    fn start_block(&mut self, new: NewBlock, out: &mut Outputs) {
        let compares = match self.recovery.walk.kind() {
            Some(SyncKind::Resync) => self.recovery.resync_compares(),
            kind => kind.is_some_and(SyncKind::is_on_demand),
        };
        match compares {
            true => self.start_comparison(new, out),
            false => {
                let scratch = self.allocate(new.range.count(), out);
                let number = self.recovery.block_started(new, scratch);
                self.read_block(number, out);
            }
        }
    }

    /// Whether a recovery has to be started.
    pub(super) fn owes_recovery(&self) -> bool {
        self.recovery.walk.owes_recovery(&self.members)
    }

    /// Starts the next sync if a member is to be recovered.
    pub(super) fn start_recovery(&mut self, out: &mut Outputs) {
        if !self.owes_recovery() {
            return;
        }
        let mut targets = self.members.recovering();
        let mut total = self.size();
        if !self.is_mirror
            && let Some(slot) = targets.lowest()
        {
            targets = SlotSet::only(slot);
            total = self.map.member_used(slot);
        }
        let members = targets
            .iter()
            .map(|slot| self.members.unfilled(slot).clone());
        let unfilled = match mutation::is(Mutation::FirstNeedOnly) {
            true => members.take(1).next(),
            false => members.reduce(|all, one| all.union(&one, total)),
        };
        let unfilled = unfilled.unwrap_or_default();
        let start = unfilled.from.min(total);
        let plan = Plan {
            kind: SyncKind::Recovery,
            targets,
            todo: SpanSet::from_iter([Span { start, end: total }]),
            total,
        };
        self.recovery
            .begin(self.now, plan, unfilled.ranges, &self.members);
        out.events.push(Event::SyncStarted(start));
    }

    /// Goes on with the remaining targets of a sync after a member has left. A check or repair
    /// ends, as in md (drivers/md/raid1.c, `raid1_error`), so that no spare waits for its end.
    pub(super) fn retarget_sync(&mut self, slot: Slot) {
        match self.recovery.walk.kind() {
            None => {}
            Some(SyncKind::Recovery) => {
                let left = self.recovery.walk.targets().without(slot);
                self.recovery.retarget(left);
            }
            Some(kind) => {
                let left = match kind.is_on_demand() {
                    true => SlotSet::EMPTY,
                    false => self.comparable(),
                };
                self.recovery.retarget(left);
            }
        }
    }

    /// Returns the members in sync, unless none of them has another one to be compared with.
    pub(super) fn comparable(&self) -> SlotSet {
        let in_sync = self.members.in_sync();
        let mut sets = self.map.copy_sets().iter();
        if sets.any(|set| (*set & in_sync).len() > 1) {
            in_sync
        } else {
            SlotSet::EMPTY
        }
    }

    pub(super) fn finish_sync(&mut self, out: &mut Outputs) {
        match self.recovery.walk.kind() {
            Some(SyncKind::Recovery) => {
                for slot in self.recovery.walk.targets().iter() {
                    self.members.set_in_sync(slot);
                }
            }
            Some(SyncKind::Resync) => {
                self.resynced_below = None;
                self.doubtful = SlotSet::EMPTY;
            }
            _ => {}
        }
        out.events.push(Event::SyncFinished);
        self.recovery.end();
        self.start_recovery(out);
    }

    /// Handles a sync that stopped before its end, and starts a recovery if one is due.
    fn end_sync(&mut self, out: &mut Outputs) {
        let (kind, targets) = (self.recovery.walk.kind(), self.recovery.walk.targets());
        let position = self.recovery.end();
        match kind {
            Some(SyncKind::Recovery) => {
                for slot in targets.iter() {
                    self.members.filled_to(slot, position);
                }
            }
            // The part that was not reached stays dirty, unless a single copy is left.
            Some(SyncKind::Resync) => {
                let differ = !self.comparable().is_empty();
                self.resynced_below = differ.then_some(position);
            }
            _ => {}
        }
        self.start_recovery(out);
    }

    /// Lets reads use the part that the recovery rule permits.
    pub(super) fn publish_progress(&mut self) {
        let readable = self.recovery.readable_below();
        match self.recovery.walk.kind() {
            Some(SyncKind::Recovery) => {
                for slot in self.recovery.walk.targets().iter() {
                    self.members.set_readable_below(slot, readable);
                }
            }
            Some(SyncKind::Resync) => self.resynced_below = Some(readable),
            _ => {}
        }
    }

    /// Reads the rest of a block from a member that did not fail it before.
    pub(super) fn read_block(&mut self, number: u32, out: &mut Outputs) {
        loop {
            let block = *self.recovery.block(number);
            if let Some((slot, balanced)) = self.sync_source(&block) {
                let role = Role::SyncRead {
                    block: number,
                    balanced,
                };
                self.issue_sync(slot, role, number, Operation::Read, out);
                return;
            }
            let targets = self.recovery.walk.targets();
            let remembered = targets
                .iter()
                .all(|slot| self.members.remembers_bad_blocks(slot));
            if !remembered || block.source_gone || targets.is_empty() {
                self.give_up(number, out);
                return;
            }
            if !is_part(block.part) {
                self.recovery.block(number).begin_part(block.part.start);
                continue;
            }
            self.mark_unreadable(&block, out);
            if self.recovery.walk.targets().is_empty() || !self.recovery.block(number).next_part() {
                self.end_block(number, out);
                return;
            }
        }
    }

    /// Gives up a block that cannot be read, without which the sync cannot be completed.
    fn give_up(&mut self, number: u32, out: &mut Outputs) {
        if self.recovery.walk.kind() == Some(SyncKind::Recovery) {
            for slot in self.recovery.walk.targets().iter() {
                self.lose_member(slot, out);
            }
        } else {
            self.recovery.retarget(SlotSet::EMPTY);
        }
        self.end_block(number, out);
    }

    /// Marks a few sectors of which no copy can be read as bad blocks of the targets.
    fn mark_unreadable(&mut self, block: &Block, out: &mut Outputs) {
        if self.recovery.walk.kind() == Some(SyncKind::Recovery) {
            for slot in self.recovery.walk.targets().iter() {
                let range = self.range_on(slot, block.part);
                self.members.bad_range_found(slot, range, out);
            }
        }
    }

    /// Returns the members under recovery that have a part: they serve reads of it, or lack only
    /// other ranges, which are counted as the array's sectors.
    fn filled(&self, part: Span) -> SlotSet {
        let lacks_nothing = |slot: &Slot| {
            self.is_mirror
                && self.members.is_filled(*slot, part)
                && !self.members.is_bad(*slot, part)
        };
        let filled = self.members.recovering().iter().filter(lacks_nothing);
        filled.collect::<SlotSet>() | self.readable(part)
    }

    /// Returns the member to read a block from, and whether the policy chose it.
    fn sync_source(&mut self, block: &Block) -> Option<(Slot, bool)> {
        let part = block.part;
        let in_sync = (self.readable(part) & self.members.in_sync()) - block.tried;
        // A member that was recovered here before supplies what those in sync have lost.
        let is_lost = in_sync.is_empty() && self.recovery.walk.kind() == Some(SyncKind::Recovery);
        let read = Read {
            start: part.start,
            count: part.count(),
            whole_start: part.start,
            whole_count: part.count(),
            process: 0,
            candidates: match is_lost {
                true => self.filled(part) - block.tried,
                false => in_sync,
            },
        };
        match self.recovery.config().source {
            SyncSource::Balanced => Some((self.choose(&read)?.slot, true)),
            SyncSource::LowestInSync => {
                let preferred = read.preferred(self.members.views());
                Some((self.first_copy(part.start, preferred)?, false))
            }
        }
    }

    pub(super) fn issue_sync(
        &mut self,
        slot: Slot,
        role: Role,
        number: u32,
        operation: Operation,
        out: &mut Outputs,
    ) {
        let block = *self.recovery.block(number);
        let shape = Shape {
            operation,
            force_unit_access: false,
            buffer: block.buffer(),
        };
        self.issue(slot, role, block.part, shape, out);
    }

    pub(super) fn complete_sync_read(
        &mut self,
        command: &Command,
        number: u32,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        match result {
            Ok(()) => self.block_was_read(number, command, out),
            Err(error) => {
                let stays = self.member_error(command, error == MemberError::Gone, out);
                if self.recovery.walk.kind() == Some(SyncKind::Recovery) {
                    self.read_failed(command, error, out);
                }
                let is_resync = self.recovery.walk.kind() == Some(SyncKind::Resync)
                    && !mutation::is(Mutation::ResyncSourceSwitched);
                let block = self.recovery.block(number);
                if is_resync && error == MemberError::Medium && !is_part(block.part) {
                    // Its readable parts go to the others as before: reads have seen them
                    // (Linux drivers/md/raid1.c, `fix_sync_read_error`).
                    block.begin_part(block.part.start);
                } else {
                    block.tried = block.tried.with(command.slot);
                }
                block.source_gone |= stays;
                if self.recovery.walk.targets().is_empty() {
                    self.end_block(number, out);
                } else {
                    self.read_block(number, out);
                }
            }
        }
        self.pump_corrections(out);
        self.pump_sync(out);
    }

    /// Writes the bytes that were read of a block to the others.
    pub(super) fn copy_block(
        &mut self,
        number: u32,
        source: Slot,
        start: Sectors,
        out: &mut Outputs,
    ) {
        let holders = self.map.extent(start).slots();
        let targets = (self.recovery.walk.targets() & holders).without(source);
        self.recovery.block(number).source = Some(source);
        for slot in targets.iter() {
            self.recovery.block(number).writes += 1;
            let role = Role::SyncWrite { block: number };
            self.issue_sync(slot, role, number, Operation::Write, out);
        }
        self.go_on_if_written(number, out);
    }

    pub(super) fn complete_sync_write(
        &mut self,
        command: &Command,
        number: u32,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        self.recovery.block(number).writes -= 1;
        match result {
            Ok(()) => self.clear_bad_blocks(command, out),
            Err(_) => {
                if self.member_error(command, true, out) {
                    let range = command.on_member();
                    self.members.bad_range_found(command.slot, range, out);
                }
            }
        }
        self.go_on_if_written(number, out);
        self.pump_corrections(out);
        self.pump_sync(out);
    }

    pub(super) fn go_on_if_written(&mut self, number: u32, out: &mut Outputs) {
        if self.recovery.block(number).writes > 0 {
            return;
        }
        if !self.recovery.walk.targets().is_empty() && self.recovery.block(number).next_part() {
            self.read_block(number, out);
            return;
        }
        self.end_block(number, out);
        self.publish_progress();
    }

    /// Ends a block that is done, or given up.
    pub(super) fn end_block(&mut self, number: u32, out: &mut Outputs) {
        let scratch = self.recovery.block(number).scratch;
        self.release(scratch, out);
        self.end_comparison(number, out);
        self.recovery.block_finished(number);
        self.release_held_reads(out);
        if self.is_waiter_behind() {
            self.recovery.looks_first(self.now);
        }
    }

    /// Whether a process waits at the barrier that runs after the sync's thread when both are
    /// woken: the thread still finds it waiting then.
    fn is_waiter_behind(&self) -> bool {
        let reads = self.waiting_reads.iter().map(|(key, _)| *key);
        let pieces = self.waiting.iter().map(|key| self.pieces.get(*key).request);
        let mut processes = reads
            .chain(pieces)
            .map(|key| self.requests.get(key).request.process)
            .chain(self.door.processes());
        self.behind != Behind::Nobody && processes.any(|process| self.behind.has(process))
    }
}

/// Returns the placement at a position: an array sector, or a sector of the member that
/// is being recovered.
fn place(map: &CopyMap, target: Option<Slot>, position: Sectors) -> Placement {
    let Some(slot) = target else {
        return Placement {
            array: Some(position),
            contiguous: map.extent(position).contiguous,
        };
    };
    let inverse = map.inverse(slot, position);
    Placement {
        array: inverse.content.map(|content| content.start),
        contiguous: inverse.contiguous,
    }
}
