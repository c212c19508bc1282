//! `raidlab resume`: an interrupted run goes on where it was.

use crate::cli::{Cli, Command};
use crate::failure::{Failure, Kind};
use crate::run::{self, STORE};
use clap::{Args, Parser};
use raidlab_store::{LATEST, Store};
use std::path::PathBuf;

/// Arguments of `raidlab resume`.
#[derive(Debug, Args)]
#[command(
    long_about = "\
Goes on with a run that was interrupted, killed or lost with the machine's power. What \
was measured stays and is not measured again. Where a subject was in the middle of its \
steps, its array is built anew and everything but the finished jobs is done again \
(filling, events, waits), so that the next job finds the array as it would have been. \
What the killed run has left on the machine is removed first: `raidlab cleanup`.",
    after_help = "\
Examples:
  raidlab resume
  raidlab resume 20261121T021000Z-quick"
)]
pub struct Arguments {
    /// The run's name, or `latest` for the one begun last.
    #[arg(default_value = LATEST)]
    run: String,

    /// The file that keeps the runs.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    store: PathBuf,
}

/// Goes on.
///
/// # Errors
/// When there is nothing to go on with, or as `raidlab run`.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let store = Store::open_existing(&arguments.store)?;
    let found = store.run_by_name(&arguments.run)?;
    drop(store);
    let name = &found.run.name;
    if found.run.finished.is_some() {
        let words = format!("run {name} has come to its end");
        return Err(Failure::words(Kind::Usage, words).help("`raidlab report` shows it"));
    }
    let typed = std::iter::once("raidlab").chain(found.run.arguments.iter().map(String::as_str));
    match Cli::try_parse_from(typed).map(|cli| cli.command) {
        Ok(Command::Run(mut again)) => {
            again.store.clone_from(&arguments.store);
            run::resume(&again, &found)
        }
        _ => {
            let words = format!("run {name} was not begun by a command that can go on");
            Err(Failure::words(Kind::Input, words).help("begin it again"))
        }
    }
}
