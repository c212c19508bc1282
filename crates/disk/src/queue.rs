//! The host's queue before a disk: tags, the order of what waits, merging.
//!
//! A disk takes as many commands at a time as it has tags. What comes beyond waits in the
//! host, and an [`Order`] says which command is next when a tag is free:
//!
//! - [`Order::None`]: in order of arrival. Linux without a scheduler: who finds no tag sleeps
//!   until one is free, and the first to sleep is the first to wake.
//! - [`Order::Sweep`]: one sweep after the other from the first sector to the last, as
//!   FreeBSD's `bioq_disksort` (`sys/kern/subr_disk.c`) has it.
//! - [`Order::MqDeadline`]: Linux's scheduler of that name, the default of a disk with one
//!   hardware queue (`block/mq-deadline.c` of 6.12). Reads and writes are sorted apart. A
//!   *batch* is up to sixteen commands of one direction in ascending order; a new one is of
//!   reads where there are any, but after two batches of reads that writes had to wait for
//!   it is theirs. It begins where the direction's last command was, or with its oldest
//!   command if that has waited for too long (half a second for reads, five seconds for
//!   writes) or nothing lies beyond. The scheduler holds twice as many requests as the disk
//!   has tags, those with the disk among them (`nr_requests`); what comes beyond waits before
//!   it in order of arrival. A command that continues a waiting one, or ends where that
//!   begins, is merged with it, up to the largest request that the host sends.
//!
//! A flush goes before all others: Linux puts it at the head of the list to dispatch, and
//! the fault of a late one would be a caller's that sent it too early.
//!
//! A whole NVMe drive has no scheduler and takes 1023 commands, whatever its host does with
//! other disks: Linux gives a disk with several hardware queues none (`elevator_get_default` in
//! `block/elevator.c`), and a queue of NVMe has 1024 entries, one of which stays empty
//! (`io_queue_depth` in `drivers/nvme/host/pci.c`). One queue stands for all of a machine.
//!
//! One thing is left out: mq-deadline's choice is made one request ahead of the tag, as the
//! block layer takes a request from the scheduler before it asks for its tag.

use crate::DiskParameters;
use crate::command::{Command, CommandKind, Completion};
use crate::shared::Attached;
use raidlab_units::{Nanos, Sectors};
use std::collections::{BTreeMap, VecDeque};
use std::str::FromStr;
use thiserror::Error;

/// Which of the commands that wait for a tag is the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// The one that came first.
    #[default]
    None,
    /// The next one in a sweep that begins anew at its end.
    Sweep,
    /// As Linux's mq-deadline chooses.
    MqDeadline,
}

/// A name that is no order.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{name}` is no order of a host's queue; known are: {known}")]
pub struct UnknownOrder {
    /// The name as given.
    pub name: String,
    /// Every name that there is, for people.
    pub known: String,
}

impl Order {
    /// Every order with its name in files of hosts.
    pub const ALL: [(Self, &'static str); 3] = [
        (Self::None, "none"),
        (Self::Sweep, "sweep"),
        (Self::MqDeadline, "mq-deadline"),
    ];
}

impl FromStr for Order {
    type Err = UnknownOrder;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.iter().find(|entry| entry.1 == name);
        found.map(|entry| entry.0).ok_or_else(|| UnknownOrder {
            name: name.to_owned(),
            known: Self::ALL.map(|entry| entry.1).join(", "),
        })
    }
}

/// What a host's queue before one disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueRules {
    /// Commands that the disk takes at a time, at least 1.
    pub tags: usize,
    /// Which of those that wait is next.
    pub order: Order,
    /// The largest command that merging may make.
    pub largest: Sectors,
}

impl QueueRules {
    /// Before a SATA disk of a Linux of today: 32 tags, mq-deadline, requests of up to
    /// 1280 KiB (`BLK_DEF_MAX_SECTORS_CAP`).
    pub const SATA: Self = Self {
        tags: 32,
        order: Order::MqDeadline,
        largest: Sectors(2560),
    };

    /// The same host's queue before this disk: an NVMe drive has its own rules.
    #[must_use]
    pub fn before(self, disk: &DiskParameters) -> Self {
        match disk.is_nvme() {
            true => Self {
                tags: NVME_TAGS,
                order: Order::None,
                ..self
            },
            false => Self {
                tags: self.tags.max(1),
                ..self
            },
        }
    }

    /// Requests that the host holds for the disk, those with the disk among them: who comes
    /// with another one waits before all of these, in order of arrival (`nr_requests` of
    /// Linux: twice the tags with a scheduler, of which no more than 128 count, `blk_mq_init_sched`; a
    /// request for each tag without one).
    #[must_use]
    pub fn requests(self) -> usize {
        match self.order {
            Order::None => self.tags,
            Order::Sweep => usize::MAX,
            Order::MqDeadline => 2 * self.tags.min(BLKDEV_DEFAULT_RQ),
        }
    }
}

/// Half of a disk's requests at most (Linux include/linux/blkdev.h).
const BLKDEV_DEFAULT_RQ: usize = 128;

/// Commands that an NVMe drive takes at a time.
const NVME_TAGS: usize = 1023;

/// Commands of one direction in a batch of mq-deadline (`fifo_batch`).
const BATCH: u32 = 16;
/// Batches of reads that may go before waiting writes (`writes_starved`).
const STARVED: u32 = 2;
/// How long a read, and a write, waits at most before it begins a batch (`read_expire`,
/// `write_expire`).
const EXPIRE: [Nanos; 2] = [Nanos::from_millis(500), Nanos::from_secs(5)];

/// A command that waits, or several that were merged.
#[derive(Debug, Clone)]
struct Waiting {
    command: Command,
    arrived: Nanos,
    /// Tags of the commands that were merged with it.
    further: Vec<u64>,
}

impl Waiting {
    /// 0 for reads, 1 for all else.
    const fn direction(&self) -> usize {
        match self.command.kind {
            CommandKind::Read => 0,
            _ => 1,
        }
    }
}

/// A disk behind its host's queue. It speaks as the disk does: commands in, completions out.
#[derive(Debug, Clone)]
pub struct HostQueue {
    disk: Attached,
    rules: QueueRules,
    in_disk: usize,
    /// What the order chooses among, in order of arrival.
    waiting: Vec<Waiting>,
    /// What waits before that, in order of arrival.
    blocked: VecDeque<Waiting>,
    /// Commands with the disk that stand for further tags.
    merged: BTreeMap<u64, Vec<u64>>,
    /// Commands that found no tag, ever.
    overflows: u64,
    /// What waits goes on waiting.
    held: bool,
    choice: Choice,
}

/// How far the orders are.
#[derive(Debug, Clone, Copy, Default)]
struct Choice {
    /// Where the sweep is: behind the last command that had waited.
    sweep_from: u64,
    /// First sector of the last command of each direction.
    latest: [u64; 2],
    /// The batch's direction, and how many commands it had.
    direction: usize,
    batch: u32,
    /// Batches of reads that went before waiting writes.
    starved: u32,
}

impl HostQueue {
    /// An empty queue before `disk`; a cable that carries one command at a time leaves one
    /// tag, and an NVMe drive has its own rules.
    #[must_use]
    pub fn new(disk: Attached, rules: QueueRules) -> Self {
        let rules = match &disk {
            Attached::Whole(whole) => rules.before(whole.parameters()),
            _ if disk.one_at_a_time() => QueueRules { tags: 1, ..rules },
            _ => QueueRules {
                tags: rules.tags.max(1),
                ..rules
            },
        };
        Self {
            disk,
            rules,
            in_disk: 0,
            waiting: Vec::new(),
            blocked: VecDeque::new(),
            merged: BTreeMap::new(),
            overflows: 0,
            held: false,
            choice: Choice::default(),
        }
    }

    /// The disk, or the way to it.
    #[must_use]
    pub fn disk(&self) -> &Attached {
        &self.disk
    }

    /// The same to be changed, as by a leap; commands go through the queue.
    pub fn disk_mut(&mut self) -> &mut Attached {
        &mut self.disk
    }

    /// Commands with the disk, and those that wait for a tag.
    #[must_use]
    pub fn queued(&self) -> (usize, usize) {
        (self.in_disk, self.waiting.len() + self.blocked.len())
    }

    /// How many commands found no tag so far.
    #[must_use]
    pub fn overflows(&self) -> u64 {
        self.overflows
    }

    /// Takes a command at time `now`, which must not be earlier than that of any call
    /// before. Its tag must be of no other command that is under way.
    #[inline]
    pub fn submit(&mut self, now: Nanos, command: Command) {
        if self.in_disk < self.rules.tags {
            self.choice.pass(&command);
            self.choice.sent(&command);
            self.in_disk += 1;
            self.disk.submit(now, command);
        } else {
            self.overflows += 1;
            self.queue(now, command);
        }
    }

    /// When [`Self::advance`] next has something to do.
    #[inline]
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        self.disk.next_event()
    }

    /// Does what is due at `now`, appends the commands that completed, and gives their tags
    /// to others. To be called at each [`Self::next_event`].
    pub fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        let first = completions.len();
        self.disk.advance(now, completions);
        let ended = first..completions.len();
        self.in_disk -= ended.len();
        if !self.merged.is_empty() {
            for index in ended {
                let further = self.merged.remove(&completions[index].tag);
                let further = further.into_iter().flatten();
                completions.extend(further.map(|tag| Completion { tag }));
            }
        }
        self.refill(now);
    }

    /// From now on what waits goes on waiting, as before a disk that hangs.
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Ends a [`Self::hold`] at `now`.
    pub fn release(&mut self, now: Nanos) {
        self.held = false;
        self.refill(now);
    }

    /// A command that finds no tag.
    fn queue(&mut self, now: Nanos, command: Command) {
        let waiting = Waiting {
            command,
            arrived: now,
            further: Vec::new(),
        };
        let room = match self.rules.order {
            Order::None => 0,
            Order::Sweep => usize::MAX,
            Order::MqDeadline => self.rules.tags,
        };
        let merges = self.rules.order == Order::MqDeadline;
        if command.kind == CommandKind::Flush || (merges && self.merge(&waiting)) {
            if command.kind == CommandKind::Flush {
                self.waiting.push(waiting);
            }
        } else if self.waiting.len() < room {
            self.waiting.push(waiting);
        } else {
            self.blocked.push_back(waiting);
        }
    }

    /// Puts a command together with one that waits, if one of them continues the other.
    fn merge(&mut self, new: &Waiting) -> bool {
        let largest = self.rules.largest.0;
        let fits = |old: &&mut Waiting| {
            let (one, other) = (&old.command, &new.command);
            let touches = one.end() == other.start.0 || other.end() == one.start.0;
            one.kind == other.kind && touches && one.count.0 + other.count.0 <= largest
        };
        let Some(old) = self.waiting.iter_mut().find(fits) else {
            return false;
        };
        old.command.start = old.command.start.min(new.command.start);
        old.command.count += new.command.count;
        old.further.push(new.command.tag);
        old.further.extend(&new.further);
        true
    }

    /// Gives the tags that are free to those that wait.
    fn refill(&mut self, now: Nanos) {
        while self.in_disk < self.rules.tags && !self.held {
            let Some(next) = self.next(now) else {
                return;
            };
            self.choice.sent(&next.command);
            if next.command.kind != CommandKind::Flush {
                self.choice.sweep_from = next.command.end();
            }
            if !next.further.is_empty() {
                self.merged.insert(next.command.tag, next.further);
            }
            self.in_disk += 1;
            self.disk.submit(now, next.command);
            if self.rules.order == Order::MqDeadline
                && let Some(blocked) = self.blocked.pop_front()
            {
                let arrived = Waiting {
                    arrived: now,
                    ..blocked
                };
                if !self.merge(&arrived) {
                    self.waiting.push(arrived);
                }
            }
        }
    }

    /// Takes out of those that wait the one whose turn it is.
    fn next(&mut self, now: Nanos) -> Option<Waiting> {
        let is_flush = |one: &Waiting| one.command.kind == CommandKind::Flush;
        if let Some(flush) = self.waiting.iter().position(is_flush) {
            return Some(self.waiting.remove(flush));
        }
        let index = match self.rules.order {
            Order::None => return self.blocked.pop_front(),
            Order::Sweep => self.choice.sweep(&self.waiting)?,
            Order::MqDeadline => self.choice.deadline(&self.waiting, now)?,
        };
        Some(self.waiting.remove(index))
    }
}

impl Choice {
    /// A command goes to the disk.
    #[inline]
    fn sent(&mut self, command: &Command) {
        if command.kind != CommandKind::Flush {
            self.latest[usize::from(command.kind != CommandKind::Read)] = command.start.0;
        }
    }

    /// A command goes to the disk without having waited: it counts in batches as well.
    #[inline]
    fn pass(&mut self, command: &Command) {
        let direction = usize::from(command.kind != CommandKind::Read);
        let goes_on = direction == self.direction && command.start.0 >= self.latest[direction];
        if goes_on && self.batch < BATCH {
            self.batch += 1;
        } else if command.kind != CommandKind::Flush {
            self.direction = direction;
            self.batch = 1;
            self.starved *= u32::from(direction == 0);
        }
    }

    /// The next command of the sweep.
    fn sweep(&self, waiting: &[Waiting]) -> Option<usize> {
        let turn = |index: &usize| {
            let start = waiting[*index].command.start.0;
            (start < self.sweep_from, start)
        };
        (0..waiting.len()).min_by_key(turn)
    }

    /// The next command of mq-deadline.
    fn deadline(&mut self, waiting: &[Waiting], now: Nanos) -> Option<usize> {
        let oldest = |direction| {
            let mut all = waiting.iter();
            all.position(|one| one.direction() == direction)
        };
        if self.batch < BATCH
            && let Some(next) = self.beyond(waiting, self.direction)
        {
            self.batch += 1;
            return Some(next);
        }
        let (read, write) = (oldest(0), oldest(1));
        let starving = read.is_some() && write.is_some() && {
            self.starved += 1;
            self.starved > STARVED
        };
        let direction = usize::from(read.is_none() || starving);
        if direction == 1 {
            self.starved = 0;
        }
        let first = if direction == 1 { write } else { read }?;
        let expired = now - waiting[first].arrived >= EXPIRE[direction];
        self.direction = direction;
        self.batch = 1;
        match self.beyond(waiting, direction) {
            Some(next) if !expired => Some(next),
            _ => Some(first),
        }
    }

    /// The next command of a direction in ascending order.
    fn beyond(&self, waiting: &[Waiting], direction: usize) -> Option<usize> {
        let from = self.latest[direction];
        let all = waiting.iter().enumerate();
        let ahead =
            all.filter(|(_, one)| one.direction() == direction && one.command.start.0 >= from);
        let next = ahead.min_by_key(|(_, one)| one.command.start);
        next.map(|(index, _)| index)
    }
}

#[cfg(test)]
mod tests;
