//! The storage of a member's bytes: an open file or block device, or anything else that can be read
//! and written at a place, such as the disks of a simulation.
//!
//! Commands of an array that runs go through a [`Backend`](super::Backend), which may complete them
//! later, in any order, or never. The work before it runs or between two of its commands, reading
//! metadata and replaying the write log, waits for each command: by the methods here. Either way a
//! command may move fewer bytes than it was asked to, or be interrupted before it moves any.

use super::{Identity, MemberFile};
use raidlab_array::mutation::{self, Mutation};
use raidlab_units::Sectors;
use rustix::fs::{FallocateFlags, fallocate, fdatasync};
use rustix::io::{Errno, ReadWriteFlags, pread, pwrite, pwritev2};
use std::fmt::Debug;
use std::io::{self, IoSlice};
use std::path::Path;

/// A named storage that is read and written at places.
pub trait Storage: Debug + Send + Sync {
    /// Returns the name by which it was opened.
    fn path(&self) -> &Path;

    /// Returns the whole sectors of 512 bytes.
    fn size(&self) -> Sectors;

    /// Whether the storage lies on a mechanical disk, as far as that is known.
    fn rotational(&self) -> bool;

    /// Returns the identity of the file or device.
    fn identity(&self) -> Identity {
        Identity::Other
    }

    /// Returns the reason why nothing may be written to it any more, in words: for example, it has
    /// become shorter since it was opened, so that data are lost.
    fn why_lost(&self) -> Option<&'static str> {
        None
    }

    /// Returns the open file, for a backend that passes commands to the kernel by its descriptor.
    fn file(&self) -> Option<&MemberFile> {
        None
    }

    /// Reads from `offset` on, and waits for it; returns the number of bytes, 0 at the end.
    ///
    /// # Errors
    /// The system's; after `EINTR` nothing was read, and the call may be repeated.
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, Errno>;

    /// Writes at `offset`, and waits for it; returns the number of bytes. They are durable if
    /// `force_unit_access` is set.
    ///
    /// # Errors
    /// The system's; after `EINTR` nothing was written, and the call may be repeated.
    fn write_at(&self, bytes: &[u8], offset: u64, force_unit_access: bool) -> Result<usize, Errno>;

    /// Makes every completed write durable, and waits for it.
    ///
    /// # Errors
    /// The system's.
    fn flush(&self) -> Result<(), Errno>;

    /// Discards `bytes` from `offset` on, if it can.
    ///
    /// # Errors
    /// The system's, where it cannot.
    fn discard(&self, offset: u64, bytes: u64) -> Result<(), Errno>;
}

impl Storage for MemberFile {
    fn path(&self) -> &Path {
        Self::path(self)
    }

    fn size(&self) -> Sectors {
        Self::size(self)
    }

    fn rotational(&self) -> bool {
        Self::rotational(self)
    }

    fn identity(&self) -> Identity {
        Self::identity(self)
    }

    fn why_lost(&self) -> Option<&'static str> {
        Self::why_lost(self)
    }

    fn file(&self) -> Option<&MemberFile> {
        Some(self)
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, Errno> {
        pread(self.file(), bytes, offset)
    }

    fn write_at(&self, bytes: &[u8], offset: u64, force_unit_access: bool) -> Result<usize, Errno> {
        if force_unit_access {
            let bytes = [IoSlice::new(bytes)];
            return pwritev2(self.file(), &bytes, offset, ReadWriteFlags::DSYNC);
        }
        pwrite(self.file(), bytes, offset)
    }

    fn flush(&self) -> Result<(), Errno> {
        fdatasync(self.file())
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), Errno> {
        let mode = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(self.file(), mode, offset, bytes)
    }
}

/// Fills `bytes` from `offset` on, with as many reads as that takes.
pub(super) fn read_whole(storage: &dyn Storage, bytes: &mut [u8], offset: u64) -> io::Result<()> {
    let kind = (io::ErrorKind::UnexpectedEof, Mutation::MetadataReadShort);
    go_on(bytes.len(), kind, |moved| {
        storage.read_at(&mut bytes[moved..], offset + moved as u64)
    })
}

/// Writes all of `bytes` at `offset`, with as many writes as that takes.
pub(super) fn write_whole(storage: &dyn Storage, bytes: &[u8], offset: u64) -> io::Result<()> {
    let kind = (io::ErrorKind::WriteZero, Mutation::MetadataWriteShort);
    go_on(bytes.len(), kind, |moved| {
        storage.write_at(&bytes[moved..], offset + moved as u64, false)
    })
}

/// Makes every completed write durable, however often the call is interrupted.
pub(super) fn flush_whole(storage: &dyn Storage) -> io::Result<()> {
    loop {
        match storage.flush() {
            Err(Errno::INTR) => {}
            flushed => return flushed.map_err(Into::into),
        }
    }
}

/// Repeats a command, which is told how much it has moved, until all has been moved. `end` is the
/// error if it moves nothing any more; with the seeded bug in `end` it is not repeated.
fn go_on(
    whole: usize,
    (end, short): (io::ErrorKind, Mutation),
    mut attempt: impl FnMut(usize) -> Result<usize, Errno>,
) -> io::Result<()> {
    let mut moved = 0;
    while moved < whole {
        match attempt(moved) {
            Ok(0) => return Err(end.into()),
            Ok(_) if mutation::is(short) => return Ok(()),
            Ok(more) => moved += more,
            Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{Storage, flush_whole, read_whole, write_whole};
    use raidlab_units::Sectors;
    use rustix::io::Errno;
    use std::io;
    use std::path::Path;
    use std::sync::Mutex;

    /// Two sectors, of which each command moves one, every other attempt none.
    #[derive(Debug, Default)]
    struct Reluctant {
        bytes: Mutex<Vec<u8>>,
        attempts: Mutex<u32>,
    }

    impl Reluctant {
        fn moved(&self, wanted: usize, offset: u64) -> Result<usize, Errno> {
            let mut attempts = self.attempts.lock().expect("whole");
            *attempts += 1;
            match attempts.is_multiple_of(2) {
                true => Err(Errno::INTR),
                false => Ok(wanted.min(512).min(1024 - offset as usize)),
            }
        }
    }

    impl Storage for Reluctant {
        fn path(&self) -> &Path {
            Path::new("reluctant")
        }
        fn size(&self) -> Sectors {
            Sectors(2)
        }
        fn rotational(&self) -> bool {
            false
        }
        fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, Errno> {
            let moved = self.moved(bytes.len(), offset)?;
            let from = offset as usize;
            let all = self.bytes.lock().expect("whole");
            bytes[..moved].copy_from_slice(&all[from..from + moved]);
            Ok(moved)
        }
        fn write_at(&self, bytes: &[u8], offset: u64, _: bool) -> Result<usize, Errno> {
            let moved = self.moved(bytes.len(), offset)?;
            let to = offset as usize;
            let mut all = self.bytes.lock().expect("whole");
            all.resize(1024, 0);
            all[to..to + moved].copy_from_slice(&bytes[..moved]);
            Ok(moved)
        }
        fn flush(&self) -> Result<(), Errno> {
            self.moved(0, 0).map(drop)
        }
        fn discard(&self, _: u64, _: u64) -> Result<(), Errno> {
            Err(Errno::OPNOTSUPP)
        }
    }

    #[test]
    fn what_comes_in_pieces_is_waited_for() {
        let storage = Reluctant::default();
        let written: Vec<u8> = (0..1024_u32).map(|at| (at / 5) as u8).collect();
        write_whole(&storage, &written, 0).expect("room");
        for _ in 0..2 {
            flush_whole(&storage).expect("durable at last");
        }
        let mut read = vec![0; 1024];
        read_whole(&storage, &mut read, 0).expect("there");
        assert_eq!(read, written);
        let beyond = read_whole(&storage, &mut read, 512);
        let kind = beyond.expect_err("it ends").kind();
        assert_eq!(kind, io::ErrorKind::UnexpectedEof);
    }
}
