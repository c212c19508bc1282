//! Starts after crashes: what must not be believed, and what must not be lost.

use crate::harness::{
    DATA_OFFSET, Disk, Landing, Make, SECTOR, USED, World, candidate, run_degraded, slot,
};
use crate::spares::{add, fail_and_remove};
use raidlab_array::{
    AssembleError, AssembleOptions, MemberCommand, Operation, RequestError, VerbError,
};
use raidlab_geometry::Level;
use raidlab_metadata::create::InitialSync;
use raidlab_metadata::{Features, Superblock};
use raidlab_units::{Nanos, Sectors};

/// Changes a disk's superblock.
fn change(disk: &mut Disk, change: impl FnOnce(&mut Superblock)) {
    let mut superblock = disk.metadata().superblock;
    change(&mut superblock);
    let bytes = superblock.encode().unwrap();
    let at = usize::try_from(superblock.super_offset.0).unwrap() * SECTOR;
    disk.durable[at..at + bytes.len()].copy_from_slice(&bytes);
}

#[test]
fn a_former_member_waits_until_its_absence_is_recorded() {
    for level in [Level::Raid1, Level::Raid5] {
        let make = Make {
            log: level == Level::Raid5,
            ..Make::new(level, 3)
        };
        let mut disks = make.disks();
        let late = disks.remove(&1).unwrap();
        let mut world = World::assemble(disks, make.log, run_degraded).unwrap();
        let re_add = |world: &mut World| {
            world.disks.insert(1, late.clone());
            let late = candidate(1, &late);
            world.re_add(1, late)
        };
        // The others' superblocks still call it current: with its log emptied
        // it would be taken for that after a crash.
        assert_eq!(re_add(&mut world), Err(VerbError::SlotTaken(slot(1))));
        world.run_for(Nanos::from_millis(10));
        assert_eq!(re_add(&mut world), Ok(()));
        world.run_for(Nanos::from_secs(60));
        assert_eq!(world.array.status().health, "[UUU]");
    }
}

/// Each half of a mirror has run without the other: neither belongs to the other any more.
#[test]
fn a_member_that_has_run_alone_is_a_stranger() {
    let make = Make::new(Level::Raid1, 2);
    let mut disks = make.disks();
    let away = disks.remove(&1).unwrap();
    let mut alone = World::assemble([(1, away)].into(), false, run_degraded).unwrap();
    alone.write(64, 8, 7);
    alone.flush();
    let mut world = World::assemble(disks, false, run_degraded).unwrap();
    // The bitmap names what was written here, and nothing of what was written there.
    for value in 1..4 {
        world.write(0, 8, value);
        world.run_for(Nanos::from_secs(1));
    }
    let mut away = alone.disks[&1].clone();
    away.flush();
    let events = |disk: &Disk| disk.metadata().superblock.events;
    assert!(events(&away) <= events(&world.disks[&0]), "it is no newer");
    world.disks.insert(1, away.clone());
    let away = candidate(1, &away);
    let answer = world.re_add(1, away);
    assert_eq!(answer, Err(VerbError::Unwitnessed));
}

/// The power was cut between two members' superblocks, and the one that got the
/// newer one stays away.
#[test]
fn a_run_without_a_member_overtakes_it() {
    for level in [Level::Raid1, Level::Raid5] {
        let make = Make {
            bitmap: false,
            log: level == Level::Raid5,
            ..Make::new(level, 3)
        };
        let mut disks = make.disks();
        let mut away = disks.remove(&0).unwrap();
        change(&mut away, |superblock| superblock.events += 1);
        let mut world = World::assemble(disks, make.log, run_degraded).unwrap();
        world.write(0, 8, 5);
        let mut disks = world.disks.clone();
        for disk in disks.values_mut() {
            for (start, bytes) in std::mem::take(&mut disk.cache) {
                let at = usize::try_from(start).unwrap() * SECTOR;
                disk.durable[at..at + bytes.len()].copy_from_slice(&bytes);
            }
        }
        disks.insert(0, away);
        let mut world = World::assemble(disks, make.log, run_degraded).unwrap();
        assert_eq!(world.read(0, 8), vec![5; 8 * SECTOR], "{level:?}");
        assert_eq!(world.array.status().health, "[_UU]");
    }
}

/// A member has been copied to another device when the power is cut between two superblocks. The
/// array starts without the member, so that the copy takes its slot and counts as far, and the
/// power is cut once more. The two are alike, and the others know both.
#[test]
fn a_member_and_its_whole_copy_may_both_come_back() {
    let make = Make {
        spares: 1,
        bitmap: false,
        ..Make::new(Level::Raid1, 3)
    };
    let mut world = make.start();
    world.write(0, 200, 5);
    world.replace(1).unwrap();
    let is_copied = |world: &World| {
        let copy = world.superblock(3);
        copy.features.has(Features::REPLACEMENT) && copy.recovery_offset.0 >= USED
    };
    while !is_copied(&world) {
        assert!(world.step(None), "that is recorded before it is the member");
    }
    let cut = |world: &World| {
        let mut disks = world.disks.clone();
        for disk in disks.values_mut() {
            disk.cache.clear();
        }
        disks
    };
    for ahead in [&[0, 1][..], &[1]] {
        let mut disks = cut(&world);
        for disk in ahead {
            change(disks.get_mut(disk).unwrap(), |it| it.events += 1);
        }
        let away = disks.remove(&1).unwrap();
        let mut alone = World::assemble(disks, false, run_degraded).unwrap();
        while alone.step(None) {
            let mut disks = cut(&alone);
            // Handle 1 is the copy's now.
            disks.insert(9, away.clone());
            let mut both = World::assemble(disks, false, run_degraded).unwrap();
            assert_eq!(both.read(0, 200), vec![5; 200 * SECTOR]);
        }
    }
}

/// Its superblock was written, its bitmap was not.
#[test]
fn a_spare_without_its_bitmap_costs_the_array_no_log() {
    let make = Make {
        spares: 1,
        log: true,
        ..Make::new(Level::Raid5, 3)
    };
    let mut disks = make.disks();
    let spare = disks.get_mut(&3).unwrap();
    change(spare, |superblock| {
        superblock.features.0 |= raidlab_metadata::Features::BITMAP;
        superblock.bitmap_offset = 8;
    });
    let at = 16 * SECTOR;
    spare.durable[at..at + 8 * SECTOR].fill(0xee);
    assert_eq!(spare.metadata().bitmap, None);
    let mut world = World::assemble(disks, true, |_| ()).unwrap();
    let status = world.array.status();
    assert!(status.log > Sectors(0), "{status:?}");
    world.write(0, 64, 3);
    fail_and_remove(&mut world, 1);
    world.run_for(Nanos::from_secs(60));
    let status = world.array.status();
    assert_eq!(status.health, "[UUU]", "{status:?}");
}

#[test]
fn an_array_that_breaks_down_while_it_stops_stays_stopped() {
    for level in [Level::Raid1, Level::Raid5] {
        let make = Make::new(level, 2);
        let mut world = make.start();
        world.with(|array, now, out| array.stop(now, out));
        for disk in world.disks.values_mut() {
            disk.dead = true;
        }
        world.run_for(Nanos::from_secs(60));
        assert!(world.array.is_stopped(), "{:?}", world.array.status());
    }
}

/// Below the offset parity was made to fit before.
#[test]
fn what_was_resynced_before_a_restart_is_trusted() {
    let make = Make {
        bitmap: false,
        ..Make::new(Level::Raid5, 3)
    };
    let mut disks = make.disks();
    for disk in disks.values_mut() {
        change(disk, |superblock| superblock.resync_offset = Sectors(64));
    }
    let mut world = World::assemble(disks, false, |_| ()).unwrap();
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.superblock(0).resync_offset, Superblock::IN_SYNC);
    world.write(0, 32, 6);
    fail_and_remove(&mut world, 0);
    assert_eq!(world.read(0, 32), vec![6; 32 * SECTOR]);
    world.read(32, 480);
    add(&mut world, 5, crate::spares::SIZE).unwrap();
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.array.status().health, "[UUU]");
}

/// What could not be read when parity was to be made to fit is not computed
/// from it afterwards.
#[test]
fn a_resync_past_an_unreadable_block_invents_nothing() {
    let make = Make {
        bitmap: false,
        initial: InitialSync::Resync,
        ..Make::new(Level::Raid5, 3)
    };
    let mut disks = make.disks();
    let disk = disks.get_mut(&0).unwrap();
    let at = usize::try_from(DATA_OFFSET).unwrap() * SECTOR;
    disk.durable[at..at + 8 * SECTOR].fill(9);
    disk.unreadable.insert(DATA_OFFSET + 3);
    for disk in disks.values_mut() {
        // It has been in use: what is not in sync was torn by a crash.
        change(disk, |superblock| superblock.events = 2);
    }
    let mut world = World::assemble(disks, false, |_| ()).unwrap();
    world.run_for(Nanos::from_secs(60));
    world.with(|array, now, out| array.stop(now, out));
    world.run_for(Nanos::from_secs(60));
    let disks = world.disks.clone();
    let mut world = World::assemble(disks, false, |_| ()).unwrap();
    let lost = world.submit(Operation::Read, 0, 8, 0);
    assert_eq!(world.wait(lost), Err(RequestError::NoMember));
    world.read(8, 504);
    world.write(0, 16, 4);
    assert_eq!(world.read(0, 16), vec![4; 16 * SECTOR]);
}

/// A run begins with a replay, and meets a sector that cannot be read, which it writes anew. If
/// the power is cut before any superblock names the run, the log is replayed once more.
#[test]
fn a_run_that_no_superblock_names_leaves_the_log_of_the_run_before_alone() {
    let make = Make {
        log: true,
        ..Make::new(Level::Raid5, 3)
    };
    // So many that the log goes round.
    for writes in 1..50 {
        let mut world = World::assemble(make.disks(), true, |_| ()).unwrap();
        world.write(0, 512, 200);
        for value in 0..writes {
            world.write(48, 8, value);
        }
        world.flush();
        let mut disks = world.cut(&mut Landing::All);
        disks
            .get_mut(&0)
            .unwrap()
            .unreadable
            .insert(DATA_OFFSET + 64);
        let mut second = World::assemble(disks, true, |_| ()).unwrap();
        second.strict = false;
        let corrected = second.submit(Operation::Read, 144, 8, 0);
        second.engine_alone();
        second.wait(corrected).unwrap();
        let disks = second.cut(&mut Landing::All);
        let mut third = World::assemble(disks, true, |_| ()).unwrap();
        assert_eq!(
            third.read(48, 8),
            [writes - 1; 8 * SECTOR],
            "{writes} writes"
        );
        third.run_for(Nanos::from_secs(1));
        third.check();
    }
}

fn read_only(options: &mut AssembleOptions) {
    options.read_only = true;
}

/// Devices that are opened for reading refuse every write, which is no fault of theirs.
#[test]
fn an_array_that_may_write_nothing_loses_no_member_of_a_sector_that_cannot_be_read() {
    for (level, members) in [(Level::Raid1, 2), (Level::Raid10, 4), (Level::Raid5, 3)] {
        let mut world = Make::new(level, members).start();
        let size = world.array.size().0;
        world.write(0, size, 5);
        world.stop();
        let mut disks = world.cut(&mut Landing::All);
        for (handle, disk) in &mut disks {
            disk.unwritable = (0..DATA_OFFSET + USED).collect();
            // Each in another place.
            disk.unreadable
                .insert(DATA_OFFSET + 20 * u64::from(*handle));
        }
        let mut world = World::assemble(disks, false, read_only).unwrap();
        for _ in 0..8 {
            for start in (0..size).step_by(8) {
                assert_eq!(world.read(start, 8), [5; 8 * SECTOR], "{level} at {start}");
            }
        }
        assert!(!world.array.status().health.contains('_'), "{level}");
    }
}

/// The log of a crashed array is not replayed where nothing may be written, so its parity may
/// be that of bytes that are only in the log.
#[test]
fn what_is_torn_is_not_computed_from_without_leave_to_replay() {
    let make = Make {
        log: true,
        ..Make::new(Level::Raid5, 3)
    };
    let mut world = World::assemble(make.disks(), true, |_| ()).unwrap();
    world.write(0, 512, 5);
    world.flush();
    // Row 1: parity on member 1, data on members 2 and 0.
    world.submit(Operation::Write, 48, 8, 6);
    let row = Sectors(DATA_OFFSET + 16);
    let parity = loop {
        let is_parity = |it: &MemberCommand| {
            (it.slot, it.operation, it.start) == (slot(1), Operation::Write, row)
        };
        match world.queue.iter().position(is_parity) {
            Some(at) => break at,
            None => assert!(world.step(None)),
        }
    };
    world.queue.swap(0, parity);
    world.step(None);
    let mut disks = world.disks.clone();
    disks.values_mut().for_each(Disk::flush);
    disks.get_mut(&2).unwrap().unreadable.insert(row.0);
    let mut world = World::assemble(disks, true, read_only).unwrap();
    let id = world.submit(Operation::Read, 32, 8, 0);
    assert_eq!(world.wait(id), Err(RequestError::NoMember));
    assert_eq!(world.read(40, 8), [5; 8 * SECTOR]);
}

/// A crash without a log, and no redundancy is left: the array starts by force alone. From then on
/// what is missing is what the others give, so each later start needs no force.
#[test]
fn what_was_started_by_force_without_redundancy_starts_by_itself_afterwards() {
    for (level, members, lost) in [(Level::Raid5, 3, vec![2]), (Level::Raid6, 4, vec![1, 2])] {
        let mut world = Make::new(level, members).start();
        let size = world.array.size().0;
        world.write(0, size, 5);
        world.submit(Operation::Write, 48, 8, 6);
        world.step(None);
        let mut disks = world.cut(&mut Landing::All);
        disks.retain(|disk, _| !lost.contains(disk));
        let refused = World::assemble(disks.clone(), false, run_degraded).map(|_| ());
        assert!(
            matches!(refused, Err(AssembleError::DirtyDegraded { .. })),
            "{level}: {refused:?}"
        );
        let force = |options: &mut AssembleOptions| options.force = true;
        let mut world = World::assemble(disks, false, force).unwrap();
        world.run_for(Nanos::from_secs(30));
        assert!(!world.array.status().state.not_in_sync, "{level}");
        let bytes = world.read(0, size);
        world.write(0, 8, 7);
        world.stop();
        let mut again = World::assemble(world.disks, false, |_| ()).unwrap();
        assert!(again.read(8, size - 8) == bytes[8 * SECTOR..], "{level}");
    }
}
