//! Small stories, step by step.

use super::{config, member, request};
use crate::array::Array;
use crate::config::{AdminError, ArrayConfig, ConfigError};
use crate::member::MemberState;
use crate::policy::ReadPolicyKind;
use crate::recovery::{
    CheckpointRule, ReadRecovered, RecoveryConfig, SyncKind, SyncStatus, Throttle, WriteBarrier,
};
use crate::request::{
    CommandId, Event, MemberCommand, MemberError, Operation, Outputs, Purpose, RequestError, Slot,
};
use raidlab_units::{Bytes, Nanos, Sectors};
use std::error::Error;

const READ: Operation = Operation::Read;
const WRITE: Operation = Operation::Write;

/// An array with its outputs, and shorthands.
struct Story {
    array: Array,
    out: Outputs,
    now: Nanos,
}

impl Story {
    fn new(config: ArrayConfig) -> Self {
        Self {
            array: Array::new(config).expect("a sound configuration"),
            out: Outputs::default(),
            now: Nanos::ZERO,
        }
    }

    /// The commands since the last look.
    fn commands(&mut self) -> Vec<MemberCommand> {
        std::mem::take(&mut self.out.commands)
    }

    /// The commands since the last look as (slot, operation, start, count).
    fn sent(commands: &[MemberCommand]) -> Vec<(u16, Operation, u64, u64)> {
        let sent = commands.iter();
        sent.map(|command| {
            let (start, count) = (command.start.0, command.count.0);
            (command.slot.0, command.operation, start, count)
        })
        .collect()
    }

    fn submit(
        &mut self,
        id: u64,
        operation: Operation,
        start: u64,
        count: u64,
    ) -> Vec<MemberCommand> {
        let request = request(id, operation, start, count);
        self.array.submit(self.now, request, &mut self.out);
        self.commands()
    }

    fn complete(&mut self, command: &MemberCommand) -> Vec<MemberCommand> {
        self.answer(command.id, Ok(()))
    }

    fn answer(&mut self, id: CommandId, result: Result<(), MemberError>) -> Vec<MemberCommand> {
        self.array.complete(self.now, id, result, &mut self.out);
        self.commands()
    }

    fn fail(&mut self, slot: u16) -> Result<(), AdminError> {
        self.array.fail(self.now, Slot(slot), &mut self.out)
    }

    /// Replaces a member; gives the first sync commands.
    fn replace(&mut self, slot: u16) -> Vec<MemberCommand> {
        let slot = Slot(slot);
        let new = member(self.array.size().0, 0);
        self.array
            .remove(self.now, slot, &mut self.out)
            .expect("not the last one");
        self.array
            .add(self.now, slot, new, &mut self.out)
            .expect("the slot is empty");
        self.commands()
    }

    fn finished(&mut self) -> Vec<(u64, Result<(), RequestError>)> {
        let finished = self.out.finished.drain(..);
        finished
            .map(|finished| (finished.id.0, finished.result))
            .collect()
    }

    fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.out.events)
    }

    /// Completes everything, in order, until nothing is in flight.
    fn drain(&mut self, mut commands: Vec<MemberCommand>) {
        while !commands.is_empty() {
            for command in std::mem::take(&mut commands) {
                commands.extend(self.complete(&command));
            }
        }
    }
}

/// Blocks of 10 sectors, two at a time, no checkpoints on the way.
fn recovery(barrier: WriteBarrier) -> RecoveryConfig {
    RecoveryConfig {
        block: Bytes(10 * 512),
        depth: 2,
        barrier,
        throttle: Throttle::None,
        checkpoint: Some(CheckpointRule {
            parts: 1,
            interval: Nanos::from_secs(300),
        }),
        ..RecoveryConfig::md_3_16()
    }
}

fn mirror(members: usize) -> Story {
    Story::new(config(members, 100, recovery(WriteBarrier::Overlap)))
}

#[test]
fn a_failed_read_goes_to_another_member_until_none_is_left() {
    let mut story = mirror(2);
    let first = story.submit(1, READ, 50, 4);
    assert_eq!(Story::sent(&first), [(0, READ, 50, 4)]);
    let second = story.answer(first[0].id, Err(MemberError::Medium));
    assert_eq!(Story::sent(&second), [(1, READ, 50, 4)]);
    assert_eq!(story.finished(), []);
    assert_eq!(
        story.array.health(),
        "[UU]",
        "a medium error fails no member"
    );
    story.answer(second[0].id, Err(MemberError::Medium));
    assert_eq!(story.finished(), [(1, Err(RequestError::NoMember))]);
}

#[test]
fn an_answer_from_a_member_that_failed_meanwhile_is_not_used() {
    let mut story = mirror(2);
    let first = story.submit(1, READ, 50, 4);
    story.fail(0).expect("slot 1 is in sync");
    let second = story.complete(&first[0]);
    assert_eq!(story.finished(), []);
    assert_eq!(Story::sent(&second), [(1, READ, 50, 4)]);
    story.complete(&second[0]);
    assert_eq!(story.finished(), [(1, Ok(()))]);
}

#[test]
fn a_write_succeeds_if_one_member_takes_it_and_fails_those_that_do_not() {
    let mut story = mirror(3);
    let writes = story.submit(1, WRITE, 0, 8);
    assert_eq!(
        Story::sent(&writes),
        [(0, WRITE, 0, 8), (1, WRITE, 0, 8), (2, WRITE, 0, 8)]
    );
    story.complete(&writes[2]);
    story.answer(writes[0].id, Err(MemberError::Medium));
    assert_eq!(story.finished(), [], "slot 1 has not answered");
    story.answer(writes[1].id, Err(MemberError::Gone));
    assert_eq!(story.finished(), [(1, Ok(()))]);
    assert_eq!(story.array.health(), "[__U]");
    assert_eq!(
        story.events(),
        [Event::MemberFailed(Slot(0)), Event::MemberFailed(Slot(1))]
    );
}

#[test]
fn the_last_member_is_never_failed_but_its_errors_are_told() {
    let mut story = mirror(1);
    let write = story.submit(1, WRITE, 0, 8);
    story.answer(write[0].id, Err(MemberError::Gone));
    assert_eq!(story.finished(), [(1, Err(RequestError::NoMember))]);
    assert_eq!(story.array.health(), "[U]");
    assert_eq!(story.fail(0), Err(AdminError::LastInSync(Slot(0))));
    assert_eq!(story.fail(1), Err(AdminError::NoSuchSlot(Slot(1))));
}

#[test]
fn a_flush_goes_to_the_members_in_sync_only() {
    let mut story = mirror(3);
    let sync = story.replace(1);
    let flushes = story.submit(1, Operation::Flush, 0, 0);
    assert_eq!(
        Story::sent(&flushes),
        [(0, Operation::Flush, 0, 0), (2, Operation::Flush, 0, 0)]
    );
    story.complete(&flushes[0]);
    assert_eq!(story.finished(), []);
    story.complete(&flushes[1]);
    assert_eq!(story.finished(), [(1, Ok(()))]);
    story.drain(sync);
}

#[test]
fn commands_carry_the_data_offset_and_force_unit_access() {
    let mut story = Story::new(ArrayConfig {
        members: vec![member(100, 7), member(100, 9)],
        ..config(2, 100, recovery(WriteBarrier::Overlap))
    });
    let mut write = request(1, WRITE, 5, 3);
    write.force_unit_access = true;
    story.array.submit(Nanos::ZERO, write, &mut story.out);
    let commands = story.commands();
    assert_eq!(
        Story::sent(&commands),
        [(0, WRITE, 12, 3), (1, WRITE, 14, 3)]
    );
    assert!(commands.iter().all(|command| command.force_unit_access));
}

#[test]
#[should_panic(expected = "is not in flight")]
fn an_answer_to_nothing_is_an_error_of_the_driver() {
    let mut story = mirror(1);
    let read = story.submit(1, READ, 0, 1);
    story.complete(&read[0]);
    story.complete(&read[0]);
}

#[test]
fn verbs_refuse_what_makes_no_sense() {
    let mut story = mirror(2);
    let mut out = Outputs::default();
    let add = |story: &mut Story, slot, size, out: &mut Outputs| {
        story
            .array
            .add(Nanos::ZERO, Slot(slot), member(size, 0), out)
    };
    assert_eq!(
        add(&mut story, 5, 100, &mut out),
        Err(AdminError::NoSuchSlot(Slot(5)))
    );
    assert_eq!(
        add(&mut story, 1, 100, &mut out),
        Err(AdminError::Occupied(Slot(1)))
    );
    story.fail(1).expect("slot 0 is in sync");
    assert_eq!(story.fail(1), Err(AdminError::AlreadyFaulty(Slot(1))));
    assert_eq!(
        add(&mut story, 1, 100, &mut out),
        Err(AdminError::Occupied(Slot(1)))
    );
    let removed = story.array.remove(Nanos::ZERO, Slot(1), &mut out);
    assert_eq!(removed, Ok(()));
    let again = story.array.remove(Nanos::ZERO, Slot(1), &mut out);
    assert_eq!(again, Err(AdminError::Empty(Slot(1))));
    let (size, needed) = (99, 100);
    assert_eq!(
        add(&mut story, 1, 99, &mut out),
        Err(AdminError::TooSmall { size, needed })
    );
    assert_eq!(out.events, [Event::MemberRemoved(Slot(1))]);
}

#[test]
fn configurations_that_cannot_work_are_refused() {
    let good = || config(2, 100, RecoveryConfig::md_3_16());
    let refused = |config: ArrayConfig| {
        let error = Array::new(config).expect_err("cannot work");
        match error.source() {
            Some(source) => format!("{error}: {source}"),
            None => error.to_string(),
        }
    };
    let too_small = ArrayConfig {
        members: vec![member(100, 0), member(99, 0)],
        ..good()
    };
    let policy = ArrayConfig {
        read_policy: ReadPolicyKind::BtrfsDevid { slot: Slot(2) },
        ..good()
    };
    assert_eq!(
        Array::new(config(0, 100, RecoveryConfig::md_3_16())).err(),
        Some(ConfigError::NoMembers)
    );
    let recovery = config(
        2,
        100,
        RecoveryConfig {
            depth: 0,
            ..RecoveryConfig::md_3_16()
        },
    );
    let many = config(65, 100, RecoveryConfig::gmirror());
    let nothing = config(1, 0, RecoveryConfig::gmirror());
    let errors = [too_small, policy, recovery, many, nothing].map(refused);
    insta::assert_snapshot!(errors.join("\n"), @r"
    member 1 has 99 sectors, but the array needs 100 (data offset included)
    the read policy cannot be used: the read policy names slot 2, but the array has 2 members
    the recovery settings cannot be used: a depth of 0 copies nothing
    65 members are too many; at most 64 are possible
    an array needs at least one sector
    ");
}

#[test]
fn recovery_copies_block_by_block_and_checkpoints() {
    let mut story = Story::new(config(
        2,
        40,
        RecoveryConfig {
            checkpoint: Some(CheckpointRule {
                parts: 4,
                interval: Nanos::from_secs(300),
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
    };
    assert_eq!(story.array.sync_status(), Some(status(0, 0, 1)));
    let write = story.complete(&reads[0]);
    let reads = story.complete(&write[0]);
    assert_eq!(Story::sent(&reads), [(0, READ, 20, 10), (0, READ, 30, 10)]);
    assert_eq!(story.array.sync_status(), Some(status(20, 20, 2)));
    assert_eq!(
        story.array.member_states().nth(1),
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
        story.array.member_states().nth(1),
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
    story
        .array
        .start_resync(Nanos::ZERO, &mut story.out)
        .expect("nothing runs");
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
    let again = story.array.start_resync(Nanos::ZERO, &mut story.out);
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
