//! The command `raidlab claims`: it holds the statements of an article against the rows of a store.

use crate::failure::{Failure, Kind};
use crate::output;
use clap::Args;
use raidlab_import::BENCH;
use raidlab_lab::catalogue;
use raidlab_lab::claims::{Claims, Judged, Outcome};
use raidlab_report::{RunData, escaped};
use raidlab_runs::CLAIMS;
use raidlab_runs::notes::{STORE, remark};
use raidlab_store::{AccuracyNote, Finding, Measurement, Severity, Store};
use std::fmt::Write;
use std::ops::RangeInclusive;
use std::path::PathBuf;

/// Arguments of `raidlab claims`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The claims to test: a built-in name, or the path of a file.
    #[arg(value_name = "CLAIMS|CLAIMS.toml")]
    claims: String,

    /// The file that keeps the runs.
    #[arg(long, value_name = "FILE", default_value = STORE)]
    store: PathBuf,

    /// Print a Markdown table.
    #[arg(long)]
    markdown: bool,
}

/// Judges the claims.
///
/// # Errors
/// When there are no such claims or no such store.
pub fn command(arguments: &Arguments) -> Result<(), Failure> {
    let claims = Claims::load(&arguments.claims);
    let claims = claims.map_err(|error| Failure::from(error).or_help(CLAIMS))?;
    let store = Store::open_existing(&arguments.store)?;
    // The store gives the newest first. Printed numbers of others count where nothing was measured.
    let mut summaries = store.runs()?;
    summaries.sort_by_key(|summary| summary.run.bench == BENCH);
    let mut runs: Vec<Vec<Measurement>> = Vec::new();
    let mut kept: Vec<Vec<Measurement>> = Vec::new();
    let mut sources: Vec<String> = Vec::new();
    for summary in &summaries {
        let rows = store.measurements(summary.id)?;
        if rows.iter().any(|row| claims.suites.contains(&row.suite)) {
            sources.push(format!(
                "{} ({} bench)",
                summary.run.name, summary.run.bench
            ));
            kept.push(not_struck(&rows, &store.findings(summary.id)?));
            runs.push(rows);
        }
    }
    let judged = claims.judge_audited(&runs, &kept);
    if judged.iter().all(|one| one.outcomes.is_empty()) {
        let words = format!("the store has no rows for the claims of `{}`", claims.name);
        let help = format!("measure them: {}", claims.commands.join("; "));
        return Err(Failure::words(Kind::Input, words).help(help));
    }
    output::print(&if arguments.markdown {
        markdown(&claims, &judged)
    } else {
        text(&claims, &judged, &sources)
    })
}

/// Reads a run for being shown, with the verdicts on its rows of the articles of its suite.
///
/// # Errors
/// There is no such run, or the store cannot be read.
pub fn with_verdicts(store: &Store, name: &str) -> Result<RunData, Failure> {
    let mut data = RunData::load(store, name)?;
    for entry in catalogue::Kind::Claims.entries() {
        let claims = Claims::load(entry.name)?;
        // The numbers that the article printed are no evidence for its own claims.
        if claims.suites.contains(&data.run.suite) && data.run.bench != BENCH {
            let rows = std::slice::from_ref(&data.measurements);
            let kept = [not_struck(&data.measurements, &data.findings)];
            let verdicts = verdicts(&claims, &claims.judge_audited(rows, &kept));
            data.notes.extend(verdicts);
        }
    }
    Ok(data)
}

/// The rows that the audit did not strike out.
fn not_struck(rows: &[Measurement], findings: &[Finding]) -> Vec<Measurement> {
    let fatal = || findings.iter().filter(|it| it.severity == Severity::Fatal);
    let rows = rows.iter();
    rows.filter(|row| !fatal().any(|finding| finding.covers(row)))
        .cloned()
        .collect()
}

/// The verdicts in one remark; `None` where no claim has its rows.
fn verdicts(claims: &Claims, judged: &[Judged<'_>]) -> Option<AccuracyNote> {
    let has_rows = |one: &&Judged<'_>| !one.outcomes.is_empty();
    let words = |one: &Judged<'_>| format!("{} {}", one.claim.id, verdict_in_words(one));
    let all: Vec<String> = judged.iter().filter(has_rows).map(words).collect();
    (!all.is_empty()).then(|| {
        let statement = format!(
            "{}. `raidlab claims {}` shows the sentences and their figures.",
            all.join("; "),
            claims.name
        );
        remark("The article's claims against these rows", statement)
    })
}

fn text(claims: &Claims, judged: &[Judged<'_>], sources: &[String]) -> String {
    let mut text = format!("{}\n{}\n", claims.title, claims.source);
    let newest = &sources[..sources.len().min(3)];
    let older = match sources.len() - newest.len() {
        0 => String::new(),
        count => format!(", or of {count} more runs"),
    };
    let _ = writeln!(text, "Rows of {}{older}.", newest.join(", else of "));
    for one in judged {
        let claim = one.claim;
        let verdict = verdict_in_words(one);
        let _ = write!(text, "\n{} {}: {verdict}\n", claim.id, claim.says);
        for outcome in &one.outcomes {
            let _ = writeln!(text, "    {}", outcome_in_words(outcome));
        }
        if !claim.reason().is_empty() {
            let _ = writeln!(text, "    {}", claim.reason());
        }
    }
    if !claims.remark.is_empty() {
        let _ = write!(text, "\n{}\n", claims.remark);
    }
    text
}

fn outcome_in_words(outcome: &Outcome) -> String {
    let mark = if outcome.holds { "" } else { ", does not hold" };
    let close = if outcome.is_close { ", close" } else { "" };
    format!(
        "{} = {} ({}{mark}{close})",
        outcome.words,
        ratio_in_words(outcome.ratio, &outcome.bounds),
        asked_in_words(&outcome.bounds)
    )
}

/// The ratio with two decimals, or with as many as leave it on its side of the bounds: 0.7499 is
/// not printed as 0.75 where at least that was asked for.
fn ratio_in_words(ratio: f64, bounds: &RangeInclusive<f64>) -> String {
    let words = (2..9).map(|places| format!("{ratio:.places$}"));
    let mut on_its_side = words.filter(|words| {
        let printed = words.parse().unwrap_or(ratio);
        bounds.contains(&printed) == bounds.contains(&ratio)
    });
    on_its_side.next().unwrap_or_else(|| ratio.to_string())
}

/// The bounds in words: `at least 1`, `0.9 to 1.1`.
fn asked_in_words(bounds: &RangeInclusive<f64>) -> String {
    let (least, most) = (*bounds.start(), *bounds.end());
    match (least > 0.0, most.is_finite()) {
        (true, true) => format!("{least} to {most}"),
        (true, false) => format!("at least {least}"),
        (false, true) => format!("at most {most}"),
        (false, false) => "anything".to_owned(),
    }
}

/// The verdict in words, how many of its comparisons have no rows, how many of them other
/// repetitions would have turned, and whether it rests on what the audit struck out.
fn verdict_in_words(one: &Judged<'_>) -> String {
    let mut verdict = one.verdict.in_words();
    if one.not_run > 0 && !one.outcomes.is_empty() {
        let _ = write!(verdict, "; not run: {}", one.not_run);
    }
    let close = one.outcomes.iter().filter(|it| it.is_close).count();
    if close > 0 {
        let _ = write!(verdict, "; close: {close}");
    }
    if one.rests_on_struck {
        verdict.push_str("; rests on figures that the audit struck out");
    }
    verdict
}

fn markdown(claims: &Claims, judged: &[Judged<'_>]) -> String {
    let mut text =
        String::from("| | claim | verdict | figures | reason |\n|---|---|---|---|---|\n");
    for one in judged {
        let figures = one.outcomes.iter();
        let figures: Vec<String> = figures.map(|it| escaped(&outcome_in_words(it))).collect();
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} |",
            escaped(&one.claim.id),
            escaped(&one.claim.says),
            verdict_in_words(one),
            figures.join("<br>"),
            escaped(one.claim.reason())
        );
    }
    if !claims.remark.is_empty() {
        let _ = write!(text, "\n{}\n", escaped(&claims.remark));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{asked_in_words, ratio_in_words};

    #[test]
    fn a_ratio_is_printed_on_its_side_of_the_bounds() {
        let least = 0.75..=f64::INFINITY;
        assert_eq!(ratio_in_words(0.749_86, &least), "0.7499");
        assert_eq!(ratio_in_words(0.751, &least), "0.75");
        assert_eq!(ratio_in_words(0.75, &least), "0.75");
        let most = 0.0..=1.0;
        assert_eq!(ratio_in_words(1.0 + 1e-12, &most), "1.000000000001");
        assert_eq!(ratio_in_words(0.996, &most), "1.00");
        let asked = [least, most, 0.9..=1.1].map(|bounds| asked_in_words(&bounds));
        assert_eq!(asked, ["at least 0.75", "at most 1", "0.9 to 1.1"]);
    }
}
