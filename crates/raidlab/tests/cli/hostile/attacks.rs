//! The hostile clients: what each does to a server, once.

use crate::client::{Place, Wishes, connect};
use crate::security::tls;
use raidlab_nbd::wire::Command;
use rustix::net::sockopt::set_socket_linger;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// What a hostile client may do.
pub(super) const ATTACKS: [(&str, Attack); 16] = [
    ("connects and leaves", leaves),
    ("stays silent", stays_silent),
    ("half an option", half_an_option),
    ("nonsense", nonsense),
    ("storm of options", storm_of_options),
    ("an option of 4 GiB", endless_option),
    ("dead after STARTTLS", dead_after_start_tls),
    ("nonsense as TLS", nonsense_as_tls),
    ("dead within TLS", dead_within_tls),
    ("stranger's certificate", strangers_certificate),
    ("dead in a payload", dead_in_a_payload),
    ("halts in a payload", halts_in_a_payload),
    ("half a request", half_a_request),
    ("reads and takes nothing", takes_nothing),
    ("storm of requests", storm_of_requests),
    ("dead with requests in flight", dead_in_flight),
];

type Attack = fn(&mut Attacker);

/// Who attacks, one connection at a time.
pub(super) struct Attacker {
    pub(super) server: SocketAddr,
    /// Chance: the state of a xorshift.
    pub(super) chance: u64,
    /// Connections that are held open in their handshake, and as clients; the
    /// oldest go when there are more than these.
    pub(super) handshakes: VecDeque<TcpStream>,
    pub(super) clients: VecDeque<TcpStream>,
}

const HELD_HANDSHAKES: usize = 120;
const HELD_CLIENTS: usize = 6;

impl Attacker {
    pub(super) fn draw(&mut self) -> u64 {
        self.chance ^= self.chance << 13;
        self.chance ^= self.chance >> 7;
        self.chance ^= self.chance << 17;
        self.chance
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let count = 1 + self.draw() % most;
        (0..count).map(|_| self.draw() as u8).collect()
    }

    /// A connection to which `words` were sent, as many as were taken: the server
    /// may end it at any moment.
    fn says(&mut self, words: &[u8]) -> TcpStream {
        let stream = TcpStream::connect(self.server).expect("the server listens");
        let limit = Some(Duration::from_millis(200));
        stream.set_write_timeout(limit).expect("a timeout");
        stream.set_read_timeout(limit).expect("a timeout");
        let _ = (&stream).write_all(words);
        // Half of them end with a reset.
        if self.draw().is_multiple_of(2) {
            set_socket_linger(&stream, Some(Duration::ZERO)).expect("linger");
        }
        stream
    }

    fn hold_handshake(&mut self, stream: TcpStream) {
        self.handshakes.push_back(stream);
        if self.handshakes.len() > HELD_HANDSHAKES {
            self.handshakes.pop_front();
        }
    }

    fn hold_client(&mut self, stream: TcpStream) {
        self.clients.push_back(stream);
        if self.clients.len() > HELD_CLIENTS {
            self.clients.pop_front();
        }
    }
}

fn option(number: u8, length: u32) -> Vec<u8> {
    let mut option = b"IHAVEOPT\0\0\0".to_vec();
    option.push(number);
    option.extend_from_slice(&length.to_be_bytes());
    option
}

/// Flags, and the default export chosen without a reply.
fn opening() -> Vec<u8> {
    [vec![0, 0, 0, 3], option(1, 0)].concat()
}

/// The option STARTTLS.
fn start_tls() -> Vec<u8> {
    [vec![0, 0, 0, 3], option(5, 0)].concat()
}

fn request(command: u16, offset: u64, length: u32) -> Vec<u8> {
    let mut request = vec![0x25, 0x60, 0x95, 0x13, 0, 0];
    request.extend_from_slice(&command.to_be_bytes());
    request.extend_from_slice(&[7; 8]);
    request.extend_from_slice(&offset.to_be_bytes());
    request.extend_from_slice(&length.to_be_bytes());
    request
}

const READ: u16 = Command::Read as u16;
const WRITE: u16 = Command::Write as u16;

fn leaves(attacker: &mut Attacker) {
    attacker.says(&[]);
}

fn stays_silent(attacker: &mut Attacker) {
    let stream = attacker.says(&[]);
    attacker.hold_handshake(stream);
}

fn half_an_option(attacker: &mut Attacker) {
    let words = opening();
    let count = 1 + attacker.draw() as usize % (words.len() - 1);
    let stream = attacker.says(&words[..count]);
    if attacker.draw().is_multiple_of(2) {
        attacker.hold_handshake(stream);
    }
}

fn nonsense(attacker: &mut Attacker) {
    let words = attacker.bytes(4096);
    attacker.says(&words);
}

/// Lists, without reading any.
fn storm_of_options(attacker: &mut Attacker) {
    let words = [vec![0, 0, 0, 3], option(3, 0).repeat(500)].concat();
    attacker.says(&words);
}

fn endless_option(attacker: &mut Attacker) {
    let words = [vec![0, 0, 0, 3], option(7, u32::MAX), vec![0; 20_000]].concat();
    let stream = attacker.says(&words);
    attacker.hold_handshake(stream);
}

fn dead_after_start_tls(attacker: &mut Attacker) {
    let stream = attacker.says(&start_tls());
    if attacker.draw().is_multiple_of(2) {
        attacker.hold_handshake(stream);
    }
}

/// Half of them as a record that promises a hello.
fn nonsense_as_tls(attacker: &mut Attacker) {
    let mut words = start_tls();
    if attacker.draw().is_multiple_of(2) {
        words.extend_from_slice(&[22, 3, 1, 2, 0, 1, 0, 1, 252, 3, 3]);
    }
    words.extend(attacker.bytes(400));
    let mut stream = attacker.says(&words);
    // The greeting and perhaps an alert.
    let _ = stream.read(&mut [0; 64]);
}

/// By a true client that is let in, where one is without a certificate, and goes
/// in the middle of a read.
fn dead_within_tls(attacker: &mut Attacker) {
    with_tls(attacker, None);
}

fn strangers_certificate(attacker: &mut Attacker) {
    with_tls(attacker, Some("stranger"));
}

fn with_tls(attacker: &mut Attacker, shown: Option<&str>) {
    let place = Place::Tcp("127.0.0.1".to_owned(), attacker.server.port());
    if let Ok(mut client) = connect(&place, Some(&tls(shown)), &Wishes::default()) {
        // It may be cut off already.
        let _ = client.start(Command::Read, 0, 1 << 20, 0, &[]);
    }
}

fn payload_begun(attacker: &mut Attacker) -> TcpStream {
    let length = 512 << (attacker.draw() % 9);
    let mut words = [opening(), request(WRITE, 0, length)].concat();
    let most = u64::from(length) - 1;
    // The part of the array that belongs to nobody.
    words.extend(attacker.bytes(most));
    attacker.says(&words)
}

fn dead_in_a_payload(attacker: &mut Attacker) {
    payload_begun(attacker);
}

fn halts_in_a_payload(attacker: &mut Attacker) {
    let stream = payload_begun(attacker);
    attacker.hold_client(stream);
}

fn half_a_request(attacker: &mut Attacker) {
    let words = [opening(), request(READ, 0, 4096)].concat();
    let left = 1 + attacker.draw() as usize % 27;
    let stream = attacker.says(&words[..words.len() - left]);
    if attacker.draw().is_multiple_of(2) {
        attacker.hold_client(stream);
    }
}

fn takes_nothing(attacker: &mut Attacker) {
    let words = [opening(), request(READ, 0, 1 << 20).repeat(16)].concat();
    let stream = attacker.says(&words);
    attacker.hold_client(stream);
}

/// Unknown commands, empty and endless ranges, flags that are none.
fn storm_of_requests(attacker: &mut Attacker) {
    let mut words = opening();
    for _ in 0..300 {
        let [command, offset, length] = [attacker.draw(), attacker.draw(), attacker.draw()];
        // A write would take what follows for its payload.
        let command = command as u16 % 20 + 2;
        words.extend(request(command, offset % (1 << 33), length as u32));
    }
    attacker.says(&words);
}

fn dead_in_flight(attacker: &mut Attacker) {
    let words = [opening(), request(READ, 0, 65536).repeat(40)].concat();
    attacker.says(&words);
}
