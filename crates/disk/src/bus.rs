//! A bus that disks share: PCI, a SATA port multiplier, USB, the uplink of PCI Express.
//!
//! All data of its disks cross it, at a rate in all. What crosses at a time shares the rate
//! equally, as a bus does that gives its masters short bursts in turn. A half-duplex bus
//! carries both directions together, another one each by itself. A command takes a time of
//! the bus beside its data. Disks seek, and their caches read ahead and write out, while others
//! transfer.
//!
//! Equal shares are kept by the bytes that each transfer has had since a transfer was alone: a
//! new one ends when that count has risen by its own bytes, so the next to end is known
//! without a look at the others.

use raidlab_units::{BytesPerSecond, Nanos};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The rates and costs of a bus that disks share.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BusRules {
    /// What it carries in all, above 0; of a bus that is not half duplex, in each direction.
    pub rate: BytesPerSecond,
    /// Both directions share that rate.
    pub half_duplex: bool,
    /// What a command takes beside its data.
    pub command: Nanos,
}

/// The direction in which data cross a bus.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From a disk to the host, as a read's data do.
    In,
    /// From the host to a disk, as a write's data do.
    Out,
}

/// What crosses in one direction, or in both.
#[derive(Debug, Clone, Default)]
struct Lane {
    /// The time, in nanoseconds, at which `served` was brought up to date.
    at: u64,
    /// Bytes that whoever crosses all the time has had.
    served: f64,
    /// Who crosses, by the count at which it ends: its bits, which order as positive numbers.
    crossing: BinaryHeap<Reverse<(u64, usize)>>,
}

impl Lane {
    /// When the first to end is across.
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
}

/// A bus at work.
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

    /// So many bytes of a command, known by its slot, begin to cross.
    pub(crate) fn cross(&mut self, now: u64, way: Way, slot: usize, bytes: u64) {
        let apart = way == Way::Out && !self.rules.half_duplex;
        let lane = &mut self.lanes[usize::from(apart)];
        lane.pass(now, self.nanos_per_byte);
        let bytes = bytes as f64 + self.rules.command.0 as f64 / self.nanos_per_byte;
        let end = lane.served + bytes;
        lane.crossing.push(Reverse((end.to_bits(), slot)));
    }

    /// When the next command is across; `u64::MAX` for never.
    pub(crate) fn next(&self) -> u64 {
        let next = self.lanes.iter().map(|lane| lane.next(self.nanos_per_byte));
        next.fold(u64::MAX, u64::min)
    }

    /// The slot of a command that is across at `now`.
    pub(crate) fn take(&mut self, now: u64) -> Option<usize> {
        let nanos_per_byte = self.nanos_per_byte;
        let is_due = |lane: &&mut Lane| lane.next(nanos_per_byte) <= now;
        let lane = self.lanes.iter_mut().find(is_due)?;
        lane.pass(now, nanos_per_byte);
        lane.crossing.pop().map(|Reverse((_, slot))| slot)
    }

    /// Whether no command's data cross the bus, in either direction.
    pub(crate) fn is_quiet(&self) -> bool {
        self.lanes.iter().all(|lane| lane.crossing.is_empty())
    }
}
