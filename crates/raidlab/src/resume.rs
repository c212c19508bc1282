//! The command `raidlab resume`: it goes on with an interrupted run where that was.

use crate::failure::{Failure, Kind};
use crate::run::{self, Manner};
use clap::Args;
use raidlab_runs::see;
use raidlab_store::{LATEST, Store};

/// Arguments of `raidlab resume`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The run's name, or `latest` for the one that the store took last.
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
        let help = format!("`{}` shows it", see(name, arguments.manner.store()));
        return Err(Failure::words(Kind::Usage, words).help(help));
    }
    run::resume(&arguments.manner, found)
}
