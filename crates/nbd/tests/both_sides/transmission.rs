use super::{
    Connection, Side,
    client::{self, Client},
    export,
};
use proptest::prelude::*;
use raidlab_nbd::{
    ErrorCode, Extent, SelectedContext, TransmissionFlags,
    server::{RequestEvent, Requests, Session},
    wire::{self, Command, command_flag},
};

const SIZE: usize = 4096;

fn session(structured: bool) -> Session {
    let contexts = vec![SelectedContext {
        id: 1,
        name: "base:allocation".to_owned(),
    }];
    Session {
        export: export("disk", SIZE as u64),
        structured,
        contexts: if structured { contexts } else { Vec::new() },
    }
}

/// A server of an array of bytes, whose first half of each 512 is told as a
/// hole where it is zero.
struct Disk {
    session: Session,
    requests: Requests,
    bytes: Vec<u8>,
    writing: Option<(u64, usize, usize)>,
}

impl Side for Disk {
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
}

impl Disk {
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
        let server = session(structured);
        let disk = Disk {
            requests: Requests::new(&server), session: server, bytes: vec![0; SIZE], writing: None,
        };
        let connection = Connection::new(disk, Vec::new(), &lengths);
        let disk = std::sync::Arc::clone(&connection.side);
        let agreed = client::Session { structured, ..client::Session::default() };
        let mut client = Client::new(Box::new(connection), agreed, 4);
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
            if command == Command::BlockStatus && !structured {
                continue;
            }
            let payload = match command {
                Command::Write => vec![byte; length as usize],
                _ => Vec::new(),
            };
            match command {
                Command::Write => oracle[range.clone()].fill(byte),
                Command::Trim | Command::WriteZeroes => oracle[range.clone()].fill(0),
                _ => {}
            }
            let mut done = client.ask(command, offset, length, flags, &payload).unwrap();
            prop_assert_eq!(&disk.lock().unwrap().bytes, &oracle);
            if command == Command::Read {
                prop_assert_eq!(&done.bytes[..], &oracle[range.clone()]);
            }
            if command == Command::BlockStatus {
                let (_, extents) = done.extents.pop().unwrap();
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
    let mut plain = session(false);
    plain.export.flags = TransmissionFlags::default();
    let mut read_only = session(true);
    read_only.export.flags = TransmissionFlags::READ_ONLY;
    let mut blocks = session(true);
    blocks.export.block_sizes.minimum = 512;
    blocks.export.block_sizes.maximum = 1024;
    let full = session(true);
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
    let session = session(true);
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
    let session = session(true);
    let mut requests = Requests::new(&session);
    let (_, event) = requests.next(&raw(2, 0, 0, 0)).unwrap();
    assert_eq!(event, Some(RequestEvent::Disconnect));
    assert_eq!(requests.next(&raw(0, 0, 0, 512)), Ok((0, None)));
}
