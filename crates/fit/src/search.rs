//! The search: Nelder and Mead's simplex (The Computer Journal 7, 1965).
//!
//! Parameters are searched in units of their range, so that one simplex suits
//! all; outside the range the cost rises steeply. The cost of a fact is its
//! squared relative error in percent, that of a prior its squared error in
//! units of its tolerance. After a first search a second one starts from a
//! fresh simplex around the best point, which frees it where it had collapsed.

use crate::evaluate::{FitError, quantity, simulate};
use crate::facts::{Fact, Facts, Free, Prior};
use crate::simplex;
use raidlab_disk::DiskParameters;
use raidlab_units::Nanos;
use rayon::prelude::*;
use std::cell::Cell;

/// The number of steps of the first and of the second search.
const STEPS: [u64; 2] = [160, 120];
/// The size of the first and of the second simplex, in units of the ranges.
const SIMPLEX: [f64; 2] = [0.08, 0.03];
/// The cost of leaving the range by the whole of it.
const OUTSIDE: f64 = 1e6;

/// The progress of a fit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Progress {
    /// The number of points that have been evaluated so far, each by simulating all facts
    /// of the set.
    pub evaluations: u64,
    /// The estimated number of points in all.
    pub expected: u64,
    /// The least cost so far.
    pub best: f64,
}

/// One fact under the parameters found.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct FactRow {
    /// The id of the fact or prior.
    pub id: String,
    /// The fact in words.
    pub title: String,
    /// The unit of `measured` and `fitted`: `iops` for a fact, `ms` for a prior.
    pub unit: &'static str,
    /// The measured value (or, for a prior, the expected one).
    pub measured: f64,
    /// The value that the model gives under the parameters, to compare with `measured`.
    pub fitted: f64,
    /// The error of `fitted` against `measured`, in percent.
    pub error_percent: f64,
    /// Whether the set was fitted on it.
    pub used: bool,
    /// The document or log that the fact is from.
    pub source: String,
}

/// The outcome of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct FitOutcome {
    /// The parameters that moved, by name, rounded as they are to be stored.
    pub parameters: Vec<(String, f64)>,
    /// The names of parameters that came to lie at an end of their range, to within a
    /// hundredth of it.
    pub at_ends: Vec<String>,
    /// Rows of every fact and prior of the file against these parameters.
    pub rows: Vec<FactRow>,
    /// The sum of squared errors over the used facts and priors, in units of tolerance.
    pub cost: f64,
    /// The number of points that the search evaluated, each by simulating all facts of the set.
    pub evaluations: u64,
}

struct Problem<'a> {
    free: &'a [Free],
    facts: Vec<&'a Fact>,
    priors: Vec<&'a Prior>,
    base: &'a DiskParameters,
    seconds: u64,
    seed: u64,
    evaluations: Cell<u64>,
    best: Cell<f64>,
    progress: &'a dyn Fn(Progress),
}

impl Problem<'_> {
    fn parameters(&self, point: &[f64]) -> DiskParameters {
        let mut parameters = self.base.clone();
        for (free, &unit) in self.free.iter().zip(point) {
            let [low, high] = free.range;
            let value = low + unit.clamp(0.0, 1.0) * (high - low);
            parameters.set_named(&free.parameter, value);
        }
        parameters
    }

    fn cost_of(&self, parameters: &DiskParameters) -> Result<f64, FitError> {
        // Facts are simulated in parallel, but added in order: sums of floats depend on it.
        let (seconds, seed) = (self.seconds, self.seed);
        let errors: Vec<Result<f64, FitError>> = self
            .facts
            .par_iter()
            .map(|fact| {
                let iops = simulate(fact, parameters, Nanos::from_secs(seconds), seed)?;
                Ok((iops / fact.iops - 1.0) * 100.0)
            })
            .collect();
        let mut cost = 0.0;
        for error in errors {
            cost += error?.powi(2);
        }
        for prior in &self.priors {
            let error = (quantity(prior, parameters) / prior.value - 1.0) * 100.0;
            cost += (error / prior.tolerance_percent).powi(2);
        }
        Ok(cost)
    }
}

impl Problem<'_> {
    /// The cost of a point, in units of the ranges.
    fn cost(&self, point: &[f64]) -> Result<f64, FitError> {
        let outside: f64 = point
            .iter()
            .map(|&unit| (unit - unit.clamp(0.0, 1.0)).powi(2))
            .sum();
        let parameters = self.parameters(point);
        let cost = match parameters.validate() {
            Ok(()) => self.cost_of(&parameters)? + outside * OUTSIDE,
            // Each parameter may go there, but not all together.
            Err(_) => OUTSIDE + outside * OUTSIDE,
        };
        self.evaluations.set(self.evaluations.get() + 1);
        self.best.set(self.best.get().min(cost));
        (self.progress)(Progress {
            evaluations: self.evaluations.get(),
            expected: STEPS.iter().sum::<u64>() * 3 / 2,
            best: self.best.get(),
        });
        Ok(cost)
    }
}

/// Fits the free parameters of `facts` for `set`, everything else being
/// `base`; each fact is simulated for `seconds` of virtual time.
///
/// # Errors
/// A fact that cannot be simulated, or a set without facts.
pub fn fit(
    facts: &Facts,
    set: &str,
    base: &DiskParameters,
    seconds: u64,
    seed: u64,
    progress: &dyn Fn(Progress),
) -> Result<FitOutcome, FitError> {
    let in_set = |sets: &[String]| sets.iter().any(|name| name == set);
    let problem = Problem {
        free: &facts.free,
        facts: facts
            .facts
            .iter()
            .filter(|fact| in_set(&fact.sets))
            .collect(),
        priors: facts
            .priors
            .iter()
            .filter(|prior| in_set(&prior.sets))
            .collect(),
        base,
        seconds,
        seed,
        evaluations: Cell::new(0),
        best: Cell::new(f64::INFINITY),
        progress,
    };
    check_ranges(&facts.free, base)?;
    if problem.facts.is_empty() {
        return Err(FitError::NoFacts {
            set: set.to_owned(),
            known: facts.sets().join(", "),
        });
    }
    let mut point: Vec<f64> = facts
        .free
        .iter()
        .map(|free| (free.start - free.range[0]) / (free.range[1] - free.range[0]))
        .collect();
    for (steps, size) in STEPS.into_iter().zip(SIMPLEX) {
        point = search(&problem, point, steps, size)?;
    }
    outcome(facts, set, &problem, &point)
}

/// Checks that the disk has each parameter, and is a valid one at either end of its range and
/// at its start.
fn check_ranges(all: &[Free], base: &DiskParameters) -> Result<(), FitError> {
    let mut start = base.clone();
    for free in all {
        if !start.set_named(&free.parameter, free.start) {
            return Err(FitError::NoParameter {
                parameter: free.parameter.clone(),
            });
        }
    }
    for free in all {
        for value in [free.start, free.range[0], free.range[1]] {
            let mut moved = start.clone();
            moved.set_named(&free.parameter, value);
            moved.validate().map_err(|source| FitError::Range {
                parameter: free.parameter.clone(),
                value,
                source,
            })?;
        }
    }
    Ok(())
}

fn search(
    problem: &Problem<'_>,
    start: Vec<f64>,
    steps: u64,
    size: f64,
) -> Result<Vec<f64>, FitError> {
    let mut corners = vec![start.clone()];
    for index in 0..start.len() {
        let mut corner = start.clone();
        // The corner moves away from the nearer end of the range.
        corner[index] += if corner[index] > 0.5 { -size } else { size };
        corners.push(corner);
    }
    simplex::least(corners, steps, |point| problem.cost(point))
}

/// Rounds to four significant digits: more would pretend to be known.
fn rounded(value: f64) -> f64 {
    format!("{value:.3e}").parse().unwrap_or(value)
}

fn outcome(
    facts: &Facts,
    set: &str,
    problem: &Problem<'_>,
    point: &[f64],
) -> Result<FitOutcome, FitError> {
    let mut parameters = problem.base.clone();
    let mut named = Vec::new();
    let mut at_ends = Vec::new();
    for (free, &unit) in facts.free.iter().zip(point) {
        let [low, high] = free.range;
        let unit = unit.clamp(0.0, 1.0);
        let value = rounded(low + unit * (high - low));
        if unit.min(1.0 - unit) < 0.01 {
            at_ends.push(free.parameter.clone());
        }
        parameters.set_named(&free.parameter, value);
        named.push((free.parameter.clone(), value));
    }
    let rows = check(facts, set, &parameters, problem.seconds, problem.seed)?;
    Ok(FitOutcome {
        parameters: named,
        at_ends,
        rows,
        cost: problem.cost_of(&parameters)?,
        evaluations: problem.evaluations.get(),
    })
}

/// Compares every fact and prior of the file under `parameters`, without fitting.
///
/// # Errors
/// A fact that cannot be simulated.
pub fn check(
    facts: &Facts,
    set: &str,
    parameters: &DiskParameters,
    seconds: u64,
    seed: u64,
) -> Result<Vec<FactRow>, FitError> {
    let in_set = |sets: &[String]| sets.iter().any(|name| name == set);
    let mut rows = facts
        .facts
        .par_iter()
        .map(|fact| {
            let fitted = simulate(fact, parameters, Nanos::from_secs(seconds), seed)?;
            Ok(FactRow {
                id: fact.id.clone(),
                title: fact.title.clone(),
                measured: fact.iops,
                fitted,
                error_percent: (fitted / fact.iops - 1.0) * 100.0,
                unit: "iops",
                used: in_set(&fact.sets),
                source: fact.source.clone(),
            })
        })
        .collect::<Result<Vec<_>, FitError>>()?;
    rows.extend(facts.priors.iter().map(|prior| {
        let fitted = quantity(prior, parameters);
        FactRow {
            id: prior.id.clone(),
            title: format!("prior, held within about {} %", prior.tolerance_percent),
            measured: prior.value,
            fitted,
            error_percent: (fitted / prior.value - 1.0) * 100.0,
            unit: "ms",
            used: in_set(&prior.sets),
            source: prior.source.clone(),
        }
    }));
    Ok(rows)
}
