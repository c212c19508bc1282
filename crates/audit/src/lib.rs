//! Which numbers to believe: rules over measurements, settings and environment.
//!
//! A rule knows one way in which a storage benchmark goes wrong. It reads what
//! was written down about a run, nothing else: no file, no clock, no disk. So
//! it judges a run of this machine, of another one, and figures out of a
//! ten-year-old article alike.
//!
//! A rule whose evidence is missing stays silent, and [`Coverage`] says so:
//! "no findings" and "nobody looked" are different things. What is found is
//! in the order of [`rules`], then of the rows, and the same for the same
//! evidence.

mod bound;
mod case;
mod devices;
mod finding;
mod rule;
mod rules;

#[cfg(test)]
mod tests;

pub use rule::Rule;

use case::Case;
use finding::Ruling;
use raidlab_store::{
    CommandRecord, EventRecord, Finding, Measurement, Observation, Records, Series, shown,
};

/// What was written down about a run. All of it may be empty.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The measurements in their order.
    pub rows: &'a [Measurement],
    /// Facts, by the names in [`raidlab_store::fact`].
    pub observations: &'a [Observation],
    /// Members removed and added, syncs begun and ended.
    pub events: &'a [EventRecord],
    /// What was run, in its order.
    pub commands: &'a [CommandRecord],
    /// What was sampled while the run went on, as series over time.
    pub series: &'a [Series],
}

impl<'a> Evidence<'a> {
    /// The evidence in a run's rows and records.
    #[must_use]
    pub fn new(rows: &'a [Measurement], records: &'a Records) -> Self {
        Self {
            rows,
            observations: &records.observations,
            events: &records.events,
            commands: &records.commands,
            series: &records.series,
        }
    }
}

/// A rule that could not be applied to anything.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unjudged {
    /// The rule's identifier.
    pub rule: &'static str,
    /// A fact that it would have needed; empty where no row is of the kind
    /// that the rule is about.
    pub missing: String,
}

/// Which rules could say something.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Rules that had what they need for at least one row.
    pub judged: Vec<&'static str>,
    /// Rules that had it for no row, each with what was lacking.
    pub unjudged: Vec<Unjudged>,
}

/// What the audit says of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Audit {
    /// What is wrong, rule by rule.
    pub findings: Vec<Finding>,
    /// Which rules had what they need to judge.
    pub coverage: Coverage,
}

/// Every rule: family by family, in the order of identifiers.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    rules::RULES.iter()
}

/// Applies every rule to what jobs have measured, where disks were modelled with several
/// parameter sets to the figures that are shown. What arrays did in the background is
/// no job's figure: no rule's bounds are about it.
#[must_use]
pub fn audit(evidence: &Evidence<'_>) -> Audit {
    let of_jobs = |row: &&Measurement| !row.op.is_background();
    let rows: Vec<Measurement> = shown(evidence.rows.iter())
        .filter(of_jobs)
        .cloned()
        .collect();
    let case = Case::new(Evidence {
        rows: &rows,
        ..*evidence
    });
    let mut audit = Audit::default();
    for rule in rules() {
        let mut ruling = Ruling::new(rule);
        rule.apply(&case, &mut ruling);
        ruling.close(&mut audit);
    }
    audit
}
