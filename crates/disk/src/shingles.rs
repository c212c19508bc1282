//! Shingled tracks behind a drive that hides them.
//!
//! Tracks of a *band* overlap: a band can only be written from its start to its end.
//! A drive that manages this itself has a *persistent cache*, tracks that do not
//! overlap. The rules, after what Aghayev and Desnoyers found out of such drives
//! ("Skylight: a window on shingled disk operation", FAST 2015), as simple as can be:
//!
//! 1. A write that begins at a band's start, or where the write before it ended, goes
//!    to its place: a stream of writes fills bands in order.
//! 2. Any other write goes to the head of the persistent cache, whatever its address:
//!    random writes are as fast as a stream until it is full.
//! 3. *Cleaning* a band takes a move to it, reading all of it, a move to the cache and
//!    reading what belongs to it there, a move back, and writing all of it.
//! 4. When the cache is full, a write waits until a band has been cleaned. Between two
//!    bands one read is served.
//! 5. After some idle time bands are cleaned one by one; a command that comes waits
//!    for the one that is under way.
//! 6. The band with the longest wait is the next.
//!
//! Reads are charged at the data's own place, also where the newest are in the cache,
//! which lies behind the last sector. A real drive keeps a map of extents and reads
//! them from the cache; a fresh copy of a file that was written at random is read
//! slower there than here.

use raidlab_units::{Bytes, Nanos};
use std::collections::BTreeMap;

/// Numbers of a shingled disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShingleParameters {
    /// What the persistent cache holds.
    pub cache: Bytes,
    /// Size of a band.
    pub band: Bytes,
    /// Idle time after which bands are cleaned.
    pub idle: Nanos,
}

/// The state of the persistent cache.
#[derive(Debug, Clone)]
pub(crate) struct Shingles {
    pub(crate) parameters: ShingleParameters,
    /// Bands with data in the cache: when the first came, how many bytes.
    dirty: BTreeMap<u64, (u64, u64)>,
    used: u64,
    turn: u64,
    /// The sector after the last write.
    stream: u64,
    /// Bytes that were ever written to the cache: where its head is.
    written: u64,
}

/// A band to be cleaned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dirty {
    pub(crate) first_sector: u64,
    pub(crate) end_sector: u64,
    /// What of it is in the cache.
    pub(crate) cached_bytes: u64,
}

impl Shingles {
    pub(crate) fn new(parameters: ShingleParameters) -> Self {
        Self {
            parameters,
            dirty: BTreeMap::new(),
            used: 0,
            turn: 0,
            stream: 0,
            written: 0,
        }
    }

    fn band_sectors(&self) -> u64 {
        self.parameters.band.to_sectors().0.max(1)
    }

    /// A write of sectors `start` to `end`: `None` if it goes to its place, else the
    /// offset in the cache that it goes to.
    pub(crate) fn place(&mut self, start: u64, end: u64) -> Option<u64> {
        let band = self.band_sectors();
        let in_order = start == self.stream || start.is_multiple_of(band);
        self.stream = end;
        if in_order {
            return None;
        }
        let bytes = (end - start) * raidlab_units::SECTOR_BYTES;
        self.turn += 1;
        let entry = self.dirty.entry(start / band).or_insert((self.turn, 0));
        entry.1 += bytes;
        self.used += bytes;
        let offset = self.written % self.parameters.cache.0.max(1);
        self.written += bytes;
        Some(offset)
    }

    /// Nothing more fits into the cache.
    pub(crate) fn is_full(&self) -> bool {
        self.used >= self.parameters.cache.0
    }

    /// Whether any band waits for cleaning.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Takes the band that has waited longest out of the cache.
    pub(crate) fn clean(&mut self) -> Option<Dirty> {
        let oldest = self.dirty.iter().min_by_key(|(_, (since, _))| *since);
        let band = *oldest?.0;
        let (_, cached_bytes) = self.dirty.remove(&band)?;
        self.used -= cached_bytes;
        let first_sector = band * self.band_sectors();
        Some(Dirty {
            first_sector,
            end_sector: first_sector + self.band_sectors(),
            cached_bytes,
        })
    }

    /// Hours have passed: everything is clean.
    pub(crate) fn rest(&mut self) {
        self.dirty.clear();
        self.used = 0;
    }
}

#[cfg(test)]
mod tests;
