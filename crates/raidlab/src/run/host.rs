//! Real machines for a run: which, with which disks, and with whose consent.
//!
//! Disks are named by the user, or made for a trial: loop devices on sparse
//! files, which show that everything works and nothing of how fast disks are.
//! Before anything is built, every command is known; where data of real disks
//! are lost by them, they are shown and consent is asked for.

mod safety;

use super::asked_of_benches::HostAsked;
use super::prepare::{self, Prepared};
use super::{Task, holder};
use crate::failure::{Failure, Kind};
use crate::notes;
use crate::output;
use raidlab_host::{
    HostBench, HostError, LOCALHOST, Machine, MachineEntry, MachineFileError, cleanup, plan,
    plan_disks, trial,
};
use raidlab_inventory::System;
use raidlab_inventory::choose::Consent;
use raidlab_lab::{Choices, Experiment, Files, HostChoice, Suite};
use raidlab_shell::Lock;
use raidlab_store::{Observation, Store};
use raidlab_units::{Bytes, parse_bytes};
pub use safety::check_unchanged;
use safety::forget;
use std::fmt::Write;
use std::path::Path;

/// The size of trial disks where none is said.
const TRIAL_SIZE: Bytes = Bytes(1 << 30);

/// Loop devices that go when the run has ended.
pub struct Trial {
    machine: Machine,
    files: Vec<String>,
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Err(error) = trial::remove(self.machine.target(), &self.files) {
            output::say(&format!(
                "warning: trial disks stay: {error}; `raidlab cleanup` removes them"
            ));
            return;
        }
        // A run that is refused after its trial disks were made leaves nothing either.
        forget(&self.machine);
    }
}

/// Real machines with all that is to be done on them.
pub struct HostRun {
    /// The bench.
    pub bench: HostBench,
    /// The experiments.
    pub prepared: Prepared,
    /// Kept until the run has ended.
    trial: Option<Trial>,
    /// After everything else: one run at a time on each machine.
    _locks: Vec<Lock>,
}

/// Connects, chooses disks and decides what is run. Where a killed run goes on,
/// what it has left is removed first.
///
/// # Errors
/// When a machine cannot be reached, a disk may not be used, or nothing is left
/// to run.
pub fn prepare(task: &Task) -> Result<HostRun, Failure> {
    let asked = &task.asked;
    let mut suite = prepare::load(asked, &task.files)?;
    let subjects = prepare::chosen_subjects(&suite, &task.files, &asked.subjects)?;
    task.check_targets(&subjects)?;
    let own = &asked.host;
    if let Some(repetitions) = own.repetitions() {
        suite.repetitions = repetitions;
    }
    let facts = match &task.resumed {
        Some(run) => Some(Store::open_existing(&task.outputs.store)?.observations(run.id)?),
        None => None,
    };
    let Machines {
        machines,
        trial,
        locks,
    } = machines(task, &suite, facts.as_deref())?;
    let hosts = machines
        .iter()
        .map(|machine| HostChoice {
            name: machine.name().to_owned(),
            queue: machine.queue(),
            disks: machine
                .disks()
                .iter()
                .map(|chosen| chosen.asked.clone())
                .collect(),
        })
        .collect();
    let choices = Choices {
        seed: asked.seed,
        hosts,
        ..Choices::default()
    };
    let mut remarks = Vec::new();
    if !suite.remarks.is_empty() {
        remarks.push(notes::remark(
            "Remarks on the suite",
            suite.remarks.join("; "),
        ));
    }
    for machine in &machines {
        for warning in machine.warnings() {
            remarks.push(notes::remark(machine.name(), warning.to_string()));
        }
    }
    if trial.is_some() {
        let words = "The members are loop devices on files of one disk: figures show that \
                     everything works, not how fast any disk is.";
        remarks.push(notes::remark("A trial", words.to_owned()));
    }
    if let Some(words) = foreign_figures(&suite) {
        suite.published = None;
        remarks.push(notes::remark("Other disks", words));
    }
    let bench = HostBench::new(machines);
    let mut experiments = suite.experiments(&subjects, &choices);
    experiments.retain(|one| task.plans(one, suite.repetitions));
    let named = !asked.subjects.is_empty() || task.planned.is_some();
    let obstacles = leave_out(&bench, &mut experiments, named, task.dry_run)?;
    if experiments.is_empty() && task.planned.is_none() {
        let words = format!("nothing of suite `{}` can run here", suite.name);
        return Err(Failure::words(Kind::Run, words).help(obstacles.left_out.join("\n      ")));
    }
    for line in obstacles.left_out {
        remarks.push(notes::remark("Left out", line));
    }
    for line in obstacles.lacking {
        remarks.push(notes::remark("Lacking", line));
    }
    Ok(HostRun {
        bench,
        prepared: Prepared {
            suite,
            experiments,
            remarks,
        },
        trial,
        _locks: locks,
    })
}

/// The machines with their disks, held for this run. Without a run they give back
/// the trial before the locks.
struct Machines {
    machines: Vec<Machine>,
    trial: Option<Trial>,
    locks: Vec<Lock>,
}

/// The machines with their disks; `facts` are those of the run that goes on.
fn machines(
    task: &Task,
    suite: &Suite,
    facts: Option<&[Observation]>,
) -> Result<Machines, Failure> {
    let own = &task.asked.host;
    let consent = Consent {
        wipe_signatures: own.wipe_signatures,
    };
    let entries = entries(task)?;
    let wanted = suite.disks.len();
    let mut held = Machines {
        machines: Vec::new(),
        trial: None,
        locks: Vec::new(),
    };
    let failed = |error| Failure::new(Kind::Run, error);
    for entry in entries {
        let mut machine = entry.connect().map_err(failed)?;
        let lock = machine.lock(&holder());
        held.locks
            .push(lock.map_err(|error| failed(error).help("real machines need root there"))?);
        if let Some(facts) = facts {
            for one in cleanup(&machine).map_err(failed)?.removed {
                output::say(&format!("removed {one}, left by the run before"));
            }
            let planned = plan_disks::planned(facts, machine.name());
            machine = machine.with_plan(planned.map_err(|words| Failure::words(Kind::Run, words))?);
        }
        let disks = if entry.disks.is_empty() && entry.destination == LOCALHOST {
            let (made, devices) = make_trial(own, wanted)?;
            held.trial = Some(made);
            devices
        } else {
            entry.disks
        };
        if disks.len() < wanted {
            let words = format!(
                "suite `{}` is for {wanted} disks, {} are named on {}",
                suite.name,
                disks.len(),
                entry.destination
            );
            return Err(Failure::words(Kind::Usage, words).help("give --disk once for each member"));
        }
        let machine = machine.with_disks(&disks, consent).map_err(refused)?;
        held.machines.push(machine);
    }
    Ok(held)
}

fn entries(task: &Task) -> Result<Vec<MachineEntry>, Failure> {
    let own = &task.asked.host;
    if let Some(path) = &own.machine_file {
        return read_machines(&task.files, path);
    }
    let words = own.elevate.as_deref().unwrap_or_default();
    let elevate: Vec<String> = words.split_whitespace().map(str::to_owned).collect();
    let entry = |destination: &str| MachineEntry {
        destination: destination.to_owned(),
        disks: task.asked.disks.clone(),
        ssh: Vec::new(),
        elevate: elevate.clone(),
    };
    if own.machines.is_empty() {
        return Ok(vec![entry(LOCALHOST)]);
    }
    if task.asked.disks.is_empty() {
        let words = "no disks are named for the machines";
        return Err(Failure::words(Kind::Usage, words).help("give --disk once for each member"));
    }
    Ok(own.machines.iter().map(|name| entry(name)).collect())
}

fn read_machines(files: &Files, path: &Path) -> Result<Vec<MachineEntry>, Failure> {
    raidlab_host::read_machines(files, path).map_err(|error| match error {
        MachineFileError::Load(error) => error.into(),
        wrong @ MachineFileError::Wrong { .. } => Failure::new(Kind::Input, wrong)
            .help("a machine has `destination` and `disks`, and may have `ssh` and `elevate`"),
    })
}

fn make_trial(own: &HostAsked, count: usize) -> Result<(Trial, Vec<String>), Failure> {
    let size = match &own.trial_size {
        None => TRIAL_SIZE,
        Some(text) => parse_bytes(text)
            .map_err(|error| Failure::new(Kind::Usage, error).help("a size is `512m` or `2g`"))?,
    };
    let machine = MachineEntry {
        destination: LOCALHOST.to_owned(),
        disks: Vec::new(),
        ssh: Vec::new(),
        elevate: Vec::new(),
    }
    .connect()
    .map_err(|error| Failure::new(Kind::Run, error))?;
    if machine.system() != System::Linux {
        let words = "trial disks are loop devices of Linux";
        return Err(Failure::words(Kind::Usage, words).help("name disks with --disk"));
    }
    let folder = std::path::absolute(&own.trial_folder)
        .unwrap_or_else(|_| own.trial_folder.clone())
        .display()
        .to_string();
    let left = "`raidlab cleanup` removes what an earlier run has left; loop devices need root";
    let files = trial::files(&folder, count);
    let devices =
        trial::make(machine.target(), machine.system(), &files, size).map_err(|error| {
            forget(&machine);
            Failure::new(Kind::Run, error).help(left)
        })?;
    Ok((Trial { machine, files }, devices))
}

/// A refusal is the input's fault; anything else the machine's.
fn refused(error: HostError) -> Failure {
    match error {
        HostError::Refused { .. } => Failure::new(Kind::Input, error).help(
            "`--wipe-signatures` allows the loss of what nobody uses when a run begins; nothing else \
             is overruled",
        ),
        error => Failure::new(Kind::Run, error),
    }
}

/// What stands in the way of experiments.
#[derive(Debug, Default)]
struct Obstacles {
    /// Of those that are not run.
    left_out: Vec<String>,
    /// Of those that a plan shows all the same.
    lacking: Vec<String>,
}

/// Leaves out what a machine lacks; an error where the subject was named. A plan
/// is shown all the same where another machine state would do: a tool can be
/// installed, larger disks can be named.
fn leave_out(
    bench: &HostBench,
    experiments: &mut Vec<Experiment>,
    named: bool,
    planned: bool,
) -> Result<Obstacles, Failure> {
    let mut obstacles = Obstacles::default();
    let mut kept = Vec::new();
    for experiment in std::mem::take(experiments) {
        let Err(error) = bench.obstacle(&experiment) else {
            kept.push(experiment);
            continue;
        };
        let curable = matches!(error, HostError::Missing { .. } | HostError::Capacity(_));
        let line = format!("{}: {error}", experiment.subject.name);
        let lines = if planned && curable {
            kept.push(experiment);
            &mut obstacles.lacking
        } else if named {
            let words = format!("subject `{}` cannot run", experiment.subject.name);
            let failure = Failure::words(Kind::Run, format!("{words}: {error}"));
            return Err(failure.help("name another with --subject"));
        } else {
            &mut obstacles.left_out
        };
        if !lines.contains(&line) {
            lines.push(line);
        }
    }
    *experiments = kept;
    Ok(obstacles)
}

fn foreign_figures(suite: &Suite) -> Option<String> {
    suite.published.as_ref().map(|published| {
        format!(
            "The published figures are of {}; this run is on other disks, so nothing is compared.",
            published.disks.join(", ")
        )
    })
}

impl HostRun {
    /// Every command that would run.
    ///
    /// # Errors
    /// When an experiment cannot run.
    pub fn plan(&self) -> Result<String, Failure> {
        let mut text = String::new();
        for experiment in &self.prepared.experiments {
            let planned = self
                .bench
                .machine(experiment)
                .and_then(|machine| plan(machine, experiment))
                .map_err(|error| Failure::new(Kind::Run, error))?;
            let _ = writeln!(text, "{planned}");
        }
        for remark in &self.prepared.remarks {
            let _ = writeln!(text, "{}: {}", remark.title, remark.statement);
        }
        let _ = writeln!(
            text,
            "{} experiments; a line with ! loses data; nothing was run on the disks",
            self.prepared.experiments.len()
        );
        Ok(text)
    }
}
