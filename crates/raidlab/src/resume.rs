//! `raidlab resume`: an interrupted run goes on where it was.

use crate::failure::{Failure, Kind};
use crate::run::{self, Manner};
use clap::Args;
use raidlab_store::{LATEST, Store};

/// Arguments of `raidlab resume`.
#[derive(Debug, Args)]
#[command(
    long_about = "\
Goes on with a run that was interrupted, killed or lost with the machine's power, with \
what it was planned with: the store keeps the plan and the texts of its files, and where \
a file has changed since, that is said. What \
was measured stays and is not measured again. Where a subject was in the middle of its \
steps, its array is built anew and everything but the finished jobs is done again \
(filling, events, waits), so that the next job finds the array as it would have been. \
On the model and the kernel bench, which give the same whenever they are run, a subject \
that was not finished begins anew: the run ends with the rows of one that was never \
interrupted, and `--json` prints all of them. On real machines what the killed run has left on the machine is removed first: `raidlab cleanup`.",
    after_help = "\
Examples:
  raidlab resume
  raidlab resume 20261121T021000Z-quick
  raidlab resume --json > rows.jsonl"
)]
pub struct Arguments {
    /// The run's name, or `latest` for the one begun last.
    #[arg(default_value = LATEST)]
    run: String,

    #[command(flatten)]
    manner: Manner,
}

/// Goes on with a run where it was.
///
/// # Errors
/// When there is nothing to go on with, or as `raidlab run`.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let store = Store::open_existing(arguments.manner.store())?;
    let found = store.run_by_name(&arguments.run)?;
    drop(store);
    let name = &found.run.name;
    if found.run.finished.is_some() {
        let words = format!("run {name} has come to its end");
        return Err(Failure::words(Kind::Usage, words).help("`raidlab report` shows it"));
    }
    run::resume(&arguments.manner, found)
}
