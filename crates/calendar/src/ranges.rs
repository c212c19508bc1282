//! Sets of sectors, as ranges that neither touch nor overlap.

use std::collections::BTreeMap;

/// A set of sectors.
#[derive(Debug, Clone, Default)]
pub(crate) struct RangeSet {
    /// First sector to the sector after the last.
    ranges: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Adds `[start, end)`.
    pub(crate) fn insert(&mut self, mut start: u64, mut end: u64) {
        if start >= end {
            return;
        }
        // Whatever touches it becomes a part of it.
        while let Some((&low, &high)) = self.ranges.range(..=end).next_back() {
            if high < start {
                break;
            }
            self.ranges.remove(&low);
            start = start.min(low);
            end = end.max(high);
        }
        self.ranges.insert(start, end);
    }

    /// Takes `[start, end)` out.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        while let Some((&low, &high)) = self.ranges.range(..end).next_back() {
            if high <= start || start >= end {
                break;
            }
            self.ranges.remove(&low);
            if high > end {
                self.ranges.insert(end, high);
            }
            if low < start {
                self.ranges.insert(low, start);
            }
        }
    }

    /// Whether a sector of `[start, end)` is in it.
    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        let last = self.ranges.range(..end).next_back();
        start < end && last.is_some_and(|(_, &high)| high > start)
    }
}

#[cfg(test)]
mod tests {
    use super::RangeSet;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranges_agree_with_an_array_of_flags(
            steps in proptest::collection::vec((any::<bool>(), 0_u64..40, 0_u64..12), 1..60),
            question in (0_u64..40, 0_u64..12),
        ) {
            let mut ranges = RangeSet::default();
            let mut flags = [false; 64];
            for (insert, start, length) in steps {
                let end = start + length;
                flags[start as usize..end as usize].fill(insert);
                if insert {
                    ranges.insert(start, end);
                } else {
                    ranges.remove(start, end);
                }
            }
            let (start, end) = (question.0, question.0 + question.1);
            let expected = flags[start as usize..end as usize].iter().any(|&flag| flag);
            prop_assert_eq!(ranges.overlaps(start, end), expected);
            let runs = flags.windows(2).filter(|pair| !pair[0] && pair[1]).count();
            prop_assert_eq!(ranges.ranges.len(), runs + usize::from(flags[0]));
        }
    }
}
