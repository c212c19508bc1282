//! Who is told how far an experiment is, and asked whether it should go on.

use crate::error::HostError;
use crate::sampler::nanoseconds;
use crate::session::Session;
use raidlab_lab::{Observer, Progress};
use raidlab_units::Nanos;
use std::time::Duration;

/// An observer, told of the step that goes on.
pub struct Watch<'a> {
    pub observer: &'a mut dyn Observer,
    pub step: usize,
    pub steps: usize,
}

impl Watch<'_> {
    /// Is called again and again while a step goes on; `now` is the time since the
    /// experiment began.
    pub fn look(&mut self, now: Duration) {
        self.observer.progress(Progress {
            step: self.step,
            steps: self.steps,
            clock: Nanos(nanoseconds(now)),
        });
    }

    /// Whether the step goes on.
    ///
    /// # Errors
    /// [`HostError::Interrupted`] where it should be stopped now.
    pub fn check(&self) -> Result<(), HostError> {
        match self.observer.cancelled() {
            true => Err(HostError::Interrupted),
            false => Ok(()),
        }
    }

    /// Takes what was sampled, and says so; returns the time since the experiment began.
    ///
    /// # Errors
    /// As [`Self::check`]; when the machine cannot be asked.
    pub fn poll(&mut self, session: &mut Session<'_>) -> Result<Duration, HostError> {
        self.check()?;
        session.poll()?;
        let now = session.now();
        self.look(now);
        Ok(now)
    }
}
