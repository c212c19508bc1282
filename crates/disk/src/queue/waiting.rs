//! A command that waits before a disk.

use crate::command::{Command, CommandKind};
use raidlab_units::Nanos;

/// Who sends a command to a host's queue, for orders that choose between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Submitter {
    /// The process or thread, by a number that no other one has at the time.
    pub process: u32,
    /// Whether somebody waits for the answer: reads and direct writes, in Linux `REQ_SYNC`.
    pub sync: bool,
}

/// A command that waits, or several that were merged.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) command: Command,
    /// When the scheduler, or whatever the host has in its place, got it.
    pub(super) arrived: Nanos,
    /// Tags of the commands that were merged with it.
    pub(super) further: Vec<u64>,
    pub(super) from: Submitter,
    /// The queue of BFQ's that it is in; commands of two are never merged.
    pub(super) owner: Option<usize>,
}

impl Waiting {
    /// 0 for reads, 1 for all else.
    pub(super) const fn direction(&self) -> usize {
        match self.command.kind {
            CommandKind::Read => 0,
            _ => 1,
        }
    }

    /// Puts it together with another one that touches it, if that makes no more than
    /// `largest` sectors.
    pub(super) fn merge(&mut self, new: &Self, largest: u64) -> bool {
        let (one, other) = (&self.command, &new.command);
        let touches = one.end() == other.start.0 || other.end() == one.start.0;
        let like = one.kind == other.kind && self.owner == new.owner;
        let fits = like && touches && one.count.0 + other.count.0 <= largest;
        if fits {
            self.command.start = self.command.start.min(new.command.start);
            self.command.count += new.command.count;
            self.further.push(new.command.tag);
            self.further.extend(&new.further);
        }
        fits
    }
}
