//! Comparison of runs: the differences between them, and their effect on the figures.
//!
//! Rows match by suite, job, operation, part, subject and file system and, if a run has several,
//! the host. The first run is the base. Each row's verdict rests on its repetitions, or on its
//! one-second series where it was measured once; the rows of a run are corrected together for being
//! many. Figures that an audit struck out are shown and not compared.

mod agreement;
mod differences;
mod matched;
mod order;
mod page;
mod text;

#[cfg(test)]
mod tests;

pub use agreement::{
    ALL_CLASSES, Agreement, AgreementCell, AgreementRow, BeyondCell, Bound, BoundError,
    ClassAgreement, MemberCounts,
};

use crate::compute::certainty::{Side, compare as compare_sides};
use crate::compute::doubt::{Limits, around, words};
use crate::compute::findings::sign;
use crate::compute::fold::stream;
use crate::compute::rate::Rate;
use crate::compute::standing::Better;
use crate::compute::trust::MODEL_BENCH;
use crate::compute::view::{Cell, Row, View};
use crate::data::RunData;
use crate::html::ReportError;
use matched::{Found, Key, label, matched, places};
use order::{count, order, size};
use raidlab_statistics::{Change, Comparison, Correction, Verdict, correct_table};
use raidlab_store::{Finding, Measurement, MemberUse, Severity};
use raidlab_units::distinct;
use serde::Serialize;
use std::collections::BTreeSet;

/// The number of rows up to which each verdict is read on its own (Holm); more are read for
/// patterns (Benjamini and Hochberg).
const FEW_ROWS: usize = 20;

/// Several runs, compared row by row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunComparison {
    /// The runs; the first is the base.
    pub runs: Vec<ComparedRun>,
    /// The differences between the runs, apart from the figures.
    pub differences: Vec<Difference>,
    /// The rows, the largest and surest differences first.
    pub rows: Vec<ComparedRow>,
    /// The correction of the verdicts for their number, in words.
    pub correction: String,
    /// The agreement of each run with the base, where bounds were declared.
    pub agreements: Vec<Agreement>,
}

/// A compared run, with the counts of its verdicts against the base.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ComparedRun {
    /// The run's name.
    pub name: String,
    /// The suite's title.
    pub title: String,
    /// The start, RFC 3339 in UTC.
    pub started: String,
    /// The bench: `model`, `host`, ...
    pub bench: String,
    /// The number of rows better than the base's; 0 for the base.
    pub better: usize,
    /// The number of rows worse than the base's; 0 for the base.
    pub worse: usize,
    /// The number of rows whose figures do not differ from the base's in a way that matters.
    pub same: usize,
    /// The number of rows whose figures give no answer.
    pub cannot_tell: usize,
}

/// A difference between the runs' surroundings.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The kind of difference: `run`, `tool`, `environment` or `setting`.
    pub kind: &'static str,
    /// The subject that it belongs to: `md/ext4`; empty for the whole run.
    pub place: String,
    /// The name of the setting or fact.
    pub name: String,
    /// The value in each run; empty where it is not known.
    pub values: Vec<String>,
}

/// A row, compared over all runs.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedRow {
    /// The job's name, with operation and part where there are several.
    pub label: String,
    /// The job in words.
    pub title: String,
    /// The job's class.
    pub class: String,
    /// The row's position in the first run that has it.
    #[serde(skip)]
    pub(crate) position: usize,
    /// Whether the row is of background work of arrays, and not of a job.
    #[serde(skip)]
    pub(crate) in_background: bool,
    /// The subject, file system and host, as far as they differ between rows.
    pub place: String,
    /// The unit of the figures.
    pub unit: &'static str,
    /// Whether more is better; for times less is.
    pub more_is_better: bool,
    /// The figure of each run, in the order of the runs; `None` for a run without this row.
    pub cells: Vec<Option<ComparedCell>>,
}

/// The figure of one run in a row.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ComparedCell {
    /// The figure in the row's unit.
    pub value: f64,
    /// The figure printed; for disks that were not fitted with its band.
    pub text: String,
    /// The number of repetitions behind the figure.
    pub repetitions: usize,
    /// The least and the greatest figure of several repetitions, in the row's unit.
    pub range: Option<[f64; 2]>,
    /// Whether the figure is a time that had not ended.
    pub at_least: bool,
    /// Whether there is a figure: a rate of 0 may be unreported.
    pub told: bool,
    /// Whether the run's audit struck out the figure.
    pub struck: bool,
    /// The signs and rules of fatal findings and warnings: `✗ C1`.
    pub marks: Vec<String>,
    /// The use of each member; with several repetitions that of the one nearest to the median.
    pub members: Vec<MemberCounts>,
    /// The verdict against the base; `None` for the base, and where either figure is struck
    /// out or missing.
    pub verdict: Option<ComparedVerdict>,
}

/// The verdict on a figure against the base's.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ComparedVerdict {
    /// Whether the other run is better, worse, or cannot be told from the base.
    pub answer: Answer,
    /// The other run's figure divided by the base's.
    pub ratio: f64,
    /// The change as a plain percentage: `+12 %`.
    pub percent: String,
    /// The answer in words, with its interval.
    pub words: String,
}

/// The four answers of a comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Better than the base.
    Better,
    /// Worse than the base.
    Worse,
    /// The two do not differ in a way that matters.
    Same,
    /// The figures give no answer.
    CannotTell,
}

/// Compares runs with the first of them.
///
/// # Errors
/// Fewer than two runs, or one that has no row in common with the first.
pub fn compare(runs: &[RunData]) -> Result<RunComparison, ReportError> {
    if runs.len() < 2 {
        return Err(ReportError::NothingToCompare { runs: runs.len() });
    }
    let views: Vec<View<'_>> = runs.iter().map(View::new).collect();
    let by_host = views.iter().any(has_several_hosts);
    let keyed: Vec<(Key<'_>, Vec<Option<Found<'_, '_>>>)> = matched(&views, by_host);
    let places = places(&keyed);
    let mut rows: Vec<ComparedRow> = keyed
        .iter()
        .zip(places)
        .map(|((key, found), place)| compared_row(runs, key, found, place))
        .collect();
    for (position, row) in rows.iter_mut().enumerate() {
        row.position = position;
    }
    let mut heads: Vec<ComparedRun> = runs.iter().map(head).collect();
    let mut corrections = Vec::new();
    for run in 1..runs.len() {
        let found: Vec<_> = keyed
            .iter()
            .map(|(_, found)| (found[0], found[run]))
            .collect();
        if !found
            .iter()
            .any(|(base, other)| base.is_some() && other.is_some())
        {
            return Err(ReportError::NothingInCommon {
                base: runs[0].run.name.clone(),
                other: runs[run].run.name.clone(),
            });
        }
        corrections.push(judge(runs, run, &found, &mut rows));
        count(&mut heads[run], run, &rows);
    }
    rows.sort_by(|a, b| order(a).cmp(&order(b)).then(size(b).total_cmp(&size(a))));
    Ok(RunComparison {
        differences: differences::differences(runs, by_host),
        runs: heads,
        rows,
        correction: distinct(corrections).join(" "),
        agreements: Vec::new(),
    })
}

impl RunComparison {
    /// Adds the differences between the options of the runs' jobs. `load_option`: returns the
    /// option behind a fact of a job, if it shapes the load.
    #[must_use]
    pub fn with_options(mut self, runs: &[RunData], load_option: fn(&str) -> Option<&str>) -> Self {
        self.differences
            .extend(differences::options(runs, load_option));
        self
    }

    /// Adds the agreement of each run with the base: every cell is judged by these bounds, and
    /// printed with the members' counts.
    #[must_use]
    pub fn within(mut self, bounds: &[Bound]) -> Self {
        if !bounds.is_empty() {
            let runs = 1..self.runs.len();
            self.agreements = runs.map(|run| self.agreement(run, bounds)).collect();
        }
        self
    }
}

const fn counts(member: &MemberUse) -> MemberCounts {
    MemberCounts {
        reads: member.read_ios,
        writes: member.write_ios,
    }
}

fn has_several_hosts(view: &View<'_>) -> bool {
    let mut hosts = view.columns.iter().map(|column| column.host);
    let first = hosts.next();
    hosts.any(|host| Some(host) != first)
}

fn compared_row(
    runs: &[RunData],
    key: &Key<'_>,
    found: &[Option<Found<'_, '_>>],
    place: String,
) -> ComparedRow {
    let mut there = found.iter().flatten();
    let rate = rate(found);
    let head = there.next().map(|found| found.row);
    let cells = found.iter().zip(runs).map(|(found, run)| {
        let Found { row, column } = (*found)?;
        let cell = row.cells[column]?;
        let value = if row.rate == rate {
            cell.value
        } else {
            rate.of(cell.m)
        };
        let band = around(cell.m, value).map(|band| format!(" ({})", words(band)));
        Some(ComparedCell {
            value,
            text: figure_text(rate, cell, value) + &band.unwrap_or_default(),
            repetitions: cell.used,
            range: range(row, column, rate).filter(|_| cell.used > 1),
            at_least: cell.at_least,
            told: rate.tells(cell.m, value),
            struck: cell.fatal,
            marks: marks(&run.findings, &row.findings[column]),
            members: cell.m.members.iter().map(counts).collect(),
            verdict: None,
        })
    });
    ComparedRow {
        label: head.map_or_else(String::new, |row| label(row, key)),
        title: head.map_or_else(String::new, |row| row.head.job_title.clone()),
        class: head.map_or_else(String::new, |row| row.head.class.clone()),
        position: 0,
        in_background: head.is_some_and(|row| !row.is_of_job()),
        place,
        unit: rate.unit(),
        more_is_better: rate.better() == Better::More,
        cells: cells.collect(),
    }
}

/// The least and the greatest figure of a cell's repetitions.
fn range(row: &Row<'_>, column: usize, rate: Rate) -> Option<[f64; 2]> {
    let figures = row.kept(column).map(|m| rate.of(m));
    figures.fold(None, |range, figure| {
        let [low, high] = range.unwrap_or([figure; 2]);
        Some([figure.min(low), figure.max(high)])
    })
}

/// The unit in which all runs have figures: bytes as soon as one run has only them.
fn rate(found: &[Option<Found<'_, '_>>]) -> Rate {
    let rates = || found.iter().flatten().map(|found| found.row.rate);
    let bytes = rates().find(|rate| rate.is_bytes());
    bytes.or_else(|| rates().next()).unwrap_or(Rate::Iops)
}

fn marks(findings: &[Finding], positions: &[usize]) -> Vec<String> {
    let mut marks = Vec::new();
    for finding in positions.iter().map(|position| &findings[*position]) {
        let mark = format!("{}\u{a0}{}", sign(finding.severity), finding.rule);
        if finding.severity > Severity::Note && !marks.contains(&mark) {
            marks.push(mark);
        }
    }
    marks
}

/// Whether a cell is a time that had not ended.
fn goes_on(found: Found<'_, '_>) -> bool {
    let Found { row, column } = found;
    row.cells[column].is_some_and(|cell| cell.at_least)
}

/// The measurement that stands for a cell.
fn shown<'a>(found: Option<Found<'_, 'a>>) -> Option<&'a Measurement> {
    let Found { row, column } = found?;
    Some(row.cells[column]?.m)
}

/// Fills in the verdicts of one run against the base; returns how they were corrected.
fn judge(
    runs: &[RunData],
    run: usize,
    found: &[(Option<Found<'_, '_>>, Option<Found<'_, '_>>)],
    rows: &mut [ComparedRow],
) -> String {
    let (base, other) = (&runs[0], &runs[run]);
    // Another seed makes another choice of disk angles and places, which is chance.
    let modelled = [base, other].map(|one| (&one.run.bench, one.run.seed));
    let modelled = modelled[0] == modelled[1] && base.run.bench == MODEL_BENCH;
    let mut places = Vec::new();
    let mut table: Vec<Comparison> = Vec::new();
    for (place, pair) in found.iter().enumerate() {
        let (Some(own_base), Some(own_other)) = *pair else {
            continue;
        };
        // Repetitions decide nothing where the middle one had not ended.
        if [own_base, own_other].into_iter().any(goes_on) {
            continue;
        }
        let rate = rate(&[pair.0, pair.1]);
        let side = |found: Found<'_, '_>, data: &RunData| {
            let kept: Vec<&Measurement> = found.row.kept(found.column).collect();
            Side::of_measurements(rate, &kept, &data.series)
        };
        let mut stream = stream(base.run.seed, own_base.row.head).fork("runs", run as u64);
        let sides = (side(own_base, base), side(own_other, other));
        if let Some(mut comparison) = compare_sides(&sides.0, &sides.1, rate, &mut stream) {
            let certain = modelled && are_paired(own_base, own_other);
            comparison.p_value = comparison.p_value.filter(|_| !certain);
            places.push((place, certain));
            table.push(comparison);
        }
    }
    let judged = table.iter().filter(|row| row.p_value.is_some()).count();
    let (correction, words) = if judged > FEW_ROWS {
        (
            Correction::BenjaminiHochberg,
            "Benjamini and Hochberg: of the rows called different, 5 % may be chance",
        )
    } else {
        (
            Correction::Holm,
            "Holm: the chance that any row is called different by chance is 5 %",
        )
    };
    correct_table(&mut table, correction);
    let all_certain = modelled && places.iter().all(|(_, certain)| *certain);
    for ((place, certain), comparison) in places.into_iter().zip(table) {
        let values = [0, run].map(|run| rows[place].cells[run].as_ref().map(|cell| cell.value));
        let (own_base, own_other) = found[place];
        let limits = shown(own_other).zip(shown(own_base));
        let limits = limits.and_then(|(other, base)| Limits::of(other, base));
        let better = rows[place].more_is_better;
        if let ([Some(base), Some(other)], Some(cell)) = (values, &mut rows[place].cells[run]) {
            cell.verdict = verdict(base, other, &comparison, certain.then_some(better))
                .map(|verdict| verdict.unless_open(limits));
        }
    }
    if all_certain {
        return "Between runs of a model with the same seed there is no chance.".to_owned();
    }
    if judged == 0 {
        return "No row was measured often enough to tell a difference from chance.".to_owned();
    }
    format!("The verdicts of {judged} rows are corrected together ({words}).")
}

/// Whether two cells are of the same repetitions. Each repetition of a model has its own angles and
/// places, so one of them differs from the median of several by chance.
fn are_paired(base: Found<'_, '_>, other: Found<'_, '_>) -> bool {
    let numbers = |found: Found<'_, '_>| -> BTreeSet<u32> {
        let kept = found.row.kept(found.column);
        kept.map(|m| m.repetition).collect()
    };
    numbers(base) == numbers(other)
}

/// A verdict in printable form. Between the same repetitions of a model with the same seed there is
/// no chance, so every difference counts; `modelled`: whether more is better between such runs.
fn verdict(
    base: f64,
    other: f64,
    found: &Comparison,
    modelled: Option<bool>,
) -> Option<ComparedVerdict> {
    let change = Change::between(base, other)?;
    let (answer, words) = match (&found.verdict, modelled) {
        (_, Some(more_is_better)) => {
            let answer = match (change.ratio() >= 1.0) == more_is_better {
                _ if found.is_small(change.ratio()) => Answer::Same,
                true => Answer::Better,
                false => Answer::Worse,
            };
            (
                answer,
                format!("{} (modelled: no chance in it)", change.percent_text()),
            )
        }
        (Verdict::Better { .. }, None) => (Answer::Better, found.to_string()),
        (Verdict::Worse { .. }, None) => (Answer::Worse, found.to_string()),
        (Verdict::Same { .. }, None) => (Answer::Same, found.to_string()),
        (Verdict::CannotTell { .. }, None) => (Answer::CannotTell, found.to_string()),
    };
    Some(ComparedVerdict {
        answer,
        ratio: change.ratio(),
        percent: change.percent_text(),
        words,
    })
}

impl ComparedVerdict {
    /// Turns the verdict into "cannot tell" where the unknown properties of the disks
    /// leave it open.
    fn unless_open(mut self, limits: Option<Limits>) -> Self {
        let open = limits.filter(|limits| limits.leave_open(self.ratio));
        let is_claim = |limits: &Limits| match self.answer {
            Answer::Better | Answer::Worse => true,
            // Equal figures of unlike disks may well differ on the real ones.
            Answer::Same => !limits.same_disks,
            Answer::CannotTell => false,
        };
        if let Some(limits) = open.filter(is_claim) {
            self.answer = Answer::CannotTell;
            self.words = format!("cannot tell: {}", limits.words());
        }
        self
    }
}

/// Formats a figure; for a time that had not ended as a lower bound.
fn figure_text(rate: Rate, cell: Cell<'_>, value: f64) -> String {
    let more = if cell.at_least { ">" } else { "" };
    format!("{more}{}", rate.words(cell.m, value))
}

fn head(data: &RunData) -> ComparedRun {
    ComparedRun {
        name: data.run.name.clone(),
        title: data.run.suite_title.clone(),
        started: data.run.started.clone(),
        bench: data.run.bench.clone(),
        better: 0,
        worse: 0,
        same: 0,
        cannot_tell: 0,
    }
}
