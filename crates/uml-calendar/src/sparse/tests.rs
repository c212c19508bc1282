use super::{Arena, ArenaError, NOTHING, PAGE_BYTES, Pages, SLAB_BYTES};
use crate::storage::Storage;
use proptest::prelude::*;
use raidlab_units::Bytes;
use std::collections::BTreeSet;

fn contents(pages: &Pages, arena: &Arena, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let taken: Result<(), ArenaError> = pages.read(arena, at, length, |piece| {
        assert!(piece.len() <= PAGE_BYTES);
        bytes.extend_from_slice(piece);
        Ok(())
    });
    taken.unwrap();
    bytes
}

fn in_memory(limit_bytes: u64) -> Arena {
    Arena::new(limit_bytes, Storage::in_memory())
}

#[test]
fn zeros_cost_nothing_and_the_end_of_a_large_disk_little() {
    let mut arena = in_memory(1 << 20);
    let mut pages = Pages::default();
    let end = 4_000_787_030_016_u64;
    pages.write(&mut arena, end - 4096, &[0; 4096]).unwrap();
    assert_eq!(arena.stored_bytes(), 0);
    pages.write(&mut arena, end - 1, &[7]).unwrap();
    assert_eq!(arena.stored_bytes(), 4096);
    assert_eq!(contents(&pages, &arena, end - 3, 3), [0, 0, 7]);
    pages.write(&mut arena, end - 1, &[0]).unwrap();
    assert_eq!(arena.stored_bytes(), 0);
}

#[test]
fn the_limit_holds_for_all_disks_and_what_is_cleared_can_be_used_again() {
    let mut arena = in_memory(3 * 4096 + 100);
    let mut disks = [Pages::default(), Pages::default()];
    disks[0].write(&mut arena, 100, &[1; 8192]).unwrap();
    let full = disks[1].write(&mut arena, 0, &[2]);
    assert!(matches!(full, Err(ArenaError::Full)), "{full:?}");
    disks[0].clear(&mut arena, 0, 4096).unwrap();
    disks[1].write(&mut arena, 8, &[2]).unwrap();
    assert_eq!(arena.stored_bytes(), 3 * 4096);
    assert_eq!(contents(&disks[1], &arena, 7, 3), [0, 2, 0]);
    assert_eq!(contents(&disks[0], &arena, 4000, 200), {
        let mut expected = vec![0; 96];
        expected.extend([1; 104]);
        expected
    });
}

#[test]
fn equal_pages_are_kept_once_and_change_apart() {
    let mut arena = in_memory(1 << 20);
    let mut disks = [Pages::default(), Pages::default()];
    for disk in &mut disks {
        disk.write(&mut arena, 0, &[5; 3 * 4096]).unwrap();
    }
    assert_eq!(arena.stored_bytes(), 4096);
    disks[0].write(&mut arena, 4096, &[6]).unwrap();
    assert_eq!(arena.stored_bytes(), 2 * 4096);
    assert_eq!(contents(&disks[0], &arena, 4095, 3), [5, 6, 5]);
    assert_eq!(contents(&disks[1], &arena, 4095, 3), [5, 5, 5]);
    // And once more the same as the others.
    disks[0].write(&mut arena, 4096, &[5]).unwrap();
    assert_eq!(arena.stored_bytes(), 4096);
    for disk in &mut disks {
        disk.clear(&mut arena, 0, 3 * 4096).unwrap();
    }
    assert_eq!(arena.stored_bytes(), 0);
}

#[test]
fn a_page_of_one_holder_is_changed_in_its_place() {
    let mut arena = in_memory(4096);
    let mut disk = Pages::default();
    for value in 1..=255 {
        disk.write(&mut arena, 8192, &[value; 4096]).unwrap();
        disk.write(&mut arena, 8193, &[value - 1]).unwrap();
        assert_eq!(
            contents(&disk, &arena, 8191, 4),
            [0, value, value - 1, value]
        );
    }
    assert_eq!(arena.stored_bytes(), 4096);
}

#[test]
fn arenas_share_the_budget_and_give_it_back() {
    let folder = tempfile::tempdir().unwrap();
    let storage = Storage::new(Bytes(SLAB_BYTES), folder.path()).sparing(Bytes(0));
    let distinct: Vec<u8> = (0..600_u32)
        .flat_map(|page| [page + 1; PAGE_BYTES / 4])
        .flat_map(u32::to_ne_bytes)
        .collect();
    let filled = || {
        let mut arena = Arena::new(1 << 30, storage.clone());
        let mut disk = Pages::default();
        disk.write(&mut arena, 4096, &distinct).unwrap();
        assert_eq!(contents(&disk, &arena, 4096, distinct.len()), distinct);
        arena
    };
    // 600 pages are two slabs.
    let first = filled();
    assert!(first.file.is_some() && first.taken_bytes == SLAB_BYTES);
    let second = filled();
    assert!(second.file.is_some() && second.taken_bytes == 0);
    drop((first, second));
    assert!(filled().taken_bytes == SLAB_BYTES);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[derive(Debug, Clone)]
enum Step {
    Write { at: u64, length: usize, value: u8 },
    Clear { at: u64, length: u64 },
}

const SIZE: u64 = 12 * 4096;

fn step() -> impl Strategy<Value = Step> {
    let place = (0..SIZE, 1..3 * 4096_u64).prop_map(|(at, length)| (at, length.min(SIZE - at)));
    prop_oneof![
        (place.clone(), 0_u8..3).prop_map(|((at, length), value)| Step::Write {
            at,
            length: length as usize,
            value,
        }),
        place.prop_map(|(at, length)| Step::Clear { at, length }),
    ]
}

/// What the steps make of a disk, beside a plain array.
fn check_against_an_array(steps: &[Step], base: u64, arena: &mut Arena) {
    let mut disks = [Pages::default(), Pages::default()];
    let mut oracles = [vec![0_u8; SIZE as usize], vec![0_u8; SIZE as usize]];
    for (turn, step) in steps.iter().enumerate() {
        let (disk, oracle) = (&mut disks[turn % 2], &mut oracles[turn % 2]);
        match *step {
            Step::Write { at, length, value } => {
                oracle[at as usize..at as usize + length].fill(value);
                disk.write(arena, base + at, &vec![value; length]).unwrap();
            }
            Step::Clear { at, length } => {
                oracle[at as usize..(at + length) as usize].fill(0);
                disk.clear(arena, base + at, length).unwrap();
            }
        }
        for (disk, oracle) in disks.iter().zip(&oracles) {
            assert_eq!(&contents(disk, arena, base, SIZE as usize), oracle);
        }
        // As many pages as there are different ones.
        let pages = oracles.iter().flat_map(|oracle| oracle.chunks(PAGE_BYTES));
        let different: BTreeSet<&[u8]> = pages.filter(|page| *page != NOTHING).collect();
        assert_eq!(arena.stored_bytes(), (different.len() * PAGE_BYTES) as u64);
    }
}

proptest! {
    #[test]
    fn pages_hold_what_a_plain_array_holds(steps in proptest::collection::vec(step(), 1..40)) {
        let folder = tempfile::tempdir().unwrap();
        // Across a leaf's and a branch's border, in turn.
        for base in [(4 << 20) - 6 * 4096, (4_u64 << 30) - 6 * 4096] {
            check_against_an_array(&steps, base, &mut in_memory(1 << 20));
            let storage = Storage::new(Bytes(0), folder.path()).sparing(Bytes(0));
            check_against_an_array(&steps, base, &mut Arena::new(1 << 20, storage));
        }
        prop_assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
