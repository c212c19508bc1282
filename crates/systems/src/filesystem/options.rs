//! Options that only shape a file system: of the programs that make it (mke2fs(8), mkfs.xfs(8),
//! mkfs.btrfs(8), newfs(8)) and of its mount (mount(8), ext4(5), xfs(5), btrfs(5), and FreeBSD's
//! mount(8)). The lists are files, with one word per line.

use crate::words::Maker;

pub(super) const EXT: Maker = Maker {
    flags: "Djqv",
    valued: "bCeEgGiIJLmNOrTU",
    places: "device journal_dev",
    long: "",
};

pub(super) const XFS: Maker = Maker {
    flags: "Kq",
    valued: "bdilLmnrs",
    places: "name file logdev rtdev protofile options",
    long: "",
};

pub(super) const BTRFS: Maker = Maker {
    flags: "KMqv",
    valued: "bdmnsLORU",
    places: "",
    long: include_str!("mkfs.btrfs.txt"),
};

pub(super) const UFS: Maker = Maker {
    flags: "EjlntUJ",
    valued: "abdefghikmorsLOT",
    places: "",
    long: "",
};

/// The mount options that all file systems accept.
pub(crate) const ANY_MOUNT: &str = include_str!("mount/any.txt");
pub(super) const EXT_MOUNT: &str = include_str!("mount/ext.txt");
pub(super) const XFS_MOUNT: &str = include_str!("mount/xfs.txt");
pub(crate) const BTRFS_MOUNT: &str = include_str!("mount/btrfs.txt");
pub(super) const UFS_MOUNT: &str = include_str!("mount/ufs.txt");
