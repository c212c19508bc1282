//! Finding and removing what a killed run has left on a machine.
//!
//! What a run may destroy is recorded on the machine before it destroys anything ([`Marks`]): the
//! disks, and the files of trial disks. Arrays, pools and volume groups are found by their names,
//! `raidlab` and a number, and removed only if they lie on those disks alone, and are mounted
//! nowhere else: others may use such names. Mounts are in a folder of ours, and processes carry a
//! variable of ours. They are taken down from the top: processes, mounts, arrays, loop devices.

use crate::error::HostError;
use crate::machine::{MARKER, Machine, PREFIX};
use crate::marks::Marks;
use crate::standing::{mounts, run_patiently};
use crate::trial;
use crate::tunables::{changed, write};
use raidlab_inventory::{Inventory, System, Use};
use raidlab_shell::{Command, Target, TargetError, end_leftovers};
use raidlab_systems::{ArraySpec, ArraySystem, Built, SystemError};
use std::collections::BTreeSet;
use std::time::Duration;

/// The time that processes have to end.
const PATIENCE: Duration = Duration::from_secs(5);

/// The result of a cleanup: what was removed, and what was left.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cleaned {
    /// Arrays, mounts and files that were removed, in words.
    pub removed: Vec<String>,
    /// Things with names like ours that are not ours.
    pub left_alone: Vec<String>,
}

/// Removes what a killed run has left, and returns what that was.
///
/// # Errors
/// When the machine cannot be queried, or something cannot be removed.
pub fn cleanup(machine: &Machine) -> Result<Cleaned, HostError> {
    let target = machine.target();
    let marks = Marks::read(target, machine.system())?;
    let mut cleaned = Cleaned::default();
    if machine.system() == System::Linux {
        let marker = format!("{}={}", MARKER.0, MARKER.1);
        for process in end_leftovers(target, &marker, PATIENCE)? {
            let words = format!("process {} ({})", process.process, process.command);
            cleaned.removed.push(words);
        }
    }
    // One thing that stays must not keep the rest: the first error is returned after
    // everything was tried.
    let mut stays: Option<HostError> = None;
    for folder in mounts(target, machine.system(), machine.folder())? {
        match run_patiently(target, &Command::changes("umount", [&folder])) {
            Ok(_) => cleaned.removed.push(format!("mount {folder}")),
            Err(error) => stays = stays.or(Some(error.into())),
        }
    }
    for spec in kinds_of(machine) {
        if let Err(error) = remove(&*spec, machine, &marks, &mut cleaned) {
            stays = stays.or(Some(error));
        }
    }
    for one in changed(target, &marks.tunables)? {
        target.run(&write(&one.path, &one.before))?;
        let (path, before) = (&one.path, &one.before);
        let words = format!("the run's value in {path}, which is `{before}` again");
        cleaned.removed.push(words);
    }
    // The trial files stay where an array does: without them it could not be taken down later.
    if let Some(error) = stays {
        return Err(error);
    }
    if machine.system() == System::Linux {
        let files = trial::remove(target, &marks.trial_files)?;
        cleaned.removed.extend(files);
    }
    if marks != Marks::default() {
        Marks::clear(target, machine.system())?;
    }
    Ok(cleaned)
}

/// Removes the marks at the end of a run if no array, mount or trial file of it is left.
///
/// # Errors
/// When the machine cannot be queried.
pub fn forget_if_clean(machine: &Machine) -> Result<(), HostError> {
    let target = machine.target();
    let marks = Marks::read(target, machine.system())?;
    if marks == Marks::default() {
        return Ok(());
    }
    if !mounts(target, machine.system(), machine.folder())?.is_empty() {
        return Ok(());
    }
    for spec in kinds_of(machine) {
        if !found(&*spec, target)?.is_empty() {
            return Ok(());
        }
    }
    for file in &marks.trial_files {
        if target.resolve(file).is_ok() {
            return Ok(());
        }
    }
    if changed(target, &marks.tunables)?.is_empty() {
        Marks::clear(target, machine.system())?;
    }
    Ok(())
}

/// Takes down the arrays of a kind that are ours.
fn remove(
    system: &dyn ArraySystem,
    machine: &Machine,
    marks: &Marks,
    cleaned: &mut Cleaned,
) -> Result<(), HostError> {
    let target = machine.target();
    let there = found(system, target)?;
    if there.is_empty() {
        return Ok(());
    }
    let inventory = Inventory::of(target)?;
    let mut ours = Vec::new();
    let title = system.title();
    for built in there {
        let why = if !marks.own(&inventory, &built) {
            "no run here was to use these disks".to_owned()
        } else if let Some(at) = mounted_elsewhere(&inventory, &built, machine.folder()) {
            format!("it is mounted on {at}, where no run mounts anything")
        } else {
            ours.push(built);
            continue;
        };
        let devices: Vec<&str> = devices(&built).collect();
        let (name, devices) = (&built.name, devices.join(", "));
        cleaned
            .left_alone
            .push(format!("{title} {name} on {devices}: {why}"));
    }
    for built in &ours {
        // Whatever lies on disks of ours alone is ours.
        let above = devices(built).flat_map(|device| inventory.above(device));
        let above: BTreeSet<String> = above.collect();
        let stops = above.iter().filter_map(|device| system.stop(device));
        for command in stops.chain(system.destroy(built)) {
            target.output(&command).ok();
        }
        cleaned.removed.push(format!("{title} {}", built.name));
    }
    if ours.is_empty() {
        return Ok(());
    }
    let left = found(system, target)?;
    let stays = |built: &&Built| {
        devices(built).any(|one| {
            ours.iter()
                .any(|our| devices(our).any(|device| device == one))
        })
    };
    match left.iter().find(stays) {
        None => Ok(()),
        Some(built) => Err(HostError::LeftBehind {
            machine: machine.name().to_owned(),
            what: format!("{title} `{}`", built.name),
        }),
    }
}

/// The mount point of what lies on an array, if it is not below the folder of runs: then the disks
/// have got another use since.
fn mounted_elsewhere(inventory: &Inventory, built: &Built, folder: &str) -> Option<String> {
    let above = devices(built).flat_map(|device| inventory.above(device));
    let above: BTreeSet<String> = above.collect();
    let own = format!("{folder}/");
    inventory.uses.iter().find_map(|used| match used {
        Use::Mounted { device, at, .. } if above.contains(device) && !at.starts_with(&own) => {
            Some(at.clone())
        }
        _ => None,
    })
}

fn devices(built: &Built) -> impl Iterator<Item = &str> {
    built.members.iter().map(|member| member.device.as_str())
}

/// One array of each kind that the machine's operating system has. Bcache is first in the order of
/// names, and so is taken down before what may be behind it.
fn kinds_of(machine: &Machine) -> impl Iterator<Item = ArraySpec> {
    let system = machine.operating_system();
    let kinds = ArraySpec::one_of_each().into_iter();
    kinds.filter(move |spec| spec.runs_on().contains(&system))
}

/// The arrays of a kind that have names like ours; none where its program is missing, since nothing
/// can have been built without it.
fn found(system: &dyn ArraySystem, target: &dyn Target) -> Result<Vec<Built>, HostError> {
    let mut found = match system.find(target, PREFIX) {
        Err(SystemError::Target(TargetError::NoProgram { .. })) => Vec::new(),
        found => found?,
    };
    found.retain(|built| is_of_a_run(&built.name));
    Ok(found)
}

/// Whether a run may have given an array this name. Others' names begin alike: `raidlab create`
/// makes a `raidlab` by default.
fn is_of_a_run(name: &str) -> bool {
    let number = name.strip_prefix(PREFIX);
    number.is_some_and(|it| !it.is_empty() && it.bytes().all(|byte| byte.is_ascii_digit()))
}
