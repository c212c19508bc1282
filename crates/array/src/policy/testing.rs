//! A hand-operated array for decision traces: the test issues and completes commands, and the bench
//! keeps the outstanding counts as the core does.

use super::{Io, IoKind, MemberView, Read, ReadPolicy, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::{Nanos, Sectors};

pub(super) struct Bench {
    policy: Box<dyn ReadPolicy>,
    pub(super) members: Vec<MemberView>,
    pub(super) now: Nanos,
    pub(super) process: u32,
    candidates: SlotSet,
}

impl Bench {
    pub(super) fn new(members: usize, policy: Box<dyn ReadPolicy>) -> Self {
        let view = MemberView {
            readable_below: Sectors(u64::MAX),
            pending: 0,
            rotational: true,
            write_mostly: false,
        };
        Self {
            policy,
            members: vec![view; members],
            now: Nanos::ZERO,
            process: 0,
            candidates: SlotSet::first(members),
        }
    }

    pub(super) fn exclude(&mut self, slot: u16) {
        self.candidates = self.candidates.without(Slot(slot));
    }

    /// Chooses for a read and issues it; returns the pieces as (slot, count).
    pub(super) fn pieces(&mut self, start: u64, count: u64) -> Vec<(u16, u64)> {
        let (mut at, end) = (start, start + count);
        let mut pieces = Vec::new();
        while at < end {
            let read = Read {
                start: Sectors(at),
                count: Sectors(end - at),
                whole_start: Sectors(start),
                whole_count: Sectors(count),
                process: self.process,
                candidates: self.candidates,
            };
            let Some(choice) = self.policy.choose(self.now, &read, &self.members) else {
                break;
            };
            self.issue(IoKind::Read, choice.slot.0, at, choice.count.0);
            pieces.push((choice.slot.0, choice.count.0));
            at += choice.count.0;
        }
        pieces
    }

    pub(super) fn try_read(&mut self, start: u64, count: u64) -> Option<u16> {
        self.pieces(start, count).first().map(|&(slot, _)| slot)
    }

    /// Chooses for a read and issues it; returns the slot.
    pub(super) fn read(&mut self, start: u64, count: u64) -> u16 {
        self.try_read(start, count).expect("there are candidates")
    }

    pub(super) fn write(&mut self, slot: u16, start: u64, count: u64) {
        self.issue(IoKind::Write, slot, start, count);
    }

    pub(super) fn complete_read(&mut self, slot: u16, start: u64, count: u64) {
        self.complete(IoKind::Read, slot, start, count);
    }

    pub(super) fn complete_write(&mut self, slot: u16, start: u64, count: u64) {
        self.complete(IoKind::Write, slot, start, count);
    }

    pub(super) fn add_member(&mut self, slot: u16) {
        self.policy.member_added(Slot(slot));
    }

    pub(super) fn issue(&mut self, kind: IoKind, slot: u16, start: u64, count: u64) {
        self.members[usize::from(slot)].pending += 1;
        self.policy
            .issued(&io(kind, slot, start, count), &self.members);
    }

    fn complete(&mut self, kind: IoKind, slot: u16, start: u64, count: u64) {
        self.members[usize::from(slot)].pending -= 1;
        self.policy.completed(&io(kind, slot, start, count));
    }
}

fn io(kind: IoKind, slot: u16, start: u64, count: u64) -> Io {
    Io {
        kind,
        slot: Slot(slot),
        start: Sectors(start),
        count: Sectors(count),
        address: Sectors(start),
    }
}
