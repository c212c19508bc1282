//! Hand-computed tables, and every map as a bijection in both directions.

use super::{Content, CopyMap};
use crate::level::{Copies, FarSets, Layout, Level, ZoneLayout};
use crate::shape::{Shape, ShapeError};
use crate::slots::{Slot, SlotSet};
use proptest::prelude::*;
use raidlab_units::Sectors;
use std::collections::BTreeSet;

fn striped(copies: Copies, members: usize, chunk: u64, size: u64) -> CopyMap {
    let layout = Layout::Copies(copies);
    let shape = Shape::uniform(
        Level::Raid10,
        layout,
        Sectors(chunk),
        members,
        Sectors(size),
    );
    CopyMap::new(&shape).expect("a sound layout")
}

fn zoned(layout: ZoneLayout, chunk: u64, sizes: &[u64]) -> CopyMap {
    let sizes = sizes.iter().copied().map(Sectors).collect();
    let layout = Layout::Zones(layout);
    let shape = Shape::of_members(Level::Raid0, layout, Sectors(chunk), sizes);
    CopyMap::new(&shape).expect("a sound layout")
}

/// The members' content as a picture: a letter per chunk, a row per line, a
/// column per member, `.` for nothing.
fn picture(map: &CopyMap, chunk: u64) -> String {
    let rows = (0..map.members())
        .map(|slot| map.used[slot].0 / chunk)
        .max()
        .unwrap_or(0);
    let mut lines = Vec::new();
    for row in 0..rows {
        let line = (0..map.members()).map(|slot| {
            let slot = Slot(u16::try_from(slot).expect("few"));
            let inverse = map.inverse(slot, Sectors(row * chunk));
            inverse.content.map_or('.', |content| {
                let number = u8::try_from(content.start.0 / chunk).expect("few");
                char::from(b'a' + number)
            })
        });
        lines.push(line.collect::<String>());
    }
    lines.join(" ")
}

#[test]
fn raid10_pictures() {
    // The examples of md(4) and of mdadm's manual, and odd numbers of members.
    let cases = [
        (Copies::near(2), 4, 3, "aabb ccdd eeff"),
        (Copies::near(2), 3, 4, "aab bcc dde eff"),
        (Copies::near(3), 4, 3, "aaab bbcc cddd"),
        (Copies::near(2), 2, 3, "aa bb cc"),
        // 5 chunks do not fill 3 x 3 places.
        (Copies::near(2), 3, 3, "aab bcc dd."),
        (Copies::far(2), 4, 4, "abcd efgh dabc hefg"),
        (Copies::far(2), 3, 5, "abc def cab fde"),
        (Copies::far(3), 3, 3, "abc cab bca"),
        (Copies::offset(2), 4, 4, "abcd dabc efgh hefg"),
        (Copies::offset(2), 3, 5, "abc cab def fde"),
        (Copies::offset(3), 4, 3, "abcd dabc cdab"),
        // Near and far together.
        (
            Copies {
                near: 2,
                ..Copies::far(2)
            },
            4,
            4,
            "aabb ccdd bbaa ddcc",
        ),
        (
            Copies {
                near: 2,
                ..Copies::offset(2)
            },
            6,
            2,
            "aabbcc ccaabb",
        ),
        // Far sets of two members each; of two and three.
        (
            Copies {
                far_sets: FarSets::Exact,
                ..Copies::far(2)
            },
            4,
            2,
            "abcd badc",
        ),
        (
            Copies {
                far_sets: FarSets::Exact,
                ..Copies::far(2)
            },
            5,
            2,
            "abcde baecd",
        ),
        (
            Copies {
                far_sets: FarSets::Divided,
                ..Copies::far(2)
            },
            6,
            2,
            "abcdef cabfde",
        ),
    ];
    for (copies, members, rows, expected) in cases {
        let map = striped(copies, members, 8, rows * 8 + 5);
        assert_eq!(picture(&map, 8), expected, "{copies} of {members}");
    }
}

#[test]
fn raid10_copies_come_in_mds_order() {
    let copies = |map: &CopyMap, start| -> Vec<(u16, u64)> {
        let extent = map.extent(Sectors(start));
        let copies = extent.copies();
        copies.map(|(slot, sector)| (slot.0, sector.0)).collect()
    };
    let near = striped(Copies::near(2), 3, 8, 64);
    assert_eq!(copies(&near, 8 + 3), [(2, 3), (0, 8 + 3)]);
    let far = striped(Copies::far(2), 4, 8, 64);
    assert_eq!(copies(&far, 3 * 8 + 1), [(3, 1), (0, 32 + 1)]);
    let both = Copies {
        near: 2,
        ..Copies::far(2)
    };
    let both = striped(both, 4, 8, 64);
    assert_eq!(copies(&both, 8), [(2, 0), (0, 32), (3, 0), (1, 32)]);
    assert_eq!(
        both.extent(Sectors(8)).sector_on(Slot(1)),
        Some(Sectors(32))
    );
    assert_eq!(near.extent(Sectors(8)).sector_on(Slot(1)), None);
}

#[test]
fn raid10_copies_that_md_mixes_up_are_refused() {
    let wide = |sets| Copies {
        near: 2,
        far_sets: sets,
        ..Copies::far(2)
    };
    for (copies, members) in [
        // Near copies in the next row meet far copies there.
        (
            Copies {
                near: 2,
                ..Copies::offset(2)
            },
            5,
        ),
        // A set of two members for two near copies.
        (wide(FarSets::Divided), 4),
        // The last set is entered from the one before.
        (wide(FarSets::Exact), 9),
    ] {
        let layout = Layout::Copies(copies);
        let shape = Shape::uniform(Level::Raid10, layout, Sectors(8), members, Sectors(800));
        let error = CopyMap::new(&shape).map(|map| picture(&map, 8));
        assert_eq!(error, Err(ShapeError::CopiesCollide { copies, members }));
    }
}

#[test]
fn raid0_pictures() {
    // Members of 2, 4 and 3 chunks: 6 chunks over three, 2 over two, 1 over one.
    let sizes = [20, 32, 24];
    let alternate = zoned(ZoneLayout::Alternate, 8, &sizes);
    assert_eq!(picture(&alternate, 8), "abc def .gh .i.");
    let original = zoned(ZoneLayout::Original, 8, &sizes);
    assert_eq!(picture(&original, 8), "abc def .gh .i.");
    // The second zone begins at chunk 3: member 1 of it comes first.
    let sizes = [8, 24, 24];
    let alternate = zoned(ZoneLayout::Alternate, 8, &sizes);
    assert_eq!(picture(&alternate, 8), "abc .de .fg");
    let original = zoned(ZoneLayout::Original, 8, &sizes);
    assert_eq!(picture(&original, 8), "abc .ed .gf");
    assert_eq!(original.array_size(), Sectors(7 * 8));
    // Any number of sectors is a chunk.
    assert_eq!(
        picture(&zoned(ZoneLayout::Original, 3, &[7, 6]), 3),
        "ab cd"
    );
}

#[test]
fn raid0_of_unequal_members_needs_its_layout() {
    let shape = |sizes: [u64; 2]| {
        let sizes = sizes.into_iter().map(Sectors).collect();
        Shape::of_members(Level::Raid0, Layout::None, Sectors(8), sizes)
    };
    assert!(CopyMap::new(&shape([16, 23])).is_ok(), "equal in chunks");
    let error = CopyMap::new(&shape([16, 24])).map(|map| map.array_size());
    assert_eq!(error, Err(ShapeError::UnknownZones));
}

#[test]
fn linear_and_mirror() {
    let sizes = vec![Sectors(20), Sectors(7), Sectors(16)];
    let shape = Shape::of_members(Level::Linear, Layout::None, Sectors(8), sizes.clone());
    let map = CopyMap::new(&shape).expect("sound");
    assert_eq!(picture(&map, 8), "a.c b.d", "member 1 has no whole chunk");
    let extent = map.extent(Sectors(3));
    assert_eq!(extent.contiguous, Sectors(13));
    let shape = Shape::of_members(Level::Raid1, Layout::None, Sectors(0), sizes);
    let map = CopyMap::new(&shape).expect("sound");
    assert_eq!(map.array_size(), Sectors(7));
    assert_eq!(map.copy_sets(), [SlotSet::first(3)]);
    let extent = map.extent(Sectors(2));
    assert_eq!((extent.contiguous, extent.slots().len()), (Sectors(5), 3));
    assert_eq!(extent.sector_on(Slot(2)), Some(Sectors(2)));
}

#[test]
fn copy_sets_are_those_that_occur() {
    let sets = |map: &CopyMap| -> Vec<Vec<u16>> {
        let sets = map.copy_sets().iter();
        sets.map(|set| set.iter().map(|slot| slot.0).collect())
            .collect()
    };
    let near = striped(Copies::near(2), 4, 8, 64);
    assert_eq!(sets(&near), [vec![0, 1], vec![2, 3]]);
    let odd = striped(Copies::near(2), 3, 8, 64);
    assert_eq!(sets(&odd), [vec![0, 1], vec![0, 2], vec![1, 2]]);
    let one_row = striped(Copies::near(2), 3, 8, 8);
    assert_eq!(sets(&one_row), [vec![0, 1]], "a single chunk");
}

fn any_shape() -> impl Strategy<Value = Shape> {
    let sizes = prop::collection::vec(1..90_u64, 1..7);
    let level = prop_oneof![
        Just(Level::Linear),
        Just(Level::Raid0),
        Just(Level::Raid1),
        Just(Level::Raid10)
    ];
    (
        level,
        sizes,
        0..4_u32,
        1..4_u8,
        1..4_u8,
        any::<bool>(),
        0..3_u32,
    )
        .prop_map(|(level, sizes, chunk, near, far, flag, sets)| {
            let layout = match level {
                Level::Raid0 if flag => Layout::Zones(ZoneLayout::Alternate),
                Level::Raid10 => Layout::Copies(Copies {
                    near,
                    far,
                    offset: flag,
                    far_sets: [FarSets::None, FarSets::Divided, FarSets::Exact][sets as usize],
                }),
                _ => Layout::default_of(level),
            };
            let sizes = sizes.into_iter().map(Sectors).collect();
            Shape::of_members(level, layout, Sectors(1 << chunk), sizes)
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4 * ProptestConfig::default().cases))]

    #[test]
    fn maps_are_bijections(shape in any_shape()) {
        let Ok(map) = CopyMap::new(&shape) else {
            return Ok(());
        };
        prop_assert_eq!(Ok(map.array_size()), shape.array_size());
        let mut taken = BTreeSet::new();
        for start in (0..map.array_size().0).map(Sectors) {
            let extent = map.extent(start);
            let slots: SlotSet = extent.copies().map(|(slot, _)| slot).collect();
            prop_assert_eq!(slots, extent.slots());
            prop_assert_eq!(slots.len(), extent.copies().count(), "two on one member");
            prop_assert!(map.copy_sets().contains(&slots));
            for (copy, (slot, sector)) in extent.copies().enumerate() {
                prop_assert!(sector < map.member_used(slot), "{start} {slot:?} {sector}");
                prop_assert!(map.member_used(slot) <= shape.member_sizes[slot.index()]);
                let content = map.inverse(slot, sector).content;
                prop_assert_eq!(content, Some(Content { start, copy }));
                prop_assert!(taken.insert((slot, sector)), "taken twice");
            }
            // It goes on as it says.
            let last = Sectors(extent.contiguous.0 - 1);
            prop_assert!(start + last < map.array_size());
            let end = map.extent(start + last);
            let expected: Vec<_> = extent.copies().map(|(slot, at)| (slot, at + last)).collect();
            prop_assert_eq!(end.copies().collect::<Vec<_>>(), expected);
        }
        // And the other way: what holds something was named above.
        for slot in (0..map.members()).map(|slot| Slot(u16::try_from(slot).expect("few"))) {
            let used = map.member_used(slot);
            for sector in (0..used.0).map(Sectors) {
                let inverse = map.inverse(slot, sector);
                prop_assert_eq!(inverse.content.is_some(), taken.contains(&(slot, sector)));
                let last = Sectors(inverse.contiguous.0 - 1);
                prop_assert!(sector + last < used);
                let end = map.inverse(slot, sector + last);
                prop_assert_eq!(end.contiguous, Sectors(1));
                let expected = inverse.content.map(|content| Content {
                    start: content.start + last,
                    copy: content.copy,
                });
                prop_assert_eq!(end.content, expected);
            }
            prop_assert_eq!(map.inverse(slot, used).contiguous, Sectors::ZERO);
        }
    }
}
