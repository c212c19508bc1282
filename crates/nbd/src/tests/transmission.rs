use super::{Fragments, export};
use crate::{
    ErrorCode, Extent, ProtocolError, SelectedContext, TransmissionFlags,
    client::{self, Refusal, Replies, ReplyEvent, Window},
    server::{RequestEvent, Requests, Session},
    wire::{self, Command, command_flag},
};
use proptest::prelude::*;
use std::collections::BTreeMap;

const SIZE: usize = 4096;

fn sessions(structured: bool) -> (Session, client::Session) {
    let export = export("disk", SIZE as u64);
    let contexts = vec![SelectedContext {
        id: 1,
        name: "base:allocation".to_owned(),
    }];
    let contexts = if structured { contexts } else { Vec::new() };
    let client = client::Session {
        size_bytes: export.size_bytes,
        flags: TransmissionFlags(export.flags.on_wire(structured)),
        block_sizes: export.block_sizes,
        description: String::new(),
        structured,
        contexts: contexts.clone(),
    };
    let server = Session {
        export,
        structured,
        contexts,
    };
    (server, client)
}

/// A server of an array of bytes, whose first half of each 512 is told as a
/// hole where it is zero.
struct Disk {
    session: Session,
    requests: Requests,
    bytes: Vec<u8>,
    writing: Option<(u64, usize, usize)>,
}

impl Disk {
    fn receive(&mut self, input: &[u8], output: &mut Vec<u8>) -> usize {
        let mut at = 0;
        loop {
            let left = self.requests.payload_left() as usize;
            if let (1.., Some((cookie, place, end))) = (left, self.writing) {
                let count = left.min(input.len() - at);
                self.bytes[place..place + count].copy_from_slice(&input[at..at + count]);
                self.requests.payload_taken(count as u32);
                at += count;
                self.writing = Some((cookie, place + count, end));
                if place + count == end {
                    output.extend_from_slice(&self.session.succeeded(cookie));
                } else {
                    return at;
                }
            }
            let (taken, event) = self.requests.next(&input[at..]).unwrap();
            at += taken;
            match event {
                Some(event) => self.event(event, output),
                None if taken == 0 => return at,
                None => {}
            }
        }
    }

    fn event(&mut self, event: RequestEvent, output: &mut Vec<u8>) {
        let request = match event {
            RequestEvent::Request(request) => request,
            RequestEvent::Rejected(rejection) => {
                let (cookie, error) = (rejection.cookie, rejection.error);
                return self.session.failed(cookie, error, rejection.words, output);
            }
            RequestEvent::Disconnect => return,
        };
        let range = request.offset as usize..request.offset as usize + request.length as usize;
        match request.command {
            Command::Write => self.writing = Some((request.cookie, range.start, range.end)),
            Command::Read if !self.session.structured || request.dont_fragment() => {
                output.extend_from_slice(&self.session.data(&request, 0, request.length, true));
                output.extend_from_slice(&self.bytes[range]);
            }
            Command::Read => {
                // Odd pieces first, then even ones, zeroes as holes.
                let pieces: Vec<usize> = (0..range.len()).step_by(100).collect();
                let (even, odd): (Vec<_>, Vec<_>) =
                    pieces.into_iter().partition(|at| at % 200 == 0);
                for at in odd.into_iter().chain(even) {
                    let length = (range.len() - at).min(100);
                    let bytes = &self.bytes[range.start + at..][..length];
                    let (skip, length) = (at as u32, length as u32);
                    if bytes.iter().all(|&byte| byte == 0) {
                        output.extend_from_slice(&self.session.hole(&request, skip, length, false));
                    } else {
                        output.extend_from_slice(&self.session.data(&request, skip, length, false));
                        output.extend_from_slice(bytes);
                    }
                }
                // An empty chunk ends it.
                let mut none = vec![0x66, 0x8e, 0x33, 0xef, 0, 1, 0, 0];
                none.extend_from_slice(&request.cookie.to_be_bytes());
                none.extend_from_slice(&[0; 4]);
                output.extend_from_slice(&none);
            }
            Command::Trim | Command::WriteZeroes => {
                self.bytes[range].fill(0);
                output.extend_from_slice(&self.session.succeeded(request.cookie));
            }
            Command::BlockStatus => {
                let extents = self.bytes[range].chunks(64).map(|bytes| Extent {
                    length: bytes.len() as u32,
                    flags: u32::from(bytes.iter().all(|&byte| byte == 0)) * 3,
                });
                self.session.status(&request, 1, extents, true, output);
            }
            _ => output.extend_from_slice(&self.session.succeeded(request.cookie)),
        }
    }
}

/// What the client has of its requests in flight.
struct Asking {
    window: Window,
    replies: Replies,
    reads: BTreeMap<u64, Vec<u8>>,
    filling: Option<(u64, usize)>,
    done: Vec<(u64, Result<(), ErrorCode>)>,
    extents: Vec<(u64, Vec<Extent>)>,
}

impl Asking {
    fn receive(&mut self, input: &[u8]) -> usize {
        let mut at = 0;
        loop {
            let left = self.replies.payload_left() as usize;
            if let (1.., Some((cookie, place))) = (left, self.filling) {
                let count = left.min(input.len() - at);
                let bytes = self.reads.get_mut(&cookie).unwrap();
                bytes[place..place + count].copy_from_slice(&input[at..at + count]);
                self.filling = Some((cookie, place + count));
                self.replies.payload_taken(count as u32);
                at += count;
                if count < left {
                    return at;
                }
            }
            let (taken, event) = self.replies.next(&input[at..], &mut self.window).unwrap();
            at += taken;
            match event {
                Some(ReplyEvent::Data { cookie, skip, .. }) => {
                    self.filling = Some((cookie, skip as usize));
                }
                Some(ReplyEvent::Zeroes {
                    cookie,
                    skip,
                    length,
                }) => {
                    let bytes = self.reads.get_mut(&cookie).unwrap();
                    bytes[skip as usize..][..length as usize].fill(0);
                }
                Some(ReplyEvent::Status {
                    cookie, extents, ..
                }) => self.extents.push((cookie, extents)),
                Some(ReplyEvent::Done { cookie, result }) => {
                    self.done.push((cookie, result.map_err(|(code, _)| code)));
                }
                None if taken == 0 => return at,
                None => {}
            }
        }
    }
}

fn command() -> impl Strategy<Value = Command> {
    prop::sample::select(vec![
        Command::Read,
        Command::Write,
        Command::Flush,
        Command::Trim,
        Command::Cache,
        Command::WriteZeroes,
        Command::BlockStatus,
    ])
}

proptest! {
    /// However the bytes are cut, a disk behind the protocol is the disk: each
    /// read gives what the writes before it left, each status the truth.
    #[test]
    fn a_disk_behind_the_protocol_is_the_disk(
        structured in any::<bool>(),
        lengths in prop::collection::vec(1_usize..700, 1..8),
        steps in prop::collection::vec(
            (command(), 0..SIZE, 1..SIZE, 1..=255_u8, any::<bool>()), 1..30),
    ) {
        let (server, client) = sessions(structured);
        let mut disk = Disk {
            requests: Requests::new(&server), session: server, bytes: vec![0; SIZE], writing: None,
        };
        let mut asking = Asking {
            window: Window::new(&client, 4), replies: Replies::new(&client),
            reads: BTreeMap::new(), filling: None, done: Vec::new(), extents: Vec::new(),
        };
        let mut fragments = Fragments { lengths: &lengths, turn: 0 };
        let mut oracle = vec![0_u8; SIZE];
        for (command, offset, length, byte, flag) in steps {
            let length = length.min(SIZE - offset);
            let range = offset..offset + length;
            let (offset, length) = match command {
                Command::Flush => (0, 0),
                _ => (offset as u64, length as u32),
            };
            let flags = match command {
                Command::Read if flag && structured => command_flag::DF,
                Command::BlockStatus if flag => command_flag::REQ_ONE,
                Command::Write | Command::Trim if flag => command_flag::FUA,
                _ => 0,
            };
            let started = asking.window.start(command, offset, length, flags);
            if command == Command::BlockStatus && !structured {
                prop_assert_eq!(started, Err(Refusal::NotOffered));
                continue;
            }
            let (cookie, header) = started.unwrap();
            let mut to_server = header.to_vec();
            match command {
                Command::Read => drop(asking.reads.insert(cookie, vec![99; length as usize])),
                Command::Write => {
                    to_server.extend(vec![byte; length as usize]);
                    oracle[range.clone()].fill(byte);
                }
                Command::Trim | Command::WriteZeroes => oracle[range.clone()].fill(0),
                _ => {}
            }
            let mut to_client = Vec::new();
            while asking.done.is_empty() {
                let count = fragments.next(to_server.len());
                let taken = disk.receive(&to_server[..count], &mut to_client);
                to_server.drain(..taken);
                let count = fragments.next(to_client.len());
                let taken = asking.receive(&to_client[..count]);
                to_client.drain(..taken);
            }
            prop_assert!(to_client.is_empty() && to_server.is_empty());
            prop_assert_eq!(asking.done.pop(), Some((cookie, Ok(()))));
            prop_assert_eq!(asking.window.in_flight(), 0);
            prop_assert_eq!(&disk.bytes, &oracle);
            if command == Command::Read {
                prop_assert_eq!(&asking.reads[&cookie][..], &oracle[range.clone()]);
            }
            if command == Command::BlockStatus {
                let (_, extents) = asking.extents.pop().unwrap();
                prop_assert!(!flag || extents.len() == 1);
                let mut at = range.start;
                for Extent { length, flags } in extents {
                    let bytes = &oracle[at..at + length as usize];
                    prop_assert_eq!(flags == 3, bytes.iter().all(|&byte| byte == 0));
                    at += length as usize;
                }
                prop_assert!(flag || at == range.end);
            }
        }
    }
}

/// One request in raw numbers.
fn raw(command: u16, flags: u16, offset: u64, length: u32) -> Vec<u8> {
    let mut bytes = wire::REQUEST_MAGIC.to_be_bytes().to_vec();
    bytes.extend_from_slice(&flags.to_be_bytes());
    bytes.extend_from_slice(&command.to_be_bytes());
    bytes.extend_from_slice(&5_u64.to_be_bytes());
    bytes.extend_from_slice(&offset.to_be_bytes());
    bytes.extend_from_slice(&length.to_be_bytes());
    bytes
}

#[test]
fn requests_that_break_a_rule_get_the_errors_of_the_protocol() {
    use ErrorCode::{Invalid, NoSpace, NotPermitted};
    let (mut plain, _) = sessions(false);
    plain.export.flags = TransmissionFlags::default();
    let (mut read_only, _) = sessions(true);
    read_only.export.flags = TransmissionFlags::READ_ONLY;
    let (mut blocks, _) = sessions(true);
    blocks.export.block_sizes.minimum = 512;
    blocks.export.block_sizes.maximum = 1024;
    let (full, _) = sessions(true);
    let end = SIZE as u64;
    for (session, command, flags, offset, length, error) in [
        (&full, 9, 0, 0, 512, Invalid),
        (&full, 0, command_flag::NO_HOLE, 0, 512, Invalid),
        (&full, 0, 1 << 5, 0, 512, Invalid),
        (&plain, 0, command_flag::DF, 0, 512, Invalid),
        (&plain, 0, command_flag::FUA, 0, 512, Invalid),
        (&plain, 3, 0, 0, 0, Invalid),
        (&plain, 4, 0, 0, 512, Invalid),
        (&plain, 5, 0, 0, 512, Invalid),
        (&plain, 6, 0, 0, 512, Invalid),
        (&plain, 7, 0, 0, 512, Invalid),
        (&full, 3, 0, 1, 0, Invalid),
        (&full, 0, 0, 0, 0, Invalid),
        (&full, 0, 0, end, 1, Invalid),
        (&full, 0, 0, u64::MAX, 2, Invalid),
        (&full, 4, 0, end, 1, NoSpace),
        (&full, 6, 0, end - 1, 2, NoSpace),
        (&read_only, 4, 0, 0, 512, NotPermitted),
        (&read_only, 6, 0, 0, 512, NotPermitted),
        (&blocks, 0, 0, 1, 512, Invalid),
        (&blocks, 0, 0, 0, 513, Invalid),
        (&blocks, 0, 0, 0, 2048, Invalid),
    ] {
        let mut requests = Requests::new(session);
        let (taken, event) = requests.next(&raw(command, flags, offset, length)).unwrap();
        let Some(RequestEvent::Rejected(rejection)) = event else {
            panic!("{command} {flags} {offset} {length}: {event:?}");
        };
        assert_eq!(
            (taken, rejection.cookie, rejection.error),
            (28, 5, error),
            "{rejection:?}"
        );
    }
}

#[test]
fn a_rejected_write_is_answered_after_its_payload_of_any_length() {
    let (session, _) = sessions(true);
    let mut requests = Requests::new(&session);
    let length = u32::MAX;
    let (_, event) = requests.next(&raw(1, 0, 0, length)).unwrap();
    assert_eq!(event, None);
    let chunk = vec![0; 1 << 20];
    let mut left = u64::from(length);
    loop {
        let (taken, event) = requests.next(&chunk).unwrap();
        left -= taken as u64;
        if let Some(RequestEvent::Rejected(rejection)) = event {
            assert_eq!((left, rejection.error), (0, ErrorCode::NoSpace));
            break;
        }
    }
    let (_, event) = requests.next(&raw(0, 0, 0, 512)).unwrap();
    assert!(matches!(event, Some(RequestEvent::Request(_))));
}

#[test]
fn after_the_good_bye_nothing_is_read() {
    let (session, _) = sessions(true);
    let mut requests = Requests::new(&session);
    let (_, event) = requests.next(&raw(2, 0, 0, 0)).unwrap();
    assert_eq!(event, Some(RequestEvent::Disconnect));
    assert_eq!(requests.next(&raw(0, 0, 0, 512)), Ok((0, None)));
}

/// Feeds a client that waits for a read of 100 bytes at 1000.
fn reply(bytes: &[u8]) -> Result<(), ProtocolError> {
    let (_, session) = sessions(true);
    let mut window = Window::new(&session, 1);
    let (cookie, _) = window.start(Command::Read, 1000, 100, 0).unwrap();
    assert_eq!(cookie, 1 << 32);
    let mut replies = Replies::new(&session);
    let mut at = 0;
    loop {
        let left = (replies.payload_left() as usize).min(bytes.len() - at);
        replies.payload_taken(left as u32);
        at += left;
        let (taken, event) = replies.next(&bytes[at..], &mut window)?;
        at += taken;
        if taken == 0 && event.is_none() {
            return Ok(());
        }
    }
}

fn chunk(kind: u16, done: u16, cookie: u64, payload: &[u8]) -> Vec<u8> {
    let mut bytes = wire::STRUCTURED_REPLY_MAGIC.to_be_bytes().to_vec();
    bytes.extend_from_slice(&done.to_be_bytes());
    bytes.extend_from_slice(&kind.to_be_bytes());
    bytes.extend_from_slice(&cookie.to_be_bytes());
    bytes.extend_from_slice(&(payload.len() as u32).to_be_bytes());
    bytes.extend_from_slice(payload);
    bytes
}

fn hole(offset: u64, length: u32) -> Vec<u8> {
    [&offset.to_be_bytes()[..], &length.to_be_bytes()].concat()
}

#[test]
fn a_client_finds_out_each_lie_of_a_server() {
    const OURS: u64 = 1 << 32;
    assert_eq!(reply(&chunk(2, 1, OURS, &hole(1000, 100))), Ok(()));
    for (bytes, error) in [
        (chunk(2, 1, OURS, &hole(1000, 99)), ProtocolError::ShortRead),
        (chunk(0, 1, OURS, &[]), ProtocolError::ShortRead),
        (
            chunk(2, 1, OURS, &hole(999, 100)),
            ProtocolError::ChunkRange,
        ),
        (
            chunk(2, 1, OURS, &hole(1001, 100)),
            ProtocolError::ChunkRange,
        ),
        (chunk(2, 1, OURS, &hole(1000, 0)), ProtocolError::ChunkRange),
        (
            [
                chunk(2, 0, OURS, &hole(1000, 60)),
                chunk(2, 1, OURS, &hole(1050, 50)),
            ]
            .concat(),
            ProtocolError::ChunkRange,
        ),
        (
            chunk(2, 1, OURS + 1, &hole(1000, 100)),
            ProtocolError::UnknownCookie(OURS + 1),
        ),
        (
            [chunk(2, 1, OURS, &hole(1000, 100)), chunk(0, 1, OURS, &[])].concat(),
            ProtocolError::UnknownCookie(OURS),
        ),
        (
            chunk(0, 0, OURS, &[]),
            ProtocolError::Chunk { kind: 0, length: 0 },
        ),
        (
            chunk(3, 1, OURS, &[]),
            ProtocolError::Chunk { kind: 3, length: 0 },
        ),
        (
            chunk(1, 1, OURS, &[0; 8]),
            ProtocolError::Chunk { kind: 1, length: 8 },
        ),
        (
            chunk(1, 1, OURS, &[0; 109]),
            ProtocolError::Chunk {
                kind: 1,
                length: 109,
            },
        ),
        (vec![0; 16], ProtocolError::ReplyMagic(0)),
        (
            [
                &wire::SIMPLE_REPLY_MAGIC.to_be_bytes()[..],
                &[0; 4],
                &OURS.to_be_bytes(),
            ]
            .concat(),
            ProtocolError::ReplyMagic(wire::SIMPLE_REPLY_MAGIC),
        ),
    ] {
        assert_eq!(reply(&bytes), Err(error), "{bytes:?}");
    }
}
