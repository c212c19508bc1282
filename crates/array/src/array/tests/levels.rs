//! What mirrors of two members do not show: other levels, check and repair,
//! corrections, bad blocks, syncs by ranges, failures to be recorded.

use super::story::{READ, Story, WRITE, recovery};
use super::{ALL, config, in_sync, logged};
use crate::admission::Admission;
use crate::config::{AdminError, ArrayConfig, ConfigError, Initial};
use crate::engine::{Engine, SyncAction};
use crate::member::MemberState;
use crate::recovery::{ReadRecovered, RecoveryConfig, WriteBarrier};
use crate::request::{
    ComputeStep, Event, MemberCommand, MemberError, Operation, RequestError, Slot, StepResult,
};
use raidlab_geometry::{Copies, Layout, Level, Shape};
use raidlab_units::{Nanos, Sectors, Span};

/// Blocks of 10 sectors, two at a time.
pub(super) fn with(shape: Shape, members: Vec<Initial>) -> ArrayConfig {
    ArrayConfig {
        shape,
        members,
        ..config(1, 100, recovery(WriteBarrier::Overlap))
    }
}

fn mirror(members: usize) -> Story {
    Story::new(ArrayConfig {
        members: in_sync(vec![logged(100, 0); members]),
        ..config(members, 100, recovery(WriteBarrier::Overlap))
    })
}

/// Chunks of 8 sectors; members of 32.
pub(super) fn striped(copies: Copies, members: usize) -> Shape {
    let layout = Layout::Copies(copies);
    Shape::uniform(Level::Raid10, layout, Sectors(8), members, Sectors(32))
}

pub(super) fn all(members: usize) -> Vec<Initial> {
    in_sync(vec![logged(32, 0); members])
}

impl Story {
    /// Answers every comparison: how many sectors differ.
    pub(super) fn compare(&mut self, different: impl Fn(Sectors) -> u64) -> Vec<MemberCommand> {
        let steps = std::mem::take(&mut self.out.steps);
        for step in steps {
            if let ComputeStep::Compare { id, count, .. } = step {
                let different = Sectors(different(count));
                let result = StepResult::Compared { different };
                self.array.computed(self.now, id, result, &mut self.out);
            }
        }
        self.commands()
    }
}

#[test]
fn a_striped_write_goes_to_the_copies_of_each_chunk() {
    let mut story = Story::new(with(striped(Copies::near(2), 4), all(4)));
    let writes = story.submit(1, WRITE, 6, 12);
    assert_eq!(
        Story::sent(&writes),
        [
            (0, WRITE, 6, 2),
            (1, WRITE, 6, 2),
            (2, WRITE, 0, 8),
            (3, WRITE, 0, 8),
            (0, WRITE, 8, 2),
            (1, WRITE, 8, 2)
        ]
    );
    story.drain(writes);
    assert_eq!(story.finished(), [(1, Ok(()))]);
}

#[test]
fn raid_10_loses_no_last_copy() {
    let mut story = Story::new(with(striped(Copies::near(2), 4), all(4)));
    story.fail(1).expect("slot 0 has its chunks");
    assert_eq!(story.fail(0), Err(AdminError::LastInSync(Slot(0))));
    story.fail(2).expect("slot 3 has its chunks");
    assert_eq!(story.array.health(), "[U__U]");
    // A write error of the last copy is the request's.
    let writes = story.submit(1, WRITE, 0, 8);
    story.answer(writes[0].id, Err(MemberError::Gone));
    assert_eq!(story.finished(), [(1, Err(RequestError::NoMember))]);
    assert_eq!(story.array.health(), "[U__U]");
}

#[test]
fn a_needed_member_that_fails_a_write_has_a_bad_block() {
    // Each pair of the three has chunks of its own.
    let mut story = Story::new(with(striped(Copies::near(2), 3), all(3)));
    story.fail(2).expect("not needed");
    story.events();
    let writes = story.submit(1, WRITE, 0, 4);
    story.complete(&writes[1]);
    story.answer(writes[0].id, Err(MemberError::Medium));
    assert_eq!(story.finished(), [(1, Err(RequestError::NoMember))]);
    let bad = (Slot(0), Sectors(0), Sectors(4));
    let (slot, start, count) = bad;
    assert_eq!(
        story.events(),
        [Event::BadBlocksFound { slot, start, count }]
    );
    let reads = story.submit(2, READ, 0, 8);
    assert_eq!(
        Story::sent(&reads),
        [(1, READ, 0, 4), (0, READ, 4, 4)],
        "the rest of the chunk may be read from either"
    );
    story.drain(reads);
    let writes = story.submit(3, WRITE, 2, 4);
    story.drain(writes);
    let (start, count) = (Sectors(2), Sectors(2));
    assert_eq!(
        story.events(),
        [Event::BadBlocksCleared { slot, start, count }]
    );
    let left: Vec<_> = story.array.members.bad_blocks(slot).collect();
    assert_eq!(left, [Span::new(0, 2)]);
}

#[test]
fn raid_0_and_linear_fail_no_member() {
    for level in [Level::Raid0, Level::Linear] {
        let layout = Layout::default_of(level);
        let shape = Shape::uniform(level, layout, Sectors(8), 2, Sectors(32));
        let mut story = Story::new(with(shape, all(2)));
        assert_eq!(story.fail(0), Err(AdminError::LastInSync(Slot(0))));
        for (id, operation) in [(1, READ), (2, WRITE), (3, Operation::Flush)] {
            let commands = story.submit(id, operation, 0, 8);
            story.answer(commands[0].id, Err(MemberError::Gone));
            story.drain(commands[1..].to_vec());
            assert_eq!(story.finished(), [(id, Err(RequestError::NoMember))]);
        }
        assert_eq!(story.array.health(), "[UU]");
        assert_eq!(story.events(), []);
        story
            .sync(SyncAction::Resync, None)
            .expect("nothing to be done");
        let started = Event::SyncStarted(Sectors(0));
        assert_eq!(story.events(), [started, Event::SyncFinished]);
        let mut missing = all(2);
        missing[1] = Initial::Missing;
        let shape = Shape::uniform(level, layout, Sectors(8), 2, Sectors(32));
        let error = crate::Array::new(with(shape, missing)).err();
        assert_eq!(error, Some(ConfigError::Incomplete));
    }
}

#[test]
fn raid_10_is_recovered_along_the_members_own_sectors() {
    // abc cab def fde: of member 1, chunks b, a, e, d.
    let mut story = Story::new(with(striped(Copies::offset(2), 3), all(3)));
    let mut commands = story.replace_with(1, logged(32, 0), ALL);
    let mut sent = Vec::new();
    while !commands.is_empty() {
        sent.extend(Story::sent(&commands));
        let status = story.array.sync_status().expect("under way");
        assert_eq!(status.total, Sectors(32));
        for command in std::mem::take(&mut commands) {
            commands.extend(story.complete(&command));
        }
    }
    let reads = sent.iter().filter(|(_, operation, ..)| *operation == READ);
    let expected = [
        (2, READ, 8, 8),
        (0, READ, 0, 8),
        (2, READ, 24, 8),
        (0, READ, 16, 8),
    ];
    assert_eq!(reads.copied().collect::<Vec<_>>(), expected);
    let writes = sent.iter().filter(|(_, operation, ..)| *operation == WRITE);
    let starts: Vec<_> = writes.map(|(slot, _, start, _)| (*slot, *start)).collect();
    assert_eq!(starts, [(1, 0), (1, 8), (1, 16), (1, 24)]);
    assert_eq!(story.array.health(), "[UUU]");
}

#[test]
fn what_the_ranges_leave_out_is_not_touched() {
    let mut story = mirror(2);
    let ranges = [(5, 8), (38, 52)];
    story
        .sync(SyncAction::Resync, Some(&ranges))
        .expect("nothing runs");
    let reads = story.commands();
    assert_eq!(Story::sent(&reads), [(0, READ, 5, 3), (0, READ, 38, 10)]);
    let copies = story.complete(&reads[0]);
    let last = story.complete(&copies[0]);
    assert_eq!(Story::sent(&last), [(0, READ, 48, 4)]);
    story.drain([&reads[1..], &last].concat());
    assert_eq!(story.events().last(), Some(&Event::SyncFinished));
}

#[test]
fn a_member_that_comes_back_is_given_what_it_missed() {
    let mut story = mirror(2);
    let admission = Admission::Ranges(vec![Span::new(20, 24), Span::new(90, 95)]);
    let reads = story.replace_with(1, logged(100, 0), admission);
    assert_eq!(Story::sent(&reads), [(0, READ, 20, 4), (0, READ, 90, 5)]);
    story.drain(reads);
    assert_eq!(story.array.health(), "[UU]");
}

#[test]
fn a_recovery_found_at_the_start_goes_on_behind_a_resync() {
    let members = vec![
        Initial::InSync(logged(100, 0)),
        Initial::Recovering(logged(100, 0), Admission::From(Sectors(85))),
        Initial::InSync(logged(100, 0)),
    ];
    let mut story = Story::new(ArrayConfig {
        members,
        ..config(3, 100, recovery(WriteBarrier::Overlap))
    });
    let recovering = |readable_below| MemberState::Recovering {
        readable_below: Sectors(readable_below),
    };
    let state = |story: &Story| story.array.members.states().nth(1);
    assert_eq!(state(&story), Some(recovering(85)));
    assert_eq!(story.array.next_tick(), Some(Nanos::ZERO));
    story
        .sync(SyncAction::Resync, Some(&[(0, 5)]))
        .expect("nothing runs yet");
    let reads = story.commands();
    assert_eq!(Story::sent(&reads), [(0, READ, 0, 5)]);
    let copies = story.complete(&reads[0]);
    assert_eq!(Story::sent(&copies), [(2, WRITE, 0, 5)]);
    let reads = story.complete(&copies[0]);
    assert_eq!(Story::sent(&reads), [(0, READ, 85, 10), (0, READ, 95, 5)]);
    // Stopped: what is there is kept, and where it was is where it goes on.
    let copies = story.complete(&reads[0]);
    story.array.stop_sync(Nanos::ZERO, &mut story.out);
    story.drain(copies);
    story.drain(vec![reads[1]]);
    assert_eq!(story.events().last(), Some(&Event::SyncAborted));
    assert_eq!(story.array.next_tick(), None);
    assert!(matches!(
        state(&story),
        Some(MemberState::Recovering { .. })
    ));
    story
        .sync(SyncAction::Check, Some(&[]))
        .expect("nothing runs");
    assert_eq!(story.array.health(), "[UUU]");
}

#[test]
fn a_check_tells_what_differs_and_where_and_a_repair_makes_it_agree() {
    for (action, repairs) in [(SyncAction::Check, false), (SyncAction::Repair, true)] {
        let mut story = mirror(3);
        story.sync(action, Some(&[(0, 10)])).expect("nothing runs");
        let reads = story.commands();
        assert_eq!(
            Story::sent(&reads),
            [(0, READ, 0, 10), (1, READ, 0, 10), (2, READ, 0, 10)]
        );
        for read in &reads {
            assert_eq!(story.complete(read), []);
        }
        // Both others differ in three sectors, of which the second part (of two
        // sectors) has one: the comparisons by parts tell.
        assert_eq!(story.compare(|_| 3), []);
        let writes = story.compare(|count| if count == Sectors(2) { 1 } else { 2 });
        if repairs {
            assert_eq!(
                Story::sent(&writes),
                [(1, WRITE, 0, 10), (2, WRITE, 0, 10)],
                "from the lowest slot"
            );
            story.drain(writes);
        } else {
            assert_eq!(writes, []);
        }
        let (start, count) = (Sectors(0), Sectors(3));
        assert_eq!(
            story.events(),
            [
                Event::SyncStarted(Sectors(0)),
                Event::Mismatch { start, count },
                Event::SyncFinished
            ]
        );
    }
}

#[test]
fn a_read_error_is_corrected_while_writes_wait() {
    let mut story = mirror(2);
    let first = story.submit(1, READ, 50, 4);
    let second = story.answer(first[0].id, Err(MemberError::Medium));
    assert_eq!(second.len(), 2, "for the request and for the correction");
    assert_eq!(story.submit(2, WRITE, 53, 4), [], "held back");
    let elsewhere = story.submit(3, WRITE, 54, 4);
    assert_eq!(elsewhere.len(), 2);
    story.complete(&second[0]);
    assert_eq!(story.finished(), [(1, Ok(()))]);
    let rewrite = story.complete(&second[1]);
    assert_eq!(Story::sent(&rewrite), [(0, WRITE, 50, 4)]);
    let released = story.complete(&rewrite[0]);
    assert_eq!(
        Story::sent(&released),
        [(0, WRITE, 53, 4), (1, WRITE, 53, 4)]
    );
    let (slot, start, count) = (Slot(0), Sectors(50), Sectors(4));
    assert_eq!(
        story.events(),
        [Event::ReadErrorCorrected { slot, start, count }]
    );
    assert!(!story.array.is_idle());
    story.drain([released, elsewhere].concat());
    assert!(story.array.is_idle());
}

#[test]
fn a_read_goes_back_to_the_member_that_was_corrected_while_it_asked_others() {
    let mut story = mirror(3);
    let first = story.submit(1, READ, 50, 4);
    let second = story.answer(first[0].id, Err(MemberError::Medium));
    let rewrite = story.complete(&second[1]);
    assert_eq!(Story::sent(&rewrite), [(0, WRITE, 50, 4)]);
    story.complete(&rewrite[0]);
    let third = story.answer(second[0].id, Err(MemberError::Gone));
    let last = story.answer(third[0].id, Err(MemberError::Gone));
    assert_eq!(Story::sent(&last), [(0, READ, 50, 4)]);
    story.complete(&last[0]);
    assert_eq!(story.finished(), [(1, Ok(()))]);

    // Where nothing was mended, each is asked once.
    let read = story.submit(2, READ, 50, 4);
    story.answer(read[0].id, Err(MemberError::Medium));
    assert_eq!(story.finished(), [(2, Err(RequestError::NoMember))]);
}

#[test]
fn a_rewrite_that_fails_fails_the_member() {
    let mut story = mirror(2);
    let first = story.submit(1, READ, 50, 4);
    let second = story.answer(first[0].id, Err(MemberError::Medium));
    let rewrite = story.complete(&second[1]);
    story.answer(rewrite[0].id, Err(MemberError::Medium));
    story.complete(&second[0]);
    assert_eq!(story.events(), [Event::MemberFailed(Slot(0))]);
}

#[test]
fn what_no_copy_can_read_at_once_is_read_part_by_part() {
    let mut story = mirror(2);
    let first = story.submit(1, READ, 12, 10);
    let second = story.answer(first[0].id, Err(MemberError::Medium));
    let parts = story.answer(second[0].id, Err(MemberError::Medium));
    let sent = Story::sent(&parts);
    assert_eq!(sent.len(), 2, "{sent:?}");
    assert!(sent.iter().all(|(_, operation, ..)| *operation == READ));
    let ranges: Vec<_> = sent
        .iter()
        .map(|(.., start, count)| (*start, *count))
        .collect();
    assert_eq!(ranges, [(12, 4), (16, 6)]);
    story.drain([&second[1..], &parts].concat());
    assert_eq!(story.finished(), [(1, Ok(()))]);
}

#[test]
fn recovery_goes_on_over_what_nobody_can_read() {
    let mut story = mirror(2);
    let reads = story.replace_with(1, logged(100, 0), ALL);
    assert_eq!(Story::sent(&reads), [(0, READ, 0, 10), (0, READ, 10, 10)]);
    let part = story.answer(reads[0].id, Err(MemberError::Medium));
    assert_eq!(Story::sent(&part), [(0, READ, 0, 8)]);
    let rest = story.answer(part[0].id, Err(MemberError::Medium));
    assert_eq!(Story::sent(&rest), [(0, READ, 8, 2)]);
    let copy = story.complete(&rest[0]);
    assert_eq!(Story::sent(&copy), [(1, WRITE, 8, 2)]);
    story.drain([copy, reads[1..].to_vec()].concat());
    assert_eq!(story.array.health(), "[UU]");
    let (slot, start, count) = (Slot(1), Sectors(0), Sectors(8));
    let found = Event::BadBlocksFound { slot, start, count };
    assert!(story.events().contains(&found));
    let reads = story.submit(1, READ, 4, 8);
    let slots: Vec<_> = reads.iter().map(|read| read.slot.0).collect();
    assert_eq!(slots, [0, 1], "below 8 only slot 0 can have it");
}

#[test]
fn a_write_waits_until_the_failure_is_recorded() {
    let mut story = Story::new(ArrayConfig {
        record_failures: true,
        ..config(2, 100, recovery(WriteBarrier::Overlap))
    });
    let early = story.submit(1, WRITE, 0, 8);
    story.answer(early[1].id, Err(MemberError::Medium));
    story.complete(&early[0]);
    assert_eq!(story.finished(), [], "slot 1 could come back without it");
    assert_eq!(story.submit(2, WRITE, 50, 8), []);
    assert_eq!(story.submit(3, Operation::Flush, 0, 0), []);
    let read = story.submit(4, READ, 0, 8);
    story.complete(&read[0]);
    assert_eq!(story.finished(), [(4, Ok(()))]);
    story
        .array
        .failure_recorded(Nanos::ZERO, Slot(1), &mut story.out);
    assert_eq!(story.finished(), [(1, Ok(()))]);
    let released = story.commands();
    assert_eq!(
        Story::sent(&released),
        [(0, WRITE, 50, 8), (0, Operation::Flush, 0, 0)]
    );
    story.drain(released);
    assert_eq!(story.finished(), [(2, Ok(())), (3, Ok(()))]);
}

#[test]
fn a_recovered_part_serves_reads_of_a_striped_array() {
    let mut story = Story::new(ArrayConfig {
        recovery: RecoveryConfig {
            read_recovered: ReadRecovered::BelowPosition,
            ..recovery(WriteBarrier::Overlap)
        },
        ..with(striped(Copies::near(2), 4), all(4))
    });
    let reads = story.replace_with(1, logged(32, 0), ALL);
    let copy = story.complete(&reads[0]);
    story.array.freeze_sync();
    story.complete(&copy[0]);
    // Sectors 0 to 8 of the member are chunk 0; slot 0 reads for the recovery.
    assert_eq!(story.submit(1, READ, 0, 8)[0].slot, Slot(1));
    assert_eq!(story.submit(2, READ, 16, 8)[0].slot, Slot(0));
}
