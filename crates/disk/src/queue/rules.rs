//! What a host's queue before a disk is like.

use super::Order;
use crate::medium::parameters::DiskParameters;
use raidlab_units::{Nanos, Sectors};

/// What a host's queue before one disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueRules {
    /// Commands that the disk takes at a time, at least 1.
    pub tags: usize,
    /// Which of those that wait is next.
    pub order: Order,
    /// Which of those that wait is next, before an NVMe drive.
    pub nvme_order: Order,
    /// The largest command that merging may make.
    pub largest: Sectors,
    /// On a host with one processor, for how long a process runs that has got an answer; zero
    /// where each process has a processor of its own.
    pub turn: Nanos,
}

impl QueueRules {
    /// Before a SATA disk of a Linux of today: 32 tags, mq-deadline, requests of up to
    /// 1280 KiB (`BLK_DEF_MAX_SECTORS_CAP`).
    pub const SATA: Self = Self {
        tags: 32,
        order: Order::MqDeadline,
        nvme_order: Order::None,
        largest: Sectors(2560),
        turn: Nanos::ZERO,
    };

    /// Of a queue in which nothing waits.
    pub(crate) const OPEN: Self = Self {
        tags: usize::MAX,
        order: Order::None,
        nvme_order: Order::None,
        largest: Sectors::ZERO,
        turn: Nanos::ZERO,
    };

    /// The same host's queue before this disk: an NVMe drive has its own rules.
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

    /// Requests that the host holds for the disk, those with the disk among them: who comes
    /// with another one waits before all of these, in order of arrival (`nr_requests` of
    /// Linux: twice the tags with a scheduler, of which no more than 128 count, `blk_mq_init_sched`; a
    /// request for each tag without one).
    #[must_use]
    pub fn requests(self) -> usize {
        match self.order {
            Order::None => self.tags,
            Order::Sweep => usize::MAX,
            Order::MqDeadline | Order::Kyber | Order::Bfq => 2 * self.tags.min(BLKDEV_DEFAULT_RQ),
        }
    }
}

/// Half of a disk's requests at most (Linux include/linux/blkdev.h).
const BLKDEV_DEFAULT_RQ: usize = 128;

/// Commands that an NVMe drive takes at a time.
const NVME_TAGS: usize = 1023;
