//! Tests of the core as a whole.

mod disks;
mod oracle;
mod pace;
mod plan;
mod scenarios;
mod splitting;
mod story;
mod sync_scenarios;

use crate::config::{ArrayConfig, MemberConfig};
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
    }
}

fn config(members: usize, size: u64, recovery: RecoveryConfig) -> ArrayConfig {
    ArrayConfig {
        members: vec![member(size, 0); members],
        size: Sectors(size),
        read_policy: ReadPolicyKind::LeastPending,
        recovery,
        maximum_request: Sectors::ZERO,
    }
}

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
