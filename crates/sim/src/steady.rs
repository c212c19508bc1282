//! Jobs that end when they run evenly.
//!
//! They are fio's `steadystate` (steadystate.c): at each check interval the requests or bytes a
//! second, or the mean latency, of the interval joins a window as long as `steadystate_duration`.
//! When the window is full, the largest distance from its mean, or the slope of the line through it
//! by least squares, per interval, is compared with the limit; below it the job ends. The time at
//! the start that is not looked at ends with an interval.

use raidlab_units::Nanos;
use raidlab_workload::{SteadyMeasure, SteadyState};
use std::collections::VecDeque;

/// The operations of clones so far.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Done {
    pub(crate) ios: u64,
    pub(crate) bytes: u64,
    /// The sum of the latencies, in nanoseconds.
    pub(crate) latency: u128,
}

impl Done {
    pub(crate) const fn plus(self, other: Self) -> Self {
        Self {
            ios: self.ios + other.ios,
            bytes: self.bytes + other.bytes,
            latency: self.latency + other.latency,
        }
    }
}

/// A watch over clones that are looked at together.
#[derive(Debug)]
pub(crate) struct SteadyWatch {
    pub(crate) rule: SteadyState,
    /// The places of the clones among all.
    pub(crate) clones: std::ops::Range<usize>,
    begun: Nanos,
    before: Done,
    window: VecDeque<u64>,
    pub(crate) attained: bool,
    pub(crate) criterion: Option<f64>,
}

impl SteadyWatch {
    pub(crate) fn new(rule: SteadyState, clones: std::ops::Range<usize>, begun: Nanos) -> Self {
        Self {
            rule,
            clones,
            begun,
            before: Done::default(),
            window: VecDeque::new(),
            attained: false,
            criterion: None,
        }
    }

    /// Begins the watch at `begun`, with the operations done by now.
    pub(crate) fn begin(&mut self, begun: Nanos, done: Done) {
        self.begun = begun;
        self.before = done;
    }

    /// Closes an interval with the operations done by now; returns true where the
    /// clones run evenly.
    pub(crate) fn check(&mut self, now: Nanos, done: Done) -> bool {
        let before = std::mem::replace(&mut self.before, done);
        let ramp = self.rule.ramp_time;
        if ramp > Nanos::ZERO && now.saturating_sub(self.begun) < ramp + self.rule.interval {
            return false;
        }
        self.window.push_back(self.sample(before, done));
        let full = usize::try_from(self.rule.duration.0 / self.rule.interval.0).unwrap_or(1);
        if self.window.len() > full {
            self.window.pop_front();
        }
        if self.window.len() < full {
            return false;
        }
        let criterion = self.look();
        self.criterion = Some(criterion);
        self.attained = criterion.abs() < to_float(self.rule.limit_millionths) / 1e6;
        self.attained
    }

    /// The value of an interval: requests or bytes a second, or the mean latency in nanoseconds.
    fn sample(&self, before: Done, done: Done) -> u64 {
        let a_second = |count: u64| {
            let count = u128::from(count) * u128::from(Nanos::SECOND.0);
            u64::try_from(count / u128::from(self.rule.interval.0)).unwrap_or(u64::MAX)
        };
        match self.rule.measure {
            SteadyMeasure::Iops => a_second(done.ios - before.ios),
            SteadyMeasure::Bandwidth => a_second(done.bytes - before.bytes),
            SteadyMeasure::Latency => {
                let ios = u128::from(done.ios - before.ios).max(1);
                u64::try_from((done.latency - before.latency) / ios).unwrap_or(u64::MAX)
            }
        }
    }

    /// Returns the slope of the window or the largest distance from its mean.
    fn look(&self) -> f64 {
        let values = || self.window.iter().map(|&value| to_float(value));
        let count = to_float(self.window.len() as u64);
        let mean = values().sum::<f64>() / count;
        let criterion = if self.rule.slope {
            let middle = (count - 1.0) / 2.0;
            let places = || (0..self.window.len() as u64).map(|place| to_float(place) - middle);
            let rise: f64 = places().zip(values()).map(|(x, y)| x * y).sum();
            rise / places().map(|x| x * x).sum::<f64>()
        } else {
            values()
                .map(|value| (value - mean).abs())
                .fold(0.0, f64::max)
        };
        if self.rule.in_percent && mean > 0.0 {
            100.0 * criterion / mean
        } else {
            criterion
        }
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "rates and latencies, far below 2^53"
)]
const fn to_float(number: u64) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::{Done, SteadyWatch};
    use raidlab_units::Nanos;
    use raidlab_workload::{SteadyMeasure, SteadyState};

    /// Feeds requests a second, one interval each; after how many it is even.
    fn attained(rule: SteadyState, rates: &[u64]) -> Option<usize> {
        let mut watch = SteadyWatch::new(rule, 0..1, Nanos::ZERO);
        let mut done = Done::default();
        for (index, &rate) in rates.iter().enumerate() {
            done.ios += rate;
            done.bytes += rate * 4096;
            done.latency += u128::from(rate) * 1_000;
            if watch.check(Nanos::from_secs(index as u64 + 1), done) {
                return Some(index + 1);
            }
        }
        assert!(!watch.attained);
        None
    }

    const RULE: SteadyState = SteadyState {
        measure: SteadyMeasure::Iops,
        slope: false,
        limit_millionths: 10_000_000,
        in_percent: true,
        duration: Nanos::from_secs(4),
        ramp_time: Nanos::ZERO,
        interval: Nanos::SECOND,
    };

    #[test]
    fn an_even_window_ends_it_and_an_uneven_one_does_not() {
        // Mean 100, largest distance 8 %, in the window of the last four.
        let rates = [200, 150, 100, 108, 97, 95, 100];
        assert_eq!(attained(RULE, &rates), Some(6));
        let bandwidth = SteadyState {
            measure: SteadyMeasure::Bandwidth,
            ..RULE
        };
        assert_eq!(attained(bandwidth, &rates), Some(6));
        assert_eq!(attained(RULE, &[100, 100, 100]), None, "never full");
    }

    #[test]
    fn time_at_the_start_is_not_looked_at() {
        let ramp = SteadyState {
            ramp_time: Nanos::from_secs(3),
            ..RULE
        };
        assert_eq!(attained(ramp, &[100; 20]), Some(7));
    }

    /// The line through 100, 104, 108, 112 rises by 4 an interval: 3.8 % of 106.
    #[test]
    fn the_slope_is_that_of_the_line_by_least_squares() {
        let slope = |limit_millionths| SteadyState {
            slope: true,
            limit_millionths,
            ..RULE
        };
        let rates = [100, 104, 108, 112];
        assert_eq!(attained(slope(3_800_000), &rates), Some(4));
        assert_eq!(attained(slope(3_700_000), &rates), None);
        let falling = [112, 108, 104, 100];
        assert_eq!(attained(slope(3_700_000), &falling), None);
    }

    #[test]
    fn a_latency_that_stays_is_even_whatever_the_rate_does() {
        let latency = SteadyState {
            measure: SteadyMeasure::Latency,
            in_percent: false,
            limit_millionths: 1_000_000,
            ..RULE
        };
        assert_eq!(attained(latency, &[1, 1000, 5, 70]), Some(4));
    }
}
