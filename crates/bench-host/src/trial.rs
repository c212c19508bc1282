//! Loop devices for a trial on a machine without disks to spare.
//!
//! Sparse files in one folder, each behind a loop device. All of them are on
//! one disk or in memory, so an array of them shows that everything works and
//! nothing of how fast it is; rows say so.

use crate::error::HostError;
use crate::marks::Marks;
use crate::place::Place;
use raidlab_inventory::System;
use raidlab_shell::{Command, Target, TargetError};
use raidlab_units::Bytes;
use std::time::{Duration, Instant};

/// The beginning of the files' names.
pub const FILE_PREFIX: &str = "raidlab-disk-";

/// The time for which another program that only looks at a loop device, as udev does, may hold it.
const BUSY: Duration = Duration::from_secs(3);

/// The files of `count` trial disks in `folder`.
#[must_use]
pub fn files(folder: &str, count: usize) -> Vec<String> {
    (0..count)
        .map(|index| format!("{folder}/{FILE_PREFIX}{index}.img"))
        .collect()
}

/// Makes loop devices of `size` on sparse files, which were recorded on the machine ([`Marks`])
/// before, and returns their device nodes.
///
/// # Errors
/// When one of the files exists already, since it is foreign; when the folder has no room for all
/// of them; when a file or a loop device cannot be made: those made before are removed.
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
    check_room(target, files, size)?;
    let marks = Marks {
        trial_files: files.to_vec(),
        ..Marks::default()
    };
    marks.add(target, system)?;
    let mut devices = Vec::new();
    for (made, file) in files.iter().enumerate() {
        match make_one(target, file, size) {
            Ok(device) => devices.push(device),
            Err(error) => {
                // The first error is more useful than those of the cleanup. A file that has
                // appeared meanwhile is not ours.
                remove(target, &files[..made]).ok();
                return Err(error);
            }
        }
    }
    Ok(devices)
}

/// Checks that the file system has room for the files: they are sparse, and jobs fill them. A full
/// file system would stop every other writer.
fn check_room(target: &dyn Target, files: &[String], size: Bytes) -> Result<(), HostError> {
    let Some((folder, _)) = files.first().and_then(|file| file.rsplit_once('/')) else {
        return Ok(());
    };
    let free = Place::folder(target, folder.to_owned())?.capacity_bytes;
    let needed = size.0.saturating_mul(files.len() as u64);
    if needed <= free {
        return Ok(());
    }
    let (count, free) = (files.len(), Bytes(free));
    let what = format!(
        "{count} trial disks of {size} may fill {}, and {folder} has {free} left: `--trial-size` \
         makes them smaller, `--trial-folder` puts them elsewhere",
        Bytes(needed)
    );
    Err(HostError::Unsuitable { what })
}

fn make_one(target: &dyn Target, file: &str, size: Bytes) -> Result<String, HostError> {
    // The folder may be writable for others: an existing file, above all a link, is not opened, and
    // a file that cannot be filled is removed.
    let script =
        r#"set -C && : >"$1" && { truncate --size "$2" "$1" || { rm -f "$1"; exit 1; }; }"#;
    let words = ["-c", script, "sh", file, &size.0.to_string()];
    target.run(&Command::changes("sh", words))?;
    // Without the page cache between loop device and file, where the file system supports it: else
    // every array on it would be as fast as memory.
    let direct = ["--direct-io=on", "--find", "--show", "--", file];
    let attached = match target.run(&Command::changes("losetup", direct)) {
        Err(TargetError::Failed { .. }) => {
            target.run(&Command::changes("losetup", direct[1..].iter().copied()))
        }
        attached => attached,
    };
    match attached {
        Ok(attached) => Ok(attached.stdout.trim().to_owned()),
        Err(error) => {
            target.run(&Command::changes("rm", ["-f", "--", file])).ok();
            Err(error.into())
        }
    }
}

/// The loop devices on a file, whatever path they were made with.
fn attached(target: &dyn Target, file: &str) -> Result<Vec<String>, HostError> {
    let words = ["--associated", file, "--noheadings", "--output", "NAME"];
    let listed = target.run(&Command::reads("losetup", words))?.stdout;
    Ok(listed.split_whitespace().map(str::to_owned).collect())
}

/// Detaches the loop devices on these files and deletes the files; returns what was
/// removed.
///
/// # Errors
/// When a loop device cannot be detached, or is still in use: then its file stays, too.
pub fn remove(target: &dyn Target, files: &[String]) -> Result<Vec<String>, HostError> {
    let mut removed = Vec::new();
    for file in files {
        let (folder, name) = file.rsplit_once('/').unwrap_or((".", file));
        if !target.list(folder)?.iter().any(|there| there == name) {
            continue;
        }
        for device in attached(target, file)? {
            target.run(&Command::changes("losetup", ["--detach", &device]))?;
            removed.push(format!("{device} on {file}"));
        }
        // The kernel keeps a device that is in use, but reports it as detached.
        let deadline = Instant::now() + BUSY;
        while let Some(device) = attached(target, file)?.first() {
            if Instant::now() >= deadline {
                return Err(HostError::LeftBehind {
                    machine: target.name().to_owned(),
                    what: format!("{device} on {file}, which something uses"),
                });
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        target.run(&Command::changes("rm", ["-f", "--", file]))?;
        removed.push(file.clone());
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

    #[test]
    fn a_folder_without_room_for_all_of_them_gets_none() {
        let room = Command::reads("df", ["-P", "-k", "/srv/trial"]);
        let table = "Filesystem 1024-blocks Used Available Capacity Mounted on\n\
                     /dev/sda1 800000 100000 700000 13% /\n";
        let machine = Recorded::new("localhost")
            .folder("/srv/trial", &[])
            .says(&room, table);
        let error = make(
            &machine,
            System::Linux,
            &files("/srv/trial", 4),
            Bytes(1 << 30),
        );
        let error = error.unwrap_err().to_string();
        let words = "4 trial disks of 1 GiB may fill 4 GiB, and /srv/trial has 683.59 MiB left";
        assert!(error.starts_with(words), "{error}");
        assert_eq!(machine.commands().len(), 1);
    }

    /// Anybody may put a link into `/var/tmp` after it was looked for.
    #[test]
    fn a_link_that_was_put_there_meanwhile_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("precious"), "data").unwrap();
        std::os::unix::fs::symlink(path("precious"), path("disk")).unwrap();
        make_one(&raidlab_shell::Local::new(), &path("disk"), Bytes(1 << 20)).unwrap_err();
        assert_eq!(std::fs::read_to_string(path("precious")).unwrap(), "data");
        assert!(folder.path().join("disk").is_symlink());
    }
}
