//! A member that stops answering in the middle of an array: the others serve
//! its reads, and what it says at last harms nobody.

use super::super::engine::{Core, place_of};
use super::super::files::{assemble, create};
use super::super::owner::Owner;
use super::super::running::{Message, Running};
use crate::array::monotonic_now;
use crate::array::testing::{Client, Nobody};
use crate::export::{ErrorCode, Export, Features, Operation, Request};
use crate::member::{
    Backend, Ended, Job, Member, MemberFile, Members, MembersConfig, OpenOptions, Storage, Threads,
    Transfer, Waker,
};
use crossbeam_channel::{Sender, unbounded};
use raidlab_array::{
    AssembleOptions, EngineOptions, Level, NewDevice, Outputs, PersistentArray, Settings,
};
use raidlab_metadata::create::{
    BitmapChoice, CreateSpec, InitialSync, LogReserve, MemberSize, plan,
};
use raidlab_metadata::{DeviceFlags, Uuid, Version};
use raidlab_units::{Bytes, Nanos};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Threads, but for one file, whose jobs are kept while `hangs`.
#[derive(Debug)]
struct Hanging {
    threads: Threads,
    path: PathBuf,
    hangs: Arc<AtomicBool>,
    kept: Arc<Mutex<Vec<Job>>>,
}

impl Backend for Hanging {
    fn name(&self) -> &'static str {
        "hanging"
    }
    fn attach(&mut self, place: usize, storage: &Arc<dyn Storage>) -> io::Result<()> {
        self.threads.attach(place, storage)
    }
    fn detach(&mut self, place: usize) {
        self.threads.detach(place);
    }
    fn submit(&mut self, job: Job) {
        if job.storage.path() == self.path && self.hangs.load(Ordering::SeqCst) {
            self.kept.lock().expect("whole").push(job);
        } else {
            self.threads.submit(job);
        }
    }
    fn wait(&mut self, timeout: Option<Duration>, ended: &mut Vec<(Job, Ended)>) -> io::Result<()> {
        let mut kept = self.kept.lock().expect("whole");
        if !self.hangs.load(Ordering::SeqCst) {
            for mut job in kept.drain(..) {
                if let Transfer::Read(bytes) = &mut job.transfer {
                    bytes.fill(0xee);
                }
                let moved = 1 << 30;
                ended.push((job, Ok(moved)));
            }
        }
        drop(kept);
        self.threads.wait(timeout, ended)
    }
}

/// An owner without an [`ArrayExport`](crate::array::ArrayExport) around it.
struct Bare {
    inbox: Sender<Message>,
    waker: Arc<Waker>,
}

impl Export for Bare {
    fn size_bytes(&self) -> u64 {
        u64::MAX
    }
    fn features(&self) -> Features {
        Features::default()
    }
    fn submit(&self, request: Request) {
        self.inbox.send(Message::Request(request)).expect("runs");
    }
    fn submitted(&self) {
        self.waker.wake();
    }
}

fn device(path: &Path) -> Member {
    let file = std::fs::File::create(path).expect("a file");
    file.set_len(4 << 20).expect("room");
    Member::from(MemberFile::open(path, OpenOptions::default()).expect("opens"))
}

fn mirror(folder: &Path) -> (PersistentArray, Outputs, Vec<Member>) {
    let paths = (0..2).map(|member| folder.join(member.to_string()));
    let files: Vec<_> = paths.map(|path| device(&path)).collect();
    let spec = CreateSpec {
        version: Version::V1_2,
        level: Level::Raid1,
        layout: None,
        chunk: None,
        raid_disks: 2,
        array_uuid: Uuid([1; 16]),
        host: String::new(),
        name: "hung".to_owned(),
        created: 1_700_000_000,
        size: None,
        data_offset: None,
        bitmap: BitmapChoice::None,
        initial: InitialSync::AssumeClean,
        log: LogReserve::None,
        bad_block_log: true,
    };
    let sizes = [0, 1].map(|member| {
        Some(MemberSize {
            size: Bytes(4 << 20),
            device_uuid: Uuid([member; 16]),
            flags: DeviceFlags::default(),
            found: Vec::new(),
        })
    });
    create(&plan(&spec, &sizes).expect("a plan"), &files).expect("writes");
    let assembled = assemble(&files, None, &AssembleOptions::default()).expect("assembles");
    let mut out = Outputs::default();
    let array = PersistentArray::start(
        assembled.assembly,
        &EngineOptions::new("round-robin".parse().expect("a policy")),
        Settings::new(Nanos::ZERO, 0),
        monotonic_now(),
        &mut out,
    );
    (array.expect("starts"), out, files)
}

#[test]
fn a_hung_member_does_not_take_the_array_along() {
    let folder = tempfile::tempdir().expect("a folder");
    let (array, out, files) = mirror(folder.path());
    let waker = Arc::new(Waker::new().expect("a descriptor"));
    let hangs = Arc::new(AtomicBool::new(false));
    let kept = Arc::new(Mutex::new(Vec::new()));
    let backend = Hanging {
        threads: Threads::new(&waker),
        path: folder.path().join("0"),
        hangs: Arc::clone(&hangs),
        kept: Arc::clone(&kept),
    };
    let config = MembersConfig {
        command_limit: Nanos::from_millis(300),
    };
    let mut members = Members::new(Box::new(backend), config, Some(&waker));
    for (place, file) in files.iter().enumerate() {
        members.attach(place, file).expect("attaches");
    }
    let (inbox, messages) = unbounded();
    let core = (Core::Array(Box::new(array)), out);
    let owner_waker = Arc::clone(&waker);
    let running = Running {
        owner: Owner::new(core, members, Box::new(Nobody), Arc::default()),
        inbox: messages,
        waker: owner_waker,
    };
    let thread = std::thread::spawn(move || running.run());
    let export = Bare { inbox, waker };
    let client = Client::new();

    let pattern: Vec<u8> = (0..65_536_u32).map(|at| (at / 300) as u8).collect();
    let write = (Operation::Write, 0, 65_536);
    assert_eq!(client.ask(&export, write, &pattern).1, Ok(()));

    hangs.store(true, Ordering::SeqCst);
    for token in 0..8 {
        let read = (Operation::Read, token * 8192, 8192);
        client.send(&export, token, read, &[], false);
    }
    export.submitted();
    for _ in 0..8 {
        let (token, bytes, result) = client.next();
        assert_eq!(result, Ok(()));
        let start = token as usize * 8192;
        assert!(bytes == pattern[start..start + 8192], "read {token}");
    }
    assert!(!kept.lock().expect("whole").is_empty(), "some did hang");

    // It wakes up and scribbles over what it was given, and is not believed.
    hangs.store(false, Ordering::SeqCst);
    let write = (Operation::Write, 4096, 4096);
    let (_, result): (_, Result<(), ErrorCode>) = client.ask(&export, write, &[9; 4096]);
    assert_eq!(result, Ok(()));
    let (bytes, _) = client.ask(&export, (Operation::Read, 0, 65_536), &[]);
    assert!(bytes[..4096] == pattern[..4096] && bytes[8192..] == pattern[8192..]);
    assert!(bytes[4096..8192].iter().all(|&byte| byte == 9));
    export.inbox.send(Message::Stop).expect("runs");
    export.waker.wake();
    thread.join().expect("ends");
}

/// The commands that a removed device left unanswered are not held against its successor.
#[test]
fn a_device_is_not_given_up_for_the_one_before_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let (array, out, files) = mirror(folder.path());
    let waker = Arc::new(Waker::new().expect("a descriptor"));
    let kept = Arc::new(Mutex::new(Vec::new()));
    let backend = Hanging {
        threads: Threads::new(&waker),
        path: folder.path().join("2"),
        hangs: Arc::new(AtomicBool::new(true)),
        kept: Arc::clone(&kept),
    };
    let config = MembersConfig::default();
    let mut members = Members::new(Box::new(backend), config, Some(&waker));
    for (place, file) in files.iter().enumerate() {
        members.attach(place, file).expect("attaches");
    }
    let mut owner = Owner::of_array(array, out, members, Box::new(Nobody));
    let begin = monotonic_now();
    let run = |owner: &mut Owner, now: Nanos| {
        for _ in 0..100 {
            owner.step(now);
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let add = |owner: &mut Owner, number: u8| {
        let path = folder.path().join(number.to_string());
        let file = device(&path);
        let new = NewDevice {
            name: path.display().to_string(),
            size: file.size(),
            rotational: false,
            write_mostly: false,
            uuid: Uuid([number; 16]),
        };
        owner.add(begin, &file, new, &[]).expect("there is room")
    };
    run(&mut owner, begin);
    let first = add(&mut owner, 2);
    let patience = Instant::now() + Duration::from_secs(10);
    while kept.lock().expect("whole").is_empty() {
        assert!(Instant::now() < patience, "its superblock never comes");
        run(&mut owner, begin);
    }
    owner.remove(begin, first).expect("a spare");
    let second = add(&mut owner, 3);
    run(&mut owner, begin + config.command_limit);
    assert!(!owner.members().is_lost(place_of(second)));
    let devices = owner.array().expect("an array").status().devices;
    let states: Vec<_> = devices.iter().map(|device| device.state).collect();
    assert_eq!(states, ["active sync", "active sync", "spare"]);
}

/// A verb that takes long, such as the first writes to a device that is added.
#[test]
fn a_verb_that_takes_long_costs_no_member() {
    let folder = tempfile::tempdir().expect("a folder");
    let (array, out, files) = mirror(folder.path());
    let waker = Arc::new(Waker::new().expect("a descriptor"));
    let limit = Nanos::from_millis(200);
    let config = MembersConfig {
        command_limit: limit,
    };
    let threads = Threads::new(&waker);
    let mut members = Members::new(Box::new(threads), config, Some(&waker));
    for (place, file) in files.iter().enumerate() {
        members.attach(place, file).expect("attaches");
    }
    let (inbox, messages) = unbounded();
    let owner = Owner::of_array(array, out, members, Box::new(Nobody));
    let running = Running {
        owner,
        inbox: messages,
        waker: Arc::clone(&waker),
    };
    let thread = std::thread::spawn(move || running.run());
    let export = Bare { inbox, waker };
    let client = Client::new();
    let nap = Duration::from_nanos(2 * limit.0);
    // The request comes while the owner is busy, and is sent right after.
    let (begins, has_begun) = unbounded();
    let busy = Message::Call(Box::new(move |_, _| {
        begins.send(()).expect("awaited");
        std::thread::sleep(nap);
    }));
    export.inbox.send(busy).expect("runs");
    export.submitted();
    has_begun.recv().expect("begins");
    client.send(&export, 0, (Operation::Read, 0, 65_536), &[], false);
    export.submitted();
    assert_eq!(client.next().2, Ok(()));
    let (told, lost) = unbounded();
    let look = Message::Call(Box::new(move |owner, _| {
        let is_lost = [0, 1].map(|place| owner.members().is_lost(place));
        told.send(is_lost).expect("asked for");
    }));
    export.inbox.send(look).expect("runs");
    export.submitted();
    assert_eq!(lost.recv().expect("told"), [false; 2]);
    export.inbox.send(Message::Stop).expect("runs");
    export.waker.wake();
    thread.join().expect("ends");
}
