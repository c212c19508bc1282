//! The connection to an observer: reports how far an experiment is, and asks whether to continue.

use crate::error::HostError;
use crate::sampler::nanoseconds;
use crate::session::Session;
use raidlab_lab::{Observer, Progress};
use raidlab_units::Nanos;
use std::time::Duration;

/// An observer, with the step that it is told about.
pub struct Watch<'a> {
    pub observer: &'a mut dyn Observer,
    pub step: usize,
    pub steps: usize,
}

impl Watch<'_> {
    /// Reports progress, again and again during a step; `now` is the time since
    /// the experiment began.
    pub fn look(&mut self, now: Duration) {
        self.observer.progress(Progress {
            step: self.step,
            steps: self.steps,
            clock: Nanos(nanoseconds(now)),
        });
    }

    /// Checks that the step should continue.
    ///
    /// # Errors
    /// [`HostError::Interrupted`] when it should be stopped now.
    pub fn check(&self) -> Result<(), HostError> {
        match self.observer.cancelled() {
            true => Err(HostError::Interrupted),
            false => Ok(()),
        }
    }

    /// Processes new samples and reports progress. Returns the time since the experiment began.
    ///
    /// # Errors
    /// As [`Self::check`]; when the machine cannot be queried.
    pub fn poll(&mut self, session: &mut Session<'_>) -> Result<Duration, HostError> {
        self.check()?;
        session.poll()?;
        let now = session.now();
        self.look(now);
        Ok(now)
    }
}
