//! A member disk with real bytes, a volatile write cache and faults.
//!
//! The pristine bytes ("the contents of a disk without faults") are kept twice: `current` as reads
//! see them, `durable` as they would be found after a power cut that loses everything in the cache.
//! Between the two lies the list of completed writes, oldest first. A flush moves to `durable` the
//! writes that had completed when it was sent; a write with force-unit-access goes there at once,
//! and older cached writes to its sectors are void. At a power cut each cached write and each write
//! in flight lands by itself: not at all, whole, a prefix of its sectors, or any subset of them
//! ([`Landing`]); a later write that lands overwrites an earlier one.
//!
//! Faults are overlays on top of the pristine bytes, per sector, applied on reads and cleared by a
//! write of the sector: unreadable sectors, flipped bits, old bytes where a write was lost, foreign
//! bytes where a misdirected one landed. They can be lifted all at once to check whether the
//! pristine bytes are right.

mod landing;
#[cfg(test)]
mod tests;

pub use landing::{Landing, Tear, TearRates};

use crate::pages::{PAGE, PAGE_SECTORS, Pages, SECTOR};
use raidlab_array::MemberError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A fault of one sector, which reads find instead of its pristine bytes.
#[derive(Debug, Clone)]
pub enum Overlay {
    /// A read of the sector fails with a medium error.
    Unreadable,
    /// A read returns these wrong bytes, and no error.
    Wrong(Box<[u8; SECTOR]>),
}

/// A write that is not yet durable.
#[derive(Debug, Clone)]
pub struct PendingWrite {
    /// The write's number in the order of completion, which is also that of landing.
    pub stamp: u64,
    /// The first sector of the disk that is written.
    pub start: u64,
    /// The bytes that are written, in whole sectors of 512 bytes.
    pub bytes: Arc<[u8]>,
    /// Whether it was sent with force-unit-access.
    pub durable: bool,
}

impl PendingWrite {
    /// Returns the number of sectors of the write.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        (self.bytes.len() / SECTOR) as u64
    }
}

/// The state of a disk, apart from its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// The disk answers as it should.
    Well,
    /// The disk does not answer at all until this changes.
    Hung,
    /// The disk has gone: every command fails.
    Gone,
}

/// A simulated disk with its volatile cache and its faults.
#[derive(Debug, Clone)]
pub struct Disk {
    sectors: u64,
    current: Pages,
    durable: Pages,
    cache: Vec<PendingWrite>,
    /// For each sector, the stamp below which cached writes are older than its durable bytes.
    pinned: BTreeMap<u64, u64>,
    overlays: BTreeMap<u64, Overlay>,
    next_stamp: u64,
    /// Whether each write is durable at once, so that a power cut loses none.
    write_through: bool,
    /// Whether the disk answers commands.
    pub health: Health,
    /// The factor by which every latency is multiplied.
    pub slowness: u64,
}

impl Disk {
    /// A disk of zeros. With `write_through` it has no volatile cache.
    #[must_use]
    pub fn new(sectors: u64, write_through: bool) -> Self {
        Self {
            sectors,
            current: Pages::new(sectors),
            durable: Pages::new(sectors),
            cache: Vec::new(),
            pinned: BTreeMap::new(),
            overlays: BTreeMap::new(),
            next_stamp: 0,
            write_through,
            health: Health::Well,
            slowness: 1,
        }
    }

    /// Returns the number of sectors of 512 bytes of the disk.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// Returns the pristine bytes as reads would see them without faults.
    #[must_use]
    pub const fn pristine(&self) -> &Pages {
        &self.current
    }

    /// Returns the completed writes that a power cut may lose, oldest first.
    #[must_use]
    pub fn cached(&self) -> &[PendingWrite] {
        &self.cache
    }

    /// Returns the overlays in a range, lowest first.
    pub fn overlays(&self, start: u64, count: u64) -> impl Iterator<Item = (u64, &Overlay)> {
        let range = start..start.saturating_add(count);
        self.overlays
            .range(range)
            .map(|(at, overlay)| (*at, overlay))
    }

    /// Sets the contents of the disk before the array was made: the same page everywhere, but other
    /// bytes at its beginning.
    pub fn preset(&mut self, page: &[u8; PAGE], beginning: &[u8]) {
        self.current.fill(page);
        self.current.write(0, beginning);
        self.durable = self.current.clone();
    }

    /// Puts a fault on a sector.
    pub fn afflict(&mut self, sector: u64, overlay: Overlay) {
        self.overlays.insert(sector, overlay);
    }

    /// Lifts every fault.
    pub fn heal(&mut self) {
        self.overlays.clear();
    }

    /// Reads sectors with the disk's faults applied.
    ///
    /// # Errors
    /// An unreadable sector in the range, or a disk that is gone.
    pub fn read(&self, start: u64, into: &mut [u8]) -> Result<(), MemberError> {
        if self.health == Health::Gone {
            return Err(MemberError::Gone);
        }
        self.current.read(start, into);
        for (sector, overlay) in self.overlays(start, (into.len() / SECTOR) as u64) {
            let Overlay::Wrong(wrong) = overlay else {
                return Err(MemberError::Medium);
            };
            let at = (sector - start) as usize * SECTOR;
            into[at..at + SECTOR].copy_from_slice(&wrong[..]);
        }
        Ok(())
    }

    /// Completes a write; `durable` for force-unit-access.
    pub fn write(&mut self, start: u64, bytes: Arc<[u8]>, durable: bool) {
        let count = (bytes.len() / SECTOR) as u64;
        self.current.write(start, &bytes);
        self.clear_overlays(start, count);
        self.next_stamp += 1;
        if durable || self.write_through {
            self.durable.write(start, &bytes);
            if !self.cache.is_empty() {
                let pins = (start..start + count).map(|sector| (sector, self.next_stamp));
                self.pinned.extend(pins);
            }
        } else {
            self.cache.push(PendingWrite {
                stamp: self.next_stamp,
                start,
                bytes,
                durable,
            });
        }
    }

    /// Returns the mark up to which a flush that is sent now makes writes durable.
    #[must_use]
    pub const fn flush_mark(&self) -> u64 {
        self.next_stamp
    }

    /// Completes a flush that was sent at this mark.
    pub fn flush(&mut self, mark: u64) {
        let done = self.cache.partition_point(|write| write.stamp <= mark);
        let landed: Vec<PendingWrite> = self.cache.drain(..done).collect();
        for write in &landed {
            self.land(write, Landing::All);
        }
        if self.cache.is_empty() {
            self.pinned.clear();
        }
    }

    /// Cuts the power. Cached writes and those in flight land as `landing` decides (its arguments
    /// are the write's place in the order and its sectors); afterwards only durable bytes exist.
    pub fn power_cut(
        &mut self,
        in_flight: Vec<PendingWrite>,
        mut landing: impl FnMut(usize, &PendingWrite) -> Landing,
    ) {
        let mut writes = std::mem::take(&mut self.cache);
        writes.extend(in_flight.into_iter().map(|write| {
            self.next_stamp += 1;
            PendingWrite {
                stamp: self.next_stamp,
                ..write
            }
        }));
        for (place, write) in writes.iter().enumerate() {
            let landing = landing(place, write);
            self.land(write, landing);
            self.clear_landed(write, landing);
        }
        self.pinned.clear();
        // Elsewhere `current` and `durable` are the same already.
        for write in &writes {
            self.current
                .share(&self.durable, write.start, write.sectors());
        }
        if self.health == Health::Hung {
            self.health = Health::Well;
        }
    }

    fn land(&mut self, write: &PendingWrite, landing: Landing) {
        if landing == Landing::All && self.pinned.is_empty() {
            self.durable.write(write.start, &write.bytes);
            return;
        }
        let sectors = (write.start..).zip(write.bytes.chunks_exact(SECTOR));
        for (index, (sector, bytes)) in sectors.enumerate() {
            let newer = self
                .pinned
                .get(&sector)
                .is_some_and(|&pin| pin > write.stamp);
            if landing.has(index) && !newer {
                self.durable.write(sector, bytes);
            }
        }
    }

    /// Clears unreadable sectors that a landed write has rewritten.
    fn clear_landed(&mut self, write: &PendingWrite, landing: Landing) {
        for index in 0..write.sectors() {
            if landing.has(index as usize) {
                self.overlays.remove(&(write.start + index));
            }
        }
    }

    /// Makes the physical sector of a torn write unreadable.
    pub fn tear_physical(&mut self, sector: u64) {
        let first = sector - sector % PAGE_SECTORS;
        for sector in first..(first + PAGE_SECTORS).min(self.sectors) {
            self.afflict(sector, Overlay::Unreadable);
        }
    }

    fn clear_overlays(&mut self, start: u64, count: u64) {
        if self.overlays.is_empty() {
            return;
        }
        let gone: Vec<u64> = self.overlays(start, count).map(|(at, _)| at).collect();
        for sector in gone {
            self.overlays.remove(&sector);
        }
    }
}
