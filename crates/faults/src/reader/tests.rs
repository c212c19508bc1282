use super::{Place, Reader};
use crate::pages::Pages;
use raidlab_geometry::{Copies, FarSets, Layout, Level, ParityLayout, SlotSet, ZoneLayout};
use std::sync::OnceLock;

fn reader(level: Level, layout: Layout, members: usize) -> Reader {
    Reader {
        level,
        layout,
        chunk: 8,
        areas: vec![(16, 64); members],
        used: 64,
        size: 64,
        rows: OnceLock::new(),
    }
}

fn slots(reader: &Reader, chunks: u64) -> Vec<Vec<(usize, u64)>> {
    let place = |place: Place| (place.slot, place.sector / 8);
    (0..chunks)
        .map(|chunk| reader.places(chunk * 8).into_iter().map(place).collect())
        .collect()
}

/// Worked by hand from the tables in raid5.c.
#[test]
fn left_symmetric_rows() {
    let five = reader(Level::Raid5, Layout::Parity(ParityLayout::LeftSymmetric), 4);
    let rows: Vec<_> = (0..3)
        .map(|row| (five.row(row).p, five.row(row).data.clone()))
        .collect();
    assert_eq!(
        rows,
        [(3, vec![0, 1, 2]), (2, vec![3, 0, 1]), (1, vec![2, 3, 0])]
    );
    let six = reader(Level::Raid6, Layout::Parity(ParityLayout::LeftSymmetric), 5);
    let row = six.row(1);
    assert_eq!(
        (row.p, row.q, row.data.clone()),
        (3, Some(4), vec![0, 1, 2])
    );
    assert_eq!(six.row(0).exponents, [0, 1, 2]);
    // Q on member 1, so the count begins at member 2.
    let row = six.row(4);
    assert_eq!(
        (row.q, row.data.clone(), row.exponents.clone()),
        (Some(1), vec![2, 3, 4], vec![0, 1, 2])
    );
}

fn copies(near: u8, far: u8, offset: bool) -> Layout {
    Layout::Copies(Copies {
        near,
        far,
        offset,
        far_sets: FarSets::None,
    })
}

#[test]
fn raid10_places() {
    let near = slots(&reader(Level::Raid10, copies(2, 1, false), 4), 3);
    assert_eq!(near, [[(0, 0), (1, 0)], [(2, 0), (3, 0)], [(0, 1), (1, 1)]]);
    let far = slots(&reader(Level::Raid10, copies(1, 2, false), 4), 5);
    assert_eq!(far[0], [(0, 0), (1, 4)]);
    assert_eq!(far[3], [(3, 0), (0, 4)]);
    assert_eq!(far[4], [(0, 1), (1, 5)]);
    let offset = slots(&reader(Level::Raid10, copies(1, 2, true), 4), 5);
    assert_eq!(offset[3], [(3, 0), (0, 1)]);
    assert_eq!(offset[4], [(0, 2), (1, 3)]);
}

#[test]
fn the_zones_of_raid0() {
    let mut zones = reader(Level::Raid0, Layout::Zones(ZoneLayout::Original), 3);
    zones.areas = vec![(16, 8), (16, 24), (16, 24)];
    // Zone 0: chunks 0 to 2; zone 1: members 1 and 2 from their chunk 1 on.
    let original = slots(&zones, 7);
    assert_eq!(original[2..5], [[(2, 0)], [(2, 1)], [(1, 1)]]);
    zones.layout = Layout::Zones(ZoneLayout::Alternate);
    let alternate = slots(&zones, 7);
    assert_eq!(alternate[2..5], [[(2, 0)], [(1, 1)], [(2, 1)]]);
}

#[test]
fn every_loss_of_two_is_computed() {
    let layouts = [
        ParityLayout::LeftSymmetric,
        ParityLayout::RotatingNRestart,
        ParityLayout::RotatingNContinue,
        ParityLayout::LeftAsymmetric6,
        ParityLayout::ParityFirst,
    ];
    for layout in layouts {
        let mut six = reader(Level::Raid6, Layout::Parity(layout), 6);
        six.areas = vec![(0, 64); 6];
        let mut images = vec![Pages::new(64); 6];
        for sector in 0..64 {
            let row = six.row(sector / 8);
            let blocks: Vec<[u8; 512]> = (0..4_u8)
                .map(|index| std::array::from_fn(|at| (at as u8).wrapping_mul(7 + index) ^ index))
                .collect();
            for (slot, block) in row.data.iter().zip(&blocks) {
                images[*slot].write(sector, block);
            }
            let (p, q) = six.parity(row, &blocks);
            images[row.p].write(sector, &p);
            images[row.q.unwrap_or_default()].write(sector, &q);
        }
        let images: Vec<&Pages> = images.iter().collect();
        let all = SlotSet::first(6);
        assert_eq!(six.agree(&images, all), Ok(()));
        for lost in six.losses(all, 2) {
            for sector in 0..256 {
                let whole = six.read(&images, SlotSet::EMPTY, sector);
                assert_eq!(
                    six.read(&images, lost, sector),
                    whole,
                    "{layout:?} {lost:?}"
                );
            }
        }
        assert_eq!(six.losses(all, 2).len(), 1 + 6 + 15);
    }
}
