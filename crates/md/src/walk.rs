//! A request on its way into the cache (`raid5_make_request`).
//!
//! A request is cut into pieces of at most 1 MiB, counted from its start (`RAID5_MAX_REQ_STRIPES`).
//! It takes the stripes of a piece one after the other, each with all blocks that the piece has in
//! it; it begins at the lowest place of the chunks that it touches
//! (`raid5_bio_lowest_chunk_sector`), goes on to the piece's end and then takes the stripes before.

use super::BLOCK;
use super::stripe::Part;
use raidlab_array::{MdRules, Operation, Request, RequestId, Slot};
use raidlab_geometry::StripeMap;
use raidlab_units::Sectors;
use std::collections::{BTreeMap, VecDeque};

/// Sectors of a piece: 256 stripes.
pub(super) const PIECE: u64 = 256 * BLOCK;

/// Requests that pause at each stripe, as their processes need time from one to the next.
#[derive(Debug)]
pub(super) struct Walkers {
    /// Whether a process has a plug, at whose end it releases the stripes that it has visited
    /// (`raid5_unplug`); else it releases each at once (`release_stripe_plug`), but for those of
    /// a request with [`RequestWalk::has_own_plug`].
    pub(super) has_plug: bool,
    /// The requests on their way.
    pub(super) walks: VecDeque<RequestWalk>,
}

/// The blocks of one stripe that a request reads or writes.
#[derive(Debug)]
pub(super) struct Stop {
    pub(super) number: u64,
    pub(super) parts: Vec<Part>,
}

/// A request and its progress.
#[derive(Debug)]
pub(super) struct RequestWalk {
    pub(super) request: RequestId,
    pub(super) process: u32,
    pub(super) reads: bool,
    pub(super) force_unit_access: bool,
    /// Whether the request is more than one bio, so that there is a plug around these in every
    /// Linux (block/fops.c, `__blkdev_direct_IO`).
    pub(super) has_own_plug: bool,
    /// The rest of the request after the stops of this piece: from `at` up to `end`.
    at: u64,
    end: u64,
    stops: VecDeque<Stop>,
    /// Stripes that the request keeps until it ends or sleeps.
    pub(super) plugged: Vec<u64>,
}

impl RequestWalk {
    pub(super) fn new(request: &Request) -> Self {
        Self {
            request: request.id,
            process: request.process,
            reads: request.operation == Operation::Read,
            force_unit_access: request.force_unit_access,
            has_own_plug: request.count > MdRules::OF_ONE_BIO,
            at: request.start.0,
            end: request.start.0 + request.count.0,
            stops: VecDeque::new(),
            plugged: Vec::new(),
        }
    }

    /// Returns the stripe that comes next.
    pub(super) fn next(&mut self, map: &StripeMap) -> Option<&Stop> {
        if self.stops.is_empty() && self.at < self.end {
            let end = self.end.min(self.at + PIECE);
            self.stops = self.stops_of(map, self.at, end);
            self.at = end;
        }
        self.stops.front()
    }

    /// Returns the blocks of the stripe that comes next, once [`Self::next`] has found it.
    pub(super) fn parts(&self) -> &[Part] {
        self.stops.front().map_or(&[], |stop| stop.parts.as_slice())
    }

    /// Removes the next stripe from the way, when the request has visited it.
    pub(super) fn pass(&mut self) -> Option<Stop> {
        self.stops.pop_front()
    }

    fn stops_of(&self, map: &StripeMap, start: u64, end: u64) -> VecDeque<Stop> {
        let first = start / BLOCK * BLOCK;
        let lowest = lowest_place(map, first, end - start);
        let blocks = (lowest..end).step_by(BLOCK as usize);
        let before = (first..lowest).step_by(BLOCK as usize);
        let mut stops = VecDeque::new();
        let mut places: BTreeMap<u64, usize> = BTreeMap::new();
        for block in blocks.chain(before) {
            let place = map.locate(Sectors(block));
            let number = map.member_sector(place.row, place.offset).0 / BLOCK;
            let part = Part {
                slot: map.row(place.row).data_slot(place.index),
                from: start.saturating_sub(block),
                to: BLOCK.min(end - block),
                request: self.request,
                force_unit_access: self.force_unit_access,
            };
            let known = places.entry(number).or_insert_with(|| {
                stops.push_back(Stop {
                    number,
                    parts: Vec::new(),
                });
                stops.len() - 1
            });
            let stop: &mut Stop = &mut stops[*known];
            stop.parts.push(part);
        }
        stops
    }
}

/// Returns the place where a piece begins; `first` and the result are sectors of the array.
fn lowest_place(map: &StripeMap, first: u64, count: u64) -> u64 {
    let place = map.locate(Sectors(first));
    let left = map.chunk().0 - place.offset.0;
    if left >= count {
        return first;
    }
    let row = map.row(place.row);
    let is_parity = |slot: Slot| slot == row.p() || row.q() == Some(slot);
    let mut next = Slot(row.data_slot(place.index).0 + 1);
    while is_parity(next) {
        next = Slot(next.0 + 1);
    }
    if next.index() < map.members() {
        first + left
    } else {
        first
    }
}

#[cfg(test)]
mod tests {
    use super::{BLOCK, RequestWalk};
    use raidlab_array::{Operation, Request, RequestId};
    use raidlab_geometry::{Level, ParityLayout, StripeMap};
    use raidlab_units::Sectors;

    fn numbers(start: u64, count: u64) -> Vec<(u64, usize)> {
        let map = StripeMap::new(
            Level::Raid5,
            ParityLayout::LeftSymmetric,
            4,
            Sectors(4 * BLOCK),
            Sectors(400 * BLOCK),
        )
        .expect("a sound map");
        let mut walk = RequestWalk::new(&Request {
            id: RequestId(1),
            operation: Operation::Write,
            start: Sectors(start),
            count: Sectors(count),
            force_unit_access: false,
            process: 0,
        });
        let mut numbers = Vec::new();
        while walk.next(&map).is_some() {
            let stop = walk.pass().expect("there is one");
            numbers.push((stop.number, stop.parts.len()));
        }
        numbers
    }

    /// Chunks of four stripes, three of data: a whole row is visited once.
    #[test]
    fn all_blocks_of_a_stripe_are_taken_together() {
        let whole: Vec<_> = (0..4).map(|number| (number, 3)).collect();
        assert_eq!(numbers(0, 12 * BLOCK), whole);
        assert_eq!(numbers(BLOCK, BLOCK), [(1, 1)]);
        assert_eq!(numbers(BLOCK + 1, 2), [(1, 1)]);
    }

    /// The second half of a chunk and the first of the next one: the lower places
    /// come first. From the last member the row's end is reached instead.
    #[test]
    fn a_piece_begins_at_its_lowest_place() {
        assert_eq!(
            numbers(2 * BLOCK, 4 * BLOCK),
            [(0, 1), (1, 1), (2, 1), (3, 1)]
        );
        // Row 1: parity on member 2, its data on members 3, 0, 1; from member 3 on.
        assert_eq!(
            numbers(14 * BLOCK, 4 * BLOCK),
            [(6, 1), (7, 1), (4, 1), (5, 1)]
        );
    }
}
