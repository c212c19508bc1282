use super::{Found, Run};
use proptest::prelude::*;
use raidlab_units::{Bytes, Sectors};

const BLOCK: u64 = 16;

fn found(gap: u64) -> Found {
    Found::new(BLOCK, Sectors(gap))
}

const fn run(start: u64, first: u64, blocks: u64) -> Run {
    Run {
        start,
        first,
        blocks,
    }
}

fn all(found: &mut Found, by_address: bool, limit: u64) -> Vec<Run> {
    std::iter::from_fn(|| found.take(by_address, limit)).collect()
}

#[test]
fn everything_goes_by_address_in_parts() {
    let mut found = found(4096);
    found.insert(run(100_000, 7, 3));
    found.insert(run(0, 50, 1));
    found.insert(run(100_000, 7, 3));
    assert_eq!(
        all(&mut found, true, 2),
        [run(0, 50, 1), run(100_000, 7, 2), run(100_032, 9, 1)]
    );
    assert_eq!(found.memory(), Bytes(0));
}

/// Four blocks of 8 KiB without a hole score 4 * 8192 * (1 + 3) = 2^17. Six in a
/// segment of 21 score 6 * 8192 + 36 * 3 * 6 * 8192 / 128 = 90,624, one bit less, so
/// the short segments come first; of two alike the lower one does.
#[test]
fn the_fullest_segment_comes_first() {
    let mut found = found(96);
    for block in 0..6 {
        found.insert(run(block * 4 * BLOCK, block, 1));
    }
    found.insert(run(100_000, 100, 4));
    found.insert(run(200_000, 200, 4));
    let order: Vec<u64> = all(&mut found, false, 8)
        .iter()
        .map(|run| run.first)
        .collect();
    assert_eq!(order, [100, 200, 0, 1, 2, 3, 4, 5]);
}

/// 136 bytes a block, 48 a segment.
#[test]
fn memory_is_counted_as_the_real_one_does() {
    let mut found = found(96);
    found.insert(run(0, 0, 10));
    found.insert(run(10 * BLOCK + 96, 10, 1));
    assert_eq!(found.memory(), Bytes(11 * 136 + 48));
    found.insert(run(11 * BLOCK + 96 + 97, 11, 1));
    assert_eq!(found.memory(), Bytes(12 * 136 + 2 * 48));
}

/// One begun is gone on with, although the other is larger now; until something
/// new is found.
#[test]
fn a_segment_begun_is_finished_unless_something_new_is_found() {
    let mut found = found(96);
    found.insert(run(0, 0, 32));
    found.insert(run(100_000, 100, 20));
    assert_eq!(found.take(false, 28), Some(run(0, 0, 28)));
    assert_eq!(found.take(false, 1), Some(run(448, 28, 1)));
    found.insert(run(200_000, 200, 1));
    assert_eq!(found.take(false, 1), Some(run(100_000, 100, 1)));
}

/// The remaining blocks as a plain list, in groups by distance.
fn groups(left: &[u64], gap: u64) -> Vec<Vec<u64>> {
    let mut groups: Vec<Vec<u64>> = Vec::new();
    for &block in left {
        match groups.last_mut() {
            Some(group) if block * BLOCK <= (group[group.len() - 1] + 1) * BLOCK + gap => {
                group.push(block);
            }
            _ => groups.push(vec![block]),
        }
    }
    groups
}

fn bits(group: &[u64]) -> u32 {
    let fill = group.len() as u64 * BLOCK * 512;
    let size = (group[group.len() - 1] + 1 - group[0]) * BLOCK * 512;
    (fill + ((fill * 128 / size * 3 * fill) >> 7)).ilog2()
}

proptest! {
    /// Against a list of single blocks: each comes once, from the group that is
    /// due, lowest first.
    #[test]
    fn blocks_come_as_a_plain_list_says(
        rounds in prop::collection::vec(
            (prop::collection::btree_set(0_u64..400, 0..40), 0_u64..30, any::<bool>()), 1..6),
        gap in 0_u64..200,
    ) {
        let mut found = found(gap);
        let mut left: Vec<u64> = Vec::new();
        let mut due: Option<u64> = None;
        for (blocks, takes, by_address) in rounds {
            for block in blocks {
                if !left.contains(&block) {
                    left.push(block);
                }
                found.insert(run(block * BLOCK, block, 1));
                due = None;
            }
            left.sort_unstable();
            for _ in 0..takes {
                let groups = groups(&left, gap);
                let best = groups.iter().map(|group| (-i64::from(bits(group)), group[0])).min();
                let expected = if by_address {
                    left.first().copied()
                } else {
                    due.or(best.map(|best| best.1))
                };
                let taken = found.take(by_address, 1);
                prop_assert_eq!(taken.map(|run| run.first), expected);
                let Some(block) = expected else { break };
                let group = groups.iter().find(|group| group[0] == block).expect("its front");
                due = group.get(1).copied();
                left.retain(|&other| other != block);
            }
            prop_assert_eq!(found.memory() == Bytes(0), left.is_empty());
        }
    }
}
