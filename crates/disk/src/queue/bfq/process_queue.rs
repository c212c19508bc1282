//! One queue of BFQ, with the properties of the process that fills it.
//!
//! - It is *seeky* where more than 19 of its last 32 requests began further than 800 sectors from
//!   the end of the one before; on flash only requests of less than 64 sectors count as such.
//! - Its *think time*, from the end of its last request until it has another one, is a mean that
//!   forgets an eighth with each sample, of 16 ms at most. It is long if it is above 4 ms, once
//!   there are some ten samples.
//! - It is *bound* by its requests if it had some for four fifths of the time.
//! - Its *weight is raised* thirtyfold when it begins, and when it was empty for two seconds: it
//!   may be an interactive process. That ends after a time that depends on the rate of the disk, or
//!   with 120000 sectors. A queue that came up with seven others, each within 180 ms of the one
//!   before, is of a large burst, and is not raised.
//! - It is *soft real-time* if it begins again with no request at the disk, so long after its last
//!   turn that it had no more than 7000 sectors per second, and 24 ms at least; but not if it only
//!   seeks. Then its weight is raised three thousandfold, for 300 ms from its last such beginning,
//!   however many sectors it gets. As in the source, a queue whose weight is already raised need
//!   not fulfil that, so that a stream whose requests end together stays raised.

use super::share::Share;
use crate::command::Command;
use crate::queue::waiting::Waiting;
use raidlab_units::Nanos;

/// The default weight of a process (`bfq_ioprio_to_weight` of priority 4), and the factor by which
/// it is raised (`bfq_wr_coeff`).
pub(super) const WEIGHT: u64 = 40;
pub(super) const RAISE: u64 = 30;
/// The further factor of soft real-time (`BFQ_SOFTRT_WEIGHT_FACTOR`), and
/// its duration (`bfq_wr_rt_max_time`).
const SOFT_RAISE: u64 = 100;
const SOFT_FOR: Nanos = Nanos::from_millis(300);
/// The highest rate of a soft real-time process, sectors per second (`bfq_wr_max_softrt_rate`), and
/// the least time that it is empty: idling, and four ticks of 250 Hz.
const SOFT_RATE: u64 = 7000;
const SOFT_PAUSE: Nanos = Nanos(SLICE_IDLE.0 + 16_000_000);
/// The idle time after which a process is interactive (`bfq_wr_min_idle_time`), and no longer
/// of a burst.
const IDLE: Nanos = Nanos::from_secs(2);
const BURST_OVER: Nanos = Nanos::from_secs(10);
/// The number of sectors with a raised weight (`max_service_from_wr`).
const RAISED_SECTORS: u64 = 120_000;
/// The distance from which a request is a seek, and the size from which it is large on
/// flash (`BFQQ_SEEK_THR`, `BFQQ_SECT_THR_NONROT`).
const SEEK: u64 = 800;
pub(super) const LARGE_ON_FLASH: u64 = 64;
/// The number of seeks among the last 32 requests above which a queue is seeky (`BFQQ_SEEKY`).
const SEEKS: u32 = 19;
/// The time for which the disk is kept idle for a queue (`bfq_slice_idle`).
pub(super) const SLICE_IDLE: Nanos = Nanos::from_millis(8);
/// The number of samples from which a think time is valid, times 256 (`bfq_sample_valid`).
const SAMPLES: u64 = 80;
/// The time after which half of the intensity's history is forgotten.
const INTENSITY: Nanos = Nanos::from_millis(200);

/// A waiting request, with the fields that a choice needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) tag: u64,
    pub(super) start: u64,
    pub(super) count: u64,
}

impl From<&Command> for Next {
    fn from(command: &Command) -> Self {
        Self {
            tag: command.tag,
            start: command.start.0,
            count: command.count.0,
        }
    }
}

/// The requests of a queue, and the properties that they show of its process.
#[derive(Debug, Clone)]
pub(super) struct ProcessQueue {
    /// Whether its requests are synchronous.
    pub(super) sync: bool,
    /// The number of processes that use it.
    pub(super) processes: u32,
    pub(super) share: Share,
    /// The waiting requests, the next of them, and those with the disk.
    pub(super) queued: u32,
    pub(super) next: Option<Next>,
    pub(super) with_disk: u32,
    /// Whether it has requests, or is being served.
    pub(super) busy: bool,
    /// The sectors of its next turn.
    pub(super) budget: u64,
    /// The end of its turn; without a turn, the time since which it is idle. `None`: for ever.
    pub(super) until: Option<Nanos>,
    /// Whether the disk is kept idle for it.
    pub(super) waited_for: bool,
    /// Whether it left its turn for want of a request.
    pub(super) resumes: bool,
    /// Whether its oldest request was checked in this turn.
    pub(super) oldest_seen: bool,
    pub(super) new: bool,
    pub(super) created: Nanos,
    pub(super) in_burst: bool,
    pub(super) short_think: bool,
    pub(super) bound: bool,
    /// The time at which its last request ended.
    pub(super) last_end: Nanos,
    think: (u64, u64),
    active_since: Nanos,
    idle: Nanos,
    seeks: u32,
    end: u64,
    /// Whether its weight is raised; since when, for how long, and its sectors since.
    pub(super) raised: bool,
    pub(super) raised_at: Nanos,
    pub(super) raised_for: Nanos,
    pub(super) raised_sectors: u64,
    /// Whether it is raised as soft real-time, and since when it was interactive before.
    soft: bool,
    interactive_at: Option<Nanos>,
    /// The time from which it may be soft real-time; the time since which it has requests, and its
    /// sectors since then.
    soft_from: Nanos,
    backlog: (Nanos, u64),
    /// Whether that is to be found when its last request has ended.
    finds_soft: bool,
    /// The number of other queues' requests that may be injected while the disk is idle for it,
    /// the time of its own requests without them, and the time at which injection was last found
    /// to be too much.
    pub(super) injected: u32,
    pub(super) alone: Option<Nanos>,
    pub(super) fewer_at: Nanos,
}

impl ProcessQueue {
    pub(super) fn new(sync: bool, now: Nanos, largest_budget: u64) -> Self {
        Self {
            sync,
            processes: 1,
            share: Share::of(WEIGHT),
            queued: 0,
            next: None,
            with_disk: 0,
            busy: false,
            budget: largest_budget * 2 / 3,
            until: None,
            waited_for: false,
            resumes: false,
            oldest_seen: false,
            new: sync,
            created: now,
            in_burst: false,
            short_think: sync,
            bound: true,
            last_end: now,
            think: (0, 0),
            active_since: now,
            idle: Nanos::ZERO,
            // A new queue counts as having sought once.
            seeks: 1,
            end: 0,
            raised: false,
            raised_at: now,
            raised_for: Nanos::ZERO,
            raised_sectors: 0,
            soft: false,
            interactive_at: None,
            soft_from: now,
            backlog: (now, 0),
            finds_soft: false,
            injected: 0,
            alone: None,
            fewer_at: now,
        }
    }

    /// The factor by which its weight is multiplied.
    pub(super) const fn raise(&self) -> u64 {
        match (self.raised, self.soft) {
            (true, true) => RAISE * SOFT_RAISE,
            (true, false) => RAISE,
            (false, _) => 1,
        }
    }

    pub(super) const fn weight(&self) -> u64 {
        WEIGHT * self.raise()
    }

    pub(super) const fn is_seeky(&self) -> bool {
        self.seeks.count_ones() > SEEKS
    }

    /// Whether it goes through the disk in order and always has more requests.
    pub(super) const fn streams(&self) -> bool {
        !self.is_seeky() && self.bound && self.short_think
    }

    /// Whether its turn has lasted too long.
    pub(super) fn is_late(&self, now: Nanos) -> bool {
        self.until.is_none_or(|until| until <= now)
    }

    /// Whether a late turn ends: not while the disk is kept idle for it, unless a third of the
    /// budget is left.
    pub(super) fn times_out(&self, now: Nanos) -> bool {
        let much = self.share.left() >= self.share.budget / 3;
        (!self.waited_for || much) && self.is_late(now)
    }

    /// Whether it was empty for so long that its process may be interactive.
    pub(super) fn was_idle(&self, now: Nanos) -> bool {
        self.with_disk == 0 && self.until.is_none_or(|until| until + IDLE < now)
    }

    /// Whether it is no longer part of a burst.
    pub(super) fn burst_is_over(&self, now: Nanos) -> bool {
        !self.new && self.was_idle(now) && self.until.is_none_or(|until| until + BURST_OVER < now)
    }

    /// The sectors that it is charged for a request: three times as many if it is asynchronous.
    pub(super) const fn charge(&self, sectors: u64) -> u64 {
        match self.sync || self.raised {
            true => sectors,
            false => sectors * 3,
        }
    }

    /// The sectors that it is charged for its next request.
    pub(super) fn next_charge(&self) -> u64 {
        self.next.map_or(0, |next| self.charge(next.count))
    }

    /// Notes the think time before a new request, if it had none. Returns whether it now thinks for
    /// long when it did not, or the other way round.
    pub(super) fn think(&mut self, now: Nanos) -> bool {
        if self.with_disk == 0 && !self.busy {
            let thought = now.saturating_sub(self.last_end).min(SLICE_IDLE * 2);
            let (samples, total) = self.think;
            self.think = ((7 * samples + 256) / 8, (7 * total + 256 * thought.0) / 8);
        }
        if !self.sync {
            return false;
        }
        let (samples, total) = self.think;
        let long = samples > SAMPLES && (total + 128) / samples > SLICE_IDLE.0 / 2;
        std::mem::replace(&mut self.short_think, !long) == long
    }

    /// Notes whether a new request seeks. A process that only seeks is not soft real-time.
    pub(super) fn seek(
        &mut self,
        now: Nanos,
        command: &Command,
        rotational: bool,
        duration: Nanos,
    ) {
        let seeks = seeks(self.end, command, rotational);
        self.seeks = self.seeks << 1 | u32::from(seeks);
        if self.soft && self.seeks == u32::MAX {
            self.end_soft(now, duration);
        }
    }

    /// Notes the end of the last request, by which seeks are found.
    pub(super) const fn ends_at(&mut self, end: u64) {
        self.end = end;
    }

    /// Notes at a new request for which share of the time there was one.
    pub(super) fn note_intensity(&mut self, now: Nanos) {
        let all = now - self.active_since;
        if self.queued == 0 && self.with_disk == 0 {
            self.idle += now.saturating_sub(self.last_end);
        }
        if self.new {
            return;
        }
        self.bound = self.idle * 5 <= all;
        if all > INTENSITY {
            self.active_since = now.saturating_sub(all / 2);
            self.idle = self.idle / 2;
        }
    }

    /// Raises its weight when it has requests again, if it is interactive or soft real-time.
    /// Returns whether it was not raised before.
    pub(super) fn raise_at_start(
        &mut self,
        now: Nanos,
        interactive: bool,
        duration: Nanos,
    ) -> bool {
        let all_seek = self.seeks == u32::MAX;
        let soft = !all_seek && !self.in_burst && self.soft_from < now && self.with_disk == 0;
        self.backlog = (now, 0);
        self.finds_soft = false;
        if !self.raised {
            self.raised = self.sync && (interactive || soft);
            self.soft = self.raised && !interactive;
            self.interactive_at = None;
            self.raised_for = if interactive { duration } else { SOFT_FOR };
            self.raised_sectors = if interactive { 0 } else { self.raised_sectors };
            return self.raised;
        }
        if interactive {
            (self.soft, self.raised_for) = (false, duration);
        } else if self.in_burst {
            (self.raised, self.soft) = (false, false);
        } else if soft {
            if !self.soft {
                self.interactive_at = Some(self.raised_at);
            }
            (self.soft, self.raised_for, self.raised_at) = (true, SOFT_FOR, now);
        }
        false
    }

    /// Takes over the raised weight of another queue together with its requests.
    pub(super) fn raise_as(&mut self, other: &Self) {
        if other.raised && !self.raised {
            (self.raised, self.soft) = (true, other.soft);
            (self.raised_at, self.raised_for) = (other.raised_at, other.raised_for);
            self.interactive_at = other.interactive_at;
        }
    }

    /// Notes the sectors that it was sent, or charged.
    pub(super) const fn got(&mut self, sectors: u64) {
        self.backlog.1 += sectors;
        if self.raised {
            self.raised_sectors += sectors;
        }
    }

    /// Finds at the end of its turn the time from which it may be soft real-time, if it is empty.
    pub(super) fn find_soft(&mut self, now: Nanos) {
        if self.queued == 0 && self.with_disk > 0 {
            self.finds_soft = true;
        } else if self.queued == 0 {
            self.set_soft(now);
        }
    }

    /// Finds the same when a request of it has ended, if that was postponed.
    pub(super) fn find_soft_at_end(&mut self, now: Nanos) {
        let interactive = self.raised && !self.soft;
        if self.finds_soft && self.with_disk == 0 && self.queued == 0 && !interactive {
            self.set_soft(now);
        }
    }

    fn set_soft(&mut self, now: Nanos) {
        let (since, sectors) = self.backlog;
        let slow = since + Nanos::SECOND * sectors / SOFT_RATE;
        self.soft_from = self.soft_from.max(slow).max(now + SOFT_PAUSE);
    }

    /// Ends its raised weight if the time is over, or returns it to that of an interactive process.
    pub(super) fn lower(&mut self, now: Nanos, duration: Nanos) {
        if self.in_burst {
            self.end_raise(now);
        } else if self.raised_at + self.raised_for < now {
            self.end_soft(now, duration);
        }
        if self.raised && !self.soft && self.raised_sectors > RAISED_SECTORS {
            self.end_raise(now);
        }
    }

    /// Ends its soft real-time weight, and perhaps returns it to that of an interactive process.
    fn end_soft(&mut self, now: Nanos, duration: Nanos) {
        let before = self.interactive_at.filter(|&at| at + duration >= now);
        match before.filter(|_| self.soft) {
            None => self.end_raise(now),
            Some(at) => {
                (self.soft, self.raised_at, self.raised_for) = (false, at, duration);
            }
        }
    }

    fn end_raise(&mut self, now: Nanos) {
        if !self.soft {
            self.soft_from = now;
        }
        (self.raised, self.soft, self.raised_at) = (false, false, now);
    }

    /// The factor of its turn's length, at the beginning of the turn; time without a turn does not
    /// count as soft real-time.
    pub(super) fn turn_factor(&mut self, now: Nanos) -> u64 {
        if !self.raised || !self.soft {
            return self.share.weight / WEIGHT;
        }
        if let Some(until) = self.until.filter(|&until| until < now) {
            self.raised_at = match until > self.raised_at {
                true => self.raised_at + (now - until),
                false => now,
            };
        }
        1
    }

    /// Restarts the adaptation of injection.
    pub(super) fn reset_injection(&mut self, now: Nanos) {
        self.alone = None;
        self.injected = u32::from(!self.short_think);
        self.fewer_at = now;
    }

    /// The request that is to follow `gone`, among `own`: once in a turn the oldest, if it is late,
    /// else the nearest one after or before it.
    pub(super) fn after<'a>(
        &mut self,
        now: Nanos,
        own: impl Iterator<Item = &'a Waiting> + Clone,
        gone: &Command,
        expires: Nanos,
    ) -> Option<Next> {
        let mut others = own.clone().filter(|one| one.command.tag != gone.tag);
        if !std::mem::replace(&mut self.oldest_seen, true) {
            let oldest = own.clone().next();
            let late = |one: &&Waiting| one.command.tag != gone.tag && now >= one.arrived + expires;
            if let Some(late) = oldest.filter(late) {
                return Some(Next::from(&late.command));
            }
        }
        let from = gone.start.0;
        let place = |one: &&Waiting| one.command.start.0;
        let behind = others.clone().filter(|one| place(one) >= from);
        let next = behind.min_by_key(place);
        let before = others.clone().filter(|one| place(one) < from);
        let before = before.max_by_key(place).map(|one| Next::from(&one.command));
        let next = next.or_else(|| others.by_ref().min_by_key(place));
        let next = next.map(|one| Next::from(&one.command));
        nearer(next, before, from)
    }
}

/// Whether a request is far from a place, which is 0 before the first request.
pub(super) fn seeks(from: u64, command: &Command, rotational: bool) -> bool {
    let far = from != 0 && command.start.0.abs_diff(from) > SEEK;
    far && (rotational || command.count.0 < LARGE_ON_FLASH)
}

/// The nearer of two requests to a place: the way back counts twice, and a request more than 16 MiB
/// before it counts as farther than all others.
pub(super) fn nearer(one: Option<Next>, other: Option<Next>, from: u64) -> Option<Next> {
    const BACK: u64 = 16 * 1024 * 2;
    let (Some(first), Some(second)) = (one, other) else {
        return one.or(other);
    };
    let way = |next: Next| match next.start >= from {
        true => Some(next.start - from),
        false => (next.start + BACK >= from).then(|| (from - next.start) * 2),
    };
    let takes_first = match (way(first), way(second)) {
        (Some(one), Some(other)) if one != other => one < other,
        (Some(_), Some(_)) => first.start >= second.start,
        (one, None) => one.is_some() || first.start <= second.start,
        (None, Some(_)) => false,
    };
    Some(if takes_first { first } else { second })
}
