//! The host's queue before a disk: tags, the order of what waits, merging.
//!
//! A disk takes as many commands at a time as it has tags. Further commands wait in the host, and
//! an [`Order`] decides which is next when a tag is free:
//!
//! - [`Order::None`]: in order of arrival. Linux without a scheduler: a process that finds no tag
//!   sleeps until one is free, and the first to sleep is the first to wake (`queue/sleepers.rs`).
//! - [`Order::Sweep`]: one sweep after the other from the first sector to the last, as in
//!   FreeBSD's `bioq_disksort` (`sys/kern/subr_disk.c`).
//! - [`Order::MqDeadline`]: Linux's scheduler of that name, the default of a disk with one
//!   hardware queue (`block/mq-deadline.c` of 6.12). Reads and writes are sorted apart. A *batch*
//!   is up to sixteen commands of one direction in ascending order; a new one is of reads where
//!   there are any, but after two batches of reads for which writes had to wait, it is of writes.
//!   It begins where the direction's last command was, or with its oldest command if that has
//!   waited for too long (half a second for reads, five seconds for writes) or there is none
//!   beyond. The scheduler holds twice as many requests as the disk has tags, those with the disk
//!   among them (`nr_requests`); further ones wait before it in order of arrival. A command that
//!   continues a waiting one, or ends where that begins, is merged with it, up to the largest
//!   request that the host sends, and a command that has grown is merged with the one that it
//!   then touches (`queue/merging.rs`).
//! - [`Order::Kyber`]: Linux's scheduler of that name, with as many requests. New commands are
//!   merged with the latest waiting ones, but waiting ones not with each other. Its rules are at
//!   the top of `queue/kyber.rs`.
//! - [`Order::Bfq`]: Linux's scheduler that goes by the process that sends a command, its
//!   [`Submitter`]. Its rules are at the top of `queue/bfq.rs`.
//!
//! A flush goes before all others: Linux puts it at the head of the list to
//! dispatch, and a caller must not send it too early. Then comes a write for which
//! the disk was flushed ([`Submitter::first`]).
//!
//! An NVMe drive takes 1023 commands, and has no scheduler unless one is asked for, whatever its
//! host does with other disks: Linux gives a disk with several hardware queues none
//! (`elevator_get_default` in `block/elevator.c`), and a queue of NVMe has 1024 entries, one of
//! which stays empty (`io_queue_depth` in `drivers/nvme/host/pci.c`). One queue models all queues
//! of a machine.
//!
//! A write that goes through the cache, or that a flush follows, is never merged by any
//! of them ([`Submitter::alone`]).
//!
//! Left out are:
//!
//! - mq-deadline's choice ahead of the tag, before drives other than those of SCSI and SATA: the
//!   block layer takes a request from the scheduler before it asks for the request's tag
//!   (`__blk_mq_do_dispatch_sched` in `block/blk-mq-sched.c`; `scsi_mq_get_budget` asks first).
//! - The place of mq-deadline in Linux 5.10 and 6.1, which is a request and not a
//!   sector (`next_rq`): a request that arrives between that one and the last one waits
//!   for the next sweep.
//! - Throttling of writes (`block/blk-wbt.c`), which distributions enable without BFQ
//!   (`wbt_lat_usec`). It holds back writes without `REQ_IDLE`: those of md's arrays with parity
//!   (`ops_run_io` in `drivers/md/raid5.c`), in 6.1 those of mirrors (`raid1_write_request`), and
//!   all of a resync, but no direct ones. Of 32 tags those with `REQ_SYNC` get up to 24, those of a
//!   resync 12, and 6 beside reads (`get_limit`).
//! - The segments of a request. A request of 1280 KiB has 320 pages where memory is in pieces, and
//!   AHCI takes 168 of them (`AHCI_MAX_SG` in `drivers/ata/ahci.h`).

mod bfq;
mod deadline;
mod kyber;
mod merging;
mod order;
mod rules;
mod sleepers;
mod target;
mod waiting;

pub use order::{Order, UnknownOrder};
pub use rules::QueueRules;
pub use target::Target;
pub use waiting::Submitter;

use crate::command::{Command, CommandKind, Completion};
use bfq::Bfq;
use deadline::{Deadline, sweep};
use kyber::Kyber;
use raidlab_units::Nanos;
use sleepers::Sleepers;
use std::collections::BTreeMap;
use waiting::Waiting;

/// A disk, or a port to one, behind its host's queue. It takes commands and gives completions, as
/// the disk does.
#[derive(Debug, Clone)]
pub struct Queue<T> {
    disk: T,
    rules: QueueRules,
    in_disk: usize,
    /// The commands among which the order chooses, in order of arrival.
    waiting: Vec<Waiting>,
    /// The commands that wait for a place before that.
    sleepers: Sleepers,
    /// Commands with the disk that stand for the tags of merged ones too.
    merged: BTreeMap<u64, Vec<u64>>,
    /// The number of commands so far that found no tag.
    overflows: u64,
    /// Whether waiting commands are kept back from the disk.
    held: bool,
    scheduler: Scheduler,
}

/// The scheduler that chooses among waiting commands, with its state.
#[derive(Debug, Clone)]
enum Scheduler {
    /// Commands go to the disk in order of arrival.
    None,
    /// The sweep has passed this sector, the end of the last command that had waited.
    Sweep(u64),
    Deadline(Deadline),
    Kyber(Box<Kyber>),
    Bfq(Box<Bfq>),
}

impl Scheduler {
    fn of(order: Order, is_rotational: bool) -> Self {
        match order {
            Order::None => Self::None,
            Order::Sweep => Self::Sweep(0),
            Order::MqDeadline => Self::Deadline(Deadline::default()),
            Order::Kyber => Self::Kyber(Box::new(Kyber::new())),
            Order::Bfq => Self::Bfq(Box::new(Bfq::new(is_rotational))),
        }
    }

    /// Notes that a command that has waited goes to the disk.
    fn sent(&mut self, now: Nanos, sent: &Waiting) {
        match self {
            Self::None | Self::Bfq(_) => {}
            Self::Sweep(from) if sent.command.kind != CommandKind::Flush => {
                *from = sent.command.end();
            }
            Self::Sweep(_) => {}
            Self::Deadline(deadline) => deadline.sent(&sent.command),
            Self::Kyber(kyber) => kyber.sent(now, sent),
        }
    }

    /// Whether a command that finds a free tag may go at once.
    #[inline]
    fn passes(&mut self, command: &Command) -> bool {
        match self {
            Self::None | Self::Sweep(_) => true,
            Self::Deadline(deadline) => {
                deadline.pass(command);
                deadline.sent(command);
                true
            }
            Self::Kyber(_) | Self::Bfq(_) => command.kind == CommandKind::Flush,
        }
    }
}

impl<T: Target> Queue<T> {
    /// Creates an empty queue before `disk`; a cable that carries one command at a time leaves one
    /// tag, and an NVMe drive has its own rules. All parts of a drive have one queue.
    #[must_use]
    pub fn new(mut disk: T, rules: QueueRules) -> Self {
        let rules = disk.rules(rules);
        Self::with(disk, rules)
    }

    /// Sets the rules of a host. The queue must be empty.
    pub(crate) fn begin_with(&mut self, host: QueueRules) {
        self.rules = self.disk.rules(host);
        self.sleepers = Sleepers::new(self.rules.turn);
        self.scheduler = Scheduler::of(self.rules.order, self.disk.is_rotational());
    }

    /// Creates an empty queue with exactly these rules.
    pub(crate) fn with(disk: T, rules: QueueRules) -> Self {
        let scheduler = Scheduler::of(rules.order, disk.is_rotational());
        Self {
            disk,
            rules,
            in_disk: 0,
            waiting: Vec::new(),
            sleepers: Sleepers::new(rules.turn),
            merged: BTreeMap::new(),
            overflows: 0,
            held: false,
            scheduler,
        }
    }

    /// The disk, or the port to it.
    #[must_use]
    pub const fn disk(&self) -> &T {
        &self.disk
    }

    /// The disk, or the port to it, for changes such as a leap; commands go through the queue.
    pub const fn disk_mut(&mut self) -> &mut T {
        &mut self.disk
    }

    /// The order by which commands that wait for a tag are chosen.
    #[must_use]
    pub fn order(&self) -> Order {
        self.disk.order().unwrap_or(self.rules.order)
    }

    /// The number of commands with the disk, and of those that wait for a tag.
    #[must_use]
    pub fn queued(&self) -> (usize, usize) {
        let own = (
            self.in_disk,
            self.waiting.len() + self.sleepers.waiting.len(),
        );
        self.disk.queued().unwrap_or(own)
    }

    /// Counts the requests of the commands whose tags `is_own` accepts: those with the disk, if
    /// there are `all` commands in all, and those that wait.
    pub(crate) fn queued_of(&self, all: usize, is_own: impl Fn(u64) -> bool) -> (usize, usize) {
        let waiting = || self.waiting.iter().chain(&self.sleepers.waiting);
        let waits = waiting().filter(|one| is_own(one.command.tag)).count();
        let beside = waiting().map(|one| &one.further);
        let beside = beside.chain(self.merged.values()).flatten();
        let beside = beside.filter(|tag| is_own(**tag)).count();
        (all - waits - beside, waits)
    }

    /// The number of commands so far that found no tag.
    #[must_use]
    pub fn overflows(&self) -> u64 {
        self.overflows + self.disk.overflows()
    }

    /// Takes a command as [`Self::submit_from`] does, from a sender that does not matter.
    #[inline]
    pub fn submit(&mut self, now: Nanos, command: Command) {
        self.submit_from(now, command, Submitter::default());
    }

    /// Takes a command from a sender at time `now`, which must not be earlier than that of any call
    /// before. No other command in flight may have its tag.
    #[inline]
    pub fn submit_from(&mut self, now: Nanos, command: Command, from: Submitter) {
        self.sleepers.sends(command.tag, from);
        if self.in_disk < self.tags() && self.scheduler.passes(&command) {
            self.in_disk += 1;
            self.disk.submit_from(now, command, from);
            return;
        }
        let in_disk = self.in_disk;
        self.queue(now, command, from);
        if let Scheduler::Kyber(kyber) = &mut self.scheduler {
            kyber.look(now);
            self.refill(now);
        } else if matches!(self.scheduler, Scheduler::Bfq(_)) {
            self.refill(now);
        }
        self.overflows += u64::from(self.in_disk == in_disk);
    }

    /// The number of commands that the disk gets at a time: a scheduler never holds more requests
    /// for all of a drive's tags than it can hold in total.
    #[inline]
    fn tags(&self) -> usize {
        match self.rules.order.is_scheduler() {
            true => self.rules.tags.min(self.rules.requests()),
            false => self.rules.tags,
        }
    }

    /// The time at which [`Self::advance`] next has something to do.
    #[inline]
    #[must_use]
    pub fn next_event(&self) -> Option<Nanos> {
        let disk = self.disk.next_event();
        let next = match &self.scheduler {
            Scheduler::Bfq(bfq) => disk.into_iter().chain(bfq.next_event()).min(),
            _ => disk,
        };
        if self.rules.turn == Nanos::ZERO {
            return next;
        }
        let turn = self.sleepers.next_event().filter(|_| self.is_free());
        next.into_iter().chain(turn).min()
    }

    /// Whether there is a free place for a sleeper.
    fn is_free(&self) -> bool {
        let mut sleepers = self.sleepers.waiting.iter();
        !self.held
            && match self.rules.order {
                Order::None => self.in_disk < self.tags(),
                _ => sleepers.any(|one| self.has_room(one)),
            }
    }

    /// Does everything due at `now`, appends the completed commands, and gives their tags to
    /// others. To be called at each [`Self::next_event`].
    pub fn advance(&mut self, now: Nanos, completions: &mut Vec<Completion>) {
        let first = completions.len();
        let is_due = |next: Nanos| next <= now;
        let is_bfq = matches!(self.scheduler, Scheduler::Bfq(_));
        if !is_bfq || self.disk.next_event().is_some_and(is_due) {
            self.disk.advance(now, completions);
        }
        let ended = first..completions.len();
        let was_full = self.in_disk >= self.tags();
        self.in_disk -= ended.len();
        if self.rules.turn > Nanos::ZERO {
            for completion in &completions[ended.clone()] {
                self.sleepers.ended(now, completion.tag);
            }
        }
        let tags = completions[ended.clone()].iter().map(|one| one.tag);
        let mut asks = match &mut self.scheduler {
            Scheduler::Kyber(kyber) => {
                kyber.look(now);
                tags.for_each(|tag| kyber.ended(now, tag));
                true
            }
            Scheduler::Bfq(bfq) => {
                let asks = tags.fold(was_full, |asks, tag| bfq.ended(now, tag) || asks);
                bfq.tick(now) || asks
            }
            _ => true,
        };
        if !self.merged.is_empty() {
            for index in ended {
                let further = self.merged.remove(&completions[index].tag);
                let further = further.into_iter().flatten();
                completions.extend(further.map(|tag| Completion { tag }));
            }
        }
        while is_bfq && self.admit(now) {
            asks = true;
        }
        if asks {
            self.refill(now);
        }
        // The running process's turn has ended since a place became free.
        if self.rules.turn > Nanos::ZERO && self.admit(now) {
            while self.admit(now) {}
            self.refill(now);
        }
    }

    /// Holds back waiting commands from now on, as before a disk that hangs.
    pub fn hold(&mut self) {
        self.held = true;
    }

    /// Ends a [`Self::hold`] at `now`.
    pub fn release(&mut self, now: Nanos) {
        self.held = false;
        self.refill(now);
    }

    /// Notes that processes have ended: those for whose numbers `ended` is true.
    pub fn exit(&mut self, now: Nanos, ended: impl Fn(u32) -> bool) {
        self.disk.exit(now, &ended);
        if let Scheduler::Bfq(bfq) = &mut self.scheduler {
            bfq.exit(now, ended);
            self.refill(now);
        }
    }

    /// Queues a command that finds no tag.
    fn queue(&mut self, now: Nanos, command: Command, from: Submitter) {
        let mut waiting = Waiting {
            command,
            arrived: now,
            further: Vec::new(),
            from,
            owner: None,
        };
        if command.kind == CommandKind::Flush || from.first {
            self.waiting.push(waiting);
            return;
        }
        if let Scheduler::Bfq(bfq) = &mut self.scheduler {
            waiting.owner = Some(bfq.owner(now, from));
        }
        let held = self.waiting.len();
        if self.has_room(&waiting) {
            self.insert(now, waiting);
        } else if !self.merges(&waiting) {
            self.sleepers.waiting.push_back(waiting);
        }
        if self.waiting.len() < held {
            self.admit(now);
        }
    }

    /// Whether the order can hold one more request to choose from.
    fn has_room(&self, new: &Waiting) -> bool {
        let requests = self.rules.requests();
        match (self.rules.order, &self.scheduler) {
            (Order::None, _) => false,
            (Order::Sweep, _) => true,
            (_, Scheduler::Bfq(bfq)) if !bfq.has_room(new, requests) => false,
            _ => self.in_disk + self.waiting.len() < requests,
        }
    }

    /// Adds a command to the waiting ones, or merges it into one of them.
    fn insert(&mut self, now: Nanos, new: Waiting) {
        if !self.merges(&new) {
            if let Scheduler::Bfq(bfq) = &mut self.scheduler {
                bfq.arrived(now, &new);
            }
            self.waiting.push(new);
        }
    }

    /// Lets in the first of the commands waiting before the scheduler for which it has room.
    fn admit(&mut self, now: Nanos) -> bool {
        if !self.rules.order.is_scheduler() || !self.sleepers.may_take(now) {
            return false;
        }
        let mut asleep = self.sleepers.waiting.iter();
        let first = asleep.position(|one| self.has_room(one));
        let Some(mut next) = first.and_then(|first| self.sleepers.waiting.remove(first)) else {
            return false;
        };
        next.arrived = now;
        if let Scheduler::Bfq(bfq) = &mut self.scheduler {
            next.owner = Some(bfq.owner(now, next.from));
        }
        self.insert(now, next);
        true
    }

    /// Gives the free tags to waiting commands.
    fn refill(&mut self, now: Nanos) {
        while self.in_disk < self.tags() && !self.held {
            if let Some(next) = self.next(now) {
                self.scheduler.sent(now, &next);
                if !next.further.is_empty() {
                    self.merged.insert(next.command.tag, next.further);
                }
                self.in_disk += 1;
                self.disk.submit_from(now, next.command, next.from);
                self.admit(now);
            } else if !self.admit(now) {
                return;
            }
        }
    }

    /// Takes the command that is next out of the waiting ones.
    fn next(&mut self, now: Nanos) -> Option<Waiting> {
        let is_flush = |one: &Waiting| one.command.kind == CommandKind::Flush;
        let ahead = || self.waiting.iter().rposition(|one| one.from.first);
        if let Some(first) = self.waiting.iter().position(is_flush).or_else(ahead) {
            return Some(self.waiting.remove(first));
        }
        let index = match &mut self.scheduler {
            Scheduler::None if !self.sleepers.may_take(now) => return None,
            Scheduler::None => return self.sleepers.waiting.pop_front(),
            Scheduler::Sweep(from) => sweep(&self.waiting, *from)?,
            Scheduler::Deadline(deadline) => deadline.next(&self.waiting, now)?,
            Scheduler::Kyber(kyber) => kyber.next(&self.waiting)?,
            Scheduler::Bfq(bfq) => bfq.next(now, &self.waiting)?,
        };
        Some(self.waiting.remove(index))
    }
}

#[cfg(test)]
impl<T> Queue<T> {
    /// The state of BFQ.
    fn bfq(&mut self) -> &mut Bfq {
        match &mut self.scheduler {
            Scheduler::Bfq(bfq) => bfq,
            other => panic!("{other:?}"),
        }
    }
}

#[cfg(test)]
mod tests;
