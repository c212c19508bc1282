//! The rules of a host's queue before a disk.

use super::Order;
use crate::medium::parameters::DiskParameters;
use raidlab_units::{Nanos, Sectors};

/// The rules of a host's queue before one disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueRules {
    /// The number of commands that the disk takes at a time, at least 1.
    pub tags: usize,
    /// The order of waiting commands.
    pub order: Order,
    /// The order of waiting commands before an NVMe drive.
    pub nvme_order: Order,
    /// The size of the largest command that merging may make.
    pub largest: Sectors,
    /// The time for which a process runs after it has got an answer, on a host with one processor;
    /// zero where each process has a processor of its own.
    pub turn: Nanos,
}

impl QueueRules {
    /// The rules before a SATA disk of a present Linux: 32 tags, mq-deadline, requests of up to
    /// 1280 KiB (`BLK_DEF_MAX_SECTORS_CAP`).
    pub const SATA: Self = Self {
        tags: 32,
        order: Order::MqDeadline,
        nvme_order: Order::None,
        largest: Sectors(2560),
        turn: Nanos::ZERO,
    };

    /// The rules of a queue in which no command waits.
    pub(crate) const OPEN: Self = Self {
        tags: usize::MAX,
        order: Order::None,
        nvme_order: Order::None,
        largest: Sectors::ZERO,
        turn: Nanos::ZERO,
    };

    /// The rules of the same host before this disk: an NVMe drive has its own.
    #[must_use]
    pub fn before(self, disk: &DiskParameters) -> Self {
        match disk.is_nvme() {
            true => Self {
                tags: NVME_TAGS,
                order: self.nvme_order,
                ..self
            },
            false => Self {
                tags: self.tags.max(1),
                ..self
            },
        }
    }

    /// The number of requests that the host holds for the disk, including those with the disk: a
    /// process with another one waits before all of these, in order of arrival (`nr_requests` of
    /// Linux: twice the tags with a scheduler, of which no more than 128 count,
    /// `blk_mq_init_sched`; a request for each tag without one).
    #[must_use]
    pub fn requests(self) -> usize {
        match self.order {
            Order::None => self.tags,
            Order::Sweep => usize::MAX,
            Order::MqDeadline | Order::Kyber | Order::Bfq => 2 * self.tags.min(BLKDEV_DEFAULT_RQ),
        }
    }
}

/// Half of the largest number of a disk's requests (Linux include/linux/blkdev.h).
const BLKDEV_DEFAULT_RQ: usize = 128;

/// The number of commands that an NVMe drive takes at a time.
const NVME_TAGS: usize = 1023;
