//! Small arrays with every crash point.
//!
//! A short script runs up to its n-th event, for every n. There the power is cut, and the writes
//! that are not durable land in each of these ways: all, none, all but one, only one, a prefix of
//! one (and the others whole; of every length within its first 4 KiB, and beyond in whole 4 KiB).
//! Then every set of up to as many members as the level tolerates is lost, the rest is assembled,
//! read, given new disks, synced and verified. Most crash bugs need no more than three operations
//! (the small-scope lesson of CrashMonkey, OSDI 2018), so this proves much for its size.

use crate::disk::{Landing, PendingWrite};
use crate::options::{Filter, Options};
use crate::script::{Action, Step, Verb};
use crate::world::{Violation, World};
use raidlab_geometry::{Copies, FarSets, Layout, Level, ParityLayout, SlotSet};
use rayon::prelude::*;

/// Sectors of 4 KiB, the step in which longer prefixes are tried.
const PAGE: usize = 8;

/// A small array and a short script whose crash points are all enumerated.
#[derive(Debug, Clone)]
pub struct Small {
    /// The array's name in tables.
    pub name: &'static str,
    /// The options of the array and its engine.
    pub options: Options,
    /// The script that is run on it.
    pub script: Vec<Step>,
}

/// The result of an enumeration.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enumerated {
    /// The number of events at which the power was cut.
    pub crash_points: u64,
    /// The number of combinations of crash point, landing and loss tried.
    pub cases: u64,
    /// The first broken promise, and where it was found.
    pub violation: Option<(String, Violation)>,
}

/// The way in which the writes that are not durable land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    All,
    Nothing,
    AllBut(usize, usize),
    Only(usize, usize),
    Torn(usize, usize, usize),
}

impl Pattern {
    /// Returns the landing of a disk's write with this place in its order.
    fn landing(self, disk: usize, place: usize) -> Landing {
        let this = (disk, place);
        match self {
            Self::All => Landing::All,
            Self::Nothing => Landing::Nothing,
            Self::AllBut(disk, place) if (disk, place) == this => Landing::Nothing,
            Self::AllBut(..) => Landing::All,
            Self::Only(disk, place) if (disk, place) == this => Landing::All,
            Self::Only(..) => Landing::Nothing,
            Self::Torn(disk, place, count) if (disk, place) == this => Landing::Prefix(count),
            Self::Torn(..) => Landing::All,
        }
    }

    /// Returns every pattern for these writes (disk, place, sectors).
    fn every(writes: &[(usize, usize, u64)]) -> Vec<Self> {
        let mut patterns = vec![Self::All];
        if writes.is_empty() {
            return patterns;
        }
        patterns.push(Self::Nothing);
        for (disk, place, sectors) in writes {
            patterns.push(Self::AllBut(*disk, *place));
            patterns.push(Self::Only(*disk, *place));
            let prefixes = 1..*sectors as usize;
            let told = prefixes.filter(|count| *count < PAGE || count.is_multiple_of(PAGE));
            patterns.extend(told.map(|count| Self::Torn(*disk, *place, count)));
        }
        patterns
    }
}

impl Small {
    /// Returns the small arrays that the filter accepts, each with every short script.
    #[must_use]
    pub fn all(filter: &Filter) -> Vec<Self> {
        let near = Layout::Copies(Copies {
            near: 2,
            far: 1,
            offset: false,
            far_sets: FarSets::None,
        });
        let symmetric = Layout::Parity(ParityLayout::LeftSymmetric);
        let arrays = [
            (
                "raid5, 3 members, with log",
                Level::Raid5,
                symmetric,
                3,
                true,
            ),
            (
                "raid5, 3 members, without log",
                Level::Raid5,
                symmetric,
                3,
                false,
            ),
            (
                "raid6, 4 members, with log",
                Level::Raid6,
                symmetric,
                4,
                true,
            ),
            (
                "raid6, 4 members, without log",
                Level::Raid6,
                symmetric,
                4,
                false,
            ),
            ("raid10, 4 members", Level::Raid10, near, 4, false),
            ("raid1, 2 members", Level::Raid1, Layout::None, 2, false),
        ];
        let mut all = Vec::new();
        for (name, level, layout, members, log) in arrays {
            for bitmap in [None, Some(8)] {
                all.extend(scripts().into_iter().map(|script| Self {
                    name,
                    options: options(level, layout, members, log, bitmap),
                    script,
                }));
            }
        }
        all.retain(|small| filter.takes(&small.options));
        all
    }

    /// Enumerates all crash points.
    #[must_use]
    pub fn enumerate(&self) -> Enumerated {
        let events = match self.world(None) {
            Ok((_, events)) => events,
            Err(violation) => return Enumerated::broken("without a crash", violation),
        };
        let points = (0..=events).into_par_iter();
        points
            .map(|event| self.crash_at(event))
            .reduce(Enumerated::default, Enumerated::with)
    }

    /// Returns the world after this many events, and their number.
    fn world<'a>(&'a self, events: Option<u64>) -> Result<(World<'a>, u64), Violation> {
        let mut world = World::new(&self.options, 1, false)?;
        world.run_to_event(&self.script, events)?;
        let events = world.statistics().events;
        Ok((world, events))
    }

    fn crash_at(&self, event: u64) -> Enumerated {
        let world = match self.world(Some(event)) {
            Ok((world, _)) => world,
            Err(violation) => return Enumerated::broken("before the crash", violation),
        };
        let mut result = Enumerated {
            crash_points: 1,
            ..Enumerated::default()
        };
        let losses = world.possible_losses();
        let served = world.surely_served();
        for pattern in Pattern::every(&world.volatile_writes()) {
            for loss in &losses {
                result.cases += 1;
                let mut after = world.after_cut(
                    |disk, place, _: &PendingWrite| pattern.landing(disk, place),
                    *loss,
                );
                if let Err(violation) = after.come_up_and_settle(served) {
                    let place = describe(event, pattern, *loss);
                    result.violation.get_or_insert((place, violation));
                }
            }
        }
        result
    }
}

fn describe(event: u64, pattern: Pattern, loss: SlotSet) -> String {
    let lost: Vec<u16> = loss.iter().map(|slot| slot.0).collect();
    format!("cut after event {event}, {pattern:?}, members {lost:?} lost")
}

impl Enumerated {
    fn broken(place: &str, violation: Violation) -> Self {
        Self {
            violation: Some((place.to_owned(), violation)),
            ..Self::default()
        }
    }

    /// Returns the sum of both; the violation of the earlier one is kept.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            crash_points: self.crash_points + other.crash_points,
            cases: self.cases + other.cases,
            violation: self.violation.or(other.violation),
        }
    }
}

fn options(
    level: Level,
    layout: Layout,
    members: usize,
    log: bool,
    bitmap_chunk: Option<u64>,
) -> Options {
    // Two stripes, as mdadm makes no bitmap for less. On a mirror the last part that is copied to a
    // replacement is small.
    let used = if level == Level::Raid1 { 264 } else { 128 };
    Options {
        bitmap_chunk,
        log,
        ..Options::plain(level, layout, members, (64, used))
    }
}

/// Returns scripts of one to three writes in the first stripe and the second, with and without
/// flushes, and of the replacement of a member.
fn scripts() -> Vec<Vec<Step>> {
    let write = |start, count, force_unit_access| Action::Write {
        start,
        count,
        force_unit_access,
    };
    let lists = [
        vec![write(3, 2, false)],
        vec![write(3, 2, true)],
        vec![write(3, 2, false), Action::Drain, Action::Flush],
        vec![
            write(60, 8, false),
            Action::Drain,
            Action::Flush,
            write(62, 3, false),
        ],
        vec![write(0, 128, false), write(130, 2, false), Action::Flush],
        vec![
            write(5, 1, true),
            Action::Drain,
            write(5, 2, false),
            write(70, 1, false),
        ],
    ];
    let step = |action| Step {
        after_ns: 0,
        action,
    };
    let written = lists
        .into_iter()
        .map(|list| list.into_iter().map(step).collect());
    let replaced = vec![
        step(Action::Administer(Verb::Replace { member: 0 })),
        Step {
            after_ns: 1_000_000_000,
            action: Action::Drain,
        },
    ];
    written.chain([replaced]).collect()
}
