//! Loop devices for a trial on a machine without disks to spare.
//!
//! Sparse files in one folder, each behind a loop device. All of them are on
//! one disk or in memory, so an array of them shows that everything works and
//! nothing of how fast it is; rows say so.

use crate::error::HostError;
use raidlab_shell::{Command, Target, TargetError};
use raidlab_units::Bytes;

/// Names of the files; [`cleanup`](crate::cleanup) finds them by it.
pub const FILE_PREFIX: &str = "raidlab-disk-";

/// Makes `count` loop devices of `size` on sparse files in `folder`, and
/// returns their device nodes.
///
/// # Errors
/// When the folder holds such files already, since another run may use them;
/// when a file or a loop device cannot be made: those made before are removed.
pub fn make(
    target: &dyn Target,
    folder: &str,
    count: usize,
    size: Bytes,
) -> Result<Vec<String>, HostError> {
    let there = target.list(folder)?;
    if let Some(name) = there.iter().find(|name| name.starts_with(FILE_PREFIX)) {
        return Err(HostError::Taken {
            machine: target.name().to_owned(),
            what: format!("trial disk {folder}/{name} is there"),
        });
    }
    let mut devices = Vec::new();
    for index in 0..count {
        match make_one(target, &format!("{folder}/{FILE_PREFIX}{index}.img"), size) {
            Ok(device) => devices.push(device),
            Err(error) => {
                // The first error tells more than what undoing might meet.
                remove(target, folder).ok();
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

/// Detaches the loop devices on our files in `folder` and deletes the files;
/// returns what was removed.
///
/// # Errors
/// When a loop device cannot be detached.
pub fn remove(target: &dyn Target, folder: &str) -> Result<Vec<String>, HostError> {
    let mut removed = Vec::new();
    let list = Command::reads(
        "losetup",
        ["--noheadings", "--raw", "--output", "NAME,BACK-FILE"],
    );
    let listed = target.output(&list)?.stdout;
    let ours = format!("{folder}/{FILE_PREFIX}");
    for line in listed.lines() {
        let Some((device, file)) = line.split_once(' ') else {
            continue;
        };
        if file.starts_with(&ours) {
            target.run(&Command::changes("losetup", ["--detach", device]))?;
            removed.push(format!("{device} on {file}"));
        }
    }
    for name in target.list(folder)? {
        if name.starts_with(FILE_PREFIX) {
            let file = format!("{folder}/{name}");
            target.run(&Command::changes("rm", ["-f", "--", &file]))?;
            removed.push(file);
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
        let error = make(&machine, "/srv/trial", 2, Bytes(1 << 20)).unwrap_err();
        let words = "localhost is taken: trial disk /srv/trial/raidlab-disk-0.img is there";
        assert_eq!(error.to_string(), words);
        assert!(machine.commands().is_empty());
    }
}
