//! Any bytes of a client, from its flags on, in fragments of any length: the
//! server's side answers, waits for more or ends, and serves nothing outside
//! the export.

use raidlab_nbd::{
    BlockSizes, ExportInfo, TransmissionFlags,
    server::{Directory, Handshake, HandshakeEvent, RequestEvent, Requests, Session, TlsPolicy},
    wire::Command,
};

struct One;

const SIZE: u64 = 1 << 20;

impl Directory for One {
    fn list(&self) -> Vec<(String, String)> {
        vec![("disk".to_owned(), "of nothing".to_owned())]
    }

    fn find(&self, name: &str) -> Option<ExportInfo> {
        (name.is_empty() || name == "disk").then(|| ExportInfo {
            name: "disk".to_owned(),
            description: "of nothing".to_owned(),
            size_bytes: SIZE,
            flags: TransmissionFlags(!TransmissionFlags::READ_ONLY.0),
            block_sizes: BlockSizes::default(),
            contexts: vec!["base:allocation".to_owned()],
        })
    }
}

/// The first byte is how long the fragments are, the rest what the client says.
pub fn run(input: &[u8]) {
    let Some((&step, mut rest)) = input.split_first() else {
        return;
    };
    let step = usize::from(step) + 1;
    let mut output = Vec::new();
    let mut handshake = Handshake::new(TlsPolicy::Offered, &mut output);
    while !rest.is_empty() {
        let piece = &rest[..step.min(rest.len())];
        let Ok((taken, event)) = handshake.receive(piece, &One, &mut output) else {
            return;
        };
        assert!(taken > 0);
        rest = &rest[taken..];
        match event {
            Some(HandshakeEvent::StartTls) => handshake.secured(),
            Some(HandshakeEvent::Aborted) => return,
            Some(HandshakeEvent::Ready(session)) => return serve(&session, rest, step),
            None => {}
        }
    }
}

fn serve(session: &Session, mut rest: &[u8], step: usize) {
    let mut requests = Requests::new(session);
    let mut output = Vec::new();
    while !rest.is_empty() {
        let left = (requests.payload_left() as usize).min(rest.len());
        requests.payload_taken(left as u32);
        rest = &rest[left..];
        let Ok((taken, event)) = requests.next(&rest[..step.min(rest.len())]) else {
            return;
        };
        rest = &rest[taken..];
        output.clear();
        match event {
            Some(RequestEvent::Request(request)) => {
                assert!(request.offset + u64::from(request.length) <= SIZE);
                if request.command == Command::BlockStatus {
                    session.status(&request, 1, [], true, &mut output);
                }
            }
            Some(RequestEvent::Rejected(rejection)) => {
                let (cookie, error) = (rejection.cookie, rejection.error);
                session.failed(cookie, error, rejection.words, &mut output);
            }
            Some(RequestEvent::Disconnect) => return,
            None => {}
        }
    }
}
