//! Devices that do not fit what the array has become while they were away, members that are
//! there by force, and failures that come at a bad moment.

use crate::harness::{DATA_OFFSET, Make, SECTOR, USED, World, slot};
use raidlab_array::{AssembleOptions, Event, Operation, Stale, Update};
use raidlab_geometry::Level;
use raidlab_metadata::{Features, Role};
use raidlab_units::{Nanos, Sectors};

/// The array got its bitmap while a member was away (mdadm's `--grow --bitmap`). That one's
/// superblock does not say where its bitmap is to lie: at its own place, if one believes it.
#[test]
fn a_member_from_before_the_bitmap_keeps_its_superblock() {
    for (level, members, log) in [(Level::Raid1, 2, false), (Level::Raid5, 3, true)] {
        let make = Make {
            log,
            ..Make::new(level, members)
        };
        let mut world = make.start();
        world.write(0, 200, 5);
        world.fail(1).unwrap();
        world.run_for(Nanos::from_secs(1));
        world.stop();
        let disk = world.disks.get_mut(&1).unwrap();
        let mut superblock = disk.metadata().superblock;
        superblock.features = Features(superblock.features.0 & !Features::BITMAP);
        superblock.bitmap_offset = 0;
        disk.land(superblock.super_offset.0, &superblock.encode().unwrap());

        let rebuild = |options: &mut AssembleOptions| options.stale = Stale::Rebuild;
        let mut again = World::assemble(world.disks, log, rebuild).unwrap();
        for value in 6..9 {
            again.write(0, 200, value);
            // Bits are set and cleared.
            again.run_for(Nanos::from_secs(20));
        }
        let found = again.superblock(1);
        assert_eq!(found.role(), Role::Slot(1));
        assert!(again.disks[&1].metadata().bitmap.is_some(), "{level}");
        assert!(!again.array.status().health.contains('_'));
        assert_eq!(again.read(0, 200), [8; 200 * SECTOR]);
        again.check();
    }
}

/// What a spare says of itself must be true of it, or it cannot be read at the next start.
#[test]
fn a_spare_that_the_array_has_outgrown_is_still_one_of_its_devices() {
    let make = Make {
        spares: 1,
        ..Make::new(Level::Raid1, 2)
    };
    let mut disks = make.disks();
    for handle in [0, 1] {
        let bytes = usize::try_from(DATA_OFFSET + 2 * USED).unwrap() * SECTOR;
        disks.get_mut(&handle).unwrap().durable.resize(bytes, 0);
    }
    let grow = |options: &mut AssembleOptions| options.update = Some(Update::Size);
    let mut world = World::assemble(disks, false, grow).unwrap();
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.superblock(0).used_size, Sectors(2 * USED));
    let spare = world.superblock(2);
    assert_eq!(spare.data_size, Sectors(USED));
    assert_eq!(spare.events, world.superblock(0).events);
}

/// Of three members with two copies of everything one is out of date, one is lost, and the
/// third is current. What the first has in common with that must not be taken from the first.
#[test]
fn a_member_that_is_there_by_force_brings_back_only_what_is_lost() {
    let mut world = Make::new(Level::Raid10, 3).start();
    let size = world.array.size().0;
    world.write(0, size, 5);
    world.fail(0).unwrap();
    world.write(0, size, 6);
    world.run_for(Nanos::from_secs(30));
    world.stop();
    let mut disks = world.disks;
    disks.remove(&2);
    let force = |options: &mut AssembleOptions| options.force = true;
    let mut again = World::assemble_frozen(disks, false, force).unwrap();
    // The first chunk lies on members 0 and 1, the second one on 2 and 0.
    for _ in 0..2 {
        assert_eq!(again.read(0, 16), [6; 16 * SECTOR]);
        assert_eq!(again.read(16, 16), [5; 16 * SECTOR]);
        assert_eq!(again.read(32, 16), [6; 16 * SECTOR]);
        again.with(raidlab_array::PersistentArray::thaw_sync);
        again.run_for(Nanos::from_secs(60));
    }
    again.check();
}

/// A member that cannot be spared fails a flush, and takes the next one without the bytes of
/// before. Reads must not see them on one member and miss them on the other.
#[test]
fn a_flush_that_a_needed_member_has_failed_is_followed_by_a_resync() {
    for bitmap in [true, false] {
        let mut world = Make {
            bitmap,
            ..Make::new(Level::Raid10, 3)
        }
        .start();
        let size = world.array.size().0;
        world.write(0, size, 5);
        world.run_for(Nanos::from_secs(30));
        world.fail(1).unwrap();
        world.run_for(Nanos::from_secs(1));
        world.write(16, 16, 6);
        world.disks.get_mut(&0).unwrap().dead = true;
        let flush = world.submit(Operation::Flush, 0, 0, 0);
        assert!(world.wait(flush).is_err(), "the client is told");
        let disk = world.disks.get_mut(&0).unwrap();
        disk.dead = false;
        disk.cache.clear();
        world.run_for(Nanos::from_secs(60));
        world.check();
        assert!(!world.array.status().state.failed);
        assert!(!world.array.status().state.not_in_sync);
    }
}

/// A write waits until a failure is recorded. That cannot be, and the array is being stopped.
#[test]
fn a_broken_array_that_is_being_stopped_writes_nothing_that_waited() {
    let mut world = Make::new(Level::Raid5, 3).start();
    world.write(0, 96, 1);
    world.disks.get_mut(&1).unwrap().dead = true;
    world.submit(Operation::Write, 0, 32, 6);
    while !world.events.contains(&Event::MemberFailed(slot(1))) {
        assert!(world.step(None));
    }
    let late = world.submit(Operation::Write, 32, 64, 7);
    world.engine_alone();
    world.with(|array, now, out| array.stop(now, out));
    let written = |world: &World| [0, 2].map(|disk| world.disks[&disk].data_written);
    let before = written(&world);
    world.disks.get_mut(&2).unwrap().dead = true;
    while world.step(None) {}
    assert!(world.array.is_stopped());
    assert!(world.array.is_idle(), "nothing is owed to anybody");
    assert_eq!(written(&world), before);
    assert!(world.wait(late).is_err());
}

/// A block that a recovery cannot fill is no write that a member lacks: the write log goes on
/// while it is being recorded.
#[test]
fn the_write_log_does_not_wait_for_what_a_recovery_could_not_fill() {
    let make = Make {
        log: true,
        spares: 1,
        ..Make::new(Level::Raid5, 3)
    };
    let mut world = make.start();
    world.write(0, world.array.size().0, 5);
    world.run_for(Nanos::from_secs(30));
    // The superblocks call the array dirty, and the bit is set.
    let last = world.array.size().0 - 32;
    world.write(last, 32, 6);
    let disk = world.disks.get_mut(&0).unwrap();
    disk.unreadable.insert(DATA_OFFSET + 3);
    world.fail(1).unwrap();
    let is_found = |event: &Event| matches!(event, Event::BadBlocksFound { .. });
    while !world.events.iter().any(is_found) {
        assert!(world.step(None));
    }
    let written = |world: &World| world.disks[&2].data_written;
    let before = written(&world);
    world.submit(Operation::Write, last, 32, 7);
    world.engine_alone();
    assert!(written(&world) > before, "{:?}", world.array.waits());
}
