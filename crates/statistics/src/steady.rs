//! Steady state: when the rounds of a test have stopped changing.
//!
//! SNIA, Solid State Storage Performance Test Specification: over a window of five rounds, the
//! largest value less the smallest is at most 20 % of the average, and the best straight line
//! changes over the window by at most 10 % of the average. Both limits are inclusive. The caller
//! limits the number of rounds.
//!
//! With n values y at x = 0, 1, ... n-1 and c = 2x - (n-1), the line changes
//! over the window by slope (n-1) = 6 sum(c y) / (n (n+1)). Both tests are
//! multiplied out, so that whole numbers are compared exactly at the limit:
//! `100 n (max - min) <= 20 sum(y)` and
//! `600 |sum(c y)| <= 10 (n+1) sum(y)`.

use crate::sample::{SampleError, usable};

/// The number of rounds in a window.
const WINDOW: usize = 5;
/// The largest less the smallest value, per cent of the average.
const EXCURSION_PERCENT: f64 = 20.0;
/// The change of the best straight line over the window, per cent of the average, up or down.
const SLOPE_PERCENT: f64 = 10.0;

/// Whether both limits hold. An average not above zero is never steady.
fn is_steady(values: &[f64]) -> bool {
    let count = values.len() as f64;
    let sum: f64 = values.iter().sum();
    let low = values.iter().copied().fold(f64::INFINITY, f64::min);
    let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let terms = values.iter().enumerate();
    let moment: f64 = terms
        .map(|(x, y)| (2.0 * x as f64 - (count - 1.0)) * y)
        .sum();
    sum > 0.0
        && 100.0 * count * (high - low) <= EXCURSION_PERCENT * sum
        && 600.0 * moment.abs() <= SLOPE_PERCENT * (count + 1.0) * sum
}

/// The test for steady state, fed round by round.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SteadyState {
    /// The last rounds, at most a window of them.
    recent: Vec<f64>,
    rounds: usize,
}

impl SteadyState {
    /// Takes the tracking variable of the next round, and returns whether the last five are steady.
    ///
    /// # Errors
    /// When `value` is not finite or too large; its index is that of the round, from 0. The round
    /// does not count.
    pub fn push(&mut self, value: f64) -> Result<bool, SampleError> {
        if !usable(value) {
            let index = self.rounds;
            return Err(SampleError::NotFinite { index, value });
        }
        if self.recent.len() == WINDOW {
            self.recent.remove(0);
        }
        self.recent.push(value);
        self.rounds += 1;
        Ok(self.recent.len() == WINDOW && is_steady(&self.recent))
    }
}

#[cfg(test)]
mod tests;
