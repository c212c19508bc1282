//! What md does at a cost.

use super::bench::{Bench, SECTOR, config};
use crate::engine::Engine;
use crate::request::{Operation, Slot};
use crate::stripes::{MdHabits, StripeConfig};
use raidlab_geometry::{Level, ParityLayout};
use raidlab_units::Sectors;

fn array(level: Level, members: usize, habits: MdHabits) -> Bench {
    Bench::new(StripeConfig {
        stripes: 4,
        habits,
        ..config(level, ParityLayout::LeftSymmetric, members, 16, 4)
    })
}

/// Whether a sector of the array lies on a member.
fn is_on(bench: &Bench, sector: u64, slot: u16) -> bool {
    let place = bench.map().locate(Sectors(sector));
    bench.map().row(place.row).data_slot(place.index) == Slot(slot)
}

#[test]
fn a_lost_block_is_computed_from_all_others() {
    // Five members: of the four left, three suffice.
    let ways = [(MdHabits::default(), 3), (MdHabits::LINUX_6_12, 4)];
    for (habits, expected) in ways {
        let mut bench = array(Level::Raid6, 5, habits);
        bench.fail(0);
        for sector in (0..bench.map().size().0).step_by(8) {
            let before = bench.sent.len();
            bench.read(sector, 8).expect("one is lost");
            let reads = bench.sent.len() - before;
            let lost = is_on(&bench, sector, 0);
            assert_eq!(reads, if lost { expected } else { 1 }, "sector {sector}");
        }
    }
}

#[test]
fn while_metadata_are_written_no_job_goes_on() {
    let mut bench = array(Level::Raid5, 4, MdHabits::LINUX_6_12);
    bench.submit(Operation::Write, 0, vec![7; 8 * SECTOR], false);
    assert_eq!(bench.flights.len(), 2, "the old block and its parity");
    stall(&mut bench, true);
    bench.land(0);
    bench.land(0);
    assert!(bench.flights.is_empty() && bench.finished.is_empty());
    // A member that serves a read by itself needs nobody.
    bench.submit(Operation::Read, 16, vec![0; 8 * SECTOR], false);
    assert_eq!(bench.flights.len(), 1);
    bench.land(0);
    assert_eq!(bench.finished.len(), 1);
    stall(&mut bench, false);
    assert_eq!(bench.flights.len(), 0, "that is for the next turns");
    bench.run();
    assert_eq!(bench.finished.len(), 2);
    bench.check_parity();
}

/// Metadata are being written from now on, or no longer.
fn stall(bench: &mut Bench, runs: bool) {
    bench
        .array
        .set_metadata_pass(bench.now, runs, &mut bench.out);
    bench.take_outputs();
}

/// The thread's next turn.
fn turn(bench: &mut Bench) {
    assert_eq!(bench.array.next_tick(), Some(bench.now), "at once");
    bench.array.tick(bench.now, &mut bench.out);
    bench.take_outputs();
}

#[test]
fn after_metadata_jobs_go_on_by_turns_of_eight() {
    let mut bench = Bench::new(StripeConfig {
        habits: MdHabits::LINUX_6_12,
        ..config(Level::Raid5, ParityLayout::LeftSymmetric, 4, 16, 10)
    });
    for row in 0..10 {
        // Forced, so that it waits for no others of its stripe.
        bench.submit(Operation::Write, row * 48, vec![7; 8 * SECTOR], true);
    }
    assert_eq!(bench.flights.len(), 20, "old blocks and parity");
    stall(&mut bench, true);
    for _ in 0..20 {
        bench.land(0);
    }
    stall(&mut bench, false);
    assert!(bench.flights.is_empty());
    // Eight get their parity.
    turn(&mut bench);
    assert!(bench.flights.is_empty());
    // The two others get theirs, six of the eight are written.
    turn(&mut bench);
    assert_eq!(bench.flights.len(), 12);
    // Whoever wants a bit now is served first.
    stall(&mut bench, true);
    assert_eq!(bench.array.next_tick(), None);
    stall(&mut bench, false);
    assert_eq!(bench.flights.len(), 20, "the rest");
    bench.run();
    assert_eq!(bench.finished.len(), 10);
    bench.check_parity();
}

#[test]
fn a_reader_sleeps_until_fewer_than_three_quarters_of_the_stripes_are_in_use() {
    let mut bench = array(Level::Raid5, 4, MdHabits::LINUX_6_12);
    bench.fail(0);
    let there = (0..bench.map().size().0).step_by(8);
    let there: Vec<u64> = there.filter(|at| !is_on(&bench, *at, 0)).collect();
    for sector in &there[..4] {
        bench.submit(Operation::Read, *sector, vec![0; 8 * SECTOR], false);
        assert!(!bench.array.holds_submitter(0), "of four stripes");
    }
    bench.submit(Operation::Read, there[4], vec![0; 8 * SECTOR], false);
    assert!(bench.array.holds_submitter(0));
    assert_eq!(bench.flights.len(), 4);
    // Three of four are three quarters: not fewer.
    bench.land(0);
    assert!(bench.array.holds_submitter(0));
    bench.land(0);
    assert!(!bench.array.holds_submitter(0));
    assert_eq!(bench.flights.len(), 3);
    bench.run();
    assert_eq!(bench.finished.len(), 5);
}
