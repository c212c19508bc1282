//! What a step cannot have is an error, and changes nothing.

use super::vectors::{Misuse, Vectors};
use raidlab_array::{BufferId, ComputeStep, RequestId, ScratchId, StepId};
use raidlab_parity::RecoverError;
use raidlab_payload::PayloadError;
use raidlab_units::Sectors;

const NONE: BufferId = BufferId::None;

const fn scratch(name: u32, skip: u64) -> BufferId {
    BufferId::Scratch {
        scratch: ScratchId(name),
        skip: Sectors(skip),
    }
}

const fn payload(name: u64, skip: u64) -> BufferId {
    BufferId::Request {
        request: RequestId(name),
        skip: Sectors(skip),
    }
}

const fn allocate(name: u32, sectors: u64) -> ComputeStep {
    ComputeStep::Allocate {
        scratch: ScratchId(name),
        count: Sectors(sectors),
    }
}

const fn release(name: u32) -> ComputeStep {
    ComputeStep::Release {
        scratch: ScratchId(name),
    }
}

/// Scratch buffers 1 and 2 of 8 sectors, a payload 3 of 4 sectors, all ones.
fn buffers() -> Vectors {
    let mut buffers = Vectors::new(1);
    for step in [allocate(1, 8), allocate(2, 8)] {
        assert_eq!(buffers.execute(&step), Ok(None));
    }
    buffers.insert(RequestId(3), vec![1; 4 * 512]);
    buffers
}

fn cases_of_single_buffers() -> Vec<(ComputeStep, Misuse)> {
    let (id, one, four) = (StepId(1), Sectors(1), Sectors(4));
    let copy = |from, to| ComputeStep::Copy {
        from,
        to,
        count: Sectors(2),
    };
    vec![
        (allocate(1, 1), Misuse::Exists(ScratchId(1))),
        (release(9), Misuse::Beyond(scratch(9, 0))),
        (
            ComputeStep::Fill {
                to: scratch(1, 0),
                bytes: vec![0; 513],
            },
            PayloadError::NotWholeSectors(513).into(),
        ),
        (
            ComputeStep::Fill {
                to: scratch(1, 7),
                bytes: vec![0; 1024],
            },
            Misuse::Beyond(scratch(1, 7)),
        ),
        (
            ComputeStep::Zero {
                to: NONE,
                count: one,
            },
            PayloadError::NoBuffer.into(),
        ),
        (
            ComputeStep::Zero {
                to: payload(4, 0),
                count: one,
            },
            Misuse::Beyond(payload(4, 0)),
        ),
        (
            ComputeStep::Zero {
                to: payload(3, u64::MAX),
                count: Sectors(u64::MAX),
            },
            Misuse::Beyond(payload(3, u64::MAX)),
        ),
        (copy(NONE, scratch(1, 0)), PayloadError::NoBuffer.into()),
        (copy(scratch(1, 0), NONE), PayloadError::NoBuffer.into()),
        (
            copy(scratch(1, 1), scratch(1, 0)),
            Misuse::Overlap(scratch(1, 1), scratch(1, 0)),
        ),
        (
            ComputeStep::Fetch {
                id,
                from: payload(3, 1),
                count: four,
            },
            Misuse::Beyond(payload(3, 1)),
        ),
        (
            ComputeStep::Compare {
                id,
                left: scratch(1, 0),
                right: scratch(7, 0),
                count: one,
            },
            Misuse::Beyond(scratch(7, 0)),
        ),
    ]
}

fn cases_of_stripes() -> Vec<(ComputeStep, Misuse)> {
    let (id, one) = (StepId(1), Sectors(1));
    let generate = |data: &[BufferId], p, q| ComputeStep::Generate {
        count: Sectors(2),
        data: data.to_vec(),
        p,
        q,
    };
    let recover = |lost: &[u8], q| ComputeStep::Recover {
        count: one,
        data: vec![scratch(1, 0), scratch(1, 1)],
        p: scratch(1, 2),
        q,
        lost: lost.to_vec(),
    };
    vec![
        (
            generate(&[scratch(1, 0), payload(3, 0)], scratch(1, 1), NONE),
            Misuse::Overlap(scratch(1, 0), scratch(1, 1)),
        ),
        (
            generate(&[NONE; 256], scratch(1, 1), NONE),
            PayloadError::TooManyBlocks(256).into(),
        ),
        (
            ComputeStep::Update {
                count: one,
                index: 255,
                old: scratch(1, 0),
                new: scratch(1, 1),
                p: scratch(1, 2),
                q: NONE,
            },
            PayloadError::TooManyBlocks(256).into(),
        ),
        (
            recover(&[0, 1], NONE),
            PayloadError::Recover(RecoverError::NotEnoughParity).into(),
        ),
        (
            recover(&[0, 1, 2], scratch(1, 3)),
            PayloadError::Recover(RecoverError::TooManyLost(3)).into(),
        ),
        (
            recover(&[9], scratch(1, 3)),
            PayloadError::Recover(RecoverError::NoSuchBlock(9)).into(),
        ),
        (
            ComputeStep::Check {
                id,
                count: one,
                data: vec![scratch(1, 0)],
                p: NONE,
                q: scratch(1, 1),
            },
            PayloadError::NoBuffer.into(),
        ),
    ]
}

fn cases_of_seals() -> Vec<(ComputeStep, Misuse)> {
    let seal = |header_bytes, at, seal_at, block| ComputeStep::Seal {
        header: scratch(1, 6),
        header_bytes,
        at,
        seal_at,
        blocks: vec![(block, Sectors(1))],
    };
    vec![
        (
            seal(32, 30, 0, scratch(2, 0)),
            PayloadError::Seal {
                blocks: 1,
                header_bytes: 32,
            }
            .into(),
        ),
        (
            seal(32, 0, 29, scratch(2, 0)),
            PayloadError::Seal {
                blocks: 1,
                header_bytes: 32,
            }
            .into(),
        ),
        (
            seal(32, u32::MAX, u32::MAX, scratch(2, 0)),
            PayloadError::Seal {
                blocks: 1,
                header_bytes: 32,
            }
            .into(),
        ),
        (seal(32, 0, 4, NONE), PayloadError::NoBuffer.into()),
        (
            seal(1025, 0, 4, scratch(2, 0)),
            Misuse::Beyond(scratch(1, 6)),
        ),
        (seal(64, 0, 4, scratch(2, 8)), Misuse::Beyond(scratch(2, 8))),
    ]
}

#[test]
fn what_a_step_cannot_have_is_an_error_and_changes_nothing() {
    let cases = [
        cases_of_single_buffers(),
        cases_of_stripes(),
        cases_of_seals(),
    ];
    let mut buffers = buffers();
    for (step, error) in cases.into_iter().flatten() {
        assert_eq!(buffers.execute(&step), Err(error), "{step:?}");
        for (buffer, count) in [(scratch(1, 0), 8), (scratch(2, 0), 8), (payload(3, 0), 4)] {
            let bytes = buffers.slice(buffer, Sectors(count)).expect("it is there");
            assert!(bytes.iter().all(|&byte| byte == 1), "{step:?}");
        }
    }
}
