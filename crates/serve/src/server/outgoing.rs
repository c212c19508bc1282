//! Requests in flight and the replies on their way out.
//!
//! A reply is queued by the thread that completes its request. At any moment at most one thread
//! sends: the reading thread while it goes through a batch of requests (an export that answers at
//! once then costs no change of thread, and the replies of a batch leave in one system call),
//! otherwise the connection's writing thread. The count of requests in flight falls only when a
//! reply has left, so a client that does not read its replies is no longer read from.

use super::channel::Channel;
use crate::export::{Buffer, BufferPool, Completions, ErrorCode};
use raidlab_nbd::{
    server::{Head, Request, Session},
    wire::Command,
};
use std::{
    collections::VecDeque,
    io::{self, IoSlice},
    net::Shutdown,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
};

/// A part of a read: `length` bytes, zeroes or not.
#[derive(Debug, Clone, Copy)]
pub(super) struct Run {
    pub length: u32,
    pub hole: bool,
}

/// The bounds of requests in flight on one connection.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bounds {
    pub requests: usize,
    pub bytes: usize,
}

/// A request that the export is working on.
struct Slot {
    request: Request,
    /// For a read with holes: the runs of data and of holes that the reply has.
    runs: Vec<Run>,
}

enum Reply {
    /// A head, and the whole buffer after it.
    Whole(Head, Buffer),
    /// A head in bytes without a payload.
    Bytes(Vec<u8>),
    /// Several heads, each with its part of the buffer.
    Parts(Vec<(Head, std::ops::Range<usize>)>, Buffer),
}

impl Reply {
    fn slices(&self) -> usize {
        match self {
            Self::Whole(..) => 2,
            Self::Bytes(_) => 1,
            Self::Parts(parts, _) => 2 * parts.len(),
        }
    }

    fn payload_bytes(&self) -> usize {
        match self {
            Self::Whole(_, buffer) | Self::Parts(_, buffer) => buffer.len(),
            Self::Bytes(_) => 0,
        }
    }

    fn put<'a>(&'a self, parts: &mut Vec<IoSlice<'a>>) {
        match self {
            Self::Whole(head, buffer) => {
                parts.push(IoSlice::new(head));
                if !buffer.is_empty() {
                    parts.push(IoSlice::new(buffer));
                }
            }
            Self::Bytes(bytes) => parts.push(IoSlice::new(bytes)),
            Self::Parts(heads, buffer) => {
                for (head, range) in heads {
                    parts.push(IoSlice::new(head));
                    if !range.is_empty() {
                        parts.push(IoSlice::new(&buffer[range.clone()]));
                    }
                }
            }
        }
    }
}

#[derive(Default)]
struct State {
    slots: Vec<Option<Slot>>,
    free: Vec<u32>,
    queue: VecDeque<(Reply, usize)>,
    queued_bytes: usize,
    /// Whether a thread sends, or will before it waits for anything.
    sending: bool,
    /// The number of requests and bytes from their arrival until their replies have left.
    requests: usize,
    bytes: usize,
    reader_waits: bool,
    /// Whether the other side is gone, so that replies are dropped.
    broken: bool,
    /// The error of a failed send, until it is reported.
    failure: Option<io::Error>,
    /// Whether the reader has ended, so that no more requests come.
    closing: bool,
}

impl State {
    fn has_room(&self, bytes: usize, bounds: Bounds) -> bool {
        self.requests == 0 || self.requests < bounds.requests && self.bytes + bytes <= bounds.bytes
    }

    fn push(&mut self, reply: Reply, bytes: usize) {
        self.queued_bytes += reply.payload_bytes();
        self.queue.push_back((reply, bytes));
    }
}

/// The queued bytes beyond which replies are sent in the middle of a batch: their buffers are still
/// in the cache, and soon free again.
const SEND_BYTES: usize = 256 << 10;

/// The most slices of one system call.
const MOST_SLICES: usize = 128;

/// One connection's requests and replies.
pub(super) struct Outgoing {
    pub channel: Channel,
    pub session: Session,
    pub pool: BufferPool,
    bounds: Bounds,
    state: Mutex<State>,
    /// Signals queued replies to the writing thread.
    replies: Condvar,
    /// Signals room, and at last the end, to the reading thread.
    room: Condvar,
}

impl Outgoing {
    pub fn new(channel: Channel, session: Session, pool: BufferPool, bounds: Bounds) -> Self {
        Self {
            channel,
            session,
            pool,
            bounds,
            state: Mutex::default(),
            replies: Condvar::new(),
            room: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether there is room for one more request with `bytes` bytes. If so, the caller
    /// gets the right to send if no thread has it; `corked` tells whether it has. If not, it should
    /// pause, then wait.
    pub fn has_room(&self, bytes: usize, corked: &mut bool) -> bool {
        let mut state = self.lock();
        if *corked && state.queued_bytes >= SEND_BYTES {
            state = self.send(state);
            *corked = false;
        }
        if !state.has_room(bytes, self.bounds) {
            return false;
        }
        if !state.sending {
            state.sending = true;
            *corked = true;
        }
        true
    }

    /// Gives the caller the right to send if no thread has it, so that an immediate answer leaves
    /// together with the following ones.
    pub fn cork(&self, corked: &mut bool) {
        let mut state = self.lock();
        if !state.sending {
            state.sending = true;
            *corked = true;
        }
    }

    /// Whether every request has been answered, and the reply has left.
    pub fn is_idle(&self) -> bool {
        self.lock().requests == 0
    }

    /// Waits until there is room; the caller must not have the right to send.
    pub fn wait_for_room(&self, bytes: usize) {
        let mut state = self.lock();
        while !state.has_room(bytes, self.bounds) {
            state.reader_waits = true;
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        state.reader_waits = false;
    }

    /// Stores a request for which there is room, and returns its token.
    pub fn begin(&self, request: Request, runs: Vec<Run>) -> u64 {
        let mut state = self.lock();
        state.requests += 1;
        state.bytes += held_bytes(&request);
        let slot = Some(Slot { request, runs });
        match state.free.pop() {
            Some(token) => {
                state.slots[token as usize] = slot;
                u64::from(token)
            }
            None => {
                state.slots.push(slot);
                state.slots.len() as u64 - 1
            }
        }
    }

    /// Queues a reply that needed no export, and for which there is room.
    pub fn reply(&self, bytes: Vec<u8>) {
        let mut state = self.lock();
        let held = bytes.len();
        state.requests += 1;
        state.bytes += held;
        state.push(Reply::Bytes(bytes), held);
        if !state.sending {
            self.replies.notify_one();
        }
    }

    /// Sends the queued replies and takes the right to send from the caller.
    pub fn uncork(&self, corked: &mut bool) {
        if std::mem::take(corked) {
            drop(self.send(self.lock()));
        }
    }

    /// Sends the queued replies; the caller has the right to and loses it.
    fn send<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        while !state.queue.is_empty() && !state.broken {
            let mut batch = Vec::with_capacity(state.queue.len().min(MOST_SLICES / 2));
            let (mut slices, mut payload) = (0, 0);
            while let Some((reply, _)) = state.queue.front() {
                if slices > 0 && (slices + reply.slices() > MOST_SLICES || payload >= SEND_BYTES) {
                    break;
                }
                slices += reply.slices();
                payload += reply.payload_bytes();
                batch.extend(state.queue.pop_front());
            }
            state.queued_bytes -= payload;
            drop(state);
            let mut parts = Vec::with_capacity(slices);
            batch.iter().for_each(|(reply, _)| reply.put(&mut parts));
            let sent = self.channel.write_all(&mut parts);
            let requests = batch.len();
            let bytes: usize = batch.iter().map(|(_, bytes)| bytes).sum();
            // Buffers return to the pool without the lock.
            drop(batch);
            state = self.lock();
            state.requests -= requests;
            state.bytes -= bytes;
            if let Err(error) = sent {
                state.failure = Some(error);
                self.break_off(&mut state);
            }
            if state.reader_waits {
                self.room.notify_one();
            }
        }
        self.drop_if_broken(&mut state);
        state.sending = false;
        state
    }

    fn break_off(&self, state: &mut State) {
        state.broken = true;
        self.channel.socket.shutdown(Shutdown::Both);
    }

    fn drop_if_broken(&self, state: &mut State) {
        if !state.broken {
            return;
        }
        for (_, bytes) in std::mem::take(&mut state.queue) {
            state.requests -= 1;
            state.bytes -= bytes;
        }
        state.queued_bytes = 0;
        self.room.notify_one();
    }

    /// The writing thread: sends replies that other threads have queued until the
    /// connection is over.
    pub fn write_replies(&self) {
        let mut state = self.lock();
        loop {
            while state.sending || state.queue.is_empty() {
                if state.closing && state.requests == 0 {
                    return;
                }
                state = self
                    .replies
                    .wait(state)
                    .unwrap_or_else(PoisonError::into_inner);
            }
            state.sending = true;
            state = self.send(state);
        }
    }

    /// Waits, when no more requests come, until all are answered. `broken`: the client can no
    /// longer take the answers.
    pub fn finish(&self, broken: bool) {
        let mut state = self.lock();
        state.closing = true;
        if broken {
            self.break_off(&mut state);
        }
        self.replies.notify_one();
        while state.requests > 0 {
            if !state.sending {
                self.drop_if_broken(&mut state);
                if state.requests == 0 {
                    break;
                }
            }
            state.reader_waits = true;
            state = self
                .room
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
        self.replies.notify_one();
    }

    /// Returns whether all replies were sent, once the connection is over.
    pub fn sent(&self) -> io::Result<()> {
        self.lock().failure.take().map_or(Ok(()), Err)
    }

    /// Returns the reply to a request that an export has answered.
    fn answer(&self, slot: &Slot, buffer: Buffer, result: Result<(), ErrorCode>) -> Reply {
        let Slot { request, runs } = slot;
        if let Err(error) = result {
            let mut bytes = Vec::new();
            let words = error.to_string();
            self.session
                .failed(request.cookie, error, &words, &mut bytes);
            return Reply::Bytes(bytes);
        }
        if request.command != Command::Read {
            return Reply::Whole(self.session.succeeded(request.cookie), Buffer::empty());
        }
        if runs.is_empty() {
            let head = self.session.data(request, 0, request.length, true);
            return Reply::Whole(head, buffer);
        }
        let mut skip = 0;
        let mut parts = Vec::with_capacity(runs.len());
        for (index, &Run { length, hole }) in runs.iter().enumerate() {
            let done = index + 1 == runs.len();
            parts.push(if hole {
                (self.session.hole(request, skip, length, done), 0..0)
            } else {
                let range = skip as usize..(skip + length) as usize;
                (self.session.data(request, skip, length, done), range)
            });
            skip += length;
        }
        Reply::Parts(parts, buffer)
    }
}

impl Completions for Outgoing {
    fn completed(&self, token: u64, buffer: Buffer, result: Result<(), ErrorCode>) {
        let mut state = self.lock();
        // Tokens come from `begin` and each request answers once.
        let Some(slot) = state.slots[token as usize].take() else {
            return;
        };
        state.free.push(token as u32);
        let reply = self.answer(&slot, buffer, result);
        state.push(reply, held_bytes(&slot.request));
        if !state.sending {
            self.replies.notify_one();
            if state.closing {
                self.room.notify_one();
            }
        }
    }
}

/// Returns the bytes of payload that a request holds until its reply has left.
pub(super) fn held_bytes(request: &Request) -> usize {
    match request.command {
        Command::Read | Command::Write => request.length as usize,
        _ => 0,
    }
}
