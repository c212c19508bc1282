//! The command `raidlab cleanup`: it removes the leavings of a killed run from a machine.

use crate::failure::{Failure, Kind};
use crate::output;
use clap::Args;
use raidlab_bench_host::{Machine, cleanup};
use raidlab_runs::hold;
use raidlab_shell::SshOptions;

/// Arguments of `raidlab cleanup`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The machine behind ssh, such as `root@store1`. Default: this machine.
    #[arg(long, value_name = "DESTINATION")]
    machine: Option<String>,

    /// A command to put before every command there, such as `sudo -n`.
    #[arg(long, value_name = "WORDS", default_value = "")]
    elevate: String,
}

/// Removes the leavings of a killed run from a machine.
///
/// # Errors
/// When the machine cannot be reached, or something stays.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let machine = match &arguments.machine {
        None => Machine::local(),
        Some(destination) => {
            let elevate = arguments.elevate.split_whitespace();
            let options = SshOptions {
                elevate: elevate.map(str::to_owned).collect(),
                ..SshOptions::default()
            };
            Machine::ssh(destination, options)
        }
    };
    // A machine that cannot be reached has not refused anything for want of rights.
    let machine = machine.map_err(Failure::run)?;
    let failed =
        |error| Failure::new(Kind::Run, error).help("arrays, mounts and loop devices need root");
    let _lock = hold(&machine)?;
    let cleaned = cleanup(&machine).map_err(failed)?;
    let removed = cleaned.removed.iter().map(|one| format!("removed {one}\n"));
    let others = cleaned.left_alone.iter();
    let mut text: String = removed
        .chain(others.map(|one| format!("left alone {one}\n")))
        .collect();
    if cleaned.removed.is_empty() {
        text.push_str("nothing was left\n");
    }
    output::print(&text)
}
