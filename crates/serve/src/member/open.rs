//! Opening a file or a block device for exclusive use.
//!
//! For the way in which a member is claimed, see `claim`.

mod claim;

use crate::export::BufferPool;
use raidlab_units::{Sectors, visible_path};
use rustix::fs::{
    AtFlags, FileType, FlockOperation, Mode, OFlags, SeekFrom, Stat, StatxFlags, fcntl_setfl,
    flock, fstat, ioctl_blksszget, major, minor, open, seek, stat, statx,
};
use rustix::io::{Errno, ReadWriteFlags, preadv2};
use std::fs::File;
use std::io::{self, IoSliceMut};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// The options for opening a member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// Whether commands always go through the page cache, even where the member allows direct I/O.
    pub buffered: bool,
    /// The use of the member.
    pub access: Access,
}

/// The use of a member, and who else may use it meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Reading and writing, with no other user.
    #[default]
    Write,
    /// Reading, with no writer. Others may read a file, but not a block device.
    Read,
    /// A look at the member, whatever others do with it.
    Look,
}

/// The words for a member whose end lies before that with which it was opened.
pub(super) const SHRUNK: &str = "it has become shorter than it was";

/// An open member: a regular file or a block device.
#[derive(Debug)]
pub struct MemberFile {
    file: File,
    path: PathBuf,
    identity: Identity,
    /// Whether it had a name when it was opened.
    had_name: bool,
    size: Sectors,
    logical_block_bytes: u32,
    rotational: bool,
    direct: bool,
    nowait: bool,
    read_only: bool,
}

/// The identity of a file or device, the same for every path that leads to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// A regular file.
    File {
        /// The number of the device that its file system is on.
        device: u64,
        /// The file's number in that file system.
        inode: u64,
    },
    /// A block device by its own number.
    Device(u64),
    /// Something that cannot be a member: a folder, a pipe, a character device.
    Other,
}

impl Identity {
    /// Returns the identity of a path's file or device; `None` where there is none that can
    /// be a member.
    #[must_use]
    pub fn at(path: &Path) -> Option<Self> {
        let found = Self::of(&stat(path).ok()?);
        (found != Self::Other).then_some(found)
    }

    fn of(stat: &Stat) -> Self {
        match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Self::File {
                device: stat.st_dev,
                inode: stat.st_ino,
            },
            FileType::BlockDevice => Self::Device(stat.st_rdev),
            _ => Self::Other,
        }
    }
}

/// The reason why a member could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused.
    #[error("cannot open {}", visible_path(.path))]
    Open {
        /// The path to be opened.
        path: PathBuf,
        /// The error that the system returned.
        #[source]
        source: io::Error,
    },
    /// The path is a directory, a pipe or a character device.
    #[error("{} is neither a file nor a block device", visible_path(.path))]
    Kind {
        /// The path to be opened.
        path: PathBuf,
    },
    /// The device, or a partition of it, is mounted.
    #[error("{} is mounted on {}", visible_path(.path), visible_path(.on))]
    Mounted {
        /// The path to be opened.
        path: PathBuf,
        /// The folder on which it is mounted.
        on: PathBuf,
    },
    /// Another program or the kernel uses the device.
    #[error("{} is in use by {by}", visible_path(.path))]
    InUse {
        /// The path to be opened.
        path: PathBuf,
        /// The user of the device, as far as it is known.
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
        let read_only = options.access != Access::Write;
        let access = if read_only {
            OFlags::RDONLY
        } else {
            OFlags::RDWR
        };
        let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK;
        // First without O_EXCL, which has no meaning for a file.
        let mut file = open(path, flags, Mode::empty()).map_err(failed)?;
        let found = fstat(&file).map_err(failed)?;
        let identity = Identity::of(&found);
        let block = match identity {
            Identity::File { .. } => false,
            Identity::Device(_) => true,
            Identity::Other => {
                return Err(OpenError::Kind {
                    path: path.to_owned(),
                });
            }
        };
        // The kernel lets such a device be opened for writing, and refuses each write.
        if block && !read_only && is_read_only(found.st_rdev) {
            return Err(failed(Errno::ROFS));
        }
        if options.access != Access::Look {
            if block {
                // Closed first, as the device would seem to be held by this program.
                drop(file);
                file = claim::device(path, flags, found.st_rdev)?;
            } else {
                claim::file(path, &file, read_only)?;
            }
        }
        fcntl_setfl(&file, access).map_err(failed)?;
        let end = seek(&file, SeekFrom::End(0)).map_err(failed)?;
        let device = if block { found.st_rdev } else { found.st_dev };
        let file = File::from(file);
        let logical_block_bytes = logical_block(&file, block);
        let direct = !options.buffered && turn_direct_on(&file, access, end);
        Ok(Self {
            size: raidlab_units::Bytes(end).to_sectors(),
            rotational: is_rotational(device),
            nowait: can_be_tried(&file),
            file,
            path: path.to_owned(),
            identity,
            had_name: found.st_nlink > 0,
            logical_block_bytes,
            direct,
            read_only,
        })
    }

    /// Returns the open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Returns the path by which the member was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the identity of the file or device.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Returns the reason why nothing may be written to a file any more, in words. It may have
    /// become shorter since it was opened, so that data are lost; a write behind its new end would
    /// extend it again, with a hole. Or it may have been deleted: then it cannot be found after it
    /// has been closed, and what is written to it is lost. So this is called before each write. A
    /// block device refuses such commands by itself.
    #[must_use]
    pub fn why_lost(&self) -> Option<&'static str> {
        let is_file = matches!(self.identity, Identity::File { .. });
        let now = fstat(&self.file).ok().filter(|_| is_file)?;
        let opened = i64::try_from(self.size.to_bytes().0).unwrap_or(i64::MAX);
        match (now.st_size < opened, now.st_nlink == 0 && self.had_name) {
            (true, _) => Some(SHRUNK),
            (_, true) => Some("its file has been deleted"),
            _ => None,
        }
    }

    /// Whether the member was opened for reading only.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
    }

    /// Returns the whole sectors of 512 bytes.
    #[must_use]
    pub fn size(&self) -> Sectors {
        self.size
    }

    /// Returns the unit that the device itself addresses, in bytes; 512 for a file.
    #[must_use]
    pub fn logical_block_bytes(&self) -> u32 {
        self.logical_block_bytes
    }

    /// Whether the member is, or lies on, a mechanical disk, as far as the kernel knows.
    #[must_use]
    pub fn rotational(&self) -> bool {
        self.rotational
    }

    /// Whether commands go past the page cache.
    #[must_use]
    pub fn direct(&self) -> bool {
        self.direct
    }

    /// Whether the kernel can try a command and return where it would have to wait (`RWF_NOWAIT`).
    /// A file on tmpfs or FUSE does not support that.
    #[must_use]
    pub fn nowait(&self) -> bool {
        self.nowait
    }
}

impl Drop for MemberFile {
    fn drop(&mut self) {
        // All commands have ended. The kernel may still hold the file for a moment, for a ring that
        // was closed; the claim must not wait for that. A block device has no lock to release, and
        // the call fails.
        let _ = flock(&self.file, FlockOperation::Unlock);
    }
}

fn logical_block(file: &File, block: bool) -> u32 {
    if !block {
        return 512;
    }
    ioctl_blksszget(file).unwrap_or(512)
}

/// Turns `O_DIRECT` on if any range of whole 512-byte sectors can be accessed directly. Direct
/// and buffered commands must not mix on one member: the page cache would write back whole pages
/// over direct writes.
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
        // Resetting the flag cannot fail where setting it succeeded; if it does, reads will fail.
        let _ = fcntl_setfl(file, access);
    }
    works
}

/// Returns the alignment that statx(2) requires for direct I/O: the stricter of both values, if
/// it gives any.
fn declared_alignment(file: &File) -> Option<u32> {
    let found = statx(file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok()?;
    let told = found.stx_mask & StatxFlags::DIOALIGN.bits() != 0 && found.stx_dio_offset_align > 0;
    told.then(|| found.stx_dio_offset_align.max(found.stx_dio_mem_align))
}

/// Whether commands to a file can be tried (`RWF_NOWAIT`). The kernel refuses the flag before
/// anything else, so the result of reading the one byte does not matter.
fn can_be_tried(file: &File) -> bool {
    let mut byte = [0];
    let read = preadv2(
        file,
        &mut [IoSliceMut::new(&mut byte)],
        0,
        ReadWriteFlags::NOWAIT,
    );
    !matches!(read, Err(Errno::OPNOTSUPP | Errno::NOSYS))
}

/// Whether a block device takes no writes, as after `blockdev --setro`.
fn is_read_only(device: u64) -> bool {
    let path = format!("/sys/dev/block/{}:{}/ro", major(device), minor(device));
    std::fs::read_to_string(path).is_ok_and(|text| text.trim() == "1")
}

fn is_rotational(device: u64) -> bool {
    let folder = PathBuf::from(format!(
        "/sys/dev/block/{}:{}",
        major(device),
        minor(device)
    ));
    // A partition has no queue of its own; its disk's folder is the parent folder.
    ["queue/rotational", "../queue/rotational"]
        .iter()
        .find_map(|name| std::fs::read_to_string(folder.join(name)).ok())
        .is_some_and(|text| text.trim() == "1")
}

#[cfg(test)]
mod tests;
