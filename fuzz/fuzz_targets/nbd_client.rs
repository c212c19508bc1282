//! Any bytes of a server, from its greeting on, in fragments of any length:
//! the client's side goes on, waits for more or ends, and no part of a read
//! lies outside it or comes twice.
#![no_main]

use libfuzzer_sys::fuzz_target;
use raidlab_nbd::{
    client::{Handshake, HandshakeEvent, Replies, ReplyEvent, Session, Window, Wishes},
    wire::Command,
};

const LENGTH: u32 = 512;

fuzz_target!(|input: (u8, &[u8])| {
    let (step, mut rest) = (usize::from(input.0) + 1, input.1);
    let mut output = Vec::new();
    let mut handshake = Handshake::new(Wishes {
        contexts: vec!["base:allocation".to_owned()],
        ..Wishes::default()
    });
    while !rest.is_empty() {
        let piece = &rest[..step.min(rest.len())];
        let Ok((taken, event)) = handshake.receive(piece, &mut output) else {
            return;
        };
        assert!(taken > 0);
        rest = &rest[taken..];
        match event {
            Some(HandshakeEvent::Ready(session)) => return ask(&session, rest, step),
            Some(_) => return,
            None => {}
        }
    }
});

fn ask(session: &Session, mut rest: &[u8], step: usize) {
    let mut window = Window::new(session, 3);
    for command in [Command::Read, Command::Read, Command::BlockStatus] {
        // Exports that are too small refuse it.
        let _ = window.start(command, 0, LENGTH, 0);
    }
    let mut replies = Replies::new(session);
    let mut covered = [0_u32; 3];
    loop {
        let left = (replies.payload_left() as usize).min(rest.len());
        replies.payload_taken(left as u32);
        rest = &rest[left..];
        let piece = &rest[..step.min(rest.len())];
        let Ok((taken, event)) = replies.next(piece, &mut window) else {
            return;
        };
        rest = &rest[taken..];
        match event {
            Some(
                ReplyEvent::Data {
                    cookie,
                    skip,
                    length,
                }
                | ReplyEvent::Zeroes {
                    cookie,
                    skip,
                    length,
                },
            ) => {
                assert!(length > 0 && skip + length <= LENGTH);
                let covered = &mut covered[cookie as u32 as usize];
                *covered += length;
                assert!(*covered <= LENGTH);
            }
            Some(ReplyEvent::Done { cookie, result }) if result.is_ok() => {
                let covered = covered[cookie as u32 as usize];
                assert!(covered == LENGTH || covered == 0);
            }
            Some(_) => {}
            None if taken == 0 => return,
            None => {}
        }
    }
}
