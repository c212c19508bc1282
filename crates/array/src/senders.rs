//! The threads that send commands to members, and sleep where a disk has no free request left.
//!
//! A host has a limited number of requests for a disk, those in the disk included: twice the
//! disk's tags where it has an I/O scheduler (Linux 6.12 block/blk-mq-sched.c,
//! `blk_mq_init_sched`: `nr_requests`). A thread that finds none sleeps with its command in hand
//! (block/blk-mq-tag.c, `blk_mq_get_tag`), and all its later commands wait behind it, for
//! whichever disk they are. So commands of several processes take turns before a disk that has
//! too many, and a thread that waits for one disk leaves the others idle. Each request that ends
//! wakes one sleeper of its disk, the one that has slept longest (mq-deadline wakes them one by
//! one: `dd_depth_updated`, `sbitmap_queue_min_shallow_depth`).
//!
//! A command that lies beside one that waits for a tag, behind it or in front of it, is merged
//! into it and takes no request (`blk_mq_attempt_bio_merge`, `dd_request_merge`). The newest ones
//! count as waiting: the model does not know which ones the scheduler has sent ahead. Writes with
//! FUA are not merged.
//!
//! This is here, and not with the rest of md in crate `md`, as the engine of copies also models
//! md's mirrors where [`MdThreads`](crate::MdThreads) are set, and `md` is built on this crate.
//! Arrays that keep data set no limit, and no thread sleeps.

use crate::request::{CommandId, MemberCommand, Operation, Outputs, Sender, Slot};
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The requests that a host has for each disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostRequests {
    /// The most requests that wait and run at a time, at least 1.
    pub requests: u32,
    /// The most of them that the disk has, at least 1: its tags.
    pub tags: u32,
}

/// The disks before which the host has another number of requests, and that.
pub type OtherRequests = Option<(SlotSet, HostRequests)>;

impl HostRequests {
    /// The requests of a SATA disk on a present Linux: 32 tags, and twice as many requests.
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

/// A thread that sleeps for a request, or has just woken, and the commands, one at least, that it
/// has to send in this order.
#[derive(Debug)]
pub(crate) struct Woken {
    pub(crate) sender: Sender,
    pub(crate) commands: Vec<MemberCommand>,
}

/// The threads that send commands, and those of them that sleep.
#[derive(Debug, Default)]
pub struct Senders {
    /// The limit; `None`: there is none, and no thread sleeps.
    limit: Option<(HostRequests, Sectors)>,
    /// The disks that have a limit of their own, and that.
    others: OtherRequests,
    /// Each disk's requests, in the order in which they came.
    disks: BTreeMap<Slot, Vec<Taken>>,
    /// Commands in flight that were merged into others.
    merged: BTreeSet<CommandId>,
    /// The threads that sleep, in the order in which they fell asleep.
    asleep: VecDeque<Woken>,
    /// The same threads, each of which sleeps once: whether one does is asked for all of them.
    sleepers: BTreeSet<Sender>,
    /// Whether a thread woke that has nothing more to send.
    woke: bool,
    /// The number of commands so far that found no request, where there are no more of these than
    /// tags. Of others the disk's queue counts what finds no tag.
    overflows: u64,
}

impl Senders {
    /// Senders without commands. The limit is the number of requests that the host has for each
    /// disk and the longest command that merging may make; without one no thread ever sleeps.
    #[must_use]
    pub fn new(limit: Option<(HostRequests, Sectors)>) -> Self {
        Self {
            limit,
            ..Self::default()
        }
    }

    /// Makes limits of commands that are at most `longest` when they are merged: that of most disks,
    /// and that of the others, if there are any. `None`: there is no limit.
    #[must_use]
    pub fn with_limits(limits: Option<(HostRequests, OtherRequests)>, longest: Sectors) -> Self {
        Self {
            others: limits.and_then(|(_, others)| others),
            ..Self::new(limits.map(|(limit, _)| (limit, longest)))
        }
    }

    /// Whether this thread sleeps for a request.
    #[must_use]
    pub fn is_asleep(&self, sender: Sender) -> bool {
        self.sleepers.contains(&sender)
    }

    /// The number of commands so far that found no request, and that no disk's queue counts.
    #[must_use]
    pub const fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Returns how many senders sleep for a request of some disk.
    #[must_use]
    pub fn asleep(&self) -> usize {
        self.asleep.len()
    }

    /// Sends a command, or puts its sender to sleep with it.
    pub fn send(&mut self, command: MemberCommand, out: &mut Outputs) {
        let sender = command.sender;
        if self.sleepers.contains(&sender) {
            let mut asleep = self.asleep.iter_mut();
            let own = asleep.find(|asleep| asleep.sender == sender);
            own.expect("it sleeps").commands.push(command);
        } else if self.takes(&command) {
            out.commands.push(command);
        } else {
            let commands = vec![command];
            self.asleep.push_back(Woken { sender, commands });
            self.sleepers.insert(sender);
        }
    }

    /// Whether a thread woke since the last call and has sent all its commands.
    pub fn somebody_woke(&mut self) -> bool {
        std::mem::take(&mut self.woke)
    }

    /// Ends a command: the thread that wakes sends its commands, until it sleeps again.
    pub fn ended(&mut self, id: CommandId, slot: Slot, out: &mut Outputs) {
        if let Some(woken) = self.frees(id, slot) {
            for command in woken.commands {
                self.send(command, out);
            }
            self.has_sent(woken.sender);
        }
    }

    /// Frees the request of a command that has ended, or was merged into another one before it
    /// left; returns the thread that wakes, if the command had a request of its own. Its commands
    /// are to be sent, and then [`Self::has_sent`] is to be called.
    pub(crate) fn frees(&mut self, id: CommandId, slot: Slot) -> Option<Woken> {
        if self.limit.is_none() || self.merged.remove(&id) {
            return None;
        }
        if let Some(disk) = self.disks.get_mut(&slot) {
            disk.retain(|taken| taken.id != id);
        }
        let waits = |woken: &Woken| woken.commands[0].slot == slot;
        let first = self.asleep.iter().position(waits)?;
        let woken = self.asleep.remove(first)?;
        self.sleepers.remove(&woken.sender);
        Some(woken)
    }

    /// Notes that a thread that woke has sent its commands, or sleeps with one of them again.
    pub(crate) fn has_sent(&mut self, sender: Sender) {
        self.woke |= !self.is_asleep(sender);
    }

    /// Gives a command a request, if there is one; returns whether there was.
    fn takes(&mut self, command: &MemberCommand) -> bool {
        let Some((limit, longest)) = self.limit else {
            return true;
        };
        let limit = match self.others {
            Some((slots, other)) if slots.contains(command.slot) => other,
            _ => limit,
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
        } else if limit.requests <= limit.tags {
            self.overflows += 1;
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
    use raidlab_geometry::SlotSet;
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
        assert_eq!(senders.overflows(), 1, "the fourth waits for its process");
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

    /// An NVMe drive beside a SATA disk has the queue that it has alone.
    #[test]
    fn each_disk_has_its_own_limit() {
        let nvme = HostRequests {
            requests: 3,
            tags: 3,
        };
        let (mut senders, mut out) = (senders(1, 1), Outputs::default());
        senders.others = Some((SlotSet::only(Slot(1)), nvme));
        for id in 1..=4 {
            senders.send(read(FIRST, id, 1, 100 * id), &mut out);
        }
        senders.send(read(SECOND, 5, 0, 500), &mut out);
        senders.send(read(SECOND, 6, 0, 600), &mut out);
        assert_eq!(sent(&mut out), [1, 2, 3, 5]);
        assert!(senders.is_asleep(FIRST) && senders.is_asleep(SECOND));
    }

    #[test]
    fn who_wakes_sleeps_no_more_and_all_others_do() {
        let (mut senders, mut out) = (senders(1, 1), Outputs::default());
        let all = (1..=64).map(Sender::Process);
        for (id, sender) in (1..).zip(all.clone()) {
            senders.send(read(sender, id, 0, 100 * id), &mut out);
        }
        let asleep = |senders: &Senders| -> Vec<Sender> {
            all.clone().filter(|it| senders.is_asleep(*it)).collect()
        };
        for awake in 1..64 {
            let others: Vec<Sender> = all.clone().skip(awake).collect();
            assert_eq!(asleep(&senders), others);
            let id = out.commands.pop().expect("who is awake has sent").id;
            senders.ended(id, Slot(0), &mut out);
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
