//! Requests as they come over the wire, checked against the agreed terms.
//!
//! A request that breaks a rule is a [`Rejection`], to be answered with its error; the payload of a
//! rejected write is skipped first, whatever its length, without being stored. Only a wrong magic
//! ends the connection, since the boundaries of later requests are unknown then.

use super::agreed::Session;
use crate::{
    ErrorCode, ProtocolError, TransmissionFlags,
    strings::{Reader, gather},
    wire::{self, Command, command_flag},
};

/// A request that keeps the rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// The operation; never [`Command::Disconnect`].
    pub command: Command,
    /// The number by which the client knows the request, repeated in the reply.
    pub cookie: u64,
    /// The first byte of the request's range in the export.
    pub offset: u64,
    /// Number of bytes; 0 for a flush only.
    pub length: u32,
    /// The flags of the command, as in [`wire::command_flag`].
    pub flags: u16,
}

impl Request {
    /// Whether a write must be durable before it is answered.
    #[must_use]
    pub const fn force_unit_access(&self) -> bool {
        self.flags & command_flag::FUA != 0
    }

    /// Whether a read must be answered with one chunk of content at most.
    #[must_use]
    pub const fn dont_fragment(&self) -> bool {
        self.flags & command_flag::DF != 0
    }

    /// Whether block status is to report at most one extent per context.
    #[must_use]
    pub const fn one_extent(&self) -> bool {
        self.flags & command_flag::REQ_ONE != 0
    }
}

/// A request that breaks a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rejection {
    /// The number by which the client knows the request, repeated in the reply.
    pub cookie: u64,
    /// The error with which the request is to be answered.
    pub error: ErrorCode,
    /// The rule that was broken, for a human reader.
    pub words: &'static str,
}

/// An event in the client's stream of requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestEvent {
    /// A request to be served. A write's payload follows: [`Requests::payload_left`].
    Request(Request),
    /// A request to be answered with an error.
    Rejected(Rejection),
    /// No more requests follow: answer what is in flight and close.
    Disconnect,
}

#[derive(Debug)]
enum State {
    Header,
    Payload(u32),
    Skip(u32, Rejection),
    Over,
}

/// The parser of a client's stream of requests.
#[derive(Debug)]
pub struct Requests {
    size_bytes: u64,
    flags: TransmissionFlags,
    minimum: u32,
    maximum: u32,
    structured: bool,
    has_contexts: bool,
    state: State,
    partial: Vec<u8>,
}

impl Requests {
    /// A parser that follows the terms of `session`.
    #[must_use]
    pub fn new(session: &Session) -> Self {
        let sizes = session.export.block_sizes;
        Self {
            size_bytes: session.export.size_bytes,
            flags: session.export.flags,
            minimum: sizes.minimum.max(1),
            maximum: sizes.maximum.min(wire::MAXIMUM_PAYLOAD_BYTES),
            structured: session.structured,
            has_contexts: !session.contexts.is_empty(),
            state: State::Header,
            partial: Vec::new(),
        }
    }

    /// Whether the stream stands between two requests: no byte of the next one
    /// has been taken, and the last one has come with all of its payload.
    #[must_use]
    pub fn is_between(&self) -> bool {
        matches!(self.state, State::Header) && self.partial.is_empty()
    }

    /// Returns the bytes of the last write's payload that are still to come; the caller moves them
    /// itself and reports them to [`Requests::payload_taken`].
    #[must_use]
    pub fn payload_left(&self) -> u32 {
        match self.state {
            State::Payload(left) => left,
            _ => 0,
        }
    }

    /// Tells the parser that the caller has moved `count` bytes of payload out of the stream.
    pub fn payload_taken(&mut self, count: u32) {
        if let State::Payload(left) = &mut self.state {
            *left = left.saturating_sub(count);
            if *left == 0 {
                self.state = State::Header;
            }
        }
    }

    /// Takes bytes up to the next event; returns how many, and the event. No event means that more
    /// bytes are needed, or that a payload must be moved first.
    ///
    /// # Errors
    ///
    /// The stream has no request where one must begin; close the connection.
    #[inline]
    pub fn next(&mut self, input: &[u8]) -> Result<(usize, Option<RequestEvent>), ProtocolError> {
        match self.state {
            State::Header => {
                if self.partial.is_empty()
                    && let Some(header) = input.first_chunk()
                {
                    let event = self.header(header)?;
                    return Ok((wire::REQUEST_BYTES, event));
                }
                let (taken, complete) = gather(&mut self.partial, input, wire::REQUEST_BYTES);
                let mut event = None;
                if complete && let Some(&header) = self.partial.first_chunk() {
                    self.partial.clear();
                    event = self.header(&header)?;
                }
                Ok((taken, event))
            }
            State::Skip(left, rejection) => {
                let taken = input.len().min(left as usize);
                // `taken` is at most `left`, which is a u32.
                let left = left - taken as u32;
                if left > 0 {
                    self.state = State::Skip(left, rejection);
                    return Ok((taken, None));
                }
                self.state = State::Header;
                Ok((taken, Some(RequestEvent::Rejected(rejection))))
            }
            State::Payload(_) | State::Over => Ok((0, None)),
        }
    }

    /// Parses a header. A rejected write gives no event yet: its payload comes first.
    fn header(
        &mut self,
        header: &[u8; wire::REQUEST_BYTES],
    ) -> Result<Option<RequestEvent>, ProtocolError> {
        let mut reader = Reader(header);
        let mut word = || reader.u32().unwrap_or(0);
        let magic = word();
        if magic != wire::REQUEST_MAGIC {
            return Err(ProtocolError::RequestMagic(magic));
        }
        let flags_and_type = word();
        let (flags, number) = ((flags_and_type >> 16) as u16, flags_and_type as u16);
        let mut double = || u64::from(word()) << 32 | u64::from(word());
        let (cookie, offset) = (double(), double());
        let length = word();
        let command = Command::from_number(number);
        if command == Some(Command::Disconnect) {
            self.state = State::Over;
            return Ok(Some(RequestEvent::Disconnect));
        }
        let checked = match command {
            Some(command) => {
                let request = Request {
                    command,
                    cookie,
                    offset,
                    length,
                    flags,
                };
                self.check(&request).map(|()| request)
            }
            None => Err((ErrorCode::Invalid, "unknown command")),
        };
        let is_write = command == Some(Command::Write);
        match checked {
            Ok(request) => {
                if is_write {
                    self.state = State::Payload(length);
                }
                Ok(Some(RequestEvent::Request(request)))
            }
            Err((error, words)) => {
                let rejection = Rejection {
                    cookie,
                    error,
                    words,
                };
                if is_write && length > 0 {
                    self.state = State::Skip(length, rejection);
                    return Ok(None);
                }
                Ok(Some(RequestEvent::Rejected(rejection)))
            }
        }
    }

    fn check(&self, request: &Request) -> Result<(), (ErrorCode, &'static str)> {
        use TransmissionFlags as Can;
        let invalid = |words| Err((ErrorCode::Invalid, words));
        let command = request.command;
        if command.is_write() && self.flags.contains(Can::READ_ONLY) {
            return Err((ErrorCode::NotPermitted, "the export is read-only"));
        }
        if request.flags & !self.allowed_flags(command) != 0 {
            return invalid("a flag that this command or export does not take");
        }
        let offered = match command {
            Command::Flush => self.flags.contains(Can::SEND_FLUSH),
            Command::Trim => self.flags.contains(Can::SEND_TRIM),
            Command::WriteZeroes => self.flags.contains(Can::SEND_WRITE_ZEROES),
            Command::Cache => self.flags.contains(Can::SEND_CACHE),
            Command::BlockStatus => self.has_contexts,
            _ => true,
        };
        if !offered {
            return invalid("the export does not take this command");
        }
        if command == Command::Flush {
            if request.offset != 0 || request.length != 0 {
                return invalid("a flush has no range");
            }
            return Ok(());
        }
        if request.length == 0 {
            return invalid("an empty range");
        }
        match request.offset.checked_add(u64::from(request.length)) {
            Some(end) if end <= self.size_bytes => {}
            _ if command.is_write() => {
                return Err((ErrorCode::NoSpace, "beyond the export's end"));
            }
            _ => return invalid("beyond the export's end"),
        }
        if matches!(command, Command::Read | Command::Write) && request.length > self.maximum {
            return invalid("longer than the export's maximum block size");
        }
        let minimum = u64::from(self.minimum);
        if !request.offset.is_multiple_of(minimum)
            || !u64::from(request.length).is_multiple_of(minimum)
        {
            return invalid("not a multiple of the export's minimum block size");
        }
        Ok(())
    }

    fn allowed_flags(&self, command: Command) -> u16 {
        use TransmissionFlags as Can;
        // Some clients set FUA on every request, so it is allowed on all.
        let mut allowed = if self.flags.contains(Can::SEND_FUA) {
            command_flag::FUA
        } else {
            0
        };
        match command {
            Command::Read if self.structured => allowed |= command_flag::DF,
            Command::WriteZeroes => {
                allowed |= command_flag::NO_HOLE;
                if self.flags.contains(Can::SEND_FAST_ZERO) {
                    allowed |= command_flag::FAST_ZERO;
                }
            }
            Command::BlockStatus => allowed |= command_flag::REQ_ONE,
            _ => {}
        }
        allowed
    }
}
