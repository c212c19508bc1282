//! RLIMIT_MEMLOCK refuses to have more memory registered: the rest of the
//! payloads goes as ordinary reads and writes, and the status says why. In a
//! process of its own, as the limit is the process's.

use raidlab_array::CommandId;
use raidlab_serve::export::BufferPool;
use raidlab_serve::member::{
    BackendKind, Member, MemberFile, Members, MembersConfig, Memory, OpenOptions, Transfer, Waker,
    start_backend,
};
use raidlab_units::Nanos;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{CapabilitySet, capabilities, set_capabilities};
use std::sync::Arc;

const BYTES: usize = 65_536;
const BUFFERS: u64 = 32;
/// Room for four or five of the buffers, and the ring itself on old kernels.
const LOCKED_BYTES: u64 = 300_000;

/// Takes the right to lock memory without a limit from this thread.
fn limit_locked_memory() {
    let mut held = capabilities(None).expect("this thread's");
    held.effective -= CapabilitySet::IPC_LOCK;
    set_capabilities(None, held).expect("fewer are always allowed");
    let limit = Rlimit {
        current: Some(LOCKED_BYTES),
        maximum: getrlimit(Resource::Memlock).maximum,
    };
    setrlimit(Resource::Memlock, limit).expect("lower is always allowed");
}

#[test]
fn a_refusal_falls_back_and_is_told() {
    limit_locked_memory();
    let file = tempfile::NamedTempFile::new().expect("a file");
    file.as_file()
        .set_len(BUFFERS * BYTES as u64)
        .expect("room");
    let member = MemberFile::open(file.path(), OpenOptions::default()).expect("opens");
    let waker = Arc::new(Waker::new().expect("a descriptor"));
    let backend = start_backend(BackendKind::Ring, 64 << 20, &waker).expect("a ring");
    let mut members = Members::new(backend, MembersConfig::default(), Some(&waker));
    members.attach(0, &Member::from(member)).expect("room");
    let pool = BufferPool::default();
    for number in 0..BUFFERS {
        let mut buffer = pool.take(BYTES).expect("room");
        buffer.fill(number as u8 + 1);
        let write = Transfer::Write {
            data: Memory::new(buffer).read(0..BYTES).expect("free"),
            force_unit_access: false,
        };
        let offset = number * BYTES as u64;
        members.submit(Nanos::ZERO, CommandId(number), 0, offset, write);
    }
    let mut answers = Vec::new();
    while answers.len() < BUFFERS as usize {
        waker.announce();
        let waited = members.wait(None, &|| Nanos::ZERO, &mut answers);
        waited.expect("works");
        waker.awake();
    }
    assert!(answers.iter().all(|answer| answer.result == Ok(())));
    let registered = members.registered().expect("was asked for");
    assert!(registered.bytes < LOCKED_BYTES, "{registered:?}");
    let why = registered.refused.expect("it did not all fit");
    assert!(why.contains("RLIMIT_MEMLOCK"), "{why}");
    drop(members);
    let bytes = std::fs::read(file.path()).expect("readable");
    for (number, bytes) in (0..).zip(bytes.chunks(BYTES)) {
        assert!(
            bytes.iter().all(|&byte| byte == number + 1),
            "buffer {number}"
        );
    }
}
