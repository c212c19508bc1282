//! How many commands a write costs: the choice rules of
//! `handle_stripe_dirtying` in drivers/md/raid5.c, Linux 3.18 and 4.1.

use super::bench::{Bench, SECTOR, config};
use crate::request::Operation;
use crate::stripes::{RmwLevel, WritePolicy};
use raidlab_geometry::{Level, ParityLayout};

/// Reads and writes that one write costs a fresh array.
fn cost(
    level: Level,
    members: usize,
    policy: WritePolicy,
    start: u64,
    sectors: usize,
) -> (usize, usize) {
    let mut config = config(level, ParityLayout::LeftSymmetric, members, 16, 4);
    config.write_policy = policy;
    let mut bench = Bench::new(config);
    bench
        .write(start, vec![7; sectors * SECTOR])
        .expect("all members are there");
    bench.check_parity();
    let count = |operation| {
        let sent = bench.sent.iter();
        sent.filter(|it| it.operation == operation).count()
    };
    (count(Operation::Read), count(Operation::Write))
}

const DISABLED: WritePolicy = WritePolicy::Md4_1(RmwLevel::Disabled);
const ENABLED: WritePolicy = WritePolicy::Md4_1(RmwLevel::Enabled);
const PREFERRED: WritePolicy = WritePolicy::Md4_1(RmwLevel::Preferred);

#[test]
fn a_4_kib_write_costs_what_it_costs_in_md() {
    use Level::{Raid5, Raid6};
    // Level, members, policy: reads and writes of 4 KiB.
    let table = [
        (Raid5, 3, ENABLED, (1, 2)),
        (Raid5, 4, ENABLED, (2, 2)),
        (Raid5, 5, ENABLED, (2, 2)),
        (Raid5, 8, ENABLED, (2, 2)),
        (Raid5, 8, DISABLED, (6, 2)),
        (Raid5, 8, WritePolicy::Md3_16, (2, 2)),
        (Raid5, 3, PREFERRED, (1, 2)),
        (Raid6, 5, ENABLED, (2, 3)),
        (Raid6, 6, ENABLED, (3, 3)),
        (Raid6, 7, ENABLED, (3, 3)),
        (Raid6, 8, ENABLED, (3, 3)),
        (Raid6, 8, WritePolicy::Md3_16, (5, 3)),
        (Raid6, 8, DISABLED, (5, 3)),
    ];
    for (level, members, policy, expected) in table {
        let got = cost(level, members, policy, 0, 8);
        assert_eq!(got, expected, "{level}, {members} members, {policy:?}");
    }
}

/// Which of two ways that read as much is taken shows in who is read.
#[test]
fn a_tie_reconstructs_unless_modifying_is_preferred() {
    for (policy, parity_is_read) in [(ENABLED, false), (PREFERRED, true)] {
        let mut config = config(Level::Raid5, ParityLayout::LeftSymmetric, 4, 16, 4);
        config.write_policy = policy;
        let mut bench = Bench::new(config);
        bench.write(0, vec![7; 8 * SECTOR]).expect("healthy");
        // Row 0: data on 0, 1, 2, P on 3.
        let reads = bench
            .sent
            .iter()
            .filter(|it| it.operation == Operation::Read);
        let slots: Vec<u16> = reads.map(|it| it.slot.0).collect();
        assert_eq!(slots.contains(&3), parity_is_read, "{policy:?}: {slots:?}");
        assert_eq!(slots.len(), 2);
    }
}

#[test]
fn full_rows_are_written_without_reading_one_command_a_member() {
    for (level, members) in [(Level::Raid5, 5), (Level::Raid6, 6), (Level::Raid4, 5)] {
        // Two rows of four data chunks of 16 sectors.
        let got = cost(level, members, ENABLED, 0, 2 * 4 * 16);
        assert_eq!(got, (0, 2 * members), "{level}");
    }
}

#[test]
fn writes_smaller_than_a_block_read_their_own_block_too() {
    // One sector: its block is not wholly written, so reconstruction reads it.
    assert_eq!(cost(Level::Raid5, 3, ENABLED, 1, 1), (2, 2));
    assert_eq!(cost(Level::Raid5, 5, ENABLED, 1, 1), (2, 2));
    assert_eq!(cost(Level::Raid6, 5, ENABLED, 3, 2), (3, 3));
}

#[test]
fn writes_wait_for_the_rest_of_their_row_while_another_one_reads() {
    let config = config(Level::Raid5, ParityLayout::LeftSymmetric, 5, 8, 8);
    let mut bench = Bench::new(config);
    // The first write reads at once. The others find it reading and wait;
    // together they fill row 1, which goes without reading.
    bench.submit(Operation::Write, 0, vec![1; 8 * SECTOR], false);
    assert_eq!(bench.flights.len(), 2);
    for index in 0..4 {
        bench.submit(Operation::Write, 32 + 8 * index, vec![2; 8 * SECTOR], false);
    }
    let writes = bench
        .flights
        .iter()
        .filter(|it| it.command.operation == Operation::Write);
    assert_eq!(writes.count(), 5, "row 1 went as a full row");
    // A lone one goes when the first has read.
    bench.submit(Operation::Write, 64, vec![3; 8 * SECTOR], false);
    assert_eq!(bench.flights.len(), 7, "it waits");
    bench.run();
    let reads = bench
        .sent
        .iter()
        .filter(|it| it.operation == Operation::Read);
    assert_eq!(reads.count(), 4);
    assert_eq!(bench.finished.len(), 6);
    bench.check_parity();
}

#[test]
fn force_unit_access_does_not_wait_and_reaches_data_and_parity() {
    let config = config(Level::Raid6, ParityLayout::LeftSymmetric, 8, 8, 8);
    let mut bench = Bench::new(config);
    bench.submit(Operation::Write, 0, vec![1; 8 * SECTOR], false);
    let before = bench.flights.len();
    bench.submit(Operation::Write, 48, vec![1; 8 * SECTOR], true);
    assert_eq!(bench.flights.len(), 2 * before, "it reads at once");
    bench.run();
    let durable = bench.sent.iter().filter(|it| it.force_unit_access);
    assert_eq!(durable.count(), 3);
}

#[test]
fn a_full_stripe_of_many_small_writes_is_one_command_a_member() {
    let config = config(Level::Raid5, ParityLayout::LeftSymmetric, 3, 32, 4);
    let mut bench = Bench::new(config);
    bench.submit(Operation::Write, 200, vec![1; SECTOR], false);
    // Row 0: the first chunk block by block, then the second at once.
    for block in 0..4 {
        bench.submit(Operation::Write, 8 * block, vec![2; 8 * SECTOR], false);
    }
    let before = bench.sent.len();
    bench.submit(Operation::Write, 32, vec![3; 32 * SECTOR], false);
    let sent = &bench.sent[before..];
    assert!(sent.iter().all(|it| it.operation == Operation::Write));
    // The first chunk comes from four requests, hence four buffers.
    assert_eq!(sent.len(), 4 + 1 + 1);
    bench.run();
    bench.check_parity();
}
