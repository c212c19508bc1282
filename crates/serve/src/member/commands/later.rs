//! Commands that the host has no means for at the moment: each waits a while, longer each
//! time, and is sent again, as the block layer does with a request of its own
//! (`BLK_MQ_RESOURCE_DELAY`, 3 ms). Tried without a pause, a hundred times are over before
//! anybody has freed a page, and all members would be lost at once.

use super::Job;
use raidlab_units::Nanos;

/// The pause before the second attempt.
const FIRST_PAUSE: Nanos = Nanos::from_millis(1);

/// How often a pause is twice as long as the one before: up to 128 ms.
const DOUBLINGS: u32 = 7;

/// When a command is sent again that was tried so often without a pause, or after one.
pub(super) fn after(now: Nanos, attempts: u32) -> Nanos {
    now + Nanos(FIRST_PAUSE.0 << attempts.min(DOUBLINGS))
}

/// The commands that wait, each with the time at which it is sent again.
#[derive(Debug, Default)]
pub(super) struct Later(Vec<(Nanos, Job)>);

impl Later {
    pub(super) fn put(&mut self, at: Nanos, job: Job) {
        self.0.push((at, job));
    }

    /// When the next one is due.
    pub(super) fn next(&self) -> Option<Nanos> {
        self.0.iter().map(|(at, _)| *at).min()
    }

    /// Takes out what is due.
    pub(super) fn due(&mut self, now: Nanos) -> Vec<Job> {
        let due = self.0.extract_if(.., |(at, _)| *at <= now);
        due.map(|(_, job)| job).collect()
    }
}
