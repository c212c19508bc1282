//! The stop rule of a job with a `runtime`.
//!
//! fio compares a cached time with the runtime before each request, in `do_io` of backend.c.
//! `update_ts_cache` (2.1: `update_tv_cache`) adds one to a counter and refreshes the cache where
//! the counter, masked, equals the mask. The mask is 0 by default, so the clock is read before each
//! request; `gtod_reduce=1` sets it to 63 (options.c), so the clock is read when the counter is 63,
//! 127, ... The request of that turn is not issued, so a job that stops by time has issued n
//! requests with n % 64 == 62, flushes included. Each clone has a counter of its own: the total
//! plus twice the number of clones is a multiple of 64. On a slow disk the last requests of a clone
//! run long after the requested time.

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
    /// Creates the rule for one clone of `job` that started at `started`. Ramp time is added
    /// to the runtime.
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
            // fio takes a runtime of 0 for no runtime.
            deadline: job.runtime.filter(|&time| time > Nanos::ZERO).map(after),
            mask: if job.reduced_clock { REDUCED_MASK } else { 0 },
            asked: 0,
            stopped: false,
        }
    }

    /// `time`, or the end of the runtime if that is earlier.
    #[must_use]
    pub fn no_later(&self, time: Nanos) -> Nanos {
        self.deadline.map_or(time, |deadline| deadline.min(time))
    }

    /// Whether the clone may issue a request at `now`. To be called exactly once before each
    /// request, flushes included, as it counts them. Once false, always false.
    #[inline]
    pub fn may_issue(&mut self, now: Nanos) -> bool {
        self.asked += 1;
        if self.asked & self.mask == self.mask {
            self.stopped |= self.deadline.is_some_and(|deadline| now >= deadline);
        }
        !self.stopped
    }
}

#[cfg(test)]
mod tests {
    use super::StopClock;
    use crate::job::JobSpec;
    use proptest::prelude::*;
    use raidlab_units::Nanos;

    fn job(runtime: Option<Nanos>, reduced_clock: bool) -> JobSpec {
        JobSpec {
            runtime,
            reduced_clock,
            ..JobSpec::default()
        }
    }

    /// Requests that a clone issues at one every `interval`, from time 0.
    fn issued(job: &JobSpec, interval: Nanos) -> u64 {
        let mut clock = StopClock::new(job, Nanos::ZERO);
        let mut count = 0;
        while clock.may_issue(interval * count) {
            count += 1;
        }
        count
    }

    /// One-clone, one-deep jobs of 60 s on two mirrored WD4000FYYZ: requests
    /// issued and the run time in milliseconds, from the fio 2.1.9 and 2.1.11
    /// logs of the geomflash comparison of 2015 (jobs 1, 5 and 6 on md, gflash
    /// and gmirror). Their pace is steady, so the count follows exactly.
    const STEADY: [(u64, u64); 9] = [
        (10_814, 60_057),
        (10_878, 60_289),
        (5_246, 60_128),
        (10_750, 60_015),
        (10_686, 60_106),
        (6_270, 60_289),
        (10_814, 60_161),
        (10_942, 60_153),
        (5_310, 60_274),
    ];

    #[test]
    fn the_count_of_a_steady_job_follows_from_its_pace() {
        let job = job(Some(Nanos::from_secs(60)), true);
        for (count, run_ms) in STEADY {
            let interval = Nanos::from_millis(run_ms) / count;
            assert_eq!(issued(&job, interval), count);
        }
    }

    /// Every job of the same logs that ended by time: clones and the requests
    /// that they issued together.
    const ENDED_BY_TIME: [(u64, &[u64]); 10] = [
        (
            1,
            &[
                10814, 10878, 5246, 10558, 10942, 12030, 13246, 14142, 15358, 16446, 17662, 18686,
                14334, 10430, 13374, 17022, 19454, 19582, 19390, 18622, 6270, 6270, 10750, 10686,
                6270, 10814, 10942, 5310, 576_766, 2366, 3326,
            ],
        ),
        (2, &[10620, 8828, 7100]),
        (3, &[11578, 10298, 7418]),
        (4, &[12856, 11704, 8824]),
        (6, &[14644, 13300, 9460]),
        (8, &[15856, 14256, 10480]),
        (12, &[17384, 15656, 10792]),
        (16, &[18912, 16672, 11872]),
        (24, &[20432, 18384, 10960]),
        (
            32,
            &[
                22016, 17152, 11648, 13440, 16000, 19776, 21504, 21312, 21312, 8064, 7936, 20032,
                16512, 11264, 11328, 11392, 10944, 11264, 11328, 11328, 4096, 4160, 11264, 13824,
                4096, 4032, 4032, 4032, 4032, 4032, 4032, 1984, 1984,
            ],
        ),
    ];

    #[test]
    fn every_measured_count_is_one_that_the_rule_allows() {
        let job = job(Some(Nanos::from_secs(60)), true);
        let mut rows = 0;
        for (clones, counts) in ENDED_BY_TIME {
            for &measured in counts {
                // Clones of different pace around the measured mean.
                let mean = Nanos::from_secs(60) * clones / measured;
                let modelled: u64 = (0..clones)
                    .map(|clone| issued(&job, mean + mean * clone / 100))
                    .sum();
                assert_eq!(measured % 64, modelled % 64, "{clones} clones, {measured}");
                rows += 1;
            }
        }
        assert_eq!(rows, 88);
    }

    #[test]
    fn ramp_time_comes_on_top() {
        let with_ramp = JobSpec {
            ramp_time: Nanos::from_secs(5),
            ..job(Some(Nanos::from_secs(10)), false)
        };
        let mut clock = StopClock::new(&with_ramp, Nanos::from_secs(100));
        assert!(clock.may_issue(Nanos(114_999_999_999)));
        assert!(!clock.may_issue(Nanos::from_secs(115)));
        assert!(
            !clock.may_issue(Nanos::from_secs(100)),
            "once stopped, stopped"
        );
    }

    #[test]
    fn without_a_runtime_nothing_stops() {
        for runtime in [None, Some(Nanos::ZERO)] {
            let mut clock = StopClock::new(&job(runtime, false), Nanos::ZERO);
            assert!(clock.may_issue(Nanos::MAX));
        }
    }

    proptest! {
        #[test]
        fn the_last_request_is_the_first_allowed_after_the_runtime(
            interval in 1_000_000_u64..100_000_000,
            runtime_ms in 1_u64..5_000,
        ) {
            let runtime = Nanos::from_millis(runtime_ms);
            let exact = issued(&job(Some(runtime), false), Nanos(interval));
            prop_assert_eq!(exact, runtime.0.div_ceil(interval));
            let reduced = issued(&job(Some(runtime), true), Nanos(interval));
            prop_assert_eq!(reduced % 64, 62);
            prop_assert!(reduced >= exact && reduced < exact + 64);
        }
    }
}
