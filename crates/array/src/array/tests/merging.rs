//! Blocks that are merged, and a barrier for the whole array.

use super::config;
use super::story::{READ, Story, WRITE, recovery};
use crate::recovery::{RecoveryConfig, WriteBarrier};
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
