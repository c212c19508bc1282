//! The commands of a request cover its range exactly.

use super::{config, in_sync, member, request};
use crate::array::Array;
use crate::config::ArrayConfig;
use crate::engine::Engine;
use crate::policy::ReadPolicyKind;
use crate::recovery::RecoveryConfig;
use crate::request::{BufferId, Operation, Outputs, RequestError};
use proptest::prelude::*;
use raidlab_units::{Nanos, Sectors};

const UNIT: u64 = 1 << 17;

proptest! {
    #[test]
    fn commands_cover_the_range_exactly(
        start in UNIT - 300..UNIT + 300,
        count in 1..600_u64,
        limit in 0..200_u64,
        offset in 0..5000_u64,
        policy in 0..ReadPolicyKind::OWN.len(),
        members in 1..4_usize,
        buckets: bool,
        write: bool,
    ) {
        let recovery = if buckets { RecoveryConfig::md_6() } else { RecoveryConfig::gmirror() };
        let mut array = Array::new(ArrayConfig {
            members: in_sync(vec![member(2 * UNIT, offset); members]),
            read_policy: ReadPolicyKind::OWN[policy],
            maximum_request: Sectors(limit),
            ..config(members, 2 * UNIT, recovery)
        }).expect("a sound configuration");
        let operation = if write { Operation::Write } else { Operation::Read };
        let mut out = Outputs::default();
        array.submit(Nanos::ZERO, request(7, operation, start, count), &mut out);
        let copies = if write { members as u64 } else { 1 };
        let mut covered = vec![0; usize::try_from(count).expect("small")];
        for command in &out.commands {
            let BufferId::Request { skip, .. } = command.buffer else {
                panic!("{command:?} names no payload");
            };
            prop_assert_eq!(command.start.0, start + skip.0 + offset);
            prop_assert!(limit == 0 || command.count.0 <= limit);
            let (first, last) = (start + skip.0, start + skip.0 + command.count.0 - 1);
            prop_assert!(!buckets || first / UNIT == last / UNIT, "within one unit");
            for sector in skip.0..skip.0 + command.count.0 {
                covered[usize::try_from(sector).expect("small")] += 1;
            }
        }
        prop_assert!(covered.iter().all(|&times| times == copies), "{:?}", covered);
    }
}

#[test]
fn ranges_outside_the_array_are_refused() {
    let mut array = Array::new(config(2, 100, RecoveryConfig::gmirror())).expect("sound");
    let mut out = Outputs::default();
    let outside = [(0, 0), (0, 101), (100, 1), (u64::MAX, 2), (5, u64::MAX)];
    for (start, count) in outside {
        for operation in [Operation::Read, Operation::Write, Operation::Discard] {
            array.submit(Nanos::ZERO, request(1, operation, start, count), &mut out);
        }
    }
    assert!(out.commands.is_empty());
    assert_eq!(out.finished.len(), 15);
    let refused = Err(RequestError::OutOfRange);
    assert!(
        out.finished
            .iter()
            .all(|finished| finished.result == refused)
    );
}
