//! The verbs that a suite applies to a subject between its jobs.

use super::{Machine, SimError};
use crate::subject::SubjectError;
use raidlab_array::Slot;

impl Machine {
    /// Marks a member as failed.
    ///
    /// # Errors
    /// The subject's refusal, and the errors of [`Self::run`].
    pub fn fail(&mut self, slot: Slot) -> Result<(), SimError> {
        let result = self.subject.fail(self.now, slot, &mut self.outputs);
        self.after_verb(result)
    }

    /// Takes a member out.
    ///
    /// # Errors
    /// The subject's refusal, and the errors of [`Self::run`].
    pub fn remove(&mut self, slot: Slot) -> Result<(), SimError> {
        let result = self.subject.remove(self.now, slot, &mut self.outputs);
        self.after_verb(result)
    }

    /// Puts a member in; its recovery starts by itself.
    ///
    /// # Errors
    /// The subject's refusal, and the errors of [`Self::run`].
    pub fn insert(&mut self, slot: Slot) -> Result<(), SimError> {
        let result = self.subject.insert(self.now, slot, &mut self.outputs);
        self.after_verb(result)
    }

    /// Puts a member back that was only away; the changes that it missed are copied by themselves.
    ///
    /// # Errors
    /// The subject's refusal, and the errors of [`Self::run`].
    pub fn re_add(&mut self, slot: Slot) -> Result<(), SimError> {
        let result = self.subject.re_add(self.now, slot, &mut self.outputs);
        self.after_verb(result)
    }

    /// Begins a check of all that the subject has more than once.
    ///
    /// # Errors
    /// The subject's refusal, and the errors of [`Self::run`].
    pub fn check(&mut self) -> Result<(), SimError> {
        let result = self.subject.check(self.now, &mut self.outputs);
        self.after_verb(result)
    }

    fn after_verb(&mut self, result: Result<(), SubjectError>) -> Result<(), SimError> {
        result.map_err(SimError::Subject)?;
        self.pump();
        self.finished.clear();
        Ok(())
    }
}
