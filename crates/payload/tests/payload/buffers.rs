//! The table of buffers: names, bounds, memory, commands in flight.

use proptest::prelude::*;
use raidlab_array::{BufferId, ComputeStep, RequestId, ScratchId, StepId};
use raidlab_parity::RecoverError;
use raidlab_payload::{ALIGNMENT, Buffers, BuffersConfig, MAXIMUM_BUFFER_BYTES, PayloadError};
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
fn buffers() -> Buffers {
    let mut buffers = Buffers::new(BuffersConfig {
        poison: Some(1),
        ..BuffersConfig::default()
    });
    for step in [allocate(1, 8), allocate(2, 8)] {
        assert_eq!(buffers.execute(&step), Ok(None));
    }
    let mut bytes = buffers.take(4 * 512).expect("a small buffer");
    bytes.fill(1);
    buffers.insert(RequestId(3), bytes).expect("a new request");
    buffers
}

fn short(buffer: BufferId, bytes: u64, available: u64) -> PayloadError {
    PayloadError::TooShort {
        buffer,
        bytes,
        available,
    }
}

fn cases_of_single_buffers() -> Vec<(ComputeStep, PayloadError)> {
    let (id, one, four) = (StepId(1), Sectors(1), Sectors(4));
    let copy = |from, to| ComputeStep::Copy {
        from,
        to,
        count: Sectors(2),
    };
    vec![
        (allocate(1, 1), PayloadError::ScratchExists(ScratchId(1))),
        (
            allocate(9, u64::MAX),
            PayloadError::TooLarge(usize::MAX as u64),
        ),
        (release(9), PayloadError::UnknownScratch(ScratchId(9))),
        (
            ComputeStep::Fill {
                to: scratch(1, 0),
                bytes: vec![0; 513],
            },
            PayloadError::NotWholeSectors(513),
        ),
        (
            ComputeStep::Fill {
                to: scratch(1, 7),
                bytes: vec![0; 1024],
            },
            short(scratch(1, 7), 1024, 512),
        ),
        (
            ComputeStep::Zero {
                to: NONE,
                count: one,
            },
            PayloadError::NoBuffer,
        ),
        (
            ComputeStep::Zero {
                to: payload(4, 0),
                count: one,
            },
            PayloadError::UnknownRequest(RequestId(4)),
        ),
        (
            ComputeStep::Zero {
                to: payload(3, u64::MAX),
                count: Sectors(u64::MAX),
            },
            short(payload(3, u64::MAX), usize::MAX as u64, 0),
        ),
        (copy(NONE, scratch(1, 0)), PayloadError::NoBuffer),
        (copy(scratch(1, 0), NONE), PayloadError::NoBuffer),
        (
            copy(scratch(1, 1), scratch(1, 0)),
            PayloadError::Overlap(scratch(1, 0), scratch(1, 1)),
        ),
        (
            ComputeStep::Fetch {
                id,
                from: payload(3, 1),
                count: four,
            },
            short(payload(3, 1), 2048, 1536),
        ),
        (
            ComputeStep::Compare {
                id,
                left: scratch(1, 0),
                right: scratch(7, 0),
                count: one,
            },
            PayloadError::UnknownScratch(ScratchId(7)),
        ),
    ]
}

fn cases_of_stripes() -> Vec<(ComputeStep, PayloadError)> {
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
            PayloadError::Overlap(scratch(1, 0), scratch(1, 1)),
        ),
        (
            generate(&[NONE; 256], scratch(1, 1), NONE),
            PayloadError::TooManyBlocks(256),
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
            PayloadError::TooManyBlocks(256),
        ),
        (
            recover(&[0, 1], NONE),
            PayloadError::Recover(RecoverError::NotEnoughParity),
        ),
        (
            recover(&[0, 1, 2], scratch(1, 3)),
            PayloadError::Recover(RecoverError::TooManyLost(3)),
        ),
        (
            recover(&[9], scratch(1, 3)),
            PayloadError::Recover(RecoverError::NoSuchBlock(9)),
        ),
        (
            ComputeStep::Check {
                id,
                count: one,
                data: vec![scratch(1, 0)],
                p: NONE,
                q: scratch(1, 1),
            },
            PayloadError::NoBuffer,
        ),
    ]
}

fn cases_of_seals() -> Vec<(ComputeStep, PayloadError)> {
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
            },
        ),
        (
            seal(32, 0, 29, scratch(2, 0)),
            PayloadError::Seal {
                blocks: 1,
                header_bytes: 32,
            },
        ),
        (
            seal(32, u32::MAX, u32::MAX, scratch(2, 0)),
            PayloadError::Seal {
                blocks: 1,
                header_bytes: 32,
            },
        ),
        (seal(32, 0, 4, NONE), PayloadError::NoBuffer),
        (
            seal(1025, 0, 4, scratch(2, 0)),
            short(scratch(1, 6), 1025, 1024),
        ),
        (seal(64, 0, 4, scratch(2, 8)), short(scratch(2, 8), 512, 0)),
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
    assert_eq!((buffers.scratch_count(), buffers.request_count()), (2, 1));
}

#[test]
fn a_range_in_flight_stays_where_it_is() {
    let mut buffers = buffers();
    let first = buffers.begin(scratch(1, 2), Sectors(3)).expect("a range");
    let second = buffers.begin(payload(3, 0), Sectors(4)).expect("a range");
    let bytes = buffers.slice(scratch(1, 2), Sectors(3)).expect("a range");
    assert_eq!(first.address().cast_const(), bytes.as_ptr());
    assert_eq!((first.bytes(), second.bytes()), (1536, 2048));
    assert_ne!(first.memory(), second.memory());
    assert_eq!(buffers.execute(&release(1)), Err(PayloadError::InFlight));
    let removed = buffers.remove(RequestId(3)).map(|_| ());
    assert_eq!(removed, Err(PayloadError::InFlight));
    // The table may grow meanwhile.
    for name in 100..300 {
        assert_eq!(buffers.execute(&allocate(name, 1)), Ok(None));
    }
    let bytes = buffers.slice(scratch(1, 2), Sectors(3)).expect("a range");
    assert_eq!(first.address().cast_const(), bytes.as_ptr());
    buffers.end(first);
    assert_eq!(buffers.execute(&release(1)), Ok(None));
    let address = second.address();
    buffers.end(second);
    let taken = buffers.remove(RequestId(3)).expect("no longer in flight");
    assert_eq!(taken.as_ptr(), address.cast_const());
    assert!(buffers.begin(NONE, Sectors(1)).is_err());
}

#[test]
fn requests_are_put_in_and_taken_out_once() {
    let mut buffers = buffers();
    let again = buffers.take(512).expect("a small buffer");
    let result = buffers.insert(RequestId(3), again);
    assert_eq!(result, Err(PayloadError::RequestExists(RequestId(3))));
    assert!(buffers.remove(RequestId(3)).is_ok());
    let result = buffers.remove(RequestId(3)).map(|_| ());
    assert_eq!(result, Err(PayloadError::UnknownRequest(RequestId(3))));
}

#[test]
fn memory_is_reused_up_to_a_bound() {
    let mut buffers = Buffers::new(BuffersConfig {
        maximum_retained_bytes: 3 * 4096,
        poison: None,
    });
    let first = buffers.take(5000).expect("a small buffer");
    assert_eq!((first.len(), first.capacity()), (5000, 8192));
    let (memory, address) = (first.memory(), first.as_ptr());
    buffers.give_back(first);
    assert_eq!(buffers.retained_bytes(), 8192);
    let again = buffers.take(8192).expect("a small buffer");
    assert_eq!((again.memory(), again.as_ptr()), (memory, address));
    assert_eq!(buffers.retained_bytes(), 0);
    let other = buffers.take(8192).expect("a small buffer");
    assert_eq!(other.memory().index, memory.index + 1);
    buffers.give_back(again);
    // Beyond the bound: dropped, and its index goes to the next memory.
    let dropped = other.memory();
    buffers.give_back(other);
    assert_eq!(buffers.retained_bytes(), 8192);
    let next = buffers.take(100).expect("a small buffer");
    assert_eq!(next.memory().index, dropped.index);
    assert_ne!(next.memory().generation, dropped.generation);
}

#[test]
fn the_largest_buffer_is_bounded() {
    let mut buffers = Buffers::new(BuffersConfig::default());
    let largest = buffers.take(MAXIMUM_BUFFER_BYTES).expect("the largest");
    assert_eq!(largest.capacity(), MAXIMUM_BUFFER_BYTES);
    let result = buffers.take(MAXIMUM_BUFFER_BYTES + 1).map(|_| ());
    let error = PayloadError::TooLarge(MAXIMUM_BUFFER_BYTES as u64 + 1);
    assert_eq!(result, Err(error));
}

#[test]
fn scratch_buffers_are_poisoned_when_they_are_reused() {
    let mut buffers = buffers();
    let zero = ComputeStep::Zero {
        to: scratch(1, 0),
        count: Sectors(8),
    };
    for step in [zero, release(1), allocate(5, 8)] {
        assert_eq!(buffers.execute(&step), Ok(None));
    }
    let bytes = buffers.slice(scratch(5, 0), Sectors(8)).expect("allocated");
    assert!(bytes.iter().all(|&byte| byte == 1));
}

proptest! {
    #[test]
    fn buffers_are_aligned_and_apart(lengths in prop::collection::vec(0_usize..70_000, 1..20)) {
        let mut buffers = Buffers::new(BuffersConfig::default());
        for round in 0..2_u8 {
            let taken = lengths.iter().map(|&length| buffers.take(length));
            let taken: Result<Vec<_>, _> = taken.collect();
            let mut taken = taken.expect("small buffers");
            for (place, buffer) in taken.iter_mut().enumerate() {
                prop_assert!(buffer.as_ptr().addr().is_multiple_of(ALIGNMENT));
                prop_assert_eq!(buffer.len(), lengths[place]);
                prop_assert!(buffer.capacity() >= lengths[place]);
                buffer.fill(place as u8 ^ round);
            }
            for (place, buffer) in taken.into_iter().enumerate() {
                prop_assert!(buffer.iter().all(|&byte| byte == place as u8 ^ round));
                buffers.give_back(buffer);
            }
        }
    }
}
