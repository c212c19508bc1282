//! Platters and an arm: the life of a command in a mechanical disk.
//!
//! A read of data that the segments hold is answered from them. One that the running read-ahead is
//! about to reach is answered when the head has passed it. Any other waits in the read pool. A
//! write is complete when it is in the cache; while the cache's window is full, writes wait "at the
//! door". Cached writes wait in the destage pool.
//!
//! Whenever the arm is free it takes, in this order: a destage if a write waits at the door, a
//! flush waits, or the host waits for that very write (but not a run of neighbours while reads
//! wait: a resync would starve them); a read; a destage. Within a pool the scheduler chooses. An
//! idle arm reads ahead where the last read ended.
//!
//! A disk that takes discards answers them without its arm, after the time in its preset; they have
//! no later effect.
//!
//! One mechanical operation runs at a time; its end is one event. Everything
//! is integer nanoseconds.

mod arm;
mod clean;
mod parameters;
mod partial;
mod reads;
pub mod scheduling;
pub mod seek;
pub mod segments;
pub mod shingles;
pub mod stream;
mod writes;

pub use parameters::PlatterParameters;
pub use parameters::PlatterParameters as Parameters;

use super::Mechanism;
use crate::command::{Command, CommandKind, Completion};
use crate::interface::Interface;
use crate::medium::parameters::DiskParameters;
use crate::surface::Surface;
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, SECTOR_BYTES, Sectors};
use scheduling::{Candidate, Pool, Revolution};
use segments::Segments;
use shingles::{Dirty, ShingleParameters, Shingles};
use std::collections::VecDeque;

/// The arm's current operation.
#[derive(Debug, Clone, Copy)]
enum Arm {
    Idle,
    /// The arm reads on, from `from` at time `since`, up to `limit` (positions), until there is
    /// other work or `decide_at` has come.
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
    /// The operation, where a read begins at the head's position if that is earlier; a
    /// write is unchanged.
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

/// The largest distance between a stream's own commands: the visit budget, as a distance of
/// positions at the disk's mean rate.
fn neighbourhood(budget: Option<Bytes>, capacity: Sectors, surface: &Surface) -> u64 {
    let Some(budget) = budget else {
        return 0;
    };
    let whole = u128::from(surface.position(u64::MAX)) * u128::from(budget.0);
    u64::try_from(whole / u128::from(capacity.to_bytes().0.max(1))).unwrap_or(u64::MAX)
}

/// The mechanism of a mechanical disk.
#[derive(Debug, Clone)]
pub(crate) struct Platters {
    parameters: PlatterParameters,
    capacity: Sectors,
    write_window: usize,
    interface: Interface,
    surface: Surface,
    revolution: Revolution,
    phase: u64,
    random: Stream,
    segments: Segments,
    arm: Arm,
    /// The position under the head when it last moved data.
    head: u64,
    reads: Pool,
    dirty: Pool,
    /// The writes at the door, each with the physical sectors that it covers in part.
    door: VecDeque<(Command, [bool; 2])>,
    /// The sectors of a physical sector, and the end of the last write.
    physical: u64,
    written_to: u64,
    flushes: Vec<(u64, u64)>,
    sequence: u64,
    /// The number of dirty entries that the host waits for (write-through).
    awaited: usize,
    /// The bytes read in this visit, since the head last moved further than `neighbourhood`, a
    /// distance of positions.
    visit_bytes: u64,
    neighbourhood: u64,
    visit_is_stream: bool,
    /// The place and time of the arm's last stay on a stream before it left, and the position up to
    /// which it read on.
    stayed: (u64, u64, u64),
    /// Whether enough destages have gone before the reads, so that a read comes next.
    read_owed: bool,
    /// The number of destages since the last read while reads waited.
    destages_since_read: usize,
    /// The bands and the persistent cache of a shingled disk; `None` for others.
    shingles: Option<Shingles>,
    /// The time at which an idle shingled disk begins to clean.
    clean_at: u64,
    /// Whether the last command, of reads and writes, was a write.
    wrote_last: bool,
}

impl Platters {
    /// Creates a disk at rest with its head at sector 0; `angle` is the platter's angle
    /// at time zero.
    pub(crate) fn new(
        disk: &DiskParameters,
        parameters: &PlatterParameters,
        shingles: Option<ShingleParameters>,
        angle: Nanos,
        random: Stream,
    ) -> Self {
        let surface = Surface::new(disk.capacity, &disk.rate_curve);
        Self {
            revolution: Revolution::new(parameters.revolution.0),
            phase: angle.0 % parameters.revolution.0,
            capacity: disk.capacity,
            write_window: disk.write_window,
            interface: Interface::new(disk),
            random,
            segments: Segments::new(parameters.segments),
            arm: Arm::Idle,
            head: 0,
            reads: Pool::default(),
            dirty: Pool::default(),
            door: VecDeque::new(),
            physical: disk.physical_sectors(),
            written_to: u64::MAX,
            flushes: Vec::new(),
            sequence: 0,
            awaited: 0,
            visit_bytes: 0,
            neighbourhood: neighbourhood(parameters.stream.visit_budget, disk.capacity, &surface),
            visit_is_stream: false,
            stayed: (0, 0, 0),
            read_owed: false,
            destages_since_read: 0,
            shingles: shingles.map(Shingles::new),
            clean_at: u64::MAX,
            wrote_last: false,
            surface,
            parameters: parameters.clone(),
        }
    }

    fn candidate(&mut self, now: u64, command: &Command, tag: Option<u64>) -> Candidate {
        self.sequence += 1;
        let (start, end) = self.surface.positions(command.start.0, command.end());
        Candidate {
            tag,
            start,
            end,
            bytes: command.count.0 * SECTOR_BYTES,
            arrived: now,
            sequence: self.sequence,
            follows: false,
            detour: 0,
            partial: [false; 2],
        }
    }
}

impl Mechanism for Platters {
    fn submit(&mut self, now: u64, command: &Command) {
        if command.kind == CommandKind::Discard {
            return self.interface.discard(now, command.tag);
        }
        self.clean_at = u64::MAX;
        match command.kind {
            CommandKind::Read => {
                self.wrote_last = false;
                self.submit_read(now, command);
            }
            CommandKind::Write | CommandKind::WriteThrough => {
                self.wrote_last = true;
                self.submit_write(now, *command);
            }
            CommandKind::Flush | CommandKind::Discard => self.submit_flush(now, command.tag),
        }
        self.rest_if_free(now);
    }

    #[inline]
    fn next_event(&self) -> u64 {
        let arm = match self.arm {
            Arm::Busy { until, .. } => until,
            Arm::Streaming { decide_at, .. } => decide_at,
            Arm::Idle => u64::MAX,
        };
        arm.min(self.interface.next()).min(self.clean_at)
    }

    fn advance(&mut self, now: u64, completions: &mut Vec<Completion>) {
        loop {
            let at = self.next_event();
            if at > now || at == u64::MAX {
                return;
            }
            self.interface.hand_over(at, completions);
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

    fn is_quiet(&self) -> bool {
        self.reads.is_empty()
            && self.dirty.is_empty()
            && self.door.is_empty()
            && self.flushes.is_empty()
            && self.interface.is_quiet()
            && !matches!(self.arm, Arm::Busy { .. })
    }

    /// Moves the head to `sector` and drops the read cache. If the last command was a write, the
    /// whole time is taken to have passed in writes that continued it.
    fn leap(&mut self, surface: &Surface, sector: Sectors) {
        self.arm = Arm::Idle;
        self.head = surface.position(sector.0);
        self.segments = Segments::new(self.parameters.segments);
        self.clean_at = u64::MAX;
        if let Some(shingles) = self.shingles.as_mut().filter(|_| self.wrote_last) {
            shingles.leap(sector.0);
        }
    }

    /// Whether the disk is steady: a shingled one only once a run of writes goes to its place.
    fn is_steady(&self) -> bool {
        let shingles = self.shingles.as_ref().filter(|_| self.wrote_last);
        shingles.is_none_or(Shingles::is_streaming)
    }
}
