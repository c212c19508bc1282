//! Opening a file or a block device so that nobody else uses it.
//!
//! How a member is claimed: see `claim`.

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

/// How a member is to be opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// Never past the page cache, even where the member allows it.
    pub buffered: bool,
    /// What is done with it.
    pub access: Access,
}

/// What is done with a member, and who else may use it meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// It is read and written, by nobody else.
    #[default]
    Write,
    /// It is read, and nobody writes it. Others may read a file, but not a block device.
    Read,
    /// It is looked at, whatever others do with it.
    Look,
}

/// What is said of a member whose end lies before that with which it was opened.
pub(super) const SHRUNK: &str = "it has become shorter than it was";

/// An open member: a regular file or a block device.
#[derive(Debug)]
pub struct MemberFile {
    file: File,
    path: PathBuf,
    identity: Identity,
    /// There was a name for it when it was opened.
    had_name: bool,
    size: Sectors,
    logical_block_bytes: u32,
    rotational: bool,
    direct: bool,
    nowait: bool,
    read_only: bool,
}

/// The file or device that a path leads to, by whatever words, links or names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Identity {
    /// A regular file.
    File {
        /// The number of the device that its file system is on.
        device: u64,
        /// Its number in that file system.
        inode: u64,
    },
    /// A block device by its own number.
    Device(u64),
    /// Something that cannot be a member: a folder, a pipe, a character device.
    Other,
}

impl Identity {
    /// What is at a path now; None where nothing is, or nothing that can be a
    /// member.
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

/// Why a member could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system refused.
    #[error("cannot open {}", visible_path(.path))]
    Open {
        /// What was to be opened.
        path: PathBuf,
        /// The error that the system gave.
        #[source]
        source: io::Error,
    },
    /// A directory, a pipe, a character device.
    #[error("{} is neither a file nor a block device", visible_path(.path))]
    Kind {
        /// What was to be opened.
        path: PathBuf,
    },
    /// The device, or a partition of it, is mounted.
    #[error("{} is mounted on {}", visible_path(.path), visible_path(.on))]
    Mounted {
        /// What was to be opened.
        path: PathBuf,
        /// The folder on which it is mounted.
        on: PathBuf,
    },
    /// Another program or the kernel uses it.
    #[error("{} is in use by {by}", visible_path(.path))]
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
        let read_only = options.access != Access::Write;
        let access = if read_only {
            OFlags::RDONLY
        } else {
            OFlags::RDWR
        };
        let flags = access | OFlags::CLOEXEC | OFlags::NONBLOCK;
        // A look without O_EXCL first: for a file it would mean nothing.
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
        if options.access != Access::Look {
            if block {
                // Else it would seem to be held by this program.
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

    /// The open file.
    #[must_use]
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The path by which the member was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Which file or device it is.
    #[must_use]
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// Why nothing is to be written to a file any more, in words. It may have become shorter
    /// since it was opened, so that what it held is lost; a write behind its new end would make
    /// it long again, with a hole. Or it may have been deleted: then nobody finds it when it has
    /// been closed, and what is written to it is lost. So this is asked before each write. A
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

    /// Whether it was opened for reading alone.
    #[must_use]
    pub fn is_read_only(&self) -> bool {
        self.read_only
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

    /// Whether the kernel can try a command and come back where it would have to
    /// wait (`RWF_NOWAIT`). A file on tmpfs or FUSE cannot be tried.
    #[must_use]
    pub fn nowait(&self) -> bool {
        self.nowait
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

/// A file that cannot be tried is refused by that before anything else; how the
/// one byte fares otherwise does not matter.
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
