//! A resilver of OpenZFS 2.3 from beginning to end.

use super::rules::{call, config, request, settle};
use crate::config::LABEL_FRONT;
use crate::{Pool, PoolConfig, ScanOrder};
use proptest::prelude::*;
use raidlab_array::{MemberCommand, Operation, Slot};
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use std::collections::BTreeSet;

/// Where the blocks begin that are written to the new disk, in the order in which they
/// are sent. Uberblocks are shorter.
fn copied(pool: &mut Pool, now: &mut Nanos, mut commands: Vec<MemberCommand>) -> Vec<u64> {
    let mut sectors = Vec::new();
    loop {
        for command in std::mem::take(&mut commands) {
            let write = command.slot == Slot(1) && command.operation == Operation::Write;
            if write && command.count.0 >= 16 {
                let start = command.start.0 - LABEL_FRONT.0;
                sectors.extend((start..start + command.count.0).step_by(16));
            }
            let mut out = call(pool, |pool, out| {
                pool.complete(*now, command.id, Ok(()), out)
            });
            commands.append(&mut out.commands);
        }
        if !commands.is_empty() {
            continue;
        }
        if pool.sync_status().is_none() {
            return sectors;
        }
        *now = pool.next_tick().expect("a resilver goes on").max(*now);
        let mut out = call(pool, |pool, out| pool.tick(*now, out));
        commands.append(&mut out.commands);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Whatever was written over what, and with however little memory for what was
    /// found: every block that has a place is copied, and with room for all of them
    /// from the front to the back.
    #[test]
    fn everything_is_copied(
        writes in prop::collection::vec((0_u64..400, 1_u64..60), 1..30),
        memory in prop::sample::select(vec![1_u64, 4000, 1 << 30]),
    ) {
        let members = config().members;
        let mut config = PoolConfig::openzfs_2_3(members, Sectors(1 << 20), Bytes(16 << 30));
        config.resilver.order = ScanOrder::Sorted {
            in_flight: Bytes(256 << 10),
            memory: Bytes(memory),
            gap: Sectors(128),
        };
        config.indirect_pointers = 8;
        let mut pool = Pool::new(config, Stream::new(1)).expect("a good configuration");
        let mut now = Nanos::ZERO;
        for (id, &(first, blocks)) in (1..).zip(&writes) {
            let write = request(id, Operation::Write, first * 16, blocks * 16);
            let out = call(&mut pool, |pool, out| pool.submit(now, write, out));
            settle(&mut pool, &mut now, out.commands);
        }
        call(&mut pool, |pool, out| pool.remove(now, Slot(1), out).expect("a mirror"));
        let out = call(&mut pool, |pool, out| pool.add(now, Slot(1), out).expect("a gap"));
        let sectors = copied(&mut pool, &mut now, out.commands);
        prop_assert_eq!(pool.health(), "UU");
        let there: BTreeSet<u64> = sectors.iter().copied().collect();
        let places = (0..500).filter_map(|block| pool.map.place_of(block));
        let places: BTreeSet<u64> = places.map(|place| place.start).collect();
        prop_assert!(places.is_subset(&there), "{:?}", places.difference(&there));
        if memory == 1 << 30 {
            let order: Vec<u64> = sectors.into_iter().filter(|at| places.contains(at)).collect();
            prop_assert!(order.is_sorted(), "{order:?}");
        }
    }
}
