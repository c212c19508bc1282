//! The scheduler that a suite asks for, written to each member's queue and put back.

use crate::error::HostError;
use crate::machine::Machine;
use crate::sampler::kernel_name;
use crate::tunables::{chosen, write};
use raidlab_inventory::{DiskKind, System};
use raidlab_lab::Experiment;
use raidlab_shell::{Command, Target};
use raidlab_systems::Built;

/// What gives the members their scheduler, and what gives them back what they had.
#[derive(Debug, Clone, Default)]
pub struct Schedulers {
    /// Commands that set the schedulers, before the array is built.
    pub set: Vec<Command>,
    /// Commands that set what was there before, when the array is taken down.
    pub restore: Vec<Command>,
    /// The files that are written, and what they hold before that.
    pub before: Vec<(String, String)>,
}

/// Looks which scheduler each member has, as one that a crashed run has changed is not
/// known to anybody later.
///
/// # Errors
/// When the suite asks for one that the machine's kernel does not have for a member.
pub fn schedulers(
    machine: &Machine,
    experiment: &Experiment,
    built: &Built,
) -> Result<Schedulers, HostError> {
    let Some(wanted) = &experiment.subject.scheduler else {
        return Ok(Schedulers::default());
    };
    if machine.system() != System::Linux {
        let what = format!("scheduler `{wanted}` is one of Linux");
        return Err(HostError::Unsuitable { what });
    }
    let mut all = Schedulers::default();
    for member in &built.members {
        let device = queue_of(machine, &member.device);
        let path = format!("/sys/block/{}/queue/scheduler", kernel_name(device));
        let listed = machine.target().read(&path)?;
        check(&member.device, &listed, wanted)?;
        let current = chosen(&listed);
        all.set.push(write(&path, wanted));
        all.restore.push(write(&path, current));
        all.before.push((path, current.to_owned()));
    }
    Ok(all)
}

/// The device whose queue a member's requests are in: a partition has none of its own.
fn queue_of<'a>(machine: &'a Machine, device: &'a str) -> &'a str {
    let mut disks = machine.disks().iter().map(|chosen| &chosen.disk);
    let disk = disks.find(|disk| disk.device == device);
    let part = disk.filter(|disk| disk.kind == DiskKind::Partition);
    part.and_then(|part| part.on.last())
        .map_or(device, String::as_str)
}

/// Whether a member's kernel has a scheduler; it lists them so: `none [mq-deadline] kyber`.
fn check(device: &str, listed: &str, wanted: &str) -> Result<(), HostError> {
    let mut words = listed.split_whitespace();
    if words.any(|word| word.trim_matches(['[', ']']) == wanted) {
        return Ok(());
    }
    let listed = listed.trim();
    let what = format!("there is no scheduler `{wanted}` for {device}, whose kernel has: {listed}");
    Err(HostError::Unsuitable { what })
}
