use super::super::{
    Answer, BackendKind, Job, Member, MemberFile, Members, MembersConfig, OpenOptions, Ring,
    Storage, Transfer, Waker, start_backend,
};
use super::{memory, read, write, zero};
use crate::export::BufferPool;
use crate::member::Memory;
use proptest::prelude::*;
use raidlab_array::CommandId;
use std::sync::Arc;
use std::time::Duration;

const SECTOR: usize = 512;
const SECTORS: usize = 256;

fn members(kind: BackendKind) -> (Members, Arc<Waker>) {
    members_with(kind, 1 << 20)
}

fn members_with(kind: BackendKind, registered_bytes: u64) -> (Members, Arc<Waker>) {
    let waker = Arc::new(Waker::new().expect("a descriptor"));
    let backend = start_backend(kind, registered_bytes, &waker).expect("a backend");
    let members = Members::new(backend, MembersConfig::default(), Some(&waker));
    (members, waker)
}

/// A member in a file of 8 KiB, in place 0.
fn one_member(kind: BackendKind) -> (tempfile::NamedTempFile, Members, Arc<Waker>) {
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file().set_len(8192).expect("room");
    let member = MemberFile::open(file.path(), OpenOptions::default()).expect("opens");
    let (mut members, waker) = members(kind);
    members.attach(0, &Member::from(member)).expect("room");
    (file, members, waker)
}

/// In a ring, a write to such a file waits for one that hangs where the kernel's hashes of both
/// inodes are the same.
#[test]
fn a_file_behind_the_page_cache_has_threads_of_its_own() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file().set_len(8192).expect("room");
    let options = OpenOptions {
        buffered: true,
        ..OpenOptions::default()
    };
    let member = MemberFile::open(file.path(), options).expect("opens");
    let (mut members, _waker) = members(BackendKind::Automatic);
    members.attach(41, &Member::from(member)).expect("room");
    let is_there = || {
        let tasks = std::fs::read_dir("/proc/self/task").expect("tasks");
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm"));
        let mut names = tasks.flatten().filter_map(|task| name(task).ok());
        names.any(|name| name.trim() == "member-41-0")
    };
    // A thread gets its name after its start.
    let looks = (0..500).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        is_there()
    });
    assert!(looks, "no thread");
}

/// Sleeps as an owner does, until something is answered.
fn answer(members: &mut Members, waker: &Waker) -> Vec<Answer> {
    let mut answers = Vec::new();
    while answers.is_empty() {
        waker.announce();
        let limit = Some(Duration::from_secs(20));
        members.wait(limit, &zero, &mut answers).expect("works");
        waker.awake();
    }
    answers
}

#[derive(Debug, Clone)]
struct Step {
    what: u8,
    start: usize,
    count: usize,
    byte: u8,
    force: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Some longer than what several workers of a ring are asked for.
    let step = (
        0..4_u8,
        0..SECTORS,
        1..160_usize,
        any::<u8>(),
        any::<bool>(),
    );
    let step = step.prop_map(|(what, start, count, byte, force)| Step {
        what,
        start,
        count: count.min(SECTORS - start),
        byte,
        force,
    });
    prop::collection::vec(step, 1..40)
}

/// Each step's bytes differ from sector to sector and within it.
fn pattern(step: &Step) -> Vec<u8> {
    (0..step.count * SECTOR)
        .map(|at| step.byte ^ (at / SECTOR) as u8 ^ (at as u8).wrapping_mul(31))
        .collect()
}

/// Where a member lies, and how it is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    Direct,
    Buffered,
    /// On tmpfs, which the kernel cannot try.
    Memory,
}

fn places() -> impl Strategy<Value = Place> {
    prop::sample::select(vec![Place::Direct, Place::Buffered, Place::Memory])
}

fn run(kind: BackendKind, registered_bytes: u64, place: Place, steps: &[Step]) {
    let file = match place {
        Place::Memory => tempfile::NamedTempFile::new_in("/dev/shm"),
        Place::Direct | Place::Buffered => tempfile::NamedTempFile::new(),
    };
    let file = file.expect("a file");
    file.as_file()
        .set_len((SECTORS * SECTOR) as u64)
        .expect("room");
    let options = OpenOptions {
        buffered: place == Place::Buffered,
        ..OpenOptions::default()
    };
    let member = Member::from(MemberFile::open(file.path(), options).expect("opens"));
    let (mut members, waker) = members_with(kind, registered_bytes);
    members.attach(0, &member).expect("room");
    let mut oracle = vec![0_u8; SECTORS * SECTOR];
    for (number, step) in (0..).zip(steps) {
        let range = step.start * SECTOR..(step.start + step.count) * SECTOR;
        let transfer = match step.what {
            0 => read(range.len()),
            1 => {
                let bytes = pattern(step);
                oracle[range.clone()].copy_from_slice(&bytes);
                Transfer::Write {
                    data: memory(&bytes).read(0..bytes.len()).expect("free"),
                    force_unit_access: step.force,
                }
            }
            2 => Transfer::Flush,
            _ => Transfer::Discard {
                bytes: range.len() as u64,
            },
        };
        let offset = range.start as u64;
        members.submit(zero(), CommandId(number), 0, offset, transfer);
        let answers = answer(&mut members, &waker);
        assert_eq!(answers.len(), 1);
        assert_eq!(
            (answers[0].id, answers[0].result),
            (CommandId(number), Ok(()))
        );
        match &answers[0].transfer {
            Some(Transfer::Read(bytes)) => assert_eq!(**bytes, oracle[range]),
            Some(Transfer::Discard { .. }) => oracle[range].fill(0),
            _ => {}
        }
    }
    drop(members);
    assert_eq!(std::fs::read(file.path()).expect("readable"), oracle);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn a_ring_keeps_a_flat_array(steps in steps(), place in places()) {
        // No registered memory, room for a few buffers, room for all.
        for registered_bytes in [0, 65_536, 64 << 20] {
            run(BackendKind::Ring, registered_bytes, place, &steps);
        }
    }

    #[test]
    fn threads_keep_a_flat_array(steps in steps(), place in places()) {
        run(BackendKind::Threads, 0, place, &steps);
    }
}

/// More commands at once than the ring has entries, all pieces of two
/// memories, each answered once.
fn many_at_once(kind: BackendKind) {
    const PIECES: usize = 700;
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file()
        .set_len((PIECES * SECTOR) as u64)
        .expect("room");
    let member =
        Member::from(MemberFile::open(file.path(), OpenOptions::default()).expect("opens"));
    let (mut members, waker) = members(kind);
    members.attach(3, &member).expect("room");
    let bytes: Vec<u8> = (0..PIECES * SECTOR)
        .map(|at| (at / 512 * 7) as u8)
        .collect();
    let source = memory(&bytes);
    let target = memory(&vec![0; bytes.len()]);
    for writes in [true, false] {
        for piece in 0..PIECES {
            let range = piece * SECTOR..(piece + 1) * SECTOR;
            let transfer = if writes {
                Transfer::Write {
                    data: source.read(range.clone()).expect("free"),
                    force_unit_access: false,
                }
            } else {
                Transfer::Read(target.write(range.clone()).expect("free"))
            };
            let offset = range.start as u64;
            members.submit(zero(), CommandId(piece as u64), 3, offset, transfer);
        }
        let mut seen = vec![false; PIECES];
        while seen.contains(&false) {
            for answer in answer(&mut members, &waker) {
                assert_eq!(answer.result, Ok(()));
                let piece = answer.id.0 as usize;
                assert!(!std::mem::replace(&mut seen[piece], true), "twice");
            }
        }
    }
    assert!(*target.read(0..bytes.len()).expect("all are back") == bytes[..]);
    let counters = members.counters(3);
    assert_eq!((counters.reads, counters.writes), (700, 700));
    assert_eq!((counters.read_bytes, counters.in_flight), (700 * 512, 0));
}

#[test]
fn a_ring_takes_more_than_it_has_entries() {
    many_at_once(BackendKind::Ring);
}

#[test]
fn threads_take_many() {
    many_at_once(BackendKind::Threads);
}

#[test]
fn a_shortened_file_is_a_member_that_is_gone() {
    for kind in [BackendKind::Ring, BackendKind::Threads] {
        let (file, mut members, waker) = one_member(kind);
        file.as_file().set_len(4096).expect("shorter");
        for transfer in [read(8192), write(&[1; 512]), Transfer::Flush] {
            members.submit(zero(), CommandId(1), 0, 0, transfer);
            let answers = answer(&mut members, &waker);
            let gone = Err(raidlab_array::MemberError::Gone);
            assert_eq!(answers[0].result, gone, "{kind:?}");
        }
        let left = file.as_file().metadata().expect("a file").len();
        assert_eq!(left, 4096, "nothing is written behind its end");
        let why = members.why_lost(0).expect("it is lost");
        assert!(why.contains("shorter"), "{why}");
    }
}

/// Nobody finds it when it has been closed. What it holds can be read until then.
#[test]
fn a_deleted_file_takes_no_writes() {
    for kind in [BackendKind::Ring, BackendKind::Threads] {
        let (file, mut members, waker) = one_member(kind);
        std::fs::remove_file(file.path()).expect("it is there");
        let gone = Err(raidlab_array::MemberError::Gone);
        let told = [
            (read(8192), Ok(())),
            (write(&[1; 512]), gone),
            (Transfer::Flush, gone),
        ];
        for (transfer, result) in told {
            members.submit(zero(), CommandId(1), 0, 0, transfer);
            let answers = answer(&mut members, &waker);
            assert_eq!(answers[0].result, result, "{kind:?}");
        }
        let why = members.why_lost(0).expect("it is lost");
        assert_eq!(why, "its file has been deleted");
    }
}

/// No file cuts a command short; so the second attempt alone is made.
#[test]
fn an_attempt_goes_on_where_the_one_before_ended() {
    let bytes: Vec<u8> = (0..4096_u32).map(|at| (at / 16) as u8).collect();
    for kind in [BackendKind::Ring, BackendKind::Threads] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), [9; 8192]).expect("writes");
        let options = OpenOptions {
            buffered: true,
            ..OpenOptions::default()
        };
        let member = MemberFile::open(file.path(), options).expect("opens");
        let member: Arc<dyn Storage> = Arc::new(member);
        let waker = Arc::new(Waker::new().expect("a descriptor"));
        let mut backend = start_backend(kind, 0, &waker).expect("a backend");
        backend.attach(0, &member).expect("room");
        let transfers = [
            Transfer::Write {
                data: memory(&bytes).read(0..4096).expect("free"),
                force_unit_access: false,
            },
            read(4096),
        ];
        for (transfer, moved) in transfers.into_iter().zip([1024, 2048]) {
            backend.submit(Job {
                token: 1,
                place: 0,
                storage: Arc::clone(&member),
                offset: 512,
                transfer,
                moved,
            });
            let mut ended = Vec::new();
            while ended.is_empty() {
                waker.announce();
                backend.wait(None, &mut ended).expect("works");
                waker.awake();
            }
            assert_eq!(ended[0].1, Ok(4096 - moved), "{kind:?}");
            if let Transfer::Read(read) = &ended[0].0.transfer {
                assert_eq!(read[..moved], [0xee; 4096][..moved], "{kind:?}");
                assert_eq!(read[moved..], bytes[moved..], "{kind:?}");
            }
        }
        let found = std::fs::read(file.path()).expect("readable");
        assert_eq!(found[512 + 1024..512 + 4096], bytes[1024..], "{kind:?}");
        assert!(found[..512 + 1024].iter().all(|byte| *byte == 9));
    }
}

#[test]
fn nothing_attached_is_gone() {
    for kind in [BackendKind::Ring, BackendKind::Threads] {
        let (mut members, waker) = members(kind);
        members.submit(zero(), CommandId(1), 0, 0, read(512));
        let answers = answer(&mut members, &waker);
        assert_eq!(
            answers[0].result,
            Err(raidlab_array::MemberError::Gone),
            "{kind:?}"
        );
    }
}

#[test]
fn another_thread_ends_the_wait() {
    for kind in [BackendKind::Ring, BackendKind::Threads] {
        let (mut members, waker) = members(kind);
        for _ in 0..3 {
            let other = Arc::clone(&waker);
            waker.announce();
            let thread = std::thread::spawn(move || other.wake());
            // Without the wake-up this would never return.
            members.wait(None, &zero, &mut Vec::new()).expect("works");
            thread.join().expect("joins");
        }
    }
}

/// A pool with many buffers in use at once, and room for some of them only in
/// the table: what is registered stays within the bound, is used again, and all
/// commands give what they should.
#[test]
fn what_is_registered_stays_within_its_bound() {
    const BUFFERS: u64 = 40;
    const BYTES: usize = 8192;
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file()
        .set_len(BUFFERS * BYTES as u64)
        .expect("room");
    let member =
        Member::from(MemberFile::open(file.path(), OpenOptions::default()).expect("opens"));
    // Fifteen whole buffers and a half.
    let limit = 127_000;
    let (mut members, waker) = members_with(BackendKind::Ring, limit);
    members.attach(0, &member).expect("room");
    let pool = BufferPool::new(0);
    for round in 0..3_u8 {
        for writes in [true, false] {
            for number in 0..BUFFERS {
                let mut buffer = pool.take(BYTES).expect("room");
                let fill = if writes { number as u8 ^ round } else { 0xee };
                buffer.fill(fill);
                let memory = Memory::new(buffer);
                let transfer = if writes {
                    Transfer::Write {
                        data: memory.read(0..BYTES).expect("free"),
                        force_unit_access: false,
                    }
                } else {
                    Transfer::Read(memory.write(0..BYTES).expect("free"))
                };
                let offset = number * BYTES as u64;
                members.submit(zero(), CommandId(number), 0, offset, transfer);
            }
            let mut answered = 0;
            while answered < BUFFERS {
                for answer in answer(&mut members, &waker) {
                    assert_eq!(answer.result, Ok(()));
                    if let Some(Transfer::Read(bytes)) = answer.transfer {
                        let expected = answer.id.0 as u8 ^ round;
                        assert!(bytes.iter().all(|&byte| byte == expected));
                    }
                    answered += 1;
                }
            }
            let registered = members.registered().expect("was asked for");
            assert_eq!(
                (registered.bytes, registered.limit_bytes),
                (15 * 8192, limit)
            );
            assert_eq!(registered.refused, None);
        }
    }
}

#[test]
fn threads_register_nothing() {
    let (members, _) = members_with(BackendKind::Threads, 1 << 20);
    assert_eq!(members.registered(), None);
    let (members, _) = members_with(BackendKind::Ring, 0);
    assert_eq!(members.registered(), None);
}

/// More commands at once than the queue holds go to the kernel in the middle of it, which may
/// have no memory for them at the moment, or no room for what has ended (EAGAIN, EBUSY).
#[test]
fn a_full_queue_that_the_kernel_does_not_take_at_once_costs_no_member() {
    // Of 256 that fit the wake-up's read is one more.
    for (count, lacks) in [(256, 1), (300, 1), (300, 3)] {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(8192).expect("room");
        let member = MemberFile::open(file.path(), OpenOptions::default()).expect("opens");
        let waker = Arc::new(Waker::new().expect("a descriptor"));
        let Ok(mut ring) = Ring::new(&waker, 0) else {
            eprintln!("nothing was tested: no io_uring here");
            return;
        };
        ring.lacks = lacks;
        let mut members = Members::new(Box::new(ring), MembersConfig::default(), Some(&waker));
        members.attach(0, &Member::from(member)).expect("room");
        for number in 0..count {
            let transfer = match number % 3 {
                0 => Transfer::Flush,
                1 => read(SECTOR),
                _ => write(&[7; SECTOR]),
            };
            members.submit(zero(), CommandId(number), 0, 0, transfer);
        }
        let mut answered = Vec::new();
        while answered.len() < count as usize {
            answered.extend(answer(&mut members, &waker));
        }
        let failed = answered.iter().filter(|answer| answer.result.is_err());
        assert_eq!(failed.count(), 0, "{:?}", members.why_lost(0));
    }
}
