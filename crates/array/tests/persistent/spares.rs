//! Spares, and devices that come too late or do not fit.

use crate::harness::{
    DATA_OFFSET, Disk, Make, SECTOR, USED, World, candidate, run_degraded, with_fine_bitmaps,
};
use raidlab_array::{NewDevice, Operation, VerbError};
use raidlab_geometry::Level;
use raidlab_metadata::Uuid;
use raidlab_units::{Nanos, Sectors};

pub fn blank(sectors: u64) -> Disk {
    Disk {
        durable: vec![0xbb; usize::try_from(sectors).unwrap() * SECTOR],
        ..Disk::default()
    }
}

pub fn new_device(handle: u16, sectors: u64) -> NewDevice {
    NewDevice {
        name: handle.to_string(),
        size: Sectors(sectors),
        rotational: false,
        write_mostly: false,
        uuid: Uuid([u8::try_from(handle).unwrap() + 100; 16]),
    }
}

/// Attaches a disk and adds it.
pub fn add(world: &mut World, handle: u16, sectors: u64) -> Result<(), VerbError> {
    world.disks.insert(handle, blank(sectors));
    let new = new_device(handle, sectors);
    world.add(handle, new)
}

pub fn fail_and_remove(world: &mut World, handle: u16) {
    fail_and_take_out(world, handle);
    world.disks.remove(&handle);
}

/// The same, and the disk is kept.
fn fail_and_take_out(world: &mut World, handle: u16) {
    world.fail(handle).unwrap();
    world.run_for(Nanos::from_millis(10));
    world.remove(handle).unwrap();
    world.run_for(Nanos::from_millis(10));
}

pub const SIZE: u64 = DATA_OFFSET + USED;

#[test]
fn a_device_added_after_two_losses_is_filled_at_once() {
    for (level, log) in [(Level::Raid6, true), (Level::Raid6, false)] {
        let make = Make {
            log,
            ..Make::new(level, 5)
        };
        let mut world = make.start();
        world.write(0, 300, 4);
        fail_and_remove(&mut world, 1);
        fail_and_remove(&mut world, 3);
        assert_eq!(world.array.status().health, "[U_U_U]");
        add(&mut world, 5, SIZE).unwrap();
        world.run_for(Nanos::from_secs(60));
        assert_eq!(world.array.status().health, "[UUU_U]");
        add(&mut world, 6, SIZE).unwrap();
        world.run_for(Nanos::from_secs(60));
        assert_eq!(world.array.status().health, "[UUUUU]");
        world.check();
        assert_eq!(world.read(0, 300), vec![4; 300 * SECTOR]);
    }
}

#[test]
fn two_devices_added_together_fill_two_slots() {
    for level in [Level::Raid6, Level::Raid10, Level::Raid1] {
        let members = if level == Level::Raid1 { 3 } else { 4 };
        let make = Make {
            log: level == Level::Raid6,
            ..Make::new(level, members)
        };
        let mut world = make.start();
        world.write(0, 200, 4);
        fail_and_remove(&mut world, 0);
        fail_and_remove(&mut world, 2);
        add(&mut world, 5, SIZE).unwrap();
        add(&mut world, 6, SIZE).unwrap();
        world.run_for(Nanos::from_secs(60));
        let status = world.array.status();
        assert!(!status.health.contains('_'), "{status:?}");
        assert_eq!(world.read(0, 200), vec![4; 200 * SECTOR]);
    }
}

#[test]
fn a_degraded_array_with_spares_recovers_when_it_is_assembled() {
    for (level, members, lost) in [
        (Level::Raid5, 3, vec![1]),
        (Level::Raid6, 5, vec![0, 4]),
        (Level::Raid1, 3, vec![0, 1]),
        (Level::Raid10, 4, vec![0, 3]),
    ] {
        let make = Make {
            spares: 2,
            log: level == Level::Raid6,
            ..Make::new(level, members)
        };
        let mut disks = make.disks();
        for disk in &lost {
            disks.remove(disk);
        }
        let mut world = World::assemble(disks, make.log, run_degraded).unwrap();
        world.write(0, 100, 7);
        world.run_for(Nanos::from_secs(60));
        let status = world.array.status();
        assert!(!status.health.contains('_'), "{level:?}: {status:?}");
        world.check();
        assert_eq!(world.read(0, 100), vec![7; 100 * SECTOR]);
    }
}

#[test]
fn a_device_without_room_is_refused() {
    let make = Make::new(Level::Raid5, 3);
    let mut world = make.start();
    let refused = add(&mut world, 5, SIZE - 1);
    assert!(matches!(refused, Err(VerbError::TooSmall { .. })));
}

#[test]
fn an_array_that_runs_without_its_log_says_so() {
    let make = Make::new(Level::Raid5, 3);
    let world = World::assemble(make.disks(), true, |_| ()).unwrap();
    assert_eq!(world.array.status().warnings, Vec::<String>::new());
    assert!(world.array.status().log > Sectors(0));
    // A spare with a bad-block log where the others have their write log.
    let mut disks = Make { spares: 1, ..make }.disks();
    for disk in disks.values_mut() {
        let mut superblock = disk.metadata().superblock;
        if let Some(log) = &mut superblock.bad_block_log {
            log.offset = i32::try_from(DATA_OFFSET).unwrap() - 16;
        }
        let bytes = superblock.encode().unwrap();
        let at = usize::try_from(superblock.super_offset.0).unwrap() * SECTOR;
        disk.durable[at..at + bytes.len()].copy_from_slice(&bytes);
        let at = usize::try_from(DATA_OFFSET).unwrap() * SECTOR;
        disk.durable[at - 8 * SECTOR..at].fill(0xff);
    }
    let world = World::assemble(disks, true, |_| ()).unwrap();
    let status = world.array.status();
    assert_eq!(status.log, Sectors(0));
    assert_eq!(status.warnings.len(), 1);
    assert!(status.warnings[0].contains("no write log"), "{status:?}");
}

/// It gets both pages of the bitmap, whatever pass was under way when it came.
#[test]
fn a_device_that_comes_during_a_pass_gets_the_whole_bitmap() {
    let make = Make {
        used: 31_000,
        ..Make::new(Level::Raid1, 3)
    };
    for re_added in [false, true] {
        for steps in 0..8 {
            let disks = with_fine_bitmaps(make.disks());
            let mut world = World::assemble_frozen(disks, false, |_| ()).unwrap();
            world.strict = false;
            fail_and_take_out(&mut world, 1);
            // Its bits are in the last page.
            world.write(make.used - 8, 8, 5);
            world.run_for(Nanos::from_secs(1));
            // A pass with superblocks begins: the array is dirty.
            world.submit(Operation::Write, 0, 8, 6);
            for _ in 0..steps {
                world.step(None);
            }
            let handle = if re_added { 1 } else { 5 };
            let came = match re_added {
                true => {
                    let back = candidate(1, &world.disks[&1]);
                    world.re_add(1, back)
                }
                false => add(&mut world, handle, DATA_OFFSET + make.used),
            };
            came.unwrap();
            world.run_for(Nanos::from_secs(1));
            let set = |handle: u16| {
                let bitmap = world.disks[&handle].metadata().bitmap.unwrap();
                bitmap.set_spans().collect::<Vec<_>>()
            };
            assert_eq!(set(0), set(handle), "re-added: {re_added}, {steps} steps");
        }
    }
}
