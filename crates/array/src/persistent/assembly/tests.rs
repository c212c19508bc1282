//! Tables of superblocks, and what they make.

use super::{AssembleOptions, Assembly, Candidate, LeftOut, NeededSync, Part, Stale, Update};
use crate::engine::{Admission, Span};
use crate::persistent::error::{AssembleError, LogFault};
use crate::persistent::log_superblock::{LogBlock, LogSuperblock, checksum};
use crate::persistent::{EngineOptions, Settings};
use raidlab_geometry::{Layout, Level, Slot, SlotSet};
use raidlab_metadata::{
    Bitmap, BitmapSuperblock, DeviceFlags, Features, MemberMetadata, Reshape, Role, Superblock,
    Uuid, Version,
};
use raidlab_units::{Bytes, Nanos, Sectors};

const ARRAY: Uuid = Uuid([7; 16]);
const MEMBER: Sectors = Sectors(8192);
const DATA: Sectors = Sectors(2048);
const USED: Sectors = Sectors(4096);

/// Member `number` of an array in which each number has the slot of its own.
fn candidate(level: Level, count: u16, number: u16, events: u64) -> Candidate {
    let mut roles: Vec<Role> = (0..count).map(Role::Slot).collect();
    roles.resize(16, Role::Spare);
    let name = ["a", "b", "c", "d", "e", "f"][usize::from(number)];
    Candidate {
        name: name.to_owned(),
        size: MEMBER,
        rotational: true,
        log: None,
        metadata: MemberMetadata {
            superblock: Superblock {
                version: Version::V1_2,
                features: Features(0),
                array_uuid: ARRAY,
                name: "host:0".to_owned(),
                created: 1,
                level: level.md_number(),
                layout: Layout::default_of(level).to_md(level),
                used_size: USED,
                chunk: if level == Level::Raid1 {
                    Sectors(0)
                } else {
                    Sectors(128)
                },
                raid_disks: count.into(),
                bitmap_offset: 8,
                reshape: Reshape::default(),
                data_offset: DATA,
                data_size: Sectors(MEMBER.0 - DATA.0),
                super_offset: Sectors(8),
                recovery_offset: Sectors(0),
                device_number: number.into(),
                corrected_read_errors: 0,
                device_uuid: Uuid([u8::try_from(number).unwrap(); 16]),
                device_flags: DeviceFlags(0),
                bad_block_log: None,
                updated: 2,
                events,
                resync_offset: Superblock::IN_SYNC,
                roles,
            },
            legacy: None,
            bitmap: None,
            bitmap_error: None,
            bad_blocks: Vec::new(),
            log_area: Sectors(0)..Sectors(0),
        },
    }
}

fn set(level: Level, events: &[u64]) -> Vec<Candidate> {
    let count = u16::try_from(events.len()).unwrap();
    (0..)
        .zip(events)
        .map(|(number, events)| candidate(level, count, number, *events))
        .collect()
}

fn superblock(candidate: &mut Candidate) -> &mut Superblock {
    &mut candidate.metadata.superblock
}

fn roles(candidate: &mut Candidate, roles: &[Role]) {
    superblock(candidate).roles[..roles.len()].copy_from_slice(roles);
}

fn decide(candidates: &[Candidate]) -> Result<Assembly, AssembleError> {
    decide_with(candidates, |_| ())
}

fn decide_with(
    candidates: &[Candidate],
    change: impl FnOnce(&mut AssembleOptions),
) -> Result<Assembly, AssembleError> {
    let mut options = AssembleOptions::default();
    change(&mut options);
    Assembly::decide(candidates.to_vec(), &options)
}

fn parts(assembly: &Assembly) -> Vec<(&str, Part)> {
    assembly
        .members
        .iter()
        .map(|member| (member.candidate.name.as_str(), member.part.clone()))
        .collect()
}

fn bitmap(candidate: &mut Candidate, events: u64, cleared: u64, chunks: &[u64]) {
    let mut superblock_of = BitmapSuperblock::new(ARRAY, USED, Bytes(64 * 512));
    superblock_of.events = events;
    superblock_of.events_cleared = cleared;
    let mut bitmap = Bitmap::new(superblock_of, false).unwrap();
    chunks.iter().for_each(|chunk| {
        bitmap.set(*chunk);
    });
    candidate.metadata.bitmap = Some(bitmap);
    superblock(candidate).features.0 |= Features::BITMAP;
}

fn log(candidate: &mut Candidate, session: u64) {
    log_with(candidate, session, |_| ());
}

fn log_with(candidate: &mut Candidate, session: u64, change: impl FnOnce(&mut LogBlock)) {
    let own = &candidate.metadata.superblock;
    let mut block = LogBlock {
        array_uuid: own.array_uuid,
        device_uuid: own.device_uuid,
        session,
        in_sync_below: Superblock::IN_SYNC,
        checksums: [1, checksum(own).unwrap()],
        ring: Span {
            start: Sectors(64),
            end: DATA,
        },
        sequence: 0,
    };
    change(&mut block);
    candidate.log = Some(block.into());
}

const fn span(start: u64, end: u64) -> Span {
    Span {
        start: Sectors(start),
        end: Sectors(end),
    }
}

const FAULTY: Role = Role::Faulty;

#[test]
fn order_and_names_do_not_matter_and_a_lag_of_one_is_taken() {
    let mut found = set(Level::Raid5, &[10, 9, 10]);
    found.rotate_left(1);
    let assembly = decide(&found).unwrap();
    let slots = [
        ("a", Part::InSync(Slot(0))),
        ("b", Part::InSync(Slot(1))),
        ("c", Part::InSync(Slot(2))),
    ];
    assert_eq!(parts(&assembly), slots);
    assert_eq!((assembly.resync, assembly.left_out), (None, vec![]));
    assert_eq!(assembly.size, Sectors(2 * USED.0));
}

#[test]
fn a_member_two_events_behind_is_stale() {
    let found = set(Level::Raid1, &[10, 8]);
    let missed = AssembleError::NeedsRun {
        present: 1,
        expected: 2,
    };
    assert_eq!(decide(&found).unwrap_err(), missed);
    let assembly = decide_with(&found, |options| options.run_degraded = true).unwrap();
    let reason = LeftOut::Stale {
        events: 8,
        newest: 10,
    };
    assert_eq!(assembly.left_out, [("b".to_owned(), reason)]);
}

#[test]
fn a_member_that_the_newest_calls_failed_never_comes_back_as_current() {
    // One event behind, but the other has recorded the failure.
    let mut found = set(Level::Raid1, &[10, 9]);
    roles(&mut found[0], &[Role::Slot(0), FAULTY]);
    let assembly = decide(&found).unwrap();
    assert_eq!(parts(&assembly), [("a", Part::InSync(Slot(0)))]);
    let rebuilt = decide_with(&found, |options| options.stale = Stale::Rebuild).unwrap();
    let filled = Part::Recovering(Slot(1), Admission::From(Sectors(0)));
    assert_eq!(parts(&rebuilt)[1], ("b", filled));
}

#[test]
fn split_brain_is_refused_and_named() {
    let mut found = set(Level::Raid1, &[40, 30]);
    roles(&mut found[0], &[Role::Slot(0), FAULTY]);
    roles(&mut found[1], &[FAULTY, Role::Slot(1)]);
    let refused = decide_with(&found, |options| options.run_degraded = true).unwrap_err();
    let text = refused.to_string();
    assert!(text.starts_with("split brain: a (events 40) and b (events 30)"));
    assert!(text.contains("--force would take a"), "{text}");
    let forced = decide_with(&found, |options| {
        options.force = true;
        options.stale = Stale::Rebuild;
    })
    .unwrap();
    assert_eq!(parts(&forced), [("a", Part::InSync(Slot(0)))]);
    assert_eq!(forced.left_out, [("b".to_owned(), LeftOut::SplitBrain)]);
    // The vacant slots tell even if nothing is called failed (kernels after
    // 4.x write 0xffff for what is not there).
    roles(&mut found[0], &[Role::Slot(0), Role::Spare]);
    roles(&mut found[1], &[Role::Spare, Role::Slot(1)]);
    let refused = decide_with(&found, |options| options.run_degraded = true);
    assert!(matches!(refused, Err(AssembleError::SplitBrain { .. })));
}

#[test]
fn members_that_failed_one_after_the_other_are_no_split_brain() {
    // c failed, then b; then c came back: b and c call each other failed, and
    // a was in service with both.
    let mut found = set(Level::Raid1, &[40, 20, 40]);
    roles(&mut found[0], &[Role::Slot(0), FAULTY, Role::Slot(2)]);
    roles(&mut found[1], &[Role::Slot(0), Role::Slot(1), FAULTY]);
    roles(&mut found[2], &[Role::Slot(0), FAULTY, Role::Slot(2)]);
    for candidates in [found.clone(), found[1..].to_vec()] {
        let assembly = decide_with(&candidates, |options| options.run_degraded = true).unwrap();
        assert_eq!(assembly.left_out.len(), 1);
        assert_eq!(assembly.left_out[0].0, "b");
    }
}

#[test]
fn a_replaced_member_that_returns_is_merely_stale() {
    // b failed and d (number 1 again) took its place.
    let mut found = set(Level::Raid1, &[60, 40, 60]);
    for at in [0, 2] {
        superblock(&mut found[at]).raid_disks = 2;
        roles(&mut found[at], &[Role::Slot(0), Role::Slot(1), Role::Spare]);
    }
    superblock(&mut found[1]).raid_disks = 2;
    superblock(&mut found[2]).device_number = 1;
    roles(&mut found[1], &[Role::Slot(0), Role::Slot(1), Role::Spare]);
    let assembly = decide(&found).unwrap();
    let names: Vec<&str> = parts(&assembly).iter().map(|(name, _)| *name).collect();
    assert_eq!(names, ["a", "c"]);
}

#[test]
fn dirty_arrays_resync_what_the_bitmap_names() {
    let mut found = set(Level::Raid1, &[10, 10]);
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
    }
    let all = NeededSync {
        from: Sectors(0),
        ranges: None,
    };
    assert_eq!(decide(&found).unwrap().resync, Some(all.clone()));
    // The union of both copies.
    bitmap(&mut found[0], 10, 3, &[0, 1]);
    bitmap(&mut found[1], 11, 3, &[1, 63]);
    let ranges = Some(vec![span(0, 128), span(63 * 64, 4096)]);
    let some = NeededSync {
        from: Sectors(0),
        ranges,
    };
    assert_eq!(decide(&found).unwrap().resync, Some(some));
    let forced = decide_with(&found, |options| options.update = Some(Update::Resync));
    assert_eq!(forced.unwrap().resync, Some(all.clone()));
    // Bitmaps behind the superblocks know nothing: all bits are set.
    bitmap(&mut found[0], 9, 3, &[0]);
    bitmap(&mut found[1], 9, 3, &[0]);
    let stale = decide(&found).unwrap();
    assert_eq!(stale.resync, Some(all));
    assert_eq!(stale.bitmap.unwrap().count_set(), 64);
}

#[test]
fn a_resync_goes_on_from_its_offset() {
    let mut found = set(Level::Raid1, &[10, 10]);
    for member in &mut found {
        superblock(member).resync_offset = Sectors(1000);
    }
    let resync = decide(&found).unwrap().resync.unwrap();
    assert_eq!((resync.from, resync.ranges), (Sectors(1000), None));
    for member in &mut found {
        bitmap(member, 10, 0, &[0, 14, 15, 16]);
    }
    let resync = decide(&found).unwrap().resync.unwrap();
    // Chunk 15 reaches from 960 to 1024, beyond 1000; chunk 14 does not.
    assert_eq!(resync.ranges, Some(vec![span(960, 1088)]));
}

#[test]
fn re_add_by_bitmap_needs_the_bits_since_the_member_left() {
    let mut found = set(Level::Raid1, &[40, 20]);
    roles(&mut found[0], &[Role::Slot(0), FAULTY]);
    let re_add = |found: &[Candidate]| {
        let assembly = decide_with(found, |options| options.stale = Stale::ReAdd).unwrap();
        parts(&assembly).get(1).map(|(_, part)| part.clone())
    };
    assert_eq!(re_add(&found), None, "without a bitmap");
    bitmap(&mut found[0], 40, 20, &[3]);
    let ranges = Admission::Ranges(vec![span(192, 256)]);
    assert_eq!(re_add(&found), Some(Part::Recovering(Slot(1), ranges)));
    bitmap(&mut found[0], 40, 21, &[3]);
    assert_eq!(re_add(&found), None, "bits were cleared since");
    bitmap(&mut found[0], 39, 20, &[3]);
    assert_eq!(re_add(&found), None, "a stale bitmap");
    bitmap(&mut found[0], 40, 20, &[3]);
    superblock(&mut found[1]).features.0 |= Features::RECOVERY_OFFSET;
    assert_eq!(re_add(&found), None, "it was never whole");
}

#[test]
fn recovery_goes_on_from_its_offset() {
    let mut found = set(Level::Raid5, &[10, 10, 10]);
    let half = superblock(&mut found[2]);
    half.features.0 |= Features::RECOVERY_OFFSET;
    half.recovery_offset = Sectors(2048);
    let assembly = decide(&found).unwrap();
    let filled = Part::Recovering(Slot(2), Admission::From(Sectors(2048)));
    assert_eq!(parts(&assembly)[2], ("c", filled));
    // It does not count as a member that holds data.
    let refused = decide(&found[1..]).unwrap_err();
    assert!(matches!(
        refused,
        AssembleError::NotEnough { present: 1, .. }
    ));
}

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

#[test]
fn a_log_does_not_stand_in_for_a_first_resync() {
    let mut found = set(Level::Raid5, &[10, 10, 10]);
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
        log_with(member, 5, |block| block.in_sync_below = Sectors(1024));
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
fn too_few_members_unless_force_takes_stale_ones() {
    let found = set(Level::Raid5, &[10, 4, 7]);
    let refused = AssembleError::NotEnough {
        present: 1,
        slots: 3,
        stale: vec!["c".to_owned(), "b".to_owned()],
    };
    assert_eq!(decide(&found).unwrap_err(), refused);
    let forced = decide_with(&found, |options| options.force = true).unwrap();
    assert_eq!(forced.forced, ["c"]);
    assert_eq!(forced.left_out[0].0, "b");
    // Neighbours in a RAID 10 of two near copies hold the same.
    let found = set(Level::Raid10, &[10, 10, 10, 10]);
    let run = |at: &[usize]| {
        let some: Vec<Candidate> = at.iter().map(|at| found[*at].clone()).collect();
        decide_with(&some, |options| options.run_degraded = true).map(|_| ())
    };
    assert_eq!(run(&[0, 2]), Ok(()));
    assert!(run(&[0, 1]).is_err());
}

#[test]
fn copies_twins_misfits_and_strangers() {
    let mut twin = set(Level::Raid1, &[10, 10, 8]);
    superblock(&mut twin[2]).device_uuid = Uuid([1; 16]);
    superblock(&mut twin[2]).device_number = 1;
    let assembly = decide_with(&twin, |options| options.run_degraded = true).unwrap();
    let older = LeftOut::OlderCopy("b".to_owned());
    assert_eq!(assembly.left_out, [("c".to_owned(), older)]);
    superblock(&mut twin[2]).events = 10;
    let same = AssembleError::SameDevice {
        left: "b".to_owned(),
        right: "c".to_owned(),
    };
    assert_eq!(decide(&twin).unwrap_err(), same);

    let mut two = set(Level::Raid1, &[10, 10, 10]);
    superblock(&mut two[2]).device_number = 1;
    assert_eq!(
        decide(&two).unwrap_err(),
        AssembleError::SlotClaimedTwice {
            slot: Slot(1),
            left: "b".to_owned(),
            right: "c".to_owned()
        }
    );

    let mut small = set(Level::Raid1, &[10, 10]);
    small[1].size = Sectors(DATA.0 + USED.0 - 1);
    let assembly = decide_with(&small, |options| options.run_degraded = true).unwrap();
    let reason = LeftOut::TooSmall {
        size: DATA.0 + USED.0 - 1,
        needed: DATA.0 + USED.0,
    };
    assert_eq!(assembly.left_out, [("b".to_owned(), reason)]);

    let mut strange = set(Level::Raid1, &[10, 10]);
    superblock(&mut strange[1]).array_uuid = Uuid([9; 16]);
    assert!(matches!(
        decide(&strange),
        Err(AssembleError::DifferentArrays { .. })
    ));
    assert_eq!(decide(&[]).unwrap_err(), AssembleError::NoCandidates);
}

#[test]
fn what_only_md_can_do_is_refused_by_name() {
    for (bit, name) in [
        (Features::RESHAPE, "reshape"),
        (Features::JOURNAL, "journal"),
        (Features::PPL, "PPL"),
        (Features::BITMAP_VERSIONED, "clustered"),
        (1 << 20, "nothing here knows"),
    ] {
        let mut found = set(Level::Raid5, &[10, 10, 10]);
        superblock(&mut found[1]).features.0 |= bit;
        let refused = decide(&found).unwrap_err().to_string();
        assert!(
            refused.starts_with("b uses") && refused.contains(name),
            "{refused}"
        );
    }
}

#[test]
fn spares_and_replacements_keep_their_parts() {
    let mut found = set(Level::Raid5, &[10, 10, 10, 3, 10]);
    for member in &mut found {
        superblock(member).raid_disks = 3;
        let three = [Role::Slot(0), Role::Slot(1), Role::Slot(2)];
        roles(member, &three);
        superblock(member).roles[3] = Role::Spare;
        superblock(member).roles[4] = Role::Slot(1);
    }
    let new = superblock(&mut found[4]);
    new.features.0 |= Features::REPLACEMENT | Features::RECOVERY_OFFSET;
    new.recovery_offset = Sectors(512);
    let assembly = decide(&found).unwrap();
    let expected = [
        ("a", Part::InSync(Slot(0))),
        ("b", Part::InSync(Slot(1))),
        ("e", Part::Replacing(Slot(1), Admission::From(Sectors(512)))),
        ("c", Part::InSync(Slot(2))),
        ("d", Part::Spare),
    ];
    assert_eq!(parts(&assembly), expected);
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
        let bytes = [old.encode(), second].concat();
        LogSuperblock::decode(&bytes).unwrap().of(&own)
    };
    assert_eq!(both(next.encode()), Some(next));
    assert_eq!(both(later.encode()), Some(old));
    let mut torn = next.encode();
    torn[0] = 0;
    assert_eq!(both(torn), Some(old));
    assert_eq!(LogSuperblock::decode(&[0; 8192]), None);
    assert_eq!(LogSuperblock::decode(&[]), None);
}

#[test]
fn after_a_crash_a_copy_is_made_again_from_the_first_dirty_chunk() {
    let mut found = set(Level::Raid1, &[10, 10]);
    let half = superblock(&mut found[1]);
    half.features.0 |= Features::RECOVERY_OFFSET;
    half.recovery_offset = Sectors(2048);
    let from = |found: &[Candidate]| match &parts(&decide(found).unwrap())[1].1 {
        Part::Recovering(Slot(1), Admission::From(from)) => from.0,
        part => panic!("{part:?}"),
    };
    assert_eq!(from(&found), 2048, "no write was under way");
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
    }
    assert_eq!(from(&found), 0, "nobody knows where");
    bitmap(&mut found[0], 10, 3, &[5, 63]);
    superblock(&mut found[1]).features.0 |= Features::BITMAP;
    assert_eq!(from(&found), 5 * 64);
    bitmap(&mut found[0], 10, 3, &[40]);
    assert_eq!(from(&found), 2048, "a later chunk is copied anyway");
    bitmap(&mut found[0], 9, 3, &[40]);
    assert_eq!(from(&found), 0, "a stale bitmap");
}

#[test]
fn without_redundancy_every_member_is_needed() {
    for level in [Level::Raid0, Level::Linear] {
        let mut found = set(level, &[10, 10, 10]);
        for member in &mut found {
            superblock(member).used_size = Sectors(0);
        }
        assert!(decide(&found).is_ok());
        found.remove(1);
        for force in [false, true] {
            let refused = decide_with(&found, |options| {
                options.run_degraded = true;
                options.force = force;
            });
            assert!(
                matches!(refused, Err(AssembleError::NotEnough { present: 2, .. })),
                "{refused:?}"
            );
        }
    }
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
        session: 2,
        checksums: [checksum(&next).unwrap(), before],
        sequence: old.sequence + 1,
        ..old
    };
    let bytes = [old.encode(), new.encode()].concat();
    member.log = LogSuperblock::decode(&bytes);
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
    // Nothing in common: the member missed a run.
    mixed[1] = crashed().remove(1);
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
    let ring = span(616 + 16, 600 + reserve.0);
    assert_eq!(config.unwrap().log.unwrap().areas, [Some(ring); 3]);
}
