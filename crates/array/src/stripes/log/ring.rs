//! One member's ring: which sectors hold records, oldest first.
//!
//! A retired record is *void* here, but its space is not free before a later record of the ring has
//! announced that, durably: until then the record counts by the medium, and a write over some of
//! the void records could leave older ones behind.

use super::super::config::BLOCK;
use super::super::{Mutation, mutated};
use std::collections::VecDeque;

#[derive(Debug)]
struct Record {
    transaction: u64,
    batch: u64,
    at: u64,
    sectors: u64,
}

/// The ring. Places count in sectors from its start; a record never wraps around the end.
#[derive(Debug)]
pub(super) struct Ring {
    sectors: u64,
    records: VecDeque<Record>,
    /// The number of records, from the oldest on, that are durable.
    durable: usize,
    /// The number of records, from the oldest on, that are void.
    void: usize,
    /// The number of void records that the batch in flight announces.
    announcing: usize,
}

/// Room that is left behind every record for two that only announce: each of them frees at least as
/// much as it takes.
const RESERVE: u64 = 2 * BLOCK;

impl Ring {
    pub(super) const fn new(sectors: u64) -> Self {
        Self {
            sectors,
            records: VecDeque::new(),
            durable: 0,
            void: 0,
            announcing: 0,
        }
    }

    /// Finds a place for a record of a batch. Head and tail never meet, so that a full ring
    /// does not look empty; a batch takes a quarter of the ring at most, so that the newest one
    /// never fills it.
    pub(super) fn find(&self, batch: u64, sectors: u64) -> Option<u64> {
        let newest = self.records.iter().rev().take_while(|it| it.batch == batch);
        let taken: u64 = newest.map(|record| record.sectors).sum();
        if taken + sectors > self.sectors / 4 {
            return None;
        }
        self.room(sectors, RESERVE)
    }

    /// Finds a place for a record that only announces.
    pub(super) fn find_announcement(&self) -> Option<u64> {
        self.room(BLOCK, 0)
    }

    fn room(&self, sectors: u64, reserve: u64) -> Option<u64> {
        let needed = sectors + reserve;
        let (Some(first), Some(last)) = (self.records.front(), self.records.back()) else {
            return (needed <= self.sectors).then_some(0);
        };
        let (tail, head) = (first.at, last.at + last.sectors);
        if tail < head {
            if head + needed <= self.sectors {
                return Some(head);
            }
            return (needed < tail).then_some(0);
        }
        (head + needed < tail).then_some(head)
    }

    /// Takes the place of a record; returns the oldest transaction that counts, for its header.
    pub(super) fn take(&mut self, transaction: u64, batch: u64, at: u64, sectors: u64) -> u64 {
        self.announcing = self.void;
        self.records.push_back(Record {
            transaction,
            batch,
            at,
            sectors,
        });
        self.records[self.void].transaction
    }

    /// Records that the batch in flight is durable, and its announcements with it.
    pub(super) fn all_durable(&mut self) {
        if mutated(Mutation::RingFreedUnannounced) {
            self.announcing = self.void;
        }
        self.records.drain(..self.announcing);
        self.void -= self.announcing;
        self.announcing = 0;
        self.durable = self.records.len();
    }

    /// Makes retired records void, from the oldest on, but none of the newest durable batch.
    pub(super) fn retire(&mut self, is_retired: impl Fn(u64) -> bool) {
        let Some(newest) = self.durable.checked_sub(1) else {
            return;
        };
        let newest = self.records[newest].batch;
        let counting = self.records.iter().skip(self.void);
        let retired = |record: &&Record| record.batch < newest && is_retired(record.transaction);
        self.void += counting.take_while(retired).count();
    }

    /// Whether records are void that the medium does not announce yet.
    pub(super) fn has_unannounced(&self) -> bool {
        self.void > self.announcing
    }

    pub(super) fn is_half_full(&self) -> bool {
        let counting = self.records.iter().skip(self.void);
        let used: u64 = counting.map(|record| record.sectors).sum();
        used * 2 > self.sectors
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, Ring};
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Sectors of a record of at most a quarter of the ring.
    fn record(ring_blocks: u64, any: u64) -> u64 {
        (2 + any % (ring_blocks / 4 - 1)) * BLOCK
    }

    fn ring(blocks: u64) -> Ring {
        Ring::new(blocks * BLOCK)
    }

    /// What is on the medium, by place: transaction, sectors, and the oldest
    /// transaction that counts by it.
    type Medium = BTreeMap<u64, (u64, u64, u64)>;

    proptest! {
        /// Records never overlap and never leave the ring. Whichever of those
        /// that a record in flight covers are gone already, what counts on the
        /// medium is complete.
        #[test]
        fn what_counts_is_complete(
            blocks in 8_u64..40,
            steps in proptest::collection::vec((0_u64..100, any::<bool>(), any::<u64>()), 1..300),
        ) {
            let mut ring = ring(blocks);
            let mut medium = Medium::new();
            for (number, (any, retires, lost)) in (1..).zip(steps) {
                let mut sectors = record(blocks, any);
                let mut place = ring.find(number, sectors);
                if place.is_none() {
                    ring.retire(|_| true);
                    prop_assert!(ring.has_unannounced());
                    sectors = BLOCK;
                    place = ring.find_announcement();
                }
                let at = place.expect("room is reserved for an announcement");
                prop_assert!(at + sectors <= blocks * BLOCK);
                let apart = |place: u64, length: u64| {
                    at + sectors <= place || at >= place + length
                };
                prop_assert!(ring.records.iter().all(|it| apart(it.at, it.sectors)));
                let oldest = ring.take(number, number, at, sectors);
                let mut torn = medium.clone();
                torn.retain(|place, record| {
                    apart(*place, record.1) || lost >> (record.0 % 64) & 1 == 0
                });
                let floor = torn.values().map(|record| record.2).max().unwrap_or(1);
                let mut counts: Vec<u64> = torn.values().map(|record| record.0).collect();
                counts.retain(|transaction| *transaction >= floor);
                counts.sort_unstable();
                prop_assert!(counts.into_iter().eq(floor..number));
                medium.retain(|place, record| apart(*place, record.1));
                medium.insert(at, (number, sectors, oldest));
                ring.all_durable();
                if retires {
                    ring.retire(|_| true);
                }
            }
        }

        /// However full the ring is, retiring everything makes room again.
        #[test]
        fn it_never_stays_full(
            blocks in 8_u64..40,
            sizes in proptest::collection::vec(0_u64..100, 1..300),
        ) {
            let mut ring = ring(blocks);
            let mut batch = 0;
            for any in sizes {
                let sectors = record(blocks, any);
                let mut announcements = 0;
                let at = loop {
                    batch += 1;
                    if let Some(at) = ring.find(batch, sectors) {
                        break at;
                    }
                    ring.retire(|_| true);
                    announcements += 1;
                    prop_assert!(ring.has_unannounced() && announcements < 4);
                    let at = ring.find_announcement().expect("room is reserved");
                    ring.take(batch, batch, at, BLOCK);
                    ring.all_durable();
                };
                ring.take(batch, batch, at, sectors);
                ring.all_durable();
            }
        }
    }
}
