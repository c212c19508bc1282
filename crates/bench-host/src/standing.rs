//! A guard over what was built on a machine, which takes it down again.
//!
//! The guard exists before the first command of the build, so that an error in any command, in the
//! file system or in the first look at the array, and a panic anywhere, end as the experiment's end
//! does: everything is taken down. Taking down continues after a command that fails, as a crash may
//! have left any part of it; whether something is left is checked afterwards.

use crate::error::HostError;
use crate::machine::Machine;
use raidlab_inventory::System;
use raidlab_lab::Experiment;
use raidlab_shell::{Command, Observed, Output, Target, TargetError};
use raidlab_systems::{ArraySystem, Built};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The number of times that taking down is tried again while something is left.
const ATTEMPTS: u32 = 5;
/// The time for which an unmount is retried: the sampler's own look at a file system (`btrfs scrub
/// status`) keeps it busy for a moment.
const BUSY: Duration = Duration::from_secs(30);
/// The time between two tries to take something down.
const AGAIN: Duration = Duration::from_millis(100);

/// An array with its file system, to be taken down.
pub struct Standing<'a> {
    pub machine: &'a Machine,
    pub experiment: &'a Experiment,
    pub system: &'a dyn ArraySystem,
    pub target: Observed<Arc<dyn Target>>,
    pub built: Built,
    /// The commands that restore what taking down the array does not cover.
    pub restore: Vec<Command>,
    /// Whether taking down was tried already; dropping the guard does not try again then.
    pub down: bool,
}

impl Standing<'_> {
    /// Takes everything down.
    ///
    /// # Errors
    /// When something is left afterwards, or it cannot be told.
    pub(crate) fn take_down(&mut self) -> Result<(), HostError> {
        self.down = true;
        let mut commands = take_down_commands(self.experiment, self.system, &self.built);
        commands.append(&mut self.restore);
        let mut left = Ok(None);
        for attempt in 0..=ATTEMPTS {
            if attempt > 0 {
                // A device may be busy for a moment after its last user.
                std::thread::sleep(Duration::from_secs(1));
            }
            for command in &commands {
                // Errors are ignored here: what counts is what is left.
                self.target.output(command).ok();
            }
            left = self.left();
            if matches!(left, Ok(None)) {
                return Ok(());
            }
        }
        match left? {
            None => Ok(()),
            Some(what) => Err(HostError::LeftBehind {
                machine: self.machine.name().to_owned(),
                what,
            }),
        }
    }

    /// The parts of the array that are left, in words; `None` if there are none.
    fn left(&self) -> Result<Option<String>, HostError> {
        let mounted = mounts(&self.target, self.machine.system(), self.machine.folder())?;
        if let Some(folder) = mounted.iter().find(|folder| **folder == self.built.folder) {
            return Ok(Some(format!("a file system mounted on {folder}")));
        }
        let found = self.system.find(&self.target, &self.built.name)?;
        let mut found = found.iter().filter(|found| found.name == self.built.name);
        Ok(found
            .next()
            .map(|built| format!("{} `{}`", self.system.title(), built.name)))
    }
}

impl Drop for Standing<'_> {
    fn drop(&mut self) {
        if !self.down {
            // An error or a panic is under way, and is the one to report.
            self.take_down().ok();
        }
    }
}

/// The commands that take everything down.
pub(crate) fn take_down_commands(
    experiment: &Experiment,
    system: &dyn ArraySystem,
    built: &Built,
) -> Vec<Command> {
    let mut commands = Vec::new();
    if let Some(filesystem) = &experiment.filesystem {
        commands.push(filesystem.unmount(&built.folder));
    }
    commands.extend(system.destroy(built));
    commands
}

/// Runs a command; an unmount is retried while the file system is busy.
///
/// # Errors
/// As [`Target::run`].
pub(crate) fn run_patiently(target: &dyn Target, command: &Command) -> Result<Output, TargetError> {
    let deadline = Instant::now() + BUSY;
    loop {
        match target.run(command) {
            Err(TargetError::Failed { .. })
                if command.program == "umount" && Instant::now() < deadline =>
            {
                std::thread::sleep(AGAIN);
            }
            ended => return ended,
        }
    }
}

/// The mount points below `folder`, the innermost first.
///
/// # Errors
/// When the machine cannot be queried.
pub fn mounts(
    target: &dyn Target,
    system: System,
    folder: &str,
) -> Result<Vec<String>, TargetError> {
    let listed = match system {
        System::Linux => target.read("/proc/self/mounts")?,
        System::FreeBsd => target.run(&Command::reads("mount", ["-p"]))?.stdout,
    };
    let ours = format!("{folder}/");
    let mut folders: Vec<String> = listed
        .lines()
        .filter_map(|line| line.split_whitespace().nth(1))
        .filter(|folder| folder.starts_with(&ours))
        .map(str::to_owned)
        .collect();
    folders.sort_by_key(|folder| std::cmp::Reverse(folder.len()));
    Ok(folders)
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_shell::Recorded;

    fn ended(code: i32) -> Output {
        Output {
            code: Some(code),
            stderr: "target is busy\n".to_owned(),
            ..Output::default()
        }
    }

    #[test]
    fn an_unmount_waits_for_a_look_to_end_and_nothing_else_does() {
        let umount = Command::changes("umount", ["/run/raidlab/raidlab0"]);
        let wipe = Command::destroys("wipefs", ["--all", "/dev/loop0"]);
        let machine = Recorded::new("localhost")
            .answers(&umount, ended(32))
            .answers(&umount, ended(32))
            .says(&umount, "")
            .answers(&wipe, ended(1))
            .says(&wipe, "");
        run_patiently(&machine, &umount).unwrap();
        assert_eq!(machine.commands().len(), 3);
        run_patiently(&machine, &wipe).unwrap_err();
        assert_eq!(machine.commands().len(), 4);
    }

    #[test]
    fn only_what_is_below_our_folder_is_ours() {
        let linux = "/dev/sda1 / ext4 rw 0 0\n/dev/md100 /run/raidlab/raidlab0 ext4 rw 0 0\n\
                     tmpfs /run/raidlabel tmpfs rw 0 0\n\
                     /dev/sdb /run/raidlab/raidlab0/sub xfs rw 0 0\n";
        let machine = Recorded::new("localhost").file("/proc/self/mounts", linux);
        let found = mounts(&machine, System::Linux, "/run/raidlab").unwrap();
        assert_eq!(
            found,
            ["/run/raidlab/raidlab0/sub", "/run/raidlab/raidlab0"]
        );
        let freebsd = "/dev/ada0p2\t\t/\t\t\tufs\trw\t1 1\n\
                       /dev/mirror/raidlab0\t/var/run/raidlab/raidlab0\tufs\trw\t2 2\n";
        let list = Command::reads("mount", ["-p"]);
        let machine = Recorded::new("store2").says(&list, freebsd);
        let found = mounts(&machine, System::FreeBsd, "/var/run/raidlab").unwrap();
        assert_eq!(found, ["/var/run/raidlab/raidlab0"]);
    }
}
