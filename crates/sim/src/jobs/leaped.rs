//! The access that a leap over a sequential stream needs to its job.

use super::Jobs;
use crate::machine::Machine;
use crate::result::MemberStatistics;
use hdrhistogram::Histogram;
use raidlab_units::Bytes;
use raidlab_workload::{Direction, Engine};

impl Jobs {
    /// The only clone's stream, if the group is one sequential stream that ends by its amount
    /// alone, which can be leaped over.
    pub(crate) fn lone_sequential(&self) -> Option<(Direction, Bytes, Bytes)> {
        let [clone] = self.clones.as_slice() else {
            return None;
        };
        let free = clone.pace.is_free()
            && clone.job.flow.is_none()
            && clone.job.engine != Engine::Null
            && !clone.job.pattern.trims()
            && clone.search.is_none()
            && self.watches.is_empty()
            && clone.begun;
        if clone.stopped || clone.job.runtime.is_some() || !free {
            return None;
        }
        let direction = if clone.job.pattern.writes() {
            Direction::Write
        } else {
            Direction::Read
        };
        let (offset, left) = clone.stream.sequential_remaining()?;
        Some((direction, offset, left))
    }

    /// Holds back the lone clone: its requests in flight complete, nothing new is issued.
    pub(crate) fn hold(&mut self, machine: &mut Machine) {
        self.commit(machine, 0);
        let clone = &mut self.clones[0];
        clone.held = true;
        clone.era += 1;
        clone.turns_owed = 0;
    }

    /// Goes on issuing after [`Self::hold`] and a drain.
    pub(crate) fn release(&mut self, machine: &mut Machine) {
        let clone = &mut self.clones[0];
        clone.held = false;
        clone.schedule(machine, 0, machine.now, clone.depth);
    }

    /// Passes over `bytes` of the lone stream; the skipped I/Os went like
    /// those recorded since `before`. Returns the bytes really passed.
    pub(crate) fn skip(&mut self, bytes: Bytes, before: &Histogram<u64>) -> Bytes {
        let clone = &mut self.clones[0];
        let ios = clone.stream.skip_sequential(bytes);
        let skipped = clone.job.block_size * ios;
        let result = if clone.job.pattern.writes() {
            &mut self.results[0].writes
        } else {
            &mut self.results[0].reads
        };
        result.record_like(before, ios, skipped);
        self.leaped += skipped;
        skipped
    }

    pub(crate) fn add_leaped_member(&mut self, index: usize, statistics: MemberStatistics) {
        self.leaped_members[index] = self.leaped_members[index].plus(statistics);
    }
}
