//! The plan of an experiment: every command, shown before any runs.

use crate::arguments::{self, Invocation};
use crate::error::HostError;
use crate::machine::Machine;
use crate::place::Place;
use crate::queues::queues;
use crate::session::{built, event_commands, make_and_mount, spec};
use crate::standing::take_down_commands;
use raidlab_inventory::counters::memory_state;
use raidlab_lab::{
    CHECK_IN_WORDS, Condition, Experiment, PlannedJob, PlannedStep, Wait, When, event_in_words,
    wait_in_words,
};
use raidlab_shell::{Command, Effect};
use raidlab_systems::{Access, ArraySystem, Built, Need};
use std::fmt::Write;
use std::time::Duration;

/// The programs and modules that the experiment's array, file system and tools need.
///
/// # Errors
/// When the subject cannot be built.
pub fn needs(experiment: &Experiment) -> Result<Vec<Need>, HostError> {
    let mut needs = spec(experiment)?.needs();
    if let Some(filesystem) = &experiment.filesystem {
        needs.extend(filesystem.needs());
    }
    for job in experiment.jobs() {
        let tool = crate::arguments::tool(job)?;
        needs.push(Need::Program {
            name: tool.name(),
            apt: tool.apt(),
            pkg: tool.pkg(),
        });
    }
    Ok(needs)
}

/// The place where jobs would run, with its capacity.
fn place(experiment: &Experiment, system: &dyn ArraySystem, built: &Built) -> Place {
    let (path, is_folder) = match system.access(built) {
        Access::Device(device) if experiment.filesystem.is_none() => (device, false),
        Access::Folder(folder) => (folder, true),
        Access::Device(_) | Access::Export(_) => (built.folder.clone(), true),
    };
    Place {
        path,
        is_folder,
        capacity_bytes: system.capacity(&built.members).0,
    }
}

/// Every job with the invocation of its tool.
///
/// # Errors
/// When a tool cannot do its job there.
pub(crate) fn invocations<'a>(
    machine: &Machine,
    experiment: &'a Experiment,
) -> Result<Vec<(&'a PlannedJob, Invocation)>, HostError> {
    let system = &**spec(experiment)?;
    let built = built(machine, experiment)?;
    let place = place(experiment, system, &built);
    let memory = memory_state(machine.target(), machine.system())?.total_bytes;
    experiment
        .jobs()
        .map(|job| Ok((job, arguments::planned(job, &place, memory)?)))
        .collect()
}

/// Checks that every event of members can be carried out at its time: a file system that must be
/// unmounted for it cannot be while a job runs on it.
///
/// # Errors
/// The first event that cannot.
pub(crate) fn check_events(experiment: &Experiment, built: &Built) -> Result<(), HostError> {
    let system = &**spec(experiment)?;
    let mut then = built.clone();
    // LVM releases a member only from a deactivated volume, and a mounted one
    // cannot be deactivated.
    let deactivates = |command: &Command| {
        let mut words = command.arguments.windows(2);
        words.any(|pair| pair == ["--activate", "n"])
    };
    for step in experiment.steps.iter() {
        if *step == PlannedStep::Check {
            system.check_all(built)?;
        }
        if let PlannedStep::Event(event) = step {
            let commands = event_commands(*event, system, &mut then)?;
            if experiment.filesystem.is_some() && commands.iter().any(deactivates) {
                return Err(HostError::Unsuitable {
                    what: format!(
                        "{} must be out of use to {}, but a file system is on it",
                        system.title(),
                        event_in_words(*event)
                    ),
                });
            }
        }
    }
    for job in experiment.jobs() {
        for event in &job.events {
            let commands = event_commands(event.event, system, &mut then)?;
            let idle = |command: &Command| command.program == "umount" || deactivates(command);
            if commands.iter().any(idle) {
                let what = format!(
                    "{} must be out of use to {}; make that a step of its own",
                    system.title(),
                    event_in_words(event.event)
                );
                return Err(HostError::of_job(job, what));
            }
        }
    }
    Ok(())
}

/// The plan in words and commands. Lines that lose data begin with `!`.
///
/// # Errors
/// When the experiment cannot run on the machine.
pub fn plan(machine: &Machine, experiment: &Experiment) -> Result<String, HostError> {
    let system = &**spec(experiment)?;
    let mut built = built(machine, experiment)?;
    let mut text = Plan(String::new());
    let filesystem = match experiment.filesystem_label() {
        label if label.is_empty() => "no file system".to_owned(),
        label => label,
    };
    text.line(&format!(
        "{} ({}, {filesystem}) on {}, repetition {}",
        experiment.subject.name,
        system.title(),
        machine.name(),
        experiment.repetition + 1
    ));
    for (slot, member) in built.members.iter().enumerate() {
        let chosen = machine
            .disks()
            .iter()
            .find(|one| one.disk.device == member.device);
        let what = chosen.map_or_else(String::new, |chosen| {
            let disk = &chosen.disk;
            let signatures: Vec<&str> = chosen
                .signatures
                .iter()
                .map(|signature| signature.kind.as_str())
                .collect();
            let lost = if signatures.is_empty() {
                String::new()
            } else {
                format!(", holds {} which is lost", signatures.join(", "))
            };
            format!(
                ", {}{lost}",
                disk.model.as_deref().unwrap_or(disk.stable_name())
            )
        });
        text.line(&format!(
            "  member {slot}    {} ({}){what}",
            member.device, member.size
        ));
    }
    text.line("  build");
    let queues = queues(machine, experiment, &built)?;
    text.commands(&queues.set);
    text.commands(&system.create(&built)?);
    if let (Access::Device(device), Some(filesystem)) =
        (system.access(&built), &experiment.filesystem)
    {
        text.commands(&make_and_mount(filesystem, &device, &built)?);
    }
    let mut invocations = invocations(machine, experiment)?.into_iter();
    for (index, step) in experiment.steps.iter().enumerate() {
        text.step(index + 1, step, system, &mut built, &mut invocations)?;
    }
    text.line("  take down");
    text.commands(&take_down_commands(experiment, system, &built));
    text.commands(&queues.restore);
    Ok(text.0)
}

struct Plan(String);

impl Plan {
    fn line(&mut self, line: &str) {
        // Writing to a string cannot fail.
        let _ = writeln!(self.0, "{line}");
    }

    fn commands(&mut self, commands: &[Command]) {
        for command in commands {
            let mark = if command.effect == Effect::Destroys {
                '!'
            } else {
                ' '
            };
            self.line(&format!("  {mark}   $ {command}"));
        }
    }

    fn step<'a>(
        &mut self,
        number: usize,
        step: &PlannedStep,
        system: &dyn ArraySystem,
        built: &mut Built,
        invocations: &mut impl Iterator<Item = (&'a PlannedJob, Invocation)>,
    ) -> Result<(), HostError> {
        match step {
            PlannedStep::Wait(wait) => {
                self.line(&format!("  step {number:<3}  {}", wait_in_words(*wait)));
                self.wait(*wait, system, built);
            }
            PlannedStep::Event(event) => {
                self.line(&format!("  step {number:<3}  {}", event_in_words(*event)));
                self.commands(&event_commands(*event, system, built)?);
            }
            PlannedStep::Check => {
                self.line(&format!("  step {number:<3}  {CHECK_IN_WORDS}"));
                self.commands(&system.check_all(built)?);
            }
            PlannedStep::Job(_) => {
                if let Some((job, invocation)) = invocations.next() {
                    self.line(&format!(
                        "  step {number:<3}  job {}: {}",
                        job.name, job.title
                    ));
                    self.job(job, &invocation, system, built)?;
                }
            }
            PlannedStep::Rounds(rounds) => {
                self.line(&format!(
                    "  step {number:<3}  until `{}` is steady, at most {} rounds of:",
                    rounds.track, rounds.at_most
                ));
                for (job, invocation) in invocations.by_ref().take(rounds.jobs.len()) {
                    self.line(&format!("            job {}: {}", job.name, job.title));
                    self.job(job, &invocation, system, built)?;
                }
            }
        }
        Ok(())
    }

    /// Writes what is done to reach a wait's condition.
    fn wait(&mut self, wait: Wait, system: &dyn ArraySystem, built: &Built) {
        let Wait::Until {
            condition: Condition::Clean,
            ..
        } = wait
        else {
            return;
        };
        if let Some(write_back) = system.write_back(built) {
            self.commands(&write_back.begin);
            self.commands(&write_back.end);
        }
    }

    fn job(
        &mut self,
        job: &PlannedJob,
        invocation: &Invocation,
        system: &dyn ArraySystem,
        built: &mut Built,
    ) -> Result<(), HostError> {
        self.commands(std::slice::from_ref(&invocation.command));
        if !job.note.is_empty() {
            self.line(&format!("      note: {}", job.note.trim()));
        }
        for event in &job.events {
            let when = match event.when {
                When::After(time) => {
                    let seconds = Duration::from_nanos(time.0).as_secs_f64();
                    format!("after {seconds} s")
                }
                When::SyncPercent(percent) => format!("when {percent} % are copied"),
            };
            self.line(&format!("      {when}: {}", event_in_words(event.event)));
            self.commands(&event_commands(event.event, system, built)?);
        }
        Ok(())
    }
}
