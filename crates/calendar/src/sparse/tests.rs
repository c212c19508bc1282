use super::{Arena, Full, PAGE_BYTES, Pages};
use proptest::prelude::*;

fn contents(pages: &Pages, arena: &Arena, at: u64, length: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    let taken: Result<(), ()> = pages.read(arena, at, length, |piece| {
        assert!(piece.len() <= PAGE_BYTES);
        bytes.extend_from_slice(piece);
        Ok(())
    });
    assert_eq!(taken, Ok(()));
    bytes
}

#[test]
fn zeros_cost_nothing_and_the_end_of_a_large_disk_little() {
    let mut arena = Arena::new(1 << 20);
    let mut pages = Pages::default();
    let end = 4_000_787_030_016_u64;
    pages.write(&mut arena, end - 4096, &[0; 4096]).unwrap();
    assert_eq!(arena.stored_bytes(), 0);
    pages.write(&mut arena, end - 1, &[7]).unwrap();
    assert_eq!(arena.stored_bytes(), 4096);
    assert_eq!(contents(&pages, &arena, end - 3, 3), [0, 0, 7]);
}

#[test]
fn the_limit_holds_for_all_disks_and_what_is_cleared_can_be_used_again() {
    let mut arena = Arena::new(3 * 4096 + 100);
    let mut disks = [Pages::default(), Pages::default()];
    disks[0].write(&mut arena, 100, &[1; 8192]).unwrap();
    assert_eq!(disks[1].write(&mut arena, 0, &[2]), Err(Full));
    disks[0].clear(&mut arena, 0, 4096);
    disks[1].write(&mut arena, 8, &[2]).unwrap();
    assert_eq!(arena.stored_bytes(), 3 * 4096);
    assert_eq!(contents(&disks[1], &arena, 7, 3), [0, 2, 0]);
    assert_eq!(contents(&disks[0], &arena, 4000, 200), {
        let mut expected = vec![0; 96];
        expected.extend([1; 104]);
        expected
    });
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

proptest! {
    #[test]
    fn pages_hold_what_a_plain_array_holds(steps in proptest::collection::vec(step(), 1..40)) {
        // Across a leaf's and a branch's border, in turn.
        for base in [(4 << 20) - 6 * 4096, (4_u64 << 30) - 6 * 4096] {
            let mut arena = Arena::new(1 << 20);
            let mut pages = Pages::default();
            let mut oracle = vec![0_u8; SIZE as usize];
            for step in &steps {
                match *step {
                    Step::Write { at, length, value } => {
                        oracle[at as usize..at as usize + length].fill(value);
                        pages.write(&mut arena, base + at, &vec![value; length]).unwrap();
                    }
                    Step::Clear { at, length } => {
                        oracle[at as usize..(at + length) as usize].fill(0);
                        pages.clear(&mut arena, base + at, length);
                    }
                }
            }
            prop_assert_eq!(contents(&pages, &arena, base, SIZE as usize), oracle);
            prop_assert!(arena.stored_bytes() <= SIZE);
        }
    }
}
