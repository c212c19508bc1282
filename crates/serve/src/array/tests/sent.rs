//! What the driver sends to a member for what a client asks: seen by a backend that
//! writes it down and does nothing. A file would not tell whether a write was to be
//! durable, or a flush was sent at all.

use super::super::engine::Core;
use super::super::owner::Owner;
use super::super::passthrough::Passthrough;
use super::super::running::{Message, Running};
use crate::array::testing::{Client, Nobody};
use crate::export::{ErrorCode, Export, Features, Operation, Request};
use crate::member::{
    Backend, Ended, Job, Member, MemberFile, Members, MembersConfig, OpenOptions, Storage,
    Transfer, Waker,
};
use crossbeam_channel::{Sender, unbounded};
use raidlab_array::Outputs;
use raidlab_units::{Bytes, Sectors};
use std::io;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const MEMBER: Bytes = Bytes(1 << 30);

/// A command as the member gets it: bytes, and where they begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sent {
    Read(u64, u64),
    Write(u64, u64),
    DurableWrite(u64, u64),
    Discard(u64, u64),
    Flush,
}

type Log = Arc<Mutex<Vec<Sent>>>;

#[derive(Debug)]
struct Noting {
    log: Log,
    ended: Vec<(Job, Ended)>,
    waker: Arc<Waker>,
}

impl Backend for Noting {
    fn name(&self) -> &'static str {
        "noting"
    }
    fn attach(&mut self, _: usize, _: &Arc<dyn Storage>) -> io::Result<()> {
        Ok(())
    }
    fn detach(&mut self, _: usize) {}
    fn submit(&mut self, job: Job) {
        let at = job.offset;
        let (sent, moved) = match &job.transfer {
            Transfer::Read(bytes) => (Sent::Read(at, bytes.len() as u64), bytes.len()),
            Transfer::Write {
                data,
                force_unit_access,
            } => {
                let bytes = data.len() as u64;
                let sent = match force_unit_access {
                    true => Sent::DurableWrite(at, bytes),
                    false => Sent::Write(at, bytes),
                };
                (sent, data.len())
            }
            Transfer::Discard { bytes } => (Sent::Discard(at, *bytes), 0),
            Transfer::Flush => (Sent::Flush, 0),
        };
        self.log.lock().expect("whole").push(sent);
        self.ended.push((job, Ok(moved)));
    }
    fn wait(&mut self, timeout: Option<Duration>, ended: &mut Vec<(Job, Ended)>) -> io::Result<()> {
        if self.ended.is_empty() {
            self.waker.sleep(timeout)?;
        }
        ended.append(&mut self.ended);
        Ok(())
    }
}

/// One member, served as it is.
struct Scene {
    log: Log,
    inbox: Sender<Message>,
    waker: Arc<Waker>,
    thread: Option<JoinHandle<()>>,
    client: Client,
    /// The member's, which is to have its name.
    _file: tempfile::NamedTempFile,
}

impl Export for Scene {
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

impl Scene {
    /// `size`: what the core believes that the member has.
    fn new(size: Sectors) -> Self {
        let file = tempfile::NamedTempFile::new().expect("a file");
        file.as_file().set_len(MEMBER.0).expect("room");
        let member = MemberFile::open(file.path(), OpenOptions::default()).expect("opens");
        let waker = Arc::new(Waker::new().expect("a descriptor"));
        let log = Log::default();
        let backend = Noting {
            log: Arc::clone(&log),
            ended: Vec::new(),
            waker: Arc::clone(&waker),
        };
        let mut members = Members::new(Box::new(backend), MembersConfig::default(), Some(&waker));
        members.attach(0, &Member::from(member)).expect("attaches");
        let (inbox, messages) = unbounded();
        let core = (Core::Plain(Passthrough::new(size)), Outputs::default());
        let running = Running {
            owner: Owner::new(core, members, Box::new(Nobody), Arc::default()),
            inbox: messages,
            waker: Arc::clone(&waker),
        };
        Self {
            log,
            inbox,
            waker,
            thread: Some(std::thread::spawn(move || drop(running.run()))),
            client: Client::new(),
            _file: file,
        }
    }

    /// What reaches the member for one request, and the client's answer.
    fn ask(
        &self,
        request: (Operation, u64, u32),
        force_unit_access: bool,
    ) -> (Vec<Sent>, Result<(), ErrorCode>) {
        let payload = vec![1; request.2 as usize];
        let payload = match request.0 {
            Operation::Write => &payload[..],
            _ => &[],
        };
        self.client
            .send(self, 0, request, payload, force_unit_access);
        self.submitted();
        let (_, _, result) = self.client.next();
        let sent = std::mem::take(&mut *self.log.lock().expect("whole"));
        (sent, result)
    }
}

impl Drop for Scene {
    fn drop(&mut self) {
        self.inbox.send(Message::Stop).expect("runs");
        self.waker.wake();
        if let Some(thread) = self.thread.take() {
            thread.join().expect("ends");
        }
    }
}

#[test]
fn what_a_client_asks_is_what_the_member_gets() {
    let scene = Scene::new(MEMBER.to_sectors());
    let sent = |request, force| {
        let (sent, result) = scene.ask(request, force);
        assert_eq!(result, Ok(()), "{request:?}");
        sent
    };
    let (read, write) = (Operation::Read, Operation::Write);
    assert_eq!(sent((read, 4096, 8192), false), [Sent::Read(4096, 8192)]);
    assert_eq!(sent((write, 512, 1024), false), [Sent::Write(512, 1024)]);
    let durable = sent((write, 8192, 4096), true);
    assert_eq!(durable, [Sent::DurableWrite(8192, 4096)]);
    assert_eq!(sent((Operation::Flush, 0, 0), false), [Sent::Flush]);
    let zeroes = sent((Operation::WriteZeroes, 0, 4096), true);
    assert_eq!(zeroes, [Sent::DurableWrite(0, 4096)]);
}

/// Parts, one after the other, without a gap; and, where the client wants it, a flush
/// behind them.
#[test]
fn a_long_trim_is_sent_whole() {
    let scene = Scene::new(MEMBER.to_sectors());
    let (start, length) = (4096, 200 << 20);
    for force in [false, true] {
        let (mut sent, result) = scene.ask((Operation::Trim, start, length), force);
        assert_eq!(result, Ok(()));
        if force {
            assert_eq!(sent.pop(), Some(Sent::Flush));
        }
        let mut at = start;
        for part in sent {
            let Sent::Discard(from, bytes) = part else {
                panic!("{part:?} in a trim");
            };
            assert_eq!(from, at);
            at += bytes;
        }
        assert_eq!(at, start + u64::from(length));
    }
}

#[test]
fn nothing_is_sent_beyond_a_member_s_end() {
    let scene = Scene::new(Sectors(MEMBER.to_sectors().0 + 8));
    for operation in [Operation::Read, Operation::Write, Operation::Trim] {
        let (sent, result) = scene.ask((operation, MEMBER.0 - 2048, 4096), false);
        assert_eq!((sent, result), (Vec::new(), Err(ErrorCode::Io)));
    }
    let (sent, result) = scene.ask((Operation::Write, MEMBER.0 - 4096, 4096), false);
    assert_eq!(sent, [Sent::Write(MEMBER.0 - 4096, 4096)]);
    assert_eq!(result, Ok(()));
}
