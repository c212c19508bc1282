//! The choice of disks: from what the user typed to disks that may be used, or the reasons why not.
//!
//! Each wish is resolved to one device: by path (following stable names to the kernel's), else by
//! serial number. Then every reason against it is collected, not only the first, each with the
//! evidence and a remedy. Only signatures of data can be overruled, by an explicit consent; a disk
//! in use or of the root file system is never chosen.

mod identity;
mod openers;
mod refusal;
mod signature;

pub use identity::Identity;
pub use openers::open_by_others;
pub use refusal::{Reason, Refusal, Warning};
pub use signature::Signature;

use crate::{Disk, DiskKind, Inventory, InventoryError, Use};
use raidlab_shell::{Target, TargetError};
use serde::{Deserialize, Serialize};

/// The data whose loss the user has agreed to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Consent {
    /// Signatures of file systems, arrays and partition tables that are not in
    /// use now (`--wipe-signatures`).
    pub wipe_signatures: bool,
}

/// A disk that a user asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// The name: a path (`/dev/disk/by-id/...`, `/dev/sdb`, `/dev/loop3`) or a serial number.
    pub name: String,
    /// The disk of this name when the plan was made, if there is one.
    pub planned: Option<Planned>,
}

/// A disk as it was when its user agreed to lose what is on it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Planned {
    /// The name by which it was requested.
    pub asked: String,
    /// The disk's device node then; `None` when the machine may have been restarted since.
    pub device: Option<String>,
    /// The identity of the disk.
    pub identity: Identity,
    /// The signatures that were on it.
    pub signatures: Vec<Signature>,
}

impl Planned {
    /// The plan of a chosen disk, on a machine that has not been restarted since.
    #[must_use]
    pub fn of(chosen: &Chosen) -> Self {
        Self {
            asked: chosen.asked.clone(),
            device: Some(chosen.disk.device.clone()),
            identity: chosen.identity.clone(),
            signatures: chosen.signatures.clone(),
        }
    }

    /// The differences of the disk that now has the name.
    fn changes(&self, inventory: &Inventory, disk: &Disk) -> Vec<String> {
        let mut changes = self.identity.changes(&Identity::of(inventory, disk));
        if let Some(device) = &self.device
            && *device != disk.device
        {
            changes.push(format!("device: was {device}, is {}", disk.device));
        }
        changes
    }

    /// The signatures on it that are new, where a device may have another name.
    fn appeared(&self, now: &[Signature]) -> Vec<Signature> {
        fn of(one: &Signature) -> (&str, Option<&String>, Option<&String>) {
            (&one.kind, one.label.as_ref(), one.uuid.as_ref())
        }
        now.iter()
            .filter(|one| self.signatures.iter().all(|was| of(was) != of(one)))
            .cloned()
            .collect()
    }
}

impl Wanted {
    /// A wish for a disk, without a plan.
    #[must_use]
    pub fn named(name: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            planned: None,
        }
    }
}

/// A disk that was found for a wish.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Chosen {
    /// The name that was requested.
    pub asked: String,
    /// The disk that was found.
    pub disk: Disk,
    /// The disk's identity, to be kept in the plan.
    pub identity: Identity,
    /// The signatures on it and its partitions, which will be lost.
    pub signatures: Vec<Signature>,
}

/// The result of all wishes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Choice {
    /// The disks found, in the order of the wishes, including the refused ones.
    pub disks: Vec<Chosen>,
    /// The refusals with their reasons.
    pub refusals: Vec<Refusal>,
    /// Warnings for the user.
    pub warnings: Vec<Warning>,
}

impl Choice {
    /// Whether no disk was refused.
    #[must_use]
    pub fn is_accepted(&self) -> bool {
        self.refusals.is_empty()
    }
}

/// Resolves wishes to disks and collects the reasons against them.
///
/// # Errors
/// When the machine cannot be queried. A disk that may not be used is no error but a [`Refusal`].
pub fn choose(
    target: &dyn Target,
    inventory: &Inventory,
    wishes: &[Wanted],
    consent: Consent,
) -> Result<Choice, InventoryError> {
    let mut choice = Choice::default();
    for wanted in wishes {
        let disk = match resolve(target, inventory, &wanted.name)? {
            Ok(disk) => disk,
            Err(reason) => {
                choice.refuse(&wanted.name, reason);
                continue;
            }
        };
        let reasons = against(inventory, disk, wanted);
        // Signatures of a disk in use are not read, as no consent could permit its use.
        let taken = |reason: &Reason| {
            use Reason::{InUse, Root, TwinInUse};
            matches!(reason, Root { .. } | InUse { .. } | TwinInUse { .. })
        };
        let probe = !reasons.iter().any(taken);
        for reason in reasons
            .into_iter()
            .chain(choice.given_already(inventory, disk))
        {
            choice.refuse(&wanted.name, reason);
        }
        let devices = if probe {
            inventory.above(&disk.device)
        } else {
            Vec::new()
        };
        let signatures = match signature::read(target, inventory.system, &devices)? {
            Ok(signatures) => signatures,
            Err(evidence) => {
                choice.refuse(&wanted.name, Reason::SignaturesUnknown { evidence });
                Vec::new()
            }
        };
        let planned = wanted.planned.as_ref();
        let appeared = planned.map_or_else(Vec::new, |planned| planned.appeared(&signatures));
        if !appeared.is_empty() {
            choice.refuse(
                &wanted.name,
                Reason::Appeared {
                    signatures: appeared,
                },
            );
        }
        if !signatures.is_empty() && !consent.wipe_signatures {
            let signatures = signatures.clone();
            choice.refuse(&wanted.name, Reason::Signatures { signatures });
        }
        choice.warn(inventory, wanted, disk);
        choice.disks.push(Chosen {
            asked: wanted.name.clone(),
            disk: disk.clone(),
            identity: Identity::of(inventory, disk),
            signatures,
        });
    }
    Ok(choice)
}

impl Choice {
    fn refuse(&mut self, asked: &str, reason: Reason) {
        let refusal = Refusal {
            disk: asked.to_owned(),
            reason,
        };
        if !self.refusals.contains(&refusal) {
            self.refusals.push(refusal);
        }
    }

    /// The reasons against a disk already chosen for an earlier wish: itself, a part or the whole
    /// of it, a second path to it, or a second device on its file.
    fn given_already(&self, inventory: &Inventory, disk: &Disk) -> Vec<Reason> {
        let kin = |one: &Disk, other: &Disk| {
            inventory.below(&one.device).contains(&other.device)
                || inventory.below(&other.device).contains(&one.device)
        };
        self.disks
            .iter()
            .filter(|given| {
                let twin = |one: &Disk| kin(one, &given.disk);
                kin(disk, &given.disk) || inventory.twins(disk).into_iter().any(twin)
            })
            .map(|given| Reason::GivenTwice {
                device: disk.device.clone(),
                other: given.asked.clone(),
                other_device: given.disk.device.clone(),
            })
            .collect()
    }

    fn warn(&mut self, inventory: &Inventory, wanted: &Wanted, disk: &Disk) {
        let path = &wanted.name;
        if *path == disk.device && disk.backing_file.is_none() {
            self.warnings.push(Warning::UnstableName {
                disk: path.clone(),
                stable: disk.stable_ids.first().cloned(),
            });
        }
        let drive = inventory.drive_of(disk);
        if let Some(model) = drive.shingled() {
            self.warnings.push(Warning::Shingled {
                disk: path.clone(),
                model: drive.model.clone().unwrap_or_default(),
                source: model.source.to_owned(),
            });
        }
        if disk.misaligned_bytes() > 0 {
            self.warnings.push(Warning::Misaligned {
                disk: path.clone(),
                by_bytes: disk.misaligned_bytes(),
                physical_sector_bytes: disk.physical_sector_bytes,
            });
        }
    }
}

/// The device of a name, or the reason why there is none.
fn resolve<'a>(
    target: &dyn Target,
    inventory: &'a Inventory,
    name: &str,
) -> Result<Result<&'a Disk, Reason>, InventoryError> {
    if name.starts_with('/') {
        // FreeBSD's labels are devices of their own, not links.
        if let Some(disk) = inventory.named(name) {
            return Ok(Ok(disk));
        }
        return match target.resolve(name) {
            Ok(device) => Ok(inventory
                .named(&device)
                .ok_or(Reason::NoBlockDevice { path: device })),
            Err(TargetError::Io { .. }) => Ok(Err(Reason::NotFound {
                machine: inventory.machine.clone(),
            })),
            Err(error) => Err(error.into()),
        };
    }
    let mut matching = inventory
        .disks
        .iter()
        .filter(|disk| disk.kind == DiskKind::Disk && disk.serial.as_deref() == Some(name));
    let found = matching.next().ok_or_else(|| Reason::NotFound {
        machine: inventory.machine.clone(),
    });
    let others: Vec<String> = matching.map(|disk| disk.device.clone()).collect();
    Ok(match found {
        Ok(disk) if !others.is_empty() => Err(Reason::Ambiguous {
            devices: [vec![disk.device.clone()], others].concat(),
        }),
        found => found,
    })
}

/// The reasons against a disk, without its signatures.
fn against(inventory: &Inventory, disk: &Disk, wanted: &Wanted) -> Vec<Reason> {
    let mut reasons = Vec::new();
    if matches!(disk.kind, DiskKind::Built | DiskKind::Other) {
        reasons.push(Reason::NotADisk {
            device: disk.device.clone(),
            kind: disk.kind,
        });
    }
    if inventory.shares_root(&disk.device) {
        reasons.push(Reason::Root {
            device: disk.device.clone(),
            root: inventory.root.clone(),
        });
    }
    // The root file system has a reason of its own.
    let is_root = |used: &&Use| matches!(used, Use::Mounted { at, .. } if at == "/");
    let uses = |device: &str| inventory.uses_of(device).into_iter();
    for used in uses(&disk.device).filter(|used| !is_root(used)) {
        reasons.push(Reason::InUse { used: used.clone() });
    }
    for twin in inventory.twins(disk) {
        if inventory.shares_root(&twin.device) {
            reasons.push(Reason::Root {
                device: twin.device.clone(),
                root: inventory.root.clone(),
            });
        }
        for used in uses(&twin.device).filter(|used| !is_root(used)) {
            let used = used.clone();
            let twin = twin.device.clone();
            reasons.push(Reason::TwinInUse { twin, used });
        }
    }
    if disk.read_only {
        reasons.push(Reason::ReadOnly {
            device: disk.device.clone(),
        });
    }
    if let Some(planned) = &wanted.planned {
        let changes = planned.changes(inventory, disk);
        if !changes.is_empty() {
            reasons.push(Reason::Changed { changes });
        }
    }
    reasons
}

#[cfg(test)]
mod tests;
