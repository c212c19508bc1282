//! Recovery, resync, freezing and leaping, step by step.

use super::config;
use super::story::{READ, Story, WRITE, mirror, recovery};
use crate::config::AdminError;
use crate::engine::Engine;
use crate::engine::SyncAction;
use crate::member::MemberState;
use crate::recovery::{
    CheckpointRule, ReadRecovered, RecoveryConfig, SyncKind, SyncStatus, WriteBarrier,
};
use crate::request::{Event, MemberError, Purpose, Slot};
use raidlab_units::{Bytes, Nanos, Sectors};

#[test]
fn recovery_copies_block_by_block_and_checkpoints() {
    let mut story = Story::new(config(
        2,
        40,
        RecoveryConfig {
            checkpoint: Some(CheckpointRule {
                parts: 4,
                interval: Nanos::from_secs(300),
                interval_of_recovery: Nanos::from_secs(300),
            }),
            ..recovery(WriteBarrier::Overlap)
        },
    ));
    let reads = story.replace(1);
    assert_eq!(Story::sent(&reads), [(0, READ, 0, 10), (0, READ, 10, 10)]);
    assert!(reads.iter().all(|read| read.purpose == Purpose::Sync));
    assert_eq!(story.array.health(), "[U_]");
    let write = story.complete(&reads[1]);
    assert_eq!(Story::sent(&write), [(1, WRITE, 10, 10)]);
    // 20 started of 40, more than a quarter: the checkpoint waits for block 0.
    assert_eq!(story.complete(&write[0]), []);
    let status = |position, readable_below, in_flight| SyncStatus {
        kind: SyncKind::Recovery,
        position: Sectors(position),
        readable_below: Sectors(readable_below),
        total: Sectors(40),
        in_flight,
        sleeps: 0,
        fastest: None,
    };
    assert_eq!(story.array.sync_status(), Some(status(0, 0, 1)));
    let write = story.complete(&reads[0]);
    let reads = story.complete(&write[0]);
    assert_eq!(Story::sent(&reads), [(0, READ, 20, 10), (0, READ, 30, 10)]);
    assert_eq!(story.array.sync_status(), Some(status(20, 20, 2)));
    assert_eq!(
        story.array.members.states().nth(1),
        Some(MemberState::Recovering {
            readable_below: Sectors(20)
        })
    );
    story.drain(reads);
    assert_eq!(story.array.sync_status(), None);
    assert_eq!(story.array.health(), "[UU]");
    assert_eq!(
        story.events(),
        [
            Event::MemberFailed(Slot(1)),
            Event::MemberRemoved(Slot(1)),
            Event::MemberAdded(Slot(1)),
            Event::SyncStarted(Sectors(0)),
            Event::SyncCheckpoint(Sectors(20)),
            Event::SyncFinished,
        ]
    );
}

#[test]
fn a_member_added_during_recovery_waits_for_the_next_one() {
    let mut story = mirror(3);
    let first = story.replace(1);
    assert_eq!(story.replace(2), []);
    let writes = story.complete(&first[0]);
    assert_eq!(Story::sent(&writes), [(1, WRITE, 0, 10)]);
    let foreground = story.submit(1, WRITE, 90, 1);
    assert_eq!(foreground.len(), 3, "md writes to all that recover");
    let rest = [&writes[..], &first[1..], &foreground].concat();
    story.drain(rest);
    assert_eq!(story.array.health(), "[UUU]");
    let started = Event::SyncStarted(Sectors(0));
    assert_eq!(
        story
            .events()
            .iter()
            .filter(|&&event| event == started)
            .count(),
        2
    );
}

#[test]
fn gmirror_writes_only_what_is_below_the_next_block() {
    let mut story = Story::new(config(
        2,
        100,
        RecoveryConfig {
            block: Bytes(10 * 512),
            ..RecoveryConfig::gmirror()
        },
    ));
    let sync = story.replace(1);
    assert_eq!(sync.len(), 2);
    assert_eq!(
        Story::sent(&story.submit(1, WRITE, 20, 5)),
        [(0, WRITE, 20, 5)]
    );
    assert_eq!(
        story.submit(2, WRITE, 19, 5),
        [],
        "waits for the block at 10"
    );
    let copies = story.complete(&sync[1]);
    let after = story.complete(&copies[0]);
    assert_eq!(
        Story::sent(&after),
        [(0, WRITE, 19, 5), (1, WRITE, 19, 5)],
        "the block at 20 waits for both writes"
    );
}

#[test]
fn waiting_writes_go_on_in_order() {
    let mut story = Story::new(config(2, 1000, recovery(WriteBarrier::MdWindow)));
    let sync = story.replace(1);
    for (id, start) in [(1, 5), (2, 3), (3, 8)] {
        assert_eq!(story.submit(id, WRITE, start, 1), []);
    }
    // Two blocks in flight; the next one waits for the writes.
    let mut sent = Vec::new();
    for read in &sync {
        for write in story.complete(read) {
            sent.extend(story.complete(&write));
        }
    }
    let to_slot_0 = sent.iter().filter(|command| command.slot == Slot(0));
    let starts: Vec<_> = to_slot_0.map(|command| command.start.0).collect();
    assert_eq!(starts, [5, 3, 8]);
}

#[test]
fn frozen_starts_no_block_but_lets_one_through_that_writes_wait_for() {
    let mut story = Story::new(config(2, 1000, recovery(WriteBarrier::MdWindow)));
    // A write in the current window holds back the first block.
    let early = story.submit(1, WRITE, 500, 1);
    story.complete(&early[0]);
    story.complete(&early[1]);
    let write = story.submit(2, WRITE, 0, 1);
    assert_eq!(story.replace(1), [], "the block has raised the barrier");
    assert_eq!(
        story.submit(3, WRITE, 7, 1),
        [],
        "and this write waits for it"
    );
    story.array.freeze_sync();
    let in_flight = |story: &Story| story.array.sync_status().map(|status| status.in_flight);
    assert_eq!(in_flight(&story), Some(1), "not drained");
    story.complete(&write[1]);
    let block = story.complete(&write[0]);
    assert_eq!(Story::sent(&block), [(0, READ, 0, 10)], "one block only");
    let copy = story.complete(&block[0]);
    let released = story.complete(&copy[0]);
    assert_eq!(Story::sent(&released), [(0, WRITE, 7, 1), (1, WRITE, 7, 1)]);
    story.drain(released);
    assert_eq!(in_flight(&story), Some(0));
    story.array.thaw_sync(Nanos::ZERO, &mut story.out);
    assert_eq!(story.commands().len(), 2);
}

#[test]
fn writes_that_wait_for_an_aborted_recovery_go_on() {
    let mut story = Story::new(config(2, 1000, recovery(WriteBarrier::MdWindow)));
    let write = story.submit(1, WRITE, 0, 1);
    story.replace(1);
    assert_eq!(story.submit(2, WRITE, 7, 1), []);
    story.fail(1).expect("slot 0 is in sync");
    assert_eq!(Story::sent(&story.commands()), [(0, WRITE, 7, 1)]);
    assert_eq!(story.events().last(), Some(&Event::SyncAborted));
    assert_eq!(story.array.sync_status(), None);
    story.complete(&write[0]);
    assert_eq!(
        story.complete(&write[1]),
        [],
        "the removed disk answers late"
    );
    assert_eq!(story.finished(), [(1, Ok(()))]);
}

#[test]
fn a_block_that_nobody_can_read_fails_the_new_member() {
    let mut story = mirror(2);
    let reads = story.replace(1);
    story.answer(reads[0].id, Err(MemberError::Medium));
    assert_eq!(story.complete(&reads[1]), []);
    assert_eq!(story.array.sync_status(), None);
    assert_eq!(
        story.array.members.states().nth(1),
        Some(MemberState::Faulty)
    );
}

#[test]
fn a_dirty_mirror_reads_one_member_above_the_resync_position() {
    let mut story = Story::new(config(
        2,
        40,
        RecoveryConfig {
            read_recovered: ReadRecovered::BelowPosition,
            ..recovery(WriteBarrier::Overlap)
        },
    ));
    story.sync(SyncAction::Resync, None).expect("nothing runs");
    let reads = story.commands();
    assert_eq!(Story::sent(&reads), [(0, READ, 0, 10), (0, READ, 10, 10)]);
    let copy = story.complete(&reads[0]);
    assert_eq!(Story::sent(&copy), [(1, WRITE, 0, 10)]);
    story.array.freeze_sync();
    story.complete(&copy[0]);
    let slots = [(5, 5), (5, 6), (30, 1)].map(|(start, count)| {
        let read = story.submit(start * 100 + count, READ, start, count);
        read[0].slot.0
    });
    assert_eq!(
        slots,
        [1, 0, 0],
        "slot 0 reads for the resync and is busier"
    );
    let again = story.sync(SyncAction::Resync, None);
    assert_eq!(again, Err(AdminError::SyncRunning));
    story.array.thaw_sync(Nanos::ZERO, &mut story.out);
    let rest = [&reads[1..], &story.commands()].concat();
    story.drain(rest);
    assert_eq!(
        story.submit(1, READ, 30, 1)[0].slot,
        Slot(1),
        "balanced again"
    );
}

#[test]
fn a_leap_moves_position_checkpoint_and_end() {
    let mut story = Story::new(config(
        2,
        1600,
        RecoveryConfig {
            block: Bytes(10 * 512),
            ..RecoveryConfig::md_3_16()
        },
    ));
    story.array.freeze_sync();
    assert_eq!(story.replace(1), []);
    // An hour for half of the array: 66.7 sectors in five minutes, which is
    // less than a sixteenth, so the last checkpoint is that of the last minute.
    story
        .array
        .leap_sync(Nanos::from_secs(3660), Sectors(813), &mut story.out);
    let status = story.array.sync_status().expect("not at the end");
    assert_eq!(
        (status.position, status.readable_below),
        (Sectors(813), Sectors(799))
    );
    assert_eq!(
        story.events().last(),
        Some(&Event::SyncCheckpoint(Sectors(799)))
    );
    story
        .array
        .leap_sync(Nanos::from_secs(7200), Sectors(1600), &mut story.out);
    assert_eq!(story.events().last(), Some(&Event::SyncFinished));
    assert_eq!(story.array.health(), "[UU]");
}

/// Linux drivers/md/raid1.c, `raid1_error`: a check is interrupted, so that a spare is filled at
/// once, also where two copies are left to be compared.
#[test]
fn a_check_ends_when_a_member_is_lost() {
    for action in [SyncAction::Check, SyncAction::Repair] {
        let mut story = mirror(3);
        story.sync(action, None).expect("none runs");
        let reads = story.commands();
        story.fail(2).expect("two others are in sync");
        story.drain(reads);
        assert_eq!(story.compare(|_| 0), []);
        assert_eq!(story.array.sync_status(), None);
        story.replace(2);
        let kind = story.array.sync_status().map(|sync| sync.kind);
        assert_eq!(kind, Some(SyncKind::Recovery));
    }
}
