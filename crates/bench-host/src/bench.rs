//! The bench: an experiment's steps on a machine, one after the other.

use crate::arguments;
use crate::clean;
use crate::error::HostError;
use crate::job;
use crate::machine::Machine;
use crate::needs;
use crate::plan;
use crate::plan_disks;
use crate::sampler::nanoseconds;
use crate::session::{self, Session};
use crate::subject;
use crate::watch::Watch;
use raidlab_inventory::Inventory;
use raidlab_inventory::environment::environment;
use raidlab_lab::{
    Bench, BenchError, Condition, Experiment, Finish, Observer, PlannedJob, PlannedStep, Progress,
    Rounds, Wait,
};
use raidlab_statistics::SteadyState;
use raidlab_store::{CellResult, Measurement, Observation, Operation, Records, Scope};
use raidlab_systems::ArrayStatus;
use raidlab_units::Nanos;
use std::collections::BTreeSet;
use std::error::Error;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// The time between two looks while time passes.
const LOOK: Duration = Duration::from_millis(100);
/// The number of seconds without a write after which members count as idle.
const IDLE_S: u64 = 3;

/// The time after which a degraded array that copies nothing is taken not to begin copying.
const GIVEN_UP: Duration = Duration::from_secs(15);

/// A bench of real machines, each doing one experiment at a time.
pub struct HostBench {
    machines: Vec<Machine>,
    /// Machines whose environment has been recorded in this run.
    described: Mutex<BTreeSet<String>>,
}

impl HostBench {
    /// Creates a bench of these machines.
    #[must_use]
    pub const fn new(machines: Vec<Machine>) -> Self {
        Self {
            machines,
            described: Mutex::new(BTreeSet::new()),
        }
    }

    /// The machines that experiments run on.
    #[must_use]
    pub fn machines(&self) -> &[Machine] {
        &self.machines
    }

    /// The machine that an experiment runs on.
    ///
    /// # Errors
    /// When the machine is none of this bench's.
    pub fn machine(&self, experiment: &Experiment) -> Result<&Machine, HostError> {
        let machines = self.machines.iter();
        let mut found = machines.filter(|machine| machine.name() == experiment.host);
        found.next().ok_or_else(|| HostError::Unsuitable {
            what: format!("there is no machine `{}`", experiment.host),
        })
    }

    /// Checks that an experiment can run; the error is the reason for leaving it out.
    ///
    /// # Errors
    /// When the machine lacks something, or cannot be asked.
    pub fn obstacle(&self, experiment: &Experiment) -> Result<(), HostError> {
        let machine = self.machine(experiment)?;
        let spec = session::spec(experiment)?;
        let system = &**spec;
        if !system.runs_on().contains(&machine.operating_system()) {
            return Err(HostError::Unsuitable {
                what: format!("{} does not exist on this system", system.title()),
            });
        }
        if let Some(filesystem) = &experiment.filesystem
            && !filesystem.runs_on().contains(&machine.operating_system())
        {
            return Err(HostError::Unsuitable {
                what: format!("{} does not exist on this system", filesystem.label()),
            });
        }
        let missing = needs::missing(machine, &plan::needs(experiment)?)?;
        if !missing.is_empty() {
            return Err(HostError::Missing {
                machine: machine.name().to_owned(),
                missing,
            });
        }
        let built = session::built(machine, experiment)?;
        system.check(&built.members)?;
        // Files on a file system are as large as their jobs say; regions of the bare array must
        // lie within it.
        if experiment.filesystem.is_none() {
            experiment.check_fits(system.capacity(&built.members))?;
        }
        // Making the arguments of every job finds impossible ones without running.
        plan::invocations(machine, experiment)?;
        plan::check_events(experiment, &built)
    }
}

impl Bench for HostBench {
    fn name(&self) -> &'static str {
        "host"
    }

    fn repeats_exactly(&self) -> bool {
        false
    }

    fn occupies<'a>(&self, experiment: &'a Experiment) -> Option<&'a str> {
        Some(&experiment.host)
    }

    fn check(&self, experiment: &Experiment) -> Result<(), BenchError> {
        self.obstacle(experiment)
            .map_err(|source| BenchError::setup("the check before the run", source))
    }

    fn run(
        &self,
        experiment: &Experiment,
        observer: &mut dyn Observer,
    ) -> Result<Finish, BenchError> {
        let machine = self
            .machine(experiment)
            .map_err(|source| BenchError::setup("looking for the machine", source))?;
        if finished(experiment, observer) {
            return Ok(Finish::Complete);
        }
        if observer.cancelled() {
            return Ok(Finish::Cancelled);
        }
        self.describe(machine, observer)
            .map_err(|source| BenchError::setup("looking at the machine", source))?;
        let mut session = Session::begin(machine, experiment)
            .map_err(|source| BenchError::setup("building the array", source))?;
        let finish = steps(&mut session, observer);
        observer.record(subject::health(&session));
        // A run may fail because the array did not get ready in time, so its last states
        // are recorded too.
        session.poll().ok();
        tell_looks(&mut session, observer);
        let ended = session.end();
        if let Err(error) = &ended {
            // If a step has failed as well, the step's error is returned.
            session.note("left-behind", None, error.to_string());
        }
        let left = job::leftovers(&mut session);
        observer.record(left);
        let finish = finish?;
        ended.map_err(|source| BenchError::setup("taking the array down", source))?;
        Ok(finish)
    }
}

impl HostBench {
    /// Records the machine's environment once per run.
    fn describe(&self, machine: &Machine, observer: &mut dyn Observer) -> Result<(), HostError> {
        let described = || {
            self.described
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if described().contains(machine.name()) {
            return Ok(());
        }
        let scope = Scope::host(machine.name());
        let inventory = Inventory::of(machine.target())?;
        let facts = environment(machine.target(), &inventory)?;
        let facts = facts.into_iter();
        let observations = facts.map(|fact| Observation::of(&scope, fact));
        observer.record(Records {
            observations: observations.chain(plan_disks::facts(machine)).collect(),
            ..Records::default()
        });
        described().insert(machine.name().to_owned());
        Ok(())
    }
}

/// Whether every cell of an experiment was finished before an interruption.
fn finished(experiment: &Experiment, observer: &dyn Observer) -> bool {
    let mut jobs = experiment.jobs().filter(|job| !job.prepares).peekable();
    jobs.peek().is_some() && jobs.all(|job| observer.is_finished(&job.cell(experiment)))
}

/// Does the steps in order. Where cells were finished before an interruption, all other steps
/// (filling, events, waits) are done again, so that the array is as it was when the next job
/// begins; the time line says so.
fn steps(session: &mut Session<'_>, observer: &mut dyn Observer) -> Result<Finish, BenchError> {
    let experiment = session.experiment;
    let settings = subject::settings(session)
        .map_err(|source| BenchError::setup("reading the settings back", source))?;
    observer.record(settings);
    let done = experiment
        .jobs()
        .filter(|job| !job.prepares && observer.is_finished(&job.cell(experiment)))
        .count();
    if done > 0 {
        let text = format!("the run goes on; {done} jobs were measured before");
        session.note("resumed", None, text);
    }
    let count = experiment.steps.len();
    for (index, step) in experiment.steps.iter().enumerate() {
        let mut watch = Watch {
            observer,
            step: index,
            steps: count,
        };
        watch.look(session.now());
        if watch.check().is_err() {
            return Ok(Finish::Cancelled);
        }
        let done = do_step(session, step, &mut watch);
        tell_looks(session, observer);
        match done {
            Ok(()) => {}
            Err(HostError::Interrupted) => return Ok(Finish::Cancelled),
            Err(source) => {
                return Err(BenchError::Step {
                    step: index + 1,
                    source: Box::<dyn Error + Send + Sync>::from(source),
                });
            }
        }
    }
    observer.progress(Progress {
        step: count,
        steps: count,
        clock: Nanos(nanoseconds(session.now())),
    });
    Ok(Finish::Complete)
}

/// Passes on the states of the array since the last call.
fn tell_looks(session: &mut Session<'_>, observer: &mut dyn Observer) {
    for look in session.sampler.drain_looks() {
        observer.look(look);
    }
}

fn do_step(
    session: &mut Session<'_>,
    step: &PlannedStep,
    watch: &mut Watch<'_>,
) -> Result<(), HostError> {
    match step {
        PlannedStep::Event(event) => session.event(*event),
        PlannedStep::Check => session.check_all(),
        PlannedStep::Wait(wait) => wait_for(session, *wait, watch),
        PlannedStep::Job(job) => {
            // A preparing job is done again, as the array has been built anew. So is a job during
            // which something happens to a member, one that writes a file for later jobs, and one
            // beside a rebuild, whose duration would change without it.
            let cell = job.cell(session.experiment);
            let known = watch.observer.is_finished(&cell);
            let is_alone = job.events.is_empty() && !session.deeds.allows_sync();
            if known && !job.prepares && is_alone && !leaves_file(session, job)? {
                return Ok(());
            }
            let result = job::run(session, job, None, watch)?;
            if known {
                watch.observer.record(result.records);
            } else {
                watch.observer.cell(result);
            }
            Ok(())
        }
        PlannedStep::Rounds(rounds) => do_rounds(session, rounds, watch),
    }
}

/// Whether a job leaves a file that others may need: dd does, while fio makes the files that it
/// reads, and bonnie++ and iozone delete theirs.
fn leaves_file(session: &Session<'_>, job: &PlannedJob) -> Result<bool, HostError> {
    if !session.place.is_folder {
        return Ok(false);
    }
    let invocation = arguments::invocation(session, job)?;
    Ok(invocation.operation == Some(Operation::Write))
}

/// Waits for a time to pass, or for a state of the array.
fn wait_for(session: &mut Session<'_>, wait: Wait, watch: &mut Watch<'_>) -> Result<(), HostError> {
    let begun = session.now();
    let (condition, limit) = match wait {
        Wait::Time(time) => (None, time),
        Wait::Until { condition, at_most } => (Some(condition), at_most),
    };
    let limit = Duration::from_nanos(limit.0);
    match condition {
        Some(Condition::Idle) => return idle(session, limit, watch),
        Some(Condition::Clean) => return clean::wait(session, limit, watch),
        _ => {}
    }
    let is_for_sync = condition == Some(Condition::SyncDone);
    let mut idle_since = None;
    loop {
        let now = watch.poll(session)?;
        // The sampler's last state may be from before the previous step.
        let status = session.status_since(begun);
        let met = match condition {
            None => now - begun >= limit,
            Some(condition) => status.is_some_and(|status| is_met(session, condition, status)),
        };
        if met {
            if is_for_sync {
                session.deeds.settled();
            }
            return Ok(());
        }
        // A failed rebuild looks like no rebuild: btrfs cancels one for which it finds no room, and
        // says so nowhere else.
        if is_for_sync && status.is_some_and(|status| status.sync.is_none()) {
            let since = *idle_since.get_or_insert(now);
            if now - since >= GIVEN_UP {
                return Err(HostError::Late {
                    what: "nothing is copied any more, but the array is not whole again".to_owned(),
                    seconds: (now - begun).as_secs(),
                });
            }
        } else {
            idle_since = None;
        }
        if condition.is_some() && now - begun >= limit {
            return Err(HostError::Late {
                what: "the array did not come into the state that the suite waits for".to_owned(),
                seconds: limit.as_secs(),
            });
        }
        std::thread::sleep(LOOK.min(limit.saturating_sub(now - begun)));
    }
}

/// Whether the array's last state is the one that is waited for.
fn is_met(session: &Session<'_>, condition: Condition, status: &ArrayStatus) -> bool {
    match condition {
        Condition::SyncDone => session.settled(status),
        Condition::SyncPercent(percent) => match status.sync {
            Some(sync) => sync.percent.is_some_and(|now| now >= percent),
            // The copying ended before the first look.
            None => session.settled(status),
        },
        Condition::Idle | Condition::Clean => true,
    }
}

fn idle(session: &Session<'_>, limit: Duration, watch: &mut Watch<'_>) -> Result<(), HostError> {
    let settled = job::settle(session, IDLE_S, limit.as_secs().max(IDLE_S), watch)?;
    if settled.quiet {
        return Ok(());
    }
    Err(HostError::Late {
        what: "the members did not become idle".to_owned(),
        seconds: settled.waited_s,
    })
}

/// Repeats jobs in rounds until the tracked job's figure is steady.
fn do_rounds(
    session: &mut Session<'_>,
    rounds: &Rounds<PlannedJob>,
    watch: &mut Watch<'_>,
) -> Result<(), HostError> {
    let experiment = session.experiment;
    let cells: Vec<_> = rounds.jobs.iter().map(|job| job.cell(experiment)).collect();
    let known: Vec<bool> = cells
        .iter()
        .map(|cell| watch.observer.is_finished(cell))
        .collect();
    if known.iter().all(|known| *known) {
        return Ok(());
    }
    let mut results: Vec<CellResult> = cells
        .into_iter()
        .map(|cell| CellResult {
            cell,
            rows: Vec::new(),
            records: Records::default(),
        })
        .collect();
    let mut steady = SteadyState::default();
    let mut attained = false;
    for round in 1..=rounds.at_most {
        let mut tracked = None;
        for (job, result) in rounds.jobs.iter().zip(&mut results) {
            let done = job::run(session, job, Some(round), watch)?;
            if job.name == rounds.track {
                tracked = done.rows.first().map(Measurement::value);
            }
            append(result, done);
        }
        let value = tracked.unwrap_or(f64::NAN);
        attained = steady.push(value).map_err(|error| HostError::Unsuitable {
            what: format!("job `{}` gave no figure to track: {error}", rounds.track),
        })?;
        if attained {
            let text = format!("rounds `{}` are steady after round {round}", rounds.name);
            session.note("steady", None, text);
            break;
        }
    }
    if !attained {
        let text = format!(
            "rounds `{}` did not become steady in {} rounds",
            rounds.name, rounds.at_most
        );
        session.note("not-steady", None, text);
    }
    for (mut result, known) in results.into_iter().zip(known) {
        let scope = Scope {
            sequence: Some(result.cell.sequence),
            ..session.scope()
        };
        let source = "SNIA PTS: 5 rounds, range 20 %, slope 10 %";
        let steady = Observation::new(&scope, "rounds.steady", attained, "", source);
        result.records.observations.push(steady);
        // A kill between two cells of the same round: the first cell is kept.
        if known {
            watch.observer.record(result.records);
        } else {
            watch.observer.cell(result);
        }
    }
    Ok(())
}

fn append(to: &mut CellResult, mut from: CellResult) {
    to.rows.append(&mut from.rows);
    to.records.settings.append(&mut from.records.settings);
    to.records
        .observations
        .append(&mut from.records.observations);
    to.records.commands.append(&mut from.records.commands);
    to.records.events.append(&mut from.records.events);
    to.records.series.append(&mut from.records.series);
}
