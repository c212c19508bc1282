//! Arrays with fixed members.

use super::{Built, ChangeMembers, Described, Result};
use raidlab_shell::Command;

/// An array whose members cannot be changed here.
pub(super) trait Fixed: Described {
    /// The reason why they cannot be changed.
    const WHY: &'static str;
}

impl<T: Fixed> ChangeMembers for T {
    fn fail(&self, _: &Built, _: usize) -> Result<Vec<Command>> {
        Err(self.lacks("fail a member", T::WHY))
    }

    fn remove(&self, _: &Built, _: usize) -> Result<Vec<Command>> {
        Err(self.lacks("remove a member", T::WHY))
    }

    fn add(&self, _: &Built, _: usize) -> Result<Vec<Command>> {
        Err(self.lacks("add a member", T::WHY))
    }

    fn re_add(&self, _: &Built, _: usize) -> Result<Vec<Command>> {
        Err(self.lacks("re-add a member", T::WHY))
    }
}
