//! The target of a host's queue.

use super::{Order, QueueRules, Submitter};
use crate::command::{Command, Completion};
use crate::disk::Disk;
use raidlab_units::Nanos;

/// The target of a queue: a disk, or a port to one, which may lead through a shared queue. With
/// such a queue it answers the questions about that.
pub trait Target {
    /// The rules of a queue before it on a host with these rules.
    fn rules(&mut self, host: QueueRules) -> QueueRules;
    /// Whether the disk rotates, as its host knows.
    fn is_rotational(&self) -> bool;
    /// Takes a command of a sender at time `now`.
    fn submit_from(&mut self, now: Nanos, command: Command, from: Submitter);
    /// The time at which [`Self::advance`] next has something to do.
    fn next_event(&self) -> Option<Nanos>;
    /// Does everything due at `now`, and appends the completed commands.
    fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>);
    /// The order of the shared queue, if there is one.
    fn order(&self) -> Option<Order> {
        None
    }
    /// The number of its requests with the disk, and of those that wait in the shared queue.
    fn queued(&self) -> Option<(usize, usize)> {
        None
    }
    /// The number of its commands so far that found no tag in the shared queue.
    fn overflows(&self) -> u64 {
        0
    }
    /// Notes that processes have ended.
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
