//! Steady state: when the rounds of a test have stopped changing.
//!
//! SNIA, Solid State Storage Performance Test Specification: over a window of
//! five rounds, the largest value less the smallest is at most 20 % of the
//! average, and the best straight line changes over the window by at most
//! 10 % of the average. At most 25 rounds; then steady state was not reached.
//! Both limits are inclusive.
//!
//! With n values y at x = 0, 1, ... n-1 and c = 2x - (n-1), the line changes
//! over the window by slope (n-1) = 6 sum(c y) / (n (n+1)). Both tests are
//! multiplied out, so that whole numbers are compared exactly at the limit:
//! `100 n (max - min) <= 20 sum(y)` and
//! `600 |sum(c y)| <= 10 (n+1) sum(y)`.
//!
//! fio's `steadystate=` differs (fio 3, steadystate.c): `iops_slope:L%` tests
//! the slope per sample, not over the window, so its equivalent of 10 % is
//! 10 / (n-1) per cent for n = `ss_dur` / `ss_interval` samples; `iops:L%` tests the
//! largest distance from the mean. Both are strict: a value on the limit does
//! not pass.

use crate::sample::{SampleError, usable};

/// The limits of the window test.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyCriteria {
    /// Rounds in the window, 2 or more (fewer are taken as 2).
    pub window_rounds: usize,
    /// Rounds after which to give up; fewer than the window are taken as the
    /// window.
    pub most_rounds: usize,
    /// Largest less smallest value, per cent of the average.
    pub excursion_percent: f64,
    /// Change of the best straight line over the window, per cent of the
    /// average, up or down.
    pub slope_percent: f64,
}

impl SteadyCriteria {
    /// SNIA's limits: 5 rounds of at most 25, 20 % and 10 %.
    pub const SNIA: Self = Self {
        window_rounds: 5,
        most_rounds: 25,
        excursion_percent: 20.0,
        slope_percent: 10.0,
    };

    fn window_rounds(&self) -> usize {
        self.window_rounds.max(2)
    }

    fn most_rounds(&self) -> usize {
        self.most_rounds.max(self.window_rounds())
    }
}

/// A window and whether it passes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Window {
    /// Average of the values.
    pub average: f64,
    /// Largest less smallest value, as a fraction of the average; 0 when the
    /// average is not above zero.
    pub excursion: f64,
    /// Change of the best straight line over the window, as a fraction of the
    /// average, with its sign; 0 when the average is not above zero.
    pub slope_excursion: f64,
    /// True when the excursion is within its limit.
    pub excursion_holds: bool,
    /// True when the slope is within its limit.
    pub slope_holds: bool,
}

impl Window {
    /// True when both limits hold.
    #[must_use]
    pub fn is_steady(&self) -> bool {
        self.excursion_holds && self.slope_holds
    }
}

/// How a steady-state test ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SteadyReport {
    /// True when steady state was reached, false when the rounds ran out.
    pub achieved: bool,
    /// Rounds run; the last of them is the last of the window.
    pub rounds: usize,
    /// The window over the last rounds, on which the answer rests.
    pub window: Window,
}

/// Judges the `values` of one window, of any length from 2, finite. An
/// average not above zero is never steady.
///
/// # Errors
/// Fewer than two values ([`SampleError::Empty`]), or one not usable.
pub fn window(values: &[f64], criteria: &SteadyCriteria) -> Result<Window, SampleError> {
    if let Some(index) = values.iter().position(|&value| !usable(value)) {
        let value = values[index];
        return Err(SampleError::NotFinite { index, value });
    }
    if values.len() < 2 {
        return Err(SampleError::Empty);
    }
    Ok(judge(values, criteria))
}

/// [`window`] of two or more usable values.
fn judge(values: &[f64], criteria: &SteadyCriteria) -> Window {
    let count = values.len() as f64;
    let sum: f64 = values.iter().sum();
    let (range, moment) = (range(values), moment(values));
    let positive = sum > 0.0;
    let part = |numerator: f64, denominator: f64| {
        if positive {
            numerator / denominator
        } else {
            0.0
        }
    };
    Window {
        average: sum / count,
        excursion: part(count * range, sum),
        slope_excursion: part(6.0 * moment, (count + 1.0) * sum),
        excursion_holds: positive && 100.0 * count * range <= criteria.excursion_percent * sum,
        slope_holds: positive
            && 600.0 * moment.abs() <= criteria.slope_percent * (count + 1.0) * sum,
    }
}

fn range(values: &[f64]) -> f64 {
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    high - low
}

/// sum(c y) with c = 2x - (n-1).
fn moment(values: &[f64]) -> f64 {
    let last = values.len() as f64 - 1.0;
    let terms = values.iter().enumerate();
    terms.map(|(x, y)| (2.0 * x as f64 - last) * y).sum()
}

/// The test as rounds come in.
#[derive(Debug, Clone, PartialEq)]
pub struct SteadyState {
    criteria: SteadyCriteria,
    /// The last rounds, at most a window of them.
    recent: Vec<f64>,
    rounds: usize,
    report: Option<SteadyReport>,
}

impl SteadyState {
    /// A test that has seen no round yet.
    #[must_use]
    pub fn new(criteria: SteadyCriteria) -> Self {
        Self {
            criteria,
            recent: Vec::new(),
            rounds: 0,
            report: None,
        }
    }

    /// Takes the tracking variable of the next round. Gives the report once
    /// the test has ended; later rounds are ignored and get the same report.
    ///
    /// # Errors
    /// When `value` is not usable; its index is that of the round, from 0.
    /// The round does not count.
    pub fn push(&mut self, value: f64) -> Result<Option<SteadyReport>, SampleError> {
        if self.report.is_some() {
            return Ok(self.report);
        }
        if !usable(value) {
            let index = self.rounds;
            return Err(SampleError::NotFinite { index, value });
        }
        let size = self.criteria.window_rounds();
        if self.recent.len() == size {
            self.recent.remove(0);
        }
        self.recent.push(value);
        self.rounds += 1;
        if self.recent.len() == size {
            let window = judge(&self.recent, &self.criteria);
            if window.is_steady() || self.rounds >= self.criteria.most_rounds() {
                self.report = Some(SteadyReport {
                    achieved: window.is_steady(),
                    rounds: self.rounds,
                    window,
                });
            }
        }
        Ok(self.report)
    }

    /// The report, once the test has ended.
    #[must_use]
    pub fn report(&self) -> Option<SteadyReport> {
        self.report
    }
}

/// The test over rounds already run: the report at the first steady window,
/// or when the rounds ran out; `None` when more rounds are needed.
///
/// # Errors
/// When a round before the end of the test is not usable.
pub fn first_steady(
    rounds: &[f64],
    criteria: &SteadyCriteria,
) -> Result<Option<SteadyReport>, SampleError> {
    let mut state = SteadyState::new(*criteria);
    for &round in rounds {
        if state.push(round)?.is_some() {
            break;
        }
    }
    Ok(state.report())
}

/// The limit to give fio's `iops_slope:L%` or `bw_slope:L%` for SNIA's slope
/// over `samples` samples: 10 / (samples - 1). `None` below two samples.
#[must_use]
pub fn fio_slope_limit_percent(samples: usize) -> Option<f64> {
    (samples > 1).then(|| SteadyCriteria::SNIA.slope_percent / (samples as f64 - 1.0))
}

/// fio's `iops_slope:L%` over a full buffer: |slope per sample| / mean x 100
/// below `limit_percent`. False for unusable values and means not above zero.
#[must_use]
pub fn fio_slope_holds(values: &[f64], limit_percent: f64) -> bool {
    window(values, &SteadyCriteria::SNIA).is_ok_and(|found| {
        let per_sample = found.slope_excursion.abs() / (values.len() as f64 - 1.0);
        found.average > 0.0 && 100.0 * per_sample < limit_percent
    })
}

/// fio's `iops:L%` over a full buffer: the largest distance from the mean,
/// over the mean x 100, below `limit_percent`. False as above.
#[must_use]
pub fn fio_deviation_holds(values: &[f64], limit_percent: f64) -> bool {
    window(values, &SteadyCriteria::SNIA).is_ok_and(|found| {
        let distances = values.iter().map(|value| (value - found.average).abs());
        let largest = distances.fold(0.0, f64::max);
        found.average > 0.0 && 100.0 * largest / found.average < limit_percent
    })
}

#[cfg(test)]
mod tests;
