//! Hand tables from the comments of drivers/md/raid5.c and raid5.h and from
//! SNIA's DDF 2.0, and bijections for every layout.

use super::{BlockRole, Place, StripeMap, StripeMapError};
use crate::level::{Level, ParityLayout as L};
use crate::slots::Slot;
use proptest::prelude::*;
use raidlab_units::Sectors;

/// The layouts of RAID 5, with the rows of four members as the kernel lays them.
const RAID5: [(L, &str); 6] = [
    (L::LeftAsymmetric, "012P 01P2 0P12 P012"),
    (L::RightAsymmetric, "P012 0P12 01P2 012P"),
    (L::LeftSymmetric, "012P 12P0 2P01 P012"),
    (L::RightSymmetric, "P012 2P01 12P0 012P"),
    (L::ParityFirst, "P012 P012 P012 P012"),
    (L::ParityLast, "012P 012P 012P 012P"),
];

/// The layouts of RAID 6, with the rows of five members.
const RAID6: [(L, &str); 14] = [
    (L::LeftAsymmetric, "Q012P 012PQ 01PQ2 0PQ12 PQ012"),
    (L::RightAsymmetric, "PQ012 0PQ12 01PQ2 012PQ Q012P"),
    (L::LeftSymmetric, "Q012P 012PQ 12PQ0 2PQ01 PQ012"),
    (L::RightSymmetric, "PQ012 2PQ01 12PQ0 012PQ Q012P"),
    (L::ParityFirst, "PQ012 PQ012 PQ012 PQ012 PQ012"),
    (L::ParityLast, "012PQ 012PQ 012PQ 012PQ 012PQ"),
    (L::RotatingZeroRestart, "PQ012 0PQ12 01PQ2 012PQ Q012P"),
    (L::RotatingNRestart, "012PQ 01PQ2 0PQ12 PQ012 Q012P"),
    (L::RotatingNContinue, "012QP 12QP0 2QP01 QP012 P012Q"),
    (L::LeftAsymmetric6, "012PQ 01P2Q 0P12Q P012Q 012PQ"),
    (L::RightAsymmetric6, "P012Q 0P12Q 01P2Q 012PQ P012Q"),
    (L::LeftSymmetric6, "012PQ 12P0Q 2P01Q P012Q 012PQ"),
    (L::RightSymmetric6, "P012Q 2P01Q 12P0Q 012PQ P012Q"),
    (L::ParityFirst6, "P012Q P012Q P012Q P012Q P012Q"),
];

fn map(level: Level, layout: L, members: usize) -> StripeMap {
    StripeMap::new(level, layout, members, Sectors(8), Sectors(8 * 40))
        .expect("a map the kernel would take")
}

/// As many rows as members, a word each, and a letter for each member: the index of its data chunk, or
/// `P` or `Q` for parity.
fn drawn(level: Level, layout: L, members: u16) -> String {
    let map = map(level, layout, members.into());
    let draw = |row| {
        let row = map.row(row);
        let cell = |slot| match row.role(Slot(slot)) {
            BlockRole::P => "P".to_owned(),
            BlockRole::Q => "Q".to_owned(),
            BlockRole::Data(index) => index.to_string(),
        };
        (0..members).map(cell).collect::<String>()
    };
    let rows: Vec<String> = (0..members.into()).map(draw).collect();
    rows.join(" ")
}

#[test]
fn parity_lies_as_the_kernel_lays_it() {
    for (layout, rows) in RAID5 {
        assert_eq!(drawn(Level::Raid5, layout, 4), rows, "{layout:?}");
        assert_eq!(drawn(Level::Raid4, layout, 4), "012P 012P 012P 012P");
    }
    for (layout, rows) in RAID6 {
        assert_eq!(drawn(Level::Raid6, layout, 5), rows, "{layout:?}");
    }
}

/// Exponents by ascending data index.
fn exponents(layout: L, row: u64) -> Vec<u8> {
    let row = map(Level::Raid6, layout, 5).row(row);
    (0..row.data_count())
        .map(|index| row.exponent(index))
        .collect()
}

#[test]
fn q_counts_from_the_member_after_it_or_from_member_0() {
    // Rows drawn above. `01PQ2`: after Q come 2, then 0 and 1.
    assert_eq!(exponents(L::LeftAsymmetric, 2), [1, 2, 0]);
    assert_eq!(exponents(L::LeftAsymmetric, 3), [2, 0, 1], "0PQ12");
    assert_eq!(exponents(L::LeftAsymmetric, 0), [0, 1, 2], "Q012P");
    assert_eq!(exponents(L::LeftSymmetric, 2), [0, 1, 2], "12PQ0");
    assert_eq!(exponents(L::LeftSymmetric6, 1), [2, 0, 1], "12P0Q");
    assert_eq!(exponents(L::ParityFirst6, 0), [0, 1, 2], "P012Q");
    // DDF: the member's number, parity counted.
    assert_eq!(exponents(L::RotatingZeroRestart, 0), [2, 3, 4], "PQ012");
    assert_eq!(exponents(L::RotatingZeroRestart, 2), [0, 1, 4], "01PQ2");
    assert_eq!(exponents(L::RotatingNRestart, 3), [2, 3, 4], "PQ012");
    assert_eq!(exponents(L::RotatingNContinue, 1), [4, 0, 1], "12QP0");
    assert_eq!(
        map(Level::Raid6, L::RotatingNContinue, 5)
            .row(0)
            .exponents(),
        5
    );
    assert_eq!(map(Level::Raid6, L::LeftSymmetric, 5).row(0).exponents(), 3);
}

#[test]
fn what_the_kernel_refuses_is_refused() {
    let new = |level, layout, members, chunk, size| {
        StripeMap::new(level, layout, members, Sectors(chunk), Sectors(size))
    };
    let error = new(Level::Raid1, L::LeftSymmetric, 4, 8, 80);
    assert_eq!(error, Err(StripeMapError::Level(Level::Raid1)));
    let error = new(Level::Raid5, L::LeftSymmetric6, 4, 8, 80);
    assert_eq!(error, Err(StripeMapError::Layout(Level::Raid5)));
    assert!(new(Level::Raid5, L::LeftSymmetric, 2, 8, 80).is_ok());
    for (level, members, least) in [
        (Level::Raid6, 3, 4),
        (Level::Raid5, 1, 2),
        (Level::Raid5, 65, 2),
        (Level::Raid5, 0, 2),
    ] {
        let error = StripeMapError::Members {
            level,
            members,
            least,
        };
        assert_eq!(new(level, L::LeftSymmetric, members, 8, 80), Err(error));
    }
    for chunk in [0, 4, 24] {
        let error = new(Level::Raid5, L::LeftSymmetric, 4, chunk, 80);
        assert_eq!(error, Err(StripeMapError::Chunk(Sectors(chunk))));
    }
    for size in [0, 7, u64::MAX] {
        let error = new(Level::Raid5, L::LeftSymmetric, 4, 8, size);
        assert_eq!(error, Err(StripeMapError::MemberSize(Sectors(size))));
    }
    let rounded = new(Level::Raid5, L::LeftSymmetric, 4, 8, 95).expect("whole chunks");
    assert_eq!(
        (rounded.member_size(), rounded.size()),
        (Sectors(88), Sectors(264))
    );
}

fn any_map() -> impl Strategy<Value = StripeMap> {
    let raid5 = (
        prop_oneof![Just(Level::Raid4), Just(Level::Raid5)],
        proptest::sample::select(RAID5.map(|(layout, _)| layout).to_vec()),
        2_usize..64,
    );
    let raid6 = (
        Just(Level::Raid6),
        proptest::sample::select(RAID6.map(|(layout, _)| layout).to_vec()),
        4_usize..64,
    );
    (prop_oneof![raid5, raid6], 3_u32..8, 1_u64..1000).prop_map(
        |((level, layout, members), chunk, size)| {
            let chunk = Sectors(1 << chunk);
            StripeMap::new(level, layout, members, chunk, Sectors(chunk.0 + size))
                .expect("a sound map")
        },
    )
}

proptest! {
    #[test]
    fn array_sectors_and_member_sectors_are_one_to_one(map in any_map(), seed in any::<u64>()) {
        let sector = Sectors(seed % map.size().0);
        let place = map.locate(sector);
        prop_assert_eq!(map.array_sector(place), sector);
        prop_assert!(place.row < map.rows() && place.offset < map.chunk());
        let slot = map.row(place.row).data_slot(place.index);
        let at = map.member_sector(place.row, place.offset);
        prop_assert!(at < map.member_size());
        prop_assert_eq!(map.row(map.row_of(at)).role(slot), BlockRole::Data(place.index));
        prop_assert_eq!(map.array_sector(place), sector);
    }

    #[test]
    fn every_member_has_one_role_and_every_exponent_is_used_once(
        map in any_map(),
        seed in any::<u64>(),
    ) {
        let row = map.row(seed % map.rows());
        let mut data = vec![false; map.data_count()];
        let mut parities = 0;
        for slot in (0..).take(map.members()).map(Slot) {
            match row.role(slot) {
                BlockRole::Data(index) => {
                    prop_assert_eq!(row.data_slot(index), slot);
                    prop_assert!(!std::mem::replace(&mut data[usize::from(index)], true));
                }
                BlockRole::P => { parities += 1; prop_assert_eq!(row.p(), slot); }
                BlockRole::Q => { parities += 1; prop_assert_eq!(row.q(), Some(slot)); }
            }
        }
        prop_assert!(data.iter().all(|seen| *seen));
        prop_assert_eq!(parities, map.level().parity_count());
        let mut used: Vec<_> = (0..row.data_count()).map(|index| row.exponent(index)).collect();
        used.sort_unstable();
        used.dedup();
        prop_assert_eq!(used.len(), map.data_count());
        prop_assert!(used.iter().all(|exponent| u16::from(*exponent) < row.exponents()));
    }

    /// `raid6_d0` and `raid6_idx_to_slot`, done as the kernel does them: a walk.
    #[test]
    fn exponents_are_those_of_the_kernel_walk(map in any_map(), seed in any::<u64>()) {
        let row = map.row(seed % map.rows());
        if let Some(q) = row.q() {
            let ddf = matches!(
                map.layout(),
                L::RotatingZeroRestart | L::RotatingNRestart | L::RotatingNContinue
            );
            let members = map.members() as u16;
            let mut slot = if ddf || q.0 == members - 1 { 0 } else { q.0 + 1 };
            let mut count = 0;
            for _ in 0..members {
                let taken = count;
                count += u8::from(ddf);
                if slot != row.p().0 && slot != q.0 {
                    let BlockRole::Data(index) = row.role(Slot(slot)) else { unreachable!() };
                    prop_assert_eq!(row.exponent(index), taken);
                    count += u8::from(!ddf);
                }
                slot = (slot + 1) % members;
            }
        }
    }

    #[test]
    fn places_go_back_to_sectors(map in any_map(), row in any::<u64>(), index in any::<u16>()) {
        let place = Place {
            row: row % map.rows(),
            index: index % map.row(0).data_count(),
            offset: Sectors(u64::from(index) % map.chunk().0),
        };
        prop_assert_eq!(map.locate(map.array_sector(place)), place);
    }
}
