use super::{Barrier, Courtesy, Front, UNIT, WriteTicket};
use crate::recovery::config::WriteBarrier;
use raidlab_units::{Nanos, Sectors, Span};

/// Blocks of 10 sectors, two in flight: D is 60 sectors.
fn barrier(rule: WriteBarrier) -> Barrier {
    Barrier::new(rule, Sectors(10), 2)
}

fn range(start: u64, count: u64) -> Span {
    Span::new(start, start + count)
}

fn admits(barrier: &mut Barrier, start: u64) -> bool {
    barrier.admit_sync(range(start, 10), false, std::iter::empty())
}

fn waits(barrier: &Barrier, write: Span, completed: u64, in_flight: u32) -> bool {
    let front = Front {
        completed: Sectors(completed),
        blocks: &[],
        in_flight,
    };
    barrier.write_waits(write, &front)
}

#[test]
fn writes_pass_below_the_checkpoint_and_from_d_above_the_newest_block() {
    let mut barrier = barrier(WriteBarrier::MdWindow);
    assert!(!waits(&barrier, range(100, 1), 0, 0), "the barrier is down");
    assert!(admits(&mut barrier, 100));
    barrier.sync_started(Sectors(100));
    assert!(!waits(&barrier, range(80, 10), 90, 1));
    assert!(waits(&barrier, range(80, 11), 90, 1));
    assert!(waits(&barrier, range(159, 1), 90, 1));
    assert!(!waits(&barrier, range(160, 1), 90, 1));
    assert!(!waits(&barrier, range(100, 1), 90, 0), "down again");
    assert!(barrier.keeps_waiting(true) && !barrier.keeps_waiting(false));
}

#[test]
fn counted_writes_hold_blocks_back() {
    let mut barrier = barrier(WriteBarrier::MdWindow);
    // No window yet: it starts at 0 + D = 60. Below 120 is current.
    let current = barrier.write_started(range(119, 1), Sectors::ZERO);
    let next = barrier.write_started(range(120, 1), Sectors::ZERO);
    assert!(!admits(&mut barrier, 0), "a write in the current window");
    assert_eq!(barrier.raised(), Some(Sectors(0)));
    assert!(waits(&barrier, range(5, 1), 0, 0), "a raised barrier is up");
    barrier.write_finished(Sectors(119), current);
    // The window moves to 120 and the other write becomes current.
    assert!(!admits(&mut barrier, 0));
    barrier.write_finished(Sectors(120), next);
    assert!(admits(&mut barrier, 0));
}

#[test]
fn writes_of_the_next_window_let_blocks_come_up_to_the_window() {
    let mut barrier = barrier(WriteBarrier::MdWindow);
    let far = barrier.write_started(range(500, 1), Sectors::ZERO);
    for start in [0, 10, 20, 30, 40, 50] {
        assert!(admits(&mut barrier, start), "{start}");
        barrier.sync_started(Sectors(start));
    }
    assert!(!admits(&mut barrier, 60), "the window starts at 60");
    barrier.write_finished(Sectors(500), far);
    assert!(admits(&mut barrier, 60));
}

#[test]
fn writes_below_the_checkpoint_are_not_counted() {
    let mut barrier = barrier(WriteBarrier::MdWindow);
    let below = barrier.write_started(range(40, 10), Sectors(50));
    assert_eq!(below, WriteTicket::Uncounted);
    let across = barrier.write_started(range(41, 10), Sectors(50));
    assert_ne!(across, WriteTicket::Uncounted, "md would not count it");
}

#[test]
fn a_block_waits_for_waiting_writes_and_sleeps_if_sync_is_fast() {
    let mut barrier = barrier(WriteBarrier::MdWindow);
    assert_eq!(barrier.courtesy(Sectors(0), true), None);
    barrier.write_begins_waiting(Sectors(5));
    assert_eq!(barrier.courtesy(Sectors(0), false), None);
    let second = Courtesy::For(Nanos::SECOND);
    assert_eq!(barrier.courtesy(Sectors(0), true), Some(second));
    assert!(!admits(&mut barrier, 0));
    assert_eq!(barrier.raised(), None);
    barrier.write_stops_waiting(Sectors(5));
    assert!(admits(&mut barrier, 0));
}

#[test]
fn buckets_know_only_their_own_unit() {
    let mut barrier = barrier(WriteBarrier::MdBuckets);
    barrier.io_started(Sectors(3));
    let unit = |start| Sectors(start * UNIT);
    assert!(admits(&mut barrier, UNIT), "the read is in another unit");
    barrier.sync_started(unit(1));
    assert!(waits(&barrier, range(2 * UNIT - 1, 1), 0, 1));
    assert!(!waits(&barrier, range(2 * UNIT, 1), 0, 1));
    assert!(!admits(&mut barrier, 0), "the read is in this unit");
    assert!(waits(&barrier, range(7, 1), 0, 1), "the barrier is raised");
    barrier.io_finished(Sectors(3));
    assert!(admits(&mut barrier, 0));
    barrier.sync_finished(unit(1));
    assert!(!waits(&barrier, range(UNIT, 1), 0, 1));
    assert_eq!(barrier.clip(range(UNIT - 4, 10)), range(UNIT - 4, 4));
}

#[test]
fn the_whole_array_takes_turns() {
    let mut barrier = barrier(WriteBarrier::MdArray);
    barrier.io_started(Sectors(5 * UNIT));
    assert!(!admits(&mut barrier, 0), "a read far away is in flight");
    assert!(barrier.read_waits(), "the barrier is up");
    barrier.write_begins_waiting(Sectors(7 * UNIT));
    assert_eq!(barrier.courtesy(Sectors(0), true), Some(Courtesy::Tick));
    barrier.io_finished(Sectors(5 * UNIT));
    assert!(
        admits(&mut barrier, 0),
        "it was raised before that one waited"
    );
    barrier.sync_started(Sectors(0));
    assert!(barrier.read_waits() && waits(&barrier, range(9 * UNIT, 1), 0, 1));
    assert!(!admits(&mut barrier, 10), "somebody waits");
    barrier.sync_finished(Sectors(0));
    assert!(!barrier.read_waits());
}

#[test]
fn no_rule_lets_a_block_start_over_a_write_in_flight() {
    let rules = [
        WriteBarrier::Overlap,
        WriteBarrier::MdWindow,
        WriteBarrier::MdBuckets,
        WriteBarrier::MdArray,
    ];
    for rule in rules {
        let mut barrier = barrier(rule);
        let overlapping = [range(500, 9), range(9, 1)];
        assert!(
            !barrier.admit_sync(range(0, 10), false, overlapping.into_iter()),
            "{rule:?}"
        );
        let beside = [range(500, 9), range(10, 1)];
        assert!(
            barrier.admit_sync(range(0, 10), false, beside.into_iter()),
            "{rule:?}"
        );
    }
}
