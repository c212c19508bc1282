use super::{Abilities, Parts, Request, Segment, Status, Want, read_request, segments};
use crate::drive::DiskOperation;
use crate::error::DeviceError;
use crate::memory::GuestMemory;
use crate::vhost_user::MemoryRegion;
use proptest::prelude::*;
use std::os::fd::OwnedFd;
use virtio_queue::{Queue, QueueOwnedT, QueueT};
use vm_memory::GuestAddress;

const BASE: u64 = 0x1_0000;
const SIZE: u64 = 0x1_0000;
const TABLE: u64 = BASE;
const AVAILABLE: u64 = BASE + 0x1000;
const USED: u64 = BASE + 0x2000;
const ENTRIES: u16 = 8;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// A descriptor: address, length, flags, next.
type Entry = (u64, u32, u16, u16);

fn memory() -> GuestMemory {
    let file = tempfile::tempfile().unwrap();
    file.set_len(SIZE).unwrap();
    let region = MemoryRegion {
        guest_address: BASE,
        size: SIZE,
        user_address: BASE,
        file_offset: 0,
    };
    GuestMemory::map(vec![region], vec![OwnedFd::from(file)]).unwrap()
}

fn put(memory: &GuestMemory, table: u64, entries: &[Entry]) {
    for (index, entry) in entries.iter().enumerate() {
        let mut bytes = entry.0.to_le_bytes().to_vec();
        bytes.extend(entry.1.to_le_bytes());
        bytes.extend(entry.2.to_le_bytes());
        bytes.extend(entry.3.to_le_bytes());
        memory.write(table + index as u64 * 16, &bytes).unwrap();
    }
}

/// A ring in which the chain that begins at `head` is available.
fn ring(memory: &GuestMemory, head: u16) -> Queue {
    memory.write(AVAILABLE + 2, &1_u16.to_le_bytes()).unwrap();
    memory.write(AVAILABLE + 4, &head.to_le_bytes()).unwrap();
    let mut queue = Queue::new(ENTRIES).unwrap();
    queue
        .try_set_desc_table_address(GuestAddress(TABLE))
        .unwrap();
    queue
        .try_set_avail_ring_address(GuestAddress(AVAILABLE))
        .unwrap();
    queue.try_set_used_ring_address(GuestAddress(USED)).unwrap();
    queue.set_ready(true);
    queue
}

fn abilities() -> Abilities {
    Abilities {
        sectors: 1000,
        block_sectors: 1,
        flush: true,
        discard: true,
        write_zeroes: true,
    }
}

fn request(memory: &GuestMemory, head: u16) -> Result<Request, DeviceError> {
    let mut queue = ring(memory, head);
    let chain = queue.iter(memory.shared()).unwrap().next().unwrap();
    read_request(chain, memory, None, &abilities())
}

fn header(kind: u32, sector: u64) -> Vec<u8> {
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend([0; 4]);
    bytes.extend(sector.to_le_bytes());
    bytes
}

#[test]
fn a_header_in_pieces_and_data_beside_it() {
    // The specification allows any cut: 10 bytes, then 6 and the data's first.
    let memory = memory();
    memory.write(0x1_8000, &header(1, 5)).unwrap();
    put(
        &memory,
        TABLE,
        &[
            (0x1_8000, 10, NEXT, 1),
            (0x1_800a, 6 + 500, NEXT, 2),
            (0x1_9000, 12, NEXT, 3),
            (0x1_a000, 1, WRITE, 0),
        ],
    );
    let request = request(&memory, 0).unwrap();
    let data = [(0x1_8010, 500), (0x1_9000, 12)];
    let data = data.map(|(address, length)| Segment { address, length });
    assert_eq!(request.data, data);
    assert_eq!(request.status_at, 0x1_a000);
    let Want::Disk(io) = request.want else {
        panic!("{request:?}");
    };
    assert_eq!(
        (io.operation, io.start, io.count),
        (DiskOperation::Write, 5, 1)
    );
}

#[test]
fn the_status_may_follow_the_data_in_one_part() {
    let memory = memory();
    memory.write(0x1_8000, &header(0, 7)).unwrap();
    put(
        &memory,
        TABLE,
        &[
            (0x1_8000, 16, NEXT, 1),
            (0x1_9000, 1025, NEXT | WRITE, 2),
            (0x1_b000, 0, WRITE, 0),
        ],
    );
    let request = request(&memory, 0).unwrap();
    assert_eq!(request.status_at, 0x1_9400);
    let data = Segment {
        address: 0x1_9000,
        length: 1024,
    };
    assert_eq!(request.data, [data]);
}

#[test]
fn chains_without_an_answer_are_errors() {
    let refused: [(&[Entry], &str); 6] = [
        (&[(0x1_8000, 16, 0, 0)], "has no room for a status"),
        (&[(0x1_8000, 16, NEXT, 0)], "does not end"),
        (&[(0x1_8000, 16, NEXT, 9)], "does not end"),
        (&[(0x1_8000, 1, WRITE, 0)], "has no whole header"),
        (
            &[(0x1_8000, 15, NEXT, 1), (0x1_9000, 1, WRITE, 0)],
            "has no whole header",
        ),
        (
            &[(0x5, 16, NEXT, 1), (0x1_9000, 1, WRITE, 0)],
            "has its header outside the memory",
        ),
    ];
    for (entries, expected) in refused {
        let memory = memory();
        put(&memory, TABLE, entries);
        match request(&memory, 0) {
            Err(DeviceError::Chain { problem, head: 0 }) => assert_eq!(problem, expected),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn ranges_are_one_and_not_too_long() {
    let want = |kind, range: &[u8]| {
        let memory = memory();
        memory.write(0x1_8000, &header(kind, 0)).unwrap();
        memory.write(0x1_9000, range).unwrap();
        let length = range.len() as u32;
        let entries = [
            (0x1_8000, 16, NEXT, 1),
            (0x1_9000, length, NEXT, 2),
            (0x1_a000, 1, WRITE, 0),
        ];
        put(&memory, TABLE, &entries);
        request(&memory, 0).unwrap().want
    };
    let mut range = 8_u64.to_le_bytes().to_vec();
    range.extend(16_u32.to_le_bytes());
    range.extend([0; 4]);
    let Want::Disk(io) = want(11, &range) else {
        panic!("a discard");
    };
    assert_eq!(
        (io.operation, io.start, io.count),
        (DiskOperation::Discard, 8, 16)
    );
    let twice = [range.clone(), range.clone()].concat();
    assert_eq!(want(13, &twice), Want::Nothing(Status::IoError));
    assert_eq!(want(13, &range[..15]), Want::Nothing(Status::IoError));
    range[2] = 1;
    assert_eq!(want(11, &range), Want::Nothing(Status::IoError));
}

/// A walk over a chain without indirect tables: what the specification says, on
/// plain arrays.
fn walk(entries: &[Entry], head: u16) -> Option<Parts> {
    let (mut readable, mut writable) = (Vec::new(), Vec::new());
    let mut index = head;
    let mut bytes = 0_u64;
    for _ in 0..ENTRIES {
        let &(address, length, flags, next) = entries.get(usize::from(index))?;
        bytes += u64::from(length);
        if bytes > u64::from(u32::MAX) {
            return None;
        }
        let segment = Segment { address, length };
        if flags & WRITE != 0 {
            writable.push(segment);
        } else if writable.is_empty() {
            readable.push(segment);
        } else {
            return None;
        }
        if flags & NEXT == 0 {
            return Some((readable, writable));
        }
        index = next;
    }
    None
}

fn entry() -> impl Strategy<Value = Entry> {
    let address = prop_oneof![
        4 => BASE..BASE + SIZE,
        1 => Just(0_u64),
        1 => any::<u64>(),
    ];
    let length = prop_oneof![4 => 0_u32..2000, 1 => Just(16_u32), 1 => any::<u32>()];
    (address, length, 0_u16..4, 0_u16..10)
}

proptest! {
    #[test]
    fn chains_are_walked_as_the_specification_says(
        entries in proptest::collection::vec(entry(), 8),
        head in 0_u16..8,
    ) {
        let memory = memory();
        put(&memory, TABLE, &entries);
        let mut queue = ring(&memory, head);
        let chain = queue.iter(memory.shared()).unwrap().next().unwrap();
        prop_assert_eq!(segments(chain).ok(), walk(&entries, head));
    }

    #[test]
    fn any_ring_gives_a_request_that_can_be_answered_or_an_error(
        mut entries in proptest::collection::vec(entry(), 8),
        table in proptest::collection::vec(entry(), 4),
        indirect in proptest::option::of((0_usize..8, 0_u32..100)),
        heads in (any::<u16>(), any::<bool>()),
        bytes in proptest::collection::vec(any::<u8>(), 16),
        kind in 0_u32..15,
    ) {
        let memory = memory();
        let at = BASE + 0x4000;
        put(&memory, at, &table);
        if let Some((index, length)) = indirect {
            let length = if length < 90 { length / 16 * 16 } else { length };
            entries[index] = (at, length, INDIRECT | entries[index].2, entries[index].3);
        }
        put(&memory, TABLE, &entries);
        memory.write(BASE + 0x8000, &bytes).unwrap();
        memory.write(BASE + 0x8000, &kind.to_le_bytes()).unwrap();
        let head = if heads.1 { heads.0 } else { heads.0 % 8 };
        if let Ok(request) = request(&memory, head) {
            prop_assert_eq!(request.head, head);
            let bytes: u64 = request.data.iter().map(|one| u64::from(one.length)).sum();
            if let Want::Disk(io) = request.want {
                prop_assert!(io.start + io.count <= 1000);
                let transfers = matches!(io.operation, DiskOperation::Read | DiskOperation::Write);
                prop_assert!(!transfers || bytes == io.count * 512);
            }
        }
    }
}
