//! The host: what the operating system adds between a job and a disk.

use raidlab_disk::{Order, QueueRules};
use raidlab_units::{Bytes, Nanos};

/// The host's part of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// The time from a completion to the next submission of the same job.
    pub turnaround: Nanos,
    /// The number of commands that a drive takes at once.
    pub tags: u32,
    /// The order in which commands that wait for a tag are sent.
    pub order: Order,
    /// The same order before an NVMe drive.
    pub nvme_order: Order,
    /// The size of the largest request to a member; larger ones are split by the subject.
    pub maximum_request: Bytes,
    /// The system call of a durable write (`O_SYNC`) flushes the device once more before it
    /// returns, behind what makes the write itself durable.
    pub flush_after_sync: bool,
    /// The time, above zero, from one tick to the next of the clock of a scheduler that lets
    /// threads of an array with parity, and of a RAID 10's sync, go before the process that it last
    /// found running; the threads compute for what they send. `None`: a process goes on until it
    /// sleeps, and threads compute for nothing.
    pub scheduler_clock: Option<Nanos>,
    /// The time that a process computes before it waits for its next answer, where all processes
    /// and threads share one processor, on which each goes on until it sleeps: the turnarounds of
    /// answers that come together follow each other, and this time follows each of them. `None`:
    /// each process has a processor of its own.
    pub one_processor: Option<Nanos>,
}

impl Host {
    /// Makes a host with 32 tags and a processor for each process, which sends waiting commands in
    /// order of arrival, in requests of up to 512 KiB.
    #[must_use]
    pub const fn new(turnaround: Nanos) -> Self {
        Self {
            turnaround,
            tags: 32,
            order: Order::None,
            nvme_order: Order::None,
            maximum_request: Bytes(512 << 10),
            flush_after_sync: true,
            scheduler_clock: None,
            one_processor: None,
        }
    }

    /// The rules of the queue that the host has before each disk.
    #[must_use]
    pub fn queue(&self) -> QueueRules {
        QueueRules {
            tags: usize::try_from(self.tags).unwrap_or(usize::MAX),
            order: self.order,
            nvme_order: self.nvme_order,
            largest: self.maximum_request.to_sectors(),
            turn: (self.one_processor).map_or(Nanos::ZERO, |call| self.turnaround + call),
        }
    }
}
