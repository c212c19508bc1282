//! The states of the arrays that a verdict compares: background copying, a missing member, a job
//! that was cut short, missing figures. Where subjects differ in these, their ranking is
//! misleading, and the verdict must say so itself.

use super::view::Row;
use crate::format::list;
use raidlab_store::{Finding, Measurement};
use raidlab_units::grouped;

/// The audit's rule on jobs that ended before their time.
const ENDED_EARLY: &str = "T6";

/// A state of a subject's array during a job: how to detect it, and its name.
type State = (fn(&Measurement) -> bool, &'static str);

const STATES: [State; 2] = [
    (is_copying, "a sync was running"),
    (is_missing, "a member was missing"),
];

fn is_copying(m: &Measurement) -> bool {
    m.sync_percent_start.is_some() || m.sync_percent_end.is_some()
}

fn is_missing(m: &Measurement) -> bool {
    // A member that is being rebuilt is `_` too, which counts as copying.
    !is_copying(m) && (m.array_state_start.contains('_') || m.array_state_end.contains('_'))
}

/// The states in which the subjects ranked by these rows differ, as clauses.
pub(crate) fn unlike(
    rows: &[&Row<'_>],
    subjects: &[usize],
    names: &[String],
    findings: &[Finding],
) -> Vec<String> {
    let mut clauses = Vec::new();
    for (holds, words) in STATES {
        let in_row = |row: &Row<'_>, subject: usize| row.kept(subject).any(holds);
        let differs = |row: &&&Row<'_>| {
            let first = in_row(row, subjects[0]);
            subjects
                .iter()
                .any(|subject| in_row(row, *subject) != first)
        };
        if !rows.iter().any(|row| differs(&row)) {
            continue;
        }
        let counted = subjects.iter().map(|subject| {
            let count = rows.iter().filter(|row| in_row(row, *subject)).count();
            let times = match count {
                0 => "none".to_owned(),
                1 => "1 row".to_owned(),
                all if all == rows.len() => "all rows".to_owned(),
                count => format!("{count} rows"),
            };
            (times, &names[*subject])
        });
        let counts = grouped(counted).into_iter();
        let counts: Vec<String> = counts
            .map(|(times, group)| format!("in {times} of {}", list(&group)))
            .collect();
        clauses.push(format!(
            "states were not alike: {words} {}",
            counts.join(", ")
        ));
    }
    for &subject in subjects {
        let cut: Vec<&str> = rows
            .iter()
            .filter(|row| {
                let mut own = row.findings[subject].iter();
                own.any(|index| findings[*index].rule == ENDED_EARLY)
            })
            .map(|row| row.label.as_str())
            .collect();
        if !cut.is_empty() && cut.len() < rows.len().max(2) {
            let jobs = if cut.len() == 1 { "job" } else { "jobs" };
            let text = format!("{} was cut short in {jobs} {}", names[subject], list(&cut));
            clauses.push(text);
        }
    }
    clauses
}

/// Subjects that have figures in some of the rows but not in all, or one of 0, and are not
/// ranked for that; as a clause.
pub(crate) fn not_ranked(rows: &[&Row<'_>], names: &[String]) -> Option<String> {
    let all = (0..names.len()).filter_map(|subject| {
        let is_zero = |row: &&&Row<'_>| {
            let told = row.cells[subject].filter(|cell| row.rate.tells(cell.m, cell.value));
            told.is_some_and(|cell| cell.value <= 0.0)
        };
        let zero = rows.iter().any(|row| is_zero(&row));
        let without = rows
            .iter()
            .filter(|row| is_zero(row) || row.cells[subject].is_none());
        let labels: Vec<&str> = without.map(|row| row.label.as_str()).collect();
        let some = !labels.is_empty() && (zero || labels.len() < rows.len());
        some.then(|| {
            let jobs = match labels.as_slice() {
                [one] => format!("job {one}"),
                many => format!("{} of {} rows", many.len(), rows.len()),
            };
            let above = if zero { " above 0" } else { "" };
            format!("{}, without a figure{above} in {jobs}", names[subject])
        })
    });
    let all: Vec<String> = all.collect();
    (!all.is_empty()).then(|| format!("not ranked: {}", all.join("; ")))
}
