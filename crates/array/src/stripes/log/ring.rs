//! One member's ring: which sectors hold records, oldest first.

use crate::engine::Span;
use std::collections::VecDeque;

#[derive(Debug)]
struct Record {
    transaction: u64,
    batch: u64,
    at: u64,
    sectors: u64,
}

/// The ring. Places count in sectors from its start; a record never goes
/// round the end.
#[derive(Debug)]
pub(super) struct Ring {
    pub(super) area: Span,
    records: VecDeque<Record>,
    /// How many of them, from the oldest on, are durable.
    durable: usize,
}

impl Ring {
    pub(super) const fn new(area: Span) -> Self {
        Self {
            area,
            records: VecDeque::new(),
            durable: 0,
        }
    }

    const fn sectors(&self) -> u64 {
        self.area.end.0 - self.area.start.0
    }

    /// A place for a record of a batch. Head and tail never meet, so that a
    /// full ring does not look empty; a batch takes a quarter of the ring at
    /// most, so that the newest one never fills it.
    pub(super) fn find(&self, batch: u64, sectors: u64) -> Option<u64> {
        let newest = self.records.iter().rev().take_while(|it| it.batch == batch);
        let taken: u64 = newest.map(|record| record.sectors).sum();
        if taken + sectors > self.sectors() / 4 {
            return None;
        }
        let (Some(first), Some(last)) = (self.records.front(), self.records.back()) else {
            return (sectors <= self.sectors()).then_some(0);
        };
        let (tail, head) = (first.at, last.at + last.sectors);
        if tail < head {
            if head + sectors <= self.sectors() {
                return Some(head);
            }
            return (sectors < tail).then_some(0);
        }
        (head + sectors < tail).then_some(head)
    }

    pub(super) fn take(&mut self, transaction: u64, batch: u64, at: u64, sectors: u64) {
        self.records.push_back(Record {
            transaction,
            batch,
            at,
            sectors,
        });
    }

    pub(super) fn all_durable(&mut self) {
        self.durable = self.records.len();
    }

    /// Takes the space of retired records back, from the oldest on, but not
    /// that of the newest durable batch.
    pub(super) fn take_back(&mut self, is_retired: impl Fn(u64) -> bool) {
        let Some(newest) = self.durable.checked_sub(1) else {
            return;
        };
        let newest = self.records[newest].batch;
        while let Some(first) = self.records.front()
            && first.batch < newest
            && is_retired(first.transaction)
        {
            self.records.pop_front();
            self.durable -= 1;
        }
    }

    pub(super) fn is_half_full(&self) -> bool {
        let used: u64 = self.records.iter().map(|record| record.sectors).sum();
        used * 2 > self.sectors()
    }
}

#[cfg(test)]
mod tests {
    use super::Ring;
    use crate::engine::Span;
    use proptest::prelude::*;
    use raidlab_units::Sectors;

    proptest! {
        /// Records never overlap, never leave the ring, and with everything
        /// retired a record of a quarter of the ring always finds a place.
        #[test]
        fn records_do_not_overlap(
            sizes in proptest::collection::vec((1_u64..=4, any::<bool>()), 1..200),
        ) {
            let area = Span { start: Sectors(100), end: Sectors(100 + 128) };
            let mut ring = Ring::new(area);
            let mut batch = 0;
            for (number, (blocks, new_batch)) in (1..).zip(sizes) {
                let sectors = blocks * 8;
                batch += u64::from(new_batch);
                let mut place = ring.find(batch, sectors);
                if place.is_none() {
                    batch += 1;
                    ring.all_durable();
                    ring.take_back(|_| true);
                    prop_assert!(number == 1 || !ring.records.is_empty());
                    place = ring.find(batch, sectors);
                }
                let at = place.expect("a quarter always fits into a ring of one batch");
                prop_assert!(at + sectors <= 128);
                for record in &ring.records {
                    prop_assert!(at + sectors <= record.at || at >= record.at + record.sectors);
                }
                ring.take(number, batch, at, sectors);
            }
        }
    }
}
