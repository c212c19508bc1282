//! Figures of jobs and subjects, laid out by the available width.

use super::{Style, missing, wrapped};
use crate::format::absent_words;
use crate::table::arrangement::{Arrangement, Extent, arrange};
use crate::table::{JobRow, Tone};
use comfy_table::Cell;
use std::ops::Range;

/// The figures of one job.
struct GridRow<'a> {
    /// The job's name, the other texts at the left of its figures, and its unit last.
    leading: Vec<&'a str>,
    /// The figure with its tone for each subject that has one.
    cells: Vec<Option<(String, Tone)>>,
}

/// The layout of a table of jobs and subjects.
pub(super) struct Grid<'a> {
    /// The heads of the columns at the left, before those of the subjects.
    pub leading: &'a [&'a str],
    /// The width in characters of the columns at the left together.
    pub leading_width: usize,
    /// The least width of a figure in characters, so that tables of a run are alike.
    pub least: usize,
    pub subjects: &'a [String],
}

fn length(text: &str) -> usize {
    text.chars().count()
}

impl Grid<'_> {
    /// Prints the rows; `words` formats a cell and gives its tone.
    pub(super) fn print<C>(
        &self,
        rows: &[JobRow<C>],
        words: impl Fn(&C) -> (String, Tone),
        text: &mut String,
        style: &Style,
    ) {
        let rows = rows.iter().map(|row| GridRow {
            leading: row.leading(self.leading),
            cells: (row.cells.iter().map(|cell| cell.as_ref().map(&words))).collect(),
        });
        let rows: Vec<GridRow<'_>> = rows.collect();
        let cells = rows.iter().flat_map(|row| row.cells.iter().flatten());
        let widest = cells.map(|(words, _)| length(words)).max().unwrap_or(0);
        let names = || self.subjects.iter().map(|name| length(name));
        // There is a blank on either side.
        let upright = Extent {
            leading: self.leading_width,
            cell: (widest.max(names().max().unwrap_or(0)) + 2).max(self.least),
            cells: self.subjects.len(),
        };
        let jobs = rows.iter().map(|row| length(row.leading[0]));
        let turned = Extent {
            leading: names().max().unwrap_or(0).max(length("subject")) + 2,
            cell: widest.max(jobs.max().unwrap_or(0)) + 2,
            cells: rows.len(),
        };
        match arrange(style.width.map(usize::from), upright, turned) {
            Arrangement::Upright(groups) => {
                for group in groups {
                    self.print_upright(&rows, group, text, style);
                }
            }
            Arrangement::Turned(groups) => {
                for group in groups {
                    self.print_turned(&rows[group], text, style);
                }
            }
        }
    }

    fn print_upright(
        &self,
        rows: &[GridRow<'_>],
        subjects: Range<usize>,
        text: &mut String,
        style: &Style,
    ) {
        let mut table = style.table(self.leading, &self.subjects[subjects.clone()]);
        for row in rows {
            let mut cells: Vec<Cell> = row.leading.iter().map(Cell::new).collect();
            let own = &row.cells[subjects.clone()];
            cells.extend(own.iter().map(|cell| figure(style, cell.as_ref())));
            table.add_row(cells);
        }
        style.print(text, &mut table, self.leading.len()..usize::MAX);
    }

    /// Prints the turned table. A job's title has no room in a column's head: it is printed
    /// above the table.
    fn print_turned(&self, rows: &[GridRow<'_>], text: &mut String, style: &Style) {
        for row in rows.iter().filter(|row| row.leading.len() > 2) {
            let what = row.leading[1..row.leading.len() - 1].join(", ");
            wrapped(text, &format!("  {}: {what}", row.leading[0]), style);
        }
        let heads = rows.iter().map(|row| {
            let unit = row.leading.last().unwrap_or(&"");
            format!("{}\n{unit}", row.leading[0])
        });
        let mut table = style.table(&["subject"], &heads.collect::<Vec<_>>());
        let mut absent = 0;
        for (column, name) in self.subjects.iter().enumerate() {
            let own = rows.iter().map(|row| row.cells[column].as_ref());
            if own.clone().all(|cell| cell.is_none()) {
                absent += 1;
                continue;
            }
            let mut cells = vec![Cell::new(name)];
            cells.extend(own.map(|cell| figure(style, cell)));
            table.add_row(cells);
        }
        style.print(text, &mut table, 0..usize::MAX);
        if let Some(words) = absent_words(absent) {
            wrapped(text, &format!("  {words}"), style);
        }
    }
}

fn figure(style: &Style, cell: Option<&(String, Tone)>) -> Cell {
    cell.map_or_else(missing, |(words, tone)| style.cell(words.clone(), *tone))
}
