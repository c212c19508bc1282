//! The part of a member's content that is still to be recovered.

use crate::admission::Admission;
use raidlab_units::{Sectors, Span, SpanSet};

/// The part of a member that is not filled: the rest of its content is current.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unfilled {
    /// The sector of the member's data area below which everything is filled.
    pub(crate) from: Sectors,
    /// The sectors from `from` on that are not filled, counted as in
    /// [`SyncRequest`](crate::SyncRequest). `None`: nothing there is filled.
    pub(crate) ranges: Option<SpanSet>,
}

impl Default for Unfilled {
    /// The value for a complete member, or for an empty slot.
    fn default() -> Self {
        Self {
            from: Sectors::ZERO,
            ranges: Some(SpanSet::default()),
        }
    }
}

impl From<Admission> for Unfilled {
    fn from(admission: Admission) -> Self {
        match admission {
            Admission::From(from) => Self { from, ranges: None },
            Admission::Ranges(ranges) => Self {
                from: Sectors::ZERO,
                ranges: Some(ranges.into_iter().collect()),
            },
        }
    }
}

impl Unfilled {
    /// The part that an admission leaves to be filled, in whole blocks of `block` sectors of the
    /// member's first `size` sectors.
    pub(super) fn in_blocks(admission: &Admission, size: Sectors, block: u64) -> Self {
        let from = match admission {
            Admission::From(from) => *from,
            Admission::Ranges(_) => Sectors::ZERO,
        };
        Self {
            from,
            ranges: Some(admission.unfilled(size, block)),
        }
    }

    /// Whether a member has all of a range of its data area.
    pub(super) fn is_filled(&self, range: Span) -> bool {
        match &self.ranges {
            Some(ranges) => !ranges.overlaps(range),
            None => range.end <= self.from,
        }
    }

    /// Returns the part to be copied so that both members are filled, where positions
    /// are array sectors.
    pub(crate) fn union(&self, other: &Self, total: Sectors) -> Self {
        if let (None, None) = (&self.ranges, &other.ranges) {
            return Self {
                from: self.from.min(other.from),
                ranges: None,
            };
        }
        let ranges = self.spans(total).into_iter().chain(other.spans(total));
        Self {
            from: self.from.min(other.from),
            ranges: Some(ranges.collect()),
        }
    }

    fn spans(&self, total: Sectors) -> Vec<Span> {
        let everything = Span::between(self.from, total.max(self.from));
        let Some(ranges) = &self.ranges else {
            return vec![everything];
        };
        let left = ranges
            .iter()
            .map(|span| Span::between(span.start.max(self.from), span.end));
        left.filter(|span| span.start < span.end).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Unfilled;
    use crate::admission::Admission;
    use raidlab_units::{Sectors, Span};

    fn spans(spans: &[(u64, u64)]) -> Vec<Span> {
        let spans = spans.iter().map(|&(start, end)| Span::new(start, end));
        spans.collect()
    }

    #[test]
    fn the_union_fills_both() {
        let from = |sector| Unfilled::from(Admission::From(Sectors(sector)));
        let ranges = |list: &[(u64, u64)]| Unfilled::from(Admission::Ranges(spans(list)));
        let total = Sectors(100);
        assert_eq!(from(30).union(&from(20), total), from(20));
        let both = ranges(&[(5, 10), (40, 50)]).union(&from(45), total);
        assert_eq!(both, ranges(&[(5, 10), (40, 100)]));
        let mut begun = ranges(&[(5, 10), (40, 50)]);
        begun.from = Sectors(42);
        let union = begun.union(&ranges(&[(60, 61)]), total);
        assert_eq!(union, ranges(&[(42, 50), (60, 61)]));
    }
}
