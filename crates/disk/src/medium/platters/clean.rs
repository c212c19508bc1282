//! The additional work of a shingled disk: places of writes and reads, and cleaning of bands.

use super::scheduling::Candidate;
use super::{Arm, Platters, Work};
use crate::command::Command;
use super::shingles::{Dirty, Kept, Shingles};
use raidlab_units::SECTOR_BYTES;

impl Platters {
    /// Moves a write to the head of the persistent cache if it belongs there.
    pub(super) fn place_write(&mut self, write: &mut Candidate, command: &Command) {
        let Some(shingles) = &mut self.shingles else {
            return;
        };
        if let Some(offset) = shingles.place(command.start.0, command.end()) {
            self.move_to_cache(write, offset);
            // Data that were read ahead there before are overwritten.
            self.invalidate(write.start, write.end);
        }
    }

    /// Moves a command to the place of its sectors.
    pub(super) fn locate(&self, read: &mut Candidate, command: &Command) {
        let Some(shingles) = &self.shingles else {
            return;
        };
        match shingles.kept(command.start.0, command.end()) {
            Kept::Home => {}
            Kept::Cache(offset) => self.move_to_cache(read, offset),
            Kept::Both { pieces, bytes } => {
                let cache = self.cache_position(0);
                let way = self.seek_ns(read.start, cache) + self.seek_ns(cache, read.end);
                let transfer = self.cache_position(bytes) - cache;
                read.detour = pieces * (way + self.parameters.revolution.0) + transfer;
            }
        }
    }

    fn move_to_cache(&self, candidate: &mut Candidate, offset: u64) {
        candidate.start = self.cache_position(offset);
        candidate.end = self.cache_position(offset + candidate.bytes);
    }

    /// The position of an offset in the persistent cache: after the last sector, at the rate there.
    fn cache_position(&self, offset: u64) -> u64 {
        let capacity = self.capacity.0;
        let end = self.surface.position(capacity);
        let tail = 2048.min(capacity);
        let time = end - self.surface.position(capacity - tail);
        let sectors = u128::from(offset / SECTOR_BYTES);
        let moved = sectors * u128::from(time) / u128::from(tail.max(1));
        end + u64::try_from(moved).unwrap_or(0)
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "seek times are positive and below a second"
    )]
    fn seek_ns(&self, from: u64, to: u64) -> u64 {
        let distance = self.surface.stroke(from.abs_diff(to));
        self.parameters.seek.time_ns(distance) as u64
    }

    /// Whether a write must wait until a band has been cleaned.
    pub(super) fn must_wait(&self, command: &Command) -> bool {
        let shingles = self.shingles.as_ref();
        shingles.is_some_and(|shingles| shingles.is_full() && shingles.takes(command.start.0))
    }

    /// Whether the cache is full, a write waits for room in it, and it is not a read's turn.
    pub(super) fn must_clean(&self) -> bool {
        let read_first = self.read_owed && !self.reads.is_empty();
        let waits = self.door.front().is_some_and(|first| self.must_wait(&first.0));
        waits && self.dirty.is_empty() && !read_first
    }

    /// Schedules cleaning for an idle arm, after a while.
    pub(super) fn rest(&mut self, at: u64) {
        if let Some(shingles) = self.shingles.as_ref().filter(|one| one.is_dirty()) {
            self.clean_at = at + shingles.parameters.idle.0;
        }
    }

    /// Schedules cleaning after a command that needed no arm.
    pub(super) fn rest_if_free(&mut self, now: u64) {
        let reads_on =
            matches!(self.arm, Arm::Streaming { decide_at, .. } if decide_at == u64::MAX);
        if reads_on || matches!(self.arm, Arm::Idle) {
            self.rest(now);
        }
    }

    /// Starts to clean a band, if one needs it.
    pub(super) fn begin_cleaning(&mut self, at: u64) {
        self.clean_at = u64::MAX;
        self.stop_streaming(at);
        let Some(band) = self.shingles.as_mut().and_then(Shingles::clean) else {
            return;
        };
        let start = self.surface.position(band.first_sector);
        let end = self.surface.position(band.end_sector);
        let cache = self.cache_position(0);
        let turn = self.parameters.revolution.0 / 2;
        // The band is read unless the cache has all of it.
        let (from, mut time) = if band.is_whole() {
            (self.head, 0)
        } else {
            (end, self.seek_ns(self.head, start) + turn + (end - start))
        };
        if band.pieces > 0 {
            // Each piece takes a short move and half a revolution, on average.
            let settle = self.seek_ns(cache, cache);
            time += self.seek_ns(from, cache) + (band.pieces - 1) * settle + band.pieces * turn;
            time += self.cache_position(band.cached_bytes) - cache;
        }
        // The way back, and writing the whole band.
        let back = if band.pieces > 0 { cache } else { from };
        time += self.seek_ns(back, start) + turn + (end - start);
        self.arm = Arm::Busy {
            until: at + time,
            what: Work::Clean(band),
        };
    }

    /// Ends the cleaning of a band: writes at the door are admitted; an idle disk continues with
    /// the next band.
    pub(super) fn finish_cleaning(&mut self, now: u64, band: &Dirty) {
        self.head = self.surface.position(band.end_sector);
        self.visit_bytes = 0;
        self.visit_is_stream = false;
        self.read_owed = true;
        self.admit(now);
        self.finish_flushes(now);
        self.dispatch(now, false);
        if matches!(self.arm, Arm::Idle) && self.shingles.as_ref().is_some_and(Shingles::is_dirty) {
            self.begin_cleaning(now);
        }
    }
}
