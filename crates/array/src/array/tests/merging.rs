//! Blocks that are merged, and a barrier for the whole array.

use super::story::{READ, Story, WRITE, recovery};
use super::{config, request};
use crate::engine::{Behind, Engine, Imitation};
use crate::recovery::{CheckpointRule, MdThreads, RecoveryConfig, Throttle, WriteBarrier};
use crate::senders::HostRequests;
use raidlab_units::{Bytes, Nanos};

#[test]
fn blocks_that_start_in_the_same_instant_are_one_command() {
    let mut story = Story::new(config(
        2,
        100,
        RecoveryConfig {
            depth: 4,
            merged: Some(Bytes(30 * 512)),
            ..recovery(WriteBarrier::MdBuckets)
        },
    ));
    // Three blocks of ten in one, and the fourth that the depth allows.
    let blocks = story.replace(1);
    assert_eq!(Story::sent(&blocks), [(0, READ, 0, 30), (0, READ, 30, 10)]);
    let writes = story.complete(&blocks[0]);
    assert_eq!(Story::sent(&writes), [(1, WRITE, 0, 30)]);
    let next = story.complete(&writes[0]);
    assert_eq!(Story::sent(&next), [(0, READ, 40, 30)]);
    let writes = story.complete(&blocks[1]);
    let next = story.complete(&writes[0]);
    assert_eq!(Story::sent(&next), [(0, READ, 70, 10)], "one place is free");
}

#[test]
fn the_whole_array_waits_for_blocks_and_blocks_for_it() {
    let mut story = Story::new(config(2, 100, recovery(WriteBarrier::MdArray)));
    let blocks = story.replace(1);
    assert_eq!(Story::sent(&blocks), [(0, READ, 0, 10), (0, READ, 10, 10)]);
    assert!(story.submit(1, READ, 50, 1).is_empty());
    assert!(story.array.holds_submitter(0) && !story.array.holds_submitter(1));
    let writes = story.complete(&blocks[0]);
    // Somebody waits: out of courtesy no block follows.
    assert!(story.complete(&writes[0]).is_empty());
    let writes = story.complete(&blocks[1]);
    let reads = story.complete(&writes[0]);
    assert_eq!(Story::sent(&reads), [(0, READ, 50, 1)]);
    assert!(!story.array.holds_submitter(0));
    // The second tick of 4 ms: the barrier goes up, but the read is in flight.
    story.now = Nanos::from_millis(8);
    story.array.tick(story.now, &mut story.out);
    assert!(story.commands().is_empty());
    assert!(story.submit(2, WRITE, 60, 1).is_empty());
    let blocks = story.complete(&reads[0]);
    assert_eq!(Story::sent(&blocks), [(0, READ, 20, 10)], "one at a time");
}

/// md's RAID 10, as with one processor: a process takes 20 us from an answer to its next
/// request.
fn with_threads() -> Story {
    Story::new(config(
        2,
        100,
        RecoveryConfig {
            threads: Some(MdThreads {
                turnaround: TURNAROUND,
                ..MdThreads::LINUX_6_12
            }),
            ..recovery(WriteBarrier::MdArray)
        },
    ))
}

const TURNAROUND: Nanos = Nanos::from_micros(20);

/// Linux drivers/md/raid10.c: the end of a block wakes the submitter and the sync's thread.
/// Whichever runs first, the barrier is not raised again before the submitter has
/// submitted what it has.
#[test]
fn who_waited_at_the_barrier_submits_all_that_it_has_before_the_next_block() {
    let mut story = with_threads();
    let blocks = story.replace(1);
    assert!(story.submit(1, WRITE, 50, 1).is_empty());
    let copies = story.complete(&blocks[0]);
    // The block that had raised the barrier when the write came.
    let raised = story.complete(&copies[0]);
    assert_eq!(Story::sent(&raised), [(0, READ, 20, 10)]);
    let copies = story.complete(&raised[0]);
    assert!(story.complete(&copies[0]).is_empty());
    // The sleep out of courtesy is over while the other block is still under way.
    story.now = Nanos::from_millis(8);
    story.array.tick(story.now, &mut story.out);
    let copies = story.complete(&blocks[1]);
    let first = story.complete(&copies[0]);
    assert_eq!(Story::sent(&first), [(0, WRITE, 50, 1), (1, WRITE, 50, 1)]);
    let second = story.submit(2, WRITE, 60, 1);
    assert_eq!(Story::sent(&second), [(0, WRITE, 60, 1), (1, WRITE, 60, 1)]);
    story.now += TURNAROUND;
    assert_eq!(story.array.next_tick(), Some(story.now), "the sync's turn");
    story.array.tick(story.now, &mut story.out);
    assert!(
        story.submit(3, WRITE, 70, 1).is_empty(),
        "the barrier is up"
    );
    for write in first.iter().chain(&second) {
        assert!(story.complete(write).is_empty());
    }
    // Whom the last answer woke comes first once more; then the block that waited.
    story.now += TURNAROUND;
    story.array.tick(story.now, &mut story.out);
    let block = story.commands();
    assert_eq!(Story::sent(&block), [(0, READ, 30, 10)]);
}

/// Linux 6.1 kernel/sched/fair.c, `place_entity`: a process that has used more of the processor
/// than a thread that is woken with it runs after this thread, which then begins its block.
#[test]
fn a_process_that_is_behind_comes_after_the_next_block() {
    for (behind, comes_first) in [
        (Behind::Nobody, true),
        (Behind::Process(7), true),
        (Behind::Process(0), false),
        (Behind::All, false),
    ] {
        let mut story = with_threads();
        let copies = story.submit(1, WRITE, 50, 1);
        assert!(story.replace(1).is_empty(), "a write is under way");
        story.array.set_behind(behind);
        let ends = copies.iter().map(|copy| story.complete(copy));
        let block = ends.collect::<Vec<_>>().concat();
        assert_eq!(block.is_empty(), comes_first, "{behind:?}");
        story.now += TURNAROUND;
        story.array.tick(story.now, &mut story.out);
        let block = [block, story.commands()].concat();
        assert_eq!(Story::sent(&block)[..1], [(0, READ, 0, 10)]);
    }
}

/// Linux 6.1 drivers/md/raid10.c: `lower_barrier` wakes the process and `md_done_sync` the sync's
/// thread. If the process is behind, `raid10_sync_request` finds it waiting, and sleeps a tick.
#[test]
fn the_thread_finds_a_process_waiting_that_is_behind_it() {
    for behind in [Behind::Nobody, Behind::Process(0)] {
        let mut story = Story::new(config(
            2,
            4096,
            RecoveryConfig {
                block: Bytes(128 * 512),
                threads: Some(MdThreads::LINUX_6_12),
                throttle: Throttle::MdDrain {
                    minimum_kib_per_second: 0,
                    maximum_kib_per_second: 1_000_000,
                },
                ..recovery(WriteBarrier::MdArray)
            },
        ));
        let before = [1024, 1280, 1536].map(|start| story.submit(start, WRITE, start, 128));
        assert_eq!(story.replace(1), [], "writes are under way");
        for write in before.iter().flatten() {
            story.complete(write);
        }
        story.array.tick(story.now, &mut story.out);
        let blocks = story.commands();
        assert_eq!(
            blocks.len(),
            2,
            "and the throttle lets them end, as the members were written to"
        );
        story.array.set_behind(behind);
        assert_eq!(story.submit(2, READ, 2048, 8), []);
        let mut read = Vec::new();
        for block in &blocks {
            for copy in story.complete(block) {
                read.extend(story.complete(&copy));
            }
        }
        assert_eq!(Story::sent(&read), [(0, READ, 2048, 8)]);
        let mut next = story.complete(&read[0]);
        story.now = Nanos::from_millis(1);
        story.array.tick(story.now, &mut story.out);
        next.extend(story.commands());
        assert_eq!(next.is_empty(), behind != Behind::Nobody);
        story.now = Nanos::from_millis(8);
        story.array.tick(story.now, &mut story.out);
        next.extend(story.commands());
        assert!(!next.is_empty(), "the tick is over");
    }
}

/// As long as md's thread waits for superblocks, no block is written that was read.
#[test]
fn while_metadata_are_written_a_sync_stands_still() {
    for threads in [false, true] {
        let mut story = match threads {
            true => with_threads(),
            false => Story::new(config(2, 100, recovery(WriteBarrier::MdArray))),
        };
        let blocks = story.replace(1);
        story.array.set_thread_busy(story.now, true, &mut story.out);
        let copies = story.complete(&blocks[0]);
        assert_eq!(copies.is_empty(), threads, "{copies:?}");
        story
            .array
            .set_thread_busy(story.now, false, &mut story.out);
        let copies = [copies, story.commands()].concat();
        assert_eq!(Story::sent(&copies), [(1, WRITE, 0, 10)]);
    }
}

/// Linux drivers/md/raid10.c, `raid10_write_request`: the barrier comes before the bits of
/// the bitmap, so nothing of the sync begins while these are written.
#[test]
fn a_write_that_was_let_in_keeps_blocks_away_until_it_has_ended() {
    let mut story = with_threads();
    let blocks = story.replace(1);
    let write = request(1, WRITE, 50, 1);
    assert!(!story.array.enter(story.now, &write), "the barrier is up");
    // Those in flight, and the one that had raised the barrier: somebody waits, so no
    // further block follows.
    let to_the_end = |story: &mut Story, mut commands: Vec<_>| {
        let mut ended = 0;
        while let Some(command) = commands.pop() {
            ended += 1;
            commands.extend(story.complete(&command));
        }
        ended
    };
    assert_eq!(to_the_end(&mut story, blocks), 3 * 2);
    assert!(story.array.enter(story.now, &write));
    let pass = |story: &mut Story| {
        for _ in 0..10 {
            story.now += Nanos::from_millis(10);
            story.array.tick(story.now, &mut story.out);
        }
        story.commands()
    };
    assert!(pass(&mut story).is_empty(), "it is inside, with no command");
    let commands = story.submit(1, WRITE, 50, 1);
    assert_eq!(commands.len(), 2);
    assert!(pass(&mut story).is_empty());
    story.complete(&commands[0]);
    story.complete(&commands[1]);
    let block = pass(&mut story);
    assert_eq!(Story::sent(&block), [(0, READ, 30, 10), (0, READ, 40, 10)]);
    // One that was let in and never comes.
    let other = request(2, WRITE, 50, 1);
    assert!(!story.array.enter(story.now, &other));
    assert_eq!(to_the_end(&mut story, block), 3 * 2);
    assert!(story.array.enter(story.now, &other));
    assert!(pass(&mut story).is_empty());
    story.array.leave(&other);
    assert_eq!(pass(&mut story).len(), 2);
}

/// Linux drivers/md/raid10.c, `lower_barrier`: who waits is woken and has passed before the
/// sync's thread looks, which sleeps no tick then (`raid10_sync_request`: `nr_waiting`).
#[test]
fn who_knocked_is_let_in_before_the_sync_looks_whether_anybody_waits() {
    for barrier in [WriteBarrier::MdArray, WriteBarrier::MdBuckets] {
        let mut story = Story::new(config(
            2,
            100,
            RecoveryConfig {
                threads: Some(MdThreads {
                    turnaround: TURNAROUND,
                    ..MdThreads::LINUX_6_12
                }),
                // A checkpoint after each block: so the thread has not come to the next one.
                checkpoint: Some(CheckpointRule {
                    parts: u64::MAX,
                    interval: Nanos::ZERO,
                    interval_of_recovery: Nanos::ZERO,
                }),
                ..recovery(barrier)
            },
        ));
        let blocks = story.replace(1);
        assert_eq!(Story::sent(&blocks), [(0, READ, 0, 10)]);
        let write = request(1, WRITE, 50, 1);
        assert!(!story.array.enter(story.now, &write), "the barrier is up");
        let copies = story.complete(&blocks[0]);
        assert!(story.complete(&copies[0]).is_empty(), "the write is inside");
        assert!(story.array.enter(story.now, &write));
        let mut next = Vec::new();
        for command in story.submit(1, WRITE, 50, 1) {
            next = story.complete(&command);
        }
        story.now += TURNAROUND;
        story.array.tick(story.now, &mut story.out);
        next.extend(story.commands());
        assert_eq!(Story::sent(&next), [(0, READ, 10, 10)], "{barrier:?}");
    }
}

/// Linux drivers/md/raid10.c and raid1.c, `raise_barrier`: a block that found nobody waiting
/// has raised the barrier, and waits for a place in the window with it up; so who comes
/// meanwhile waits for that block as well.
#[test]
fn a_block_that_waits_for_a_place_has_raised_the_barrier() {
    for barrier in [WriteBarrier::MdArray, WriteBarrier::MdBuckets] {
        let mut story = Story::new(config(
            2,
            100,
            RecoveryConfig {
                threads: Some(MdThreads {
                    turnaround: TURNAROUND,
                    ..MdThreads::LINUX_6_12
                }),
                ..recovery(barrier)
            },
        ));
        let blocks = story.replace(1);
        assert_eq!(blocks.len(), 2, "the depth");
        assert!(story.submit(1, WRITE, 50, 1).is_empty());
        let copies = story.complete(&blocks[0]);
        let next = story.complete(&copies[0]);
        assert_eq!(Story::sent(&next), [(0, READ, 20, 10)], "{barrier:?}");
        let copies = story.complete(&blocks[1]);
        assert!(story.complete(&copies[0]).is_empty(), "the write waits");
    }
}

/// Linux block/blk-mq-tag.c, `blk_mq_get_tag`: the sync's thread sleeps where a member's
/// queue is full, with a block that has begun, and so does the array's with its write; what
/// was read meanwhile waits for that.
#[test]
fn threads_sleep_where_a_queue_is_full() {
    let threads = Some(MdThreads {
        turnaround: TURNAROUND,
        requests: HostRequests {
            requests: 1,
            tags: 1,
        },
        ..MdThreads::LINUX_6_12
    });
    let mut story = Story::new(config(
        2,
        100,
        RecoveryConfig {
            depth: 4,
            threads,
            ..recovery(WriteBarrier::MdBuckets)
        },
    ));
    let first = story.replace(1);
    assert_eq!(Story::sent(&first), [(0, READ, 0, 10)]);
    let second = story.complete(&first[0]);
    let both = [(0, READ, 10, 10), (1, WRITE, 0, 10)];
    assert_eq!(Story::sent(&second), both);
    let third = story.complete(&second[0]);
    assert_eq!(Story::sent(&third), [(0, READ, 20, 10)], "no second write");
    let fourth = story.complete(&third[0]);
    assert_eq!(Story::sent(&fourth), [(0, READ, 30, 10)]);
    let written = story.complete(&second[1]);
    assert_eq!(Story::sent(&written), [(1, WRITE, 10, 10)]);
}
