//! A disk behind a device: its queue, its faults, its counters.
//!
//! Commands arrive at their times and answers leave at theirs. The disk takes as many commands as
//! it has tags. Others wait in the queue before it, where the guest lets in more than that: it has
//! one queue depth for all its disks, the largest of theirs. The waiting commands are sent in one
//! sweep after the other from the outermost place inwards. Answers that need no arm (an error of a
//! dead disk, a request that no disk understands) take a constant time.

use crate::config::DiskModel;
use crate::faults::{Faults, Health, ScheduledFault};
use raidlab_disk::{Command, CommandKind, Completion, HostQueue, Order, QueueRules};
use raidlab_units::{Nanos, Sectors};
use std::collections::BTreeMap;

/// The time of an answer for which no platter turns. Chosen, not measured: short beside any access,
/// and not nothing, so that a guest which asks again and again gets on in time.
pub(crate) const PROMPT_ANSWER: Nanos = Nanos(10_000);

/// The operation that a request asks of a disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DiskOperation {
    /// A transfer of data from the disk.
    Read,
    /// A transfer of data to the disk.
    Write,
    /// The putting of everything acknowledged on the medium.
    Flush,
    /// The giving up of sectors whose contents are of no use any more.
    Discard,
    /// The making of sectors that read as zeros.
    WriteZeroes,
    /// The reading of the serial number, or an operation that no disk understands.
    Other,
}

/// A command as the drive sees it, in sectors of 512 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Io {
    pub(crate) operation: DiskOperation,
    pub(crate) start: u64,
    pub(crate) count: u64,
}

/// A command that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) slot: usize,
    pub(crate) io: Io,
    pub(crate) arrived: Nanos,
    /// Whether the disk carried the command out without an error.
    pub(crate) good: bool,
}

/// The counters of a disk, as in the kernel's diskstats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskCounters {
    /// The number of reads that have ended.
    pub reads: u64,
    /// The bytes of the reads that have ended, failed ones included.
    pub read_bytes: u64,
    /// The sum of the times of these reads, each from its arrival to its end.
    pub read_time: Nanos,
    /// The number of writes that have ended, zeroed ranges among them.
    pub writes: u64,
    /// The bytes of the writes that have ended, failed ones included.
    pub written_bytes: u64,
    /// The sum of the times of these writes, each from its arrival to its end.
    pub write_time: Nanos,
    /// The number of flushes that have ended.
    pub flushes: u64,
    /// The number of discards that have ended.
    pub discards: u64,
    /// The number of commands of all these kinds that failed.
    pub errors: u64,
    /// The time with at least one command under way.
    pub busy: Nanos,
    /// The number of commands that have come and are not answered yet.
    pub in_flight: u64,
}

#[derive(Debug, Clone, Copy)]
struct Flight {
    io: Io,
    arrived: Nanos,
    kind: CommandKind,
}

/// A drive with its queue.
#[derive(Debug)]
pub(crate) struct Drive {
    queue: HostQueue,
    flights: Vec<Option<Flight>>,
    free: Vec<usize>,
    faults: Faults,
    /// The time at which the disk last began to hang.
    hung_at: Nanos,
    /// Slots of commands that a hung disk would have answered.
    unanswered: Vec<usize>,
    /// Slots of commands that came to a hung disk.
    unheard: Vec<usize>,
    /// Answers that need no arm: their times and order, with the slot and whether the
    /// command is good.
    prompt: BTreeMap<(Nanos, u64), (usize, bool)>,
    prompts: u64,
    busy_since: Option<Nanos>,
    counters: DiskCounters,
    completions: Vec<Completion>,
}

impl Drive {
    pub(crate) fn new(model: DiskModel, tags: usize, faults: &[ScheduledFault]) -> Self {
        let rules = QueueRules {
            tags,
            order: Order::Sweep,
            ..QueueRules::SATA
        };
        Self {
            queue: HostQueue::new(model.disk, rules),
            flights: Vec::new(),
            free: Vec::new(),
            faults: Faults::new(faults),
            hung_at: Nanos::ZERO,
            unanswered: Vec::new(),
            unheard: Vec::new(),
            prompt: BTreeMap::new(),
            prompts: 0,
            busy_since: None,
            counters: DiskCounters::default(),
            completions: Vec::new(),
        }
    }

    /// Takes a command at `now`; the slot stays the command's own until it is
    /// answered. `write_back` says whether a write may end in the cache.
    pub(crate) fn submit(&mut self, now: Nanos, io: Io, write_back: bool) -> usize {
        self.catch_up(now);
        let kind = match io.operation {
            DiskOperation::Read => CommandKind::Read,
            DiskOperation::Write | DiskOperation::WriteZeroes if write_back => CommandKind::Write,
            DiskOperation::Write | DiskOperation::WriteZeroes => CommandKind::WriteThrough,
            DiskOperation::Discard => CommandKind::Discard,
            DiskOperation::Flush | DiskOperation::Other => CommandKind::Flush,
        };
        let slot = self.take_off(now, io, kind);
        match self.faults.health() {
            Health::Alive => self.enter(now, slot),
            Health::Dead => self.answer_promptly(now + PROMPT_ANSWER, slot, false),
            Health::Hung => self.unheard.push(slot),
        }
        slot
    }

    /// Takes a request that is not the disk's; it is answered promptly.
    pub(crate) fn submit_other(&mut self, now: Nanos, good: bool) -> usize {
        self.catch_up(now);
        let io = Io {
            operation: DiskOperation::Other,
            start: 0,
            count: 0,
        };
        let slot = self.take_off(now, io, CommandKind::Flush);
        self.answer_promptly(now + PROMPT_ANSWER, slot, good);
        slot
    }

    fn take_off(&mut self, now: Nanos, io: Io, kind: CommandKind) -> usize {
        self.busy_since.get_or_insert(now);
        let flight = Some(Flight {
            io,
            arrived: now,
            kind,
        });
        if let Some(slot) = self.free.pop() {
            self.flights[slot] = flight;
            return slot;
        }
        self.flights.push(flight);
        self.flights.len() - 1
    }

    /// The number of commands that have come and are not answered yet.
    pub(crate) fn in_flight(&self) -> usize {
        self.flights.len() - self.free.len()
    }

    /// The time since when the disk owes an answer that will never come: it hangs, and no later
    /// fault changes that.
    pub(crate) fn owes_for_ever_since(&self) -> Option<Nanos> {
        if self.faults.health() != Health::Hung || self.faults.next_change().is_some() {
            return None;
        }
        let flights = self.flights.iter().flatten();
        let first = flights.map(|flight| flight.arrived).min()?;
        Some(first.max(self.hung_at))
    }

    /// Gives a command to the disk's queue.
    fn enter(&mut self, now: Nanos, slot: usize) {
        let Some(flight) = self.flights[slot] else {
            return;
        };
        let command = Command {
            tag: slot as u64,
            kind: flight.kind,
            start: Sectors(flight.io.start),
            count: Sectors(flight.io.count),
        };
        self.queue.submit(now, command);
    }

    fn answer_promptly(&mut self, at: Nanos, slot: usize, good: bool) {
        self.prompts += 1;
        self.prompt.insert((at, self.prompts), (slot, good));
    }

    /// The time at which [`Self::advance`] next has something to do.
    pub(crate) fn next_event(&self) -> Option<Nanos> {
        let prompt = self.prompt.first_key_value().map(|((at, _), _)| *at);
        let held = !self.unanswered.is_empty() || !self.unheard.is_empty();
        let change = if held {
            self.faults.next_change()
        } else {
            None
        };
        let events = [self.queue.next_event(), prompt, change];
        events.into_iter().flatten().min()
    }

    /// Does the work that is due by `now` and appends the answers.
    pub(crate) fn advance(&mut self, now: Nanos, answers: &mut Vec<Answer>) {
        while let Some(at) = self.next_event().filter(|&at| at <= now) {
            self.catch_up(at);
            let mut completions = std::mem::take(&mut self.completions);
            self.queue.advance(at, &mut completions);
            for completion in completions.drain(..) {
                let slot = usize::try_from(completion.tag).unwrap_or(usize::MAX);
                self.leave(at, slot, answers);
            }
            self.completions = completions;
            while let Some(entry) = self.prompt.first_entry() {
                if entry.key().0 > at {
                    break;
                }
                let (slot, good) = entry.remove();
                self.answer(at, slot, good, answers);
            }
        }
    }

    /// Lets the faults happen that are due.
    fn catch_up(&mut self, now: Nanos) {
        loop {
            let was_hung = self.faults.health() == Health::Hung;
            let Some((at, health)) = self.faults.happen(now) else {
                return;
            };
            if health == Health::Hung {
                if !was_hung {
                    self.hung_at = at;
                }
                self.queue.hold();
                continue;
            }
            for slot in std::mem::take(&mut self.unanswered) {
                let good = self.is_good(slot);
                self.answer_promptly(at, slot, good);
            }
            for slot in std::mem::take(&mut self.unheard) {
                match health {
                    Health::Alive => self.enter(at, slot),
                    _ => self.answer_promptly(at, slot, false),
                }
            }
            self.queue.release(at);
        }
    }

    /// Answers a command with which the disk itself is done.
    fn leave(&mut self, now: Nanos, slot: usize, answers: &mut Vec<Answer>) {
        if self.faults.health() == Health::Hung {
            self.unanswered.push(slot);
            return;
        }
        let good = self.is_good(slot);
        self.answer(now, slot, good, answers);
    }

    /// Whether the command succeeds if it ends now.
    fn is_good(&mut self, slot: usize) -> bool {
        let Some(Flight { io, .. }) = self.flights[slot] else {
            return false;
        };
        let end = io.start.saturating_add(io.count);
        self.faults.health() == Health::Alive
            && match io.operation {
                DiskOperation::Read => self.faults.can_read(io.start, end),
                DiskOperation::Write | DiskOperation::WriteZeroes => {
                    self.faults.write(io.start, end)
                }
                _ => true,
            }
    }

    fn answer(&mut self, now: Nanos, slot: usize, good: bool, answers: &mut Vec<Answer>) {
        let Some(flight) = self.flights[slot].take() else {
            return;
        };
        self.free.push(slot);
        self.count(now, &flight, good);
        if self.in_flight() == 0
            && let Some(since) = self.busy_since.take()
        {
            self.counters.busy += now - since;
        }
        answers.push(Answer {
            slot,
            io: flight.io,
            arrived: flight.arrived,
            good,
        });
    }

    fn count(&mut self, now: Nanos, flight: &Flight, good: bool) {
        let counters = &mut self.counters;
        let time = now - flight.arrived;
        let bytes = Sectors(flight.io.count).to_bytes().0;
        match flight.io.operation {
            DiskOperation::Read => {
                counters.reads += 1;
                counters.read_bytes += bytes;
                counters.read_time += time;
            }
            DiskOperation::Write | DiskOperation::WriteZeroes => {
                counters.writes += 1;
                counters.written_bytes += bytes;
                counters.write_time += time;
            }
            DiskOperation::Flush => counters.flushes += 1,
            DiskOperation::Discard => counters.discards += 1,
            DiskOperation::Other => return,
        }
        counters.errors += u64::from(!good);
    }

    /// The counters as they stand at `now`.
    pub(crate) fn counters_at(&self, now: Nanos) -> DiskCounters {
        let mut counters = self.counters;
        counters.in_flight = self.in_flight() as u64;
        if let Some(since) = self.busy_since {
            counters.busy += now.saturating_sub(since);
        }
        counters
    }
}

#[cfg(test)]
mod tests;
