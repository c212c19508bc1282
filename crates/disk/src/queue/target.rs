//! What a host's queue stands before.

use super::{Order, QueueRules, Submitter};
use crate::command::{Command, Completion};
use crate::disk::Disk;
use raidlab_units::Nanos;

/// What a queue stands before: a disk, or a way to one, which may lead through a queue that
/// others use too. Whoever has such a queue answers for it.
pub trait Target {
    /// The rules of a queue before it on a host with these.
    fn rules(&mut self, host: QueueRules) -> QueueRules;
    /// Whether the disk turns, as its host knows.
    fn is_rotational(&self) -> bool;
    /// Takes a command of somebody's at time `now`.
    fn submit_from(&mut self, now: Nanos, command: Command, from: Submitter);
    /// When [`Self::advance`] next has something to do.
    fn next_event(&self) -> Option<Nanos>;
    /// Does what is due at `now`, and appends the commands that completed.
    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>);
    /// Who chooses in the queue that others use too.
    fn order(&self) -> Option<Order> {
        None
    }
    /// How many of this way's requests are with the disk, and how many wait in that queue.
    fn queued(&self) -> Option<(usize, usize)> {
        None
    }
    /// How many of its commands found no tag there so far.
    fn overflows(&self) -> u64 {
        0
    }
    /// Processes have come to their end.
    fn exit(&mut self, _now: Nanos, _ended: &dyn Fn(u32) -> bool) {}
}

impl Target for Disk {
    fn rules(&mut self, host: QueueRules) -> QueueRules {
        host.before(self.parameters())
    }

    fn is_rotational(&self) -> bool {
        self.parameters().medium().facts().rotational
    }

    #[inline]
    fn submit_from(&mut self, now: Nanos, command: Command, _from: Submitter) {
        self.submit(now, command);
    }

    #[inline]
    fn next_event(&self) -> Option<Nanos> {
        Self::next_event(self)
    }

    #[inline]
    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        Self::advance(self, now, completions);
    }
}
