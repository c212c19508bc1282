//! The requests of clones: handed over, answered, taken notice of and counted.

use super::Jobs;
use super::batch::Flight;
use crate::latency_target::Step;
use crate::machine::Machine;
use crate::pace::Pause;
use crate::steady::Done;
use raidlab_array::{Operation, Request, RequestId};
use raidlab_units::{Bytes, Nanos, Sectors};
use raidlab_workload::{Direction, Engine, IoUnit};

impl Jobs {
    /// Sends a request; where the device has nothing to do with it, it has ended.
    pub(super) fn send(
        &mut self,
        machine: &mut Machine,
        index: usize,
        unit: IoUnit,
        to_device: bool,
    ) {
        let clone = &mut self.clones[index];
        // The further ranges of a discard; a vector of none costs nothing.
        let further: Vec<IoUnit> = match unit.direction {
            Direction::Trim => std::iter::from_fn(|| clone.stream.next_range()).collect(),
            _ => Vec::new(),
        };
        let bytes = Bytes(unit.length.0 + further.iter().map(|range| range.length.0).sum::<u64>());
        let since = clone.pace.since(unit.direction, machine.now);
        clone.pace.issue(&unit, machine.now);
        clone.in_flight += 1;
        // Once the depth is reached, it is refilled from below.
        clone.pace.refills(clone.in_flight, clone.depth);
        clone.wrote |= unit.direction == Direction::Write;
        let holds_up = match unit.direction {
            Direction::Flush => true,
            Direction::Trim => clone.job.engine == Engine::Libaio && !clone.job.queues_trims,
            Direction::Read | Direction::Write => false,
        };
        clone.flushing |= holds_up;
        let submitted = clone.submitted.pop();
        let issued = match (unit.direction, clone.job.engine) {
            (Direction::Flush, Engine::Libaio) => submitted.unwrap_or(self.started),
            _ => since,
        };
        let is_null = clone.job.engine == Engine::Null;
        let flight = Flight {
            clone: index,
            issued,
            direction: unit.direction,
            offset: unit.offset,
            bytes,
            holds_up,
            first: 0,
            ranges: 1 + u32::try_from(further.len()).unwrap_or(0),
            failed: false,
            has_flushed: !clone.job.sync_writes
                || clone.job.engine != Engine::Sync
                || unit.direction != Direction::Write
                || !machine.host.flush_after_sync,
            next: None,
        };
        let first = self.fly(flight);
        if let Some(flight) = &mut self.flights[first] {
            flight.first = first;
        }
        if is_null || !to_device {
            // No device is asked: the answer is there.
            self.ended(machine, first);
            return;
        }
        if !self.keeps(machine, index, unit, first) {
            self.hand_over(machine, index, &unit, first);
        }
        for range in &further {
            let id = self.fly(Flight { first, ..flight });
            self.hand_over(machine, index, range, id);
        }
    }

    /// Keeps a request that was submitted, and returns its place among the flights.
    fn fly(&mut self, flight: Flight) -> usize {
        match self.free.pop() {
            Some(id) => {
                self.flights[id] = Some(flight);
                id
            }
            None => {
                self.flights.push(Some(flight));
                self.flights.len() - 1
            }
        }
    }

    /// Gives a request to the subject.
    pub(super) fn hand_over(
        &mut self,
        machine: &mut Machine,
        index: usize,
        unit: &IoUnit,
        id: usize,
    ) {
        let process = u32::try_from(index).unwrap_or(u32::MAX);
        let durable = self.clones[index].job.sync_writes;
        // Requests smaller than a sector, or not on one, move whole sectors.
        let first = unit.offset.0 / 512;
        let end = (unit.offset.0 + unit.length.0).div_ceil(512);
        machine.submit(Request {
            id: RequestId(id as u64),
            operation: match unit.direction {
                Direction::Read => Operation::Read,
                Direction::Write => Operation::Write,
                Direction::Trim => Operation::Discard,
                Direction::Flush => Operation::Flush,
            },
            start: Sectors(first),
            count: Sectors(end - first),
            force_unit_access: unit.direction == Direction::Write && durable,
            process,
        });
        if !self.clones[index].asleep && machine.subject.holds_submitter(process) {
            self.clones[index].asleep = true;
            self.sleepers += 1;
        }
    }

    /// Flushes the device for a write that is durable: the system call of a synchronous engine
    /// does that before it returns (Linux block/fops.c, `blkdev_write_iter`, by
    /// `generic_write_sync`). Of a write that is handed over, as by libaio, nobody waits there.
    pub(super) fn flush_after_sync(&mut self, machine: &mut Machine, index: usize, id: usize) {
        self.hand_over(machine, index, &IoUnit::FLUSH, id);
    }

    /// Ends a request of which all is done.
    pub(super) fn ended(&mut self, machine: &mut Machine, id: usize) {
        let Some(mut flight) = self.flights[id].take() else {
            return;
        };
        if !flight.has_flushed && !flight.failed {
            flight.has_flushed = true;
            flight.ranges = 1;
            flight.next = None;
            self.flights[id] = Some(flight);
            let clone = &mut self.clones[flight.clone];
            clone.owes_flush = Some(id);
            clone.schedule(machine, flight.clone, machine.now, 1);
            return;
        }
        self.free.push(id);
        let clone = &mut self.clones[flight.clone];
        let flushes = clone.job.fsync_every > 0 || clone.job.fdatasync_every > 0;
        if flushes && !flight.holds_up {
            clone.ripe.push_back(flight);
        } else {
            self.noticed(machine, &flight);
        }
        self.take_notice(machine, flight.clone);
    }

    /// Has a clone's thread take notice of ended requests if it has nothing else to do: it does not
    /// flush, and has nothing left to submit.
    pub(super) fn take_notice(&mut self, machine: &mut Machine, index: usize) {
        loop {
            let clone = &mut self.clones[index];
            let all_in_use = clone.in_flight >= clone.limit();
            let waits = clone.pace.waits_for_answers();
            if clone.flushing || !(all_in_use || clone.stopped || waits) {
                return;
            }
            let Some(flight) = clone.ripe.pop_front() else {
                return;
            };
            self.noticed(machine, &flight);
        }
    }

    /// Handles a request of whose end fio knows: the clone will issue again after the turnaround.
    pub(super) fn noticed(&mut self, machine: &mut Machine, flight: &Flight) {
        let now = machine.now;
        self.release_zone(machine, flight);
        if now >= self.clones[flight.clone].counts_from() && !flight.failed {
            self.count(flight, now);
        }
        let clone = &mut self.clones[flight.clone];
        clone.in_flight -= 1;
        clone.submitted.push(flight.issued);
        clone.flushed_last = flight.direction == Direction::Flush;
        let mut turns = 1;
        if flight.holds_up {
            clone.flushing = false;
            turns += std::mem::take(&mut clone.turns_owed);
        }
        if clone.stopped {
            self.end_if_drained(machine, flight.clone);
            return;
        }
        if clone.held {
            return;
        }
        clone.pace.complete(flight.direction, flight.bytes.0, now);
        let step = self.search_depth(flight, now);
        let clone = &mut self.clones[flight.clone];
        if step == Step::Drain {
            clone.pace.pause = Pause::DrainFor(Nanos::ZERO);
        }
        if step == Step::End || clone.pace.is_too_slow(now) {
            clone.stopped = true;
            self.end_if_drained(machine, flight.clone);
            return;
        }
        if !matches!(clone.pace.pause, Pause::None | Pause::Until(_)) {
            clone.turns_owed += turns;
            self.sleep_if_drained(machine, flight.clone);
            return;
        }
        let low = !clone.pace.refills(clone.in_flight, clone.depth)
            && (clone.search.is_none() || clone.in_flight < clone.limit());
        if low && !clone.flushing && !clone.asleep && !clone.ahead {
            turns += std::mem::take(&mut clone.turns_owed);
        }
        let mut next = match clone.job.engine {
            Engine::Null => now + machine.host.turnaround,
            Engine::Libaio | Engine::Sync => machine.next_request(),
        };
        if clone.job.engine == Engine::Null || clone.job.zones.is_some() {
            // Time must pass even without a device.
            next = next.max(now + Nanos(1));
        }
        match clone.pace.is_paused(next) {
            true => clone.turns_slept += turns,
            false => clone.schedule(machine, flight.clone, next, turns),
        }
    }

    /// Counts a request in its job's results.
    fn count(&mut self, flight: &Flight, now: Nanos) {
        let clone = &mut self.clones[flight.clone];
        let latency = now - flight.issued;
        let results = match &mut clone.search {
            Some(search) => &mut search.results,
            None => &mut self.results[clone.job_index],
        };
        // The flush at the job's end does not count.
        if flight.direction == Direction::Flush && clone.stopped {
            return;
        }
        results.of(flight.direction).record(flight.bytes, latency);
        if flight.direction != Direction::Flush {
            clone.done = clone.done.plus(Done {
                ios: 1,
                bytes: flight.bytes.0,
                latency: u128::from(latency.0),
            });
        }
    }
}
