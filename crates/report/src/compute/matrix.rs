//! Tables for outputs with many parts, as iozone's file sizes by record sizes: one compact table
//! for each job, operation and column.

use super::rate::Rate;
use super::standing::best_of;
use super::view::{Row, View, matrix_sizes};
use raidlab_units::distinct;
use serde::Serialize;

/// A table of file sizes (down) by record sizes (across).
#[derive(Debug, Serialize)]
pub(crate) struct Matrix {
    /// The heading of the table: tool, operation, subject and file system, `iozone write, md/ext4`.
    pub title: String,
    pub column: usize,
    pub unit: &'static str,
    /// Heads of the columns: record sizes, as the tool names them.
    pub across: Vec<String>,
    pub rows: Vec<MatrixRow>,
}

/// The row of a matrix for one file size.
#[derive(Debug, Serialize)]
pub(crate) struct MatrixRow {
    pub head: String,
    pub cells: Vec<Option<MatrixCell>>,
}

/// One figure of the matrix, for one file size and one record size.
#[derive(Debug, Serialize)]
pub(crate) struct MatrixCell {
    pub value: String,
    /// Whether no other figure of the table is better.
    pub best: bool,
    pub struck: bool,
}

/// All matrices of the run, in the order of jobs, operations and columns.
pub(crate) fn matrices(view: &View<'_>) -> Vec<Matrix> {
    let rows: Vec<&Row<'_>> = view.rows.iter().filter(|row| row.in_matrix).collect();
    let same =
        |a: &&Row<'_>, b: &&Row<'_>| (a.head.sequence, a.head.op) == (b.head.sequence, b.head.op);
    let mut all = Vec::new();
    for rows in rows.chunk_by(|a, b| same(a, b)) {
        for column in 0..view.names.len() {
            all.extend(matrix(view, rows, column));
        }
    }
    all
}

/// A part's file and record size, as the tool names them; a part of another
/// form is a row of its own.
fn split(part: &str) -> (&str, &str) {
    match matrix_sizes(part) {
        Some(_) => part.split_once('/').unwrap_or((part, "")),
        None => (part, ""),
    }
}

fn matrix(view: &View<'_>, rows: &[&Row<'_>], column: usize) -> Option<Matrix> {
    let there: Vec<&Row<'_>> = rows
        .iter()
        .copied()
        .filter(|row| row.cells[column].is_some())
        .collect();
    let head = there.first()?.head;
    // The table has one unit, though each record size alone could call for another.
    let bytes = there.iter().find(|row| row.rate.is_bytes());
    let rate = bytes.map_or(there[0].rate, |row| row.rate);
    let parts = there.iter().map(|row| split(&row.head.part));
    let down = distinct(parts.clone().map(|(file, _)| file));
    let mut across = distinct(parts.map(|(_, record)| record));
    across.sort_by_key(|record| matrix_sizes(&format!("0/{record}")).map(|sizes| sizes.1));
    let value = |row: &Row<'_>| in_unit(row, column, rate);
    let best = best_of(
        &there
            .iter()
            .map(|row| value(row).filter(|_| !struck(row, column)))
            .collect::<Vec<_>>(),
    );
    let cell = |file: &str, record: &str| {
        let row = there
            .iter()
            .find(|row| split(&row.head.part) == (file, record))?;
        let (own, m) = (value(row)?, row.cells[column]?.m);
        let struck = struck(row, column);
        Some(MatrixCell {
            value: rate.words(m, own),
            best: !struck && Some(own) == best,
            struck,
        })
    };
    Some(Matrix {
        title: format!("{} {}, {}", head.job, head.op, view.names[column]),
        column,
        unit: rate.unit(),
        rows: down
            .iter()
            .map(|file| MatrixRow {
                head: (*file).to_owned(),
                cells: across.iter().map(|record| cell(file, record)).collect(),
            })
            .collect(),
        across: across.into_iter().map(str::to_owned).collect(),
    })
}

fn struck(row: &Row<'_>, column: usize) -> bool {
    row.cells[column].is_some_and(|cell| cell.fatal)
}

fn in_unit(row: &Row<'_>, column: usize, rate: Rate) -> Option<f64> {
    let cell = row.cells[column]?;
    Some(if row.rate == rate {
        cell.value
    } else {
        rate.of(cell.m)
    })
}

#[cfg(test)]
mod tests {
    use super::matrices;
    use crate::compute::view::View;
    use crate::sample;

    #[test]
    fn a_table_has_files_down_records_across_and_one_best() {
        let data = sample::bench();
        let view = View::new(&data);
        let all = matrices(&view);
        assert_eq!(all.len(), 3 * view.names.len());
        let first = &all[0];
        assert_eq!(first.title, "iozone read, md-raid1/ext4@alpha");
        assert_eq!(first.across, ["4k", "64k", "1024k"]);
        let heads: Vec<_> = first.rows.iter().map(|row| row.head.as_str()).collect();
        assert_eq!(heads, ["65536k", "262144k", "1048576k"]);
        let cells = first.rows.iter().flat_map(|row| &row.cells).flatten();
        assert_eq!(cells.filter(|cell| cell.best).count(), 1);
    }
}
