//! Writes that wait: the gathering half of the stripe cache.
//!
//! A window is a range of sectors within one row, the same on all members, in whole blocks of 4
//! KiB. Windows do not overlap. In each, a data block is either written wholly or not at all,
//! except in windows of a single block, where sectors may be missing. A new write is cut at the
//! borders of the existing windows, and cuts them at its own. Where writes overlap, the later one's
//! sectors replace the earlier one's.
//!
//! A window is *ready* (to be tried at once), *delayed* (waits for more writes, by md's rule), or
//! neither: it was ready, but its range is locked, and the lock's end makes it ready again.

use super::config::BLOCK;
use super::{Mutation, mutated};
use crate::request::{BufferId, RequestId};
use raidlab_units::Sectors;
use std::collections::{BTreeMap, BTreeSet};

/// Sectors of a data block that a request writes, or a read wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) request: RequestId,
    /// The place of `start` in the request's payload.
    pub(super) skip: u64,
}

impl Segment {
    /// Returns the part between these sectors, if any.
    pub(super) fn clip(&self, start: u64, end: u64) -> Option<Self> {
        let (from, to) = (self.start.max(start), self.end.min(end));
        (from < to).then(|| Self {
            start: from,
            end: to,
            request: self.request,
            skip: self.skip + (from - self.start),
        })
    }

    /// Returns the buffer of its bytes from a sector on.
    pub(super) fn buffer(&self, from: u64) -> BufferId {
        BufferId::Request {
            request: self.request,
            skip: Sectors(self.skip + (from - self.start)),
        }
    }
}

/// New data of a window, by data index; segments ascend and do not overlap.
pub(super) type Blocks = BTreeMap<u16, Vec<Segment>>;

/// Whether segments leave no gap between these sectors.
pub(super) fn covers(segments: &[Segment], start: u64, end: u64) -> bool {
    let mut at = start;
    for segment in segments {
        if segment.start > at {
            return false;
        }
        at = at.max(segment.end);
    }
    at >= end
}

/// A window for which writes are gathered.
#[derive(Debug, Clone)]
pub(super) struct Window {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) blocks: Blocks,
    /// The requests that wait for this window, once for each part.
    pub(super) requests: Vec<RequestId>,
    pub(super) force_unit_access: bool,
    /// Whether it was split into blocks after an error: it stays by itself.
    pub(super) alone: bool,
}

impl Window {
    /// Whether every one of `data_count` blocks is wholly written.
    pub(super) fn is_full(&self, data_count: usize) -> bool {
        self.blocks.len() == data_count && self.is_whole()
    }

    /// Whether no block is written in part.
    fn is_whole(&self) -> bool {
        let mut blocks = self.blocks.values();
        blocks.all(|segments| covers(segments, self.start, self.end))
    }

    fn overlay(&mut self, index: u16, new: Segment) {
        let old = self.blocks.remove(&index).unwrap_or_default();
        let mut segments: Vec<_> = old
            .iter()
            .flat_map(|segment| [segment.clip(0, new.start), segment.clip(new.end, u64::MAX)])
            .flatten()
            .collect();
        segments.push(new);
        segments.sort_unstable_by_key(|segment| segment.start);
        self.blocks.insert(index, segments);
    }

    /// Splits the window; returns the upper part.
    fn split(&mut self, at: u64) -> Self {
        let part = |from: u64, to: u64| {
            let clipped = self.blocks.iter().map(|(index, segments)| {
                let inside: Vec<_> = segments.iter().filter_map(|it| it.clip(from, to)).collect();
                (*index, inside)
            });
            clipped.filter(|(_, inside)| !inside.is_empty()).collect()
        };
        let upper = Self {
            start: at,
            end: self.end,
            blocks: part(at, self.end),
            requests: self.requests.clone(),
            force_unit_access: self.force_unit_access,
            alone: self.alone,
        };
        self.blocks = part(self.start, at);
        self.end = at;
        upper
    }

    /// Merges the next window, if that leaves every block written wholly or not at all.
    fn absorb(&mut self, next: &Self) -> bool {
        let same = self.blocks.keys().eq(next.blocks.keys())
            && self.force_unit_access == next.force_unit_access
            && !(self.alone || next.alone);
        if !same || next.start != self.end || !self.is_whole() || !next.is_whole() {
            return false;
        }
        for (mine, theirs) in self.blocks.values_mut().zip(next.blocks.values()) {
            mine.extend(theirs);
        }
        self.requests.extend(&next.requests);
        self.end = next.end;
        true
    }
}

/// All windows for which writes are gathered.
#[derive(Debug, Default)]
pub(super) struct Pending {
    windows: BTreeMap<u64, Window>,
    ready: BTreeSet<u64>,
    delayed: BTreeSet<u64>,
}

impl Pending {
    pub(super) fn len(&self) -> usize {
        self.windows.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.windows.is_empty()
    }

    /// Adds a write of one data block. `longest` bounds a window. Each request in `counts` has one
    /// window more to wait for.
    pub(super) fn insert(
        &mut self,
        index: u16,
        write: Segment,
        longest: u64,
        force_unit_access: bool,
        counts: &mut Vec<RequestId>,
    ) -> Vec<u64> {
        let mut touched = Vec::new();
        let mut at = write.start / BLOCK * BLOCK;
        let end = write.end.next_multiple_of(BLOCK);
        while at < end {
            let partial = write.start > at || write.end < at + BLOCK;
            let span_end = if partial {
                at + BLOCK
            } else {
                (write.end / BLOCK * BLOCK).min(at / longest * longest + longest)
            };
            self.fill(at, span_end, counts);
            let starts: Vec<_> = self.windows.range(at..span_end).map(|it| *it.0).collect();
            for start in starts {
                let window = self.windows.get_mut(&start).expect("listed just now");
                if let Some(part) = write.clip(window.start, window.end) {
                    window.overlay(index, part);
                    window.requests.push(write.request);
                    window.force_unit_access |=
                        force_unit_access && !mutated(Mutation::GatheredForceUnitAccessLost);
                    counts.push(write.request);
                    touched.push(start);
                }
            }
            at = span_end;
        }
        touched
    }

    /// Makes windows begin at `start` and end at `end`, with none missing between.
    fn fill(&mut self, start: u64, end: u64, counts: &mut Vec<RequestId>) {
        self.cut(start, counts);
        self.cut(end, counts);
        let mut at = start;
        let there: Vec<_> = self
            .windows
            .range(start..end)
            .map(|(from, window)| (*from, window.end))
            .chain([(end, end)])
            .collect();
        for (from, to) in there {
            if at < from {
                let window = Window {
                    start: at,
                    end: from,
                    blocks: Blocks::new(),
                    requests: Vec::new(),
                    force_unit_access: false,
                    alone: false,
                };
                self.windows.insert(at, window);
                self.delayed.insert(at);
            }
            at = to;
        }
    }

    fn cut(&mut self, at: u64, counts: &mut Vec<RequestId>) {
        let below = self.windows.range_mut(..at).next_back();
        let Some((&start, window)) = below.filter(|(_, window)| window.end > at) else {
            return;
        };
        let upper = window.split(at);
        counts.extend(&upper.requests);
        self.windows.insert(at, upper);
        if self.delayed.contains(&start) {
            self.delayed.insert(at);
        } else {
            // A window that waits for a lock may be blocked in one part only, and the lock's end
            // would not wake the other.
            self.ready.extend([start, at]);
        }
    }

    pub(super) fn get(&self, start: u64) -> Option<&Window> {
        self.windows.get(&start)
    }

    /// Lets the window that begins there be tried again.
    pub(super) fn release(&mut self, start: u64) {
        self.delayed.remove(&start);
        self.ready.insert(start);
    }

    pub(super) fn release_delayed(&mut self) {
        self.ready.append(&mut self.delayed);
    }

    /// Makes windows ready whose lock on this range has ended.
    pub(super) fn unblock(&mut self, start: u64, end: u64) {
        let below = self.windows.range(..=start).next_back();
        let from = below.map_or(start, |(from, _)| *from);
        let starts = self.windows.range(from..end).map(|(at, _)| *at);
        let blocked = starts.filter(|at| !self.delayed.contains(at));
        self.ready.extend(blocked);
    }

    /// Returns the next window to try, which is then neither ready nor delayed.
    pub(super) fn next_ready(&mut self) -> Option<(u64, u64)> {
        loop {
            let start = self.ready.pop_first()?;
            if let Some(window) = self.windows.get(&start) {
                return Some((start, window.end));
            }
        }
    }

    /// Takes a window out, and with it those that follow in the same row, are not delayed, have the
    /// same shape and are free.
    pub(super) fn take(
        &mut self,
        start: u64,
        limit: u64,
        is_free: impl Fn(u64, u64) -> bool,
    ) -> Option<Window> {
        let mut window = self.windows.remove(&start)?;
        while let Some(next) = self.windows.get(&window.end)
            && next.end <= limit
            && !self.delayed.contains(&next.start)
            && is_free(next.start, next.end)
        {
            let next_start = next.start;
            if !window.absorb(next) {
                break;
            }
            self.windows.remove(&next_start);
            self.ready.remove(&next_start);
        }
        Some(window)
    }

    /// Puts back, in parts no longer than a block, a window that could not be done as a whole.
    /// Writes that came since lie over it.
    pub(super) fn put_back_in_blocks(&mut self, window: Window, counts: &mut Vec<RequestId>) {
        let mut rest = window;
        rest.alone = true;
        while rest.end > rest.start + BLOCK {
            let upper = rest.split(rest.start + BLOCK);
            counts.extend(&upper.requests);
            self.put_under(rest, counts);
            rest = upper;
        }
        self.put_under(rest, counts);
    }

    /// Puts a window of one block under the present ones.
    fn put_under(&mut self, mut below: Window, counts: &mut Vec<RequestId>) {
        let (start, end) = (below.start, below.end);
        self.cut(start, counts);
        self.cut(end, counts);
        if let Some(above) = self.windows.remove(&start) {
            for (index, segments) in &above.blocks {
                for segment in segments {
                    below.overlay(*index, *segment);
                }
            }
            below.requests.extend(&above.requests);
            below.force_unit_access |= above.force_unit_access;
        }
        self.windows.insert(start, below);
        self.release(start);
    }
}

#[cfg(test)]
mod tests {
    use super::{Pending, Segment};
    use crate::request::RequestId;

    fn write(start: u64, end: u64, request: u64) -> Segment {
        Segment {
            start,
            end,
            request: RequestId(request),
            skip: 0,
        }
    }

    /// The lock that a window waited for may lie in one part of it.
    #[test]
    fn the_parts_of_a_window_that_waited_for_a_lock_are_tried_again() {
        let mut pending = Pending::default();
        let mut counts = Vec::new();
        let touched = pending.insert(0, write(0, 128, 1), 128, false, &mut counts);
        assert_eq!(touched, [0]);
        pending.release(0);
        assert_eq!(pending.next_ready(), Some((0, 128)));
        assert_eq!(pending.next_ready(), None);
        // It was locked from 40 to 48; now a write cuts it.
        pending.insert(1, write(47, 117, 2), 128, false, &mut counts);
        let parts: Vec<_> = std::iter::from_fn(|| pending.next_ready()).collect();
        assert_eq!(
            parts,
            [(0, 40), (40, 48), (48, 112), (112, 120), (120, 128)]
        );
    }
}
