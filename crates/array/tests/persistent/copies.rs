//! Copies that must not be left apart, whatever order their members do things in.

use crate::harness::{DATA_OFFSET, Make, SECTOR, World};
use raidlab_array::{AssembleOptions, Operation, PersistentArray, Update};
use raidlab_geometry::Level;
use raidlab_random::Stream;
use raidlab_units::{Nanos, Sectors};

/// Writes of one place are in flight together, and each member may do them in an order of its
/// own: whichever is the last, it is so on all of them.
#[test]
fn writes_of_one_place_are_last_on_all_members_alike() {
    for (level, members) in [(Level::Raid1, 3), (Level::Raid10, 3)] {
        for seed in 0..20 {
            let mut random = Stream::new(seed);
            let mut world = Make::new(level, members).start();
            // The array is dirty from here on, and the bits are set.
            world.write(0, 64, 1);
            for (start, count, value) in [(0, 24, 2), (8, 24, 3), (20, 4, 4), (0, 64, 5)] {
                world.submit(Operation::Write, start, count, value);
            }
            while world.step(Some(&mut random)) {}
            assert_eq!(world.finished.len(), 5, "none waits for ever");
            world.check_after(&format!("{level}, seed {seed}"));
        }
    }
}

/// A member that cannot be spared fails a flush, and has lost what one has that is being
/// filled, and whose filling was stopped by hand.
#[test]
fn what_a_failed_flush_lost_is_not_left_on_a_member_that_is_being_filled() {
    for bitmap in [true, false] {
        let make = Make {
            bitmap,
            spares: 1,
            ..Make::new(Level::Raid1, 2)
        };
        let mut world = World::assemble_frozen(make.disks(), false, |_| ()).unwrap();
        world.write(0, 64, 5);
        world.run_for(Nanos::from_secs(30));
        world.fail(1).unwrap();
        world.run_for(Nanos::from_secs(1));
        world.sync_for(20);
        world.with(|array, now, out| array.stop_sync(now, out));
        world.write(0, 16, 6);
        world.disks.get_mut(&0).unwrap().dead = true;
        let flush = world.submit(Operation::Flush, 0, 0, 0);
        assert!(world.wait(flush).is_err(), "the client is told");
        let disk = world.disks.get_mut(&0).unwrap();
        disk.dead = false;
        disk.cache.clear();
        world.with(PersistentArray::thaw_sync);
        world.run_for(Nanos::from_secs(60));
        world.read_only().unwrap();
        world.read_write().unwrap();
        world.run_for(Nanos::from_secs(60));
        assert_eq!(world.array.status().health, "[UU]");
        world.check_after(&format!("bitmap: {bitmap}"));
    }
}

/// A member that cannot be spared fails a flush while a pass over the metadata is about to call the
/// array clean and in sync. It answers the flush of that pass, without what it has lost.
#[test]
fn what_has_come_to_differ_during_a_pass_is_not_called_in_sync() {
    let mut world = Make::new(Level::Raid10, 3).start();
    world.fail(1).unwrap();
    world.run_for(Nanos::from_secs(1));
    world.write(16, 16, 6);
    // The pass's flushes are on their way.
    world.now = Nanos(world.now.0 + 300_000_000);
    world.tick();
    let begun = world.queue.len();
    assert_eq!(begun, 2);
    let flush = world.submit(Operation::Flush, 0, 0, 0);
    world.queue.rotate_left(begun);
    world.disks.get_mut(&0).unwrap().dead = true;
    assert!(world.wait(flush).is_err(), "the client is told");
    let disk = world.disks.get_mut(&0).unwrap();
    disk.dead = false;
    disk.cache.clear();
    let before = world.superblock(0).events;
    while world.superblock(0).events == before {
        assert!(world.step(None));
    }
    assert_ne!(world.superblock(0).resync_offset, Sectors(u64::MAX));
    world.run_for(Nanos::from_secs(60));
    assert!(!world.array.status().state.not_in_sync);
}

/// Everything is to be resynced, whatever the bitmap says. The array is stopped long before that is
/// done, and the next start has to go on with it, though no write has set a bit.
#[test]
fn a_resync_of_everything_is_not_forgotten_when_it_is_cut_off() {
    for (level, members, log) in [(Level::Raid1, 2, false), (Level::Raid5, 3, true)] {
        let make = Make {
            log,
            ..Make::new(level, members)
        };
        let mut world = make.start();
        world.write(0, world.array.size().0, 5);
        world.run_for(Nanos::from_secs(30));
        world.stop();
        let mut disks = world.disks;
        let disk = disks.get_mut(&1).unwrap();
        disk.land(DATA_OFFSET + 200, &[7; SECTOR]);
        let all = |options: &mut AssembleOptions| options.update = Some(Update::Resync);
        let mut world = World::assemble_frozen(disks, log, all).unwrap();
        world.sync_for(8);
        world.stop();
        let mut world = World::assemble(world.disks, log, |_| ()).unwrap();
        world.run_for(Nanos::from_secs(60));
        world.check_after(&level.to_string());
    }
}

/// Of three members with two copies of everything one was replaced, and all bits were cleared since;
/// it comes back by force. The resync that makes its copies and those of a current one alike is cut
/// off. Which of them is the older is not known after that, as with md.
#[test]
fn what_came_back_by_force_is_still_to_be_resynced_after_a_stop() {
    let mut world = Make {
        spares: 1,
        ..Make::new(Level::Raid10, 3)
    }
    .start();
    let size = world.array.size().0;
    world.write(0, size, 5);
    world.fail(0).unwrap();
    world.write(0, size, 6);
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.array.status().health, "[UUU]");
    assert_eq!(world.array.status().bitmap_chunks.unwrap().0, 0);
    world.stop();
    let mut disks = world.disks;
    disks.retain(|disk, _| [0, 1].contains(disk));
    let force = |options: &mut AssembleOptions| options.force = true;
    let mut world = World::assemble_frozen(disks, false, force).unwrap();
    world.sync_for(2);
    world.stop();
    let mut world = World::assemble(world.disks, false, |_| ()).unwrap();
    world.run_for(Nanos::from_secs(120));
    world.check_after("forced");
    // This chunk lies on members 2 and 0, of which the former is gone.
    assert_eq!(world.read(16, 16), [5; 16 * SECTOR]);
}
