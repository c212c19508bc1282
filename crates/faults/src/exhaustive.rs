//! Small arrays, every crash point.
//!
//! A short script runs up to its n-th event, for every n. There the power is
//! cut, and the writes that are not durable land in each of these ways: all,
//! none, all but one, only one, a prefix of one (and the others whole; of every
//! length within its first 4 KiB, and beyond in whole 4 KiB). Then every set of
//! up to as many members as the level can bear is lost, the rest is assembled,
//! read, mended, synced and verified. Most crash bugs need no
//! more than three operations (the small-scope lesson of CrashMonkey, OSDI
//! 2018), so this proves much for its size.

use crate::disk::{Landing, PendingWrite};
use crate::options::{Filter, Options};
use crate::script::{Action, Step, Verb};
use crate::world::{Violation, World};
use raidlab_geometry::{Copies, FarSets, Layout, Level, ParityLayout, SlotSet};
use rayon::prelude::*;

/// Sectors of 4 KiB, in which nothing is special about one sector or the next.
const PAGE: usize = 8;

/// A small array and a short script whose crash points are all enumerated.
#[derive(Debug, Clone)]
pub struct Small {
    /// The name by which tables list it.
    pub name: &'static str,
    /// How the array is made, and how it works.
    pub options: Options,
    /// What is done to it.
    pub script: Vec<Step>,
}

/// What an enumeration came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Enumerated {
    /// Events at which the power was cut.
    pub crash_points: u64,
    /// Crash points, landings and losses tried.
    pub cases: u64,
    /// What was broken first, and where.
    pub violation: Option<(String, Violation)>,
}

/// How the writes that are not durable land.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pattern {
    All,
    Nothing,
    AllBut(usize, usize),
    Only(usize, usize),
    Torn(usize, usize, usize),
}

impl Pattern {
    /// The landing of a disk's write with this place in its order.
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

    /// Every pattern for these writes (disk, place, sectors).
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
    /// The small arrays that the filter takes, each with every short script.
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

    /// Cuts the power everywhere.
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

    /// The world after so many events, and how many there were.
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

    /// Both together; the violation of the earlier one is kept.
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
    // Two stripes; mdadm makes no bitmap for less. What is copied last of a mirror's member that
    // is replaced is a small part of it.
    let used = if level == Level::Raid1 { 264 } else { 128 };
    Options {
        bitmap_chunk,
        log,
        ..Options::plain(level, layout, members, (64, used))
    }
}

/// One to three writes in the first stripe and the second, with and without
/// flushes; and a member is replaced.
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
