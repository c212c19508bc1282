//! What has to be made to agree, and what is still to be filled.

use super::*;
use crate::request::Operation;
use raidlab_units::Span;

#[test]
fn dirty_arrays_resync_what_the_bitmap_names() {
    let mut found = set(Level::Raid1, &[10, 10]);
    for member in &mut found {
        superblock(member).resync_offset = Sectors(0);
    }
    let all = NeededSync {
        from: Sectors(0),
        ranges: None,
        is_first: false,
    };
    assert_eq!(decide(&found).unwrap().resync, Some(all.clone()));
    // The union of both copies.
    bitmap(&mut found[0], 10, 3, &[0, 1]);
    bitmap(&mut found[1], 11, 3, &[1, 63]);
    let ranges = Some(vec![Span::new(0, 128), Span::new(63 * 64, 4096)]);
    let some = NeededSync {
        from: Sectors(0),
        ranges,
        is_first: false,
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
    assert_eq!(resync.ranges, Some(vec![Span::new(960, 1088)]));
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
    let ranges = Admission::Ranges(vec![Span::new(192, 256)]);
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
fn a_copy_that_was_not_told_of_the_crash_is_made_again() {
    let mut found = set(Level::Raid1, &[11, 10]);
    let half = superblock(&mut found[1]);
    half.features.0 |= Features::RECOVERY_OFFSET;
    half.recovery_offset = Sectors(2048);
    // The newest superblock calls the array in sync, for there is one member.
    let anew = Part::Recovering(Slot(1), Admission::From(Sectors(0)));
    assert_eq!(parts(&decide(&found).unwrap())[1].1, anew);
    superblock(&mut found[1]).events = 11;
    let further = Part::Recovering(Slot(1), Admission::From(Sectors(2048)));
    assert_eq!(parts(&decide(&found).unwrap())[1].1, further);
}

/// A resync that has come further than the array reaches has nothing to do, as md has it.
#[test]
fn a_resync_beyond_the_end_ends_at_once() {
    for level in [Level::Raid1, Level::Raid10, Level::Raid5, Level::Raid6] {
        let mut found = set(level, &[10, 10, 10, 10]);
        for member in &mut found {
            superblock(member).resync_offset = Sectors(1 << 40);
        }
        let assembly = decide(&found).unwrap();
        let options = EngineOptions::new(ReadPolicyKind::LEAST_PENDING);
        let settings = Settings::new(Nanos::ZERO, 0);
        let out = &mut Outputs::default();
        let mut array =
            PersistentArray::start(assembly, &options, settings, Nanos::ZERO, out).unwrap();
        // Metadata are written; nothing is read of the members.
        while !out.commands.is_empty() {
            for command in std::mem::take(&mut out.commands) {
                assert_ne!(command.operation, Operation::Read, "{level}");
                array.complete(Nanos::ZERO, command.id, Ok(()), out);
            }
        }
        assert!(!array.status().state.not_in_sync, "{level}");
    }
}

#[test]
fn a_resync_that_waits_is_told_in_mdadms_words() {
    let mut found = set(Level::Raid1, &[10, 10]);
    for member in &mut found {
        superblock(member).resync_offset = Sectors::ZERO;
    }
    let assembly = decide_with(&found, |options| options.read_only = true).unwrap();
    let options = EngineOptions::new(ReadPolicyKind::LEAST_PENDING);
    let settings = Settings::new(Nanos::ZERO, 0);
    let out = &mut Outputs::default();
    let array = PersistentArray::start(assembly, &options, settings, Nanos::ZERO, out).unwrap();
    let state = array.status().state.to_string();
    assert_eq!(state, "clean, resyncing (PENDING), read-only");
}
