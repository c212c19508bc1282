//! The inventory: all disks of a machine and their uses.
//!
//! On Linux one call of `lsblk` gives the devices and their dependencies; `/proc/self/mountinfo`,
//! `/proc/swaps`, `/proc/mdstat`, `/sys/fs` and the ZFS module give the uses. The kernel's own
//! tables are read rather than udev's: in a guest or a container without udev `lsblk` knows no file
//! system at all. A btrfs with two members is mounted from one of them only, and the kernel reports
//! no holder for either, so `/sys/fs/btrfs` is read for all.
//!
//! On FreeBSD `geom disk list`, GEOM's tree, `mount -p`, `swapctl` and `zpool`
//! give the same.

mod freebsd;
mod linux;
mod lsblk;
mod mounts;

#[cfg(test)]
pub(crate) use lsblk::command as lsblk_command;

use crate::{Disk, DiskKind, InventoryError, System, Use};
use raidlab_shell::Target;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The disks of a machine at one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inventory {
    /// The machine's name, as its target has it.
    pub machine: String,
    /// The machine's operating system.
    pub system: System,
    /// All block devices, in the system's order, including those built of others.
    pub disks: Vec<Disk>,
    /// The present uses of the devices.
    pub uses: Vec<Use>,
    /// The devices below the root file system, down to whole disks; empty where there are none (a
    /// live system in memory).
    pub root: Vec<String>,
}

impl Inventory {
    /// Takes the inventory of a machine.
    ///
    /// # Errors
    /// When the machine cannot be queried, answers in an unknown form, or runs an unknown system.
    pub fn of(target: &dyn Target) -> Result<Self, InventoryError> {
        match System::of(target)? {
            System::Linux => linux::inventory(target),
            System::FreeBsd => freebsd::inventory(target),
        }
    }

    /// Finds the device of a kernel name, `/dev/sdb`.
    #[must_use]
    pub fn find(&self, device: &str) -> Option<&Disk> {
        self.disks.iter().find(|disk| disk.device == device)
    }

    /// Finds the device of a path, its kernel name or a stable one.
    #[must_use]
    pub fn named(&self, path: &str) -> Option<&Disk> {
        let matches =
            |disk: &&Disk| disk.device == path || disk.stable_ids.iter().any(|id| id == path);
        self.disks.iter().find(matches)
    }

    /// The drive, or loop device, of which a partition is a part; any other device itself.
    #[must_use]
    pub(crate) fn drive_of<'a>(&'a self, disk: &'a Disk) -> &'a Disk {
        let mut parents = disk.on.iter().filter_map(|below| self.find(below));
        let parent = parents.next().filter(|_| disk.kind == DiskKind::Partition);
        parent.unwrap_or(disk)
    }

    /// Other devices for the same bytes: a second path to a drive, a second loop device on a file.
    /// For a partition, the same partition there.
    #[must_use]
    pub fn twins(&self, disk: &Disk) -> Vec<&Disk> {
        let drive = self.drive_of(disk);
        let same_drive = |other: &Disk| drive.tells_like(other) && !drive.is_namesake(other);
        let is_one = |own: &Option<String>, other: &Option<String>| own.is_some() && own == other;
        let same_file = |other: &Disk| {
            is_one(&drive.backing_file, &other.backing_file)
                || is_one(&drive.backing_inode, &other.backing_inode)
        };
        let twins = self.disks.iter().filter(|other| {
            other.device != drive.device && (same_drive(other) || same_file(other))
        });
        let part_of = |twin| {
            let parts = self.disks.iter().filter(|part| {
                part.kind == DiskKind::Partition && part.start_sector == disk.start_sector
            });
            let mut parts = parts.filter(|part| part.on.contains(&twin));
            parts.next()
        };
        let same = |twin: &'_ Disk| match disk.kind {
            DiskKind::Partition => part_of(twin.device.clone()),
            _ => self.find(&twin.device),
        };
        // A path on which the kernel has seen no partitions is taken whole.
        twins.map(|twin| same(twin).unwrap_or(twin)).collect()
    }

    /// Whether another drive reports the same identity as this one.
    #[must_use]
    pub(crate) fn has_namesake(&self, drive: &Disk) -> bool {
        self.disks.iter().any(|other| drive.is_namesake(other))
    }

    /// Records the devices below the root file system's.
    fn set_root(&mut self, devices: Vec<String>) {
        for device in devices {
            for lower in self.below(&device) {
                if !self.root.contains(&lower) {
                    self.root.push(lower);
                }
            }
        }
    }

    /// A device and all of which it is a part or is built, itself first.
    #[must_use]
    pub fn below(&self, device: &str) -> Vec<String> {
        reached(device, |at| {
            self.find(at).map_or_else(Vec::new, |disk| disk.on.clone())
        })
    }

    /// A device and all that rests on it, itself first: its partitions, the arrays built of them.
    #[must_use]
    pub fn above(&self, device: &str) -> Vec<String> {
        reached(device, |at| {
            let uppers = self.disks.iter().filter(|disk| disk.on.contains(at));
            uppers.map(|upper| upper.device.clone()).collect()
        })
    }

    /// The uses that a write to a device would disturb: of itself, of all that rests on it, and of
    /// the disk of which it is a part (but not of that disk's other partitions). Its own resting on
    /// other devices does not count as their use.
    #[must_use]
    pub(crate) fn uses_of(&self, device: &str) -> Vec<&Use> {
        let mut touched: BTreeSet<String> = self.above(device).into_iter().collect();
        touched.extend(self.below(device));
        self.uses
            .iter()
            .filter(|used| touched.contains(used.device()))
            .filter(|used| !matches!(used, Use::Held { by, .. } if by == device))
            .collect()
    }

    /// Whether the root file system is on the same whole disk.
    #[must_use]
    pub(crate) fn shares_root(&self, device: &str) -> bool {
        self.below(device)
            .iter()
            .any(|lower| self.root.contains(lower))
    }
}

/// A device and all that is reached from it step by step, each once, the nearest first.
fn reached(device: &str, step: impl Fn(&String) -> Vec<String>) -> Vec<String> {
    let mut found = vec![device.to_owned()];
    let mut next = 0;
    while let Some(at) = found.get(next) {
        for other in step(at) {
            if !found.contains(&other) {
                found.push(other);
            }
        }
        next += 1;
    }
    found
}

/// The error that the root's disks are unknown, and so could not be protected.
fn root_unknown(target: &dyn Target, pool: &str) -> InventoryError {
    InventoryError::Format {
        machine: target.name().to_owned(),
        origin: "zpool list -v -H -P -L".to_owned(),
        problem: format!("no device of pool `{pool}`, which holds the root file system"),
    }
}
