//! Leaps over the even part of a sync, for simulations.
//!
//! While a walk is frozen none of its blocks begins. With nothing in work it may be told that,
//! since then or since the leap before, it ran evenly up to another position; its checkpoints are
//! those that it would have taken on the way.

use super::{CheckpointRule, Pause, SyncKind, SyncWalk};
use raidlab_units::{Nanos, Sectors, Span, SpanSet};

/// A span of time that a driver skipped, with the sync running evenly in it.
#[derive(Debug, Clone, Copy)]
struct Leap {
    from: Sectors,
    to: Sectors,
    since: Nanos,
    now: Nanos,
    completed: Sectors,
    checkpointed_at: Nanos,
    total: Sectors,
}

impl CheckpointRule {
    /// Returns the last checkpoint, and its time, after a leap: those that the rule would have
    /// taken on the way, one by one.
    fn after_leap(&self, leap: &Leap) -> (Sectors, Nanos) {
        let span = leap.now.saturating_sub(leap.since);
        let moved = leap.to.0 - leap.from.0;
        let scale = |value: u64, numerator: u64, denominator: u64| {
            let scaled = u128::from(value) * u128::from(numerator) / u128::from(denominator.max(1));
            u64::try_from(scaled).unwrap_or(u64::MAX)
        };
        let (mut completed, mut at) = (leap.completed, leap.checkpointed_at);
        loop {
            let by_progress = Sectors(completed.0 + leap.total.0 / self.parts + 1);
            let progress_time = leap.since
                + Nanos(scale(
                    span.0,
                    by_progress.0.saturating_sub(leap.from.0),
                    moved,
                ));
            let interval_time = (at + self.interval).max(leap.since);
            if by_progress <= leap.to && progress_time <= interval_time {
                (completed, at) = (by_progress.max(leap.from), progress_time);
            } else if interval_time <= leap.now && interval_time > at {
                let passed = interval_time.saturating_sub(leap.since);
                completed = Sectors(leap.from.0 + scale(moved, passed.0, span.0).min(moved));
                at = interval_time;
            } else {
                return (completed, at);
            }
        }
    }
}

impl SyncWalk {
    /// Lets no block begin from now on.
    pub fn freeze(&mut self, now: Nanos) {
        self.frozen.get_or_insert(now);
    }

    /// Ends [`Self::freeze`]: blocks may begin again.
    pub const fn thaw(&mut self) {
        self.frozen = None;
    }

    /// Whether no block may begin.
    #[must_use]
    pub const fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }

    /// Returns the positions that the sync has not done.
    #[must_use]
    pub fn rest(&self) -> SpanSet {
        let Some(sync) = &self.running else {
            return SpanSet::default();
        };
        let mut rest = sync.plan.todo.clone();
        for (start, end) in &sync.in_work {
            rest.insert(Span::between(*start, *end));
        }
        rest
    }

    /// Leaves out all positions but these, while no block is in work.
    pub(crate) fn restrict(&mut self, wanted: SpanSet) {
        if let Some(sync) = self.running.as_mut().filter(|it| it.in_work.is_empty()) {
            sync.plan.todo = wanted;
        }
    }

    /// Skips the part up to `position`, over which the sync ran evenly since the freeze, or the
    /// leap before. Returns the range that was skipped; `None` where that is impossible, as it is
    /// not frozen, a block is in work, or the position is not ahead.
    pub fn leap(&mut self, now: Nanos, position: Sectors) -> Option<Span> {
        let (Some(since), Some(sync)) = (self.frozen, &mut self.running) else {
            return None;
        };
        let from = sync.next();
        let is_possible = sync.in_work.is_empty() && (from..=sync.plan.total).contains(&position);
        if !is_possible {
            return None;
        }
        let fills = sync.plan.kind == SyncKind::Recovery;
        if !self.drains {
            sync.checkpoint(position, now);
        } else if let Some(rule) = self.checkpoints {
            (sync.checkpoint, sync.checkpoint_at) = rule.of(fills).after_leap(&Leap {
                from,
                to: position,
                since,
                now,
                completed: sync.checkpoint,
                checkpointed_at: sync.checkpoint_at,
                total: sync.plan.total,
            });
        }
        // What is passed over anyway does not count for the throttle.
        let leapt = sync.plan.todo.take(Span::new(0, position.0));
        let moved = leapt.iter().map(|span| span.count().0).sum();
        sync.governor.leap(since, now, Sectors(moved));
        sync.pause = Pause::None;
        sync.throttle_due = position < sync.plan.total;
        self.frozen = Some(now);
        Some(Span::new(from.0, position.0))
    }
}

#[cfg(test)]
mod tests {
    use super::{CheckpointRule, Leap};
    use raidlab_units::{Nanos, Sectors};

    fn leap(from: u64, to: u64, seconds: u64) -> (Sectors, Nanos) {
        let rule = CheckpointRule {
            parts: 16,
            interval: Nanos::from_secs(300),
            interval_of_recovery: Nanos::from_secs(300),
        };
        rule.after_leap(&Leap {
            from: Sectors(from),
            to: Sectors(to),
            since: Nanos::from_secs(1000),
            now: Nanos::from_secs(1000 + seconds),
            completed: Sectors(from),
            checkpointed_at: Nanos::from_secs(1000),
            total: Sectors(16_000_000),
        })
    }

    #[test]
    fn a_slow_leap_checkpoints_every_five_minutes() {
        // An hour at 500 sectors per second: 1.8 million, less than a part in
        // 16 within any five minutes. The twelfth checkpoint falls on the end.
        let end = (Sectors(1_800_000), Nanos::from_secs(4600));
        assert_eq!(leap(0, 1_800_000, 3600), end);
        // 100 seconds later the last one is 100 seconds old.
        let lagging = (Sectors(1_800_000), Nanos::from_secs(4600));
        assert_eq!(leap(0, 1_850_000, 3700), lagging);
    }

    #[test]
    fn a_fast_leap_checkpoints_every_sixteenth() {
        // 100 seconds, 3.5 sixteenths.
        assert_eq!(leap(0, 3_500_000, 100).0, Sectors(3_000_003));
        // No time at all.
        assert_eq!(leap(0, 3_500_000, 0).0, Sectors(3_000_003));
        assert_eq!(leap(7, 7, 0), (Sectors(7), Nanos::from_secs(1000)));
    }
}
