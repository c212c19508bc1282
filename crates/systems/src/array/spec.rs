//! What to build, as a subject's file says it.
//!
//! The `[build]` table holds one table, named for the system, with its
//! settings:
//!
//! ```toml
//! [build.md]
//! level = "raid5"
//! chunk = "512k"
//! ```
//!
//! The system is the table's name, not a field in it: only so can a reader of
//! TOML refuse an unknown field, or a value that is none, at its own line
//! rather than at the table's.

mod traits;

use super::ArraySystem;
use super::bcache::BcacheSpec;
use super::btrfs::BtrfsSpec;
use super::disk::DiskSpec;
use super::gflash::GflashSpec;
use super::gmirror::GmirrorSpec;
use super::graid3::Graid3Spec;
use super::gstripe::GstripeSpec;
use super::lvm::LvmSpec;
use super::md::MdSpec;
use super::nbd::NbdSpec;
use super::zfs::ZfsSpec;
use crate::filesystem::options::{ANY_MOUNT, BTRFS_MOUNT};
use crate::words::{RefusedWord, check_mount_options, check_value, refuse};
use raidlab_units::{Bytes, parse_bytes};
use serde::de::{Deserialize, Deserializer, Error};

/// An array to be built: its system with its settings.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArraySpec {
    /// Linux md.
    Md(MdSpec),
    /// btrfs over several devices.
    Btrfs(BtrfsSpec),
    /// A ZFS pool, on Linux or FreeBSD.
    Zfs(ZfsSpec),
    /// FreeBSD's mirror.
    Gmirror(GmirrorSpec),
    /// FreeBSD's RAID 0.
    Gstripe(GstripeSpec),
    /// FreeBSD's RAID 3.
    Graid3(Graid3Spec),
    /// A third party's mirror with a cache for FreeBSD.
    Gflash(GflashSpec),
    /// A volume of LVM.
    Lvm(LvmSpec),
    /// bcache: a cache before one disk or before md.
    Bcache(BcacheSpec),
    /// An export of an NBD server.
    Nbd(NbdSpec),
    /// One disk as it is.
    Disk(DiskSpec),
}

impl ArraySpec {
    /// Checks the words that a file gives to the system's programs.
    ///
    /// # Errors
    /// The first that does more than shape the array.
    pub fn check_words(&self) -> Result<(), RefusedWord> {
        match self {
            Self::Zfs(spec) => spec.check_words(),
            Self::Btrfs(spec) => {
                spec.compression
                    .iter()
                    .try_for_each(|value| match value.contains(',') {
                        true => refuse(value, "is more than one option of a mount"),
                        false => check_value(value),
                    })?;
                check_mount_options(&[ANY_MOUNT, BTRFS_MOUNT], &spec.mount_options)
            }
            Self::Lvm(LvmSpec {
                cache: Some(cache), ..
            }) => {
                let settings = cache.settings.keys();
                cache
                    .policy
                    .iter()
                    .chain(settings)
                    .try_for_each(|word| check_value(word))
            }
            Self::Md(_)
            | Self::Gmirror(_)
            | Self::Gstripe(_)
            | Self::Graid3(_)
            | Self::Gflash(_)
            | Self::Lvm(_)
            | Self::Bcache(_)
            | Self::Nbd(_)
            | Self::Disk(_) => Ok(()),
        }
    }

    /// The system with the settings decided, behind the common verbs.
    #[must_use]
    pub fn system(&self) -> &dyn ArraySystem {
        match self {
            Self::Md(spec) => spec,
            Self::Btrfs(spec) => spec,
            Self::Zfs(spec) => spec,
            Self::Gmirror(spec) => spec,
            Self::Gstripe(spec) => spec,
            Self::Graid3(spec) => spec,
            Self::Gflash(spec) => spec,
            Self::Lvm(spec) => spec,
            Self::Bcache(spec) => spec,
            Self::Nbd(spec) => spec,
            Self::Disk(spec) => spec,
        }
    }
}

/// Reads a size as text (`512k`).
///
/// # Errors
/// When the text is no size.
pub(crate) fn size<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes, D::Error> {
    at_most(deserializer, LARGEST_SIZE)
}

/// More than any array of disks holds: 512 PiB.
const LARGEST_SIZE: Bytes = Bytes(1 << 59);

/// More than any disk has in a place: a chunk of 1 GiB.
const LARGEST_CHUNK: Bytes = Bytes(1 << 30);

fn at_most<'de, D: Deserializer<'de>>(deserializer: D, most: Bytes) -> Result<Bytes, D::Error> {
    let text = String::deserialize(deserializer)?;
    match parse_bytes(&text).map_err(D::Error::custom)? {
        size if size > most => Err(D::Error::custom(format!("`{text}` is more than {most}"))),
        size => Ok(size),
    }
}

/// Reads a chunk, or any other part of a stripe, that may be left out.
///
/// # Errors
/// When the text is no size, or more than 1 GiB.
pub(crate) fn optional_chunk<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Bytes>, D::Error> {
    at_most(deserializer, LARGEST_CHUNK).map(Some)
}

/// The same for a field that may be left out.
///
/// # Errors
/// When the text is no size.
pub(crate) fn optional_size<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Bytes>, D::Error> {
    size(deserializer).map(Some)
}

#[cfg(test)]
mod tests;
