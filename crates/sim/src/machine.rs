//! The machine: one subject, its disks, its host, and time.
//!
//! The loop takes the earliest of three kinds of events: the host's (a job
//! issues its next request), a disk's, the subject's own ticks. Equal times
//! go in that order, disks by slot, so that a run is repeatable; where a process is behind, disks
//! and ticks go before it (`turns`). Whatever the subject orders in answer is handed to the
//! disks at once.

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

/// Everything a machine is made of.
pub struct MachineConfig {
    /// The disk, array or pool that is measured.
    pub subject: Box<dyn Subject>,
    /// Its members, in slot order.
    pub disks: Vec<Attached>,
    /// The operating system.
    pub host: Host,
    /// Randomness for the jobs.
    pub random: Stream,
    /// Skip long uniform phases analytically. Only where every member has a disk of
    /// its own: what shares an arm or a cable is simulated as a whole.
    pub leaps: bool,
    /// What computing costs; `None`: it takes no time. With it nothing is leaped over.
    pub processor: Option<ProcessorConfig>,
}

/// Events between two calls of a watcher: a few milliseconds of real time where an
/// event is a disk's, a tenth of a second where each has a stripe cache looked through.
const WATCH_EVENTS: u64 = 1 << 14;

/// Is told the virtual time now and then, and answers whether to go on: who answers
/// false is heard within a second.
pub type Watch<'a> = dyn FnMut(Nanos) -> bool + 'a;

/// What keeps the machine at work while time passes: it takes its turns as the calendar has
/// them, and is told of every answer.
pub(crate) trait Load {
    /// Does what a turn of the calendar is for: it submits requests.
    fn issue(&mut self, machine: &mut Machine, issue: Issue);

    /// The subject has answered a request.
    ///
    /// # Errors
    /// The request failed, and the load does not go on after that.
    fn completed(
        &mut self,
        machine: &mut Machine,
        id: RequestId,
        result: Result<(), RequestError>,
    ) -> Result<(), SimError>;

    /// Something has happened: who slept until then looks whether to go on.
    fn wake(&mut self, machine: &mut Machine);
}

/// What the calendar holds: which clone of the running jobs issues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Issue {
    pub(crate) clone: usize,
    /// Turns from before a leap no longer count.
    pub(crate) era: u32,
}

/// Is told of a command that has ended.
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
    /// A member shares its arm or its cable.
    shared: bool,
    pub(crate) random: Stream,
    outputs: Outputs,
    finished: Vec<Finished>,
    completions: Vec<Completion>,
    done: Vec<raidlab_array::CommandId>,
    /// Who wants to know of every command, and those that have just ended.
    command_watcher: Option<CommandWatcher>,
    commands: Vec<DiskCommand>,
    events: Vec<(Nanos, Event)>,
    /// Discards for disks that take none.
    refused: Vec<raidlab_array::CommandId>,
    /// How the subject stood after each of these, until somebody takes them.
    states: Vec<SubjectState>,
    /// The sum of all times that were leapt over.
    pub(crate) leaped: Nanos,
    /// What steps found, on the way to the subject.
    answers: Vec<(StepId, StepResult)>,
    pub(crate) processor: Option<Box<Processor>>,
    /// Where the time of requests goes, if somebody wants to know.
    pub(crate) explain: Option<Box<Explain>>,
    /// Events since the start, for the watcher.
    passed: u64,
    /// Events at the present time, for the watcher, who stops a machine that stands still.
    in_this_instant: u64,
}

impl Machine {
    /// A machine at time zero.
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
            leaps: config.leaps && !shared && processor.is_none(),
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

    /// From now on `watcher` is told of every command of a disk as it ends, in order;
    /// not of those that a leap passes over.
    pub fn watch_commands(&mut self, watcher: CommandWatcher) {
        self.command_watcher = Some(watcher);
    }

    /// From now on each job's result says where the time of its requests went.
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

    /// mdstat's letters: `[UU]`.
    #[must_use]
    pub fn health(&self) -> String {
        self.subject.health()
    }

    /// Resync or recovery, where one runs.
    #[must_use]
    pub fn sync(&self) -> Option<SyncProgress> {
        self.subject.sync()
    }

    /// What happened to the array so far, with the time.
    #[must_use]
    pub fn events(&self) -> &[(Nanos, Event)] {
        &self.events
    }

    /// How the subject stands now.
    #[must_use]
    pub fn state(&self) -> SubjectState {
        SubjectState {
            at: self.now,
            health: self.health(),
            sync: self.sync(),
            leaped: self.leaped,
        }
    }

    /// How the subject stood after each event of its array since the last call.
    pub fn take_states(&mut self) -> Vec<SubjectState> {
        std::mem::take(&mut self.states)
    }

    /// When the next thing happens without jobs; `u64::MAX` for never.
    fn next_event(&mut self) -> u64 {
        let tick = self.subject.next_tick().map_or(u64::MAX, |time| time.0);
        self.refresh_shared();
        let disks = self.drives.iter().map(|drive| drive.next);
        disks.fold(tick.min(self.departures.next()), u64::min)
    }

    /// Disks that share an arm or a cable change with what others do.
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
        self.drives.iter().map(|drive| drive.tag_overflows()).sum()
    }

    /// Runs what is due up to `end`, without jobs, and ends there.
    pub(crate) fn run_until(&mut self, end: Nanos, watch: &mut Watch<'_>) -> Result<(), SimError> {
        // Running dry is no error.
        while self.step(None, end, watch)? {}
        self.now = self.now.max(end);
        Ok(())
    }

    /// One event not later than `end`; false if there is none.
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

    /// What became of the processor so far, if there is one.
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

    /// Sends what the subject ordered; remembers what it finished; answers its
    /// steps.
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

    /// Keeps what has happened to the array, and how it stands after that.
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
        if let Some(explain) = &mut self.explain {
            explain.ended(self.finished.len());
        }
        for index in 0..self.finished.len() {
            let finished = self.finished[index];
            load.completed(self, finished.id, finished.result)?;
        }
        self.finished.clear();
        load.wake(self);
        Ok(())
    }
}
