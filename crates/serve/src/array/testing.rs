//! A client of an export, for tests.

use super::owner::Watcher;
use crate::export::{
    Buffer, BufferPool, Completions, ErrorCode, Export, Operation, Request, RequestFlags,
};
use crossbeam_channel::{Receiver, Sender, unbounded};
use raidlab_array::Event;
use raidlab_units::Nanos;
use std::sync::Arc;

/// A watcher of an array that tells its events to nobody.
pub(crate) struct Nobody;

impl Watcher for Nobody {
    fn event(&mut self, _: Nanos, _: Event) {}
}

/// An answer: the token, the bytes, the result.
pub(crate) type Answered = (u64, Vec<u8>, Result<(), ErrorCode>);

struct Mailbox(Sender<Answered>);

impl Completions for Mailbox {
    fn completed(&self, token: u64, buffer: Buffer, result: Result<(), ErrorCode>) {
        // Nobody listens any more: the test is over.
        let _ = self.0.send((token, buffer.to_vec(), result));
    }
}

pub(crate) struct Client {
    mailbox: Arc<Mailbox>,
    answers: Receiver<Answered>,
    pool: BufferPool,
}

impl Client {
    pub(crate) fn new() -> Self {
        let (sender, answers) = unbounded();
        Self {
            mailbox: Arc::new(Mailbox(sender)),
            answers,
            pool: BufferPool::default(),
        }
    }

    /// Submits without waking the export; `payload` is what a write writes.
    pub(crate) fn send(
        &self,
        export: &dyn Export,
        token: u64,
        (operation, offset, length): (Operation, u64, u32),
        payload: &[u8],
        force_unit_access: bool,
    ) {
        let mut buffer = Buffer::empty();
        if matches!(operation, Operation::Read | Operation::Write) {
            buffer = self.pool.take(length as usize).expect("room");
        }
        if operation == Operation::Write {
            buffer.copy_from_slice(payload);
        }
        let flags = RequestFlags {
            force_unit_access,
            ..RequestFlags::default()
        };
        let answer: Arc<dyn Completions> = Arc::clone(&self.mailbox) as _;
        export.submit(Request::new(
            operation,
            offset,
            length,
            flags,
            buffer,
            (answer, token),
        ));
    }

    pub(crate) fn next(&self) -> Answered {
        self.answers
            .recv_timeout(std::time::Duration::from_secs(60))
            .expect("an answer")
    }

    /// One request from start to end.
    pub(crate) fn ask(
        &self,
        export: &dyn Export,
        request: (Operation, u64, u32),
        payload: &[u8],
    ) -> (Vec<u8>, Result<(), ErrorCode>) {
        self.send(export, 0, request, payload, false);
        export.submitted();
        let (_, bytes, result) = self.next();
        (bytes, result)
    }
}
