//! The bench: it carries out an experiment's steps, one after the other.

use crate::build::{Ablation, BuildError, Plan};
use crate::commands::{CommandFile, CommandLine};
use crate::facts;
use crate::presets;
use crate::row::rows;
use raidlab_array::{Operation, Slot, SyncKind};
use raidlab_lab::{
    ArrayLook, Bench, BenchError, CHECK_IN_WORDS, Condition, Deeds, Event, EventKind, Experiment,
    Files, Finish, Observer, PlannedJob, PlannedStep, Progress, SyncLook, Wait, event_in_words,
};
use raidlab_sim::{DiskCommand, Machine, SimError, SubjectState};
use raidlab_store::output::OutputError;
use raidlab_store::{CellResult, EventRecord, Records, Setting};
use raidlab_units::Nanos;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// The longest wait for quiet members, as on the host bench.
const QUIET_LIMIT: Nanos = Nanos::from_secs(30);

/// The time by which an array that has just been made has written its superblocks.
const MADE: Nanos = Nanos::from_millis(100);

/// Modelled disks in virtual time.
#[derive(Debug, Clone, Default)]
pub struct ModelBench {
    /// The folder for files of every disk's commands, those that a leap passes over left out;
    /// `None`: no files are written.
    pub commands: Option<PathBuf>,
    /// The files from which the disks' presets are read.
    pub files: Arc<Files>,
    /// Whether facts of each job say where the time of its requests went.
    pub explains: bool,
}

impl Bench for ModelBench {
    fn name(&self) -> &'static str {
        "model"
    }

    fn repeats_exactly(&self) -> bool {
        true
    }

    fn check(&self, experiment: &Experiment) -> Result<(), BenchError> {
        let plan = Plan::new(experiment, &self.files).map_err(setup)?;
        plan.check(experiment).map_err(setup)
    }

    fn run(
        &self,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Result<Finish, BenchError> {
        let plan = Plan::new(experiment, &self.files).map_err(setup)?;
        let mut machine = plan.machine(experiment).map_err(setup)?;
        let commands = CommandFile::of(self.commands.as_deref(), experiment).map_err(written)?;
        let commands = Rc::new(RefCell::new(commands));
        if commands.borrow().is_wanted() {
            let file = Rc::clone(&commands);
            machine.watch_commands(Box::new(move |command| {
                file.borrow_mut().write(&line(command));
            }));
        }
        if self.explains {
            machine.explain();
        }
        let mut run = Run {
            experiment,
            plan: &plan,
            machine,
            deeds: Deeds::default(),
            observer,
        };
        run.begin().map_err(|source| in_step(0, source))?;
        for (index, step) in experiment.steps.iter().enumerate() {
            run.tell_progress(index);
            if run.observer.cancelled() {
                return Ok(Finish::Cancelled);
            }
            let done = run.do_step(index, step);
            run.tell_states();
            match done {
                Ok(()) => {}
                Err(SimError::Interrupted) => return Ok(Finish::Cancelled),
                Err(source) => return Err(in_step(index + 1, source)),
            }
        }
        run.tell_progress(experiment.steps.len());
        commands.take().finish().map_err(written)?;
        Ok(Finish::Complete)
    }
}

/// A state of the array, in the words that all benches use.
fn look(state: SubjectState, is_exact: bool) -> ArrayLook {
    ArrayLook {
        at: state.at,
        is_exact,
        letters: state.health,
        sync: state.sync.map(|sync| SyncLook {
            op: match sync.kind {
                // Linux calls a repair a resync too.
                SyncKind::Resync | SyncKind::Repair => raidlab_store::Operation::Resync,
                SyncKind::Recovery => raidlab_store::Operation::Recovery,
                SyncKind::Check => raidlab_store::Operation::Check,
            },
            percent: Some(sync.percent()),
            member: Some(sync.total.to_bytes()),
        }),
        leaped: state.leaped,
    }
}

/// A command to a disk as the file of commands takes it.
fn line(command: &DiskCommand) -> CommandLine {
    CommandLine {
        arrived: command.arrived,
        completed: command.completed,
        disk: command.disk,
        operation: match command.operation {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "flush",
            Operation::Discard => "discard",
        },
        start: command.start,
        count: command.count,
        good: true,
    }
}

fn written(source: OutputError) -> BenchError {
    BenchError::setup("writing down the disks' commands", source)
}

fn setup(source: BuildError) -> BenchError {
    BenchError::setup("building the model", source)
}

/// The error of a step; `step` counts from 1, and 0 is the time before the first.
fn in_step(step: usize, source: SimError) -> BenchError {
    BenchError::Step {
        step,
        source: Box::new(source),
    }
}

/// An experiment under way.
struct Run<'a> {
    experiment: &'a Experiment,
    plan: &'a Plan,
    machine: Machine,
    deeds: Deeds,
    observer: &'a mut dyn Observer,
}

impl Run<'_> {
    /// Does the work before the first step.
    fn begin(&mut self) -> Result<(), SimError> {
        self.observer.record(Records {
            settings: settings(self.plan, self.experiment),
            observations: facts::of_subject(self.plan, self.experiment),
            ..Records::default()
        });
        self.observer.look(look(self.machine.state(), true));
        if self.plan.quiet() > Nanos::ZERO {
            let observer = &*self.observer;
            self.machine.wait(MADE, &mut |_| !observer.cancelled())?;
        }
        Ok(())
    }

    fn progress(&self, step: usize) -> Progress {
        Progress {
            step,
            steps: self.experiment.steps.len(),
            clock: self.machine.now(),
        }
    }

    fn tell_progress(&mut self, step: usize) {
        let progress = self.progress(step);
        self.observer.progress(progress);
    }

    fn tell_states(&mut self) {
        for state in self.machine.take_states() {
            self.observer.look(look(state, true));
        }
        // The look says how far a sync is.
        self.observer.look(look(self.machine.state(), false));
    }

    fn tell_event(&mut self, event: EventRecord) {
        self.observer.record(Records {
            events: vec![event],
            ..Records::default()
        });
    }

    fn do_step(&mut self, index: usize, step: &PlannedStep) -> Result<(), SimError> {
        match step {
            PlannedStep::Wait(wait) => self.wait(index, wait),
            PlannedStep::Event(event) => self.event(*event),
            PlannedStep::Check => {
                self.deeds.checks();
                self.tell_event(EventRecord {
                    kind: "check".to_owned(),
                    text: CHECK_IN_WORDS.to_owned(),
                    ..happening_at(self.experiment, self.machine.now())
                });
                self.machine.check()
            }
            PlannedStep::Job(job) => self.job(index, job),
            // `Plan::new` has refused them.
            PlannedStep::Rounds(_) => Ok(()),
        }
    }

    fn wait(&mut self, index: usize, wait: &Wait) -> Result<(), SimError> {
        let progress = self.progress(index);
        let mut watch = watch(self.observer, progress);
        match wait {
            Wait::Time(time) => self.machine.wait(*time, &mut watch),
            Wait::Until { condition, at_most } => match condition {
                Condition::SyncDone => {
                    self.deeds.settled();
                    self.machine.wait_for_sync(*at_most, &mut watch)
                }
                Condition::Idle => self.machine.wait_until_idle(*at_most, &mut watch),
                // No modelled array has a cache on disks of its own.
                Condition::Clean => Ok(()),
                // `Plan::new` has refused it.
                Condition::SyncPercent(_) => Ok(()),
            },
        }
    }

    fn event(&mut self, event: Event) -> Result<(), SimError> {
        self.deeds.happens(event);
        self.tell_event(happening(event, self.experiment, self.machine.now()));
        let slot = Slot(event.member);
        match event.kind {
            EventKind::Fail => self.machine.fail(slot),
            EventKind::Remove => self.machine.remove(slot),
            EventKind::Insert => self.machine.insert(slot),
            EventKind::ReAdd => self.machine.re_add(slot),
        }
    }

    fn job(&mut self, index: usize, job: &PlannedJob) -> Result<(), SimError> {
        let progress = self.progress(index);
        let (plan, machine) = (self.plan, &mut self.machine);
        let mut group = job.work.group().cloned().unwrap_or_default();
        if plan.ablations.contains(&Ablation::FioClock) {
            for job in &mut group.jobs {
                job.reduced_clock = false;
            }
        }
        let written = machine.written();
        let mut watch = watch(self.observer, progress);
        // A sync that was asked for just now begins in that time.
        machine.wait(plan.start_up(), &mut watch)?;
        if !machine.is_syncing() {
            machine.wait_until_quiet(written, plan.quiet(), QUIET_LIMIT, &mut watch)?;
        }
        let started = machine.now();
        let result = machine.run_watched(&group, &mut watch)?;
        drop(watch);
        self.observer.cell(CellResult {
            cell: job.cell(self.experiment),
            rows: rows(job, self.experiment, &plan.presets, started, &result),
            records: Records {
                observations: facts::of_job(job, self.experiment, plan, &self.deeds, &result),
                ..Records::default()
            },
        });
        Ok(())
    }
}

/// Tells the observer how the clock goes on within a step, and answers whether to go on.
fn watch(observer: &mut dyn Observer, before: Progress) -> impl FnMut(Nanos) -> bool {
    move |clock| {
        observer.progress(Progress { clock, ..before });
        !observer.cancelled()
    }
}

/// The event of a suite's action on a member, for the time line.
fn happening(event: Event, experiment: &Experiment, now: Nanos) -> EventRecord {
    EventRecord {
        kind: event.kind.name().to_owned(),
        member: Some(u32::from(event.member)),
        text: event_in_words(event),
        ..happening_at(experiment, now)
    }
}

/// An event of an experiment's array, with no details yet.
fn happening_at(experiment: &Experiment, now: Nanos) -> EventRecord {
    EventRecord {
        scope: experiment.scope(),
        at_ns: now.0,
        ..EventRecord::default()
    }
}

/// All settings in force: the subject's file, the disks' numbers, the seed.
fn settings(plan: &Plan, experiment: &Experiment) -> Vec<Setting> {
    let mut settings = experiment.subject.settings.clone();
    let mut seen: Vec<&str> = Vec::new();
    for preset in &plan.presets {
        if seen.contains(&preset.name.as_str()) {
            continue;
        }
        seen.push(&preset.name);
        let set = preset.set_beside(&experiment.fit);
        let numbers = preset.provenance(set).unwrap_or_default();
        let scope = format!("disk {} {set}", preset.name);
        let own = numbers.iter();
        settings.extend(own.map(|it| Setting::new(&scope, &it.name, &it.value, &it.source)));
    }
    if let Some(preset) = &plan.processor {
        settings.extend(presets::processor_settings(preset));
    }
    let scope = format!("subject {}", experiment.subject.name);
    let (disks, source) = (experiment.disks.join(", "), "suite or command line");
    settings.push(Setting::new(&scope, "members", disks, source));
    for name in &experiment.without {
        settings.push(Setting::new(&scope, "without", name, "command line"));
    }
    settings
}
