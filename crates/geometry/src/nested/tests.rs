//! Hand-computed tables of RAID 1+0, 50 and 60, and every nested map as a
//! bijection in both directions.

use super::{LeafSector, NestedError, NestedMap, NestedMember, NestedRole};
use crate::level::{Copies, Layout, Level, ParityLayout};
use crate::shape::Shape;
use crate::slots::Slot;
use proptest::prelude::*;
use raidlab_units::Sectors;
use std::collections::{BTreeMap, BTreeSet};

const CHUNK: u64 = 8;

fn leaves(level: Level, count: usize, rows: u64) -> NestedMap {
    let layout = Layout::default_of(level);
    let shape = Shape::uniform(level, layout, Sectors(CHUNK), count, Sectors(rows * CHUNK));
    NestedMap::new(&shape, vec![NestedMember::Leaf; count]).expect("sound")
}

/// An array of `inner` arrays, whose data area begins `offset` sectors in.
fn over(level: Level, inner: Vec<NestedMap>, chunk: u64, offset: u64) -> NestedMap {
    let sizes = inner.iter().map(|map| Sectors(map.array_size().0 - offset));
    let layout = Layout::default_of(level);
    let shape = Shape::of_members(level, layout, Sectors(chunk), sizes.collect());
    let members = inner.into_iter().map(|map| NestedMember::Array {
        map: Box::new(map),
        data_offset: Sectors(offset),
    });
    NestedMap::new(&shape, members.collect()).expect("sound")
}

/// The leaves' first sectors of each chunk as a picture: a column a leaf; a
/// letter for a chunk of the array, `p` and `q` with the array's number for
/// parity, `.` for nothing.
fn picture(map: &NestedMap, rows: u64) -> Vec<String> {
    let cell = |leaf, row: u64| match map.role(LeafSector {
        leaf,
        sector: Sectors(row * CHUNK),
    }) {
        NestedRole::Data(start) => {
            let number = u8::try_from(start.0 / CHUNK).expect("few");
            char::from(b'A' + number).to_string()
        }
        NestedRole::P { array, .. } => format!("p{array}"),
        NestedRole::Q { array, .. } => format!("q{array}"),
        NestedRole::Unused => ".".to_owned(),
    };
    (0..rows)
        .map(|row| {
            let cells: Vec<_> = (0..map.leaves()).map(|leaf| cell(leaf, row)).collect();
            cells.join(" ")
        })
        .collect()
}

#[test]
fn raid_10_of_two_mirrors_alternates_between_the_pairs() {
    let pair = || leaves(Level::Raid1, 2, 3);
    let map = over(Level::Raid0, vec![pair(), pair()], CHUNK, 0);
    assert_eq!(picture(&map, 3), ["A A B B", "C C D D", "E E F F"]);
    // One chunk of each pair is the outer array's metadata.
    let map = over(Level::Raid0, vec![pair(), pair()], CHUNK, CHUNK);
    assert_eq!(picture(&map, 3), [". . . .", "A A B B", "C C D D"]);
    let extent = map.extent(Sectors(CHUNK + 3));
    let place = |leaf, sector| LeafSector {
        leaf,
        sector: Sectors(sector),
    };
    assert_eq!(extent.places, [place(2, CHUNK + 3), place(3, CHUNK + 3)]);
    assert_eq!(extent.contiguous, Sectors(CHUNK - 3));
}

#[test]
fn raid_0_plus_1_keeps_each_chunk_on_both_stripes() {
    let stripe = || leaves(Level::Raid0, 2, 3);
    let map = over(Level::Raid1, vec![stripe(), stripe()], 0, CHUNK);
    // The metadata take the first chunk of each stripe only.
    assert_eq!(picture(&map, 3), [". A . A", "B C B C", "D E D E"]);
}

#[test]
fn raid_50_turns_each_parity_by_itself() {
    // Left-symmetric rows of three: 01p, 1p0, p01.
    let inner = || leaves(Level::Raid5, 3, 3);
    let map = over(Level::Raid0, vec![inner(), inner()], 2 * CHUNK, 0);
    assert_eq!(
        picture(&map, 3),
        ["A B p1 C D p2", "F p1 E H p2 G", "p1 I J p2 K L"]
    );
    // A chunk of the outer array that is one of the inner: rows are shared.
    let map = over(Level::Raid0, vec![inner(), inner()], CHUNK, 0);
    assert_eq!(
        picture(&map, 3),
        ["A C p1 B D p2", "G p1 E H p2 F", "p1 I K p2 J L"]
    );
}

#[test]
fn raid_60_has_p_and_q_of_its_own_in_each_leg() {
    // raid5_compute_sector, left-symmetric at level 6: p = 3 - row, q = p + 1,
    // data from p + 2 on, all modulo 4: q01p, 01pq, 1pq0, pq01.
    let inner = || leaves(Level::Raid6, 4, 4);
    let map = over(Level::Raid0, vec![inner(), inner()], CHUNK, 0);
    assert_eq!(
        picture(&map, 4),
        [
            "q1 A C p1 q2 B D p2",
            "E G p1 q1 F H p2 q2",
            "K p1 q1 I L p2 q2 J",
            "p1 q1 M O p2 q2 N P",
        ]
    );
    let roles: Vec<_> = map
        .dependents(Sectors(2 * CHUNK))
        .into_iter()
        .map(|(place, role)| (place.leaf, place.sector.0, role))
        .collect();
    let (array, row) = (1, 0);
    assert_eq!(
        roles,
        [
            (0, 0, NestedRole::Q { array, row }),
            (2, 0, NestedRole::Data(Sectors(2 * CHUNK))),
            (3, 0, NestedRole::P { array, row }),
        ]
    );
}

#[test]
fn parity_over_mirrors_has_copies_and_leaves_may_be_mixed_in() {
    let mirror = NestedMember::Array {
        map: Box::new(leaves(Level::Raid1, 2, 3)),
        data_offset: Sectors(CHUNK),
    };
    let layout = Layout::Parity(ParityLayout::LeftSymmetric);
    let used = Sectors(2 * CHUNK);
    let shape = Shape::uniform(Level::Raid5, layout, Sectors(CHUNK), 3, used);
    let members = vec![NestedMember::Leaf, mirror, NestedMember::Leaf];
    let map = NestedMap::new(&shape, members).expect("sound");
    assert_eq!((map.leaves(), map.arrays()), (4, 2));
    assert_eq!(picture(&map, 3), ["A . . p0", "D B B C", ". p0 p0 ."]);
}

#[test]
fn members_that_do_not_fit_are_refused() {
    let pair = leaves(Level::Raid1, 2, 3);
    let shape = Shape::uniform(
        Level::Raid1,
        Layout::None,
        Sectors(0),
        2,
        Sectors(3 * CHUNK),
    );
    let one = NestedMap::new(&shape, vec![NestedMember::Leaf]);
    let error = NestedError::Members {
        slots: 2,
        members: 1,
    };
    assert_eq!(one.map(|_| ()), Err(error));
    let inner = NestedMember::Array {
        map: Box::new(pair),
        data_offset: Sectors(1),
    };
    let two = NestedMap::new(&shape, vec![NestedMember::Leaf, inner]);
    let error = NestedError::TooSmall {
        slot: Slot(1),
        offered: 3 * CHUNK - 1,
        needed: 3 * CHUNK,
    };
    assert_eq!(two.map(|_| ()), Err(error));
}

/// A level with a layout and a number of members, small.
fn layer() -> impl Strategy<Value = (Level, Layout, usize, u64)> {
    let kind = prop_oneof![
        (Just(Level::Linear), 1..4_usize),
        (Just(Level::Raid0), 1..4_usize),
        (Just(Level::Raid1), 1..4_usize),
        (Just(Level::Raid4), 2..4_usize),
        (Just(Level::Raid5), 2..5_usize),
        (Just(Level::Raid6), 4..6_usize),
        (Just(Level::Raid10), 2..5_usize),
    ];
    (kind, 3..5_u32, any::<bool>()).prop_map(|((level, members), chunk, flag)| {
        let layout = match level {
            Level::Raid10 if flag => Layout::Copies(Copies::far(2)),
            Level::Raid5 | Level::Raid6 if flag => Layout::Parity(ParityLayout::RightAsymmetric),
            _ => Layout::default_of(level),
        };
        (level, layout, members, 1 << chunk)
    })
}

/// Up to three layers; members are leaves or arrays by turns of `mix`.
fn nested() -> impl Strategy<Value = NestedMap> {
    let layers = prop::collection::vec(layer(), 2..=3);
    (layers, any::<u8>(), 0..9_u64, 1..4_u64)
        .prop_filter_map("too small or odd", |(layers, mix, offset, rows)| {
            build(&layers, mix, offset, rows)
        })
}

fn build(
    layers: &[(Level, Layout, usize, u64)],
    mix: u8,
    offset: u64,
    rows: u64,
) -> Option<NestedMap> {
    let ((level, layout, count, chunk), below) = layers.split_first()?;
    let mut sizes = Vec::new();
    let mut members = Vec::new();
    for slot in 0..*count {
        let is_leaf = below.is_empty() || mix >> (slot % 8) & 1 == 1;
        if is_leaf {
            // Unequal, as far as the level bears it.
            sizes.push(Sectors(chunk * rows + slot as u64));
            members.push(NestedMember::Leaf);
        } else {
            let map = build(below, mix.rotate_left(3), offset, rows)?;
            sizes.push(Sectors(map.array_size().0.checked_sub(offset)?));
            members.push(NestedMember::Array {
                map: Box::new(map),
                data_offset: Sectors(offset),
            });
        }
    }
    let layout = match level {
        Level::Raid0 => Layout::default_of(Level::Raid0),
        _ => *layout,
    };
    let shape = Shape::of_members(*level, layout, Sectors(*chunk), sizes);
    NestedMap::new(&shape, members).ok()
}

proptest! {
    #[test]
    fn nested_maps_are_bijections(map in nested()) {
        let mut taken = BTreeSet::new();
        let mut parities = BTreeMap::new();
        let mut end = vec![0; map.leaves()];
        for start in (0..map.array_size().0).map(Sectors) {
            let extent = map.extent(start);
            prop_assert!(!extent.places.is_empty() && extent.contiguous.0 > 0);
            for place in &extent.places {
                prop_assert_eq!(map.role(*place), NestedRole::Data(start));
                prop_assert!(taken.insert(*place), "taken twice: {:?}", place);
                end[place.leaf] = end[place.leaf].max(place.sector.0);
            }
            // It goes on as it says.
            let last = extent.contiguous.0 - 1;
            prop_assert!(start.0 + last < map.array_size().0);
            let expected: Vec<_> = extent.places.iter().map(|place| LeafSector {
                leaf: place.leaf,
                sector: Sectors(place.sector.0 + last),
            }).collect();
            prop_assert_eq!(map.extent(Sectors(start.0 + last)).places, expected);
            // The data among what depends on it are the same, the rest parity.
            let dependents = map.dependents(start);
            let data: Vec<_> = dependents
                .iter()
                .filter(|(_, role)| *role == NestedRole::Data(start))
                .map(|(place, _)| *place)
                .collect();
            prop_assert_eq!(data, extent.places);
            for (place, role) in dependents {
                prop_assert_eq!(map.role(place), role);
                end[place.leaf] = end[place.leaf].max(place.sector.0);
                if !matches!(role, NestedRole::Data(_)) {
                    parities.insert(place, role);
                }
            }
        }
        // And the other way: what a leaf says it holds was named above. A parity
        // block may protect nothing but metadata.
        for (leaf, end) in end.into_iter().enumerate() {
            for sector in (0..=end + 1).map(Sectors) {
                let place = LeafSector { leaf, sector };
                match map.role(place) {
                    NestedRole::Data(_) => prop_assert!(taken.contains(&place)),
                    NestedRole::Unused => {
                        prop_assert!(!taken.contains(&place) && !parities.contains_key(&place));
                    }
                    role => {
                        let named = parities.get(&place);
                        prop_assert!(named.is_none_or(|named| *named == role));
                    }
                }
            }
        }
    }
}
