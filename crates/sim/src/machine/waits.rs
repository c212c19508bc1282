//! Waits: virtual time in which no job runs.

use super::{Machine, SimError, Watch};
use crate::drive::Drive;
use raidlab_units::Nanos;

/// The time between two looks whether a wait is over.
const GLANCE: Nanos = Nanos::from_millis(100);
/// The time between two looks of the host bench whether members are quiet.
const LOOK_AT_MEMBERS: Nanos = Nanos::SECOND;
/// The time without writes after which members are idle, as on the host bench.
const IDLE: Nanos = Nanos::from_secs(3);

impl Machine {
    /// Lets `duration` pass with no job running.
    ///
    /// # Errors
    /// [`SimError::Interrupted`] if `watch` ended it; the errors of a leap.
    pub fn wait(&mut self, duration: Nanos, watch: &mut Watch<'_>) -> Result<(), SimError> {
        let end = self.now + duration;
        self.pass(end, |_| false, watch)
    }

    /// Lets time pass, with no job running, until no sync runs and none is about
    /// to.
    ///
    /// # Errors
    /// [`SimError::Waited`] if it takes longer than `at_most`; else as [`Self::wait`].
    pub fn wait_for_sync(&mut self, at_most: Nanos, watch: &mut Watch<'_>) -> Result<(), SimError> {
        self.wait_until(at_most, |machine| !machine.subject.is_syncing(), watch)
    }

    /// Lets time pass, with no job running, until no member was written to for three
    /// seconds, nothing is in flight, and no disk has anything left to write. The seconds
    /// count from the begin of the wait, as on the host bench, which sees no disk's cache.
    ///
    /// # Errors
    /// As [`Self::wait_for_sync`].
    pub fn wait_until_idle(
        &mut self,
        at_most: Nanos,
        watch: &mut Watch<'_>,
    ) -> Result<(), SimError> {
        let is_idle = |machine: &Self| {
            machine.subject.is_idle() && machine.drives.iter().all(Drive::is_quiet)
        };
        let end = self.now + at_most;
        if self.wait_until_quiet(self.written(), IDLE, at_most, watch)? {
            return self.wait_until(end.saturating_sub(self.now), is_idle, watch);
        }
        Err(SimError::Waited {
            at_most,
            waits: "members are written to again and again".to_owned(),
        })
    }

    /// Lets time pass, with no job running, until for `quiet` no member was written
    /// to, of [`Self::written`] writes until now, at most `at_most`: looks once a second, as the host bench does before a job.
    /// Returns whether they are quiet.
    ///
    /// # Errors
    /// As [`Self::wait`].
    pub fn wait_until_quiet(
        &mut self,
        mut written: u64,
        quiet: Nanos,
        at_most: Nanos,
        watch: &mut Watch<'_>,
    ) -> Result<bool, SimError> {
        let end = self.now + at_most;
        let mut since = self.now;
        while self.now < since + quiet && self.now < end {
            self.wait(LOOK_AT_MEMBERS.min(end.saturating_sub(self.now)), watch)?;
            let now = self.written();
            if now != written {
                (written, since) = (now, self.now);
            }
        }
        Ok(self.now >= since + quiet)
    }

    /// Whether a sync runs, or is about to.
    #[must_use]
    pub fn is_syncing(&self) -> bool {
        self.subject.is_syncing()
    }

    /// The number of writes to all members so far.
    #[must_use]
    pub fn written(&self) -> u64 {
        let drives = self.drives.iter();
        drives.map(|drive| drive.statistics.write_ios).sum()
    }

    fn wait_until(
        &mut self,
        at_most: Nanos,
        reached: impl Fn(&Self) -> bool,
        watch: &mut Watch<'_>,
    ) -> Result<(), SimError> {
        let end = self.now + at_most;
        self.pass(end, &reached, watch)?;
        if reached(self) {
            Ok(())
        } else {
            Err(SimError::Waited {
                at_most,
                waits: self.waits(),
            })
        }
    }

    /// Lets time pass until `end`, or until the wait's condition has come about, in glances: a
    /// sync may begin at any time, and is leapt over from then on. Glances in which nothing
    /// happens are one.
    fn pass(
        &mut self,
        end: Nanos,
        reached: impl Fn(&Self) -> bool,
        watch: &mut Watch<'_>,
    ) -> Result<(), SimError> {
        while self.now < end && !reached(self) {
            if self.leaps {
                self.leap_sync_until(end, watch)?;
            }
            let quiet = self.next_event().saturating_sub(self.now.0);
            let glances = match reached(self) {
                true => 1,
                false => quiet.div_ceil(GLANCE.0).max(1),
            };
            let glance = GLANCE.0.saturating_mul(glances);
            self.run_until(end.min(Nanos(self.now.0.saturating_add(glance))), watch)?;
        }
        Ok(())
    }
}
