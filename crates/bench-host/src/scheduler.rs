//! The scheduler that a suite asks for, written to each member's queue and put back.

use crate::error::HostError;
use crate::machine::Machine;
use crate::sampler::kernel_name;
use raidlab_inventory::System;
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
        let path = format!("/sys/block/{}/queue/scheduler", kernel_name(&member.device));
        let listed = machine.target().read(&path)?;
        let (set, restore) = of_member(&member.device, &path, &listed, wanted)?;
        all.set.push(set);
        all.restore.extend(restore);
    }
    Ok(all)
}

/// The same of one member, whose kernel lists its schedulers so: `none [mq-deadline] kyber`.
fn of_member(
    device: &str,
    path: &str,
    listed: &str,
    wanted: &str,
) -> Result<(Command, Option<Command>), HostError> {
    let write = |value: &str| Command::changes("tee", [path]).input(format!("{value}\n"));
    let (mut has, mut current) = (false, None);
    for word in listed.split_whitespace() {
        let chosen = word.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        has |= chosen.unwrap_or(word) == wanted;
        current = current.or(chosen);
    }
    if !has {
        let listed = listed.trim();
        let what =
            format!("there is no scheduler `{wanted}` for {device}, whose kernel has: {listed}");
        return Err(HostError::Unsuitable { what });
    }
    Ok((write(wanted), current.map(write)))
}

#[cfg(test)]
mod tests {
    use super::of_member;

    #[test]
    fn what_a_member_had_is_put_back() {
        let of = |wanted| of_member("/dev/sda", "/sys/x", "none [mq-deadline] kyber\n", wanted);
        let (set, restore) = of("kyber").expect("it is there");
        assert_eq!(set.to_string(), "tee /sys/x");
        assert_eq!(set.input, "kyber\n");
        assert_eq!(restore.expect("one is in force").input, "mq-deadline\n");
        let refused = of("bfq").expect_err("it is not").to_string();
        assert!(
            refused.contains("no scheduler `bfq` for /dev/sda"),
            "{refused}"
        );
        assert!(refused.contains("none [mq-deadline] kyber"), "{refused}");
    }
}
