//! Runs of one seed, and of many.

use crate::options::{Filter, Options};
use crate::script::{self, Step};
use crate::statistics::Statistics;
use crate::world::{Violation, World};
use rayon::prelude::*;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The outcome of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The seed from which everything else was drawn.
    pub seed: u64,
    /// The options that the seed made.
    pub options: Options,
    /// The steps of the run.
    pub script: Vec<Step>,
    /// The broken promise, if there was one.
    pub violation: Option<Violation>,
    /// The counts of the run.
    pub statistics: Statistics,
    /// Digest of the trace.
    pub trace_hash: u64,
    /// The trace, if it was wanted.
    pub trace: Vec<String>,
}

/// The outcome of many seeds.
#[derive(Debug, Default)]
pub struct Summary {
    /// The sum of all counts.
    pub statistics: Statistics,
    /// The seeds that failed, ascending, with the broken promise.
    pub failures: Vec<(u64, Violation)>,
}

/// Runs one seed.
#[must_use]
pub fn run_seed(filter: &Filter, seed: u64, trace: bool) -> Outcome {
    let options = Options::draw(seed, filter);
    run_with(options, None, seed, trace)
}

/// Runs a given script, or the one that the seed makes.
#[must_use]
pub fn run_with(options: Options, script: Option<Vec<Step>>, seed: u64, trace: bool) -> Outcome {
    let mut outcome = Outcome {
        seed,
        options: options.clone(),
        script: Vec::new(),
        violation: None,
        statistics: Statistics::default(),
        trace_hash: 0,
        trace: Vec::new(),
    };
    let mut world = match guarded(|| World::new(&options, seed, trace)) {
        Ok(world) => world,
        Err(violation) => {
            outcome.violation = Some(violation);
            return outcome;
        }
    };
    let script = script.unwrap_or_else(|| script::draw(seed, &options, world.array_size()));
    outcome.violation = guarded(|| world.run(&script)).err();
    outcome.script = script;
    outcome.statistics = world.statistics();
    outcome.trace_hash = world.trace().hash();
    outcome.trace = world.trace().lines().to_vec();
    outcome
}

/// Runs a function and returns a panic as a violation: the core's own assertions are promises, too.
fn guarded<T>(run: impl FnOnce() -> Result<T, Violation>) -> Result<T, Violation> {
    catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|panic| {
        Err(Violation {
            kind: "panic",
            detail: panic_text(panic.as_ref()),
        })
    })
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without words".to_owned())
}

/// Runs many seeds on all threads of the pool, each seed on one.
#[must_use]
pub fn run_seeds(filter: &Filter, seeds: std::ops::Range<u64>) -> Summary {
    let one = |seed: u64| {
        let outcome = run_seed(filter, seed, false);
        let failure = outcome.violation.map(|violation| (seed, violation));
        Summary {
            statistics: outcome.statistics,
            failures: failure.into_iter().collect(),
        }
    };
    seeds
        .into_par_iter()
        .map(one)
        .reduce(Summary::default, Summary::with)
}

impl Summary {
    fn with(mut self, other: Self) -> Self {
        self.statistics.add(&other.statistics);
        self.failures.extend(other.failures);
        self.failures.sort_by_key(|(seed, _)| *seed);
        self
    }
}
