//! Commands and checks that several systems share.

use super::{Member, ReadBack, Result, SystemError};
use raidlab_shell::{Command, Target, TargetError};
use raidlab_units::{Bytes, Sectors};

/// The command that erases all signatures on some devices, so that no tool asks about them or finds
/// an old array. `wipefs` opens a device exclusively and so refuses one that is in use.
pub(crate) fn wipe(devices: &[&str]) -> Command {
    let words = ["--all"].iter().chain(devices).copied();
    Command::destroys("wipefs", words)
}

/// The command that writes a tunable's file: a command like any other, so that it shows in a plan.
/// `tee` fails when the kernel refuses the value.
pub(crate) fn set(path: &str, value: impl std::fmt::Display) -> Command {
    Command::changes("tee", [path]).input(format!("{value}\n"))
}

/// The members' device nodes.
pub(crate) fn devices(members: &[Member]) -> Vec<&str> {
    members
        .iter()
        .map(|member| member.device.as_str())
        .collect()
}

/// A device's name as `/sys` has it: `/dev/loop3` is `loop3`.
pub(crate) fn kernel_name(device: &str) -> &str {
    device.strip_prefix("/dev/").unwrap_or(device)
}

/// The number a name ends in, of at most five digits, as minor numbers of
/// devices have 20 bits; 0 where it ends in none.
pub(crate) fn trailing_number(name: &str) -> u32 {
    let digits = name.len() - name.trim_end_matches(|c: char| c.is_ascii_digit()).len();
    name[name.len() - digits.min(5)..].parse().unwrap_or(0)
}

/// The smallest member's size, which each of equal slots can hold.
pub(crate) fn smallest(members: &[Member]) -> Bytes {
    members
        .iter()
        .map(|member| member.size)
        .min()
        .unwrap_or_default()
}

/// The member in a slot.
///
/// # Errors
/// When the array has no such slot.
pub(crate) fn member<'a>(title: &str, members: &'a [Member], slot: usize) -> Result<&'a Member> {
    members.get(slot).ok_or_else(|| {
        SystemError::unsupported(
            title,
            &format!("reach member {slot}"),
            format!("it has {} members, counted from 0", members.len()),
        )
    })
}

/// The size of a block device of Linux; 0 where it is not reported.
pub(crate) fn device_size(target: &dyn Target, device: &str) -> Bytes {
    let path = format!("/sys/class/block/{}/size", kernel_name(device));
    let text = target.read(&path).unwrap_or_default();
    let sectors = text.trim().parse().map(Sectors);
    sectors.map_or(Bytes(0), Sectors::to_bytes)
}

/// The output of a command; empty where its program is missing or it fails.
pub(crate) fn printed(target: &dyn Target, command: &Command) -> Result<String> {
    match target.output(command) {
        Ok(output) if output.code == Some(0) => Ok(output.stdout),
        Ok(_) | Err(TargetError::NoProgram { .. }) => Ok(String::new()),
        Err(error) => Err(error.into()),
    }
}

/// The error that an array cannot be built, with the reason.
pub(crate) fn cannot_build(system: &str, reason: impl Into<String>) -> SystemError {
    SystemError::unsupported(system, "be built", reason.into())
}

/// Gathers settings as they are in force.
pub(crate) struct Reader<'a> {
    target: &'a dyn Target,
    settings: Vec<ReadBack>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(target: &'a dyn Target) -> Self {
        Self {
            target,
            settings: Vec::new(),
        }
    }

    /// Adds a setting from a file; `understand` converts its contents into the spec's form. Without
    /// such a file, the setting is left out if it was not requested, and not applied if it was.
    pub(crate) fn file(
        &mut self,
        name: &str,
        asked: Option<impl ToString>,
        path: &str,
        understand: impl FnOnce(&str) -> String,
    ) -> Result<()> {
        let found = match self.target.read(path) {
            Ok(text) => understand(text.trim()),
            Err(error) if error.is_missing() => match &asked {
                Some(_) => "nothing".to_owned(),
                None => return Ok(()),
            },
            Err(error) => return Err(error.into()),
        };
        self.found(name, asked, found, path);
        Ok(())
    }

    /// Adds a setting that was read elsewhere.
    pub(crate) fn found(
        &mut self,
        name: &str,
        asked: Option<impl ToString>,
        found: impl ToString,
        source: &str,
    ) {
        self.settings
            .push(ReadBack::new(name, asked, found, source));
    }

    pub(crate) fn done(self) -> Vec<ReadBack> {
        self.settings
    }
}
