//! Ranges of sectors, and sets of them.

use crate::Sectors;
use std::collections::BTreeMap;

/// A range of sectors: `start..end`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    /// The first sector of the range.
    pub start: Sectors,
    /// The sector after the last one of the range.
    pub end: Sectors,
}

impl Span {
    /// The range from sector `start` up to, and without, sector `end`.
    #[must_use]
    pub const fn new(start: u64, end: u64) -> Self {
        Self {
            start: Sectors(start),
            end: Sectors(end),
        }
    }

    /// The range from `start` up to, and without, `end`, given as [`Sectors`].
    #[must_use]
    pub const fn between(start: Sectors, end: Sectors) -> Self {
        Self { start, end }
    }

    /// Returns the number of sectors in the range. `end` must not be below `start`.
    #[must_use]
    pub const fn count(&self) -> Sectors {
        Sectors(self.end.0 - self.start.0)
    }

    /// Whether the two ranges have a sector in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        self.start < other.end && other.start < self.end
    }
}

/// A set of sectors, kept as ranges that neither touch nor overlap, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SpanSet {
    /// The end of each range, by its start.
    spans: BTreeMap<Sectors, Sectors>,
}

impl SpanSet {
    /// Adds a range; an empty range adds nothing.
    pub fn insert(&mut self, mut span: Span) {
        if span.start >= span.end {
            return;
        }
        // Ranges that touch the new one at either end are merged with it.
        while let Some((&start, &end)) = self.spans.range(..=span.end).next_back()
            && end >= span.start
        {
            span.start = span.start.min(start);
            span.end = span.end.max(end);
            self.spans.remove(&start);
        }
        self.spans.insert(span.start, span.end);
    }

    /// Removes a range; returns the parts of it that were in the set, ascending.
    pub fn take(&mut self, span: Span) -> Vec<Span> {
        let taken = Self::from_iter([span]).common(self);
        self.remove(span);
        taken.iter().collect()
    }

    /// Removes a range.
    pub fn remove(&mut self, span: Span) {
        if span.start >= span.end {
            return;
        }
        while let Some((&start, end)) = self.spans.range_mut(..span.end).next_back()
            && *end > span.start
        {
            let end = std::mem::replace(end, span.start);
            // Before the old range goes, as a map that becomes empty gives its memory back.
            if end > span.end {
                self.spans.insert(span.end, end);
            }
            if start >= span.start {
                self.spans.remove(&start);
            }
        }
    }

    /// Whether a sector of the range is in the set.
    #[must_use]
    pub fn overlaps(&self, span: Span) -> bool {
        let last = self.spans.range(..span.end).next_back();
        span.start < span.end && last.is_some_and(|(_, end)| *end > span.start)
    }

    /// Returns whether the sector is in the set, and the next sector from which on that changes;
    /// `u64::MAX` if it never does.
    #[must_use]
    pub fn at(&self, sector: Sectors) -> (bool, Sectors) {
        let before = self.spans.range(..=sector).next_back();
        match before.filter(|(_, end)| **end > sector) {
            Some((_, end)) => (true, *end),
            None => {
                let next = self.spans.range(sector..).next();
                (false, next.map_or(Sectors(u64::MAX), |(start, _)| *start))
            }
        }
    }

    /// Returns the intersection of the two sets.
    #[must_use]
    pub fn common(&self, other: &Self) -> Self {
        let parts = self.iter().flat_map(|span| {
            let first = other.spans.range(..span.start).next_back();
            let others = first
                .into_iter()
                .chain(other.spans.range(span.start..span.end));
            others
                .map(move |(start, end)| Span::between(span.start.max(*start), span.end.min(*end)))
        });
        parts.collect()
    }

    /// The range with the lowest sectors, if the set is not empty.
    #[must_use]
    pub fn first(&self) -> Option<Span> {
        self.iter().next()
    }

    /// Whether the set has no sector.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Removes all sectors from the set.
    pub fn clear(&mut self) {
        self.spans.clear();
    }

    /// The ranges of the set, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = Span> {
        self.spans
            .iter()
            .map(|(start, end)| Span::between(*start, *end))
    }
}

impl FromIterator<Span> for SpanSet {
    fn from_iter<I: IntoIterator<Item = Span>>(spans: I) -> Self {
        let mut all = Self::default();
        spans.into_iter().for_each(|span| all.insert(span));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::{Span, SpanSet};
    use crate::Sectors;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_is_what_a_table_of_flags_says(
            edits in proptest::collection::vec((any::<bool>(), 0_u64..40, 0_u64..12), 0..40),
        ) {
            let mut set = SpanSet::default();
            let mut flags = [false; 64];
            for (inserts, start, length) in edits {
                let range = start as usize..(start + length) as usize;
                let span = Span::new(start, start + length);
                if inserts {
                    set.insert(span);
                } else {
                    let were = flags[range.clone()].iter().filter(|flag| **flag).count() as u64;
                    let taken = set.take(span);
                    prop_assert!(taken.windows(2).all(|pair| pair[0].end < pair[1].start));
                    let total: u64 = taken.iter().map(|span| span.count().0).sum();
                    prop_assert_eq!(total, were);
                }
                flags[range].fill(inserts);
                for at in 0..52_u64 {
                    let (inside, until) = set.at(Sectors(at));
                    prop_assert_eq!(inside, flags[at as usize]);
                    let change = (at..64).find(|later| flags[*later as usize] != inside);
                    prop_assert_eq!(until, Sectors(change.unwrap_or(u64::MAX)));
                    let any = flags[at as usize..(at + 7) as usize].contains(&true);
                    prop_assert_eq!(set.overlaps(Span::new(at, at + 7)), any);
                    prop_assert!(!set.overlaps(Span::new(at, at)));
                }
                let first = flags.iter().position(|flag| *flag);
                prop_assert_eq!(set.first().map(|span| span.start.0 as usize), first);
                prop_assert_eq!(set.is_empty(), first.is_none());
                let spans: Vec<_> = set.iter().collect();
                prop_assert!(spans.windows(2).all(|pair| pair[0].end < pair[1].start));
                prop_assert_eq!(&spans.into_iter().rev().collect::<SpanSet>(), &set);
                let other = [(3, 9), (17, 18), (30, 52)].map(|(start, end)| Span::new(start, end));
                let other: SpanSet = other.into_iter().collect();
                let common = set.common(&other);
                for at in 0..52_u64 {
                    let alone = Span::new(at, at + 1);
                    let both = flags[at as usize] && other.overlaps(alone);
                    prop_assert_eq!(common.overlaps(alone), both);
                }
                prop_assert_eq!(common, other.common(&set));
            }
        }
    }
}
