//! The choice of the next command: rotational position optimisation.
//!
//! For every command in the pool the drive predicts when its first sector can be under the head:
//! the seek, then the wait until the platter has turned. The firmware does not trust its prediction
//! to the last microsecond: a target that would pass within a safety *margin* after arrival counts
//! as missed for a revolution, and the arm's real arrival *jitters*, unknown to the prediction. The
//! command with the least predicted time wins, minus a small credit for age. A command that
//! continues where the head is costs nothing, and one a little ahead on the same track is simply
//! waited for. The commands are visited from the nearest to the farthest: where the seek alone
//! takes longer than the best one's whole time, the rest can be skipped.
//!
//! This is the shortest-access-time-first of Jacobson and Wilkes (HPL-CSP-91-7,
//! 1991) with the imperfection that real drives show.

use super::seek::SeekCurve;
use crate::surface::Surface;
use std::ops::Range;

/// A number of revolutions above that of any seek: a seek takes at most a second, and a revolution
/// at least a millisecond.
const MOST_REVOLUTIONS: u64 = 4096;

/// The order in which a pool of waiting commands is served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The pool is served in order of arrival.
    Arrival,
    /// The pool is served by seek distance alone.
    Seek,
    /// The pool is served by seek and rotation.
    #[default]
    Rotation,
}

/// Parameters of the scheduler.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Scheduling {
    /// The order of the pools.
    pub order: Order,
    /// The safety margin: a target nearer than this after arrival is predicted to
    /// be missed, nanoseconds.
    pub margin_ns: u64,
    /// The jitter: arrival is later than predicted by a uniform draw below this, nanoseconds.
    pub jitter_ns: u64,
    /// The credit per nanosecond of waiting, nanoseconds.
    pub age_weight: f64,
    /// Whether reads and destages compete in one pool.
    pub single_pool: bool,
}

/// A command that waits for the arm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The host's tag; `None` for cached writes, which the host does not wait for.
    pub tag: Option<u64>,
    /// The position of the first sector.
    pub start: u64,
    /// The position after the last sector.
    pub end: u64,
    /// The number of bytes to be moved.
    pub bytes: u64,
    /// The arrival time, nanoseconds.
    pub arrived: u64,
    /// The order of arrival, for ties and for flushes.
    pub sequence: u64,
    /// Whether it continues another command of the same pool and waits for it.
    pub follows: bool,
    /// The time of moves to other places that belong to it, nanoseconds.
    pub detour: u64,
    /// Whether a write covers the physical sectors at its start and at its end in part, and no
    /// cache has the rest.
    pub partial: [bool; 2],
}

/// Commands that wait for the arm. A command that continues another one is not chosen before it:
/// a run of neighbours is served from its start, as the arm would otherwise have to come back
/// for the rest.
#[derive(Debug, Clone, Default)]
pub struct Pool {
    candidates: Vec<Candidate>,
    /// An upper bound of the commands' lengths, as a distance of positions.
    longest: u64,
    /// The start and the index of each command, in the order of the positions.
    by_start: Vec<(u64, usize)>,
}

impl Pool {
    /// Adds a command to the pool.
    pub fn insert(&mut self, mut candidate: Candidate) {
        let place = self.first_from(candidate.start);
        candidate.follows = self.ends_before(place, candidate.start);
        self.mark_followers(place, candidate.end, true);
        self.by_start.insert(place, (candidate.start, self.candidates.len()));
        self.longest = self.longest.max(candidate.end - candidate.start);
        self.candidates.push(candidate);
    }

    /// Removes a command from the pool.
    pub fn remove(&mut self, index: usize) -> Candidate {
        let candidate = self.candidates.swap_remove(index);
        let place = self.place_of(candidate.start, index);
        self.by_start.remove(place);
        if let Some(moved) = self.candidates.get(index) {
            // The moved command was the last one.
            let place = self.place_of(moved.start, self.candidates.len());
            self.by_start[place].1 = index;
        }
        // Two commands may end at the same place; that one of them is still there only costs its
        // follower a turn.
        self.mark_followers(place, candidate.end, false);
        if self.is_empty() {
            self.longest = 0;
        }
        candidate
    }

    /// Marks whether the commands that start at `position` continue another one. They are at index
    /// `place` of the starts at the earliest.
    fn mark_followers(&mut self, place: usize, position: u64, follows: bool) {
        let behind = self.by_start[place..].iter();
        let there = behind.skip_while(|entry| entry.0 < position);
        for &(_, index) in there.take_while(|entry| entry.0 == position) {
            self.candidates[index].follows = follows;
        }
    }

    /// The index of a command among the starts.
    fn place_of(&self, start: u64, index: usize) -> usize {
        let first = self.first_from(start);
        let same = self.by_start[first..].iter().position(|entry| entry.1 == index);
        first + same.unwrap_or_else(|| unreachable!("each command has its start there"))
    }

    /// The number of commands that start before `position`.
    fn first_from(&self, position: u64) -> usize {
        self.by_start.partition_point(|entry| entry.0 < position)
    }

    /// Whether one of the commands starts at `position`.
    #[must_use]
    pub fn has_start(&self, position: u64) -> bool {
        let next = self.by_start.get(self.first_from(position));
        next.is_some_and(|entry| entry.0 == position)
    }

    /// Whether one of the commands ends at `position`.
    #[must_use]
    pub fn has_end(&self, position: u64) -> bool {
        self.ends_before(self.first_from(position), position)
    }

    /// Whether one of the commands ends at `position`, where `place` commands start before it.
    fn ends_before(&self, place: usize, position: u64) -> bool {
        let before = self.by_start[..place].iter().rev();
        let mut near = before.take_while(|entry| position - entry.0 <= self.longest);
        near.any(|entry| self.candidates[entry.1].end == position)
    }

    /// The commands that overlap `start..end` or touch it, each with its index.
    pub fn touching(&self, start: u64, end: u64) -> impl Iterator<Item = (usize, &Candidate)> {
        let first = self.first_from(start.saturating_sub(self.longest));
        let entries = self.by_start[first..].iter().take_while(move |entry| entry.0 <= end);
        let commands = entries.map(|entry| (entry.1, &self.candidates[entry.1]));
        commands.filter(move |(_, one)| one.end >= start)
    }

    /// The index of the first command of those that lie between `start` and `end`.
    #[must_use]
    pub fn first_within(&self, start: u64, end: u64) -> Option<usize> {
        let entries = self.by_start[self.first_from(start)..].iter();
        let entries = entries.take_while(|entry| entry.0 <= end);
        let inside = entries.filter(|entry| self.candidates[entry.1].end <= end);
        inside.map(|entry| entry.1).min()
    }

    /// Returns the range of the starts of commands that lie near `head`, or near another of them:
    /// each less than `reach` from the next. All are positions of the surface.
    #[must_use]
    pub fn chain(&self, head: u64, reach: u64) -> Range<u64> {
        let (below, above) = self.by_start.split_at(self.first_from(head));
        let (mut first, mut end) = (head, head);
        for &(start, _) in below.iter().rev() {
            if first - start >= reach {
                break;
            }
            first = start;
        }
        for &(start, index) in above {
            if start.saturating_sub(end) >= reach {
                break;
            }
            end = end.max(self.candidates[index].end);
        }
        first..end
    }

    /// The distance of each command's start from `head`, the start, and the index,
    /// the nearest first.
    fn outwards(&self, head: u64) -> impl Iterator<Item = (u64, u64, usize)> {
        let first = self.first_from(head);
        let (mut below, mut above) = (first, first);
        std::iter::from_fn(move || {
            let way = |entry: &(u64, usize)| entry.0.abs_diff(head);
            let before = self.by_start[..below].last().map_or(u64::MAX, way);
            let behind = self.by_start.get(above).map_or(u64::MAX, way);
            let next = if before < behind {
                below -= 1;
                below
            } else {
                above += 1;
                above - 1
            };
            let &(start, index) = self.by_start.get(next)?;
            Some((before.min(behind), start, index))
        })
    }

    /// The commands, in no particular order.
    #[must_use]
    pub fn candidates(&self) -> &[Candidate] {
        &self.candidates
    }

    /// The number of commands.
    #[must_use]
    pub fn len(&self) -> usize {
        self.candidates.len()
    }

    /// Whether there are no commands.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.candidates.is_empty()
    }
}

/// The arm's place, and the time at which it can leave.
#[derive(Debug, Clone, Copy)]
pub struct Departure {
    /// The position under the head when it last moved data.
    pub head: u64,
    /// The time at which the arm was free, nanoseconds.
    pub free: u64,
    /// The time at which it can start moving, nanoseconds: the drive has chosen by then.
    pub at: u64,
    /// Whether the head is over `head` right now, so that continuing there is free.
    pub streaming: bool,
    /// The additional settle time of this pool (writes), nanoseconds.
    pub extra_settle_ns: f64,
}

/// The platter's revolution. Remainders by it are most of what the choice computes, so they
/// are made without a division: by a product with the reciprocal, which gives the quotient or
/// one less.
#[derive(Debug, Clone, Copy)]
pub struct Revolution {
    ns: u64,
    /// 2^64 divided by the nanoseconds, or one less.
    reciprocal: u64,
}

impl Revolution {
    /// A revolution of so many nanoseconds, at least 1.
    #[must_use]
    pub const fn new(ns: u64) -> Self {
        Self {
            ns,
            reciprocal: u64::MAX / ns,
        }
    }

    /// The part of a revolution in a time or position, nanoseconds.
    #[inline]
    #[must_use]
    pub fn angle(self, time: u64) -> u64 {
        let turns = ((u128::from(time) * u128::from(self.reciprocal)) >> 64) as u64;
        let left = time - turns * self.ns;
        if left < self.ns { left } else { left - self.ns }
    }
}

/// The platter and the arm, for predictions.
#[derive(Debug, Clone, Copy)]
pub struct Mechanics<'a> {
    /// The map from sectors to positions on the platter.
    pub surface: &'a Surface,
    /// The time of the arm for a move, by its distance.
    pub seek: &'a SeekCurve,
    /// The time of one revolution.
    pub revolution: Revolution,
    /// The platter's angle at time zero, nanoseconds.
    pub phase: u64,
}

impl Mechanics<'_> {
    /// The nanoseconds from `time` until `position` passes under the head.
    #[inline]
    #[must_use]
    pub fn rotation(&self, position: u64, time: u64) -> u64 {
        let target = self.revolution.angle(position);
        let angle = self.revolution.angle(time + self.phase);
        if target >= angle {
            target - angle
        } else {
            target + self.revolution.ns - angle
        }
    }

    /// The time of a move over a distance of positions.
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seek times are positive and below a second"
    )]
    fn seek_ns(&self, departure: &Departure, distance: u64) -> u64 {
        let fraction = self.surface.stroke(distance);
        (self.seek.time_ns(fraction) + departure.extra_settle_ns) as u64
    }

    /// The nanoseconds to read on from the head to `position`, if that is less than half a
    /// revolution ahead and the head is streaming.
    #[inline]
    fn read_through(&self, departure: &Departure, position: u64) -> Option<u64> {
        if !departure.streaming {
            return None;
        }
        let ahead = position.wrapping_sub(departure.head);
        (ahead < self.revolution.ns / 2).then_some(ahead)
    }

    /// The real positioning time with the arm arriving `jitter` late, and the
    /// seek within it (`None` where the arm did not move).
    #[must_use]
    pub fn positioning(
        &self,
        departure: &Departure,
        position: u64,
        jitter: u64,
    ) -> (u64, Option<u64>) {
        let distance = departure.head.abs_diff(position);
        let seek = self.seek_ns(departure, distance) + jitter;
        let turned = seek + self.rotation(position, departure.at + seek);
        match self.read_through(departure, position) {
            Some(through) if through <= turned => (through, None),
            _ => (turned, Some(seek)),
        }
    }
}

/// The command that is to be done next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Choice {
    /// The index of the chosen command in its pool.
    pub index: usize,
    /// The cost of the command: the least over several pools is the least of all. Among equals the
    /// lower index is chosen.
    pub cost: (i64, u64),
}

impl Scheduling {
    /// The next command of `pool`, among those that are not `excluded`.
    #[must_use]
    pub fn choose(
        &self,
        pool: &Pool,
        mechanics: &Mechanics<'_>,
        departure: &Departure,
        excluded: impl Fn(&Candidate) -> bool,
    ) -> Option<Choice> {
        if let [only] = &pool.candidates[..]
            && !self.single_pool
        {
            let cost = (0, 0);
            return (!excluded(only)).then_some(Choice { index: 0, cost });
        }
        if self.order == Order::Rotation {
            return self.choose_by_rotation(pool, mechanics, departure, excluded);
        }
        let cost = |candidate: &Candidate| match self.order {
            Order::Arrival => (0, candidate.sequence),
            Order::Seek | Order::Rotation => {
                let distance = candidate.start.abs_diff(departure.head);
                (distance.cast_signed(), candidate.sequence)
            }
        };
        let candidates = pool.candidates.iter().enumerate();
        let choices = candidates.filter(|(_, candidate)| !excluded(candidate));
        let choices = choices.map(|(index, candidate)| Choice {
            index,
            cost: cost(candidate),
        });
        choices.min_by_key(|choice| choice.cost)
    }

    #[expect(
        clippy::cast_possible_wrap,
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        reason = "times of one positioning, far below 2^63"
    )]
    fn choose_by_rotation(
        &self,
        pool: &Pool,
        mechanics: &Mechanics<'_>,
        departure: &Departure,
        excluded: impl Fn(&Candidate) -> bool,
    ) -> Option<Choice> {
        // The rotation left on arrival is start - arrival modulo a revolution; adding so many
        // revolutions keeps the difference positive, and one remainder per candidate is enough.
        let revolution = mechanics.revolution;
        let now = revolution.angle(departure.at + mechanics.phase);
        let ahead = MOST_REVOLUTIONS * revolution.ns - now;
        let is_aged = self.age_weight > 0.0;
        let mut best: Option<Choice> = None;
        for (distance, start, index) in pool.outwards(departure.head) {
            let seek = mechanics.seek_ns(departure, distance) + self.margin_ns;
            // Neither a seek nor the reading on of a streaming head gets shorter from here on.
            let least = if departure.streaming { seek.min(distance) } else { seek };
            let best_cost = best.map_or(i64::MAX, |best| best.cost.0);
            if least as i64 > best_cost && !is_aged {
                break;
            }
            let mut cost = (seek + revolution.angle(start + ahead - seek)) as i64;
            if let Some(through) = mechanics.read_through(departure, start) {
                cost = cost.min(through as i64);
            }
            let candidate = &pool.candidates[index];
            if is_aged {
                let waited = departure.at.saturating_sub(candidate.arrived);
                cost -= (waited as f64 * self.age_weight) as i64;
            }
            let is_better = best.is_none_or(|best| (cost, index) < (best.cost.0, best.index));
            if is_better && !excluded(candidate) {
                let cost = (cost, 0);
                best = Some(Choice { index, cost });
            }
        }
        best
    }
}

#[cfg(test)]
mod tests;
