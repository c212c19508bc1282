//! Copies that are apart, and members that lack something: who serves reads then, and
//! whose copy is called bad.

use super::levels::{all, striped, with};
use super::story::{READ, Story, WRITE, recovery};
use super::{ALL, config, in_sync, logged, member};
use crate::admission::Admission;
use crate::config::{ArrayConfig, Initial, MemberConfig};
use crate::engine::{Engine, SyncAction};
use crate::policy::ReadPolicyKind;
use crate::recovery::{MdThreads, ReadRecovered, RecoveryConfig, SyncKind, WriteBarrier};
use crate::request::{Event, MemberError, Operation, RequestError, Slot};
use raidlab_geometry::Copies;
use raidlab_units::{Nanos, Sectors, Span};

/// Blocks of 10 sectors, two at a time; what is copied is read at once.
fn eager() -> RecoveryConfig {
    RecoveryConfig {
        read_recovered: ReadRecovered::BelowPosition,
        ..recovery(WriteBarrier::Overlap)
    }
}

/// A mirror whose members remember bad blocks.
fn mirror(members: Vec<Initial>) -> Story {
    Story::new(ArrayConfig {
        members: members.clone(),
        ..config(members.len(), 100, eager())
    })
}

/// Whom two reads of a range go to, of which the second comes before the first has ended.
fn two_reads(story: &mut Story, start: u64, count: u64) -> [u16; 2] {
    [1001, 1002].map(|id| story.submit(id, READ, start, count)[0].slot.0)
}

/// Slot 1 is being filled, and is filled below sector 20; no block is under way.
fn half_filled() -> Story {
    let mut story = mirror(in_sync(vec![logged(100, 0); 2]));
    let reads = story.replace_with(1, logged(100, 0), ALL);
    story.array.freeze_sync();
    story.drain(reads);
    story.events();
    story
}

#[test]
fn what_a_given_up_resync_has_not_copied_stays_with_one_member() {
    // Without a bad-block log a sector that nobody can read ends the resync.
    let mut story = Story::new(config(2, 100, eager()));
    story.array.declare_dirty();
    story.sync(SyncAction::Resync, None).expect("nothing runs");
    let mut reads = story.commands();
    let second = reads.pop().expect("two blocks");
    while let Some(read) = reads.pop() {
        reads.extend(story.answer(read.id, Err(MemberError::Medium)));
    }
    assert_eq!(story.complete(&second), [], "nobody is left to write to");
    assert_eq!(story.events().last(), Some(&Event::SyncAborted));
    assert_eq!(two_reads(&mut story, 8, 1), [0, 0], "of the first block");
    assert_eq!(two_reads(&mut story, 12, 4), [0, 0], "of the second one");
}

/// md since Linux 6.9 reads the first member, and copies from one that is not write-mostly.
#[test]
fn a_dirty_mirror_shows_the_copy_that_its_resync_spreads() {
    for read_policy in ReadPolicyKind::OWN {
        let write_mostly = MemberConfig {
            write_mostly: true,
            ..logged(100, 0)
        };
        let mut story = Story::new(ArrayConfig {
            members: in_sync([write_mostly, logged(100, 0)]),
            read_policy,
            ..config(2, 100, eager())
        });
        story.array.declare_dirty();
        let shown = two_reads(&mut story, 50, 4);
        assert_eq!(shown, [1, 1], "{read_policy:?}");
        story.sync(SyncAction::Resync, None).expect("nothing runs");
        let sources: Vec<_> = story.commands().iter().map(|read| read.slot).collect();
        assert_eq!(sources, [Slot(1); 2], "{read_policy:?}");
    }
}

#[test]
fn where_nothing_can_be_compared_a_mirror_is_not_dirty() {
    let mut story = mirror(in_sync(vec![logged(100, 0); 2]));
    story.array.declare_dirty();
    story.fail(1).expect("not needed");
    story.sync(SyncAction::Resync, None).expect("nothing runs");
    assert_eq!(story.events().last(), Some(&Event::SyncFinished));
    let now = Nanos::ZERO;
    let (slot, out) = (Slot(1), &mut story.out);
    story.array.remove(now, slot, out).expect("it has failed");
    let added = story.array.add(now, slot, member(100, 0), ALL, out);
    added.expect("the slot is empty");
    let filling = story.commands();
    story.drain(filling);
    assert_eq!(story.array.health(), "[UU]");
    assert_eq!(two_reads(&mut story, 0, 4), [0, 1], "balanced");
}

#[test]
fn reads_wait_for_a_repair_whose_source_has_left_a_dirty_mirror() {
    let mut story = mirror(in_sync(vec![logged(100, 0); 2]));
    story.array.declare_dirty();
    story.sync(SyncAction::Repair, None).expect("nothing runs");
    let reads = story.commands();
    story.array.freeze_sync();
    for read in &reads {
        story.complete(read);
    }
    assert_eq!(story.compare(|_| 1), [], "where they differ is asked next");
    let writes = story.compare(|_| 1);
    let to: Vec<_> = writes.iter().map(|write| write.slot).collect();
    assert_eq!(to, [Slot(1); 2], "of both blocks");
    story.fail(0).expect("slot 1 is in sync");
    let read = story.submit(1, READ, 2, 4);
    assert_eq!(read, [], "it would see what slot 1 had before");
    let read = story.complete(&writes[0]);
    assert_eq!(Story::sent(&read), [(1, READ, 2, 4)]);
}

#[test]
fn a_resync_that_compares_copies_what_it_cannot_read_everywhere() {
    // As md's RAID 10 does, which compares.
    let compares = RecoveryConfig {
        threads: Some(MdThreads::LINUX_6_12),
        ..recovery(WriteBarrier::MdArray)
    };
    let mut story = Story::new(ArrayConfig {
        members: in_sync(vec![logged(100, 0); 2]),
        ..config(2, 100, compares)
    });
    story.array.declare_dirty();
    story.sync(SyncAction::Resync, None).expect("nothing runs");
    let reads = story.commands();
    story.array.freeze_sync();
    let mut sent = Vec::new();
    for read in reads.iter().filter(|read| read.start < Sectors(10)) {
        let result = match read.slot {
            Slot(1) => Err(MemberError::Medium),
            _ => Ok(()),
        };
        sent.extend(story.answer(read.id, result));
    }
    assert_eq!(Story::sent(&sent), [(0, READ, 0, 10)], "it is copied");
    assert_eq!(story.submit(1, READ, 2, 4), [], "until then they differ");
    let writes = story.complete(&sent[0]);
    assert_eq!(Story::sent(&writes), [(1, WRITE, 0, 10)]);
}

#[test]
fn a_repair_of_a_dirty_mirror_keeps_what_reads_have_seen() {
    let mostly_written = MemberConfig {
        write_mostly: true,
        ..logged(100, 0)
    };
    let mut story = mirror(in_sync([mostly_written, logged(100, 0)]));
    story.array.declare_dirty();
    assert_eq!(two_reads(&mut story, 2, 4), [1, 1]);
    story.sync(SyncAction::Repair, None).expect("nothing runs");
    let reads = story.commands();
    story.array.freeze_sync();
    for read in &reads {
        story.complete(read);
    }
    assert_eq!(story.compare(|_| 1), [], "where they differ is asked next");
    let writes = story.compare(|_| 1);
    let to: Vec<_> = writes.iter().map(|write| write.slot).collect();
    assert_eq!(to, [Slot(0); 2], "of both blocks");
}

#[test]
fn what_only_a_member_that_is_being_filled_took_is_not_read_from_it() {
    let mut story = half_filled();
    let writes = story.submit(1, WRITE, 4, 4);
    assert_eq!(Story::sent(&writes), [(0, WRITE, 4, 4), (1, WRITE, 4, 4)]);
    story.answer(writes[0].id, Err(MemberError::Medium));
    story.complete(&writes[1]);
    assert_eq!(story.finished(), [(1, Err(RequestError::NoMember))]);
    assert_eq!(two_reads(&mut story, 4, 4), [0, 0], "slot 1 differs there");
    let (slot, start, count) = (Slot(1), Sectors(4), Sectors(4));
    assert_eq!(
        story.events(),
        [Event::BadBlocksFound { slot, start, count }]
    );
    assert_eq!(two_reads(&mut story, 12, 4), [1, 1], "the rest is filled");
}

#[test]
fn of_two_needed_members_that_refuse_a_write_one_goes_on_being_read() {
    let mut story = Story::new(with(striped(Copies::near(2), 3), all(3)));
    story.fail(2).expect("not needed");
    let writes = story.submit(1, WRITE, 0, 4);
    for write in &writes {
        story.answer(write.id, Err(MemberError::Medium));
    }
    assert_eq!(story.finished(), [(1, Err(RequestError::NoMember))]);
    assert_eq!(two_reads(&mut story, 0, 4), [0, 0]);
}

#[test]
fn a_bad_block_that_is_found_meanwhile_takes_nothing_from_a_read() {
    let mut story = Story::new(with(striped(Copies::near(2), 3), all(3)));
    story.fail(2).expect("not needed");
    let read = story.submit(1, READ, 0, 8);
    assert_eq!(Story::sent(&read), [(0, READ, 0, 8)]);
    let writes = story.submit(2, WRITE, 2, 2);
    story.complete(&writes[0]);
    story.answer(writes[1].id, Err(MemberError::Medium));
    story.finished();
    // Sector 6 of slot 0 cannot be read; sectors 2 and 3 of slot 1 are bad.
    let mut reads = story.answer(read[0].id, Err(MemberError::Medium));
    while let Some(read) = reads.pop() {
        let is_latent =
            read.slot == Slot(0) && (read.start.0..read.start.0 + read.count.0).contains(&6);
        let result = match is_latent && read.operation == READ {
            true => Err(MemberError::Medium),
            false => Ok(()),
        };
        reads.extend(story.answer(read.id, result));
    }
    assert_eq!(story.finished(), [(1, Ok(()))]);
}

#[test]
fn a_member_that_is_being_filled_corrects_what_it_has() {
    let mut story = half_filled();
    let read = story.submit(1, READ, 4, 4);
    let again = story.answer(read[0].id, Err(MemberError::Medium));
    assert_eq!(read[0].slot, Slot(0));
    assert_eq!(
        Story::sent(&again),
        [(1, READ, 4, 4), (1, READ, 4, 4)],
        "for the request, and for the correction"
    );
    let written = story.complete(&again[1]);
    assert_eq!(Story::sent(&written), [(0, WRITE, 4, 4)]);
}

#[test]
fn a_member_that_is_filled_there_fills_another_one() {
    for filled in [
        Admission::From(Sectors(50)),
        Admission::Ranges(vec![Span::new(60, 70)]),
    ] {
        let mut story = mirror(vec![
            Initial::InSync(logged(100, 0)),
            Initial::Recovering(logged(100, 0), filled),
            Initial::Recovering(logged(100, 0), ALL),
        ]);
        story.array.tick(Nanos::ZERO, &mut story.out);
        let mut commands = story.commands();
        while let Some(command) = commands.pop() {
            // Slot 0 has lost its first eight sectors.
            let is_lost = command.slot == Slot(0) && command.start.0 < 8;
            let result = match is_lost && command.operation == READ {
                true => Err(MemberError::Medium),
                false => Ok(()),
            };
            commands.extend(story.answer(command.id, result));
        }
        let bad = |event: &Event| matches!(event, Event::BadBlocksFound { .. });
        assert!(!story.events().iter().any(bad), "slot 1 has the bytes");
        assert_eq!(story.array.health(), "[UUU]");
    }
}

#[test]
fn a_check_that_is_stopped_holds_no_recovery_back() {
    let mut story = mirror(in_sync(vec![logged(100, 0); 3]));
    story.sync(SyncAction::Check, None).expect("nothing runs");
    let reads = story.commands();
    story.replace_with(2, logged(100, 0), ALL);
    story.array.stop_sync(Nanos::ZERO, &mut story.out);
    for read in &reads {
        story.complete(read);
    }
    let filling = story.compare(|_| 0);
    let kind = story.array.sync_status().map(|status| status.kind);
    assert_eq!(kind, Some(SyncKind::Recovery));
    story.drain(filling);
    assert_eq!(story.array.health(), "[UUU]");
}

#[test]
fn an_array_that_may_write_no_more_gives_up_its_corrections() {
    let mut story = mirror(in_sync(vec![logged(100, 0); 2]));
    let mut sent = Vec::new();
    for (id, start) in [(1, 0), (2, 40)] {
        let read = story.submit(id, READ, start, 4).remove(0);
        sent.extend(story.answer(read.id, Err(MemberError::Medium)));
    }
    let reads = [READ; 3];
    let operations: Vec<_> = sent.iter().map(|one| one.operation).collect();
    assert_eq!(
        operations, reads,
        "both requests again, and the first correction"
    );
    story.array.set_corrects(false);
    let mut after = Vec::new();
    for command in &sent {
        after.extend(story.complete(command));
    }
    assert_eq!(after, []);
    assert_eq!(story.finished(), [(1, Ok(())), (2, Ok(()))]);
    assert!(!story.array.is_correcting());
}

/// After a crash the copies may differ. One sector of the copy that reads see cannot be read:
/// the rest of a longer read is seen as before.
#[test]
fn a_read_of_a_dirty_mirror_takes_from_another_only_what_cannot_be_read() {
    let mut story = mirror(in_sync(vec![logged(100, 0); 2]));
    story.array.declare_dirty();
    let read = story.submit(1, READ, 4, 20);
    assert_eq!(Story::sent(&read), [(0, READ, 4, 20)]);
    let parts = story.answer(read[0].id, Err(MemberError::Medium));
    let same = [(0, READ, 4, 4), (0, READ, 8, 8), (0, READ, 16, 8)];
    assert_eq!(Story::sent(&parts), same);
    story.complete(&parts[0]);
    story.complete(&parts[2]);
    let other = story.answer(parts[1].id, Err(MemberError::Medium));
    let other: Vec<_> = Story::sent(&other);
    // For the request, and to correct the copy.
    assert_eq!(other, [(1, READ, 8, 8); 2]);
}

/// What corrects a copy is what the read got that could not have it.
#[test]
fn a_correction_of_a_dirty_mirror_takes_the_copy_that_reads_have_seen() {
    let mostly_written = MemberConfig {
        write_mostly: true,
        ..logged(100, 0)
    };
    let members = [logged(100, 0), mostly_written, logged(100, 0)];
    let mut story = mirror(in_sync(members));
    story.array.declare_dirty();
    let read = story.submit(1, READ, 0, 8);
    assert_eq!(Story::sent(&read), [(0, READ, 0, 8)]);
    let other = story.answer(read[0].id, Err(MemberError::Medium));
    assert_eq!(Story::sent(&other), [(2, READ, 0, 8); 2]);
}

/// What the one has lost the other has: the resync may have to wait, for a check say, but reads
/// must not go to and fro meanwhile.
#[test]
fn a_flush_that_a_needed_member_refuses_leaves_one_copy_to_be_read() {
    let mut story = Story::new(with(striped(Copies::near(2), 3), all(3)));
    story.fail(2).expect("not needed");
    assert_eq!(two_reads(&mut story, 0, 4), [0, 1], "balanced");
    let flushes = story.submit(1, Operation::Flush, 0, 0);
    for flush in &flushes {
        let result = match flush.slot {
            Slot(0) => Err(MemberError::Gone),
            _ => Ok(()),
        };
        story.answer(flush.id, result);
    }
    assert_eq!(story.finished(), [(1, Err(RequestError::NoMember))]);
    assert_eq!(two_reads(&mut story, 0, 4), [0, 0]);
}
