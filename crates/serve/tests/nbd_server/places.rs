//! What a connection holds is given back, however it ends.

use super::{Running, connect, memory, run};
use raidlab_nbd::wire::Command;
use raidlab_serve::{
    export::{Export, Features, Request},
    server::{Limits, Server},
};
use std::{
    io::{ErrorKind, Read, Write},
    os::unix::net::UnixStream,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

const PATIENCE: Duration = Duration::from_secs(20);

/// A client by hand, with the export `disk` chosen.
fn opened(running: &Running) -> UnixStream {
    let mut client = UnixStream::connect(&running.path).unwrap();
    let mut opening = vec![0, 0, 0, 3];
    opening.extend_from_slice(b"IHAVEOPT\0\0\0\x01\0\0\0\x04disk");
    client.write_all(&opening).unwrap();
    client.read_exact(&mut [0; 18]).unwrap();
    client
}

/// A request's head: `command` on `length` bytes from 0 on.
fn head(command: Command, length: u32) -> Vec<u8> {
    let mut head = vec![0x25, 0x60, 0x95, 0x13, 0, 0, 0, command as u8];
    head.extend_from_slice(&[0; 16]);
    head.extend_from_slice(&length.to_be_bytes());
    head
}

/// Whether the server ends the connection.
fn is_ended(client: &mut UnixStream) -> bool {
    client.set_read_timeout(Some(PATIENCE)).unwrap();
    loop {
        match client.read(&mut [0; 4096]) {
            Ok(0) => return true,
            Ok(_) => {}
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
}

/// Waits until all but so many connections have given their places back.
fn wait_until_left(server: &Server, left: usize) {
    let began = Instant::now();
    while server.connections() > left {
        assert!(began.elapsed() < PATIENCE, "a place is kept");
        thread::sleep(Duration::from_millis(1));
    }
}

fn wait_for_errors(running: &Running, count: usize) -> Vec<String> {
    let began = Instant::now();
    loop {
        let errors = running.errors.lock().unwrap().clone();
        if errors.len() >= count {
            return errors;
        }
        assert!(began.elapsed() < PATIENCE, "{errors:?}");
        thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn clients_beyond_the_limit_are_let_go() {
    let limits = Limits {
        connections: 1,
        ..Limits::default()
    };
    let running = run(vec![("disk", memory(4096))], limits);
    let client = connect(&running, "");
    assert!(is_ended(&mut opened(&running)));
    assert_eq!(
        wait_for_errors(&running, 1),
        ["there are 1 clients already"]
    );
    // Its place is another's once it is given back.
    client.disconnect().unwrap();
    wait_until_left(&running.server, 0);
    connect(&running, "").disconnect().unwrap();
}

#[test]
fn a_silent_handshake_is_ended() {
    let limits = Limits {
        handshake_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let running = run(vec![("disk", memory(4096))], limits);
    let mut silent = UnixStream::connect(&running.path).unwrap();
    let mut greeting = Vec::new();
    silent.read_to_end(&mut greeting).unwrap();
    assert_eq!(greeting.len(), 18);
    assert_eq!(wait_for_errors(&running, 1), ["no handshake within 0.05 s"]);
    assert_eq!(running.server.connections(), 0);
}

#[test]
fn a_client_that_dies_in_a_payload_gives_its_place_back() {
    let running = run(vec![("disk", memory(1 << 20))], Limits::default());
    for round in 0..10 {
        let mut dying = opened(&running);
        dying.write_all(&head(Command::Write, 65536)).unwrap();
        dying.write_all(&[9; 3]).unwrap();
        // The answer to the handshake has 10 bytes. If some stay unread, the socket
        // is reset: the server's read of the payload fails instead of ending.
        let read = if round % 2 == 0 { 1 } else { 10 };
        dying.read_exact(&mut vec![0; read]).unwrap();
        drop(dying);
        wait_until_left(&running.server, 0);
    }
    let mut client = connect(&running, "");
    assert_eq!(client.read(0, 65536).unwrap(), vec![0; 65536]);
}

#[test]
fn who_stops_in_mid_request_is_let_go_and_who_is_idle_is_not() {
    let limits = Limits {
        stall_timeout: Duration::from_millis(50),
        ..Limits::default()
    };
    let running = run(vec![("disk", memory(64 << 20))], limits);
    let mut idle = connect(&running, "");
    let heads = [
        // No payload follows.
        &head(Command::Write, 65536)[..],
        // No head follows.
        &[0x25],
        // The reply does not fit into the socket, and is not taken.
        &head(Command::Read, 16 << 20),
    ];
    let stopped = heads.map(|bytes| {
        let mut client = opened(&running);
        client.write_all(bytes).unwrap();
        client
    });
    let words = "the client stopped in the middle of a request or of its replies";
    assert_eq!(wait_for_errors(&running, 3), [words; 3]);
    for mut client in stopped {
        assert!(is_ended(&mut client));
    }
    assert_eq!(running.server.connections(), 1);
    assert_eq!(idle.read(0, 512).unwrap(), [0; 512]);
}

#[test]
fn handshakes_never_keep_anybody_out() {
    let limits = Limits {
        connections: 4,
        handshakes: 4,
        handshake_timeout: Duration::from_secs(600),
        ..Limits::default()
    };
    let running = run(vec![("disk", memory(4096))], limits);
    let mut silent = Vec::new();
    for _ in 0..20 {
        silent.push(UnixStream::connect(&running.path).unwrap());
        connect(&running, "").disconnect().unwrap();
        // Four that are silent, and whoever has just gone.
        wait_until_left(&running.server, 5);
    }
    let errors = wait_for_errors(&running, 16);
    let displaced = "cut off in its handshake by 4 newer ones";
    assert!(errors.iter().all(|error| error == displaced), "{errors:?}");
    drop(silent);
    wait_until_left(&running.server, 0);
}

/// Panics when it is asked for anything but its size.
struct Panicking;

impl Export for Panicking {
    fn size_bytes(&self) -> u64 {
        4096
    }

    fn features(&self) -> Features {
        Features::default()
    }

    fn submit(&self, _: Request) {
        panic!("this export always panics");
    }
}

#[test]
fn an_export_that_panics_ends_the_connection_and_keeps_nothing() {
    let running = run(vec![("x", Arc::new(Panicking) as _)], Limits::default());
    assert!(connect(&running, "").read(0, 512).is_err());
    wait_until_left(&running.server, 0);
    assert!(running.server.shut_down(PATIENCE));
}
