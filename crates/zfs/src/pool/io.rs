//! The disks: leaves with their queues, logical reads and writes above them,
//! commands below.
//!
//! A logical read goes to one child and, when that fails, to another; a logical write goes to every
//! present child, including the resilvering one, and is done when all have answered. A write that
//! fails on one disk with a medium error but not on all counts as written (ZFS notes the block in
//! that disk's dirty time log). A member that reports that it is gone is failed.

use super::Pool;
use crate::cache::IndirectId;
use crate::config::{ChildSelection, LABEL_FRONT, QueueConfig};
use crate::leaf_queue::{Class, Io, LeafQueue, Owner};
use crate::map::Place;
use raidlab_array::{
    BufferId, CommandId, MemberCommand, MemberError, Operation, Outputs, Purpose, ScratchId,
    Sender, Slot, SlotSet,
};
use raidlab_units::{Nanos, Sectors};

/// The state of the disk in a slot of the mirror.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LeafState {
    InSync,
    /// The disk gets writes, but serves no reads.
    Resilvering,
    Faulty,
    Missing,
}

/// A disk with its queue.
#[derive(Debug)]
pub(super) struct Leaf {
    pub(super) state: LeafState,
    pub(super) queue: LeafQueue,
    /// The number of disks that were in this slot: answers to commands of an earlier one do not
    /// concern the queue of the present one.
    pub(super) epoch: u32,
}

/// The data blocks `first..end`, which are read as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct DataRun {
    pub(super) first: u64,
    pub(super) end: u64,
}

/// The purpose of a read.
#[derive(Debug, Clone, Copy)]
pub(super) enum ReadFor {
    /// The read is for the cache, and the waiters for the indirect block.
    Indirect(IndirectId),
    /// The read is for the cache, and the waiters for these data blocks.
    Data(DataRun),
    /// The read is for the resilver, and is written to the new disk.
    Resilver(Place),
}

/// A read of one place, which any child that has the place may serve.
#[derive(Debug)]
pub(super) struct Read {
    place: Place,
    class: Class,
    purpose: ReadFor,
    tried: SlotSet,
    /// The slot of the child that has it now.
    slot: Slot,
}

/// The purpose of a write.
#[derive(Debug, Clone, Copy)]
pub(super) enum WriteFor {
    /// The write is for the sync of a transaction group, with this many dirty blocks.
    Sync { dirty_blocks: u64 },
    /// The write is for the new disk of a resilver, with this many blocks.
    Resilver { blocks: u64 },
    /// The intent log: the block of this number, or the flush behind it.
    Log { block: u64 },
}

/// A logical write or flush.
#[derive(Debug)]
pub(super) struct Write {
    remaining: u32,
    purpose: WriteFor,
}

/// A command in a disk.
#[derive(Debug)]
pub(super) struct Command {
    slot: Slot,
    epoch: u32,
    /// The class; `None` for a flush, which bypasses the queue.
    class: Option<Class>,
    owner: Owner,
    /// The other owners that wait for it.
    others: Vec<Owner>,
}

impl Leaf {
    pub(super) fn new(queue: QueueConfig) -> Self {
        Self {
            state: LeafState::InSync,
            queue: LeafQueue::new(queue),
            epoch: 0,
        }
    }

    pub(super) fn is_readable(&self) -> bool {
        self.state == LeafState::InSync
    }

    pub(super) fn is_writable(&self) -> bool {
        matches!(self.state, LeafState::InSync | LeafState::Resilvering)
    }
}

/// The command as the child's selection remembers it.
const fn position(slot: Slot, start: u64, count: u64) -> raidlab_array::Io {
    raidlab_array::Io {
        kind: raidlab_array::IoKind::Read,
        slot,
        start: Sectors(start),
        count: Sectors(count),
        address: Sectors(start),
    }
}

impl Pool {
    /// Orders a read of a place in the allocatable space; returns false if no disk can serve it.
    pub(super) fn start_read(
        &mut self,
        now: Nanos,
        place: Place,
        class: Class,
        purpose: ReadFor,
    ) -> bool {
        self.order_read(now, place, class, purpose).is_some()
    }

    /// Orders a read as [`Self::start_read`] does; returns the read's index, if there is a
    /// disk for it.
    pub(super) fn order_read(
        &mut self,
        now: Nanos,
        place: Place,
        class: Class,
        purpose: ReadFor,
    ) -> Option<u32> {
        let read = self.reads.insert(Read {
            place,
            class,
            purpose,
            tried: SlotSet::EMPTY,
            slot: Slot(0),
        });
        let sent = self.send_read(now, read);
        if !sent {
            self.reads.remove(read);
        }
        sent.then_some(read)
    }

    /// Raises a prefetch read for which a request waits now.
    pub(super) fn raise_read(&mut self, index: u32) {
        if let Some(read) = self.reads.get_mut(index)
            && read.class == Class::AsyncRead
        {
            read.class = Class::SyncRead;
            let queue = &mut self.leaves[read.slot.index()].queue;
            queue.raise(read.place.start, Owner::Read(index));
        }
    }

    /// Sends a read to a child not yet tried; returns false if there is none.
    fn send_read(&mut self, now: Nanos, index: u32) -> bool {
        let Some(read) = self.reads.get_mut(index) else {
            return false;
        };
        for (view, leaf) in self.views.iter_mut().zip(&self.leaves) {
            view.pending = leaf.queue.active();
        }
        let readable = (0..).map(Slot).zip(&self.leaves);
        let readable: SlotSet = readable
            .filter(|(_, leaf)| leaf.is_readable())
            .map(|(slot, _)| slot)
            .collect();
        let (start, count) = (Sectors(read.place.start), Sectors(read.place.count));
        let question = raidlab_array::Read {
            start,
            count,
            whole_start: start,
            whole_count: count,
            process: 0,
            candidates: readable - read.tried,
        };
        let Some(choice) = self.selection.choose(now, &question, &self.views) else {
            return false;
        };
        let slot = choice.slot;
        if self.config.selection != ChildSelection::OpenZfs2 {
            let sent = position(slot, read.place.start, read.place.count);
            self.selection.issued(&sent, &self.views);
        }
        read.slot = slot;
        read.tried = read.tried.with(slot);
        let io = Io {
            start: start.0,
            count: count.0,
            owner: Owner::Read(index),
        };
        self.leaves[slot.index()].queue.push(now, read.class, io);
        true
    }

    /// Orders a write of a place on every disk; on the resilvering ones only, if it is the
    /// resilver's. Returns false if there is none.
    pub(super) fn start_write(
        &mut self,
        now: Nanos,
        place: Place,
        class: Class,
        purpose: WriteFor,
    ) -> bool {
        let repair = matches!(purpose, WriteFor::Resilver { .. });
        let index = self.writes.insert(Write {
            remaining: 0,
            purpose,
        });
        let mut remaining = 0;
        for leaf in &mut self.leaves {
            if leaf.is_writable() && (!repair || leaf.state == LeafState::Resilvering) {
                let owner = Owner::Write(index);
                let (start, count) = (place.start, place.count);
                leaf.queue.push(
                    now,
                    class,
                    Io {
                        start,
                        count,
                        owner,
                    },
                );
                remaining += 1;
            }
        }
        self.sent_to(index, remaining)
    }

    fn sent_to(&mut self, index: u32, remaining: u32) -> bool {
        if remaining == 0 {
            self.writes.remove(index);
        } else if let Some(write) = self.writes.get_mut(index) {
            write.remaining = remaining;
        }
        remaining > 0
    }

    /// Sends a flush to every disk; false if there is none.
    pub(super) fn start_flush(&mut self, purpose: WriteFor, out: &mut Outputs) -> bool {
        let index = self.writes.insert(Write {
            remaining: 0,
            purpose,
        });
        let mut remaining = 0;
        for slot in (0..).map(Slot).take(self.leaves.len()) {
            let leaf = &self.leaves[slot.index()];
            if leaf.is_writable() {
                let id = self.commands.insert(Command {
                    slot,
                    epoch: leaf.epoch,
                    class: None,
                    owner: Owner::Write(index),
                    others: Vec::new(),
                });
                out.commands.push(MemberCommand {
                    id: CommandId(u64::from(id)),
                    slot,
                    operation: Operation::Flush,
                    start: Sectors::ZERO,
                    count: Sectors::ZERO,
                    force_unit_access: false,
                    purpose: Purpose::Metadata,
                    sender: Sender::Thread,
                    buffer: BufferId::None,
                });
                remaining += 1;
            }
        }
        self.sent_to(index, remaining)
    }

    /// Sends to the disks what their queues allow.
    pub(super) fn issue(&mut self, out: &mut Outputs) {
        if !self.leaves.iter().any(|leaf| leaf.queue.may_issue()) {
            return;
        }
        let writes = self.maximum_async_writes();
        for slot in (0..).map(Slot).take(self.leaves.len()) {
            let leaf = &mut self.leaves[slot.index()];
            while let Some((class, issue)) = leaf.queue.next(writes) {
                let (operation, purpose) = match class {
                    Class::SyncRead => (Operation::Read, Purpose::Foreground),
                    Class::AsyncRead => (Operation::Read, Purpose::Metadata),
                    Class::SyncWrite => (Operation::Write, Purpose::Metadata),
                    Class::AsyncWrite => (Operation::Write, Purpose::Foreground),
                    Class::Scrub => (Operation::Read, Purpose::Sync),
                };
                if self.config.selection == ChildSelection::OpenZfs2 {
                    let sent = position(slot, issue.start, issue.count);
                    self.selection.issued(&sent, &self.views);
                }
                let id = self.commands.insert(Command {
                    slot,
                    epoch: leaf.epoch,
                    class: Some(class),
                    owner: issue.owner,
                    others: issue.others,
                });
                out.commands.push(MemberCommand {
                    id: CommandId(u64::from(id)),
                    slot,
                    operation,
                    start: LABEL_FRONT + Sectors(issue.start),
                    count: Sectors(issue.count),
                    force_unit_access: false,
                    purpose,
                    sender: Sender::Thread,
                    buffer: BufferId::Scratch {
                        scratch: ScratchId(id),
                        skip: Sectors::ZERO,
                    },
                });
            }
        }
    }

    pub(super) fn command_done(
        &mut self,
        now: Nanos,
        id: CommandId,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        let Some(command) = u32::try_from(id.0)
            .ok()
            .and_then(|id| self.commands.remove(id))
        else {
            return;
        };
        let leaf = &mut self.leaves[command.slot.index()];
        let current = leaf.epoch == command.epoch;
        if current && let Some(class) = command.class {
            leaf.queue.completed(class);
        }
        if self.config.allocations.is_some() {
            // The free place in the disk is used before the waiters
            // are told (`vdev_queue_io_done`).
            self.issue(out);
        }
        let leaf = &mut self.leaves[command.slot.index()];
        if current && result == Err(MemberError::Gone) && leaf.is_writable() {
            self.fail_leaf(now, command.slot, out);
        }
        let good = current && result.is_ok();
        for owner in std::iter::once(command.owner).chain(command.others) {
            self.owner_done(now, owner, good, out);
        }
    }

    /// Handles the answer of one disk to a read, write or flush that may have gone to several.
    pub(super) fn owner_done(&mut self, now: Nanos, owner: Owner, good: bool, out: &mut Outputs) {
        match owner {
            Owner::Read(index) => {
                if !good && self.send_read(now, index) {
                    return;
                }
                let Some(read) = self.reads.remove(index) else {
                    return;
                };
                match read.purpose {
                    ReadFor::Indirect(id) => self.fetched(now, id, good, out),
                    ReadFor::Data(run) => self.data_read(now, run, good, out),
                    ReadFor::Resilver(place) => self.scan_read_done(now, place, good),
                }
            }
            Owner::Write(index) => {
                let Some(write) = self.writes.get_mut(index) else {
                    return;
                };
                write.remaining -= 1;
                if write.remaining > 0 {
                    return;
                }
                let purpose = write.purpose;
                self.writes.remove(index);
                match purpose {
                    WriteFor::Sync { dirty_blocks } => self.sync_write_done(now, dirty_blocks, out),
                    WriteFor::Resilver { blocks } => self.scan_blocks_done(now, blocks),
                    WriteFor::Log { block } => self.log_block_done(now, block, out),
                }
            }
        }
    }
}
