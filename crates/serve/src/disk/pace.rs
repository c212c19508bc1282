//! The model's events and the arrivals, in the order of their times.
//!
//! There is no clock here: arrivals come with their stamps, and [`Pace::advance`] is told the
//! time. It may be called late by any amount; as long as every arrival stamped before a modelled
//! event is passed in before the model is advanced to it, the model decides as if it had been
//! called in time.

use raidlab_disk::{Command, Completion, Disk, HostQueue, QueueRules};
use raidlab_units::Nanos;
use std::collections::VecDeque;

/// A request whose modelled time has come.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Done<P> {
    /// The time when the request arrived, on the disk's clock.
    pub(super) arrived: Nanos,
    /// The time when the model completed the request, on the disk's clock.
    pub(super) due: Nanos,
    /// The payload that came with the request.
    pub(super) payload: P,
}

struct Flight<P> {
    arrived: Nanos,
    payload: P,
}

/// A disk behind the queue of its host, and the requests that are due.
pub(super) struct Pace<P> {
    queue: HostQueue,
    /// Arrivals that the model has not processed yet, oldest first.
    ahead: VecDeque<(Nanos, Command)>,
    flights: Vec<Option<Flight<P>>>,
    free: Vec<usize>,
    due: VecDeque<Done<P>>,
    completions: Vec<Completion>,
    /// The time up to which the model has run.
    position: Nanos,
}

impl<P> Pace<P> {
    pub(super) fn new(disk: Disk, rules: QueueRules) -> Self {
        Self {
            queue: HostQueue::new(disk.into(), rules),
            ahead: VecDeque::new(),
            flights: Vec::new(),
            free: Vec::new(),
            due: VecDeque::new(),
            completions: Vec::new(),
            position: Nanos::ZERO,
        }
    }

    /// Takes an arrival and gives it a tag. Threads that submit may stamp and send in different
    /// orders: a stamp before that of the previous arrival counts as equal to it.
    pub(super) fn arrive(&mut self, at: Nanos, command: Command, payload: P) {
        let last = self.ahead.back().map_or(self.position, |(last, _)| *last);
        let at = at.max(last);
        let flight = Some(Flight {
            arrived: at,
            payload,
        });
        let tag = match self.free.pop() {
            Some(tag) => {
                self.flights[tag] = flight;
                tag
            }
            None => {
                self.flights.push(flight);
                self.flights.len() - 1
            }
        };
        let tag = tag as u64;
        self.ahead.push_back((at, Command { tag, ..command }));
    }

    /// Whether no request is under way.
    pub(super) fn is_empty(&self) -> bool {
        self.free.len() == self.flights.len() && self.due.is_empty()
    }

    /// Returns the time when [`Self::advance`] has something to do.
    pub(super) fn next_event(&self) -> Option<Nanos> {
        let event = self.queue.next_event();
        let arrival = self.ahead.front().map(|(at, _)| *at);
        [event, arrival].into_iter().flatten().min()
    }

    /// Runs the model up to `now`. Returns a request that has completed by then, in the order of
    /// completion; `None` when there are no more.
    pub(super) fn advance(&mut self, now: Nanos) -> Option<Done<P>> {
        while self.due.is_empty() {
            let next = self.next_event().filter(|&next| next <= now)?;
            self.position = self.position.max(next);
            if let Some(&(at, command)) = self.ahead.front()
                && self.queue.next_event().is_none_or(|event| at < event)
            {
                self.ahead.pop_front();
                self.queue.submit(at, command);
            } else {
                self.play(next);
            }
        }
        self.due.pop_front()
    }

    fn play(&mut self, at: Nanos) {
        let mut completions = std::mem::take(&mut self.completions);
        self.queue.advance(at, &mut completions);
        for completion in completions.drain(..) {
            let tag = usize::try_from(completion.tag).unwrap_or(usize::MAX);
            if let Some(flight) = self.flights.get_mut(tag).and_then(Option::take) {
                self.free.push(tag);
                self.due.push_back(Done {
                    arrived: flight.arrived,
                    due: at,
                    payload: flight.payload,
                });
            }
        }
        self.completions = completions;
    }
}

/// Statistics of how well modelled times were kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Punctuality {
    /// The number of requests answered.
    pub requests: u64,
    /// The number of those answered within 2 % of the modelled service time or 100 us,
    /// whichever is more.
    pub within: u64,
    /// The greatest delay of an answer behind its modelled time.
    pub worst_lateness: Nanos,
    /// The sum of all answers' delays behind their modelled times.
    pub total_lateness: Nanos,
}

impl Punctuality {
    /// Counts a request that was due at `due` and answered at `answered`, which is never earlier.
    pub(super) fn count(&mut self, arrived: Nanos, due: Nanos, answered: Nanos) {
        let lateness = Nanos(answered.0.saturating_sub(due.0));
        let service = due.0.saturating_sub(arrived.0);
        self.requests += 1;
        self.within += u64::from(lateness.0 <= (service / 50).max(100_000));
        self.worst_lateness = self.worst_lateness.max(lateness);
        self.total_lateness += lateness;
    }

    /// Returns the mean delay.
    #[must_use]
    pub fn mean_lateness(&self) -> Nanos {
        Nanos(self.total_lateness.0 / self.requests.max(1))
    }
}

impl std::fmt::Display for Punctuality {
    #[expect(clippy::cast_precision_loss, reason = "for printing")]
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let percent = 100.0 * self.within as f64 / self.requests.max(1) as f64;
        write!(
            formatter,
            "{} of {} requests ({percent:.2} %) within 2 % or 100 us of the modelled time, \
             mean lateness {}, worst {}",
            self.within,
            self.requests,
            self.mean_lateness(),
            self.worst_lateness
        )
    }
}
