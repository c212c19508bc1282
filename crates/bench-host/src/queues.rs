//! The tunables of each member's queue that a suite sets, written before the array is built and
//! restored afterwards: its scheduler, and the read latency for which it throttles writes.

use crate::error::HostError;
use crate::machine::Machine;
use crate::sampler::kernel_name;
use crate::tunables::{chosen, write};
use raidlab_inventory::{DiskKind, System};
use raidlab_lab::Experiment;
use raidlab_shell::{Command, Target, TargetError};
use raidlab_systems::Built;

/// The names of a queue's files, below `/sys/block/DISK/queue`.
const SCHEDULER: &str = "scheduler";
const THROTTLING: &str = "wbt_lat_usec";

/// The commands that set the tunables of the members' queues, and those that restore them.
#[derive(Debug, Clone, Default)]
pub struct Queues {
    /// Commands that set the tunables, before the array is built.
    pub set: Vec<Command>,
    /// Commands that restore the earlier values, when the array is taken down.
    pub restore: Vec<Command>,
    /// The files that are written, each with its earlier value.
    pub before: Vec<(String, String)>,
}

/// Reads each member's queue before it is changed: after a crashed run the earlier values
/// would be unknown.
///
/// # Errors
/// When the suite asks for what the machine's kernel does not have for a member.
pub fn queues(
    machine: &Machine,
    experiment: &Experiment,
    built: &Built,
) -> Result<Queues, HostError> {
    let subject = &experiment.subject;
    let scheduler = subject.scheduler.clone().map(|name| (SCHEDULER, name));
    let latency = subject.write_throttling.map(|time| time.0 / 1_000);
    let throttling = latency.map(|microseconds| (THROTTLING, microseconds.to_string()));
    let mut all = Queues::default();
    // A scheduler may switch the throttling on or off, so it comes first.
    for (file, wanted) in scheduler.into_iter().chain(throttling) {
        if machine.system() != System::Linux {
            let what = format!("`{file}` of a disk's queue is one of Linux");
            return Err(HostError::Unsuitable { what });
        }
        for member in &built.members {
            let device = queue_of(machine, &member.device);
            let path = format!("/sys/block/{}/queue/{file}", kernel_name(device));
            let held = held(machine, &member.device, &path, file)?;
            if file == SCHEDULER {
                check(&member.device, &held, &wanted)?;
            }
            let current = chosen(&held);
            all.set.push(write(&path, &wanted));
            // Values are restored in reverse order.
            all.restore.insert(0, write(&path, current));
            all.before.push((path, current.to_owned()));
        }
    }
    Ok(all)
}

/// The value of a tunable. The throttling of a queue that never had one can be written, but not
/// read (Linux block/blk-sysfs.c, `queue_wb_lat_show`): it counts as none.
fn held(machine: &Machine, device: &str, path: &str, file: &str) -> Result<String, HostError> {
    match machine.target().read(path) {
        Err(error) if file == THROTTLING && error.is_missing() => {
            let what = format!("the kernel has no throttling of writes for {device}: no {path}");
            Err(HostError::Unsuitable { what })
        }
        Err(TargetError::Io { .. }) if file == THROTTLING => Ok("0".to_owned()),
        text => Ok(text?),
    }
}

/// The device whose queue takes a member's requests: a partition has no queue of its own.
fn queue_of<'a>(machine: &'a Machine, device: &'a str) -> &'a str {
    let mut disks = machine.disks().iter().map(|chosen| &chosen.disk);
    let disk = disks.find(|disk| disk.device == device);
    let part = disk.filter(|disk| disk.kind == DiskKind::Partition);
    part.and_then(|part| part.on.last())
        .map_or(device, String::as_str)
}

/// Checks that a member's kernel has a scheduler; the kernel lists them as
/// `none [mq-deadline] kyber`.
fn check(device: &str, listed: &str, wanted: &str) -> Result<(), HostError> {
    let mut words = listed.split_whitespace();
    if words.any(|word| word.trim_matches(['[', ']']) == wanted) {
        return Ok(());
    }
    let listed = listed.trim();
    let what = format!("there is no scheduler `{wanted}` for {device}, whose kernel has: {listed}");
    Err(HostError::Unsuitable { what })
}
