//! Seeded bugs that seeds hardly ever meet: for each a script that keeps every promise,
//! and breaks one with the bug.

use super::steps::{after, cut, durable, kill, mend, read, replace, tear, unreadable, write};
use raidlab_array::mutation::{self, Mutation};
use raidlab_faults::script::{Action, Step, Verb};
use raidlab_faults::{Options, run_with};
use raidlab_geometry::{Layout, Level};

const SECOND: u64 = 1_000_000_000;

fn is_found(bug: Mutation, options: &Options, script: &[Step]) {
    let run = |bug| {
        let before = mutation::choose(bug);
        let outcome = run_with(options.clone(), Some(script.to_vec()), 1, false);
        mutation::choose(before);
        outcome.violation
    };
    assert_eq!(run(None), None, "{}", bug.name());
    assert!(run(Some(bug)).is_some(), "{}", bug.name());
}

fn mirror(members: usize) -> Options {
    Options {
        bitmap_chunk: Some(16),
        tear: tear(0, 0, 50),
        sync_block: 16,
        sync_depth: 1,
        ..Options::plain(Level::Raid1, Layout::None, members, (16, 640))
    }
}

const fn speed(kib_per_second: u64) -> Action {
    Action::Administer(Verb::Speed {
        minimum: kib_per_second,
        maximum: kib_per_second,
    })
}

/// A member leaves while it is being filled: the bitmap knows nothing of the rest.
#[test]
fn a_member_that_was_never_full_is_not_added_by_the_bitmap() {
    let script = [
        after(0, write(0, 640)),
        after(0, Action::Flush),
        after(20 * SECOND, Action::Drain),
        after(0, Action::Lose { member: 1 }),
        after(0, write(0, 8)),
        after(SECOND, Action::Drain),
        after(0, speed(20)),
        after(0, mend(false, true)),
        after(3 * SECOND, Action::Fail { member: 1 }),
        after(SECOND, mend(false, true)),
        after(30 * SECOND, Action::Drain),
    ];
    is_found(Mutation::ReAddHalfFilled, &mirror(2), &script);
}

/// A resync after a power cut is so slow that the bitmap's daemon comes by twice before it
/// has passed; then the power is cut again.
#[test]
fn a_bit_stays_until_its_chunk_is_resynced() {
    let mut script = vec![
        after(0, write(0, 640)),
        after(0, Action::Flush),
        after(20 * SECOND, Action::Drain),
    ];
    script.extend((0..4).map(|quarter| after(0, write(160 * quarter, 160))));
    script.extend([
        // Every write of the four is at one member, or at both, or at none.
        after(544_192, cut(13_777_126_607_420_005_552, None, false, None)),
        after(0, speed(1)),
        after(30 * SECOND, cut(1, None, false, None)),
        after(60 * SECOND, Action::Drain),
        after(0, Action::Settle),
    ]);
    is_found(Mutation::NeededBitCleared, &mirror(2), &script);
}

/// Beyond what a mirror can bear: both members were replaced, then one is away and the other
/// dies. A member from before comes back, and nobody but a spare knows that it is out of date.
#[test]
fn a_spare_tells_of_a_member_that_was_replaced() {
    let options = Options {
        over_budget: true,
        ..mirror(2)
    };
    let script = [
        after(0, replace(0)),
        after(30 * SECOND, replace(1)),
        after(30 * SECOND, Action::Administer(Verb::Spare)),
        after(0, write(413, 1)),
        after(0, Action::Settle),
        after(0, cut(2, Some(0), true, None)),
        after(0, Action::Lose { member: 1 }),
        after(0, kill(2, Some(0), false, None)),
    ];
    is_found(Mutation::SpareUnheard, &options, &script);
}

/// A member fails while superblocks are being written, which takes long: a spare sleeps. Before
/// that failure is recorded another spare takes the slot, has all data, and fails as well, when
/// its superblock is written: the superblocks call it current.
#[test]
fn a_spare_takes_no_slot_whose_failure_is_not_recorded() {
    let script = [
        after(0, Action::Administer(Verb::Spare)),
        after(
            12 * SECOND,
            Action::Slow {
                member: 2,
                factor: 99,
            },
        ),
        // The dirty mark takes some ten milliseconds.
        after(0, durable(300, 8)),
        after(12_000_000, Action::Fail { member: 0 }),
        after(43_000_000, Action::Fail { member: 0 }),
        after(0, Action::Drain),
        after(0, cut(1, None, false, None)),
    ];
    let options = Options {
        latency_low_ns: 100_000,
        latency_high_ns: 100_000,
        sync_block: 128,
        sync_depth: 4,
        ..mirror(3)
    };
    is_found(Mutation::SpareSeatedEarly, &options, &script);
}

/// The last piece of a member that is replaced is so short that no superblock is written for
/// its sake, and the new device is so slow that the others have their superblocks long before.
#[test]
fn a_replacement_is_full_by_its_superblock_before_it_takes_the_slot() {
    let options = Options {
        latency_low_ns: 100_000,
        latency_high_ns: 100_000,
        tear: tear(0, 0, 0),
        ..Options::plain(Level::Raid1, Layout::None, 2, (16, 264))
    };
    let script = [
        after(0, speed(1000)),
        after(0, replace(0)),
        after(0, Action::Administer(Verb::SlowSpare { factor: 99 })),
        after(205_000_000, cut(1, None, false, None)),
    ];
    is_found(Mutation::ReplacementSeatedEarly, &options, &script);
}

/// The last piece of a member that is replaced has been copied and recorded, and the speed limit
/// keeps the new device waiting when it dies. Then a sector becomes unreadable whose other copy
/// is on the member that is being replaced.
#[test]
fn a_replacement_that_has_died_takes_no_slot() {
    let options = Options {
        latency_low_ns: 100_000,
        latency_high_ns: 100_000,
        tear: tear(0, 0, 0),
        ..Options::plain(Level::Raid1, Layout::None, 2, (16, 256))
    };
    let script = [
        after(0, speed(20)),
        after(0, replace(0)),
        after(SECOND, Action::Administer(Verb::LoseSpare)),
        after(0, unreadable(1, 107, 1)),
        after(20 * SECOND, read(0, 256)),
    ];
    is_found(Mutation::ReplacementUnasked, &options, &script);
}
