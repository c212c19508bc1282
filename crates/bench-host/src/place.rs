//! The place of jobs: the array's device, or a folder of its file system.

use crate::error::HostError;
use raidlab_inventory::System;
use raidlab_shell::{Command, Target};

/// A device or a folder, with the bytes that jobs may use there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// The path of the device or the folder.
    pub path: String,
    /// Whether tools that make files can run.
    pub is_folder: bool,
    /// Bytes that jobs may use.
    pub capacity_bytes: u64,
}

impl Place {
    /// A block device.
    ///
    /// # Errors
    /// When its size cannot be read.
    pub fn device(target: &dyn Target, system: System, device: String) -> Result<Self, HostError> {
        let (command, field) = match system {
            System::Linux => (Command::reads("blockdev", ["--getsize64", &device]), 0),
            // The fields are NAME, sectorsize, mediasize, ...
            System::FreeBsd => (Command::reads("diskinfo", [&device]), 2),
        };
        let said = target.run(&command)?.stdout;
        let size = said.split_whitespace().nth(field).map(str::parse);
        let Some(Ok(capacity_bytes)) = size else {
            return Err(HostError::Unsuitable {
                what: format!("`{command}` gave no size: {}", said.trim()),
            });
        };
        Ok(Self {
            path: device,
            is_folder: false,
            capacity_bytes,
        })
    }

    /// A folder, whose capacity is the free space.
    ///
    /// # Errors
    /// When the free space cannot be read.
    pub fn folder(target: &dyn Target, folder: String) -> Result<Self, HostError> {
        // POSIX: a header line, then device, blocks, used, available, in KiB.
        let command = Command::reads("df", ["-P", "-k", &folder]);
        let said = target.run(&command)?.stdout;
        let line = said.lines().nth(1).unwrap_or_default();
        let free = line.split_whitespace().nth(3).map(str::parse::<u64>);
        let Some(Ok(free)) = free else {
            return Err(HostError::Unsuitable {
                what: format!("`{command}` gave no free space: {}", line.trim()),
            });
        };
        Ok(Self {
            path: folder,
            is_folder: true,
            capacity_bytes: free.saturating_mul(1024),
        })
    }

    /// The path of a file to work on: one in the folder, or the device itself.
    pub fn file(&self) -> String {
        if self.is_folder {
            format!("{}/raidlab.dat", self.path)
        } else {
            self.path.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_shell::Recorded;

    #[test]
    fn a_device_s_size_is_its_own_and_a_folder_s_what_is_free() {
        let linux = Command::reads("blockdev", ["--getsize64", "/dev/md100"]);
        let freebsd = Command::reads("diskinfo", ["/dev/mirror/raidlab0"]);
        let folder = Command::reads("df", ["-P", "-k", "/mnt"]);
        let machine = Recorded::new("store1")
            .says(&linux, "1071644672\n")
            .says(
                &freebsd,
                "/dev/mirror/raidlab0\t512\t268434944\t524287\t0\t0\n",
            )
            .says(
                &folder,
                "Filesystem     1024-blocks   Used Available Capacity Mounted on\n\
                 raidlab0/data       800000 100000    700000      13% /mnt\n",
            );
        let device = |system, path: &str| Place::device(&machine, system, path.to_owned());
        let place = device(System::Linux, "/dev/md100").unwrap();
        assert_eq!(place.capacity_bytes, 1_071_644_672);
        assert_eq!(place.file(), "/dev/md100");
        let place = device(System::FreeBsd, "/dev/mirror/raidlab0").unwrap();
        assert_eq!(place.capacity_bytes, 268_434_944);
        let place = Place::folder(&machine, "/mnt".to_owned()).unwrap();
        assert_eq!(place.capacity_bytes, 716_800_000);
        assert_eq!(place.file(), "/mnt/raidlab.dat");
    }

    #[test]
    fn a_size_that_is_none_is_shown() {
        let linux = Command::reads("blockdev", ["--getsize64", "/dev/md100"]);
        let machine = Recorded::new("store1").says(&linux, "what\n");
        let error = Place::device(&machine, System::Linux, "/dev/md100".to_owned()).unwrap_err();
        let words = "`blockdev --getsize64 /dev/md100` gave no size: what";
        assert_eq!(error.to_string(), words);
    }
}
