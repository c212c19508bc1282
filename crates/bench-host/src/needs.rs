//! Checks that a machine has the programs and kernel modules that are needed.

use crate::error::HostError;
use crate::machine::Machine;
use raidlab_inventory::System;
use raidlab_shell::{Command, Target};
use raidlab_systems::Need;
use std::collections::BTreeSet;

/// The missing programs and modules, each with how to get it; empty when nothing is missing.
///
/// # Errors
/// When the machine cannot be queried.
pub fn missing(machine: &Machine, needs: &[Need]) -> Result<Vec<String>, HostError> {
    let programs = programs(machine.target())?;
    let mut missing = Vec::new();
    for need in needs {
        let text = match need {
            Need::Program { name, apt, pkg } => {
                if programs.contains(*name) {
                    continue;
                }
                let install = match machine.system() {
                    System::Linux => apt,
                    System::FreeBsd => pkg,
                };
                if install.is_empty() {
                    format!("program `{name}`")
                } else {
                    format!("program `{name}` (`{install}`)")
                }
            }
            Need::Module(name) => {
                if has_module(machine, &programs, name)? {
                    continue;
                }
                format!("kernel module `{name}`")
            }
        };
        if !missing.contains(&text) {
            missing.push(text);
        }
    }
    Ok(missing)
}

/// The names of all programs in the folders of tools.
fn programs(target: &dyn Target) -> Result<BTreeSet<String>, HostError> {
    let mut names = BTreeSet::new();
    for folder in target.tool_folders() {
        names.extend(target.list(&folder)?);
    }
    Ok(names)
}

/// Whether the kernel has a module: loaded, built in, or loadable, which is tried. A built-in level
/// of md without parameters shows in `/proc/mdstat` only; built-in bcache shows elsewhere.
fn has_module(
    machine: &Machine,
    programs: &BTreeSet<String>,
    name: &str,
) -> Result<bool, HostError> {
    let target = machine.target();
    if machine.system() == System::FreeBsd {
        let loaded = Command::reads("kldstat", ["-q", "-m", name]);
        if target.output(&loaded)?.code == Some(0) {
            return Ok(true);
        }
        let load = Command::changes("kldload", ["-n", name]);
        return Ok(target.output(&load)?.code == Some(0));
    }
    // The kernel spells module names with underscores.
    let spelled = name.replace('-', "_");
    let file_system = |text: String| {
        text.lines()
            .any(|line| line.split_whitespace().last() == Some(name))
    };
    let level = if name == "raid456" { "raid5" } else { name };
    let personality = |text: String| text.contains(&format!("[{level}]"));
    // Built-in bcache shows only by its folder of cache sets.
    let sets = name == "bcache" && !target.list("/sys/fs/bcache")?.is_empty();
    if sets
        || target.list("/sys/module")?.contains(&spelled)
        || target.read("/proc/filesystems").is_ok_and(file_system)
        || target.read("/proc/mdstat").is_ok_and(personality)
    {
        return Ok(true);
    }
    if !programs.contains("modprobe") {
        return Ok(false);
    }
    let load = Command::changes("modprobe", ["-q", name]);
    Ok(target.output(&load)?.code == Some(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use raidlab_shell::{Recorded, TOOL_FOLDERS};
    use std::sync::Arc;

    fn machine(recorded: Recorded) -> Machine {
        let linux = Command::reads("uname", ["-s"]);
        Machine::behind(Arc::new(recorded.says(&linux, "Linux\n"))).unwrap()
    }

    #[test]
    fn a_module_is_loaded_built_in_or_loadable() {
        let mdstat = "Personalities : [raid6] [raid5] [raid4]\nunused devices: <none>\n";
        let mut recorded = Recorded::new("store1")
            .folder("/sys/module", &["dm_raid", "raid1"])
            .file("/proc/filesystems", "nodev\tsysfs\n\txfs\n")
            .file("/proc/mdstat", mdstat)
            .says(&Command::changes("modprobe", ["-q", "raid10"]), "");
        for folder in TOOL_FOLDERS {
            let names: &[&str] = if folder == "/sbin" {
                &["modprobe"]
            } else {
                &[]
            };
            recorded = recorded.folder(folder, names);
        }
        let needs = ["dm-raid", "raid1", "xfs", "raid456", "raid10"].map(Need::Module);
        assert!(missing(&machine(recorded), &needs).unwrap().is_empty());
    }

    #[test]
    fn bcache_that_is_built_in_shows_by_its_cache_sets() {
        let mut recorded = Recorded::new("store1")
            .folder("/sys/fs/bcache", &["register", "register_quiet"])
            .folder("/sys/module", &[]);
        for folder in TOOL_FOLDERS {
            recorded = recorded.folder(folder, &[]);
        }
        let needs = [Need::Module("bcache")];
        assert!(missing(&machine(recorded), &needs).unwrap().is_empty());
    }

    #[test]
    fn what_is_missing_is_named_once_with_its_package() {
        let mut recorded = Recorded::new("store1")
            .folder("/sys/module", &[])
            .file("/proc/filesystems", "")
            .file_missing("/proc/mdstat");
        for folder in TOOL_FOLDERS {
            recorded = recorded.folder(folder, &[]);
        }
        let fio = || Need::Program {
            name: "fio",
            apt: "apt-get install fio",
            pkg: "pkg install fio",
        };
        let needs = [fio(), fio(), Need::Module("btrfs")];
        assert_eq!(
            missing(&machine(recorded), &needs).unwrap(),
            [
                "program `fio` (`apt-get install fio`)",
                "kernel module `btrfs`"
            ]
        );
    }
}
