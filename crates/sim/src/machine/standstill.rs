//! A job that cannot end is an error, not a run without an end: a request that has had
//! no answer for ten minutes of virtual time ends the run, with a word about what waits
//! for what; and so does an instant in which things happen without end.

use super::{Machine, SimError};
use raidlab_units::Nanos;

/// A request that takes so long is never answered: no disk takes a minute for a command,
/// and no subject holds a request back for more than a few seconds of its own accord.
const LONGEST_ANSWER: Nanos = Nanos::from_secs(600);

/// How often it is looked whether some request takes that long.
pub(crate) const LOOK: Nanos = Nanos::from_secs(30);

/// More events than this come in no instant: the deepest queues are thousands of requests,
/// of at most thousands of commands each.
const MOST_IN_AN_INSTANT: u64 = 10_000_000;

/// The request of a group that has been in flight for longest.
#[derive(Debug)]
pub(crate) struct OldestRequest {
    /// The name of its job.
    pub(crate) job: String,
    /// When the request was submitted.
    pub(crate) since: Nanos,
    /// What the request is, in words for people.
    pub(crate) what: String,
}

impl Machine {
    /// An event comes; it may be late.
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

    /// That every request is answered some time.
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

    /// What waits for what in the subject, and what its disks have to do, in a line.
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
