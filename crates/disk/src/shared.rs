//! Disks and channels that members share: two partitions of one disk share its arm, two disks of
//! one PATA cable share the cable, the disks of a machine share a bus.
//!
//! A host sees *ports*: each leads to a region of a disk, and behaves as a disk of that size. The
//! ports of a group share an arm, a cable or a bus:
//!
//! - **An arm** ([`Sharing::Arm`]): commands of all ports go to their disk through one queue of the
//!   host, which has the host's tags and scheduler once for the drive; and the disk chooses among
//!   all of its commands. This models partitions.
//! - **A cable** ([`Sharing::Cable`]): one command at a time, whichever disk it is for. It holds
//!   the cable from its start to its completion, so the reads of one disk keep the other from even
//!   starting; only a disk's own work, such as writing out its cache, continues meanwhile. Commands
//!   that come meanwhile wait at their ports in order of arrival, and when the cable is free the
//!   ports take turns: the next one with a command waiting, counted from the port that was served
//!   last. That is how Linux drove two ATA disks of a channel, which have no means to overlap:
//!   `ide_do_request` starts nothing while `hwgroup->busy`, and `choose_drive` prefers the drive
//!   that was served less recently (`drivers/ide/ide-io.c` of 2.6.21; its account of service times
//!   is left out).

//! - **A bus** ([`Sharing::Bus`]): commands go to their disks as they come, but written data cross
//!   the [bus](BusRules) before they reach the disk, and read data cross it afterwards.

use crate::bus::{Bus, BusRules, Way};
use crate::command::{Command, CommandKind, Completion};
use crate::disk::Disk;
use crate::medium::parameters::DiskParameters;
use crate::queue::{Order, Queue, QueueRules, Submitter, Target};
use raidlab_units::{Nanos, SECTOR_BYTES, Sectors};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The resource that the ports of a group share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sharing {
    /// The ports share only their disks: ports to one disk share its arm.
    Arm,
    /// The ports share a cable that carries one command at a time.
    Cable,
    /// The ports share a bus that all data cross.
    Bus(BusRules),
}

/// The part of a disk that a port leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// The index of the disk in the group, from 0.
    pub disk: usize,
    /// The disk's sector that is the port's first.
    pub start: Sectors,
}

/// A port: one of several ways to a shared disk. A clone is the same port.
#[derive(Debug, Clone)]
pub struct Port {
    hub: Arc<Mutex<Hub>>,
    number: usize,
}

/// Creates the ports to a group of disks, one for each region, in their order. Regions must name
/// existing disks; commands must stay within the disk.
#[must_use]
pub fn ports(disks: Vec<Disk>, regions: &[Region], sharing: Sharing) -> Vec<Port> {
    let lines = regions.iter().map(|&region| Line {
        region,
        waiting: VecDeque::new(),
        done: VecDeque::new(),
        overflows: 0,
    });
    let disks = disks
        .into_iter()
        .map(|disk| Queue::with(disk, QueueRules::OPEN));
    let hub = Arc::new(Mutex::new(Hub {
        bus: match sharing {
            Sharing::Bus(rules) => Some(Bus::new(rules)),
            Sharing::Arm | Sharing::Cable => None,
        },
        disks: disks.collect(),
        lines: lines.collect(),
        sharing,
        held: false,
        last: regions.len().saturating_sub(1),
        flights: Vec::new(),
        free: Vec::new(),
        completions: Vec::new(),
    }));
    (0..regions.len())
        .map(|number| Port {
            hub: Arc::clone(&hub),
            number,
        })
        .collect()
}

impl Port {
    fn hub(&self) -> MutexGuard<'_, Hub> {
        self.hub.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a command as [`Disk::submit`] does, in the port's own sectors.
    pub fn submit(&self, now: Nanos, command: Command) {
        self.submit_from(now, command, Submitter::default());
    }

    /// Takes a command as [`Self::submit`] does, with its sender.
    fn submit_from(&self, now: Nanos, command: Command, from: Submitter) {
        self.hub().submit(now, self.number, command, from);
    }

    /// The time of the next event, as [`Disk::next_event`]; events of the whole group count.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        self.hub().next_event(self.number)
    }

    /// Does everything due at `now`, as [`Disk::advance`]; other ports get their completions when
    /// they are asked.
    pub fn advance(&self, now: Nanos, completions: &mut Vec<Completion>) {
        let mut hub = self.hub();
        hub.advance(now);
        let done = hub.lines[self.number].done.drain(..);
        completions.extend(done.map(|(_, tag)| Completion { tag }));
    }

    /// The result of `of` for the parameters of its disk.
    fn ask<T>(&self, of: impl FnOnce(&DiskParameters) -> T) -> T {
        let hub = self.hub();
        let disk = hub.lines[self.number].region.disk;
        of(hub.disks[disk].disk().parameters())
    }

    /// The rules of the queue before the port. Parts of one drive share another queue behind that.
    fn rules(&self, host: QueueRules) -> QueueRules {
        match self.sharing() {
            Sharing::Cable => QueueRules { tags: 1, ..host },
            Sharing::Bus(_) => self.ask(|numbers| host.before(numbers)),
            Sharing::Arm => {
                let mut hub = self.hub();
                let disk = hub.lines[self.number].region.disk;
                hub.disks[disk].begin_with(host);
                QueueRules::OPEN
            }
        }
    }

    /// The resource that the port shares with the others of its group: arm, cable or bus.
    #[must_use]
    pub fn sharing(&self) -> Sharing {
        self.hub().sharing
    }

    /// Whether no command waits or is in flight in the whole group.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        let hub = self.hub();
        let idle = |line: &Line| line.waiting.is_empty() && line.done.is_empty();
        let at_rest = |queue: &Queue<Disk>| queue.disk().is_quiet() && queue.queued() == (0, 0);
        hub.disks.iter().all(at_rest)
            && hub.lines.iter().all(idle)
            && hub.bus.as_ref().is_none_or(Bus::is_quiet)
    }
}

/// The state of one port: its region, and its waiting commands and completions.
#[derive(Debug)]
struct Line {
    region: Region,
    /// The commands that wait for the cable.
    waiting: VecDeque<(Command, Submitter)>,
    /// The number of its commands that found no tag.
    overflows: u64,
    /// The completions that have not been fetched yet.
    done: VecDeque<(Nanos, u64)>,
}

/// A command in flight.
#[derive(Debug, Clone, Copy)]
struct Flight {
    port: usize,
    /// The tag that the port's host chose; the disk has another one.
    tag: u64,
    /// The command with the disk's tag and sectors.
    command: Command,
    /// Whether it is a read whose data cross the bus.
    is_back: bool,
}

#[derive(Debug)]
struct Hub {
    /// The drives, each behind the queue that its ports share.
    disks: Vec<Queue<Disk>>,
    lines: Vec<Line>,
    sharing: Sharing,
    bus: Option<Bus>,
    /// Whether the cable is carrying a command.
    held: bool,
    /// The port whose command it carries or carried last.
    last: usize,
    /// The commands in the disks and on the bus, by the disks' tags.
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    completions: Vec<Completion>,
}

impl Hub {
    fn submit(&mut self, now: Nanos, port: usize, command: Command, from: Submitter) {
        if self.sharing == Sharing::Cable && self.held {
            self.lines[port].waiting.push_back((command, from));
        } else {
            self.start(now, port, command, from);
        }
    }

    fn start(&mut self, now: Nanos, port: usize, command: Command, from: Submitter) {
        self.held = true;
        self.last = port;
        let slot = self.free.pop().unwrap_or_else(|| {
            self.flights.push(None);
            self.flights.len() - 1
        });
        let Region { disk, start } = self.lines[port].region;
        let start = match command.kind {
            CommandKind::Flush => command.start,
            _ => command.start + start,
        };
        let tag = command.tag;
        let command = Command {
            tag: slot as u64,
            start,
            ..command
        };
        self.flights[slot] = Some(Flight {
            port,
            tag,
            command,
            is_back: false,
        });
        // A command without data crosses the bus too, for the time that a command takes.
        let bytes = match command.kind {
            CommandKind::Read => None,
            CommandKind::Write | CommandKind::WriteThrough => Some(command.count.0 * SECTOR_BYTES),
            CommandKind::Flush | CommandKind::Discard => Some(0),
        };
        match (&mut self.bus, bytes) {
            (Some(bus), Some(bytes)) => bus.cross(now.0, Way::Out, disk, slot, bytes),
            _ => {
                let queue = &mut self.disks[disk];
                let before = queue.overflows();
                queue.submit_from(now, command, from);
                self.lines[port].overflows += queue.overflows() - before;
            }
        }
    }

    /// Handles the end of a command's data transfer over the bus.
    fn across(&mut self, at: Nanos, slot: usize) {
        match self.flights[slot] {
            Some(flight) if flight.is_back => self.end(at, slot, flight),
            Some(flight) => {
                let disk = self.lines[flight.port].region.disk;
                self.disks[disk].submit(at, flight.command);
            }
            None => {}
        }
    }

    fn next_event(&self, port: usize) -> Option<Nanos> {
        let fetched = self.lines[port].done.front().map(|done| done.0);
        let disks = self.disks.iter().filter_map(Queue::next_event);
        let bus = self.bus.as_ref().map(|bus| Nanos(bus.next()));
        let bus = bus.filter(|&at| at != Nanos::MAX);
        disks.chain(fetched).chain(bus).min()
    }

    fn advance(&mut self, now: Nanos) {
        loop {
            let next = |(disk, one): (usize, &Queue<Disk>)| one.next_event().map(|at| (at, disk));
            let due = self.disks.iter().enumerate().filter_map(next).min();
            let bus = self.bus.as_ref().map_or(u64::MAX, Bus::next);
            let first = due.map_or(u64::MAX, |due| due.0.0);
            if bus <= now.0 && bus <= first {
                let across = self.bus.as_mut().and_then(|bus_now| bus_now.take(bus));
                if let Some(slot) = across {
                    self.across(Nanos(bus), slot);
                }
                continue;
            }
            let Some((at, disk)) = due.filter(|due| due.0 <= now) else {
                return;
            };
            let mut completions = std::mem::take(&mut self.completions);
            self.disks[disk].advance(at, &mut completions);
            for completion in completions.drain(..) {
                self.complete(at, completion);
            }
            self.completions = completions;
        }
    }

    fn complete(&mut self, at: Nanos, completion: Completion) {
        let slot = usize::try_from(completion.tag).unwrap_or(usize::MAX);
        let Some(Some(flight)) = self.flights.get_mut(slot) else {
            return;
        };
        if let Some(bus) = &mut self.bus
            && flight.command.kind == CommandKind::Read
        {
            flight.is_back = true;
            let bytes = flight.command.count.0 * SECTOR_BYTES;
            let disk = self.lines[flight.port].region.disk;
            return bus.cross(at.0, Way::In, disk, slot, bytes);
        }
        let flight = *flight;
        self.end(at, slot, flight);
    }

    /// Completes a command, which frees a cable.
    fn end(&mut self, at: Nanos, slot: usize, flight: Flight) {
        self.flights[slot] = None;
        self.free.push(slot);
        self.lines[flight.port].done.push_back((at, flight.tag));
        if self.sharing != Sharing::Cable {
            return;
        }
        self.held = false;
        let count = self.lines.len();
        let turns = (1..=count).map(|turn| (self.last + turn) % count);
        let next = turns
            .into_iter()
            .find(|&port| !self.lines[port].waiting.is_empty());
        if let Some(port) = next
            && let Some((command, from)) = self.lines[port].waiting.pop_front()
        {
            self.start(at, port, command, from);
        }
    }
}

/// A disk as a host sees it: a whole one, or a port to a shared one.
#[derive(Debug, Clone)]
pub enum Attached {
    /// A whole disk of the host alone.
    Whole(Box<Disk>),
    /// A port to a shared disk.
    Port(Port),
}

impl From<Disk> for Attached {
    fn from(disk: Disk) -> Self {
        Self::Whole(Box::new(disk))
    }
}

impl Attached {
    /// Whether it is a port, whose events depend on the other ports.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Port(_))
    }

    /// Whether it is on a cable that carries one command at a time.
    #[must_use]
    pub fn one_at_a_time(&self) -> bool {
        matches!(self, Self::Port(port) if port.sharing() == Sharing::Cable)
    }

    /// The port, where it leads to a part of a drive whose parts have one queue.
    fn of_an_arm(&self) -> Option<&Port> {
        match self {
            Self::Port(port) if port.sharing() == Sharing::Arm => Some(port),
            _ => None,
        }
    }

    /// The result of `of` for the parameters of the disk, whole or in part.
    pub(crate) fn ask<T>(&self, of: impl FnOnce(&DiskParameters) -> T) -> T {
        match self {
            Self::Whole(disk) => of(disk.parameters()),
            Self::Port(port) => port.ask(of),
        }
    }

    /// Whether the disk takes discards.
    #[must_use]
    pub fn takes_discards(&self) -> bool {
        self.ask(|disk| disk.discard.is_some())
    }

    /// Whether the disk says that it has a write cache, so that the host flushes it.
    #[must_use]
    pub fn declares_write_cache(&self) -> bool {
        self.ask(DiskParameters::declares_write_cache)
    }

    /// Takes a command at time `now` as [`Disk::submit`] does; a port counts sectors from the start
    /// of its region.
    pub fn submit(&mut self, now: Nanos, command: Command) {
        match self {
            Self::Whole(disk) => disk.submit(now, command),
            Self::Port(port) => port.submit(now, command),
        }
    }

    /// The time at which [`Self::advance`] next has something to do, as in [`Disk::next_event`];
    /// with a port the events of its whole group count.
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        match self {
            Self::Whole(disk) => disk.next_event(),
            Self::Port(port) => port.next_event(),
        }
    }

    /// Does everything due at `now` and appends the completed commands, as [`Disk::advance`] does;
    /// a port appends only its own.
    pub fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        match self {
            Self::Whole(disk) => disk.advance(now, completions),
            Self::Port(port) => port.advance(now, completions),
        }
    }

    /// Whether nothing waits, is dirty or in progress, as in [`Disk::is_quiet`]; with a port in
    /// its whole group.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        match self {
            Self::Whole(disk) => disk.is_quiet(),
            Self::Port(port) => port.is_quiet(),
        }
    }
}

/// A disk behind its host's queue.
pub type HostQueue = Queue<Attached>;

impl Target for Attached {
    fn rules(&mut self, host: QueueRules) -> QueueRules {
        match self {
            Self::Whole(disk) => disk.rules(host),
            Self::Port(port) => port.rules(host),
        }
    }

    fn is_rotational(&self) -> bool {
        self.ask(|disk| disk.medium().facts().rotational)
    }

    #[inline]
    fn submit_from(&mut self, now: Nanos, command: Command, from: Submitter) {
        match self {
            Self::Whole(disk) => disk.submit(now, command),
            Self::Port(port) => port.submit_from(now, command, from),
        }
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        Self::next_event(self)
    }

    #[inline]
    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        Self::advance(self, now, completions);
    }

    fn order(&self) -> Option<Order> {
        let port = self.of_an_arm()?;
        let hub = port.hub();
        let disk = hub.lines[port.number].region.disk;
        Some(hub.disks[disk].order())
    }

    fn queued(&self) -> Option<(usize, usize)> {
        let port = self.of_an_arm()?;
        let hub = port.hub();
        let is_own = |flight: &Option<Flight>| flight.is_some_and(|it| it.port == port.number);
        let all = hub.flights.iter().filter(|flight| is_own(flight)).count();
        let disk = &hub.disks[hub.lines[port.number].region.disk];
        Some(disk.queued_of(all, |tag| {
            let slot = usize::try_from(tag).unwrap_or(usize::MAX);
            hub.flights.get(slot).is_some_and(is_own)
        }))
    }

    fn overflows(&self) -> u64 {
        let own = |port: &Port| port.hub().lines[port.number].overflows;
        self.of_an_arm().map_or(0, own)
    }

    fn exit(&mut self, now: Nanos, ended: &dyn Fn(u32) -> bool) {
        if let Some(port) = self.of_an_arm() {
            let mut hub = port.hub();
            let disk = hub.lines[port.number].region.disk;
            hub.disks[disk].exit(now, ended);
        }
    }
}
