//! The disks to which the driver has direct access while it waits for them: to read metadata, to
//! create and assemble an array, to replay its log, to erase a new member. The world puts its
//! disks there for as long as such a call takes, between two events. The power may be cut after a
//! number of writes.

use crate::disk::Disk;
use crate::options::DriverFaults;
use crate::pages::SECTOR;
use raidlab_array::MemberError;
use raidlab_random::Stream;
use raidlab_serve::member::{Errno, Member, Storage};
use raidlab_units::{SECTOR_BYTES, Sectors};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
struct Inside {
    disks: Vec<Disk>,
    /// The number of writes until the power is cut.
    writes_left: Option<u64>,
    is_cut: bool,
    interruptions: Interruptions,
}

/// Commands that are cut short or interrupted, drawn from a stream.
#[derive(Debug, Clone)]
pub(crate) struct Interruptions {
    pub(crate) random: Stream,
    short_percent: u32,
    again_percent: u32,
}

impl Interruptions {
    /// Interruptions at the rates of a run, drawn from the stream of this number.
    pub(crate) fn new(faults: &DriverFaults, random: &Stream, number: u64) -> Self {
        Self {
            random: random.fork("interruptions", number),
            short_percent: faults.short_percent,
            again_percent: faults.again_percent,
        }
    }

    /// Returns how many bytes of a command, of whole sectors, are moved; an error if the command
    /// has to be repeated.
    pub(crate) fn draw(&mut self, bytes: usize) -> Result<usize, Errno> {
        if self.again_percent > 0 && self.random.percent(self.again_percent) {
            return Err(Errno::INTR);
        }
        let sectors = (bytes / SECTOR) as u64;
        let may_be_short = self.short_percent > 0 && sectors > 1;
        if may_be_short && self.random.percent(self.short_percent) {
            let some = 1 + self.random.below(sectors - 1);
            return Ok(some as usize * SECTOR);
        }
        Ok(bytes)
    }
}

/// The shelf of a world; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Shelf(Arc<Mutex<Inside>>);

impl Shelf {
    /// An empty shelf, on which commands are interrupted at these rates.
    pub(crate) fn new(interruptions: Interruptions) -> Self {
        Self(Arc::new(Mutex::new(Inside {
            disks: Vec::new(),
            writes_left: None,
            is_cut: false,
            interruptions,
        })))
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives the driver these disks during `work`. With `writes` the power is cut after
    /// that many writes.
    pub(crate) fn lend<R>(
        &self,
        disks: &mut Vec<Disk>,
        writes: Option<u64>,
        work: impl FnOnce(&Self) -> R,
    ) -> R {
        {
            let mut inside = self.lock();
            inside.disks = std::mem::take(disks);
            inside.writes_left = writes;
            inside.is_cut = false;
        }
        let result = work(self);
        let mut inside = self.lock();
        *disks = std::mem::take(&mut inside.disks);
        inside.writes_left = None;
        result
    }

    /// Whether the power was cut during the last call.
    pub(crate) fn is_cut(&self) -> bool {
        self.lock().is_cut
    }

    /// Returns a disk as a member, which works while the disk is on the shelf.
    pub(crate) fn member(&self, number: usize) -> Member {
        let size = self.lock().disks.get(number).map_or(0, Disk::sectors);
        Member::Storage(Arc::new(Shelved {
            number,
            path: PathBuf::from(number.to_string()),
            size: Sectors(size),
            shelf: self.clone(),
        }))
    }
}

/// A disk of the shelf in the form that the driver uses.
#[derive(Debug)]
struct Shelved {
    number: usize,
    path: PathBuf,
    size: Sectors,
    shelf: Shelf,
}

impl Shelved {
    /// Calls `work` with the disk: `bytes` at `offset`, both of whole sectors.
    fn with(
        &self,
        offset: u64,
        bytes: usize,
        work: impl FnOnce(&mut Disk, u64, usize) -> Result<(), MemberError>,
    ) -> Result<usize, Errno> {
        let mut inside = self.shelf.lock();
        let left = self.size.to_bytes().0.saturating_sub(offset);
        let bytes = bytes.min(usize::try_from(left).unwrap_or(usize::MAX));
        let bytes = inside.interruptions.draw(bytes)?;
        // A disk that the world has taken back cannot be used.
        let disk = inside.disks.get_mut(self.number).ok_or(Errno::BADF)?;
        work(disk, offset / SECTOR_BYTES, bytes).map_err(errno)?;
        Ok(bytes)
    }
}

/// Returns the system's number of a disk's error.
pub(crate) fn errno(error: MemberError) -> Errno {
    match error {
        MemberError::Medium => Errno::IO,
        MemberError::Gone => Errno::NODEV,
    }
}

impl Storage for Shelved {
    fn path(&self) -> &Path {
        &self.path
    }

    fn size(&self) -> Sectors {
        self.size
    }

    fn rotational(&self) -> bool {
        true
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize, Errno> {
        self.with(offset, bytes.len(), |disk, start, count| {
            disk.read(start, &mut bytes[..count])
        })
    }

    fn write_at(&self, bytes: &[u8], offset: u64, durable: bool) -> Result<usize, Errno> {
        {
            let mut inside = self.shelf.lock();
            if inside.writes_left == Some(0) {
                inside.is_cut = true;
                return Err(Errno::SHUTDOWN);
            }
            inside.writes_left = inside.writes_left.map(|left| left - 1);
        }
        self.with(offset, bytes.len(), |disk, start, count| {
            disk.write(start, bytes[..count].into(), durable);
            Ok(())
        })
    }

    fn flush(&self) -> Result<(), Errno> {
        let flushed = self.with(0, 0, |disk, _, _| {
            let mark = disk.flush_mark();
            disk.flush(mark);
            Ok(())
        });
        flushed.map(drop)
    }

    fn discard(&self, offset: u64, bytes: u64) -> Result<(), Errno> {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
        let discarded = self.with(offset, bytes, |disk, start, count| {
            disk.write(start, vec![0; count].into(), false);
            Ok(())
        });
        discarded.map(drop)
    }
}
