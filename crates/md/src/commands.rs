//! Commands to the members, and their answers.
//!
//! The thread works under a plug. A block that it sends is merged there with one beside it on its
//! member, unless the result would be longer than a disk takes; else it is a new request. The plug
//! is emptied at the end of the thread's run, and when it is full (`plug_rule` of the crate
//! `array`). Requests that leave together are merged once more, each into one that it continues,
//! and sorted, reads first (`mq-deadline`). A read past the cache that is too long for one bio has
//! such a plug too (block/fops.c, `__blkdev_direct_IO`).

use super::{BLOCK, Raid5d};
use raidlab_array::parts::{MemberVerbs, is_plug_full, tried_in_plug};
use raidlab_array::{
    BufferId, CommandId, Event, MdRules, MemberCommand, MemberError, Operation, Outputs, Purpose,
    RequestId, Sender, Slot,
};
use raidlab_geometry::SlotSet;
use raidlab_units::{Sectors, Span};

/// The purpose of a command in flight.
#[derive(Debug, Clone, Copy)]
pub(super) enum Role {
    /// A read past the cache: sectors of the array.
    Direct {
        request: RequestId,
        start: u64,
        count: u64,
    },
    /// Blocks of `count` stripes, from the stripe `first` on.
    Blocks { first: u64, count: u64 },
    /// A flush for a request.
    Flush(RequestId),
}

/// A command in flight.
#[derive(Debug, Clone, Copy)]
pub(super) struct Command {
    slot: Slot,
    epoch: u32,
    operation: Operation,
    sectors: u64,
    role: Role,
}

/// The part of a request that is read from one member past the cache.
#[derive(Debug)]
pub(super) struct DirectRead {
    pub(super) slot: Slot,
    /// The first sector of the member's data area; `count` sectors are read from it.
    pub(super) start: u64,
    pub(super) count: u64,
    /// The chunks in the read: the first sector in the array, and the number of sectors.
    pub(super) chunks: Vec<(u64, u64)>,
}

/// An entry of a plug.
trait Pluggable {
    fn slot(&self) -> Slot;
    fn sectors(&self) -> u64;
    /// Whether the other entry begins where this one ends, on its member, and both together fit one
    /// command of `longest` sectors.
    fn is_continued_by(&self, other: &Self, longest: u64) -> bool;
    /// Merges an entry that lies beside this one.
    fn merge(&mut self, other: &mut Self);

    /// Merges an entry that lies beside this one on the member, if both fit one command
    /// of `longest` sectors.
    fn absorb(&mut self, other: &mut Self, longest: u64) -> bool {
        let fits = self.is_continued_by(other, longest) || other.is_continued_by(self, longest);
        if fits {
            self.merge(other);
        }
        fits
    }
}

/// Returns the entries of an emptied plug as they are in their disks' schedulers. They come
/// oldest first; each is merged into one that it continues, and never into one that it
/// precedes (block/elevator.c, `elv_attempt_insert_merge`).
fn inserted<T: Pluggable>(plugged: Vec<T>, longest: u64) -> Vec<T> {
    let mut held: Vec<T> = Vec::new();
    for new in plugged {
        let mut at = held.len();
        held.push(new);
        let before = |held: &[T], at: usize| {
            let mut all = held.iter();
            all.position(|it| it.is_continued_by(&held[at], longest))
        };
        while let Some(before) = before(&held, at) {
            let mut grown = held.remove(at);
            at = before - usize::from(at < before);
            held[at].merge(&mut grown);
        }
    }
    held
}

/// Merges a new entry into one of the plug; returns whether there was one.
fn joins<T: Pluggable>(plugged: &mut [T], new: &mut T, oldest_first: bool, longest: u64) -> bool {
    let slots = plugged.iter().map(T::slot);
    let at = tried_in_plug(slots, new.slot(), oldest_first);
    at.is_some_and(|at| plugged[at].absorb(new, longest))
}

/// Whether a plug is emptied before it takes a new request.
fn is_full<T: Pluggable>(plugged: &[T], oldest_first: bool) -> bool {
    is_plug_full(plugged.iter().map(|it| Sectors(it.sectors())), oldest_first)
}

/// Returns reads in the order in which a disk gets them whose scheduler begins with the oldest read
/// and goes upwards from it, again and again.
fn in_sweeps(mut held: Vec<DirectRead>) -> Vec<DirectRead> {
    held.sort_by_key(|read| read.slot);
    let mut sent = Vec::new();
    while !held.is_empty() {
        let (slot, first) = (held[0].slot, held[0].start);
        let is_ahead = |read: &mut DirectRead| read.slot == slot && read.start >= first;
        let mut sweep: Vec<_> = held.extract_if(.., is_ahead).collect();
        sweep.sort_by_key(|read| read.start);
        sent.append(&mut sweep);
    }
    sent
}

impl Pluggable for DirectRead {
    fn slot(&self) -> Slot {
        self.slot
    }

    fn sectors(&self) -> u64 {
        self.count
    }

    fn is_continued_by(&self, other: &Self, longest: u64) -> bool {
        let follows = self.slot == other.slot && self.start + self.count == other.start;
        follows && self.count + other.count <= longest
    }

    fn merge(&mut self, other: &mut Self) {
        self.start = self.start.min(other.start);
        self.count += other.count;
        self.chunks.append(&mut other.chunks);
    }
}

/// Blocks that lie side by side on a member, of consecutive stripes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plugged {
    pub(super) slot: Slot,
    pub(super) operation: Operation,
    pub(super) purpose: Purpose,
    pub(super) force_unit_access: bool,
    /// The first stripe's number; `count` stripes follow from it.
    pub(super) first: u64,
    pub(super) count: u64,
}

impl Pluggable for Plugged {
    fn slot(&self) -> Slot {
        self.slot
    }

    fn sectors(&self) -> u64 {
        self.count * BLOCK
    }

    /// Writes with FUA are not merged (`REQ_NOMERGE_FLAGS` of include/linux/blk_types.h
    /// has FUA, `bio_mergeable`).
    fn is_continued_by(&self, other: &Self, longest: u64) -> bool {
        let same = self.slot == other.slot
            && self.operation == other.operation
            && !(self.force_unit_access || other.force_unit_access);
        let follows = self.first + self.count == other.first;
        same && follows && self.count + other.count <= longest / BLOCK
    }

    fn merge(&mut self, other: &mut Self) {
        self.first = self.first.min(other.first);
        self.count += other.count;
    }
}

impl Raid5d {
    /// Puts a stripe's block of a member into the plug.
    pub(super) fn plug(&mut self, mut block: Plugged, out: &mut Outputs) {
        let oldest_first = self.plug_begins_with_oldest();
        let longest = self.longest_command;
        if joins(&mut self.plugged, &mut block, oldest_first, longest) {
            return;
        }
        if is_full(&self.plugged, oldest_first) {
            self.unplug_members(out);
        }
        self.plugged.push(block);
    }

    fn plug_begins_with_oldest(&self) -> bool {
        let threads = self.recovery.threads;
        threads.is_none_or(|threads| threads.rules.plug_begins_with_oldest)
    }

    /// Sends a request's reads past the cache. Those of one bio are one command where they lie side
    /// by side, if the imitated Linux does so ([`MdRules::plugs_requests`]); those of a longer
    /// request go through a plug.
    pub(super) fn send_directly(
        &mut self,
        request: RequestId,
        reads: Vec<DirectRead>,
        out: &mut Outputs,
    ) {
        let threads = self.recovery.threads;
        let sectors: u64 = reads.iter().map(|read| read.count).sum();
        if sectors <= MdRules::OF_ONE_BIO.0 {
            match threads.is_some_and(|threads| threads.rules.plugs_requests) {
                true => self.send_sorted(request, reads, out),
                false => self.send_reads(request, reads, out),
            }
            return;
        }
        let oldest_first = self.plug_begins_with_oldest();
        let mut plugged = Vec::new();
        for mut read in reads {
            if joins(&mut plugged, &mut read, oldest_first, self.longest_command) {
                continue;
            }
            if is_full(&plugged, oldest_first) {
                self.leave_plug(request, std::mem::take(&mut plugged), out);
            }
            plugged.push(read);
        }
        self.leave_plug(request, plugged, out);
    }

    /// Sends the reads of a plug, oldest first. They go into the disks' schedulers, and then to
    /// the disks (block/mq-deadline.c).
    fn leave_plug(&mut self, request: RequestId, reads: Vec<DirectRead>, out: &mut Outputs) {
        let mut held = inserted(reads, self.longest_command);
        let starts_anew = self
            .recovery
            .threads
            .is_some_and(|it| it.rules.sweeps_start_anew);
        match starts_anew {
            true => held = in_sweeps(held),
            false => held.sort_by_key(|read| (read.slot, read.start)),
        }
        self.send_reads(request, held, out);
    }

    /// Sends reads of a bio that reach the schedulers before the disks ask for any.
    fn send_sorted(&mut self, request: RequestId, mut reads: Vec<DirectRead>, out: &mut Outputs) {
        reads.sort_by_key(|read| (read.slot, read.start));
        reads.dedup_by(|next, last| last.absorb(next, self.longest_command));
        self.send_reads(request, reads, out);
    }

    fn send_reads(&mut self, request: RequestId, reads: Vec<DirectRead>, out: &mut Outputs) {
        for read in reads {
            let mut chunks = read.chunks;
            let (start, count) = chunks.remove(0);
            let role = Role::Direct {
                request,
                start,
                count,
            };
            let how = (Operation::Read, Purpose::Foreground, false);
            let id = self.issue(read.slot, role, (read.start, read.count), how, out);
            if !chunks.is_empty() {
                self.further.insert(id, chunks);
            }
        }
    }

    /// Sends the commands that were gathered while the queue was plugged.
    pub(super) fn unplug_members(&mut self, out: &mut Outputs) {
        let plugged = std::mem::take(&mut self.plugged);
        let mut requests = inserted(plugged, self.longest_command);
        requests.sort_by_key(|it| (it.slot, it.operation != Operation::Read, it.first));
        for plugged in requests {
            let role = Role::Blocks {
                first: plugged.first,
                count: plugged.count,
            };
            let sectors = (plugged.first * BLOCK, plugged.count * BLOCK);
            let Plugged { slot, purpose, .. } = plugged;
            let how = (plugged.operation, purpose, plugged.force_unit_access);
            self.issue(slot, role, sectors, how, out);
        }
    }

    /// Sends a command; `sectors`: the first one in the data area, and their number.
    pub(super) fn issue(
        &mut self,
        slot: Slot,
        role: Role,
        (start, count): (u64, u64),
        (operation, purpose, force_unit_access): (Operation, Purpose, bool),
        out: &mut Outputs,
    ) -> CommandId {
        let index = self.commands.insert(Command {
            slot,
            epoch: self.members.epoch(slot),
            operation,
            sectors: count,
            role,
        });
        let is_sync = purpose == Purpose::Sync;
        self.members.issued(slot, if is_sync { count } else { 0 });
        self.commands_in_flight += 1;
        let offset = match role {
            Role::Flush(_) => Sectors::ZERO,
            Role::Direct { .. } | Role::Blocks { .. } => self.members.data_offset(slot),
        };
        let sender = match role {
            Role::Direct { request, .. } | Role::Flush(request) => {
                Sender::Process(self.requests.process(request).unwrap_or(u32::MAX))
            }
            Role::Blocks { .. } => Sender::Thread,
        };
        let id = CommandId(self.commands.key(index));
        let command = MemberCommand {
            id,
            slot,
            operation,
            start: offset + Sectors(start),
            count: Sectors(count),
            force_unit_access,
            purpose,
            sender,
            buffer: BufferId::None,
        };
        self.senders.send(command, out);
        id
    }

    pub(super) fn command_done(
        &mut self,
        id: CommandId,
        mut result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        let Some(command) = self.commands.take_key(id.0) else {
            return;
        };
        self.commands_in_flight -= 1;
        let Command { slot, .. } = command;
        self.senders.ended(id, slot, out);
        if command.epoch == self.members.epoch(slot) {
            self.members.completed(slot, command.sectors);
            let writes = command.operation != Operation::Read;
            if result == Err(MemberError::Gone) || writes && result.is_err() {
                self.lose_member(slot, out);
            }
        } else {
            result = Err(MemberError::Gone);
        }
        match command.role {
            Role::Flush(request) => self.settle(request, Ok(()), out),
            Role::Direct {
                request,
                start,
                count,
            } => {
                let further = self.further.remove(&id).unwrap_or_default();
                for (start, count) in std::iter::once((start, count)).chain(further) {
                    if result.is_err() {
                        self.read_by_stripes(request, start, count, out);
                    }
                    self.settle(request, Ok(()), out);
                }
            }
            Role::Blocks { first, count } => {
                let reads = command.operation == Operation::Read;
                for number in first..first + count {
                    self.block_done(number, slot, reads, result, out);
                }
            }
        }
    }

    fn block_done(
        &mut self,
        number: u64,
        slot: Slot,
        reads: bool,
        result: Result<(), MemberError>,
        out: &mut Outputs,
    ) {
        let stripe = self.cache.stripe(number);
        if let Some(head) = stripe.head {
            self.cache.release(head);
            return;
        }
        stripe.locked = stripe.locked.without(slot);
        stripe.wants_handling = true;
        let mut corrected = false;
        match result {
            Ok(()) if reads => {
                stripe.fresh = stripe.fresh.with(slot);
                corrected = stripe.refused.contains(slot);
                stripe.refused = stripe.refused.without(slot);
                stripe.rewritten = stripe.rewritten.without(slot);
            }
            Err(MemberError::Medium) if reads => {
                stripe.fresh = stripe.fresh.without(slot);
                stripe.refused = stripe.refused.with(slot);
                if stripe.rewritten.contains(slot) {
                    // The member refuses to read the sector even after it was rewritten.
                    self.lose_member(slot, out);
                }
            }
            Ok(()) => {
                let start = number * BLOCK;
                let range = Span::new(start, start + BLOCK);
                self.members.bad_range_written(slot, range, out);
            }
            Err(_) => {}
        }
        if corrected {
            out.events.push(Event::ReadErrorCorrected {
                slot,
                start: Sectors(number * BLOCK),
                count: Sectors(BLOCK),
            });
        }
        self.cache.release(number);
    }

    pub(super) fn flush(&mut self, request: RequestId, out: &mut Outputs) {
        let slots: SlotSet = self.members.in_service();
        for slot in slots.iter() {
            self.requests.add_part(request);
            let how = (Operation::Flush, Purpose::Foreground, false);
            self.issue(slot, Role::Flush(request), (0, 0), how, out);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Operation, Plugged, Purpose, Slot, inserted};

    /// Linux block/elevator.c, `elv_attempt_insert_merge`: a request is looked for that ends
    /// where the new one begins, and none that begins where it ends.
    #[test]
    fn what_leaves_a_plug_becomes_part_of_what_it_continues_and_not_of_what_it_precedes() {
        let left = |firsts: &[u64]| {
            let plugged = firsts.iter().map(|&first| Plugged {
                slot: Slot(0),
                operation: Operation::Read,
                purpose: Purpose::Foreground,
                force_unit_access: false,
                first,
                count: 4,
            });
            let left = inserted(plugged.collect(), 1000);
            let left = left.iter().map(|it| (it.first, it.count));
            left.collect::<Vec<_>>()
        };
        assert_eq!(left(&[0, 4]), [(0, 8)]);
        assert_eq!(left(&[4, 0]), [(4, 4), (0, 4)]);
        // What has grown may continue another one, and what it has grown towards stays.
        assert_eq!(left(&[0, 8, 4, 12]), [(0, 16)]);
        assert_eq!(left(&[4, 12, 8, 0]), [(4, 8), (12, 4), (0, 4)]);
    }
}
