//! The caller's description of the disks and of the run.

use crate::error::CalendarError;
use crate::faults::ScheduledFault;
use crate::storage::Storage;
use raidlab_disk::Disk;
use raidlab_disk::shared::Attached;
use raidlab_units::{Bytes, Nanos, Sectors};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

/// The size of a serial number in bytes (virtio 1.2, 5.2.6, `VIRTIO_BLK_T_GET_ID`).
pub(crate) const SERIAL_BYTES: usize = 20;

/// The model from which a disk's times come.
#[derive(Debug, Clone)]
pub struct DiskModel {
    /// A modelled disk, or a way to one that several devices share: all devices of a group
    /// belong to one calendar. A copy of the model is another disk, or the same way.
    pub disk: Attached,
    /// The part of it that is the device's.
    pub capacity: Sectors,
}

impl From<Disk> for DiskModel {
    fn from(disk: Disk) -> Self {
        Self {
            capacity: disk.parameters().capacity,
            disk: disk.into(),
        }
    }
}

/// A disk that the guest gets.
#[derive(Debug, Clone)]
pub struct DeviceConfig {
    /// The model that says how long the disk's commands take.
    pub model: DiskModel,
    /// The size that the guest sees, where that is less than the model's: the
    /// outermost part of the disk.
    pub size: Option<Sectors>,
    /// The number of commands that the disk itself queues, at least 1; 32 for SATA. The guest
    /// should not send more than it would to such a disk (`virtio_blk.queue_depth=`): they wait
    /// here, for one sweep after the other.
    pub tags: usize,
    /// Whether writes end in the disk's cache, which the guest has to flush. Without, they end on
    /// the medium. The guest may change it.
    pub write_cache: bool,
    /// The serial number by which the guest knows the disk, at most 20 bytes of ASCII.
    pub serial: String,
    /// The size of a sector as commands count them, in bytes: 512 or 4096.
    pub logical_block: Bytes,
    /// The size of a sector on the medium, in bytes: the logical block's, times a power of two.
    pub physical_block: Bytes,
    /// Whether the disk takes discards; discarded sectors read as zeros.
    pub discard: bool,
    /// Whether the disk takes a range to zero instead of zeros.
    pub write_zeroes: bool,
    /// The faults that shall happen to it, in any order.
    pub faults: Vec<ScheduledFault>,
}

impl DeviceConfig {
    /// Makes a SATA disk with 32 tags, its write cache on, sectors of 512 bytes, without discard,
    /// and without faults.
    #[must_use]
    pub fn new(model: DiskModel, serial: impl Into<String>) -> Self {
        Self {
            model,
            size: None,
            tags: 32,
            write_cache: true,
            serial: serial.into(),
            logical_block: Bytes(512),
            physical_block: Bytes(512),
            discard: false,
            write_zeroes: false,
            faults: Vec::new(),
        }
    }

    /// The size that the guest sees.
    #[must_use]
    pub fn capacity(&self) -> Sectors {
        let whole = self.model.capacity;
        self.size.map_or(whole, |size| size.min(whole))
    }

    pub(crate) fn validate(&self, disk: usize) -> Result<(), CalendarError> {
        let problem = |problem: &str| CalendarError::Configuration {
            disk,
            problem: problem.to_owned(),
        };
        let logical = self.logical_block.0;
        let physical = self.physical_block.0;
        let checks = [
            (self.tags >= 1, "a disk needs at least one tag"),
            (
                self.serial.len() <= SERIAL_BYTES && self.serial.is_ascii(),
                "a serial number has at most 20 bytes of ASCII",
            ),
            (
                logical == 512 || logical == 4096,
                "a logical block has 512 or 4096 bytes",
            ),
            (
                physical >= logical && physical <= 1 << 16 && physical.is_power_of_two(),
                "a physical block has a power of two of bytes, not less than a logical one, and at most 64 KiB",
            ),
            (
                self.capacity().0 >= 16 && self.capacity().0 < 1 << 42,
                "a disk has at least 8 KiB and less than 2 PiB",
            ),
            (
                self.capacity().to_bytes().0.is_multiple_of(logical.max(1)),
                "a disk has a whole number of logical blocks",
            ),
        ];
        match checks.iter().find(|check| !check.0) {
            Some((_, text)) => Err(problem(text)),
            None => Ok(()),
        }
    }
}

/// The protocol by which guest and calendar tell each other the time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Protocol {
    /// Messages alone, which every kernel with external time travel knows.
    #[default]
    Messages,
    /// Shared memory as far as possible: Linux 6.11 and later. An older kernel would ignore the
    /// offer and both would wait for ever.
    SharedMemory,
}

/// The options of a run.
#[derive(Debug, Clone)]
pub struct Options {
    /// The protocol by which the time is told.
    pub protocol: Protocol,
    /// The time of day at virtual time 0, since 1970.
    pub epoch: Nanos,
    /// The real time after which a guest that runs without a message is stuck: a program that
    /// computes without end and makes no system call stops the virtual time for ever. Time in which
    /// the machine lets it wait for a processor, or does not run at all, does not count.
    pub patience: Duration,
    /// The most virtual time between two questions of the guest whether it may go on, which is what
    /// [`Self::patience`] and [`Self::time_limit`] need. At least 1 ns; the run's results do not
    /// depend on it.
    pub longest_free_run: Nanos,
    /// The virtual time at which the run ends.
    pub time_limit: Option<Nanos>,
    /// The virtual time for which a disk that hangs for good may owe an answer before the run ends.
    /// The guest has its timers and its other disks and would go on, but a wait for this disk never
    /// ends: a program that gives up waiting would tell of work that was not done.
    pub hung_limit: Nanos,
    /// The virtual time between two samples of the counters for the observer, at least 1 ns.
    pub sample_every: Nanos,
    /// The most bytes that all disks together may hold, without zeros, and equal
    /// pages counted once.
    pub storage_limit: Bytes,
    /// The place where they are kept; the run's results do not depend on it.
    pub storage: Storage,
    /// Whether the guest need not say that it has more for a disk while that is busy; the device
    /// looks for it whenever a command ends. Saves messages, and changes arrival times: only for
    /// disks that serve in order of arrival.
    pub suppress_kicks: bool,
    /// The address at which the guest's physical memory begins in its own process: `START` of UML's
    /// linker script for x86-64.
    pub physical_memory_at: u64,
    /// A flag that ends the run when another thread sets it.
    pub stop: Option<Arc<AtomicBool>>,
}

impl Default for Options {
    /// The default options: messages, the first second of 2026, a minute of patience, with a hung
    /// disk the 30 s after which Linux gives up a command of a SATA or SAS disk (`SD_TIMEOUT`), a
    /// sample each second, 8 GiB in memory.
    fn default() -> Self {
        Self {
            protocol: Protocol::Messages,
            epoch: Nanos::from_secs(1_767_225_600),
            patience: Duration::from_secs(60),
            longest_free_run: Nanos::SECOND,
            time_limit: None,
            hung_limit: Nanos::from_secs(30),
            sample_every: Nanos::SECOND,
            storage_limit: Bytes(8 << 30),
            storage: Storage::in_memory(),
            suppress_kicks: false,
            physical_memory_at: 0x6000_0000,
            stop: None,
        }
    }
}
