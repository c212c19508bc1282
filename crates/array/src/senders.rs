//! Who sends commands to members, and sleeps where a disk has no request left.
//!
//! A host holds a limited number of requests for a disk, those with the disk among them: twice
//! the disk's tags where it has an I/O scheduler (Linux 6.12 block/blk-mq-sched.c,
//! `blk_mq_init_sched`: `nr_requests`). A thread that finds none sleeps with its command in
//! hand (block/blk-mq-tag.c, `blk_mq_get_tag`), and all that it has to send after that waits
//! behind it, for whichever disk it is. So commands of several processes take turns before a
//! disk that has too many, and a thread that waits for one disk leaves the others idle.
//! Each request that ends wakes one sleeper of its disk, the one that has slept for longest
//! (mq-deadline wakes them one by one: `dd_depth_updated`, `sbitmap_queue_min_shallow_depth`).
//!
//! A command that lies beside one that waits for a tag, behind it or in front of it, becomes part
//! of it and takes no request (`blk_mq_attempt_bio_merge`, `dd_request_merge`). Those that came last count as waiting: which ones the
//! scheduler has sent ahead is its own business. What is to be durable is merged with nothing.
//!
//! This stands here, and not with the rest of md in crate `md`, as the engine of copies is
//! md's mirrors too where [`MdThreads`](crate::MdThreads) say so, and `md` is built on this
//! crate. Arrays that keep data set no limit, and nobody sleeps.

use crate::request::{CommandId, MemberCommand, Operation, Outputs, Sender, Slot};
use raidlab_units::Sectors;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// What a host holds for each disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRequests {
    /// Requests that wait and run at a time, at least 1.
    pub requests: u32,
    /// Those of them that the disk has, at least 1: its tags.
    pub tags: u32,
}

impl HostRequests {
    /// A SATA disk's on a Linux of today: 32 tags, and twice as many requests.
    pub const SATA: Self = Self {
        requests: 64,
        tags: 32,
    };
}

/// One of the requests that the host holds for a disk, taken by a command.
#[derive(Debug)]
struct Taken {
    id: CommandId,
    operation: Operation,
    start: Sectors,
    end: Sectors,
    may_grow: bool,
}

/// Somebody who sleeps for a request, or has just woken, and the commands, one at least, that
/// it has to send in this order.
#[derive(Debug)]
pub(crate) struct Woken {
    pub(crate) sender: Sender,
    pub(crate) commands: Vec<MemberCommand>,
}

/// The threads that send commands, and those of them that sleep.
#[derive(Debug, Default)]
pub struct Senders {
    /// `None`: there is no limit, and nobody sleeps.
    limit: Option<(HostRequests, Sectors)>,
    /// Each disk's requests, in the order in which they came.
    disks: BTreeMap<Slot, Vec<Taken>>,
    /// Commands in flight that became part of others.
    merged: BTreeSet<CommandId>,
    /// Those that sleep, in the order in which they fell asleep.
    asleep: VecDeque<Woken>,
    /// Somebody woke who has nothing more to send.
    woke: bool,
}

impl Senders {
    /// Nobody has sent anything. The limit is what the host holds for each disk and the
    /// longest command that merging may make; without one nobody ever sleeps.
    #[must_use]
    pub fn new(limit: Option<(HostRequests, Sectors)>) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Whether somebody sleeps for a request.
    #[must_use]
    pub fn is_asleep(&self, sender: Sender) -> bool {
        self.asleep.iter().any(|asleep| asleep.sender == sender)
    }

    /// How many senders sleep for a request of some disk.
    #[must_use]
    pub fn asleep(&self) -> usize {
        self.asleep.len()
    }

    /// Sends a command, or has its sender sleep with it.
    pub fn send(&mut self, command: MemberCommand, out: &mut Outputs) {
        let sender = command.sender;
        let mut asleep = self.asleep.iter_mut();
        if let Some(asleep) = asleep.find(|asleep| asleep.sender == sender) {
            asleep.commands.push(command);
        } else if self.takes(&command) {
            out.commands.push(command);
        } else {
            let commands = vec![command];
            self.asleep.push_back(Woken { sender, commands });
        }
    }

    /// Whether somebody woke since the last call and has sent all that it had to.
    pub fn somebody_woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }

    /// A command has ended: who wakes sends what it has to, until it sleeps again.
    pub fn ended(&mut self, id: CommandId, slot: Slot, out: &mut Outputs) {
        if let Some(woken) = self.frees(id, slot) {
            for command in woken.commands {
                self.send(command, out);
            }
            self.has_sent(woken.sender);
        }
    }

    /// A command has ended, or has become part of another one before it left: who wakes, if its
    /// request was the only one of its own. Its commands are to be sent, and then
    /// [`Self::has_sent`] is to be told.
    pub(crate) fn frees(&mut self, id: CommandId, slot: Slot) -> Option<Woken> {
        if self.limit.is_none() || self.merged.remove(&id) {
            return None;
        }
        if let Some(disk) = self.disks.get_mut(&slot) {
            disk.retain(|taken| taken.id != id);
        }
        let waits = |woken: &Woken| woken.commands[0].slot == slot;
        let first = self.asleep.iter().position(waits);
        first.and_then(|at| self.asleep.remove(at))
    }

    /// Somebody who woke has sent its commands, or sleeps over one of them again.
    pub(crate) fn has_sent(&mut self, sender: Sender) {
        self.woke |= !self.is_asleep(sender);
    }

    /// Whether there is a request for a command, which then has it.
    fn takes(&mut self, command: &MemberCommand) -> bool {
        let Some((limit, longest)) = self.limit else {
            return true;
        };
        let disk = self.disks.entry(command.slot).or_default();
        let end = command.start + command.count;
        let may_grow = !command.force_unit_access && command.operation != Operation::Flush;
        let mut waiting = disk.iter_mut().skip(limit.tags as usize);
        let other = waiting.find(|taken| {
            let beside = taken.end == command.start || end == taken.start;
            let together = taken.end.max(end) - taken.start.min(command.start);
            let like = taken.may_grow && taken.operation == command.operation;
            like && beside && together <= longest
        });
        if let Some(other) = other.filter(|_| may_grow) {
            other.start = other.start.min(command.start);
            other.end = other.end.max(end);
            self.merged.insert(command.id);
            return true;
        }
        let has_room = disk.len() < limit.requests as usize;
        if has_room {
            disk.push(Taken {
                id: command.id,
                operation: command.operation,
                start: command.start,
                end,
                may_grow,
            });
        }
        has_room
    }
}

#[cfg(test)]
mod tests {
    use super::{HostRequests, Senders};
    use crate::request::{
        BufferId, CommandId, MemberCommand, Operation, Outputs, Purpose, Sender, Slot,
    };
    use raidlab_units::Sectors;

    const FIRST: Sender = Sender::Process(0);
    const SECOND: Sender = Sender::Process(1);

    fn read(sender: Sender, id: u64, slot: u16, start: u64) -> MemberCommand {
        MemberCommand {
            id: CommandId(id),
            slot: Slot(slot),
            operation: Operation::Read,
            start: Sectors(start),
            count: Sectors(8),
            force_unit_access: false,
            purpose: Purpose::Foreground,
            sender,
            buffer: BufferId::None,
        }
    }

    fn senders(requests: u32, tags: u32) -> Senders {
        let limit = HostRequests { requests, tags };
        Senders::new(Some((limit, Sectors(16))))
    }

    fn sent(out: &mut Outputs) -> Vec<u64> {
        out.commands.drain(..).map(|command| command.id.0).collect()
    }

    #[test]
    fn who_finds_no_request_sleeps_and_all_that_follows_waits() {
        let (mut senders, mut out) = (senders(2, 2), Outputs::default());
        for (id, slot) in [(1, 0), (2, 0), (3, 0), (4, 1)] {
            senders.send(read(FIRST, id, slot, 100 * id), &mut out);
        }
        assert_eq!(sent(&mut out), [1, 2], "the fourth is for an idle disk");
        assert!(senders.is_asleep(FIRST) && !senders.is_asleep(SECOND));
        senders.send(read(SECOND, 5, 1, 500), &mut out);
        assert_eq!(sent(&mut out), [5]);
        senders.ended(CommandId(1), Slot(0), &mut out);
        assert_eq!(sent(&mut out), [3, 4]);
        assert!(senders.somebody_woke() && !senders.is_asleep(FIRST));
    }

    #[test]
    fn sleepers_take_turns() {
        let (mut senders, mut out) = (senders(1, 1), Outputs::default());
        for (id, sender) in [(1, FIRST), (2, FIRST), (3, FIRST), (4, SECOND), (5, SECOND)] {
            senders.send(read(sender, id, 0, 100 * id), &mut out);
        }
        let mut order = sent(&mut out);
        while let Some(last) = order.last() {
            senders.ended(CommandId(*last), Slot(0), &mut out);
            match sent(&mut out)[..] {
                [next] => order.push(next),
                _ => break,
            }
        }
        assert_eq!(order, [1, 2, 4, 3, 5]);
    }

    /// With one tag the second command waits for it: what lies beside it is part of it, as
    /// far as a command may be long; the first one is with the disk.
    #[test]
    fn what_lies_beside_a_waiting_command_takes_no_request() {
        for starts in [[0, 8, 16, 24], [100, 92, 84, 76]] {
            let (mut senders, mut out) = (senders(2, 1), Outputs::default());
            for (id, start) in (1..).zip(starts) {
                senders.send(read(FIRST, id, 0, start), &mut out);
            }
            assert_eq!(sent(&mut out), [1, 2, 3]);
            // Its end frees nothing.
            senders.ended(CommandId(3), Slot(0), &mut out);
            assert!(sent(&mut out).is_empty() && !senders.somebody_woke());
            senders.ended(CommandId(2), Slot(0), &mut out);
            assert_eq!(sent(&mut out), [4]);
        }
    }

    #[test]
    fn without_a_limit_nobody_sleeps() {
        let (mut senders, mut out) = (Senders::new(None), Outputs::default());
        for id in 0..1000 {
            senders.send(read(FIRST, id, 0, 100 * id), &mut out);
        }
        assert_eq!(out.commands.len(), 1000);
        assert_eq!(senders.asleep(), 0);
    }
}
