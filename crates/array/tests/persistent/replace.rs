//! Members replaced while they serve.

use crate::harness::{DATA_OFFSET, Landing, Make, SECTOR, USED, World, run_degraded, slot};
use crate::spares::{SIZE, add, blank, new_device};
use raidlab_array::{
    Event, MemberCommand, NewDevice, Operation, PersistentArray, Purpose, VerbError,
};
use raidlab_geometry::Level;
use raidlab_metadata::create::InitialSync;
use raidlab_metadata::{Features, Role};
use raidlab_random::Stream;
use raidlab_units::Nanos;
use std::collections::VecDeque;

const LEVELS: [(Level, usize, bool); 5] = [
    (Level::Raid1, 2, false),
    (Level::Raid10, 4, false),
    (Level::Raid5, 3, false),
    (Level::Raid5, 3, true),
    (Level::Raid6, 5, true),
];

fn make(level: Level, members: usize, log: bool) -> Make {
    Make {
        spares: 1,
        log,
        ..Make::new(level, members)
    }
}

/// An array with a spare, which was written to; and the spare.
fn written(level: Level, members: usize, log: bool) -> (World, u16) {
    let mut world = make(level, members, log).start();
    world.write(0, 200, 5);
    (world, u16::try_from(members).unwrap())
}

/// A write is on its way to the old device when the replacement begins; the new
/// one has no share of it, and the copying must not go by.
#[test]
fn a_write_in_flight_is_on_the_new_device_too() {
    for (level, members, log) in LEVELS {
        for seed in 0..24 {
            let mut random = Stream::new(seed);
            let (mut world, spare) = written(level, members, log);
            let write = world.submit(Operation::Write, 0, 200, 6);
            for _ in 0..seed / 2 {
                world.step(Some(&mut random));
            }
            world.replace(1).unwrap();
            while world.step(Some(&mut random)) {}
            world.run_for(Nanos::from_secs(60));
            assert!(world.finished.iter().any(|done| done.id == write));
            assert_eq!(world.state(spare), "active sync");
            world.check();
        }
    }
}

#[test]
fn the_new_device_takes_the_slot_and_the_old_one_may_go() {
    for (level, members, log) in LEVELS {
        let (mut world, spare) = written(level, members, log);
        world.replace(1).unwrap();
        assert!(world.array.is_syncing());
        world.write(20, 30, 6);
        world.run_for(Nanos::from_secs(60));
        assert_eq!(world.state(1), "faulty", "{level:?}");
        assert_eq!(world.state(spare), "active sync");
        assert_eq!(world.array.served()[1], Some(slot(spare)));
        let superblock = world.superblock(spare);
        assert_eq!(superblock.role(), Role::Slot(1));
        assert!(!superblock.features.has(Features::REPLACEMENT));
        assert!(!superblock.features.has(Features::RECOVERY_OFFSET));
        world.write(40, 30, 7);
        world.remove(1).unwrap();
        world.run_for(Nanos::from_secs(1));
        world.check();
        // The old disk is out of date and stays out.
        let mut again = World::assemble(world.disks, log, |_| ()).unwrap();
        assert!(!again.array.status().health.contains('_'));
        assert_eq!(again.read(0, 20), vec![5; 20 * SECTOR]);
        assert_eq!(again.read(20, 20), vec![6; 20 * SECTOR]);
        assert_eq!(again.read(40, 30), vec![7; 30 * SECTOR]);
        again.check();
    }
}

#[test]
fn both_claim_the_slot_meanwhile_as_md_writes_it() {
    let mut world = make(Level::Raid5, 3, false).start();
    world.write(0, 100, 1);
    world.array.set_sync_speed(1, 1);
    world.replace(2).unwrap();
    world.run_for(Nanos::from_millis(10));
    let (old, new) = (world.superblock(2), world.superblock(3));
    assert_eq!((old.role(), new.role()), (Role::Slot(2), Role::Slot(2)));
    assert!(
        new.features
            .has(Features::REPLACEMENT | Features::RECOVERY_OFFSET)
    );
    assert!(new.features.has(Features::REPLACEMENT));
    assert!(!old.features.has(Features::REPLACEMENT));
    assert_eq!(world.state(2), "active sync");
    assert_eq!(world.array.status().health, "[UUU]");
    let again = world.replace(2);
    assert_eq!(again, Err(VerbError::BeingReplaced(slot(2))));
    assert!(matches!(world.replace(0), Err(VerbError::NoSpare)));
    assert!(matches!(world.replace(3), Err(VerbError::NotInSync(_))));
    // It goes on after a stop.
    world.stop();
    let mut again = World::assemble(world.disks, false, |_| ()).unwrap();
    again.run_for(Nanos::from_secs(60));
    assert_eq!(again.superblock(3).role(), Role::Slot(2));
    assert!(!again.superblock(3).features.has(Features::REPLACEMENT));
    assert_eq!(again.read(0, 100), vec![1; 100 * SECTOR]);
    again.check();
}

#[test]
fn the_old_one_fails_and_the_new_one_goes_on_from_the_others() {
    for (level, members, log) in LEVELS {
        let (mut world, spare) = written(level, members, log);
        world.array.set_sync_speed(100, 100);
        world.replace(1).unwrap();
        world.run_for(Nanos::from_millis(10));
        let write = world.submit(Operation::Write, 10, 100, 6);
        world.disks.get_mut(&1).unwrap().dead = true;
        world.wait(write).unwrap();
        world.write(20, 40, 7);
        world.run_for(Nanos::from_secs(60));
        assert_eq!(world.state(1), "faulty", "{level:?}");
        assert_eq!(world.state(spare), "active sync", "{level:?}");
        assert!(!world.array.status().health.contains('_'));
        assert_eq!(world.read(0, 10), vec![5; 10 * SECTOR]);
        assert_eq!(world.read(10, 10), vec![6; 10 * SECTOR]);
        assert_eq!(world.read(20, 40), vec![7; 40 * SECTOR]);
        world.check();
    }
}

/// Copies that a resync has not made alike yet stay unlike where it ends because one of them
/// is lost: what the new device has of that one does not count.
#[test]
fn what_was_copied_before_a_resync_has_passed_is_filled_anew() {
    for (level, members, log) in LEVELS {
        let spare = u16::try_from(members).unwrap();
        let make = Make {
            initial: InitialSync::Resync,
            ..make(level, members, log)
        };
        let mut failed = 0;
        for steps in 0..40 {
            let mut disks = make.disks();
            let data = usize::try_from(DATA_OFFSET).unwrap() * SECTOR;
            for (number, disk) in &mut disks {
                disk.durable[data..].fill(u8::try_from(*number).unwrap() + 100);
            }
            let mut world = World::assemble(disks, log, |_| ()).unwrap();
            world.write(0, 20, 5);
            world.with(PersistentArray::stop_sync);
            world.replace(1).unwrap();
            for _ in 0..steps {
                world.step(None);
            }
            if world.fail(1).is_err() {
                break;
            }
            failed += 1;
            world.run_for(Nanos::from_secs(60));
            assert_eq!(world.state(spare), "active sync", "{level:?}");
            assert_eq!(world.read(0, 20), vec![5; 20 * SECTOR]);
            assert!(!world.array.status().state.not_in_sync);
            world.check();
        }
        assert!(failed > 5, "{level:?}: {failed}");
    }
}

/// The power is cut while the superblocks are written that first know of such a loss: where the
/// new device has not heard that its copy does not count, the array is not in sync yet either.
#[test]
fn a_copy_that_does_not_count_is_known_before_the_rest_counts_as_in_sync() {
    for (level, members, log) in LEVELS {
        let make = Make {
            initial: InitialSync::Resync,
            ..make(level, members, log)
        };
        let mut judged = 0;
        for (steps, after) in (0..160).map(|at| (at / 8 * 2, at % 8 * 2)) {
            let mut disks = make.disks();
            let data = usize::try_from(DATA_OFFSET).unwrap() * SECTOR;
            for (number, disk) in &mut disks {
                disk.durable[data..].fill(u8::try_from(*number).unwrap() + 100);
            }
            let mut world = World::assemble(disks, log, |_| ()).unwrap();
            world.write(0, 20, 5);
            world.with(PersistentArray::stop_sync);
            world.run_for(Nanos::from_secs(1));
            world.replace(1).unwrap();
            for _ in 0..steps {
                world.step(None);
            }
            let failed = world.fail(1);
            if failed.is_err() {
                continue;
            }
            for _ in 0..after {
                world.step(None);
            }
            let mut disks = world.cut(&mut Landing::None);
            disks.remove(&1);
            let Ok(mut again) = World::assemble(disks, log, run_degraded) else {
                // Without a log parity may be torn.
                assert!(level == Level::Raid5 && !log, "{level:?}: {steps}");
                continue;
            };
            judged += 1;
            again.run_for(Nanos::from_secs(60));
            assert_eq!(again.read(0, 20), vec![5; 20 * SECTOR]);
            again.check();
        }
        assert!(judged > 5, "{level:?}: {judged}");
    }
}

/// The old device dies with a read that it was given before the new one took its slot.
#[test]
fn a_read_that_outlives_the_old_device_is_answered_by_the_new_one() {
    for (level, members, log) in LEVELS {
        for earlier in [false, true] {
            let (mut world, spare) = written(level, members, log);
            world.run_for(Nanos::from_secs(1));
            if !earlier {
                world.array.set_sync_speed(100, 100);
                world.replace(0).unwrap();
                world.run_for(Nanos::from_millis(10));
            }
            // Some of these reads are the first member's.
            let read = world.submit(Operation::Read, 0, 200, 0);
            let (late, others) =
                std::mem::take(&mut world.queue)
                    .into_iter()
                    .partition(|command| {
                        command.slot == slot(0) && command.operation == Operation::Read
                    });
            world.queue = others;
            if earlier {
                world.replace(0).unwrap();
            }
            world.run_for(Nanos::from_secs(60));
            // A replacement does not begin to copy before such a read has ended.
            assert_eq!(world.state(spare) == "active sync", !earlier, "{level:?}");
            world.disks.get_mut(&0).unwrap().dead = true;
            world.queue.extend::<VecDeque<_>>(late);
            world.wait(read).unwrap();
            world.run_for(Nanos::from_secs(60));
            assert_eq!(world.read[&read.0], vec![5; 200 * SECTOR], "{level:?}");
            assert!(!world.events.contains(&Event::MemberFailed(slot(spare))));
            assert_eq!(world.state(spare), "active sync", "{level:?}");
            world.check();
        }
    }
}

/// The old device dies with a flush: the new one does not take the slot before that is
/// answered.
#[test]
fn a_flush_that_the_old_device_does_not_answer_is_not_held_against_the_new_one() {
    for (level, members, log) in LEVELS {
        let (mut world, spare) = written(level, members, log);
        world.replace(0).unwrap();
        let flush = world.submit(Operation::Flush, 0, 0, 0);
        let is_late = |command: &MemberCommand| {
            command.slot == slot(0)
                && command.operation == Operation::Flush
                && command.purpose == Purpose::Foreground
        };
        let mut late = VecDeque::new();
        while late.is_empty() {
            let queue = std::mem::take(&mut world.queue);
            let (now, rest) = queue.into_iter().partition(is_late);
            (late, world.queue) = (now, rest);
            world.step(None);
        }
        world.run_for(Nanos::from_secs(60));
        assert_eq!(world.state(0), "active sync", "{level:?}");
        world.disks.get_mut(&0).unwrap().dead = true;
        world.queue.extend(late);
        world.wait(flush).unwrap();
        world.run_for(Nanos::from_secs(60));
        assert!(!world.events.contains(&Event::MemberFailed(slot(spare))));
        assert_eq!(world.state(0), "faulty", "{level:?}");
        assert_eq!(world.state(spare), "active sync", "{level:?}");
        world.check();
    }
}

#[test]
fn the_new_one_fails_and_nothing_else_happens() {
    let mut world = make(Level::Raid5, 3, true).start();
    world.write(0, 100, 1);
    world.replace(0).unwrap();
    world.disks.get_mut(&3).unwrap().dead = true;
    world.write(0, 100, 2);
    world.run_for(Nanos::from_secs(60));
    assert!(world.events.contains(&Event::MemberFailed(slot(3))));
    assert_eq!(world.state(3), "faulty");
    assert_eq!(world.array.status().health, "[UUU]");
    assert_eq!(world.read(0, 100), vec![2; 100 * SECTOR]);
    world.check();
}

#[test]
fn a_block_that_cannot_be_read_is_made_good_first() {
    for (level, members, log) in LEVELS {
        let (mut world, spare) = written(level, members, log);
        world.run_for(Nanos::from_secs(1));
        let bad = DATA_OFFSET + 33;
        world.disks.get_mut(&1).unwrap().unreadable.insert(bad);
        world.replace(1).unwrap();
        world.run_for(Nanos::from_secs(60));
        assert!(world.disks[&1].unreadable.is_empty(), "{level:?}");
        assert_eq!(world.state(spare), "active sync", "{level:?}");
        assert_eq!(world.state(1), "faulty");
        world.check();
        assert_eq!(world.read(0, 200), vec![5; 200 * SECTOR]);
    }
}

#[test]
fn a_member_that_cannot_be_read_for_good_fails() {
    let mut world = make(Level::Raid5, 3, false).start();
    world.write(0, 200, 5);
    world.run_for(Nanos::from_secs(1));
    let disk = world.disks.get_mut(&1).unwrap();
    disk.unreadable.insert(DATA_OFFSET + USED - 3);
    disk.unwritable.insert(DATA_OFFSET + USED - 3);
    world.replace(1).unwrap();
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.state(1), "faulty");
    assert_eq!(world.state(3), "active sync");
    assert_eq!(world.read(0, 200), vec![5; 200 * SECTOR]);
    world.check();
}

#[test]
fn a_device_may_be_added_for_it_and_several_replaced_at_once() {
    let make = Make {
        log: true,
        ..Make::new(Level::Raid6, 5)
    };
    let mut world = World::assemble(make.disks(), true, |_| ()).unwrap();
    world.write(0, 300, 3);
    for new in [5, 6] {
        add(&mut world, new, DATA_OFFSET + USED + 100).unwrap();
    }
    world.run_for(Nanos::from_millis(1));
    world.replace(0).unwrap();
    world.replace(4).unwrap();
    world.write(50, 100, 4);
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.array.status().health, "[UUUUU]");
    assert_eq!(world.state(5), "active sync");
    assert_eq!(world.state(6), "active sync");
    world.check();
    assert_eq!(world.read(50, 100), vec![4; 100 * SECTOR]);
}

/// Adds a device, write-mostly or not, and replaces another by it.
fn replace_by(world: &mut World, old: u16, new: u16, write_mostly: bool) {
    world.disks.insert(new, blank(SIZE));
    let device = NewDevice {
        write_mostly,
        ..new_device(new, SIZE)
    };
    world.add(new, device).unwrap();
    world.replace(old).unwrap();
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.state(new), "active sync");
}

/// The old device's flags are not the new one's.
#[test]
fn the_new_device_is_read_as_befits_it() {
    let mut world = Make::new(Level::Raid1, 2).start();
    let size = world.array.size().0;
    world.write(0, size, 5);
    let read_all = |world: &mut World| {
        for start in (0..size).step_by(8) {
            assert_eq!(world.read(start, 8), [5; 8 * SECTOR]);
        }
    };
    replace_by(&mut world, 0, 2, true);
    let before = world.disks[&2].reads;
    read_all(&mut world);
    assert_eq!(world.disks[&2].reads, before, "write-mostly");
    replace_by(&mut world, 2, 3, false);
    let before = world.disks[&1].reads;
    world.fail(1).unwrap();
    read_all(&mut world);
    assert_eq!(world.disks[&1].reads, before);
    world.remove(1).unwrap();
    world.disks.remove(&1);
    // Beside a write-mostly one it is the one that is read.
    let device = NewDevice {
        write_mostly: true,
        ..new_device(4, SIZE)
    };
    world.disks.insert(4, blank(SIZE));
    world.add(4, device).unwrap();
    world.run_for(Nanos::from_secs(60));
    let before = world.disks[&4].reads;
    read_all(&mut world);
    assert_eq!(world.disks[&4].reads, before, "write-mostly");
}
