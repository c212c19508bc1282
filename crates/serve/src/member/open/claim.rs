//! Claiming a member for exclusive use.
//!
//! A block device is opened with `O_EXCL`, which the kernel refuses while a file system, a swap
//! area, md or the device mapper holds it or one of its partitions, or another program has opened
//! it with `O_EXCL`. A file is locked with flock, shared with others that only read it, since NFS
//! gives readers no other lock. A file behind a loop device is refused, and so is a device that the
//! kernel exports by NVMe over Fabrics. None of this stops a program that does not check.
//!
//! A server that was killed leaves its members claimed until the kernel has closed its ring, some
//! time after the process has ended. A new server waits for that: a short time if a running process
//! holds the claim, a long one if none does.

use super::OpenError;
use raidlab_units::visible_path;
use rustix::fd::OwnedFd;
use rustix::fs::{FlockOperation, Mode, OFlags, flock, fstat, major, makedev, minor, open};
use rustix::io::Errno;
use std::fs;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// The wait for a claim whose holder runs.
const HELD_PATIENCE: Duration = Duration::from_secs(1);
/// The wait for a file's lock that no process holds.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(30);
/// The wait for a block device that no process has open. It is shorter: the device may be a part of
/// a pool (ZFS, Btrfs), which the kernel does not report.
const ORPHAN_DEVICE_PATIENCE: Duration = Duration::from_secs(10);
/// The time between two tries to open the device.
const PAUSE: Duration = Duration::from_millis(10);

/// Opens a block device for this program alone.
pub(super) fn device(path: &Path, flags: OFlags, device: u64) -> Result<OwnedFd, OpenError> {
    let begun = Instant::now();
    loop {
        let source = match open(path, flags | OFlags::EXCL, Mode::empty()) {
            Ok(file) => match used_beside(device) {
                Some(by) => {
                    return Err(OpenError::InUse {
                        path: path.to_owned(),
                        by,
                    });
                }
                None => return Ok(file),
            },
            Err(source) => source,
        };
        if source != Errno::BUSY {
            return Err(OpenError::Open {
                path: path.to_owned(),
                source: source.into(),
            });
        }
        if let Some(refusal) = kernel_claim(path, device) {
            return Err(refusal);
        }
        let waited = begun.elapsed();
        if waited >= ORPHAN_DEVICE_PATIENCE || waited >= HELD_PATIENCE && is_open(device) {
            return Err(OpenError::InUse {
                path: path.to_owned(),
                by: "another program, or a pool of the kernel's".to_owned(),
            });
        }
        std::thread::sleep(PAUSE);
    }
}

/// Returns the user of a device that does not hold it exclusively, as far as the kernel reports it.
fn used_beside(device: u64) -> Option<String> {
    let behind = file_behind(device).filter(|behind| is_locked(behind));
    let locked = behind.map(|file| format!("a program that has locked {}", visible_path(&file)));
    locked.or_else(|| {
        let subsystems = Path::new("/sys/kernel/config/nvmet/subsystems");
        let mut devices = related(major(device), minor(device)).into_iter();
        let subsystem = devices
            .find_map(|((major, minor), _)| exported_by(subsystems, makedev(major, minor)))?;
        Some(format!(
            "other machines, by NVMe over Fabrics as {subsystem}"
        ))
    })
}

/// Returns the subsystem of NVMe over Fabrics that has a device among its namespaces. The kernel's
/// target opens the device without O_EXCL (drivers/nvme/target/io-cmd-bdev.c).
fn exported_by(subsystems: &Path, device: u64) -> Option<String> {
    names(subsystems).into_iter().find(|subsystem| {
        let folder = subsystems.join(subsystem).join("namespaces");
        names(&folder).iter().any(|number| {
            let says = |what| fs::read_to_string(folder.join(number).join(what));
            let is_device = |path: String| {
                fs::metadata(path.trim_end()).is_ok_and(|found| found.rdev() == device)
            };
            says("enable").is_ok_and(|enabled| enabled.trim_end() == "1")
                && says("device_path").is_ok_and(is_device)
        })
    })
}

/// Returns the file behind a loop device, or behind the loop device of a partition.
fn file_behind(device: u64) -> Option<PathBuf> {
    let mut devices = related(major(device), minor(device)).into_iter();
    devices.find_map(|(_, folder)| {
        let file = fs::read_to_string(folder.join("loop/backing_file")).ok()?;
        Some(PathBuf::from(file.trim_end_matches('\n')))
    })
}

/// Whether another program has locked a file, as a server does with its members.
pub(super) fn is_locked(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK;
    open(path, flags, Mode::empty()).is_ok_and(|file| {
        flock(&file, FlockOperation::NonBlockingLockExclusive) == Err(Errno::WOULDBLOCK)
    })
}

/// Returns the part of the kernel that has claimed a device, its partitions or the disk that it is
/// a part of, as far as it is reported.
fn kernel_claim(path: &Path, device: u64) -> Option<OpenError> {
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let swaps = fs::read_to_string("/proc/swaps").unwrap_or_default();
    related(major(device), minor(device))
        .into_iter()
        .find_map(|(numbers, folder)| {
            if let Some(on) = mount_point(&mounts, numbers) {
                let path = path.to_owned();
                return Some(OpenError::Mounted { path, on });
            }
            let in_use = |by: String| OpenError::InUse {
                path: path.to_owned(),
                by,
            };
            if let Some(holder) = names(&folder.join("holders")).first() {
                return Some(in_use(format!("/dev/{holder}")));
            }
            is_swap(&swaps, numbers).then(|| in_use("the kernel, as swap".to_owned()))
        })
}

/// Returns a device's numbers and folder in `/sys`: its own, its partitions', and those of the disk
/// that it is a partition of.
fn related(major: u32, minor: u32) -> Vec<((u32, u32), PathBuf)> {
    let own = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let mut folders = vec![own.clone()];
    let partitions = names(&own).into_iter().map(|name| own.join(name));
    folders.extend(partitions.filter(|folder| folder.join("partition").exists()));
    if own.join("partition").exists()
        && let Ok(real) = own.canonicalize()
    {
        folders.extend(real.parent().map(Path::to_owned));
    }
    let with_numbers = |folder: PathBuf| {
        let numbers = fs::read_to_string(folder.join("dev")).ok()?;
        let (major, minor) = numbers.trim().split_once(':')?;
        Some(((major.parse().ok()?, minor.parse().ok()?), folder))
    };
    folders.into_iter().filter_map(with_numbers).collect()
}

/// Returns the names in a folder, sorted; none if it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}

/// Whether the text of `/proc/swaps` names a device: a line for each, which
/// begins with its path.
fn is_swap(swaps: &str, numbers: (u32, u32)) -> bool {
    swaps.lines().skip(1).any(|line| {
        let path = line.split_ascii_whitespace().next().unwrap_or_default();
        fs::metadata(path).is_ok_and(|found| {
            let device = found.rdev();
            found.file_type().is_block_device() && (major(device), minor(device)) == numbers
        })
    })
}

/// Whether any process that this one may inspect has the device open.
fn is_open(device: u64) -> bool {
    let processes = names(Path::new("/proc"));
    let mut processes = processes.iter().filter(|name| name.parse::<u32>().is_ok());
    processes.any(|process| {
        let folder = Path::new("/proc").join(process).join("fd");
        names(&folder).iter().any(|number| {
            fs::metadata(folder.join(number))
                .is_ok_and(|found| found.file_type().is_block_device() && found.rdev() == device)
        })
    })
}

/// Locks a file for this program alone, or for those that only read it.
pub(super) fn file(
    path: &Path,
    file: &impl std::os::fd::AsFd,
    read_only: bool,
) -> Result<(), OpenError> {
    let in_use = |by: String| OpenError::InUse {
        path: path.to_owned(),
        by,
    };
    let how = match read_only {
        true => FlockOperation::NonBlockingLockShared,
        false => FlockOperation::NonBlockingLockExclusive,
    };
    match lock(file, how) {
        Ok(()) => {}
        Err(Errno::WOULDBLOCK) => return Err(in_use("a program that has locked it".to_owned())),
        Err(source) => {
            return Err(OpenError::Open {
                path: path.to_owned(),
                source: source.into(),
            });
        }
    }
    match loop_device_of(path) {
        Some(device) => Err(in_use(device)),
        None => Ok(()),
    }
}

/// Locks a file. The kernel closes the files of a ring some time after the end of a killed program:
/// its successor must wait a moment, on a busy machine a long one.
fn lock(file: &impl std::os::fd::AsFd, how: FlockOperation) -> rustix::io::Result<()> {
    let begun = Instant::now();
    loop {
        let result = flock(file, how);
        let waited = begun.elapsed();
        let waits = result == Err(Errno::WOULDBLOCK)
            && (waited < HELD_PATIENCE
                || waited < ORPHAN_PATIENCE && !is_held(fstat(file)?.st_ino));
        if !waits {
            return result;
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether a running process holds a lock on the file with this inode, as far as `/proc/locks`
/// reports; it omits processes that have ended, or gives them number 0.
fn is_held(inode: u64) -> bool {
    let locks = fs::read_to_string("/proc/locks");
    locks.is_ok_and(|locks| {
        locks
            .lines()
            .any(|line| holder(line, inode).is_some_and(runs))
    })
}

/// Returns the process in a line of `/proc/locks`, if the line is about this inode: `1: FLOCK
/// ADVISORY WRITE 1234 08:01:131090 0 EOF`.
fn holder(line: &str, inode: u64) -> Option<u32> {
    let mut words = line
        .split_ascii_whitespace()
        .skip_while(|word| *word != "FLOCK");
    let process = words.nth(3)?.parse().ok()?;
    let locked = words.next()?.rsplit(':').next()?.parse::<u64>().ok()?;
    (locked == inode).then_some(process)
}

/// Whether a process runs and is not a zombie.
fn runs(process: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"));
    // The name in parentheses may contain anything.
    let state = stat
        .ok()
        .and_then(|stat| Some(stat.rsplit_once(") ")?.1.starts_with(['Z', 'X'])));
    state == Some(false)
}

/// Returns the mount point of a device, from the text of `/proc/self/mountinfo` (proc(5): the third
/// word is `major:minor`, the fifth the mount point).
fn mount_point(mounts: &str, (major, minor): (u32, u32)) -> Option<PathBuf> {
    let device = format!("{major}:{minor}");
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(2);
        let found = words.next()? == device;
        let point = words.nth(1)?;
        found.then(|| PathBuf::from(point.replace("\\040", " ")))
    })
}

/// Returns the loop device that a file backs, if there is one.
fn loop_device_of(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mut devices: Vec<_> = fs::read_dir("/sys/block").ok()?.flatten().collect();
    devices.sort_by_key(fs::DirEntry::file_name);
    devices.into_iter().find_map(|device| {
        let backing = fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        (Path::new(backing.trim_end()) == path)
            .then(|| format!("/dev/{}", device.file_name().to_string_lossy()))
    })
}

#[cfg(test)]
mod tests;
