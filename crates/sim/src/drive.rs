//! A disk in its slot: the host's queue before it, flushes, diskstats.
//!
//! No disk here is told to force a write: virtio has no such command, and libata uses none unless
//! it is told to (`libata.fua`). NVMe has one, and Linux uses it (`BLK_FEAT_FUA`); an NVMe disk is
//! modelled as if it had none, so its durable writes flush more than they do in truth. Data that
//! must be durable are written like any others, and then the disk's whole cache is flushed (Linux
//! block/blk-flush.c, `blk_insert_flush`). One flush at a time is with the disk; those that come
//! meanwhile are combined into one, which waits until no write is on its way that wants a flush
//! itself (`blk_kick_flush`). Such a write is merged with no other one. On a disk that declares no
//! write cache it is a write like any other.
//!
//! A write for which the disk has to be flushed first comes as two commands: a flush that has
//! [`MemberCommand::force_unit_access`], and the write. To Linux both are one request. So the next
//! flush waits for the write as soon as the first one has ended (`blk_flush_complete_seq`), and the
//! write goes before all others that wait.

use crate::result::MemberStatistics;
use raidlab_array::{CommandId, MemberCommand, Operation, Purpose, Sender};
use raidlab_disk::shared::Attached;
use raidlab_disk::surface::Surface;
use raidlab_disk::{
    Command, CommandKind, Completion, HostQueue, Inside, Order, QueueRules, Submitter, Target,
};
use raidlab_units::{Nanos, Sectors};

/// A member command on its way.
#[derive(Debug, Clone, Copy)]
struct Flight {
    command: MemberCommand,
    issued: Nanos,
    /// Whether this is a write that a flush has to follow.
    then_flush: bool,
    /// Whether this is a flush that a write of the same request follows.
    then_write: bool,
}

/// The tag of the flush among a disk's commands.
const FLUSH: u64 = u64::MAX;

/// The first of the numbers by which a disk's queue knows md's threads; processes of jobs
/// have smaller ones.
const FIRST_THREAD: u32 = u32::MAX - 1;

/// The sender of a command, and whether a process waits for it. Jobs write directly, so that
/// their writes are `REQ_SYNC` (Linux block/fops.c, `dio_bio_write_op`), which md passes on
/// (raid5.c, `R5_SyncIO`; raid1.c), and so are those of its metadata; the writes of a resync and
/// discards are not.
const fn submitter(command: &MemberCommand, then_flush: bool, first: bool) -> Submitter {
    Submitter {
        process: match command.sender {
            Sender::Process(process) => process,
            Sender::Sync => FIRST_THREAD,
            Sender::Thread => FIRST_THREAD + 1,
        },
        sync: match (command.operation, command.purpose) {
            (Operation::Read, _) => true,
            (Operation::Write, purpose) => !matches!(purpose, Purpose::Sync),
            (Operation::Flush | Operation::Discard, _) => false,
        },
        alone: then_flush,
        first,
    }
}

/// The requests that wait for flushes of a disk, in the host.
#[derive(Debug, Default)]
struct Flushes {
    /// The requests that wait for the next flush: places among the flights.
    waiting: Vec<usize>,
    /// The requests that wait for the flush that the disk has; `since` is the time at which
    /// it got that.
    running: Vec<usize>,
    since: Nanos,
    /// The number of writes with the disk, or about to be, that need a flush afterwards.
    data_in_flight: u32,
    /// The number of these that are about to come: the disk was flushed for them.
    to_come: u32,
}

/// A command of a disk that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskCommand {
    /// The time at which the subject sent the command.
    pub arrived: Nanos,
    /// The time at which the host knew of its end.
    pub completed: Nanos,
    /// The number of the disk, from 0.
    pub disk: usize,
    /// The kind of the command: read, write, flush or discard.
    pub operation: Operation,
    /// The first sector of the command on its disk.
    pub start: Sectors,
    /// The number of sectors that the command covered.
    pub count: Sectors,
}

/// One slot of the machine.
#[derive(Debug)]
pub(crate) struct Drive {
    queue: HostQueue,
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    flushes: Flushes,
    busy_since: Option<Nanos>,
    pub(crate) statistics: MemberStatistics,
    /// Cached [`HostQueue::next_event`]; `u64::MAX` for none.
    pub(crate) next: u64,
}

impl Drive {
    pub(crate) fn new(disk: Attached, rules: QueueRules) -> Self {
        Self {
            queue: HostQueue::new(disk, rules),
            flights: Vec::new(),
            free: Vec::new(),
            flushes: Flushes::default(),
            busy_since: None,
            statistics: MemberStatistics::default(),
            next: u64::MAX,
        }
    }

    /// The platters of the disk, if it is a disk of its own that has them.
    pub(crate) fn surface(&self) -> Option<&Surface> {
        match self.queue.disk() {
            Attached::Whole(disk) => Some(disk.surface()),
            Attached::Port(_) => None,
        }
    }

    /// Whether the disk's pace depends on the place.
    pub(crate) fn turns(&self) -> bool {
        Target::is_rotational(self.queue.disk())
    }

    /// Whether the disk declares no write cache, so that flushes do not reach it (Linux
    /// block/blk-core.c, `submit_bio_noacct`).
    pub(crate) fn keeps_nothing(&self) -> bool {
        !self.queue.disk().declares_write_cache()
    }

    /// Whether the disk takes discards.
    pub(crate) fn takes_discards(&self) -> bool {
        self.queue.disk().takes_discards()
    }

    /// Whether other disks may change the time of this one's next event.
    pub(crate) fn is_shared(&self) -> bool {
        self.queue.disk().is_shared()
    }

    /// The order in which the commands that wait for the disk are chosen.
    pub(crate) fn order(&self) -> Order {
        self.queue.order()
    }

    /// The number of commands in the disk, and of those that found no tag.
    pub(crate) fn queued(&self) -> (usize, usize) {
        self.queue.queued()
    }

    /// The places of the commands that are with the disk.
    pub(crate) fn inside(&self) -> Inside {
        match self.queue.disk() {
            Attached::Whole(disk) => disk.inside(),
            Attached::Port(_) => Inside::default(),
        }
    }

    /// The number of commands that found no tag so far.
    pub(crate) fn tag_overflows(&self) -> u64 {
        self.queue.overflows()
    }

    pub(crate) fn is_quiet(&self) -> bool {
        self.queue.disk().is_quiet() && self.free.len() == self.flights.len()
    }

    /// Whether the disk goes on as it does now, if the host does.
    pub(crate) fn is_steady(&self) -> bool {
        match self.queue.disk() {
            Attached::Whole(disk) => disk.is_steady(),
            Attached::Port(_) => false,
        }
    }

    pub(crate) fn leap(&mut self, sector: Sectors) {
        if let Attached::Whole(disk) = self.queue.disk_mut() {
            disk.leap(sector);
            self.refresh();
        }
    }

    /// Updates the time of the disk's next event.
    pub(crate) fn refresh(&mut self) {
        self.next = self.queue.next_event().map_or(u64::MAX, |time| time.0);
    }

    pub(crate) fn submit(&mut self, now: Nanos, command: &MemberCommand) {
        let flight = Flight {
            command: *command,
            issued: now,
            then_flush: command.operation == Operation::Write
                && command.force_unit_access
                && !self.keeps_nothing(),
            then_write: command.operation == Operation::Flush
                && command.purpose == Purpose::Metadata
                && command.force_unit_access,
        };
        let tag = match self.free.pop() {
            Some(tag) => {
                self.flights[tag] = Some(flight);
                tag
            }
            None => {
                self.flights.push(Some(flight));
                self.flights.len() - 1
            }
        };
        if self.busy_since.is_none() {
            self.busy_since = Some(now);
        }
        let kind = match command.operation {
            Operation::Read => CommandKind::Read,
            Operation::Write => CommandKind::Write,
            Operation::Discard => CommandKind::Discard,
            Operation::Flush => {
                self.flushes.waiting.push(tag);
                self.kick_flush(now);
                return self.refresh();
            }
        };
        let is_awaited = command.purpose == Purpose::Metadata && self.flushes.to_come > 0;
        let first = flight.then_flush && is_awaited;
        match first {
            true => self.flushes.to_come -= 1,
            false => self.flushes.data_in_flight += u32::from(flight.then_flush),
        }
        self.queue.submit_from(
            now,
            Command {
                tag: tag as u64,
                kind,
                start: command.start,
                count: command.count,
            },
            submitter(command, flight.then_flush, first),
        );
        self.refresh();
    }

    /// Ends the processes of the jobs, of which the queue is told.
    pub(crate) fn processes_end(&mut self, now: Nanos) {
        self.queue.exit(now, |process| process < FIRST_THREAD);
        self.refresh();
    }

    /// Sends a flush for all requests that wait for one, if that may be done now.
    fn kick_flush(&mut self, now: Nanos) {
        let flushes = &mut self.flushes;
        let may_go = flushes.running.is_empty() && flushes.data_in_flight == 0;
        if !may_go || flushes.waiting.is_empty() {
            return;
        }
        std::mem::swap(&mut flushes.running, &mut flushes.waiting);
        flushes.since = now;
        self.queue.submit(
            now,
            Command {
                tag: FLUSH,
                kind: CommandKind::Flush,
                start: Sectors::ZERO,
                count: Sectors::ZERO,
            },
        );
    }

    /// Advances the disk to `now` and hands over the commands of whose end the host may know; `log`
    /// gets each of them, as of disk 0.
    pub(crate) fn advance(
        &mut self,
        now: Nanos,
        completions: &mut Vec<Completion>,
        done: &mut Vec<CommandId>,
        mut log: Option<&mut Vec<DiskCommand>>,
    ) {
        completions.clear();
        self.queue.advance(now, completions);
        for completion in completions.iter() {
            if completion.tag == FLUSH {
                if let Some(log) = &mut log {
                    log.push(DiskCommand {
                        arrived: self.flushes.since,
                        completed: now,
                        disk: 0,
                        operation: Operation::Flush,
                        start: Sectors::ZERO,
                        count: Sectors::ZERO,
                    });
                }
                for tag in std::mem::take(&mut self.flushes.running) {
                    if self.flights[tag].is_some_and(|flight| flight.then_write) {
                        self.flushes.data_in_flight += 1;
                        self.flushes.to_come += 1;
                    }
                    done.extend(self.end(now, tag));
                    self.kick_flush(now);
                }
            } else {
                let tag = usize::try_from(completion.tag).unwrap_or(usize::MAX);
                if let (Some(log), Some(flight)) = (&mut log, self.flights[tag]) {
                    log.push(DiskCommand {
                        arrived: flight.issued,
                        completed: now,
                        disk: 0,
                        operation: flight.command.operation,
                        start: flight.command.start,
                        count: flight.command.count,
                    });
                }
                if self.flights[tag].is_some_and(|flight| flight.then_flush) {
                    self.flushes.data_in_flight -= 1;
                    self.flushes.waiting.push(tag);
                    self.kick_flush(now);
                } else {
                    done.extend(self.end(now, tag));
                }
            }
        }
        if self.free.len() == self.flights.len()
            && let Some(since) = self.busy_since.take()
        {
            self.statistics.busy += now - since;
        }
        self.refresh();
    }

    /// Ends a flight, and returns the subject's command if all of it is done.
    fn end(&mut self, now: Nanos, tag: usize) -> Option<CommandId> {
        let flight = self.flights[tag].take()?;
        self.free.push(tag);
        self.account(now, &flight);
        Some(flight.command.id)
    }

    fn account(&mut self, now: Nanos, flight: &Flight) {
        let ticks = now - flight.issued;
        let bytes = flight.command.count.to_bytes();
        match flight.command.operation {
            Operation::Read => {
                self.statistics.read_ios += 1;
                self.statistics.read_bytes += bytes;
                self.statistics.read_ticks += ticks;
            }
            Operation::Write => {
                self.statistics.write_ios += 1;
                self.statistics.write_bytes += bytes;
                self.statistics.write_ticks += ticks;
            }
            Operation::Flush | Operation::Discard => {}
        }
        if flight.command.purpose == Purpose::Sync {
            self.statistics.sync_bytes += bytes;
        }
    }

    /// The counters up to `now`, the busy time of the commands in flight included.
    pub(crate) fn statistics_at(&self, now: Nanos) -> MemberStatistics {
        let mut statistics = self.statistics;
        if let Some(since) = self.busy_since {
            statistics.busy += now - since;
        }
        statistics
    }
}

#[cfg(test)]
mod tests;
