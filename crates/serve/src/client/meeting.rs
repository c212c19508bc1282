//! From an address to a session: connection, TLS where it is asked for, and
//! the handshake.

use super::stream::{Bytes, connect, ended, secure};
use super::{ClientError, ClientOptions, Session, Uri};
use raidlab_nbd::client::{Handshake, HandshakeEvent, Purpose, Wishes};
use std::io;

/// Bytes that have come and were not looked at yet.
pub(super) struct Input {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Input {
    pub(super) fn new() -> Self {
        Self {
            bytes: vec![0; 64 << 10],
            begin: 0,
            end: 0,
        }
    }

    /// What was not looked at yet.
    pub(super) fn unread(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }

    /// The first so many unread bytes are done with.
    pub(super) fn taken(&mut self, count: usize) {
        self.begin += count;
    }

    /// Waits for bytes; there are some after it.
    pub(super) fn fill(&mut self, stream: &mut dyn Bytes) -> Result<(), ClientError> {
        loop {
            match stream.read(&mut self.bytes) {
                Ok(0) => return Err(ended()),
                Ok(count) => {
                    (self.begin, self.end) = (0, count);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// What the server has agreed to.
pub(super) enum Met {
    Ready(Box<Session>),
    Listed(Vec<(String, String)>),
}

/// Connects and agrees with the server on everything.
pub(super) fn meet(
    uri: &Uri,
    options: &ClientOptions,
    purpose: Purpose,
) -> Result<(Box<dyn Bytes>, Input, Met), ClientError> {
    if options.tls.is_some() && !uri.tls {
        return Err(ClientError::PlainAddress);
    }
    let mut stream = connect(&uri.place)?;
    let mut input = Input::new();
    let mut output = Vec::new();
    let mut handshake = Handshake::new(Wishes {
        purpose,
        export: uri.export.clone(),
        tls: uri.tls,
        structured: options.structured,
        contexts: options.contexts.clone(),
    });
    loop {
        let (taken, event) = handshake.receive(input.unread(), &mut output)?;
        input.taken(taken);
        stream.write_all(&output)?;
        output.clear();
        match event {
            Some(HandshakeEvent::StartTls) => {
                let tls = options.tls.as_ref().ok_or(ClientError::NoAuthority)?;
                // What came early was not encrypted: nobody knows who said it.
                input = Input::new();
                stream = secure(stream, &uri.place, tls)?;
                handshake.secured(&mut output);
                stream.write_all(&output)?;
                output.clear();
            }
            Some(HandshakeEvent::Ready(session)) => {
                return Ok((stream, input, Met::Ready(session)));
            }
            Some(HandshakeEvent::Listed(names)) => {
                return Ok((stream, input, Met::Listed(names)));
            }
            None if taken > 0 => {}
            None => input.fill(&mut *stream)?,
        }
    }
}
