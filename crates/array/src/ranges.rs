//! A set of sectors, kept as ranges that neither touch nor overlap.

use crate::engine::{Admission, Span};
use raidlab_units::Sectors;
use std::collections::BTreeMap;

/// The set.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct RangeSet {
    /// Start to end.
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    pub(crate) fn of(ranges: impl IntoIterator<Item = (u64, u64)>) -> Self {
        let mut set = Self::default();
        for (start, end) in ranges {
            set.insert(start, end);
        }
        set
    }

    /// Whole blocks of so many sectors that cover spans of a member.
    pub(crate) fn blocks_of<'a>(
        spans: impl IntoIterator<Item = &'a Span>,
        size: Sectors,
        block: u64,
    ) -> Self {
        let aligned = spans.into_iter().map(|span| {
            let end = span.end.0.min(size.0).next_multiple_of(block);
            (span.start.0 / block * block, end)
        });
        Self::of(aligned)
    }

    /// What a member that is admitted so still has to be filled with.
    pub(crate) fn unfilled(admission: &Admission, size: Sectors, block: u64) -> Self {
        match admission {
            Admission::From(start) => {
                let span = Span {
                    start: *start,
                    end: size,
                };
                Self::blocks_of([&span], size, block)
            }
            Admission::Ranges(spans) => Self::blocks_of(spans, size, block),
        }
    }

    pub(crate) fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        while let Some((&from, &to)) = self.ranges.range(..=end).next_back()
            && to >= start
        {
            start = start.min(from);
            end = end.max(to);
            self.ranges.remove(&from);
        }
        self.ranges.insert(start, end);
    }

    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        if start >= end {
            return;
        }
        while let Some((&from, &to)) = self.ranges.range(..end).next_back()
            && to > start
        {
            self.ranges.remove(&from);
            if to > end {
                self.ranges.insert(end, to);
            }
            if from < start {
                self.ranges.insert(from, start);
            }
        }
    }

    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        let last = self.ranges.range(..end).next_back();
        last.is_some_and(|(_, to)| *to > start)
    }

    /// What is in both sets.
    pub(crate) fn common(&self, other: &Self) -> Self {
        let parts = self.iter().flat_map(|(start, end)| {
            let first = other.ranges.range(..start).next_back();
            let first = first.into_iter().chain(other.ranges.range(start..end));
            first.map(move |(from, to)| (start.max(*from), end.min(*to)))
        });
        Self::of(parts)
    }

    pub(crate) fn first(&self) -> Option<(u64, u64)> {
        self.ranges.first_key_value().map(|(from, to)| (*from, *to))
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    pub(crate) fn clear(&mut self) {
        self.ranges.clear();
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.ranges.iter().map(|(from, to)| (*from, *to))
    }
}

#[cfg(test)]
mod tests {
    use super::RangeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_set_is_what_a_table_of_flags_says(
            edits in proptest::collection::vec((any::<bool>(), 0_u64..40, 0_u64..12), 0..40),
        ) {
            let mut set = RangeSet::default();
            let mut flags = [false; 64];
            for (insert, start, length) in edits {
                let end = start + length;
                if insert { set.insert(start, end) } else { set.remove(start, end) }
                for flag in &mut flags[start as usize..end as usize] {
                    *flag = insert;
                }
                for at in 0..52_u64 {
                    prop_assert_eq!(set.overlaps(at, at + 1), flags[at as usize]);
                    let any = flags[at as usize..(at + 7) as usize].contains(&true);
                    prop_assert_eq!(set.overlaps(at, at + 7), any);
                }
                let first = flags.iter().position(|flag| *flag);
                prop_assert_eq!(set.first().map(|(from, _)| from as usize), first);
                let ranges: Vec<_> = set.iter().collect();
                prop_assert!(ranges.windows(2).all(|pair| pair[0].1 < pair[1].0));
                prop_assert_eq!(RangeSet::of(ranges.clone()), set.clone());
                let other = RangeSet::of([(3, 9), (17, 18), (30, 52)]);
                let common = set.common(&other);
                for at in 0..52_u64 {
                    let both = flags[at as usize] && other.overlaps(at, at + 1);
                    prop_assert_eq!(common.overlaps(at, at + 1), both);
                }
                prop_assert_eq!(common, other.common(&set));
            }
        }
    }
}
