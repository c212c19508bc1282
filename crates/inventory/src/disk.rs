//! A disk as a machine describes it, and what may be done on it already.

use crate::smr;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What kind of block device it is.
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
    /// Something built of others: md, device mapper, bcache, a GEOM class.
    Built,
    /// Memory, an optical drive or a floppy disk: never offered.
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

/// A block device. What a machine does not say is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Disk {
    /// The kernel's own name: `/dev/sdb`, `/dev/ada2`.
    pub device: String,
    /// The kind of device that it is.
    pub kind: DiskKind,
    /// Names that stay with the disk over reboots, best first:
    /// `/dev/disk/by-id/ata-...`, `/dev/diskid/DISK-...`.
    pub stable_ids: Vec<String>,
    /// The devices that it is a part of or built of.
    pub on: Vec<String>,
    /// The model as the disk's maker calls it.
    pub model: Option<String>,
    /// Maker's serial number.
    pub serial: Option<String>,
    /// The revision of the disk's firmware.
    pub firmware: Option<String>,
    /// World-wide name or logical unit identifier.
    pub wwn: Option<String>,
    /// Size in bytes.
    pub size_bytes: u64,
    /// Bytes in a sector as addressed: 512 or 4096.
    pub logical_sector_bytes: u64,
    /// Bytes in a sector as stored.
    pub physical_sector_bytes: u64,
    /// Whether it says that it turns.
    pub rotational: Option<bool>,
    /// Where a partition begins, in 512-byte sectors of its disk.
    pub start_sector: Option<u64>,
    /// Bytes by which its start misses the disk's physical sectors, as the
    /// kernel counts it; negative where the kernel calls it hopeless.
    pub alignment_offset_bytes: i64,
    /// `sata`, `sas`, `nvme`, `usb`, `virtio`.
    pub transport: Option<String>,
    /// The link's negotiated rate in bits per second.
    pub link_bits_per_second: Option<u64>,
    /// `write back` or `write through`, as the kernel takes it.
    pub write_cache: Option<String>,
    /// The I/O scheduler in force.
    pub scheduler: Option<String>,
    /// Commands that the drive takes at once (NCQ, TCQ).
    pub queue_depth: Option<u64>,
    /// Requests that the kernel holds for it.
    pub request_queue: Option<u64>,
    /// Read-ahead of the block layer in bytes.
    pub read_ahead_bytes: Option<u64>,
    /// `host-aware` or `host-managed` for drives that say so; `none` for all
    /// others, those with hidden (drive-managed) shingles among them.
    pub zoned: Option<String>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
    /// Where the disk hangs in the machine: its path below `/sys/devices`.
    pub topology: Option<String>,
    /// Whether it cannot be written.
    pub read_only: bool,
}

impl Disk {
    /// A device with nothing known but its name, kind and size.
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

    /// The name to write into a plan: the best stable one, else the kernel's.
    #[must_use]
    pub fn stable_name(&self) -> &str {
        self.stable_ids.first().unwrap_or(&self.device)
    }

    /// The entry of the list of models that the model matches.
    #[must_use]
    pub fn shingled(&self) -> Option<&'static smr::Model> {
        smr::find(self.model.as_deref()?)
    }

    /// Whether this drive and another tell the same of themselves. By two paths it is one drive.
    #[must_use]
    pub(crate) fn tells_like(&self, other: &Self) -> bool {
        let told = |disk: &Self| {
            let names = [&disk.serial, &disk.wwn, &disk.model].map(Clone::clone);
            (disk.kind, names, disk.size_bytes)
        };
        self.kind == DiskKind::Disk && self.serial.is_some() && told(self) == told(other)
    }

    /// Whether another drive tells the same of itself, and is another one: to what is behind a
    /// USB bridge, and to a SATA drive, no second path leads. Bridges and the cheapest drives
    /// often have a serial number that all of their make have.
    #[must_use]
    pub(crate) fn is_namesake(&self, other: &Self) -> bool {
        let has_one_path =
            |disk: &Self| matches!(disk.transport.as_deref(), Some("usb" | "sata" | "ata"));
        let both = has_one_path(self) && has_one_path(other);
        both && self.device != other.device && self.tells_like(other)
    }

    /// Bytes by which the device's start misses its physical sectors; 0 is
    /// aligned. From the start sector where there is one: a partition at
    /// sector 63 of a drive with 4096-byte sectors misses by 3584.
    #[must_use]
    pub(crate) fn misaligned_bytes(&self) -> u64 {
        let physical = self.physical_sector_bytes.max(1);
        match self.start_sector {
            Some(start) => start.wrapping_mul(raidlab_units::SECTOR_BYTES) % physical,
            None => self.alignment_offset_bytes.unsigned_abs() % physical,
        }
    }
}

/// What already happens on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "use", rename_all = "snake_case")]
pub enum Use {
    /// A file system on it is mounted.
    Mounted {
        /// What is used: the disk itself, or a part of it.
        device: String,
        /// The folder that it is mounted on.
        at: String,
        /// Which file system.
        filesystem: String,
    },
    /// The kernel has a file system of it mounted, but not where this session
    /// can see it: another mount namespace, such as a container's.
    MountedElsewhere {
        /// What is used: the disk itself, or a part of it.
        device: String,
        /// Which file system.
        filesystem: String,
    },
    /// Memory is swapped to it.
    Swap {
        /// What is used: the disk itself, or a part of it.
        device: String,
    },
    /// It is a member of something assembled.
    Member {
        /// What is used: the disk itself, or a part of it.
        device: String,
        /// `/dev/md0 (md raid1)`, `btrfs 1c8c9655-...`, `ZFS pool tank`.
        of: String,
    },
    /// Another device of the kernel rests on it.
    Held {
        /// What is used: the disk itself, or a part of it.
        device: String,
        /// What uses it: `/dev/dm-0`, a loop device.
        by: String,
    },
    /// The kernel gives it to other machines, by NVMe over Fabrics (nvmet).
    Exported {
        /// What is used: the disk itself, or a part of it.
        device: String,
        /// The name of the subsystem that it is a namespace of.
        subsystem: String,
    },
    /// Somebody has it open (FreeBSD counts that).
    Open {
        /// What is used: the disk itself, or a part of it.
        device: String,
        /// The counts of GEOM's readers, writers and exclusive users: `r1w1e2`.
        mode: String,
    },
    /// A program has it open, exclusively or not (Linux).
    OpenBy {
        /// What is used: the disk itself, or a part of it.
        device: String,
        /// The program's name.
        program: String,
        /// The number of its process.
        process: u32,
    },
}

impl Use {
    /// The device it is about.
    #[must_use]
    pub fn device(&self) -> &str {
        match self {
            Self::Mounted { device, .. }
            | Self::MountedElsewhere { device, .. }
            | Self::Swap { device }
            | Self::Member { device, .. }
            | Self::Held { device, .. }
            | Self::Exported { device, .. }
            | Self::Open { device, .. }
            | Self::OpenBy { device, .. } => device,
        }
    }
}
