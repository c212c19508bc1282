//! The identity of a disk, by which it is recognized as the same one.

use crate::{Disk, Inventory};
use serde::{Deserialize, Serialize};

/// The properties that identify a disk.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// The serial number. For a partition this and all that follows are the drive's, except for the
    /// size and the start.
    pub serial: Option<String>,
    /// The world-wide name of the disk.
    pub wwn: Option<String>,
    /// The maker's model, where the disk reports it.
    pub model: Option<String>,
    /// The size, bytes.
    pub size_bytes: u64,
    /// The start of a partition, in 512-byte sectors.
    pub start_sector: Option<u64>,
    /// The file behind a loop device.
    pub backing_file: Option<String>,
    /// The connection, for a disk that reports neither a serial number nor a world-wide name, and
    /// is no file, and for one of several that report the same.
    #[serde(default)]
    pub connection: Option<String>,
}

impl Identity {
    /// The identity of a disk, as far as the kernel reports it. A partition is identified by its
    /// drive, as disks of one model are often partitioned alike.
    #[must_use]
    pub fn of(inventory: &Inventory, disk: &Disk) -> Self {
        let drive = inventory.drive_of(disk);
        Self {
            serial: drive.serial.clone(),
            wwn: drive.wwn.clone(),
            model: drive.model.clone(),
            size_bytes: disk.size_bytes,
            start_sector: disk.start_sector,
            backing_file: drive.backing_file.clone(),
            connection: match (&drive.serial, &drive.wwn, &drive.backing_file) {
                (None, None, None) => drive.topology.clone(),
                _ if inventory.has_namesake(drive) => drive.topology.clone(),
                _ => None,
            },
        }
    }

    /// The differences from another identity, each as `serial: was X, is Y`.
    #[must_use]
    pub fn changes(&self, now: &Self) -> Vec<String> {
        fn said<T: ToString>(value: Option<&T>) -> String {
            value.map_or_else(|| "none".to_owned(), ToString::to_string)
        }
        let parts = |one: &Self| {
            [
                ("serial", said(one.serial.as_ref())),
                ("world-wide name", said(one.wwn.as_ref())),
                ("model", said(one.model.as_ref())),
                ("size in bytes", one.size_bytes.to_string()),
                ("start sector", said(one.start_sector.as_ref())),
                ("file", said(one.backing_file.as_ref())),
                ("connection", said(one.connection.as_ref())),
            ]
        };
        parts(self)
            .into_iter()
            .zip(parts(now))
            .map(|((what, was), (_, is))| (what, was, is))
            .filter(|(_, was, is)| was != is)
            .map(|(what, was, is)| format!("{what}: was {was}, is {is}"))
            .collect()
    }
}
