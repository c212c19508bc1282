//! What the operating system adds between a job and a disk.

use raidlab_disk::{Order, QueueRules};
use raidlab_units::{Bytes, Nanos};

/// The host's part of an I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Host {
    /// From a completion to the next submission of the same job.
    pub turnaround: Nanos,
    /// Commands a drive takes at once.
    pub tags: u32,
    /// Which of the commands that wait for one of these is next.
    pub order: Order,
    /// Which of those that wait is next, before an NVMe drive.
    pub nvme_order: Order,
    /// Largest request to a member; larger ones are split by the subject.
    pub maximum_request: Bytes,
    /// The system call of a durable write (`O_SYNC`) flushes the device once more before it
    /// returns, behind what makes the write itself durable.
    pub flush_after_sync: bool,
    /// From one tick to the next, above zero, of the clock of a scheduler that lets threads of an
    /// array with parity, and of a RAID 10's sync, go before the process that it last found
    /// running; the threads compute for what they send. `None`: a process goes on until it
    /// sleeps, and threads compute for nothing.
    pub scheduler_clock: Option<Nanos>,
    /// All processes and threads share one processor, on which each goes on until it sleeps: the
    /// turnarounds of answers that come together follow each other, and behind each of them what
    /// a process computes before it waits for its next answer, which is this; `None`: each
    /// process has a processor of its own.
    pub one_processor: Option<Nanos>,
}

impl Host {
    /// A host with 32 tags and a processor for each process, which sends what waits in order of
    /// arrival, in requests of up to 512 KiB.
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

    /// The queue that it has before each disk.
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
