use super::*;
use proptest::prelude::*;
use std::sync::Mutex;

type Answer = (u64, Vec<u8>, Result<(), ErrorCode>);

/// Keeps the answers.
#[derive(Default)]
struct Answers(Mutex<Vec<Answer>>);

impl Completions for Answers {
    fn completed(&self, token: u64, buffer: Buffer, result: Result<(), ErrorCode>) {
        self.0
            .lock()
            .unwrap()
            .push((token, buffer.to_vec(), result));
    }
}

fn ask(
    export: &dyn Export,
    operation: Operation,
    offset: u64,
    length: u32,
    payload: Option<u8>,
) -> (Vec<u8>, Result<(), ErrorCode>) {
    let answers = Arc::new(Answers::default());
    let mut buffer = match operation {
        Operation::Read | Operation::Write => BufferPool::default().take(length as usize).unwrap(),
        _ => Buffer::empty(),
    };
    if let Some(byte) = payload {
        buffer.fill(byte);
    }
    export.submit(Request::new(
        operation,
        offset,
        length,
        RequestFlags::default(),
        buffer,
        (Arc::clone(&answers) as _, 5),
    ));
    let (token, bytes, result) = answers.0.lock().unwrap().pop().unwrap();
    assert_eq!(token, 5);
    (bytes, result)
}

#[test]
fn a_request_that_is_dropped_is_answered_with_an_error() {
    let answers = Arc::new(Answers::default());
    drop(Request::new(
        Operation::Flush,
        0,
        0,
        RequestFlags::default(),
        Buffer::empty(),
        (Arc::clone(&answers) as _, 9),
    ));
    assert_eq!(
        *answers.0.lock().unwrap(),
        [(9, Vec::new(), Err(ErrorCode::Io))]
    );
}

const SIZE: u32 = 300_000;

proptest! {
    /// The memory export is a flat array of bytes, and its holes are zero.
    #[test]
    fn memory_is_a_flat_array(
        steps in prop::collection::vec((0..4_u8, 0..SIZE, 1..150_000_u32, 1..=255_u8), 1..30),
    ) {
        let export = MemoryExport::new(u64::from(SIZE)).unwrap();
        let mut oracle = vec![0_u8; SIZE as usize];
        for (what, offset, length, byte) in steps {
            let length = length.min(SIZE - offset);
            let range = offset as usize..(offset + length) as usize;
            let operation = match what {
                0 => Operation::Read,
                1 => Operation::Write,
                2 => Operation::Trim,
                _ => Operation::WriteZeroes,
            };
            let payload = (operation == Operation::Write).then_some(byte);
            let (bytes, result) = ask(&export, operation, u64::from(offset), length, payload);
            prop_assert_eq!(result, Ok(()));
            match operation {
                Operation::Read => prop_assert_eq!(&bytes[..], &oracle[range]),
                Operation::Write => oracle[range].fill(byte),
                _ => oracle[range].fill(0),
            }
        }
        let mut extents = Vec::new();
        export.block_status(BASE_ALLOCATION, 0, SIZE, 100, &mut extents);
        let mut at = 0;
        for extent in extents {
            let end = at + extent.length as usize;
            prop_assert!(extent.flags == 0 || oracle[at..end].iter().all(|&byte| byte == 0));
            at = end;
        }
        prop_assert_eq!(at, SIZE as usize);
    }
}

#[test]
fn trimmed_segments_become_holes() {
    let export = MemoryExport::new(4 << 16).unwrap();
    let (_, result) = ask(&export, Operation::Write, 0, 3 << 16, Some(7));
    assert_eq!(result, Ok(()));
    let (_, result) = ask(&export, Operation::Trim, 1 << 15, 1 << 17, None);
    assert_eq!(result, Ok(()));
    let mut extents = Vec::new();
    export.block_status(BASE_ALLOCATION, 0, 4 << 16, 100, &mut extents);
    let runs: Vec<_> = extents
        .iter()
        .map(|extent| (extent.length, extent.flags))
        .collect();
    assert_eq!(
        runs,
        [(1 << 16, 0), (1 << 16, 3), (1 << 16, 0), (1 << 16, 3)]
    );
}
