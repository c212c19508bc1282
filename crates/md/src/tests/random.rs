//! Whatever happens in whatever order, every request finishes, no two writes of a
//! member overlap, and in the end nothing is held.

use super::bench::{Bench, config};
use proptest::prelude::*;
use raidlab_array::{Engine, Imitation, MemberError, Operation, SyncAction, SyncRequest};
use raidlab_geometry::Level;

#[derive(Debug, Clone)]
enum Act {
    Submit(bool, u64, u64),
    Land(usize, bool),
    Fail(u16),
    Replace(u16),
    Check(SyncAction),
    Stall(bool),
}

fn act() -> impl Strategy<Value = Act> {
    let submit = (any::<bool>(), 0_u64..2000, 1_u64..300);
    let land = (any::<usize>(), prop::bool::weighted(0.02));
    let action = prop_oneof![
        Just(SyncAction::Check),
        Just(SyncAction::Resync),
        Just(SyncAction::Repair)
    ];
    prop_oneof![
        8 => submit.prop_map(|(reads, start, count)| Act::Submit(reads, start, count)),
        20 => land.prop_map(|(index, refused)| Act::Land(index, refused)),
        1 => (0_u16..6).prop_map(Act::Fail),
        2 => (0_u16..6).prop_map(Act::Replace),
        1 => action.prop_map(Act::Check),
        1 => any::<bool>().prop_map(Act::Stall),
    ]
}

fn level() -> impl Strategy<Value = (Level, usize)> {
    prop_oneof![
        (3_usize..6).prop_map(|members| (Level::Raid5, members)),
        (3_usize..5).prop_map(|members| (Level::Raid4, members)),
        (4_usize..7).prop_map(|members| (Level::Raid6, members)),
    ]
}

fn perform(bench: &mut Bench, act: Act, failed: &mut Vec<u16>, members: usize) {
    let size = bench.array.size().0;
    match act {
        Act::Submit(reads, start, count) => {
            let start = start % size;
            let operation = if reads {
                Operation::Read
            } else {
                Operation::Write
            };
            bench.submit(operation, start, count.min(size - start));
        }
        Act::Land(index, refused) if !bench.flights.is_empty() => {
            let index = index % bench.flights.len();
            let reads = bench.flights[index].operation == Operation::Read;
            let result = if refused && reads {
                Err(MemberError::Medium)
            } else {
                Ok(())
            };
            bench.land(index, result);
        }
        Act::Fail(slot) if usize::from(slot) < members && bench.fail(slot) => failed.push(slot),
        Act::Replace(slot) if failed.contains(&slot) => {
            failed.retain(|it| *it != slot);
            bench.replace(slot);
        }
        Act::Check(action) => {
            let request = SyncRequest {
                action,
                ranges: None,
            };
            // Where one runs already it is refused.
            let _ = bench.array.start_sync(bench.now, request, &mut bench.out);
            bench.settle();
        }
        Act::Stall(runs) => {
            let (now, out) = (bench.now, &mut bench.out);
            bench.array.set_metadata_pass(now, runs, out);
            bench.settle();
        }
        Act::Land(..) | Act::Fail(_) | Act::Replace(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn every_request_finishes(
        (level, members) in level(),
        stripes in 8_usize..40,
        // Whether it takes processes time to go from stripe to stripe, and with a plug.
        takes_time in prop::option::of(any::<bool>()),
        acts in prop::collection::vec(act(), 1..120),
    ) {
        let mut bench = Bench::new(config(level, members, 6, stripes));
        if let Some(has_plug) = takes_time {
            bench.array.take_time(has_plug);
        }
        let mut failed = Vec::new();
        for act in acts {
            perform(&mut bench, act, &mut failed, members);
        }
        perform(&mut bench, Act::Stall(false), &mut failed, members);
        bench.run();
        let held = bench.array.cache.active();
        prop_assert!(bench.open.is_empty(), "{:?} never finish: {held:?}", bench.open);
        prop_assert!(bench.array.is_idle());
        prop_assert_eq!(bench.array.sync_status(), None);
    }
}
