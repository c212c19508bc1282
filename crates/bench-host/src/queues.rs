//! What a suite asks of each member's queue, written before the array is built and put back: its
//! scheduler, and for which latency of reads it holds back writes.

use crate::error::HostError;
use crate::machine::Machine;
use crate::sampler::kernel_name;
use crate::tunables::{chosen, write};
use raidlab_inventory::{DiskKind, System};
use raidlab_lab::Experiment;
use raidlab_shell::{Command, Target, TargetError};
use raidlab_systems::Built;

/// The files of a queue, below `/sys/block/DISK/queue`.
const SCHEDULER: &str = "scheduler";
const THROTTLING: &str = "wbt_lat_usec";

/// What sets the tunables of the members' queues, and what gives them back what they had.
#[derive(Debug, Clone, Default)]
pub struct Queues {
    /// Commands that set them, before the array is built.
    pub set: Vec<Command>,
    /// Commands that set what was there before, when the array is taken down.
    pub restore: Vec<Command>,
    /// The files that are written, and what they hold before that.
    pub before: Vec<(String, String)>,
}

/// Looks what each member's queue has before it is changed: after a run that crashed nobody could
/// say what had been there.
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
            // What was set first is put back last.
            all.restore.insert(0, write(&path, current));
            all.before.push((path, current.to_owned()));
        }
    }
    Ok(all)
}

/// What a tunable holds. The throttling of a queue that never had one cannot be read, though it
/// can be written (Linux block/blk-sysfs.c, `queue_wb_lat_show`): that is none.
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
