//! Replies as they come over the wire, held against the requests that wait.

use super::{handshake::Session, window::Window};
use crate::{
    ErrorCode, Extent, ProtocolError, SelectedContext,
    strings::{Reader, gather},
    wire::{self, Command, MAXIMUM_STRING_BYTES, chunk},
};

/// What the server sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyEvent {
    /// `length` bytes of a read, from `skip` bytes into it, follow in the
    /// stream: [`Replies::payload_left`].
    Data {
        /// The request's cookie, as the server repeats it.
        cookie: u64,
        /// Bytes from the request's start.
        skip: u32,
        /// Number of bytes.
        length: u32,
    },
    /// A part of a read is all zeroes.
    Zeroes {
        /// The request's cookie, as the server repeats it.
        cookie: u64,
        /// Bytes from the request's start.
        skip: u32,
        /// Number of bytes.
        length: u32,
    },
    /// The states of one context, from the request's start on.
    Status {
        /// The request's cookie, as the server repeats it.
        cookie: u64,
        /// The context's number.
        context: u32,
        /// At least one.
        extents: Vec<Extent>,
    },
    /// The request is over.
    Done {
        /// The request's cookie, as the server repeats it.
        cookie: u64,
        /// How it ended; a read that succeeded has all of its bytes. Words of
        /// the server come with an error.
        result: Result<(), (ErrorCode, String)>,
    },
}

#[derive(Debug, Clone, Copy)]
struct Chunk {
    done: bool,
    kind: u16,
    cookie: u64,
    length: u32,
}

#[derive(Debug, Clone, Copy)]
enum State {
    Head,
    /// The chunk's own fields, this many bytes.
    Body(Chunk, usize),
    Payload {
        cookie: u64,
        left: u32,
        done: bool,
    },
    /// The last part of a reply was taken; the request is over.
    Done(u64),
}

/// The longest extents chunk that is taken: as many extents as 32 MiB of
/// 512-byte blocks.
const MAXIMUM_EXTENTS: u32 = 1 << 16;

/// Finds the replies in a server's bytes.
#[derive(Debug)]
pub struct Replies {
    structured: bool,
    contexts: Vec<SelectedContext>,
    state: State,
    partial: Vec<u8>,
}

impl Replies {
    /// For what `session` has agreed on.
    #[must_use]
    pub fn new(session: &Session) -> Self {
        Self {
            structured: session.structured,
            contexts: session.contexts.clone(),
            state: State::Head,
            partial: Vec::new(),
        }
    }

    /// Bytes of the last data event that are still to come; the caller moves
    /// them itself and tells by [`Replies::payload_taken`].
    #[must_use]
    pub fn payload_left(&self) -> u32 {
        match self.state {
            State::Payload { left, .. } => left,
            _ => 0,
        }
    }

    /// The caller has moved `count` bytes of payload out of the stream.
    pub fn payload_taken(&mut self, count: u32) {
        if let State::Payload { cookie, left, done } = &mut self.state {
            *left = left.saturating_sub(count);
            if *left == 0 {
                self.state = if *done {
                    State::Done(*cookie)
                } else {
                    State::Head
                };
            }
        }
    }

    /// Takes bytes up to the next event; gives how many. No event means that
    /// more bytes are needed (with nothing taken: or that a payload must be
    /// moved first). To be called once more without bytes after a payload.
    ///
    /// # Errors
    ///
    /// The server broke the protocol; close.
    pub fn next(
        &mut self,
        input: &[u8],
        window: &mut Window,
    ) -> Result<(usize, Option<ReplyEvent>), ProtocolError> {
        match self.state {
            State::Head => self.head(input, window),
            State::Body(chunk, wanted) => {
                let (taken, complete) = gather(&mut self.partial, input, wanted);
                if !complete {
                    return Ok((taken, None));
                }
                let body = std::mem::take(&mut self.partial);
                let event = self.body(chunk, &body, window)?;
                // The memory is used again.
                self.partial = body;
                self.partial.clear();
                Ok((taken, event))
            }
            State::Payload { .. } => Ok((0, None)),
            State::Done(cookie) => {
                self.state = State::Head;
                Ok((0, Some(finish(cookie, window)?)))
            }
        }
    }

    fn head(
        &mut self,
        input: &[u8],
        window: &mut Window,
    ) -> Result<(usize, Option<ReplyEvent>), ProtocolError> {
        let (mut taken, complete) = gather(&mut self.partial, input, 4);
        if !complete {
            return Ok((taken, None));
        }
        let magic = Reader(&self.partial).u32().unwrap_or(0);
        let wanted = match magic {
            wire::SIMPLE_REPLY_MAGIC => wire::SIMPLE_REPLY_BYTES,
            wire::STRUCTURED_REPLY_MAGIC if self.structured => wire::CHUNK_BYTES,
            _ => return Err(ProtocolError::ReplyMagic(magic)),
        };
        let (more, complete) = gather(&mut self.partial, &input[taken..], wanted);
        taken += more;
        if !complete {
            return Ok((taken, None));
        }
        let mut reader = Reader(&self.partial[4..]);
        let first = reader.u32().unwrap_or(0);
        let cookie = reader.u64().unwrap_or(0);
        let length = reader.u32().unwrap_or(0);
        self.partial.clear();
        if magic == wire::SIMPLE_REPLY_MAGIC {
            return Ok((taken, self.simple(cookie, first, window)?));
        }
        let chunk = Chunk {
            done: (first >> 16) as u16 & chunk::FLAG_DONE != 0,
            kind: first as u16,
            cookie,
            length,
        };
        Ok((taken, self.chunk(chunk, window)?))
    }

    fn simple(
        &mut self,
        cookie: u64,
        error: u32,
        window: &mut Window,
    ) -> Result<Option<ReplyEvent>, ProtocolError> {
        let pending = window.pending(cookie)?;
        if error != 0 {
            pending.failed = Some((ErrorCode::from_number(error), String::new()));
            return finish(cookie, window).map(Some);
        }
        match pending.command {
            Command::Read if self.structured => {
                Err(ProtocolError::ReplyMagic(wire::SIMPLE_REPLY_MAGIC))
            }
            Command::Read => {
                let length = pending.length;
                pending.cover(0, length)?;
                Ok(Some(self.data(cookie, 0, length, true)))
            }
            Command::BlockStatus => Err(ProtocolError::ReplyMagic(wire::SIMPLE_REPLY_MAGIC)),
            _ => finish(cookie, window).map(Some),
        }
    }

    fn data(&mut self, cookie: u64, skip: u32, length: u32, done: bool) -> ReplyEvent {
        self.state = State::Payload {
            cookie,
            left: length,
            done,
        };
        ReplyEvent::Data {
            cookie,
            skip,
            length,
        }
    }

    /// A chunk's header has come: how many bytes of fields follow?
    fn chunk(
        &mut self,
        chunk: Chunk,
        window: &mut Window,
    ) -> Result<Option<ReplyEvent>, ProtocolError> {
        let Chunk { kind, length, .. } = chunk;
        let pending = window.pending(chunk.cookie)?;
        let malformed = Err(ProtocolError::Chunk { kind, length });
        let is_read = pending.command == Command::Read;
        let wanted = match kind {
            chunk::NONE if length == 0 && chunk.done => {
                return finish(chunk.cookie, window).map(Some);
            }
            chunk::OFFSET_DATA if is_read && length >= 9 && length - 8 <= pending.length => 8,
            chunk::OFFSET_HOLE if is_read && length == 12 => 12,
            chunk::BLOCK_STATUS
                if pending.command == Command::BlockStatus
                    && length >= 12
                    && (length - 4).is_multiple_of(8)
                    && length <= 4 + 8 * MAXIMUM_EXTENTS =>
            {
                length as usize
            }
            kind if kind & chunk::ERROR_BIT != 0
                && length >= 6
                && length as usize <= 2 * MAXIMUM_STRING_BYTES =>
            {
                length as usize
            }
            _ => return malformed,
        };
        self.state = State::Body(chunk, wanted);
        Ok(None)
    }

    /// A chunk's fields have come.
    fn body(
        &mut self,
        chunk: Chunk,
        body: &[u8],
        window: &mut Window,
    ) -> Result<Option<ReplyEvent>, ProtocolError> {
        let Chunk {
            done,
            kind,
            cookie,
            length,
        } = chunk;
        let malformed = ProtocolError::Chunk { kind, length };
        self.state = if done {
            State::Done(cookie)
        } else {
            State::Head
        };
        let pending = window.pending(cookie)?;
        let mut reader = Reader(body);
        if kind & chunk::ERROR_BIT != 0 {
            let (number, words) = parse_error(&mut reader).ok_or(malformed)?;
            pending.failed = Some((ErrorCode::from_number(number), words));
            return if done {
                self.over(cookie, window)
            } else {
                Ok(None)
            };
        }
        if kind == chunk::BLOCK_STATUS {
            let context = reader.u32().unwrap_or(0);
            let extents = parse_extents(&mut reader, pending.length).ok_or(malformed.clone())?;
            if !self.contexts.iter().any(|known| known.id == context) {
                return Err(malformed);
            }
            return Ok(Some(ReplyEvent::Status {
                cookie,
                context,
                extents,
            }));
        }
        let offset = reader.u64().unwrap_or(0);
        let skip = offset
            .checked_sub(pending.offset)
            .and_then(|skip| u32::try_from(skip).ok())
            .ok_or(ProtocolError::ChunkRange)?;
        if kind == chunk::OFFSET_DATA {
            pending.cover(skip, length - 8)?;
            return Ok(Some(self.data(cookie, skip, length - 8, done)));
        }
        let length = reader.u32().unwrap_or(0);
        pending.cover(skip, length)?;
        Ok(Some(ReplyEvent::Zeroes {
            cookie,
            skip,
            length,
        }))
    }

    fn over(
        &mut self,
        cookie: u64,
        window: &mut Window,
    ) -> Result<Option<ReplyEvent>, ProtocolError> {
        self.state = State::Head;
        finish(cookie, window).map(Some)
    }
}

fn finish(cookie: u64, window: &mut Window) -> Result<ReplyEvent, ProtocolError> {
    let pending = window.finish(cookie)?;
    let result = match pending.failed {
        Some(error) => Err(error),
        None if pending.command == Command::Read && !pending.is_covered() => {
            return Err(ProtocolError::ShortRead);
        }
        None => Ok(()),
    };
    Ok(ReplyEvent::Done { cookie, result })
}

/// Number and words; what follows (an offset) is not needed.
fn parse_error(reader: &mut Reader<'_>) -> Option<(u32, String)> {
    let number = reader.u32().filter(|&number| number != 0)?;
    let length = reader.u16()?;
    let words = reader.0.get(..usize::from(length))?;
    Some((number, String::from_utf8_lossy(words).into_owned()))
}

/// Extents whose sum, without the last, lies within `length`.
fn parse_extents(reader: &mut Reader<'_>, length: u32) -> Option<Vec<Extent>> {
    let mut extents = Vec::new();
    let mut sum = 0_u64;
    while !reader.is_empty() {
        let (extent, flags) = (reader.u32()?, reader.u32()?);
        if extent == 0 || sum >= u64::from(length) {
            return None;
        }
        sum += u64::from(extent);
        extents.push(Extent {
            length: extent,
            flags,
        });
    }
    Some(extents)
}
