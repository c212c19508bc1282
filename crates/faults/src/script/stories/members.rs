//! Stories of members, drawn apart from the others, so that a seed that has none of them stays
//! what it was:
//!
//! - *Lost in the first resync.* Something is written to a new array, and during its
//!   first resync a member is lost; more is written and read, a new member is
//!   filled, with a crash or a further loss on the way.
//! - *Noted elsewhere.* A member fails, gets an entry in its bad-block log for a place
//!   that the bitmap calls clean, and is added again; everything is read, and then
//!   repaired or written.
//! - *Replaced in a crash.* A member is replaced by a spare, and the power is cut during
//!   the replacement, or at its end, or when its superblocks are being written; several times. In
//!   some of them one of the two devices has erred before, and the other one is away after the cut.

use super::super::{Action, Draw, Restart, Step, Verb};
use super::{at_once, between};
use raidlab_random::Stream;

/// The percentage with a noted member, of the seeds that can have one.
const NOTED: u32 = 12;
/// The percentage that lose a member in the first resync, of the seeds that have one.
const LOST: u32 = 50;
/// The percentage with a replaced member, of the seeds that have neither story.
const REPLACED: u32 = 6;

pub(in crate::script) fn insert(random: Stream, draw: &Draw<'_>, steps: &mut Vec<Step>) {
    let mut teller = draw.apart(random);
    let options = draw.options;
    if !draw.bears_a_loss() {
        return;
    }
    if !options.assume_clean && teller.random.percent(LOST) {
        let story = teller.lost_in_the_first_resync();
        steps.splice(0..0, story);
    } else if options.bitmap_chunk.is_some() && teller.random.percent(NOTED) {
        let at = teller.random.below(steps.len() as u64 + 1) as usize;
        let story = teller.noted_elsewhere();
        steps.splice(at..at, story);
    } else if teller.random.percent(REPLACED) {
        let at = teller.random.below(steps.len() as u64 + 1) as usize;
        let story = teller.replaced_in_a_crash();
        steps.splice(at..at, story);
    }
}

impl Draw<'_> {
    pub(super) fn everything(&self) -> Step {
        at_once(Action::Read {
            start: 0,
            count: self.array_size,
        })
    }

    pub(super) fn writes(&mut self, most: u64) -> Vec<Step> {
        let count = between(&mut self.random, 1, most);
        (0..count)
            .map(|_| {
                let range = self.range();
                self.write_to(range)
            })
            .collect()
    }

    /// The loss of a member, by its own fault or the administrator's.
    fn loss(&mut self) -> Step {
        let member = self.member();
        let action = match self.random.percent(60) {
            true => Action::Lose { member },
            false => Action::Fail { member },
        };
        self.soon(6, action)
    }

    fn lost_in_the_first_resync(&mut self) -> Vec<Step> {
        let mut steps = self.writes(3);
        steps.push(self.loss());
        steps.extend(self.writes(4));
        steps.push(self.everything());
        if self.random.percent(40) {
            let restart = Restart {
                missing: None,
                ..self.restart()
            };
            let action = match self.random.below(3) {
                0 => Action::Stop(restart),
                1 => Action::Kill(restart),
                _ => Action::PowerCut(restart),
            };
            steps.push(self.soon(6, action));
            steps.push(self.everything());
        }
        let fresh = self.random.percent(70);
        steps.push(self.soon(
            4,
            Action::Mend {
                fresh,
                healed: true,
            },
        ));
        steps.extend(self.writes(4));
        // The budget decides whether the level tolerates one more loss.
        steps.push(self.loss());
        steps.push(self.everything());
        steps.extend(self.writes(4));
        steps.push(at_once(Action::Drain));
        steps.push(self.soon(
            4,
            Action::Mend {
                fresh: true,
                healed: true,
            },
        ));
        steps.push(self.idle_seconds(1, 5));
        steps
    }

    fn replaced_in_a_crash(&mut self) -> Vec<Step> {
        let mut steps = vec![at_once(Action::Drain)];
        for round in 0..3 {
            let mut aside = Draw {
                random: self.random.fork("one of two errs", round),
                ..*self
            };
            let member = self.member();
            steps.push(at_once(Action::Administer(Verb::Replace { member })));
            steps.extend(self.writes(2));
            let mut missing = None;
            if aside.random.percent(40) {
                let commands = between(&mut aside.random, 1, 3) as u32;
                let errs = Action::Administer(Verb::SpareErrs { commands });
                steps.push(aside.soon(30, errs));
                steps.extend(aside.writes(2));
                missing = aside.random.percent(70).then_some(member);
            }
            // Reading and writing all windows and the superblocks takes some twenty latencies.
            let restart = Restart {
                missing,
                stale: false,
                again: None,
                ..self.restart()
            };
            steps.push(self.soon(30, Action::PowerCut(restart)));
            steps.push(self.everything());
            steps.push(self.idle_seconds(1, 8));
        }
        steps
    }

    fn noted_elsewhere(&mut self) -> Vec<Step> {
        let member = self.member();
        let sector = self.random.below(self.options.used);
        let count = self.burst();
        let mut steps = vec![
            at_once(Action::Drain),
            // The daemon that clears the bitmap runs every five seconds, and needs two passes.
            self.idle_seconds(11, 20),
            at_once(Action::Fail { member }),
            self.idle_seconds(1, 3),
            at_once(Action::NoteBad {
                member,
                sector,
                count,
            }),
            at_once(Action::Mend {
                fresh: false,
                healed: true,
            }),
            self.idle_seconds(1, 8),
        ];
        for _ in 0..4 {
            steps.push(self.everything());
        }
        if self.random.percent(30) {
            steps.push(at_once(Action::PowerCut(Restart {
                missing: None,
                ..self.restart()
            })));
            steps.push(self.everything());
        }
        if self.random.percent(50) {
            steps.push(at_once(Action::Check { repair: true }));
        } else {
            steps.extend(self.writes(4));
        }
        steps.push(self.idle_seconds(1, 8));
        steps.push(self.everything());
        steps
    }
}
