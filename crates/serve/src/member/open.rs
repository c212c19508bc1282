//! Opening a file or a block device so that nobody else uses it.
//!
//! A block device is opened with `O_EXCL`, which the kernel refuses while a
//! file system, a swap area, md or the device mapper holds it or one of its
//! partitions. A file is locked with flock; a file behind a loop device is
//! refused. Neither stops a program that asks nobody.

use crate::export::BufferPool;
use raidlab_units::Sectors;
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, StatxFlags, fcntl_setfl, flock,
    fstat, ioctl_blksszget, major, minor, open, seek, statx,
};
use rustix::io::Errno;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// How long a lock is waited for whose holder runs.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);
/// How long a lock is waited for whose holder nobody knows: a killed program
/// most likely, whose ring the kernel still takes down.
const ORPHAN_PATIENCE: Duration = Duration::from_secs(30);

/// How a member is to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// Never past the page cache, even where the member allows it.
    pub buffered: bool,
    /// For reading alone, without a claim: to examine a member.
    pub read_only: bool,
}

/// An open member: a regular file or a block device.
#[derive(Debug)]
pub struct MemberFile {
    file: File,
    path: PathBuf,
    size: Sectors,
    logical_block_bytes: u32,
    rotational: bool,
    direct: bool,
}

/// Why a member could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused.
    #[error("cannot open {}", .path.display())]
    Open {
        /// What was to be opened.
        path: PathBuf,
        /// What it said.
        #[source]
        source: io::Error,
    },
    /// A directory, a pipe, a character device.
    #[error("{} is neither a file nor a block device", .path.display())]
    Kind {
        /// What was to be opened.
        path: PathBuf,
    },
    /// Mounted, or its partition is.
    #[error("{} is mounted on {}", .path.display(), .on.display())]
    Mounted {
        /// What was to be opened.
        path: PathBuf,
        /// Where.
        on: PathBuf,
    },
    /// Another program or the kernel uses it.
    #[error("{} is in use by {by}", .path.display())]
    InUse {
        /// What was to be opened.
        path: PathBuf,
        /// By whom, as far as it is known.
        by: String,
    },
}

impl MemberFile {
    /// Opens and claims a member.
    ///
    /// # Errors
    /// When it does not exist, is neither file nor block device, or is in use.
    pub fn open(path: &Path, options: OpenOptions) -> Result<Self, OpenError> {
        let failed = |source: Errno| OpenError::Open {
            path: path.to_owned(),
            source: source.into(),
        };
        let access = if options.read_only {
            OFlags::RDONLY
        } else {
            OFlags::RDWR
        };
        let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK;
        // A look without O_EXCL first: for a file it would mean nothing.
        let mut file = open(path, flags, Mode::empty()).map_err(failed)?;
        let stat = fstat(&file).map_err(failed)?;
        let block = match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => false,
            FileType::BlockDevice => true,
            _ => {
                return Err(OpenError::Kind {
                    path: path.to_owned(),
                });
            }
        };
        if !options.read_only {
            if block {
                file = open(path, flags | OFlags::EXCL, Mode::empty())
                    .map_err(|source| claim_refused(path, source, stat.st_rdev))?;
            } else {
                claim_file(path, &file)?;
            }
        }
        fcntl_setfl(&file, access).map_err(failed)?;
        let end = seek(&file, SeekFrom::End(0)).map_err(failed)?;
        let device = if block { stat.st_rdev } else { stat.st_dev };
        let file = File::from(file);
        let logical_block_bytes = logical_block(&file, block);
        let direct = !options.buffered && turn_direct_on(&file, access, end);
        Ok(Self {
            size: raidlab_units::Bytes(end).to_sectors(),
            rotational: is_rotational(device),
            file,
            path: path.to_owned(),
            logical_block_bytes,
            direct,
        })
    }

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// As it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whole sectors of 512 bytes.
    #[must_use]
    pub fn size(&self) -> Sectors {
        self.size
    }

    /// The unit that the device itself addresses, in bytes; 512 for a file.
    #[must_use]
    pub fn logical_block_bytes(&self) -> u32 {
        self.logical_block_bytes
    }

    /// Whether it is, or lies on, a mechanical disk, as far as the kernel knows.
    #[must_use]
    pub fn rotational(&self) -> bool {
        self.rotational
    }

    /// Whether commands go past the page cache.
    #[must_use]
    pub fn direct(&self) -> bool {
        self.direct
    }
}

impl Drop for MemberFile {
    fn drop(&mut self) {
        // All commands have ended. The kernel may still hold the file for a
        // moment, for a ring that was closed; the claim must not wait for that.
        // Without a lock, as on a block device, there is none to let go.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn claim_file(path: &Path, file: &impl std::os::fd::AsFd) -> Result<(), OpenError> {
    let in_use = |by: String| OpenError::InUse {
        path: path.to_owned(),
        by,
    };
    match lock(file) {
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

/// Locks a file. The kernel lets go of the files of a ring some time after the
/// end of a program that was killed: whoever starts it again must wait a moment,
/// on a busy machine a long one.
fn lock(file: &impl std::os::fd::AsFd) -> rustix::io::Result<()> {
    let begun = Instant::now();
    loop {
        let result = flock(file, FlockOperation::NonBlockingLockExclusive);
        let waited = begun.elapsed();
        let waits = result == Err(Errno::WOULDBLOCK)
            && (waited < LOCK_PATIENCE
                || waited < ORPHAN_PATIENCE && !is_held(fstat(file)?.st_ino));
        if !waits {
            return result;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process that runs holds a lock on the file with this inode, as far
/// as `/proc/locks` knows; it is silent about, or has number 0 for, those that
/// are gone.
fn is_held(inode: u64) -> bool {
    let locks = std::fs::read_to_string("/proc/locks");
    locks.is_ok_and(|locks| {
        locks
            .lines()
            .any(|line| holder(line, inode).is_some_and(runs))
    })
}

/// The process in a line of `/proc/locks`, if it is about this inode:
/// `1: FLOCK ADVISORY WRITE 1234 08:01:131090 0 EOF`.
fn holder(line: &str, inode: u64) -> Option<u32> {
    let mut words = line
        .split_ascii_whitespace()
        .skip_while(|word| *word != "FLOCK");
    let process = words.nth(3)?.parse().ok()?;
    let locked = words.next()?.rsplit(':').next()?.parse::<u64>().ok()?;
    (locked == inode).then_some(process)
}

/// Whether a process is there and not merely waited for by its parent.
fn runs(process: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
    // The name in parentheses may contain anything.
    let state = stat
        .ok()
        .and_then(|stat| Some(stat.rsplit_once(") ")?.1.starts_with(['Z', 'X'])));
    state == Some(false)
}

fn claim_refused(path: &Path, source: Errno, device: u64) -> OpenError {
    if source != Errno::BUSY {
        return OpenError::Open {
            path: path.to_owned(),
            source: source.into(),
        };
    }
    let mounts = std::fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    match mount_point(&mounts, major(device), minor(device)) {
        Some(on) => OpenError::Mounted {
            path: path.to_owned(),
            on,
        },
        None => OpenError::InUse {
            path: path.to_owned(),
            by: "the kernel (a partition, md, the device mapper or swap)".to_owned(),
        },
    }
}

/// Where a device is mounted, from the text of `/proc/self/mountinfo`
/// (proc(5): the third word is `major:minor`, the fifth the mount point).
fn mount_point(mounts: &str, major: u32, minor: u32) -> Option<PathBuf> {
    let device = format!("{major}:{minor}");
    mounts.lines().find_map(|line| {
        let mut words = line.split(' ').skip(2);
        let found = words.next()? == device;
        let point = words.nth(1)?;
        found.then(|| PathBuf::from(point.replace("\\040", " ")))
    })
}

/// The loop device that a file backs, if there is one.
fn loop_device_of(path: &Path) -> Option<String> {
    let path = path.canonicalize().ok()?;
    let mut devices: Vec<_> = std::fs::read_dir("/sys/block").ok()?.flatten().collect();
    devices.sort_by_key(std::fs::DirEntry::file_name);
    devices.into_iter().find_map(|device| {
        let backing = std::fs::read_to_string(device.path().join("loop/backing_file")).ok()?;
        (Path::new(backing.trim_end()) == path)
            .then(|| format!("/dev/{}", device.file_name().to_string_lossy()))
    })
}

fn logical_block(file: &File, block: bool) -> u32 {
    if !block {
        return 512;
    }
    ioctl_blksszget(file).unwrap_or(512)
}

/// Turns `O_DIRECT` on if any range of whole 512-byte sectors can be moved so.
/// Commands of both kinds must not mix on one member: the page cache would
/// write back whole pages over what went past it.
fn turn_direct_on(file: &File, access: OFlags, end: u64) -> bool {
    if fcntl_setfl(file, access | OFlags::DIRECT).is_err() {
        return false;
    }
    let works = declared_alignment(file).is_none_or(|bytes| bytes <= 512)
        && (end < 1024 || {
            let buffer = BufferPool::new(0).take(1024);
            buffer.is_ok_and(|mut buffer| file.read_exact_at(&mut buffer[512..], 512).is_ok())
        });
    if !works {
        // Cannot fail where setting it did not; if it does, reads will say so.
        let _ = fcntl_setfl(file, access);
    }
    works
}

/// What statx(2) says of direct I/O: the stricter of both alignments, if it
/// says anything.
fn declared_alignment(file: &File) -> Option<u32> {
    let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let told = found.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && found.stx_dio_offset_align > 0;
    told.then(|| found.stx_dio_offset_align.max(found.stx_dio_mem_align))
}

fn is_rotational(device: u64) -> bool {
    let folder = PathBuf::from(format!(
        "/sys/dev/block/{}:{}",
        major(device),
        minor(device)
    ));
    // A partition has no queue of its own; its disk's folder is above it.
    ["queue/rotational", "../queue/rotational"]
        .iter()
        .find_map(|name| std::fs::read_to_string(folder.join(name)).ok())
        .is_some_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests;
