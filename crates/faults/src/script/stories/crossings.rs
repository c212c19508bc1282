//! Stories in which operations on members overlap: drawn apart from the others, so that a seed that
//! has none of them stays what it was.
//!
//! A replacement, a resync, a recovery and a check each take a while, and a core that handles each
//! of them correctly may still fail when one begins, ends or fails during another. Steps that are
//! drawn one by one seldom hit that time. So a story makes it long: syncs are slowed down until
//! they take seconds. Then come four to ten actions, nearly all at the same one or two slots, each
//! a few latencies or up to a second or two after the one before: a member is replaced, lost,
//! failed by the administrator, put back, gets unreadable sectors or commands that fail; a spare
//! comes, errs or dies; a sync is stopped by hand; a check begins; the power is cut, the process
//! dies, the array is stopped or made read-only, with requests under way or without. Writes and
//! reads go on between them. At the end syncs may run as fast as they can.

use super::super::{Action, Draw, Restart, Step, Verb};
use super::{at_once, between};
use raidlab_random::Stream;

/// The percentage of seeds with such a story.
const CROSSING: u32 = 15;

pub(in crate::script) fn insert(random: Stream, draw: &Draw<'_>, steps: &mut Vec<Step>) {
    let mut teller = draw.apart(random);
    if !draw.bears_a_loss() || !teller.random.percent(CROSSING) {
        return;
    }
    // The first resync of a new array that is not in sync is at the beginning only.
    let at = match teller.random.percent(50) {
        true => 0,
        false => teller.random.below(steps.len() as u64 + 1) as usize,
    };
    let story = teller.crossing();
    steps.splice(at..at, story);
}

impl Draw<'_> {
    fn crossing(&mut self) -> Vec<Step> {
        let slots = [self.member(), self.member()];
        let maximum = between(&mut self.random, 10, 300);
        let mut steps = vec![at_once(Action::Administer(Verb::Speed {
            minimum: maximum,
            maximum,
        }))];
        for _ in 0..between(&mut self.random, 4, 10) {
            let action = self.crossing_deed(slots);
            steps.push(match self.random.percent(60) {
                true => self.soon(30, action),
                false => Step {
                    after_ns: self.random.below(2_000_000_000),
                    action,
                },
            });
            if action == Action::Administer(Verb::ReadOnlyAtOnce) {
                let mut aside = self.random.fork("read-write again", 0);
                let after_ns = aside.below(100_000_000);
                let action = Action::Administer(Verb::ReadWrite);
                steps.push(Step { after_ns, action });
            }
            if self.random.percent(50) {
                steps.extend(self.writes(2));
            }
            if self.random.percent(30) {
                steps.push(self.everything());
            }
        }
        steps.push(at_once(Action::Administer(Verb::Speed {
            minimum: 1000,
            maximum: 200_000,
        })));
        steps
    }

    fn crossing_deed(&mut self, slots: [usize; 2]) -> Action {
        let member = slots[usize::from(self.random.percent(30))];
        let restart = Restart {
            missing: self.random.percent(15).then_some(member),
            ..self.restart()
        };
        match self.random.below(16) {
            0..=3 => Action::Administer(Verb::Replace { member }),
            4 => Action::Lose { member },
            5 => Action::Fail { member },
            6 | 7 => Action::Mend {
                fresh: self.random.percent(50),
                healed: self.random.percent(70),
            },
            8 => Action::Unreadable {
                member,
                sector: self.random.below(self.options.used),
                count: self.burst(),
            },
            9 => Action::Transient {
                member,
                commands: between(&mut self.random, 1, 3) as u32,
            },
            10 => {
                let mut aside = self.random.fork("a spare errs", 0);
                Action::Administer(match self.random.percent(50) {
                    true => Verb::Spare,
                    false if aside.percent(50) => Verb::SpareErrs {
                        commands: between(&mut aside, 1, 3) as u32,
                    },
                    false => Verb::LoseSpare,
                })
            }
            11 => {
                let mut aside = self.random.fork("an order", 0);
                Action::Administer(match self.random.percent(70) {
                    true if aside.percent(30) => Verb::ReadOnlyAtOnce,
                    true => Verb::Idle,
                    false => Verb::ReadWrite,
                })
            }
            12 => Action::Check {
                repair: self.random.percent(50),
            },
            13 => Action::PowerCut(restart),
            14 => Action::Kill(restart),
            _ => match self.random.fork("a stop", 0).percent(50) {
                true => Action::StopAtOnce(restart),
                false => Action::Stop(restart),
            },
        }
    }
}
