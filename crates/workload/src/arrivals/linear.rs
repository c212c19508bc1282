//! A constant rate: a request is due when the bytes sent before it would be transferred.

use super::ArrivalTimes;
use raidlab_random::Stream;
use raidlab_units::Nanos;

/// Arrivals at a constant rate.
#[derive(Debug, Clone)]
pub struct Times {
    bytes_per_second: u64,
    smallest: u64,
    /// The bytes sent, including time that counts as sent.
    sent: u64,
}

impl ArrivalTimes for Times {
    fn new(bytes_per_second: u64, smallest: u64) -> Self {
        Self {
            bytes_per_second,
            smallest,
            sent: 0,
        }
    }

    fn due(&self) -> Nanos {
        let nanos = u128::from(self.sent) * 1_000_000_000 / u128::from(self.bytes_per_second);
        Nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    fn sent(&mut self, bytes: u64, _random: &mut Stream) {
        self.sent = self.sent.saturating_add(bytes);
    }

    fn skip(&mut self, time: Nanos) {
        let missed = u128::from(self.bytes_per_second) * u128::from(time.0) / 1_000_000_000;
        let missed = u64::try_from(missed).unwrap_or(u64::MAX);
        let missed = missed.saturating_sub(self.smallest);
        self.sent = self.sent.saturating_add(missed);
    }
}
