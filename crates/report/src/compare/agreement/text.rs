//! The agreement of two runs, on a terminal and in Markdown.

use super::{Agreement, AgreementCell, AgreementRow, MemberCounts};
use crate::markdown::{Alignment, table};
use crate::table::Tone;
use crate::terminal::Style;
use comfy_table::Cell;
use raidlab_units::count;
use std::fmt::Write;

/// The mark after a figure beyond its bound.
const BEYOND: &str = "\u{a0}✗";

impl Agreement {
    /// The three tables for a terminal.
    pub(crate) fn text(&self, text: &mut String, run: &str, style: &Style) {
        let _ = writeln!(text, "\nHow far {run} agrees, percent of the base");
        if self.is_sparse {
            self.beyond_text(text, style);
        } else {
            self.matrix_text(text, style);
        }
        let heads = self.class_heads();
        let mut table = style.table(&CLASS_HEADS[..1], &heads[1..]);
        for row in self.class_rows() {
            table.add_row(row);
        }
        style.print(text, &mut table, 0..heads.len() - 1);
        let _ = writeln!(text, "{}", self.cells_words());
        text.push_str("\nMembers, base against this\n");
        let heads = MEMBER_HEADS[2..].iter().map(|head| (*head).to_owned());
        let mut table = style.table(&MEMBER_HEADS[..2], &heads.collect::<Vec<_>>());
        for row in self.member_rows() {
            table.add_row(row);
        }
        style.print(text, &mut table, 0..2);
    }

    /// Writes the table of jobs by subjects.
    fn matrix_text(&self, text: &mut String, style: &Style) {
        let mut table = style.table(&["job"], &self.places);
        for job in &self.jobs {
            let mut cells = vec![Cell::new(&job.label)];
            for cell in &job.cells {
                let tone = match cell.as_ref().and_then(|cell| cell.within) {
                    Some(true) => Tone::Good,
                    Some(false) => Tone::Bad,
                    None => Tone::Plain,
                };
                cells.push(style.cell(percent_words(cell.as_ref()), tone));
            }
            table.add_row(cells);
        }
        style.print(text, &mut table, 0..1);
    }

    /// Writes the cells beyond their bounds, one below the other.
    fn beyond_text(&self, text: &mut String, style: &Style) {
        let heads = BEYOND_HEADS[3..].iter().map(|head| (*head).to_owned());
        let mut table = style.table(&BEYOND_HEADS[..3], &heads.collect::<Vec<_>>());
        for row in self.beyond_rows() {
            table.add_row(row);
        }
        style.print(text, &mut table, 0..3);
    }

    /// Writes the agreement as tables of GitHub's Markdown.
    pub(crate) fn markdown(&self, text: &mut String) {
        use Alignment::{Left, Right};
        text.push_str("### Agreement, percent of the base\n\n");
        let mut alignments = vec![Right; self.class_heads().len()];
        alignments[0] = Left;
        let last = alignments.len() - 1;
        alignments[last] = Left;
        if self.is_sparse {
            table(text, &self.class_heads(), &alignments, self.class_rows());
            let _ = writeln!(text, "\n{}\n\n#### Cells beyond\n", self.cells_words());
            let heads = BEYOND_HEADS.map(str::to_owned);
            let alignments = [Left, Left, Left, Right];
            table(text, &heads, &alignments, self.beyond_rows());
        } else {
            self.matrix_markdown(text);
            text.push('\n');
            table(text, &self.class_heads(), &alignments, self.class_rows());
            let _ = writeln!(text, "\n{}", self.cells_words());
        }
        text.push_str("\n### Members, base against this\n\n");
        let heads = MEMBER_HEADS.map(str::to_owned);
        table(text, &heads, &[Left, Left, Right], self.member_rows());
    }

    fn matrix_markdown(&self, text: &mut String) {
        use Alignment::{Left, Right};
        let heads = std::iter::once("job".to_owned()).chain(self.places.iter().cloned());
        let rows = self.jobs.iter().map(|job| {
            let cells = job.cells.iter().map(|cell| percent_words(cell.as_ref()));
            std::iter::once(job.label.clone()).chain(cells).collect()
        });
        table(text, &heads.collect::<Vec<_>>(), &[Left, Right], rows);
    }

    /// The heads of the table of classes: `class`, `cells`, `within 3 %`, ...
    fn class_heads(&self) -> Vec<String> {
        let [class, cells, rest @ ..] = CLASS_HEADS;
        let within = self.bounds.iter();
        let within = within.map(|percent| format!("within {percent}\u{a0}%"));
        let mut heads = vec![class.to_owned(), cells.to_owned()];
        heads.extend(within);
        heads.extend(self.has_ranges().then(|| NEAR_RANGE.to_owned()));
        heads.extend(rest.map(str::to_owned));
        heads
    }

    /// Whether any class has cells with repetitions.
    fn has_ranges(&self) -> bool {
        self.classes.iter().any(|one| one.near_range.is_some())
    }

    /// The rows of the table of classes.
    fn class_rows(&self) -> impl Iterator<Item = Vec<String>> {
        let has_ranges = self.has_ranges();
        self.classes.iter().map(move |one| {
            let mut row = vec![one.class.clone(), one.cells.to_string()];
            let count = |within: &Option<usize>| match within {
                Some(count) => count.to_string(),
                None => "-".to_owned(),
            };
            row.extend(one.within.iter().map(count));
            row.extend(has_ranges.then(|| count(&one.near_range)));
            row.extend([&one.median_text, &one.worst_text, &one.worst].map(String::clone));
            row
        })
    }

    /// The number of cells beyond their bounds, and of those not compared.
    fn cells_words(&self) -> String {
        let beyond = count(self.beyond.len(), "cell is", "cells are");
        let mut words = format!("{beyond} beyond the widest bound");
        if self.not_compared > 0 {
            let others = count(self.not_compared, "is", "are");
            let _ = write!(
                words,
                "; {others} not compared: in one run only, struck out by its audit, a time that had \
                 not ended, or a figure that is 0 in the base or not known"
            );
        }
        words.push('.');
        if self.has_ranges() {
            words.push_str(
                " Near the range are the cells whose base is within the widest bound of what the \
                 repetitions of this run span; that the others differ by chance alone is unlikely.",
            );
        }
        words
    }

    fn beyond_rows(&self) -> impl Iterator<Item = Vec<String>> {
        self.beyond.iter().map(|cell| {
            let [base, this] = &cell.figures;
            vec![
                cell.class.clone(),
                cell.job.clone(),
                cell.place.clone(),
                format!("{base}\u{a0}{}", cell.unit),
                this.clone(),
                cell.text.clone(),
            ]
        })
    }

    /// A row for each cell whose members were counted.
    fn member_rows(&self) -> impl Iterator<Item = Vec<String>> {
        let cells = self.jobs.iter().flat_map(|job| {
            let places = self.places.iter().zip(&job.cells);
            places.filter_map(move |(place, cell)| Some((job, place, cell.as_ref()?)))
        });
        cells.filter_map(|(job, place, cell)| member_row(job, place, cell))
    }
}

/// The heads of the table of classes; those of the bounds come after the second.
const CLASS_HEADS: [&str; 5] = ["class", "cells", "median", "worst", "where"];

/// The head of the count of cells near the range of repetitions.
const NEAR_RANGE: &str = "near the range";

const BEYOND_HEADS: [&str; 6] = ["class", "job", "subject", "base", "this", "change"];

const MEMBER_HEADS: [&str; 5] = ["job", "subject", "reads", "writes", "share, points"];

fn percent_words(cell: Option<&AgreementCell>) -> String {
    let Some(cell) = cell else {
        return "-".to_owned();
    };
    let mut words = cell.text.clone();
    if cell.within == Some(false) {
        words.push_str(BEYOND);
    }
    words
}

fn member_row(job: &AgreementRow, place: &str, cell: &AgreementCell) -> Option<Vec<String>> {
    let points = cell.share_points?;
    let counts = |count: fn(&MemberCounts) -> u64| {
        let list = |members: &[MemberCounts]| {
            let mut words = String::new();
            for (place, member) in members.iter().enumerate() {
                let gap = if place == 0 { "" } else { "\u{a0}" };
                let _ = write!(words, "{gap}{}", count(member));
            }
            words
        };
        format!("{} / {}", list(&cell.base), list(&cell.other))
    };
    Some(vec![
        job.label.clone(),
        place.to_owned(),
        counts(|member| member.reads),
        counts(|member| member.writes),
        format!("{points:.1}"),
    ])
}
