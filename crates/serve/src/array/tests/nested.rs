//! Arrays of arrays over leaves in memory: filled, stopped, cut off, put
//! together again, degraded and mended at both layers. Afterwards the bytes are
//! those of a flat array, and lie on the leaves where the geometry says.

mod map;
mod scene;

use super::arrays::{ask, exercise, holds, steps, wait_for};
use crate::array::testing::Client;
use crate::array::{NestError, read_candidate};
use crate::control::{ControlRequest, StatusReport};
use crate::export::{Export, Operation};
use crate::member::{BackendKind, Member, NestedMember};
use map::{Member as Slot, NestedMap};
use proptest::prelude::*;
use raidlab_array::{AssembleOptions, Layout, Level, Shape};
use raidlab_units::Sectors;
use scene::{Design, Leaf, Stack, make, present};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// RAID 1+0, 0+1, 50, 60, 51, linear over parity, and members of both kinds.
fn designs() -> impl Strategy<Value = Design> {
    use Level::{Linear, Raid0, Raid1, Raid5, Raid6, Raid10};
    prop::sample::select(vec![
        Design::new(Raid0, &[(Raid1, 2), (Raid1, 2)], 0),
        Design::new(Raid1, &[(Raid0, 2), (Raid0, 2)], 0),
        Design::new(Raid0, &[(Raid5, 3), (Raid5, 3)], 0),
        Design::new(Raid0, &[(Raid6, 4), (Raid6, 4)], 0),
        Design::new(Raid1, &[(Raid5, 3)], 1),
        Design::new(Linear, &[(Raid1, 2), (Raid5, 3)], 1),
        Design::new(Raid5, &[(Raid1, 2), (Raid0, 2)], 1),
        Design::new(Raid10, &[(Raid1, 2), (Raid1, 1)], 2),
    ])
}

/// The map of a design, and the first sector of each leaf's data area, as the
/// superblocks say.
fn layout(design: &Design, leaves: &[Arc<Leaf>], stack: &Stack) -> (NestedMap, Vec<u64>) {
    let mut starts = Vec::new();
    let mut offset_of = |leaf: &Arc<Leaf>| {
        let found = read_candidate(&leaf.member(0)).expect("a superblock");
        starts.push(found.metadata.superblock.data_offset.0);
        found
    };
    let shape_of = |candidates: &[raidlab_array::Candidate]| {
        let one = &candidates[0].metadata.superblock;
        let level = Level::from_md_number(one.level).expect("known");
        let sizes = candidates
            .iter()
            .map(|each| each.metadata.superblock.data_size);
        Shape {
            level,
            layout: Layout::default_of(level),
            chunk: one.chunk,
            member_sizes: sizes.collect(),
            used_size: one.used_size,
        }
    };
    let mut slots = Vec::new();
    let mut outer = Vec::new();
    let mut rest = leaves;
    for (number, (_, count)) in design.inner.iter().enumerate() {
        let (group, after) = rest.split_at(*count);
        rest = after;
        let candidates: Vec<_> = group.iter().map(&mut offset_of).collect();
        let map = NestedMap::new(&shape_of(&candidates), vec![Slot::Leaf; *count]);
        // What lies on the inner array is read from outside, past its thread.
        let name = format!("array:{}", Design::name(number));
        let status = stack.top.status().expect("runs");
        assert!(status.devices.iter().any(|device| device.path == name));
        let inner = stack.nest.peek(&Design::name(number)).expect("is there");
        let member = Member::Array(Arc::new(NestedMember::new("look", inner)));
        let candidate = read_candidate(&member).expect("the outer superblock");
        let data_offset = candidate.metadata.superblock.data_offset;
        slots.push(Slot::Array(Box::new(map), data_offset));
        outer.push(candidate);
    }
    for leaf in rest {
        outer.push(offset_of(leaf));
        slots.push(Slot::Leaf);
    }
    (NestedMap::new(&shape_of(&outer), slots), starts)
}

/// What lies on all leaves at one moment, as a power cut leaves it. Copied while
/// superblocks are written, one leaf could be two events behind another.
fn cut(leaves: &[Arc<Leaf>]) -> Vec<Arc<Leaf>> {
    let writes = || -> Vec<u64> {
        let counts = leaves.iter().map(|leaf| leaf.writes.load(Ordering::SeqCst));
        counts.collect()
    };
    loop {
        let before = writes();
        let copies = leaves.iter().map(Leaf::copy).collect();
        if writes() == before {
            return copies;
        }
    }
}

/// Every data sector of the array stands on the leaves where the map says.
fn lies_as_computed(map: &NestedMap, starts: &[u64], leaves: &[Arc<Leaf>], oracle: &[u8]) {
    let images: Vec<_> = leaves.iter().map(Leaf::bytes).collect();
    assert_eq!(map.size().to_bytes().0, oracle.len() as u64);
    for (sector, expected) in (0..).zip(oracle.chunks(512)) {
        for place in map.places(Sectors(sector)) {
            let at = ((starts[place.leaf] + place.sector.0) * 512) as usize;
            assert!(
                images[place.leaf][at..at + 512] == *expected,
                "sector {sector} on {place:?}"
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn nested_arrays_are_flat_across_stops_cuts_and_losses(
        design in designs(),
        first in steps(),
        second in steps(),
        lost in any::<prop::sample::Index>(),
    ) {
        let leaves = design.leaves();
        design.create(&leaves);
        let stack = design.start(&present(&leaves), BackendKind::Threads);
        let mut oracle = vec![0; stack.top.size_bytes() as usize];
        exercise(&stack.top, &mut oracle, &first);
        stack.stop();

        let stack = design.start(&present(&leaves), BackendKind::Automatic);
        prop_assert_eq!(stack.top.status().expect("runs").state, "clean");
        holds(&stack.top, &oracle);
        exercise(&stack.top, &mut oracle, &second);
        let (_, flushed) = Client::new().ask(&stack.top, (Operation::Flush, 0, 0), &[]);
        prop_assert_eq!(flushed, Ok(()));
        let (map, starts) = layout(&design, &leaves, &stack);
        lies_as_computed(&map, &starts, &leaves, &oracle);

        // Cut off here: what the leaves have is all there is.
        let copies = cut(&leaves);
        stack.stop();
        let stack = design.start(&present(&copies), BackendKind::Threads);
        holds(&stack.top, &oracle);
        exercise(&stack.top, &mut oracle, &first);
        stack.stop();

        // And without one of them, if the design can bear that.
        let lost = lost.index(copies.len());
        if bears(&design, lost) {
            let mut left = present(&copies);
            left[lost] = None;
            let stack = design.start(&left, BackendKind::Threads);
            holds(&stack.top, &oracle);
            exercise(&stack.top, &mut oracle, &second);
            holds(&stack.top, &oracle);
            stack.stop();
        }
    }
}

/// Whether the array that a leaf belongs to can start without it.
fn bears(design: &Design, leaf: usize) -> bool {
    let mut first = 0;
    for (level, count) in &design.inner {
        if (first..first + count).contains(&leaf) {
            return *count > 1 && !matches!(level, Level::Raid0 | Level::Linear);
        }
        first += count;
    }
    !matches!(design.outer, Level::Raid0 | Level::Linear)
}

#[test]
fn flush_and_fua_reach_the_leaves() {
    let design = Design::new(Level::Raid0, &[(Level::Raid1, 2), (Level::Raid1, 2)], 0);
    let leaves = design.leaves();
    design.create(&leaves);
    let stack = design.start(&present(&leaves), BackendKind::Automatic);
    let client = Client::new();
    let write = (Operation::Write, 64 * 512, 512);
    let flags = |leaf: &Arc<Leaf>| leaf.forced.lock().expect("whole").len();
    let before: Vec<_> = leaves.iter().map(flags).collect();
    client.send(&stack.top, 1, write, &[7; 512], true);
    stack.top.submitted();
    assert_eq!(client.next().2, Ok(()));
    let (map, starts) = layout(&design, &leaves, &stack);
    let places = map.places(Sectors(64));
    assert_eq!(places.len(), 2, "both of one pair");
    for place in places {
        let forced = leaves[place.leaf].forced.lock().expect("whole").clone();
        let at = (starts[place.leaf] + place.sector.0) * 512;
        assert!(forced[before[place.leaf]..].contains(&at), "{place:?}");
    }
    let flushes = |leaf: &Arc<Leaf>| leaf.flushes.load(Ordering::SeqCst);
    let before: Vec<_> = leaves.iter().map(flushes).collect();
    let (_, flushed) = client.ask(&stack.top, (Operation::Flush, 0, 0), &[]);
    assert_eq!(flushed, Ok(()));
    let after: Vec<_> = leaves.iter().map(flushes).collect();
    assert!(
        before
            .iter()
            .zip(&after)
            .all(|(before, after)| after > before)
    );
    stack.stop();
}

#[test]
fn a_failed_inner_array_is_a_failed_member_and_is_replaced_while_serving() {
    let design = Design::new(Level::Raid1, &[(Level::Raid0, 2), (Level::Raid0, 2)], 0);
    let leaves = design.leaves();
    design.create(&leaves);
    let stack = design.start(&present(&leaves), BackendKind::Automatic);
    let steps: Vec<_> = (0..24_u64)
        .map(|step| (step % 3 != 0, step * 7919, 1 + step * 37 % 900, step as u8))
        .collect();
    let mut oracle = vec![0; stack.top.size_bytes() as usize];
    exercise(&stack.top, &mut oracle, &steps);
    leaves[3].broken.store(true, Ordering::SeqCst);
    exercise(&stack.top, &mut oracle, &steps[2..]);
    holds(&stack.top, &oracle);
    let status = wait_for(&stack.top, |status| status.state.contains("degraded"));
    assert_eq!(status.health, "[U_]");
    let device = || "array:inner1".to_owned();
    ask(&stack.top, ControlRequest::Remove { device: device() }).expect("leaves");

    // A new stripe of three leaves takes its place, while clients go on.
    let new: Vec<_> = (10..13).map(|number| Leaf::new().member(number)).collect();
    make(Level::Raid0, "new", &new);
    let how = AssembleOptions::default();
    let name = stack.nest.start(&new, &how, &mut |_| {}).expect("starts");
    let path = format!("array:{name}");
    ask(
        &stack.top,
        ControlRequest::Add {
            path: path.clone(),
            overwrite: false,
        },
    )
    .expect("joins");
    exercise(&stack.top, &mut oracle, &steps);
    let whole = |status: &StatusReport| status.health == "[UU]" && status.sync.is_none();
    wait_for(&stack.top, whole);
    ask(&stack.top, ControlRequest::Check {}).expect("starts");
    let status = wait_for(&stack.top, |status| status.sync.is_none());
    assert_eq!(status.mismatch_sectors, 0);
    holds(&stack.top, &oracle);

    // Twice a member is too often; the one that was removed may be stopped.
    let again = ask(
        &stack.top,
        ControlRequest::Add {
            path,
            overwrite: false,
        },
    );
    assert_eq!(
        again,
        Err("array:new is a member of another array".to_owned())
    );
    let unknown = ControlRequest::Add {
        path: "array:nothing".to_owned(),
        overwrite: false,
    };
    let unknown = ask(&stack.top, unknown);
    assert_eq!(unknown, Err("no array `nothing` is served here".to_owned()));
    stack.stop();
}

#[test]
fn read_only_writes_nothing_even_after_a_cut() {
    // The inner array has a write log, which would have to be replayed.
    let design = Design::new(Level::Raid0, &[(Level::Raid5, 3), (Level::Raid1, 2)], 0);
    let leaves = design.leaves();
    design.create(&leaves);
    let stack = design.start(&present(&leaves), BackendKind::Threads);
    let mut oracle = vec![0; stack.top.size_bytes() as usize];
    let steps: Vec<_> = (0..18_u64)
        .map(|step| (true, step * 6101, 1 + step * 41 % 700, step as u8))
        .collect();
    exercise(&stack.top, &mut oracle, &steps);
    let copies = cut(&leaves);
    stack.stop();
    let writes = |leaves: &[Arc<Leaf>]| -> u64 {
        let counts = leaves.iter().map(|leaf| leaf.writes.load(Ordering::SeqCst));
        counts.sum()
    };
    let before = writes(&copies);
    let how = AssembleOptions {
        read_only: true,
        ..AssembleOptions::default()
    };
    let stack = design.start_so(&present(&copies), BackendKind::Threads, &how);
    holds(&stack.top, &oracle);
    let write = Client::new().ask(&stack.top, (Operation::Write, 0, 512), &[1; 512]);
    assert!(write.1.is_err());
    stack.stop();
    assert_eq!(writes(&copies), before);
}

#[test]
fn a_circle_of_arrays_is_refused() {
    let design = Design::new(Level::Raid1, &[(Level::Raid1, 2), (Level::Raid1, 2)], 0);
    let leaves = design.leaves();
    design.create(&leaves);
    let stack = design.start(&present(&leaves), BackendKind::Automatic);
    let device = "array:inner1".to_owned();
    ask(
        &stack.top,
        ControlRequest::Fail {
            device: device.clone(),
        },
    )
    .expect("fails");
    ask(&stack.top, ControlRequest::Remove { device }).expect("leaves");
    // Inner arrays of one depth do not take each other, nor themselves.
    let deep = stack.nest.claim("inner1", 0);
    assert!(matches!(deep, Err(NestError::TooDeep(_))), "{deep:?}");
    assert!(stack.nest.claim("inner1", 1).is_ok());
    stack.stop();
}

#[test]
fn a_sector_that_no_copy_below_can_give_is_made_good_from_above() {
    // One half of the outer mirror is a mirror both of whose leaves have lost a
    // sector: the half is not failed for that, but corrected.
    let design = Design::new(Level::Raid1, &[(Level::Raid1, 2), (Level::Raid1, 2)], 0);
    let leaves = design.leaves();
    design.create(&leaves);
    let stack = design.start(&present(&leaves), BackendKind::Automatic);
    let size = stack.top.size_bytes();
    let oracle: Vec<u8> = (0..size).map(|at| (at / 512 % 251) as u8).collect();
    let client = Client::new();
    for (piece, start) in oracle.chunks(1 << 20).zip((0..).step_by(1 << 20)) {
        let write = (Operation::Write, start, piece.len() as u32);
        assert_eq!(client.ask(&stack.top, write, piece).1, Ok(()));
    }
    let (map, starts) = layout(&design, &leaves, &stack);
    let places = map.places(Sectors(3000));
    for place in &places[..2] {
        let at = (starts[place.leaf] + place.sector.0) * 512;
        *leaves[place.leaf].bad.lock().expect("whole") = Some(at);
    }
    ask(&stack.top, ControlRequest::Repair {}).expect("starts");
    // The half writes what it was given again to its own leaves in its own time.
    let inner = stack.nest.peek("inner0").expect("is there");
    let is_bad = |leaf: &Arc<Leaf>| leaf.bad.lock().expect("whole").is_some();
    let status = wait_for(&stack.top, |status| {
        let inner = inner.status().expect("runs");
        let whole = inner.devices.iter().all(|device| device.bad_sectors == 0);
        status.sync.is_none() && whole && !leaves.iter().any(is_bad)
    });
    assert_eq!(status.health, "[UU]");
    assert_eq!(inner.status().expect("runs").health, "[UU]");
    lies_as_computed(&map, &starts, &leaves, &oracle);
    stack.stop();
}
