//! A record on a machine of what a run may destroy there, written before it destroys anything.
//!
//! A killed run leaves arrays, whose names alone do not prove that they are ours: a user may call a
//! volume group or a file system `raidlab0`. So a run first records, in a file of the machine that
//! outlasts a restart, which disks it may overwrite and which trial files it makes. Whatever is
//! removed later ([`cleanup`](crate::cleanup())) must lie on those disks alone, or be one of those
//! files. The file is removed when nothing is left.

use crate::error::HostError;
use crate::machine::Machine;
use crate::tunables::{self, Tunable};
use raidlab_inventory::choose::Identity;
use raidlab_inventory::{Inventory, System};
use raidlab_shell::{Command, Target};
use raidlab_systems::Built;
use raidlab_units::distinct;
use serde::{Deserialize, Serialize};

/// The record of what runs on a machine may have left.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Marks {
    /// Disks whose loss of data was agreed to.
    pub disks: Vec<Identity>,
    /// Files made to be loop devices.
    pub trial_files: Vec<String>,
    /// Tunables that were changed, with their earlier values.
    #[serde(default)]
    pub tunables: Vec<Tunable>,
}

/// The file on the machine that holds the marks.
pub(crate) const fn path(system: System) -> &'static str {
    match system {
        System::Linux => "/var/lib/raidlab-run.json",
        System::FreeBsd => "/var/db/raidlab-run.json",
    }
}

impl Marks {
    /// Reads the marks on a machine; empty where no run has left anything.
    ///
    /// # Errors
    /// When they cannot be read or understood.
    pub fn read(target: &dyn Target, system: System) -> Result<Self, HostError> {
        let path = path(system);
        let text = match target.read(path) {
            Err(error) if error.is_missing() => return Ok(Self::default()),
            text => text?,
        };
        serde_json::from_str(&text).map_err(|error| HostError::Unsuitable {
            what: format!("{path} is not what a run has written: {error}"),
        })
    }

    /// Adds these marks to those on the machine.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn add(&self, target: &dyn Target, system: System) -> Result<(), HostError> {
        let mut all = Self::read(target, system)?;
        all.disks = distinct(all.disks.into_iter().chain(self.disks.clone()));
        all.trial_files = distinct(all.trial_files.into_iter().chain(self.trial_files.clone()));
        for one in &self.tunables {
            let same = |known: &Tunable| (&known.path, &known.boot) == (&one.path, &one.boot);
            if !all.tunables.iter().any(same) {
                all.tunables.push(one.clone());
            }
        }
        // These types have no value that JSON could not hold.
        let text = serde_json::to_string_pretty(&all).unwrap_or_default();
        let path = path(system);
        // Written atomically, and on the disk before any data is lost. FreeBSD's sync(1) takes no
        // file, Linux has no fsync(1). A system that lives in memory may lack the folder.
        let script = r#"
            mkdir -p "${1%/*}" && cat >"$1.new" && { fsync "$1.new" 2>/dev/null || sync "$1.new"; } &&
                mv -- "$1.new" "$1""#;
        target.run(&Command::changes("sh", ["-c", script, "sh", path]).input(text))?;
        Ok(())
    }

    /// Adds the values of tunables before a run changes them, each a file and a value. Only
    /// runs that have recorded their disks do that: nothing is kept on a machine that lives
    /// for one experiment.
    ///
    /// # Errors
    /// When it cannot be written.
    pub(crate) fn keep(
        target: &dyn Target,
        system: System,
        values: &[(String, String)],
    ) -> Result<(), HostError> {
        if values.is_empty() || Self::read(target, system)? == Self::default() {
            return Ok(());
        }
        let marks = Self {
            tunables: tunables::before(target, values)?,
            ..Self::default()
        };
        marks.add(target, system)
    }

    /// Removes the marks, as nothing is left.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn clear(target: &dyn Target, system: System) -> Result<(), HostError> {
        target.run(&Command::changes("rm", ["-f", "--", path(system)]))?;
        Ok(())
    }

    /// Whether an array lies on the marked disks, or partitions of them, alone.
    pub(crate) fn own(&self, inventory: &Inventory, built: &Built) -> bool {
        let members = &built.members;
        !members.is_empty() && members.iter().all(|one| self.has(inventory, &one.device))
    }

    fn has(&self, inventory: &Inventory, device: &str) -> bool {
        let Some(disk) = inventory.find(device) else {
            return false;
        };
        self.disks.contains(&Identity::of(inventory, disk))
            || !disk.on.is_empty() && disk.on.iter().all(|below| self.has(inventory, below))
    }
}

impl Machine {
    /// Records which disks a run may overwrite on this machine, before it does.
    ///
    /// # Errors
    /// When the record cannot be written.
    pub fn mark(&self) -> Result<(), HostError> {
        let disks = self.disks().iter().map(|chosen| chosen.identity.clone());
        let marks = Marks {
            disks: disks.collect(),
            ..Marks::default()
        };
        marks.add(self.target(), self.system())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_inventory::{Disk, DiskKind};
    use raidlab_systems::Member;
    use raidlab_units::Bytes;

    fn disk(device: &str, serial: &str) -> Disk {
        let mut disk = Disk::new(device, DiskKind::Disk, 1 << 30);
        disk.serial = Some(serial.to_owned());
        disk
    }

    #[test]
    fn an_array_is_ours_if_all_of_it_lies_on_our_disks() {
        let mut inventory = Inventory {
            machine: "store1".to_owned(),
            system: System::Linux,
            disks: vec![
                disk("/dev/sda", "A"),
                disk("/dev/sdb", "B"),
                disk("/dev/sdc", "C"),
            ],
            uses: Vec::new(),
            root: Vec::new(),
        };
        let mut partition = Disk::new("/dev/sda1", DiskKind::Partition, 1 << 29);
        partition.on.push("/dev/sda".to_owned());
        inventory.disks.push(partition);
        // Disks have other names after a restart.
        let marks = Marks {
            disks: vec![
                Identity::of(&inventory, &disk("/dev/sdx", "A")),
                Identity::of(&inventory, &disk("/dev/sdy", "B")),
            ],
            ..Marks::default()
        };
        let own = |devices: &[&str]| {
            let members = devices.iter().map(|&device| Member {
                device: device.to_owned(),
                size: Bytes(0),
                backing: None,
                away: false,
            });
            let built = Built {
                name: "raidlab0".to_owned(),
                members: members.collect(),
                folder: String::new(),
            };
            marks.own(&inventory, &built)
        };
        assert!(own(&["/dev/sda", "/dev/sdb"]));
        assert!(own(&["/dev/sda1", "/dev/sdb"]));
        assert!(!own(&["/dev/sda", "/dev/sdc"]));
        assert!(!own(&["/dev/sdc"]));
        assert!(!own(&["/dev/sdz"]));
        assert!(!own(&[]));
    }
}
