//! Members that come with a bad-block log: what it names is never read, and a good
//! write takes it off the log, on the medium too and not before its bytes are there.

use crate::harness::{
    DATA_OFFSET, Disk, Landing, Make, SECTOR, USED, World, candidate, run_degraded, slot,
};
use raidlab_array::{Operation, Stale};
use raidlab_geometry::Level;
use raidlab_metadata::{BadBlockEntry, Features};
use raidlab_units::{Nanos, Sectors};

/// What lies under bad blocks.
const RUBBISH: u8 = 0xbb;

/// Sectors of the data area that the log names.
const BAD: (u64, u64) = (40, 48);

fn arrays() -> [Make; 5] {
    [
        Make::new(Level::Raid1, 2),
        Make::new(Level::Raid10, 4),
        Make::new(Level::Raid4, 3),
        Make::new(Level::Raid5, 3),
        Make::new(Level::Raid6, 4),
    ]
}

/// A disk whose bytes in these ranges of its data area are gone, and whose log says
/// so.
fn lose(disk: &mut Disk, ranges: &[(u64, u64)]) {
    let mut superblock = disk.metadata().superblock;
    let entries = ranges.iter().map(|(start, end)| BadBlockEntry {
        start: Sectors(DATA_OFFSET + start),
        count: Sectors(end - start),
    });
    let log = superblock.bad_block_log.unwrap();
    let bytes = log.encode(&entries.collect::<Vec<_>>()).unwrap();
    let at = superblock
        .super_offset
        .0
        .checked_add_signed(log.offset.into());
    disk.land(at.unwrap(), &bytes);
    superblock.features = Features(superblock.features.0 | Features::BAD_BLOCKS);
    disk.land(superblock.super_offset.0, &superblock.encode().unwrap());
    for sector in ranges.iter().flat_map(|(start, end)| *start..*end) {
        disk.land(DATA_OFFSET + sector, &[RUBBISH; SECTOR]);
    }
}

fn is_logged(disk: &Disk) -> bool {
    !disk.metadata().bad_blocks.is_empty()
}

/// The array with all of it written, whose member 1 was away and comes back with a
/// bad-block log.
fn back_with_a_log(make: &Make, ranges: &[(u64, u64)]) -> World {
    let mut world = make.start();
    let size = world.array.size().0;
    world.write(0, size, 5);
    // The bitmap is clean.
    world.run_for(Nanos::from_secs(12));
    world.fail(1).unwrap();
    world.run_for(Nanos::from_secs(1));
    world.remove(1).unwrap();
    world.run_for(Nanos::from_secs(1));
    lose(world.disks.get_mut(&1).unwrap(), ranges);
    let back = candidate(1, &world.disks[&1]);
    world.re_add(1, back).unwrap();
    world.run_for(Nanos::from_secs(30));
    assert!(!world.array.status().health.contains('_'), "{make:?}");
    world
}

/// Many reads: where a choice is made between copies, of both.
fn reads_are(world: &mut World, value: u8) {
    let size = world.array.size().0;
    for _ in 0..40 {
        for start in (0..size).step_by(8) {
            let bytes = world.read(start, 8);
            assert_eq!(bytes, [value; 8 * SECTOR], "from sector {start} on");
        }
    }
}

#[test]
fn what_the_log_of_a_member_names_is_not_read_after_a_re_add() {
    for make in arrays() {
        let mut world = back_with_a_log(&make, &[BAD]);
        let device = &world.array.status().devices[1];
        assert_eq!(device.bad_sectors, Sectors(8), "{make:?}");
        reads_are(&mut world, 5);
        // A check changes nothing, and finds nothing where nothing can be compared.
        world.check();
        assert!(is_logged(&world.disks[&1]), "{make:?}");
    }
}

#[test]
fn a_repair_gives_bad_blocks_the_right_bytes() {
    for make in arrays() {
        let mut world = back_with_a_log(&make, &[BAD, (100, 101)]);
        world
            .with(|array, now, out| array.repair(now, out))
            .unwrap();
        world.run_for(Nanos::from_secs(60));
        reads_are(&mut world, 5);
        assert!(!is_logged(&world.disks[&1]), "{make:?}");
        world.check();
        // Each of the others can be missed now.
        world.fail(0).unwrap();
        reads_are(&mut world, 5);
    }
}

/// Does what is in flight one command at a time; whenever the log on the medium has
/// nothing any more, the medium has the right bytes.
fn is_cleared_in_order(world: &mut World, handle: u16, value: u8) {
    let first = usize::try_from(DATA_OFFSET + BAD.0).unwrap() * SECTOR;
    let deadline = world.now + Nanos::from_secs(60);
    loop {
        let disk = &world.disks[&handle];
        let bytes = &disk.durable[first..first + 8 * SECTOR];
        assert!(
            is_logged(disk) || *bytes == [value; 8 * SECTOR],
            "the log lets go of {handle} at {}",
            world.now
        );
        if !world.step(None) {
            let next = world.array.next_tick().filter(|at| *at <= deadline);
            let Some(next) = next else { break };
            world.now = world.now.max(next);
            world.tick();
        }
    }
    assert!(!is_logged(&world.disks[&handle]));
}

#[test]
fn a_good_write_takes_a_range_off_the_log_once_it_is_on_the_medium() {
    for make in arrays() {
        let mut world = back_with_a_log(&make, &[BAD]);
        // The whole array, so that every level writes all of the bad range.
        let size = world.array.size().0;
        for start in (0..size).step_by(64) {
            world.submit(Operation::Write, start, (size - start).min(64), 9);
        }
        let parity = make.level.parity_count() > 0;
        match (make.level, parity) {
            // What the row's block is depends on the level: the bytes are looked
            // at by reading without another member.
            (_, true) => world.run_for(Nanos::from_secs(60)),
            _ => is_cleared_in_order(&mut world, 1, 9),
        }
        assert!(!is_logged(&world.disks[&1]), "{make:?}");
        let mut again = World::assemble(world.disks, make.log, |_| ()).unwrap();
        again.fail(0).unwrap();
        reads_are(&mut again, 9);
    }
}

#[test]
fn a_stale_member_that_is_filled_anew_has_its_log_cleared_as_it_is_filled() {
    for make in arrays() {
        let make = Make {
            bitmap: false,
            ..make
        };
        let mut world = make.start();
        let size = world.array.size().0;
        world.write(0, size, 3);
        world.fail(1).unwrap();
        world.run_for(Nanos::from_secs(1));
        world.write(0, size, 5);
        world.run_for(Nanos::from_secs(1));
        world.stop();
        lose(world.disks.get_mut(&1).unwrap(), &[BAD]);
        let mut again = World::assemble(world.disks, make.log, |options| {
            options.stale = Stale::Rebuild;
        })
        .unwrap();
        match make.level {
            Level::Raid1 | Level::Raid10 => is_cleared_in_order(&mut again, 1, 5),
            _ => again.run_for(Nanos::from_secs(60)),
        }
        assert!(!again.array.status().health.contains('_'), "{make:?}");
        assert!(!is_logged(&again.disks[&1]), "{make:?}");
        let mut third = World::assemble(again.disks, make.log, |_| ()).unwrap();
        third.fail(0).unwrap();
        reads_are(&mut third, 5);
    }
}

#[test]
fn a_spare_with_an_old_log_loses_it_as_it_is_filled() {
    for make in arrays() {
        let make = Make { spares: 1, ..make };
        let mut disks = make.disks();
        let number = u16::try_from(make.members).unwrap();
        lose(disks.get_mut(&number).unwrap(), &[BAD]);
        let mut world = World::assemble(disks, make.log, |_| ()).unwrap();
        let size = world.array.size().0;
        world.write(0, size, 5);
        world.fail(1).unwrap();
        world.run_for(Nanos::from_secs(60));
        assert!(!world.array.status().health.contains('_'), "{make:?}");
        assert!(!is_logged(&world.disks[&number]), "{make:?}");
        world.fail(0).unwrap();
        reads_are(&mut world, 5);
    }
}

/// An array with a spare, all of it written, whose member 1 has a bad-block log.
fn begins_with_a_log(make: &Make, ranges: &[(u64, u64)]) -> World {
    let mut world = Make { spares: 1, ..*make }.start();
    let size = world.array.size().0;
    world.write(0, size, 5);
    world.stop();
    lose(world.disks.get_mut(&1).unwrap(), ranges);
    World::assemble(world.disks, make.log, |_| ()).unwrap()
}

fn replace_the_second(world: &mut World) {
    world.replace(1).unwrap();
    world.run_for(Nanos::from_secs(60));
}

#[test]
fn a_replacement_has_what_the_log_of_the_old_one_names() {
    for make in arrays() {
        let mut world = begins_with_a_log(&make, &[(0, 3), BAD, (100, 141), (USED - 1, USED)]);
        let new = u16::try_from(make.members).unwrap();
        replace_the_second(&mut world);
        assert_eq!(world.array.served()[1], Some(slot(new)), "{make:?}");
        assert!(!is_logged(&world.disks[&new]), "{make:?}");
        world.fail(0).unwrap();
        reads_are(&mut world, 5);
    }
}

/// A write that was sent before the replacement began gives a bad block its bytes, on the old
/// device alone. The superblocks do not call the new one filled there.
#[test]
fn what_is_no_longer_bad_on_the_old_device_alone_is_not_filled_on_the_new_one() {
    for make in arrays() {
        let mut world = begins_with_a_log(&make, &[(0, 8)]);
        let new = u16::try_from(make.members).unwrap();
        let size = world.array.size().0;
        world.submit(Operation::Write, 0, size, 6);
        while world.queue.is_empty() || world.queue.iter().any(|it| it.start.0 < DATA_OFFSET) {
            assert!(world.step(None), "{make:?}");
        }
        world.replace(1).unwrap();
        world.stop();
        let mut world = World::assemble(world.disks, make.log, |_| ()).unwrap();
        world.run_for(Nanos::from_secs(60));
        assert_eq!(world.array.served()[1], Some(slot(new)), "{make:?}");
        world.fail(0).unwrap();
        reads_are(&mut world, 6);
    }
}

/// Where nobody else has the bytes, the new device's log says so.
#[test]
fn what_nobody_has_stays_bad_on_the_replacement() {
    let make = Make::new(Level::Raid1, 2);
    let mut world = begins_with_a_log(&make, &[BAD]);
    world.stop();
    lose(world.disks.get_mut(&0).unwrap(), &[BAD]);
    let mut world = World::assemble(world.disks, make.log, |_| ()).unwrap();
    replace_the_second(&mut world);
    assert_eq!(world.array.served()[1], Some(slot(2)));
    assert!(is_logged(&world.disks[&2]));
    let read = world.submit(Operation::Read, BAD.0, 8, 0);
    assert!(world.wait(read).is_err());
    assert_eq!(world.read(0, BAD.0), vec![5; BAD.0 as usize * SECTOR]);
}

#[test]
fn an_entry_that_begins_in_front_of_the_data_counts_within_them() {
    let make = Make::new(Level::Raid1, 2);
    let mut disks = make.disks();
    let disk = disks.get_mut(&1).unwrap();
    lose(disk, &[(0, 4)]);
    let superblock = disk.metadata().superblock;
    let log = superblock.bad_block_log.unwrap();
    let entry = BadBlockEntry {
        start: Sectors(DATA_OFFSET - 4),
        count: Sectors(8),
    };
    let at = superblock
        .super_offset
        .0
        .checked_add_signed(log.offset.into());
    disk.land(at.unwrap(), &log.encode(&[entry]).unwrap());
    let mut world = World::assemble(disks, false, |_| ()).unwrap();
    reads_are(&mut world, 0);
}

#[test]
fn a_write_in_the_middle_of_a_full_log_costs_no_member() {
    let make = Make::new(Level::Raid1, 2);
    // 64 entries a sector: 512 of two sectors do not fit the data, so that most of
    // the log is of sectors in front of them.
    let mut disks = make.disks();
    let disk = disks.get_mut(&1).unwrap();
    lose(disk, &[(0, USED)]);
    let superblock = disk.metadata().superblock;
    let log = superblock.bad_block_log.unwrap();
    let others = (0..(log.capacity() - 1) as u64).map(|number| BadBlockEntry {
        start: Sectors(2 * DATA_OFFSET + 2 * number),
        count: Sectors(1),
    });
    let all = BadBlockEntry {
        start: Sectors(DATA_OFFSET),
        count: Sectors(USED),
    };
    let entries: Vec<_> = others.chain([all]).collect();
    let at = superblock
        .super_offset
        .0
        .checked_add_signed(log.offset.into());
    disk.land(at.unwrap(), &log.encode(&entries).unwrap());
    let mut world = World::assemble(disks, false, |_| ()).unwrap();
    world.write(100, 8, 7);
    world.run_for(Nanos::from_secs(1));
    assert_eq!(world.array.status().health, "[UU]");
    assert_eq!(world.read(100, 8), [7; 8 * SECTOR]);
    let logged = |world: &World, sector: u64| {
        let log = world.disks[&1].metadata().bad_blocks;
        let at = Sectors(DATA_OFFSET + sector);
        log.iter()
            .any(|entry| entry.start <= at && at.0 < entry.start.0 + entry.count.0)
    };
    assert!(logged(&world, 99) && logged(&world, 108));
    // What can be taken off is.
    world.write(0, 8, 7);
    world.run_for(Nanos::from_secs(1));
    assert!(!logged(&world, 0) && logged(&world, 8));
}

/// A degraded array cannot spare a member that does not take a write: its place is bad, and
/// until its bad-block log says so only the write log tells what it lacks. A power cut may come
/// however much else has been logged meanwhile.
#[test]
fn the_write_log_holds_what_a_bad_block_lacks_until_that_is_recorded() {
    let make = Make {
        log: true,
        ..Make::new(Level::Raid5, 3)
    };
    let mut world = make.start();
    let size = world.array.size().0;
    world.write(0, size, 5);
    world.fail(2).unwrap();
    world.run_for(Nanos::from_secs(1));
    // Row 0 has its parity on the member that is gone, row 1 on member 1.
    world.write(0, 32, 6);
    let disk = world.disks.get_mut(&0).unwrap();
    disk.unwritable.insert(DATA_OFFSET + 16);
    let lacking = world.submit(Operation::Write, 48, 8, 6);
    world.engine_alone();
    let found = |world: &World| world.array.status().devices[0].bad_sectors;
    assert_eq!(found(&world), Sectors(8));
    let waits = world.array.waits();
    let holds = |line: &String| line.contains("the write log waits until superblocks");
    assert!(waits.iter().any(holds), "{waits:?}");
    for _ in 0..3 {
        world.submit(Operation::Write, 0, 32, 7);
        world.engine_alone();
        world.submit(Operation::Flush, 0, 0, 0);
        world.engine_alone();
    }
    assert!(!is_logged(&world.disks[&0]));
    let disks = world.cut(&mut Landing::All);
    let mut again = World::assemble(disks, true, run_degraded).unwrap();
    // Row 1 has its first data block on the member that is gone.
    let id = again.submit(Operation::Read, 32, 8, 0);
    let right = again.wait(id).is_err() || again.read[&id.0] == [5; 8 * SECTOR];
    assert!(right, "what was flushed long before has changed");
    // Without the power cut all goes on once it is recorded.
    world.run_for(Nanos::from_secs(1));
    assert!(is_logged(&world.disks[&0]));
    assert!(world.wait(lacking).is_err());
    assert_eq!(world.read(0, 32), [7; 32 * SECTOR]);
    // It needs no force to start again.
    world.with(|array, now, out| array.stop(now, out));
    world.run_for(Nanos::from_secs(60));
    let mut again = World::assemble(world.disks.clone(), true, run_degraded).unwrap();
    assert_eq!(again.read(0, 32), [7; 32 * SECTOR]);
}

/// Two members cannot read the same place, so a write to a part of it fails. What lies beside
/// it in the same rows, where only one of them cannot read, is still there.
#[test]
fn a_write_that_fails_costs_nothing_beside_it() {
    let mut world = Make::new(Level::Raid5, 3).start();
    let size = world.array.size().0;
    world.write(0, size, 5);
    world.run_for(Nanos::from_secs(30));
    for (disk, sector) in [(0, 3), (1, 3), (0, 11)] {
        let disk = world.disks.get_mut(&disk).unwrap();
        disk.unreadable.insert(DATA_OFFSET + sector);
    }
    let write = world.submit(Operation::Write, 0, 1, 6);
    assert!(world.wait(write).is_err());
    world.run_for(Nanos::from_secs(30));
    assert_eq!(world.read(8, 8), [5; 8 * SECTOR]);
    assert!(
        world
            .array
            .status()
            .devices
            .iter()
            .all(|it| it.bad_sectors == Sectors(0))
    );
}
