//! Bad blocks, read-only arrays, failed writes, growth.

use crate::harness::{DATA_OFFSET, EXTERNAL, Landing, Make, SECTOR, USED, World, as_md};
use crate::spares::{SIZE, add, fail_and_remove};
use raidlab_array::{
    AssembleError, AssembleOptions, MdRules, Operation, PersistentArray, RequestError, SyncKind,
    Update,
};
use raidlab_geometry::Level;
use raidlab_metadata::Superblock;
use raidlab_units::{Bytes, Nanos, Sectors};

#[test]
fn a_block_that_nobody_has_stays_bad_until_it_is_written() {
    let make = Make {
        spares: 1,
        ..Make::new(Level::Raid1, 2)
    };
    let mut world = make.start();
    world.write(0, 200, 5);
    world.run_for(Nanos::from_secs(1));
    let bad = DATA_OFFSET + 42;
    world.disks.get_mut(&1).unwrap().unreadable.insert(bad);
    world.fail(0).unwrap();
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.array.status().health, "[UU]");
    let spare = world.disks[&2].metadata();
    assert!(!spare.bad_blocks.is_empty(), "its log names the block");
    assert!(
        spare
            .bad_blocks
            .iter()
            .all(|it| it.start.0 <= bad && bad < it.start.0 + it.count.0)
    );
    world.stop();

    let mut again = World::assemble(world.disks, false, |_| ()).unwrap();
    again.run_for(Nanos::from_secs(1));
    let read = again.submit(Operation::Read, 40, 8, 0);
    assert_eq!(again.wait(read), Err(RequestError::NoMember));
    assert_eq!(again.read(0, 40), vec![5; 40 * SECTOR]);
    assert_eq!(again.read(48, 100), vec![5; 100 * SECTOR]);
    again.write(40, 8, 9);
    again.run_for(Nanos::from_secs(1));
    assert_eq!(again.read(40, 8), vec![9; 8 * SECTOR]);
    let handles: Vec<u16> = again.disks.keys().copied().collect();
    for handle in handles {
        let metadata = again.disks[&handle].metadata();
        assert!(metadata.bad_blocks.is_empty(), "{handle}");
    }
    again.check();
}

#[test]
fn read_only_and_back() {
    for (level, members) in [(Level::Raid5, 3), (Level::Raid1, 2)] {
        let make = Make {
            spares: 1,
            ..Make::new(level, members)
        };
        let mut world = make.start();
        let write = world.submit(Operation::Write, 0, 100, 5);
        world.read_only().unwrap();
        let late = world.submit(Operation::Write, 0, 8, 6);
        assert_eq!(world.wait(late), Err(RequestError::ReadOnly));
        world.wait(write).unwrap();
        world.run_for(Nanos::from_secs(1));
        assert_eq!(world.superblock(0).resync_offset, Superblock::IN_SYNC);
        assert!(world.disks.values().all(|disk| disk.cache.is_empty()));
        let events = world.superblock(0).events;
        world.run_for(Nanos::from_secs(100));
        assert_eq!(world.superblock(0).events, events, "nothing is written");
        // A recovery waits meanwhile.
        world.fail(0).unwrap();
        world.run_for(Nanos::from_secs(10));
        assert!(world.array.status().health.contains('_'));
        world.read_write().unwrap();
        world.run_for(Nanos::from_millis(1));
        world.read_only().unwrap();
        world.run_for(Nanos::from_secs(10));
        world.read_write().unwrap();
        world.write(50, 8, 7);
        world.run_for(Nanos::from_secs(60));
        assert!(!world.array.status().health.contains('_'), "{level:?}");
        world.check();
        assert_eq!(world.read(0, 50), vec![5; 50 * SECTOR]);
        assert_eq!(world.read(50, 8), vec![7; 8 * SECTOR]);
    }
}

#[test]
fn a_dirty_mirror_that_may_not_be_written_is_read_from_one_member() {
    let mut disks = Make::new(Level::Raid1, 2).disks();
    for (handle, disk) in &mut disks {
        let mut superblock = disk.metadata().superblock;
        superblock.resync_offset = Sectors(0);
        let bytes = superblock.encode().unwrap();
        let at = usize::try_from(superblock.super_offset.0).unwrap() * SECTOR;
        disk.durable[at..at + bytes.len()].copy_from_slice(&bytes);
        let data = usize::try_from(DATA_OFFSET).unwrap() * SECTOR;
        disk.durable[data..].fill(u8::try_from(*handle).unwrap() + 1);
    }
    let mut world = World::assemble(disks, false, |options| options.read_only = true).unwrap();
    let reads: Vec<_> = (0..8)
        .map(|at| world.submit(Operation::Read, at * 8, 8, 0))
        .collect();
    let mut seen: Vec<u8> = Vec::new();
    for read in reads {
        world.wait(read).unwrap();
        seen.push(world.read[&read.0][0]);
    }
    assert!(seen.iter().all(|byte| *byte == seen[0]), "{seen:?}");
}

#[test]
fn a_write_that_failed_is_resynced_at_once() {
    let mut world = Make::new(Level::Raid1, 2).start();
    world.write(0, 256, 1);
    world.run_for(Nanos::from_secs(12));
    // Neither takes the write; the one that stays must not be trusted to hold
    // the old bytes.
    for disk in [0, 1] {
        world
            .disks
            .get_mut(&disk)
            .unwrap()
            .unwritable
            .insert(DATA_OFFSET + 100);
    }
    let write = world.submit(Operation::Write, 96, 8, 2);
    assert!(world.wait(write).is_err());
    for disk in [0, 1] {
        world.disks.get_mut(&disk).unwrap().unwritable.clear();
    }
    world.run_for(Nanos::from_secs(60));
    assert!(!world.array.status().state.not_in_sync);
    assert_eq!(world.array.status().bitmap_chunks.unwrap().1, 4);
}

const GROWN: u64 = 3 * USED;

fn grown(make: &Make) -> std::collections::BTreeMap<u16, crate::harness::Disk> {
    let mut world = make.start();
    world.write(0, 256, 5);
    world.stop();
    let mut disks = world.disks;
    for (handle, disk) in disks.iter_mut().filter(|(handle, _)| **handle != EXTERNAL) {
        // Rubbish, another on each.
        let rubbish = u8::try_from(*handle).unwrap() + 0x70;
        let bytes = usize::try_from(DATA_OFFSET + GROWN).unwrap() * SECTOR;
        disk.durable.resize(bytes, rubbish);
    }
    disks
}

fn to_the_full(options: &mut AssembleOptions) {
    options.update = Some(Update::Size);
}

#[test]
fn an_array_grows_to_what_its_members_have() {
    for (level, members, log) in [
        (Level::Raid1, 2, false),
        (Level::Raid10, 4, false),
        (Level::Raid5, 3, true),
        (Level::Raid6, 4, false),
    ] {
        let make = Make {
            log,
            ..Make::new(level, members)
        };
        let mut world = World::assemble(grown(&make), log, to_the_full).unwrap();
        let size = world.array.size().0;
        let before = make.start().array.size().0;
        assert_eq!(size, 3 * before, "{level:?}");
        world.write(size - 20, 20, 8);
        world.run_for(Nanos::from_secs(60));
        world.check();
        assert_eq!(world.superblock(0).used_size, Sectors(GROWN));
        assert_eq!(world.superblock(0).data_size, Sectors(GROWN));
        let mut again = World::assemble(world.disks, log, |_| ()).unwrap();
        assert_eq!(again.array.size().0, size);
        assert!(again.array.status().bitmap_chunks.unwrap().1 >= 12);
        assert_eq!(again.read(0, 256), vec![5; 256 * SECTOR]);
        assert_eq!(again.read(size - 20, 20), vec![8; 20 * SECTOR]);
        again.check();
    }
}

/// The file stays as long as it is: a bitmap that has too little room there gets larger
/// chunks, also where only the members were told of the growth.
#[test]
fn a_bitmap_in_a_file_keeps_to_its_length_when_the_array_grows() {
    let make = Make {
        external: true,
        ..Make::new(Level::Raid5, 3)
    };
    let in_the_room_of = |bytes: u64| {
        move |options: &mut AssembleOptions| {
            options.external_bitmap.as_mut().unwrap().room = Bytes(bytes);
            options.update = Some(Update::Size);
        }
    };
    let disks = grown(&make);
    let old = disks[&EXTERNAL].clone();
    // Of the superblock's 256 bytes and one for eight chunks; there are twelve.
    let mut world = World::assemble(disks.clone(), false, in_the_room_of(257)).unwrap();
    assert_eq!(world.array.status().bitmap_chunks.unwrap().1, 6);
    world.run_for(Nanos::from_secs(60));
    world.check();
    world.stop();
    world.disks.insert(EXTERNAL, old);
    let again = World::assemble(world.disks, false, in_the_room_of(257)).unwrap();
    assert_eq!(again.array.status().bitmap_chunks.unwrap().1, 6);
    let refused = World::assemble(disks, false, in_the_room_of(256));
    assert!(matches!(refused.err(), Some(AssembleError::CannotGrow(_))));
}

#[test]
fn growth_survives_cuts() {
    for log in [false, true] {
        let make = Make {
            log,
            ..Make::new(Level::Raid5, 3)
        };
        let disks = grown(&make);
        // The first superblocks and some of the resync behind them.
        for cut in (0..30).step_by(if log { 1 } else { 3 }) {
            let mut world = World::assemble(disks.clone(), log, to_the_full).unwrap();
            while world.executed < cut && world.step(None) {}
            for mut landing in Landing::kinds(cut as u64) {
                let left = world.cut(&mut landing);
                for change in [|_: &mut AssembleOptions| (), to_the_full] {
                    let mut again = World::assemble(left.clone(), log, change).unwrap();
                    again.run_for(Nanos::from_secs(60));
                    assert!(again.array.status().bitmap_chunks.is_some(), "cut {cut}");
                    assert_eq!(again.read(0, 256), vec![5; 256 * SECTOR], "cut {cut}");
                    again.check();
                    again.stop();
                    let third = World::assemble(again.disks, log, |_| ()).unwrap();
                    assert_eq!(third.array.status().health, "[UUU]", "cut {cut}");
                }
            }
        }
    }
}

#[test]
fn a_degraded_array_does_not_grow() {
    let make = Make::new(Level::Raid5, 3);
    let mut disks = grown(&make);
    disks.remove(&1);
    let refused = World::assemble(disks, false, |options| {
        options.run_degraded = true;
        to_the_full(options);
    });
    assert!(matches!(refused.err(), Some(AssembleError::CannotGrow(_))));
}

/// A mirror of our own, and one as md has it.
pub(crate) fn ours_and_mds() -> [(bool, World); 2] {
    [false, true].map(|imitates_md| {
        let disks = Make::new(Level::Raid1, 2).disks();
        let world = World::assemble_with(
            disks,
            false,
            |_| (),
            |engine| {
                engine.recovery.threads = as_md(MdRules::LINUX_6_12).filter(|_| imitates_md);
            },
        );
        (imitates_md, world.unwrap())
    })
}

/// Without a member all bits of an array of our own stay. md decides by write: what was
/// written while all were there goes, what ended while one was missing stays.
#[test]
fn md_keeps_the_bits_of_writes_that_end_while_a_member_is_missing() {
    for (imitates_md, mut world) in ours_and_mds() {
        world.write(0, 8, 1);
        world.disks.get_mut(&1).unwrap().dead = true;
        world.write(128, 8, 2);
        world.run_for(Nanos::from_secs(20));
        let bitmap = world.disks[&0].metadata().bitmap.unwrap();
        assert!(bitmap.test(2), "the second write's");
        assert_eq!(bitmap.test(0), !imitates_md, "the first one's");
    }
}

/// A bit goes when bits have aged twice without a write of its own, 5 s apart. md's thread
/// sleeps 5 s anew whenever anything has woken it, as a write elsewhere does that
/// calls the array dirty, and then clean.
#[test]
fn mds_bits_grow_older_while_its_thread_is_woken() {
    for (imitates_md, mut world) in ours_and_mds() {
        let is_set = |world: &World| world.disks[&0].metadata().bitmap.unwrap().test(0);
        world.write(0, 8, 1);
        world.run_for(Nanos::from_secs(8));
        world.write(128, 8, 2);
        world.run_for(Nanos::from_millis(4500));
        assert_eq!(is_set(&world), imitates_md, "after 12.5 s");
        world.run_for(Nanos::from_secs(2));
        assert!(!is_set(&world), "after 14.5 s");
    }
}

/// Linux drivers/md/md-bitmap.c, `bitmap_endwrite` and `bitmap_daemon_work`: the first pass writes
/// up to which event all members have all writes, and a bit that the second one clears is written
/// by the third if nothing else has its page written.
#[test]
fn md_writes_a_cleared_bit_a_pass_later_and_the_events_a_pass_earlier() {
    for (imitates_md, mut world) in ours_and_mds() {
        let told = |world: &World| {
            let bitmap = world.disks[&0].metadata().bitmap.unwrap();
            (bitmap.test(0), bitmap.superblock.events_cleared > 0)
        };
        world.write(0, 8, 1);
        world.run_for(Nanos::from_secs(7));
        assert_eq!(told(&world), (true, imitates_md), "after 7 s");
        world.run_for(Nanos::from_secs(5));
        assert_eq!(told(&world), (imitates_md, true), "after 12 s");
        world.run_for(Nanos::from_secs(5));
        assert_eq!(told(&world), (false, true), "after 17 s");
    }
}

/// Linux drivers/md/raid1.c, `raid1_unplug`: each process waits for its own bits.
#[test]
fn with_md_a_write_whose_bits_are_set_passes_one_that_waits() {
    for (imitates_md, mut world) in ours_and_mds() {
        world.write(0, 8, 1);
        let waits = world.submit(Operation::Write, 128, 8, 2);
        let passes = world.submit(Operation::Write, 8, 8, 3);
        let (first, second) = match imitates_md {
            true => (passes, waits),
            false => (waits, passes),
        };
        world.wait(first).unwrap();
        let known = world.finished.iter().any(|finished| finished.id == second);
        assert!(!known, "imitates md: {imitates_md}");
        world.wait(second).unwrap();
    }
}

/// A member comes while a check runs, and waits for its end to be filled.
#[test]
fn what_waits_for_a_check_begins_when_that_is_stopped_but_not_while_read_only() {
    for (level, members) in [(Level::Raid6, 4), (Level::Raid1, 3), (Level::Raid10, 4)] {
        let make = Make::new(level, members);
        let spare = u16::try_from(members).unwrap();
        let waiting = || {
            let mut world = World::assemble_frozen(make.disks(), false, |_| ()).unwrap();
            fail_and_remove(&mut world, 1);
            world.with(|array, now, out| array.check(now, out)).unwrap();
            add(&mut world, spare, SIZE).unwrap();
            world.run_for(Nanos::from_secs(1));
            let checks = world.array.status().sync.map(|sync| sync.kind);
            assert_eq!(checks, Some(SyncKind::Check), "{level}");
            world
        };
        let go_on = |world: &mut World| {
            world.with(PersistentArray::thaw_sync);
            world.run_for(Nanos::from_secs(60));
            !world.array.status().health.contains('_')
        };
        let mut world = waiting();
        world.with(PersistentArray::stop_sync);
        assert!(go_on(&mut world), "{level}: idle");
        let mut world = waiting();
        world.read_only().unwrap();
        assert!(!go_on(&mut world), "{level}: read-only");
        assert_eq!(world.disks[&spare].data_written, 0, "{level}");
        world.read_write().unwrap();
        assert!(go_on(&mut world), "{level}: read-write");
    }
}

/// What a member cannot read is written anew only where writes are taken.
#[test]
fn a_read_only_array_corrects_nothing_until_it_takes_writes() {
    for (level, members) in [(Level::Raid1, 2), (Level::Raid10, 4), (Level::Raid5, 3)] {
        let mut world = Make::new(level, members).start();
        let size = world.array.size().0;
        world.write(0, size, 5);
        world.read_only().unwrap();
        world.run_for(Nanos::from_secs(1));
        for (handle, disk) in &mut world.disks {
            // Each in another place.
            disk.unreadable
                .insert(DATA_OFFSET + 20 * u64::from(*handle));
        }
        let unreadable = |world: &mut World| {
            for start in (0..8).flat_map(|_| (0..size).step_by(8)) {
                let read = world.read(start, 8);
                assert_eq!(read, [5; 8 * SECTOR], "{level} at {start}");
            }
            world.run_for(Nanos::from_secs(1));
            let disks = world.disks.values();
            disks.map(|disk| disk.unreadable.len()).sum::<usize>()
        };
        assert_eq!(unreadable(&mut world), members, "{level}");
        world.read_write().unwrap();
        // The bytes are those that were there: no superblock has to know.
        world.strict = false;
        assert!(unreadable(&mut world) < members, "{level}");
    }
}
