//! The world in which the driver and its core run: disks, virtual time, requests, and the oracle
//! that checks them.
//!
//! Time goes from event to event: the end of a member command, a turn that the driver asked for,
//! the next step of the script. The bytes of a write are recorded when the command is sent, must be
//! the same when it completes, and are on the disk from then on; a read sees the bytes that are
//! there when it completes.
//!
//! **Budget.** A fault is let through only if the level's promise covers it: the slots that are not
//! in sync, whose disk is dying, or whose disk has unreadable sectors, are together at most as many
//! as the level tolerates, whichever they are. An array with parity and without a log that has
//! crashed may lose none until its resync has ended: that is the write hole, which it does not
//! promise to survive. The first resync of a new array is no such time: what was written since is
//! kept, the rest is undefined. Such an array that crashes while degraded must refuse to start; if
//! forced, it may have lost the stripes that were being written, and nothing else. A disk with a
//! transient error counts until the array has dealt with it and with all requests that were in work
//! meanwhile. Where the driver gives up members that do not answer in time, a disk that hangs for
//! half of that time, or is a hundred times slower, counts until it has answered all. With
//! `over_budget` everything is let through; from the first fault beyond the budget on, errors are
//! permitted and wrong bytes are not, except where a member that is out of date is taken by force
//! because no newer one is left.
//!
//! Silent corruption is outside what RAID without checksums promises. It comes only when everything
//! is settled, a check must find it, and then it is lifted: see [`silent`].

mod asking;
mod begin;
mod bitmap_file;
mod come_up;
mod dispatch;
mod enumerate;
mod faults;
mod glance;
mod grow;
mod hands;
mod meeting;
mod noted;
mod restart;
mod settle;
mod silent;
mod split;
mod timing;
mod verbs;

use crate::disk::{Disk, Health};
use crate::driver::{self, Driver, Happening, Interruptions, Ready, Shelf};
use crate::options::Options;
use crate::oracle::{Moment, OperationId, Oracle, Wrong};
use crate::pages::{Pages, SECTOR};
use crate::reader::{Reader, slot_of};
use crate::script::{Action, Step};
use crate::statistics::Statistics;
use crate::trace::Trace;
use crate::value::Origin;
use begin::{add_bitmap_file, disk_sectors, first_oracle, preset};
use dispatch::Flight;
use raidlab_array::{MemberCommand, MemberState, Operation, Request, Stale};
use raidlab_geometry::SlotSet;
use raidlab_random::Stream;
use raidlab_serve::export::BufferPool;
use raidlab_units::Nanos;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use timing::Models;

/// A promise of the array that was broken, which ends the run.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{kind}: {detail}")]
pub struct Violation {
    /// The promise that was broken.
    pub kind: &'static str,
    /// The observation, and what was expected instead.
    pub detail: String,
}

/// Returns a violation of this kind.
pub(crate) fn violation(kind: &'static str, detail: impl Into<String>) -> Violation {
    Violation {
        kind,
        detail: detail.into(),
    }
}

/// The most events of a run: beyond it the driver or the core must be in an endless loop.
const MOST_EVENTS: u64 = 1_000_000;

/// The longest time that anything takes once the faults have stopped.
const LONGEST_WAIT_NS: u64 = 3_600_000_000_000;

/// A request that the driver has not answered yet.
#[derive(Debug, Clone, Copy)]
struct Asked {
    request: Request,
    operation: OperationId,
}

/// The facts about a disk that its own state does not include.
#[derive(Debug, Clone, Default)]
struct Standing {
    /// The number of the disk's next commands that will fail once.
    transient: u32,
    /// Whether the array has declared it failed since it was put in.
    failed: bool,
    /// Whether errors of the disk may still be in work.
    erring: bool,
    /// Whether it is in sync, and a superblock has said so since it was filled.
    is_recorded: bool,
    /// The oracle's moment at which it was last seen so.
    in_sync_until: Moment,
    /// Whether it may leave commands unanswered for longer than the driver waits.
    trying: bool,
    /// The time until which it does not answer, and whether it dies then.
    hung: Option<(u64, bool)>,
}

/// Everything in a run: the array under its driver, the disks, the oracle and the script.
pub struct World<'a> {
    options: &'a Options,
    disks: Vec<Disk>,
    /// The disks while the driver has direct access to them.
    shelf: Shelf,
    /// The disk that each of the core's handles names.
    handles: Vec<Option<usize>>,
    /// The disk that serves each slot, a failed one included.
    slots: Vec<Option<usize>>,
    /// Slots that another disk has taken over from a member that had not failed.
    handed_over: SlotSet,
    /// The disk with the file that holds the bitmap, if the array has one.
    bitmap_file: Option<usize>,
    /// The disk with the bitmap's file, if it is present at the next start.
    bitmap_there: Option<usize>,
    /// Whether the array is to use all that its members have, from the next start on.
    grows: bool,
    /// Disks that were removed and still live, with their former slots.
    retired: Vec<(usize, usize)>,
    driver: Option<Driver>,
    buffers: BufferPool,
    happenings: Vec<Happening>,
    /// Commands at the disks by the driver's numbers: also those for which it no longer waits.
    flights: BTreeMap<u64, Flight>,
    /// The commands, by the driver's numbers, whose ends are being delivered to it: commands that
    /// it sends again then are continuations.
    delivered: Vec<(u64, MemberCommand)>,
    /// When commands end: the time, the order of sending, the driver's number.
    calendar: BinaryHeap<Reverse<(u64, u64, u64)>>,
    now: u64,
    order: u64,
    asked: BTreeMap<u64, Asked>,
    next_request: u64,
    reader: Reader,
    oracle: Oracle,
    latency: Stream,
    interruptions: Interruptions,
    /// The time when the driver sees the commands that have ended, if that is not at once.
    turn_at: Option<u64>,
    models: Models,
    /// The simulation's facts about each disk, by the disk's number.
    standing: Vec<Standing>,
    /// Whether the array has a write log.
    logged: bool,
    /// Whether parity may not fit the data: crashed, without a log, not yet resynced.
    hole_open: bool,
    /// Whether the sync that follows the creation is not over.
    first_sync: bool,
    /// Whether the administrator ended a sync that has to go on.
    paused: bool,
    /// Disks whose bad-block logs have entries that md noted while they were away.
    noted: BTreeSet<usize>,
    /// Whether more was lost than the level tolerates, so that data may be lost too.
    beyond: bool,
    /// The treatment of members that are out of date in the next assembly.
    stale: Stale,
    /// Whether the run, which is beyond the budget, ended because no array is left.
    ended: bool,
    /// The number of events after which the run stops, if it is limited.
    most_events: Option<u64>,
    /// Mismatches that a check reported since the last look.
    mismatches: Vec<(u64, u64)>,
    trace: Trace,
    statistics: Statistics,
}

impl<'a> World<'a> {
    /// A world with its disks formatted and its array assembled.
    ///
    /// # Errors
    /// When the core refuses what it must accept.
    pub fn new(options: &'a Options, seed: u64, trace: bool) -> Result<Self, Violation> {
        let random = Stream::new(seed);
        let mut disks: Vec<Disk> = (0..options.members)
            .map(|slot| Disk::new(disk_sectors(options, slot), options.write_through))
            .collect();
        preset(options, &mut disks, &mut random.fork("rubbish", 0));
        let bitmap_file = add_bitmap_file(options, &mut disks);
        let shelf = Shelf::new(Interruptions::new(&options.driver, &random, 0));
        let created = shelf.lend(&mut disks, None, |shelf| driver::create(options, shelf));
        let reader = created.map_err(|error| violation("create", error))?;
        let oracle = first_oracle(&reader, &disks);
        let mut world = Self {
            options,
            shelf,
            handles: (0..options.members).map(Some).collect(),
            slots: (0..options.members).map(Some).collect(),
            handed_over: SlotSet::EMPTY,
            bitmap_file,
            bitmap_there: bitmap_file,
            grows: false,
            retired: Vec::new(),
            driver: None,
            buffers: BufferPool::default(),
            happenings: Vec::new(),
            flights: BTreeMap::new(),
            delivered: Vec::new(),
            calendar: BinaryHeap::new(),
            now: 0,
            order: 0,
            asked: BTreeMap::new(),
            next_request: 1,
            reader,
            oracle,
            latency: random.fork("latency", 0),
            interruptions: Interruptions::new(&options.driver, &random, 1),
            turn_at: None,
            models: Models::new(options.medium.parameters(), random.fork("models", 0)),
            standing: vec![Standing::default(); disks.len()],
            disks,
            logged: false,
            hole_open: false,
            first_sync: !options.assume_clean,
            paused: false,
            noted: BTreeSet::new(),
            beyond: false,
            stale: Stale::LeaveOut,
            ended: false,
            most_events: None,
            mismatches: Vec::new(),
            trace: Trace::new(trace),
            statistics: Statistics::default(),
        };
        if !options.assume_clean && options.level.parity_count() > 0 {
            // The content of unwritten sectors is computed from undefined parity whenever a member
            // is lost or refuses to read.
            world.oracle.forget(0, world.reader.size);
        }
        let present: Vec<usize> = (0..options.members).collect();
        let assembled = world.assemble(&present, false, None);
        let assembled = assembled
            .map_err(|refusal| violation("assembly", format!("a new array: {refusal:?}")))?;
        world.take(assembled)?;
        Ok(world)
    }

    /// Runs a script to its end, and verifies everything.
    ///
    /// # Errors
    /// The first broken promise.
    pub fn run(&mut self, script: &[Step]) -> Result<(), Violation> {
        for (number, step) in script.iter().enumerate() {
            self.advance(self.now + step.after_ns)?;
            let text = format_args!("step {number}: {:?}", step.action);
            self.trace.note(self.now, &[1, number as u64], text);
            self.act(step.action)?;
            if self.ended {
                return Ok(());
            }
        }
        self.settle()
    }

    fn act(&mut self, action: Action) -> Result<(), Violation> {
        self.look_at_hole();
        match action {
            Action::Write {
                start,
                count,
                force_unit_access,
            } => self.write(start, count, force_unit_access),
            Action::Read { start, count } => self.ask(Operation::Read, start, count, false),
            Action::Discard { start, count } => self.discard(start, count),
            Action::Flush => self.ask(Operation::Flush, 0, 0, false),
            Action::Drain => self.drain(),
            Action::Await { moment, most_ns } => self.await_moment(moment, most_ns),
            Action::Settle => self.settle(),
            Action::Check { repair } => self.check(repair),
            Action::Silent {
                member,
                sector,
                kind,
            } => self.silent(member, sector, kind),
            Action::PowerCut(restart) => self.power_cut(restart),
            Action::Kill(restart) => self.kill(restart),
            Action::Stop(restart) => {
                self.drain()?;
                self.stop(restart)
            }
            Action::StopAtOnce(restart) => self.stop(restart),
            Action::Split { halves } => self.split(halves),
            Action::Administer(verb) => self.administer(verb),
            Action::Mistake(mistake) => self.mistake(mistake),
            fault => self.fault(fault),
        }
    }

    /// Returns the counts of the run.
    #[must_use]
    pub fn statistics(&self) -> Statistics {
        let mut statistics = self.statistics.clone();
        statistics.runs = 1;
        statistics.virtual_ns = u128::from(self.now);
        let level = self.options.level.to_string();
        statistics.levels = BTreeMap::from([(level, 1)]);
        statistics
    }

    /// Returns the events of the run so far, as a hash, and as lines if they are kept.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the size of the array in sectors.
    #[must_use]
    pub const fn array_size(&self) -> u64 {
        self.reader.size
    }

    /// Handles all events up to this time.
    fn advance(&mut self, until: u64) -> Result<(), Violation> {
        while self.next_event().is_some_and(|time| time <= until) {
            self.step_event()?;
        }
        self.now = self.now.max(until);
        Ok(())
    }

    /// Lets time pass until every request is answered.
    fn drain(&mut self) -> Result<(), Violation> {
        let deadline = self.now + LONGEST_WAIT_NS;
        while !self.asked.is_empty() {
            self.wait_for("requests", deadline)?;
        }
        Ok(())
    }

    /// Handles one event; returns a violation if there is none or it is too late.
    fn wait_for(&mut self, what: &str, deadline: u64) -> Result<(), Violation> {
        match self.next_event() {
            Some(time) if time <= deadline => self.step_event(),
            next => Err(violation(
                "liveness",
                format!(
                    "{what} never end: {} requests, {} commands in flight, next event {next:?}; {}",
                    self.asked.len(),
                    self.flights.len(),
                    self.waits()
                ),
            )),
        }
    }

    /// Returns what the array waits for, in words.
    fn waits(&self) -> String {
        let waits = self.driver.as_ref().map(Driver::waits);
        waits.unwrap_or_default().join("; ")
    }

    /// Returns the state of each slot's member, by the core.
    fn states(&self) -> Vec<MemberState> {
        let states = self.driver.as_ref().map(Driver::states);
        states.unwrap_or_else(|| vec![MemberState::Missing; self.slots.len()])
    }

    /// Returns the slots in sync, by the core.
    fn in_sync(&self) -> SlotSet {
        let states = self.states();
        let in_sync = (0..states.len()).filter(|slot| states[*slot] == MemberState::InSync);
        in_sync.map(slot_of).collect()
    }

    /// Returns the pristine bytes of each slot's disk; those of an empty slot are another slot's
    /// disk, which has room for all that the array uses, and must not be looked at.
    fn images(&self) -> Vec<&Pages> {
        let any = self.slots.iter().flatten().next().copied().unwrap_or(0);
        let image = |disk: &Option<usize>| self.disks[disk.unwrap_or(any)].pristine();
        self.slots.iter().map(image).collect()
    }

    fn wrong(&self, wrong: &Wrong, bytes: &[u8; SECTOR], where_: &str) -> Violation {
        let allowed: Vec<String> = wrong
            .allowed
            .iter()
            .map(|it| format!("{:016x}", it.0))
            .collect();
        violation(
            if wrong.stale {
                "stale bytes"
            } else {
                "wrong bytes"
            },
            format!(
                "{where_}: array sector {} holds {} ({:016x}), allowed {}",
                wrong.sector,
                Origin::of(bytes),
                wrong.found.0,
                allowed.join(" ")
            ),
        )
    }

    /// Puts an assembled array into service. Disks that live and are not part of it are kept aside.
    fn take(&mut self, ready: Ready) -> Result<(), Violation> {
        self.follow_size(&ready)?;
        let taken = &ready.handles;
        self.retired
            .retain(|(_, disk)| !taken.contains(&Some(*disk)));
        for (handle, disk) in self.handles.iter().enumerate() {
            let Some(disk) = disk.filter(|disk| !taken.contains(&Some(*disk))) else {
                continue;
            };
            let served = self.slots.iter().position(|its| *its == Some(disk));
            let slot = served.unwrap_or(handle);
            if self.disks[disk].health != Health::Gone {
                self.retired.push((slot, disk));
            }
        }
        self.forget_what_they_missed(&ready.forced);
        self.handles.clone_from(&ready.handles);
        self.statistics.assemblies += 1;
        self.paused = false;
        self.oracle.members_changed();
        let traced = self.trace.is_told();
        let started = Driver::start(ready, self.options, nanos(self.now), traced);
        self.driver = Some(started.map_err(|error| violation("start", error))?);
        self.call(|_, _| ())?;
        self.handed_over = SlotSet::EMPTY;
        self.standing.iter_mut().for_each(|it| it.failed = false);
        self.logged = self.driver.as_ref().is_some_and(Driver::keeps_log);
        let syncs = self.driver.as_ref().is_some_and(Driver::is_syncing);
        if syncs && self.in_sync().len() == self.slots.len() {
            // With all members in sync it is no recovery: parity may not fit, whatever the reason.
            self.hole_open |= self.options.level.parity_count() > 0 && !self.first_sync;
        }
        Ok(())
    }

    /// Makes a new disk and returns its number.
    fn new_disk(&mut self) -> usize {
        // Its size is that of one of the first disks, each in turn.
        let number = self.disks.len();
        let sectors = disk_sectors(self.options, number % self.options.members);
        // Where arrays may grow, later disks are larger.
        let more = (number / self.options.members).min(3) as u64;
        let sectors = sectors + more * self.options.seldom.room.unwrap_or(0);
        let sectors = sectors.max(self.least_sectors());
        self.disks
            .push(Disk::new(sectors, self.options.write_through));
        self.standing.push(Standing::default());
        self.disks.len() - 1
    }

    fn is_alive(&self, disk: usize) -> bool {
        self.disks[disk].health != Health::Gone
    }
}

/// Returns a time in the core's unit.
const fn nanos(now: u64) -> Nanos {
    Nanos(now)
}
