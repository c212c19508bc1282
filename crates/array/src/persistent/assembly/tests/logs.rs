//! Write logs: whose count.

use super::*;
use raidlab_units::Span;

#[test]
fn the_write_hole_refuses_unless_the_log_is_whole() {
    let mut found = set(Level::Raid6, &[10, 10, 10, 10]);
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
    }
    assert!(decide(&found).unwrap().resync.is_some(), "all are there");
    found.remove(2);
    let run = |found: &[Candidate]| decide_with(found, |options| options.run_degraded = true);
    let refused = |log| AssembleError::DirtyDegraded {
        missing: SlotSet::only(Slot(2)),
        log,
    };
    let absent = refused(LogFault::Absent("a".to_owned()));
    assert_eq!(run(&found).unwrap_err(), absent);
    assert!(absent.to_string().contains("write hole"));
    for member in &mut found {
        log(member, 77);
    }
    let assembly = run(&found).unwrap();
    let replay = assembly.replay.unwrap();
    assert_eq!((replay.session, replay.logs.len()), (77, 3));
    assert_eq!(assembly.resync, None);
    log(&mut found[1], 78);
    let other = refused(LogFault::OtherSession("b".to_owned()));
    assert_eq!(run(&found).unwrap_err(), other);
    log_with(&mut found[1], 77, |block| block.checksums = [1, 2]);
    let overtaken = refused(LogFault::Overtaken("b".to_owned()));
    assert_eq!(run(&found).unwrap_err(), overtaken);
    let forced = decide_with(&found, |options| options.force = true).unwrap();
    assert!(forced.resync.is_some() && forced.replay.is_none());
}

/// With it nothing that is computed could be trusted until a resync is over; without it
/// all is well.
#[test]
fn a_log_that_cannot_be_read_is_better_left_out() {
    let mut found = set(Level::Raid5, &[10, 10, 10]);
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
        log(member, 5);
    }
    found[1].log = LogSuperblock::decode([None; 2]);
    let refused = AssembleError::LogUnreadable {
        member: "b".to_owned(),
    };
    assert_eq!(decide(&found).unwrap_err(), refused);
    let forced = decide_with(&found, |options| options.force = true).unwrap();
    assert!(forced.resync.is_some() && forced.replay.is_none());
    let untouched = decide_with(&found, |options| options.read_only = true);
    assert!(untouched.unwrap().resync.is_some());
    // The others know nothing either: there is nothing to be gained without it.
    let mut void = found.clone();
    void[0].log = None;
    assert!(decide(&void).unwrap().resync.is_some());
    found.remove(1);
    let without = decide_with(&found, |options| options.run_degraded = true).unwrap();
    assert_eq!(
        (without.replay.unwrap().logs.len(), without.resync),
        (2, None)
    );
}

#[test]
fn a_log_does_not_stand_in_for_a_resync_after_a_crash() {
    let mut found = set(Level::Raid5, &[10, 10, 10]);
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
        log_with(member, 5, |block| block.says.in_sync_below = Sectors(1024));
    }
    let assembly = decide(&found).unwrap();
    assert!(assembly.replay.is_some());
    assert_eq!(assembly.resync.unwrap().from, Sectors(1024));
    let refused = decide_with(&found[1..], |options| options.run_degraded = true);
    assert!(matches!(
        refused,
        Err(AssembleError::DirtyDegraded {
            log: LogFault::NeverInSync,
            ..
        })
    ));
}

#[test]
fn a_first_resync_that_all_logs_know_of_is_no_reason_to_refuse() {
    let mut found = set(Level::Raid5, &[10, 10, 10]);
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
        log_with(member, 5, |block| {
            block.says.in_sync_below = Sectors(1024);
            block.says.first_resync = true;
        });
    }
    for members in [&found[..], &found[1..]] {
        let assembly = decide_with(members, |options| options.run_degraded = true).unwrap();
        assert!(assembly.replay.is_some());
        let resync = assembly.resync.unwrap();
        assert_eq!((resync.from, resync.is_first), (Sectors(1024), true));
    }
    // One of them knows of a write that was torn.
    log_with(&mut found[2], 5, |block| {
        block.says.in_sync_below = Sectors(2048);
    });
    assert!(!decide(&found).unwrap().resync.unwrap().is_first);
    let refused = decide_with(&found[1..], |options| options.run_degraded = true);
    assert!(matches!(refused, Err(AssembleError::DirtyDegraded { .. })));
}

#[test]
fn what_was_never_in_use_has_nothing_torn() {
    let mut found = set(Level::Raid5, &[0, 0, 0]);
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
    }
    for members in [&found[..], &found[1..]] {
        let assembly = decide_with(members, |options| options.run_degraded = true).unwrap();
        assert!(assembly.resync.unwrap().is_first);
    }
    // Two runs were cut short before they began: each reached one of the members.
    for (at, session) in [(0, 5), (1, 6)] {
        superblock(&mut found[at]).events = 1;
        log(&mut found[at], session);
    }
    assert!(decide(&found).unwrap().resync.unwrap().is_first);
    superblock(&mut found[2]).events = 1;
    log(&mut found[2], 6);
    assert!(decide(&found).unwrap().resync.unwrap().is_first);
    // The second may have begun without the first.
    let both = decide_with(&found[1..], |options| options.run_degraded = true).unwrap();
    assert!(both.replay.is_some());
    for member in &mut found {
        member.log = None;
    }
    // Once it was, the superblocks alone do not tell.
    for member in &mut found {
        superblock(member).events = 1;
    }
    assert!(!decide(&found).unwrap().resync.unwrap().is_first);
    let refused = decide_with(&found[1..], |options| options.run_degraded = true);
    assert!(refused.is_err());
    // Stopped cleanly in its first resync: the emptied logs say so.
    for member in &mut found {
        superblock(member).resync_offset = Sectors(512);
        log_with(member, 0, |block| {
            block.says.in_sync_below = Sectors(512);
            block.says.first_resync = true;
        });
    }
    for members in [&found[..], &found[1..]] {
        let assembly = decide_with(members, |options| options.run_degraded = true).unwrap();
        let resync = assembly.resync.unwrap();
        assert_eq!((resync.from, resync.is_first), (Sectors(512), true));
    }
    // The kernel has used it since.
    superblock(&mut found[1]).updated += 1;
    assert!(!decide(&found).unwrap().resync.unwrap().is_first);
}

#[test]
fn of_two_log_superblocks_the_one_that_knows_the_superblock_counts() {
    let mut member = candidate(Level::Raid5, 3, 0, 10);
    let own = member.metadata.superblock.clone();
    log(&mut member, 3);
    let old = member.log.unwrap().of(&own).unwrap();
    // The next one was written, the superblock after it was not, or is torn.
    let next = LogBlock {
        checksums: [5, old.checksums[1]],
        sequence: 1,
        ..old
    };
    let later = LogBlock {
        checksums: [6, 5],
        sequence: 1,
        ..old
    };
    assert_eq!((old.place(), next.place()), (Sectors(0), Sectors(8)));
    let both = |second: Vec<u8>| {
        let blocks = [old.encode(), second];
        let found = LogSuperblock::decode(blocks.each_ref().map(|block| Some(&block[..])));
        found.unwrap().of(&own)
    };
    assert_eq!(both(next.encode()), Some(next));
    assert_eq!(both(later.encode()), Some(old));
    let mut torn = next.encode();
    torn[0] = 0;
    assert_eq!(both(torn), Some(old));
    assert_eq!(LogSuperblock::decode([Some(&[0; 4096]); 2]), None);
    assert_eq!(LogSuperblock::decode([Some(&[]); 2]), None);
    // One that cannot be read does not hide the other.
    let one = LogSuperblock::decode([None, Some(&old.encode())]).unwrap();
    assert_eq!((one.of(&own), one.is_unreadable()), (Some(old), true));
}

/// A degraded array of two members that crashed, with a log of session 1.
fn crashed() -> Vec<Candidate> {
    let mut found = set(Level::Raid5, &[10, 10, 10]);
    found.remove(2);
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
        let events = superblock(member).events;
        let own = checksum(superblock(member)).unwrap();
        log_with(member, 1, |block| {
            block.checksums = [own, 77];
            block.sequence = events;
        });
    }
    found
}

/// The first log superblock of session 2 arrives on a member, and the next md
/// superblock too if `whole`.
fn starts_again(member: &mut Candidate, whole: bool) {
    let old = member.log.unwrap();
    let own = superblock(member);
    let before = checksum(own).unwrap();
    let old = old.of(own).unwrap();
    let mut next = own.clone();
    next.events += 1;
    let new = LogBlock {
        says: LogSays {
            session: 2,
            ..old.says
        },
        checksums: [checksum(&next).unwrap(), before],
        sequence: old.sequence + 1,
        ..old
    };
    member.log = LogSuperblock::decode([Some(&old.encode()), Some(&new.encode())]);
    if whole {
        member.metadata.superblock = next;
    }
}

#[test]
fn a_crash_while_a_new_session_begins_leaves_a_log_in_common() {
    let session = |found: &[Candidate]| {
        let assembly = decide_with(found, |options| options.run_degraded = true).unwrap();
        let sequence = |at: usize| {
            let member = &assembly.members[at].candidate;
            member
                .log
                .unwrap()
                .of(member.superblock())
                .unwrap()
                .sequence
        };
        (
            assembly.replay.as_ref().unwrap().session,
            [sequence(0), sequence(1)],
        )
    };
    let mut found = crashed();
    assert_eq!(session(&found), (1, [10, 10]));
    // One log superblock after the other.
    starts_again(&mut found[0], false);
    assert_eq!(session(&found), (1, [10, 10]));
    // One md superblock after the other.
    let mut mixed = crashed();
    starts_again(&mut mixed[0], true);
    starts_again(&mut mixed[1], false);
    assert_eq!(session(&mixed), (2, [11, 11]));
    starts_again(&mut found[1], false);
    assert_eq!(session(&found), (1, [10, 10]));
    mixed[1] = crashed().remove(1);
    starts_again(&mut mixed[1], true);
    assert_eq!(session(&mixed), (2, [11, 11]));
    // Nothing in common: the member failed in the pass, and nothing came after.
    mixed[1] = crashed().remove(1);
    assert_eq!(session(&mixed), (2, [11, 10]));
    // Nothing in common, and none is behind: this cannot be.
    log(&mut mixed[1], 3);
    superblock(&mut mixed[1]).events = 11;
    log(&mut mixed[1], 3);
    let refused = decide_with(&mixed, |options| options.run_degraded = true);
    let other = AssembleError::DirtyDegraded {
        missing: SlotSet::only(Slot(2)),
        log: LogFault::OtherSession("b".to_owned()),
    };
    assert_eq!(refused.unwrap_err(), other);
}

#[test]
fn the_least_room_that_a_plan_leaves_is_enough_for_a_log() {
    let mut found = set(Level::Raid5, &[10, 10, 10]);
    let reserve = raidlab_metadata::create::default_log_reserve(Sectors(0));
    for (start, member) in (600..).step_by(8).zip(&mut found) {
        member.metadata.log_area = Sectors(start)..Sectors(start) + reserve;
    }
    let options = EngineOptions::new("md-6.9".parse().unwrap());
    let settings = Settings::new(Nanos(0), 7);
    let config = decide(&found).unwrap().stripe_config(&options, &settings);
    // What they have in common, behind the superblock of the log.
    let ring = Span::new(616 + 16, 600 + reserve.0);
    assert_eq!(config.unwrap().log.unwrap().ring, ring);
}

#[test]
fn members_that_failed_while_a_session_began_have_missed_nothing() {
    // The first md superblock of session 2 is on the first member, and its log
    // superblock on the second; the others failed in that pass.
    let mut found = set(Level::Raid6, &[10, 10, 10, 10, 10]);
    found.pop();
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
        let own = checksum(superblock(member)).unwrap();
        log_with(member, 1, |block| block.checksums = [own, 77]);
    }
    starts_again(&mut found[0], true);
    starts_again(&mut found[1], false);
    // One of them has never had a log.
    found[3].log = None;
    let assembly = decide_with(&found, |options| options.run_degraded = true).unwrap();
    let replay = assembly.replay.as_ref().unwrap();
    assert_eq!((replay.session, replay.logs.len()), (2, 2));
    let in_sync = (0..4).map(|slot| Part::InSync(Slot(slot)));
    let own = parts(&assembly).into_iter().map(|(_, part)| part);
    assert!(own.eq(in_sync));
    // From here on they have the log of the others.
    for member in &assembly.members {
        let log = member.candidate.log.unwrap();
        assert_eq!(
            log.of(member.candidate.superblock()).unwrap().says.session,
            2
        );
    }
}

#[test]
fn a_member_that_a_replay_did_without_is_out_of_date() {
    let mut found = set(Level::Raid5, &[10, 10, 10]);
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
        log(member, 1);
    }
    log_with(&mut found[0], 1, |block| {
        block.absent = Numbers::default().with(2);
    });
    let assembly = decide(&found).unwrap();
    assert_eq!(assembly.left_out[0].0, "c");
    assert_eq!(assembly.replay.as_ref().unwrap().logs.len(), 2);
    assert!(assembly.absent.contains(2) && !assembly.absent.contains(1));
    // It comes back as a spare: with its slot, it would soon look current.
    let rebuilt = decide_with(&found, |options| options.stale = Stale::Rebuild).unwrap();
    assert_eq!(parts(&rebuilt)[2], ("c", Part::Spare));
    assert!(rebuilt.absent.contains(2), "still not in service");
    let by_bitmap = decide_with(&found, |options| options.stale = Stale::ReAdd).unwrap();
    assert_eq!(by_bitmap.left_out[0].0, "c");
    // Without it there is nothing to say.
    assert!(!decide(&found[..2]).unwrap().absent.is_empty());
    found[0].log = None;
    log(&mut found[0], 1);
    let whole = decide(&found).unwrap();
    assert!(whole.left_out.is_empty() && whole.absent.is_empty());
}

/// An image from somewhere else may claim a log of any length. Memory for it is taken only if it
/// lies where a log can be.
#[test]
fn a_log_that_is_longer_than_its_place_does_not_count() {
    let mut member = candidate(Level::Raid5, 3, 0, 10);
    member.metadata.log_area = Sectors(64)..DATA;
    log(&mut member, 9);
    let block = member.log.unwrap().of(member.superblock()).unwrap();
    let is_log = |start: u64, end: Sectors| {
        let ring = Span::between(Sectors(start), end);
        let bytes = LogBlock { ring, ..block }.encode();
        let read = |at, into: &mut [u8]| {
            if at == Sectors(64) {
                into.copy_from_slice(&bytes);
            }
            true
        };
        LogSuperblock::read(&member.metadata, read).is_some()
    };
    assert!(is_log(80, DATA));
    assert!(!is_log(80, Sectors(1 << 50)));
    assert!(!is_log(72, DATA), "over its own superblock");
}
