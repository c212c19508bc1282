//! The bench: an experiment's steps, one after the other.

use crate::build::{Ablation, BuildError, Plan};
use crate::commands::{CommandFile, CommandLine};
use crate::facts;
use crate::presets;
use crate::row::rows;
use raidlab_array::{Operation, Slot, SyncKind};
use raidlab_lab::{
    ArrayLook, Bench, BenchError, CHECK_IN_WORDS, Condition, Deeds, Event, EventKind, Experiment,
    Files, Finish, Observer, PlannedStep, Progress, SyncLook, Wait, event_in_words,
};
use raidlab_sim::{DiskCommand, Machine, SimError, SubjectState};
use raidlab_store::output::OutputError;
use raidlab_store::{CellResult, EventRecord, Records, Setting};
use raidlab_units::Nanos;
use std::cell::RefCell;
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;

/// Quiet members are waited for so long at most, as on the host bench.
const QUIET_LIMIT: Nanos = Nanos::from_secs(30);

/// An array that has just been made has written its superblocks by then.
const MADE: Nanos = Nanos::from_millis(100);

/// Modelled disks in virtual time.
#[derive(Debug, Clone, Default)]
pub struct ModelBench {
    /// The folder for files of every disk's commands, those that a leap passes over
    /// left out; `None`: nobody wants them.
    pub commands: Option<PathBuf>,
    /// Where the disks' files are read.
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
        observer.record(Records {
            settings: settings(&plan, experiment),
            observations: facts::of_subject(&plan, experiment),
            ..Records::default()
        });
        let steps = experiment.steps.len();
        let mut deeds = Deeds::default();
        observer.look(look(machine.state(), true));
        if plan.quiet() > Nanos::ZERO {
            machine
                .wait(MADE, &mut |_| !observer.cancelled())
                .map_err(|source| BenchError::Step {
                    step: 0,
                    source: Box::new(source),
                })?;
        }
        for (index, step) in experiment.steps.iter().enumerate() {
            observer.progress(Progress {
                step: index,
                steps,
                clock: machine.now(),
            });
            if observer.cancelled() {
                return Ok(Finish::Cancelled);
            }
            let place = (index, steps);
            let done = do_step(
                step,
                place,
                experiment,
                &plan,
                &mut deeds,
                &mut machine,
                observer,
            );
            for state in machine.take_states() {
                observer.look(look(state, true));
            }
            // How far a sync is.
            observer.look(look(machine.state(), false));
            match done {
                Ok(()) => {}
                Err(SimError::Interrupted) => return Ok(Finish::Cancelled),
                Err(source) => {
                    return Err(BenchError::Step {
                        step: index + 1,
                        source: Box::new(source),
                    });
                }
            }
        }
        observer.progress(Progress {
            step: steps,
            steps,
            clock: machine.now(),
        });
        commands.take().finish().map_err(written)?;
        Ok(Finish::Complete)
    }
}

/// A state of the array, in everybody's words.
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

/// A command to a disk as a line of the file of commands.
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

/// `place`: the step's index, and how many there are.
fn do_step(
    step: &PlannedStep,
    place: (usize, usize),
    experiment: &Experiment,
    plan: &Plan,
    deeds: &mut Deeds,
    machine: &mut Machine,
    observer: &mut dyn Observer,
) -> Result<(), SimError> {
    let (index, steps) = place;
    let mut watch = |clock| {
        observer.progress(Progress {
            step: index,
            steps,
            clock,
        });
        !observer.cancelled()
    };
    match step {
        PlannedStep::Wait(Wait::Time(time)) => machine.wait(*time, &mut watch),
        PlannedStep::Wait(Wait::Until { condition, at_most }) => match condition {
            Condition::SyncDone => {
                deeds.settled();
                machine.wait_for_sync(*at_most, &mut watch)
            }
            Condition::Idle => machine.wait_until_idle(*at_most, &mut watch),
            // No modelled array has a cache on disks of its own.
            Condition::Clean => Ok(()),
            // `Plan::new` has refused it.
            Condition::SyncPercent(_) => Ok(()),
        },
        PlannedStep::Event(event) => {
            deeds.happens(*event);
            observer.record(Records {
                events: vec![happening(*event, experiment, machine.now())],
                ..Records::default()
            });
            let slot = Slot(event.member);
            match event.kind {
                EventKind::Fail => machine.fail(slot),
                EventKind::Remove => machine.remove(slot),
                EventKind::Insert | EventKind::ReAdd => machine.insert(slot),
            }
        }
        PlannedStep::Check => {
            deeds.checks();
            observer.record(Records {
                events: vec![EventRecord {
                    kind: "check".to_owned(),
                    member: None,
                    text: CHECK_IN_WORDS.to_owned(),
                    ..happening_at(experiment, machine.now())
                }],
                ..Records::default()
            });
            machine.check()
        }
        PlannedStep::Job(job) => {
            let mut group = job.work.group().cloned().unwrap_or_default();
            if plan.ablations.contains(&Ablation::FioClock) {
                for job in &mut group.jobs {
                    job.reduced_clock = false;
                }
            }
            let written = machine.written();
            // What was asked for just now, as a sync, begins in that time.
            machine.wait(plan.start_up(), &mut watch)?;
            if !machine.is_syncing() {
                machine.wait_until_quiet(written, plan.quiet(), QUIET_LIMIT, &mut watch)?;
            }
            let started = machine.now();
            let result = machine.run_watched(&group, &mut watch)?;
            observer.cell(CellResult {
                cell: job.cell(experiment),
                rows: rows(job, experiment, &plan.presets, started, &result),
                records: Records {
                    observations: facts::of_job(job, experiment, plan, deeds, &result),
                    ..Records::default()
                },
            });
            Ok(())
        }
        // `Plan::new` has refused them.
        PlannedStep::Rounds(_) => Ok(()),
    }
}

/// Something that the suite does to a member, for the time line.
fn happening(event: Event, experiment: &Experiment, now: Nanos) -> EventRecord {
    EventRecord {
        kind: event.kind.name().to_owned(),
        member: Some(u32::from(event.member)),
        text: event_in_words(event),
        ..happening_at(experiment, now)
    }
}

/// Something that happens to an experiment's array, with nothing said of it yet.
fn happening_at(experiment: &Experiment, now: Nanos) -> EventRecord {
    EventRecord {
        scope: experiment.scope(),
        at_ns: now.0,
        kind: String::new(),
        member: None,
        text: String::new(),
    }
}

/// Everything in force: the subject's file, the disks' numbers, the seed.
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
        settings.extend(numbers.iter().map(|number| Setting {
            scope: format!("disk {} {set}", preset.name),
            name: number.name.clone(),
            value: number.value.clone(),
            source: number.source.clone(),
        }));
    }
    if let Some(preset) = &plan.processor {
        settings.extend(presets::processor_settings(preset));
    }
    let scope = format!("subject {}", experiment.subject.name);
    settings.push(Setting {
        scope: scope.clone(),
        name: "members".to_owned(),
        value: experiment.disks.join(", "),
        source: "suite or command line".to_owned(),
    });
    for name in &experiment.without {
        settings.push(Setting {
            scope: scope.clone(),
            name: "without".to_owned(),
            value: name.clone(),
            source: "command line".to_owned(),
        });
    }
    settings
}
