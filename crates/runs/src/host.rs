//! The real machines of a run: which machines, with which disks, and with what consent.
//!
//! Disks are named by the user, or made for a trial: loop devices on sparse files, which show that
//! everything works but not how fast real disks are. Before anything is built, every command is
//! known; where commands destroy data of real disks, they are shown and consent is asked for.

mod safety;

use crate::asked::HostAsked;
use crate::failure::{Failure, Kind};
use crate::front::Front;
use crate::notes::remark;
use crate::prepare;
use crate::prepared::{Obstacle, Prepared, possible};
use crate::task::{Task, hold};
use crate::values::member_size;
use raidlab_bench_host::{
    HostBench, HostError, LOCALHOST, Machine, MachineEntry, MachineFileError, cleanup, plan,
    plan_disks, trial,
};
use raidlab_inventory::System;
use raidlab_inventory::choose::{Consent, Reason, Refusal};
use raidlab_lab::{Choices, Files, HostChoice, Suite};
use raidlab_shell::Lock;
use raidlab_store::{Observation, Store};
use raidlab_units::{Bytes, count};
use safety::forget;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// The default size of a trial disk.
const TRIAL_SIZE: Bytes = Bytes(1 << 30);

/// Loop devices that are removed when the run has ended.
struct Trial {
    machine: Machine,
    files: Vec<String>,
    front: &'static dyn Front,
}

impl Drop for Trial {
    fn drop(&mut self) {
        if let Err(error) = trial::remove(self.machine.target(), &self.files) {
            self.front.say(&format!(
                "warning: trial disks stay: {error}; `raidlab cleanup` removes them"
            ));
            return;
        }
        // A run that is refused after its trial disks were made leaves no marks either.
        forget(&self.machine, self.front);
    }
}

/// The bench of real machines, with the locks and trial disks held for this run.
pub struct HostRun {
    /// The bench of all machines of the run.
    pub bench: HostBench,
    /// The trial disks, kept until the run has ended.
    trial: Option<Trial>,
    /// The machines' locks, released after everything else: one run at a time on each machine.
    _locks: Vec<Lock>,
    front: &'static dyn Front,
}

impl Obstacle for HostError {
    fn remedy(&self) -> Option<&'static str> {
        None
    }

    fn is_curable(&self) -> bool {
        matches!(self, Self::Missing { .. } | Self::Capacity(_))
    }
}

/// Connects, chooses disks and decides what is run. Where a killed run is resumed, its leftovers
/// are removed first.
///
/// # Errors
/// When a machine cannot be reached, a disk may not be used, or nothing is left to run.
pub fn prepare(task: &Task) -> Result<(HostRun, Prepared), Failure> {
    let (mut suite, subjects) = prepare::chosen(task)?;
    let facts = match &task.resumed {
        Some(run) => Some(Store::open_existing(&task.here.store)?.observations(run.id)?),
        None => None,
    };
    let Machines {
        machines,
        trial,
        locks,
    } = machines(task, &suite, facts.as_deref())?;
    let hosts = machines.iter().map(|machine| HostChoice {
        name: machine.name().to_owned(),
        queue: machine.queue(),
        disks: machine
            .disks()
            .iter()
            .map(|chosen| chosen.asked.clone())
            .collect(),
    });
    let choices = Choices {
        seed: task.asked.seed,
        hosts: hosts.collect(),
        ..Choices::default()
    };
    let mut remarks = prepare::remarks(&task.asked, &mut suite);
    for machine in &machines {
        let warnings = machine.warnings().iter();
        remarks.extend(warnings.map(|warning| remark(machine.name(), warning.to_string())));
    }
    if trial.is_some() {
        let words = "The members are loop devices on files of one disk: figures show that \
                     everything works, not how fast any disk is.";
        remarks.push(remark("A trial", words.to_owned()));
    }
    let bench = HostBench::new(machines);
    let all = suite.experiments(&subjects, &choices);
    let prepared = possible(task, suite, all, remarks, |one| bench.obstacle(one))?;
    let host = HostRun {
        bench,
        trial,
        _locks: locks,
        front: task.front,
    };
    Ok((host, prepared))
}

/// The machines with their disks, held for this run. When dropped, the trial disks are removed
/// before the locks are released.
struct Machines {
    machines: Vec<Machine>,
    trial: Option<Trial>,
    locks: Vec<Lock>,
}

/// Opens the machines with their disks; `facts` are those of the run that is resumed.
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
    for entry in entries {
        let mut machine = entry.connect().map_err(Failure::run)?;
        held.locks.push(hold(&machine)?);
        if let Some(facts) = facts {
            for one in cleanup(&machine).map_err(Failure::run)?.removed {
                task.front
                    .say(&format!("removed {one}, left by the run before"));
            }
            let planned = plan_disks::planned(facts, machine.name());
            machine = machine.with_plan(planned.map_err(|words| Failure::words(Kind::Run, words))?);
        }
        let disks = if entry.disks.is_empty() && entry.destination == LOCALHOST {
            let (made, devices) = make_trial(own, wanted, task.front)?;
            held.trial = Some(made);
            machine = machine.with_trial(devices.clone());
            devices
        } else {
            entry.disks
        };
        if disks.len() < wanted {
            let words = format!(
                "suite `{}` is for {wanted} disks, and {} named on {}",
                suite.name,
                count(disks.len(), "is", "are"),
                machine.name()
            );
            let help = match &own.machine_file {
                Some(_) => "name one for each member in the machine's `disks`",
                None => "give --disk once for each member",
            };
            return Err(Failure::words(Kind::Usage, words).help(help));
        }
        let machine = machine
            .with_disks(&disks, consent)
            .map_err(|error| refused(error, facts.is_some()))?;
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
        elevate: elevate.clone(),
        ..MachineEntry::default()
    };
    if own.machines.is_empty() {
        return Ok(vec![entry(LOCALHOST)]);
    }
    if task.asked.disks.is_empty() {
        let words = "no disks are named for the machines";
        return Err(Failure::words(Kind::Usage, words).help("give --disk once for each member"));
    }
    if !elevate.is_empty() && own.machines.iter().any(|name| name == LOCALHOST) {
        let words = format!("`--elevate` does nothing on {LOCALHOST}");
        let help = "it is for machines behind ssh; run raidlab itself as root here";
        return Err(Failure::words(Kind::Usage, words).help(help));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = own.machines.iter().find(|name| !names.insert(*name)) {
        let words = format!("--machine {twice} is given twice");
        return Err(Failure::words(Kind::Usage, words));
    }
    Ok(own.machines.iter().map(|name| entry(name)).collect())
}

fn read_machines(files: &Files, path: &Path) -> Result<Vec<MachineEntry>, Failure> {
    let fields =
        "a machine has `destination` and `disks`, and may have `name`, `ssh` and `elevate`";
    raidlab_bench_host::read_machines(files, path).map_err(|error| match error {
        MachineFileError::Load(error) => Failure::from(error).or_help(fields),
        twice @ MachineFileError::Twice { .. } => Failure::new(Kind::Input, twice)
            .help("`name = \"...\"` tells machines behind one address apart"),
        wrong @ MachineFileError::Wrong { .. } => Failure::new(Kind::Input, wrong).help(fields),
    })
}

fn make_trial(
    own: &HostAsked,
    count: usize,
    front: &'static dyn Front,
) -> Result<(Trial, Vec<String>), Failure> {
    let size = match &own.trial_size {
        None => TRIAL_SIZE,
        Some(text) => member_size("--trial-size", text)?,
    };
    let machine = MachineEntry {
        destination: LOCALHOST.to_owned(),
        ..MachineEntry::default()
    }
    .connect()
    .map_err(Failure::run)?;
    if machine.system() != System::Linux {
        let words = "trial disks are loop devices of Linux";
        return Err(Failure::words(Kind::Usage, words).help("name disks with --disk"));
    }
    let folder = own.trial_folder.display().to_string();
    // An absolute path without links: a cleanup may run in another working directory.
    let folder = machine.target().resolve(&folder).map_err(Failure::run)?;
    let left = "`raidlab cleanup` removes what an earlier run has left; loop devices need root";
    let files = trial::files(&folder, count);
    let devices =
        trial::make(machine.target(), machine.system(), &files, size).map_err(|error| {
            forget(&machine, front);
            let says_how = matches!(error, HostError::Unsuitable { .. });
            Failure::new(Kind::Run, error).maybe_help((!says_how).then_some(left))
        })?;
    let trial = Trial {
        machine,
        files,
        front,
    };
    Ok((trial, devices))
}

/// The failure of a machine: a refusal is the input's fault, anything else the machine's.
/// `raidlab resume` has no option by which a refusal could be overruled.
fn refused(error: HostError, is_resumed: bool) -> Failure {
    match error {
        HostError::Refused { ref refusals, .. } => {
            // A disk that is not there has no data to lose.
            let there = |one: &Refusal| !matches!(one.reason, Reason::NotFound { .. });
            let help = (!is_resumed && refusals.iter().any(there)).then_some(
                "`--wipe-signatures` allows the loss of what nobody uses when a run begins; nothing \
                 else is overruled",
            );
            Failure::new(Kind::Input, error).maybe_help(help)
        }
        error => Failure::new(Kind::Run, error),
    }
}

impl HostRun {
    /// All commands that would run, as text.
    ///
    /// # Errors
    /// When an experiment cannot run.
    pub fn words(&self, prepared: &Prepared) -> Result<String, Failure> {
        let mut text = String::new();
        for experiment in &prepared.experiments {
            let planned = self
                .bench
                .machine(experiment)
                .and_then(|machine| plan(machine, experiment))
                .map_err(Failure::run)?;
            let _ = writeln!(text, "{planned}");
        }
        for remark in &prepared.remarks {
            let _ = writeln!(text, "{}: {}", remark.title, remark.statement);
        }
        let _ = writeln!(
            text,
            "{}; a line with ! loses data; nothing was run on the disks",
            count(prepared.experiments.len(), "experiment", "experiments")
        );
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::refused;
    use raidlab_bench_host::HostError;
    use raidlab_inventory::choose::{Reason, Refusal};

    #[test]
    fn nobody_is_told_to_wipe_a_disk_that_is_not_there() {
        let helps = |reasons: &[Reason], is_resumed: bool| {
            let refusal = |reason: &Reason| Refusal {
                disk: "/dev/sdz".to_owned(),
                reason: reason.clone(),
            };
            let error = HostError::Refused {
                machine: "localhost".to_owned(),
                refusals: reasons.iter().map(refusal).collect(),
            };
            refused(error, is_resumed).to_string().contains("help: ")
        };
        let nowhere = Reason::NotFound {
            machine: "localhost".to_owned(),
        };
        let written = Reason::Signatures {
            signatures: Vec::new(),
        };
        assert!(!helps(&[nowhere.clone(), nowhere.clone()], false));
        assert!(helps(&[nowhere.clone(), written.clone()], false));
        assert!(!helps(&[nowhere, written], true));
    }
}
