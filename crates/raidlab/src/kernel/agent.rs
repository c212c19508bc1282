//! raidlab as the first program in a guest of the kernel bench.

use crate::cli::{Cli, Command};
use crate::failure::{Failure, Kind};
use crate::run::Description;
use clap::Parser;
use raidlab_kernel::agent;
use raidlab_lab::Experiment;

/// Runs the guest's experiment and switches it off.
pub fn run() {
    let served = agent::begin().and_then(|()| {
        let experiment = experiment().map_err(|failure| vec![failure.to_string()]);
        agent::serve(experiment)
    });
    if let Err(error) = served {
        // The console shows it, and the bench outside reads that.
        Failure::new(Kind::Run, error).report();
    }
    agent::end();
}

fn experiment() -> Result<Experiment, Failure> {
    let description = Description::read()?;
    let folder = description.folder();
    std::env::set_current_dir(folder).map_err(|error| {
        let words = format!(
            "the guest has no folder {}: {error}; start from another one",
            folder.display()
        );
        Failure::words(Kind::Run, words)
    })?;
    match Cli::try_parse_from(description.command_line()).map(|cli| cli.command) {
        Ok(Command::Run(arguments)) => description.experiment(&arguments),
        _ => Err(Failure::words(
            Kind::Input,
            "the guest got no command line of a run",
        )),
    }
}
