//! A small blocking NBD client for tests and examples, of any crate. Requests are started and
//! waited for: several may be in flight, and come back in the server's order. A server that
//! waits for its replies to be read may stop to read itself; therefore a write waits until no
//! read is in flight. It believes nothing of a reply that decides a test: which request it
//! answers, where its bytes belong, and that all of them came.

use raidlab_nbd::{
    BlockSizes, ErrorCode, Extent, SelectedContext, TransmissionFlags,
    wire::{self, Command, chunk, command_flag, info, option, reply},
};
use std::{
    collections::{BTreeMap, VecDeque},
    io::{self, Read, Write},
};

/// A connection's bytes.
pub trait Bytes: Read + Write + Send {}

impl<T: Read + Write + Send> Bytes for T {}

/// Why the client cannot go on, or a request failed.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// The connection broke, or was not made.
    #[error("connection lost")]
    Io(#[from] io::Error),
    /// The server refused an option of the handshake, by a reply of this type.
    #[error("the server refuses option {option} with {kind:#x}")]
    Refused { option: u32, kind: u32 },
    /// The server broke the protocol.
    #[error("the server breaks the protocol: {0}")]
    Protocol(&'static str),
    /// The server answered a request with an error and its words.
    #[error("the server answers: {code}: {words}")]
    Failed { code: ErrorCode, words: String },
}

/// What a client would like to agree on.
#[derive(Debug, Clone)]
pub struct Wishes {
    /// The export's name; empty for the default.
    pub export: String,
    /// Most requests in flight.
    pub depth: usize,
    /// Replies in chunks; without them there are no contexts.
    pub structured: bool,
    /// The metadata contexts that it asks for, such as `base:allocation`.
    pub contexts: Vec<String>,
}

impl Default for Wishes {
    fn default() -> Self {
        Self {
            export: String::new(),
            depth: 16,
            structured: true,
            contexts: vec!["base:allocation".to_owned()],
        }
    }
}

/// What was agreed on.
#[derive(Debug, Default)]
pub struct Session {
    pub size_bytes: u64,
    pub flags: TransmissionFlags,
    pub block_sizes: BlockSizes,
    pub description: String,
    pub structured: bool,
    pub contexts: Vec<SelectedContext>,
}

/// Takes `N` bytes of a message.
fn take<const N: usize>(message: &mut &[u8]) -> Result<[u8; N], ClientError> {
    let (first, rest) = message
        .split_first_chunk()
        .ok_or(ClientError::Protocol("a message is too short"))?;
    *message = rest;
    Ok(*first)
}

fn take_u32(message: &mut &[u8]) -> Result<u32, ClientError> {
    Ok(u32::from_be_bytes(take(message)?))
}

fn take_u64(message: &mut &[u8]) -> Result<u64, ClientError> {
    Ok(u64::from_be_bytes(take(message)?))
}

fn read<const N: usize>(stream: &mut dyn Bytes) -> Result<[u8; N], ClientError> {
    let mut bytes = [0; N];
    stream.read_exact(&mut bytes)?;
    Ok(bytes)
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A length and a string.
fn counted(text: &str) -> Vec<u8> {
    [&(text.len() as u32).to_be_bytes(), text.as_bytes()].concat()
}

/// A connection whose handshake has begun.
pub struct Handshake(Box<dyn Bytes>);

impl Handshake {
    /// Reads the greeting and answers it.
    pub fn new(mut stream: Box<dyn Bytes>) -> Result<Self, ClientError> {
        if read::<18>(&mut *stream)? != *b"NBDMAGICIHAVEOPT\0\x03" {
            return Err(ClientError::Protocol("no greeting of a newstyle server"));
        }
        stream.write_all(&3_u32.to_be_bytes())?;
        Ok(Self(stream))
    }

    /// Asks for an option; gives the types and bytes of the replies before the last.
    fn ask(&mut self, option: u32, data: &[u8]) -> Result<Vec<(u32, Vec<u8>)>, ClientError> {
        let mut message = wire::OPTION_MAGIC.to_be_bytes().to_vec();
        message.extend(option.to_be_bytes());
        message.extend((data.len() as u32).to_be_bytes());
        message.extend(data);
        self.0.write_all(&message)?;
        self.0.flush()?;
        let mut replies = Vec::new();
        loop {
            let head = read::<20>(&mut *self.0)?;
            let mut head = &head[..];
            if (take_u64(&mut head)?, take_u32(&mut head)?) != (wire::OPTION_REPLY_MAGIC, option) {
                return Err(ClientError::Protocol("a reply to another option"));
            }
            let kind = take_u32(&mut head)?;
            let mut data = vec![0; take_u32(&mut head)? as usize];
            self.0.read_exact(&mut data)?;
            match kind {
                reply::ACK => return Ok(replies),
                _ if kind & reply::ERROR_BIT != 0 => {
                    return Err(ClientError::Refused { option, kind });
                }
                _ => replies.push((kind, data)),
            }
        }
    }

    /// Asks for TLS; `secure` puts it on the connection.
    pub fn secured(
        mut self,
        secure: impl FnOnce(Box<dyn Bytes>) -> Result<Box<dyn Bytes>, ClientError>,
    ) -> Result<Self, ClientError> {
        self.ask(option::STARTTLS, &[])?;
        Ok(Self(secure(self.0)?))
    }

    /// Names and descriptions of the exports; the connection ends.
    pub fn list(mut self) -> Result<Vec<(String, String)>, ClientError> {
        let replies = self.ask(option::LIST, &[])?;
        self.ask(option::ABORT, &[])?;
        let names = replies.iter().map(|(_, data)| {
            let mut data = &data[..];
            let length = take_u32(&mut data)? as usize;
            let (name, description) = data
                .split_at_checked(length)
                .ok_or(ClientError::Protocol("a name is too short"))?;
            Ok((text(name), text(description)))
        });
        names.collect()
    }

    /// Agrees on everything and begins.
    pub fn go(mut self, wishes: &Wishes) -> Result<Client, ClientError> {
        let mut session = Session {
            structured: wishes.structured,
            ..Session::default()
        };
        if wishes.structured {
            self.ask(option::STRUCTURED_REPLY, &[])?;
        }
        if wishes.structured && !wishes.contexts.is_empty() {
            let mut query = counted(&wishes.export);
            query.extend((wishes.contexts.len() as u32).to_be_bytes());
            query.extend(wishes.contexts.iter().flat_map(|context| counted(context)));
            for (_, data) in self.ask(option::SET_META_CONTEXT, &query)? {
                let mut data = &data[..];
                session.contexts.push(SelectedContext {
                    id: take_u32(&mut data)?,
                    name: text(data),
                });
            }
        }
        let mut query = counted(&wishes.export);
        for word in [2, info::DESCRIPTION, info::BLOCK_SIZE] {
            query.extend(word.to_be_bytes());
        }
        for (_, data) in self.ask(option::GO, &query)? {
            let mut data = &data[..];
            match u16::from_be_bytes(take(&mut data)?) {
                info::EXPORT => {
                    session.size_bytes = take_u64(&mut data)?;
                    session.flags = TransmissionFlags(u16::from_be_bytes(take(&mut data)?));
                }
                info::DESCRIPTION => session.description = text(data),
                info::BLOCK_SIZE => {
                    session.block_sizes = BlockSizes {
                        minimum: take_u32(&mut data)?,
                        preferred: take_u32(&mut data)?,
                        maximum: take_u32(&mut data)?,
                    };
                }
                _ => {}
            }
        }
        Ok(Client::new(self.0, session, wishes.depth))
    }
}

/// A request, and what has come of it.
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
    command: Command,
    offset: u64,
    /// Bytes of a read that have not come.
    left: usize,
}

impl Completed {
    /// A part of a read.
    fn part(&mut self, offset: u64, length: usize) -> Result<&mut [u8], ClientError> {
        let begin = offset.wrapping_sub(self.offset) as usize;
        let left = self.left.checked_sub(length);
        let part = self
            .bytes
            .get_mut(begin..)
            .and_then(|rest| rest.get_mut(..length));
        let (Some(left), Some(part)) = (left, part) else {
            return Err(ClientError::Protocol("bytes outside of their read"));
        };
        self.left = left;
        Ok(part)
    }
}

/// A connection to an export.
pub struct Client {
    stream: Box<dyn Bytes>,
    session: Session,
    depth: usize,
    cookie: u64,
    in_flight: BTreeMap<u64, Completed>,
    done: VecDeque<Completed>,
}

impl Client {
    /// After the handshake.
    pub fn new(stream: Box<dyn Bytes>, session: Session, depth: usize) -> Self {
        Self {
            stream,
            session,
            depth,
            cookie: 0,
            in_flight: BTreeMap::new(),
            done: VecDeque::new(),
        }
    }

    /// What was agreed on.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Begins a request and gives its cookie; waits for its turn first. `payload` are a
    /// write's bytes.
    pub fn start(
        &mut self,
        command: Command,
        offset: u64,
        length: u32,
        flags: u16,
        payload: &[u8],
    ) -> Result<u64, ClientError> {
        let reads = |client: &Self| {
            let mut waiting = client.in_flight.values();
            command == Command::Write && waiting.any(|asked| asked.command == Command::Read)
        };
        while self.in_flight.len() >= self.depth || reads(self) {
            self.receive()?;
        }
        self.cookie += 1;
        let cookie = self.cookie;
        let left = if command == Command::Read {
            length as usize
        } else {
            0
        };
        let asked = Completed {
            cookie,
            result: Ok(()),
            // No bytes of a disk's, should some not come.
            bytes: vec![0xa5; left],
            extents: Vec::new(),
            command,
            offset,
            left,
        };
        self.in_flight.insert(cookie, asked);
        self.send(command, offset, length, flags, payload)?;
        Ok(cookie)
    }

    fn send(
        &mut self,
        command: Command,
        offset: u64,
        length: u32,
        flags: u16,
        payload: &[u8],
    ) -> Result<(), ClientError> {
        let mut message = wire::REQUEST_MAGIC.to_be_bytes().to_vec();
        message.extend(flags.to_be_bytes());
        message.extend((command as u16).to_be_bytes());
        message.extend(self.cookie.to_be_bytes());
        message.extend(offset.to_be_bytes());
        message.extend(length.to_be_bytes());
        message.extend(payload);
        self.stream.write_all(&message)?;
        Ok(self.stream.flush()?)
    }

    /// Waits for any request to be over; `None` if there is none.
    pub fn wait(&mut self) -> Result<Option<Completed>, ClientError> {
        while self.done.is_empty() && !self.in_flight.is_empty() {
            self.receive()?;
        }
        Ok(self.done.pop_front())
    }

    /// Takes in a reply, or a chunk of one.
    fn receive(&mut self) -> Result<(), ClientError> {
        let magic = u32::from_be_bytes(read(&mut *self.stream)?);
        let first = u32::from_be_bytes(read(&mut *self.stream)?);
        let cookie = u64::from_be_bytes(read(&mut *self.stream)?);
        let unknown = ClientError::Protocol("a reply to nothing that waits");
        let asked = self.in_flight.get_mut(&cookie).ok_or(unknown)?;
        let is_over = match magic {
            wire::SIMPLE_REPLY_MAGIC => {
                if first != 0 {
                    asked.result = Err((error_code(first), String::new()));
                } else if self.session.structured && asked.command == Command::Read {
                    return Err(ClientError::Protocol("a simple reply to a read"));
                } else {
                    let (offset, length) = (asked.offset, asked.left);
                    self.stream.read_exact(asked.part(offset, length)?)?;
                }
                true
            }
            wire::STRUCTURED_REPLY_MAGIC if self.session.structured => {
                let mut body = vec![0; u32::from_be_bytes(read(&mut *self.stream)?) as usize];
                self.stream.read_exact(&mut body)?;
                chunk(asked, first as u16, &body)?;
                (first >> 16) as u16 & chunk::FLAG_DONE != 0
            }
            _ => return Err(ClientError::Protocol("no reply begins like this")),
        };
        if is_over {
            if asked.result.is_ok() && asked.left > 0 {
                return Err(ClientError::Protocol("a read without all of its bytes"));
            }
            self.done.extend(self.in_flight.remove(&cookie));
        }
        Ok(())
    }

    /// Does one request alone, others in flight notwithstanding.
    pub fn ask(
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
    pub fn read(&mut self, offset: u64, length: u32) -> Result<Vec<u8>, ClientError> {
        Ok(self.ask(Command::Read, offset, length, 0, &[])?.bytes)
    }

    /// Writes; `durable` when it returns, if that is wished.
    pub fn write(&mut self, offset: u64, bytes: &[u8], durable: bool) -> Result<(), ClientError> {
        let flags = if durable { command_flag::FUA } else { 0 };
        self.ask(Command::Write, offset, bytes.len() as u32, flags, bytes)?;
        Ok(())
    }

    /// Makes completed writes durable.
    pub fn flush(&mut self) -> Result<(), ClientError> {
        self.ask(Command::Flush, 0, 0, 0, &[])?;
        Ok(())
    }

    /// Waits for all that is in flight and says good-bye.
    pub fn disconnect(mut self) -> Result<(), ClientError> {
        while self.wait()?.is_some() {}
        self.send(Command::Disconnect, 0, 0, 0, &[])
    }
}

/// Takes in a chunk of a structured reply.
fn chunk(asked: &mut Completed, kind: u16, mut body: &[u8]) -> Result<(), ClientError> {
    match kind {
        chunk::NONE => {}
        chunk::OFFSET_DATA => {
            let offset = take_u64(&mut body)?;
            asked.part(offset, body.len())?.copy_from_slice(body);
        }
        chunk::OFFSET_HOLE => {
            let (offset, length) = (take_u64(&mut body)?, take_u32(&mut body)?);
            asked.part(offset, length as usize)?.fill(0);
        }
        chunk::BLOCK_STATUS => {
            let context = take_u32(&mut body)?;
            let mut extents = Vec::new();
            while !body.is_empty() {
                let (length, flags) = (take_u32(&mut body)?, take_u32(&mut body)?);
                extents.push(Extent { length, flags });
            }
            asked.extents.push((context, extents));
        }
        kind if kind & chunk::ERROR_BIT != 0 => {
            let code = error_code(take_u32(&mut body)?);
            let words = usize::from(u16::from_be_bytes(take(&mut body)?));
            asked.result = Err((code, text(&body[..words.min(body.len())])));
        }
        _ => return Err(ClientError::Protocol("no chunk is of this type")),
    }
    Ok(())
}

/// The error of a number; one that is not known is taken for `EINVAL`.
fn error_code(number: u32) -> ErrorCode {
    use ErrorCode::{
        Invalid, Io, NoSpace, NotPermitted, NotSupported, OutOfMemory, Overflow, Shutdown,
    };
    [
        NotPermitted,
        Io,
        OutOfMemory,
        NoSpace,
        Overflow,
        NotSupported,
        Shutdown,
    ]
    .into_iter()
    .find(|code| code.number() == number)
    .unwrap_or(Invalid)
}
