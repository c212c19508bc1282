//! What a guest gets from its host.

use crate::kernel::Kernel;
use crate::modules::{self, ModuleError};
use raidlab_initramfs::{Initramfs, InitramfsError};

/// Without these a guest is of no use.
const NEEDED: [&str; 5] = ["mdadm", "fio", "lsblk", "mount", "umount"];

/// These are taken along where they are installed.
const WELCOME: [&str; 61] = [
    "sh",
    "bash",
    "cat",
    "date",
    "dd",
    "df",
    "env",
    "ls",
    "nice",
    "ionice",
    "setsid",
    "sleep",
    "stat",
    "stdbuf",
    "sync",
    "tar",
    "taskset",
    "timeout",
    "uname",
    "getconf",
    "setpriv",
    "blkdiscard",
    "blkid",
    "blockdev",
    "findmnt",
    "fstrim",
    "losetup",
    "partx",
    "wipefs",
    "hdparm",
    "smartctl",
    "udevadm",
    "mdmon",
    "lvm",
    "dmsetup",
    "dmeventd",
    "pvcreate",
    "pvremove",
    "pvs",
    "pvscan",
    "vgchange",
    "vgcreate",
    "vgremove",
    "vgs",
    "lvchange",
    "lvconvert",
    "lvcreate",
    "lvremove",
    "lvs",
    "mkfs.ext4",
    "dumpe2fs",
    "tune2fs",
    "mkfs.xfs",
    "xfs_db",
    "xfs_info",
    "xfs_io",
    "xfs_spaceman",
    "mkfs.btrfs",
    "btrfs",
    "bonnie++",
    "iozone",
];

/// The daemon that names disks by their serial numbers, its rules and helpers,
/// and the settings of tools; Debian's paths.
const PATHS: [&str; 8] = [
    "/usr/lib/systemd/systemd-udevd",
    "/lib/systemd/systemd-udevd",
    "/usr/lib/udev/rules.d",
    "/usr/lib/udev/ata_id",
    "/usr/lib/udev/scsi_id",
    "/etc/mke2fs.conf",
    "/etc/lvm/lvm.conf",
    "/etc/lvm/profile",
];

/// Loaded before all else: the disks' and the ports' drivers. md's
/// personalities too: with them loaded, /proc/mdstat exists from the start, as
/// on a machine that boots from md.
const FIRST: [&str; 9] = [
    "virtio_pci",
    "virtio_blk",
    "virtio_scsi",
    "sd_mod",
    "virtio_console",
    "raid1",
    "raid10",
    "raid456",
    "raid0",
];

/// Loaded when the kernel asks for them, or somebody does.
const ON_DEMAND: [&str; 24] = [
    "virtio_net",
    "linear",
    "dm_mod",
    "dm_raid",
    "dm_mirror",
    "dm_delay",
    "dm_flakey",
    "nbd",
    "loop",
    "null_blk",
    "ublk_drv",
    "scsi_debug",
    "ext4",
    "xfs",
    "btrfs",
    "crc32c_intel",
    "crc32c_generic",
    "crc32_pclmul",
    "xxhash_generic",
    "blake2b_generic",
    "sha256_generic",
    "mbcache",
    "jbd2",
    "fuse",
];

/// Everything that arrays, file systems and measurements need: the host's
/// tools and the kernel's drivers.
///
/// # Errors
/// When busybox, mdadm or fio are not installed, the kernel has no md, or
/// a file cannot be read.
pub fn host_tools(kernel: &Kernel) -> Result<Initramfs, ToolsError> {
    let mut initramfs = Initramfs::new()?;
    initramfs.programs(&NEEDED)?;
    initramfs.programs_present(&WELCOME)?;
    initramfs.paths_present(&PATHS)?;
    modules::add(&mut initramfs, kernel, &FIRST, &ON_DEMAND)?;
    Ok(initramfs)
}

/// A first file system for a guest that cannot be put together.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub enum ToolsError {
    /// A program cannot be had.
    Programs(#[from] InitramfsError),
    /// A module of the kernel's cannot be had.
    Modules(#[from] ModuleError),
}
