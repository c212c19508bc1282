//! Bytes of any kind never panic, and always get on or wait for more.

use super::{Known, export};
use proptest::prelude::*;
use raidlab_nbd::server::{self, HandshakeEvent, Requests, TlsPolicy};

/// Bytes in which the magics and small numbers of the protocol are frequent.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just(b"IHAVEOPT".to_vec()),
        Just(vec![0x00, 0x03, 0xe8, 0x89, 0x04, 0x55, 0x65, 0xa9]),
        Just(vec![0x25, 0x60, 0x95, 0x13]),
        Just(vec![0x67, 0x44, 0x66, 0x98]),
        Just(vec![0x66, 0x8e, 0x33, 0xef]),
        (0_u32..16).prop_map(|number| number.to_be_bytes().to_vec()),
        (0_u64..3).prop_map(|use_| (use_ << 32).to_be_bytes().to_vec()),
        (0_u32..16).prop_map(|number| (number | 1 << 31).to_be_bytes().to_vec()),
        prop::collection::vec(any::<u8>(), 0..40),
    ];
    prop::collection::vec(word, 0..40).prop_map(|words| words.concat())
}

proptest! {
    #[test]
    fn a_server_bears_any_client(bytes in bytes(), greeted in any::<bool>(), step in 1_usize..60) {
        let known = Known(vec![export("", 1 << 20)]);
        let mut output = Vec::new();
        let mut handshake = server::Handshake::new(TlsPolicy::Offered, &mut output);
        if greeted {
            handshake.receive(&[0, 0, 0, 3], &known, &mut output).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            let Ok((taken, event)) = handshake.receive(&rest[..step.min(rest.len())], &known, &mut output)
            else { break };
            prop_assert!(taken > 0);
            rest = &rest[taken..];
            match event {
                Some(HandshakeEvent::StartTls) => handshake.secured(),
                Some(HandshakeEvent::Aborted) => break,
                Some(HandshakeEvent::Ready(session)) => {
                    serve(Requests::new(&session), rest);
                    break;
                }
                None => {}
            }
        }
    }

    #[test]
    fn a_server_bears_any_requests(bytes in bytes()) {
        let session = server::Session {
            export: export("", 1 << 20), structured: true, contexts: Vec::new(),
        };
        serve(Requests::new(&session), &bytes);
    }
}

fn serve(mut requests: Requests, mut rest: &[u8]) {
    loop {
        let left = (requests.payload_left() as usize).min(rest.len());
        requests.payload_taken(left as u32);
        rest = &rest[left..];
        match requests.next(rest) {
            Ok((0, None)) | Err(_) => return,
            Ok((taken, _)) => rest = &rest[taken..],
        }
    }
}
