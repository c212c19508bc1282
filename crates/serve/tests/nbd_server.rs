//! A server and clients in one process, over sockets.

mod client;
#[path = "nbd_server/places.rs"]
mod places;

use client::{Client, ClientError, ClientTls, Place, Wishes};
use raidlab_nbd::wire::Command;
use raidlab_serve::{
    export::{
        BlockSizes, ErrorCode, Export, Features, MemoryExport, NullExport, Operation, Request,
    },
    server::{
        ConnectionError, Exports, Limits, Listen, ServeError, Server, ServerOptions, TlsClients,
        TlsFiles,
    },
};
use std::{
    io::{Read, Write},
    net::SocketAddr,
    os::unix::net::UnixStream,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, mpsc},
    thread,
    time::Duration,
};
use tempfile::TempDir;

struct Running {
    server: Server,
    path: PathBuf,
    errors: Arc<Mutex<Vec<String>>>,
    _directory: TempDir,
}

fn run(exports: Vec<(&str, Arc<dyn Export>)>, limits: Limits) -> Running {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nbd.sock");
    let mut list = Exports::new();
    for (name, export) in exports {
        list.add(name, export).unwrap();
    }
    let options = ServerOptions {
        limits,
        ..ServerOptions::default()
    };
    let errors = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&errors);
    let report = move |_, error: &ConnectionError| told.lock().unwrap().push(error.to_string());
    let server = Server::start(list, &[Listen::Unix(path.clone())], options, report).unwrap();
    Running {
        server,
        path,
        errors,
        _directory: directory,
    }
}

fn meet(running: &Running, wishes: &Wishes) -> Result<Client, ClientError> {
    client::connect(&Place::Unix(running.path.clone()), None, wishes)
}

fn named(export: &str) -> Wishes {
    Wishes {
        export: export.to_owned(),
        ..Wishes::default()
    }
}

fn connect(running: &Running, export: &str) -> Client {
    meet(running, &named(export)).unwrap()
}

fn memory(bytes: u64) -> Arc<dyn Export> {
    Arc::new(MemoryExport::new(bytes).unwrap())
}

#[test]
fn what_is_written_is_read_by_another_connection() {
    let running = run(vec![("disk", memory(1 << 20))], Limits::default());
    let mut writer = connect(&running, "disk");
    let bytes: Vec<u8> = (0..200_000_u32).map(|index| index as u8).collect();
    writer.write(12_345, &bytes, true).unwrap();
    writer.flush().unwrap();
    let mut reader = connect(&running, "");
    assert_eq!(reader.session().size_bytes, 1 << 20);
    assert_eq!(reader.read(12_345, 200_000).unwrap(), bytes);
    assert_eq!(reader.read(0, 12_345).unwrap(), vec![0; 12_345]);
    // Without structured replies, the same bytes.
    let wishes = Wishes {
        structured: false,
        ..Wishes::default()
    };
    let mut simple = meet(&running, &wishes).unwrap();
    assert!(!simple.session().structured);
    assert_eq!(simple.read(12_345, 200_000).unwrap(), bytes);
    for client in [writer, reader, simple] {
        client.disconnect().unwrap();
    }
    assert!(running.server.shut_down(Duration::from_secs(10)));
    assert_eq!(running.errors.lock().unwrap().len(), 0);
    assert!(!running.path.exists());
}

#[test]
fn holes_are_told_and_read_as_zeroes() {
    let running = run(vec![("disk", memory(8 << 16))], Limits::default());
    let mut client = connect(&running, "");
    client.write(1 << 16, &[7; 1 << 16], false).unwrap();
    client.write(4 << 16, &[8; 1 << 16], false).unwrap();
    let whole = client.read(0, 8 << 16).unwrap();
    let expected = |segment: usize| [0, 7, 0, 0, 8, 0, 0, 0][segment];
    for (index, byte) in whole.iter().enumerate() {
        assert_eq!(*byte, expected(index >> 16), "at {index}");
    }
    let status = client
        .ask(Command::BlockStatus, 0, 8 << 16, 0, &[])
        .unwrap()
        .extents;
    let [(1, extents)] = &status[..] else {
        panic!("{status:?}");
    };
    let runs: Vec<_> = extents
        .iter()
        .map(|run| (run.length >> 16, run.flags))
        .collect();
    assert_eq!(runs, [(1, 3), (1, 0), (2, 3), (1, 0), (3, 3)]);
    client.ask(Command::Trim, 1 << 16, 1 << 16, 0, &[]).unwrap();
    client
        .ask(Command::WriteZeroes, 4 << 16, 1 << 16, 0, &[])
        .unwrap();
    assert_eq!(client.read(0, 8 << 16).unwrap(), vec![0; 8 << 16]);
    let status = client
        .ask(Command::BlockStatus, 0, 8 << 16, 0, &[])
        .unwrap()
        .extents;
    assert_eq!((status[0].1[0].length, status[0].1[0].flags), (8 << 16, 3));
}

#[test]
fn exports_have_names() {
    let running = run(
        vec![("first", memory(4096)), ("second", memory(8192))],
        Limits::default(),
    );
    let names = client::list(&Place::Unix(running.path.clone())).unwrap();
    let names: Vec<_> = names.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["first", "second"]);
    assert_eq!(connect(&running, "").session().size_bytes, 4096);
    assert_eq!(connect(&running, "second").session().size_bytes, 8192);
    let refused = meet(&running, &named("third"));
    assert!(matches!(refused, Err(ClientError::Refused { .. })));
}

/// Answers on a thread of its own, the latest first.
struct Backwards {
    requests: Mutex<mpsc::Sender<Option<Request>>>,
}

impl Backwards {
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel::<Option<Request>>();
        thread::spawn(move || {
            let mut batch = Vec::new();
            for request in receiver {
                match request {
                    Some(request) => batch.push(request),
                    None => batch.drain(..).rev().for_each(answer),
                }
            }
        });
        Self {
            requests: Mutex::new(sender),
        }
    }
}

fn answer(mut request: Request) {
    let result = match request.operation {
        Operation::Write => Err(ErrorCode::NoSpace),
        _ => Ok(()),
    };
    let mark = (request.offset / 512) as u8;
    request.buffer.fill(mark);
    request.complete(result);
}

impl Export for Backwards {
    fn size_bytes(&self) -> u64 {
        1 << 20
    }

    fn features(&self) -> Features {
        Features::default()
    }

    fn block_sizes(&self) -> BlockSizes {
        BlockSizes {
            minimum: 512,
            preferred: 4096,
            maximum: 1 << 20,
        }
    }

    fn submit(&self, request: Request) {
        self.requests.lock().unwrap().send(Some(request)).unwrap();
    }

    fn submitted(&self) {
        self.requests.lock().unwrap().send(None).unwrap();
    }
}

#[test]
fn answers_may_come_from_elsewhere_and_in_any_order() {
    // Fewer at once than the client likes: the server must let the export get
    // going before it waits.
    let limits = Limits {
        requests_in_flight: 10,
        ..Limits::default()
    };
    let running = run(vec![("x", Arc::new(Backwards::new()))], limits);
    let wishes = Wishes {
        depth: 64,
        ..Wishes::default()
    };
    let mut client = meet(&running, &wishes).unwrap();
    assert_eq!(client.session().block_sizes.minimum, 512);
    let mut cookies: Vec<(u64, u8)> = (0..200_u32)
        .map(|index| {
            let offset = u64::from(index) * 512;
            let cookie = client.start(Command::Read, offset, 512, 0, &[]).unwrap();
            (cookie, index as u8)
        })
        .collect();
    while let Some(done) = client.wait().unwrap() {
        let place = cookies
            .iter()
            .position(|(cookie, _)| *cookie == done.cookie);
        let (_, mark) = cookies.swap_remove(place.unwrap());
        assert_eq!(done.bytes, [mark; 512]);
    }
    assert!(cookies.is_empty());
    let error = client.write(0, &[1; 512], false).unwrap_err();
    assert!(matches!(
        error,
        ClientError::Failed {
            code: ErrorCode::NoSpace,
            ..
        }
    ));
}

#[test]
fn a_slow_client_is_not_read_further_and_gets_everything_at_last() {
    let limits = Limits {
        bytes_in_flight: 1 << 20,
        ..Limits::default()
    };
    let running = run(vec![("disk", memory(64 << 20))], limits);
    let mut filler = connect(&running, "");
    for segment in 0..64_u8 {
        filler
            .write(u64::from(segment) << 20, &[segment + 1; 1 << 20], false)
            .unwrap();
    }
    let wishes = Wishes {
        depth: 128,
        ..Wishes::default()
    };
    let mut client = meet(&running, &wishes).unwrap();
    // 64 MiB of replies wait while nothing is read.
    let mut cookies = Vec::new();
    for segment in 0..64_u64 {
        let cookie = client
            .start(Command::Read, segment << 20, 1 << 20, 0, &[])
            .unwrap();
        cookies.push((cookie, segment as u8 + 1));
    }
    while let Some(done) = client.wait().unwrap() {
        let place = cookies
            .iter()
            .position(|(cookie, _)| *cookie == done.cookie);
        let (_, byte) = cookies.swap_remove(place.unwrap());
        assert!(done.bytes.iter().all(|&found| found == byte));
    }
    assert!(cookies.is_empty());
}

#[test]
fn requests_that_need_no_export_are_bounded_too() {
    let limits = Limits {
        requests_in_flight: 4,
        ..Limits::default()
    };
    let running = run(vec![("disk", memory(4096))], limits);
    let mut client = UnixStream::connect(&running.path).unwrap();
    let mut opening = vec![0, 0, 0, 3];
    opening.extend_from_slice(b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk");
    client.write_all(&opening).unwrap();
    client.read_exact(&mut [0; 18 + 10]).unwrap();
    // Commands that do not exist, until the server reads no more of them.
    let mut request = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, 99];
    request.extend_from_slice(&[0; 20]);
    let many = request.repeat(1000);
    client.set_nonblocking(true).unwrap();
    let mut sent = 0;
    let mut refusals = 0;
    while refusals < 100 {
        match client.write(&many[sent % request.len()..]) {
            Ok(count) => {
                sent += count;
                refusals = 0;
            }
            Err(_) => {
                refusals += 1;
                thread::sleep(Duration::from_millis(1));
            }
        }
        assert!(sent < 64 << 20, "the server reads without a bound");
    }
    // Every one that was sent whole is answered.
    client.set_nonblocking(false).unwrap();
    let mut replies = vec![0; sent / request.len() * 16];
    client.read_exact(&mut replies).unwrap();
    for reply in replies.chunks(16) {
        assert_eq!(reply[..8], [0x67, 0x44, 0x66, 0x98, 0, 0, 0, 22]);
    }
}

#[test]
fn tls_is_required_and_verified() {
    let files = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tls");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("nbd.sock");
    let mut exports = Exports::new();
    exports.add("disk", memory(8 << 20)).unwrap();
    let options = ServerOptions {
        tls: Some(TlsFiles {
            certificate: files.join("server.pem"),
            key: files.join("server-key.pem"),
            clients: TlsClients::Anyone,
        }),
        ..ServerOptions::default()
    };
    let server = Server::start(exports, &[Listen::Unix(path.clone())], options, |_, _| {}).unwrap();
    let place = Place::Unix(path);
    let plain = client::connect(&place, None, &named("disk"));
    assert!(matches!(plain, Err(ClientError::Refused { .. })));
    let with = |authority: &str, server_name: &str| {
        let tls = ClientTls {
            authority: files.join(authority),
            server_name: server_name.to_owned(),
            certificate: None,
        };
        client::connect(&place, Some(&tls), &named("disk"))
    };
    let mut client = with("authority.pem", "localhost").unwrap();
    let bytes: Vec<u8> = (0..3_000_000_u32).map(|index| (index / 7) as u8).collect();
    client.write(77, &bytes, true).unwrap();
    assert_eq!(client.read(77, 3_000_000).unwrap(), bytes);
    client.disconnect().unwrap();
    for (authority, name) in [("other.pem", "localhost"), ("authority.pem", "example.org")] {
        assert!(matches!(with(authority, name), Err(ClientError::Io(_))));
    }
    assert!(server.shut_down(Duration::from_secs(10)));
}

#[test]
fn clients_that_die_or_talk_nonsense_leave_nothing_behind() {
    let running = run(vec![("disk", memory(1 << 20))], Limits::default());
    // In the middle of a write's payload.
    let mut dying = UnixStream::connect(&running.path).unwrap();
    let mut opening = vec![0, 0, 0, 3];
    opening.extend_from_slice(b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk");
    opening.extend_from_slice(&[0x25, 0x60, 0x95, 0x13, 0, 0, 0, 1]);
    opening.extend_from_slice(&[0; 16]);
    opening.extend_from_slice(&[0, 1, 0, 0, 9, 9, 9]);
    dying.write_all(&opening).unwrap();
    drop(dying);
    let mut nonsense = UnixStream::connect(&running.path).unwrap();
    nonsense.write_all(&[0xff; 64]).unwrap();
    let mut rest = Vec::new();
    // Closed by the server, perhaps with bytes of ours unread.
    let _ = nonsense.read_to_end(&mut rest);
    let mut client = connect(&running, "");
    assert_eq!(client.read(0, 4096).unwrap(), vec![0; 4096]);
    client.disconnect().unwrap();
    assert!(running.server.shut_down(Duration::from_secs(10)));
    // The one that died is told of only if an answer to it failed.
    let mut errors = running.errors.lock().unwrap();
    errors.retain(|error| error != "connection lost");
    assert_eq!(*errors, ["protocol violated"]);
}

/// Keeps its requests until it is told to answer.
#[derive(Default)]
struct Held(Mutex<Vec<Request>>);

impl Export for Held {
    fn size_bytes(&self) -> u64 {
        4096
    }

    fn features(&self) -> Features {
        Features::default()
    }

    fn submit(&self, request: Request) {
        self.0.lock().unwrap().push(request);
    }
}

#[test]
fn a_shutdown_waits_for_what_is_in_flight() {
    let held = Arc::new(Held::default());
    let running = run(vec![("held", Arc::clone(&held) as _)], Limits::default());
    let mut client = connect(&running, "");
    client.start(Command::Read, 0, 4096, 0, &[]).unwrap();
    while held.0.lock().unwrap().is_empty() {
        thread::yield_now();
    }
    let answering = thread::spawn(move || {
        // The shutdown has begun, or will find nothing to wait for.
        thread::sleep(Duration::from_millis(20));
        let request = held.0.lock().unwrap().pop().unwrap();
        request.complete(Ok(()));
    });
    assert!(running.server.shut_down(Duration::from_secs(10)));
    answering.join().unwrap();
    let done = client.wait().unwrap().unwrap();
    assert_eq!(done.result, Ok(()));
    assert!(client.read(0, 1).is_err());
}

#[test]
fn a_shutdown_gives_up_on_an_export_that_hangs() {
    let held = Arc::new(Held::default());
    let running = run(vec![("held", Arc::clone(&held) as _)], Limits::default());
    let mut client = connect(&running, "");
    client.start(Command::Read, 0, 4096, 0, &[]).unwrap();
    while held.0.lock().unwrap().is_empty() {
        thread::yield_now();
    }
    assert!(!running.server.shut_down(Duration::from_millis(10)));
    assert!(client.wait().is_err());
}

#[test]
fn only_the_loopback_is_listened_on_unless_told() {
    let listen = |address: &str, anywhere| {
        let mut exports = Exports::new();
        exports
            .add("null", Arc::new(NullExport::new(4096)))
            .unwrap();
        let address: SocketAddr = address.parse().unwrap();
        let place = Listen::Tcp { address, anywhere };
        Server::start(exports, &[place], ServerOptions::default(), |_, _| {})
    };
    let refused = listen("0.0.0.0:0", false);
    assert!(matches!(refused, Err(ServeError::NotLoopback(_))));
    assert!(listen("0.0.0.0:0", true).is_ok());
    let server = listen("127.0.0.1:0", false).unwrap();
    let address = server.addresses()[0];
    let (place, export) = client::address(&format!("nbd://{address}/null")).unwrap();
    let mut client = client::connect(&place, None, &named(&export)).unwrap();
    client.write(0, &[1; 4096], true).unwrap();
}
