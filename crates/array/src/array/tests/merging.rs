//! Blocks that are merged, and a barrier for the whole array.

use super::config;
use super::story::{READ, Story, WRITE, recovery};
use crate::recovery::{MdThreads, RecoveryConfig, WriteBarrier};
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
    story.complete(&copies[0]);
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
    assert_eq!(Story::sent(&block), [(0, READ, 20, 10)]);
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
