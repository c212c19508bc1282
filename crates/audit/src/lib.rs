//! Which numbers to believe: rules over measurements, settings and environment.
//!
//! A rule knows one way in which a storage benchmark goes wrong. It reads what
//! was written down about a run, nothing else: no file, no clock, no disk. So
//! it judges a run of this machine, of another one, and figures out of a
//! ten-year-old article alike.
//!
//! A rule whose evidence is missing stays silent, and [`Coverage`] says so: "no findings" and
//! "not looked for" are different things. Findings are in the order of [`rules`], then of the rows,
//! and the same evidence gives the same findings.

mod bound;
mod case;
mod devices;
mod finding;
mod kept;
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
    /// Events: members removed and added, syncs begun and ended.
    pub events: &'a [EventRecord],
    /// The commands that were run, in their order.
    pub commands: &'a [CommandRecord],
    /// The samples taken during the run, as series over time.
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
    /// A fact that the rule would have needed; empty where no row is of the kind that the
    /// rule is about.
    pub missing: String,
}

/// The rules that could judge, and those that could not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Coverage {
    /// Rules that had what they need for at least one row.
    pub judged: Vec<&'static str>,
    /// Rules that had what they need for no row, each with the fact that was missing.
    pub unjudged: Vec<Unjudged>,
}

/// The result of an audit of a run.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Audit {
    /// The findings, rule by rule.
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
/// no job's figure: no rule's bounds are about it. A share that a job kept of its rate is struck out
/// with the rates that it was made from.
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
    let shown: Vec<Measurement> = shown(evidence.rows.iter()).cloned().collect();
    let of_shares = kept::of_struck_rates(&shown, &audit.findings);
    audit.findings.extend(of_shares);
    let place = |finding: &Finding| rules().position(|rule| rule.id == finding.rule);
    audit.findings.sort_by_key(place);
    audit
}
