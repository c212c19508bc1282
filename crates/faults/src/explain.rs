//! The report of a seed that fails.

use crate::options::Filter;
use crate::run::{Outcome, run_seed};
use crate::shrink::shrink;
use std::fmt;

/// A failing seed with all facts for a report.
#[derive(Debug)]
pub struct Failure {
    /// The run that the seed made.
    pub outcome: Outcome,
    /// The smallest script found that still fails, with its trace.
    pub shrunk: Outcome,
    /// The commit of the sources, as the caller gave it.
    pub commit: String,
}

/// Shrinks a failing seed's script and collects everything about it. `None` if it does not fail.
#[must_use]
pub fn explain(filter: &Filter, seed: u64, commit: &str, most_runs: usize) -> Option<Failure> {
    let outcome = run_seed(filter, seed, true);
    outcome.violation.as_ref()?;
    let shrunk = shrink(&outcome, most_runs);
    Some(Failure {
        outcome,
        shrunk,
        commit: commit.to_owned(),
    })
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { seed, options, .. } = &self.outcome;
        writeln!(formatter, "seed {seed} at commit {}", self.commit)?;
        writeln!(formatter, "options: {options:?}")?;
        for outcome in [&self.outcome, &self.shrunk] {
            if let Some(violation) = &outcome.violation {
                writeln!(formatter, "{} steps: {violation}", outcome.script.len())?;
            }
        }
        if self.shrunk.options != *options {
            writeln!(formatter, "shrunk options: {:?}", self.shrunk.options)?;
        }
        for (number, step) in self.shrunk.script.iter().enumerate() {
            writeln!(
                formatter,
                "  {number}: after {} ns {:?}",
                step.after_ns, step.action
            )?;
        }
        writeln!(formatter, "trace of the shrunk script:")?;
        for line in &self.shrunk.trace {
            writeln!(formatter, "{line}")?;
        }
        Ok(())
    }
}
