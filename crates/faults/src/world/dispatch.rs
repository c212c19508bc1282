//! The way from the driver to the disks and back, in virtual time.
//!
//! The driver orders commands, each of which becomes a flight with a time of arrival: drawn, or
//! that of a modelled disk, and later where the disk is slow. When virtual time reaches it, the
//! disk carries out the command, wholly, in part or not at all depending on its faults, and the
//! driver sees the end at its next turn. The earliest of all these happens next: an arrival, a
//! modelled disk's completion, or the driver's turn. A disk that hangs keeps its flights until it
//! answers again or dies.

mod half_done;
mod orders;

use super::{Violation, World, nanos, violation};
use crate::disk::{Health, PendingWrite};
use crate::driver::{Driver, Happening, Shelf, errno};
use crate::pages::SECTOR;
use crate::value::Value;
use raidlab_array::{Event, MemberCommand, Operation};
use raidlab_serve::export::{Buffer, ErrorCode};
use raidlab_serve::member::{Ended, Errno, Job, Transfer};
use raidlab_units::{Bytes, Nanos, in_one_line};
use std::cmp::Reverse;
use std::sync::Arc;

/// The factor of slowness from which on a disk may leave a command unanswered for longer than
/// the driver waits.
pub(super) const TRYING_SLOWNESS: u64 = 100;

/// A member command in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) disk: Option<usize>,
    /// The command as the core ordered it.
    pub(super) command: MemberCommand,
    /// The part of it that was sent to the disk.
    job: Job,
    /// The first sector on the disk.
    start: u64,
    /// The bytes that a write or discard will store.
    bytes: Option<Arc<[u8]>>,
    /// For a flush: the stamp of the newest write that it makes durable.
    mark: u64,
    /// The number of the command in the order of sending.
    pub(super) sent: u64,
    /// The time when it was sent.
    pub(super) since: u64,
    /// Whether its time was drawn while the disk was so slow that the driver may give it up; the
    /// time stays when the disk is fast again.
    pub(super) is_trying: bool,
}

impl Flight {
    /// Returns the write that a power cut may leave of it.
    pub(super) fn pending(&self) -> Option<PendingWrite> {
        let durable = matches!(
            self.job.transfer,
            Transfer::Write {
                force_unit_access: true,
                ..
            }
        );
        self.bytes.as_ref().map(|bytes| PendingWrite {
            stamp: self.sent,
            start: self.start,
            bytes: bytes.clone(),
            durable,
        })
    }
}

impl World<'_> {
    /// Calls the driver, and handles its actions.
    pub(super) fn call<R>(
        &mut self,
        action: impl FnOnce(&mut Driver, Nanos) -> R,
    ) -> Result<R, Violation> {
        let now = nanos(self.now);
        let Some(driver) = &mut self.driver else {
            return Err(violation("contract", "no array runs"));
        };
        let answer = action(driver, now);
        driver.owner.settle(now);
        self.take_up()?;
        Ok(answer)
    }

    /// Calls the driver like [`Self::call`], with direct access to the disks; its actions still
    /// have to be handled.
    pub(super) fn call_with_disks<R>(
        &mut self,
        action: impl FnOnce(&mut Driver, &Shelf, Nanos) -> R,
    ) -> Result<R, Violation> {
        let now = nanos(self.now);
        let Some(driver) = &mut self.driver else {
            return Err(violation("contract", "no array runs"));
        };
        let shelf = &self.shelf;
        let answer = shelf.lend(&mut self.disks, None, |shelf| action(driver, shelf, now));
        driver.owner.settle(now);
        Ok(answer)
    }

    /// Handles the driver's actions.
    pub(super) fn take_up(&mut self) -> Result<(), Violation> {
        let Some(driver) = &self.driver else {
            return Ok(());
        };
        if let Some(broken) = driver.owner.broken() {
            return Err(violation("buffers", in_one_line(broken)));
        }
        let mut happenings = std::mem::take(&mut self.happenings);
        driver.line.exchange(&mut happenings);
        let mut ordered = None;
        for happening in happenings.drain(..) {
            match happening {
                Happening::Step(words) => {
                    let text = format_args!("  step {words}");
                    self.trace.note(self.now, &[3], text);
                }
                Happening::Command(command) => {
                    self.note_order(&command)?;
                    ordered = Some(command);
                }
                Happening::Job(job) => self.send(ordered.take(), job)?,
                Happening::Event(event) => self.happened(&event),
                Happening::Answered {
                    token,
                    buffer,
                    result,
                } => self.finish(token, &buffer, result)?,
            }
        }
        self.happenings = happenings;
        self.follow_slots();
        self.follow_members();
        Ok(())
    }

    fn happened(&mut self, event: &Event) {
        self.trace.note(self.now, &[4], format_args!("  {event:?}"));
        if let Event::MemberFailed(handle) = event
            && let Some(disk) = self.handles.get(handle.index()).copied().flatten()
        {
            self.standing[disk].failed = true;
        }
        match event {
            Event::Mismatch { start, count } => self.mismatches.push((start.0, count.0)),
            Event::SyncStarted(_) | Event::SyncCheckpoint(_) => {}
            _ => self.oracle.members_changed(),
        }
    }

    /// Sends a command to a disk: one that was just ordered, or the rest of one whose first
    /// part has ended.
    fn send(&mut self, ordered: Option<MemberCommand>, job: Job) -> Result<(), Violation> {
        self.statistics.commands += 1;
        self.order += 1;
        let token = job.token;
        let again = self.delivered.iter().find(|(its, _)| *its == token);
        let command = again.map(|(_, command)| *command).or(ordered);
        let Some(command) = command else {
            return Err(violation("contract", "a command that nobody ordered"));
        };
        self.check_name(&command)?;
        let disk = self.disk_at(job.place);
        let start = Bytes(job.at()).to_sectors().0;
        let bytes: Option<Arc<[u8]>> = match &job.transfer {
            Transfer::Write { data, .. } => Some(data[job.moved..].into()),
            Transfer::Discard { bytes } => {
                let bytes = usize::try_from(*bytes).unwrap_or(0);
                Some(vec![0; bytes].into())
            }
            Transfer::Read(_) | Transfer::Flush => None,
        };
        let flight = Flight {
            disk,
            command,
            job,
            start,
            bytes,
            mark: disk.map_or(0, |disk| self.disks[disk].flush_mark()),
            sent: self.order,
            since: self.now,
            is_trying: self.is_trying(disk),
        };
        let order = self.order;
        let modelled = disk.is_some_and(|disk| self.models.submit(self.now, disk, order, &command));
        if !modelled {
            let at = self.now + self.draw_latency(disk);
            self.calendar.push(Reverse((at, order, token)));
        }
        match self.flights.insert(token, flight) {
            None => Ok(()),
            Some(_) => Err(violation(
                "contract",
                format!("token {token} is sent twice"),
            )),
        }
    }

    /// Whether a disk is so slow that the driver may give it up.
    pub(super) fn is_trying(&self, disk: Option<usize>) -> bool {
        disk.is_some_and(|disk| self.tries_patience(self.disks[disk].slowness))
    }

    fn draw_latency(&mut self, disk: Option<usize>) -> u64 {
        let (low, high) = (self.options.latency_low_ns, self.options.latency_high_ns);
        let drawn = low + self.latency.below(high - low + 1);
        drawn * disk.map_or(1, |disk| self.disks[disk].slowness)
    }

    /// Returns the time of the next event.
    pub(super) fn next_event(&self) -> Option<u64> {
        let command = self.calendar.peek().map(|Reverse((time, ..))| *time);
        command
            .into_iter()
            .chain(self.models.next_event())
            .chain(self.next_turn())
            .min()
    }

    /// Handles the next event in virtual time.
    pub(super) fn step_event(&mut self) -> Result<(), Violation> {
        self.count_event()?;
        let command = self.calendar.peek().map(|Reverse((time, ..))| *time);
        let Some(next) = self.next_event() else {
            return Err(violation(
                "liveness",
                format!("requests wait and nothing is in flight: {}", self.waits()),
            ));
        };
        self.now = self.now.max(next);
        if command == Some(next) {
            let Some(Reverse((_, order, token))) = self.calendar.pop() else {
                return Ok(());
            };
            return self.arrive(order, token);
        }
        if self.models.next_event().is_some_and(|time| time <= next) {
            return self.models_advance();
        }
        self.turn()
    }

    /// Returns the time of the driver's turn: when it has something to do by itself, or will see
    /// commands that have ended.
    fn next_turn(&self) -> Option<u64> {
        let wake = self.driver.as_ref()?.owner.next_wake();
        let wake = wake.filter(|wake| wake.0 < u64::MAX);
        let wake = wake.map(|wake| wake.0.max(self.now));
        wake.into_iter().chain(self.turn_at).min()
    }

    /// Completes commands on modelled disks; on slow ones, later.
    fn models_advance(&mut self) -> Result<(), Violation> {
        for order in self.models.advance(self.now) {
            let mut flights = self.flights.iter();
            let flight = flights.find(|(_, flight)| flight.sent == order);
            let Some((token, disk)) = flight.map(|(token, flight)| (*token, flight.disk)) else {
                continue;
            };
            let slowness = disk.map_or(1, |disk| self.disks[disk].slowness);
            let is_trying = self.is_trying(disk);
            let Some(flight) = self.flights.get_mut(&token) else {
                continue;
            };
            flight.is_trying |= is_trying;
            let late = (self.now - flight.since) * (slowness - 1);
            self.calendar.push(Reverse((self.now + late, order, token)));
        }
        Ok(())
    }

    /// Ends a command, unless its disk hangs.
    fn arrive(&mut self, order: u64, token: u64) -> Result<(), Violation> {
        let Some(flight) = self.flights.get(&token) else {
            return Err(violation("contract", "an end of what was never sent"));
        };
        if let Some(disk) = flight.disk
            && let Some((until, dies)) = self.standing[disk].hung
        {
            if self.now < until {
                self.calendar.push(Reverse((until, order, token)));
                return Ok(());
            }
            self.standing[disk].hung = None;
            self.disks[disk].health = if dies { Health::Gone } else { Health::Well };
        }
        let Some(mut flight) = self.flights.remove(&token) else {
            return Ok(());
        };
        let ended = self.execute(&mut flight)?;
        let failed = ended.is_err_and(|error| error != Errno::INTR);
        if failed {
            self.oracle.members_changed();
        }
        let Flight { command, job, .. } = flight;
        let id = command.id.0;
        let text = format_args!(
            "  <- {} {:?} {id}: {ended:?}",
            command.slot.0, command.operation
        );
        self.trace.note(self.now, &[6, id, u64::from(failed)], text);
        self.delivered.push((job.token, command));
        if let Some(driver) = &self.driver {
            driver.line.end(job, ended);
        }
        if self.options.driver.turn_ns == 0 {
            return self.collect();
        }
        if self.turn_at.is_none() {
            let later = self.interruptions.random.below(self.options.driver.turn_ns);
            self.turn_at = Some(self.now + later);
        }
        Ok(())
    }

    /// Lets the driver see the commands that have ended, and do nothing else yet.
    fn collect(&mut self) -> Result<(), Violation> {
        self.call(|driver, now| driver.owner.collect(now))?;
        self.delivered.clear();
        Ok(())
    }

    /// Runs the driver's turn: it sees the commands that have ended, and does what is due.
    fn turn(&mut self) -> Result<(), Violation> {
        self.turn_at = None;
        self.call(|driver, now| driver.owner.step(now))?;
        self.delivered.clear();
        Ok(())
    }

    /// Carries out a command on its disk.
    fn execute(&mut self, flight: &mut Flight) -> Result<Ended, Violation> {
        let Some(number) = flight.disk else {
            return Ok(Err(Errno::NODEV));
        };
        if self.disks[number].health == Health::Gone {
            return Ok(Err(Errno::NODEV));
        }
        if self.fails_once(number, flight) {
            return Ok(Err(Errno::IO));
        }
        let (start, moved) = (flight.start, flight.job.moved);
        let whole = match &flight.job.transfer {
            Transfer::Read(bytes) => bytes.len() - moved,
            Transfer::Write { data, .. } => data.len() - moved,
            Transfer::Flush | Transfer::Discard { .. } => 0,
        };
        let count = match self.interruptions.draw(whole) {
            Ok(count) => count,
            Err(error) => return Ok(Err(error)),
        };
        let disk = &mut self.disks[number];
        match (&mut flight.job.transfer, &flight.bytes) {
            (Transfer::Read(bytes), _) => {
                let into = &mut bytes[moved..moved + count];
                return Ok(disk.read(start, into).map(|()| count).map_err(errno));
            }
            (Transfer::Write { data, .. }, Some(bytes)) if data[moved..] != bytes[..] => {
                let detail = format!("{:?}: its bytes changed in flight", flight.command);
                return Err(violation("buffers", detail));
            }
            (
                Transfer::Write {
                    force_unit_access, ..
                },
                Some(bytes),
            ) => {
                let written = match count == whole {
                    true => bytes.clone(),
                    false => bytes[..count].into(),
                };
                disk.write(start, written, *force_unit_access);
                return Ok(Ok(count));
            }
            (_, Some(zeros)) => disk.write(start, zeros.clone(), false),
            (_, None) => disk.flush(flight.mark),
        }
        Ok(Ok(0))
    }

    fn finish(
        &mut self,
        id: u64,
        payload: &Buffer,
        result: Result<(), ErrorCode>,
    ) -> Result<(), Violation> {
        let Some(asked) = self.asked.remove(&id) else {
            return Err(violation(
                "contract",
                format!("request {id} finished twice"),
            ));
        };
        let words = [7, id, u64::from(result.is_err())];
        let text = format_args!("request {id} finished: {result:?}");
        self.trace.note(self.now, &words, text);
        let refused = result == Err(ErrorCode::NotPermitted) && self.is_read_only();
        if let Err(error) = result
            && !self.beyond
            && !refused
        {
            let detail = format!("{:?}: {error}", asked.request);
            return Err(violation("error within the budget", detail));
        }
        let ok = result.is_ok();
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
        if ok && asked.request.operation == Operation::Read {
            let (sectors, _) = payload.as_chunks::<SECTOR>();
            let values = sectors.iter().map(Value::of);
            let checked = self.oracle.read_done(asked.operation, start, values);
            checked.map_err(|wrong| {
                let bytes = &sectors[(wrong.sector - start) as usize];
                self.wrong(&wrong, bytes, &format!("read {id}"))
            })?;
        }
        Ok(())
    }
}
