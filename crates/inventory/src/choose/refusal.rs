//! The reasons why a disk may not be used, in the words that a user sees.

use super::Signature;
use crate::{DiskKind, Use};
use serde::{Deserialize, Serialize};
use std::fmt;

/// A reason against using a disk, with the evidence.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "snake_case")]
pub enum Reason {
    /// The path or serial number does not exist.
    NotFound {
        /// The machine on which the device was looked for.
        machine: String,
    },
    /// Several disks have the serial number.
    Ambiguous {
        /// The paths of the devices.
        devices: Vec<String>,
    },
    /// The path is not that of a block device.
    NoBlockDevice {
        /// The target of the path.
        path: String,
    },
    /// The device is an array, memory or an optical drive.
    NotADisk {
        /// The device that is refused, by its path.
        device: String,
        /// The kind of device that it is.
        kind: DiskKind,
    },
    /// The root file system lies on the same disk.
    Root {
        /// The device that is refused, by its path.
        device: String,
        /// All devices below the root file system.
        root: Vec<String>,
    },
    /// The device is in use.
    InUse {
        /// The use of the device.
        used: Use,
    },
    /// The same drive, or the same file, is in use under another device.
    TwinInUse {
        /// The path of the other device.
        twin: String,
        /// The use of that device.
        used: Use,
    },
    /// The device is write-protected.
    ReadOnly {
        /// The device that is refused, by its path.
        device: String,
    },
    /// An earlier wish has taken the device.
    GivenTwice {
        /// The device that is refused, by its path.
        device: String,
        /// The name in the earlier wish.
        other: String,
        /// The device that the earlier wish has taken.
        other_device: String,
    },
    /// The name now leads to another disk than when the plan was made.
    Changed {
        /// The differences from the plan, each in words.
        changes: Vec<String>,
    },
    /// Data or a partition table have appeared on the device since its loss was agreed to.
    Appeared {
        /// The new signatures on the device.
        signatures: Vec<Signature>,
    },
    /// There are data or a partition table on the device.
    Signatures {
        /// The signatures on the device.
        signatures: Vec<Signature>,
    },
    /// The signatures on the device cannot be read.
    SignaturesUnknown {
        /// The attempt and its outcome.
        evidence: String,
    },
}

impl Reason {
    /// The reason in words.
    #[must_use]
    pub fn what(&self) -> String {
        match self {
            Self::NotFound { machine } => format!("no such disk on {machine}"),
            Self::Ambiguous { .. } => "several disks have this serial number".to_owned(),
            Self::NoBlockDevice { .. } => "no block device, or one of no size".to_owned(),
            Self::NotADisk { kind, .. } => kind.to_string(),
            Self::Root { .. } => "the root file system lies on this disk".to_owned(),
            Self::InUse { used } => in_use(used).to_owned(),
            Self::TwinInUse { twin, used } => {
                format!("the same as {twin}, which is in use: {}", in_use(used))
            }
            Self::ReadOnly { .. } => "read-only".to_owned(),
            Self::GivenTwice { .. } => "the same disk is given twice".to_owned(),
            Self::Changed { .. } => "not the disk that the plan was made for".to_owned(),
            Self::Appeared { .. } => "somebody's data have come onto it since the plan".to_owned(),
            Self::Signatures { .. } => "somebody's data lie on it".to_owned(),
            Self::SignaturesUnknown { .. } => "what lies on it cannot be told".to_owned(),
        }
    }

    /// The evidence against the device, in words.
    #[must_use]
    pub fn evidence(&self) -> String {
        match self {
            Self::NotFound { .. } => "neither a path nor a serial number there".to_owned(),
            Self::Ambiguous { devices } => devices.join(", "),
            Self::NoBlockDevice { path } => format!("it leads to {path}"),
            Self::NotADisk { device, .. } | Self::ReadOnly { device } => device.clone(),
            Self::Root { device, root } => format!("{device}; / is on {}", root.join(", ")),
            Self::InUse { used } | Self::TwinInUse { used, .. } => evidence_of(used),
            Self::GivenTwice {
                device,
                other,
                other_device,
            } => format!("{device}, and {other_device} as {other}"),
            Self::Changed { changes } => changes.join("; "),
            Self::Signatures { signatures } | Self::Appeared { signatures } => {
                let each: Vec<String> = signatures.iter().map(ToString::to_string).collect();
                each.join(", ")
            }
            Self::SignaturesUnknown { evidence } => evidence.clone(),
        }
    }

    /// The remedy that would make the device usable, in words.
    #[must_use]
    pub fn remedy(&self) -> String {
        let text = match self {
            Self::NotFound { .. } => {
                "`lsblk -o NAME,SIZE,MODEL,SERIAL` shows the disks of a machine, on FreeBSD \
                 `geom disk list`"
            }
            Self::Ambiguous { .. } => "name it by its path below /dev/disk/by-id",
            Self::NoBlockDevice { .. } => "give a disk, or make a loop device of the file",
            Self::NotADisk { .. } => "give the disks below it",
            Self::Root { .. } => "use another disk: this one is never given out",
            Self::InUse { used } | Self::TwinInUse { used, .. } => return remedy_of(used),
            Self::ReadOnly { .. } => "lift its write protection (`blockdev --setrw`)",
            Self::GivenTwice { .. } => "give each disk once",
            Self::Changed { .. } => "put the planned disk back, or begin a new run",
            Self::Appeared { .. } => "save them, or wipe them yourself and begin a new run",
            Self::Signatures { .. } => {
                "if nobody needs the data, agree to their loss with --wipe-signatures"
            }
            Self::SignaturesUnknown { .. } => {
                "run as root, with wipefs of util-linux 2.33 or later"
            }
        };
        text.to_owned()
    }
}

fn in_use(used: &Use) -> &'static str {
    match used {
        Use::Mounted { .. } => "mounted",
        Use::MountedElsewhere { .. } => "mounted in another mount namespace",
        Use::Swap { .. } | Use::SwapFile { .. } => "used for swap",
        Use::Member { .. } => "a member of something that runs",
        Use::Held { .. } => "another device rests on it",
        Use::Exported { .. } => "given to other machines by NVMe over Fabrics",
        Use::Open { .. } | Use::OpenBy { .. } => "somebody has it open",
    }
}

fn evidence_of(used: &Use) -> String {
    match used {
        Use::Mounted {
            device,
            at,
            filesystem,
        } => format!("{device} at {at}, {filesystem}"),
        Use::MountedElsewhere { device, filesystem } => {
            format!("{device}, {filesystem}, listed in /sys/fs/{filesystem}")
        }
        Use::Swap { device } => device.clone(),
        Use::SwapFile { device, file } => format!("{file} behind {device}"),
        Use::Member { device, of } => format!("{device} in {of}"),
        Use::Held { device, by } => format!("{by} on {device}"),
        Use::Exported { device, subsystem } => format!("{device} in the subsystem {subsystem}"),
        Use::Open { device, mode } => format!("{device}, mode {mode}"),
        Use::OpenBy {
            device,
            program,
            process,
        } => format!("{device} by {program}, process {process}"),
    }
}

fn remedy_of(used: &Use) -> String {
    match used {
        Use::Mounted { at, .. } => format!("umount {at}, or use another disk"),
        Use::MountedElsewhere { .. } => "stop the container or unit that mounted it".to_owned(),
        Use::Swap { device: place } | Use::SwapFile { file: place, .. } => {
            format!("swapoff {place}, or use another disk")
        }
        Use::Member { of, .. } => format!("take {of} down, or use another disk"),
        Use::Held { by, .. } => format!("take {by} down, or use another disk"),
        Use::Exported { subsystem, .. } => {
            format!("take the subsystem {subsystem} down, or use another disk")
        }
        Use::Open { .. } | Use::OpenBy { .. } => {
            "end the program that uses it, or use another disk".to_owned()
        }
    }
}

/// A disk that may not be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The name by which the user requested it.
    pub disk: String,
    /// The reason against the device.
    pub reason: Reason,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let reason = &self.reason;
        write!(
            f,
            "{}: {} ({}); {}",
            self.disk,
            reason.what(),
            reason.evidence(),
            reason.remedy()
        )
    }
}

/// A warning to the user about a disk that may be used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "warning", rename_all = "snake_case")]
pub enum Warning {
    /// The kernel may give the name to another disk at the next boot.
    UnstableName {
        /// The name by which the user requested it.
        disk: String,
        /// The name to use instead, where there is one.
        stable: Option<String>,
    },
    /// The drive is known to hide shingled tracks.
    Shingled {
        /// The name by which the user requested it.
        disk: String,
        /// The maker's model of the disk.
        model: String,
        /// The document that states it for the model.
        source: String,
    },
    /// The device begins within a physical sector.
    Misaligned {
        /// The name by which the user requested it.
        disk: String,
        /// The number of bytes after a physical sector's start at which the device begins.
        by_bytes: u64,
        /// The size of a physical sector, in bytes.
        physical_sector_bytes: u64,
    },
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnstableName {
                disk,
                stable: Some(stable),
            } => write!(
                f,
                "{disk} may be another disk after a reboot; name it {stable}"
            ),
            Self::UnstableName { disk, stable: None } => write!(
                f,
                "{disk} may be another disk after a reboot, and has no name that stays"
            ),
            Self::Shingled {
                disk,
                model,
                source,
            } => write!(
                f,
                "{disk} is a {model}, which hides shingled tracks ({source}): \
                 long writes and rebuilds collapse, compare it with none but its like"
            ),
            Self::Misaligned {
                disk,
                by_bytes,
                physical_sector_bytes,
            } => write!(
                f,
                "{disk} begins {by_bytes} bytes into a physical sector of {physical_sector_bytes}: \
                 small writes become reads and writes"
            ),
        }
    }
}
