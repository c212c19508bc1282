//! Records a small experiment on loop devices of this machine, as root: the
//! transcript that the tests replay.
//!
//! `cargo run -p raidlab-bench-host --example record -- FOLDER SUITE.toml > FILE`
//! makes trial disks in FOLDER, runs the suite's first experiment and writes
//! every exchange with the machine as a line of JSON.

use raidlab_bench_host::{HostBench, Machine, forget_if_clean, trial};
use raidlab_inventory::System;
use raidlab_inventory::choose::Consent;
use raidlab_lab::{Bench, Choices, HostChoice, Observer, Suite};
use raidlab_shell::{Local, Observed, Target};
use raidlab_store::{CellResult, Records};
use raidlab_units::Bytes;
use std::error::Error;
use std::io;
use std::path::Path;
use std::sync::Arc;

/// A progress observer that prints to the console; the transcript is the result.
struct Told;

impl Observer for Told {
    fn record(&mut self, _: Records) {}
    fn cell(&mut self, result: CellResult) {
        eprintln!("job {}: {} rows", result.cell.sequence, result.rows.len());
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [folder, file] = words.as_slice() else {
        return Err("usage: record FOLDER SUITE.toml".into());
    };
    let text = std::fs::read_to_string(file)?;
    let suite = Suite::parse(file, &text, Path::new("."))?;
    let local: Arc<dyn Target> = Arc::new(Local::new());
    let files = trial::files(folder, suite.disks.len());
    let disks = trial::make(&local, System::of(&local)?, &files, Bytes(512 << 20))?;
    let recorded = run(
        &suite,
        &disks,
        Observed::recording(local.clone(), io::stdout()),
    );
    trial::remove(&local, &files)?;
    forget_if_clean(&Machine::local()?)?;
    recorded
}

fn run(
    suite: &Suite,
    disks: &[String],
    target: Observed<Arc<dyn Target>>,
) -> Result<(), Box<dyn Error>> {
    let machine = Machine::behind(Arc::new(target))?;
    let machine = machine.with_trial(disks.to_vec());
    let machine = machine.with_disks(disks, Consent::default())?;
    let choices = Choices {
        hosts: vec![HostChoice {
            name: machine.name().to_owned(),
            queue: machine.queue(),
            disks: disks.to_vec(),
        }],
        ..Choices::default()
    };
    let experiments = suite.experiments(&suite.subjects, &choices);
    let experiment = experiments.first().ok_or("the suite has no subject")?;
    let bench = HostBench::new(vec![machine]);
    bench.check(experiment)?;
    bench.run(experiment, &mut Told)?;
    Ok(())
}
