//! Tests of the core as a whole.

mod apart;
mod disks;
mod imitation;
mod levels;
mod merging;
mod oracle;
mod pace;
mod plan;
mod scenarios;
mod splitting;
mod story;
mod sync_scenarios;

use crate::admission::Admission;
use crate::config::{ArrayConfig, Initial, MemberConfig};
use crate::policy::ReadPolicyKind;
use crate::recovery::RecoveryConfig;
use crate::request::{Operation, Request, RequestId};
use raidlab_units::Sectors;

fn member(size: u64, data_offset: u64) -> MemberConfig {
    MemberConfig {
        size: Sectors(size + data_offset),
        data_offset: Sectors(data_offset),
        rotational: true,
        write_mostly: false,
        bad_blocks: None,
    }
}

/// With a bad-block log, empty.
fn logged(size: u64, data_offset: u64) -> MemberConfig {
    MemberConfig {
        bad_blocks: Some(Vec::new()),
        ..member(size, data_offset)
    }
}

fn config(members: usize, size: u64, recovery: RecoveryConfig) -> ArrayConfig {
    ArrayConfig::mirror(
        vec![member(size, 0); members],
        Sectors(size),
        ReadPolicyKind::LEAST_PENDING,
        recovery,
        Sectors::ZERO,
    )
}

fn in_sync(members: impl IntoIterator<Item = MemberConfig>) -> Vec<Initial> {
    members.into_iter().map(Initial::InSync).collect()
}

/// All of a new member has to be filled.
const ALL: Admission = Admission::From(Sectors::ZERO);

fn request(id: u64, operation: Operation, start: u64, count: u64) -> Request {
    Request {
        id: RequestId(id),
        operation,
        start: Sectors(start),
        count: Sectors(count),
        force_unit_access: false,
        process: 0,
    }
}
