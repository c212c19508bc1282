//! Work on one window of a row: a write, a read that has to compute, or a part
//! of a sync.

use super::pending::{Blocks, Segment};
use crate::request::{BufferId, ComputeStep, Purpose, RequestId, ScratchId};
use raidlab_geometry::{BlockRole, Row, Slot, SlotSet};
use raidlab_units::{Sectors, Span};

/// The number of a job.
pub(super) type JobId = u64;

/// The purpose of a job.
#[derive(Debug)]
pub(super) enum Kind {
    /// New data are written into the window, and parity follows them.
    Write { blocks: Blocks },
    /// Data that have to be computed are read; each with the index of its data block.
    Read { outputs: Vec<(u16, Segment)> },
    /// A part of the running sync.
    Sync,
}

/// The progress of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The job waits until no other works on the same range.
    Waiting,
    /// Member reads are in flight.
    Reading,
    /// The results of steps are awaited.
    Checking,
    /// All is computed; the job waits for the log, or for permission to write.
    Computed,
    /// The log records are in flight.
    Logging,
    /// The records are durable; the job waits for permission to write.
    Logged,
    /// Member writes are in flight.
    Writing,
}

/// A write to a member.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub(super) slot: Slot,
    pub(super) buffer: BufferId,
    pub(super) start: u64,
    pub(super) count: u64,
}

/// The results of a window's check so far.
#[derive(Debug, Default)]
pub(super) struct Check {
    /// Blocks that could not be read.
    pub(super) lost: SlotSet,
    /// The slots of parity blocks that do not agree with the data.
    pub(super) misfits: SlotSet,
    /// Whether its blocks are being checked one by one.
    pub(super) by_block: bool,
}

/// A window of a row that is being worked on.
#[derive(Debug)]
pub(super) struct Job {
    pub(super) id: JobId,
    pub(super) row: Row,
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) kind: Kind,
    pub(super) phase: Phase,
    /// The number of commands or steps in flight.
    pub(super) outstanding: usize,
    /// The old block of each slot, with its content on the members, or that it should have.
    pub(super) old: Vec<Option<ScratchId>>,
    /// Slots whose `old` holds the right bytes.
    pub(super) known: SlotSet,
    /// Slots on which the block could not be read.
    pub(super) bad: SlotSet,
    pub(super) scratch: Vec<ScratchId>,
    pub(super) writes: Vec<Item>,
    /// Slots to which all writes of this job succeeded so far.
    pub(super) written: SlotSet,
    /// Whether a member that could not be spared did not take a write.
    pub(super) lost: bool,
    pub(super) check: Check,
    /// Whether parity fits the data when the job is over.
    pub(super) makes_fit: bool,
    /// The log's number for the job, once it has one.
    pub(super) transaction: Option<u64>,
    /// Whether it counts as one that reads for a write.
    pub(super) preread: bool,
    pub(super) force_unit_access: bool,
    pub(super) requests: Vec<RequestId>,
}

impl Job {
    /// Returns the window, in sectors of the members' data areas.
    pub(super) const fn span(&self) -> Span {
        Span::new(self.start, self.end)
    }

    pub(super) fn new(row: Row, range: (u64, u64), kind: Kind, requests: Vec<RequestId>) -> Self {
        let members = usize::from(row.data_count()) + 1 + usize::from(row.q().is_some());
        Self {
            id: 0,
            row,
            start: range.0,
            end: range.1,
            kind,
            phase: Phase::Waiting,
            outstanding: 0,
            old: vec![None; members],
            known: SlotSet::EMPTY,
            bad: SlotSet::EMPTY,
            scratch: Vec::new(),
            writes: Vec::new(),
            written: SlotSet::EMPTY,
            lost: false,
            check: Check::default(),
            makes_fit: false,
            transaction: None,
            preread: false,
            force_unit_access: false,
            requests,
        }
    }

    pub(super) const fn count(&self) -> Sectors {
        Sectors(self.end - self.start)
    }

    pub(super) const fn purpose(&self) -> Purpose {
        match self.kind {
            Kind::Sync => Purpose::Sync,
            Kind::Write { .. } | Kind::Read { .. } => Purpose::Foreground,
        }
    }

    /// Returns the members that hold data.
    pub(super) fn data(&self) -> SlotSet {
        SlotSet::first(self.old.len()) - self.parities()
    }

    /// Returns the members that hold P and Q.
    pub(super) fn parities(&self) -> SlotSet {
        let p = SlotSet::only(self.row.p());
        self.row.q().map_or(p, |q| p.with(q))
    }

    /// Returns up to `count` of the parities that are among these slots, P before Q.
    pub(super) fn parities_among(&self, slots: SlotSet, count: usize) -> SlotSet {
        let both = [Some(self.row.p()), self.row.q()].into_iter().flatten();
        both.filter(|slot| slots.contains(*slot))
            .take(count)
            .collect()
    }

    /// Returns a slot's old block from a sector of the member on.
    pub(super) fn old_at(&self, slot: Slot, from: u64) -> BufferId {
        match self.old[slot.index()] {
            Some(scratch) => BufferId::Scratch {
                scratch,
                skip: Sectors(from - self.start),
            },
            None => BufferId::None,
        }
    }

    pub(super) fn old_block(&self, slot: Slot) -> BufferId {
        self.old_at(slot, self.start)
    }

    /// Returns P's and Q's block from a sector on, `None` where it is not wanted.
    pub(super) fn parity_at(&self, wanted: SlotSet, from: u64) -> (BufferId, BufferId) {
        let p = self.row.p();
        let q = self.row.q().filter(|q| wanted.contains(*q));
        (
            if wanted.contains(p) {
                self.old_at(p, from)
            } else {
                BufferId::None
            },
            q.map_or(BufferId::None, |q| self.old_at(q, from)),
        )
    }

    /// Returns the data blocks in the order of their exponents.
    pub(super) fn in_exponent_order(
        &self,
        buffer: impl Fn(u16, Slot) -> BufferId,
    ) -> Vec<BufferId> {
        let mut data = vec![BufferId::None; usize::from(self.row.exponents())];
        for index in 0..self.row.data_count() {
            let slot = self.row.data_slot(index);
            data[usize::from(self.row.exponent(index))] = buffer(index, slot);
        }
        data
    }

    /// Returns the step that computes P and Q (those `wanted`) of the old data, all of which
    /// must be known.
    pub(super) fn generate_old(&self, wanted: SlotSet) -> ComputeStep {
        debug_assert!((self.data() - self.known).is_empty());
        let (p, q) = self.parity_at(wanted, self.start);
        ComputeStep::Generate {
            count: self.count(),
            data: self.in_exponent_order(|_, slot| self.old_block(slot)),
            p,
            q,
        }
    }

    /// Returns the step that computes lost data blocks from the known ones.
    pub(super) fn recover_old(&self, lost: SlotSet) -> ComputeStep {
        // As many parities as there are unknown blocks.
        let parities = self.parities_among(self.known, lost.len());
        debug_assert_eq!(parities.len(), lost.len());
        debug_assert!((self.data() - lost - self.known).is_empty());
        let (p, q) = self.parity_at(parities, self.start);
        let number = |slot| match self.row.role(slot) {
            BlockRole::Data(index) => self.row.exponent(index),
            BlockRole::P | BlockRole::Q => unreachable!("only data is recovered"),
        };
        let mut numbers: Vec<_> = lost.iter().map(number).collect();
        numbers.sort_unstable();
        ComputeStep::Recover {
            count: self.count(),
            data: self.in_exponent_order(|_, slot| self.old_block(slot)),
            p,
            q,
            lost: numbers,
        }
    }
}
