//! Finding and removing what a killed run has left on a machine.
//!
//! A run leaves a trace by which it can be found without any record of its
//! own, which a crash could have lost: its arrays, pools and volume groups have
//! names with a prefix of ours, its mounts are in a folder of ours, its
//! processes carry a variable of ours, and its trial disks are files of ours.
//! They are taken down in that order from the top: processes, mounts, arrays,
//! loop devices.

use crate::error::HostError;
use crate::machine::{MARKER, Machine, PREFIX};
use crate::standing::{mounts, run_patiently};
use crate::trial;
use raidlab_inventory::System;
use raidlab_shell::{Command, Target, TargetError, end_leftovers};
use raidlab_systems::{ArraySpec, ArraySystem, Built, SystemError};
use std::time::Duration;

/// How long processes may take to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// Removes what is found and says what it was; `trial_folder` is where trial
/// disks are kept.
///
/// # Errors
/// When the machine cannot be asked, or something stays.
pub fn cleanup(machine: &Machine, trial_folder: &str) -> Result<Vec<String>, HostError> {
    let target = machine.target();
    let mut removed = Vec::new();
    if machine.system() == System::Linux {
        let marker = format!("{}={}", MARKER.0, MARKER.1);
        for process in end_leftovers(target, &marker, PATIENCE)? {
            removed.push(format!("process {} ({})", process.process, process.command));
        }
    }
    // One thing that stays must not keep the rest: the first error is told
    // when everything was tried.
    let mut stays: Option<HostError> = None;
    for folder in mounts(target, machine.system(), machine.folder())? {
        match run_patiently(target, &Command::changes("umount", [&folder])) {
            Ok(_) => removed.push(format!("mount {folder}")),
            Err(error) => stays = stays.or(Some(error.into())),
        }
    }
    for spec in every_kind() {
        let system = spec.system();
        if !system.runs_on().contains(&machine.operating_system()) {
            continue;
        }
        match remove(system, machine) {
            Ok(mut names) => removed.append(&mut names),
            Err(error) => stays = stays.or(Some(error)),
        }
    }
    if machine.system() == System::Linux {
        removed.extend(trial::remove(target, trial_folder)?);
    }
    stays.map_or(Ok(removed), Err)
}

/// Takes down the arrays of a kind; their names.
fn remove(system: &dyn ArraySystem, machine: &Machine) -> Result<Vec<String>, HostError> {
    let target = machine.target();
    let mut removed = Vec::new();
    for built in found(system, target)? {
        for command in system.destroy(&built) {
            target.output(&command).ok();
        }
        removed.push(format!("{} {}", system.title(), built.name));
    }
    match found(system, target)?.first() {
        None => Ok(removed),
        Some(built) => Err(HostError::LeftBehind {
            machine: machine.name().to_owned(),
            what: format!("{} `{}`", system.title(), built.name),
        }),
    }
}

/// The least that each kind of array is described by: what it is looked for
/// with.
const KINDS: [&str; 10] = [
    // Before what may be behind it.
    "bcache = { mode = \"writethrough\" }",
    "md = { level = \"raid1\" }",
    "btrfs = { data = \"raid1\" }",
    "zfs = { topology = \"mirror\" }",
    "lvm = { level = \"raid1\" }",
    "gmirror = {}",
    "gstripe = {}",
    "graid3 = {}",
    "gflash = {}",
    "disk = {}",
];

/// One array of each kind.
fn every_kind() -> Vec<ArraySpec> {
    // They are all read in a test.
    KINDS
        .iter()
        .filter_map(|text| toml::from_str(text).ok())
        .collect()
}

/// Arrays of a kind with names of ours; none where its program is missing,
/// since nothing can have been built without it.
fn found(system: &dyn ArraySystem, target: &dyn Target) -> Result<Vec<Built>, HostError> {
    match system.find(target, PREFIX) {
        Err(SystemError::Target(TargetError::NoProgram { .. })) => Ok(Vec::new()),
        found => Ok(found?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_looked_for() {
        assert_eq!(every_kind().len(), KINDS.len());
    }
}
