//! The read cache: a few segments, each one contiguous piece of the disk.
//!
//! Segments live in position space (see [`crate::surface`]): positions rise
//! strictly with sectors, so containment and contiguity are the same there,
//! and reading ahead for a nanosecond extends a segment by one.

/// One piece of the disk that the read cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Segment {
    /// The position of the first cached sector.
    pub start: u64,
    /// The position after the last cached sector.
    pub end: u64,
    /// Whether a read has continued it, so that it belongs to a stream.
    pub sequential: bool,
    /// The longest piece that fits, as a distance of positions.
    span: u64,
}

impl Segment {
    /// Grows to `end`; data beyond the span are dropped at the start.
    fn grow(&mut self, end: u64) {
        self.end = self.end.max(end);
        self.start = self.start.max(self.end.saturating_sub(self.span));
    }
}

/// The segments, replaced least recently used first.
#[derive(Debug, Clone)]
pub struct Segments {
    slots: Vec<Segment>,
    capacity: usize,
    /// The slots in the order in which they are to be replaced: dropped ones, the lowest first,
    /// then the others by last use.
    order: Vec<usize>,
    dropped: usize,
}

impl Segments {
    /// An empty cache of `capacity` segments, at least one.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self {
            slots: Vec::with_capacity(capacity),
            capacity: capacity.max(1),
            order: Vec::with_capacity(capacity),
            dropped: 0,
        }
    }

    /// The segment that holds `start` or ends there.
    #[inline]
    #[must_use]
    pub fn find(&self, start: u64) -> Option<usize> {
        // A single comparison: two separate ones would be unpredictable branches.
        let holds = |one: &Segment| start.wrapping_sub(one.start) <= one.end - one.start;
        self.slots.iter().position(holds)
    }

    /// The segment at an index given by [`Self::find`] or [`Self::read`].
    #[inline]
    #[must_use]
    pub fn get(&self, index: usize) -> &Segment {
        &self.slots[index]
    }

    /// Records that `[start, end)` was read from the medium or asked of the
    /// cache, continuing a segment where there is one; a segment holds `span`
    /// positions at most. Returns its index.
    pub fn read(&mut self, start: u64, end: u64, span: u64) -> usize {
        if let Some(index) = self.find(start) {
            let segment = &mut self.slots[index];
            segment.sequential = true;
            segment.span = span;
            segment.grow(end);
            self.use_now(index);
            return index;
        }
        let mut segment = Segment {
            start,
            end,
            sequential: false,
            span,
        };
        segment.grow(end);
        if self.slots.len() < self.capacity {
            self.order.push(self.slots.len());
            self.slots.push(segment);
            return self.slots.len() - 1;
        }
        let oldest = self.order[0];
        self.slots[oldest] = segment;
        self.use_now(oldest);
        oldest
    }

    /// The index of a slot in the order of replacement.
    fn place_of(&self, index: usize) -> usize {
        let place = self.order.iter().position(|&other| other == index);
        place.unwrap_or_else(|| unreachable!("each slot is there"))
    }

    /// Makes a slot the last to be replaced.
    fn use_now(&mut self, index: usize) {
        let place = self.place_of(index);
        self.dropped -= usize::from(place < self.dropped);
        self.order[place..].rotate_left(1);
    }

    /// Makes a slot the first to be replaced, before all that hold data.
    fn drop_slot(&mut self, index: usize) {
        let place = self.place_of(index);
        if place >= self.dropped {
            let before = self.order[..self.dropped].partition_point(|&other| other < index);
            self.order[before..=place].rotate_right(1);
            self.dropped += 1;
        }
    }

    /// Extends a segment to `end` after read-ahead.
    pub fn extend(&mut self, index: usize, end: u64) {
        self.slots[index].grow(end);
    }

    /// A write made `[start, end)` stale: overlapping segments are dropped, and of the one that
    /// read-ahead is `filling` only the part after the write is kept. Dropped ones are moved beyond
    /// the end of every disk, where no read finds them and read-ahead has no effect.
    pub fn invalidate(&mut self, start: u64, end: u64, filling: Option<usize>) {
        for index in 0..self.slots.len() {
            let segment = &mut self.slots[index];
            if segment.start >= end || start >= segment.end {
                continue;
            }
            if filling == Some(index) && end < segment.end {
                segment.start = end;
            } else {
                *segment = Segment {
                    start: u64::MAX,
                    end: u64::MAX,
                    sequential: false,
                    span: 0,
                };
                self.drop_slot(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Segments;
    use proptest::collection;
    use proptest::prelude::*;

    proptest! {
        /// Against numbers of last uses, of which dropped slots have 0.
        #[test]
        fn the_one_that_was_used_least_recently_is_replaced(
            steps in collection::vec((0_u8..4, 0_u64..60, 1_u64..12), 1..80),
        ) {
            let (mut segments, mut used) = (Segments::new(4), Vec::new());
            for (clock, (what, start, length)) in (1..).zip(steps) {
                let end = start + length;
                if what == 0 {
                    let held = |index: &usize| {
                        let segment = segments.get(*index);
                        segment.start < end && start < segment.end
                    };
                    let gone: Vec<usize> = (0..used.len()).filter(held).collect();
                    segments.invalidate(start, end, None);
                    gone.into_iter().for_each(|index| used[index] = 0);
                    continue;
                }
                let oldest = (0..used.len()).min_by_key(|&index| used[index]);
                let expected = match (segments.find(start), oldest) {
                    (Some(index), _) => index,
                    (None, Some(oldest)) if used.len() == 4 => oldest,
                    _ => {
                        used.push(0);
                        used.len() - 1
                    }
                };
                prop_assert_eq!(segments.read(start, end, 20), expected);
                used[expected] = clock;
            }
        }
    }

    #[test]
    fn a_continuing_read_makes_a_stream() {
        let mut segments = Segments::new(2);
        let first = segments.read(100, 200, 1000);
        assert!(!segments.get(first).sequential);
        assert_eq!(segments.read(200, 300, 1000), first);
        assert!(segments.get(first).sequential);
        assert_eq!(
            (segments.get(first).start, segments.get(first).end),
            (100, 300)
        );
        assert_eq!(segments.find(301), None);
    }

    #[test]
    fn a_segment_forgets_its_start() {
        let mut segments = Segments::new(1);
        for step in 0..100 {
            segments.read(step * 100, step * 100 + 100, 1000);
        }
        assert_eq!(segments.find(8_999), None);
        assert_eq!(segments.find(9_000), Some(0));
        segments.extend(0, 10_500);
        assert_eq!(segments.find(9_499), None);
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let mut segments = Segments::new(2);
        segments.read(0, 10, 1000);
        segments.read(100, 110, 1000);
        segments.read(10, 20, 1000);
        segments.read(200, 210, 1000);
        assert!(segments.find(5).is_some());
        assert!(segments.find(105).is_none());
        assert!(segments.find(205).is_some());
    }

    #[test]
    fn writes_make_segments_stale() {
        let mut segments = Segments::new(2);
        segments.read(0, 10, 1000);
        segments.invalidate(9, 12, None);
        assert!(segments.find(5).is_none());
    }

    #[test]
    fn what_a_write_made_stale_does_not_come_back() {
        let mut segments = Segments::new(2);
        let first = segments.read(0, 10, 1000);
        segments.extend(first, 12);
        segments.invalidate(2, 4, Some(first));
        segments.extend(first, 14);
        assert_eq!((segments.find(3), segments.find(4)), (None, Some(first)));
        segments.invalidate(8, 20, Some(first));
        segments.extend(first, 20);
        assert_eq!(segments.find(3), None, "read-ahead that goes on brings nothing back");
        let again = segments.read(0, 10, 1000);
        assert!(!segments.get(again).sequential, "the same read once more is no stream");
    }
}
