//! An array at work: its core, its members, its payloads.
//!
//! It takes requests and answers, feeds them to the core, and carries out what the core orders:
//! steps, commands, answers, events, in this order. It has no thread and no clock: its caller
//! passes the time. [`Running`](super::running::Running) does that for real arrays, on a thread of
//! their own; a simulation calls [`Owner::step`] at each event in its own time.

use super::engine::{Core, place_of};
use super::payloads::{PayloadError, Payloads, length};
use super::requests::Requests;
use crate::export::{self, BufferError, ErrorCode};
use crate::member::{Answer, Members, Transfer};
use raidlab_array::mutation::{self, Mutation};
use raidlab_array::{
    BufferId, CommandId, ComputeStep, Event, MemberCommand, MemberError, Operation, Outputs,
    PersistentArray, RequestError,
};
use raidlab_units::{Nanos, SECTOR_BYTES};
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// An observer of what an owner does for its core, in the order of execution.
pub trait Watcher: Send {
    /// Called for an event of the array that users are told of.
    fn event(&mut self, now: Nanos, event: Event);

    /// Called before a step is executed.
    fn compute_step(&mut self, now: Nanos, step: &ComputeStep) {
        let _ = (now, step);
    }

    /// Called before a command is sent.
    fn command(&mut self, now: Nanos, command: &MemberCommand) {
        let _ = (now, command);
    }
}

/// The reason why the owner takes no more requests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// The core ordered something impossible.
    #[error("the array core ordered what cannot be")]
    Core(#[source] PayloadError),
    /// The system had no memory for an order of the core, even after the wait for it.
    #[error("there is no memory to go on with: assembled again, the array is recovered")]
    Memory(#[source] BufferError),
    /// The backend, which carries commands to the members, no longer works.
    #[error("members cannot be reached: {0}")]
    Backend(String),
}

impl From<PayloadError> for Broken {
    fn from(error: PayloadError) -> Self {
        match error {
            PayloadError::Memory(source) => Self::Memory(source),
            error => Self::Core(error),
        }
    }
}

/// An array with its members, its clients' requests and its payloads, in one thread.
pub struct Owner {
    pub(super) core: Core,
    pub(super) members: Members,
    watcher: Box<dyn Watcher>,
    /// Set, before the error is answered, once the array has lost more than its level tolerates.
    failed: Arc<AtomicBool>,
    pub(super) broken: Option<Broken>,
    stopping: bool,
    payloads: Payloads,
    requests: Requests,
    /// The destination of each read under way.
    reads: HashMap<CommandId, BufferId>,
    pub(super) out: Outputs,
    spare: Outputs,
    answers: Vec<Answer>,
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Owner")
            .field("requests", &self.requests.len())
            .field("members", &self.members)
            .finish_non_exhaustive()
    }
}

impl Owner {
    pub(super) fn new(
        (core, out): (Core, Outputs),
        members: Members,
        watcher: Box<dyn Watcher>,
        failed: Arc<AtomicBool>,
    ) -> Self {
        Self {
            core,
            members,
            watcher,
            failed,
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

    /// An owner of a started array, with the array's first orders, and of its members.
    #[must_use]
    pub fn of_array(
        array: PersistentArray,
        out: Outputs,
        members: Members,
        watcher: Box<dyn Watcher>,
    ) -> Self {
        let core = Core::Array(Box::new(array));
        Self::new((core, out), members, watcher, Arc::default())
    }

    /// Returns the array; `None` where a single file is served.
    #[must_use]
    pub fn array(&self) -> Option<&PersistentArray> {
        match &self.core {
            Core::Array(array) => Some(array),
            Core::Plain(_) => None,
        }
    }

    /// Returns the array's members and their counters.
    #[must_use]
    pub fn members(&self) -> &Members {
        &self.members
    }

    /// Returns the reason why it takes no more requests, if it takes none.
    #[must_use]
    pub fn broken(&self) -> Option<&Broken> {
        self.broken.as_ref()
    }

    /// Whether the array has lost more than its level tolerates, as far as errors have shown it.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Whether the owner was told to stop, and all requests and commands are done.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let drained = self.requests.len() == 0 && self.members.in_flight() == 0;
        self.stopping && drained && (self.core.is_stopped() || self.broken.is_some())
    }

    /// Returns the time when [`Self::step`] has something to do even if no command ends before: a
    /// tick of the core, or a command's time limit; at once where commands were refused.
    #[must_use]
    pub fn next_wake(&self) -> Option<Nanos> {
        if self.members.has_answers() {
            return Some(Nanos::ZERO);
        }
        let (deadline, again) = (self.members.next_deadline(), self.members.next_attempt());
        [self.core.next_tick(), deadline, again]
            .into_iter()
            .flatten()
            .min()
    }

    /// Runs one turn at this time, without waiting: sends the commands, takes the answers, and does
    /// what is due.
    pub fn step(&mut self, now: Nanos) {
        self.collect(now);
        self.tick(now);
    }

    /// Runs the first part of [`Self::step`]: takes the answers.
    pub fn collect(&mut self, now: Nanos) {
        self.settle(now);
        self.wait(Some(Duration::ZERO), &|| now);
        self.take_answers(now);
    }

    /// Runs the second part of [`Self::step`]: does what was due by now.
    pub fn tick(&mut self, now: Nanos) {
        if self.core.next_tick().is_some_and(|tick| tick <= now) {
            self.core.tick(now, &mut self.out);
            self.settle(now);
        }
    }

    /// Stops the owner: it takes no more requests, and ends when the present ones are done.
    pub fn stop(&mut self, now: Nanos) {
        self.stopping = true;
        self.requests.stop();
        if self.broken.is_none() {
            self.core.stop(now, &mut self.out);
            self.settle(now);
        }
    }

    /// Takes a request. It goes to the core at once, and the core's orders are carried
    /// out by [`Self::settle`].
    pub fn request(&mut self, now: Nanos, request: export::Request) {
        if self.broken.is_some() {
            request.complete(Err(ErrorCode::Io));
        } else if self.stopping {
            request.complete(Err(ErrorCode::Shutdown));
        } else if let Some(request) = self.requests.begin(request, &mut self.payloads) {
            self.core.submit(now, request, &mut self.out);
        }
    }

    /// Extends the members' time limits by a time in which answers were not taken, because the
    /// owner was busy.
    pub(super) fn excuse(&mut self, time: Nanos) {
        self.members.excuse(time);
    }

    /// Sends the commands and waits, at most for `timeout`, until an answer arrives; `clock` is
    /// read before the wait and after it.
    pub(super) fn wait(&mut self, timeout: Option<Duration>, clock: &dyn Fn() -> Nanos) {
        let waited = self.members.wait(timeout, clock, &mut self.answers);
        if let Err(error) = waited {
            self.break_down(Broken::Backend(error.to_string()));
        }
    }

    /// Gives the answers to the core, and carries out its orders.
    pub(super) fn take_answers(&mut self, now: Nanos) {
        let mut answers = std::mem::take(&mut self.answers);
        if answers.len() > 1 && mutation::is(Mutation::AnswerDropped) {
            answers.pop();
        }
        // Buffers of hung reads are moved away before any answer makes the core read
        // into them again.
        for hung in answers.iter().filter(|answer| answer.transfer.is_none()) {
            if let Some(buffer) = self.reads.remove(&hung.id)
                && !mutation::is(Mutation::HungReadUnmoved)
                && let Err(error) = self.payloads.move_away(buffer)
            {
                self.break_down(error.into());
            }
        }
        for answer in answers.drain(..) {
            if let Some(Transfer::Read(bytes)) = &answer.transfer
                && let Some(buffer) = self.reads.remove(&answer.id)
                && let Err(error) = self.payloads.arrived(buffer, bytes)
            {
                self.break_down(error.into());
            }
            drop(answer.transfer);
            if self.broken.is_none() {
                self.core
                    .complete(now, answer.id, answer.result, &mut self.out);
            }
        }
        self.answers = answers;
        self.settle(now);
    }

    /// Carries out the core's orders until there are no more.
    pub fn settle(&mut self, now: Nanos) {
        while !is_empty(&self.out) && self.broken.is_none() {
            std::mem::swap(&mut self.out, &mut self.spare);
            let mut wanted = std::mem::take(&mut self.spare);
            if let Err(error) = self.carry_out(now, &mut wanted) {
                self.break_down(error.into());
            }
            wanted.clear();
            self.spare = wanted;
        }
    }

    fn carry_out(&mut self, now: Nanos, wanted: &mut Outputs) -> Result<(), PayloadError> {
        let mut found = Vec::new();
        if mutation::is(Mutation::CommandsBeforeSteps) {
            for command in wanted.commands.drain(..) {
                self.watcher.command(now, &command);
                self.send(now, &command)?;
            }
        }
        for step in &wanted.steps {
            self.watcher.compute_step(now, step);
            found.extend(self.payloads.execute(step)?);
        }
        for command in &wanted.commands {
            self.watcher.command(now, command);
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
            self.watcher.event(now, event);
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
            // A command beyond a member's end is never sent, even if a superblock made the
            // core order it.
            self.members.refuse(command.id, MemberError::Gone, transfer);
            return Ok(());
        }
        self.members
            .submit(now, command.id, place, offset, transfer);
        Ok(())
    }

    /// Checks, after an error, whether the array has failed as a whole.
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
