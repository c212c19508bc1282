//! The time of requests, shared out to the places where it goes.
//!
//! A request's time is that from its submission to the moment at which its job knows of its end. At
//! each moment there are so many requests, and so many things go on: cores compute, spin or change
//! threads, threads wait for a core, commands wait for a disk or are somewhere in it. The time of
//! all requests between two events is shared out to the places where something goes on, in
//! proportion to how much goes on there. So the places' times add up exactly to the time of all
//! requests. At queue depth 1, where one thing goes on after the other, each place has the time
//! that was spent there. With many requests a place has the more time the more of them it keeps
//! waiting: the bottleneck has most.
//!
//! Work for others counts as well: while an array is rebuilt, the commands of the rebuild are what
//! requests wait for. Where nothing goes on, the array holds the requests back.

use crate::processor::Place;
use raidlab_units::Nanos;

/// The amount of work at each of the places where time goes.
pub(crate) type Counts = [usize; PLACES];

/// The number of all places: those of the processor first, by its own numbers.
pub(crate) const PLACES: usize = THREAD + ELSEWHERE.len();

/// The places that are not a core's.
const ELSEWHERE: [&str; 7] = [
    "thread",
    "array thread",
    "host queue",
    "controller",
    "link",
    "buffer",
    "medium",
];
/// The number of the first place that is not a core's.
pub(crate) const THREAD: usize = Place::ALL.len();
/// The place of stripes that wait for the array's thread or a worker, and of tasks that wait
/// for a pool's.
pub(crate) const ARRAY_THREAD: usize = THREAD + 1;
pub(crate) const HOST_QUEUE: usize = THREAD + 2;
pub(crate) const CONTROLLER: usize = THREAD + 3;
pub(crate) const LINK: usize = THREAD + 4;
pub(crate) const BUFFER: usize = THREAD + 5;
pub(crate) const MEDIUM: usize = THREAD + 6;

/// The place of time in which nothing works for a request, as when a barrier or a pause holds it.
const HELD: &str = "held back";

/// The time of requests by place, as it is reported.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Explained {
    /// The number of requests that have ended.
    pub requests: u64,
    /// The time of all requests, ended or not, by place; only places with some time.
    pub places: Vec<(&'static str, Nanos)>,
}

/// The sums of time while jobs run.
#[derive(Debug, Default)]
pub(crate) struct Explain {
    /// The number of requests that have not ended.
    in_flight: u64,
    ended: u64,
    last: Nanos,
    /// The time of requests at each place, in thousandths of a nanosecond.
    spent: [u128; PLACES],
    held: u128,
}

impl Explain {
    /// Starts anew as a job begins, with nothing in flight and nothing counted.
    pub(crate) fn begin(&mut self, now: Nanos) {
        *self = Self {
            last: now,
            ..Self::default()
        };
    }

    pub(crate) const fn submitted(&mut self) {
        self.in_flight += 1;
    }

    pub(crate) const fn ended(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.ended += 1;
    }

    /// Shares out the time from the last call to `now` by `counts`, which say how much
    /// went on meanwhile.
    pub(crate) fn pass(&mut self, now: Nanos, counts: impl FnOnce() -> Counts) {
        let time = now.saturating_sub(self.last);
        self.last = self.last.max(now);
        if time == Nanos::ZERO || self.in_flight == 0 {
            return;
        }
        let all = u128::from(time.0) * u128::from(self.in_flight) * 1000;
        let counts = counts();
        let total: usize = counts.iter().sum();
        if total == 0 {
            self.held += all;
            return;
        }
        for (spent, count) in self.spent.iter_mut().zip(counts) {
            *spent += all * count as u128 / total as u128;
        }
    }

    pub(crate) fn explained(&self) -> Explained {
        let names = Place::ALL.into_iter().map(|(_, name)| name);
        let spent = names.chain(ELSEWHERE).zip(self.spent);
        let places = spent.chain([(HELD, self.held)]);
        let time = |sum: u128| Nanos(u64::try_from(sum / 1000).unwrap_or(u64::MAX));
        Explained {
            requests: self.ended,
            places: places
                .map(|(name, sum)| (name, time(sum)))
                .filter(|place| place.1 > Nanos::ZERO)
                .collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{CONTROLLER, Counts, Explain, MEDIUM, PLACES};
    use raidlab_units::Nanos;

    /// By hand: two requests for 300 ns while three things go on, one for 100 ns more while
    /// nothing does.
    #[test]
    fn the_time_of_requests_is_shared_out_whole() {
        let mut explain = Explain::default();
        explain.begin(Nanos(50));
        explain.submitted();
        explain.submitted();
        let mut counts: Counts = [0; PLACES];
        counts[CONTROLLER] = 1;
        counts[MEDIUM] = 2;
        explain.pass(Nanos(350), || counts);
        explain.ended();
        explain.pass(Nanos(450), || [0; PLACES]);
        explain.ended();
        explain.pass(Nanos(999), || counts);
        let found = explain.explained();
        assert_eq!(found.requests, 2);
        let expected = [("controller", 200), ("medium", 400), ("held back", 100)];
        assert_eq!(
            found.places,
            expected.map(|(name, time)| (name, Nanos(time)))
        );
    }
}
