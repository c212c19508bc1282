//! A command that waits before a disk.

use crate::command::{Command, CommandKind};
use raidlab_units::Nanos;

/// The sender of a command to a host's queue, for orders that choose between processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Submitter {
    /// The process or thread, by a number that is unique at the time.
    pub process: u32,
    /// Whether the sender waits for the answer: reads and direct writes, in Linux `REQ_SYNC`.
    pub sync: bool,
    /// Whether the command is never merged, as a write that a flush follows or that goes through
    /// the cache (`REQ_NOMERGE_FLAGS` of Linux include/linux/blk_types.h).
    pub alone: bool,
    /// Whether the command goes before all others that wait, as a write does for which the disk
    /// was flushed first (Linux block/blk-flush.c, `blk_flush_complete_seq`, and
    /// `BLK_MQ_INSERT_AT_HEAD` of block/mq-deadline.c).
    pub first: bool,
}

/// A waiting command, or several that were merged.
#[derive(Debug, Clone)]
pub(super) struct Waiting {
    pub(super) command: Command,
    /// The time at which the scheduler, or the queue in its place, got it.
    pub(super) arrived: Nanos,
    /// The tags of the commands that were merged with it.
    pub(super) further: Vec<u64>,
    pub(super) from: Submitter,
    /// The queue of BFQ that it is in; commands of two queues are never merged.
    pub(super) owner: Option<usize>,
}

impl Waiting {
    /// The direction: 0 for reads, 1 for all others.
    pub(super) const fn direction(&self) -> usize {
        match self.command.kind {
            CommandKind::Read => 0,
            _ => 1,
        }
    }

    /// Whether it and another one are adjacent, and may be one command of no more
    /// than `largest` sectors.
    pub(super) fn fits(&self, other: &Self, largest: u64) -> bool {
        let (one, two) = (&self.command, &other.command);
        let touches = one.end() == two.start.0 || two.end() == one.start.0;
        let alone = |it: &Self| it.from.alone || it.command.kind == CommandKind::WriteThrough;
        let like = one.kind == two.kind && self.owner == other.owner;
        let may = like && !alone(self) && !alone(other);
        may && touches && one.count.0 + two.count.0 <= largest
    }

    /// Merges it with another one that [fits](Self::fits).
    pub(super) fn merge(&mut self, other: &Self) {
        self.command.start = self.command.start.min(other.command.start);
        self.command.count += other.command.count;
        self.further.push(other.command.tag);
        self.further.extend(&other.further);
    }
}
