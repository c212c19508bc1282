//! The events of jobs while time passes: their turns, the answers to their requests, and the end
//! of a sleep.

use super::{Jobs, zoned::Way};
use crate::machine::{Issue, Load, Machine, SimError};
use crate::pace::Pause;
use raidlab_array::{RequestError, RequestId};
use raidlab_workload::IoUnit;

impl Load for Jobs {
    /// Takes one turn of a clone, which issues a request if it may. If it is awake then, the next
    /// of the turns that came while it slept follows.
    fn issue(&mut self, machine: &mut Machine, issue: Issue) {
        let index = issue.clone;
        let Some(clone) = self.clones.get(index) else {
            self.look_whether_even(machine, index);
            return;
        };
        if issue.era != clone.era {
            return;
        }
        let kept = clone.batch.len();
        self.turn(machine, index);
        if self.clones[index].batch.len() <= kept {
            // It has to wait for something.
            self.commit(machine, index);
        }
        let clone = &mut self.clones[index];
        if clone.turns_slept > 0 && !clone.pace.is_paused(machine.now) {
            clone.turns_slept -= 1;
            clone.schedule(machine, index, machine.now, 1);
        }
    }

    /// Takes the subject's answer to a request: its latency is noted, and its clone has a turn
    /// after the host's turnaround.
    ///
    /// # Errors
    /// It failed, and its job does not go on after that.
    fn completed(
        &mut self,
        machine: &mut Machine,
        id: RequestId,
        result: Result<(), RequestError>,
    ) -> Result<(), SimError> {
        let mut next = Some(usize::try_from(id.0).unwrap_or(usize::MAX));
        while let Some(id) = next {
            next = self.answered(machine, id, result)?;
        }
        Ok(())
    }

    /// Lets the clones go on that the subject no longer has sleep.
    fn wake(&mut self, machine: &mut Machine) {
        if self.sleepers == 0 {
            return;
        }
        for (index, clone) in self.clones.iter_mut().enumerate() {
            let process = u32::try_from(index).unwrap_or(u32::MAX);
            if !clone.asleep || machine.subject.holds_submitter(process) {
                continue;
            }
            clone.asleep = false;
            self.sleepers -= 1;
            let turns = std::mem::take(&mut clone.turns_owed);
            clone.schedule(machine, index, machine.now, turns);
        }
    }
}

impl Jobs {
    /// Takes the answer to a flight, or to a range of one; returns the next flight that has
    /// this answer too.
    fn answered(
        &mut self,
        machine: &mut Machine,
        id: usize,
        result: Result<(), RequestError>,
    ) -> Result<Option<usize>, SimError> {
        let Some(range) = self.flights.get(id).copied().flatten() else {
            return result.map(|()| None).map_err(SimError::Request);
        };
        if let Err(error) = result {
            let tolerates = self.clones[range.clone].job.tolerates_errors;
            // fio counts a flush among the writes.
            if !tolerates[range.direction.index().unwrap_or(1)] {
                return Err(SimError::Request(error));
            }
        }
        if range.first != id {
            self.flights[id] = None;
            self.free.push(id);
        }
        if let Some(flight) = &mut self.flights[range.first] {
            flight.failed |= result.is_err();
            flight.ranges -= 1;
            if flight.ranges == 0 {
                self.ended(machine, range.first);
            }
        }
        Ok(range.next)
    }

    /// Takes one turn of a clone that is there.
    fn turn(&mut self, machine: &mut Machine, index: usize) {
        let now = machine.now;
        let clone = &mut self.clones[index];
        if let Some(id) = clone.owes_flush.take() {
            self.flush_after_sync(machine, index, id);
            return;
        }
        if clone.stopped {
            self.end_if_drained(machine, index);
            return;
        }
        let full = clone.pace.refills(clone.in_flight, clone.depth)
            || (clone.search.is_some() && clone.in_flight >= clone.limit());
        if clone.flushing || clone.asleep || full {
            clone.turns_owed += 1;
            self.take_notice(machine, index);
            return;
        }
        match clone.pace.pause {
            Pause::Until(time) if now < time => {
                clone.turns_slept += 1;
                return;
            }
            Pause::None | Pause::Until(_) => clone.pace.pause = Pause::None,
            Pause::DrainFor(_) | Pause::DrainUntil(_) => {
                clone.turns_owed += 1;
                self.take_notice(machine, index);
                self.sleep_if_drained(machine, index);
                return;
            }
        }
        if !clone.clock.may_issue(now) {
            self.stop(machine, index);
            return;
        }
        if self.waits_for_others(machine, index) {
            return;
        }
        let clone = &mut self.clones[index];
        clone.stream.flushed_last(clone.flushed_last);
        let drawn = clone.pace.waiting.take();
        if drawn.is_none() && clone.job.rate.is_some() {
            let pace = &clone.pace;
            clone.stream.choose_direction(|drawn| pace.turn(drawn, now));
        }
        match drawn.or_else(|| clone.stream.next_unit()) {
            Some(unit) => self.issue_unit(machine, index, unit),
            None => self.stop(machine, index),
        }
    }

    /// Issues this request of a clone if it has nothing to wait for first.
    fn issue_unit(&mut self, machine: &mut Machine, index: usize, unit: IoUnit) {
        let clone = &mut self.clones[index];
        if clone.stream.reads_back() != clone.reads_back_since.is_some() {
            clone.pace.waiting = Some(unit);
            if self.ends_phase(machine, index) {
                return;
            }
            self.clones[index].pace.waiting = None;
        }
        let now = machine.now;
        let clone = &mut self.clones[index];
        if let Some(due) = clone.pace.due(unit.direction).filter(|&due| due > now) {
            clone.pace.waiting = Some(unit);
            clone.pace.pause = clone.pace.sleep(clone.clock.no_later(due));
            clone.turns_owed += 1;
            self.take_notice(machine, index);
            self.sleep_if_drained(machine, index);
            return;
        }
        match self.way(machine, index, unit) {
            Way::Device(unit) => self.send(machine, index, unit, true),
            Way::Nobody(unit) => self.send(machine, index, unit, false),
            Way::Later => {}
        }
        self.take_notice(machine, index);
    }
}
