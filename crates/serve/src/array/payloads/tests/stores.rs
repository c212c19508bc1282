//! The steps on payloads that are lent, against the same steps on plain vectors: they
//! leave the same bytes, find the same, and fail together.

#[path = "../../../../../payload/tests/payload/vectors.rs"]
#[expect(dead_code, reason = "tests of other crates share it")]
mod vectors;

use super::Payloads;
use crate::member::Memory;
use proptest::prelude::*;
use raidlab_array::{BufferId, ComputeStep, RequestId, ScratchId, StepId};
use raidlab_units::Sectors;
use vectors::Vectors;

const SECTORS: u64 = 24;
const SCRATCHES: u32 = 3;

fn buffer() -> impl Strategy<Value = BufferId> {
    let skip = (0..SECTORS).prop_map(Sectors);
    prop_oneof![
        1 => Just(BufferId::None),
        4 => skip.clone().prop_map(|skip| BufferId::Request { request: RequestId(1), skip }),
        8 => (0..SCRATCHES, skip).prop_map(|(scratch, skip)| BufferId::Scratch {
            scratch: ScratchId(scratch),
            skip,
        }),
    ]
}

fn count() -> impl Strategy<Value = Sectors> {
    (1..4_u64).prop_map(Sectors)
}

fn step() -> impl Strategy<Value = ComputeStep> {
    let data = || prop::collection::vec(buffer(), 1..5);
    let id = StepId(1);
    prop_oneof![
        (buffer(), prop::collection::vec(any::<u8>(), 512))
            .prop_map(|(to, bytes)| { ComputeStep::Fill { to, bytes } }),
        (buffer(), count()).prop_map(move |(from, count)| ComputeStep::Fetch { id, from, count }),
        (buffer(), count()).prop_map(|(to, count)| ComputeStep::Zero { to, count }),
        (buffer(), buffer(), count()).prop_map(|(from, to, count)| ComputeStep::Copy {
            from,
            to,
            count
        }),
        (count(), data(), buffer(), buffer())
            .prop_map(|(count, data, p, q)| ComputeStep::Generate { count, data, p, q }),
        (count(), 0..9_u8, buffer(), buffer(), buffer(), buffer()).prop_map(
            |(count, index, old, new, p, q)| ComputeStep::Update {
                count,
                index,
                old,
                new,
                p,
                q
            }
        ),
        (
            count(),
            data(),
            buffer(),
            buffer(),
            prop::collection::vec(0..6_u8, 1..3)
        )
            .prop_map(|(count, data, p, q, lost)| ComputeStep::Recover {
                count,
                data,
                p,
                q,
                lost
            }),
        (count(), data(), buffer(), buffer()).prop_map(move |(count, data, p, q)| {
            ComputeStep::Check {
                id,
                count,
                data,
                p,
                q,
            }
        }),
        (buffer(), buffer(), count()).prop_map(move |(left, right, count)| {
            ComputeStep::Compare {
                id,
                left,
                right,
                count,
            }
        }),
        (buffer(), 8..600_u32, 0..80_u32, 0..80_u32, data(), count()).prop_map(
            |(header, header_bytes, at, seal_at, blocks, count)| ComputeStep::Seal {
                header,
                header_bytes,
                at,
                seal_at,
                blocks: blocks.into_iter().map(|block| (block, count)).collect(),
            }
        ),
    ]
}

fn contents(payloads: &Payloads, buffers: &Vectors) -> Vec<(Vec<u8>, Vec<u8>)> {
    let request = BufferId::Request {
        request: RequestId(1),
        skip: Sectors(0),
    };
    let scratch = |scratch| BufferId::Scratch {
        scratch: ScratchId(scratch),
        skip: Sectors(0),
    };
    let names = (0..SCRATCHES).map(scratch).chain([request]);
    names
        .map(|name| {
            (
                payloads
                    .read(name, SECTORS as usize * 512)
                    .expect("free")
                    .to_vec(),
                buffers
                    .slice(name, Sectors(SECTORS))
                    .expect("there")
                    .to_vec(),
            )
        })
        .collect()
}

proptest! {
    #[test]
    fn both_stores_agree(
        steps in prop::collection::vec(step(), 1..40),
        seed in any::<u8>(),
    ) {
        let mut payloads = Payloads::default();
        let mut buffers = Vectors::new(0);
        let mut ours = payloads.take(SECTORS as usize * 512).expect("room");
        for (at, ours) in ours.iter_mut().enumerate() {
            *ours = (at as u8).wrapping_mul(37) ^ (at / 512) as u8 ^ seed;
        }
        buffers.insert(RequestId(1), ours.to_vec());
        payloads.insert(RequestId(1), Memory::new(ours));
        for scratch in 0..SCRATCHES {
            let allocate = ComputeStep::Allocate {
                scratch: ScratchId(scratch),
                count: Sectors(SECTORS),
            };
            payloads.execute(&allocate).expect("room");
            buffers.execute(&allocate).expect("room");
            let to = BufferId::Scratch { scratch: ScratchId(scratch), skip: Sectors(0) };
            let zero = ComputeStep::Zero { to, count: Sectors(SECTORS) };
            payloads.execute(&zero).expect("there");
        }
        for step in &steps {
            let theirs = buffers.execute(step);
            let ours = payloads.execute(step);
            prop_assert_eq!(ours.as_ref().ok(), theirs.as_ref().ok(), "{:?}", step);
            for (ours, theirs) in contents(&payloads, &buffers) {
                prop_assert!(ours == theirs, "{:?}", step);
            }
        }
    }
}

#[test]
fn a_range_that_a_command_is_moving_is_not_touched() {
    let mut payloads = Payloads::default();
    let scratch = ScratchId(1);
    payloads
        .execute(&ComputeStep::Allocate {
            scratch,
            count: Sectors(4),
        })
        .expect("room");
    let at = |skip| BufferId::Scratch {
        scratch,
        skip: Sectors(skip),
    };
    let moving = payloads.write(at(1), 512).expect("free");
    let zero = |skip| ComputeStep::Zero {
        to: at(skip),
        count: Sectors(1),
    };
    assert!(payloads.execute(&zero(1)).is_err());
    assert_eq!(payloads.execute(&zero(2)), Ok(None));
    // Released while a command holds a part: the part stays.
    assert_eq!(
        payloads.execute(&ComputeStep::Release { scratch }),
        Ok(None)
    );
    assert_eq!(moving.len(), 512);
}
