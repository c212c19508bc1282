//! The command `raidlab audit`: it says which of a run's numbers can be believed, and
//! why others cannot.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use raidlab_audit::{Audit, Evidence, audit, rules};
use raidlab_runs::notes::STORE;
use raidlab_runs::open_store;
use raidlab_store::{
    AUDIT_NOTE_CLASS, AccuracyNote, Finding, LATEST, Measurement, Records, RunId, Scope, Severity,
    Store, StoreError,
};
use raidlab_units::in_one_line;
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `raidlab audit`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The run's name, or `latest` for the one that the store took last.
    #[arg(default_value = LATEST)]
    run: String,

    /// The file that keeps the runs.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    store: PathBuf,

    /// Print one JSON object per finding.
    #[arg(long)]
    json: bool,

    /// List the rules.
    #[arg(long, conflicts_with_all = ["run", "json"])]
    rules: bool,
}

/// Audits a run, or lists the rules.
///
/// # Errors
/// When there is no such store or run, or it cannot be written.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.rules {
        return output::print(&catalogue());
    }
    let mut store = open_store(&arguments.store, &[&arguments.run])?;
    let (judged, warning) = again(&mut store, &arguments.run)?;
    if let Some(warning) = warning {
        output::say(&warning);
    }
    if arguments.json {
        let findings = judged.audit.findings.iter();
        let lines: Result<String, Failure> = findings.map(output::json).collect();
        return output::print(&lines?);
    }
    output::print(&words(&judged))
}

/// Audits a run anew and keeps the findings.
///
/// # Errors
/// When the store cannot be read or written.
pub fn renew(store: &mut Store, run: &str) -> Result<Audit, Failure> {
    let judged = judged(store, run)?;
    keep(store, &judged)?;
    Ok(judged.audit)
}

/// Audits a run as [`renew`] does; where nothing can be written, the findings are shown all the
/// same, with a warning that they were not kept.
fn again(store: &mut Store, run: &str) -> Result<(Judged, Option<String>), StoreError> {
    let judged = judged(store, run)?;
    match keep(store, &judged) {
        Err(
            error @ (StoreError::Unwritable { .. }
            | StoreError::Full { .. }
            | StoreError::Busy { .. }),
        ) => {
            let warning = format!("warning: what follows is not kept: {}", in_one_line(&error));
            Ok((judged, Some(warning)))
        }
        kept => kept.map(|()| (judged, None)),
    }
}

/// A run, its rows, and the findings of the rules in them.
struct Judged {
    run: RunId,
    rows: Vec<Measurement>,
    audit: Audit,
}

impl Judged {
    /// The name of the job that stands at a place of the suite, from 0.
    fn job(&self, scope: &Scope, place: u32) -> String {
        let is_its = |row: &&Measurement| {
            row.sequence == place && [&row.subject, ""].contains(&scope.subject.as_str())
        };
        match self.rows.iter().find(is_its) {
            Some(row) => format!("job {}", row.job),
            None => format!("job at place {}", place + 1),
        }
    }
}

/// Reads a run and judges it.
fn judged(store: &Store, run: &str) -> Result<Judged, StoreError> {
    let _snapshot = store.snapshot()?;
    let run = store.run_by_name(run)?.id;
    let rows = store.measurements(run)?;
    let records = Records {
        observations: store.observations(run)?,
        events: store.events(run)?,
        commands: store.commands(run)?,
        series: store.series(run)?,
        ..Records::default()
    };
    let audit = audit(&Evidence::new(&rows, &records));
    Ok(Judged { run, rows, audit })
}

/// Replaces the findings of an earlier audit by those of this one.
fn keep(store: &mut Store, judged: &Judged) -> Result<(), StoreError> {
    let note = AccuracyNote {
        class: AUDIT_NOTE_CLASS.to_owned(),
        title: "Audit".to_owned(),
        statement: coverage(&judged.audit),
        ..AccuracyNote::default()
    };
    store.set_findings(judged.run, &judged.audit.findings, Some(&note))
}

/// Lists every rule with the defect that it looks for and the remedy.
fn catalogue() -> String {
    let mut text = String::new();
    for rule in rules() {
        let _ = writeln!(
            text,
            "{:<4} {}\n     {}\n     effect  {}\n     remedy  {}\n     source  {}\n",
            rule.id, rule.title, rule.explanation, rule.effect, rule.remedy, rule.source
        );
    }
    text
}

/// Lists the findings, the worst first, and the rules that could not be judged.
fn words(judged: &Judged) -> String {
    let audit = &judged.audit;
    let findings = &audit.findings;
    let mut sorted: Vec<&Finding> = findings.iter().collect();
    sorted.sort_by_key(|finding| std::cmp::Reverse(finding.severity));
    let mut text = String::new();
    for finding in sorted {
        let severity = match finding.severity {
            Severity::Fatal => "FATAL",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        let _ = writeln!(
            text,
            "{severity} {}: {}\n  where     {}\n  evidence  {}\n  effect    {}\n  remedy    {}\n",
            finding.rule,
            finding.title,
            place(finding, judged),
            finding.evidence,
            finding.effect,
            finding.remedy
        );
    }
    let coverage = &audit.coverage;
    for unjudged in coverage
        .unjudged
        .iter()
        .filter(|one| !one.missing.is_empty())
    {
        let _ = writeln!(
            text,
            "not judged: {}, for want of {}",
            unjudged.rule, unjudged.missing
        );
    }
    let _ = writeln!(text, "{}", self::coverage(audit));
    let count = |severity| {
        findings
            .iter()
            .filter(|one| one.severity == severity)
            .count()
    };
    let _ = writeln!(
        text,
        "{} fatal, {} warnings, {} notes",
        count(Severity::Fatal),
        count(Severity::Warning),
        count(Severity::Note)
    );
    text
}

/// The share of the rules that could be judged, in words.
fn coverage(audit: &Audit) -> String {
    let unjudged = &audit.coverage.unjudged;
    let lacking = unjudged
        .iter()
        .filter(|one| !one.missing.is_empty())
        .count();
    format!(
        "{} rules were judged; {lacking} were not, for want of facts; {} are about rows of kinds \
         that are not here",
        audit.coverage.judged.len(),
        unjudged.len() - lacking
    )
}

/// The cells that a finding is about, in words.
fn place(finding: &Finding, judged: &Judged) -> String {
    let scope = &finding.scope;
    let mut words: Vec<String> = [
        &scope.host,
        &scope.subject,
        &scope.filesystem,
        &finding.part,
    ]
    .into_iter()
    .filter(|word| !word.is_empty())
    .cloned()
    .collect();
    words.extend(scope.sequence.map(|place| judged.job(scope, place)));
    words.extend(finding.op.map(|op| op.to_string()));
    words.extend(
        scope
            .repetition
            .map(|one| format!("repetition {}", one + 1)),
    );
    if words.is_empty() {
        "the whole run".to_owned()
    } else {
        words.join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::again;
    use raidlab_store::{Run, Store};

    #[test]
    fn a_run_that_may_not_be_written_to_is_judged() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("raidlab.db");
        let run = Run {
            name: "a".to_owned(),
            started: "2026-11-21T02:10:00Z".to_owned(),
            finished: Some("2026-11-21T02:11:00Z".to_owned()),
            bench: "model".to_owned(),
            suite: "quick".to_owned(),
            suite_title: String::new(),
            seed: 1,
            raidlab_version: String::new(),
            command_line: String::new(),
            plan_hash: String::new(),
        };
        let mut store = Store::open(&path).expect("a store");
        store.begin_run(&run).expect("begun");
        let (judged, warning) = again(&mut store, "a").expect("judged");
        assert_eq!(warning, None);
        // Of a file without a journal nothing is opened to be written.
        let path = folder.path().join("whole.db");
        store.move_to(&path).expect("moved");
        let mut store = Store::open_to_read(&path).expect("a store");
        let (same, warning) = again(&mut store, "a").expect("judged all the same");
        let counts = [&same, &judged].map(|one| one.audit.coverage.judged.len());
        assert_eq!(counts[0], counts[1]);
        let warning = warning.expect("a warning");
        assert!(warning.contains("whole.db"), "{warning}");
    }
}
