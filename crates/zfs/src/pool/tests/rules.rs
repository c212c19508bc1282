//! Single rules of the pool, by hand-computed cases.

use crate::{MemberConfig, Pool, PoolConfig};
use raidlab_array::{
    AdminError, CommandId, Event, Finished, MemberCommand, MemberError, Operation, Outputs,
    Request, RequestError, RequestId, Slot,
};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};

/// 2^27 sectors are 64 GiB; the volume is 32 GiB.
pub(super) fn config() -> PoolConfig {
    let member = MemberConfig {
        size: Sectors(1 << 27),
        rotational: true,
    };
    PoolConfig::freebsd_10_1(vec![member; 2], Sectors(1 << 26), Bytes(16 << 30))
}

fn pool() -> Pool {
    Pool::new(config(), Stream::new(1)).expect("a good configuration")
}

pub(super) fn request(id: u64, operation: Operation, start: u64, count: u64) -> Request {
    Request {
        id: RequestId(id),
        operation,
        start: Sectors(start),
        count: Sectors(count),
        force_unit_access: false,
        process: 0,
    }
}

/// What one call gave.
pub(super) fn call(pool: &mut Pool, verb: impl FnOnce(&mut Pool, &mut Outputs)) -> Outputs {
    let mut out = Outputs::default();
    verb(pool, &mut out);
    out
}

/// Answers every command at once and lets time run until nothing is due.
pub(super) fn settle(
    pool: &mut Pool,
    now: &mut Nanos,
    mut commands: Vec<MemberCommand>,
) -> Vec<Finished> {
    let mut finished = Vec::new();
    loop {
        for command in std::mem::take(&mut commands) {
            let mut out = call(pool, |pool, out| {
                pool.complete(*now, command.id, Ok(()), out)
            });
            commands.append(&mut out.commands);
            finished.append(&mut out.finished);
        }
        if !commands.is_empty() {
            continue;
        }
        let Some(at) = pool.next_tick() else {
            return finished;
        };
        *now = at.max(*now);
        let mut out = call(pool, |pool, out| pool.tick(*now, out));
        commands.append(&mut out.commands);
        finished.append(&mut out.finished);
    }
}

fn shape(out: &Outputs) -> Vec<(u16, u64, u64)> {
    let commands = out.commands.iter();
    commands
        .map(|command| (command.slot.0, command.start.0, command.count.0))
        .collect()
}

/// 31 us and 7.4 us a block for a read, without a disk.
#[test]
fn a_hole_is_read_without_the_disks() {
    let mut pool = pool();
    let read = request(1, Operation::Read, 8, 8);
    let out = call(&mut pool, |pool, out| pool.submit(Nanos::ZERO, read, out));
    assert!(out.commands.is_empty() && out.finished.is_empty());
    assert_eq!(pool.next_tick(), Some(Nanos(38_400)));
    let out = call(&mut pool, |pool, out| pool.tick(Nanos(38_400), out));
    assert_eq!(out.finished[0].id, RequestId(1));
    assert!(pool.is_idle());
}

#[test]
fn a_request_beyond_the_end_is_refused() {
    let mut pool = pool();
    for (start, count) in [(1 << 26, 8), (u64::MAX, 8), (0, 0)] {
        let read = request(1, Operation::Read, start, count);
        let out = call(&mut pool, |pool, out| pool.submit(Nanos::ZERO, read, out));
        assert_eq!(out.finished[0].result, Err(RequestError::OutOfRange));
    }
    assert!(pool.is_idle());
}

/// A cold read after a fill: level 2, level 1, then the block, one after the
/// other. The front label's 8192 sectors are added. Before block 385 lie three
/// level-1 blocks of 4 sectors; the level-1 block is behind block 511, the
/// level-2 block (128 * 37 + 64 bytes are 10 sectors) behind 128 of those.
#[test]
fn a_cold_read_walks_down_the_tree() {
    let mut config = config();
    config.cache = Bytes(8 << 30);
    config.metadata_limit = Bytes(4 << 20);
    let mut pool = Pool::new(config, Stream::new(1)).expect("a good configuration");
    pool.leap_write(Sectors::ZERO, Sectors(1 << 26));
    let now = Nanos::ZERO;
    let read = request(1, Operation::Read, 128 * 16 * 3 + 24, 8);
    let mut out = call(&mut pool, |pool, out| pool.submit(now, read, out));
    let level_1 = 128 * 16 + 4;
    let expected = [
        (8192 + 128 * level_1, 10),
        (8192 + 4 * level_1 - 4, 4),
        (8192 + 385 * 16 + 3 * 4, 16),
    ];
    for (start, count) in expected {
        let [(_, at, length)] = shape(&out)[..] else {
            panic!("one command at a time, not {:?}", out.commands);
        };
        assert_eq!((at, length), (start, count));
        let id = out.commands[0].id;
        out = call(&mut pool, |pool, out| pool.complete(now, id, Ok(()), out));
    }
    assert!(out.commands.is_empty());
    assert_eq!(settle(&mut pool, &mut now.clone(), Vec::new()).len(), 1);
}

/// A partial overwrite reads the old block, a full one only what is above it.
#[test]
fn a_partial_overwrite_needs_the_old_block() {
    let reads = |start, count| {
        let mut pool = pool();
        // The last 8 GiB push the first out of the cache of 15.
        pool.leap_write(Sectors::ZERO, Sectors(1 << 26));
        let write = request(1, Operation::Write, start, count);
        let out = call(&mut pool, |pool, out| pool.submit(Nanos::ZERO, write, out));
        shape(&out)
            .iter()
            .map(|command| command.2)
            .collect::<Vec<_>>()
    };
    assert_eq!(reads(8, 8), [16], "the second half of block 0");
    assert_eq!(reads(0, 16), [0; 0], "block 0");
    assert_eq!(reads(8, 32), [48], "halves of blocks 0 and 2, over the gap");
}

/// 10 % of 16 GiB is the limit; nothing below 60 % of that, 500 us in the
/// middle between 60 and 100 %, a quarter of the way a third of it.
#[test]
fn the_throttle_follows_its_formula() {
    let pool = pool();
    let limit = pool.config.dirty_data_max.0;
    let low = limit / 100 * 60;
    let at = |dirty| pool.delay(dirty, limit);
    assert_eq!(at(low), Nanos::ZERO);
    let middle = at(low + (limit - low) / 2);
    assert!(middle.0.abs_diff(500_000) <= 1, "{middle}");
    let quarter = at(low + (limit - low) / 4);
    assert!(quarter.0.abs_diff(166_666) <= 1, "{quarter}");
    assert!(at(limit - 1) > pool.config.delay_max);
}

/// Eight blocks of 8 KiB that take 3 KiB each lie one behind the other: 48 sectors are
/// written, and the last of them is read by itself.
#[test]
fn compressed_blocks_are_written_and_read_as_they_are_placed() {
    let mut config = config();
    config.placed_block = Some(Bytes(3 << 10));
    let mut pool = Pool::new(config, Stream::new(1)).expect("a good configuration");
    let mut now = Nanos(1);
    let write = request(1, Operation::Write, 0, 128);
    call(&mut pool, |pool, out| pool.submit(now, write, out));
    let mut out = Outputs::default();
    while out.commands.is_empty() {
        now = pool.next_tick().expect("a sync");
        out = call(&mut pool, |pool, out| pool.tick(now, out));
    }
    // With the indirect blocks of one sector each behind them.
    let first = out.commands[0];
    assert_eq!(
        (first.operation, first.count),
        (Operation::Write, Sectors(48 + 2))
    );
    settle(&mut pool, &mut now, out.commands);
    pool.cache.forget_data();
    let read = request(3, Operation::Read, 7 * 16, 16);
    let out = call(&mut pool, |pool, out| pool.submit(now, read, out));
    let [read] = out.commands[..] else {
        panic!("one read: {:?}", out.commands);
    };
    assert_eq!(
        (read.start - first.start, read.count),
        (Sectors(42), Sectors(6))
    );
}

/// Two streams of writes of half a block, by turns, and once more from the front.
#[test]
fn a_block_that_is_written_in_parts_is_dirty_once() {
    let mut pool = pool();
    for (turn, half) in (0..).zip((0..6).chain(0..6)) {
        for stream in [0, 1 << 20] {
            let write = request(stream + turn, Operation::Write, stream + half * 8, 8);
            let now = Nanos::from_micros(turn * 100);
            call(&mut pool, |pool, out| pool.submit(now, write, out));
            call(&mut pool, |pool, out| pool.tick(now, out));
        }
    }
    assert_eq!(pool.dirty(), Bytes(2 * 3 * 8192));
}

/// One block: data with level 1 and 2 behind it, their second copies; two
/// rounds of pool metadata of three copies; flush; four uberblocks; flush.
#[test]
fn a_group_is_synced_when_its_time_is_up() {
    let mut pool = pool();
    let write = request(1, Operation::Write, 0, 16);
    call(&mut pool, |pool, out| pool.submit(Nanos::ZERO, write, out));
    let mut now = Nanos::from_millis(1);
    call(&mut pool, |pool, out| pool.tick(now, out));
    assert_eq!(pool.dirty(), Bytes(8192));
    let (mut order, mut out) = (Vec::new(), Outputs::default());
    while !pool.is_idle() {
        for command in std::mem::take(&mut out.commands) {
            if command.slot == Slot(0) {
                order.push((command.operation, command.count.0));
            }
            call_into(&mut pool, now, command.id, &mut out);
        }
        if out.commands.is_empty() && !pool.is_idle() {
            now = pool.next_tick().expect("a sync under way").max(now);
            pool.tick(now, &mut out);
        }
    }
    use Operation::{Flush, Write};
    let count = |operation, sectors| {
        let wanted = order.iter();
        wanted
            .filter(|&&entry| entry == (operation, sectors))
            .count()
    };
    assert_eq!(count(Write, 18), 1, "{order:?}");
    assert_eq!(count(Write, 2), 1 + 4, "{order:?}");
    assert_eq!(count(Write, 256), 6, "{order:?}");
    assert_eq!(count(Flush, 0), 2, "{order:?}");
    assert_eq!(order.last(), Some(&(Flush, 0)));
}

fn call_into(pool: &mut Pool, now: Nanos, id: CommandId, out: &mut Outputs) {
    pool.complete(now, id, Ok(()), out);
}

/// A failed read is tried on the other disk; when that fails too, the request
/// does.
#[test]
fn a_bad_sector_is_read_from_the_other_disk() {
    let mut pool = pool();
    pool.leap_write(Sectors::ZERO, Sectors(1 << 26));
    let mut now = Nanos::ZERO;
    let bad = Err(MemberError::Medium);
    let read = request(1, Operation::Read, 0, 16);
    let first = call(&mut pool, |pool, out| pool.submit(now, read, out));
    let id = first.commands[0].id;
    let second = call(&mut pool, |pool, out| pool.complete(now, id, bad, out));
    assert_ne!(second.commands[0].slot, first.commands[0].slot);
    assert_eq!(second.commands[0].start, first.commands[0].start);
    let id = second.commands[0].id;
    let last = call(&mut pool, |pool, out| pool.complete(now, id, bad, out));
    assert_eq!(last.finished[0].result, Err(RequestError::NoMember));
    assert_eq!(settle(&mut pool, &mut now, last.commands), []);
    assert!(pool.is_idle() && pool.health() == "UU");
}

#[test]
fn verbs_are_refused_where_they_make_no_sense() {
    let mut pool = pool();
    let now = Nanos::ZERO;
    let mut out = Outputs::default();
    let (first, second) = (Slot(0), Slot(1));
    assert_eq!(
        pool.add(now, second, &mut out),
        Err(AdminError::Occupied(second))
    );
    assert_eq!(
        pool.fail(now, Slot(2), &mut out),
        Err(AdminError::NoSuchSlot(Slot(2)))
    );
    assert_eq!(pool.fail(now, second, &mut out), Ok(()));
    assert_eq!(
        pool.fail(now, second, &mut out),
        Err(AdminError::AlreadyFaulty(second))
    );
    assert_eq!(
        pool.remove(now, first, &mut out),
        Err(AdminError::LastInSync(first))
    );
    assert_eq!(pool.remove(now, second, &mut out), Ok(()));
    assert_eq!(
        pool.remove(now, second, &mut out),
        Err(AdminError::Empty(second))
    );
    let removed = [Event::MemberFailed(second), Event::MemberRemoved(second)];
    assert_eq!(out.events, removed);
    assert_eq!(pool.health(), "U_");
}

/// A resilver of a volume with one written block, beginning to end.
#[test]
fn a_resilver_copies_what_is_allocated() {
    let mut pool = pool();
    let mut now = Nanos::ZERO;
    let write = request(1, Operation::Write, 1 << 20, 16);
    let out = call(&mut pool, |pool, out| pool.submit(now, write, out));
    settle(&mut pool, &mut now, out.commands);
    call(&mut pool, |pool, out| {
        pool.remove(now, Slot(1), out).expect("a mirror")
    });
    let out = call(&mut pool, |pool, out| {
        pool.add(now, Slot(1), out).expect("a gap")
    });
    assert_eq!(
        out.events,
        [Event::MemberAdded(Slot(1)), Event::SyncStarted(Sectors(0))]
    );
    let status = pool.sync_status().expect("running");
    assert_eq!((status.done, status.total), (Bytes(0), Bytes(8192)));
    settle(&mut pool, &mut now, out.commands);
    assert_eq!((pool.sync_status(), pool.health().as_str()), (None, "UU"));
}

#[test]
fn a_bad_configuration_is_refused() {
    type Spoil = fn(&mut PoolConfig);
    let cases: [(Spoil, &str); 7] = [
        (
            |config| config.metadata_limit = Bytes(1 << 20),
            "a metadata limit of 1 MiB is less than the 4 MiB of two level-2 blocks",
        ),
        (
            |config| config.members.clear(),
            "a mirror needs 1 to 32 members, not 0",
        ),
        (
            |config| config.volume_block = Bytes(3000),
            "`volume_block` must be a power of two in its range",
        ),
        (
            |config| config.placed_block = Some(Bytes(16 << 10)),
            "a block cannot take 16 KiB of a disk",
        ),
        (
            |config| config.queue.scrub.max_active = 0,
            "`queue.scrub` must not be zero",
        ),
        (
            |config| config.volume_size = Sectors(1 << 27),
            "a volume of 64 GiB does not fit members of 64 GiB",
        ),
        (
            |config| config.cache = Bytes(1 << 30),
            "a cache of 1 GiB cannot hold the dirty data limit, which needs 4.80 GiB",
        ),
    ];
    for (spoil, message) in cases {
        let mut config = config();
        spoil(&mut config);
        let error = Pool::new(config, Stream::new(1)).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
    let linux = PoolConfig::zol_0_6_4(config().members, Sectors(1 << 26), Bytes(16 << 30));
    assert_eq!(linux.check(), Ok(()));
}

/// A job begins: of the data a thirty-second of memory stays.
#[test]
fn dropped_caches_keep_what_the_cache_always_keeps() {
    let read_again = |drops: bool| {
        let config = PoolConfig::openzfs_2_3(config().members, Sectors(1 << 17), Bytes(1 << 30));
        let mut pool = Pool::new(config, Stream::new(1)).expect("a good configuration");
        let mut now = Nanos::ZERO;
        // 64 MiB, the whole volume, a mebibyte at a time.
        for part in 0..64 {
            let write = request(part, Operation::Write, part * 2048, 2048);
            let out = call(&mut pool, |pool, out| pool.submit(now, write, out));
            settle(&mut pool, &mut now, out.commands);
        }
        if drops {
            pool.drop_caches();
        }
        let old = request(64, Operation::Read, 0, 16);
        let new = request(65, Operation::Read, (1 << 17) - 16, 16);
        [old, new].map(|read| {
            let out = call(&mut pool, |pool, out| pool.submit(now, read, out));
            let commands = out.commands.len();
            settle(&mut pool, &mut now, out.commands);
            commands
        })
    };
    assert_eq!(read_again(false), [0, 0]);
    assert_eq!(read_again(true), [1, 0]);
}
