//! A member disk with real bytes, a volatile write cache and faults.
//!
//! The pristine bytes ("what a disk without faults would hold") are kept
//! twice: `current` as reads see them, `durable` as they would be found after
//! a power cut that loses everything in the cache. Between the two lies the
//! list of completed writes, oldest first. A flush moves to `durable` what had
//! completed when it was sent; a write with force-unit-access goes there at
//! once, and older cached writes to its sectors are void. At a power cut each
//! cached write and each write in flight lands by itself: not at all, whole, a
//! prefix of its sectors, or any subset of them ([`Landing`]); a later write
//! that lands goes over an earlier one.
//!
//! Faults are overlays on top of the pristine bytes, per sector, applied on
//! reads and cleared by a write of the sector: unreadable sectors, flipped
//! bits, old bytes where a write was lost, foreign bytes where one went
//! astray. They can be lifted all at once to see whether the pristine bytes
//! are right.

mod landing;
#[cfg(test)]
mod tests;

pub use landing::{Landing, Tear, TearRates};

use crate::pages::{PAGE, PAGE_SECTORS, Pages, SECTOR};
use raidlab_array::MemberError;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What a read finds instead of the pristine bytes of a sector.
#[derive(Debug, Clone)]
pub enum Overlay {
    /// A read of the sector fails with a medium error.
    Unreadable,
    /// A read gives these wrong bytes, and no error.
    Wrong(Box<[u8; SECTOR]>),
}

/// A write that is not yet durable.
#[derive(Debug, Clone)]
pub struct PendingWrite {
    /// Order of completion, and of landing.
    pub stamp: u64,
    /// The first sector of the disk that is written.
    pub start: u64,
    /// What is written, in whole sectors of 512 bytes.
    pub bytes: Arc<[u8]>,
    /// Sent with force-unit-access.
    pub durable: bool,
}

impl PendingWrite {
    /// Sectors of the write.
    #[must_use]
    pub fn sectors(&self) -> u64 {
        (self.bytes.len() / SECTOR) as u64
    }
}

/// How a disk is in the world's eyes, beside its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Health {
    /// The disk answers as it should.
    Well,
    /// It does not answer at all until this changes.
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
    /// Sectors whose durable bytes are newer than these cached writes.
    pinned: BTreeMap<u64, u64>,
    overlays: BTreeMap<u64, Overlay>,
    next_stamp: u64,
    /// Whether each write is durable at once, so that a power cut loses none.
    write_through: bool,
    /// Whether the disk answers commands, and how.
    pub health: Health,
    /// Every latency is multiplied by this.
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

    /// How many sectors of 512 bytes the disk has.
    #[must_use]
    pub const fn sectors(&self) -> u64 {
        self.sectors
    }

    /// The pristine bytes as reads would see them without faults.
    #[must_use]
    pub const fn pristine(&self) -> &Pages {
        &self.current
    }

    /// The completed writes that a power cut may lose, oldest first.
    #[must_use]
    pub fn cached(&self) -> &[PendingWrite] {
        &self.cache
    }

    /// The overlays in a range, lowest first.
    pub fn overlays(&self, start: u64, count: u64) -> impl Iterator<Item = (u64, &Overlay)> {
        let range = start..start.saturating_add(count);
        self.overlays
            .range(range)
            .map(|(at, overlay)| (*at, overlay))
    }

    /// What the disk holds before the array's time: the same page everywhere, but other
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

    /// Reads as the disk answers.
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

    /// A write completes; `durable` for force-unit-access.
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

    /// What a flush that is sent now will make durable.
    #[must_use]
    pub const fn flush_mark(&self) -> u64 {
        self.next_stamp
    }

    /// A flush completes that was sent at this mark.
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

    /// The power goes. Cached writes and those in flight land as `landing`
    /// says (it is told the write's place in the order and its sectors); what
    /// is durable then is all there is.
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
        // Elsewhere nothing was read but what was durable.
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

    /// A write in flight that lands rewrites unreadable sectors, too.
    fn clear_landed(&mut self, write: &PendingWrite, landing: Landing) {
        for index in 0..write.sectors() {
            if landing.has(index as usize) {
                self.overlays.remove(&(write.start + index));
            }
        }
    }

    /// The physical sectors that a torn write destroys become unreadable.
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
