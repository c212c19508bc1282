//! From the core to the disks and back.

use super::{Violation, World, nanos, payload_error, violation};
use crate::core::Core;
use crate::disk::{Disk, Health, PendingWrite};
use crate::pages::SECTOR;
use crate::value::Value;
use raidlab_array::{
    ComputeStep, Event, FIRST_OUTER_ID, Finished, MemberCommand, MemberError, Operation, Outputs,
    Purpose, RequestError, StepId, StepResult,
};
use raidlab_payload::InFlight;
use raidlab_units::Nanos;
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

/// A member command in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) disk: Option<usize>,
    pub(super) command: MemberCommand,
    range: Option<InFlight>,
    /// What a write or discard will put there.
    bytes: Option<Arc<[u8]>>,
    /// What a flush covers.
    mark: u64,
    /// When it was sent, among all commands.
    sent: u64,
    /// When it was sent, in time.
    since: u64,
}

impl Flight {
    /// What a power cut may leave of it.
    pub(super) fn pending(&self) -> Option<PendingWrite> {
        self.bytes.as_ref().map(|bytes| PendingWrite {
            stamp: self.sent,
            start: self.command.start.0,
            bytes: bytes.clone(),
            durable: self.command.force_unit_access,
        })
    }
}

impl World<'_> {
    /// Hands something to the core, and does what comes out.
    pub(super) fn call(
        &mut self,
        action: impl FnOnce(&mut dyn Core, Nanos, &mut Outputs),
    ) -> Result<(), Violation> {
        self.call_with_disks(|core, _, now, out| action(core, now, out))
    }

    /// As [`Self::call`], for what the core must see on a disk.
    pub(super) fn call_with_disks(
        &mut self,
        action: impl FnOnce(&mut dyn Core, &[Disk], Nanos, &mut Outputs),
    ) -> Result<(), Violation> {
        let now = nanos(self.now);
        let mut out = std::mem::take(&mut self.out);
        out.clear();
        if let Some(core) = self.core.as_deref_mut() {
            action(core, &self.disks, now, &mut out);
        }
        loop {
            let results = self.perform(&out)?;
            if results.is_empty() {
                break;
            }
            out.clear();
            if let Some(core) = self.core.as_deref_mut() {
                for (step, result) in results {
                    core.computed(now, step, result, &mut out);
                }
            }
        }
        self.out = out;
        self.follow_members();
        Ok(())
    }

    /// Notes who is in sync, and whether errors are over.
    fn follow_members(&mut self) {
        if self.erring.contains(&true) {
            self.look_at_errors();
        }
        if self.options.over_budget {
            for slot in self.in_sync().iter() {
                if let Some(disk) = self.slots[slot.index()] {
                    self.in_sync_until[disk] = self.oracle.now();
                }
            }
        }
    }

    fn perform(&mut self, out: &Outputs) -> Result<Vec<(StepId, StepResult)>, Violation> {
        let mut results = Vec::new();
        for step in &out.steps {
            let result = self.buffers.execute(step).map_err(payload_error)?;
            self.trace
                .note(self.now, &[3], format_args!("  step {}", Short(step)));
            results.extend(result);
        }
        for command in &out.commands {
            self.send(command)?;
        }
        for finished in &out.finished {
            self.finish(finished)?;
        }
        for event in &out.events {
            self.happened(event);
        }
        self.follow_slots();
        Ok(results)
    }

    fn happened(&mut self, event: &Event) {
        self.trace.note(self.now, &[4], format_args!("  {event:?}"));
        match event {
            Event::Mismatch { start, count } => self.mismatches.push((start.0, count.0)),
            Event::SyncStarted(_) | Event::SyncCheckpoint(_) => {}
            _ => self.oracle.members_changed(),
        }
    }

    fn send(&mut self, command: &MemberCommand) -> Result<(), Violation> {
        self.statistics.commands += 1;
        self.order += 1;
        let disk = self.handles.get(command.slot.index()).copied().flatten();
        self.check_bounds(command, disk)?;
        let flush_or_discard = matches!(command.operation, Operation::Flush | Operation::Discard);
        let range = if flush_or_discard {
            None
        } else {
            let range = self.buffers.begin(command.buffer, command.count);
            Some(range.map_err(payload_error)?)
        };
        let bytes: Option<Arc<[u8]>> = match command.operation {
            Operation::Write => {
                let bytes = self.buffers.slice(command.buffer, command.count);
                Some(bytes.map_err(payload_error)?.into())
            }
            Operation::Discard => Some(vec![0; command.count.0 as usize * SECTOR].into()),
            Operation::Read | Operation::Flush => None,
        };
        let flight = Flight {
            disk,
            command: *command,
            range,
            bytes,
            mark: disk.map_or(0, |disk| self.disks[disk].flush_mark()),
            sent: self.order,
            since: self.now,
        };
        let words = [
            5,
            command.id.0,
            u64::from(command.slot.0),
            command.start.0,
            command.count.0,
        ];
        let text = format_args!(
            "  -> {} {:?}{} {}+{} {:?} {:?}",
            command.slot.0,
            command.operation,
            if command.force_unit_access {
                " FUA"
            } else {
                ""
            },
            command.start.0,
            command.count.0,
            command.purpose,
            command.buffer
        );
        self.trace.note(self.now, &words, text);
        let order = self.order;
        let modelled = disk.is_some_and(|disk| self.models.submit(self.now, disk, order, command));
        if !modelled {
            let at = self.now + self.draw_latency(disk);
            self.calendar.push(Reverse((at, order, command.id.0)));
        }
        match self.flights.insert(command.id.0, flight) {
            None => Ok(()),
            Some(_) => Err(violation(
                "contract",
                format!("{:?} is in flight twice", command.id),
            )),
        }
    }

    /// Commands lie on the disk, and data in the data area.
    fn check_bounds(&self, command: &MemberCommand, disk: Option<usize>) -> Result<(), Violation> {
        if command.operation == Operation::Flush {
            return Ok(());
        }
        let end = command.start.0 + command.count.0;
        let size = disk.map_or(u64::MAX, |disk| self.disks[disk].sectors());
        let slot = self
            .slots
            .iter()
            .position(|its| its.is_some() && *its == disk);
        let area = slot.and_then(|slot| self.reader.areas.get(slot)).copied();
        // A member that replaces another is given its log's records, too.
        let is_outer = command.id.0 >= FIRST_OUTER_ID;
        let (first, last) = match (command.purpose, area) {
            (Purpose::Metadata, _) | (_, None) => (0, size),
            (_, Some(_)) if is_outer => (0, size),
            (_, Some((start, length))) => (start, start + length),
        };
        if command.count.0 == 0 || command.start.0 < first || end > last.min(size) {
            let detail = format!("{command:?} is outside {first}..{}", last.min(size));
            return Err(violation("bounds", detail));
        }
        Ok(())
    }

    fn draw_latency(&mut self, disk: Option<usize>) -> u64 {
        let (low, high) = (self.options.latency_low_ns, self.options.latency_high_ns);
        let drawn = low + self.latency.below(high - low + 1);
        drawn * disk.map_or(1, |disk| self.disks[disk].slowness)
    }

    /// When the next event is.
    pub(super) fn next_event(&self) -> Option<u64> {
        let command = self.calendar.peek().map(|Reverse((time, ..))| *time);
        let tick = self.core.as_ref().and_then(|core| core.next_tick());
        let tick = tick.map(|time| time.0.max(self.now));
        command
            .into_iter()
            .chain(self.models.next_event())
            .chain(tick)
            .min()
    }

    /// One event.
    pub(super) fn step_event(&mut self) -> Result<(), Violation> {
        self.count_event()?;
        let command = self.calendar.peek().map(|Reverse((time, ..))| *time);
        let Some(next) = self.next_event() else {
            return Err(violation(
                "liveness",
                "requests wait and nothing is in flight",
            ));
        };
        self.now = self.now.max(next);
        if command == Some(next) {
            let Some(Reverse((_, order, id))) = self.calendar.pop() else {
                return Ok(());
            };
            return self.arrive(order, id);
        }
        if self.models.next_event().is_some_and(|time| time <= next) {
            return self.models_advance();
        }
        self.call(|core, now, out| core.tick(now, out))
    }

    /// Commands complete on modelled disks; on slow ones, later.
    fn models_advance(&mut self) -> Result<(), Violation> {
        for order in self.models.advance(self.now) {
            let flights = self.flights.iter();
            let mut flight = flights.filter(|(_, flight)| flight.sent == order);
            let Some((id, flight)) = flight.next().map(|(id, flight)| (*id, flight)) else {
                continue;
            };
            let slowness = flight.disk.map_or(1, |disk| self.disks[disk].slowness);
            let late = (self.now - flight.since) * (slowness - 1);
            self.calendar.push(Reverse((self.now + late, order, id)));
        }
        Ok(())
    }

    /// A command reaches its end, unless its disk hangs.
    fn arrive(&mut self, order: u64, id: u64) -> Result<(), Violation> {
        if self
            .flights
            .get(&id)
            .is_none_or(|flight| flight.sent != order)
        {
            return Ok(());
        }
        let disk = self.flights[&id].disk;
        if let Some(disk) = disk
            && let Some((until, dies)) = self.hung[disk]
        {
            if self.now < until {
                self.calendar.push(Reverse((until, order, id)));
                return Ok(());
            }
            self.hung[disk] = None;
            self.disks[disk].health = if dies { Health::Gone } else { Health::Well };
        }
        let Some(flight) = self.flights.remove(&id) else {
            return Ok(());
        };
        let result = self.execute(&flight)?;
        if let Some(range) = flight.range {
            self.buffers.end(range);
        }
        let failed = result.is_err();
        if failed {
            self.oracle.members_changed();
        }
        let text = format_args!(
            "  <- {} {:?} {id}: {result:?}",
            flight.command.slot.0, flight.command.operation
        );
        self.trace.note(self.now, &[6, id, u64::from(failed)], text);
        let command = flight.command.id;
        self.call(|core, now, out| core.complete(now, command, result, out))
    }

    /// The disk does what the command says.
    fn execute(&mut self, flight: &Flight) -> Result<Result<(), MemberError>, Violation> {
        let command = &flight.command;
        let Some(number) = flight.disk else {
            return Ok(Err(MemberError::Gone));
        };
        if self.disks[number].health == Health::Gone {
            return Ok(Err(MemberError::Gone));
        }
        if self.transient[number] > 0 {
            self.transient[number] -= 1;
            return Ok(Err(MemberError::Medium));
        }
        let disk = &mut self.disks[number];
        match (command.operation, &flight.bytes) {
            (Operation::Read, _) => {
                let into = self.buffers.slice_mut(command.buffer, command.count);
                return Ok(disk.read(command.start.0, into.map_err(payload_error)?));
            }
            (Operation::Write, Some(bytes)) => {
                let now = self.buffers.slice(command.buffer, command.count);
                if now.map_err(payload_error)? != &bytes[..] {
                    let detail = format!("{command:?}: its bytes changed in flight");
                    return Err(violation("buffers", detail));
                }
                disk.write(command.start.0, bytes.clone(), command.force_unit_access);
            }
            (_, Some(zeros)) => disk.write(command.start.0, zeros.clone(), false),
            (_, None) => disk.flush(flight.mark),
        }
        Ok(Ok(()))
    }

    fn finish(&mut self, finished: &Finished) -> Result<(), Violation> {
        let id = finished.id.0;
        let Some(asked) = self.asked.remove(&id) else {
            return Err(violation(
                "contract",
                format!("request {id} finished twice"),
            ));
        };
        let words = [7, id, u64::from(finished.result.is_err())];
        let text = format_args!("request {id} finished: {:?}", finished.result);
        self.trace.note(self.now, &words, text);
        let refused = finished.result == Err(RequestError::ReadOnly) && self.is_read_only();
        if let Err(error) = finished.result
            && !self.beyond
            && !refused
        {
            let detail = format!("{:?}: {error}", asked.request);
            return Err(violation("error within the budget", detail));
        }
        let ok = finished.result.is_ok();
        let (start, count) = (asked.request.start.0, asked.request.count.0);
        match asked.request.operation {
            Operation::Write | Operation::Discard if refused => {
                self.oracle.write_refused(asked.operation, (start, count));
            }
            Operation::Write | Operation::Discard => {
                let durable = asked.request.force_unit_access;
                self.oracle
                    .write_done(asked.operation, (start, count), ok, durable);
            }
            _ if !ok => self.oracle.failed(asked.operation),
            Operation::Flush => self.oracle.flushed(asked.operation),
            Operation::Read => {}
        }
        if matches!(
            asked.request.operation,
            Operation::Flush | Operation::Discard
        ) {
            return Ok(());
        }
        let payload = self.buffers.remove(finished.id).map_err(payload_error)?;
        if ok && asked.request.operation == Operation::Read {
            let (sectors, _) = payload.as_chunks::<SECTOR>();
            let values = sectors.iter().map(Value::of);
            let checked = self.oracle.read_done(asked.operation, start, values);
            checked.map_err(|wrong| {
                let bytes = &sectors[(wrong.sector - start) as usize];
                self.wrong(&wrong, bytes, &format!("read {id}"))
            })?;
        }
        self.buffers.give_back(payload);
        Ok(())
    }
}

/// A step in a few words.
struct Short<'a>(&'a ComputeStep);

impl fmt::Display for Short<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ComputeStep::Fill { to, bytes } => {
                write!(formatter, "Fill {to:?} with {} bytes", bytes.len())
            }
            step => write!(formatter, "{step:?}"),
        }
    }
}
