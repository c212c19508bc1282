//! Who is a member, and who is left out.

use super::*;

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
        not_counted: vec!["b (out of date: events 8, the array has 10)".to_owned()],
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
fn who_lacks_little_is_taken_before_who_was_being_filled() {
    let mut found: Vec<_> = (0..)
        .zip([40, 20, 30])
        .map(|(number, events)| candidate(Level::Raid1, 2, number, events))
        .collect();
    roles(&mut found[0], &[Role::Slot(0), FAULTY, FAULTY]);
    roles(&mut found[2], &[Role::Slot(0), FAULTY, Role::Slot(1)]);
    superblock(&mut found[2]).features.0 |= Features::RECOVERY_OFFSET;
    bitmap(&mut found[0], 40, 15, &[3]);
    let assembly = decide_with(&found, |options| options.stale = Stale::Rebuild).unwrap();
    let missed = Admission::Ranges(vec![Span::new(192, 256)]);
    let expected = [
        ("a", Part::InSync(Slot(0))),
        ("b", Part::Recovering(Slot(1), missed)),
    ];
    assert_eq!(parts(&assembly), expected);
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
    // The newest of those out of date has nothing that the current one lacks.
    let found = set(Level::Raid10, &[7, 10, 6, 5]);
    let forced = decide_with(&found, |options| options.force = true).unwrap();
    assert_eq!(forced.forced, ["c"]);
    // Neighbours in a RAID 10 of two near copies hold the same.
    let found = set(Level::Raid10, &[10, 10, 10, 10]);
    let run = |at: &[usize]| {
        let some: Vec<Candidate> = at.iter().map(|at| found[*at].clone()).collect();
        decide_with(&some, |options| options.run_degraded = true).map(|_| ())
    };
    assert_eq!(run(&[0, 2]), Ok(()));
    assert!(run(&[0, 1]).is_err());
}

/// Both members are gone, and one that was replaced before is back: a spare has heard of all
/// that happened since. One event more proves nothing by itself, but what it says of the
/// member does.
#[test]
fn a_spare_bears_witness_that_a_member_is_out_of_date() {
    let found = |spares_events| {
        let mut found = set(Level::Raid1, &[10, 10, spares_events]);
        found.remove(1);
        for candidate in &mut found {
            superblock(candidate).raid_disks = 2;
            roles(candidate, &[Role::Slot(0), Role::Slot(1), Role::Spare]);
        }
        found
    };
    let run = |found: &[Candidate], force| {
        decide_with(found, |options| {
            options.run_degraded = true;
            options.force = force;
        })
    };
    for spares_events in [9, 10, 11] {
        let assembly = run(&found(spares_events), false).unwrap();
        assert_eq!(parts(&assembly)[0], ("a", Part::InSync(Slot(0))));
        assert_eq!(assembly.forced, Vec::<String>::new());
    }
    let refused = run(&found(12), false).unwrap_err();
    assert!(
        matches!(&refused, AssembleError::NotEnough { present: 0, slots: 2, stale } if stale == &["a"]),
        "{refused}"
    );
    assert_eq!(run(&found(12), true).unwrap().forced, ["a"]);
    for spares_events in [10, 11] {
        let mut found = found(spares_events);
        roles(&mut found[1], &[Role::Faulty]);
        let decided = run(&found, false).map(|_| ());
        assert_eq!(decided.is_err(), spares_events == 11, "{decided:?}");
    }
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

#[test]
fn a_number_that_was_given_away_is_not_used_twice() {
    // The spare had the number of the second member before that came back.
    let mut found = set(Level::Raid1, &[10, 10, 10]);
    superblock(&mut found[2]).device_number = 1;
    superblock(&mut found[2]).roles[1] = Role::Spare;
    for member in &mut found[..2] {
        superblock(member).roles[2] = FAULTY;
    }
    let assembly = decide(&found).unwrap();
    let numbers = assembly
        .members
        .iter()
        .map(|member| member.candidate.superblock().device_number);
    assert_eq!(numbers.collect::<Vec<_>>(), [0, 1, 3]);
    assert_eq!(parts(&assembly)[2], ("c", Part::Spare));
}

#[test]
fn a_witness_of_a_witness_is_enough() {
    // The second member failed, then the first, while the third took over.
    let mut found = set(Level::Raid1, &[40, 30, 41]);
    roles(&mut found[0], &[Role::Slot(0), FAULTY, Role::Slot(2)]);
    roles(&mut found[1], &[Role::Slot(0), Role::Slot(1), FAULTY]);
    roles(&mut found[2], &[FAULTY, FAULTY, Role::Slot(2)]);
    let assembly = decide(&found).unwrap();
    assert_eq!(parts(&assembly), [("c", Part::InSync(Slot(2)))]);
    // Without the first one nobody knows; and one that is older than the
    // second bears no witness.
    found.rotate_left(1);
    let refused =
        |found: &[Candidate]| matches!(decide(found), Err(AssembleError::SplitBrain { .. }));
    assert!(refused(&found[..2]));
    superblock(&mut found[2]).events = 29;
    assert!(refused(&found));
}

/// A spare claims a number that the superblocks have no place for. Were it kept, the spare could
/// be given a slot, and nobody would know of it at the next start.
#[test]
fn a_spare_gets_a_number_that_superblocks_have_a_place_for() {
    let mut found = set(Level::Raid1, &[10, 10, 10]);
    for member in &mut found {
        superblock(member).raid_disks = 2;
        roles(member, &[Role::Slot(0), Role::Slot(1), Role::Spare]);
    }
    superblock(&mut found[2]).device_number = 40;
    let assembly = decide(&found).unwrap();
    assert_eq!(parts(&assembly)[2], ("c", Part::Spare));
    let number = assembly.members[2].candidate.superblock().device_number;
    assert_eq!(number, 2);
}

/// The old member's superblock counts as far as that of its replacement, which was started
/// without it and has its slot.
fn replaced_and_replacement() -> Vec<Candidate> {
    let mut found = set(Level::Raid1, &[9, 10, 10]);
    let [here, there] = [0, 1].map(Role::Slot);
    for one in &mut found {
        superblock(one).raid_disks = 2;
        roles(one, &[here, there, there]);
    }
    roles(&mut found[2], &[here, Role::Faulty, there]);
    let filled = superblock(&mut found[2]);
    filled.features.0 |= Features::RECOVERY_OFFSET;
    filled.recovery_offset = Sectors(512);
    found
}

/// A third member that knows of neither's way without the other decides for the whole one.
#[test]
fn a_replacement_that_got_nowhere_alone_gives_the_slot_back() {
    for order in [[0, 1, 2], [2, 1, 0], [2, 0, 1]] {
        let found = replaced_and_replacement();
        let found: Vec<Candidate> = order.map(|at| found[at].clone()).into();
        let assembly = decide(&found).unwrap();
        let mut parts = parts(&assembly);
        parts.sort_by_key(|(name, _)| *name);
        let whole = [("a", Part::InSync(Slot(0))), ("b", Part::InSync(Slot(1)))];
        assert_eq!(parts[..2], whole, "{order:?}");
    }
}

/// Where the third has followed the replacement, or is not there, data may have been served
/// that the old member lacks.
#[test]
fn a_replacement_that_may_have_served_keeps_its_claim() {
    let mut followed = replaced_and_replacement();
    roles(
        &mut followed[0],
        &[Role::Slot(0), Role::Faulty, Role::Slot(1)],
    );
    let mut alone = replaced_and_replacement();
    alone.remove(0);
    let mut uncounted = replaced_and_replacement();
    roles(&mut uncounted[2], &[Role::Faulty]);
    for found in [followed, alone, uncounted] {
        let refused = decide_with(&found, |options| options.run_degraded = true).unwrap_err();
        assert!(
            matches!(
                refused,
                AssembleError::SlotClaimedTwice { slot: Slot(1), .. }
            ),
            "{refused}"
        );
    }
}
