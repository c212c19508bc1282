//! `raidlab cleanup`: what a killed run has left on a machine.

use crate::failure::{Failure, Kind};
use crate::output;
use crate::run::TRIAL_FOLDER;
use clap::Args;
use raidlab_host::{Machine, cleanup};
use raidlab_shell::SshOptions;
use std::path::PathBuf;

/// Arguments of `raidlab cleanup`.
#[derive(Debug, Args)]
#[command(
    long_about = "\
Finds and removes what a run has left that was killed or lost its machine's power: \
running tools, mounts below /run/raidlab, arrays, pools and volume groups named \
raidlab..., and loop devices of a trial with their files. A run that ends, fails or is \
interrupted leaves nothing. Do not use it while a run goes on.",
    after_help = "\
Examples:
  raidlab cleanup
  raidlab cleanup --machine root@store1"
)]
pub struct Arguments {
    /// The machine behind ssh; default: this one.
    #[arg(long, value_name = "DESTINATION")]
    machine: Option<String>,

    /// Words before every command there: `sudo -n`.
    #[arg(long, value_name = "WORDS", default_value = "")]
    elevate: String,

    /// The folder of a trial's files.
    #[arg(long, value_name = "FOLDER", default_value = TRIAL_FOLDER)]
    trial_folder: PathBuf,
}

/// Cleans up.
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
    let folder = std::path::absolute(&arguments.trial_folder)
        .unwrap_or_else(|_| arguments.trial_folder.clone())
        .display()
        .to_string();
    // Who cannot be reached has not refused anything for want of rights.
    let machine = machine.map_err(|error| Failure::new(Kind::Run, error))?;
    let removed = cleanup(&machine, &folder).map_err(|error| {
        Failure::new(Kind::Run, error).help("arrays, mounts and loop devices need root")
    })?;
    let mut text: String = removed
        .iter()
        .map(|one| format!("removed {one}\n"))
        .collect();
    if removed.is_empty() {
        text.push_str("nothing was left\n");
    }
    output::print(&text)
}
