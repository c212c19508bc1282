//! Loop devices for a trial on a machine without disks to spare.
//!
//! Sparse files in one folder, each behind a loop device. All of them are on
//! one disk or in memory, so an array of them shows that everything works and
//! nothing of how fast it is; rows say so.

use crate::error::HostError;
use crate::marks::Marks;
use raidlab_inventory::System;
use raidlab_shell::{Command, Target, TargetError};
use raidlab_units::Bytes;

/// How the files' names begin.
pub const FILE_PREFIX: &str = "raidlab-disk-";

/// The files of `count` trial disks in `folder`.
#[must_use]
pub fn files(folder: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("{folder}/{FILE_PREFIX}{index}.img"))
        .collect()
}

/// Makes loop devices of `size` on sparse files, which were written down on the
/// machine ([`Marks`]) before, and returns their device nodes.
///
/// # Errors
/// When one of the files is there already, since it is somebody else's; when a file
/// or a loop device cannot be made: those made before are removed.
pub fn make(
    target: &dyn Target,
    system: System,
    files: &[String],
    size: Bytes,
) -> Result<Vec<String>, HostError> {
    for file in files {
        let (folder, name) = file.rsplit_once('/').unwrap_or((".", file));
        if target.list(folder)?.iter().any(|there| there == name) {
            return Err(HostError::Taken {
                machine: target.name().to_owned(),
                what: format!("trial disk {file} is there"),
            });
        }
    }
    let marks = Marks {
        trial_files: files.to_vec(),
        ..Marks::default()
    };
    marks.add(target, system)?;
    let mut devices = Vec::new();
    for file in files {
        match make_one(target, file, size) {
            Ok(device) => devices.push(device),
            Err(error) => {
                // The first error tells more than what undoing might meet.
                remove(target, files).ok();
                return Err(error);
            }
        }
    }
    Ok(devices)
}

fn make_one(target: &dyn Target, file: &str, size: Bytes) -> Result<String, HostError> {
    let size = size.0.to_string();
    target.run(&Command::changes("truncate", ["--size", &size, file]))?;
    // Without the page cache between loop device and file, where its file
    // system can: else every array on it is as fast as memory.
    let direct = ["--direct-io=on", "--find", "--show", "--", file];
    let attached = match target.run(&Command::changes("losetup", direct)) {
        Err(TargetError::Failed { .. }) => {
            target.run(&Command::changes("losetup", direct[1..].iter().copied()))?
        }
        attached => attached?,
    };
    Ok(attached.stdout.trim().to_owned())
}

/// Detaches the loop devices on these files and deletes the files; returns what was
/// removed.
///
/// # Errors
/// When a loop device cannot be detached.
pub fn remove(target: &dyn Target, files: &[String]) -> Result<Vec<String>, HostError> {
    let mut removed = Vec::new();
    if files.is_empty() {
        return Ok(removed);
    }
    let list = Command::reads(
        "losetup",
        ["--noheadings", "--raw", "--output", "NAME,BACK-FILE"],
    );
    let listed = target.output(&list)?.stdout;
    for line in listed.lines() {
        let Some((device, file)) = line.split_once(' ') else {
            continue;
        };
        if files.iter().any(|ours| ours == file) {
            target.run(&Command::changes("losetup", ["--detach", device]))?;
            removed.push(format!("{device} on {file}"));
        }
    }
    for file in files {
        let (folder, name) = file.rsplit_once('/').unwrap_or((".", file));
        if target.list(folder)?.iter().any(|there| there == name) {
            target.run(&Command::changes("rm", ["-f", "--", file]))?;
            removed.push(file.clone());
        }
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_shell::Recorded;

    #[test]
    fn files_of_another_run_are_not_touched() {
        let machine = Recorded::new("localhost").folder("/srv/trial", &["raidlab-disk-0.img"]);
        let files = files("/srv/trial", 2);
        let error = make(&machine, System::Linux, &files, Bytes(1 << 20)).unwrap_err();
        let words = "localhost is taken: trial disk /srv/trial/raidlab-disk-0.img is there";
        assert_eq!(error.to_string(), words);
        assert!(machine.commands().is_empty());
    }
}
