//! A small blocking NBD client.
//!
//! Requests are started and waited for: several may be in flight, in a window
//! of a fixed depth, and come back in the server's order. A server that waits
//! for its replies to be read may stop to read itself; therefore a write
//! waits until no read is in flight, and replies to writes are too short to
//! fill anything.

mod meeting;
mod stream;
mod uri;

pub use uri::{DEFAULT_PORT, Place, Uri, UriError};

use meeting::{Input, Met, meet};
use raidlab_nbd::{
    ErrorCode, Extent, ProtocolError,
    client::{Purpose, Refusal, Replies, ReplyEvent, Window},
    wire::{Command, command_flag},
};
use std::{
    collections::{BTreeMap, VecDeque},
    io,
    path::PathBuf,
};
use stream::Bytes;

pub use raidlab_nbd::client::Session;

/// Why the client cannot go on, or a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there.
    #[error("cannot connect to {place}")]
    Connect {
        /// The address or socket that was connected to.
        place: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// The connection broke.
    #[error("connection lost")]
    Io(#[from] io::Error),
    /// The server broke the protocol or refuses the export.
    #[error("handshake or protocol failed")]
    Protocol(#[from] ProtocolError),
    /// The request is not sent.
    #[error("request not possible")]
    Refused(#[from] Refusal),
    /// The server answered with an error.
    #[error("the server answers: {code}{}{words}", if .words.is_empty() { "" } else { ": " })]
    Failed {
        /// Which error.
        code: ErrorCode,
        /// The server's words.
        words: String,
    },
    /// The address says TLS, and nobody is trusted.
    #[error("TLS needs a file of trusted certificates")]
    NoAuthority,
    /// TLS is set up for an address that does not say it.
    #[error("the address is for plain text, but certificates for TLS are given")]
    PlainAddress,
    /// A file of certificates cannot be used.
    #[error("{}: {reason}", .path.display())]
    TlsFile {
        /// The file of the certificate or key.
        path: PathBuf,
        /// Why it cannot be used, in words.
        reason: String,
    },
    /// The host's name cannot stand in a certificate.
    #[error("the server's name is no name for TLS")]
    ServerName,
    /// TLS cannot be set up.
    #[error("cannot set up TLS")]
    Tls(#[source] rustls::Error),
}

/// Whom to trust.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ClientTls {
    /// PEM file of trusted certificates.
    pub authority: PathBuf,
    /// The name in the server's certificate; empty for the host's name, which
    /// is `localhost` for a Unix socket.
    pub server_name: String,
    /// PEM files of the client's own certificate and its key, for servers that
    /// ask for one.
    pub certificate: Option<(PathBuf, PathBuf)>,
}

/// How to connect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientOptions {
    /// Requests in flight, 1 to 128.
    pub depth: usize,
    /// Replies in chunks.
    pub structured: bool,
    /// Metadata contexts to ask for.
    pub contexts: Vec<String>,
    /// For addresses that say TLS, and only for them.
    pub tls: Option<ClientTls>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            depth: 16,
            structured: true,
            contexts: vec!["base:allocation".to_owned()],
            tls: None,
        }
    }
}

/// A request that is over.
#[derive(Debug)]
pub struct Completed {
    /// What [`Client::start`] gave.
    pub cookie: u64,
    /// Success, or the server's error and its words.
    pub result: Result<(), (ErrorCode, String)>,
    /// The bytes of a read.
    pub bytes: Vec<u8>,
    /// The extents of a block status, by context.
    pub extents: Vec<(u32, Vec<Extent>)>,
}

/// What has come so far of a request.
#[derive(Default)]
struct Partial {
    is_read: bool,
    bytes: Vec<u8>,
    extents: Vec<(u32, Vec<Extent>)>,
}

/// A connection to an export.
pub struct Client {
    stream: Box<dyn Bytes>,
    session: Session,
    window: Window,
    replies: Replies,
    input: Input,
    partial: BTreeMap<u64, Partial>,
    done: VecDeque<Completed>,
    reads: usize,
}

/// Names and descriptions of a server's exports.
///
/// # Errors
///
/// The server cannot be reached or does not tell.
pub fn list(uri: &Uri, options: &ClientOptions) -> Result<Vec<(String, String)>, ClientError> {
    match meet(uri, options, Purpose::List)?.2 {
        Met::Listed(names) => Ok(names),
        Met::Ready(_) => Ok(Vec::new()),
    }
}

impl Client {
    /// Connects to an export.
    ///
    /// # Errors
    ///
    /// The server cannot be reached, or refuses.
    pub fn connect(uri: &Uri, options: &ClientOptions) -> Result<Self, ClientError> {
        let (stream, input, met) = meet(uri, options, Purpose::Go)?;
        let session = match met {
            Met::Ready(session) => *session,
            Met::Listed(_) => Session::default(),
        };
        Ok(Self {
            stream,
            window: Window::new(&session, options.depth.clamp(1, 128)),
            replies: Replies::new(&session),
            session,
            input,
            partial: BTreeMap::new(),
            done: VecDeque::new(),
            reads: 0,
        })
    }

    /// What was agreed on.
    #[must_use]
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Longest read or write, in bytes.
    #[must_use]
    pub fn maximum_payload(&self) -> u32 {
        self.window.maximum_payload()
    }

    /// Requests that were started and not waited for.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.window.in_flight() + self.done.len()
    }

    /// Begins a request and gives its cookie; waits for a place in the window
    /// first. `payload` are a write's bytes, `flags` as in
    /// [`raidlab_nbd::wire::command_flag`].
    ///
    /// # Errors
    ///
    /// The request is not possible, or the connection is lost.
    pub fn start(
        &mut self,
        command: Command,
        offset: u64,
        length: u32,
        flags: u16,
        payload: &[u8],
    ) -> Result<u64, ClientError> {
        while command == Command::Write && self.reads > 0 {
            self.receive()?;
        }
        if command == Command::Write && payload.len() != length as usize {
            return Err(Refusal::Range.into());
        }
        let (cookie, header) = loop {
            match self.window.start(command, offset, length, flags) {
                Err(Refusal::Full) => self.receive()?,
                started => break started?,
            }
        };
        let is_read = command == Command::Read;
        self.reads += usize::from(is_read);
        let bytes = if is_read {
            vec![0; length as usize]
        } else {
            Vec::new()
        };
        let partial = Partial {
            is_read,
            bytes,
            extents: Vec::new(),
        };
        self.partial.insert(cookie, partial);
        self.stream.write_all(&header)?;
        if command == Command::Write {
            self.stream.write_all(payload)?;
        }
        self.stream.flush()?;
        Ok(cookie)
    }

    /// Waits for any request to be over; `None` if there is none.
    ///
    /// # Errors
    ///
    /// The connection is lost or the server broke the protocol.
    pub fn wait(&mut self) -> Result<Option<Completed>, ClientError> {
        while self.done.is_empty() {
            if self.window.in_flight() == 0 {
                return Ok(None);
            }
            self.receive()?;
        }
        Ok(self.done.pop_front())
    }

    /// Takes in replies until something is over or a payload was moved.
    fn receive(&mut self) -> Result<(), ClientError> {
        loop {
            let (taken, event) = self.replies.next(self.input.unread(), &mut self.window)?;
            self.input.taken(taken);
            match event {
                Some(ReplyEvent::Data { cookie, skip, .. }) => self.payload(cookie, skip)?,
                // The bytes are zero already.
                Some(ReplyEvent::Zeroes { .. }) => {}
                Some(ReplyEvent::Status {
                    cookie,
                    context,
                    extents,
                }) => {
                    if let Some(partial) = self.partial.get_mut(&cookie) {
                        partial.extents.push((context, extents));
                    }
                }
                Some(ReplyEvent::Done { cookie, result }) => {
                    let partial = self.partial.remove(&cookie).unwrap_or_default();
                    self.reads -= usize::from(partial.is_read);
                    self.done.push_back(Completed {
                        cookie,
                        result,
                        bytes: partial.bytes,
                        extents: partial.extents,
                    });
                    return Ok(());
                }
                None if taken > 0 => {}
                None => self.input.fill(&mut *self.stream)?,
            }
        }
    }

    fn payload(&mut self, cookie: u64, skip: u32) -> Result<(), ClientError> {
        let length = self.replies.payload_left() as usize;
        let unknown = ProtocolError::UnknownCookie(cookie);
        let partial = self.partial.get_mut(&cookie).ok_or(unknown)?;
        let begin = skip as usize;
        let target = partial
            .bytes
            .get_mut(begin..begin + length)
            .ok_or(ProtocolError::ChunkRange)?;
        let early = self.input.unread();
        let count = early.len().min(length);
        let (first, rest) = target.split_at_mut(count);
        first.copy_from_slice(&early[..count]);
        self.input.taken(count);
        self.stream.read_exact(rest)?;
        // The length was a u32.
        self.replies.payload_taken(length as u32);
        Ok(())
    }

    /// Does one request alone, others in flight notwithstanding.
    fn ask(
        &mut self,
        command: Command,
        offset: u64,
        length: u32,
        flags: u16,
        payload: &[u8],
    ) -> Result<Completed, ClientError> {
        let cookie = self.start(command, offset, length, flags, payload)?;
        loop {
            let place = self.done.iter().position(|done| done.cookie == cookie);
            if let Some(done) = place.and_then(|place| self.done.remove(place)) {
                return match done.result {
                    Ok(()) => Ok(done),
                    Err((code, words)) => Err(ClientError::Failed { code, words }),
                };
            }
            self.receive()?;
        }
    }

    /// Reads `length` bytes.
    ///
    /// # Errors
    ///
    /// As all that follow: the request is not possible, failed, or the
    /// connection is lost.
    pub fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, ClientError> {
        let done = self.ask(Command::Read, offset, length, 0, &[])?;
        Ok(done.bytes)
    }

    /// Writes; durable when it returns with `force_unit_access`.
    ///
    /// # Errors
    ///
    /// As [`Client::read`].
    pub fn write(
        &mut self,
        offset: u64,
        bytes: &[u8],
        force_unit_access: bool,
    ) -> Result<(), ClientError> {
        let length = u32::try_from(bytes.len()).map_err(|_| Refusal::Range)?;
        let flags = if force_unit_access {
            command_flag::FUA
        } else {
            0
        };
        self.ask(Command::Write, offset, length, flags, bytes)?;
        Ok(())
    }

    /// Makes completed writes durable.
    ///
    /// # Errors
    ///
    /// As [`Client::read`].
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.ask(Command::Flush, 0, 0, 0, &[])?;
        Ok(())
    }

    /// Gives a range up.
    ///
    /// # Errors
    ///
    /// As [`Client::read`].
    pub fn trim(&mut self, offset: u64, length: u32) -> Result<(), ClientError> {
        self.ask(Command::Trim, offset, length, 0, &[])?;
        Ok(())
    }

    /// Fills a range with zeroes.
    ///
    /// # Errors
    ///
    /// As [`Client::read`].
    pub fn write_zeroes(&mut self, offset: u64, length: u32) -> Result<(), ClientError> {
        self.ask(Command::WriteZeroes, offset, length, 0, &[])?;
        Ok(())
    }

    /// The states of a range in each context that was granted, by its number.
    ///
    /// # Errors
    ///
    /// As [`Client::read`].
    pub fn block_status(
        &mut self,
        offset: u64,
        length: u32,
    ) -> Result<Vec<(u32, Vec<Extent>)>, ClientError> {
        let done = self.ask(Command::BlockStatus, offset, length, 0, &[])?;
        Ok(done.extents)
    }

    /// Waits for all that is in flight and says good-bye.
    ///
    /// # Errors
    ///
    /// The connection is lost.
    pub fn disconnect(mut self) -> Result<(), ClientError> {
        while self.wait()?.is_some() {}
        self.stream.write_all(&Window::disconnect())?;
        self.stream.flush()?;
        Ok(())
    }
}
