//! The machine: one subject, its disks, its host, and time.
//!
//! The loop takes the earliest of three kinds of events: the host's (a job issues its next
//! request), a disk's, the subject's own ticks. Equal times go in that order, disks by slot, so
//! that a run is repeatable; where a process is behind, disks and ticks go before it (`turns`). The
//! commands that the subject orders in answer are handed to the disks at once.

mod compute;
mod departures;
mod error;
mod standstill;
mod turns;
mod verbs;
mod waits;

pub use error::SimError;
pub(crate) use standstill::{LOOK, OldestRequest};

use crate::calendar::Calendar;
use crate::drive::{DiskCommand, Drive};
use crate::explain::Explain;
use crate::host::Host;
use crate::processor::{Processor, ProcessorConfig, ProcessorUse};
use crate::result::MemberStatistics;
use crate::steps::answer;
use crate::subject::{Subject, SubjectState};
use departures::Departures;
use raidlab_array::{
    Event, Finished, Outputs, Request, RequestError, RequestId, StepId, StepResult, SyncProgress,
};
use raidlab_disk::Completion;
use raidlab_disk::shared::Attached;
use raidlab_random::Stream;
use raidlab_units::{Bytes, Nanos, Sectors};
use turns::Turns;

/// The parts of which a machine is made.
pub struct MachineConfig {
    /// The disk, array or pool that is measured.
    pub subject: Box<dyn Subject>,
    /// The members of the subject, in slot order.
    pub disks: Vec<Attached>,
    /// The operating system of the machine.
    pub host: Host,
    /// The random numbers for the jobs.
    pub random: Stream,
    /// Whether long uniform phases are skipped analytically. That happens only where every member
    /// has a disk of its own: disks that share an arm or a cable are simulated as a whole.
    pub leaps: bool,
    /// The costs of computing; `None`: it takes no time. With it nothing is leaped over.
    pub processor: Option<ProcessorConfig>,
}

/// The number of events between two calls of a watcher: a few milliseconds of real time where an
/// event is a disk's, a tenth of a second where each has a stripe cache looked through.
const WATCH_EVENTS: u64 = 1 << 14;

/// A watcher that is told the virtual time now and then, and answers whether to go on: an answer of
/// false takes effect within a second.
pub type Watch<'a> = dyn FnMut(Nanos) -> bool + 'a;

/// The work that keeps the machine busy while time passes: it takes its turns as the calendar has
/// them, and is told of every answer.
pub(crate) trait Load {
    /// Takes a turn of the calendar: submits requests.
    fn issue(&mut self, machine: &mut Machine, issue: Issue);

    /// Takes the subject's answer to a request.
    ///
    /// # Errors
    /// The request failed, and the load does not go on after that.
    fn completed(
        &mut self,
        machine: &mut Machine,
        id: RequestId,
        result: Result<(), RequestError>,
    ) -> Result<(), SimError>;

    /// Lets sleepers look whether to go on, as something has happened.
    fn wake(&mut self, machine: &mut Machine);
}

/// An entry of the calendar, which says which clone of the running jobs issues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Issue {
    pub(crate) clone: usize,
    /// The number of the last leap before it; turns from before a later leap no longer count.
    pub(crate) era: u32,
}

/// A watcher that is told of each command that has ended.
pub type CommandWatcher = Box<dyn FnMut(&DiskCommand)>;

/// A subject on its disks in virtual time.
pub struct Machine {
    pub(crate) subject: Box<dyn Subject>,
    pub(crate) drives: Vec<Drive>,
    pub(crate) host: Host,
    pub(crate) now: Nanos,
    pub(crate) calendar: Calendar<Issue>,
    turns: Turns,
    departures: Departures,
    pub(crate) leaps: bool,
    /// Whether a member shares its arm or its cable.
    shared: bool,
    pub(crate) random: Stream,
    outputs: Outputs,
    finished: Vec<Finished>,
    completions: Vec<Completion>,
    done: Vec<raidlab_array::CommandId>,
    /// The watcher of commands, if there is one, and the commands that have just ended.
    command_watcher: Option<CommandWatcher>,
    commands: Vec<DiskCommand>,
    events: Vec<(Nanos, Event)>,
    /// Discards for disks that take none.
    refused: Vec<raidlab_array::CommandId>,
    /// The subject's state after each of its events, until these are taken.
    states: Vec<SubjectState>,
    /// The sum of all times that were leapt over.
    pub(crate) leaped: Nanos,
    /// Results of steps, on the way to the subject.
    answers: Vec<(StepId, StepResult)>,
    pub(crate) processor: Option<Box<Processor>>,
    /// The account of where the time of requests goes, if it was asked for.
    pub(crate) explain: Option<Box<Explain>>,
    /// The number of events since the start, for the watcher.
    passed: u64,
    /// The number of events at the present time, by which a machine that stands still is stopped.
    in_this_instant: u64,
}

impl Machine {
    /// Makes a machine at time zero.
    #[must_use]
    pub fn new(mut config: MachineConfig) -> Self {
        let rules = config.host.queue();
        let shared = config.disks.iter().any(Attached::is_shared);
        let processor = Self::processor_of(&mut config);
        Self {
            shared,
            subject: config.subject,
            drives: config
                .disks
                .into_iter()
                .map(|disk| Drive::new(disk, rules))
                .collect(),
            host: config.host,
            now: Nanos::ZERO,
            calendar: Calendar::new(),
            turns: Turns::new(
                config.host.scheduler_clock,
                config.host.turnaround,
                config.host.one_processor,
            ),
            departures: Departures::default(),
            leaps: config.leaps && !shared,
            processor,
            explain: None,
            random: config.random,
            outputs: Outputs::default(),
            finished: Vec::new(),
            completions: Vec::new(),
            done: Vec::new(),
            command_watcher: None,
            commands: Vec::new(),
            events: Vec::new(),
            refused: Vec::new(),
            states: Vec::new(),
            leaped: Nanos::ZERO,
            answers: Vec::new(),
            passed: 0,
            in_this_instant: 0,
        }
    }

    /// Tells `watcher` of every command of a disk as it ends from now on, in order; not of those
    /// that a leap passes over.
    pub fn watch_commands(&mut self, watcher: CommandWatcher) {
        self.command_watcher = Some(watcher);
    }

    /// Adds to each job's result from now on where the time of its requests went.
    pub fn explain(&mut self) {
        self.explain = Some(Box::default());
    }

    /// Virtual time since the start.
    #[must_use]
    pub fn now(&self) -> Nanos {
        self.now
    }

    /// The subject's size.
    #[must_use]
    pub fn size(&self) -> Bytes {
        self.subject.size().to_bytes()
    }

    /// The members' state in mdstat's letters: `[UU]`.
    #[must_use]
    pub fn health(&self) -> String {
        self.subject.health()
    }

    /// The progress of a resync or recovery, where one runs.
    #[must_use]
    pub fn sync(&self) -> Option<SyncProgress> {
        self.subject.sync()
    }

    /// The events of the array so far, with their times.
    #[must_use]
    pub fn events(&self) -> &[(Nanos, Event)] {
        &self.events
    }

    /// The present state of the subject.
    #[must_use]
    pub fn state(&self) -> SubjectState {
        SubjectState {
            at: self.now,
            health: self.health(),
            sync: self.sync(),
            leaped: self.leaped,
        }
    }

    /// Takes the subject's states after each event of its array since the last call.
    pub fn take_states(&mut self) -> Vec<SubjectState> {
        std::mem::take(&mut self.states)
    }

    /// The time of the next event without jobs; `u64::MAX` for never.
    fn next_event(&mut self) -> u64 {
        let tick = self.subject.next_tick().map_or(u64::MAX, |time| time.0);
        self.refresh_shared();
        let disks = self.drives.iter().map(|drive| drive.next);
        disks.fold(tick.min(self.departures.next()), u64::min)
    }

    /// Updates the next events of disks that share an arm or a cable, as these change with the
    /// work of others.
    fn refresh_shared(&mut self) {
        if self.shared {
            let shared = self.drives.iter_mut().filter(|drive| drive.is_shared());
            shared.for_each(Drive::refresh);
        }
    }

    pub(crate) fn member_statistics(&self) -> Vec<MemberStatistics> {
        self.drives
            .iter()
            .map(|drive| drive.statistics_at(self.now))
            .collect()
    }

    pub(crate) fn tag_overflows(&self) -> u64 {
        let of_drives = self.drives.iter().map(|drive| drive.tag_overflows());
        of_drives.sum::<u64>() + self.subject.overflows()
    }

    /// Runs all events that are due up to `end`, without jobs, and ends there.
    pub(crate) fn run_until(&mut self, end: Nanos, watch: &mut Watch<'_>) -> Result<(), SimError> {
        // The end of all events is no error.
        while self.step(None, end, watch)? {}
        self.now = self.now.max(end);
        Ok(())
    }

    /// Carries out one event not later than `end`; returns false if there is none.
    pub(crate) fn step(
        &mut self,
        load: Option<&mut dyn Load>,
        end: Nanos,
        watch: &mut Watch<'_>,
    ) -> Result<bool, SimError> {
        self.passed += 1;
        if self.passed.is_multiple_of(WATCH_EVENTS) && !watch(self.now) {
            return Err(SimError::Interrupted);
        }
        let host = self.calendar.next_time().map_or(u64::MAX, |time| time.0);
        let tick = self.next_tick();
        let core = self.processor.as_ref();
        let core = core.map_or(u64::MAX, |cores| cores.next_time());
        self.refresh_shared();
        let mut disk = u64::MAX;
        let mut slot = 0;
        for (index, drive) in self.drives.iter().enumerate() {
            if drive.next < disk {
                disk = drive.next;
                slot = index;
            }
        }
        let departure = self.departures.next();
        let next = host.min(core).min(disk).min(tick).min(departure);
        if next == u64::MAX || next > end.0 {
            return Ok(false);
        }
        let host_waits = next == disk.min(tick) && self.next_process_is_behind();
        if let Some(explain) = &mut self.explain {
            let (processor, drives) = (self.processor.as_deref(), &self.drives);
            explain.pass(Nanos(next), || compute::counts(processor, drives));
        }
        self.tell_time(Nanos(next))?;
        if next == departure {
            self.depart();
            return Ok(true);
        }
        match load {
            Some(load) if next == host && !host_waits => {
                if let Some(issue) = self.calendar.pop() {
                    self.turns.process_ran(self.now, issue.clone);
                    load.issue(self, issue);
                }
                self.finish(load)?;
            }
            load => {
                if next == core {
                    self.compute();
                } else if next == disk {
                    self.advance_disk(slot);
                } else if let Some(cores) = &mut self.processor {
                    cores.turn(self.now);
                } else {
                    self.turns.thread_runs(self.now);
                    self.subject.tick(self.now, &mut self.outputs);
                    self.pump();
                }
                match load {
                    Some(load) => self.finish(load)?,
                    None => self.finished.clear(),
                }
            }
        }
        Ok(true)
    }

    fn advance_disk(&mut self, slot: usize) {
        let mut done = std::mem::take(&mut self.done);
        done.clear();
        let log = self.command_watcher.as_ref().map(|_| &mut self.commands);
        self.drives[slot].advance(self.now, &mut self.completions, &mut done, log);
        if let Some(watcher) = &mut self.command_watcher {
            for command in self.commands.drain(..) {
                watcher(&DiskCommand {
                    disk: slot,
                    ..command
                });
            }
        }
        if let Some(cores) = &mut self.processor {
            for &id in &done {
                cores.ended(self.now, id);
            }
            self.done = done;
            return;
        }
        if let Some(behind) = self.turns.behind() {
            self.subject.set_behind(behind);
        }
        for &id in &done {
            self.subject
                .complete(self.now, id, Ok(()), &mut self.outputs);
        }
        self.done = done;
        self.pump();
    }

    /// Hands a request to the subject.
    pub(crate) fn submit(&mut self, request: Request) {
        if let Some(explain) = &mut self.explain {
            explain.submitted();
        }
        if self.computes_request(request) {
            return;
        }
        self.subject.submit(self.now, request, &mut self.outputs);
        self.pump();
    }

    /// The use of the processor so far, if there is one.
    pub(crate) fn processor_used(&self) -> Option<ProcessorUse> {
        self.processor.as_ref().map(|cores| cores.used())
    }

    pub(crate) fn freeze_sync(&mut self) {
        self.subject.freeze_sync();
    }

    pub(crate) fn thaw_sync(&mut self) {
        self.subject.thaw_sync(self.now, &mut self.outputs);
        self.pump();
    }

    pub(crate) fn leap_sync(&mut self, position: Sectors) {
        self.subject
            .leap_sync(self.now, position, &mut self.outputs);
        self.pump();
    }

    /// Sends the commands that the subject ordered, remembers the requests that it finished, and
    /// answers its steps.
    fn pump(&mut self) {
        let now = self.now;
        loop {
            self.send();
            self.finished.append(&mut self.outputs.finished);
            self.note_events();
            self.answers
                .extend(self.outputs.steps.iter().filter_map(answer));
            self.outputs.clear();
            if self.answers.is_empty() && self.refused.is_empty() {
                return;
            }
            // md leaves a discard out on a member that takes none, as it does with a
            // mirror's; the array's own answer is good. So is a flush of what keeps nothing.
            for id in self.refused.drain(..) {
                self.subject.complete(now, id, Ok(()), &mut self.outputs);
            }
            for (step, result) in self.answers.drain(..) {
                self.subject.computed(now, step, result, &mut self.outputs);
            }
        }
    }

    /// Keeps the new events of the array, and its state after them.
    fn note_events(&mut self) {
        if self.outputs.events.is_empty() {
            return;
        }
        let state = self.state();
        self.states.push(state);
        let now = self.now;
        self.events
            .extend(self.outputs.events.drain(..).map(|event| (now, event)));
    }

    fn finish(&mut self, load: &mut dyn Load) -> Result<(), SimError> {
        // What follows from an answer may itself be answered at once: the flush at the end of a job,
        // where no disk has a cache to flush. So the list may grow meanwhile.
        let mut index = 0;
        while let Some(&finished) = self.finished.get(index) {
            if let Some(explain) = &mut self.explain {
                explain.ended();
            }
            load.completed(self, finished.id, finished.result)?;
            index += 1;
        }
        self.finished.clear();
        load.wake(self);
        Ok(())
    }
}
