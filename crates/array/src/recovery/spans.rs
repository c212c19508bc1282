//! Sets of sectors as ranges, ascending and apart.

use crate::engine::Span;
use raidlab_units::Sectors;

/// A set of sectors.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Spans(Vec<Span>);

/// Higher than any sector.
const END: Sectors = Sectors(u64::MAX);

impl Spans {
    pub(crate) const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Span> {
        self.0.iter().copied()
    }

    /// Whether the sector belongs to the set, and the next sector from which on
    /// that is otherwise.
    pub(crate) fn at(&self, sector: Sectors) -> (bool, Sectors) {
        match self.0.get(self.first_ending_above(sector)) {
            None => (false, END),
            Some(span) if span.start <= sector => (true, span.end),
            Some(span) => (false, span.start),
        }
    }

    pub(crate) fn overlaps(&self, span: Span) -> bool {
        let first = self.0.get(self.first_ending_above(span.start));
        first.is_some_and(|first| first.start < span.end)
    }

    pub(crate) fn insert(&mut self, span: Span) {
        if span.start >= span.end {
            return;
        }
        // Those that touch it at either end become one with it.
        let from = self.0.partition_point(|other| other.end < span.start);
        let to = self.0.partition_point(|other| other.start <= span.end);
        let merged = self.0[from..to].iter().fold(span, |all, other| Span {
            start: all.start.min(other.start),
            end: all.end.max(other.end),
        });
        self.0.splice(from..to, [merged]);
    }

    /// Takes a range out; gives what of it belonged to the set.
    pub(crate) fn remove(&mut self, span: Span) -> Vec<Span> {
        let from = self.first_ending_above(span.start);
        let to = self.0.partition_point(|other| other.start < span.end);
        if from >= to || span.start >= span.end {
            return Vec::new();
        }
        let (first, last) = (self.0[from], self.0[to - 1]);
        let left = Span {
            start: first.start,
            end: span.start,
        };
        let right = Span {
            start: span.end,
            end: last.end,
        };
        let kept = [left, right]
            .into_iter()
            .filter(|kept| kept.start < kept.end);
        let removed = self.0.splice(from..to, kept);
        removed
            .map(|other| Span {
                start: other.start.max(span.start),
                end: other.end.min(span.end),
            })
            .collect()
    }

    fn first_ending_above(&self, sector: Sectors) -> usize {
        self.0.partition_point(|other| other.end <= sector)
    }
}

impl FromIterator<Span> for Spans {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut all = Self::default();
        for span in spans {
            all.insert(span);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::{END, Spans};
    use crate::engine::Span;
    use proptest::prelude::*;
    use raidlab_units::Sectors;

    fn span(start: u64, end: u64) -> Span {
        Span {
            start: Sectors(start),
            end: Sectors(end),
        }
    }

    proptest! {
        #[test]
        fn they_are_sets(steps in prop::collection::vec((any::<bool>(), 0..40_u64, 0..12_u64), 0..20)) {
            let (mut spans, mut model) = (Spans::default(), [false; 64]);
            for (inserts, start, count) in steps {
                let range = start as usize..(start + count) as usize;
                if inserts {
                    spans.insert(span(start, start + count));
                } else {
                    let removed = spans.remove(span(start, start + count));
                    let total: u64 = removed.iter().map(|span| span.end.0 - span.start.0).sum();
                    let expected = model[range.clone()].iter().filter(|&&inside| inside).count();
                    prop_assert_eq!(total, expected as u64);
                }
                model[range].fill(inserts);
            }
            let list: Vec<_> = spans.iter().collect();
            prop_assert!(list.windows(2).all(|pair| pair[0].end < pair[1].start));
            prop_assert_eq!(spans.is_empty(), !model.contains(&true));
            for sector in 0..64_usize {
                let (inside, until) = spans.at(Sectors(sector as u64));
                prop_assert_eq!(inside, model[sector]);
                let change = (sector..64).find(|&later| model[later] != inside);
                prop_assert_eq!(until, change.map_or(END, |later| Sectors(later as u64)));
                let alone = span(sector as u64, sector as u64 + 1);
                prop_assert_eq!(spans.overlaps(alone), inside);
            }
            prop_assert_eq!(&list.iter().copied().rev().collect::<Spans>(), &spans);
        }
    }
}
