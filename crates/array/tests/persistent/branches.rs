//! Two runs that began at the same superblocks count as many events: each time, one of them was
//! cut off before it began, and what it left behind must not be taken for the truth of the other.

use crate::harness::{
    Disk, EXTERNAL, Landing, Make, SECTOR, World, run_degraded, slot, with_fine_bitmaps,
};
use crate::spares::{SIZE, add, fail_and_remove};
use raidlab_array::{AssembleOptions, Operation, Purpose, Stale};
use raidlab_geometry::Level;
use raidlab_metadata::Bitmap;
use raidlab_units::Nanos;
use std::collections::BTreeMap;

fn events(disk: &Disk) -> u64 {
    disk.metadata().superblock.events
}

/// Does commands, those to this disk first, until its superblock has changed, or what the
/// bitmap's file says of itself.
fn until_superblock_of(world: &mut World, handle: u16) {
    let head = |world: &World| match handle {
        EXTERNAL => world.disks[&handle].durable[..256].to_vec(),
        _ => world.disks[&handle].durable[..16 * SECTOR].to_vec(),
    };
    let before = head(world);
    while head(world) == before {
        let at = world.queue.iter().position(|it| it.slot == slot(handle));
        if let Some(command) = at.and_then(|at| world.queue.remove(at)) {
            world.queue.push_front(command);
        }
        assert!(world.step(None));
    }
}

/// The disks after a power cut in which a write to the sectors 0 to 8 reached one member only.
fn torn(mut world: World, has_it: u16) -> BTreeMap<u16, Disk> {
    world.submit(Operation::Write, 0, 8, 9);
    while world.step(None) {}
    let mut disks = world.cut(&mut Landing::None);
    let whole = world.cut(&mut Landing::All);
    disks.insert(has_it, whole[&has_it].clone());
    disks
}

fn copies_agree(disks: BTreeMap<u16, Disk>, change: impl FnOnce(&mut AssembleOptions)) {
    let mut world = World::assemble(disks, false, change).unwrap();
    world.run_for(Nanos::from_secs(60));
    world.check();
}

/// Only the spare itself has heard that it takes a slot, and stays away while the others run.
#[test]
fn a_spare_that_alone_knows_of_its_slot_says_nothing_of_the_others() {
    let make = Make::new(Level::Raid1, 3);
    let mut world = make.start();
    world.write(0, 8, 5);
    fail_and_remove(&mut world, 0);
    world.run_for(Nanos::from_secs(20));
    add(&mut world, 3, SIZE).unwrap();
    until_superblock_of(&mut world, 3);
    let mut disks = world.cut(&mut Landing::None);
    let spare = disks.remove(&3).unwrap();
    assert_eq!(events(&spare), events(&disks[&1]) + 1);
    let world = World::assemble(disks, false, |_| ()).unwrap();
    let mut disks = torn(world, 1);
    assert_eq!(events(&spare), events(&disks[&1]));
    disks.insert(3, spare);
    copies_agree(disks, |_| ());
}

/// The member that was away is as new as the others, who have written of its absence but once.
#[test]
fn a_member_as_new_as_those_who_call_it_failed_is_given_no_slot_at_once() {
    for stale in [Stale::ReAdd, Stale::Rebuild] {
        let make = Make::new(Level::Raid1, 2);
        let world = make.start();
        let mut disks = torn(world, 0);
        let mut away = disks.remove(&1).unwrap();
        let mut superblock = away.metadata().superblock;
        superblock.events += 1;
        away.land(superblock.super_offset.0, &superblock.encode().unwrap());
        let mut world = World::assemble(disks, false, run_degraded).unwrap();
        until_superblock_of(&mut world, 0);
        let mut disks = world.cut(&mut Landing::None);
        assert_eq!(events(&away), events(&disks[&0]));
        disks.insert(1, away);
        let take = |options: &mut AssembleOptions| {
            options.run_degraded = true;
            options.stale = stale;
        };
        let mut world = World::assemble(disks, false, take).unwrap();
        until_superblock_of(&mut world, 0);
        let disks = world.cut(&mut Landing::None);
        copies_agree(disks, take);
    }
}

/// The file with the bitmap is away while the array runs, and then comes back.
#[test]
fn a_bitmap_that_was_away_is_out_of_date() {
    let make = Make {
        external: true,
        ..Make::new(Level::Raid1, 2)
    };
    let mut world = make.start();
    world.write(100, 8, 5);
    world.run_for(Nanos::from_secs(20));
    world.submit(Operation::Write, 200, 8, 6);
    until_superblock_of(&mut world, EXTERNAL);
    let mut disks = world.cut(&mut Landing::None);
    let file = disks.remove(&EXTERNAL).unwrap();
    let mut disks = torn(World::assemble(disks, false, |_| ()).unwrap(), 1);
    disks.insert(EXTERNAL, file);
    copies_agree(disks, |_| ());
}

/// A write of the bitmap's file fails, and its first sector has landed all the same: no write
/// relies on the rest before the file is out of date.
#[test]
fn a_bitmap_written_in_part_is_out_of_date_before_anything_is_written() {
    let make = Make {
        external: true,
        used: 4096,
        ..Make::new(Level::Raid1, 2)
    };
    let disks = with_fine_bitmaps(make.disks());
    let mut world = World::assemble(disks, false, |_| ()).unwrap();
    world.strict = false;
    world.run_for(Nanos::from_secs(20));
    // The bit is in the second sector of the file.
    world.submit(Operation::Write, 3000, 8, 9);
    while !world
        .queue
        .iter()
        .any(|it| it.slot == slot(EXTERNAL) && it.operation == Operation::Write)
    {
        assert!(world.step(None));
    }
    let file = world.disks.get_mut(&EXTERNAL).unwrap();
    file.unwritable.insert(0);
    let mut bitmap = Bitmap::decode(&file.durable).unwrap();
    bitmap.superblock.events += 1;
    let first = bitmap.encode()[..SECTOR].to_vec();
    file.land(0, &first);
    while !world
        .queue
        .iter()
        .any(|it| it.purpose == Purpose::Foreground)
    {
        if !world.step(None) {
            break;
        }
    }
    let mut disks = world.cut(&mut Landing::None);
    let whole = world.cut(&mut Landing::All);
    disks.insert(0, whole[&0].clone());
    copies_agree(disks, |_| ());
}
