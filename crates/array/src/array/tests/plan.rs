//! What a random run of the content oracle is made of.

use crate::policy::ReadPolicyKind;
use crate::recovery::{
    CheckpointRule, MdThreads, ReadRecovered, RecoveringWrites, RecoveryConfig, SyncSource,
    Throttle, WriteBarrier,
};
use crate::senders::HostRequests;
use proptest::prelude::*;
use raidlab_geometry::{Copies, Layout, Level, Shape};
use raidlab_units::{Bytes, Nanos, Sectors};

/// A random run.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) shape: Shape,
    pub(super) policy: ReadPolicyKind,
    pub(super) recovery: RecoveryConfig,
    pub(super) maximum_request: u64,
    /// Commands in a thousand that fail.
    pub(super) faults: u32,
    /// Whether one copy of everything never fails.
    pub(super) spared: bool,
    /// Sectors of the others that cannot be read.
    pub(super) latent: u64,
    /// Whether the array starts dirty.
    pub(super) dirty: bool,
    /// Whether members that are not spared may be missing or to be recovered.
    pub(super) incomplete: bool,
    pub(super) record_failures: bool,
    pub(super) remembers_bad_blocks: bool,
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
        (1..5_u32, proptest::option::of(1..4_u64)),
        prop_oneof![Just(SyncSource::LowestInSync), Just(SyncSource::Balanced),],
        prop_oneof![
            Just(WriteBarrier::Overlap),
            Just(WriteBarrier::MdWindow),
            Just(WriteBarrier::MdBuckets),
            Just(WriteBarrier::MdArray)
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
            |(
                sectors,
                (depth, merged),
                source,
                barrier,
                recovering_writes,
                throttle,
                read_recovered,
            )| {
                RecoveryConfig {
                    merged: merged.map(|blocks| Bytes(blocks * sectors * 512)),
                    tick: Nanos::from_millis(4),
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
                        interval_of_recovery: Nanos::from_secs(1),
                    }),
                    threads: depth.is_multiple_of(2).then_some(MdThreads {
                        turnaround: Nanos::from_micros(20),
                        // A write that slept goes out before a failure is recorded, in md too.
                        requests: HostRequests {
                            requests: u32::MAX,
                            tags: u32::MAX,
                        },
                        ..MdThreads::LINUX_6_12
                    }),
                }
            },
        )
}

fn shape() -> impl Strategy<Value = Shape> {
    let chunk = prop_oneof![Just(4), Just(8), Just(16)].prop_map(Sectors);
    let copies = (2..7_usize, 1..4_u8, 1..4_u8, any::<bool>());
    let striped = (chunk.clone(), copies).prop_filter_map(
        "a RAID 10 that can be",
        |(chunk, (members, near, far, offset))| {
            let layout = Layout::Copies(Copies {
                near,
                far,
                offset,
                ..Copies::near(1)
            });
            let shape = Shape::uniform(Level::Raid10, layout, chunk, members, Sectors(96));
            shape.array_size().is_ok().then_some(shape)
        },
    );
    let mirror = (1..5_usize).prop_map(|members| {
        let none = Layout::None;
        Shape::uniform(Level::Raid1, none, Sectors::ZERO, members, Sectors(192))
    });
    let single = (
        prop_oneof![Just(Level::Linear), Just(Level::Raid0)],
        chunk,
        prop::collection::vec((16..96_u64).prop_map(Sectors), 1..5),
    )
        .prop_map(|(level, chunk, sizes)| {
            Shape::of_members(level, Layout::default_of(level), chunk, sizes)
        });
    prop_oneof![4 => mirror, 5 => striped, 1 => single]
}

pub(super) fn any_plan() -> impl Strategy<Value = Plan> {
    let flags = (
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
        any::<bool>(),
    );
    (
        any::<u64>(),
        shape(),
        0..ReadPolicyKind::OWN.len(),
        recovery(),
        prop_oneof![Just(0), 1..16_u64],
        prop_oneof![Just(0), Just(3), Just(40)],
        prop_oneof![Just(0), 1..12_u64],
        flags,
        1..600_u32,
    )
        .prop_map(
            |(seed, shape, policy, recovery, maximum_request, faults, latent, flags, steps)| {
                let (spared, dirty, incomplete, record_failures, remembers_bad_blocks) = flags;
                // Without a second copy dirt has no meaning.
                let has_copies = matches!(shape.level, Level::Raid1 | Level::Raid10);
                Plan {
                    seed,
                    shape,
                    policy: ReadPolicyKind::OWN[policy],
                    recovery,
                    maximum_request,
                    faults,
                    spared,
                    latent,
                    dirty: dirty && has_copies,
                    incomplete,
                    record_failures,
                    remembers_bad_blocks,
                    steps,
                }
            },
        )
}
