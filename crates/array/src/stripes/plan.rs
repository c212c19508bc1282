//! The blocks that a job has to read.
//!
//! A block is *readable* if the job has it already, or its member is in service and filled
//! there, the range is not bad, and the medium did not refuse it to this job. Lost data can be
//! computed if no more data blocks of the row are unreadable than parities are readable and fit
//! their data (a resync has passed them, or they were never written: see `unwritten`); then all
//! readable data and as many parities as there are unknowns are read, P before Q; by md's rule
//! all parities ([`MdHabits`](super::MdHabits)).
//!
//! A write that leaves data alone can *modify* (read the old blocks that it writes and all parity)
//! or *reconstruct* (read the data blocks that it does not write wholly). As md does, an unreadable
//! block counts 2 n reads, and where parity does not fit yet, the write reconstructs.

use super::StripeArray;
use super::job::Job;
use super::pending::{Blocks, covers};
use raidlab_geometry::{Slot, SlotSet};
use raidlab_units::Span;

/// The error that needed blocks can neither be read nor computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Unsolvable;

/// The way in which a write updates parity.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    /// No parity member is present: the sectors are written alone.
    Direct,
    /// Read-modify-write: the old blocks that are written and all parity are read first.
    Modify,
    /// Reconstruct-write: the data blocks that are not written wholly are read first, and parity is
    /// computed from all data.
    Reconstruct,
}

impl StripeArray {
    /// Whether a member can serve this range by itself.
    pub(super) fn serves(&self, slot: Slot, start: u64, end: u64) -> bool {
        let range = Span::new(start, end);
        let filled = super::mutated(super::Mutation::StripeReadUnrecovered)
            || self.members.is_filled(slot, range);
        self.members.in_service().contains(slot) && filled && !self.members.is_bad(slot, range)
    }

    fn readable(&self, job: &Job) -> SlotSet {
        let serving = (0..).map(Slot).take(self.map.members());
        serving
            .filter(|slot| !job.bad.contains(*slot) && self.serves(*slot, job.start, job.end))
            .fold(job.known, SlotSet::with)
    }

    /// Returns the blocks that must be known to compute the needed ones.
    pub(super) fn solve(&self, job: &Job, needed: SlotSet) -> Result<SlotSet, Unsolvable> {
        let readable = self.readable(job);
        if (needed - readable).is_empty() {
            return Ok(needed);
        }
        let lost = job.data() - readable;
        let parities = if self.parity_tells(job) {
            job.parities() & readable
        } else {
            SlotSet::EMPTY
        };
        if lost.len() > parities.len() {
            return Err(Unsolvable);
        }
        let used = job.parities_among(parities, lost.len());
        Ok((job.data() - lost) | used | (needed & readable))
    }

    /// Whether blocks cannot be computed because members are missing, and not because
    /// of the medium.
    pub(super) fn lacks_members(&self, job: &Job, needed: SlotSet) -> bool {
        let filled = |slot: &Slot| {
            self.members.in_service().contains(*slot) && self.members.is_filled(*slot, job.span())
        };
        let present: SlotSet = (0..)
            .map(Slot)
            .take(self.map.members())
            .filter(filled)
            .collect();
        let lost = job.data() - present;
        !(needed - present).is_empty() && lost.len() > (job.parities() & present).len()
    }

    /// Returns the method of a write, and the blocks that it needs.
    pub(super) fn method(&self, job: &Job, blocks: &Blocks) -> (Method, SlotSet) {
        if (job.parities() & self.members.in_service()).is_empty() {
            return (Method::Direct, SlotSet::EMPTY);
        }
        let slot = |index: &u16| job.row.data_slot(*index);
        let written: SlotSet = blocks.keys().map(slot).collect();
        let whole: SlotSet = blocks
            .iter()
            .filter(|(_, segments)| covers(segments, job.start, job.end))
            .map(|(index, _)| slot(index))
            .collect();
        let reconstruct = job.data() - whole;
        let modify = written | job.parities();
        let readable = self.readable(job);
        let cost = |needed: SlotSet| {
            let unread = needed - job.known;
            let lost = (unread - readable).len();
            (unread & readable).len() + lost * 2 * self.map.members()
        };
        let policy = self.config.write_policy;
        let modifies = policy.modifies(self.map.level(), cost(modify), cost(reconstruct));
        if modifies && (modify - readable).is_empty() && self.parity_fits(job) {
            (Method::Modify, modify)
        } else {
            (Method::Reconstruct, reconstruct)
        }
    }
}
