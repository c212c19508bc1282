//! The connection of one client: its handshake, then its requests.

use super::{
    Limits,
    channel::Channel,
    exports::Exports,
    outgoing::{Bounds, Outgoing, Run, held_bytes},
    polling::Polling,
    socket::Socket,
    table::Place,
    tls::TlsChannel,
};
use crate::export::{
    BASE_ALLOCATION, Buffer, BufferPool, Completions, ErrorCode, Export, Operation, Request,
    RequestFlags, STATE_HOLE, STATE_ZERO,
};
use raidlab_nbd::{
    Extent, ProtocolError,
    server::{self as nbd, HandshakeEvent, RequestEvent, Requests, Session, TlsPolicy},
    wire::{Command, command_flag},
};
use rustls::ServerConfig;
use std::{io, sync::Arc, thread, time::Duration};

/// The reason why a connection ended, other than by the client's disconnect request.
#[derive(Debug, thiserror::Error)]
pub enum ConnectionError {
    /// The socket failed, so the connection is lost.
    #[error("connection lost")]
    Lost(#[source] io::Error),
    /// The client broke the protocol.
    #[error("protocol violated")]
    Protocol(#[from] ProtocolError),
    /// The handshake took longer than the time limit.
    #[error("no handshake within {} s", .0.as_secs_f64())]
    Overdue(Duration),
    /// Too many other handshakes began while this one was not done.
    #[error("cut off in its handshake by {0} newer ones")]
    Displaced(usize),
    /// There are too many clients already.
    #[error("there are {0} clients already")]
    Full(usize),
    /// The client paused within a request, or took none of its replies, for too long.
    #[error("the client stopped in the middle of a request or of its replies")]
    Stalled,
}

impl From<io::Error> for ConnectionError {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The error of a blocking socket whose timeout has passed.
            io::ErrorKind::WouldBlock => Self::Stalled,
            _ => Self::Lost(error),
        }
    }
}

/// The parts of a server that every connection needs.
pub(super) struct Shared {
    pub exports: Exports,
    pub limits: Limits,
    pub tls: Option<Arc<ServerConfig>>,
    pub tls_policy: TlsPolicy,
    pub pool: BufferPool,
}

/// The most bytes of requests that are read at once.
const INPUT_BYTES: usize = 64 << 10;

/// The most bytes that are read behind a long write: most of the following bytes are payload of the
/// next one, better read straight into its own buffer.
const SHORT_INPUT_BYTES: usize = 512;

/// The length in bytes from which on a write is long.
const LONG_WRITE_BYTES: u32 = 16 << 10;

/// Serves a client until it disconnects.
pub(super) fn serve(
    shared: &Shared,
    socket: Arc<Socket>,
    place: &Place,
) -> Result<(), ConnectionError> {
    let mut input = Input {
        bytes: vec![0; INPUT_BYTES],
        begin: 0,
        end: 0,
    };
    let mut channel = Channel { socket, tls: None };
    let Some(session) = shake_hands(shared, &mut channel, &mut input, place)? else {
        channel.close();
        return Ok(());
    };
    let Some((_, export)) = shared.exports.get(&session.export.name) else {
        return Ok(());
    };
    let bounds = Bounds {
        requests: shared.limits.requests_in_flight,
        bytes: shared.limits.bytes_in_flight,
    };
    let pool = shared.pool.clone();
    let requests = Requests::new(&session);
    let outgoing = Arc::new(Outgoing::new(channel, session, pool, bounds));
    thread::scope(|scope| {
        let mut ending = Ending {
            outgoing: &outgoing,
            broken: true,
        };
        thread::Builder::new()
            .name(format!("nbd-{}-out", place.client))
            .spawn_scoped(scope, || outgoing.write_replies())?;
        let mut reader = Reader {
            outgoing: Arc::clone(&outgoing),
            completions: Arc::clone(&outgoing) as _,
            export: &**export,
            sparse: export.features().sparse && outgoing.session.structured,
            requests,
            input,
            client: place.client,
            corked: false,
            submitted: false,
            polling: Polling::default(),
        };
        let result = reader.read_requests();
        drop(reader);
        ending.broken = result.is_err();
        drop(ending);
        result
    })?;
    outgoing.channel.close();
    outgoing.sent().map_err(ConnectionError::from)
}

/// A guard that ends the writing thread once every request is answered, also after a panic of the
/// export, as that thread would be waited for without end.
struct Ending<'a> {
    outgoing: &'a Outgoing,
    broken: bool,
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        self.outgoing.finish(self.broken);
    }
}

/// Bytes that were read and not yet parsed.
struct Input {
    bytes: Vec<u8>,
    begin: usize,
    end: usize,
}

impl Input {
    fn unread(&self) -> &[u8] {
        &self.bytes[self.begin..self.end]
    }
}

/// Does the handshake; `None` if the client has given up.
fn shake_hands(
    shared: &Shared,
    channel: &mut Channel,
    input: &mut Input,
    place: &Place,
) -> Result<Option<Session>, ConnectionError> {
    let mut output = Vec::new();
    let mut handshake = nbd::Handshake::new(shared.tls_policy, &mut output);
    loop {
        send(channel, &mut output)?;
        let answered = handshake.receive(input.unread(), &shared.exports, &mut output);
        let (taken, event) = match answered {
            Ok(answered) => answered,
            Err(error) => {
                send(channel, &mut output)?;
                return Err(error.into());
            }
        };
        input.begin += taken;
        match event {
            Some(HandshakeEvent::Ready(session)) => {
                place.settle()?;
                channel.socket.set_timeout(shared.limits.stall_timeout)?;
                send(channel, &mut output)?;
                return Ok(Some(*session));
            }
            Some(HandshakeEvent::Aborted) => {
                // The client may have closed the connection already.
                let _ = send(channel, &mut output);
                return Ok(None);
            }
            Some(HandshakeEvent::StartTls) => {
                send(channel, &mut output)?;
                let Some(config) = &shared.tls else {
                    return Ok(None);
                };
                let tls = TlsChannel::accept(config, &channel.socket, input.unread())?;
                channel.tls = Some(tls);
                (input.begin, input.end) = (0, 0);
                handshake.secured();
            }
            None if taken > 0 || !output.is_empty() => {}
            None => {
                let count = channel.read(&mut input.bytes)?;
                (input.begin, input.end) = (0, count);
                if count == 0 {
                    return Ok(None);
                }
            }
        }
    }
}

fn send(channel: &Channel, output: &mut Vec<u8>) -> io::Result<()> {
    if !output.is_empty() {
        channel.write_all(&mut [io::IoSlice::new(output)])?;
        output.clear();
    }
    Ok(())
}

/// The reading thread's state during transmission.
struct Reader<'a> {
    outgoing: Arc<Outgoing>,
    completions: Arc<dyn Completions>,
    export: &'a dyn Export,
    sparse: bool,
    requests: Requests,
    input: Input,
    client: u32,
    corked: bool,
    submitted: bool,
    polling: Polling,
}

impl Reader<'_> {
    /// Reads requests until the client disconnects or ends its stream.
    fn read_requests(&mut self) -> Result<(), ConnectionError> {
        let mut length = INPUT_BYTES;
        loop {
            let (taken, event) = self.requests.next(self.input.unread())?;
            self.input.begin += taken;
            match event {
                Some(RequestEvent::Request(request)) => {
                    let long =
                        request.command == Command::Write && request.length >= LONG_WRITE_BYTES;
                    length = if long { SHORT_INPUT_BYTES } else { INPUT_BYTES };
                    if !self.request(request)? {
                        return Ok(());
                    }
                }
                Some(RequestEvent::Rejected(rejection)) => {
                    self.refuse(rejection.cookie, rejection.error, rejection.words);
                }
                Some(RequestEvent::Disconnect) => return Ok(()),
                None if taken > 0 => {}
                None => {
                    self.pause();
                    let count = self.read(length)?;
                    (self.input.begin, self.input.end) = (0, count);
                    if count == 0 {
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Reads at most `length` bytes of requests; 0 at the end.
    fn read(&mut self, length: usize) -> Result<usize, ConnectionError> {
        let Outgoing { channel, .. } = &*self.outgoing;
        let bytes = &mut self.input.bytes[..length];
        if self.outgoing.is_idle()
            && let Some(count) = self.polling.look(|| channel.read_now(bytes, &mut []))
        {
            return Ok(count);
        }
        loop {
            match self.polling.wait(|| channel.read(bytes)) {
                // An idle client may stay connected.
                Err(error)
                    if error.kind() == io::ErrorKind::WouldBlock && self.requests.is_between() => {}
                result => return Ok(result?),
            }
        }
    }

    /// Reads a part of a payload, which the client is about to send, into `target`, and perhaps
    /// more into `rest`.
    fn read_payload(
        polling: &mut Polling,
        channel: &Channel,
        target: &mut [u8],
        rest: &mut [u8],
    ) -> io::Result<usize> {
        match polling.look(|| channel.read_now(target, rest)) {
            Some(count) => Ok(count),
            None => polling.wait(|| channel.read_into(target, rest)),
        }
    }

    /// Starts the export and sends the replies, before any wait for the client.
    fn pause(&mut self) {
        if std::mem::take(&mut self.submitted) {
            self.export.submitted();
        }
        self.outgoing.uncork(&mut self.corked);
    }

    /// Waits until there is room for a request.
    fn make_room(&mut self, bytes: usize) {
        while !self.outgoing.has_room(bytes, &mut self.corked) {
            self.pause();
            self.outgoing.wait_for_room(bytes);
        }
    }

    fn refuse(&mut self, cookie: u64, error: ErrorCode, words: &str) {
        self.make_room(0);
        let mut bytes = Vec::new();
        let session = &self.outgoing.session;
        session.failed(cookie, error, words, &mut bytes);
        self.outgoing.reply(bytes);
    }

    /// Handles a request; returns false if the client's stream has ended.
    fn request(&mut self, request: nbd::Request) -> Result<bool, ConnectionError> {
        // Room is made before any memory is allocated.
        self.make_room(held_bytes(&request));
        let operation = match request.command {
            Command::Read => Operation::Read,
            Command::Write => Operation::Write,
            Command::Flush => Operation::Flush,
            Command::Trim => Operation::Trim,
            Command::WriteZeroes => Operation::WriteZeroes,
            Command::Cache => Operation::Cache,
            // The parser handles the disconnect request itself.
            Command::BlockStatus | Command::Disconnect => {
                self.block_status(&request);
                return Ok(true);
            }
        };
        let runs = if operation == Operation::Read {
            self.runs(&request)
        } else {
            Vec::new()
        };
        if runs.iter().any(|run| run.hole) && runs.len() == 1 {
            let head = self
                .outgoing
                .session
                .hole(&request, 0, request.length, true);
            self.outgoing.reply(head.to_vec());
            return Ok(true);
        }
        let flag = |flag: u16| request.flags & flag != 0;
        let flags = RequestFlags {
            force_unit_access: flag(command_flag::FUA),
            no_hole: flag(command_flag::NO_HOLE),
            fast_zero: flag(command_flag::FAST_ZERO),
        };
        let (offset, length) = (request.offset, request.length);
        let token = self.outgoing.begin(request, runs);
        let answer = (Arc::clone(&self.completions), token);
        // From here on the request owns its place among those in flight: when it is dropped, for
        // whatever reason, it is answered.
        let mut request = Request::new(operation, offset, length, flags, Buffer::empty(), answer);
        request.client = self.client;
        let buffer = match operation {
            Operation::Read | Operation::Write => self.outgoing.pool.take(length as usize),
            _ => Ok(Buffer::empty()),
        };
        let failed = buffer.is_err();
        request.buffer = buffer.unwrap_or_default();
        if operation == Operation::Write && !self.payload(&mut request.buffer)? {
            return Ok(false);
        }
        if failed {
            request.complete(Err(ErrorCode::OutOfMemory));
            return Ok(true);
        }
        // The right to send was given up during the wait for the payload.
        self.outgoing.cork(&mut self.corked);
        self.export.submit(request);
        self.submitted = true;
        Ok(true)
    }

    /// Reads a write's payload; without a buffer it is discarded. Returns false if the stream
    /// ends within it.
    fn payload(&mut self, buffer: &mut Buffer) -> Result<bool, ConnectionError> {
        let mut filled = 0;
        let mut nowhere = [0; SHORT_INPUT_BYTES];
        loop {
            let left = self.requests.payload_left() as usize;
            if left == 0 {
                return Ok(true);
            }
            let target = if buffer.is_empty() {
                let most = left.min(nowhere.len());
                &mut nowhere[..most]
            } else {
                &mut buffer[filled..]
            };
            let unread = self.input.unread();
            let count = if unread.is_empty() {
                self.pause();
                // Bytes that follow the payload are read along with it.
                let rest = &mut self.input.bytes[..SHORT_INPUT_BYTES];
                let long = target.len() == left;
                let rest = if long { rest } else { &mut [] };
                let channel = &self.outgoing.channel;
                let count = Self::read_payload(&mut self.polling, channel, target, rest)?;
                if count == 0 {
                    return Ok(false);
                }
                let beyond = count.saturating_sub(left.min(target.len()));
                (self.input.begin, self.input.end) = (0, beyond);
                count - beyond
            } else {
                let count = unread.len().min(target.len());
                target[..count].copy_from_slice(&unread[..count]);
                self.input.begin += count;
                count
            };
            filled += count;
            // At most `left`, which is a u32.
            self.requests.payload_taken(count as u32);
        }
    }

    /// Returns the runs of data and holes in a read; empty for a read without holes.
    fn runs(&self, request: &nbd::Request) -> Vec<Run> {
        let mut runs: Vec<Run> = Vec::new();
        if !self.sparse || request.dont_fragment() {
            return runs;
        }
        let mut extents = Vec::new();
        let (offset, length) = (request.offset, request.length);
        self.export
            .block_status(BASE_ALLOCATION, offset, length, MOST_RUNS, &mut extents);
        let mut left = u64::from(length);
        for extent in extents {
            let length = extent.length.min(left);
            left -= length;
            let hole = extent.flags == STATE_HOLE | STATE_ZERO;
            // At most the request's length, which is a u32.
            push_run(&mut runs, length as u32, hole);
        }
        push_run(&mut runs, left as u32, false);
        if runs.iter().any(|run| run.hole) {
            runs
        } else {
            Vec::new()
        }
    }

    fn block_status(&mut self, request: &nbd::Request) {
        let session = &self.outgoing.session;
        let limit = if request.one_extent() {
            1
        } else {
            Session::MAXIMUM_EXTENTS
        };
        let mut bytes = Vec::new();
        let count = session.contexts.len();
        for (index, context) in session.contexts.iter().enumerate() {
            let mut extents = Vec::new();
            let (offset, length) = (request.offset, request.length);
            self.export
                .block_status(&context.name, offset, length, limit, &mut extents);
            let extents = extents.iter().map(|extent| Extent {
                length: u32::try_from(extent.length).unwrap_or(u32::MAX),
                flags: extent.flags,
            });
            let done = index + 1 == count;
            session.status(request, context.id, extents, done, &mut bytes);
        }
        self.outgoing.reply(bytes);
    }
}

impl Drop for Reader<'_> {
    /// Starts the export and gives up the right to send, whatever ends the reader.
    fn drop(&mut self) {
        self.pause();
    }
}

/// The most runs of one read.
const MOST_RUNS: usize = 32;

fn push_run(runs: &mut Vec<Run>, length: u32, hole: bool) {
    match runs.last_mut() {
        _ if length == 0 => {}
        Some(last) if last.hole == hole => last.length += length,
        _ => runs.push(Run { length, hole }),
    }
}
