//! `raidlab audit`: which of a run's numbers to believe, and why not.

use crate::failure::Failure;
use crate::output;
use clap::Args;
use raidlab_audit::{Audit, Evidence, audit, rules};
use raidlab_report::AUDIT_NOTE_CLASS;
use raidlab_runs::notes::STORE;
use raidlab_store::{AccuracyNote, Finding, LATEST, RunId, Severity, Store, StoreError};
use raidlab_units::in_one_line;
use std::fmt::Write;
use std::path::PathBuf;

/// Arguments of `raidlab audit`.
#[derive(Debug, Args)]
#[command(
    long_about = "\
Looks at a run's rows, settings, environment and samples for the known ways in which \
measurements of storage mislead: caches, settings that were not applied, resyncs under \
the test, units, tails of a tool's clock, and others. A fatal finding means that the \
number does not say what it seems to; the report strikes such a row \
out, and leaves it out when it says who is the best. Every run is audited at its end; \
this does it again, with the rules of this version, and keeps what it finds.",
    after_help = "\
Examples:
  raidlab audit
  raidlab audit latest --json
  raidlab audit --rules"
)]
pub struct Arguments {
    /// The run's name, or `latest` for the one begun last.
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
    let mut store = Store::open_existing(&arguments.store)?;
    let (audit, warning) = again(&mut store, &arguments.run)?;
    if let Some(warning) = warning {
        output::say(&warning);
    }
    if arguments.json {
        let mut text = String::new();
        for finding in &audit.findings {
            text.push_str(&output::json(finding)?);
            text.push('\n');
        }
        return output::print(&text);
    }
    output::print(&words(&audit))
}

/// Audits a run anew and keeps what is found.
///
/// # Errors
/// When the store cannot be read or written.
pub fn renew(store: &mut Store, run: &str) -> Result<Audit, Failure> {
    let (run, audit) = judged(store, run)?;
    keep(store, run, &audit)?;
    Ok(audit)
}

/// As [`renew`]; where nothing can be written, what is found is told all the same, with a
/// warning that it was not kept.
fn again(store: &mut Store, run: &str) -> Result<(Audit, Option<String>), StoreError> {
    let (run, audit) = judged(store, run)?;
    match keep(store, run, &audit) {
        Err(
            error @ (StoreError::Unwritable { .. }
            | StoreError::Full { .. }
            | StoreError::Busy { .. }),
        ) => {
            let warning = format!("warning: what follows is not kept: {}", in_one_line(&error));
            Ok((audit, Some(warning)))
        }
        kept => kept.map(|()| (audit, None)),
    }
}

/// A run, and what the rules find in it.
fn judged(store: &Store, run: &str) -> Result<(RunId, Audit), StoreError> {
    let _snapshot = store.snapshot()?;
    let id = store.run_by_name(run)?.id;
    let rows = store.measurements(id)?;
    let observations = store.observations(id)?;
    let events = store.events(id)?;
    let commands = store.commands(id)?;
    let series = store.series(id)?;
    let evidence = Evidence {
        rows: &rows,
        observations: &observations,
        events: &events,
        commands: &commands,
        series: &series,
    };
    Ok((id, audit(&evidence)))
}

/// Puts what was found in the place of what an earlier audit found.
fn keep(store: &mut Store, run: RunId, audit: &Audit) -> Result<(), StoreError> {
    let note = AccuracyNote {
        class: AUDIT_NOTE_CLASS.to_owned(),
        title: "Audit".to_owned(),
        statement: coverage(audit),
        ..AccuracyNote::default()
    };
    store.set_findings(run, &audit.findings, Some(&note))
}

/// Every rule with what it looks for and what helps.
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

/// The findings, the worst first, and what could not be judged.
fn words(audit: &Audit) -> String {
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
            place(finding),
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
            "not judged: {} (nothing says `{}`)",
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

/// How much could be judged, in words.
fn coverage(audit: &Audit) -> String {
    let unjudged = &audit.coverage.unjudged;
    let lacking = unjudged
        .iter()
        .filter(|one| !one.missing.is_empty())
        .count();
    format!(
        "{} rules were judged; {lacking} lacked facts, and of {} no row is of their kind",
        audit.coverage.judged.len(),
        unjudged.len() - lacking
    )
}

/// The cells that a finding is about, in words.
fn place(finding: &Finding) -> String {
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
    words.extend(
        scope
            .sequence
            .map(|job| format!("job at place {}", job + 1)),
    );
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
        let (audit, warning) = again(&mut store, "a").expect("judged");
        assert_eq!(warning, None);
        // Of a file without a journal nothing is opened to be written.
        let path = folder.path().join("whole.db");
        store.move_to(&path).expect("moved");
        let mut store = Store::open_to_read(&path).expect("a store");
        let (same, warning) = again(&mut store, "a").expect("judged all the same");
        assert_eq!(same.coverage.judged.len(), audit.coverage.judged.len());
        let warning = warning.expect("a warning");
        assert!(warning.contains("whole.db"), "{warning}");
    }
}
