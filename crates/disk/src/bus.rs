//! A bus that disks share: PCI, a SATA port multiplier, USB, the uplink of PCI Express.
//!
//! All data of its drives cross it, at a total rate. A drive transfers the data of one command
//! after the other, in the order in which they are ready. Drives that transfer at the same time
//! share the rate equally, however many commands each has, as on a bus that gives its masters short
//! bursts in turn. A half-duplex bus shares the rate between both directions, another one has it
//! for each. A command also occupies the bus for a time beside its data. Drives seek, and their
//! caches read ahead and write out, while others transfer.
//!
//! Equal shares are kept by the bytes that each transfer has had since a transfer was alone: a new
//! one ends when that count has risen by its own bytes, so the next to end is known without
//! visiting the others.

use raidlab_units::{BytesPerSecond, Nanos};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

/// The rates and costs of a bus that disks share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusRules {
    /// The total rate, above 0; for a bus that is not half duplex, the rate of each direction.
    pub rate: BytesPerSecond,
    /// Whether both directions share that rate.
    pub half_duplex: bool,
    /// The time that a command takes of the bus beside its data.
    pub command: Nanos,
}

/// The direction in which data cross a bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// The direction from a disk to the host, as with a read's data.
    In,
    /// The direction from the host to a disk, as with a write's data.
    Out,
}

/// The data of a command that cross the bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Transfer {
    /// The slot of the command.
    slot: usize,
    /// The index of its drive.
    drive: usize,
}

/// The transfers in one direction, or in both.
#[derive(Debug, Clone, Default)]
struct Lane {
    /// The time, in nanoseconds, of the last update of `served`.
    at: u64,
    /// The bytes that a transfer would have had that was crossing all the time.
    served: f64,
    /// The transfers, at most one of each drive, by the value of `served` at which each ends: its
    /// bits, which order as positive numbers.
    crossing: BinaryHeap<Reverse<(u64, Transfer)>>,
    /// The bytes of each drive's transfers that are crossing or wait for the drive's own ones
    /// before them, by the drive's index; the first is crossing.
    drives: Vec<VecDeque<(usize, f64)>>,
}

impl Lane {
    /// The time at which the first transfer ends.
    fn next(&self, nanos_per_byte: f64) -> u64 {
        let Some(&Reverse((end, _))) = self.crossing.peek() else {
            return u64::MAX;
        };
        let left = (f64::from_bits(end) - self.served).max(0.0);
        self.at + (left * nanos_per_byte * self.crossing.len() as f64).ceil() as u64
    }

    fn pass(&mut self, now: u64, nanos_per_byte: f64) {
        let passed = now.saturating_sub(self.at) as f64;
        let count = self.crossing.len();
        if count > 0 {
            self.served += passed / nanos_per_byte / count as f64;
        } else {
            self.served = 0.0;
        }
        self.at = now;
    }

    /// Takes a transfer of a number of bytes. It begins when the transfers of its drive that came
    /// before it have ended.
    fn push(&mut self, transfer: Transfer, bytes: f64) {
        if self.drives.len() <= transfer.drive {
            self.drives.resize_with(transfer.drive + 1, VecDeque::new);
        }
        self.drives[transfer.drive].push_back((transfer.slot, bytes));
        if self.drives[transfer.drive].len() == 1 {
            self.begin(transfer, bytes);
        }
    }

    fn begin(&mut self, transfer: Transfer, bytes: f64) {
        let end = self.served + bytes;
        self.crossing.push(Reverse((end.to_bits(), transfer)));
    }

    /// Ends the transfer that is the first to end, and begins the next one of its drive.
    fn pop(&mut self) -> Option<usize> {
        let Reverse((_, Transfer { slot, drive })) = self.crossing.pop()?;
        self.drives[drive].pop_front();
        if let Some(&(slot, bytes)) = self.drives[drive].front() {
            self.begin(Transfer { slot, drive }, bytes);
        }
        Some(slot)
    }
}

/// The state of a bus.
#[derive(Debug, Clone)]
pub(crate) struct Bus {
    rules: BusRules,
    nanos_per_byte: f64,
    lanes: [Lane; 2],
}

impl Bus {
    pub(crate) fn new(rules: BusRules) -> Self {
        Self {
            nanos_per_byte: 1e9 / rules.rate.0.max(1.0),
            rules,
            lanes: [Lane::default(), Lane::default()],
        }
    }

    /// Begins the transfer of the bytes of a drive's command, or lets it wait for those of the
    /// drive's commands before it; drives are numbered from 0, and the command is known by its slot.
    pub(crate) fn cross(&mut self, now: u64, way: Way, drive: usize, slot: usize, bytes: u64) {
        let apart = way == Way::Out && !self.rules.half_duplex;
        let lane = &mut self.lanes[usize::from(apart)];
        lane.pass(now, self.nanos_per_byte);
        let bytes = bytes as f64 + self.rules.command.0 as f64 / self.nanos_per_byte;
        lane.push(Transfer { slot, drive }, bytes);
    }

    /// The time at which the next transfer ends; `u64::MAX` for never.
    pub(crate) fn next(&self) -> u64 {
        let next = self.lanes.iter().map(|lane| lane.next(self.nanos_per_byte));
        next.fold(u64::MAX, u64::min)
    }

    /// Takes the slot of a command whose transfer has ended at `now`.
    pub(crate) fn take(&mut self, now: u64) -> Option<usize> {
        let nanos_per_byte = self.nanos_per_byte;
        let is_due = |lane: &&mut Lane| lane.next(nanos_per_byte) <= now;
        let lane = self.lanes.iter_mut().find(is_due)?;
        lane.pass(now, nanos_per_byte);
        lane.pop()
    }

    /// Whether no command's data cross the bus, in either direction.
    pub(crate) fn is_quiet(&self) -> bool {
        self.lanes.iter().all(|lane| lane.crossing.is_empty())
    }
}
