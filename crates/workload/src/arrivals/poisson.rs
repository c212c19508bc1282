//! A Poisson process: the times between two requests are drawn from an exponential
//! distribution, whose mean fio rounds down to whole microseconds (io_u.c,
//! `usec_for_io`).

use super::ArrivalTimes;
use raidlab_random::Stream;
use raidlab_units::Nanos;

/// Arrival times of a Poisson process, as fio draws them.
#[derive(Debug, Clone)]
pub struct Times {
    mean_micros: u64,
    next: Nanos,
}

impl ArrivalTimes for Times {
    fn new(bytes_per_second: u64, smallest: u64) -> Self {
        let requests = (bytes_per_second / smallest).max(1);
        Self {
            mean_micros: 1_000_000 / requests,
            next: Nanos::ZERO,
        }
    }

    fn due(&self) -> Nanos {
        self.next
    }

    fn sent(&mut self, _bytes: u64, random: &mut Stream) {
        self.next += exponential(self.mean_micros, random);
    }

    fn skip(&mut self, time: Nanos) {
        self.next += time;
    }
}

/// A time drawn from an exponential distribution of this mean, microseconds.
#[expect(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "whole nanoseconds of a drawn time"
)]
fn exponential(mean_micros: u64, random: &mut Stream) -> Nanos {
    // The draw is above 0, so that the logarithm is finite.
    let draw = ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    Nanos((mean_micros as f64 * 1000.0 * -draw.ln()) as u64)
}
