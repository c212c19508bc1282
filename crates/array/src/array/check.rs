//! Check and repair, and the resync of md's RAID 10: all copies of a block are read and compared.
//!
//! The first copy in md's order that could be read is the right one, as in md, with three copies
//! and more too; where the array is dirty, it is the one that reads see. Each other copy is
//! compared with it, first as a whole, then, where it differs, in parts of 4 KiB, so that the place
//! can be reported. A repair then writes the first copy over those that differ, and over those that
//! a bad-block log names, which are never read (as Linux drivers/md/raid1.c, `raid1_sync_request`).
//! A copy that cannot be read is left out, and corrected afterwards.
//!
//! A resync leaves none out: behind it sectors may be read from every copy, and where a copy cannot
//! be read as a whole its readable sectors may still differ. Such a block is copied, part by part
//! where necessary, as in a resync that compares nothing. (Linux drivers/md/raid10.c,
//! `sync_request_write`, also writes the copies that it could not read.)

use super::{Array, Command, Role, Shape};
use crate::mutation::{self, Mutation};
use crate::policy::Io;
use crate::recovery::{NewBlock, SyncKind, part};
use crate::request::{
    BufferId, ComputeStep, Event, MemberError, Operation, Outputs, ScratchId, Slot, StepId,
    StepResult,
};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors, Span};
use std::collections::BTreeMap;

/// A block whose copies are being compared.
#[derive(Debug)]
pub(super) struct Comparison {
    copies: Vec<Copy>,
    /// Members whose logs call their copies bad, and that get the right copy.
    bad: SlotSet,
    /// The number of reads or steps whose results are awaited.
    outstanding: u32,
    /// The index of the copy that the others are compared with.
    first: usize,
    /// The number of sectors that differ, by the first sector of the part.
    parts: BTreeMap<Sectors, u64>,
}

#[derive(Debug)]
struct Copy {
    slot: Slot,
    scratch: ScratchId,
    is_read: bool,
    different: u64,
}

/// A step whose result is awaited.
#[derive(Debug, Clone, Copy)]
pub(super) struct Question {
    block: u32,
    copy: usize,
    range: Span,
    is_whole: bool,
}

impl Comparison {
    /// Returns the member with the right copy, and the copy's buffer.
    fn source(&self) -> (Slot, ScratchId) {
        let first = &self.copies[self.first];
        (first.slot, first.scratch)
    }

    /// Returns the buffers of all copies but the first, which is the block's own.
    fn further_buffers(&self, own: ScratchId) -> impl Iterator<Item = ScratchId> {
        let buffers = self.copies.iter().map(|copy| copy.scratch);
        buffers.filter(move |scratch| *scratch != own)
    }
}

impl Array {
    /// Reads all copies of a block that are in sync. A single copy is not compared.
    pub(super) fn start_comparison(&mut self, new: NewBlock, out: &mut Outputs) {
        let slots = self.readable(new.range) & self.members.in_sync();
        let bad = match self.recovery.walk.kind() {
            Some(SyncKind::Repair | SyncKind::Resync) => {
                let holders = self.map.extent(new.range.start).slots();
                (holders & self.members.in_sync()) - slots
            }
            _ => SlotSet::EMPTY,
        };
        if slots.is_empty() || slots.len() + bad.len() < 2 {
            self.recovery.walk.ended(new.positions());
            return;
        }
        let copies = self.map.extent(new.range.start).copies();
        let holders: Vec<_> = copies
            .map(|(slot, _)| slot)
            .filter(|slot| slots.contains(*slot))
            .collect();
        let copies: Vec<_> = holders
            .into_iter()
            .map(|slot| Copy {
                slot,
                scratch: self.allocate(new.range.count(), out),
                is_read: false,
                different: 0,
            })
            .collect();
        let number = self.recovery.block_started(new, copies[0].scratch);
        let mut reads: Vec<_> = copies
            .iter()
            .map(|copy| (copy.slot, copy.scratch))
            .collect();
        // md's RAID 10 puts each copy's read in front of earlier ones (Linux
        // drivers/md/raid10.c, `raid10_sync_request`: `biolist`).
        if !self.is_mirror && self.recovery.config().threads.is_some() {
            reads.reverse();
        }
        self.comparisons[number as usize] = Some(Comparison {
            outstanding: u32::try_from(copies.len()).expect("no more than slots"),
            copies,
            bad,
            first: 0,
            parts: BTreeMap::new(),
        });
        for (slot, scratch) in reads {
            let shape = Shape {
                operation: Operation::Read,
                force_unit_access: false,
                buffer: scratch.whole(),
            };
            let role = Role::CompareRead { block: number };
            self.issue(slot, role, new.range, shape, out);
        }
    }

    fn comparison(&mut self, number: u32) -> &mut Comparison {
        let comparison = self.comparisons[number as usize].as_mut();
        comparison.expect("a block of a check is being compared")
    }

    /// Returns the policy's view of a command that has ended. To md's mirror each copy that is read
    /// for a check moves the head of one member only, that from which a resync would read (Linux
    /// drivers/md/raid1.c, `raid1_sync_request` and `end_sync_read`: `read_disk`).
    pub(super) fn ended_io(&self, command: &Command) -> Option<Io> {
        let mut io = command.io()?;
        if let Role::CompareRead { block } = command.role
            && self.is_mirror
            && self.recovery.config().threads.is_some()
        {
            let views = self.members.views();
            let copies = &self.comparisons[block as usize].as_ref()?.copies;
            let mut slots = copies.iter().map(|copy| copy.slot);
            let preferred = slots.find(|slot| !views[slot.index()].write_mostly);
            io.slot = preferred.unwrap_or(copies[0].slot);
        }
        Some(io)
    }

    pub(super) fn complete_compare_read(
        &mut self,
        command: &Command,
        number: u32,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        if let Err(error) = result {
            self.member_error(command, error == MemberError::Gone, out);
            self.read_failed(command, error, out);
        }
        let comparison = self.comparison(number);
        let mut copies = comparison.copies.iter_mut();
        if let Some(copy) = copies.find(|copy| copy.slot == command.slot) {
            copy.is_read = result.is_ok();
        }
        comparison.outstanding -= 1;
        if comparison.outstanding == 0 {
            self.copies_were_read(number, out);
        }
        self.pump_corrections(out);
        self.pump_sync(out);
    }

    /// Compares the copies of a block, once all reads have ended.
    pub(super) fn compare(&mut self, number: u32, out: &mut Outputs) {
        let range = self.recovery.block(number).range;
        let in_sync = self.members.in_sync();
        let comparison = self.comparison(number);
        for copy in &mut comparison.copies {
            copy.is_read &= in_sync.contains(copy.slot);
        }
        let copies = comparison.copies.iter().enumerate();
        let read = copies.filter(|(_, copy)| copy.is_read);
        let read: Vec<_> = read.map(|(index, copy)| (copy.slot, index)).collect();
        let is_passed = self.recovery.walk.kind() == Some(SyncKind::Resync)
            && !mutation::is(Mutation::ResyncPassesUnread);
        let comparison = self.comparison(number);
        let mut copies = comparison.copies.iter();
        if is_passed && copies.any(|copy| !copy.is_read && in_sync.contains(copy.slot)) {
            self.end_comparison(number, out);
            self.read_block(number, out);
            return;
        }
        let comparison = self.comparison(number);
        let is_compared = read.len() + comparison.bad.len() > 1 && !read.is_empty();
        if !is_compared || mutation::is(Mutation::CheckBlind) {
            self.end_block(number, out);
            return;
        }
        let first = self.right_copy(range, &read);
        self.comparison(number).first = first;
        let others = read.iter().filter(|(_, copy)| *copy != first);
        let questions = others.map(|&(_, copy)| Question {
            block: number,
            copy,
            range,
            is_whole: true,
        });
        self.ask(number, questions.collect(), out);
        if read.len() == 1 {
            self.conclude(number, out);
        }
    }

    /// Releases all buffers of a comparison but the first, which is the block's own.
    pub(super) fn end_comparison(&mut self, number: u32, out: &mut Outputs) {
        let own = self.recovery.block(number).scratch;
        if let Some(comparison) = self.comparisons[number as usize].take() {
            for scratch in comparison.further_buffers(own) {
                self.release(scratch, out);
            }
        }
    }

    /// Returns the index of the right copy of a block among those that could be read, in md's
    /// order: the first, or where the array is dirty the one that reads have seen.
    fn right_copy(&self, range: Span, read: &[(Slot, usize)]) -> usize {
        let candidates = read.iter().map(|(slot, _)| *slot).collect();
        let shown = self.shown_of(range, candidates);
        let shown = shown.filter(|_| self.may_differ(range.end));
        let mut copies = read.iter();
        let found = copies.find(|(slot, _)| Some(*slot) == shown);
        found.unwrap_or(&read[0]).1
    }

    fn ask(&mut self, number: u32, questions: Vec<Question>, out: &mut Outputs) {
        let start = self.recovery.block(number).range.start;
        for question in questions {
            let key = self.questions.insert(question);
            let id = StepId(self.questions.key(key));
            let comparison = self.comparison(number);
            comparison.outstanding += 1;
            let skip = question.range.start - start;
            let buffer = |copy: usize| BufferId::Scratch {
                scratch: comparison.copies[copy].scratch,
                skip,
            };
            out.steps.push(ComputeStep::Compare {
                id,
                left: buffer(comparison.first),
                right: buffer(question.copy),
                count: question.range.count(),
            });
        }
    }

    /// Takes the result of a step with an id. A result that was not asked for is an error of the
    /// driver and is ignored.
    pub fn computed(&mut self, now: Nanos, step: StepId, result: StepResult, out: &mut Outputs) {
        self.now = now;
        let question = self.questions.take_key(step.0);
        let (Some(question), StepResult::Compared { different }) = (question, result) else {
            debug_assert!(false, "{step:?} is no comparison under way");
            return;
        };
        let number = question.block;
        let comparison = self.comparison(number);
        comparison.outstanding -= 1;
        if question.is_whole {
            comparison.copies[question.copy].different = different.0;
        } else if different > Sectors::ZERO {
            let most = comparison.parts.entry(question.range.start).or_default();
            *most = different.0.max(*most);
        }
        if comparison.outstanding == 0 {
            let was_whole = question.is_whole;
            if !(was_whole && self.ask_for_parts(number, out)) {
                self.conclude(number, out);
            }
        }
        self.pump_corrections(out);
        self.thread.has_more = self.recovery.plugs() && !self.questions.is_empty();
        self.pump_sync(out);
        self.thread.has_more = false;
    }

    /// Orders steps that find where copies differ; returns false if none differs.
    fn ask_for_parts(&mut self, number: u32, out: &mut Outputs) -> bool {
        let range = self.recovery.block(number).range;
        let copies = self.comparison(number).copies.iter().enumerate();
        let different = copies.filter(|(_, copy)| copy.different > 0);
        let different: Vec<_> = different.map(|(index, _)| index).collect();
        let mut questions = Vec::new();
        let mut start = range.start;
        while start < range.end {
            let range = part(start, range.end);
            questions.extend(different.iter().map(|&copy| Question {
                block: number,
                copy,
                range,
                is_whole: false,
            }));
            start = range.end;
        }
        self.ask(number, questions, out);
        !different.is_empty()
    }

    /// Ends the comparison of a block: differences are reported, and corrected if the sync does so.
    fn conclude(&mut self, number: u32, out: &mut Outputs) {
        let range = self.recovery.block(number).range;
        let kind = self.recovery.walk.kind();
        let corrects = kind != Some(SyncKind::Check);
        // Differences that a resync finds are expected.
        let reports = kind != Some(SyncKind::Resync);
        let in_sync = self.members.in_sync();
        let comparison = self.comparison(number);
        let (first, source) = comparison.source();
        let different = comparison.copies.iter().filter(|copy| copy.different > 0);
        let slots: SlotSet = different.map(|copy| copy.slot).collect();
        let slots = slots | comparison.bad;
        let mut end = None;
        for (start, count) in comparison.parts.iter().filter(|_| reports) {
            let part = part(*start, range.end);
            match out.events.last_mut() {
                Some(Event::Mismatch { count: all, .. }) if end == Some(part.start) => {
                    *all += Sectors(*count);
                }
                _ => out.events.push(Event::Mismatch {
                    start: part.start,
                    count: Sectors(*count),
                }),
            }
            end = Some(part.end);
        }
        self.recovery.block(number).source =
            (!mutation::is(Mutation::RepairUnorphaned)).then_some(first);
        for slot in slots.iter() {
            if !corrects || !in_sync.contains(slot) {
                continue;
            }
            self.recovery.block(number).writes += 1;
            let shape = Shape {
                operation: Operation::Write,
                force_unit_access: false,
                buffer: source.whole(),
            };
            let role = Role::SyncWrite { block: number };
            self.issue(slot, role, range, shape, out);
        }
        let is_alike = self.recovery.block(number).writes == 0;
        self.go_on_if_written(number, out);
        if is_alike {
            self.recovery.looks_first(self.now);
        }
    }
}
