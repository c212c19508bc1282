//! The one thread that owns an array: its core, its members, its bytes.
//!
//! It takes all requests and answers that are there, feeds them to the core,
//! does what the core wants (steps, commands, answers, events, in this order),
//! and only then calls the kernel, once, to send all commands and to wait for
//! the next completion, the next request or the next tick.

use super::engine::{Core, place_of};
use super::payloads::{PayloadError, Payloads, length};
use super::requests::Requests;
use crate::export::{self, ErrorCode};
use crate::member::{Answer, Members, Transfer, Waker};
use crossbeam_channel::Receiver;
use raidlab_array::mutation::{self, Mutation};
use raidlab_array::{
    BufferId, CommandId, Event, MemberCommand, MemberError, Operation, Outputs, RequestError,
};
use raidlab_units::{Nanos, SECTOR_BYTES};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// What reaches the owner from other threads.
pub(super) enum Message {
    Request(export::Request),
    Call(Box<dyn FnOnce(&mut Owner) + Send>),
    /// Finish what is under way and end.
    Stop,
}

/// Why the owner takes no more requests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The core ordered what cannot be.
    #[error("the array core ordered what cannot be")]
    Core(#[source] PayloadError),
    /// The backend no longer works.
    #[error("members cannot be reached: {0}")]
    Backend(String),
}

/// An array at work.
pub(crate) struct Owner {
    pub(super) core: Core,
    pub(super) members: Members,
    pub(super) inbox: Receiver<Message>,
    pub(super) waker: Arc<Waker>,
    pub(super) clock: Box<dyn Fn() -> Nanos + Send>,
    pub(super) on_event: Box<dyn FnMut(Nanos, Event) + Send>,
    /// Set, before the error is answered, once the array has lost what it needs.
    pub(super) failed: Arc<AtomicBool>,
    pub(super) broken: Option<Broken>,
    pub(super) stopping: bool,
    payloads: Payloads,
    requests: Requests,
    /// Where reads under way put their bytes.
    reads: HashMap<CommandId, BufferId>,
    pub(super) out: Outputs,
    spare: Outputs,
    answers: Vec<Answer>,
}

impl Owner {
    pub(super) fn new(
        (core, out): (Core, Outputs),
        members: Members,
        inbox: Receiver<Message>,
        waker: Arc<Waker>,
        clock: Box<dyn Fn() -> Nanos + Send>,
        on_event: Box<dyn FnMut(Nanos, Event) + Send>,
    ) -> Self {
        Self {
            core,
            members,
            inbox,
            waker,
            clock,
            on_event,
            failed: Arc::default(),
            broken: None,
            stopping: false,
            payloads: Payloads::default(),
            requests: Requests::default(),
            reads: HashMap::new(),
            out,
            spare: Outputs::default(),
            answers: Vec::new(),
        }
    }

    /// Works until it is told to stop and all is done.
    pub(super) fn run(mut self) {
        loop {
            let now = (self.clock)();
            self.take_messages(now);
            self.settle(now);
            if self.stopping && self.is_at_rest() {
                return;
            }
            self.wait();
            let now = (self.clock)();
            self.take_answers(now);
            if self.core.next_tick().is_some_and(|tick| tick <= now) {
                self.core.tick(now, &mut self.out);
            }
            self.settle(now);
        }
    }

    /// Nothing is under way that somebody waits for.
    fn is_at_rest(&self) -> bool {
        let drained = self.requests.len() == 0 && self.members.in_flight() == 0;
        drained && (self.core.is_stopped() || self.broken.is_some())
    }

    fn take_messages(&mut self, now: Nanos) {
        while let Ok(message) = self.inbox.try_recv() {
            match message {
                Message::Request(request) => self.take_request(now, request),
                Message::Call(call) => call(self),
                Message::Stop => self.stop(now),
            }
        }
    }

    /// Takes no more requests, finishes those that are there, and ends.
    pub(super) fn stop(&mut self, now: Nanos) {
        self.stopping = true;
        if self.broken.is_none() {
            self.core.stop(now, &mut self.out);
        }
    }

    fn take_request(&mut self, now: Nanos, request: export::Request) {
        if self.broken.is_some() {
            request.complete(Err(ErrorCode::Io));
        } else if self.stopping {
            request.complete(Err(ErrorCode::Shutdown));
        } else if let Some(request) = self.requests.begin(request, &mut self.payloads) {
            self.core.submit(now, request, &mut self.out);
        }
    }

    fn wait(&mut self) {
        self.waker.announce();
        let timeout = if self.inbox.is_empty() {
            self.time_until_something()
        } else {
            Some(Duration::ZERO)
        };
        let waited = self.members.wait(timeout, &*self.clock, &mut self.answers);
        self.waker.awake();
        if let Err(error) = waited {
            self.break_down(Broken::Backend(error.to_string()));
        }
    }

    fn time_until_something(&self) -> Option<Duration> {
        let tick = self.core.next_tick();
        let deadline = self.members.next_deadline();
        let next = [tick, deadline].into_iter().flatten().min()?;
        let now = (self.clock)();
        Some(Duration::from_nanos(next.0.saturating_sub(now.0)))
    }

    fn take_answers(&mut self, now: Nanos) {
        let mut answers = std::mem::take(&mut self.answers);
        // Buffers move away from hung reads before any answer makes the core
        // read into them again.
        for hung in answers.iter().filter(|answer| answer.transfer.is_none()) {
            if let Some(buffer) = self.reads.remove(&hung.id)
                && !mutation::is(Mutation::HungReadUnmoved)
                && let Err(error) = self.payloads.move_away(buffer)
            {
                self.break_down(Broken::Core(error));
            }
        }
        for answer in answers.drain(..) {
            if let Some(Transfer::Read(bytes)) = &answer.transfer
                && let Some(buffer) = self.reads.remove(&answer.id)
                && let Err(error) = self.payloads.arrived(buffer, bytes)
            {
                self.break_down(Broken::Core(error));
            }
            drop(answer.transfer);
            if self.broken.is_none() {
                self.core
                    .complete(now, answer.id, answer.result, &mut self.out);
            }
        }
        self.answers = answers;
    }

    /// Does what the core wants until it wants nothing more.
    pub(super) fn settle(&mut self, now: Nanos) {
        while !is_empty(&self.out) && self.broken.is_none() {
            std::mem::swap(&mut self.out, &mut self.spare);
            let mut wanted = std::mem::take(&mut self.spare);
            if let Err(error) = self.carry_out(now, &mut wanted) {
                self.break_down(Broken::Core(error));
            }
            wanted.clear();
            self.spare = wanted;
        }
    }

    fn carry_out(&mut self, now: Nanos, wanted: &mut Outputs) -> Result<(), PayloadError> {
        let mut found = Vec::new();
        for step in &wanted.steps {
            found.extend(self.payloads.execute(step)?);
        }
        for command in &wanted.commands {
            self.send(now, command)?;
        }
        let is_loss = |result| matches!(result, Err(RequestError::NoMember | RequestError::Failed));
        if wanted.finished.iter().any(|one| is_loss(one.result)) {
            self.note_failure();
        }
        for finished in wanted.finished.drain(..) {
            if let Some(part) = self.requests.finished(finished, &mut self.payloads) {
                self.core.submit(now, part, &mut self.out);
            }
        }
        for &event in &wanted.events {
            (self.on_event)(now, event);
        }
        for (step, result) in found {
            self.core.computed(now, step, result, &mut self.out);
        }
        Ok(())
    }

    fn send(&mut self, now: Nanos, command: &MemberCommand) -> Result<(), PayloadError> {
        let bytes = length(command.count);
        let transfer = match command.operation {
            Operation::Read => {
                self.reads.insert(command.id, command.buffer);
                Transfer::Read(self.payloads.write(command.buffer, bytes)?)
            }
            Operation::Write => Transfer::Write {
                data: self.payloads.read(command.buffer, bytes)?,
                force_unit_access: command.force_unit_access
                    && !mutation::is(Mutation::DriverForceUnitAccessLost),
            },
            Operation::Flush => Transfer::Flush,
            Operation::Discard => Transfer::Discard {
                bytes: bytes as u64,
            },
        };
        let place = place_of(command.slot);
        let offset = command.start.0.saturating_mul(SECTOR_BYTES);
        let size = self.members.member(place).map_or(0, |file| file.size().0);
        let is_beyond = command.start.0.saturating_add(command.count.0) > size;
        if is_beyond && !mutation::is(Mutation::BeyondMemberSent) {
            // Never beyond a member, whatever a superblock made the core believe.
            self.members.refuse(command.id, MemberError::Gone, transfer);
            return Ok(());
        }
        self.members
            .submit(now, command.id, place, offset, transfer);
        Ok(())
    }

    /// After an error: whether it is the array that has failed.
    fn note_failure(&self) {
        if !self.failed.load(Ordering::Relaxed) && self.core.has_failed(&self.members) {
            self.failed.store(true, Ordering::SeqCst);
        }
    }

    fn break_down(&mut self, why: Broken) {
        if self.broken.is_none() {
            self.failed.store(true, Ordering::SeqCst);
            self.broken = Some(why);
            self.out.clear();
            self.requests.fail_all(&mut self.payloads);
        }
    }
}

fn is_empty(out: &Outputs) -> bool {
    out.commands.is_empty()
        && out.steps.is_empty()
        && out.finished.is_empty()
        && out.events.is_empty()
}
