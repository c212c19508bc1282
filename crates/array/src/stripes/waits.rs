//! The waiting states of a parity array, in words.

use super::StripeArray;
use super::job::{Job, Phase};
use crate::engine::Engine;
use raidlab_units::Sectors;

/// What jobs in each phase wait for, in words.
const PHASES: [(Phase, &str); 7] = [
    (Phase::Waiting, "others that work on the same rows"),
    (Phase::Reading, "blocks that members read"),
    (Phase::Checking, "parity to be computed"),
    (Phase::Computed, "the leave to write"),
    (Phase::Logging, "the write log"),
    (Phase::Logged, "the leave to write what is logged"),
    (Phase::Writing, "blocks that members write"),
];

impl StripeArray {
    /// Returns the windows gathered, the jobs in work and what they wait for, what holds writes and
    /// the log back, and the position of the sync: a line for each.
    pub(super) fn waits_of_all(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if !self.pending.is_empty() {
            lines.push(format!(
                "{} windows gather writes or wait for their rows",
                self.pending.len()
            ));
        }
        for (phase, what) in PHASES {
            let jobs = self.jobs.values().filter(|job| job.phase == phase);
            let mut starts = jobs.map(Job::span).map(|span| span.start);
            if let Some(Sectors(first)) = starts.next() {
                let count = 1 + starts.count();
                lines.push(format!(
                    "{count} windows wait for {what}, the oldest at sector {first} of the members"
                ));
            }
        }
        if !self.flushes.is_empty() {
            lines.push(format!(
                "{} flushes are with the members",
                self.flushes.len()
            ));
        }
        if self.writes_must_wait() {
            lines.push("writes wait until a failure is recorded".to_owned());
        }
        lines.extend(self.log.iter().flat_map(super::Log::waits));
        if let Some(status) = self.sync_status() {
            lines.push(format!(
                "the {} is at sector {} of {} with {} windows in work",
                status.kind.name(),
                status.position.0,
                status.total.0,
                status.in_flight
            ));
        }
        lines
    }
}
