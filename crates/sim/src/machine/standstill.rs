//! The check that a job can end, so that it gives an error, not a run without an end: a request
//! that has had no answer for ten minutes of virtual time ends the run, with a word about what
//! waits for what; and so does an instant in which things happen without end.

use super::{Machine, SimError};
use raidlab_units::Nanos;

/// The time after which a request is never answered: no disk takes a minute for a command, and no
/// subject holds a request back for more than a few seconds of its own accord.
const LONGEST_ANSWER: Nanos = Nanos::from_secs(600);

/// The time between two looks for a request that takes that long.
pub(crate) const LOOK: Nanos = Nanos::from_secs(30);

/// The most events that come in an instant: the deepest queues are thousands of requests, of at
/// most thousands of commands each.
const MOST_IN_AN_INSTANT: u64 = 10_000_000;

/// The request of a group that has been in flight for longest.
#[derive(Debug)]
pub(crate) struct OldestRequest {
    /// The name of its job.
    pub(crate) job: String,
    /// The time at which the request was submitted.
    pub(crate) since: Nanos,
    /// The request in words for people.
    pub(crate) what: String,
}

impl Machine {
    /// Tells the watcher the time of the next event now and then, and finds an instant that
    /// does not end.
    pub(super) fn tell_time(&mut self, next: Nanos) -> Result<(), SimError> {
        self.in_this_instant += 1;
        if next > self.now {
            self.now = next;
            self.in_this_instant = 0;
        }
        if self.in_this_instant < MOST_IN_AN_INSTANT {
            return Ok(());
        }
        Err(SimError::TimeStandsStill {
            at: self.now,
            events: self.in_this_instant,
            waits: self.waits(),
        })
    }

    /// Checks that no request has waited too long for its answer.
    pub(crate) fn look_for_standstill(
        &self,
        oldest: Option<OldestRequest>,
    ) -> Result<(), SimError> {
        match oldest {
            Some(oldest) if self.now >= oldest.since + LONGEST_ANSWER => {
                Err(SimError::Unanswered {
                    job: oldest.job,
                    at: self.now,
                    what: oldest.what,
                    limit: LONGEST_ANSWER,
                    waits: self.waits(),
                })
            }
            _ => Ok(()),
        }
    }

    /// The things that wait in the subject, and the work that its disks have, in a line.
    pub(crate) fn waits(&self) -> String {
        let mut lines = self.subject.waits();
        for (index, drive) in self.drives.iter().enumerate() {
            let (in_drive, in_host) = drive.queued();
            if in_drive > 0 {
                lines.push(format!(
                    "disk {index} has {in_drive} commands, and {in_host} more wait for it"
                ));
            }
        }
        if lines.is_empty() {
            lines.push("nothing is held back, and no disk has a command".to_owned());
        }
        lines.join("; ")
    }
}
