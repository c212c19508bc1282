use crate::array::testing::Client;
use crate::array::{DriverConfig, FileExport};
use crate::export::{ErrorCode, Export, Operation};
use crate::member::{BackendKind, MemberFile, OpenOptions};
use proptest::prelude::*;
use std::sync::Arc;

const SECTORS: u64 = 8192;

fn export(kind: BackendKind, registered_bytes: u64) -> (tempfile::NamedTempFile, FileExport) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file().set_len(SECTORS * 512).expect("room");
    let member = MemberFile::open(file.path(), OpenOptions::default()).expect("opens");
    let config = DriverConfig {
        backend: kind,
        registered_bytes,
        ..DriverConfig::default()
    };
    let export = FileExport::start(Arc::new(member), config).expect("starts");
    (file, export)
}

/// Batches of requests that do not overlap within a batch, against a flat array.
fn run(kind: BackendKind, registered_bytes: u64, batches: &[Vec<(u8, u64, u64, u8)>]) {
    let (file, export) = export(kind, registered_bytes);
    let client = Client::new();
    let mut oracle = vec![0_u8; (SECTORS * 512) as usize];
    for batch in batches {
        let mut expected = Vec::new();
        let lane = SECTORS / batch.len() as u64;
        for (number, &(what, start, count, byte)) in (0..).zip(batch) {
            let start = number * lane + start % lane;
            let count = count.min((number + 1) * lane - start);
            let range = (start * 512) as usize..((start + count) * 512) as usize;
            let operation = match what {
                0 => Operation::Read,
                1 => Operation::Write,
                2 => Operation::Flush,
                3 => Operation::Trim,
                _ => Operation::WriteZeroes,
            };
            let payload = vec![byte; range.len()];
            let mut request = (operation, start * 512, (count * 512) as u32);
            match operation {
                Operation::Write => oracle[range.clone()].fill(byte),
                Operation::Trim | Operation::WriteZeroes => oracle[range.clone()].fill(0),
                Operation::Flush => request = (operation, 0, 0),
                Operation::Read | Operation::Cache => {}
            }
            client.send(&export, number, request, &payload, byte % 2 == 1);
            expected.push((operation == Operation::Read).then(|| oracle[range].to_vec()));
        }
        export.submitted();
        for _ in batch {
            let (token, bytes, result) = client.next();
            assert_eq!(result, Ok(()));
            if let Some(expected) = expected[token as usize].take() {
                assert!(bytes == expected, "request {token}");
            }
        }
    }
    let counters = export.counters().expect("runs");
    assert_eq!((counters.in_flight, counters.errors), (0, 0));
    drop(export);
    assert!(std::fs::read(file.path()).expect("readable") == oracle);
}

fn batches() -> impl Strategy<Value = Vec<Vec<(u8, u64, u64, u8)>>> {
    let request = (0..5_u8, 0..SECTORS, 1..4000_u64, any::<u8>());
    prop::collection::vec(prop::collection::vec(request, 1..12), 1..6)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]

    #[test]
    fn a_file_by_a_ring_is_a_flat_array(batches in batches()) {
        for registered_bytes in [0, 4 << 20, 64 << 20] {
            run(BackendKind::Ring, registered_bytes, &batches);
        }
    }

    #[test]
    fn a_file_by_threads_is_a_flat_array(batches in batches()) {
        run(BackendKind::Threads, 0, &batches);
    }
}

#[test]
fn beyond_the_end_is_invalid() {
    let (_file, export) = export(BackendKind::Automatic, 1 << 20);
    let client = Client::new();
    let beyond = (Operation::Read, (SECTORS - 1) * 512, 1024);
    let (_, result) = client.ask(&export, beyond, &[]);
    assert_eq!(result, Err(ErrorCode::Invalid));
}

#[test]
fn what_is_under_way_is_finished_when_the_export_is_dropped() {
    let (file, export) = export(BackendKind::Automatic, 1 << 20);
    let client = Client::new();
    for piece in 0..64 {
        let write = (Operation::Write, piece * 65_536, 65_536);
        client.send(&export, piece, write, &vec![7; 65_536], false);
    }
    drop(export);
    for _ in 0..64 {
        assert_eq!(client.next().2, Ok(()));
    }
    let bytes = std::fs::read(file.path()).expect("readable");
    assert!(bytes.iter().all(|&byte| byte == 7));
}
