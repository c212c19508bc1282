//! A disk as a machine describes it, and its present uses.

use crate::smr;
use serde::{Deserialize, Serialize};
use std::fmt;

/// The kind of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskKind {
    /// A whole disk.
    #[default]
    Disk,
    /// A part of a disk.
    Partition,
    /// A file that the kernel shows as a disk (Linux loop, FreeBSD md(4) with
    /// a vnode).
    Loop,
    /// A device built of others: md, device mapper, bcache, a GEOM class.
    Built,
    /// Memory, an optical drive or a floppy disk, which are never offered.
    Other,
}

impl fmt::Display for DiskKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Disk => "disk",
            Self::Partition => "partition",
            Self::Loop => "loop device",
            Self::Built => "built of other devices",
            Self::Other => "not a disk",
        })
    }
}

/// A block device. Properties that the machine does not report are `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Disk {
    /// The kernel's own name: `/dev/sdb`, `/dev/ada2`.
    pub device: String,
    /// The kind of device that it is.
    pub kind: DiskKind,
    /// The names that stay with the disk over reboots, best
    /// first: `/dev/disk/by-id/ata-...`, `/dev/diskid/DISK-...`.
    pub stable_ids: Vec<String>,
    /// The devices of which it is a part, or is built.
    pub on: Vec<String>,
    /// The model as the disk's maker calls it.
    pub model: Option<String>,
    /// The maker's serial number.
    pub serial: Option<String>,
    /// The revision of the disk's firmware.
    pub firmware: Option<String>,
    /// The world-wide name or logical unit identifier.
    pub wwn: Option<String>,
    /// The size, bytes.
    pub size_bytes: u64,
    /// The size of an addressed sector, bytes: 512 or 4096.
    pub logical_sector_bytes: u64,
    /// The size of a stored sector, bytes.
    pub physical_sector_bytes: u64,
    /// Whether it reports that it rotates.
    pub rotational: Option<bool>,
    /// The start of a partition, in 512-byte sectors of its disk.
    pub start_sector: Option<u64>,
    /// The bytes by which its start misses the disk's physical sectors, as the kernel reports it;
    /// negative where the kernel cannot align it.
    pub alignment_offset_bytes: i64,
    /// The transport: `sata`, `sas`, `nvme`, `usb`, `virtio`.
    pub transport: Option<String>,
    /// The link's negotiated rate in bits per second.
    pub link_bits_per_second: Option<u64>,
    /// The write cache according to the kernel: `write back` or `write through`.
    pub write_cache: Option<String>,
    /// The I/O scheduler in force.
    pub scheduler: Option<String>,
    /// The number of commands that the drive accepts at once (NCQ, TCQ).
    pub queue_depth: Option<u64>,
    /// The number of requests that the kernel queues for it.
    pub request_queue: Option<u64>,
    /// The read-ahead of the block layer, bytes.
    pub read_ahead_bytes: Option<u64>,
    /// The zone model: `host-aware` or `host-managed` for drives that report so; `none` for all
    /// others, including those with hidden (drive-managed) shingles.
    pub zoned: Option<String>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
    /// The inode number and the device of that file, by which paths to one file are known; only
    /// where several loop devices have files.
    pub backing_inode: Option<String>,
    /// The position of the disk in the machine: its path below `/sys/devices`.
    pub topology: Option<String>,
    /// Whether it is write-protected.
    pub read_only: bool,
}

impl Disk {
    /// A device of which only name, kind and size are known.
    #[must_use]
    pub fn new(device: impl Into<String>, kind: DiskKind, size_bytes: u64) -> Self {
        Self {
            device: device.into(),
            kind,
            size_bytes,
            logical_sector_bytes: 512,
            physical_sector_bytes: 512,
            ..Self::default()
        }
    }

    /// The kernel's name without its folder: `sdb`.
    #[must_use]
    pub fn kernel_name(&self) -> &str {
        self.device.strip_prefix("/dev/").unwrap_or(&self.device)
    }

    /// The name for a plan: the best stable one, else the kernel's.
    #[must_use]
    pub fn stable_name(&self) -> &str {
        self.stable_ids.first().unwrap_or(&self.device)
    }

    /// The entry of the list of shingled models that the model matches.
    #[must_use]
    pub fn shingled(&self) -> Option<&'static smr::Model> {
        smr::find(self.model.as_deref()?)
    }

    /// Whether this drive and another report the same identity. A drive with two paths
    /// is one drive.
    #[must_use]
    pub(crate) fn tells_like(&self, other: &Self) -> bool {
        let told = |disk: &Self| {
            let names = [&disk.serial, &disk.wwn, &disk.model].map(Clone::clone);
            (disk.kind, names, disk.size_bytes)
        };
        self.kind == DiskKind::Disk && self.serial.is_some() && told(self) == told(other)
    }

    /// Whether another drive reports the same identity, but is a different one: a drive behind a
    /// USB bridge, and a SATA drive, has no second path. Bridges and the cheapest drives often
    /// share one serial number over a whole model.
    #[must_use]
    pub(crate) fn is_namesake(&self, other: &Self) -> bool {
        let has_one_path =
            |disk: &Self| matches!(disk.transport.as_deref(), Some("usb" | "sata" | "ata"));
        let both = has_one_path(self) && has_one_path(other);
        both && self.device != other.device && self.tells_like(other)
    }

    /// The bytes by which the device's start misses its physical sectors; 0 is aligned. Computed
    /// from the start sector where there is one: a partition at sector 63 of a drive with 4096-byte
    /// sectors misses by 3584.
    #[must_use]
    pub(crate) fn misaligned_bytes(&self) -> u64 {
        let physical = self.physical_sector_bytes.max(1);
        match self.start_sector {
            Some(start) => start.wrapping_mul(raidlab_units::SECTOR_BYTES) % physical,
            None => self.alignment_offset_bytes.unsigned_abs() % physical,
        }
    }
}

/// A present use of a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "use", rename_all = "snake_case")]
pub enum Use {
    /// A file system on the device is mounted.
    Mounted {
        /// The device in use: the disk itself, or a part of it.
        device: String,
        /// The folder on which it is mounted.
        at: String,
        /// The type of the file system.
        filesystem: String,
    },
    /// A file system on the device is mounted in another mount namespace, such as a container's,
    /// which this session cannot see.
    MountedElsewhere {
        /// The device in use: the disk itself, or a part of it.
        device: String,
        /// The type of the file system.
        filesystem: String,
    },
    /// The device is used for swap.
    Swap {
        /// The device in use: the disk itself, or a part of it.
        device: String,
    },
    /// The file behind a loop device is used for swap.
    SwapFile {
        /// The loop device.
        device: String,
        /// The file, by its path.
        file: String,
    },
    /// The device is a member of an assembled array, file system or pool.
    Member {
        /// The device in use: the disk itself, or a part of it.
        device: String,
        /// The array, file system or pool: `/dev/md0 (md raid1)`, `btrfs 1c8c9655-...`,
        /// `ZFS pool tank`.
        of: String,
    },
    /// Another device of the kernel rests on the device.
    Held {
        /// The device in use: the disk itself, or a part of it.
        device: String,
        /// The device that rests on it: `/dev/dm-0`, a loop device.
        by: String,
    },
    /// The kernel exports the device to other machines, by NVMe over Fabrics (nvmet).
    Exported {
        /// The device in use: the disk itself, or a part of it.
        device: String,
        /// The subsystem of which it is a namespace.
        subsystem: String,
    },
    /// A program has the device open (FreeBSD counts that).
    Open {
        /// The device in use: the disk itself, or a part of it.
        device: String,
        /// The counts of GEOM's readers, writers and exclusive users: `r1w1e2`.
        mode: String,
    },
    /// A program has the device open, exclusively or not (Linux).
    OpenBy {
        /// The device in use: the disk itself, or a part of it.
        device: String,
        /// The name of the program.
        program: String,
        /// The process ID.
        process: u32,
    },
}

impl Use {
    /// The device that is in use.
    #[must_use]
    pub fn device(&self) -> &str {
        match self {
            Self::Mounted { device, .. }
            | Self::MountedElsewhere { device, .. }
            | Self::Swap { device }
            | Self::SwapFile { device, .. }
            | Self::Member { device, .. }
            | Self::Held { device, .. }
            | Self::Exported { device, .. }
            | Self::Open { device, .. }
            | Self::OpenBy { device, .. } => device,
        }
    }
}
