//! The properties of a btrfs over several devices.

use super::{BtrfsSpec, Profile};
use crate::array::described::{Described, written};
use crate::filesystem::options::{ANY_MOUNT, BTRFS_MOUNT};
use crate::words::{RefusedWord, check_mount_options, check_value, refuse};

impl Described for BtrfsSpec {
    fn title(&self) -> String {
        format!("btrfs {}", self.data.name())
    }

    fn level(&self) -> Option<&'static str> {
        Some(self.data.name())
    }

    fn check_words(&self) -> Result<(), RefusedWord> {
        let mut compression = self.compression.iter();
        compression.try_for_each(|value| match value.contains(',') {
            true => refuse(value, "is more than one option of a mount"),
            false => check_value(value),
        })?;
        check_mount_options(&[ANY_MOUNT, BTRFS_MOUNT], &self.mount_options)
    }

    fn member_bytes_per_byte(&self, count: usize) -> Option<f64> {
        let whole = count as f64;
        let data = match self.data {
            Profile::Single | Profile::Raid0 => whole,
            Profile::Dup | Profile::Raid1 | Profile::Raid10 => whole / 2.0,
            Profile::Raid1c3 => whole / 3.0,
            Profile::Raid1c4 => whole / 4.0,
            Profile::Raid5 => whole - 1.0,
            Profile::Raid6 => whole - 2.0,
        };
        written(count, data)
    }

    fn copies_on_write(&self) -> bool {
        !self.nodatacow
    }

    fn has_own_file_system(&self) -> bool {
        true
    }

    fn compression(&self) -> Option<&str> {
        Some(self.compression.as_deref().unwrap_or("off"))
    }

    fn version_command(&self) -> Option<(&'static str, &'static [&'static str])> {
        Some(("btrfs", &["--version"]))
    }
}
