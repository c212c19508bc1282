//! The scripts.

use super::*;
use crate::spares::{SIZE, add, fail_and_remove};

const WRITES: &str = "\
    write 0 4; write 40 32; flush; pause 300; write 2 10; settle; write 400 16; flush; \
    pause 11000; write 404 2; settle; stop";

#[test]
fn bitmap_and_dirty_mark_are_sound_at_every_cut() {
    let cuts = cut_everywhere(Make::new(Level::Raid5, 3), WRITES, 1);
    assert!(cuts > 80, "{cuts}");
}

#[test]
fn without_a_bitmap_everything_is_resynced() {
    let make = Make {
        bitmap: false,
        ..Make::new(Level::Raid5, 3)
    };
    cut_everywhere(make, WRITES, 2);
}

#[test]
fn the_log_closes_the_write_hole_at_every_cut() {
    let make = Make {
        log: true,
        ..Make::new(Level::Raid5, 3)
    };
    cut_everywhere(make, WRITES, 3);
}

const FAILURE: &str = "write 0 40; flush; kill 1; write 8 20; settle; flush; write 100 4; flush";

#[test]
fn a_failed_member_never_comes_back_as_current() {
    for log in [false, true] {
        let make = Make {
            log,
            ..Make::new(Level::Raid5, 3)
        };
        cut_everywhere(make, FAILURE, 4);
    }
}

#[test]
fn two_failures_in_the_middle_of_a_superblock_update() {
    let script = "write 0 40; flush; fail 1; kill 2; write 8 20; flush; pause 300";
    for log in [false, true] {
        let make = Make {
            log,
            ..Make::new(Level::Raid6, 4)
        };
        cut_everywhere(make, script, 5);
    }
}

#[test]
fn recovery_onto_a_spare_survives_cuts() {
    let script = "write 0 100; flush; fail 0; pause 100; write 20 60; flush; pause 1000";
    let make = Make {
        spares: 1,
        log: true,
        ..Make::new(Level::Raid5, 3)
    };
    cut_everywhere(make, script, 6);
}

/// The same for copies; half as many sectors.
const COPIES: &str = "\
    write 0 4; write 40 32; flush; pause 300; write 2 10; flush; pause 11000; write 200 3; \
    settle; stop";

#[test]
fn mirrors_are_sound_at_every_cut() {
    for (number, level, members) in [
        (7, Level::Raid1, 2),
        (8, Level::Raid1, 3),
        (9, Level::Raid10, 3),
    ] {
        cut_everywhere(Make::new(level, members), COPIES, number);
    }
}

#[test]
fn a_failed_copy_never_comes_back_as_current() {
    for (level, members, lost) in [
        (Level::Raid1, 2, 0),
        (Level::Raid1, 2, 1),
        (Level::Raid10, 4, 2),
    ] {
        let script = FAILURE.replace("kill 1", &format!("kill {lost}"));
        cut_everywhere(Make::new(level, members), &script, 10);
    }
}

#[test]
fn recovery_of_a_mirror_survives_cuts() {
    let make = Make {
        spares: 1,
        ..Make::new(Level::Raid1, 2)
    };
    let script = "write 0 100; flush; fail 0; pause 100; write 20 60; flush; pause 1000";
    cut_everywhere(make, script, 11);
}

#[test]
fn the_two_halves_of_a_mirror_do_not_meet_again() {
    let disks = Make::new(Level::Raid1, 2).disks();
    let halves: Vec<BTreeMap<u16, Disk>> = [0, 1]
        .map(|half| {
            let mut alone = disks.clone();
            alone.retain(|handle, _| *handle == half);
            let mut world = World::assemble(alone, false, run_degraded).unwrap();
            world.write(0, 8, u8::try_from(half).unwrap() + 1);
            world.flush();
            world.run_for(Nanos::from_secs(1));
            world.disks
        })
        .into();
    let both: BTreeMap<u16, Disk> = halves.into_iter().flatten().collect();
    let refused = World::assemble(both, false, run_degraded);
    assert!(matches!(
        refused.err(),
        Some(AssembleError::SplitBrain { .. })
    ));
}

/// The other one has failed and was removed, and a new device has taken its place; later the
/// removed one was started by itself and written to. A number that both had would make the two
/// sides one, and what the removed one was given meanwhile would be taken for the array's.
#[test]
fn a_removed_member_that_ran_alone_is_not_taken_for_its_successor() {
    let mut world =
        World::assemble(Make::new(Level::Raid1, 2).disks(), false, run_degraded).unwrap();
    world.write(0, 8, 1);
    world.flush();
    let removed = world.disks[&1].clone();
    fail_and_remove(&mut world, 1);
    add(&mut world, 2, SIZE).unwrap();
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.array.status().health, "[UU]");
    world.write(0, 8, 2);
    world.flush();
    let mut alone = World::assemble(BTreeMap::from([(1, removed)]), false, run_degraded).unwrap();
    alone.write(0, 8, 3);
    alone.flush();
    alone.run_for(Nanos::from_secs(1));
    // The successor is away.
    let kept = world.disks.remove(&0).unwrap();
    let both = alone.disks.into_values().map(|disk| (1, disk));
    let both = both.chain([(0, kept)]).collect();
    let refused = World::assemble(both, false, run_degraded).err();
    assert!(
        matches!(refused, Some(AssembleError::SplitBrain { .. })),
        "{refused:?}"
    );
}

#[test]
fn an_external_bitmap_is_sound_at_every_cut() {
    for (number, level, members) in [(12, Level::Raid5, 3), (13, Level::Raid1, 2)] {
        let make = Make {
            external: true,
            ..Make::new(level, members)
        };
        let script = if level == Level::Raid5 {
            WRITES
        } else {
            COPIES
        };
        cut_everywhere(make, script, number);
    }
}

/// A write is under way while a member is filled: above and below what is
/// filled already.
#[test]
fn what_was_written_during_a_recovery_is_the_same_on_all_copies() {
    let script = "\
        write 0 100; flush; fail 0; write 0 8; write 240 8; write 100 30; settle; write 4 2; \
        flush";
    for (seed, level, members) in [
        (14, Level::Raid1, 2),
        (15, Level::Raid1, 3),
        (16, Level::Raid10, 4),
    ] {
        let make = Make {
            spares: 1,
            ..Make::new(level, members)
        };
        for seed in [seed, seed + 100] {
            cut_each(make, script, seed, 2);
        }
    }
}

#[test]
fn a_replacement_survives_cuts() {
    // Where a block cannot be read, copying goes block by block.
    let script = "\
        write 0 100; flush; spoil 1 90; replace 1; write 20 60; settle; pause 2; write 0 9; \
        write 90 9; flush; pause 600; write 3 60; flush; pause 1000";
    for (seed, level, members, log) in [
        (17, Level::Raid1, 2, false),
        (18, Level::Raid10, 4, false),
        (19, Level::Raid5, 3, false),
        (20, Level::Raid5, 3, true),
    ] {
        let make = Make {
            spares: 1,
            log,
            ..Make::new(level, members)
        };
        cut_each(make, script, seed, 5);
    }
}

#[test]
fn the_loss_of_a_member_that_is_being_replaced_survives_cuts() {
    let script = "\
        write 0 100; flush; replace 1; write 20 60; settle; kill 1; write 0 30; write 90 9; \
        flush; pause 1000";
    for (seed, level, members, log) in [
        (21, Level::Raid1, 2, false),
        (22, Level::Raid10, 4, false),
        (23, Level::Raid5, 3, true),
    ] {
        let make = Make {
            spares: 1,
            log,
            ..Make::new(level, members)
        };
        cut_each(make, script, seed, 5);
    }
}
