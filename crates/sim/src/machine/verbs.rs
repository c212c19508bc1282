//! What a suite does to a subject between its jobs.

use super::{Machine, SimError};
use crate::subject::SubjectError;
use raidlab_array::Slot;

impl Machine {
    /// Marks a member as failed.
    ///
    /// # Errors
    /// Whatever the subject says, and what [`Self::run`] says.
    pub fn fail(&mut self, slot: Slot) -> Result<(), SimError> {
        let result = self.subject.fail(self.now, slot, &mut self.outputs);
        self.after_verb(result)
    }

    /// Takes a member out.
    ///
    /// # Errors
    /// Whatever the subject says, and what [`Self::run`] says.
    pub fn remove(&mut self, slot: Slot) -> Result<(), SimError> {
        let result = self.subject.remove(self.now, slot, &mut self.outputs);
        self.after_verb(result)
    }

    /// Puts a member in; its recovery starts by itself.
    ///
    /// # Errors
    /// Whatever the subject says, and what [`Self::run`] says.
    pub fn insert(&mut self, slot: Slot) -> Result<(), SimError> {
        let result = self.subject.insert(self.now, slot, &mut self.outputs);
        self.after_verb(result)
    }

    /// Puts a member back that was only away; what it missed is copied by itself.
    ///
    /// # Errors
    /// Whatever the subject says, and what [`Self::run`] says.
    pub fn re_add(&mut self, slot: Slot) -> Result<(), SimError> {
        let result = self.subject.re_add(self.now, slot, &mut self.outputs);
        self.after_verb(result)
    }

    /// Begins a check of all that the subject has more than once.
    ///
    /// # Errors
    /// Whatever the subject says, and what [`Self::run`] says.
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
