//! md's resync throttle (Linux drivers/md/md.c, `md_do_sync` and
//! `is_mddev_idle`; 3.18.8 for the sleeping form, 4.2 for the draining one).
//!
//! After every 128 KiB of sync I/O:
//! * If the newest of ten marks is 3 s old or older, a new one is made in place
//!   of the oldest: the time, and the sectors finished. The mark it replaces
//!   becomes the base.
//! * speed = (finished - base sectors) / 2 / (whole seconds since the base + 1)
//!   + 1, in KiB/s: an average over at most half a minute.
//! * Above the minimum speed, the maximum and the idle test decide: see
//!   [`Throttle`](super::Throttle).
//!
//! The idle test, per member: (sectors completed by the member, all I/O) less
//! (sectors of sync I/O submitted to it). If that has grown by more than 64
//! since it was last remembered, the array is busy and it is remembered anew.

use super::config::Throttle;
use crate::member::Members;
use crate::request::Slot;
use raidlab_units::{Nanos, Sectors};
use std::ops::RangeInclusive;

/// The number of marks that are kept (`SYNC_MARKS`).
const MARKS: usize = 10;
/// The age at which a mark is followed by a new one (`SYNC_MARK_STEP`).
const MARK_STEP: Nanos = Nanos::from_secs(3);
/// Sectors between two checks: 32 pages.
const WINDOW: u64 = 256;
/// The time that md sleeps before it checks again (`msleep(500)`).
const SLEEP: Nanos = Nanos::from_millis(500);
/// The pauses between blocks of a plain rate at which a second has too few of them to show its
/// pace, and a minute has enough.
const LONG_PAUSES: RangeInclusive<Nanos> = Nanos::from_millis(20)..=Nanos::from_secs(5);
/// The most sectors of foreground I/O that count as idle.
const IDLE_SECTORS: i64 = 64;

#[derive(Debug, Clone, Copy)]
struct Mark {
    time: Nanos,
    finished: u64,
}

/// The reason why no block of a sync starts now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pause {
    /// Nothing holds the sync back: a block may start.
    None,
    /// md's short sleeps; after waking the throttle is asked again if it was due.
    Until(Nanos),
    /// The blocks in flight have to finish first.
    Drain,
}

/// The throttle's answer to a block that wants to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Go,
    /// The block sleeps until this time, and then asks again.
    Sleep(Nanos),
    /// The blocks in flight finish, then the sync goes on.
    Drain,
}

/// The throttle of one sync.
#[derive(Debug)]
pub struct Governor {
    rule: Throttle,
    marks: [Mark; MARKS],
    newest: usize,
    base: Mark,
    issued: u64,
    checked: u64,
    speed_kib_per_second: u64,
    /// For the plain rate, the time when the next block is due.
    due: Nanos,
    /// For the plain rate, whether foreground I/O used the members at the last check.
    busy: bool,
    /// For each slot, the foreground sectors last remembered.
    remembered: Vec<i64>,
    /// The number of times that a block was put to sleep because the sync was above its maximum;
    /// of a plain rate, for long.
    pub(super) sleeps: u64,
}

impl Governor {
    /// The throttle of a sync that begins now, by this rule.
    #[must_use]
    pub fn new(rule: Throttle, now: Nanos, members: &Members) -> Self {
        let mark = Mark {
            time: now,
            finished: 0,
        };
        let slots = (0..).map(Slot).take(members.views().len());
        Self {
            rule,
            marks: [mark; MARKS],
            newest: 0,
            base: mark,
            issued: 0,
            checked: 0,
            speed_kib_per_second: 0,
            due: now,
            busy: false,
            remembered: slots.map(|slot| foreground(members, slot)).collect(),
            sleeps: 0,
        }
    }

    /// Counts a block that was issued; returns true if a check is due before the next one.
    pub fn issued(&mut self, count: Sectors) -> bool {
        self.issued += count.0;
        let window = match self.rule {
            Throttle::None => return false,
            Throttle::Rate {
                maximum_kib_per_second: maximum,
                busy_kib_per_second: busy,
            } => {
                let pace = if self.busy { busy } else { maximum };
                self.due += Nanos(count.0 * Nanos::SECOND.0 / (2 * pace));
                return true;
            }
            Throttle::MdSleep { .. } | Throttle::MdDrain { .. } => WINDOW,
        };
        if self.issued < self.checked + window {
            return false;
        }
        self.checked = self.issued;
        true
    }

    /// Whether the last speed was at the minimum or above.
    pub(super) fn is_fast(&self) -> bool {
        match self.rule {
            Throttle::None | Throttle::Rate { .. } => true,
            Throttle::MdSleep {
                minimum_kib_per_second,
                ..
            }
            | Throttle::MdDrain {
                minimum_kib_per_second,
                ..
            } => self.speed_kib_per_second >= minimum_kib_per_second,
        }
    }

    /// The sectors a second above which the sync is put to sleep. An even pace never exceeds its
    /// maximum, so it has none.
    pub(super) const fn fastest(&self) -> Option<Sectors> {
        match self.rule {
            Throttle::None | Throttle::Rate { .. } => None,
            Throttle::MdSleep {
                maximum_kib_per_second,
                ..
            }
            | Throttle::MdDrain {
                maximum_kib_per_second,
                ..
            } => Some(Sectors(maximum_kib_per_second.saturating_mul(2))),
        }
    }

    /// Asks the throttle if that is `due`, which tells afterwards whether it still is; `in_flight`
    /// is the sectors of blocks not finished.
    pub fn pause(
        &mut self,
        due: &mut bool,
        now: Nanos,
        in_flight: u64,
        members: &Members,
    ) -> Pause {
        if !std::mem::take(due) {
            return Pause::None;
        }
        match self.check(now, in_flight, members) {
            Verdict::Sleep(time) => {
                *due = true;
                Pause::Until(time)
            }
            Verdict::Drain if in_flight > 0 => Pause::Drain,
            Verdict::Drain | Verdict::Go => Pause::None,
        }
    }

    fn check(&mut self, now: Nanos, in_flight: u64, members: &Members) -> Verdict {
        let (minimum, maximum, sleeps) = match self.rule {
            Throttle::None => return Verdict::Go,
            Throttle::Rate { .. } if now < self.due => {
                // What yields to a job is soon over, and no pace of the sync.
                let is_long = LONG_PAUSES.contains(&self.due.saturating_sub(now));
                self.sleeps += u64::from(is_long && !self.busy);
                return Verdict::Sleep(self.due);
            }
            Throttle::Rate { .. } => {
                self.due = now;
                self.busy = !self.is_idle(members);
                return Verdict::Go;
            }
            Throttle::MdSleep {
                minimum_kib_per_second,
                maximum_kib_per_second,
            } => (minimum_kib_per_second, maximum_kib_per_second, true),
            Throttle::MdDrain {
                minimum_kib_per_second,
                maximum_kib_per_second,
            } => (minimum_kib_per_second, maximum_kib_per_second, false),
        };
        self.measure(now, in_flight);
        if self.speed_kib_per_second <= minimum {
            Verdict::Go
        } else if self.speed_kib_per_second > maximum {
            self.sleeps += 1;
            Verdict::Sleep(now + SLEEP)
        } else if self.is_idle(members) {
            Verdict::Go
        } else if sleeps {
            Verdict::Sleep(now + SLEEP)
        } else {
            Verdict::Drain
        }
    }

    fn measure(&mut self, now: Nanos, in_flight: u64) {
        let finished = self.issued - in_flight;
        if now >= self.marks[self.newest].time + MARK_STEP {
            self.newest = (self.newest + 1) % MARKS;
            self.base = self.marks[self.newest];
            self.marks[self.newest] = Mark {
                time: now,
                finished,
            };
        }
        let seconds = now.saturating_sub(self.base.time).0 / Nanos::SECOND.0;
        self.speed_kib_per_second = (finished - self.base.finished) / 2 / (seconds + 1) + 1;
    }

    fn is_idle(&mut self, members: &Members) -> bool {
        let present = members.in_sync() | members.recovering();
        let mut idle = true;
        for slot in present.iter() {
            let foreground = foreground(members, slot);
            let remembered = &mut self.remembered[slot.index()];
            if foreground - *remembered > IDLE_SECTORS {
                *remembered = foreground;
                idle = false;
            }
        }
        idle
    }

    /// Skips an even part of the sync from `since` to `now` in which `moved` sectors were moved,
    /// none of them in flight: the marks become those that it would have left.
    pub fn leap(&mut self, since: Nanos, now: Nanos, moved: Sectors) {
        self.issued += moved.0;
        self.checked = self.issued;
        self.due = now;
        let span = now.saturating_sub(since);
        let mark_at = |age: Nanos| {
            let age = age.min(span);
            let behind = u128::from(moved.0) * u128::from(age.0) / u128::from(span.0.max(1));
            Mark {
                time: now.saturating_sub(age),
                finished: self.issued - u64::try_from(behind).unwrap_or(moved.0),
            }
        };
        self.newest = 0;
        self.base = mark_at(MARK_STEP * 10);
        // Ages 0, 27, 24, ... 3 s: mark 0 is the newest, mark 1 the oldest.
        self.marks = [0, 9, 8, 7, 6, 5, 4, 3, 2, 1].map(|steps| mark_at(MARK_STEP * steps));
    }
}

/// Returns the completed sectors less the sync sectors submitted. Sync I/O in flight makes it
/// lower, as in md.
fn foreground(members: &Members, slot: Slot) -> i64 {
    let traffic = members.traffic(slot);
    traffic.completed.cast_signed() - traffic.sync_submitted.cast_signed()
}

#[cfg(test)]
mod tests {
    use super::{Governor, Verdict};
    use crate::config::{Initial, MemberConfig};
    use crate::member::{MemberRules, Members};
    use crate::recovery::config::Throttle;
    use crate::request::Slot;
    use raidlab_units::{Nanos, Sectors};

    const SLEEPING: Throttle = Throttle::MdSleep {
        minimum_kib_per_second: 1000,
        maximum_kib_per_second: 200_000,
    };

    fn members() -> Members {
        let member = MemberConfig {
            size: Sectors(1 << 30),
            data_offset: Sectors::ZERO,
            rotational: true,
            write_mostly: false,
            bad_blocks: None,
        };
        Members::new(vec![Initial::InSync(member); 2], MemberRules::default())
    }

    fn foreground(members: &mut Members, sectors: u64) {
        members.issued(Slot(0), 0);
        members.completed(Slot(0), sectors);
    }

    #[test]
    fn a_check_is_due_every_256_sectors() {
        let mut governor = Governor::new(SLEEPING, Nanos::ZERO, &members());
        let due = [128, 128, 128, 127, 1].map(|count| governor.issued(Sectors(count)));
        assert_eq!(due, [false, true, false, false, true]);
    }

    #[test]
    fn up_to_64_sectors_count_as_idle() {
        let mut members = members();
        let mut governor = Governor::new(SLEEPING, Nanos::ZERO, &members);
        // 1999 KiB in the first second: (3998 / 2) / 1 + 1 = 2000 KiB/s.
        governor.issued(Sectors(3998));
        foreground(&mut members, 64);
        assert_eq!(governor.check(Nanos(1), 0, &members), Verdict::Go);
        assert_eq!(governor.speed_kib_per_second, 2000);
        foreground(&mut members, 1);
        let slept = Nanos::from_millis(500) + Nanos(1);
        assert_eq!(governor.check(Nanos(1), 0, &members), Verdict::Sleep(slept));
        // Remembered: nothing has been added since.
        assert_eq!(governor.check(Nanos(1), 0, &members), Verdict::Go);
    }

    #[test]
    fn the_minimum_passes_and_the_maximum_does_not() {
        let mut members = members();
        let mut governor = Governor::new(SLEEPING, Nanos::ZERO, &members);
        foreground(&mut members, 1000);
        governor.issued(Sectors(1998 + 512));
        // 512 of them in flight: 999 + 1 KiB/s, which is not above 1000.
        assert_eq!(governor.check(Nanos(1), 512, &members), Verdict::Go);
        governor.issued(Sectors(500_000));
        let verdict = governor.check(Nanos(1), 0, &self::members());
        assert!(matches!(verdict, Verdict::Sleep(_)), "{verdict:?}");
    }

    #[test]
    fn the_newer_rule_drains_instead_of_sleeping() {
        let mut members = members();
        let rule = Throttle::MdDrain {
            minimum_kib_per_second: 1000,
            maximum_kib_per_second: 200_000,
        };
        let mut governor = Governor::new(rule, Nanos::ZERO, &members);
        governor.issued(Sectors(10_000));
        foreground(&mut members, 65);
        assert_eq!(governor.check(Nanos(1), 0, &members), Verdict::Drain);
    }

    #[test]
    fn speed_is_an_average_over_at_most_thirty_seconds() {
        let members = members();
        let mut governor = Governor::new(SLEEPING, Nanos::ZERO, &members);
        governor.issued(Sectors(1_000_000));
        governor.measure(Nanos::from_secs(1), 0);
        for second in (4..=40).step_by(3) {
            governor.measure(Nanos::from_secs(second), 0);
        }
        // The base is now ten steps back, after the burst: nothing moved.
        assert_eq!(governor.speed_kib_per_second, 1);
    }

    #[test]
    fn a_plain_rate_paces_block_by_block() {
        let mut members = members();
        let rule = Throttle::Rate {
            maximum_kib_per_second: 1000,
            busy_kib_per_second: 100,
        };
        let mut governor = Governor::new(rule, Nanos::ZERO, &members);
        // 128 KiB at 1000 KiB/s are due 128 ms later.
        assert!(governor.issued(Sectors(256)));
        let due = Nanos::from_millis(128);
        assert_eq!(governor.check(Nanos(1), 0, &members), Verdict::Sleep(due));
        assert_eq!(governor.check(due, 0, &members), Verdict::Go);
        // A second late: the lost time is not made up.
        governor.issued(Sectors(256));
        let late = Nanos::from_millis(1256);
        assert_eq!(governor.check(late, 0, &members), Verdict::Go);
        governor.issued(Sectors(256));
        let next = late + due;
        assert_eq!(governor.check(late, 0, &members), Verdict::Sleep(next));
        // Somebody else reads: the next block is due ten times later.
        foreground(&mut members, 65);
        assert_eq!(governor.check(next, 0, &members), Verdict::Go);
        governor.issued(Sectors(256));
        let slow = next + due * 10;
        assert_eq!(governor.check(next, 0, &members), Verdict::Sleep(slow));
    }

    #[test]
    fn long_pauses_of_a_plain_rate_count_as_sleeps() {
        let members = members();
        for (speed, sleeps) in [(6_500, 0), (6_400, 1), (26, 1), (25, 0)] {
            let rule = Throttle::Rate {
                maximum_kib_per_second: speed,
                busy_kib_per_second: speed,
            };
            let mut governor = Governor::new(rule, Nanos::ZERO, &members);
            governor.issued(Sectors(256));
            governor.check(Nanos::ZERO, 0, &members);
            assert_eq!(governor.sleeps, sleeps, "{speed} KiB/s");
        }
    }

    #[test]
    fn a_leap_leaves_the_marks_of_an_even_run() {
        let members = members();
        let mut governor = Governor::new(SLEEPING, Nanos::ZERO, &members);
        governor.leap(Nanos::ZERO, Nanos::from_secs(3600), Sectors(3600 * 2000));
        governor.measure(Nanos::from_secs(3600), 0);
        // 30 s at 1000 KiB/s, divided by 31 s, plus 1.
        assert_eq!(governor.speed_kib_per_second, 30_000 / 31 + 1);
    }
}
