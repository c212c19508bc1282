//! A Poisson process: the times between two requests are drawn from an exponential
//! distribution. fio rounds its mean down to whole microseconds, and then each drawn time
//! (backend.c, `usec_for_io`). So there are more requests than were asked for: 105,000
//! a second instead of 100,000.

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
    reason = "whole microseconds of a drawn time"
)]
fn exponential(mean_micros: u64, random: &mut Stream) -> Nanos {
    // The draw is above 0, so that the logarithm is finite.
    let draw = ((random.next_u64() >> 11) + 1) as f64 / (1_u64 << 53) as f64;
    Nanos::from_micros((mean_micros as f64 * -draw.ln()) as u64)
}

#[cfg(test)]
mod tests {
    use super::{ArrivalTimes, Times};
    use raidlab_random::Stream;

    /// fio 3.33 (`--ioengine=psync --bs=512 --rate_process=poisson`, 2 s from memory) did 117,118
    /// reads a second with `rate_iops=100k`, and 51,028 with `rate_iops=50000`. A mean of 9 us that
    /// is rounded down each time is one of 8.51 us.
    #[test]
    fn each_time_is_rounded_down_as_fio_does() {
        for (asked, least, most) in [
            (102_400, 116_500.0, 118_500.0),
            (50_000, 50_800.0, 51_700.0),
        ] {
            let mut times = Times::new(asked * 512, 512);
            let mut random = Stream::new(7);
            for _ in 0..200_000 {
                times.sent(512, &mut random);
            }
            let rate = 200_000.0 / (times.due().0 as f64 / 1e9);
            assert!((least..most).contains(&rate), "{asked}: {rate}");
        }
    }
}
