//! When a job with a `runtime` stops.
//!
//! fio compares a cached time with the runtime before each request, in
//! `do_io` of backend.c. `update_ts_cache` (2.1: `update_tv_cache`) adds one
//! to a counter and refreshes the cache where the counter, masked, equals the
//! mask. The mask is 0 by default, so the clock is read before each request;
//! `gtod_reduce=1` sets it to 63 (options.c), so the clock is read when the
//! counter is 63, 127, ... The request that this turn would have issued is not
//! issued, so a job that stops by time has issued n requests with
//! n % 64 == 62, flushes included. Each clone has a counter of its own: the
//! total plus twice the number of clones is a multiple of 64. On a slow disk
//! the last requests of a clone run long after the time asked for.

use crate::job::JobSpec;
use raidlab_units::Nanos;

/// The counter's mask under `gtod_reduce=1`.
const REDUCED_MASK: u64 = 63;

/// The stop rule of one clone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StopClock {
    deadline: Option<Nanos>,
    mask: u64,
    asked: u64,
    stopped: bool,
}

impl StopClock {
    /// The rule for one clone of `job` that started at `started`. Ramp time
    /// comes on top of the runtime.
    #[must_use]
    pub fn new(job: &JobSpec, started: Nanos) -> Self {
        let after = |time: Nanos| {
            Nanos(
                started
                    .0
                    .saturating_add(job.ramp_time.0)
                    .saturating_add(time.0),
            )
        };
        Self {
            // fio takes a runtime of 0 for none.
            deadline: job.runtime.filter(|&time| time > Nanos::ZERO).map(after),
            mask: if job.reduced_clock { REDUCED_MASK } else { 0 },
            asked: 0,
            stopped: false,
        }
    }

    /// Whether the clone may issue a request at `now`. To be asked once before
    /// each request, flushes included: it counts. Once false, always false.
    #[inline]
    pub fn may_issue(&mut self, now: Nanos) -> bool {
        self.asked += 1;
        if self.asked & self.mask == self.mask {
            self.stopped |= self.deadline.is_some_and(|deadline| now >= deadline);
        }
        !self.stopped
    }
}
