//! Which transactions count, by hand, and damaged logs.

use super::record::{CHECKSUMS_AT, Header, SEAL_AT};
use super::replay::{LogArea, LogError, Trust, replay};
use crate::request::Slot;
use proptest::prelude::*;
use raidlab_geometry::SlotSet;
use raidlab_units::Sectors;

const SESSION: u64 = 7;
const RING: usize = 64 * 512;
const SIZE: Sectors = Sectors(1000);

/// A sealed record of one block of `fill` for sectors 8..16.
fn record(slot: u16, batch: u64, transaction: u64, position: u64, to: &[u16], fill: u8) -> Vec<u8> {
    let header = Header {
        session: SESSION,
        batch,
        transaction,
        oldest: 0,
        position,
        slot: Slot(slot),
        participants: to.iter().map(|slot| Slot(*slot)).collect(),
        window: (8, 16),
        extents: vec![(8, 8)],
        checksums: Vec::new(),
    };
    let mut bytes = header.encode_unsealed();
    let block = vec![fill; 4096];
    let sum = crc32c::crc32c(&block);
    bytes[CHECKSUMS_AT as usize..][..4].copy_from_slice(&sum.to_le_bytes());
    let seal = crc32c::crc32c(&bytes);
    bytes[SEAL_AT as usize..].copy_from_slice(&seal.to_le_bytes());
    bytes.extend(block);
    bytes
}

fn ring(records: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = records.concat();
    bytes.resize(RING, 0);
    bytes
}

fn area(slot: u16, bytes: &[u8]) -> LogArea<'_> {
    LogArea {
        slot: Slot(slot),
        bytes,
        trust: Trust::Everywhere,
    }
}

/// Slots and fills of what is written again.
fn replayed(areas: &[LogArea<'_>]) -> Vec<(u16, u8)> {
    let writes = replay(SESSION, SIZE, areas).expect("different slots");
    writes
        .iter()
        .map(|write| {
            assert_eq!((write.start, write.bytes.len()), (Sectors(8), 4096));
            (write.slot.0, write.bytes[0])
        })
        .collect()
}

#[test]
fn a_transaction_counts_if_all_who_survive_have_it() {
    let (a, b) = (
        record(0, 1, 1, 0, &[0, 1, 2], 10),
        record(1, 1, 1, 0, &[0, 1, 2], 11),
    );
    let (a, b, empty) = (ring(&[a]), ring(&[b]), ring(&[]));
    assert_eq!(replayed(&[area(0, &a), area(1, &b), area(2, &empty)]), []);
    assert_eq!(
        replayed(&[area(0, &a), area(1, &b)]),
        [(0, 10), (1, 11)],
        "2 is lost"
    );
    let below = LogArea {
        trust: Trust::Below(Sectors(8)),
        ..area(2, &empty)
    };
    let all = [area(0, &a), area(1, &b), below];
    assert_eq!(replayed(&all), [(0, 10), (1, 11)], "2 is not filled there");
    assert_eq!(replayed(&[area(0, &a), area(1, &empty)]), []);
}

#[test]
fn a_later_batch_proves_the_earlier_one() {
    let first = record(0, 1, 1, 0, &[0, 1], 10);
    let second = record(1, 2, 2, 0, &[1], 21);
    let (a, b) = (ring(&[first]), ring(&[second]));
    assert_eq!(replayed(&[area(0, &a), area(1, &b)]), [(0, 10), (1, 21)]);
}

#[test]
fn transactions_are_replayed_in_their_order() {
    let newer = record(0, 2, 9, 0, &[0], 9);
    let older = record(0, 1, 3, 16, &[0], 3);
    let bytes = ring(&[newer, older]);
    assert_eq!(replayed(&[area(0, &bytes)]), [(0, 3), (0, 9)]);
}

/// An announcement to `to` that nothing before transaction 3 counts: in its own ring, and,
/// where it is to several slots, in all.
fn announcement(to: &[u16]) -> Vec<u8> {
    let mut bytes = Header {
        oldest: 3,
        extents: Vec::new(),
        window: (0, 0),
        ..Header::decode(&record(0, 3, 4, 32, to, 0)).expect("sealed")
    }
    .encode_unsealed();
    let seal = crc32c::crc32c(&bytes);
    bytes[SEAL_AT as usize..].copy_from_slice(&seal.to_le_bytes());
    bytes
}

#[test]
fn what_a_ring_announces_as_void_does_not_count() {
    let older = record(0, 1, 2, 0, &[0, 1], 2);
    let newer = record(0, 2, 3, 16, &[0, 1], 3);
    let (a, b) = (
        ring(&[older, newer, announcement(&[0])]),
        ring(&[record(1, 1, 2, 0, &[0, 1], 12)]),
    );
    // The other ring has announced nothing: there it counts still.
    assert_eq!(replayed(&[area(0, &a), area(1, &b)]), [(1, 12), (0, 3)]);
}

/// A member has come, whose ring may hold anything of before.
#[test]
fn of_before_an_arrival_nothing_counts_in_any_ring() {
    let newer = record(0, 2, 3, 16, &[0, 1], 3);
    let (a, b) = (
        ring(&[vec![0; 8192], newer, announcement(&[0, 1])]),
        ring(&[record(1, 1, 2, 0, &[1], 12)]),
    );
    assert_eq!(replayed(&[area(0, &a), area(1, &b)]), [(0, 3)]);
}

#[test]
fn records_of_other_sessions_places_and_slots_do_not_count() {
    let good = record(0, 1, 1, 0, &[0], 1);
    let bytes = ring(std::slice::from_ref(&good));
    assert_eq!(replayed(&[area(0, &bytes)]), [(0, 1)]);
    assert_eq!(replayed(&[area(1, &bytes)]), [], "another slot");
    let moved = ring(&[vec![0; 4096], good.clone()]);
    assert_eq!(replayed(&[area(0, &moved)]), [], "another place");
    assert_eq!(
        replay(SESSION + 1, SIZE, &[area(0, &bytes)]),
        Ok(Vec::new())
    );
    assert_eq!(
        replay(SESSION, Sectors(15), &[area(0, &bytes)]),
        Ok(Vec::new())
    );
    let twice = [area(0, &bytes), area(0, &bytes)];
    assert_eq!(
        replay(SESSION, SIZE, &twice),
        Err(LogError::TwoLogs(Slot(0)))
    );
    let beyond = replay(SESSION, SIZE, &[area(64, &bytes)]);
    assert_eq!(beyond, Err(LogError::NoSuchSlot(Slot(64))));
}

#[test]
fn headers_say_what_was_put_in() {
    let bytes = record(3, 4, 5, 6, &[3, 63], 7);
    let header = Header::decode(&bytes).expect("sealed");
    assert_eq!(header.session, SESSION);
    assert_eq!(
        (header.batch, header.transaction, header.position),
        (4, 5, 6)
    );
    assert_eq!(header.participants, SlotSet::only(Slot(3)).with(Slot(63)));
    assert_eq!((header.slot, header.sectors()), (Slot(3), 16));
    assert_eq!(header.checksums, [crc32c::crc32c(&[7; 4096])]);
}

proptest! {
    /// Whatever is in the rings, also behind right seals: no panic, no more
    /// bytes than went in, nothing beyond the members.
    #[test]
    fn damaged_logs_are_harmless(
        edits in proptest::collection::vec((0_usize..RING, any::<u8>()), 0..20),
        sealed in any::<bool>(),
        length in 0_usize..=RING,
    ) {
        let records = [record(0, 1, 1, 0, &[0, 1], 1), record(0, 2, 2, 16, &[0], 2)];
        let mut bytes = ring(&records);
        for (at, value) in edits {
            bytes[at % if sealed { 400 } else { RING }] = value;
        }
        if sealed {
            bytes[SEAL_AT as usize..][..4].fill(0);
            let seal = crc32c::crc32c(&bytes[..4096]);
            bytes[SEAL_AT as usize..][..4].copy_from_slice(&seal.to_le_bytes());
        }
        bytes.truncate(length);
        let writes = replay(SESSION, SIZE, &[area(0, &bytes)]).expect("one area");
        let total: usize = writes.iter().map(|write| write.bytes.len()).sum();
        prop_assert!(total <= bytes.len());
        for write in writes {
            prop_assert!(write.start.0 + write.bytes.len() as u64 / 512 <= SIZE.0);
        }
    }
}
