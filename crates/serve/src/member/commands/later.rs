//! Commands for which the host lacks resources at the moment: each waits a while, longer each time,
//! and is sent again, as the block layer does with its own requests (`BLK_MQ_RESOURCE_DELAY`, 3
//! ms). Without a pause, a hundred attempts would be over before a page is freed, and all members
//! would be lost at once.

use super::Job;
use raidlab_units::Nanos;

/// The pause before the second attempt.
const FIRST_PAUSE: Nanos = Nanos::from_millis(1);

/// The number of times that the pause is doubled: up to 128 ms.
const DOUBLINGS: u32 = 7;

/// Returns the time of a command's next attempt, after `attempts` earlier ones.
pub(super) fn after(now: Nanos, attempts: u32) -> Nanos {
    now + Nanos(FIRST_PAUSE.0 << attempts.min(DOUBLINGS))
}

/// The commands that wait, each with the time of its next attempt.
#[derive(Debug, Default)]
pub(super) struct Later(Vec<(Nanos, Job)>);

impl Later {
    pub(super) fn put(&mut self, at: Nanos, job: Job) {
        self.0.push((at, job));
    }

    /// Returns the time when the next one is due.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.0.iter().map(|(at, _)| *at).min()
    }

    /// Takes out the commands that are due.
    pub(super) fn due(&mut self, now: Nanos) -> Vec<Job> {
        let due = self.0.extract_if(.., |(at, _)| *at <= now);
        due.map(|(_, job)| job).collect()
    }
}
