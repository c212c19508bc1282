//! Every tier does what the field's definition says.
//!
//! The reference multiplies bit by bit, with no table and one byte at a time,
//! and makes Q from its definition rather than by Horner's rule.

use proptest::prelude::*;
use raidlab_parity::{Difference, Kernels, RecoverError, tiers_available};
use raidlab_random::Stream;

/// The product in GF(2)\[x\], reduced by long division.
fn product(left: u8, right: u8) -> u8 {
    let mut wide = 0_u32;
    for bit in 0..8 {
        if right >> bit & 1 == 1 {
            wide ^= u32::from(left) << bit;
        }
    }
    for bit in (8..16).rev() {
        if wide >> bit & 1 == 1 {
            wide ^= 0x11d << (bit - 8);
        }
    }
    u8::try_from(wide).expect("reduced below x^8")
}

fn reference_p(data: &[Option<&[u8]>], bytes: usize) -> Vec<u8> {
    let at = |place: usize| {
        data.iter()
            .flatten()
            .fold(0, |sum, block| sum ^ block[place])
    };
    (0..bytes).map(at).collect()
}

fn reference_q(data: &[Option<&[u8]>], bytes: usize) -> Vec<u8> {
    let mut q = vec![0; bytes];
    let mut coefficient = 1;
    for block in data {
        for (q, byte) in q.iter_mut().zip(block.unwrap_or_default()) {
            *q ^= product(coefficient, *byte);
        }
        coefficient = product(coefficient, 2);
    }
    q
}

fn all_tiers() -> impl Iterator<Item = Kernels> {
    tiers_available()
        .into_iter()
        .filter_map(|tier| tier.kernels())
}

/// Random blocks at unaligned addresses of one memory.
struct Stripe {
    memory: Vec<u8>,
    starts: Vec<usize>,
    bytes: usize,
    present: Vec<bool>,
}

impl Stripe {
    fn new(blocks: usize, bytes: usize, absent_percent: u32, seed: u64) -> Self {
        let mut random = Stream::new(seed);
        let mut starts = Vec::new();
        let mut end = 0;
        for _ in 0..blocks {
            let start = end + random.below(70) as usize;
            starts.push(start);
            end = start + bytes;
        }
        Self {
            memory: (0..end).map(|_| random.next_u64() as u8).collect(),
            starts,
            bytes,
            present: (0..blocks)
                .map(|_| !random.percent(absent_percent))
                .collect(),
        }
    }

    fn data(&self) -> Vec<Option<&[u8]>> {
        let blocks = self.starts.iter().zip(&self.present);
        blocks
            .map(|(&start, present)| present.then(|| &self.memory[start..start + self.bytes]))
            .collect()
    }

    fn owned(&self) -> Vec<Option<Vec<u8>>> {
        let data = self.data().into_iter();
        data.map(|block| block.map(<[u8]>::to_vec)).collect()
    }
}

/// A result with bytes around it that must stay as they are.
struct Guarded {
    bytes: Vec<u8>,
    start: usize,
    length: usize,
}

const GUARD: u8 = 0xa7;

impl Guarded {
    fn new(start: usize, length: usize) -> Self {
        let bytes = vec![GUARD; start + length + 64];
        Self {
            bytes,
            start,
            length,
        }
    }

    fn inner(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.length]
    }

    fn holds(&self, expected: &[u8]) -> bool {
        let (before, rest) = self.bytes.split_at(self.start);
        let (inner, after) = rest.split_at(self.length);
        inner == expected && before.iter().chain(after).all(|&byte| byte == GUARD)
    }
}

fn assert_generates(stripe: &Stripe, start: usize) {
    let (data, bytes) = (stripe.data(), stripe.bytes);
    let (p, q) = (reference_p(&data, bytes), reference_q(&data, bytes));
    for kernels in all_tiers() {
        assert_tier_generates(&kernels, &data, [&p, &q], start);
    }
}

fn assert_tier_generates(
    kernels: &Kernels,
    data: &[Option<&[u8]>],
    [p, q]: [&[u8]; 2],
    start: usize,
) {
    let bytes = p.len();
    let what = format!("{} {} x {bytes}", kernels.tier(), data.len());
    let (mut made_p, mut made_q) = (Guarded::new(start, bytes), Guarded::new(start / 2, bytes));
    kernels.generate_pq(data, made_p.inner(), made_q.inner());
    assert!(made_p.holds(p), "P of {what}");
    assert!(made_q.holds(q), "Q of {what}");
    let mut made_p = Guarded::new(start, bytes);
    kernels.generate_p(data, made_p.inner());
    assert!(made_p.holds(p), "P alone of {what}");
    let mut made_q = Guarded::new(start, bytes);
    kernels.generate_q(data, made_q.inner());
    assert!(made_q.holds(q), "Q alone of {what}");
    let found = kernels.check(data, p, Some(q));
    assert_eq!(found, Difference::default(), "check of {what}");
}

#[test]
fn every_length_to_4_kib() {
    for bytes in 0..=4096 {
        let stripe = Stripe::new(3 + bytes % 5, bytes, 0, bytes as u64);
        assert_generates(&stripe, bytes % 61);
    }
}

#[test]
fn every_width_to_255() {
    for blocks in (0..=40).chain([64, 127, 128, 254, 255]) {
        for absent_percent in [0, 30] {
            let stripe = Stripe::new(blocks, 643, absent_percent, blocks as u64);
            assert_generates(&stripe, 5);
        }
    }
}

#[test]
fn absent_blocks_in_more_than_one_piece() {
    let stripe = Stripe::new(9, 3 * 4096 + 77, 50, 11);
    assert_generates(&stripe, 3);
}

#[test]
#[should_panic(expected = "the field allows 255")]
fn too_many_blocks_are_refused() {
    let data = vec![None::<&[u8]>; 256];
    raidlab_parity::generate_p(&data, &mut [0; 8]);
}

#[test]
#[should_panic(expected = "length of data block 1")]
fn other_lengths_are_refused() {
    let data: [&[u8]; 2] = [&[1; 8], &[1; 7]];
    raidlab_parity::generate_p(&data, &mut [0; 8]);
}

proptest! {
    #[test]
    fn tiers_generate(
        blocks in 0_usize..=32,
        bytes in 0_usize..=4096,
        absent in prop_oneof![Just(0_u32), 0_u32..=60],
        start in 0_usize..64,
        seed: u64,
    ) {
        let stripe = Stripe::new(blocks, bytes, absent, seed);
        assert_generates(&stripe, start);
    }

    #[test]
    fn tiers_update(
        blocks in 1_usize..=32,
        bytes in 0_usize..=9000,
        place: prop::sample::Index,
        absent_new: bool,
        seed: u64,
    ) {
        let place = place.index(blocks);
        let before = Stripe::new(blocks, bytes, 20, seed);
        // A block's bytes after the change, somewhere unaligned.
        let other = Stripe::new(2, bytes, 0, seed ^ 1);
        let new = other.data()[1].filter(|_| !absent_new);
        let data = before.data();
        let (p, q) = (reference_p(&data, bytes), reference_q(&data, bytes));
        let mut after = data.clone();
        let old = after[place];
        after[place] = new;
        let (new_p, new_q) = (reference_p(&after, bytes), reference_q(&after, bytes));
        for kernels in all_tiers() {
            let (mut both_p, mut both_q) = (p.clone(), q.clone());
            kernels.update(place, old, new, Some(&mut both_p), Some(&mut both_q));
            prop_assert!(both_p == new_p && both_q == new_q, "{}", kernels.tier());
            let (mut only_p, mut only_q) = (p.clone(), q.clone());
            kernels.update(place, old, new, Some(&mut only_p), None);
            kernels.update(place, old, new, None, Some(&mut only_q));
            prop_assert!(only_p == new_p && only_q == new_q, "{}", kernels.tier());
        }
    }

    #[test]
    fn tiers_recover(
        blocks in 1_usize..=32,
        bytes in 0_usize..=9000,
        lost in prop::collection::vec(any::<prop::sample::Index>(), 0..=2),
        absent in prop_oneof![Just(0_u32), 0_u32..=40],
        seed: u64,
    ) {
        let stripe = Stripe::new(blocks, bytes, absent, seed);
        let mut lost: Vec<usize> = lost.iter().map(|index| index.index(blocks + 2)).collect();
        lost.dedup();
        lost.retain(|&block| block >= blocks || stripe.present[block]);
        assert_recovers(&stripe, &lost);
    }

    #[test]
    fn sectors_that_do_not_fit_are_counted(
        blocks in 1_usize..=32,
        bytes in 1_usize..=9000,
        bad: prop::sample::Index,
        damage in prop::collection::vec((any::<prop::sample::Index>(), 1_u8..), 1..40),
        absent in prop_oneof![Just(0_u32), 0_u32..=40],
        seed: u64,
    ) {
        let stripe = Stripe::new(blocks, bytes, absent, seed);
        let bad = bad.index(blocks + 2);
        prop_assume!(bad >= blocks || stripe.present[bad]);
        let mut all = stripe.owned();
        let data = stripe.data();
        all.push(Some(reference_p(&data, bytes)));
        all.push(Some(reference_q(&data, bytes)));
        let right = all[bad].clone();
        let block = all[bad].as_mut().expect("present");
        for (place, change) in &damage {
            block[place.index(bytes)] ^= change;
        }
        let changed = different_sectors(right.as_deref().expect("present"), block);
        let parity = all.split_off(blocks);
        let [Some(p), Some(q)] = &parity[..] else { unreachable!("two were pushed") };
        for kernels in all_tiers() {
            let found = kernels.check(&all, p, Some(q));
            let in_p = if bad == blocks + 1 { 0 } else { changed };
            let in_q = if bad == blocks { 0 } else { changed };
            prop_assert_eq!((found.p_sectors, found.q_sectors), (in_p, in_q));
            let without_q = kernels.check(&all, p, None);
            let expected = Difference { p_sectors: in_p, q_sectors: 0 };
            prop_assert_eq!(without_q, expected);
        }
    }
}

fn different_sectors(left: &[u8], right: &[u8]) -> u64 {
    let sectors = left.chunks(512).zip(right.chunks(512));
    sectors.filter(|(left, right)| left != right).count() as u64
}

fn assert_recovers(stripe: &Stripe, lost: &[usize]) {
    let (data, bytes) = (stripe.data(), stripe.bytes);
    let (p, q) = (reference_p(&data, bytes), reference_q(&data, bytes));
    let width = data.len();
    let wiped = |block: usize, bytes: &[u8]| {
        let mut bytes = bytes.to_vec();
        if lost.contains(&block) {
            bytes.fill(0x5e);
        }
        bytes
    };
    for kernels in all_tiers() {
        let blocks = data.iter().enumerate();
        let mut blocks: Vec<Option<Vec<u8>>> = blocks
            .map(|(block, bytes)| bytes.map(|bytes| wiped(block, bytes)))
            .collect();
        let (mut new_p, mut new_q) = (wiped(width, &p), wiped(width + 1, &q));
        let result = kernels.recover(&mut blocks, Some(&mut new_p), Some(&mut new_q), lost);
        let what = format!("{} {width} x {bytes} without {lost:?}", kernels.tier());
        assert_eq!(result, Ok(()), "{what}");
        assert!(blocks == stripe.owned(), "data of {what}");
        assert!(new_p == p, "P of {what}");
        assert!(new_q == q, "Q of {what}");
    }
}

#[test]
fn every_pair_of_losses_of_narrow_arrays() {
    for blocks in 1..=10 {
        let stripe = Stripe::new(blocks, 4096 + 64 + 9, 0, blocks as u64);
        for first in 0..blocks + 2 {
            for second in 0..blocks + 2 {
                let lost = [first, second];
                let lost = if first == second {
                    &lost[..1]
                } else {
                    &lost[..]
                };
                assert_recovers(&stripe, lost);
            }
        }
    }
}

#[test]
fn losses_at_the_field_s_edge() {
    let stripe = Stripe::new(255, 100, 0, 1);
    for lost in [[0, 254], [254, 1], [253, 254], [254, 255], [254, 256]] {
        assert_recovers(&stripe, &lost);
    }
}

#[test]
fn parity_that_is_not_there_is_not_needed() {
    let stripe = Stripe::new(5, 700, 0, 4);
    let data = stripe.data();
    let (mut p, mut q) = (reference_p(&data, 700), reference_q(&data, 700));
    let kernels = Kernels::chosen();
    let mut blocks = stripe.owned();
    blocks[3].as_mut().expect("present").fill(1);
    assert_eq!(
        kernels.recover(&mut blocks, Some(&mut p), None, &[3]),
        Ok(())
    );
    assert_eq!(blocks, stripe.owned());
    blocks[3].as_mut().expect("present").fill(1);
    assert_eq!(
        kernels.recover(&mut blocks, None, Some(&mut q), &[3]),
        Ok(())
    );
    assert_eq!(blocks, stripe.owned());
    // P is lost too and not wanted.
    blocks[3].as_mut().expect("present").fill(1);
    assert_eq!(
        kernels.recover(&mut blocks, None, Some(&mut q), &[5, 3]),
        Ok(())
    );
    assert_eq!(blocks, stripe.owned());
}

#[test]
fn what_cannot_be_recovered_is_refused_and_nothing_written() {
    let stripe = Stripe::new(4, 64, 0, 4);
    let (p, q) = (vec![1; 64], vec![2; 64]);
    let cases: [(&[usize], bool, bool, RecoverError); 8] = [
        (&[0, 1, 2], true, true, RecoverError::TooManyLost(3)),
        (&[0, 1], true, false, RecoverError::NotEnoughParity),
        (&[0, 1], false, true, RecoverError::NotEnoughParity),
        (&[0, 4], true, false, RecoverError::NotEnoughParity),
        (&[0, 5], false, true, RecoverError::NotEnoughParity),
        (&[0], false, false, RecoverError::NotEnoughParity),
        (&[2, 2], true, true, RecoverError::NoSuchBlock(2)),
        (&[6], true, true, RecoverError::NoSuchBlock(6)),
    ];
    for (lost, with_p, with_q, error) in cases {
        let mut blocks = stripe.owned();
        let (mut p, mut q) = (p.clone(), q.clone());
        let given_p = with_p.then_some(&mut p[..]);
        let given_q = with_q.then_some(&mut q[..]);
        let result = raidlab_parity::recover(&mut blocks, given_p, given_q, lost);
        assert_eq!(result, Err(error), "{lost:?}");
        assert_eq!((blocks, p, q), (stripe.owned(), vec![1; 64], vec![2; 64]));
    }
    let mut blocks = stripe.owned();
    let mut short = vec![0; 63];
    let result = raidlab_parity::recover(&mut blocks, Some(&mut short), None, &[0]);
    assert_eq!(result, Err(RecoverError::Length { block: 4 }));
    blocks[0] = None;
    let result = raidlab_parity::recover(&mut blocks, None, None, &[0]);
    assert_eq!(result, Err(RecoverError::Absent(0)));
    let mut many = vec![None::<Vec<u8>>; 256];
    let result = raidlab_parity::recover(&mut many, None, None, &[]);
    assert_eq!(result, Err(RecoverError::TooManyBlocks(256)));
}
