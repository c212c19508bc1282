//! What has to be copied: the admission of one member, and the plan of a sync
//! over several.

use super::SyncKind;
use crate::admission::Admission;
use raidlab_geometry::SlotSet;
use raidlab_units::{Sectors, Span, SpanSet};

/// What recovery owes a member.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Need {
    /// Below this sector of its data area it is current.
    pub(crate) from: Sectors,
    /// From there on, only these array sectors are not; `None`: none is.
    pub(crate) ranges: Option<SpanSet>,
}

/// A sync to begin.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) kind: SyncKind,
    pub(crate) targets: SlotSet,
    /// The first position.
    pub(crate) start: Sectors,
    /// The position at which it ends.
    pub(crate) total: Sectors,
    /// Only these array sectors.
    pub(crate) ranges: Option<SpanSet>,
}

/// What is at a position.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Placement {
    /// The array sector; `None`: nothing.
    pub(crate) array: Option<Sectors>,
    /// For how many sectors it goes on so.
    pub(crate) contiguous: Sectors,
}

impl From<Admission> for Need {
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

impl Need {
    /// What has to be copied so that nothing is owed to either, where positions
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
        let everything = Span {
            start: self.from,
            end: total.max(self.from),
        };
        let Some(ranges) = &self.ranges else {
            return vec![everything];
        };
        let left = ranges.iter().map(|span| Span {
            start: span.start.max(self.from),
            end: span.end,
        });
        left.filter(|span| span.start < span.end).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Need;
    use crate::admission::Admission;
    use raidlab_units::{Sectors, Span};

    fn spans(spans: &[(u64, u64)]) -> Vec<Span> {
        let spans = spans.iter().map(|&(start, end)| Span::new(start, end));
        spans.collect()
    }

    #[test]
    fn the_union_owes_nothing_to_either() {
        let from = |sector| Need::from(Admission::From(Sectors(sector)));
        let ranges = |list: &[(u64, u64)]| Need::from(Admission::Ranges(spans(list)));
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
