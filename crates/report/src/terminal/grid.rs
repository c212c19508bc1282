//! Figures of jobs and subjects, laid out by the width that there is.

use super::{Style, missing, wrapped};
use crate::format::absent_words;
use crate::table::Tone;
use crate::table::arrangement::{Arrangement, Extent, arrange};
use comfy_table::Cell;
use std::ops::Range;

/// The figures of one job.
pub(super) struct GridRow {
    /// Its name, what else stands at the left of its figures, and its unit last.
    pub leading: Vec<String>,
    /// A figure with its tone for each subject that has one.
    pub cells: Vec<Option<(String, Tone)>>,
}

/// Jobs and subjects.
pub(super) struct Grid<'a> {
    /// The heads of the columns at the left, before those of the subjects.
    pub leading: &'a [&'a str],
    /// How many characters wide the columns at the left are together.
    pub leading_width: usize,
    /// Characters that a figure takes at least, so that tables of a run are alike.
    pub least: usize,
    pub subjects: &'a [String],
    pub rows: Vec<GridRow>,
}

fn length(text: &str) -> usize {
    text.chars().count()
}

impl Grid<'_> {
    pub(super) fn print(&self, text: &mut String, style: &Style) {
        let cells = self.rows.iter().flat_map(|row| row.cells.iter().flatten());
        let widest = cells.map(|(words, _)| length(words)).max().unwrap_or(0);
        let names = || self.subjects.iter().map(|name| length(name));
        // A blank on either side.
        let upright = Extent {
            leading: self.leading_width,
            cell: (widest.max(names().max().unwrap_or(0)) + 2).max(self.least),
            cells: self.subjects.len(),
        };
        let jobs = self.rows.iter().map(|row| length(&row.leading[0]));
        let turned = Extent {
            leading: names().max().unwrap_or(0).max(length("subject")) + 2,
            cell: widest.max(jobs.max().unwrap_or(0)) + 2,
            cells: self.rows.len(),
        };
        match arrange(style.width.map(usize::from), upright, turned) {
            Arrangement::Upright(groups) => {
                for group in groups {
                    self.print_upright(text, style, group);
                }
            }
            Arrangement::Turned(groups) => {
                for group in groups {
                    self.print_turned(text, style, group);
                }
            }
        }
    }

    fn print_upright(&self, text: &mut String, style: &Style, subjects: Range<usize>) {
        let mut table = style.table(self.leading, &self.subjects[subjects.clone()]);
        for row in &self.rows {
            let mut cells: Vec<Cell> = row.leading.iter().map(Cell::new).collect();
            let own = &row.cells[subjects.clone()];
            cells.extend(own.iter().map(|cell| figure(style, cell.as_ref())));
            table.add_row(cells);
        }
        style.print(text, &mut table, self.leading.len()..usize::MAX);
    }

    /// What a job does has no room in a column's head: it stands above the table.
    fn print_turned(&self, text: &mut String, style: &Style, jobs: Range<usize>) {
        let rows = &self.rows[jobs];
        for row in rows.iter().filter(|row| row.leading.len() > 2) {
            let what = row.leading[1..row.leading.len() - 1].join(", ");
            wrapped(text, &format!("  {}: {what}", row.leading[0]), style);
        }
        let heads = rows.iter().map(|row| {
            let unit = row.leading.last().map_or("", String::as_str);
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
