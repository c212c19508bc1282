//! Shingled tracks behind a drive that hides them.
//!
//! Tracks of a *band* overlap: a band can only be written from its start to its end.
//! A drive that manages this itself has a *persistent cache*, tracks that do not
//! overlap, and a *map* of what is in it. The rules, after what Aghayev and Desnoyers
//! found out of such drives ("Skylight: a window on shingled disk operation", FAST 2015)
//! and what others measured on them (the preset's sources), as simple as can be:
//!
//! 1. Writes that follow each other are a *run*; the last few runs are remembered. Once a
//!    run is long enough, its writes go to their place from the next band's start on. What
//!    they replace in the cache is forgotten. A run that is given up in the middle of a
//!    band leaves that band to be cleaned, as the tracks behind are damaged.
//! 2. Any other write goes to the head of the persistent cache, whatever its address:
//!    random writes are as fast as a stream until it is full. It is full when it has no
//!    room, or the map no entry: of small writes the map holds far less than the cache
//!    would. Neighbours in both address and cache share an entry.
//! 3. *Cleaning* a band takes a move to it and reading it, unless the cache has all of it,
//!    reading what belongs to it in the cache, piece by piece, and a move back to write
//!    it whole.
//! 4. When the cache is full, a write that would go there waits until a band has been
//!    cleaned. Between two bands one read is served.
//! 5. After some idle time bands are cleaned one by one; a command that comes waits
//!    for the one that is under way.
//! 6. The band with the longest wait is the next.
//! 7. A read of what is in the cache is read there. A read of both is read at its place,
//!    with a way to the cache and back for each piece.
//!
//! The cache lies behind the last sector. A leap over hours of one stream moves the run on
//! and leaves the cache as it is: a disk that is busy does not clean.

use raidlab_units::{Bytes, Nanos, SECTOR_BYTES};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

/// Numbers of a shingled disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShingleParameters {
    /// How many bytes the persistent cache holds.
    pub cache: Bytes,
    /// Entries of its map: extents of neighbouring sectors, at least 1.
    pub extents: usize,
    /// Size of a band.
    pub band: Bytes,
    /// So long a run of writes goes to the cache before the rest goes to its place.
    pub stream: Bytes,
    /// Idle time after which bands are cleaned.
    pub idle: Nanos,
}

/// Runs of writes that are remembered at a time: assumed, as drives do not tell.
const RUNS: usize = 8;

/// Writes that follow each other.
#[derive(Debug, Clone, Copy)]
struct Run {
    /// The sector from which they go to their place, a band's start.
    in_place: u64,
    /// The sector after the last one.
    end: u64,
}

/// Sectors that the cache holds, up to `end`.
#[derive(Debug, Clone, Copy)]
struct Extent {
    end: u64,
    /// Where they are, as an offset in the cache in bytes.
    at: u64,
}

/// A band with something in the cache.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    /// When the first of it came: its turn.
    turn: u64,
    /// Bytes of the cache that it takes, overwritten ones included.
    bytes: u64,
}

/// The state of the persistent cache.
#[derive(Debug, Clone)]
pub(crate) struct Shingles {
    pub(crate) parameters: ShingleParameters,
    /// By first sector; none crosses a band's border.
    map: BTreeMap<u64, Extent>,
    /// What waits in the cache for each band, by the band's number.
    waiting: BTreeMap<u64, Waiting>,
    /// The numbers of the bands with something in the cache, by the turn in which they are cleaned.
    turns: BTreeMap<u64, u64>,
    used: u64,
    turn: u64,
    /// The one written last comes last.
    runs: VecDeque<Run>,
    /// Bytes that were ever written to the cache: where its head is.
    written: u64,
}

/// A band that is to be cleaned: read, merged with what the cache has, and written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Dirty {
    pub(crate) first_sector: u64,
    pub(crate) end_sector: u64,
    /// What of it is in the cache.
    pub(crate) cached_bytes: u64,
    /// How many pieces of the cache those bytes are in.
    pub(crate) pieces: u64,
}

impl Dirty {
    /// Whether the cache has all of the band.
    pub(crate) fn is_whole(&self) -> bool {
        self.cached_bytes == (self.end_sector - self.first_sector) * SECTOR_BYTES
    }
}

/// Where the sectors of a read are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// All at their own place in their bands.
    Home,
    /// In the cache, in one piece from this offset.
    Cache(u64),
    /// In so many pieces in the cache, of so many bytes together, and maybe at their
    /// place.
    Both {
        /// The number of pieces that lie in the cache.
        pieces: u64,
        /// The bytes that these pieces hold together.
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

    /// From where the run that a write at `start` continues goes to its place.
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

    /// A write of sectors `start` to `end`: `None` if it goes to its place, else the
    /// offset in the cache that it goes to.
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

    /// Notes the run that a write at `start` made, in place of the one it continued or of
    /// the one that was longest not heard of.
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

    /// What these sectors had in the cache is replaced; bands written to their end need no
    /// cleaning.
    fn write_in_place(&mut self, start: u64, end: u64) {
        self.forget(start, end);
        let sectors = self.band_sectors();
        for band in start / sectors..end / sectors {
            // What came before the run may still be in the cache.
            if self.map.range(self.band(band)).next().is_none() {
                self.settle(band);
            }
        }
    }

    /// A band needs cleaning, and takes so many bytes more of the cache.
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

    /// A band needs no cleaning any more.
    fn settle(&mut self, band: u64) {
        if let Some(waiting) = self.waiting.remove(&band) {
            self.turns.remove(&waiting.turn);
            self.used -= waiting.bytes;
        }
    }

    /// An entry of the map, of sectors that it does not have: with that of the sectors
    /// before where these follow in the cache too.
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

    /// Takes sectors out of the map; what an entry has beyond them stays.
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

    /// Where the sectors of a read are.
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

    /// Nothing more fits into the cache, or into its map.
    pub(crate) fn is_full(&self) -> bool {
        self.used >= self.parameters.cache.0 || self.map.len() >= self.parameters.extents
    }

    /// Whether any band waits for cleaning.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Takes the band that has waited longest out of the cache.
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

    /// Hours have passed in which the last run of writes went on to `sector`: as far as it
    /// went to its place, all of it did.
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
