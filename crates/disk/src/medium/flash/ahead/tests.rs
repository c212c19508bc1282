//! Reading ahead beside a list of all that was fetched.

use super::*;
use proptest::collection::vec;
use proptest::prelude::*;

const MOST: u64 = 16;
const END: u64 = 64;

/// A piece as the list has it.
struct Fetched {
    slot: u32,
    sectors: Range<u64>,
    /// Those of them that were not written since.
    good: Vec<u64>,
    is_here: bool,
}

/// All that was fetched, and the sectors for which commands wait.
#[derive(Default)]
struct List {
    pieces: Vec<Fetched>,
    waiting: Vec<(u64, u32)>,
}

impl List {
    fn write(&mut self, sectors: &Range<u64>) {
        for one in &mut self.pieces {
            one.good.retain(|sector| !sectors.contains(sector));
        }
    }

    fn has(&self, sector: u64, is_here: bool) -> bool {
        let mut pieces = self.pieces.iter().filter(|one| one.is_here == is_here);
        pieces.any(|one| one.good.contains(&sector))
    }

    /// Lets the `turn`-th piece come that is on its way, and those who wait for it be told.
    fn arrive(&mut self, ahead: &mut Ahead, turn: usize) -> bool {
        let mut coming: Vec<_> = self.pieces.iter_mut().filter(|one| !one.is_here).collect();
        let count = coming.len();
        if count == 0 {
            return false;
        }
        let piece = &mut coming[turn % count];
        piece.is_here = true;
        for (command, bytes) in ahead.arrived(piece.slot) {
            assert_eq!(bytes, 512);
            let is_it = |one: &(u64, u32)| one.1 == command && piece.sectors.contains(&one.0);
            let at = self.waiting.iter().position(is_it).expect("a command that waits");
            self.waiting.swap_remove(at);
        }
        true
    }

    fn read(&mut self, ahead: &mut Ahead, read: &Range<u64>, command: u32) {
        ahead.follow(read.clone());
        for sector in read.clone() {
            match ahead.find(&(sector..sector + 1), command, 512) {
                Found::Nowhere => {}
                Found::Here => assert!(self.has(sector, true), "sector {sector}"),
                Found::Coming => {
                    assert!(self.has(sector, false), "sector {sector}");
                    self.waiting.push((sector, command));
                }
            }
        }
        while let Some(sector) = ahead.next() {
            assert!((read.end..(read.end + MOST).min(END)).contains(&sector), "sector {sector}");
            let sectors = sector..sector + 1 + sector % 3;
            if sector.is_multiple_of(5) {
                ahead.skip(sectors.end);
                continue;
            }
            let slot = ahead.fetch(sectors.clone());
            let is_other = |one: &Fetched| one.slot != slot;
            assert!(self.pieces.iter().all(|one| is_other(one) || one.is_here), "slot {slot}");
            self.pieces.retain(is_other);
            let good = sectors.clone().collect();
            self.pieces.push(Fetched { slot, sectors, good, is_here: false });
        }
    }
}

proptest! {
    /// A part of a page is found only where it was fetched and not written since, and who waits
    /// for it is told once, when it comes.
    #[test]
    fn what_is_found_was_fetched(turns in vec((0_u8..8, 0_u64..END, 1_u64..9), 1..400)) {
        let mut ahead = Ahead::new(MOST, END);
        let mut list = List::default();
        let mut next = 0;
        for (command, (kind, place, count)) in (0..).zip(turns) {
            match kind {
                0 => {
                    ahead.forget(&(place..place + count));
                    list.write(&(place..place + count));
                }
                1 | 2 => {
                    list.arrive(&mut ahead, place as usize);
                }
                _ => {
                    // Most reads go on where the last one ended.
                    let start = if kind == 3 { place } else { next % END };
                    next = (start + count).min(END);
                    list.read(&mut ahead, &(start..next), command);
                }
            }
            prop_assert_eq!(ahead.is_quiet(), list.pieces.iter().all(|one| one.is_here));
            prop_assert!(ahead.streams.len() <= STREAMS);
        }
        while list.arrive(&mut ahead, 0) {}
        prop_assert!(list.waiting.is_empty() && ahead.is_quiet());
    }
}
