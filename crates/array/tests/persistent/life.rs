//! One thing after the other, without power cuts.

use crate::harness::{DATA_OFFSET, Disk, Make, USED, World, candidate, slot};
use raidlab_array::{Event, NewDevice, Operation, RequestError, Stale, VerbError};
use raidlab_geometry::Level;
use raidlab_metadata::create::InitialSync;
use raidlab_metadata::{Role, Superblock, Uuid};
use raidlab_units::{Nanos, Sectors};

fn raid5() -> Make {
    Make::new(Level::Raid5, 3)
}

/// The bits set on a disk.
fn bits(disk: &Disk) -> u64 {
    disk.metadata().bitmap.unwrap().count_set()
}

#[test]
fn dirty_before_data_clean_after_a_pause_bits_after_two_passes() {
    let mut world = raid5().start();
    world.run_for(Nanos::from_millis(1));
    let events = world.superblock(0).events;
    assert!(events > 0, "a start counts as an event");
    world.write(0, 8, 1);
    assert_eq!(world.superblock(2).resync_offset, Sectors(0));
    assert_eq!(world.superblock(1).events, events + 1);
    world.run_for(Nanos::from_millis(199));
    assert_eq!(world.superblock(0).resync_offset, Sectors(0));
    world.run_for(Nanos::from_millis(2));
    for disk in 0..3 {
        assert_eq!(world.superblock(disk).resync_offset, Superblock::IN_SYNC);
        assert_eq!(world.superblock(disk).events, events + 2);
        assert_eq!(bits(&world.disks[&disk]), 1);
        assert!(world.disks[&disk].cache.is_empty(), "clean means flushed");
    }
    world.run_for(Nanos::from_secs(11));
    for disk in 0..3 {
        assert_eq!(bits(&world.disks[&disk]), 0);
    }
    assert_eq!(world.array.next_tick(), None, "nothing is left to do");
}

#[test]
fn clean_is_not_said_of_a_member_whose_flush_failed() {
    let mut world = raid5().start();
    world.run_for(Nanos::from_millis(1));
    world.write(0, 8, 1);
    world.disks.get_mut(&1).unwrap().dead = true;
    world.now += Nanos::from_millis(201);
    world.tick();
    while world.superblock(0).resync_offset != Superblock::IN_SYNC {
        assert!(world.step(None), "the array never became clean");
    }
    assert_eq!(world.superblock(0).roles[1], Role::Faulty);
}

/// One of the two that fail can be spared; the other cannot, and what it had in
/// its cache is not on its medium.
#[test]
fn clean_is_not_said_when_the_flush_of_a_needed_member_failed() {
    let mut world = raid5().start();
    world.run_for(Nanos::from_millis(1));
    world.write(0, 8, 1);
    for disk in [1, 2] {
        world.disks.get_mut(&disk).unwrap().dead = true;
    }
    world.run_for(Nanos::from_secs(1));
    assert!(world.array.status().state.failed);
    assert_eq!(world.superblock(0).resync_offset, Sectors(0));
    assert!(world.array.is_idle(), "nothing is owed to anybody");
}

/// The order to go on comes while blocks of the sync that was stopped are still
/// under way.
#[test]
fn a_stopped_sync_goes_on_whenever_writes_are_taken_again() {
    for (level, members) in [(Level::Raid1, 2), (Level::Raid5, 3)] {
        let make = Make {
            spares: 1,
            ..Make::new(level, members)
        };
        for steps in 0..30 {
            let mut world = make.start();
            world.run_for(Nanos::from_millis(1));
            world.fail(0).unwrap();
            for _ in 0..steps {
                world.step(None);
            }
            world.with(|array, now, out| {
                array.stop_sync(now, out);
                array.read_only(now, out).unwrap();
                array.read_write(now, out).unwrap();
            });
            world.run_for(Nanos::from_secs(60));
            let health = world.array.status().health;
            assert!(!health.contains('_'), "{level}: {health} after {steps}");
        }
    }
}

#[test]
fn a_bit_stays_when_the_flush_before_its_clearing_fails() {
    let mut world = raid5().start();
    world.run_for(Nanos::from_millis(1));
    world.write(0, 8, 1);
    world.run_for(Nanos::from_secs(6));
    world.disks.get_mut(&1).unwrap().dead = true;
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.array.status().health, "[U_U]");
    assert_eq!(bits(&world.disks[&0]), 1, "what disk 1 lacks of it");
    assert_eq!(bits(&world.disks[&2]), 1);
}

#[test]
fn many_writes_share_a_pass() {
    let mut world = raid5().start();
    world.run_for(Nanos::from_millis(1));
    let events = world.superblock(0).events;
    let writes: Vec<_> = (0..20)
        .map(|at| world.submit(Operation::Write, at * 16, 8, 9))
        .collect();
    for write in writes {
        world.wait(write).unwrap();
    }
    assert_eq!(world.superblock(0).events, events + 1);
}

#[test]
fn reads_do_not_wait() {
    let mut world = raid5().start();
    world.queue.clear();
    let write = world.submit(Operation::Write, 0, 8, 1);
    assert_eq!(world.array.status().held, 1, "the first pass never ends");
    let read = world.submit(Operation::Read, 64, 8, 0);
    world.wait(read).unwrap();
    assert!(!world.finished.iter().any(|finished| finished.id == write));
}

#[test]
fn a_stopped_array_is_clean_and_refuses_writes() {
    for log in [false, true] {
        let make = Make { log, ..raid5() };
        let mut world = make.start();
        let write = world.submit(Operation::Write, 3, 20, 5);
        world.with(|array, now, out| array.stop(now, out));
        let late = world.submit(Operation::Write, 0, 8, 6);
        assert_eq!(world.wait(late), Err(RequestError::ReadOnly));
        while world.step(None) {}
        assert_eq!(world.wait(write), Ok(()), "what came before is done");
        assert!(world.array.is_stopped());
        for (handle, disk) in &world.disks {
            assert!(disk.cache.is_empty());
            assert_eq!(world.superblock(*handle).resync_offset, Superblock::IN_SYNC);
            let log = candidate(*handle, disk).log;
            let block = log.and_then(|log| log.of(&disk.metadata().superblock));
            assert_eq!(block.map(|block| block.says.session), make.log.then_some(0));
        }
        let mut again = World::assemble(world.disks, make.log, |_| ()).unwrap();
        assert_eq!(again.read(3, 20), vec![5; 20 * 512]);
    }
}

#[test]
fn a_failure_is_recorded_before_anything_is_acknowledged() {
    let mut world = raid5().start();
    world.write(0, 8, 1);
    world.disks.get_mut(&1).unwrap().dead = true;
    // Somewhere on a row whose data or parity is on disk 1.
    let write = world.submit(Operation::Write, 0, 32, 2);
    world.wait(write).unwrap();
    for disk in [0, 2] {
        let number = usize::try_from(world.superblock(1).device_number).unwrap();
        assert_eq!(world.superblock(disk).roles[number], Role::Faulty);
    }
    assert!(world.events.contains(&Event::MemberFailed(slot(1))));
    assert_eq!(world.read(0, 32), vec![2; 32 * 512]);
    world.run_for(Nanos::from_secs(20));
    assert!(
        bits(&world.disks[&0]) > 0,
        "bits stay while a member is missing"
    );
    // The failed disk comes back: it is stale, whatever it holds.
    world.disks.get_mut(&1).unwrap().dead = false;
    let again = World::assemble(world.disks, false, |_| ()).unwrap();
    assert_eq!(again.array.status().health, "[U_U]");
}

#[test]
fn a_spare_takes_over_and_is_filled() {
    let make = Make {
        spares: 1,
        ..raid5()
    };
    let mut world = make.start();
    world.write(0, 100, 3);
    world.fail(0).unwrap();
    world.run_for(Nanos::from_secs(60));
    let status = world.array.status();
    assert_eq!(status.health, "[UUU]", "{status:?}");
    assert_eq!(world.array.served()[0], Some(slot(3)));
    assert_eq!(world.superblock(3).role(), Role::Slot(0));
    assert_eq!(world.superblock(3).recovery_offset, Sectors(0));
    world.remove(0).unwrap();
    world.run_for(Nanos::from_secs(1));
    assert_eq!(world.read(0, 100), vec![3; 100 * 512]);
    world.disks.remove(&0);
    let mut again = World::assemble(world.disks, false, |_| ()).unwrap();
    assert_eq!(again.array.status().health, "[UUU]");
    assert_eq!(again.read(0, 100), vec![3; 100 * 512]);
}

#[test]
fn re_add_copies_only_what_the_bitmap_names() {
    let mut world = raid5().start();
    world.write(0, 512, 1);
    world.run_for(Nanos::from_secs(12));
    world.fail(1).unwrap();
    world.run_for(Nanos::from_secs(1));
    world.write(0, 8, 2);
    world.remove(1).unwrap();
    world.run_for(Nanos::from_secs(30));
    let back = candidate(1, &world.disks[&1]);
    let before = world.disks[&1].data_written;
    world.re_add(1, back).unwrap();
    world.run_for(Nanos::from_secs(30));
    assert_eq!(world.array.status().health, "[UUU]");
    let written = world.disks[&1].data_written - before;
    assert!((1..=64).contains(&written), "one chunk of the bitmap");
    world.check();
    assert_eq!(world.read(0, 8), vec![2; 8 * 512]);
}

#[test]
fn a_member_that_was_replaced_cannot_be_re_added() {
    let make = Make {
        spares: 1,
        ..raid5()
    };
    let mut world = make.start();
    world.write(0, 64, 1);
    world.fail(1).unwrap();
    world.run_for(Nanos::from_secs(60));
    world.remove(1).unwrap();
    world.write(0, 64, 2);
    world.run_for(Nanos::from_secs(20));
    world.fail(3).unwrap();
    world.run_for(Nanos::from_secs(1));
    world.remove(3).unwrap();
    let back = candidate(1, &world.disks[&1]);
    let refused = world.re_add(1, back);
    assert!(
        matches!(refused, Err(VerbError::TooOld { .. })),
        "{refused:?}"
    );
    // Added anew it is filled.
    let new = NewDevice {
        name: "1".to_owned(),
        size: Sectors(DATA_OFFSET + USED),
        rotational: false,
        write_mostly: false,
        uuid: Uuid([99; 16]),
    };
    world.add(1, new).unwrap();
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.array.status().health, "[UUU]");
    assert_eq!(world.superblock(1).device_uuid, Uuid([99; 16]));
    world.disks.remove(&3);
    let mut again = World::assemble(world.disks, false, |_| ()).unwrap();
    assert_eq!(again.read(0, 64), vec![2; 64 * 512]);
}

#[test]
fn a_first_resync_makes_parity_fit() {
    let make = Make {
        initial: InitialSync::Resync,
        ..raid5()
    };
    let mut disks = make.disks();
    for (handle, disk) in &mut disks {
        let data = usize::try_from(DATA_OFFSET).unwrap() * 512;
        disk.durable[data..].fill(u8::try_from(*handle).unwrap() + 1);
    }
    let mut world = World::assemble(disks, false, |_| ()).unwrap();
    assert!(world.array.is_syncing());
    world.run_for(Nanos::from_secs(60));
    assert_eq!(world.superblock(0).resync_offset, Superblock::IN_SYNC);
    world.check();
    assert_eq!(world.array.status().state.to_string(), "clean");
}

#[test]
fn members_out_of_date_are_taken_again_at_the_start() {
    let mut world = raid5().start();
    world.write(0, 64, 1);
    world.run_for(Nanos::from_secs(12));
    world.fail(2).unwrap();
    world.write(64, 8, 2);
    world.run_for(Nanos::from_secs(1));
    let again = |stale| {
        let disks = world.disks.clone();
        let mut world = World::assemble(disks, false, |options| options.stale = stale).unwrap();
        world.run_for(Nanos::from_secs(60));
        world.array.status().health
    };
    assert_eq!(again(Stale::LeaveOut), "[UU_]");
    assert_eq!(again(Stale::ReAdd), "[UUU]");
}

#[test]
fn an_array_whose_state_cannot_be_recorded_acknowledges_nothing() {
    let mut world = raid5().start();
    world.run_for(Nanos::from_secs(1));
    for disk in world.disks.values_mut() {
        disk.dead = true;
    }
    let write = world.submit(Operation::Write, 0, 8, 1);
    while world.step(None) {}
    assert!(world.wait(write).is_err());
    let late = world.submit(Operation::Write, 0, 8, 1);
    assert!(world.wait(late).is_err());
}

#[test]
fn read_only_arrays_leave_no_trace() {
    let disks = raid5().disks();
    let mut world =
        World::assemble(disks.clone(), false, |options| options.read_only = true).unwrap();
    assert_eq!(world.read(0, 8), vec![0; 8 * 512]);
    let write = world.submit(Operation::Write, 0, 8, 1);
    assert_eq!(world.wait(write), Err(RequestError::ReadOnly));
    world.flush();
    world.run_for(Nanos::from_secs(20));
    for (handle, disk) in &disks {
        assert!(disk.durable == world.disks[handle].durable);
        assert!(world.disks[handle].cache.is_empty());
    }
}
