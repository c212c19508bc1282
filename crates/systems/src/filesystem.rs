//! File systems made on an array's device.

use serde::Deserialize;

/// A file system with its options, as a suite's file says it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FileSystemSpec {
    /// Which.
    #[serde(rename = "type")]
    pub kind: FileSystemKind,
    /// What rows call it; its type's name where none is given.
    pub name: Option<String>,
    /// Options of the program that makes it, one by one.
    #[serde(default)]
    pub options: Vec<String>,
    /// Options of the mount, one by one: `noatime`.
    #[serde(default)]
    pub mount_options: Vec<String>,
}

/// A type of file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FileSystemKind {
    /// Linux ext3.
    Ext3,
    /// Linux ext4.
    Ext4,
    /// XFS.
    Xfs,
    /// btrfs on one device.
    Btrfs,
    /// FreeBSD's UFS, with soft updates.
    Ufs,
}

impl FileSystemKind {
    /// Its name: `ext4`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ext3 => "ext3",
            Self::Ext4 => "ext4",
            Self::Xfs => "xfs",
            Self::Btrfs => "btrfs",
            Self::Ufs => "ufs",
        }
    }
}

impl FileSystemSpec {
    /// What rows call it.
    #[must_use]
    pub fn label(&self) -> String {
        self.name
            .clone()
            .unwrap_or_else(|| self.kind.name().to_owned())
    }
}
