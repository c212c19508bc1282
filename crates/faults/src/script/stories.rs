//! Stories: short sequences of steps that belong together.
//!
//! Some bugs need four or five steps of certain kinds in a row, an order that rarely occurs when a
//! script is drawn step by step. Every fourth seed therefore has one story among its steps, of
//! those that fit its options:
//!
//! - *An old member returns.* A member fails, and a new one is put in its place
//!   and filled; the bitmap is cleared, for all are in sync; the new one is lost,
//!   and the first one comes back, of which the bitmap knows nothing any more.
//! - *Replaced while the log is full.* A place is written, and then more around
//!   it; a member that has a part in this fails and is replaced, and the power is
//!   cut before the log's records of all that have gone.
//! - *Away during replay.* The power is cut while the log is being written; one
//!   member comes back only after the next cut, which is soon.
//! - *A bad block returns.* Everything is written; a sector of one member becomes
//!   unreadable; another one is replaced, so that its log of bad blocks names
//!   what could not be computed for it; it leaves and is re-added, is read and
//!   repaired. That is more than most levels tolerate, so only runs over the budget
//!   have it: the bytes may be lost, and must not be wrong.
//! - *Failed and forgotten.* A member fails a write, and the power is cut as soon
//!   as the others have it.

pub(super) mod crossings;
pub(super) mod handovers;
pub(super) mod members;
pub(super) mod seldom;

use super::{Action, Draw, Restart, Step, between};
use raidlab_geometry::Level;
use raidlab_random::Stream;

/// The percentage of seeds that have a story.
const PERCENT: u32 = 25;

/// The bit of a restart's seed with which a missing disk comes back later.
const LATER: u64 = 1 << 16;

/// Puts the seed's story, if it has one, among the steps.
pub(super) fn insert(random: Stream, draw: &Draw<'_>, steps: &mut Vec<Step>) {
    let mut teller = draw.apart(random);
    if !teller.random.percent(PERCENT) {
        return;
    }
    let at = teller.random.below(steps.len() as u64 + 1) as usize;
    type Story = fn(&mut Draw<'_>) -> Vec<Step>;
    let returns = draw.options.over_budget && draw.options.bitmap_chunk.is_some();
    let stories: [(bool, Story); 5] = [
        (returns, |teller| teller.bad_block_returns()),
        (true, |teller| teller.failed_and_forgotten()),
        (draw.options.bitmap_chunk.is_some(), |teller| {
            teller.old_member_returns()
        }),
        (draw.options.log, |teller| {
            teller.replaced_while_log_is_full()
        }),
        (draw.options.log, |teller| teller.away_during_replay()),
    ];
    let mut fit: Vec<Story> = Vec::new();
    fit.extend(
        stories
            .iter()
            .filter(|(fits, _)| *fits)
            .map(|(_, story)| *story),
    );
    let number = teller.random.below(fit.len() as u64) as usize;
    let story = fit[number](&mut teller);
    steps.splice(at..at, story);
}

impl<'a> Draw<'a> {
    /// A generator that draws from a stream of its own, so that a seed without the story stays
    /// what it was.
    fn apart(&self, random: Stream) -> Draw<'a> {
        Draw {
            random,
            options: self.options,
            array_size: self.array_size,
        }
    }

    /// Whether the array survives the loss of a member.
    fn bears_a_loss(&self) -> bool {
        !matches!(self.options.level, Level::Linear | Level::Raid0)
    }
}

const fn at_once(action: Action) -> Step {
    Step {
        after_ns: 0,
        action,
    }
}

impl Draw<'_> {
    fn write_to(&mut self, (start, count): (u64, u64)) -> Step {
        at_once(Action::Write {
            start,
            count,
            force_unit_access: self.random.percent(50),
        })
    }

    /// A step after up to `latencies` of the longest latencies.
    fn soon(&mut self, latencies: u64, action: Action) -> Step {
        let after_ns = self.random.below(self.options.latency_high_ns * latencies);
        Step { after_ns, action }
    }

    fn idle_seconds(&mut self, low: u64, high: u64) -> Step {
        Step {
            after_ns: between(&mut self.random, low * 1_000_000_000, high * 1_000_000_000),
            action: Action::Drain,
        }
    }

    fn old_member_returns(&mut self) -> Vec<Step> {
        let member = self.member();
        let (first, second) = (self.range(), self.range());
        let mut steps = vec![
            at_once(Action::Drain),
            at_once(Action::Fail { member }),
            self.write_to(first),
            at_once(Action::Drain),
            at_once(Action::Mend {
                fresh: true,
                healed: true,
            }),
            self.idle_seconds(2, 8),
            self.write_to(second),
            at_once(Action::Drain),
            // The daemon that clears the bitmap runs every five seconds, and needs two passes.
            self.idle_seconds(11, 20),
            self.idle_seconds(11, 20),
            at_once(Action::Lose { member }),
            self.write_to(first),
            at_once(Action::Drain),
        ];
        steps.push(match self.random.percent(50) {
            true => at_once(Action::Mend {
                fresh: false,
                healed: true,
            }),
            false => at_once(Action::PowerCut(Restart {
                stale: true,
                missing: None,
                ..self.restart()
            })),
        });
        steps.push(self.idle_seconds(1, 5));
        steps
    }

    fn replaced_while_log_is_full(&mut self) -> Vec<Step> {
        let member = self.member();
        let (start, _) = self.range();
        let data = self.options.members - self.options.level.parity_count();
        let row = self.options.chunk * data as u64;
        let wide = (start / row * row, row);
        let mut steps = Vec::new();
        for (start, count) in [(start, between(&mut self.random, 1, 8)), wide] {
            steps.push(self.write_to((start, count.min(self.array_size - start))));
            steps.push(at_once(Action::Drain));
        }
        steps.push(at_once(Action::Fail { member }));
        steps.push(at_once(Action::Mend {
            fresh: true,
            healed: true,
        }));
        // Long enough to fill the new member, and too short for the array to be marked clean.
        let most = self.options.safe_mode_ms.min(2000) * 1_000_000;
        steps.push(Step {
            after_ns: self.random.below(most),
            action: Action::PowerCut(Restart {
                missing: None,
                ..self.restart()
            }),
        });
        steps
    }

    fn away_during_replay(&mut self) -> Vec<Step> {
        let member = self.member();
        let range = self.range();
        // The first write marks the array dirty, so that the following ones need not wait for that.
        let mut steps = vec![self.write_to(range), at_once(Action::Drain)];
        for _ in 0..between(&mut self.random, 3, 8) {
            let range = self.range();
            steps.push(self.write_to(range));
        }
        let first = self.restart();
        let first = Restart {
            seed: first.seed | LATER,
            missing: Some(member),
            ..first
        };
        let second = Restart {
            missing: None,
            stale: true,
            ..self.restart()
        };
        steps.push(self.soon(4, Action::PowerCut(first)));
        steps.push(self.soon(3, Action::PowerCut(second)));
        steps
    }

    fn bad_block_returns(&mut self) -> Vec<Step> {
        let member = self.member();
        let other = (member + 1) % self.options.members;
        let everything = Action::Write {
            start: 0,
            count: self.array_size,
            force_unit_access: false,
        };
        let read = Action::Read {
            start: 0,
            count: self.array_size,
        };
        let few = (self.random.below(self.array_size), 1);
        let spoilt = Action::Unreadable {
            member,
            sector: self.random.below(self.options.used),
            count: self.burst(),
        };
        let mut steps = vec![
            at_once(everything),
            at_once(Action::Drain),
            at_once(Action::Flush),
            self.idle_seconds(1, 2),
            at_once(spoilt),
            at_once(Action::Fail { member: other }),
            at_once(Action::Drain),
            at_once(Action::Mend {
                fresh: true,
                healed: true,
            }),
            self.idle_seconds(2, 20),
            at_once(Action::Fail { member: other }),
            self.write_to(few),
            at_once(Action::Drain),
            self.idle_seconds(1, 2),
            at_once(Action::Mend {
                fresh: false,
                healed: true,
            }),
            self.idle_seconds(1, 4),
        ];
        let repair = Action::Check {
            repair: self.random.percent(70),
        };
        for action in [read, repair] {
            steps.push(at_once(action));
            steps.push(self.idle_seconds(1, 2));
        }
        steps.push(at_once(read));
        steps
    }

    fn failed_and_forgotten(&mut self) -> Vec<Step> {
        let member = self.member();
        let commands = between(&mut self.random, 1, 2) as u32;
        let (start, count) = self.range();
        let restart = Restart {
            missing: None,
            ..self.restart()
        };
        vec![
            at_once(Action::Drain),
            at_once(Action::Transient { member, commands }),
            at_once(Action::Write {
                start,
                count,
                force_unit_access: true,
            }),
            self.soon(8, Action::PowerCut(restart)),
        ]
    }
}
