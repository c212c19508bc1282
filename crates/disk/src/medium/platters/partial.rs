//! Physical sectors of 4 KiB behind logical ones of 512 bytes.
//!
//! A disk writes whole physical sectors. For one that a write covers in part it needs the rest: it
//! reads the sector, and writes it a revolution later. Reads have no additional cost.
//!
//! - First the cache combines adjacent writes: where another write that waits in it, or the last
//!   written one, begins or ends where this one ends or begins, the sector that they share is
//!   whole. So a stream has the cost at its two ends only.
//! - The rest of a sector that a segment of the read cache holds need not be read.
//! - The first and the last sector of a write are read in one pass, unless it is longer than a
//!   revolution.
//!
//! Shingled disks are left out: writes that are no stream go to their cache, which is written
//! like a log.

use super::Platters;
use super::scheduling::Candidate;
use crate::command::Command;

impl Platters {
    /// Whether a write covers the physical sectors at its start and at its end in part, and
    /// the read cache does not have the rest.
    pub(super) fn covers_in_part(&self, command: &Command) -> [bool; 2] {
        let physical = self.physical;
        if physical <= 1 || self.shingles.is_some() {
            return [false; 2];
        }
        let (start, end) = (command.start.0, command.end());
        let first = start - start % physical;
        let last = end.next_multiple_of(physical);
        [self.is_missing(first, start), self.is_missing(end, last)]
    }

    /// Whether there are such sectors that the read cache does not have.
    fn is_missing(&self, from: u64, to: u64) -> bool {
        if from >= to {
            return false;
        }
        let (start, end) = self.surface.positions(from, to);
        let held = self.segments.find(start);
        held.is_none_or(|index| self.segments.get(index).end < end)
    }

    /// The cost in nanoseconds of the physical sectors that a write covers in part, computed when
    /// it is its turn.
    pub(super) fn turns_for_parts(&mut self, write: &Candidate) -> u64 {
        let before = std::mem::replace(&mut self.written_to, write.end);
        if write.partial == [false; 2] {
            return 0;
        }
        let starts =
            write.partial[0] && before != write.start && !self.dirty.has_end(write.start);
        let ends = write.partial[1] && !self.dirty.has_start(write.end);
        let turn = self.parameters.revolution.0;
        let turns = match (starts, ends) {
            (true, true) if write.end - write.start > turn => 2,
            (false, false) => 0,
            _ => 1,
        };
        turns * turn
    }
}
