//! What a random run of the content oracle is made of.

use crate::policy::ReadPolicyKind;
use crate::recovery::{
    CheckpointRule, ReadRecovered, RecoveringWrites, RecoveryConfig, SyncSource, Throttle,
    WriteBarrier,
};
use crate::request::Slot;
use proptest::prelude::*;
use raidlab_units::{Bytes, Nanos};

/// A random run.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) members: usize,
    pub(super) policy: ReadPolicyKind,
    pub(super) recovery: RecoveryConfig,
    pub(super) maximum_request: u64,
    /// Commands in a thousand that fail.
    pub(super) faults: u32,
    /// Whether slot 0 never fails.
    pub(super) spare_slot_0: bool,
    /// Whether the mirror starts dirty.
    pub(super) dirty: bool,
    pub(super) steps: u32,
}

fn recovery() -> impl Strategy<Value = RecoveryConfig> {
    let throttle = prop_oneof![
        Just(Throttle::None),
        Just(Throttle::MdSleep {
            minimum_kib_per_second: 10,
            maximum_kib_per_second: 200,
        }),
        Just(Throttle::MdDrain {
            minimum_kib_per_second: 10,
            maximum_kib_per_second: 200,
        }),
    ];
    (
        1..12_u64,
        1..5_u32,
        prop_oneof![
            Just(SyncSource::LowestInSync),
            Just(SyncSource::Balanced),
            Just(SyncSource::Fixed(Slot(0)))
        ],
        prop_oneof![
            Just(WriteBarrier::Overlap),
            Just(WriteBarrier::MdWindow),
            Just(WriteBarrier::MdBuckets)
        ],
        prop_oneof![
            Just(RecoveringWrites::Everywhere),
            Just(RecoveringWrites::BelowPosition)
        ],
        throttle,
        prop_oneof![
            Just(ReadRecovered::AtEnd),
            Just(ReadRecovered::BelowCheckpoint),
            Just(ReadRecovered::BelowPosition)
        ],
    )
        .prop_map(
            |(sectors, depth, source, barrier, recovering_writes, throttle, read_recovered)| {
                RecoveryConfig {
                    block: Bytes(sectors * 512),
                    depth,
                    source,
                    barrier,
                    recovering_writes,
                    throttle,
                    read_recovered,
                    checkpoint: Some(CheckpointRule {
                        parts: 16,
                        interval: Nanos::from_secs(1),
                    }),
                }
            },
        )
}

pub(super) fn any_plan() -> impl Strategy<Value = Plan> {
    (
        any::<u64>(),
        1..5_usize,
        0..ReadPolicyKind::ALL.len(),
        recovery(),
        prop_oneof![Just(0), 1..16_u64],
        prop_oneof![Just(0), Just(3), Just(40)],
        any::<bool>(),
        any::<bool>(),
        1..600_u32,
    )
        .prop_map(
            |(seed, members, policy, recovery, maximum_request, faults, spare, dirty, steps)| {
                Plan {
                    seed,
                    members,
                    policy: ReadPolicyKind::ALL[policy],
                    recovery,
                    maximum_request,
                    faults,
                    spare_slot_0: spare,
                    dirty,
                    steps,
                }
            },
        )
}
