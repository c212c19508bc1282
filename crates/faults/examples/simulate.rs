//! Runs fault-simulation seeds: `cargo run --release -p raidlab-faults
//! --example simulate -- --seeds 1000 --from 0 [--level raid5] [--show SEED]`.

use raidlab_faults::{Filter, explain, md::Md, run_seed};
use rayon::prelude::*;
use std::time::Instant;

fn main() {
    let mut arguments = std::env::args().skip(1);
    let (mut seeds, mut from, mut show) = (100_u64, 0_u64, None);
    let mut filter = Filter::default();
    while let Some(name) = arguments.next() {
        let value = arguments.next().unwrap_or_default();
        match name.as_str() {
            "--seeds" => seeds = value.parse().unwrap_or(seeds),
            "--from" => from = value.parse().unwrap_or(from),
            "--show" => show = value.parse::<u64>().ok(),
            "--level" => filter.level = value.parse().ok(),
            "--over" => filter.over_budget = value.parse().ok(),
            "--log" => filter.log = value.parse().ok(),
            "--bitmap" => filter.bitmap = value.parse().ok(),
            other => {
                eprintln!("unknown option {other}");
                return;
            }
        }
    }
    if std::env::var_os("LOUD").is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    if let Some(seed) = show {
        match explain(&Md, &filter, seed, "", 600) {
            Some(failure) => println!("{failure}"),
            None => println!("seed {seed} passes"),
        }
        return;
    }
    let begun = Instant::now();
    let outcomes: Vec<_> = (from..from + seeds)
        .into_par_iter()
        .map(|seed| run_seed(&Md, &filter, seed, false))
        .collect();
    let mut all = raidlab_faults::Statistics::default();
    let mut failed = 0;
    for outcome in &outcomes {
        all.add(&outcome.statistics);
        if let Some(violation) = &outcome.violation {
            failed += 1;
            if failed <= 30 {
                println!(
                    "seed {} {}: {violation}",
                    outcome.seed, outcome.options.level
                );
            }
        }
    }
    println!("{all}");
    println!(
        "{failed} of {seeds} failed; {:.1} s",
        begun.elapsed().as_secs_f64()
    );
}
