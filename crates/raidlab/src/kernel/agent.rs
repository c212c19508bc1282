//! raidlab as the first program in a guest of the kernel bench.

use crate::failure::{Failure, Kind};
use crate::run::Description;
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
    Description::read()?.experiment()
}
