//! The intent log, by hand-computed cases: what is sent for commits, and when they end.

use super::rules::{call, config, request, settle};
use crate::{Pool, PoolConfig};
use raidlab_array::{MemberCommand, Operation, Outputs, Request, Slot};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};

fn old() -> Pool {
    Pool::new(config(), Stream::new(1)).expect("a good configuration")
}

fn new() -> Pool {
    let config = PoolConfig::openzfs_2_3(config().members, Sectors(1 << 26), Bytes(16 << 30));
    Pool::new(config, Stream::new(1)).expect("a good configuration")
}

fn durable(id: u64, block: u64) -> Request {
    Request {
        force_unit_access: true,
        ..request(id, Operation::Write, block * 16, 16)
    }
}

/// Submits requests at once and lets a millisecond pass, which is more than their host time.
fn submit(pool: &mut Pool, now: &mut Nanos, requests: &[Request]) -> Outputs {
    let mut all = Outputs::default();
    for request in requests {
        pool.submit(*now, *request, &mut all);
    }
    let end = *now + Nanos::from_millis(1);
    while let Some(at) = pool.next_tick().filter(|at| *at < end) {
        pool.tick(at.max(*now), &mut all);
    }
    *now = end;
    all
}

/// Answers these commands: what the pool does then.
fn answer(pool: &mut Pool, now: Nanos, commands: Vec<MemberCommand>) -> Outputs {
    let mut all = Outputs::default();
    for command in commands {
        pool.complete(now, command.id, Ok(()), &mut all);
    }
    all
}

/// What the first disk is told: operations and sectors.
fn first_disk(out: &Outputs) -> Vec<(Operation, u64)> {
    let commands = out.commands.iter().filter(|it| it.slot == Slot(0));
    commands.map(|it| (it.operation, it.count.0)).collect()
}

fn ended(out: &Outputs) -> Vec<u64> {
    out.finished.iter().map(|finished| finished.id.0).collect()
}

/// 8 KiB, its record's header and that of the block: 12 KiB, and a flush, on both disks.
#[test]
fn a_durable_write_is_a_log_block_and_a_flush() {
    for mut pool in [old(), new()] {
        let mut now = Nanos::from_millis(1);
        let out = submit(&mut pool, &mut now, &[durable(1, 0)]);
        assert_eq!(first_disk(&out), [(Operation::Write, 24)]);
        assert_eq!((out.commands.len(), ended(&out)), (2, vec![]));
        let out = answer(&mut pool, now, out.commands);
        assert_eq!(first_disk(&out), [(Operation::Flush, 0)]);
        assert_eq!((out.commands.len(), ended(&out)), (2, vec![]));
        let out = answer(&mut pool, now, out.commands);
        assert_eq!((out.commands.len(), ended(&out)), (0, vec![1]));
        // Its group is as dirty as before.
        assert!(pool.dirty() >= Bytes(8192) && !pool.is_idle());
    }
}

/// A flush has nothing to write when nothing was written, when all was committed, and when the
/// group is on disk. While a log block is under way it waits for that.
#[test]
fn a_flush_without_records_sends_nothing() {
    for mut pool in [old(), new()] {
        let flush = |id| request(id, Operation::Flush, 0, 0);
        let mut now = Nanos::from_millis(1);
        assert_eq!(ended(&submit(&mut pool, &mut now, &[flush(1)])), [1]);
        let out = submit(&mut pool, &mut now, &[durable(2, 0)]);
        let waits = submit(&mut pool, &mut now, &[flush(3)]);
        assert_eq!((waits.commands.len(), ended(&waits)), (0, vec![]));
        let out = answer(&mut pool, now, out.commands);
        assert_eq!(ended(&answer(&mut pool, now, out.commands)), [2, 3]);
        assert_eq!(ended(&submit(&mut pool, &mut now, &[flush(4)])), [4]);
        submit(&mut pool, &mut now, &[request(5, Operation::Write, 64, 16)]);
        settle(&mut pool, &mut now, Vec::new());
        assert_eq!(pool.dirty(), Bytes(0));
        let out = submit(&mut pool, &mut now, &[flush(6)]);
        assert_eq!((out.commands.len(), ended(&out)), (0, vec![6]));
    }
}

/// A mebibyte in parts of 64 KiB that nobody waited for: nine blocks, of which the last has what
/// the headers take, and one flush.
#[test]
fn a_flush_logs_all_that_was_written_before() {
    for mut pool in [old(), new()] {
        let mut now = Nanos::from_millis(1);
        let write = |part| request(part, Operation::Write, part * 128, 128);
        let writes: Vec<Request> = (0..16).map(write).collect();
        submit(&mut pool, &mut now, &writes);
        let out = submit(&mut pool, &mut now, &[request(20, Operation::Flush, 0, 0)]);
        let sent = first_disk(&out);
        assert_eq!(
            sent.iter().map(|(_, count)| count).sum::<u64>(),
            8 * 256 + 16
        );
        let out = answer(&mut pool, now, out.commands);
        assert_eq!(first_disk(&out), [(Operation::Flush, 0)]);
        assert_eq!(ended(&answer(&mut pool, now, out.commands)), [20]);
    }
}

/// Eight writers of 8 KiB. Before OpenZFS 0.8 the seven that come while the first is under way
/// have the next log block together: 7 * 8384 + 192 bytes are 60 KiB.
#[test]
fn in_batches_who_comes_meanwhile_is_next_together() {
    let mut pool = old();
    let mut now = Nanos::from_millis(1);
    let out = submit(&mut pool, &mut now, &[durable(0, 0)]);
    let writes: Vec<Request> = (1..8).map(|id| durable(id, id)).collect();
    assert_eq!(first_disk(&submit(&mut pool, &mut now, &writes)), []);
    assert_eq!(first_disk(&out), [(Operation::Write, 24)]);
    let out = answer(&mut pool, now, out.commands);
    let out = answer(&mut pool, now, out.commands);
    assert_eq!(
        (ended(&out), first_disk(&out)),
        (vec![0], vec![(Operation::Write, 120)])
    );
    let out = answer(&mut pool, now, out.commands);
    let out = answer(&mut pool, now, out.commands);
    assert_eq!(ended(&out), [1, 2, 3, 4, 5, 6, 7]);
}

/// OpenZFS 2.3: the second writer's block does not wait for the first one's. As that is under
/// way, it is held open; but nothing has been measured yet, so it is sent at the same moment.
/// Then two writers meet: their block is sent a tenth of the average time later, which has an
/// eighth of each of the first two.
#[test]
fn in_a_pipeline_blocks_follow_each_other_and_commits_that_meet_share_one() {
    let mut pool = new();
    let mut now = Nanos::from_millis(1);
    let first = submit(&mut pool, &mut now, &[durable(1, 0)]).commands;
    let second = submit(&mut pool, &mut now, &[durable(2, 1)]).commands;
    assert_eq!((first.len(), second.len()), (2, 2));
    // The second one is on the disks first: its flush waits for the first one.
    let end = Nanos::from_millis(11);
    assert_eq!(first_disk(&answer(&mut pool, end, second)), []);
    let out = answer(&mut pool, end, first);
    let both = [(Operation::Flush, 0), (Operation::Flush, 0)];
    assert_eq!(first_disk(&out), both);
    assert_eq!(ended(&answer(&mut pool, end, out.commands)), [1, 2]);

    let mut out = Outputs::default();
    pool.submit(end, durable(3, 2), &mut out);
    pool.submit(end, durable(4, 3), &mut out);
    pool.tick(end, &mut out);
    assert_eq!(first_disk(&out), []);
    let average = (10_000_000 / 8 * 7 + 9_000_000) / 8;
    let due = end + Nanos(average / 10);
    assert_eq!(pool.next_tick(), Some(due));
    let out = call(&mut pool, |pool, out| pool.tick(due, out));
    // 2 * 8384 + 192 bytes.
    assert_eq!(first_disk(&out), [(Operation::Write, 40)]);
}
