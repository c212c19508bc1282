//! The search for a depth that keeps a latency.
//!
//! It is fio's `latency_target` (`lat_target_check` and its neighbours in io_u.c): from a depth of
//! 1 each window of time in which enough requests were within the target doubles the depth, until
//! one fails; then the depth is halved between the last that succeeded and the first that failed.
//! A failing depth is given up at once, and counting goes on when all that was in flight has
//! ended. Where a success no longer changes the depth, a last window is measured alone, and ends
//! the job. With all requests to be within the target a single one fails the depth, and a depth of
//! 1 the job.

use raidlab_units::Nanos;
use raidlab_workload::LatencyTarget;

/// The number of successes in a row, one below the first depth that failed, after which that one
/// is tried again.
const STABLE: u32 = 3;

/// The next thing for a clone to do after a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The clone goes on with its next request.
    GoOn,
    /// The clone submits nothing new until all in flight have ended.
    Drain,
    /// The clone ends: the depth is found, or not even a depth of 1 will do.
    End,
}

/// The search of one clone.
#[derive(Debug)]
pub(crate) struct DepthSearch {
    rule: LatencyTarget,
    most: u32,
    depth: u32,
    low: u32,
    high: u32,
    stable: u32,
    window_began: Nanos,
    requests: u64,
    failed: u64,
    /// Whether a new window begins when nothing is in flight.
    draining: bool,
    last_window: bool,
}

impl DepthSearch {
    /// Makes a search up to a depth of `most` that begins at `now`.
    pub(crate) fn new(rule: LatencyTarget, most: u32, now: Nanos) -> Self {
        Self {
            rule,
            most,
            depth: 1,
            low: 1,
            high: most,
            stable: 0,
            window_began: now,
            requests: 0,
            failed: 0,
            draining: false,
            last_window: false,
        }
    }

    /// The number of requests that may be in flight.
    pub(crate) const fn depth(&self) -> u32 {
        self.depth
    }

    /// Whether only the last window is left, or was.
    pub(crate) const fn is_settled(&self) -> bool {
        self.last_window
    }

    /// Takes notice of a request that has ended after `latency`, with `in_flight` others left.
    pub(crate) fn completed(&mut self, now: Nanos, latency: Nanos, in_flight: u32) -> Step {
        if self.draining {
            if in_flight == 0 {
                self.draining = false;
                self.begin_window(now);
            }
            return Step::GoOn;
        }
        self.requests += 1;
        if latency > self.rule.target {
            self.failed += 1;
            if self.rule.share_millionths == 1_000_000 {
                return self.fail();
            }
        }
        if now.saturating_sub(self.window_began) < self.rule.window {
            return Step::GoOn;
        }
        let good = u128::from(self.requests - self.failed) * 1_000_000;
        if good >= u128::from(self.requests) * u128::from(self.rule.share_millionths) {
            return self.succeed(now);
        }
        match self.fail() {
            // A window of a depth of 1 goes on until it succeeds.
            Step::End => Step::GoOn,
            step => step,
        }
    }

    fn begin_window(&mut self, now: Nanos) {
        self.window_began = now;
        self.requests = 0;
        self.failed = 0;
    }

    fn fail(&mut self) -> Step {
        if self.depth == 1 {
            return Step::End;
        }
        self.high = self.depth;
        if self.depth == self.low {
            self.low -= 1;
        }
        self.depth = u32::midpoint(self.depth, self.low).max(1);
        self.stable = 0;
        self.draining = true;
        Step::Drain
    }

    fn succeed(&mut self, now: Nanos) -> Step {
        let before = self.depth;
        self.low = self.depth;
        if self.depth + 1 == self.high {
            self.stable += 1;
            if self.stable >= STABLE {
                self.high += 1;
                self.stable = 0;
            }
        }
        self.depth = if self.high == self.most {
            self.depth.saturating_mul(2)
        } else {
            u32::midpoint(self.depth, self.high)
        };
        self.depth = self.depth.min(self.most);
        self.begin_window(now);
        if self.rule.goes_on || self.depth != before {
            return Step::GoOn;
        }
        if self.last_window {
            return Step::End;
        }
        self.last_window = true;
        self.draining = true;
        Step::Drain
    }
}

#[cfg(test)]
mod tests {
    use super::{DepthSearch, Step};
    use raidlab_units::Nanos;
    use raidlab_workload::LatencyTarget;

    const RULE: LatencyTarget = LatencyTarget {
        target: Nanos::from_millis(10),
        window: Nanos::from_secs(1),
        share_millionths: 900_000,
        goes_on: false,
    };

    /// The depths of the windows of a device that takes `each` for every request in
    /// flight, until the search ends.
    fn windows(rule: LatencyTarget, most: u32, each: Nanos) -> Vec<u32> {
        let mut search = DepthSearch::new(rule, most, Nanos::ZERO);
        let mut now = Nanos::ZERO;
        let mut depths = vec![1];
        for _ in 0..1_000_000 {
            now += each;
            let latency = each * u64::from(search.depth());
            match search.completed(now, latency, 1) {
                Step::End => return depths,
                Step::Drain => {
                    assert_eq!(search.completed(now, latency, 0), Step::GoOn);
                    depths.push(search.depth());
                }
                Step::GoOn if depths.last() != Some(&search.depth()) => {
                    depths.push(search.depth());
                }
                Step::GoOn => {}
            }
        }
        panic!("no end: {depths:?}");
    }

    /// By the rules in fio's io_u.c, by hand: at 1 ms each a depth of 10 keeps 10 ms.
    #[test]
    fn the_depth_doubles_until_it_fails_and_is_then_searched_between() {
        let each = Nanos::from_millis(1);
        assert_eq!(
            windows(RULE, 128, each),
            [1, 2, 4, 8, 16, 12, 10, 11, 10, 10],
            "the last window is one more at the depth that was found"
        );
        assert_eq!(windows(RULE, 8, each), [1, 2, 4, 8, 8]);
    }

    #[test]
    fn all_requests_within_the_target_means_that_one_fails_a_depth() {
        let rule = LatencyTarget {
            share_millionths: 1_000_000,
            ..RULE
        };
        let mut search = DepthSearch::new(rule, 64, Nanos::ZERO);
        let second = Nanos::SECOND;
        assert_eq!(search.completed(second, Nanos(1), 0), Step::GoOn);
        assert_eq!(search.depth(), 2);
        let late = Nanos::from_millis(11);
        assert_eq!(search.completed(second, late, 1), Step::Drain);
        assert_eq!(search.depth(), 1);
        assert_eq!(search.completed(second, late, 0), Step::GoOn, "draining");
        assert_eq!(search.completed(second, late, 0), Step::End, "a depth of 1");
    }
}
