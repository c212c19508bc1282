//! Blocks that a sorted resilver has found and not yet read, by address
//! (OpenZFS 2.3.2 `dsl_scan.c`, `dsl_scan_io_queue`).
//!
//! Runs of blocks are grouped into segments: a run at most `zfs_scan_max_ext_gap` after another
//! belongs to its segment. Runs are taken from the front of a segment, and from one segment until
//! it is empty or a new run was found. The next segment is the one with the lowest address, once
//! everything was found (`scn_checkpointing`); before that, when the memory has run out, the one
//! with the highest score, which is its bytes, and three times its bytes by the share of the
//! segment that they fill (`zfs_scan_fill_weight`). Only the highest bit of the score counts, then
//! the lower address (`ext_size_value`).

use raidlab_units::{Bytes, SECTOR_BYTES, Sectors};
use std::collections::BTreeMap;

/// The memory of one block: a `scan_io_t` of 120 bytes and one address of 16.
const BLOCK_BYTES: u64 = 136;
/// The memory of a segment: 24 bytes and 8, in trees that are three quarters full
/// at worst (`dsl_scan_should_clear`).
const SEGMENT_BYTES: u64 = 48;
const FILL_WEIGHT: u64 = 3;

/// A run of blocks, found with neighbouring addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    /// The run's first sector on the disks, its address in the allocatable space.
    pub(super) start: u64,
    /// The first block of the volume in the run.
    pub(super) first: u64,
    /// The number of the volume's blocks in the run.
    pub(super) blocks: u64,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    end: u64,
    /// The number of the segment's sectors in blocks that were found.
    fill: u64,
}

/// The blocks found, by address; see the file's head. Addresses are sectors.
#[derive(Debug)]
pub(super) struct Found {
    block_sectors: u64,
    gap: u64,
    runs: BTreeMap<u64, Run>,
    segments: BTreeMap<u64, Segment>,
    blocks: u64,
    going_on: Option<u64>,
}

impl Found {
    /// Creates an empty set for blocks of `block_sectors`; segments bridge `gap`.
    pub(super) const fn new(block_sectors: u64, gap: Sectors) -> Self {
        Self {
            block_sectors,
            gap: gap.0,
            runs: BTreeMap::new(),
            segments: BTreeMap::new(),
            blocks: 0,
            going_on: None,
        }
    }

    /// The memory that all this would take in the real implementation.
    pub(super) fn memory(&self) -> Bytes {
        Bytes(self.blocks * BLOCK_BYTES + self.segments.len() as u64 * SEGMENT_BYTES)
    }

    /// Adds a run that was found; one at the same place is known already.
    pub(super) fn insert(&mut self, run: Run) {
        self.going_on = None;
        if run.blocks == 0 || self.runs.contains_key(&run.start) {
            return;
        }
        let fill = run.blocks * self.block_sectors;
        let (mut start, mut segment) = (
            run.start,
            Segment {
                end: run.start + fill,
                fill,
            },
        );
        self.runs.insert(run.start, run);
        self.blocks += run.blocks;
        let reach = segment.end + self.gap;
        while let Some((&other, &known)) = self.segments.range(..=reach).next_back()
            && known.end + self.gap >= start
        {
            self.segments.remove(&other);
            start = start.min(other);
            segment.end = segment.end.max(known.end);
            segment.fill += known.fill;
        }
        self.segments.insert(start, segment);
    }

    /// Takes the next blocks to read, at most `limit` of them; `None` if there are none.
    pub(super) fn take(&mut self, by_address: bool, limit: u64) -> Option<Run> {
        let start = if by_address {
            *self.segments.keys().next()?
        } else {
            self.going_on.or_else(|| self.best())?
        };
        let mut segment = self.segments.remove(&start)?;
        let run = self.runs.range(start..segment.end).next().map(|at| *at.1)?;
        self.runs.remove(&run.start);
        let taken = Run {
            blocks: run.blocks.min(limit),
            ..run
        };
        let sectors = taken.blocks * self.block_sectors;
        if taken.blocks < run.blocks {
            let rest = Run {
                start: run.start + sectors,
                first: run.first + taken.blocks,
                blocks: run.blocks - taken.blocks,
            };
            self.runs.insert(rest.start, rest);
        }
        self.blocks -= taken.blocks;
        segment.fill -= sectors;
        let next = self.runs.range(start..segment.end).next();
        self.going_on = next.map(|(&next, _)| next);
        if let Some(next) = self.going_on {
            self.segments.insert(next, segment);
        }
        Some(taken)
    }

    fn best(&self) -> Option<u64> {
        let key =
            |(&start, segment): (&u64, &Segment)| (64 - highest_bit(score(start, segment)), start);
        self.segments.iter().map(key).min().map(|key| key.1)
    }
}

/// The score of a segment in bytes, computed as in the source.
const fn score(start: u64, segment: &Segment) -> u64 {
    let size = (segment.end - start) * SECTOR_BYTES;
    let fill = segment.fill * SECTOR_BYTES;
    fill + ((((fill << 7) / size) * FILL_WEIGHT * fill) >> 7)
}

/// The index of the highest set bit, from 1; 0 if there is none.
const fn highest_bit(value: u64) -> u32 {
    64 - value.leading_zeros()
}

#[cfg(test)]
mod tests;
