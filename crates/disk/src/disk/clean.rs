//! What a shingled disk does beside: where writes go, and when bands are cleaned.

use super::{Arm, Disk, Work};
use crate::command::Command;
use crate::scheduling::Candidate;
use crate::shingles::{Dirty, Shingles};

impl Disk {
    /// Moves a write to the head of the persistent cache if that is where it goes.
    pub(super) fn place_write(&mut self, write: &mut Candidate, command: &Command) {
        let Some(shingles) = &mut self.shingles else {
            return;
        };
        if let Some(offset) = shingles.place(command.start.0, command.end()) {
            let span = write.end - write.start;
            write.start = self.cache_position(offset);
            write.end = write.start + span;
        }
    }

    /// The position of an offset in the persistent cache: behind the last sector, at
    /// the rate there.
    fn cache_position(&self, offset: u64) -> u64 {
        let capacity = self.parameters.capacity.0;
        let end = self.surface.position(capacity);
        let tail = 2048.min(capacity);
        let time = end - self.surface.position(capacity - tail);
        let sectors = u128::from(offset / raidlab_units::SECTOR_BYTES);
        let moved = sectors * u128::from(time) / u128::from(tail.max(1));
        end + u64::try_from(moved).unwrap_or(0)
    }

    /// The cache is full, a write waits for room in it, and it is not a read's turn.
    pub(super) fn must_clean(&self) -> bool {
        let full = self.shingles.as_ref().is_some_and(Shingles::is_full);
        let read_first = self.read_owed && !self.reads.is_empty();
        full && !self.door.is_empty() && self.dirty.is_empty() && !read_first
    }

    /// There is nothing to do: cleaning begins after a while.
    pub(super) fn rest(&mut self, at: u64) {
        if let Some(shingles) = self.shingles.as_ref().filter(|one| one.is_dirty()) {
            self.clean_at = at + shingles.parameters.idle.0;
        }
    }

    /// The same after a command that needed no arm.
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
        let seek = |from: u64, to: u64| self.parameters.seek.time_ns(self.surface.stroke(from, to));
        let seeks = seek(self.head, start) + seek(end, cache) + seek(cache, start);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "seek times are positive and below a second"
        )]
        let seeks = seeks as u64;
        let read_back = self.cache_position(band.cached_bytes) - cache;
        // Half a revolution before each of the three transfers, on average.
        let rotation = self.parameters.revolution.0 * 3 / 2;
        self.arm = Arm::Busy {
            until: at + seeks + rotation + 2 * (end - start) + read_back,
            what: Work::Clean(band),
        };
    }

    /// A band is clean: what waited at the door comes in; an idle disk goes on with
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
