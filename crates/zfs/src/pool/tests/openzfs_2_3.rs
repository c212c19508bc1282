//! Rules that only OpenZFS 2.3 has, by hand-computed cases.

use super::rules::{call, config, request, settle};
use crate::{Pool, PoolConfig};
use raidlab_array::{Operation, Outputs, Slot};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};

/// OpenZFS 2.3: 64 blocks are prepared in 64 * 2048 ns; then 32 are under way, of
/// which a disk has two while little is dirty; the others are merged when one of these
/// has ended.
#[test]
fn the_first_blocks_of_a_group_go_one_by_one_and_those_behind_them_together() {
    let config = PoolConfig::openzfs_2_3(config().members, Sectors(1 << 26), Bytes(16 << 30));
    let mut pool = Pool::new(config, Stream::new(1)).expect("a good configuration");
    let write = request(1, Operation::Write, 0, 64 * 16);
    let counts = |out: &Outputs| -> Vec<u64> {
        let commands = out
            .commands
            .iter()
            .filter(|command| command.slot == Slot(0));
        commands.map(|command| command.count.0).collect()
    };
    call(&mut pool, |pool, out| pool.submit(Nanos::ZERO, write, out));
    let (mut now, mut out) = (Nanos::ZERO, Outputs::default());
    // The last tick but one is the group's time.
    let mut before = Nanos::ZERO;
    while out.commands.is_empty() {
        before = now;
        now = pool.next_tick().expect("a sync under way").max(now);
        out = call(&mut pool, |pool, out| pool.tick(now, out));
    }
    assert_eq!(now - before, Nanos(64 * 2048));
    assert_eq!(counts(&out), [16, 16]);
    let first = out.commands[0];
    assert_eq!(first.slot, Slot(0));
    let out = call(&mut pool, |pool, out| {
        pool.complete(now, first.id, Ok(()), out);
    });
    assert_eq!(counts(&out), [30 * 16]);
}

/// A pool of OpenZFS 2.3 with so many disks and a volume of 64 MiB, written, of which
/// the first half is not in memory.
fn written_with_2_3(disks: usize, now: &mut Nanos) -> Pool {
    let members = vec![config().members[0]; disks];
    let config = PoolConfig::openzfs_2_3(members, Sectors(1 << 17), Bytes(1 << 30));
    let mut pool = Pool::new(config, Stream::new(1)).expect("a good configuration");
    for part in 0..64 {
        let write = request(part, Operation::Write, part * 2048, 2048);
        let out = call(&mut pool, |pool, out| pool.submit(*now, write, out));
        settle(&mut pool, now, out.commands);
    }
    settle(&mut pool, now, Vec::new());
    pool.drop_caches();
    pool
}

/// Both disks wrote an uberblock at their end last: a load of five each for the seek, and
/// the stripe says the first. The next ones follow on what it was given: its load is the
/// commands it has. Five are still a tie; six are more than the other's five. From the
/// second one on the other has no seek, and the first six commands and a short one: eight,
/// which is a tie when the other has eight commands.
#[test]
fn each_block_chooses_by_what_its_disk_was_given_last() {
    let mut now = Nanos::ZERO;
    let mut pool = written_with_2_3(2, &mut now);
    let read = request(70, Operation::Read, 0, 256);
    let out = call(&mut pool, |pool, out| pool.submit(now, read, out));
    let slots: Vec<u16> = out.commands.iter().map(|command| command.slot.0).collect();
    assert_eq!(slots, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0]);
    assert!(out.commands.iter().all(|command| command.count.0 == 16));
}

/// One disk. The second read makes ten commands of one block each; the six blocks that
/// wait go with the first one ordered ahead, two more of these follow, thirteen wait.
/// The third read wants those: they need no prefetch to end, and what it orders
/// ahead goes with them.
#[test]
fn prefetch_that_is_wanted_becomes_a_read_that_somebody_waits_for() {
    for wanted in [false, true] {
        let mut now = Nanos::ZERO;
        let mut pool = written_with_2_3(1, &mut now);
        let read = |pool: &mut Pool, now: Nanos, part: u64| {
            let read = request(70 + part, Operation::Read, part * 256, 256);
            call(pool, |pool, out| pool.submit(now, read, out)).commands
        };
        let first = read(&mut pool, now, 0);
        settle(&mut pool, &mut now, first);
        let second = read(&mut pool, now, 1);
        let blocks: Vec<u64> = second.iter().map(|command| command.count.0 / 16).collect();
        assert_eq!(blocks, [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 7, 1, 1]);
        if wanted {
            assert_eq!(read(&mut pool, now, 2).len(), 0);
        }
        let done = second[0].id;
        let out = call(&mut pool, |pool, out| pool.complete(now, done, Ok(()), out));
        let blocks: Vec<u64> = out
            .commands
            .iter()
            .map(|command| command.count.0 / 16)
            .collect();
        if wanted {
            assert_eq!(blocks, [13 + 32]);
        } else {
            assert_eq!(blocks, [0; 0]);
        }
    }
}

/// OpenZFS 2.3: two blocks under one level-1 block, and one under another, all under one
/// of level 2: 3 * 8 KiB and 3 * 128 KiB, until all is on disk. In 2015: the data.
#[test]
fn indirect_blocks_count_as_dirty_in_openzfs_2_3() {
    let (members, volume) = (config().members, Sectors(1 << 26));
    let memory = Bytes(16 << 30);
    let new = PoolConfig::openzfs_2_3(members.clone(), volume, memory);
    let old = PoolConfig::freebsd_10_1(members, volume, memory);
    for (config, indirect) in [(new, 3 << 17), (old, 0)] {
        let mut pool = Pool::new(config, Stream::new(1)).expect("a good configuration");
        for (id, block) in [(1, 0), (2, 1), (3, 5000)] {
            let write = request(id, Operation::Write, block * 16, 16);
            call(&mut pool, |pool, out| pool.submit(Nanos::ZERO, write, out));
        }
        assert_eq!(pool.dirty(), Bytes(3 * 8192 + indirect));
        let mut now = Nanos::ZERO;
        settle(&mut pool, &mut now, Vec::new());
        assert_eq!(pool.dirty(), Bytes(0));
    }
}

/// A volume has 32 threads, and each keeps its request until this ends.
#[test]
fn a_volume_has_so_many_requests_at_work_as_it_has_threads() {
    let mut now = Nanos::ZERO;
    let mut pool = written_with_2_3(2, &mut now);
    let mut commands = Vec::new();
    for id in 0..40 {
        let read = request(70 + id, Operation::Read, id * 1024, 16);
        let mut out = call(&mut pool, |pool, out| pool.submit(now, read, out));
        commands.append(&mut out.commands);
    }
    assert_eq!((pool.jobs.len(), pool.waiting.len()), (32, 8));
    assert_eq!(settle(&mut pool, &mut now, commands).len(), 40);
    assert!(pool.is_idle());
}

/// `dmu_tx_delay`: who was blocked for longer than the delay has had it. Nothing ends for five
/// seconds, and then all does: those that were blocked do not follow each other 100 ms apart.
#[test]
fn who_was_blocked_is_not_delayed_as_well() {
    let memory = Bytes(1 << 30);
    let config = PoolConfig::openzfs_2_3(config().members, Sectors(1 << 26), memory);
    let mut pool = Pool::new(config, Stream::new(1)).expect("a good configuration");
    let (mut now, mut commands, mut ended) = (Nanos::ZERO, Vec::new(), 0);
    for id in 0..150 {
        let write = request(id, Operation::Write, id * 2048, 2048);
        let mut out = call(&mut pool, |pool, out| pool.submit(now, write, out));
        commands.append(&mut out.commands);
    }
    while let Some(at) = pool.next_tick().filter(|&at| at < Nanos::from_secs(5)) {
        now = at.max(now);
        let mut out = call(&mut pool, |pool, out| pool.tick(now, out));
        commands.append(&mut out.commands);
        ended += out.finished.len();
    }
    assert!((100..140).contains(&ended), "{ended}");
    now = Nanos::from_secs(5);
    while ended < 150 {
        for command in std::mem::take(&mut commands) {
            let mut out = call(&mut pool, |pool, out| {
                pool.complete(now, command.id, Ok(()), out)
            });
            commands.append(&mut out.commands);
            ended += out.finished.len();
        }
        if commands.is_empty() {
            now = pool.next_tick().expect("writes under way").max(now);
            let mut out = call(&mut pool, |pool, out| pool.tick(now, out));
            commands.append(&mut out.commands);
            ended += out.finished.len();
        }
    }
    assert!(now < Nanos::from_millis(5_020), "{now}");
}
