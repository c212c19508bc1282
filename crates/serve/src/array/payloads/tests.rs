mod stores;

use super::{PayloadError, Payloads, gaps};
use crate::array::owner::Broken;
use crate::member::{BorrowError, Memory};
use raidlab_array::{BufferId, RequestId, ScratchId};
use raidlab_payload::Store;
use raidlab_units::Sectors;

fn request(skip: u64) -> BufferId {
    BufferId::Request {
        request: RequestId(7),
        skip: Sectors(skip),
    }
}

fn with_request(sectors: u64) -> Payloads {
    let mut payloads = Payloads::default();
    let mut buffer = payloads.take((sectors * 512) as usize).expect("room");
    for (sector, bytes) in (0..).zip(buffer.chunks_mut(512)) {
        bytes.fill(sector);
    }
    payloads.insert(RequestId(7), Memory::new(buffer));
    payloads
}

#[test]
fn gaps_are_what_lies_between() {
    let cases = [
        (vec![], vec![(0, 10)]),
        (vec![(4, 6), (0, 2)], vec![(2, 4), (6, 10)]),
        (vec![(0, 10)], vec![]),
        (vec![(2, 8), (3, 4)], vec![(0, 2), (8, 10)]),
    ];
    for (ranges, expected) in cases {
        let ranges = ranges.into_iter().map(|(start, end)| start..end).collect();
        let found: Vec<_> = gaps(ranges, 10)
            .into_iter()
            .map(|gap| (gap.start, gap.end))
            .collect();
        assert_eq!(found, expected);
    }
}

#[test]
fn what_does_not_exist_cannot_be_used() {
    let mut payloads = with_request(4);
    let scratch = ScratchId(1);
    let name = BufferId::Scratch {
        scratch,
        skip: Sectors(0),
    };
    assert_eq!(
        payloads.read(name, 512).err(),
        Some(PayloadError::Unknown(name))
    );
    assert_eq!(payloads.release(scratch), Err(PayloadError::Unknown(name)));
    assert_eq!(payloads.allocate(scratch, Sectors(2)), Ok(()));
    assert_eq!(
        payloads.allocate(scratch, Sectors(2)),
        Err(PayloadError::Exists(name))
    );
    let beyond = payloads.read(request(3), 1024).err();
    assert_eq!(
        beyond,
        Some(PayloadError::Borrow {
            buffer: request(3),
            bytes: 1024,
            source: BorrowError::OutOfRange
        })
    );
    assert!(payloads.allocate(ScratchId(2), Sectors(u64::MAX)).is_err());
}

/// Three reads of one payload: the second hangs, the first ends after it was
/// given up. The payload moves, has the first's bytes, and what the hung one
/// writes at last is seen by nobody.
#[test]
fn a_payload_moves_away_from_a_read_that_hangs() {
    let mut payloads = with_request(6);
    let mut first = payloads.write(request(0), 1024).expect("free");
    let mut hung = payloads.write(request(2), 1024).expect("free");
    let writing = payloads.read(request(5), 512).expect("free");
    payloads.move_away(request(2)).expect("moves");

    let again = payloads.write(request(2), 1024);
    again.expect("free again").fill(0xaa);
    hung.fill(0xee);
    drop(hung);
    first.fill(0x11);
    payloads.arrived(request(0), &first).expect("follows");
    drop((first, writing));

    let memory = payloads.remove(RequestId(7)).expect("is there");
    let buffer = memory.into_buffer().expect("nobody holds it");
    let sectors: Vec<u8> = buffer.chunks(512).map(|sector| sector[511]).collect();
    assert_eq!(sectors, [0x11, 0x11, 0xaa, 0xaa, 4, 5]);
}

#[test]
fn a_payload_that_has_not_moved_is_left_alone() {
    let payloads = with_request(2);
    let bytes = payloads.write(request(0), 512).expect("free");
    // A copy would need the range, which is lent.
    assert_eq!(payloads.arrived(request(0), &bytes), Ok(()));
}

#[test]
fn a_buffer_that_is_gone_need_not_move() {
    let mut payloads = with_request(2);
    let bytes = payloads.write(request(0), 512).expect("free");
    drop(payloads.remove(RequestId(7)));
    assert_eq!(payloads.move_away(request(0)), Ok(()));
    assert_eq!(payloads.arrived(request(0), &bytes), Ok(()));
}

/// A moment without memory is waited for, since the array would break down without a buffer.
#[test]
fn memory_that_is_not_there_at_the_moment_is_waited_for() {
    let payloads = Payloads::default();
    payloads.pool.refuse(6);
    assert_eq!(payloads.take(4096).expect("after some naps").len(), 4096);
    payloads.pool.refuse(usize::MAX);
    // Longer than what the pool keeps by now.
    let broken = Broken::from(payloads.take(8192).unwrap_err());
    assert!(matches!(broken, Broken::Memory(_)), "{broken}");
}
