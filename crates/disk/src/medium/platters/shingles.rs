//! Shingled tracks behind a drive that hides them.
//!
//! Tracks of a *band* overlap: a band can only be written from its start to its end. A drive that
//! manages this itself has a *persistent cache*, tracks that do not overlap, and a *map* of its
//! contents. The rules, after the findings of Aghayev and Desnoyers about such drives ("Skylight: a
//! window on shingled disk operation", FAST 2015) and measurements of others (the preset's
//! sources), as simple as possible:
//!
//! 1. Writes that follow each other are a *run*; the last few runs are remembered. Once a run is
//!    long enough, its writes go to their place from the next band's start on. The data that they
//!    replace in the cache are dropped. A run that ends in the middle of a band leaves that band to
//!    be cleaned, as the following tracks are damaged.
//! 2. Any other write goes to the head of the persistent cache, whatever its address: random writes
//!    are as fast as a stream until it is full. It is full when it has no room, or the map no free
//!    entry: with small writes the map is full long before the cache. Neighbours in both address
//!    and cache share an entry.
//! 3. *Cleaning* a band takes a move to it and reading it, unless the cache has all of it, then
//!    reading its pieces in the cache, one by one, and a move back to write it whole.
//! 4. When the cache is full, a write that would go there waits until a band has been
//!    cleaned. Between two bands one read is served.
//! 5. After some idle time bands are cleaned one by one; a new command waits for the
//!    one in progress.
//! 6. The band with the longest wait is the next.
//! 7. Cached sectors are read from the cache. A read of cached and other sectors is done at its
//!    place, with a move to the cache and back for each piece.
//!
//! The cache is after the last sector. A leap over hours of one stream advances the run and leaves
//! the cache as it is: a busy disk does not clean.

use raidlab_units::{Bytes, Nanos, SECTOR_BYTES};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Parameters of a shingled disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ShingleParameters {
    /// The size of the persistent cache.
    pub cache: Bytes,
    /// The number of entries in its map, extents of neighbouring sectors, at least 1.
    pub extents: usize,
    /// The size of a band.
    pub band: Bytes,
    /// The length of a run of writes that goes to the cache before the rest goes to its place.
    pub stream: Bytes,
    /// The idle time after which bands are cleaned.
    pub idle: Nanos,
}

/// The number of runs of writes that are remembered: assumed, as drives do not report it.
const RUNS: usize = 8;

/// A run of writes that follow each other.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The sector from which its writes go to their place, a band's start.
    in_place: u64,
    /// The sector after the last one.
    end: u64,
}

/// Sectors in the cache, up to `end`.
#[derive(Debug, Clone, Copy)]
struct Extent {
    end: u64,
    /// The place of the sectors, as an offset in the cache in bytes.
    at: u64,
}

/// A band with data in the cache.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// The band's turn: the serial number of its first write.
    turn: u64,
    /// The bytes of the cache that it takes, including overwritten ones.
    bytes: u64,
}

/// The state of the persistent cache.
#[derive(Debug, Clone)]
pub(crate) struct Shingles {
    pub(crate) parameters: ShingleParameters,
    /// The cached extents by first sector; none crosses a band's border.
    map: BTreeMap<u64, Extent>,
    /// The data waiting in the cache for each band, by the band's number.
    waiting: BTreeMap<u64, Waiting>,
    /// The numbers of the bands with data in the cache, by the turn in which they are cleaned.
    turns: BTreeMap<u64, u64>,
    used: u64,
    turn: u64,
    /// The remembered runs, the one written last at the end.
    runs: VecDeque<Run>,
    /// The bytes ever written to the cache, which give the place of its head.
    written: u64,
}

/// A band that is to be cleaned: read, merged with its data in the cache, and rewritten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dirty {
    pub(crate) first_sector: u64,
    pub(crate) end_sector: u64,
    /// The bytes of the band that are in the cache.
    pub(crate) cached_bytes: u64,
    /// The number of pieces in the cache that hold those bytes.
    pub(crate) pieces: u64,
}

impl Dirty {
    /// Whether the cache has all of the band.
    pub(crate) fn is_whole(&self) -> bool {
        self.cached_bytes == (self.end_sector - self.first_sector) * SECTOR_BYTES
    }
}

/// The places of the sectors of a read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// All sectors are at their own place in their bands.
    Home,
    /// All sectors are in the cache, in one piece from this offset.
    Cache(u64),
    /// The sectors are in several pieces in the cache, and maybe also at their place.
    Both {
        /// The number of pieces that lie in the cache.
        pieces: u64,
        /// The number of bytes in these pieces.
        bytes: u64,
    },
}

impl Shingles {
    pub(crate) fn new(parameters: ShingleParameters) -> Self {
        Self {
            parameters,
            map: BTreeMap::new(),
            waiting: BTreeMap::new(),
            turns: BTreeMap::new(),
            used: 0,
            turn: 0,
            runs: VecDeque::new(),
            written: 0,
        }
    }

    fn band_sectors(&self) -> u64 {
        self.parameters.band.to_sectors().0.max(1)
    }

    fn band(&self, band: u64) -> Range<u64> {
        let sectors = self.band_sectors();
        band * sectors..(band + 1) * sectors
    }

    /// The sector from which the run that a write at `start` continues goes to its place.
    fn in_place_from(&self, start: u64) -> u64 {
        let known = self.runs.iter().find(|run| run.end == start);
        known.map_or_else(
            || {
                let far = start + self.parameters.stream.to_sectors().0;
                far.next_multiple_of(self.band_sectors())
            },
            |run| run.in_place,
        )
    }

    /// Whether a write at `start` would go to the cache.
    pub(crate) fn takes(&self, start: u64) -> bool {
        start < self.in_place_from(start)
    }

    /// Places a write of sectors `start` to `end`: `None` if it goes to its place, else its offset
    /// in the cache.
    pub(crate) fn place(&mut self, start: u64, end: u64) -> Option<u64> {
        let in_place = self.in_place_from(start);
        self.follow(start, Run { in_place, end });
        if start >= in_place {
            self.write_in_place(start, end);
            return None;
        }
        let offset = self.written % self.parameters.cache.0.max(1);
        self.written += (end - start) * SECTOR_BYTES;
        let mut from = start;
        while from < end {
            let band = from / self.band_sectors();
            let to = self.band(band).end.min(end);
            let bytes = (to - from) * SECTOR_BYTES;
            self.forget(from, to);
            self.remember(from, to, offset + (from - start) * SECTOR_BYTES);
            self.wait(band, bytes);
            from = to;
        }
        Some(offset)
    }

    /// Records the run that a write at `start` made, in place of the one that it continued, or of
    /// the least recent one.
    fn follow(&mut self, start: u64, run: Run) {
        let known = self.runs.iter().position(|known| known.end == start);
        if let Some(place) = known {
            self.runs.remove(place);
        } else if self.runs.len() == RUNS
            && let Some(given_up) = self.runs.pop_front()
            && given_up.end > given_up.in_place
            && !given_up.end.is_multiple_of(self.band_sectors())
        {
            self.wait(given_up.end / self.band_sectors(), 0);
        }
        self.runs.push_back(run);
    }

    /// Writes these sectors in their place, which replaces their data in the cache; bands written
    /// to their end need no cleaning.
    fn write_in_place(&mut self, start: u64, end: u64) {
        self.forget(start, end);
        let sectors = self.band_sectors();
        for band in start / sectors..end / sectors {
            // Data from before the run may still be in the cache.
            if self.map.range(self.band(band)).next().is_none() {
                self.settle(band);
            }
        }
    }

    /// Marks a band for cleaning, with so many more bytes of the cache.
    fn wait(&mut self, band: u64, bytes: u64) {
        self.turn += 1;
        let turn = self.turn;
        let waiting = self
            .waiting
            .entry(band)
            .or_insert(Waiting { turn, bytes: 0 });
        waiting.bytes += bytes;
        self.turns.insert(waiting.turn, band);
        self.used += bytes;
    }

    /// Unmarks a band that needs no cleaning any more.
    fn settle(&mut self, band: u64) {
        if let Some(waiting) = self.waiting.remove(&band) {
            self.turns.remove(&waiting.turn);
            self.used -= waiting.bytes;
        }
    }

    /// Adds an entry to the map, for sectors that it does not have: joined with that of the
    /// preceding sectors where these precede in the cache too.
    fn remember(&mut self, start: u64, end: u64, at: u64) {
        let before = self.map.range_mut(..start).next_back();
        let continued = before.filter(|(first, extent)| {
            let follows = extent.at + (extent.end - **first) * SECTOR_BYTES == at;
            extent.end == start && follows
        });
        match continued {
            Some((_, extent))
                if !start.is_multiple_of(self.parameters.band.to_sectors().0.max(1)) =>
            {
                extent.end = end;
            }
            _ => {
                self.map.insert(start, Extent { end, at });
            }
        }
    }

    /// Removes sectors from the map; the parts of an entry beyond them stay.
    fn forget(&mut self, start: u64, end: u64) {
        let overlapping: Vec<(u64, Extent)> = self.overlapping(start, end).collect();
        for (first, extent) in overlapping {
            self.map.remove(&first);
            if first < start {
                self.map.insert(
                    first,
                    Extent {
                        end: start,
                        ..extent
                    },
                );
            }
            if extent.end > end {
                let at = extent.at + (end - first) * SECTOR_BYTES;
                self.map.insert(end, Extent { at, ..extent });
            }
        }
    }

    fn overlapping(&self, start: u64, end: u64) -> impl Iterator<Item = (u64, Extent)> {
        let before = self.map.range(..start).next_back();
        let before = before.filter(move |(_, extent)| extent.end > start);
        let within = self.map.range(start..end);
        before
            .into_iter()
            .chain(within)
            .map(|(first, extent)| (*first, *extent))
    }

    /// The places of the sectors of a read.
    pub(crate) fn kept(&self, start: u64, end: u64) -> Kept {
        let (mut pieces, mut bytes, mut at) = (0, 0, 0);
        let mut follows = None;
        for (first, extent) in self.overlapping(start, end) {
            let offset = extent.at + start.saturating_sub(first) * SECTOR_BYTES;
            if pieces == 0 {
                at = offset;
            }
            // Entries end with their bands; what lies behind may go on there all the same.
            pieces += u64::from(follows != Some((first, offset)));
            bytes += (extent.end.min(end) - first.max(start)) * SECTOR_BYTES;
            follows = Some((extent.end, extent.at + (extent.end - first) * SECTOR_BYTES));
        }
        match pieces {
            0 => Kept::Home,
            1 if bytes == (end - start) * SECTOR_BYTES => Kept::Cache(at),
            _ => Kept::Both { pieces, bytes },
        }
    }

    /// Whether the cache or its map is full.
    pub(crate) fn is_full(&self) -> bool {
        self.used >= self.parameters.cache.0 || self.map.len() >= self.parameters.extents
    }

    /// Whether any band waits for cleaning.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Removes the band that has waited longest from the cache.
    pub(crate) fn clean(&mut self) -> Option<Dirty> {
        let band = *self.turns.first_key_value()?.1;
        self.settle(band);
        let sectors = self.band(band);
        let mut dirty = Dirty {
            first_sector: sectors.start,
            end_sector: sectors.end,
            cached_bytes: 0,
            pieces: 0,
        };
        for (first, extent) in self.overlapping(sectors.start, sectors.end) {
            dirty.cached_bytes += (extent.end - first) * SECTOR_BYTES;
            dirty.pieces += 1;
        }
        self.forget(sectors.start, sectors.end);
        Some(dirty)
    }

    /// Whether the last write went to its place, as those that follow it will.
    pub(crate) fn is_streaming(&self) -> bool {
        let last = self.runs.back();
        last.is_some_and(|run| run.end > run.in_place)
    }

    /// Leaps over hours in which the last run of writes continued to `sector`; if it went to its
    /// place, all of it did.
    pub(crate) fn leap(&mut self, sector: u64) {
        let Some(run) = self.runs.back().copied() else {
            return;
        };
        if run.end > run.in_place && sector > run.end {
            self.write_in_place(run.end, sector);
            self.follow(run.end, Run { end: sector, ..run });
        }
    }
}

#[cfg(test)]
mod tests;
