//! Tables of jobs and subjects in Markdown.

use super::{Alignment, escaped, raw_table};
use crate::format::absent_words;
use crate::table::JobRow;
use crate::table::arrangement::{Arrangement, Extent, arrange};
use std::fmt::Write;

/// The text where a subject has no figure of a job.
const MISSING: &str = "-";

/// The figures of one job, as Markdown: the texts before them, and one for each subject.
struct ArrangedRow {
    leading: Vec<String>,
    cells: Vec<String>,
}

/// The extents of a table with the subjects as columns, and of one with them as rows.
fn extents(rows: &[ArrangedRow], subjects: &[String]) -> [Extent; 2] {
    let length = |text: &String| text.chars().count() + 3;
    let most = |lengths: &mut dyn Iterator<Item = usize>| lengths.max().unwrap_or(0);
    let widest = most(&mut rows.iter().flat_map(|row| &row.cells).map(length));
    let names = most(&mut subjects.iter().map(length));
    let heads = most(&mut rows.iter().map(|row| length(&row.leading[0])));
    let leading = |row: &ArrangedRow| row.leading.iter().map(length).sum();
    [
        Extent {
            leading: most(&mut rows.iter().map(leading)),
            cell: widest.max(names),
            cells: subjects.len(),
        },
        Extent {
            leading: names,
            cell: widest.max(heads),
            cells: rows.len(),
        },
    ]
}

/// Writes a table of jobs and subjects, with the subjects as rows where they are many; `words`
/// formats a cell as Markdown.
pub(super) fn arranged<C>(
    text: &mut String,
    leading: &[&str],
    subjects: &[String],
    rows: &[JobRow<C>],
    words: impl Fn(&C) -> String,
) {
    let row = |row: &JobRow<C>| {
        let cells = row.cells.iter().map(Option::as_ref);
        let before = row.leading(leading).into_iter();
        ArrangedRow {
            leading: before.map(escaped).collect(),
            cells: cells
                .map(|cell| cell.map_or_else(|| MISSING.to_owned(), &words))
                .collect(),
        }
    };
    let rows: Vec<ArrangedRow> = rows.iter().map(row).collect();
    let subjects: Vec<String> = subjects.iter().map(|name| escaped(name)).collect();
    let [upright, turned] = extents(&rows, &subjects);
    let alignments = |leading: usize| {
        let left = std::iter::repeat_n(Alignment::Left, leading);
        left.chain([Alignment::Right]).collect::<Vec<_>>()
    };
    let groups = match arrange(None, upright, turned) {
        Arrangement::Upright(_) => {
            let mut heads: Vec<String> = leading.iter().map(|&head| head.to_owned()).collect();
            heads.extend(subjects.iter().cloned());
            let rows = rows.iter();
            let cells: Vec<Vec<String>> = rows
                .map(|row| row.leading.iter().chain(&row.cells).cloned().collect())
                .collect();
            raw_table(text, &heads, &alignments(leading.len()), &cells);
            return;
        }
        Arrangement::Turned(groups) => groups,
    };
    for (number, group) in groups.into_iter().enumerate() {
        // Without an empty line what follows would be a row of the table above.
        if number > 0 {
            text.push('\n');
        }
        let rows = &rows[group];
        let mut heads = vec!["subject".to_owned()];
        heads.extend(rows.iter().map(|row| row.leading.join("<br>")));
        let line = |(column, name): (usize, &String)| {
            let cells = rows.iter().map(|row| &row.cells[column]);
            let is_there = cells.clone().any(|cell| cell != MISSING);
            is_there.then(|| std::iter::once(name).chain(cells).cloned().collect())
        };
        let lines = subjects.iter().enumerate().filter_map(line);
        let cells: Vec<Vec<String>> = lines.collect();
        raw_table(text, &heads, &alignments(1), &cells);
        if let Some(words) = absent_words(subjects.len() - cells.len()) {
            let _ = writeln!(text, "\n{words}");
        }
    }
}
