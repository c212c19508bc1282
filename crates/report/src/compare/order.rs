//! The order of compared rows, and the counts of their verdicts.

use super::{Answer, ComparedRow, ComparedRun, ComparedVerdict};

/// Counts a run's verdicts into its head.
pub(super) fn count(head: &mut ComparedRun, run: usize, rows: &[ComparedRow]) {
    let verdicts = rows
        .iter()
        .filter_map(|row| row.cells[run].as_ref()?.verdict.as_ref());
    for verdict in verdicts {
        *match verdict.answer {
            Answer::Better => &mut head.better,
            Answer::Worse => &mut head.worse,
            Answer::Same => &mut head.same,
            Answer::CannotTell => &mut head.cannot_tell,
        } += 1;
    }
}

fn verdicts(row: &ComparedRow) -> impl Iterator<Item = &ComparedVerdict> {
    let cells = row.cells.iter().flatten();
    cells.filter_map(|cell| cell.verdict.as_ref())
}

/// The rank of a row: differences first, then rows without an answer, then equal ones, then those
/// that cannot be compared.
pub(super) fn order(row: &ComparedRow) -> usize {
    let rank = |verdict: &ComparedVerdict| match verdict.answer {
        Answer::Better | Answer::Worse => 0,
        Answer::CannotTell => 1,
        Answer::Same => 2,
    };
    verdicts(row).map(rank).min().unwrap_or(3)
}

/// The largest change of a row, either way.
pub(super) fn size(row: &ComparedRow) -> f64 {
    let sizes = verdicts(row).map(|verdict| verdict.ratio.ln().abs());
    sizes.filter(|size| size.is_finite()).fold(0.0, f64::max)
}
