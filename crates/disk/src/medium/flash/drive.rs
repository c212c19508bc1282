//! A solid-state disk at work: its commands from submission to completion. The
//! parts are described in their modules: [dies](super::dies), [reading ahead](super::ahead),
//! [link](super::link), [writes](super::writes), [pages](super::pages).

use super::ahead::Ahead;
use super::dies::{Dies, Ended, Unit, UnitKind};
use super::events::{Event, Events};
use super::link::Link;
use super::pages::{PAGE_BYTES, Pages};
use super::parameters::Parameters;
use super::shape::NONE;
use super::writes::Writes;
use crate::command::{Command, CommandKind, Completion};
use crate::medium::{Inside, Mechanism};
use crate::medium::parameters::DiskParameters;
use crate::surface::Surface;
use raidlab_random::Stream;
use raidlab_units::{Nanos, SECTOR_BYTES, Sectors};
use std::collections::VecDeque;
use std::ops::Range;

mod reads;

/// Sectors of a logical page.
const PAGE_SECTORS: u64 = PAGE_BYTES / SECTOR_BYTES;

/// A command in progress.
#[derive(Debug, Clone, Copy)]
struct Flight {
    command: Command,
    /// The number of pending reads, and the time at which the last finished one was with the host.
    pending: u32,
    end: u64,
    /// The number of a write's pages that are in the buffer, or were.
    taken: u32,
    /// The next free slot, while no command uses this one.
    next: u32,
}

impl Flight {
    fn sectors(&self) -> Range<u64> {
        self.command.start.0..self.command.end()
    }

    /// The numbers of the logical pages that its sectors touch, in part or whole.
    fn pages(&self) -> Range<u64> {
        self.command.start.0 / PAGE_SECTORS..self.command.end().div_ceil(PAGE_SECTORS)
    }
}

/// Whether it is a command that SATA does not queue: a flush, and the `DATA SET MANAGEMENT` that
/// trims (Linux drivers/ata/libata-scsi.c, `ata_scsi_write_same_xlat`; that command's queued form
/// is rare, and Linux does not use it with many of the drives that say they have it).
fn stands_alone(kind: CommandKind) -> bool {
    matches!(kind, CommandKind::Flush | CommandKind::Discard)
}

/// The mechanism of a solid-state disk.
#[derive(Debug, Clone)]
pub(crate) struct FlashDisk {
    numbers: Parameters,
    /// The firmware's time for a write, a flush and a discard.
    overhead: u64,
    discard: u64,
    /// Whether there is no buffer, so that a write is complete when it is programmed.
    writes_through: bool,
    link: Link,
    dies: Box<Dies>,
    writes: Box<Writes>,
    ahead: Ahead,
    flights: Vec<Flight>,
    unused: u32,
    in_flight: u32,
    events: Events,
    /// The writes that wait for the buffer, and reads that may not pass them.
    waiting: VecDeque<u32>,
    /// The commands that wait for an epoch, in its order.
    epochs: VecDeque<(u32, u32)>,
    /// The commands that wait for one of SATA that [stands alone](stands_alone), and those that
    /// do so themselves.
    door: VecDeque<Command>,
    is_barred: bool,
    /// The logical page after the last one that came into the buffer, unless its unit was closed.
    written: u64,
    /// The end of the last flush that had work to do.
    flushed: u64,
    /// The time at which the cache of one bit is emptied, if nothing comes before; and whether that
    /// is in progress.
    idle_at: u64,
    folds: bool,
    units: Vec<Unit>,
}

impl FlashDisk {
    pub(super) fn new(numbers: Parameters, disk: &DiskParameters, random: Stream) -> Self {
        let pages = Pages::new(disk.capacity.to_bytes().0, &numbers, random);
        Self {
            overhead: disk.overhead_cached.0,
            discard: disk.discard.unwrap_or(Nanos::ZERO).0,
            writes_through: disk.write_window == 0,
            link: Link::new(numbers.generation, numbers.lanes, disk.interface.0),
            dies: Box::new(Dies::new(numbers)),
            ahead: Ahead::new(
                numbers.dies as u64 * numbers.page.0 / SECTOR_BYTES,
                disk.capacity.0,
            ),
            writes: Box::new(Writes::new(numbers, disk.write_window, pages)),
            flights: Vec::new(),
            unused: NONE,
            in_flight: 0,
            events: Events::default(),
            waiting: VecDeque::new(),
            epochs: VecDeque::new(),
            door: VecDeque::new(),
            is_barred: false,
            written: u64::MAX,
            flushed: 0,
            idle_at: u64::MAX,
            folds: false,
            units: Vec::new(),
            numbers,
        }
    }

    fn push(&mut self, at: u64, event: Event) {
        self.events.push(at, event);
    }

    /// Admits the commands that no longer wait for one of SATA that stands alone.
    fn open_door(&mut self, now: u64) {
        while let Some(&command) = self.door.front() {
            let alone = stands_alone(command.kind);
            if self.is_barred || (alone && self.in_flight > 0) {
                return;
            }
            self.is_barred = alone;
            self.door.pop_front();
            self.start(now, command);
        }
    }

    fn start(&mut self, now: u64, command: Command) {
        self.idle_at = u64::MAX;
        self.folds = false;
        self.in_flight += 1;
        let flight = Flight {
            command,
            pending: 0,
            end: 0,
            taken: 0,
            next: NONE,
        };
        let slot = self.unused;
        let slot = if slot == NONE {
            self.flights.push(flight);
            self.flights.len() as u32 - 1
        } else {
            self.unused = std::mem::replace(&mut self.flights[slot as usize], flight).next;
            slot
        };
        let there = self.link.occupy(now, 0, self.numbers.link_command.0);
        let taken = self.link.controller_free.max(there) + self.numbers.command.0;
        self.link.controller_free = taken;
        let firmware = match command.kind {
            CommandKind::Read => self.numbers.read_overhead.0,
            CommandKind::Write | CommandKind::WriteThrough => {
                let pages = flight.pages();
                self.overhead + self.numbers.page_overhead.0 * (pages.end - pages.start)
            }
            // To an NVMe drive with protection no command is sent: the host knows that there is
            // nothing to flush. A SATA drive cannot tell it.
            CommandKind::Flush if self.numbers.protected && !self.link.is_half_duplex => 0,
            CommandKind::Flush | CommandKind::Discard => self.overhead,
        };
        let event = match command.kind {
            CommandKind::Read => Event::Read(slot),
            _ => Event::Ready(slot),
        };
        self.push(taken + firmware, event);
    }

    /// Handles a command that has passed the controller.
    fn ready(&mut self, now: u64, slot: u32) {
        let flight = self.flights[slot as usize];
        match flight.command.kind {
            CommandKind::Read if self.numbers.reads_pass || self.waiting.is_empty() => {
                self.read(now, slot);
            }
            CommandKind::Read => self.waiting.push_back(slot),
            CommandKind::Write | CommandKind::WriteThrough => {
                self.ahead.forget(&flight.sectors());
                let bytes = flight.command.count.0 * SECTOR_BYTES;
                let arrived = self.link.transfer(now, 0, bytes);
                self.push(arrived, Event::Arrived(slot));
            }
            CommandKind::Flush => self.flush(now, slot),
            CommandKind::Discard => {
                self.ahead.forget(&flight.sectors());
                // Pages that are covered in part are kept.
                let first = flight.command.start.0.div_ceil(PAGE_SECTORS);
                let end = flight.command.end() / PAGE_SECTORS;
                self.writes.trim(first, end.max(first));
                self.push(now + self.discard, Event::Done(slot));
            }
        }
    }

    /// Handles a write whose data have arrived; the rest of a partly covered first or last
    /// page is read.
    fn arrived(&mut self, now: u64, slot: u32) {
        let flight = self.flights[slot as usize];
        let pages = flight.pages();
        let head = !flight.command.start.0.is_multiple_of(PAGE_SECTORS);
        let tail = !flight.command.end().is_multiple_of(PAGE_SECTORS);
        let is_one = pages.end - pages.start == 1;
        self.flights[slot as usize].pending = 1;
        for (partial, page) in [(head, pages.start), (tail && !(head && is_one), pages.end - 1)] {
            if partial && let (Some(page), _) = self.page(page * PAGE_SECTORS) {
                self.flights[slot as usize].pending += 1;
                self.read_page(now, slot, page, PAGE_BYTES);
            }
        }
        self.came(now, slot, 0);
    }

    /// Queues a write for the buffer.
    fn admit(&mut self, now: u64, slot: u32) {
        self.waiting.push_back(slot);
        if self.waiting.len() == 1 {
            self.admit_all(now);
        }
    }

    /// Admits waiting commands to the buffer, page by page, as far as there is room.
    fn admit_all(&mut self, now: u64) {
        while let Some(&slot) = self.waiting.front() {
            let flight = self.flights[slot as usize];
            if flight.command.kind == CommandKind::Read {
                self.waiting.pop_front();
                self.read(now, slot);
                continue;
            }
            let Range { start, end } = flight.pages();
            let first = start + u64::from(flight.taken);
            let count = (end - first).min(self.writes.room());
            let is_large = (end - start) * PAGE_BYTES >= self.numbers.page.0;
            let together = is_large || first == self.written;
            self.forget_pages(first..first + count);
            self.written = first + count;
            let units = &mut self.units;
            self.writes.take(first..first + count, together, units);
            self.program(now);
            if first + count < end {
                self.flights[slot as usize].taken += count as u32;
                // An incomplete unit must not keep the buffer full.
                if !self.writes.is_programming() {
                    self.writes.close(&mut self.units);
                    self.program(now);
                }
                return;
            }
            self.waiting.pop_front();
            let through = flight.command.kind == CommandKind::WriteThrough;
            if self.writes_through || (through && !self.numbers.protected) {
                self.wait_for_programs(now, slot, 0);
                self.program(now);
            } else {
                self.push(now, Event::Done(slot));
            }
        }
    }

    /// Passes new units to the dies.
    fn program(&mut self, now: u64) {
        let mut units = std::mem::take(&mut self.units);
        for unit in units.drain(..) {
            if let Some((die, at)) = self.dies.write(now, unit) {
                self.push(at, Event::Die(die as u32));
            }
        }
        self.units = units;
    }

    fn flush(&mut self, now: u64, slot: u32) {
        if self.numbers.protected {
            self.push(now + self.numbers.flush.0, Event::Done(slot));
        } else if self.writes.cleaned() || self.writes.is_programming() {
            self.wait_for_programs(now, slot, self.numbers.flush.0);
            self.program(now);
        } else {
            // Nothing was written since the last flush, which may still be writing its map.
            self.push(self.flushed.max(now), Event::Done(slot));
        }
    }

    /// Completes a command when everything taken into the buffer has been programmed, and
    /// `time` has passed.
    fn wait_for_programs(&mut self, now: u64, slot: u32, time: u64) {
        self.written = u64::MAX;
        match self.writes.end_epoch(&mut self.units) {
            Some(epoch) => {
                self.flights[slot as usize].end = time;
                self.epochs.push_back((epoch, slot));
            }
            None => self.flushed(now + time, slot),
        }
    }

    /// Completes a command whose awaited data are on the medium at this time.
    fn flushed(&mut self, at: u64, slot: u32) {
        self.flushed = self.flushed.max(at);
        self.push(at, Event::Done(slot));
    }

    /// Handles a programmed unit: its room in the buffer is free, and flushes may end.
    fn programmed(&mut self, now: u64, unit: Unit) {
        if let UnitKind::Copies { .. } = unit.kind {
            if self.folds && self.writes.fold(&mut self.units) {
                self.program(now);
            }
            return;
        }
        self.writes.programmed(unit);
        while let Some(&(epoch, slot)) = self.epochs.front() {
            if epoch >= self.writes.oldest() {
                break;
            }
            self.epochs.pop_front();
            let time = self.flights[slot as usize].end;
            self.flushed(now + time, slot);
        }
        self.admit_all(now);
    }

    fn done(&mut self, now: u64, slot: u32, completions: &mut Vec<Completion>) {
        let flight = &mut self.flights[slot as usize];
        let Command { tag, kind, .. } = flight.command;
        flight.next = self.unused;
        self.unused = slot;
        self.in_flight -= 1;
        completions.push(Completion { tag });
        if self.link.is_half_duplex {
            self.is_barred &= !stands_alone(kind);
            self.open_door(now);
        }
        if self.in_flight == 0 && self.writes.has_cached() {
            self.idle_at = now.saturating_add(self.numbers.slc_idle.0);
        }
    }

    fn happen(&mut self, now: u64, event: Event, completions: &mut Vec<Completion>) {
        match event {
            Event::Read(slot) | Event::Ready(slot) => self.ready(now, slot),
            Event::Arrived(slot) => self.arrived(now, slot),
            Event::Sent(slot) | Event::Done(slot) => self.done(now, slot, completions),
            Event::Die(die) => {
                let (ended, due) = self.dies.advance(now, die as usize);
                if let Some(at) = due {
                    self.push(at, Event::Die(die));
                }
                match ended {
                    Some(Ended::Read { command, bytes }) => {
                        self.ended_read(now, command, u64::from(bytes));
                    }
                    Some(Ended::Unit(unit)) => self.programmed(now, unit),
                    None => {}
                }
            }
        }
    }
}

impl Mechanism for FlashDisk {
    fn submit(&mut self, now: u64, command: &Command) {
        if self.link.is_half_duplex {
            self.door.push_back(*command);
            self.open_door(now);
        } else {
            self.start(now, *command);
        }
    }

    fn next_event(&self) -> u64 {
        self.events.next().min(self.idle_at)
    }

    fn advance(&mut self, now: u64, completions: &mut Vec<Completion>) {
        while let Some((at, event)) = self.events.pop(now) {
            self.happen(at, event, completions);
        }
        if self.idle_at <= now {
            self.idle_at = u64::MAX;
            self.folds = true;
            let dies = self.numbers.dies;
            while self.units.len() < dies && self.writes.fold(&mut self.units) {}
            self.program(now);
        }
    }

    fn inside(&self) -> Inside {
        let events = self.events.inside();
        Inside {
            controller: events.controller + self.door.len(),
            buffer: self.waiting.len(),
            ..events
        }
    }

    fn is_quiet(&self) -> bool {
        self.in_flight == 0 && self.dies.units() == 0 && self.ahead.is_quiet()
    }

    fn leap(&mut self, _surface: &Surface, _sector: Sectors) {
        // The time at which it would have emptied its cache may have passed.
        self.idle_at = u64::MAX;
    }

    fn is_steady(&self) -> bool {
        self.writes.is_steady()
    }
}
