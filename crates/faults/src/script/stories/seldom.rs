//! Stories of rare acts of administrators, drawn apart from the others, so that a seed that has
//! none of them stays what it was:
//!
//! - *By hand.* Members are replaced, slowly; meanwhile spares, the disks that are being filled and
//!   the members that are replaced are failed and removed by hand, the array is made read-only and
//!   read-write again, and the power is cut.
//! - *The log is full.* The bad-block log of a member that was away names a range that the array
//!   uses, and so many others that hardly any entry is left. A write in the middle of the
//!   range would split its entry in two. Everything is read, and repaired or written; the member
//!   may be replaced.
//! - *The bitmap's file.* The file of the bitmap errs or dies, among writes, while a
//!   member is away, and the power is cut.
//! - *Growth.* The array is started several times, and grows if its members have room; the new part
//!   is written and read during its resync, and members are lost.

use super::super::{Action, Draw, Restart, Step, Verb};
use super::handovers::{USUAL_PACE, pace};
use super::{at_once, between};
use raidlab_random::Stream;

/// The percentage of seeds in which disks are failed and removed by hand.
const BY_HAND: u32 = 6;
/// The percentage with a full log, of the seeds that can have one.
const FULL_LOG: u32 = 5;
/// The percentage with the story of the bitmap's file, of the seeds that have one.
const FILE: u32 = 70;
/// The percentage with the story of growth, of the seeds whose arrays may grow.
const GROWTH: u32 = 70;

pub(in crate::script) fn insert(random: Stream, draw: &Draw<'_>, steps: &mut Vec<Step>) {
    let mut teller = draw.apart(random);
    if !draw.bears_a_loss() {
        return;
    }
    let seldom = &draw.options.seldom;
    let by_hand = teller.random.percent(BY_HAND);
    let is_full = teller.random.percent(FULL_LOG) && draw.options.bitmap_chunk.is_some();
    let file = teller.random.percent(FILE) && seldom.bitmap_in_file;
    let grows = teller.random.percent(GROWTH) && seldom.room.is_some();
    let at = teller.random.below(steps.len() as u64 + 1) as usize;
    let story = if grows {
        teller.growth()
    } else if file {
        teller.bitmap_file()
    } else if is_full {
        teller.full_log()
    } else if by_hand {
        teller.by_hand()
    } else {
        return;
    };
    steps.splice(at..at, story);
}

impl Draw<'_> {
    fn by_hand(&mut self) -> Vec<Step> {
        let member = self.member();
        let speed = between(&mut self.random, 10, 300);
        let mut steps = self.whole();
        steps.push(at_once(pace(speed)));
        for _ in 0..between(&mut self.random, 5, 12) {
            let action = self.hand(member);
            steps.push(match self.random.percent(60) {
                true => self.soon(30, action),
                false => Step {
                    after_ns: self.random.below(2_000_000_000),
                    action,
                },
            });
            if self.random.percent(50) {
                steps.extend(self.writes(2));
            }
        }
        steps.push(at_once(USUAL_PACE));
        steps.push(self.everything());
        steps
    }

    fn hand(&mut self, member: usize) -> Action {
        let newest = self.random.percent(50);
        let restart = Restart {
            missing: None,
            ..self.restart()
        };
        match self.random.below(16) {
            0..=2 => Action::Administer(Verb::Replace { member }),
            3 => Action::Administer(Verb::Spare),
            4..=6 => Action::Administer(Verb::FailSpare { newest }),
            7..=9 => Action::Administer(Verb::RemoveSpare { newest }),
            10 => Action::Fail { member },
            11 => Action::Mend {
                fresh: newest,
                healed: true,
            },
            12 => Action::Administer(Verb::ReadOnlyAtOnce),
            13 => Action::Administer(Verb::ReadWrite),
            14 => Action::StopAtOnce(restart),
            _ => Action::PowerCut(restart),
        }
    }

    fn full_log(&mut self) -> Vec<Step> {
        let (member, other) = self.two_members();
        let count = between(&mut self.random, 3, 24);
        let sector = self.random.below(self.options.used);
        let left = self.random.below(3) as usize;
        let mut steps = self.whole();
        steps.extend([
            // The daemon that clears the bitmap runs every five seconds, and needs two passes.
            self.idle_seconds(11, 20),
            at_once(Action::Fail { member }),
            self.idle_seconds(1, 3),
            at_once(Action::NoteBad {
                member,
                sector,
                count,
            }),
            at_once(Action::FillLog { member, left }),
            at_once(Action::Mend {
                fresh: false,
                healed: true,
            }),
            self.idle_seconds(1, 8),
        ]);
        steps.push(self.everything());
        for _ in 0..between(&mut self.random, 1, 6) {
            let start = self.random.below(self.array_size);
            let most = 4.min(self.array_size - start);
            let count = between(&mut self.random, 1, most);
            steps.push(self.write_to((start, count)));
        }
        let deed = match self.random.below(5) {
            0 => Action::Check { repair: true },
            1 => Action::Administer(Verb::Replace { member }),
            2 => Action::Lose { member: other },
            3 => Action::Unreadable {
                member: other,
                sector,
                count: self.burst(),
            },
            _ => Action::PowerCut(Restart {
                missing: None,
                ..self.restart()
            }),
        };
        steps.push(self.soon(20, deed));
        steps.push(self.everything());
        steps.extend(self.writes(4));
        steps.push(self.idle_seconds(1, 8));
        steps.push(self.everything());
        steps
    }

    fn bitmap_file(&mut self) -> Vec<Step> {
        let member = self.member();
        let mut steps = Vec::new();
        for _ in 0..between(&mut self.random, 3, 9) {
            let restart = self.restart();
            let commands = between(&mut self.random, 1, 2) as u32;
            let action = match self.random.below(10) {
                0 => Action::Administer(Verb::LoseBitmapFile),
                1..=3 => Action::Administer(Verb::BitmapFileErrs { commands }),
                4 => Action::Fail { member },
                5 => Action::Mend {
                    fresh: false,
                    healed: true,
                },
                6 => Action::Stop(restart),
                7 => Action::Kill(restart),
                _ => Action::PowerCut(restart),
            };
            steps.push(self.soon(20, action));
            steps.extend(self.writes(3));
            if self.random.percent(40) {
                steps.push(self.idle_seconds(6, 20));
            }
        }
        steps.push(self.everything());
        steps
    }

    fn growth(&mut self) -> Vec<Step> {
        let mut steps = Vec::new();
        // The largest size that the array may reach; writes beyond its size at the
        // time are skipped.
        let used = self.options.used;
        let room = self.options.seldom.room.unwrap_or(0);
        let size = self.array_size + self.array_size * room.div_ceil(used);
        for _ in 0..between(&mut self.random, 2, 5) {
            let restart = Restart {
                stale: false,
                missing: None,
                ..self.restart()
            };
            let speed = between(&mut self.random, 20, 2000);
            steps.extend(self.whole());
            steps.push(at_once(match self.random.percent(60) {
                true => Action::Stop(restart),
                false => Action::PowerCut(restart),
            }));
            steps.push(at_once(pace(speed)));
            for _ in 0..between(&mut self.random, 2, 8) {
                let start = self.array_size + self.random.below(size - self.array_size);
                let count = between(&mut self.random, 1, 24);
                steps.push(self.write_to((start, count)));
                let deed = self.while_it_grows((start, count));
                steps.push(self.soon(20, deed));
            }
            steps.push(at_once(USUAL_PACE));
        }
        steps
    }

    fn while_it_grows(&mut self, (start, count): (u64, u64)) -> Action {
        let member = self.member();
        let restart = self.restart();
        match self.random.below(12) {
            0..=3 => Action::Read { start, count },
            4 => Action::Lose { member },
            5 => Action::Fail { member },
            6 => Action::Mend {
                fresh: true,
                healed: true,
            },
            7 => Action::Unreadable {
                member,
                sector: self.options.used + self.random.below(self.options.chunk),
                count: self.burst(),
            },
            8 => Action::Flush,
            9 => Action::Administer(Verb::Replace { member }),
            10 => Action::Kill(restart),
            _ => Action::PowerCut(restart),
        }
    }
}
