use super::{
    Connection, Known, Side,
    client::{self, Client, ClientError, Wishes},
    export,
};
use proptest::prelude::*;
use raidlab_nbd::{
    ProtocolError, TransmissionFlags,
    server::{self, TlsPolicy},
    wire::{self, option, reply},
};
use std::sync::{Arc, Mutex};

/// A server in its handshake; TLS is a fiction.
struct Meeting {
    known: Known,
    handshake: server::Handshake,
    event: Option<server::HandshakeEvent>,
}

impl Side for Meeting {
    fn receive(&mut self, input: &[u8], output: &mut Vec<u8>) -> usize {
        let (taken, event) = self.handshake.receive(input, &self.known, output).unwrap();
        match event {
            Some(server::HandshakeEvent::StartTls) => self.handshake.secured(),
            event => self.event = self.event.take().or(event),
        }
        taken
    }
}

/// Begins a handshake, with TLS if it is wished; gives the server as well.
fn begin(
    policy: TlsPolicy,
    tls: bool,
    lengths: &[usize],
) -> Result<(client::Handshake, Arc<Mutex<Meeting>>), ClientError> {
    let mut greeting = Vec::new();
    let meeting = Meeting {
        known: known(),
        handshake: server::Handshake::new(policy, &mut greeting),
        event: None,
    };
    let connection = Connection::new(meeting, greeting, lengths);
    let side = Arc::clone(&connection.side);
    let mut handshake = client::Handshake::new(Box::new(connection))?;
    if tls {
        handshake = handshake.secured(Ok)?;
    }
    Ok((handshake, side))
}

/// What both sides believe when they have met.
fn meet(
    policy: TlsPolicy,
    tls: bool,
    wishes: &Wishes,
    lengths: &[usize],
) -> Result<(server::Session, Client), ClientError> {
    let (handshake, side) = begin(policy, tls, lengths)?;
    let client = handshake.go(wishes)?;
    match side.lock().unwrap().event.take() {
        Some(server::HandshakeEvent::Ready(session)) => Ok((*session, client)),
        event => panic!("the server is not ready: {event:?}"),
    }
}

fn known() -> Known {
    let mut blocks = export("blocks", 1 << 40);
    blocks.block_sizes.minimum = 4096;
    Known(vec![export("first", 12_345), blocks])
}

proptest! {
    /// Whatever is wished and however the bytes are cut, both sides believe
    /// the same.
    #[test]
    fn both_sides_agree(
        lengths in prop::collection::vec(1_usize..300, 1..8),
        name in prop::sample::select(vec!["", "first", "blocks"]),
        tls in any::<bool>(),
        structured in any::<bool>(),
        contexts in prop::sample::subsequence(
            vec!["base:allocation", "raidlab:state", "base:other", "base:"], 0..4),
    ) {
        let wishes = Wishes {
            export: name.to_owned(),
            structured,
            contexts: contexts.iter().map(|&name| name.to_owned()).collect(),
            ..Wishes::default()
        };
        let policy = if tls { TlsPolicy::Required } else { TlsPolicy::Offered };
        let (served, client) = meet(policy, tls, &wishes, &lengths).unwrap();
        let met = client.session();
        let expected = if name == "blocks" { "blocks" } else { "first" };
        prop_assert_eq!(&served.export.name, expected);
        prop_assert_eq!(met.size_bytes, served.export.size_bytes);
        prop_assert_eq!(met.block_sizes, served.export.block_sizes);
        prop_assert_eq!(&met.description, &served.export.description);
        prop_assert_eq!((met.structured, served.structured), (structured, structured));
        prop_assert_eq!(met.flags.contains(TransmissionFlags::SEND_DF), structured);
        prop_assert_eq!(&met.contexts, &served.contexts);
        let granted: Vec<_> = contexts.iter().copied()
            .filter(|name| structured && ["base:allocation", "raidlab:state"].contains(name))
            .collect();
        let names: Vec<_> = met.contexts.iter().map(|context| context.name.as_str()).collect();
        prop_assert_eq!(names, granted);
    }
}

#[test]
fn a_list_has_names_and_descriptions() {
    let (handshake, side) = begin(TlsPolicy::Off, false, &[7]).unwrap();
    let names = ["first", "blocks"].map(|name| (name.to_owned(), format!("the export {name}")));
    assert_eq!(handshake.list().unwrap(), names);
    let event = side.lock().unwrap().event.take();
    assert_eq!(event, Some(server::HandshakeEvent::Aborted));
}

#[test]
fn refusals_name_their_reason() {
    let refused = |policy, export: &str, tls| {
        let wishes = Wishes {
            export: export.to_owned(),
            contexts: Vec::new(),
            ..Wishes::default()
        };
        match meet(policy, tls, &wishes, &[50]) {
            Err(ClientError::Refused { option, kind }) => (option, kind),
            met => panic!("{:?}", met.map(|(session, _)| session)),
        }
    };
    assert_eq!(
        refused(TlsPolicy::Off, "third", false),
        (option::GO, reply::ERR_UNKNOWN)
    );
    assert_eq!(
        refused(TlsPolicy::Off, "", true),
        (option::STARTTLS, reply::ERR_POLICY)
    );
    assert_eq!(
        refused(TlsPolicy::Required, "", false),
        (option::STRUCTURED_REPLY, reply::ERR_TLS_REQD)
    );
}

/// Bytes of one option.
fn option_bytes(option: u32, data: &[u8]) -> Vec<u8> {
    let mut bytes = wire::OPTION_MAGIC.to_be_bytes().to_vec();
    bytes.extend_from_slice(&option.to_be_bytes());
    bytes.extend_from_slice(&(data.len() as u32).to_be_bytes());
    bytes.extend_from_slice(data);
    bytes
}

/// Feeds the server with client flags and options; gives the types of its
/// replies, or the error.
fn replies(policy: TlsPolicy, flags: u32, options: &[Vec<u8>]) -> Result<Vec<u32>, ProtocolError> {
    let mut output = Vec::new();
    let mut server = server::Handshake::new(policy, &mut output);
    output.clear();
    let mut input = flags.to_be_bytes().to_vec();
    options
        .iter()
        .for_each(|bytes| input.extend_from_slice(bytes));
    let mut at = 0;
    loop {
        let (taken, event) = server.receive(&input[at..], &known(), &mut output)?;
        at += taken;
        match event {
            Some(server::HandshakeEvent::StartTls) => server.secured(),
            Some(_) => break,
            None if taken == 0 => break,
            None => {}
        }
    }
    let mut kinds = Vec::new();
    let mut rest = &output[..];
    while rest.len() >= 20 && rest[..8] == wire::OPTION_REPLY_MAGIC.to_be_bytes() {
        let word = |at: usize| u32::from_be_bytes(rest[at..at + 4].try_into().unwrap());
        kinds.push(word(12));
        rest = &rest[20 + word(16) as usize..];
    }
    Ok(kinds)
}

#[test]
fn each_broken_option_gets_its_own_error() {
    let invalid = [reply::ERR_INVALID];
    let mut name_too_long = 5_u32.to_be_bytes().to_vec();
    name_too_long.extend_from_slice(b"abc");
    for (what, data, expected) in [
        (option::LIST, &b"x"[..], invalid),
        (option::STRUCTURED_REPLY, b"x", invalid),
        (option::GO, b"", invalid),
        (option::GO, &name_too_long, invalid),
        (option::GO, b"\0\0\0\x01\0\0\0", invalid),
        (option::GO, b"\0\0\0\x01x\0\0", [reply::ERR_UNKNOWN]),
        (option::GO, b"\0\0\0\x01x\0\0!", invalid),
        (option::SET_META_CONTEXT, b"\0\0\0\0\0\0\0\0", invalid),
        (option::STARTTLS, b"", [reply::ERR_POLICY]),
        (77, b"anything", [reply::ERR_UNSUP]),
        (
            option::LIST,
            &[0; wire::MAXIMUM_OPTION_BYTES + 1],
            [reply::ERR_TOO_BIG],
        ),
    ] {
        let got = replies(TlsPolicy::Off, 3, &[option_bytes(what, data)]);
        assert_eq!(got.as_deref(), Ok(&expected[..]), "option {what} {data:?}");
    }
}

#[test]
fn before_required_tls_nothing_else_is_told() {
    let options = [
        option_bytes(option::LIST, b""),
        option_bytes(option::STRUCTURED_REPLY, b""),
        option_bytes(77, b""),
        option_bytes(option::STARTTLS, b""),
        option_bytes(option::STARTTLS, b""),
        option_bytes(option::ABORT, b""),
    ];
    let required = reply::ERR_TLS_REQD;
    let expected = [
        required,
        required,
        required,
        reply::ACK,
        reply::ERR_INVALID,
        reply::ACK,
    ];
    let got = replies(TlsPolicy::Required, 3, &options);
    assert_eq!(got.as_deref(), Ok(&expected[..]));
    let name = option_bytes(option::EXPORT_NAME, b"first");
    let refused = ProtocolError::ExportRefused("first".to_owned());
    assert_eq!(replies(TlsPolicy::Required, 3, &[name]), Err(refused));
}

#[test]
fn what_was_agreed_on_before_tls_is_forgotten() {
    let options = [
        option_bytes(option::STRUCTURED_REPLY, b""),
        option_bytes(option::STARTTLS, b""),
        option_bytes(option::LIST_META_CONTEXT, b"\0\0\0\0\0\0\0\0"),
    ];
    let got = replies(TlsPolicy::Offered, 3, &options);
    let expected = [reply::ACK, reply::ACK, reply::ERR_INVALID];
    assert_eq!(got.as_deref(), Ok(&expected[..]));
}

#[test]
fn contexts_chosen_for_one_export_do_not_hold_for_another() {
    let mut output = Vec::new();
    let mut server = server::Handshake::new(TlsPolicy::Off, &mut output);
    let mut input = 3_u32.to_be_bytes().to_vec();
    let query = b"\0\0\0\x05first\0\0\0\x01\0\0\0\x0fbase:allocation";
    input.extend(option_bytes(option::STRUCTURED_REPLY, b""));
    input.extend(option_bytes(option::SET_META_CONTEXT, query));
    input.extend(option_bytes(option::GO, b"\0\0\0\x06blocks\0\0"));
    let mut at = 0;
    let session = loop {
        let (taken, event) = server.receive(&input[at..], &known(), &mut output).unwrap();
        at += taken;
        if let Some(server::HandshakeEvent::Ready(session)) = event {
            break session;
        }
    };
    assert_eq!(session.export.name, "blocks");
    assert!(session.contexts.is_empty());
}

#[test]
fn violations_without_a_reply_end_the_connection() {
    let list = || option_bytes(option::LIST, b"");
    assert_eq!(
        replies(TlsPolicy::Off, 4, &[]),
        Err(ProtocolError::ClientFlags(4))
    );
    assert_eq!(
        replies(TlsPolicy::Off, 0, &[list()]),
        Err(ProtocolError::OptionNotAllowed(option::LIST))
    );
    let mut broken = list();
    broken[0] = 0;
    assert!(matches!(
        replies(TlsPolicy::Off, 3, &[broken]),
        Err(ProtocolError::OptionMagic(_))
    ));
    let name = option_bytes(option::EXPORT_NAME, b"\xff");
    assert_eq!(
        replies(TlsPolicy::Off, 3, &[name]),
        Err(ProtocolError::BadString)
    );
}

#[test]
fn an_old_client_gets_its_zeroes() {
    let mut output = Vec::new();
    let mut server = server::Handshake::new(TlsPolicy::Off, &mut output);
    output.clear();
    let mut input = 0_u32.to_be_bytes().to_vec();
    input.extend(option_bytes(option::EXPORT_NAME, b"first"));
    let (taken, _) = server.receive(&input, &known(), &mut output).unwrap();
    let (_, event) = server
        .receive(&input[taken..], &known(), &mut output)
        .unwrap();
    assert!(matches!(event, Some(server::HandshakeEvent::Ready(_))));
    assert_eq!(output.len(), 8 + 2 + 124);
    assert_eq!(output[..8], 12_345_u64.to_be_bytes());
}
