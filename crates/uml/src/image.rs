//! The guest's first file system: this machine's own tools, and raidlab as the
//! first program.

use crate::program::trimmed;
use raidlab_guest::{Archive, Initramfs, InitramfsError, Node};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The first program's path in the guest.
pub const AGENT: &str = "/raidlab/agent";

/// Without these a guest is of no use.
const NEEDED: [&str; 15] = [
    "mdadm", "fio", "sh", "df", "cat", "mkdir", "rm", "sleep", "sync", "uname", "lsblk", "mount",
    "umount", "blockdev", "wipefs",
];

/// These are taken along where they are installed.
const WELCOME: [&str; 43] = [
    "bash",
    "dd",
    "tee",
    "truncate",
    "blkid",
    "sysctl",
    "dmsetup",
    "lvm",
    "pvcreate",
    "pvremove",
    "pvs",
    "vgchange",
    "vgcreate",
    "vgextend",
    "vgreduce",
    "vgremove",
    "vgs",
    "lvchange",
    "lvconvert",
    "lvcreate",
    "lvremove",
    "lvs",
    "mkfs.ext3",
    "mkfs.ext4",
    "dumpe2fs",
    "mkfs.xfs",
    "xfs_info",
    "xfs_spaceman",
    "findmnt",
    "losetup",
    "xfs_db",
    "mkfs.btrfs",
    "btrfs",
    "bonnie++",
    "iozone",
    "make-bcache",
    "bcache-super-show",
    "cache_check",
    "cache_dump",
    "cache_repair",
    "ln",
    "readlink",
    "rmdir",
];

/// OpenZFS's programs, for a kernel that has it.
const FOR_ZFS: [&str; 5] = ["zpool", "zfs", "zdb", "partx", "grep"];

/// The settings of tools; Debian's paths.
const PATHS: [&str; 3] = ["/etc/mke2fs.conf", "/etc/lvm/lvm.conf", "/etc/lvm/profile"];

/// Everything that arrays, file systems and measurements need, with `agent`, a
/// program of this machine, as the first program.
///
/// # Errors
/// When tools are not installed (all of them are named) or a file cannot be
/// read.
pub fn image(agent: &Path, with_zfs: bool) -> Result<Archive, ImageError> {
    let mut initramfs = Initramfs::new()?;
    initramfs.programs(&NEEDED)?;
    initramfs.programs_present(&WELCOME)?;
    if with_zfs {
        initramfs.programs(&FOR_ZFS)?;
    }
    initramfs.paths_present(&PATHS)?;
    initramfs.file(AGENT, agent)?;
    let mut archive = initramfs.archive().clone();
    drop(initramfs);
    let contents = fs::read(agent).map_err(|source| ImageError::Agent {
        file: agent.to_owned(),
        source,
    })?;
    let node = Node::File {
        mode: 0o755,
        contents: trimmed(contents),
    };
    archive.insert(AGENT, node);
    archive.insert("/etc/mtab", Node::Link("/proc/self/mounts".to_owned()));
    Ok(archive)
}

/// A first file system that cannot be put together.
#[derive(Debug, thiserror::Error)]
pub enum ImageError {
    /// Tools are missing, or a file cannot be read.
    #[error(transparent)]
    Tools(#[from] InitramfsError),
    /// The first program cannot be read.
    #[error("cannot read {}", file.display())]
    Agent {
        /// Its file.
        file: PathBuf,
        /// What the operating system answered.
        #[source]
        source: io::Error,
    },
}
