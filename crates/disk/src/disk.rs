//! The life of a command in a disk.
//!
//! A read that the segments hold is answered from there. One that the running
//! read-ahead is about to reach is answered when the head has passed it. Any
//! other waits in the read pool. A write is complete when it is in the cache;
//! while the cache's window is full, writes wait at the door. Cached writes
//! wait in the destage pool.
//!
//! Whenever the arm is free it takes, in this order: a destage if a write
//! waits at the door, a flush waits, or somebody waits for that very write
//! (but not a run of neighbours while reads wait: a resync would starve
//! them); a read; a destage. Within a pool the scheduler chooses. With nothing to do
//! the arm reads ahead where the last read ended.
//!
//! A disk that takes discards answers them without its arm or its flash, after the time
//! that its file gives; what they leave behind changes nothing later, as no modelled
//! disk collects garbage.
//!
//! One mechanical operation runs at a time; its end is one event. Everything
//! is integer nanoseconds.

mod arm;
mod clean;
mod reads;
mod writes;

use crate::command::{Command, CommandKind, Completion};
use crate::flash::Flash;
use crate::parameters::DiskParameters;
use crate::scheduling::{Candidate, Pool};
use crate::segments::Segments;
use crate::shingles::{Dirty, Shingles};
use crate::surface::Surface;
use raidlab_random::Stream;
use raidlab_units::{Nanos, SECTOR_BYTES, Sectors};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// What the arm is doing.
#[derive(Debug, Clone, Copy)]
enum Arm {
    Idle,
    /// Reading on, from `from` at time `since`, up to `limit` (positions),
    /// until something else is to be done or `decide_at` has come.
    Streaming {
        segment: Option<usize>,
        from: u64,
        since: u64,
        limit: u64,
        decide_at: u64,
    },
    Busy {
        until: u64,
        what: Work,
    },
}

#[derive(Debug, Clone, Copy)]
enum Work {
    Read(Candidate),
    Destage(Candidate),
    Clean(Dirty),
}

impl Work {
    /// A read that begins where the head is already; a write does not.
    fn from(self, head: u64) -> Self {
        match self {
            Self::Read(read) => Self::Read(Candidate {
                start: head.min(read.start),
                ..read
            }),
            Self::Destage(_) | Self::Clean(_) => self,
        }
    }
}

/// How far a stream's own commands lie apart at most: the visit budget, as a
/// distance of positions at the disk's mean rate.
fn neighbourhood(parameters: &DiskParameters, surface: &Surface) -> u64 {
    let Some(budget) = parameters.stream.visit_budget else {
        return 0;
    };
    let whole = u128::from(surface.position(u64::MAX)) * u128::from(budget.0);
    u64::try_from(whole / u128::from(parameters.capacity.to_bytes().0.max(1))).unwrap_or(u64::MAX)
}

/// A modelled disk.
#[derive(Debug, Clone)]
pub struct Disk {
    parameters: DiskParameters,
    surface: Surface,
    phase: u64,
    random: Stream,
    segments: Segments,
    arm: Arm,
    /// Position under the head when it last moved data.
    head: u64,
    reads: Pool,
    dirty: Pool,
    door: VecDeque<Command>,
    flushes: Vec<(u64, u64)>,
    sequence: u64,
    /// Dirty entries somebody waits for (write-through).
    awaited: usize,
    /// Bytes read in this visit: since the head last moved further than
    /// `neighbourhood`, a distance of positions.
    visit_bytes: u64,
    neighbourhood: u64,
    visit_is_stream: bool,
    /// A run of destages has gone before the reads: one of them comes next.
    read_owed: bool,
    bus_free: u64,
    /// Of a shingled disk.
    shingles: Option<Shingles>,
    /// When an idle shingled disk begins to clean.
    clean_at: u64,
    /// Of reads and writes, the last command was a write.
    wrote_last: bool,
    /// Of a solid-state disk.
    flash: Option<Flash>,
    done: BinaryHeap<Reverse<(u64, u64, u64)>>,
}

impl Disk {
    /// A disk at rest with its head at sector 0. `phase` is the platter's
    /// angle at time zero: two disks of an array should differ in it. The
    /// parameters must be valid (see [`DiskParameters::validate`]).
    #[must_use]
    pub fn new(parameters: DiskParameters, phase: Nanos, random: Stream) -> Self {
        let surface = Surface::new(parameters.capacity, &parameters.rate_curve);
        let segments = Segments::new(parameters.segments);
        Self {
            phase: phase.0 % parameters.revolution.0,
            random,
            segments,
            arm: Arm::Idle,
            head: 0,
            reads: Pool::default(),
            dirty: Pool::default(),
            door: VecDeque::new(),
            flushes: Vec::new(),
            sequence: 0,
            awaited: 0,
            visit_bytes: 0,
            neighbourhood: neighbourhood(&parameters, &surface),
            visit_is_stream: false,
            read_owed: false,
            bus_free: 0,
            shingles: parameters.shingles.map(Shingles::new),
            clean_at: u64::MAX,
            wrote_last: false,
            flash: (parameters.flash).map(|flash| Flash::new(flash, parameters.write_window)),
            done: BinaryHeap::new(),
            surface,
            parameters,
        }
    }

    /// The numbers in force.
    #[must_use]
    pub fn parameters(&self) -> &DiskParameters {
        &self.parameters
    }

    /// The platters.
    #[must_use]
    pub fn surface(&self) -> &Surface {
        &self.surface
    }

    /// Nothing waits, nothing is dirty, nothing is under way.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.reads.is_empty()
            && self.dirty.is_empty()
            && self.door.is_empty()
            && self.flushes.is_empty()
            && self.done.is_empty()
            && !matches!(self.arm, Arm::Busy { .. })
    }

    /// Hours have passed that nobody simulated, with the head ending at
    /// `sector`; what was cached for reading is forgotten. Where the last command was a
    /// write, all that time went by in writes that followed it. Only while quiet.
    pub fn leap(&mut self, sector: Sectors) {
        debug_assert!(self.is_quiet(), "a leap over work in progress");
        self.arm = Arm::Idle;
        self.head = self.surface.position(sector.0);
        self.segments = Segments::new(self.parameters.segments);
        self.clean_at = u64::MAX;
        if let Some(shingles) = self.shingles.as_mut().filter(|_| self.wrote_last) {
            shingles.leap(sector.0);
        }
    }

    /// Whether it goes on as it does now for hours, if the host does: a shingled disk not
    /// before a run of writes goes to its place.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        let shingles = self.shingles.as_ref().filter(|_| self.wrote_last);
        shingles.is_none_or(Shingles::is_streaming)
    }

    /// Takes a command at time `now`, which must not be earlier than that of
    /// any call before.
    pub fn submit(&mut self, now: Nanos, command: Command) {
        if command.kind == CommandKind::Discard {
            let time = self.parameters.discard.unwrap_or_default();
            self.complete_at(
                (now + self.parameters.overhead_cached + time).0,
                command.tag,
            );
            return;
        }
        if self.flash.is_some() {
            self.submit_to_flash(now.0, &command);
            return;
        }
        self.clean_at = u64::MAX;
        self.wrote_last = match command.kind {
            CommandKind::Read => false,
            CommandKind::Write | CommandKind::WriteThrough => true,
            CommandKind::Flush | CommandKind::Discard => self.wrote_last,
        };
        match command.kind {
            CommandKind::Read => self.submit_read(now.0, &command),
            CommandKind::Write | CommandKind::WriteThrough => self.submit_write(now.0, command),
            CommandKind::Flush | CommandKind::Discard => self.submit_flush(now.0, command.tag),
        }
        self.rest_if_free(now.0);
    }

    /// When [`Self::advance`] next has something to do.
    #[inline]
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        let arm = match self.arm {
            Arm::Busy { until, .. } => until,
            Arm::Streaming { decide_at, .. } => decide_at,
            Arm::Idle => u64::MAX,
        };
        let done = self.done.peek().map_or(u64::MAX, |entry| entry.0.0);
        let next = arm.min(done).min(self.clean_at);
        (next != u64::MAX).then_some(Nanos(next))
    }

    /// Does what is due at `now` and appends the commands that completed.
    pub fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        while let Some(next) = self.next_event().filter(|&next| next <= now) {
            let at = next.0;
            while let Some(&Reverse((time, _, tag))) = self.done.peek() {
                if time > at {
                    break;
                }
                self.done.pop();
                completions.push(Completion { tag });
            }
            match self.arm {
                Arm::Busy { until, what } if until <= at => self.finish(until, what, completions),
                _ if self.clean_at <= at => self.begin_cleaning(at),
                Arm::Streaming { decide_at, .. } if decide_at <= at => {
                    let streaming = self.stop_streaming(at);
                    self.dispatch(at, streaming);
                }
                _ => {}
            }
        }
    }

    fn candidate(&mut self, now: u64, command: &Command, tag: Option<u64>) -> Candidate {
        self.sequence += 1;
        Candidate {
            tag,
            start: self.surface.position(command.start.0),
            end: self.surface.position(command.end()),
            bytes: command.count.0 * SECTOR_BYTES,
            arrived: now,
            sequence: self.sequence,
            follows: false,
            detour: 0,
        }
    }

    /// How long so many bytes take to cross the interface.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a transfer takes well under a second"
    )]
    fn transfer_time(&self, bytes: u64) -> u64 {
        (bytes as f64 / self.parameters.interface.0 * 1e9) as u64
    }

    /// Completes `tag` over the interface, the data being ready at `ready`.
    fn transfer(&mut self, ready: u64, bytes: u64, tag: u64) {
        let end = self.bus_free.max(ready) + self.transfer_time(bytes);
        self.bus_free = end;
        self.complete_at(end, tag);
    }

    /// The whole life of a solid-state disk's command.
    fn submit_to_flash(&mut self, now: u64, command: &Command) {
        let time = self.transfer_time(command.count.0 * SECTOR_BYTES);
        let ready = now + self.parameters.overhead_cached.0;
        let Some(flash) = &mut self.flash else {
            return;
        };
        match command.kind {
            CommandKind::Read => {
                let served = flash.serve(ready, command);
                self.transfer(served, command.count.0 * SECTOR_BYTES, command.tag);
            }
            CommandKind::Write | CommandKind::WriteThrough => {
                let arrived = flash.receive(ready, time);
                let served = flash.serve(arrived, command);
                self.complete_at(served, command.tag);
            }
            CommandKind::Flush | CommandKind::Discard => {
                let served = flash.serve(ready, command);
                self.complete_at(served, command.tag);
            }
        }
    }

    fn complete_at(&mut self, time: u64, tag: u64) {
        self.sequence += 1;
        self.done.push(Reverse((time, self.sequence, tag)));
    }
}
