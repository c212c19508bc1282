//! The script of a run: a list of steps, independent of each other, so that any of them can
//! be left out.
//!
//! A fault in the list strikes only if the budget allows it when its turn comes. All random choices
//! about a step are stored in the step.

mod orders;
mod stories;

pub use orders::{Mistake, Verb};

use crate::options::{Options, Weights, between};
use raidlab_random::Stream;

/// A step, and the time after the one before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Step {
    /// Nanoseconds after the beginning of the step before.
    pub after_ns: u64,
    /// The action of the step.
    pub action: Action,
}

/// The action of a step. `member` is a slot; it stands for the disk that serves the slot when the
/// step's turn comes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// A write of new bytes.
    Write {
        /// The first sector of the array.
        start: u64,
        /// The number of sectors written.
        count: u64,
        /// Whether the write is durable when it is acknowledged.
        force_unit_access: bool,
    },
    /// A read, whose bytes must be permitted.
    Read {
        /// The first sector of the array.
        start: u64,
        /// The number of sectors read.
        count: u64,
    },
    /// A discard of a range.
    Discard {
        /// The first sector of the array.
        start: u64,
        /// The number of sectors discarded.
        count: u64,
    },
    /// A flush of all writes that were acknowledged.
    Flush,
    /// A wait until all requests are answered.
    Drain,
    /// A wait for a moment.
    Await {
        /// The moment that is waited for.
        moment: Moment,
        /// The longest wait, in nanoseconds.
        most_ns: u64,
    },
    /// Some sectors of a disk become unreadable, until they are written.
    Unreadable {
        /// The slot whose disk is struck.
        member: usize,
        /// The first sector in the data area.
        sector: u64,
        /// The number of unreadable sectors.
        count: u64,
    },
    /// The next commands to a disk fail with a medium error.
    Transient {
        /// The slot whose disk is struck.
        member: usize,
        /// The number of commands that fail from now on; at least 1.
        commands: u32,
    },
    /// Every latency of a disk grows by a factor.
    Slow {
        /// The slot whose disk is struck.
        member: usize,
        /// The factor of the disk's latencies; 1 makes it as fast as before.
        factor: u64,
    },
    /// A disk does not answer for a while, and may then die.
    Hang {
        /// The slot whose disk is struck.
        member: usize,
        /// Nanoseconds until the disk answers again, or dies.
        for_ns: u64,
        /// Whether every command fails afterwards, for ever.
        dies: bool,
    },
    /// A disk dies: every command fails from now on.
    Lose {
        /// The slot whose disk is struck.
        member: usize,
    },
    /// The disk of a member that has failed loses a range, and its bad-block log
    /// names it.
    NoteBad {
        /// The slot whose member has failed.
        member: usize,
        /// The first sector in the data area.
        sector: u64,
        /// The number of sectors that the disk loses.
        count: u64,
    },
    /// The bad-block log of a failed member is filled, with places that the array does not use.
    FillLog {
        /// The slot whose member has failed.
        member: usize,
        /// The number of entries that the log has room for afterwards.
        left: usize,
    },
    /// The administrator fails a member.
    Fail {
        /// The slot whose member is failed.
        member: usize,
    },
    /// The administrator puts a member into every empty slot: the one that was
    /// there, or a new one if that died or `fresh` says so.
    Mend {
        /// Whether new disks are used though the old ones are alive.
        fresh: bool,
        /// Whether the disk can read its unreadable sectors again.
        healed: bool,
    },
    /// A sector of a member's superblock, bitmap, bad-block log or write log becomes unreadable.
    UnreadableMetadata {
        /// The slot whose disk is struck.
        member: usize,
        /// The sector, counted over all those outside the data, modulo their number.
        sector: u64,
    },
    /// The administrator gives an order.
    Administer(Verb),
    /// The administrator gives an order that must be refused.
    Mistake(Mistake),
    /// A check or repair.
    Check {
        /// Whether differences are corrected; otherwise they are only counted.
        repair: bool,
    },
    /// Everything settles, a sector is corrupted without an error, and a check
    /// must find it.
    Silent {
        /// The slot whose disk is struck.
        member: usize,
        /// The sector in the data area.
        sector: u64,
        /// The kind of corruption.
        kind: Silent,
    },
    /// The power is cut and comes back.
    PowerCut(Restart),
    /// The process that runs the array dies; the disks live on.
    Kill(Restart),
    /// The array is stopped when all requests are answered, and assembled again.
    Stop(Restart),
    /// The array is stopped with requests under way, and assembled again.
    StopAtOnce(Restart),
    /// Two halves of the array run alone, one after the other; the whole must
    /// then be refused.
    Split {
        /// The members of the first half, one bit each.
        halves: u64,
    },
    /// Everything is drained, mended, synced, flushed and verified.
    Settle,
}

/// A moment in the life of the array whose time no script can know beforehand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// Some slot is served by another disk than when the step began.
    Handover,
    /// A superblock is being written to a disk to which none was when the step began.
    Superblocks,
}

/// A kind of silent corruption by a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Silent {
    /// Bits flip on the medium.
    Rot,
    /// A write was acknowledged and not stored.
    LostWrite,
    /// A write went to this sector instead of its own.
    Misdirected(u64),
}

/// The random choices about a restart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Restart {
    /// The seed for the landing of writes and the order of the disks.
    pub seed: u64,
    /// A disk that does not come back, if the budget allows it.
    pub missing: Option<usize>,
    /// Whether disks that were failed and removed are present again.
    pub stale: bool,
    /// The number of writes of the log's replay after which the power is cut again.
    pub again: Option<u64>,
}

/// Draws a script for these options.
#[must_use]
pub fn draw(seed: u64, options: &Options, array_size: u64) -> Vec<Step> {
    let mut draw = Draw {
        random: Stream::new(seed).fork("script", 0),
        options,
        array_size,
    };
    let mut steps: Vec<Step> = (0..options.steps).map(|_| draw.step()).collect();
    let story = Stream::new(seed).fork("story", 0);
    stories::insert(story, &draw, &mut steps);
    let story = Stream::new(seed).fork("story", 1);
    stories::members::insert(story, &draw, &mut steps);
    let story = Stream::new(seed).fork("story", 2);
    stories::crossings::insert(story, &draw, &mut steps);
    let story = Stream::new(seed).fork("story", 3);
    stories::handovers::insert(story, &draw, &mut steps);
    let story = Stream::new(seed).fork("story", 4);
    stories::seldom::insert(story, &draw, &mut steps);
    steps
}

struct Draw<'a> {
    random: Stream,
    options: &'a Options,
    array_size: u64,
}

impl Draw<'_> {
    fn step(&mut self) -> Step {
        let gap = self.options.latency_high_ns;
        let after_ns = match self.random.below(10) {
            0..=4 => 0,
            5..=8 => self.random.below(gap * 2),
            _ => self.random.below(gap * 20),
        };
        let (after_ns, action) = match self.action() {
            Some(action) => (after_ns, action),
            None => (
                between(&mut self.random, 100_000_000, 20_000_000_000),
                Action::Drain,
            ),
        };
        Step { after_ns, action }
    }

    /// Draws the action of the next step; `None` stands for a long idle time.
    fn action(&mut self) -> Option<Action> {
        let weights = self.options.weights.clone();
        let total: u32 = kinds(&weights).map(|(weight, _)| weight).sum();
        let mut left = self.random.below(u64::from(total)) as u32;
        for (weight, make) in kinds(&weights) {
            if left < weight {
                return make(self);
            }
            left -= weight;
        }
        None
    }

    fn range(&mut self) -> (u64, u64) {
        let size = self.array_size;
        if self.random.percent(self.options.weights.aligned_percent) {
            let chunk = self.options.chunk.min(size);
            let start = self.random.below(size / chunk) * chunk;
            let chunks = between(&mut self.random, 1, 6);
            return (start, (chunk * chunks).min(size - start));
        }
        let most = match self.random.below(4) {
            0 => 1,
            1 => 8,
            2 => self.options.chunk + 3,
            _ => self.options.chunk * 4,
        };
        let count = between(&mut self.random, 1, most.min(size));
        (self.random.below(size - count + 1), count)
    }

    fn member(&mut self) -> usize {
        self.random.below(self.options.members as u64) as usize
    }

    fn restart(&mut self) -> Restart {
        let missing = self.random.percent(25).then(|| self.member());
        Restart {
            seed: self.random.next_u64(),
            missing,
            stale: self.random.percent(30),
            again: self.random.percent(20).then(|| self.random.below(6)),
        }
    }

    fn verb(&mut self) -> Verb {
        match self.random.below(10) {
            0 => Verb::Spare,
            1..=3 => Verb::Replace {
                member: self.member(),
            },
            4 => Verb::LoseSpare,
            5 => Verb::Idle,
            6 => {
                let minimum = between(&mut self.random, 1, 2000);
                let maximum = minimum * between(&mut self.random, 1, 200);
                Verb::Speed { minimum, maximum }
            }
            7 => Verb::ReadOnly,
            _ => Verb::ReadWrite,
        }
    }

    fn mistake(&mut self) -> Mistake {
        let member = self.member();
        match self.random.below(5) {
            0 => Mistake::Remove { member },
            1 => Mistake::FailNeeded { member },
            2 => Mistake::ReAddInService { member },
            3 => Mistake::AddSmall,
            _ => Mistake::ReplaceWithNothing { member },
        }
    }

    /// Draws the length of a burst of latent errors: Pareto distributed with exponent 1, cut
    /// at a chunk.
    fn burst(&mut self) -> u64 {
        let draw = between(&mut self.random, 1, 1000);
        (1000 / draw).clamp(1, self.options.chunk)
    }
}

type Make = fn(&mut Draw<'_>) -> Option<Action>;

fn kinds(weights: &Weights) -> impl Iterator<Item = (u32, Make)> {
    let work = work(weights).into_iter();
    work.chain(faults(weights)).chain(administration(weights))
}

/// Returns the steps of applications, each with its share and the function that draws it.
fn work(weights: &Weights) -> [(u32, Make); 6] {
    [
        (weights.write, |draw| {
            let (start, count) = draw.range();
            let percent = draw.options.weights.force_unit_access_percent;
            Some(Action::Write {
                start,
                count,
                force_unit_access: draw.random.percent(percent),
            })
        }),
        (weights.read, |draw| {
            let (start, count) = draw.range();
            Some(Action::Read { start, count })
        }),
        (weights.flush, |_| Some(Action::Flush)),
        (weights.discard, |draw| {
            let (start, count) = draw.range();
            Some(Action::Discard { start, count })
        }),
        (weights.drain, |_| Some(Action::Drain)),
        (weights.idle, |_| None),
    ]
}

/// Returns the steps in which disks fail, each with its share and the function that draws it.
fn faults(weights: &Weights) -> [(u32, Make); 6] {
    [
        (weights.unreadable, |draw| {
            Some(Action::Unreadable {
                member: draw.member(),
                sector: draw.random.below(draw.options.used),
                count: draw.burst(),
            })
        }),
        (weights.transient, |draw| {
            Some(Action::Transient {
                member: draw.member(),
                commands: between(&mut draw.random, 1, 3) as u32,
            })
        }),
        (weights.slow, |draw| {
            let factor = [1, 10, 100, 1000][draw.random.below(4) as usize];
            Some(Action::Slow {
                member: draw.member(),
                factor,
            })
        }),
        (weights.hang, |draw| {
            Some(Action::Hang {
                member: draw.member(),
                for_ns: between(&mut draw.random, 1_000_000, 30_000_000_000),
                dies: draw.random.percent(40),
            })
        }),
        (weights.lose, |draw| {
            Some(Action::Lose {
                member: draw.member(),
            })
        }),
        (weights.metadata, |draw| {
            Some(Action::UnreadableMetadata {
                member: draw.member(),
                sector: draw.random.next_u64(),
            })
        }),
    ]
}

/// Returns the steps of administrators and of the power supply.
fn administration(weights: &Weights) -> [(u32, Make); 10] {
    [
        (weights.fail, |draw| {
            Some(Action::Fail {
                member: draw.member(),
            })
        }),
        (weights.mend, |draw| {
            let unhealed = draw.options.weights.unhealed_percent;
            Some(Action::Mend {
                fresh: draw.random.percent(30),
                healed: !draw.random.percent(unhealed),
            })
        }),
        (weights.check, |draw| {
            Some(Action::Check {
                repair: draw.random.percent(50),
            })
        }),
        (weights.silent, |draw| {
            let kind = match draw.random.below(10) {
                0..=5 => Silent::Rot,
                6..=8 => Silent::LostWrite,
                _ => Silent::Misdirected(draw.random.below(draw.options.used)),
            };
            Some(Action::Silent {
                member: draw.member(),
                sector: draw.random.below(draw.options.used),
                kind,
            })
        }),
        (weights.power_cut, |draw| {
            Some(Action::PowerCut(draw.restart()))
        }),
        (weights.kill, |draw| Some(Action::Kill(draw.restart()))),
        (weights.stop, |draw| Some(Action::Stop(draw.restart()))),
        (weights.order, |draw| Some(Action::Administer(draw.verb()))),
        (weights.mistake, |draw| {
            Some(Action::Mistake(draw.mistake()))
        }),
        (weights.split + weights.settle, |draw| {
            let both = u64::from(draw.options.weights.split + draw.options.weights.settle);
            let split = draw.random.below(both) < u64::from(draw.options.weights.split);
            Some(if split {
                Action::Split {
                    halves: draw.random.next_u64(),
                }
            } else {
                Action::Settle
            })
        }),
    ]
}
