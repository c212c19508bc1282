//! The driver's actions, in their order: commands for members, steps, answers, events. The world
//! takes them after each call, and returns the commands that have ended.

use raidlab_array::{ComputeStep, Event, MemberCommand};
use raidlab_serve::array::Watcher;
use raidlab_serve::export::{Buffer, Completions, ErrorCode};
use raidlab_serve::member::{Backend, Ended, Job, Storage};
use raidlab_units::Nanos;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// An action of the driver that the world has to handle.
#[derive(Debug)]
pub(crate) enum Happening {
    /// The driver executed a step; a short description, where that is wanted.
    Step(String),
    /// The core ordered a command.
    Command(MemberCommand),
    /// A command goes to a member, for the first time or again.
    Job(Job),
    /// Users are told of an event.
    Event(Event),
    /// A request is answered.
    Answered {
        /// The name that the asker gave the request.
        token: u64,
        /// The request's payload.
        buffer: Buffer,
        /// Whether the request succeeded, or its error in NBD's words.
        result: Result<(), ErrorCode>,
    },
}

#[derive(Debug, Default)]
struct Inside {
    happenings: Vec<Happening>,
    ended: Vec<(Job, Ended)>,
}

/// The line of a driver; clones share it.
#[derive(Debug, Clone)]
pub(crate) struct Line {
    inside: Arc<Mutex<Inside>>,
    traced: bool,
}

impl Line {
    /// An empty line. `traced`: steps are described in words.
    pub(crate) fn new(traced: bool) -> Self {
        Self {
            inside: Arc::default(),
            traced,
        }
    }

    fn lock(&self) -> MutexGuard<'_, Inside> {
        // The lists are consistent after every step that could panic.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, happening: Happening) {
        self.lock().happenings.push(happening);
    }

    /// Exchanges the actions so far for an empty list.
    pub(crate) fn exchange(&self, happenings: &mut Vec<Happening>) {
        std::mem::swap(&mut self.lock().happenings, happenings);
    }

    /// Returns a command that has ended; the driver sees it at its next turn.
    pub(crate) fn end(&self, job: Job, ended: Ended) {
        self.lock().ended.push((job, ended));
    }
}

impl Backend for Line {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn attach(&mut self, _: usize, _: &Arc<dyn Storage>) -> io::Result<()> {
        Ok(())
    }

    fn detach(&mut self, _: usize) {}

    fn submit(&mut self, job: Job) {
        self.push(Happening::Job(job));
    }

    fn wait(&mut self, _: Option<Duration>, ended: &mut Vec<(Job, Ended)>) -> io::Result<()> {
        ended.append(&mut self.lock().ended);
        Ok(())
    }
}

impl Watcher for Line {
    fn event(&mut self, _: Nanos, event: Event) {
        self.push(Happening::Event(event));
    }

    fn compute_step(&mut self, _: Nanos, step: &ComputeStep) {
        let words = match self.traced {
            true => Short(step).to_string(),
            false => String::new(),
        };
        self.push(Happening::Step(words));
    }

    fn command(&mut self, _: Nanos, command: &MemberCommand) {
        self.push(Happening::Command(*command));
    }
}

impl Completions for Line {
    fn completed(&self, token: u64, buffer: Buffer, result: Result<(), ErrorCode>) {
        self.push(Happening::Answered {
            token,
            buffer,
            result,
        });
    }
}

/// A short description of a step.
struct Short<'a>(&'a ComputeStep);

impl fmt::Display for Short<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ComputeStep::Fill { to, bytes } => {
                write!(formatter, "Fill {to:?} with {} bytes", bytes.len())
            }
            step => write!(formatter, "{step:?}"),
        }
    }
}
