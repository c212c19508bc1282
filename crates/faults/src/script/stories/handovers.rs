//! Stories of slots that another disk takes over while superblocks take long, drawn apart from the
//! others, so that a seed that has none of them stays what it was.
//!
//! The superblocks decide which disk serves a slot, and they are written one by one. A slow disk
//! delays them so much that a lot can happen before the last of them is written:
//!
//! - *Failed twice.* A member fails while superblocks are being written that do not record it any
//!   more. There is a spare, and the disk that takes the slot then is failed by the administrator
//!   too, in the next superblocks or those after them. The power is cut as soon as the write that
//!   waited for all this is acknowledged.
//! - *Cut at the change.* A member is replaced by a disk that is slow, and the power is cut when
//!   that disk has just taken the slot: the others may have their superblocks long before it. In
//!   half of these stories a sector near the member's end is unreadable, so that the last part
//!   that is copied is short.
//!
//! In some of the other seeds a disk dies *while it waits*: it has the whole content of a member
//! that it is to replace, it gets no commands until its turn comes, and what another member cannot
//! read is only on the member that it replaces.

use super::super::{Action, Draw, Moment, Restart, Step, Verb};
use super::{at_once, between};
use raidlab_random::Stream;

/// The percentage of seeds with such a story.
const HANDOVER: u32 = 10;
/// The percentage of the other seeds in which a replacement dies while it waits.
const WAIT: u32 = 3;
/// The factors by which a disk is slowed: not so much that a driver would give it up.
const SLOWNESS: [u64; 3] = [10, 30, 99];

pub(in crate::script) fn insert(random: Stream, draw: &Draw<'_>, steps: &mut Vec<Step>) {
    let mut teller = draw.apart(random);
    if !draw.bears_a_loss() {
        return;
    }
    let changes = teller.random.percent(HANDOVER);
    if !changes && !teller.random.percent(WAIT) {
        return;
    }
    let at = teller.random.below(steps.len() as u64 + 1) as usize;
    let story = match changes {
        true if teller.random.percent(50) => teller.failed_twice(),
        true => teller.cut_at_the_change(),
        false => teller.died_while_it_waited(),
    };
    steps.splice(at..at, story);
}

impl Draw<'_> {
    fn slowness(&mut self) -> u64 {
        SLOWNESS[self.random.below(SLOWNESS.len() as u64) as usize]
    }

    /// A power cut from which all disks return, and after which the log is replayed once.
    fn cut(&mut self) -> Action {
        Action::PowerCut(Restart {
            missing: None,
            stale: false,
            again: None,
            ..self.restart()
        })
    }

    /// Steps that complete the array and give it half a minute to recover.
    pub(super) fn whole(&mut self) -> Vec<Step> {
        let mend = Action::Mend {
            fresh: true,
            healed: true,
        };
        vec![
            at_once(mend),
            self.idle_seconds(20, 40),
            at_once(Action::Drain),
        ]
    }

    /// Draws two different members.
    pub(super) fn two_members(&mut self) -> (usize, usize) {
        let members = self.options.members;
        let member = self.member();
        let other = self.random.below(members as u64 - 1) as usize;
        (member, (member + 1 + other) % members)
    }

    fn failed_twice(&mut self) -> Vec<Step> {
        let members = self.options.members;
        let (member, other) = self.two_members();
        let factor = self.slowness();
        let clean_ns = self.options.safe_mode_ms * 1_000_000;
        let mut steps = self.whole();
        steps.push(at_once(pace(200_000)));
        steps.push(at_once(Action::Administer(Verb::Spare)));
        let is_spare = self.random.percent(50);
        if is_spare {
            steps.push(at_once(Action::Administer(Verb::Spare)));
            steps.push(at_once(Action::Administer(Verb::SlowSpare { factor })));
        }
        // The array is marked clean by then, so that the write needs superblocks to be written.
        let after_ns = clean_ns + between(&mut self.random, 1, 2) * 1_000_000_000;
        steps.push(Step {
            after_ns,
            action: Action::Drain,
        });
        if !is_spare {
            let member = other;
            steps.push(at_once(Action::Slow { member, factor }));
        }
        // A whole row, so that all members are written.
        let row = (self.options.chunk * members as u64).min(self.array_size);
        steps.push(at_once(Action::Write {
            start: self.random.below(self.array_size / row) * row,
            count: row,
            force_unit_access: true,
        }));
        for _ in 0..2 {
            steps.push(at_once(until(Moment::Superblocks)));
            steps.push(self.soon(factor / 2, Action::Fail { member }));
        }
        steps.push(at_once(Action::Drain));
        let cut = self.cut();
        steps.push(at_once(cut));
        steps.push(self.everything());
        let member = other;
        steps.push(at_once(Action::Slow { member, factor: 1 }));
        steps.push(self.idle_seconds(1, 8));
        steps
    }

    fn cut_at_the_change(&mut self) -> Vec<Step> {
        let member = self.member();
        let factor = self.slowness();
        let longest = self.options.latency_high_ns * factor;
        // At this speed a block of 4 KiB takes as long as writing superblocks,
        // some three latencies.
        let speed = (2_000_000_000 / (3 * longest)).clamp(1, 200_000);
        let mut steps = self.whole();
        if self.random.percent(70) {
            let used = self.options.used;
            steps.push(at_once(Action::Unreadable {
                member,
                sector: used - 1 - self.random.below(used.min(64)),
                count: between(&mut self.random, 1, 8),
            }));
        }
        steps.extend([
            at_once(pace(speed)),
            at_once(Action::Administer(Verb::Replace { member })),
            at_once(Action::Administer(Verb::SlowSpare { factor })),
        ]);
        if self.random.percent(50) {
            steps.extend(self.writes(2));
        }
        steps.push(at_once(until(Moment::Handover)));
        if self.random.percent(80) {
            steps.push(at_once(until(Moment::Superblocks)));
        }
        let cut = self.cut();
        steps.push(self.soon(factor, cut));
        steps.push(self.everything());
        steps.push(at_once(Action::Slow { member, factor: 1 }));
        steps.push(at_once(USUAL_PACE));
        steps.push(self.idle_seconds(1, 8));
        steps
    }

    fn died_while_it_waited(&mut self) -> Vec<Step> {
        let (member, other) = self.two_members();
        let used = self.options.used;
        let speed = between(&mut self.random, 1, 20);
        let copied_ns = used * 500_000_000 / speed;
        let mut steps = self.whole();
        steps.extend([
            at_once(pace(speed)),
            at_once(Action::Administer(Verb::Replace { member })),
            Step {
                after_ns: self.random.below(copied_ns),
                action: Action::Administer(Verb::LoseSpare),
            },
            at_once(Action::Unreadable {
                member: other,
                sector: self.random.below(used),
                count: between(&mut self.random, 1, 8),
            }),
            Step {
                after_ns: copied_ns,
                action: Action::Drain,
            },
        ]);
        steps.push(self.everything());
        steps.push(at_once(USUAL_PACE));
        steps.push(self.idle_seconds(1, 8));
        steps
    }
}

/// The step that restores the default speeds of syncs.
pub(super) const USUAL_PACE: Action = Action::Administer(Verb::Speed {
    minimum: 1000,
    maximum: 200_000,
});

/// A step that sets the speed of syncs, in KiB/s.
pub(super) const fn pace(speed: u64) -> Action {
    Action::Administer(Verb::Speed {
        minimum: speed,
        maximum: speed,
    })
}

/// A step that waits for the moment, an hour at most.
const fn until(moment: Moment) -> Action {
    Action::Await {
        moment,
        most_ns: 3_600_000_000_000,
    }
}
